// Performs a long random sequence of file operations and prints what each returned.
//
// Two runs with the same seed on the same kind of filesystem print the same lines, so a line that
// differs under a preloaded library is a fault of that library. What the kernel may answer
// differently from run to run (inode numbers, times, pids, short counts of the copy calls) is never
// printed.
//
// Operation I of seed S draws everything from hash(S, I), not from a running state: leaving
// operations out keeps the arguments of the others. Descriptors live in slots for the same reason.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NSLOT 14
#define NMAP 3
#define KIB 1024
#define BUFSIZE (1024 * KIB)
#define TIMES_BASE 1000000000 // times set explicitly lie in 2001, times set by the kernel do not
#define TIMES_END 1200000000
#define MARK_GID 54321 // group of files whose holes depend on caching (see op_lseek)
#define HIGH_FD 200    // the exerciser's own pipes live from here on

extern char **environ;

enum { READABLE = 1, WRITABLE = 2, STREAM = 4 };

struct slot {
	int fd;	  // -1: empty
	int name; // index of the name that it was opened by
	int acc;  // READABLE | WRITABLE
	int desc; // index into direct_of, shared by duplicates
	bool append;
	bool sync;    // every write is slow: short bursts only
	FILE *fp;     // owner of fd, when a stream
	size_t wrote; // bytes written through this slot since the last rewind, bounds the file's
		      // size
};

struct mapping {
	char *addr;
	size_t len;
	bool writable;
};

static struct {
	uint64_t seed;
	unsigned long ops;
	unsigned int set; // column of weights
	int depth;	  // how many forks below the first process
	long idx;	  // current operation
	long sub;	  // current call of a burst, -1 outside
	int limit;	  // most calls of one burst (for shrinking)
	int err;	  // errno after the last CALL
	bool verbose;	  // name the kind of each operation
	bool atime;	  // print the class of atime too
	bool exact_holes; // SEEK_DATA and SEEK_HOLE are reproducible here
	bool mark_copies; // copies share unwritten extents here
	char prefix[128];
	char self[4096];
	const char *weights;
	unsigned long calls;
} g = {.ops = 1000, .sub = -1, .limit = 1 << 30, .weights = "all"};

static struct slot slots[NSLOT];
static struct slot nobody = {.fd = -1, .acc = READABLE | WRITABLE};
static struct slot *focus; // just written to: what follows is often about the same file
static struct mapping maps[NMAP];
static bool direct_of[4096]; // by open file description: the program asked for O_DIRECT
static int next_desc = 1;    // 0 is never direct
static int *keep;	     // per operation: 0 leave out, else the limit of its bursts
static bool excluded[256];   // by kind
static __thread uint64_t rng;
static char buf[BUFSIZE + 2 * 4096] __attribute__((aligned(4096)));
static char trace[64 * KIB];
static size_t trace_len;

static const char *const names[] = {"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9",
	"d/a", "d/b", "h0", "h1", "s0", "s1", "s2", "missing/x", "f0/x"};
enum { NREAL = 14, NFOLLOW = 17, NNAMES = 19, BIG = 9 };

// ---- randomness
// -------------------------------------------------------------------------------------------

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t rnd(void)
{
	rng += 0x9e3779b97f4a7c15u;
	return mix(rng, 0);
}

static unsigned int below(unsigned int n)
{
	return (rnd() >> 32) % n;
}

static bool chance(unsigned int one_in)
{
	return below(one_in) == 0;
}

static void fill(char *p, size_t n)
{
	uint64_t x = rnd() | 1;

	for (size_t i = 0; i < n; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(p + i, &x, n - i < 8 ? n - i : 8);
	}
}

static uint64_t hash_more(uint64_t h, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t w = 0;

		memcpy(&w, p + i, n - i < 8 ? n - i : 8);
		h = (h ^ w) * 0x100000001b3u;
		h ^= h >> 32;
	}
	return h;
}

static uint64_t hash(const char *p, size_t n)
{
	return hash_more(0xcbf29ce484222325u + n, p, n);
}

// ---- trace
// ------------------------------------------------------------------------------------------------

static void flush_trace(void)
{
	size_t done = 0;

	while (done < trace_len) {
		ssize_t r = write(1, trace + done, trace_len - done);

		if (r <= 0)
			break;
		done += r;
	}
	trace_len = 0;
}

static void vsay(const char *fmt, va_list ap)
{
	int n;

	if (trace_len > sizeof(trace) - 8 * KIB)
		flush_trace();
	n = vsnprintf(trace + trace_len, sizeof(trace) - trace_len, fmt, ap);
	trace_len += n;
	if (trace_len >= sizeof(trace))
		trace_len = sizeof(trace) - 1;
}

static __attribute__((format(printf, 1, 2))) void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsay(fmt, ap);
	va_end(ap);
}

static void say_index(void)
{
	g.calls++;
	if (g.sub >= 0)
		say("%s%ld.%ld ", g.prefix, g.idx, g.sub);
	else
		say("%s%ld ", g.prefix, g.idx);
}

static const char *errname(int err)
{
	const char *s = strerrorname_np(err);

	return s ? s : "?";
}

// errno is printed whenever it changed: a successful call must leave it alone.
#define CALL(expr)                                                                                 \
	({                                                                                         \
		long r_;                                                                           \
		errno = 0;                                                                         \
		r_ = (long)(expr);                                                                 \
		g.err = errno;                                                                     \
		r_;                                                                                \
	})

// Where the kernel lacks a call, libc's own way round it leaves this behind.
#define CALL_NEW(expr)                                                                             \
	({                                                                                         \
		long new_ = CALL(expr);                                                            \
		if (new_ >= 0 && g.err == ENOSYS)                                                  \
			g.err = 0;                                                                 \
		new_;                                                                              \
	})

static void vreport(long r, const char *fmt, va_list ap)
{
	say_index();
	vsay(fmt, ap);
	say(" = %ld", r);
	if (g.err)
		say(" %s", errname(g.err));
}

static __attribute__((format(printf, 2, 3))) void report(long r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vreport(r, fmt, ap);
	va_end(ap);
	say("\n");
}

static __attribute__((format(printf, 3, 4))) void report_data(
	long r, const char *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vreport(r, fmt, ap);
	va_end(ap);
	if (r > 0)
		say(" #%016lx", (unsigned long)hash(p, r));
	say("\n");
}

static void say_time(const char *label, time_t sec, long nsec)
{
	if (sec >= TIMES_BASE && sec < TIMES_END)
		say(" %s=%ld.%ld", label, (long)sec, nsec);
	else
		say(" %s=now", label);
}

