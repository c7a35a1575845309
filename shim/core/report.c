#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>

#include "../sys.h"
#include "config.h"
#include "rate.h"
#include "report.h"
#include "say.h"
#include "table.h"

bool report_on;

#define ENTRIES_MOST 65536 /* further files are counted together */

struct entry {
	struct entry *next;
	struct row row;
};

/* Guards the arena, the list and the others. A leaf lock; signals are blocked where it is held. */
static struct lock lock;
static struct entry *first, **last = &first;
static unsigned count;
static struct row others = {.path = "(others)", .mode = "passed", .reason = ""};
static char *arena;
static size_t arena_left;
static bool asked; /* a report is wanted, not only the counts */
static uint64_t started; /* monotonic clock, ns */
static char program[64];
static const char *where; /* "-", or the path, absolute: programs change their directory */
static int stderr_copy = -1; /* own_dup handle: programs close their stderr before they end */

static void *keep(size_t size)
{
	void *p;

	size = (size + 15) & ~(size_t)15;
	if (size > arena_left) {
		long m = sys_mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE,
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

/*
 * A place where no report can be written, ever, gets its line now: by the end
 * the program may have closed stderr, or made something else of its number.
 */
static void check_place(void)
{
	char path[CONFIG_PATH_MAX + 1024];
	char *name;
	long r;

	expand(path, sizeof(path) - 2, where);
	name = strrchr(path, '/');
	if (*path != '/')
		return;
	/* a directory itself? */
	memcpy(path + strlen(path), "/.", 3);
	r = sys(SYS_faccessat, AT_FDCWD, path, 0) ? 0 : -EISDIR;
	if (!r) {
		memcpy(name, "/.", 3);
		r = sys(SYS_faccessat, AT_FDCWD, path, 0);
	}
	if (r == -EISDIR || r == -ENOENT || r == -ENOTDIR || r == -ENAMETOOLONG)
		say("BLKTUNE_REPORT=%.64s: expected - or a file in a directory that is there\n",
			config.report);
}

void report_init(void)
{
	char link[4096];
	const char *name = program_invocation_short_name;

	if (!config.on || !(*config.report || config.progress))
		return;
	report_on = true;
	if (!*config.report)
		return;
	if (!name || !*name) {
		long n = sys(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", link, sizeof(link) - 1);

		link[n > 0 ? n : 0] = 0;
		name = strrchr(link, '/') ? strrchr(link, '/') + 1 : link;
	}
	snprintf(program, sizeof(program), "%.63s", name);
	started = clock_exact();
	asked = true;
	if (!strcmp(config.report, "-"))
		stderr_copy = own_dup(2);
	else
		where = report_path(config.report);
	if (!where)
		where = config.report;
	check_place();
}

static bool wants_paths(void)
{
	/* Beyond that many files nothing is kept of a single one. */
	return (asked && __atomic_load_n(&count, __ATOMIC_RELAXED) < ENTRIES_MOST) ||
	       *config.only || *config.skip;
}

/* The name of a directory, AT_FDCWD for the current one; its length, 0: not known. */
static size_t directory(int dir, char *name)
{
	char link[32];
	long n;

	if (dir == AT_FDCWD) {
		/* It counts the NUL; "(unreachable)" is no directory. */
		n = sys(SYS_getcwd, name, PATH_MAX) - 1;
	} else {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
		n = sys(SYS_readlinkat, AT_FDCWD, link, name, PATH_MAX);
	}
	return n > 0 && *name == '/' ? n : 0;
}

/* A copy of a path, behind the directory's name where it is a relative one. */
static const char *keep_path(int dir, const char *path)
{
	size_t len = strlen(path) + 1, n = 0, unused = *path == '/' ? 0 : PATH_MAX + 1;
	struct quiet q;
	char *copy;

	quiet_begin(&q);
	lock_take(&lock);
	/* Room for the longest name: the stack may be a small one. What is not needed goes back. */
	copy = keep(unused + len);
	if (copy && unused) {
		n = directory(dir, copy);
		if (n && copy[n - 1] != '/')
			copy[n++] = '/';
		unused = (unused - n) & ~(size_t)15;
		arena -= unused;
		arena_left += unused;
	}
	if (copy)
		memcpy(copy + n, path, len);
	lock_drop(&lock);
	quiet_end(&q);
	return copy;
}

const char *report_path(const char *path)
{
	return path && wants_paths() ? keep_path(AT_FDCWD, path) : NULL;
}

const char *report_path_at(int dir, const char *path)
{
	if (dir == AT_FDCWD || !path || *path == '/' || !wants_paths())
		return path;
	return keep_path(dir, path);
}

static const char *mode_of(const struct file *f)
{
	if (f->read.direct || f->write.direct)
		return "direct";
	if (f->state != FILE_TUNED && !(f->read.calls > f->read.transfers) &&
		!(f->write.calls > f->write.transfers))
		return "passed";
	return f->behind && f->read.moved + f->write.moved ? "dontcache" : "buffered";
}

void report_opened(struct file *f)
{
	f->opened = asked ? clock_exact() : 0;
}

void report_add(const struct file *f)
{
	struct quiet q;
	struct entry *e;

	if (!asked || !(f->read.calls || f->write.calls))
		return;
	quiet_begin(&q);
	lock_take(&lock);
	e = count < ENTRIES_MOST ? keep(sizeof(*e)) : NULL;
	if (e) {
		*e = (struct entry){.row = {
			.path = f->path ? f->path : "",
			.reason = file_reason(f),
			.mode = mode_of(f),
			.read = f->read,
			.write = f->write,
			.open = f->opened ? clock_exact() - f->opened : 0,
		}};
		*last = e;
		last = &e->next;
		count++;
	} else {
		counts_add(&others.read, &f->read);
		counts_add(&others.write, &f->write);
	}
	lock_drop(&lock);
	quiet_end(&q);
}

/* --- writing --- */

static void put_counts(struct text *t, const char *name, const struct counts *c)
{
	text_put(t,
		",\"%s\":{\"calls\":%llu,\"bytes\":%llu,\"transfers\":%llu,\"smallest\":%llu,"
		"\"largest\":%llu,\"moved\":%llu,\"direct\":%llu,\"direct_bytes\":%llu,"
		"\"wait_s\":%.6f}",
		name, (unsigned long long)c->calls, (unsigned long long)c->bytes,
		(unsigned long long)c->transfers, (unsigned long long)c->smallest,
		(unsigned long long)c->largest, (unsigned long long)c->moved,
		(unsigned long long)c->direct, (unsigned long long)c->direct_bytes,
		c->waited / 1e9);
}

static void put_row(struct text *t, const struct row *r, bool comma)
{
	text_put(t, "%s{\"path\":", comma ? "," : "");
	text_json(t, r->path);
	text_put(t, ",\"mode\":\"%s\",\"reason\":\"%s\",\"open_s\":%.6f", r->mode, r->reason,
		r->open / 1e9);
	put_counts(t, "read", &r->read);
	put_counts(t, "write", &r->write);
	text_put(t, "}");
}

static void put_json(struct text *t, uint64_t elapsed)
{
	struct utsname host = {.nodename = ""};
	struct timespec now = {0};

	sys(SYS_uname, &host);
	sys(SYS_clock_gettime, CLOCK_REALTIME, &now);
	text_put(t, "{\"program\":");
	text_json(t, program);
	text_put(t, ",\"pid\":%ld,\"host\":", sys(SYS_getpid));
	text_json(t, host.nodename);
	text_put(t,
		",\"engine\":\"%s\",\"start_s\":%.6f,\"elapsed_s\":%.6f,\"rate\":%llu,"
		"\"throttle_s\":%.6f,\"files\":[",
		engine_name(), now.tv_sec + now.tv_nsec / 1e9 - elapsed / 1e9, elapsed / 1e9,
		(unsigned long long)config.rate, rate_slept() / 1e9);
	for (struct entry *e = first; e; e = e->next)
		put_row(t, &e->row, e != first);
	if (others.read.calls || others.write.calls)
		put_row(t, &others, true);
	text_put(t, "]}\n");
}

static void put_table(struct text *t, uint64_t elapsed)
{
	struct table table = {0};

	for (struct entry *e = first; e; e = e->next)
		table_add(&table, &e->row);
	if (others.read.calls || others.write.calls)
		table_add(&table, &others);
	text_put(t, "blktune: ");
	text_line(t, program);
	text_put(t, " (%ld), %.2f s, engine %s", sys(SYS_getpid), elapsed / 1e9, engine_name());
	if (config.rate)
		text_put(t, ", %.2f s of it held back by BLKTUNE_RATE", rate_slept() / 1e9);
	text_put(t, "\n");
	table_put(t, &table, elapsed);
}

static void still_open(struct file *f, void *arg)
{
	(void)arg;
	report_add(f);
	memset(&f->read, 0, sizeof(f->read));
	memset(&f->write, 0, sizeof(f->write));
	report_opened(f);
}

static void empty(void)
{
	first = NULL;
	last = &first;
	count = 0;
	others.read = others.write = (struct counts){0};
}

/* Where the program was started is this directory, still. */
static bool at_start(char *cwd, size_t size)
{
	long n = sys(SYS_getcwd, cwd, size);

	return n > 1 && !strncmp(where, cwd, n - 1) &&
	       (cwd[n - 2] == '/' || where[n - 1] == '/') &&
	       !strcmp(where + n - (cwd[n - 2] == '/'), config.report);
}

/*
 * At the end of the file, in one write(2), so that lines of other processes
 * do not come between, and whoever reads the file finds all of it or nothing.
 */
static void put_out(const struct text *t)
{
	char path[CONFIG_PATH_MAX + 1024];
	int fd;

	if (!strcmp(where, "-")) {
		fd = own_at(stderr_copy);
		text_out(fd < 0 ? 2 : fd, t->p, t->n);
		return;
	}
	expand(path, sizeof(path), where);
	fd = sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	/* The way from the root may be closed to this user, or too long. */
	if ((fd == -EACCES || fd == -ENAMETOOLONG) && at_start(path, sizeof(path))) {
		expand(path, sizeof(path), config.report);
		fd = sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	}
	if (fd < 0)
		return;
	text_out(fd, t->p, t->n);
	sys(SYS_close, fd);
}

void report_write(void)
{
	struct text t = {0};
	struct quiet q;
	size_t len = strlen(config.report);
	uint64_t elapsed;

	if (!asked)
		return;
	fdtable_each(still_open, NULL);
	elapsed = clock_exact() - started;
	quiet_begin(&q);
	lock_take(&lock);
	if (len > 5 && !strcmp(config.report + len - 5, ".json"))
		put_json(&t, elapsed);
	else if (first)
		put_table(&t, elapsed);
	empty();
	lock_drop(&lock);
	if (t.n)
		put_out(&t);
	text_free(&t);
	quiet_end(&q);
}

void report_forget(void)
{
	lock_reset(&lock);
	empty();
	if (asked)
		started = clock_exact();
	if (stderr_copy >= 0) {
		/* The parent's; a child that stays behind must not keep a pipe open. */
		own_close(stderr_copy);
		stderr_copy = -1;
	}
}
