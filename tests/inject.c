/*
 * The injector: stands between the shim and the kernel, counts the calls and
 * makes chosen ones fail. Linked into a library built with inject.h; after
 * real_init (ld --wrap) the entry points in real are the ones below.
 *
 *   INJECT=LOG:FIRST:COUNT:FAULT   from call FIRST on (1 is the first), COUNT
 *       calls of that kind fail; FAULT is an errno, or -1: a short count
 *
 * LOG is a file that holds a struct inject_log; all processes of a run share it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "inject_log.h"
#include "shim/engine/engine.h"
#include "shim/real.h"
#include "shim/sys.h"

static struct inject_log *record;
static int first, count, fault;

/* Calls that fail together: all reads of data, all writes; else those of one name. */
static bool alike(const char *name, char class)
{
	if (strchr("RW", record->fired_class))
		return class == record->fired_class;
	return !strcmp(name, record->name);
}

/* Is this call to fail? The errno, -1 for a short count, 0 else. */
static int due(const char *name, char class)
{
	int n;

	if (!record)
		return 0;
	n = __atomic_add_fetch(&record->calls, 1, __ATOMIC_SEQ_CST);
	if (n <= INJECT_MOST) {
		record->call[n - 1].class = class;
		strncpy(record->call[n - 1].name, name, sizeof(record->call->name) - 1);
	}
	if (!first || n < first || (fault < 0 && !strchr("RW", class)))
		return 0;
	if (!record->fired) {
		record->fired_class = class;
		strncpy(record->name, name, sizeof(record->name) - 1);
	} else if (record->fired >= count || !alike(name, class)) {
		return 0;
	}
	record->fired++;
	return fault;
}

static size_t half(size_t n)
{
	return n >= 1024 ? n / 2 / 512 * 512 : (n + 1) / 2;
}

/* --- raw system calls --- */

static const struct {
	long nr;
	const char *name;
	char class; /* O: the shim's own, whose failure is nobody's business */
} known[] = {
	{SYS_mmap, "mmap", 'O'},
	{SYS_munmap, "munmap", 'O'},
	{SYS_madvise, "madvise", 'O'},
	{SYS_fstat, "fstat", 'O'},
	{SYS_newfstatat, "newfstatat", 'O'},
	{SYS_statx, "statx", 'O'},
	{SYS_fstatfs, "fstatfs", 'O'},
	{SYS_fcntl, "fcntl", 'O'},
	{SYS_ioctl, "ioctl", 'O'},
	{SYS_prlimit64, "prlimit64", 'O'},
	{SYS_ppoll, "ppoll", 'O'},
	{SYS_openat, "openat", 'O'},
	{SYS_close, "own close", 'O'},
	{SYS_mincore, "mincore", 'O'},
	{451, "cachestat", 'O'},
	{SYS_rt_sigpending, "rt_sigpending", 'O'},
	{SYS_prctl, "prctl", 'O'},
	{SYS_io_uring_setup, "io_uring_setup", 'O'},
	{SYS_io_uring_enter, "io_uring_enter", 'O'},
	{SYS_io_setup, "io_setup", 'O'},
	{SYS_io_submit, "io_submit", 'O'},
	{SYS_io_getevents, "io_getevents", 'O'},
	{SYS_io_destroy, "io_destroy", 'O'},
};

long inject_sys(long nr, long a, long b, long c, long d, long e, long f)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (known[i].nr != nr)
			continue;
		int bad = due(known[i].name, known[i].class);

		if (!bad)
			break;
		if (nr == SYS_close || nr == SYS_munmap || nr == SYS_io_destroy)
			sys6(nr, a, b, c, d, e, f);
		return -bad;
	}
	return sys6(nr, a, b, c, d, e, f);
}

/* What a completion says. */
ssize_t inject_result(const struct transfer *t, ssize_t res)
{
	int bad = due(t->write ? "completed write" : "completed read", t->write ? 'W' : 'R');

	if (!bad)
		return res;
	return bad > 0 ? -bad : res > 0 ? (ssize_t)half(res) : res;
}

/* --- the next library's calls --- */

static struct real next;