static void report_stat(long r, const struct stat *st, const char *what, const char *arg)
{
	say_index();
	say("%s %s = %ld", what, arg, r);
	if (g.err)
		say(" %s", errname(g.err));
	if (!r) {
		say(" size=%ld mode=%o nlink=%ld blksize=%ld", (long)st->st_size, st->st_mode,
			(long)st->st_nlink, (long)st->st_blksize);
		say_time("m", st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
		if (g.atime)
			say_time("a", st->st_atim.tv_sec, st->st_atim.tv_nsec);
	}
	say("\n");
}

static const struct {
	int bit;
	const char *name;
} flag_names[] = {
	{O_CREAT, "CREAT"},
	{O_EXCL, "EXCL"},
	{O_TRUNC, "TRUNC"},
	{O_APPEND, "APPEND"},
	{O_NONBLOCK, "NONBLOCK"},
	{O_SYNC, "SYNC"},
	{O_DSYNC, "DSYNC"},
	{O_DIRECT, "DIRECT"},
	{O_NOFOLLOW, "NOFOLLOW"},
	{O_TMPFILE, "TMPFILE"},
	{O_DIRECTORY, "DIRECTORY"},
	{O_NOATIME, "NOATIME"},
	{O_CLOEXEC, "CLOEXEC"},
	{O_PATH, "PATH"},
};

static const char *flag_text(int flags)
{
	static char s[256];
	static const char *const acc[] = {"RDONLY", "WRONLY", "RDWR", "3"};

	strcpy(s, acc[flags & O_ACCMODE]);
	flags &= ~O_ACCMODE;
	for (size_t i = 0; i < sizeof(flag_names) / sizeof(flag_names[0]); i++) {
		int bit = flag_names[i].bit;

		if ((flags & bit) != bit)
			continue;
		strcat(s, "|");
		strcat(s, flag_names[i].name);
		flags &= ~bit;
	}
	return s;
}

// ---- choosing
// ---------------------------------------------------------------------------------------------

static bool fits(const struct slot *s, int want)
{
	if (s->fd < 0 || !(want & STREAM) != !s->fp)
		return false;
	return ((want & (READABLE | WRITABLE)) & ~s->acc) == 0;
}

// Draws the same amount of randomness whatever is open, so that arguments survive shrinking.
static struct slot *pick(int want)
{
	unsigned int start = below(NSLOT), careless = chance(24), focused = chance(2);

	if (focus && focused && fits(focus, want))
		return focus;
	for (unsigned int i = 0; i < NSLOT && !careless; i++)
		if (fits(&slots[(start + i) % NSLOT], want))
			return &slots[(start + i) % NSLOT];
	for (unsigned int i = 0; i < NSLOT && !(want & STREAM); i++)
		if (slots[(start + i) % NSLOT].fd >= 0)
			return &slots[(start + i) % NSLOT];
	return &nobody;
}

static struct slot *owner(int fd)
{
	for (int i = 0; i < NSLOT; i++)
		if (slots[i].fd == fd)
			return &slots[i];
	return NULL;
}

static int pick_name(void)
{
	unsigned int r = below(100), any = below(NFOLLOW), hot = below(4), odd = below(2),
		     focused = chance(2);

	if (focus && focused)
		return focus->name;
	if (r < 45)
		return hot;
	if (r < 55)
		return BIG;
	return r < 98 ? (int)any : NFOLLOW + (int)odd;
}

static long cap(const struct slot *s)
{
	return s->name == BIG ? 3 * 1024 * KIB : 160 * KIB;
}

static size_t pick_size(void)
{
	static const int edges[] = {
		512, 1024, 4096, 4096, 5120, 8192, 8192, 10240, 16384, 65536, 65536, 131072};
	unsigned int r = below(100), small = below(32), mid = below(3000), big = below(70000);
	unsigned int edge = edges[below(12)], delta = below(3);

	if (r < 12)
		return small;
	if (r < 45)
		return mid;
	if (r < 50)
		return big;
	return r < 85 ? edge : edge + delta - 1;
}

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static bool is_direct(const struct slot *s)
{
	return direct_of[s->desc];
}

// A direct write of an odd length may fail with EINVAL after the extents before its end were
// written: what the file holds then depends on how it lies on the disk. Below a sector it fails at
// once.
static size_t safe_length(const struct slot *s, size_t n)
{
	return is_direct(s) && n > 512 ? (n % 512 ?: n) : n;
}

static size_t size_for(const struct slot *s)
{
	size_t n = pick_size();
	unsigned int r = below(10);

	if (!is_direct(s) || r == 0)
		return n;
	return round_up(n, r < 3 ? 512 : 4096);
}

static off_t offset_for(const struct slot *s)
{
	unsigned int r = below(20), spot = below(cap(s)), edge = pick_size();
	off_t off;

	if (r < 3)
		off = 0;
	else if (r < 8)
		off = edge;
	else if (r < 12)
		off = spot / 4096 * 4096;
	else
		off = spot;
	if (is_direct(s) && r != 19)
		off = off / 4096 * 4096;
	return r == 18 && chance(4) ? -(off + 1) : off;
}

// A buffer that is aligned for a direct transfer, or mostly not otherwise.
static char *buffer_for(const struct slot *s)
{
	unsigned int r = below(16), shift = below(64);

	return is_direct(s) ? buf + (r == 0 ? shift : 0) : buf + (r < 8 ? shift : 0);
}

static void wrote(struct slot *s, long n)
{
	if (n > 0)
		s->wrote += n;
}

// Keeps files small: once a slot has written enough it starts over.
static void bound(struct slot *s)
{
	if ((long)s->wrote < cap(s))
		return;
	s->wrote = 0;
	if (s->append)
		report(CALL(ftruncate(s->fd, 0)), "ftruncate %d 0", s->fd);
	else
		report(CALL(lseek(s->fd, 0, SEEK_SET)), "lseek %d 0 SET", s->fd);
}

// ---- opening and closing
// ----------------------------------------------------------------------------------

static void vacate(struct slot *s)
{
	if (s->fd < 0)
		return;
	if (s->fp) {
		long r = CALL(fclose(s->fp));

		g.err = r ? g.err : 0;
		report(r, "fclose %d", s->fd);
	} else {
		report(CALL(close(s->fd)), "close %d", s->fd);
	}
	s->fd = -1;
	s->fp = NULL;
}

static int new_desc(bool direct)
{
	int desc = next_desc;

	next_desc = desc + 1 < 4096 ? desc + 1 : 1;
	direct_of[desc] = direct;
	return desc;
}

static void settle(struct slot *s, int fd, int name, int flags)
{
	static const int acc[] = {READABLE, WRITABLE, READABLE | WRITABLE, 0};

	*s = (struct slot){.fd = fd, .name = name, .acc = acc[flags & O_ACCMODE]};
	s->desc = new_desc(flags & O_DIRECT);
	s->append = flags & O_APPEND;
	s->sync = flags & O_DSYNC;
	if (flags & O_PATH)
		s->acc = 0;
}

static int pick_flags(void)
{
	static const int acc[] = {O_RDONLY, O_RDONLY, O_WRONLY, O_WRONLY, O_WRONLY, O_RDWR, O_RDWR};
	static const struct {
		int flag, percent;
	} odds[] = {
		{O_CREAT, 75},
		{O_EXCL, 4},
		{O_TRUNC, 25},
		{O_APPEND, 8},
		{O_SYNC, 1},
		{O_DSYNC, 1},
		{O_DIRECT, 5},
		{O_NOFOLLOW, 5},
		{O_NOATIME, 4},
		{O_CLOEXEC, 30},
		{O_NONBLOCK, 4},
	};
	int flags = acc[below(7)];

	for (size_t i = 0; i < sizeof(odds) / sizeof(odds[0]); i++)
		if ((int)below(100) < odds[i].percent)
			flags |= odds[i].flag;
	if (chance(150))
		flags = O_PATH | (flags & O_CLOEXEC);
	if (!(flags & O_CREAT))
		flags &= ~O_EXCL; // undefined without O_CREAT
	return flags;
}

static void op_open(void)
{
	struct slot *s = &slots[below(NSLOT)];
	int name = pick_name(), flags = pick_flags(), how = below(10), dirfd;
	int mode = chance(4) ? 0600 : 0644;
	long fd;

	vacate(s);
	if (how == 0 && (name == 10 || name == 11)) {
		dirfd = CALL(open("d", O_RDONLY | O_DIRECTORY));
		fd = CALL(openat(dirfd, names[name] + 2, flags, mode));
		report(fd, "openat %d %s %s", dirfd, names[name] + 2, flag_text(flags));
		report(CALL(close(dirfd)), "close %d", dirfd);
	} else if (how < 3) {
		fd = CALL(openat(AT_FDCWD, names[name], flags, mode));
		report(fd, "openat %s %s", names[name], flag_text(flags));
	} else if (how == 3 && flags & O_TRUNC) {
		flags = O_CREAT | O_WRONLY | O_TRUNC;
		fd = CALL(creat(names[name], mode));
		report(fd, "creat %s", names[name]);
	} else {
		fd = CALL(open(names[name], flags, mode));
		report(fd, "open %s %s", names[name], flag_text(flags));
	}
	if (fd >= 0)
		settle(s, fd, name, flags);
}

static void op_reopen(void)
{
	struct slot *to = &slots[below(NSLOT)], *from = pick(0);
	int flags = pick_flags() & ~(O_CREAT | O_EXCL | O_NOFOLLOW | O_PATH), name = from->name;
	char path[64];
	long fd;

	vacate(to);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", from->fd);
	fd = CALL(open(path, flags));
	report(fd, "open %s %s", path, flag_text(flags));
	if (fd >= 0)
		settle(to, fd, name, flags);
}

static void op_tmpfile(void)
{
	struct slot *s = &slots[below(NSLOT)];
	int flags = O_TMPFILE | (chance(3) ? O_WRONLY : O_RDWR) | (chance(3) ? O_CLOEXEC : 0);
	const char *to = names[below(NREAL)];
	char path[64];
	long fd;

	vacate(s);
	fd = CALL(open(".", flags, 0600));
	report(fd, "open . %s", flag_text(flags));
	if (fd < 0)
		return;
	settle(s, fd, 0, flags & ~O_TMPFILE);
	if (chance(2))
		return;
	fill(buf, 5000);
	report(CALL(write(fd, buf, 5000)), "write %ld 5000", fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%ld", fd);
	report(CALL(linkat(AT_FDCWD, path, AT_FDCWD, to, AT_SYMLINK_FOLLOW)), "linkat %s %s", path,
		to);
}

static void op_mkstemp(void)
{
	struct slot *s = &slots[below(NSLOT)];
	char path[] = "d/tmpXXXXXX";
	unsigned int name = below(NREAL), size = pick_size();
	long fd;

	vacate(s);
	fd = chance(2) ? CALL(mkstemp(path)) : CALL(mkostemp(path, O_CLOEXEC));
	g.err = fd < 0 ? g.err : 0; // the retry loop inside may leave errno
	report(fd, "mkstemp");
	if (fd < 0)
		return;
	fill(buf, size);
	report(CALL(write(fd, buf, size)), "write %ld %u", fd, size);
	report(CALL(rename(path, names[name])), "rename tmp %s", names[name]);
	settle(s, fd, name, O_RDWR);
}

static void op_close(void)
{
	struct slot *s = pick(0);

	if (s->fd < 0)
		report(CALL(close(55)), "close 55");
	else
		vacate(s);
}

static void op_close_range(void)
{
	struct slot *s = pick(0);
	unsigned int first = s->fd < 0 ? 100 : s->fd, last = first + below(3);
	unsigned int cloexec = chance(3) ? CLOSE_RANGE_CLOEXEC : 0;

	for (int i = 0; i < NSLOT; i++)
		if (slots[i].fp && slots[i].fd >= (int)first && slots[i].fd <= (int)last)
			vacate(&slots[i]);
	report(CALL(close_range(first, last, cloexec)), "close_range %u %u %u", first, last,
		cloexec);
	for (int i = 0; i < NSLOT && !cloexec; i++)
		if (slots[i].fd >= (int)first && slots[i].fd <= (int)last)
			slots[i].fd = -1;
}

static long dup_onto(struct slot *from, struct slot *to, int how)
{
	struct slot *other = pick(0);
	int target = chance(2) || other->fd < 0 ? 40 + (int)below(12) : other->fd;
	int flags = chance(2) ? O_CLOEXEC : 0;
	struct slot *victim = owner(target);
	long fd;

	if (victim && victim->fp)
		vacate(victim);
	fd = how ? CALL(dup3(from->fd, target, flags)) : CALL(dup2(from->fd, target));
	report(fd, "%s %d %d %s", how ? "dup3" : "dup2", from->fd, target,
		how && flags ? "CLOEXEC" : "");
	victim = owner(target);
	if (fd >= 0 && victim && victim != from && victim != to)
		victim->fd = -1;
	return victim == from && fd >= 0 ? -1 : fd;
}

static void op_dup(void)
{
	struct slot *from = pick(0), *to = &slots[below(NSLOT)];
	int how = below(5), least = chance(2) ? 0 : 20 + (int)below(20);
	struct slot copy;
	long fd;

	if (from == to || from->fp)
		return;
	vacate(to);
	if (how < 2) {
		fd = dup_onto(from, to, how);
	} else if (how == 2) {
		fd = CALL(dup(from->fd));
		report(fd, "dup %d", from->fd);
	} else {
		fd = CALL(fcntl(from->fd, how == 3 ? F_DUPFD : F_DUPFD_CLOEXEC, least));
		report(fd, "fcntl %d %s %d", from->fd, how == 3 ? "DUPFD" : "DUPFD_CLOEXEC", least);
	}
	if (fd < 0)
		return;
	report(CALL(fcntl(fd, F_GETFD)), "fcntl %ld GETFD", fd);
	copy = *from;
	copy.fd = fd;
	*to = copy;
}

// ---- reading and writing
// ----------------------------------------------------------------------------------

static void do_read(struct slot *s, size_t n)
{
	char *p = buffer_for(s);
	long r = CALL(read(s->fd, p, n));

	report_data(r, p, "read %d %zu", s->fd, n);
}

static void do_write(struct slot *s, size_t n)
{
	char *p = buffer_for(s);
	long r;

	n = safe_length(s, n);
	fill(p, n);
	r = CALL(write(s->fd, p, n));
	report(r, "write %d %zu", s->fd, n);
	wrote(s, r);
}

static void do_pread(struct slot *s, size_t n, off_t off)
{
	char *p = buffer_for(s);
	long r = CALL(pread(s->fd, p, n, off));

	report_data(r, p, "pread %d %zu %ld", s->fd, n, (long)off);
}

static void do_pwrite(struct slot *s, size_t n, off_t off)
{
	char *p = buffer_for(s);
	long r;

	n = safe_length(s, n);
	fill(p, n);
	r = CALL(pwrite(s->fd, p, n, off));
	report(r, "pwrite %d %zu %ld", s->fd, n, (long)off);
	if (s->append)
		wrote(s, r);
}

static void op_read(void)
{
	struct slot *s = pick(READABLE);

	do_read(s, size_for(s));
}

static void op_write(void)
{
	struct slot *s = pick(WRITABLE);

	bound(s);
	do_write(s, size_for(s));
}

static void op_pread(void)
{
	struct slot *s = pick(READABLE);
	off_t off = offset_for(s);

	do_pread(s, size_for(s), off);
}

static void op_pwrite(void)
{
	struct slot *s = pick(WRITABLE);
	off_t off = offset_for(s);

	bound(s);
	do_pwrite(s, size_for(s), off);
}

// Up to four pieces of one buffer; the pieces are adjacent, so the data is found in one run.
static size_t make_iov(const struct slot *s, char *p, struct iovec *iov, int *count)
{
	size_t total = 0;

	*count = 1 + (int)below(4);
	for (int i = 0; i < *count; i++) {
		size_t n = size_for(s) % (128 * KIB + 1);

		iov[i] = (struct iovec){p + total, n};
		total += n;
	}
	return total;
}

static size_t safe_iov(const struct slot *s, struct iovec *iov, int *count, size_t n)
{
	size_t odd = 0;

	for (int i = 0; i < *count; i++)
		odd |= iov[i].iov_len % 512;
	if (!is_direct(s) || !odd)
		return n;
	*count = 1;
	iov[0].iov_len = safe_length(s, iov[0].iov_len);
	return iov[0].iov_len;
}

static int pick_rwf(bool writing)
{
	unsigned int r = below(8);

	if (!writing || r > 2)
		return 0;
	return r == 0 ? RWF_DSYNC : RWF_APPEND;
}

static void op_readv(void)
{
	struct slot *s = pick(READABLE);
	struct iovec iov[4];
	char *p = buffer_for(s);
	int count, how = below(3);
	size_t n = make_iov(s, p, iov, &count);
	off_t off = offset_for(s);
	long r;

	if (how == 2 && chance(2))
		off = -1;
	if (how == 0)
		r = CALL(readv(s->fd, iov, count));
	else if (how == 1)
		r = CALL(preadv(s->fd, iov, count, off));
	else
		r = CALL_NEW(preadv2(s->fd, iov, count, off, 0));
	report_data(r, p, "%s %d %zu/%d %ld",
		how == 0   ? "readv"
		: how == 1 ? "preadv"
			   : "preadv2",
		s->fd, n, count, how ? (long)off : 0);
}

static void op_writev(void)
{
	struct slot *s = pick(WRITABLE);
	struct iovec iov[4];
	char *p = buffer_for(s);
	int count, how = below(3), rwf = pick_rwf(true);
	size_t n = make_iov(s, p, iov, &count);
	off_t off = offset_for(s);
	long r;

	if (how == 2 && chance(2))
		off = -1;
	bound(s);
	n = safe_iov(s, iov, &count, n);
	fill(p, n);
	if (how == 0)
		r = CALL(writev(s->fd, iov, count));
	else if (how == 1)
		r = CALL(pwritev(s->fd, iov, count, off));
	else
		r = CALL_NEW(pwritev2(s->fd, iov, count, off, rwf));
	report(r, "%s %d %zu/%d %ld %s",
		how == 0   ? "writev"
		: how == 1 ? "pwritev"
			   : "pwritev2",
		s->fd, n, count, how ? (long)off : 0,
		how < 2 || !rwf	   ? ""
		: rwf == RWF_DSYNC ? "DSYNC"
				   : "APPEND");
	wrote(s, r);
}

static void op_badcall(void)
{
	struct slot *r = pick(READABLE), *w = pick(WRITABLE);
	unsigned int n = 1 + pick_size();
	struct iovec iov = {NULL, n};
	volatile int segments = -1, many = 2000; // volatile: the compiler would warn
	unsigned int what = below(9);

	// EFAULT or EINVAL: a direct one says now this, now that, also bare.
	if (what < 2 && is_direct(what ? w : r))
		return;
	switch (what) {
	case 0:
		report(CALL(read(r->fd, NULL, n)), "read %d NULL %u", r->fd, n);
		break;
	case 1:
		report(CALL(write(w->fd, NULL, n)), "write %d NULL %u", w->fd, n);
		break;
	case 2:
		report(CALL(read(r->fd, buf, 0)), "read %d 0", r->fd);
		break;
	case 3:
		report(CALL(write(w->fd, buf, 0)), "write %d 0", w->fd);
		break;
	case 4:
		report(CALL(readv(r->fd, &iov, segments)), "readv %d -1", r->fd);
		break;
	case 5:
		report(CALL(writev(w->fd, &iov, many)), "writev %d 2000 segments", w->fd);
		break;
	case 6:
		report(CALL(pread(r->fd, buf, n, -5)), "pread %d %u -5", r->fd, n);
		break;
	case 7:
		report(CALL(write(99, buf, n)), "write 99 %u", n);
		break;
	case 8:
		report(CALL(writev(w->fd, &iov, 0)), "writev %d 0 segments", w->fd);
		break;
	}
}

// preadv2 and pwritev2, by libc or raw: the raw ones take the offset in two halves.
static long with_flags(
	bool writing, bool raw, int fd, const struct iovec *iov, int count, off_t off, int flags)
{
	if (raw)
		return CALL_NEW(syscall(writing ? SYS_pwritev2 : SYS_preadv2, fd, iov, count,
			(long)off, 0L, flags));
	if (writing)
		return CALL_NEW(pwritev2(fd, iov, count, off, flags));
	return CALL_NEW(preadv2(fd, iov, count, off, flags));
}

// At a position, or at the offset (-1), which then moves.
static void op_flagged(void)
{
	static const struct {
		int bits;
		const char *name;
	} flags[] = {
		{0, "0"},
		{RWF_HIPRI, "HIPRI"},
		{RWF_DSYNC, "DSYNC"},
		{RWF_SYNC, "SYNC"},
		{RWF_APPEND, "APPEND"},
		{RWF_APPEND | RWF_DSYNC, "APPEND|DSYNC"},
		{RWF_HIPRI | RWF_DSYNC, "HIPRI|DSYNC"},
		{1 << 30, "unknown"},
	};
	bool writing = chance(2), raw = chance(4);
	struct slot *s = pick(writing ? WRITABLE : READABLE);
	unsigned int which = below(8), odd = below(30);
	struct iovec iov[4];
	char *p = buffer_for(s);
	int count;
	size_t n = make_iov(s, p, iov, &count);
	off_t off = offset_for(s);
	long r;

	if (chance(2))
		off = odd ? -1 : -2;
	if (writing) {
		bound(s);
		n = safe_iov(s, iov, &count, n);
		fill(p, n);
	}
	r = with_flags(writing, raw, s->fd, iov, count, off, flags[which].bits);
	if (writing) {
		report(r, "%spwritev2 %d %zu/%d %ld %s", raw ? "syscall " : "", s->fd, n, count,
			(long)off, flags[which].name);
		wrote(s, r);
	} else {
		report_data(r, p, "%spreadv2 %d %zu/%d %ld %s", raw ? "syscall " : "", s->fd, n,
			count, (long)off, flags[which].name);
	}
	report(CALL(lseek(s->fd, 0, SEEK_CUR)), "lseek %d 0 CUR", s->fd);
}

// What is there without waiting depends on caches: never said. What was moved must be right.
static bool not_now(long r)
{
	return r < 0 && (g.err == EAGAIN || g.err == EOPNOTSUPP);
}

static void nowait_read(struct slot *s, size_t n, off_t off, bool raw)
{
	long at = off < 0 ? lseek(s->fd, 0, SEEK_CUR) : off;
	struct iovec iov = {buf, n};
	long r = with_flags(false, raw, s->fd, &iov, 1, off, RWF_NOWAIT), moved, all;
	bool late = not_now(r);
	uint64_t h = r > 0 ? hash(buf, r) : 0;

	if (r < 0 && !late) {
		report(r, "preadv2 %d %zu %ld NOWAIT", s->fd, n, (long)off);
		return;
	}
	moved = off < 0 ? lseek(s->fd, 0, SEEK_CUR) - at : 0;
	all = CALL(pread(s->fd, buf, n, at));
	report_data(all, buf, "preadv2 %d %zu %ld NOWAIT, pread", s->fd, n, (long)off);
	if (r > all || (r > 0 && h != hash(buf, r)))
		report(r, "  read something else");
	if (moved != (off < 0 && r > 0 ? r : 0))
		report(moved, "  moved the offset, not by what it read");
	if (off < 0)
		report(CALL(lseek(s->fd, at + n, SEEK_SET)), "lseek %d %ld SET", s->fd,
			at + (long)n);
}

// What is left is written the ordinary way.
static void nowait_write(struct slot *s, size_t n, off_t off, bool raw)
{
	struct iovec iov = {buf, n};
	long r, rest;

	fill(buf, n);
	r = with_flags(true, raw, s->fd, &iov, 1, off, RWF_NOWAIT);
	if (r < 0 && !not_now(r)) {
		report(r, "pwritev2 %d %zu %ld NOWAIT", s->fd, n, (long)off);
		return;
	}
	r = r < 0 ? 0 : r;
	rest = r == (long)n ? 0
	       : off < 0    ? CALL(write(s->fd, buf + r, n - r))
			    : CALL(pwrite(s->fd, buf + r, n - r, off + r));
	g.err = rest < 0 ? g.err : 0;
	report(rest < 0 ? rest : r + rest, "pwritev2 %d %zu %ld NOWAIT, the rest", s->fd, n,
		(long)off);
	wrote(s, n);
	report(CALL(lseek(s->fd, 0, SEEK_CUR)), "lseek %d 0 CUR", s->fd);
}

static void op_nowait(void)
{
	bool writing = chance(2), raw = chance(4);
	struct slot *s = pick(writing ? WRITABLE : READABLE);
	size_t n = 1 + size_for(s);
	off_t off = offset_for(s);

	if (chance(2) || off < 0)
		off = -1;
	if (is_direct(s) || s->fd < 0)
		return;
	if (writing) {
		bound(s);
		nowait_write(s, n, off, raw);
	} else {
		nowait_read(s, n, off, raw);
	}
}

static void raw_read(struct slot *s)
{
	unsigned int n = size_for(s), which = below(3);
	struct iovec iov[4];
	char *p = buffer_for(s);
	int count;
	size_t all = make_iov(s, p, iov, &count);
	off_t off = offset_for(s);
	long r;

	if (which == 0) {
		r = CALL(syscall(SYS_read, s->fd, p, n));
		report_data(r, p, "syscall read %d %u", s->fd, n);
	} else if (which == 1) {
		r = CALL(syscall(SYS_pread64, s->fd, p, n, off));
		report_data(r, p, "syscall pread64 %d %u %ld", s->fd, n, (long)off);
	} else {
		r = CALL(syscall(SYS_readv, s->fd, iov, count));
		report_data(r, p, "syscall readv %d %zu/%d", s->fd, all, count);
	}
}

static void raw_write(struct slot *s)
{
	unsigned int n = safe_length(s, size_for(s)), which = below(3);
	struct iovec iov[4];
	char *p = buffer_for(s);
	int count;
	size_t all = make_iov(s, p, iov, &count);
	off_t off = offset_for(s);
	long r;

	bound(s);
	all = safe_iov(s, iov, &count, all);
	fill(p, n > all ? n : all);
	if (which == 0) {
		r = CALL(syscall(SYS_write, s->fd, p, n));
		report(r, "syscall write %d %u", s->fd, n);
	} else if (which == 1) {
		r = CALL(syscall(SYS_pwrite64, s->fd, p, n, off));
		report(r, "syscall pwrite64 %d %u %ld", s->fd, n, (long)off);
	} else {
		r = CALL(syscall(SYS_writev, s->fd, iov, count));
		report(r, "syscall writev %d %zu/%d", s->fd, all, count);
	}
	wrote(s, r);
}

static void raw_other(struct slot *r, struct slot *w, int which)
{
	off_t off = offset_for(w);
	struct statx x = {0};

	switch (which) {
	case 0:
		report(CALL(syscall(SYS_lseek, r->fd, 0, SEEK_CUR)), "syscall lseek %d 0 CUR",
			r->fd);
		break;
	case 1:
		report(CALL(syscall(SYS_lseek, r->fd, off, SEEK_SET)), "syscall lseek %d %ld SET",
			r->fd, (long)off);
		break;
	case 2:
		report(CALL(syscall(SYS_lseek, w->fd, 0, SEEK_END)), "syscall lseek %d 0 END",
			w->fd);
		break;
	case 3:
		report(CALL(syscall(SYS_ftruncate, w->fd, off)), "syscall ftruncate %d %ld", w->fd,
			(long)off);
		break;
	case 4:
		report(CALL(syscall(SYS_fsync, w->fd)), "syscall fsync %d", w->fd);
		break;
	case 5:
		report(CALL(syscall(SYS_statx, w->fd, "", AT_EMPTY_PATH, STATX_SIZE, &x)),
			"syscall statx %d size=%llu", w->fd, (unsigned long long)x.stx_size);
		break;
	case 6:
		report(CALL(syscall(SYS_fchmod, w->fd, 04755)), "syscall fchmod %d", w->fd);
		break;
	}
}

// Opens, looks and closes, all by numbers: a description of its own on a file that may be in use.
static void raw_look(void)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC};
	unsigned int which = below(3), n = pick_size();
	int name = pick_name(), trunc = chance(3) ? O_TRUNC : 0;
	long fd, r;

	if (which == 0)
		fd = CALL(syscall(SYS_openat, AT_FDCWD, names[name], O_RDONLY | O_CLOEXEC));
	else if (which == 1)
		fd = CALL(syscall(SYS_openat2, AT_FDCWD, names[name], &how, sizeof(how)));
	else
		fd = CALL(
			syscall(SYS_openat, AT_FDCWD, names[name], O_RDWR | O_CREAT | trunc, 0644));
	report(fd, "syscall %s %s %d", which == 1 ? "openat2" : "openat", names[name],
		which == 2 ? trunc : 0);
	if (fd < 0)
		return;
	r = chance(2) ? CALL(syscall(SYS_read, fd, buf, n)) : CALL(read(fd, buf, n));
	report_data(r, buf, "read %ld %u", fd, n);
	r = chance(2) ? CALL(syscall(SYS_close, fd)) : CALL(close(fd));
	report(r, "close %ld", fd);
}

