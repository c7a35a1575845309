#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "../sys.h"
#include "config.h"
#include "file.h"
#include "progress.h"
#include "table.h"

#define PERIOD_NS 200000000ULL
#define ERASE	  "\r\033[K"

bool progress_on, progress_shown;

/* Guards what follows it. A leaf lock, tried only: who does not get it draws another time. */
static struct lock lock;
static int terminal = -1; /* own_dup handle: programs close their stderr before they end */
static uint64_t device;   /* st_rdev of the terminal */
static uint64_t began, drawn; /* monotonic clock, ns */
static uint64_t drawn_bytes;
static double rate; /* bytes per second, smoothed */

static uint64_t moved[2]; /* bytes each way, atomic */

static bool is_terminal(int fd, uint64_t *rdev)
{
	struct stat64 st;
	struct winsize w;

	if (sys_failed(sys(SYS_ioctl, fd, TIOCGWINSZ, &w)) || sys_failed(sys(SYS_FSTAT, fd, &st)))
		return false;
	*rdev = st.st_rdev;
	return S_ISCHR(st.st_mode);
}

void progress_init(void)
{
	if (!config.on || !config.progress || !is_terminal(2, &device))
		return;
	terminal = own_dup(2);
	progress_on = terminal >= 0;
	began = drawn = clock_exact();
}

/* To a terminal that is stopped, or another job's, nothing is written: it might wait. */
static void put(const char *text, size_t n)
{
	struct pollfd p = {.fd = own_at(terminal), .events = POLLOUT};
	struct timespec now = {0, 0};

	if (p.fd >= 0 && sys(SYS_ppoll, &p, 1, &now, 0, 0) == 1 && p.revents & POLLOUT)
		sys(SYS_write, p.fd, text, n);
}

static bool in_foreground(void)
{
	pid_t group;

	return sys_failed(sys(SYS_ioctl, own_at(terminal), TIOCGPGRP, &group)) ||
	       group == sys(SYS_getpgid, 0);
}

/*
 * Where the files that are open for reading stand, and how long they are:
 * bytes. Looked at without their locks: it is only shown.
 */
static void look(uint64_t *at, uint64_t *size)
{
	struct file *f;

	*at = *size = 0;
	for (uint32_t i = 0; fdtable_nth(i, &f); i++) {
		uint64_t pos;

		if (!f || f->state != FILE_TUNED || f->kind == KIND_MEMORY || f->size <= 0 ||
			(f->flags & O_ACCMODE) != O_RDONLY)
			continue;
		pos = file_pos(f);
		*size += f->size;
		*at += pos < (uint64_t)f->size ? pos : (uint64_t)f->size;
	}
}

/* "1:02:03" or "2:03", behind what is in the line. */
static int put_time(char *line, size_t room, uint64_t s)
{
	if (s >= 3600)
		return snprintf(line, room, "  %llu:%02u:%02u left", (unsigned long long)s / 3600,
			(unsigned)(s / 60 % 60), (unsigned)(s % 60));
	return snprintf(
		line, room, "  %u:%02u left", (unsigned)(s / 60), (unsigned)(s % 60));
}

static void draw(uint64_t bytes, uint64_t now)
{
	char line[128], size[16], speed[16];
	struct winsize w = {.ws_col = 0};
	double step = (now - drawn) / 1e9;
	uint64_t at, known;
	int n;

	/* The rate of the last second or two. */
	rate += (drawn == began ? 1 : 0.2) * ((bytes - drawn_bytes) / step - rate);
	drawn = now;
	drawn_bytes = bytes;
	if (!in_foreground())
		return;
	look(&at, &known);
	table_size(size, sizeof(size), bytes);
	table_size(speed, sizeof(speed), rate);
	n = snprintf(line, sizeof(line), ERASE "%s", size);
	if (known)
		n += snprintf(line + n, sizeof(line) - n, "  %u%%", (unsigned)(at * 100 / known));
	n += snprintf(line + n, sizeof(line) - n, "  %s/s", speed);
	if (known && rate >= 1)
		n += put_time(line + n, sizeof(line) - n, (known - at) / rate + 0.5);
	/* What the terminal is wide enough for, as it is now: a second line could not be taken back. */
	sys(SYS_ioctl, own_at(terminal), TIOCGWINSZ, &w);
	if (w.ws_col && n > (int)strlen(ERASE) + w.ws_col - 1)
		n = strlen(ERASE) + w.ws_col - 1;
	/* What the program writes past us begins at the left. */
	line[n++] = '\r';
	put(line, n);
	__atomic_store_n(&progress_shown, true, __ATOMIC_RELEASE);
}

void progress_moved(bool write, size_t bytes)
{
	uint64_t r, w, now;
	struct quiet q;

	__atomic_add_fetch(&moved[write], bytes, __ATOMIC_RELAXED);
	if (clock_coarse() - __atomic_load_n(&drawn, __ATOMIC_RELAXED) < PERIOD_NS)
		return;
	quiet_begin(&q);
	if (lock_try(&lock)) {
		now = clock_exact();
		r = __atomic_load_n(&moved[0], __ATOMIC_RELAXED);
		w = __atomic_load_n(&moved[1], __ATOMIC_RELAXED);
		/* A copy counts once. */
		if (progress_on && now - drawn >= PERIOD_NS)
			draw(r > w ? r : w, now);
		lock_drop(&lock);
	}
	quiet_end(&q);
}

static void erase(void)
{
	struct quiet q;

	quiet_begin(&q);
	lock_take(&lock);
	if (progress_shown)
		put(ERASE, strlen(ERASE));
	progress_shown = false;
	lock_drop(&lock);
	quiet_end(&q);
}

void progress_clear(int fd)
{
	uint64_t rdev;

	if (is_terminal(fd, &rdev) && rdev == device)
		erase();
}

void progress_end(void)
{
	if (progress_shown)
		erase();
}

void progress_forget(void)
{
	lock_reset(&lock);
	progress_on = progress_shown = false;
	own_close(terminal);
	terminal = -1;
}