#define FAIL(name, class)                                                                          \
	int bad = due(#name, class);                                                               \
	if (bad > 0) {                                                                             \
		errno = bad;                                                                       \
		return -1;                                                                         \
	}

static ssize_t inject_read(int fd, void *buf, size_t n)
{
	FAIL(read, 'R')
	return next.read(fd, buf, bad ? half(n) : n);
}

static ssize_t inject_write(int fd, const void *buf, size_t n)
{
	FAIL(write, 'W')
	return next.write(fd, buf, bad ? half(n) : n);
}

static ssize_t inject_pread64(int fd, void *buf, size_t n, off64_t off)
{
	FAIL(pread64, 'R')
	return next.pread64(fd, buf, bad ? half(n) : n, off);
}

static ssize_t inject_pwrite64(int fd, const void *buf, size_t n, off64_t off)
{
	FAIL(pwrite64, 'W')
	return next.pwrite64(fd, buf, bad ? half(n) : n, off);
}

static ssize_t inject_preadv64v2(int fd, const struct iovec *v, int n, off64_t off, int flags)
{
	struct iovec one = *v;

	FAIL(preadv64v2, 'R')
	if (bad)
		one.iov_len = half(one.iov_len);
	return bad ? next.preadv64v2(fd, &one, 1, off, flags) : next.preadv64v2(fd, v, n, off, flags);
}

static ssize_t inject_pwritev64v2(int fd, const struct iovec *v, int n, off64_t off, int flags)
{
	struct iovec one = *v;

	FAIL(pwritev64v2, 'W')
	if (bad)
		one.iov_len = half(one.iov_len);
	return bad ? next.pwritev64v2(fd, &one, 1, off, flags) : next.pwritev64v2(fd, v, n, off, flags);
}

static ssize_t inject_copy_file_range(int in, off64_t *in_off, int to, off64_t *to_off, size_t n,
	unsigned flags)
{
	int reading = due("copy_file_range", 'R');

	if (reading > 0) {
		errno = reading;
		return -1;
	}
	FAIL(copy_file_range, 'W')
	return next.copy_file_range(in, in_off, to, to_off, bad || reading ? half(n) : n, flags);
}

static off64_t inject_lseek64(int fd, off64_t off, int whence)
{
	FAIL(lseek64, 'K')
	return next.lseek64(fd, off, whence);
}

static int inject_fcntl64(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	FAIL(fcntl64, 'K')
	return next.fcntl64(fd, cmd, arg);
}

static int inject_sync_file_range(int fd, off64_t off, off64_t n, unsigned flags)
{
	FAIL(sync_file_range, 'P')
	return next.sync_file_range(fd, off, n, flags);
}

static int inject_posix_fadvise64(int fd, off64_t off, off64_t n, int advice)
{
	int bad = due("posix_fadvise64", 'O');

	return bad ? bad : next.posix_fadvise64(fd, off, n, advice);
}

static int inject_fdatasync(int fd)
{
	FAIL(fdatasync, 'P')
	return next.fdatasync(fd);
}

static int inject_fsync(int fd)
{
	FAIL(fsync, 'P')
	return next.fsync(fd);
}

static int inject_ftruncate64(int fd, off64_t n)
{
	FAIL(ftruncate64, 'P')
	return next.ftruncate64(fd, n);
}

static int inject_close(int fd)
{
	int bad = due("close", 'P'), r = next.close(fd);

	if (bad <= 0)
		return r;
	errno = bad;
	return -1;
}

static void init(void)
{
	const char *v = getenv("INJECT");
	char path[200];
	int fd;

	if (!v || sscanf(v, "%199[^:]:%d:%d:%d", path, &first, &count, &fault) != 4)
		return;
	fd = next.open64(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		abort();
	record = next.mmap64(NULL, sizeof(*record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (record == MAP_FAILED)
		abort();
	next.close(fd);
}

void __real_real_init(void);
void __wrap_real_init(void);

void __wrap_real_init(void)
{
	__real_real_init();
	next = real;
	init();
#define TAKE(name) real.name = inject_##name
	TAKE(read);
	TAKE(write);
	TAKE(pread64);
	TAKE(pwrite64);
	TAKE(preadv64v2);
	TAKE(pwritev64v2);
	TAKE(copy_file_range);
	TAKE(lseek64);
	TAKE(fcntl64);
	TAKE(sync_file_range);
	TAKE(posix_fadvise64);
	TAKE(fdatasync);
	TAKE(fsync);
	TAKE(ftruncate64);
	TAKE(close);
}