static void raw_names(void)
{
	int from = below(NREAL), to = below(NREAL);

	if (chance(2))
		report(CALL(syscall(SYS_renameat2, AT_FDCWD, names[from], AT_FDCWD, names[to], 0)),
			"syscall renameat2 %s %s", names[from], names[to]);
	else
		report(CALL(syscall(SYS_unlinkat, AT_FDCWD, names[to], 0)), "syscall unlinkat %s",
			names[to]);
}

static void op_rawsys(void)
{
	struct slot *r = pick(READABLE), *w = pick(WRITABLE);
	unsigned int which = below(16);

	if (which < 4)
		raw_read(r);
	else if (which < 8)
		raw_write(w);
	else if (which < 13)
		raw_other(r, w, below(7));
	else if (which < 15)
		raw_look();
	else
		raw_names();
}

// ---- bursts
// -----------------------------------------------------------------------------------------------

struct burst {
	int count;
	size_t size;
	bool jitter;
};

static struct burst pick_burst(const struct slot *s)
{
	struct burst b = {
		.count = 10 + (int)below(190), .size = 1 + size_for(s), .jitter = chance(3)};
	size_t budget = s->name == BIG ? 1024 * KIB : 96 * KIB;

	if (b.size > 1)
		b.size--;
	if (b.count * b.size > budget)
		b.count = 2 + (int)(budget / b.size);
	if (s->sync && b.count > 3)
		b.count = 3;
	if (b.count > g.limit)
		b.count = g.limit;
	return b;
}

static size_t burst_size(const struct burst *b)
{
	unsigned int r = below(64);

	if (!b->jitter)
		return b->size;
	return b->size + r > 32 ? b->size + r - 32 : 1;
}

static void op_burst_write(void)
{
	struct slot *s = pick(WRITABLE);
	struct burst b = pick_burst(s);

	bound(s);
	for (g.sub = 0; g.sub < b.count; g.sub++)
		do_write(s, burst_size(&b));
}

static void op_burst_read(void)
{
	struct slot *s = pick(READABLE);
	struct burst b = pick_burst(s);

	if (chance(2))
		report(CALL(lseek(s->fd, 0, SEEK_SET)), "lseek %d 0 SET", s->fd);
	for (g.sub = 0; g.sub < b.count; g.sub++)
		do_read(s, burst_size(&b));
}

static void op_burst_at(void)
{
	bool writing = chance(2), backwards = chance(4);
	struct slot *s = pick(writing ? WRITABLE : READABLE);
	off_t off = chance(2) ? 0 : labs((long)offset_for(s));
	struct burst b = pick_burst(s);

	bound(s);
	for (g.sub = 0; g.sub < b.count; g.sub++) {
		size_t n = burst_size(&b);

		if (writing)
			do_pwrite(s, n, off);
		else
			do_pread(s, n, off);
		off = backwards ? off - (off_t)n : off + (off_t)n;
	}
}

static void op_copy_loop(void)
{
	struct slot *from = pick(READABLE), *to = pick(WRITABLE);
	struct burst b = pick_burst(to);

	bound(to);
	for (g.sub = 0; g.sub < b.count; g.sub++) {
		char *p = buffer_for(to);
		long r = CALL(read(from->fd, p, b.size)), w;

		report_data(r, p, "read %d %zu", from->fd, b.size);
		if (r <= 0)
			break;
		r = safe_length(to, r);
		w = CALL(write(to->fd, p, r));
		report(w, "write %d %ld", to->fd, r);
		wrote(to, w);
	}
}

