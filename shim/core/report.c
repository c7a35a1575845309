#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../sys.h"
#include "config.h"
#include "file.h"
#include "report.h"

bool report_on;

#define ENTRIES_MOST 65536 /* further files are counted together */

struct entry {
	struct entry *next;
	const char *path;
	const char *reason;
	const char *mode;
	struct counts read, write;
};

/* Guards the arena and the list. A leaf lock; signals are blocked where it is held. */
static struct lock lock;
static struct entry *first, **last = &first;
static unsigned count;
static struct entry others = {.path = "(others)", .reason = "", .mode = "passed"};
static char *arena;
static size_t arena_left;
static uint64_t started;
static char program[64];
static int stderr_copy = -1; /* own_dup handle: programs close their stderr before they end */

static void *keep(size_t size)
{
	void *p;

	size = (size + 15) & ~(size_t)15;
	if (size > arena_left) {
		long m = sys(SYS_mmap, 0, 1 << 18, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (sys_failed(m) || size > 1 << 18)
			return NULL;
		arena = (char *)m;
		arena_left = 1 << 18;
	}
	p = arena;
	arena += size;
	arena_left -= size;
	return p;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

void report_init(void)
{
	char link[4096];
	const char *name = program_invocation_short_name;

	if (!config.on || !*config.report)
		return;
	if (!name || !*name) {
		long n = sys(SYS_readlink, "/proc/self/exe", link, sizeof(link) - 1);


		link[n > 0 ? n : 0] = 0;
		name = strrchr(link, '/') ? strrchr(link, '/') + 1 : link;
	}
	snprintf(program, sizeof(program), "%.63s", name);
	started = now();
	if (!strcmp(config.report, "-"))
		stderr_copy = own_dup(2);
	report_on = true;
}

const char *report_path(const char *path)
{
	char cwd[1024] = "";
	struct quiet q;
	size_t n, dir = 0;
	char *copy;

	if (!path || !(report_on || *config.only || *config.skip))
		return NULL;
	n = strlen(path) + 1;
	if (*path != '/') {
		long r = sys(SYS_getcwd, cwd, sizeof(cwd) - 1);

		dir = sys_failed(r) || *cwd != '/' ? 0 : strlen(cwd);
		if (dir)
			cwd[dir++] = '/';
	}
	quiet_begin(&q);
	lock_take(&lock);
	copy = keep(dir + n);
	if (copy) {
		memcpy(copy, cwd, dir);
		memcpy(copy + dir, path, n);
	}
	lock_drop(&lock);
	quiet_end(&q);
	return copy;
}

static void add_counts(struct counts *to, const struct counts *c)
{
	to->calls += c->calls;
	to->bytes += c->bytes;
	to->transfers += c->transfers;
	to->moved += c->moved;
	to->direct += c->direct;
	if (c->largest > to->largest)
		to->largest = c->largest;
	if (c->smallest && (!to->smallest || c->smallest < to->smallest))
		to->smallest = c->smallest;
}

static const char *mode_of(const struct file *f)
{
	if (f->read.direct || f->write.direct)
		return "direct";
	if (f->state != FILE_TUNED && !(f->read.calls > f->read.transfers) &&
		!(f->write.calls > f->write.transfers))
		return "passed";
	return "buffered";
}

void report_add(const struct file *f)
{
	struct quiet q;
	struct entry *e;

	if (!report_on || !(f->read.calls || f->write.calls))
		return;
	quiet_begin(&q);
	lock_take(&lock);
	e = count < ENTRIES_MOST ? keep(sizeof(*e)) : NULL;
	if (e) {
		*e = (struct entry){
			.path = f->path ? f->path : "",
			.reason = file_reason(f),
			.mode = mode_of(f),
			.read = f->read,
			.write = f->write,
		};
		*last = e;
		last = &e->next;
		count++;
	} else {
		add_counts(&others.read, &f->read);
		add_counts(&others.write, &f->write);
	}
	lock_drop(&lock);
	quiet_end(&q);
}

/* --- writing --- */

struct text {
	char *p;
	size_t n, room;
};

static void put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *t, const char *format, ...)
{
	va_list ap;
	int n;

	if (t->room - t->n < 1024) {
		size_t room = t->room ? t->room * 2 : 65536;
		long m = sys(SYS_mmap, 0, room, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (sys_failed(m))
			return;
		if (t->p) {
			memcpy((char *)m, t->p, t->n);
			sys(SYS_munmap, t->p, t->room);
		}
		t->p = (char *)m;
		t->room = room;
	}
	va_start(ap, format);
	n = vsnprintf(t->p + t->n, t->room - t->n, format, ap);
	va_end(ap);
	if (n > 0)
		t->n += (size_t)n < t->room - t->n ? (size_t)n : t->room - t->n - 1;
}

/* A JSON string. Bytes that are not UTF-8 become U+FFFD, so that the file stays valid. */
static void put_string(struct text *t, const char *s)
{
	put(t, "\"");
	while (*s) {
		unsigned char c = *s;
		int more = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2
			 : c >= 0xf0 && c < 0xf5		? 3
								: -1;

		for (int i = 1; i <= more; i++)
			if ((s[i] & 0xc0) != 0x80)
				more = -1;
		if ((c == 0xe0 && (s[1] & 0xff) < 0xa0) || (c == 0xed && (s[1] & 0xff) > 0x9f) ||
			(c == 0xf0 && (s[1] & 0xff) < 0x90) || (c == 0xf4 && (s[1] & 0xff) > 0x8f))
			more = -1;
		if (more < 0)
			put(t, "\\ufffd");
		else if (c == '"' || c == '\\')
			put(t, "\\%c", c);
		else if (c < ' ')
			put(t, "\\u%04x", c);
		else
			put(t, "%.*s", more + 1, s);
		s += more < 0 ? 1 : more + 1;
	}
	put(t, "\"");
}

static void put_counts(struct text *t, const char *name, const struct counts *c)
{
	put(t, ",\"%s\":{\"calls\":%llu,\"bytes\":%llu,\"transfers\":%llu,\"smallest\":%llu,"
	       "\"largest\":%llu}",
		name, (unsigned long long)c->calls, (unsigned long long)c->bytes,
		(unsigned long long)c->transfers, (unsigned long long)c->smallest,
		(unsigned long long)c->largest);
}

static void put_json(struct text *t)
{
	put(t, "{\"program\":");
	put_string(t, program);
	put(t, ",\"pid\":%ld,\"engine\":\"%s\",\"elapsed_s\":%.6f,\"files\":[", sys(SYS_getpid),
		engine_name(), (now() - started) / 1e9);
	for (struct entry *e = first; e; e = e->next) {
		put(t, "%s{\"path\":", e == first ? "" : ",");
		put_string(t, e->path);
		put(t, ",\"mode\":\"%s\",\"reason\":\"%s\"", e->mode, e->reason);
		put_counts(t, "read", &e->read);
		put_counts(t, "write", &e->write);
		put(t, "}");
	}
	put(t, "]}\n");
}

/* A size in binary units, in a buffer of its own among a few. */
static const char *human(double v)
{
	static char buffers[8][16];
	static int i;
	const char *unit = "BKMGTPE";
	char *b = buffers[i++ % 8];

	while (v >= 1024 && unit[1]) {
		v /= 1024;
		unit++;
	}
	snprintf(b, sizeof(buffers[0]), *unit == 'B' || v >= 100 ? "%.0f%c" : "%.1f%c", v, *unit);
	return b;
}

static void put_line(struct text *t, const char *what, const struct counts *c, const char *mode,
	const char *reason, const char *path)
{
	if (!c->calls)
		return;
	put(t, "%-5s %9s %9llu %8s %9llu %8s %-8s %-12s %s\n", what, human(c->bytes),
		(unsigned long long)c->calls, human((double)c->bytes / c->calls),
		(unsigned long long)c->transfers,
		human(c->transfers ? (double)c->moved / c->transfers : 0), mode,
		*reason ? reason : "-", path);
}

static void put_table(struct text *t)
{
	struct counts read = {0}, write = {0};

	put(t, "blktune: %s (%ld), %.2f s, engine %s\n", program, sys(SYS_getpid),
		(now() - started) / 1e9, engine_name());
	put(t, "%-5s %9s %9s %8s %9s %8s %-8s %-12s %s\n", "", "bytes", "calls", "mean",
		"transfers", "mean", "mode", "reason", "file");
	for (struct entry *e = first; e; e = e->next) {
		put_line(t, "read", &e->read, e->mode, e->reason, e->path);
		put_line(t, "write", &e->write, e->mode, e->reason, e->path);
		add_counts(&read, &e->read);
		add_counts(&write, &e->write);
	}
	put_line(t, "read", &read, "", "", "total");
	put_line(t, "write", &write, "", "", "total");
}

/* The path with %p and %n put in. */
static void expand(char *to, size_t room, const char *from)
{
	size_t n = 0;

	while (*from && n + 80 < room) {
		if (from[0] == '%' && from[1] == 'p')
			n += snprintf(to + n, room - n, "%ld", sys(SYS_getpid));
		else if (from[0] == '%' && from[1] == 'n')
			n += snprintf(to + n, room - n, "%s", program);
		else {
			to[n++] = *from++;
			continue;
		}
		from += 2;
	}
	to[n] = 0;
}

static void still_open(struct file *f, void *arg)
{
	(void)arg;
	report_add(f);
	memset(&f->read, 0, sizeof(f->read));
	memset(&f->write, 0, sizeof(f->write));
}

void report_write(void)
{
	struct text t = {0};
	char path[CONFIG_PATH_MAX + 128];
	size_t len = strlen(config.report);
	int fd;

	if (!report_on)
		return;
	fdtable_each(still_open, NULL);
	if (len > 5 && !strcmp(config.report + len - 5, ".json"))
		put_json(&t);
	else if (first)
		put_table(&t);
	first = NULL;
	last = &first;
	count = 0;
	if (!t.n)
		return;
	if (!strcmp(config.report, "-")) {
		fd = own_at(stderr_copy);
		sys(SYS_write, fd < 0 ? 2 : fd, t.p, t.n);
	} else {
		expand(path, sizeof(path), config.report);
		fd = sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			0666);
		/* One write: lines of other processes do not come between. */
		if (fd >= 0) {
			sys(SYS_write, fd, t.p, t.n);
			sys(SYS_close, fd);
		}
	}
	sys(SYS_munmap, t.p, t.room);
}

void report_forget(void)
{
	lock_reset(&lock);
	first = NULL;
	last = &first;
	count = 0;
	if (stderr_copy >= 0) {
		/* The parent's; a child that stays behind must not keep a pipe open. */
		own_close(stderr_copy);
		stderr_copy = -1;
	}
}