static void op_burst_mixed(void)
{
	struct slot *s = pick(READABLE | WRITABLE);
	struct burst b = pick_burst(s);

	bound(s);
	for (g.sub = 0; g.sub < b.count; g.sub++) {
		off_t off = offset_for(s);

		switch (below(8)) {
		case 0:
		case 1:
			do_read(s, burst_size(&b));
			break;
		case 2:
		case 3:
		case 4:
			do_write(s, burst_size(&b));
			break;
		case 5:
			do_pread(s, burst_size(&b), off);
			break;
		case 6:
			do_pwrite(s, burst_size(&b), off);
			break;
		case 7:
			report(CALL(lseek(s->fd, off, SEEK_SET)), "lseek %d %ld SET", s->fd,
				(long)off);
			break;
		}
	}
}

// A header written at the start, records after it, the header corrected at the end: what archivers
// do.
static void op_header(void)
{
	struct slot *s = pick(WRITABLE);
	struct burst b = pick_burst(s);
	off_t end;

	bound(s);
	report(CALL(lseek(s->fd, 0, SEEK_SET)), "lseek %d 0 SET", s->fd);
	for (g.sub = 0; g.sub < b.count; g.sub++)
		do_write(s, burst_size(&b));
	end = CALL(lseek(s->fd, 0, SEEK_CUR));
	report(end, "lseek %d 0 CUR", s->fd);
	do_pwrite(s, 24, 0);
	report(CALL(lseek(s->fd, 8, SEEK_SET)), "lseek %d 8 SET", s->fd);
	do_write(s, 8);
	report(CALL(lseek(s->fd, end, SEEK_SET)), "lseek %d end SET", s->fd);
}

// ---- position, size, holes
// --------------------------------------------------------------------------------

static bool holes_comparable(int fd)
{
	struct stat st;

	return g.exact_holes && !fstat(fd, &st) && st.st_gid != MARK_GID;
}

// Where data starts depends on what is cached once there are unwritten extents (and in xfs always,
// for its preallocation): such files are marked by their group when they get them, and only the
// errno is compared then.
static void mark_holes(int fd)
{
	if (fchown(fd, -1, MARK_GID))
		g.err = 0;
}

static void seek_data(struct slot *s, off_t off, int whence)
{
	long r = CALL(lseek(s->fd, off, whence));
	int err = g.err;

	if (r >= 0 && !holes_comparable(s->fd))
		r = r >= off ? 1 : -2;
	g.err = err == ENXIO && !holes_comparable(s->fd) ? 0 : err;
	if (err == ENXIO && !g.err)
		r = 1;
	report(r, "lseek %d %ld %s", s->fd, (long)off, whence == SEEK_DATA ? "DATA" : "HOLE");
	if (r >= 0)
		report(CALL(lseek(s->fd, off, SEEK_SET)), "lseek %d %ld SET", s->fd, (long)off);
}

static void op_lseek(void)
{
	struct slot *s = pick(0);
	off_t off = offset_for(s);
	int delta = (int)below(3000) - 1500;
	long r;

	switch (below(10)) {
	case 0:
	case 1:
	case 2:
		r = CALL(lseek(s->fd, off, SEEK_SET));
		report(r, "lseek %d %ld SET", s->fd, (long)off);
		break;
	case 3:
	case 4:
		report(CALL(lseek(s->fd, 0, SEEK_CUR)), "lseek %d 0 CUR", s->fd);
		break;
	case 5:
		report(CALL(lseek(s->fd, delta, SEEK_CUR)), "lseek %d %d CUR", s->fd, delta);
		break;
	case 6:
		delta = delta < 1300 ? -labs(delta) : delta;
		report(CALL(lseek(s->fd, delta, SEEK_END)), "lseek %d %d END", s->fd, delta);
		break;
	case 7:
		report(CALL(lseek(s->fd, 0, SEEK_END)), "lseek %d 0 END", s->fd);
		break;
	case 8:
		/* btrfs answers a negative offset by the state of its extents. */
		seek_data(s, off < 0 ? -off : off, chance(2) ? SEEK_DATA : SEEK_HOLE);
		break;
	case 9:
		report(CALL(lseek(s->fd, off, 9)), "lseek %d %ld 9", s->fd, (long)off);
		break;
	}
}

static void op_ftruncate(void)
{
	struct slot *s = pick(WRITABLE);
	off_t len = chance(4) ? 0 : offset_for(s);

	report(CALL(ftruncate(s->fd, len)), "ftruncate %d %ld", s->fd, (long)len);
}

static void op_truncate(void)
{
	int name = pick_name();
	off_t len = chance(4) ? 0 : offset_for(&nobody);

	report(CALL(truncate(names[name], len)), "truncate %s %ld", names[name], (long)len);
}

static void op_fallocate(void)
{
	static const int modes[] = {0, FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_COLLAPSE_RANGE};
	struct slot *s = pick(WRITABLE);
	unsigned int which = below(8), len = pick_size();
	off_t off = offset_for(s);
	long r;

	if (which == 7) {
		r = CALL(posix_fallocate(s->fd, off, len));
		g.err = 0;
		report(r, "posix_fallocate %d %ld %u", s->fd, (long)off, len);
	} else {
		r = CALL(fallocate(s->fd, modes[which], off, len));
		report(r, "fallocate %d %x %ld %u", s->fd, modes[which], (long)off, len);
	}
	if (s->fd >= 0)
		mark_holes(s->fd);
}

// ---- metadata
// ---------------------------------------------------------------------------------------------

static void statx_to_stat(const struct statx *x, struct stat *st)
{
	*st = (struct stat){.st_size = x->stx_size,
		.st_mode = x->stx_mode,
		.st_nlink = x->stx_nlink,
		.st_blksize = x->stx_blksize};
	st->st_mtim = (struct timespec){x->stx_mtime.tv_sec, x->stx_mtime.tv_nsec};
	st->st_atim = (struct timespec){x->stx_atime.tv_sec, x->stx_atime.tv_nsec};
}

static void op_fstat(void)
{
	struct slot *s = pick(0);
	struct stat st = {0};
	struct statx x = {0};
	char arg[16];
	long r;

	snprintf(arg, sizeof(arg), "%d", s->fd);
	switch (below(3)) {
	case 0:
		r = CALL(fstat(s->fd, &st));
		report_stat(r, &st, "fstat", arg);
		break;
	case 1:
		r = CALL(fstatat(s->fd, "", &st, AT_EMPTY_PATH));
		report_stat(r, &st, "fstatat", arg);
		break;
	case 2:
		r = CALL(statx(s->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x));
		statx_to_stat(&x, &st);
		report_stat(r, &st, "statx", arg);
		break;
	}
}

static void op_stat(void)
{
	const char *path = names[pick_name()];
	struct stat st = {0};
	struct statx x = {0};
	long r;

	switch (below(4)) {
	case 0:
		r = CALL(stat(path, &st));
		report_stat(r, &st, "stat", path);
		break;
	case 1:
		r = CALL(lstat(path, &st));
		report_stat(r, &st, "lstat", path);
		break;
	case 2:
		r = CALL(fstatat(AT_FDCWD, path, &st, 0));
		report_stat(r, &st, "fstatat", path);
		break;
	case 3:
		r = CALL(statx(AT_FDCWD, path, 0, STATX_SIZE | STATX_BASIC_STATS, &x));
		statx_to_stat(&x, &st);
		report_stat(r, &st, "statx", path);
		break;
	}
}

// Nobody writes between two looks at one file: they must agree, times to the nanosecond included.
static void op_stat_twice(void)
{
	struct slot *s = pick(WRITABLE);
	struct stat a = {0}, b = {0};
	long r;

	fill(buf, 700);
	wrote(s, r = CALL(write(s->fd, buf, is_direct(s) ? 512 : 700)));
	report(r, "write %d 700", s->fd);
	r = CALL(fstat(s->fd, &a));
	report(r, "fstat %d", s->fd);
	r = CALL(lseek(s->fd, 0, SEEK_CUR));
	report(r, "lseek %d 0 CUR", s->fd);
	r = CALL(fstat(s->fd, &b));
	report(r || (a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
			    a.st_mtim.tv_nsec == b.st_mtim.tv_nsec && a.st_size == b.st_size &&
			    a.st_mode == b.st_mode),
		"fstat %d same", s->fd);
}

static void op_chmod(void)
{
	static const int modes[] = {0600, 0644, 0640, 0444, 0755, 04755, 02755, 06711};
	struct slot *s = pick(0);
	const char *path = names[pick_name()];
	int mode = modes[below(8)];

	if (chance(2))
		report(CALL(fchmod(s->fd, mode)), "fchmod %d %o", s->fd, mode);
	else
		report(CALL(chmod(path, mode)), "chmod %s %o", path, mode);
}

static struct timespec pick_time(void)
{
	unsigned int r = below(8), sec = below(1000000), nsec = below(1000000000);

	if (r == 0)
		return (struct timespec){0, UTIME_NOW};
	if (r == 1)
		return (struct timespec){0, UTIME_OMIT};
	return (struct timespec){TIMES_BASE + sec, nsec};
}

static void op_utimens(void)
{
	struct slot *s = pick(0);
	struct timespec t[2] = {pick_time(), pick_time()};
	const char *path = names[pick_name()];
	struct stat st = {0};
	char arg[16];
	long r;

	snprintf(arg, sizeof(arg), "%d", s->fd);
	if (chance(2)) {
		report(CALL(futimens(s->fd, t)), "futimens %d", s->fd);
		r = CALL(fstat(s->fd, &st));
		report_stat(r, &st, "fstat", arg);
	} else {
		report(CALL(utimensat(AT_FDCWD, path, t, 0)), "utimensat %s", path);
		r = CALL(stat(path, &st));
		report_stat(r, &st, "stat", path);
	}
}

static void op_xattr(void)
{
	static const char *const keys[] = {"user.a", "user.b", "user.long.name"};
	struct slot *s = pick(0);
	const char *path = names[pick_name()], *key = keys[below(3)];
	unsigned int n = 1 + below(40);
	long r;

	fill(buf, n);
	switch (below(6)) {
	case 0:
	case 1:
		report(CALL(fsetxattr(s->fd, key, buf, n, 0)), "fsetxattr %d %s %u", s->fd, key, n);
		break;
	case 2:
		report(CALL(setxattr(path, key, buf, n, 0)), "setxattr %s %s %u", path, key, n);
		break;
	case 3:
		report(CALL(removexattr(path, key)), "removexattr %s %s", path, key);
		break;
	case 4:
		r = CALL(getxattr(path, key, buf, 64));
		report_data(r, buf, "getxattr %s %s", path, key);
		break;
	case 5:
		r = CALL(fgetxattr(s->fd, key, buf, 64));
		report_data(r, buf, "fgetxattr %d %s", s->fd, key);
		break;
	}
}

static void op_rename(void)
{
	const char *from = names[pick_name()], *to = names[below(NREAL)];
	unsigned int r = below(6), flags = r == 0 ? RENAME_EXCHANGE : r == 1 ? RENAME_NOREPLACE : 0;

	if (flags)
		report(CALL(renameat2(AT_FDCWD, from, AT_FDCWD, to, flags)), "renameat2 %s %s %u",
			from, to, flags);
	else
		report(CALL(rename(from, to)), "rename %s %s", from, to);
}

static void op_link(void)
{
	const char *from = names[pick_name()],
		   *to = names[chance(2) ? 12 + below(2) : below(NREAL)];

	report(CALL(link(from, to)), "link %s %s", from, to);
}

static void op_unlink(void)
{
	const char *path = names[below(NREAL)];

	if (chance(3))
		report(CALL(unlinkat(AT_FDCWD, path, 0)), "unlinkat %s", path);
	else
		report(CALL(unlink(path)), "unlink %s", path);
}

static void op_sync(void)
{
	struct slot *s = pick(WRITABLE);
	off_t off = offset_for(s);
	unsigned int flags = 1 + below(7), n = pick_size();

	switch (below(3)) {
	case 0:
		report(CALL(fsync(s->fd)), "fsync %d", s->fd);
		break;
	case 1:
		report(CALL(fdatasync(s->fd)), "fdatasync %d", s->fd);
		break;
	case 2:
		report(CALL(sync_file_range(s->fd, off, n, flags)), "sync_file_range %d %ld %u %u",
			s->fd, (long)off, n, flags);
		break;
	}
}

static void op_advise(void)
{
	static const int advice[] = {POSIX_FADV_NORMAL, POSIX_FADV_SEQUENTIAL, POSIX_FADV_RANDOM,
		POSIX_FADV_NOREUSE, POSIX_FADV_WILLNEED, POSIX_FADV_DONTNEED, 77};
	struct slot *s = pick(0);
	off_t off = labs((long)offset_for(s));
	unsigned int n = pick_size(), which = below(9);
	long r;

	if (which >= 7) {
		report(CALL(readahead(s->fd, off, n)), "readahead %d %ld %u", s->fd, (long)off, n);
		return;
	}
	r = CALL(posix_fadvise(s->fd, off, n, advice[which]));
	g.err = 0;
	report(r, "posix_fadvise %d %ld %u %d", s->fd, (long)off, n, advice[which]);
}

// Streams write odd lengths, and what a child switches on its parent does not know: no O_DIRECT
// there.
static bool in_stream(const struct slot *s)
{
	for (int i = 0; i < NSLOT; i++)
		if (slots[i].fp && slots[i].desc == s->desc)
			return true;
	return false;
}

static void op_flags(void)
{
	static const int choices[] = {
		0, O_APPEND, O_NONBLOCK, O_APPEND | O_NONBLOCK, 0, O_NOATIME, O_DIRECT};
	struct slot *s = pick(0);
	int flags = choices[below(7)], cloexec = below(2);
	long r;

	switch (below(5)) {
	case 0:
	case 1:
		r = CALL(fcntl(s->fd, F_GETFL));
		report(r < 0 ? r : 0, "fcntl %d GETFL %lx", s->fd, r);
		break;
	case 2:
		if (g.depth || in_stream(s))
			flags &= ~O_DIRECT;
		r = CALL(fcntl(s->fd, F_SETFL, flags));
		report(r, "fcntl %d SETFL %s", s->fd, flag_text(flags));
		if (!r && s != &nobody) {
			s->append = flags & O_APPEND;
			direct_of[s->desc] = flags & O_DIRECT;
		}
		break;
	case 3:
		report(CALL(fcntl(s->fd, F_GETFD)), "fcntl %d GETFD", s->fd);
		break;
	case 4:
		report(CALL(fcntl(s->fd, F_SETFD, cloexec)), "fcntl %d SETFD %d", s->fd, cloexec);
		break;
	}
}

static void op_lock(void)
{
	static const int types[] = {F_RDLCK, F_WRLCK, F_UNLCK};
	static const int cmds[] = {F_SETLK, F_OFD_SETLK, F_GETLK, F_OFD_GETLK};
	static const int flocks[] = {LOCK_SH, LOCK_EX, LOCK_UN};
	struct slot *s = pick(0);
	int which = below(8), type = below(3), start = below(5000),
	    len = below(3) ? (int)below(5000) : 0;
	struct flock fl = {
		.l_type = types[type], .l_whence = SEEK_SET, .l_start = start, .l_len = len};
	long r;

	if (which < 4) {
		r = CALL(fcntl(s->fd, cmds[which], &fl));
		report(r, "fcntl %d LK%d type=%d %d+%d -> %d %ld+%ld", s->fd, which, type, start,
			len, fl.l_type, (long)fl.l_start, (long)fl.l_len);
	} else if (which < 6) {
		report(CALL(flock(s->fd, flocks[type] | LOCK_NB)), "flock %d %d", s->fd,
			flocks[type]);
	} else if (which == 6) {
		r = CALL(lockf(s->fd, type == 2 ? F_ULOCK : F_TLOCK, len));
		report(r, "lockf %d %d %d", s->fd, type, len);
	} else {
		report(CALL(fcntl(s->fd, F_SETLEASE, types[type])), "fcntl %d SETLEASE %d", s->fd,
			type);
		report(CALL(fcntl(s->fd, F_GETLEASE)), "fcntl %d GETLEASE", s->fd);
		r = CALL(fcntl(s->fd, F_SETLEASE, F_UNLCK));
		report(r, "fcntl %d SETLEASE UNLCK", s->fd);
	}
}

static void op_ioctl(void)
{
	struct slot *s = pick(0);
	struct pollfd p = {.fd = s->fd, .events = POLLIN | POLLOUT};
	char path[64], target[4096];
	int n = 0;
	long r;

	switch (below(4)) {
	case 0:
		r = CALL(ioctl(s->fd, FIONREAD, &n));
		report(r, "ioctl %d FIONREAD %d", s->fd, n);
		break;
	case 1:
		r = CALL(poll(&p, 1, 0));
		report(r, "poll %d %x", s->fd, p.revents);
		break;
	case 2:
		snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd);
		r = CALL(readlink(path, target, sizeof(target)));
		report(r < 0 ? r : 0, "readlink %s", path);
		break;
	case 3:
		report(CALL(ioctl(s->fd, FS_IOC_GETVERSION + 100, &n)), "ioctl %d unknown", s->fd);
		break;
	}
}

// ---- mappings
// ---------------------------------------------------------------------------------------------

// Stores to the first bytes of some pages: bytes beyond the end of the file would show up or not,
// once the file grows, depending on when the page was written out.
static void touch_store(struct mapping *m)
{
	struct iovec mine = {buf, 4}, theirs[4];
	size_t pages = (m->len + 4095) / 4096, first = below(pages), n = 1 + below(4);
	long r;

	fill(buf, 4);
	if (first + n > pages)
		n = pages - first;
	for (size_t i = 0; i < n; i++)
		theirs[i] = (struct iovec){m->addr + (first + i) * 4096, 1};
	r = CALL(process_vm_writev(getpid(), &mine, 1, theirs, n, 0));
	report(r, "map store page %zu+%zu", first, n);
}

// Mapped memory is looked at by a call, which says EFAULT beyond the file's end instead of raising
// SIGBUS.
static void touch_load(struct mapping *m)
{
	size_t off = below(m->len), n = 1 + below(5000);
	struct iovec mine = {buf, n}, theirs = {m->addr + off, n};
	long r;

	if (off + n > m->len)
		theirs.iov_len = mine.iov_len = m->len - off;
	r = CALL(process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0));
	report_data(r, buf, "map load %zu %zu", off, theirs.iov_len);
}

static void touch(struct mapping *m, bool store)
{
	if (store && m->writable)
		touch_store(m);
	else
		touch_load(m);
}

static void unmap(struct mapping *m)
{
	if (!m->addr)
		return;
	report(CALL(munmap(m->addr, m->len)), "munmap %zu", m->len);
	m->addr = NULL;
}

static void op_mmap(void)
{
	struct mapping *m = &maps[below(NMAP)];
	bool shared = !chance(4), writable = chance(2);
	struct slot *s = pick(writable && shared ? READABLE | WRITABLE : READABLE);
	size_t len = 1 + below(40000);
	off_t off = chance(2) ? 0 : labs((long)offset_for(s)) / 4096 * 4096;
	char *p;

	unmap(m);
	errno = 0;
	p = mmap(NULL, len, writable ? PROT_READ | PROT_WRITE : PROT_READ,
		shared ? MAP_SHARED : MAP_PRIVATE, s->fd, off);
	g.err = errno;
	report(p == MAP_FAILED ? -1 : 0, "mmap %d %zu %ld %s%s", s->fd, len, (long)off,
		shared ? "SHARED" : "PRIVATE", writable ? " WRITE" : "");
	if (p == MAP_FAILED)
		return;
	*m = (struct mapping){p, len, writable};
	touch(m, writable);
	touch(m, false);
	if (chance(2))
		unmap(m);
}

static void op_touch(void)
{
	struct mapping *m = &maps[below(NMAP)];
	unsigned int what = below(6);

	if (!m->addr)
		return;
	if (what == 0)
		unmap(m);
	else if (what == 1)
		report(CALL(msync(m->addr, m->len, chance(2) ? MS_SYNC : MS_ASYNC)), "msync %zu",
			m->len);
	else
		touch(m, what < 4);
}

// ---- copying inside the kernel
// ----------------------------------------------------------------------------

// The copy calls may return short counts: what is compared is the total, once nothing more comes.
static void op_copy_file_range(void)
{
	struct slot *in = pick(READABLE), *out = pick(WRITABLE);
	loff_t from = labs((long)offset_for(in)), to = labs((long)offset_for(out));
	bool with_from = chance(2), with_to = chance(2);
	long want = pick_size(), total = 0, r;

	if (is_direct(out))
		return;
	bound(out);
	do {
		r = CALL(copy_file_range(in->fd, with_from ? &from : NULL, out->fd,
			with_to ? &to : NULL, want - total, 0));
		total += r > 0 ? r : 0;
	} while (r > 0 && total < want);
	report(total, "copy_file_range %d %s%ld %d %s%ld %ld", in->fd, with_from ? "@" : "-",
		(long)from, out->fd, with_to ? "@" : "-", (long)to, want);
	wrote(out, total);
	if (g.mark_copies && out->fd >= 0)
		mark_holes(out->fd);
}

static void op_sendfile(void)
{
	struct slot *in = pick(READABLE), *out = pick(WRITABLE);
	off_t from = labs((long)offset_for(in));
	bool with_from = chance(2);
	long want = pick_size(), total = 0, r;

	if (is_direct(out))
		return;
	bound(out);
	do {
		r = CALL(sendfile(out->fd, in->fd, with_from ? &from : NULL, want - total));
		total += r > 0 ? r : 0;
	} while (r > 0 && total < want);
	report(total, "sendfile %d %d %s%ld %ld", out->fd, in->fd, with_from ? "@" : "-",
		(long)from, want);
	wrote(out, total);
}

static long drain_pipe(int from, struct slot *out, long n)
{
	long total = 0, r;

	while (total < n) {
		r = CALL(splice(from, NULL, out->fd, NULL, n - total, 0));
		if (r <= 0)
			break;
		total += r;
	}
	return total;
}

static void op_splice(void)
{
	struct slot *in = pick(READABLE), *out = pick(WRITABLE);
	long want = pick_size() % 32769, total = 0, out_total = 0, r, w;
	int p[2];

	if (is_direct(out))
		return;
	bound(out);
	if (pipe(p))
		return;
	do {
		r = CALL(splice(in->fd, NULL, p[1], NULL, want - total, SPLICE_F_NONBLOCK));
		if (r <= 0)
			break;
		total += r;
		w = drain_pipe(p[0], out, r);
		out_total += w;
		if (w < r)
			break;
	} while (total < want);
	report(out_total, "splice %d %d %ld in=%ld", in->fd, out->fd, want, total);
	close(p[0]);
	close(p[1]);
	wrote(out, out_total);
	report(CALL(lseek(in->fd, 0, SEEK_CUR)), "lseek %d 0 CUR", in->fd);
}

static void op_clone_range(void)
{
	struct slot *in = pick(READABLE), *out = pick(WRITABLE);
	struct file_clone_range range = {.src_fd = in->fd, .src_length = 0};

	if (chance(2))
		report(CALL(ioctl(out->fd, FICLONE, in->fd)), "ioctl %d FICLONE %d", out->fd,
			in->fd);
	else
		report(CALL(ioctl(out->fd, FICLONERANGE, &range)), "ioctl %d FICLONERANGE %d",
			out->fd, in->fd);
	if (out->fd >= 0)
		mark_holes(out->fd);
}

// ---- streams
// ----------------------------------------------------------------------------------------------

static long stream_result(long r, bool bad)
{
	g.err = bad ? g.err : 0; // stdio may leave errno on success
	return r;
}

static int mode_flags(const char *mode)
{
	if (strchr(mode, '+'))
		return O_RDWR | (mode[0] == 'a' ? O_APPEND : 0);
	return mode[0] == 'r' ? O_RDONLY : O_WRONLY | (mode[0] == 'a' ? O_APPEND : 0);
}

static void op_fopen(void)
{
	static const char *const modes[] = {
		"r", "w", "a", "r+", "w+", "a+", "we", "wx", "r", "w", "w"};
	struct slot *s = &slots[below(NSLOT)];
	int name = pick_name(), size = pick_size();
	const char *mode = modes[below(11)];
	bool tuned = chance(4);
	FILE *fp;

	vacate(s);
	errno = 0;
	fp = fopen(names[name], mode);
	g.err = fp ? 0 : errno;
	report(fp ? fileno(fp) : -1, "fopen %s %s", names[name], mode);
	if (!fp)
		return;
	settle(s, fileno(fp), name, mode_flags(mode));
	s->fp = fp;
	if (tuned)
		setvbuf(fp, NULL, size < 64 ? _IONBF : _IOFBF, size);
}

static void op_fdopen(void)
{
	struct slot *s = pick(0);
	const char *mode = s->acc == READABLE ? "r" : s->acc == WRITABLE ? "w" : "r+";
	FILE *fp;

	if (s->fp || !s->acc || is_direct(s))
		return;
	errno = 0;
	fp = fdopen(s->fd, mode);
	g.err = fp ? 0 : errno;
	report(fp ? 0 : -1, "fdopen %d %s", s->fd, mode);
	if (fp)
		s->fp = fp;
}

static void stream_write(struct slot *s, size_t n)
{
	long r;

	fseek(s->fp, 0, SEEK_CUR);
	fill(buf, n);
	r = CALL(fwrite(buf, 1, n, s->fp));
	report(stream_result(r, (size_t)r < n), "fwrite %d %zu", s->fd, n);
	wrote(s, r);
}

static void stream_read(struct slot *s, size_t n)
{
	long r;

	fseek(s->fp, 0, SEEK_CUR);
	r = CALL(fread(buf, 1, n, s->fp));
	report_data(stream_result(r, ferror(s->fp)), buf, "fread %d %zu", s->fd, n);
}

static void op_stream_burst(void)
{
	bool writing = chance(2);
	struct slot *s = pick(STREAM | (writing ? WRITABLE : READABLE));
	struct burst b = pick_burst(s);

	if (!s->fp)
		return;
	if ((long)s->wrote > cap(s)) {
		report(stream_result(CALL(fseek(s->fp, 0, SEEK_SET)), true), "fseek %d 0 SET",
			s->fd);
		s->wrote = 0;
	}
	for (g.sub = 0; g.sub < b.count; g.sub++) {
		if (writing)
			stream_write(s, burst_size(&b));
		else
			stream_read(s, burst_size(&b));
	}
}

static void op_stream_lines(void)
{
	struct slot *s = pick(STREAM | READABLE | WRITABLE);
	int c;

	if (!s->fp)
		return;
	fseek(s->fp, 0, SEEK_CUR);
	for (int i = 0, n = 1 + below(60); i < n && i < g.limit; i++)
		fprintf(s->fp, "line %d of %d\n", i, n);
	report(stream_result(CALL(fputs("end\n", s->fp)) < 0, false), "fputs %d", s->fd);
	rewind(s->fp);
	c = fgetc(s->fp);
	report(c, "fgetc %d", s->fd);
	ungetc(c, s->fp);
	if (c != EOF && fgets(buf, 4096, s->fp))
		report_data(strlen(buf), buf, "fgets %d", s->fd);
}

static void op_stream_seek(void)
{
	struct slot *s = pick(STREAM);
	off_t off = offset_for(s);
	int whence = below(3);
	long r;

	if (!s->fp)
		return;
	if (whence)
		off = whence == SEEK_CUR ? off % 500 : -(off % 5000);
	r = CALL(fseeko(s->fp, off, whence));
	report(stream_result(r, r), "fseeko %d %ld %d", s->fd, (long)off, whence);
	r = CALL(ftello(s->fp));
	report(stream_result(r, r < 0), "ftello %d", s->fd);
}

// The same descriptor through the stream and beside it.
static void op_stream_mix(void)
{
	struct slot *s = pick(STREAM | WRITABLE);
	struct stat st = {0};
	char arg[16];
	long r;

	if (!s->fp)
		return;
	snprintf(arg, sizeof(arg), "%d", s->fd);
	stream_write(s, 1 + below(9000));
	r = CALL(fstat(s->fd, &st));
	report_stat(r, &st, "fstat", arg);
	r = CALL(fflush(s->fp));
	report(stream_result(r, r), "fflush %d", s->fd);
	do_write(s, 1 + below(3000));
	report(CALL(lseek(s->fd, 0, SEEK_CUR)), "lseek %d 0 CUR", s->fd);
	r = CALL(fseek(s->fp, 0, SEEK_END));
	report(stream_result(r, r), "fseek %d 0 END", s->fd);
	stream_write(s, 1 + below(300));
}

// The stream and its descriptor by turns, as programs do that peek at a header: what of the file
// each gets to see depends on what the stream has taken ahead, which is libc's to say.
static void op_stream_raw(void)
{
	bool writing = chance(2);
	struct slot *s = pick(STREAM | (writing ? WRITABLE : READABLE));
	int turns = 2 + below(6);

	if (!s->fp)
		return;
	for (g.sub = 0; g.sub < turns && g.sub < g.limit; g.sub++) {
		unsigned int n = 1 + size_for(s) % 9000, which = below(6);
		long r;

		if (which < 2 && writing) {
			fill(buf, n);
			r = CALL(fwrite(buf, 1, n, s->fp));
			report(stream_result(r, (size_t)r < n), "fwrite %d %u", s->fd, n);
			wrote(s, r);
		} else if (which < 2) {
			r = CALL(fread(buf, 1, n, s->fp));
			report_data(stream_result(r, ferror(s->fp)), buf, "fread %d %u", s->fd, n);
		} else if (which == 2) {
			if (writing)
				raw_write(s);
			else
				raw_read(s);
		} else if (which == 3) {
			if (writing)
				do_write(s, n);
			else
				do_read(s, n);
		} else if (which == 4) {
			report(CALL(syscall(SYS_lseek, s->fd, 0, SEEK_CUR)),
				"syscall lseek %d 0 CUR", s->fd);
		} else {
			report(CALL(lseek(s->fd, 0, SEEK_CUR)), "lseek %d 0 CUR", s->fd);
		}
	}
	bound(s);
}

static void op_stream_flush(void)
{
	struct slot *s = pick(STREAM);
	long r;

	if (!s->fp)
		return;
	r = chance(6) ? CALL(fflush(NULL)) : CALL(fflush(s->fp));
	report(stream_result(r, r), "fflush %d", s->fd);
}

static void op_freopen(void)
{
	struct slot *s = pick(STREAM);
	int name = pick_name();
	const char *mode = chance(2) ? "r+" : "w";
	FILE *fp;

	if (!s->fp)
		return;
	errno = 0;
	fp = freopen(names[name], mode, s->fp);
	g.err = fp ? 0 : errno;
	report(fp ? fileno(fp) : -1, "freopen %s %s", names[name], mode);
	s->fp = NULL;
	s->fd = -1;
	if (!fp)
		return;
	settle(s, fileno(fp), name, mode_flags(mode));
	s->fp = fp;
}

static void op_fclose(void)
{
	struct slot *s = pick(STREAM);

	if (s->fp)
		vacate(s);
}

// ---- processes
// --------------------------------------------------------------------------------------------

static void one_op(long i);

// A sequence of its own inside the current operation.
static void run_sub(const char *tag, int count)
{
	uint64_t seed = g.seed, state = rng;
	long idx = g.idx, sub = g.sub;
	int limit = g.limit;
	char prefix[sizeof(g.prefix)];

	memcpy(prefix, g.prefix, sizeof(prefix));
	snprintf(g.prefix, sizeof(g.prefix), "%.100s%ld%.10s", prefix, idx, tag);
	g.seed = mix(mix(seed, idx), tag[0]);
	g.sub = -1;
	g.limit = 1 << 30;
	g.depth++;
	for (int i = 0; i < count && i < limit; i++)
		one_op(i);
	g.depth--;
	g.seed = seed;
	g.idx = idx;
	g.sub = sub;
	g.limit = limit;
	memcpy(g.prefix, prefix, sizeof(prefix));
	rng = state;
}

static void end_child(unsigned int how)
{
	flush_trace();
	if (how == 0)
		exit(3);
	if (how == 1)
		quick_exit(4);
	if (how == 2)
		raise(SIGTERM);
	_exit(5);
}

static void report_child(pid_t pid, const char *what)
{
	int status = -1;
	long r = CALL(waitpid(pid, &status, 0));

	report(r == pid ? 0 : -1, "wait %s status=%x", what, status);
}

static void op_fork(void)
{
	int count = 1 + below(8), how = below(5);
	pid_t pid;

	flush_trace();
	pid = fork();
	if (pid == 0) {
		run_sub(">", count);
		end_child(how);
	}
	report_child(pid, "fork");
}

// Parent and child go on in turns, sharing offsets.
static void op_fork_turns(void)
{
	int pair[2], mine, theirs, count = 1 + below(5), rounds = 1 + below(3), how = below(5);
	char c = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return;
	mine = fcntl(pair[0], F_DUPFD_CLOEXEC, HIGH_FD);
	theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, HIGH_FD);
	close(pair[0]);
	close(pair[1]);
	flush_trace();
	pid = fork();
	close(pid ? theirs : mine);
	mine = pid ? mine : theirs;
	for (int i = 0; i < rounds; i++) {
		if (pid && read(mine, &c, 1) != 1) // the child begins
			break;
		run_sub(pid ? "<" : ">", count);
		flush_trace();
		if (write(mine, &c, 1) != 1)
			break;
		if (!pid && read(mine, &c, 1) != 1)
			break;
	}
	if (pid == 0)
		end_child(how);
	close(mine);
	report_child(pid, "turns");
}

static void say_inherited(char *s, size_t size)
{
	size_t n = 0;

	s[0] = '\0';
	for (int i = 0; i < NSLOT; i++)
		if (slots[i].fd >= 0)
			n += snprintf(s + n, size - n, "%d:%d:%d:%d:%d,", i, slots[i].fd,
				slots[i].name, slots[i].acc, is_direct(&slots[i]));
}

static void exec_self(int count)
{
	char seed[32], ops[32], inherit[512], prefix[160], depth[16];
	char *argv[] = {g.self, "-s", seed, "-n", ops, "-I", inherit, "-p", prefix, "-d", depth,
		"-w", (char *)g.weights, g.atime ? "-a" : NULL, NULL};

	snprintf(seed, sizeof(seed), "%lu", (unsigned long)mix(mix(g.seed, g.idx), '!'));
	snprintf(ops, sizeof(ops), "%d", count > g.limit ? g.limit : count);
	snprintf(prefix, sizeof(prefix), "%.100s%ld!", g.prefix, g.idx);
	snprintf(depth, sizeof(depth), "%d", g.depth + 1);
	say_inherited(inherit, sizeof(inherit));
	flush_trace();
	execv(g.self, argv);
	_exit(127);
}

static void op_exec_self(void)
{
	int count = 1 + below(12);
	pid_t pid;

	flush_trace();
	pid = fork();
	if (pid == 0)
		exec_self(count);
	report_child(pid, "exec");
}

static long read_all(int fd, uint64_t *h)
{
	long total = 0, r;

	*h = 0;
	while ((r = read(fd, buf, 64 * KIB)) > 0 || (r < 0 && errno == EINTR)) {
		if (r > 0) {
			for (long i = 0; i < r; i++) // the pieces vary in size, so byte by byte
				*h = (*h ^ (unsigned char)buf[i]) * 0x100000001b3u;
			total += r;
		}
	}
	return total;
}

static pid_t spawn_cat(const char *path, int in, int out, int err, bool plain)
{
	char *argv[] = {"cat", (char *)path, NULL}, *none[] = {NULL};
	pid_t pid = vfork();

	if (pid)
		return pid;
	if (in >= 0)
		dup2(in, 0);
	dup2(out, 1);
	dup2(err, 2);
	execve("/bin/cat", argv, plain ? none : environ);
	_exit(127);
}

// cat of a file by name, or of an open file from its offset on, read by this process.
static void op_vfork_cat(void)
{
	struct slot *s = pick(READABLE);
	const char *path = chance(2) ? names[pick_name()] : NULL;
	bool plain = chance(2);
	int p[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	uint64_t h;
	long n;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC))
		return;
	pid = spawn_cat(path, path ? null : s->fd, p[1], null, plain);
	close(p[1]);
	n = read_all(p[0], &h);
	close(p[0]);
	close(null);
	g.err = 0;
	report(n, "vfork cat %s #%016lx", path ? path : "-", (unsigned long)h);
	report_child(pid, "cat");
	if (!path)
		report(CALL(lseek(s->fd, 0, SEEK_CUR)), "lseek %d 0 CUR", s->fd);
}

// cat writes to an open file of ours, at our offset.
static void op_cat_into(void)
{
	struct slot *s = pick(WRITABLE);
	int name = below(9), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	bool plain = chance(2);
	pid_t pid;

	if (is_direct(s)) {
		close(null);
		return;
	}
	bound(s);
	pid = spawn_cat(names[name], null, s->fd, null, plain);
	close(null);
	report_child(pid, "cat into");
	report(CALL(lseek(s->fd, 0, SEEK_CUR)), "lseek %d 0 CUR", s->fd);
	wrote(s, 64 * KIB);
}

static void op_spawn(void)
{
	struct slot *s = pick(WRITABLE);
	char *argv[] = {"sh", "-c", "cat; echo spawned >&2", NULL};
	int in = below(9), err = 10 + below(2), r;
	posix_spawn_file_actions_t actions;
	pid_t pid;

	if (is_direct(s))
		return;
	bound(s);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, names[in], O_RDONLY, 0);
	posix_spawn_file_actions_addopen(
		&actions, 2, names[err], O_WRONLY | O_CREAT | O_APPEND, 0644);
	posix_spawn_file_actions_adddup2(&actions, s->fd, 1);
	r = chance(2) ? posix_spawn(&pid, "/bin/sh", &actions, NULL, argv, environ)
		      : posix_spawnp(&pid, "sh", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	g.err = 0;
	report(r, "posix_spawn %s -> %d, %s", names[in], s->fd, names[err]);
	if (!r)
		report_child(pid, "spawn");
	wrote(s, 64 * KIB);
}

static void op_system(void)
{
	static const char *const forms[] = {
		"cat %s >> %s 2>/dev/null",
		"cp %s %s 2>/dev/null",
		"cksum < %s > %s 2>/dev/null",
		"wc -c %s 2>&1 > %s",
	};
	int a = pick_name(), b = 6 + below(3);
	char command[256];

	snprintf(command, sizeof(command), forms[below(4)], names[a], names[b]);
	flush_trace();
	report(CALL(system(command)), "system %s", command);
}

static void op_popen(void)
{
	static const char *const forms[] = {
		"cksum %s 2>/dev/null", "cat %s 2>/dev/null", "wc -c < %s 2>/dev/null"};
	const char *path = names[pick_name()];
	char command[256];
	uint64_t h;
	FILE *fp;
	long n, r;

	snprintf(command, sizeof(command), forms[below(3)], path);
	fp = popen(command, "r");
	if (!fp)
		return;
	n = read_all(fileno(fp), &h);
	r = pclose(fp);
	g.err = 0;
	report(r, "popen %s %ld #%016lx", command, n, (unsigned long)h);
}

// ---- passing descriptors
// ----------------------------------------------------------------------------------

union control {
	char space[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static void send_fd(int sock, int fd)
{
	union control control = {{0}};
	struct iovec iov = {"x", 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	report(CALL(sendmsg(sock, &msg, 0)), "sendmsg fd %d", fd);
}

static int receive_fd(int sock)
{
	union control control = {{0}};
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space)};
	int fd = -1;

	if (CALL(recvmsg(sock, &msg, MSG_DONTWAIT)) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	report(fd, "recvmsg fd");
	return fd;
}

static void op_pass_fd(void)
{
	struct slot *s = pick(0), *to = &slots[below(NSLOT)], copy = *s;
	int pair[2], fd;

	if (s == to || s->fd < 0 || s->fp)
		return;
	vacate(to);
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		return;
	send_fd(pair[0], s->fd);
	fd = receive_fd(pair[1]);
	close(pair[0]);
	close(pair[1]);
	if (fd < 0)
		return;
	*to = copy;
	to->fd = fd;
	do_write(to, 1 + below(2000));
	do_write(s, 1 + below(2000));
}

// A child that was there before the file was opened gets it over a socket.
static void op_pass_to_child(void)
{
	int pair[2], name = below(6), fd;
	struct slot s;
	pid_t pid;
	char c;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		return;
	flush_trace();
	pid = fork();
	if (pid == 0) {
		if (recv(pair[1], &c, 1, MSG_PEEK) != 1)
			_exit(9);
		settle(&s, receive_fd(pair[1]), name, O_RDWR);
		do_write(&s, 1 + below(9000));
		do_pread(&s, 10000, 0);
		flush_trace();
		_exit(0);
	}
	fd = CALL(open(names[name], O_RDWR | O_CREAT, 0644));
	report(fd, "open %s RDWR|CREAT", names[name]);
	settle(&s, fd, name, O_RDWR);
	do_write(&s, 1 + below(9000));
	flush_trace();
	if (fd >= 0) {
		say("%s%ld pass\n", g.prefix, g.idx);
		flush_trace();
		g.calls++;
	}
	{
		size_t before = trace_len;

		send_fd(pair[0], fd >= 0 ? fd : 2);
		trace_len = before; // the child may be ahead of this line
	}
	report_child(pid, "receiver");
	report(CALL(lseek(fd, 0, SEEK_CUR)), "lseek %d 0 CUR", fd);
	do_write(&s, 1 + below(3000));
	report(CALL(close(fd)), "close %d", fd);
	close(pair[0]);
	close(pair[1]);
}

// ---- threads
// ----------------------------------------------------------------------------------------------

struct job {
	pthread_t thread;
	uint64_t seed;
	uint64_t sum; // of what was read, or of the records
	long total;
	int fd;
	int count;
	int id;
	unsigned int size;
};

static void *work_alone(void *arg)
{
	struct job *j = arg;
	char *p = aligned_alloc(4096, 64 * KIB);

	rng = j->seed;
	for (int i = 0; i < j->count; i++) {
		unsigned int n = 1 + below(j->size), what = below(8), off = below(64 * KIB);
		long r;

		if (what < 5) {
			fill(p, n);
			r = write(j->fd, p, n);
		} else if (what == 5) {
			r = pread(j->fd, p, n, off);
			j->sum += r > 0 ? hash(p, r) : 0;
		} else if (what == 6) {
			r = lseek(j->fd, 0, SEEK_END);
		} else {
			fill(p, n);
			r = pwrite(j->fd, p, n, off);
		}
		j->total += r;
	}
	free(p);
	return NULL;
}

static int start_and_join(struct job *jobs, int n, void *(*work)(void *))
{
	for (int i = 0; i < n; i++)
		if (pthread_create(&jobs[i].thread, NULL, work, &jobs[i]))
			abort();
	for (int i = 0; i < n; i++)
		pthread_join(jobs[i].thread, NULL);
	return n;
}

static void op_threads_alone(void)
{
	struct job jobs[4] = {0};
	int n = 2 + below(3), count = 10 + below(100);
	unsigned int size = 1 + pick_size() % (64 * KIB);
	char path[8];

	if (count * (long)size > 512 * KIB)
		count = 4 + (int)(512 * KIB / size);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "t%d", i);
		jobs[i] = (struct job){.seed = rnd(), .count = count, .size = size};
		jobs[i].fd = CALL(open(path, O_RDWR | O_CREAT | (chance(2) ? O_TRUNC : 0), 0644));
		report(jobs[i].fd, "open %s", path);
	}
	start_and_join(jobs, n, work_alone);
	g.err = 0;
	for (int i = 0; i < n; i++) {
		report(jobs[i].total, "thread %d: %d calls #%016lx", i, count,
			(unsigned long)jobs[i].sum);
		g.calls += count;
		report(CALL(close(jobs[i].fd)), "close %d", jobs[i].fd);
	}
}

static void *work_shared_write(void *arg)
{
	struct job *j = arg;
	char record[4096];

	rng = j->seed;
	for (int i = 0; i < j->count; i++) {
		fill(record, j->size);
		record[0] = j->id;
		record[1] = i;
		if (write(j->fd, record, j->size) == (ssize_t)j->size)
			j->total += j->size;
		j->sum += hash(record, j->size);
	}
	return NULL;
}

static void *work_shared_read(void *arg)
{
	struct job *j = arg;
	char record[4096];
	ssize_t r;

	while ((r = read(j->fd, record, j->size)) > 0) {
		j->sum += hash(record, r);
		j->total += r;
	}
	return NULL;
}

// Each thread's records must lie in the file whole, once, and in the order in which it wrote them.
static void check_records(int fd, unsigned int size)
{
	unsigned char next[8] = {0};
	char record[4096];
	bool ordered = true;
	uint64_t sum = 0;
	long total = 0, r, at = 0;

	while ((r = pread(fd, record, size, at)) > 0) {
		unsigned int who = (unsigned char)record[0];

		if (who > 7 || (unsigned char)record[1] != next[who]++)
			ordered = false;
		sum += hash(record, r);
		total += r;
		at += r;
		if (r < (long)size)
			break;
	}
	g.err = 0;
	report(total, "records ordered=%d #%016lx", ordered, (unsigned long)sum);
}

static void op_threads_shared(void)
{
	struct job jobs[4] = {0};
	int n = 2 + below(3), count = 5 + below(100);
	unsigned int size = 8 + below(2000);
	long fd = CALL(open("t9", O_RDWR | O_CREAT | O_TRUNC, 0644)), total = 0;
	uint64_t sum = 0;

	report(fd, "open t9");
	for (int i = 0; i < n; i++)
		jobs[i] = (struct job){
			.seed = rnd(), .count = count, .size = size, .id = i, .fd = fd};
	start_and_join(jobs, n, work_shared_write);
	for (int i = 0; i < n; i++)
		total += jobs[i].total, sum += jobs[i].sum;
	g.err = 0;
	report(total, "threads write %u #%016lx", size, (unsigned long)sum);
	check_records(fd, size);
	report(CALL(lseek(fd, 0, SEEK_CUR)), "lseek %ld 0 CUR", fd);
	report(CALL(lseek(fd, 0, SEEK_SET)), "lseek %ld 0 SET", fd);
	total = sum = 0;
	for (int i = 0; i < n; i++)
		jobs[i] = (struct job){.size = size, .fd = fd};
	start_and_join(jobs, n, work_shared_read);
	for (int i = 0; i < n; i++)
		total += jobs[i].total, sum += jobs[i].sum;
	g.err = 0;
	report(total, "threads read %u #%016lx", size, (unsigned long)sum);
	g.calls += 3 * (n * count);
	report(CALL(ftruncate(fd, 0)), "ftruncate %ld 0",
		fd); // the order of the threads must not stay behind
	report(CALL(close(fd)), "close %ld", fd);
}

static void *work_ops(void *arg)
{
	run_sub("t", *(int *)arg);
	return NULL;
}

// The sequence goes on in another thread while this one waits.
static void op_thread_ops(void)
{
	int count = 1 + below(20);
	pthread_t thread;

	if (pthread_create(&thread, NULL, work_ops, &count))
		abort();
	pthread_join(thread, NULL);
}

// ---- the table of operations
// ------------------------------------------------------------------------------

enum { ALL, SEQ, META, PROC, STDIO, THREADS, NSETS };
static const char *const set_names[NSETS] = {"all", "seq", "meta", "proc", "stdio", "threads"};

static const struct kind {
	const char *name;
	void (*run)(void);
	bool heavy; // makes processes or threads: not below another one
	short weight[NSETS];
} kinds[] = {
	{"open", op_open, false, {700, 500, 500, 600, 400, 600}},
	{"reopen", op_reopen, false, {80, 40, 80, 60, 40, 40}},
	{"tmpfile", op_tmpfile, false, {40, 10, 40, 10, 10, 10}},
	{"mkstemp", op_mkstemp, false, {30, 10, 40, 10, 10, 10}},
	{"close", op_close, false, {300, 200, 200, 200, 200, 300}},
	{"close_range", op_close_range, false, {20, 5, 20, 20, 10, 5}},
	{"dup", op_dup, false, {90, 30, 60, 100, 40, 40}},
	{"read", op_read, false, {200, 200, 60, 150, 60, 200}},
	{"write", op_write, false, {300, 300, 100, 300, 60, 300}},
	{"pread", op_pread, false, {150, 80, 50, 60, 30, 100}},
	{"pwrite", op_pwrite, false, {150, 80, 50, 60, 30, 100}},
	{"readv", op_readv, false, {120, 80, 30, 30, 10, 30}},
	{"writev", op_writev, false, {120, 80, 30, 30, 10, 30}},
	{"badcall", op_badcall, false, {40, 10, 10, 5, 5, 5}},
	{"rawsys", op_rawsys, false, {60, 20, 15, 20, 10, 20}},
	{"flagged", op_flagged, false, {60, 30, 15, 15, 5, 20}},
	{"nowait", op_nowait, false, {30, 30, 10, 10, 5, 20}},
	{"burst_write", op_burst_write, false, {250, 600, 150, 250, 60, 200}},
	{"burst_read", op_burst_read, false, {200, 500, 60, 150, 60, 200}},
	{"burst_at", op_burst_at, false, {60, 150, 20, 20, 10, 50}},
	{"copy_loop", op_copy_loop, false, {70, 250, 20, 30, 10, 50}},
	{"burst_mixed", op_burst_mixed, false, {60, 100, 20, 30, 10, 50}},
	{"header", op_header, false, {40, 100, 20, 20, 10, 20}},
	{"lseek", op_lseek, false, {250, 150, 100, 100, 40, 100}},
	{"ftruncate", op_ftruncate, false, {60, 20, 80, 20, 10, 20}},
	{"truncate", op_truncate, false, {40, 10, 60, 10, 10, 10}},
	{"fallocate", op_fallocate, false, {50, 20, 60, 10, 5, 10}},
	{"fstat", op_fstat, false, {120, 50, 200, 40, 40, 40}},
	{"stat", op_stat, false, {140, 50, 250, 60, 60, 40}},
	{"stat_twice", op_stat_twice, false, {20, 10, 50, 5, 5, 5}},
	{"chmod", op_chmod, false, {50, 10, 150, 10, 10, 10}},
	{"utimens", op_utimens, false, {70, 10, 250, 10, 10, 10}},
	{"xattr", op_xattr, false, {60, 10, 150, 10, 5, 5}},
	{"rename", op_rename, false, {50, 10, 120, 20, 10, 10}},
	{"link", op_link, false, {40, 10, 80, 10, 10, 10}},
	{"unlink", op_unlink, false, {30, 10, 80, 10, 10, 10}},
	{"sync", op_sync, false, {12, 4, 12, 2, 2, 2}},
	{"advise", op_advise, false, {50, 30, 20, 5, 5, 10}},
	{"flags", op_flags, false, {90, 20, 50, 40, 10, 20}},
	{"lock", op_lock, false, {60, 5, 40, 40, 5, 10}},
	{"ioctl", op_ioctl, false, {40, 10, 40, 10, 10, 10}},
	{"mmap", op_mmap, false, {40, 10, 20, 10, 10, 10}},
	{"touch", op_touch, false, {40, 5, 10, 5, 5, 5}},
	{"copy_file_range", op_copy_file_range, false, {60, 40, 20, 20, 10, 20}},
	{"sendfile", op_sendfile, false, {50, 40, 10, 20, 10, 10}},
	{"splice", op_splice, false, {40, 20, 10, 10, 5, 5}},
	{"clone_range", op_clone_range, false, {10, 5, 5, 5, 2, 2}},
	{"fopen", op_fopen, false, {60, 20, 30, 40, 500, 30}},
	{"fdopen", op_fdopen, false, {20, 5, 5, 20, 120, 5}},
	{"stream_burst", op_stream_burst, false, {70, 20, 20, 40, 500, 20}},
	{"stream_lines", op_stream_lines, false, {10, 5, 5, 10, 150, 5}},
	{"stream_seek", op_stream_seek, false, {20, 5, 5, 10, 250, 5}},
	{"stream_mix", op_stream_mix, false, {20, 5, 5, 10, 200, 5}},
	{"stream_raw", op_stream_raw, false, {20, 5, 5, 10, 150, 5}},
	{"stream_flush", op_stream_flush, false, {15, 5, 5, 10, 150, 5}},
	{"freopen", op_freopen, false, {5, 2, 2, 5, 60, 2}},
	{"fclose", op_fclose, false, {15, 5, 5, 10, 150, 5}},
	{"fork", op_fork, true, {12, 2, 2, 150, 20, 10}},
	{"fork_turns", op_fork_turns, true, {6, 1, 1, 80, 10, 5}},
	{"exec_self", op_exec_self, true, {3, 1, 1, 60, 5, 2}},
	{"vfork_cat", op_vfork_cat, true, {4, 1, 1, 60, 5, 2}},
	{"cat_into", op_cat_into, true, {3, 1, 1, 60, 5, 2}},
	{"spawn", op_spawn, true, {3, 1, 1, 50, 5, 2}},
	{"system", op_system, true, {3, 1, 1, 40, 5, 2}},
	{"popen", op_popen, true, {3, 1, 1, 50, 5, 2}},
	{"pass_fd", op_pass_fd, false, {15, 2, 2, 60, 5, 5}},
	{"pass_to_child", op_pass_to_child, true, {4, 1, 1, 50, 2, 2}},
	{"threads_alone", op_threads_alone, true, {5, 2, 1, 5, 2, 150}},
	{"threads_shared", op_threads_shared, true, {5, 2, 1, 5, 2, 150}},
	{"thread_ops", op_thread_ops, true, {10, 2, 2, 10, 5, 150}},
};
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

static unsigned int pick_kind(void)
{
	unsigned int total = 0, r;
	size_t i;

	for (i = 0; i < NKINDS; i++)
		total += kinds[i].weight[g.set];
	r = below(total);
	for (i = 0; r >= (unsigned int)kinds[i].weight[g.set]; i++)
		r -= kinds[i].weight[g.set];
	return i;
}

// Small writes right before an operation, so that it often meets data that has just been written.
static void write_before(uint64_t seed)
{
	uint64_t state = rng;

	rng = seed;
	focus = pick(WRITABLE);
	if (focus->fd < 0)
		focus = NULL;
	for (int i = 0, n = 1 + below(3); i < n && focus; i++)
		do_write(focus, 1 + below(chance(2) ? 100 : 2000));
	rng = state;
}

static void one_op(long i)
{
	unsigned int kind;

	g.idx = i;
	g.sub = -1;
	rng = mix(g.seed, i);
	kind = pick_kind();
	if (excluded[kind] || (kinds[kind].heavy && g.depth))
		return;
	if (g.verbose)
		say("%s%ld [%s]\n", g.prefix, i, kinds[kind].name);
	if (chance(4))
		write_before(mix(rng, 1));
	kinds[kind].run();
	focus = NULL;
	g.sub = -1;
}

// ---- what is there at the end
// -----------------------------------------------------------------------------

static void dump_xattrs(const char *path)
{
	static const char *const keys[] = {"user.a", "user.b", "user.long.name"};
	char value[64];

	for (int i = 0; i < 3; i++) {
		ssize_t n = lgetxattr(path, keys[i], value, sizeof(value));

		if (n >= 0)
			say(" %s=#%016lx", keys[i], (unsigned long)hash(value, n));
	}
}

static uint64_t hash_file(const char *path, long *size)
{
	int fd = open(path, O_RDONLY | O_NOATIME | O_CLOEXEC);
	uint64_t h = 1;
	ssize_t r;

	*size = 0;
	while (fd >= 0 && (r = read(fd, buf, 64 * KIB)) > 0) {
		h = hash_more(h, buf, r);
		*size += r;
	}
	if (fd >= 0)
		close(fd);
	return h;
}

static void dump_file(const char *path)
{
	struct stat st;
	uint64_t h = 0;
	long read = 0;

	if (lstat(path, &st)) {
		say("%s: %s\n", path, errname(errno));
		return;
	}
	if (S_ISREG(st.st_mode))
		h = hash_file(path, &read);
	say("%s: mode=%o", path, st.st_mode);
	if (S_ISREG(st.st_mode)) {
		say(" size=%ld read=%ld nlink=%ld #%016lx", (long)st.st_size, read,
			(long)st.st_nlink, (unsigned long)h);
		say_time("m", st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
		if (g.atime)
			say_time("a", st.st_atim.tv_sec, st.st_atim.tv_nsec);
		dump_xattrs(path);
	}
	say("\n");
}

static int not_dots(const struct dirent *d)
{
	return strcmp(d->d_name, ".") && strcmp(d->d_name, "..");
}

static void dump_dir(const char *dir)
{
	struct dirent **list;
	int n = scandir(dir, &list, not_dots, alphasort);
	char path[600];

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
		dump_file(path + 2);
		if (list[i]->d_type == DT_DIR)
			dump_dir(path);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
}

static void leave_data_behind(void)
{
	for (int i = 0; i < NSLOT; i++) {
		if (slots[i].fd < 0 || !(slots[i].acc & WRITABLE))
			continue;
		for (g.sub = 0; g.sub < 6; g.sub++)
			do_write(&slots[i], 1 + below(3000));
		if (slots[i].fp)
			stream_write(&slots[i], 1 + below(3000));
	}
}

static bool is_excluded(const char *name)
{
	for (size_t i = 0; i < NKINDS; i++)
		if (excluded[i] && !strcmp(kinds[i].name, name))
			return true;
	return false;
}

// Ends with descriptors open and data just written, in every way in which a process can end.
static int finish(void)
{
	unsigned int how;

	g.idx = g.ops;
	g.sub = -1;
	rng = mix(g.seed, g.ops);
	how = below(12);
	if ((how == 9 || how == 10) && is_excluded("exec_self"))
		how = 1;
	leave_data_behind();
	say("%send %u\n", g.prefix, how);
	flush_trace();
	switch (how) {
	case 0:
		exit(10);
	case 1:
		_exit(11);
	case 2:
		quick_exit(12);
	case 3:
		raise(SIGTERM);
		break;
	case 4:
		signal(SIGABRT, SIG_DFL);
		abort();
	case 5:
		kill(getpid(), SIGKILL);
		break;
	case 6:
		kill(getpid(), SIGTERM);
		break;
	case 7:
		pthread_exit(NULL);
	case 8:
		pthread_kill(pthread_self(), SIGTERM);
		break;
	case 9:
		if (g.depth == 0)
			exec_self(10);
		break;
	case 10:
		execl("/bin/true", "true", NULL);
		break;
	}
	return 0;
}

// ---- starting
// ---------------------------------------------------------------------------------------------

static void on_crash(int sig)
{
	say("signal %d in operation %s%ld.%ld\n", sig, g.prefix, g.idx, g.sub);
	flush_trace();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void set_handlers(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
	struct rlimit none = {0, 0};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], on_crash);
	signal(SIGPIPE, SIG_IGN);
	setrlimit(RLIMIT_CORE, &none);
}

static void make_file(int name)
{
	int fd = open(names[name], O_WRONLY | O_CREAT | O_TRUNC, 0644);
	size_t n = name == BIG ? 1500 * KIB + 77 : (size_t)pick_size() * (1 + below(4));

	for (size_t done = 0; done < n; done += 64 * KIB) {
		size_t piece = n - done < 64 * KIB ? n - done : 64 * KIB;

		fill(buf, piece);
		if (write(fd, buf, piece) != (ssize_t)piece)
			break;
	}
	close(fd);
}

static void make_tree(void)
{
	rng = mix(g.seed, 0x7ee);
	if (mkdir("d", 0755) && errno != EEXIST)
		perror("mkdir");
	for (int i = 0; i < NREAL; i++)
		if (!chance(3))
			make_file(i);
	if (symlink("f0", "s0") || symlink("f1", "s1") || symlink("d/a", "s2"))
		perror("symlink");
}

static void look_at_filesystem(void)
{
	struct statfs fs;

	if (statfs(".", &fs))
		return;
	g.exact_holes = geteuid() == 0 &&
			(fs.f_type == 0xef53 || fs.f_type == 0x01021994 || fs.f_type == 0x9123683e);
	g.mark_copies = fs.f_type == 0x9123683e;
}

static void inherit(const char *list)
{
	int i, fd, name, acc, direct, n;
	long r;

	for (; sscanf(list, "%d:%d:%d:%d:%d,%n", &i, &fd, &name, &acc, &direct, &n) == 5;
		list += n) {
		r = CALL(fcntl(fd, F_GETFD));
		report(r, "inherited %d", fd);
		if (r >= 0)
			slots[i] = (struct slot){
				.fd = fd, .name = name, .acc = acc, .desc = new_desc(direct)};
	}
}

// "3,7-9,12/5": operations 3, 7, 8, 9, and 12 with bursts of at most 5 calls. As a list of what to
// leave out, limits do not count.
static void parse_list(const char *s, bool keeping)
{
	char *end;

	while (*s) {
		long from = strtol(s, &end, 10), to = from, limit = 1 << 30;

		if (end == s)
			break;
		if (*end == '-' || *end == ':')
			to = strtol(end + 1, &end, 10);
		if (*end == '/')
			limit = strtol(end + 1, &end, 10);
		for (long i = from; i <= to && i < (long)g.ops; i++)
			if (i >= 0)
				keep[i] = keeping ? limit : 0;
		s = *end == ',' ? end + 1 : end;
	}
}

static void exclude(char *list)
{
	for (char *s = strtok(list, ","); s; s = strtok(NULL, ","))
		for (size_t i = 0; i < NKINDS; i++)
			if (!strcmp(kinds[i].name, s))
				excluded[i] = true;
}

static int show_kinds(void)
{
	printf("%-16s", "kind");
	for (int i = 0; i < NSETS; i++)
		printf(" %8s", set_names[i]);
	for (size_t i = 0; i < NKINDS; i++) {
		printf("\n%-16s", kinds[i].name);
		for (int j = 0; j < NSETS; j++)
			printf(" %8d", kinds[i].weight[j]);
	}
	printf("\n");
	return 0;
}

static int show_maps(void)
{
	char *line = NULL;
	size_t size = 0;
	FILE *fp = fopen("/proc/self/maps", "r");

	while (fp && getline(&line, &size, fp) > 0)
		if (strstr(line, ".so"))
			fputs(strchr(line, '/') ? strchr(line, '/') : line, stdout);
	return 0;
}

static int usage(void)
{
	fputs("usage: exerciser -s SEED -n OPS [-w SET] [-k SKIP | -o KEEP | -r FROM:TO] [-N "
	      "KIND,...] [-a] [-v]\n"
	      "       exerciser -l | -V | -D\n"
	      "  -s SEED  first choice of everything   -n OPS  how many operations\n"
	      "  -w SET   all, seq, meta, proc, stdio, threads\n"
	      "  -k LIST  leave these operations out (3,7-9)   -o LIST  do only these (12/5: 5 "
	      "calls of burst 12)\n"
	      "  -r A:B   do only A to B   -N LIST  leave out kinds   -a  print access times too   "
	      "-v  name the kinds\n"
	      "  -l  list the kinds   -V  list the mapped libraries   -D  describe the tree in "
	      "this directory\n"
	      "Works in the current directory, which should be empty; the trace goes to standard "
	      "output.\n",
		stderr);
	return 2;
}

static int select_set(const char *name)
{
	for (int i = 0; i < NSETS; i++)
		if (!strcmp(set_names[i], name)) {
			g.set = i;
			g.weights = set_names[i];
			return 0;
		}
	return -1;
}

static void select_ops(const char *skip, const char *only)
{
	keep = malloc((g.ops + 1) * sizeof(*keep));
	for (unsigned long i = 0; i < g.ops; i++)
		keep[i] = only ? 0 : 1 << 30;
	if (only)
		parse_list(only, true);
	if (skip)
		parse_list(skip, false);
}

static void run(const char *inherited)
{
	for (int i = 0; i < NSLOT; i++)
		slots[i].fd = -1;
	look_at_filesystem();
	if (inherited)
		inherit(inherited);
	else
		make_tree();
	for (unsigned long i = 0; i < g.ops; i++) {
		g.limit = keep[i];
		if (keep[i])
			one_op(i);
	}
	if (!inherited)
		dump_dir(".");
	say("%scalls %lu\n", g.prefix, g.calls);
}

int main(int argc, char **argv)
{
	const char *skip = NULL, *only = NULL, *inherited = NULL;
	int c;

	if (readlink("/proc/self/exe", g.self, sizeof(g.self) - 1) < 0)
		return 2;
	while ((c = getopt(argc, argv, "s:n:w:k:o:r:N:I:p:d:avlVDh")) != -1) {
		switch (c) {
		case 's':
			g.seed = strtoull(optarg, NULL, 10);
			break;
		case 'n':
			g.ops = strtoul(optarg, NULL, 10);
			break;
		case 'w':
			if (select_set(optarg))
				return usage();
			break;
		case 'k':
			skip = optarg;
			break;
		case 'o':
		case 'r':
			only = optarg;
			break;
		case 'N':
			exclude(optarg);
			break;
		case 'I':
			inherited = optarg;
			break;
		case 'p':
			snprintf(g.prefix, sizeof(g.prefix), "%s", optarg);
			break;
		case 'd':
			g.depth = atoi(optarg);
			break;
		case 'a':
			g.atime = true;
			break;
		case 'v':
			g.verbose = true;
			break;
		case 'l':
			return show_kinds();
		case 'V':
			return show_maps();
		case 'D':
			dump_dir(".");
			flush_trace();
			return 0;
		default:
			return usage();
		}
	}
	if (optind < argc)
		return usage();
	umask(022);
	set_handlers();
	select_ops(skip, only);
	run(inherited);
	return finish();
}
