/* Resolution of the next library's entry points, and the raw ones before it. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>

#include "real.h" /* refuses other C libraries, some of which lack the next header */
#include <linux/openat2.h>

#include "sys.h"

static long edge(long r)
{
	if (!sys_failed(r))
		return r;
	errno = -r;
	return -1;
}

/* A mode was passed only with these flags; O_TMPFILE contains O_DIRECTORY (open(2)). */
static mode_t mode_of(int flags, va_list ap)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
}

#define RAW(type, name, parameters) static type raw_##name parameters

RAW(int, open64, (const char *path, int flags, ...))
{
	va_list ap;

	va_start(ap, flags);
	mode_t mode = mode_of(flags, ap);
	va_end(ap);
	return edge(sys(SYS_openat, AT_FDCWD, path, flags, mode));
}

RAW(int, openat64, (int dir, const char *path, int flags, ...))
{
	va_list ap;

	va_start(ap, flags);
	mode_t mode = mode_of(flags, ap);
	va_end(ap);
	return edge(sys(SYS_openat, dir, path, flags, mode));
}

RAW(int, __open64_2, (const char *path, int flags))
{
	return edge(sys(SYS_openat, AT_FDCWD, path, flags, 0));
}

RAW(int, __openat64_2, (int dir, const char *path, int flags))
{
	return edge(sys(SYS_openat, dir, path, flags, 0));
}

RAW(int, creat64, (const char *path, mode_t mode))
{
	return edge(sys(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode));
}

RAW(ssize_t, read, (int fd, void *buf, size_t n))
{
	return edge(sys(SYS_read, fd, buf, n));
}

RAW(ssize_t, __read_chk, (int fd, void *buf, size_t n, size_t size))
{
	if (n > size)
		__builtin_trap();
	return edge(sys(SYS_read, fd, buf, n));
}

RAW(ssize_t, write, (int fd, const void *buf, size_t n))
{
	return edge(sys(SYS_write, fd, buf, n));
}

RAW(ssize_t, pread64, (int fd, void *buf, size_t n, off64_t off))
{
	return edge(sys(SYS_pread64, fd, buf, n, SYS_OFF(off)));
}

RAW(ssize_t, __pread64_chk, (int fd, void *buf, size_t n, off64_t off, size_t size))
{
	if (n > size)
		__builtin_trap();
	return edge(sys(SYS_pread64, fd, buf, n, SYS_OFF(off)));
}

RAW(ssize_t, pwrite64, (int fd, const void *buf, size_t n, off64_t off))
{
	return edge(sys(SYS_pwrite64, fd, buf, n, SYS_OFF(off)));
}

RAW(ssize_t, readv, (int fd, const struct iovec *v, int n))
{
	return edge(sys(SYS_readv, fd, v, n));
}

RAW(ssize_t, writev, (int fd, const struct iovec *v, int n))
{
	return edge(sys(SYS_writev, fd, v, n));
}

RAW(off64_t, lseek64, (int fd, off64_t off, int whence))
{
	off64_t r = sys_lseek(fd, off, whence);

	return r < 0 ? edge(r) : r;
}

RAW(int, close, (int fd))
{
	return edge(sys(SYS_close, fd));
}

RAW(int, dup, (int fd))
{
	return edge(sys(SYS_dup, fd));
}

RAW(int, dup2, (int fd, int to))
{
	if (fd == to)
		return edge(sys(SYS_FCNTL, fd, F_GETFL)) < 0 ? -1 : to;
	return edge(sys(SYS_dup3, fd, to, 0));
}

RAW(int, dup3, (int fd, int to, int flags))
{
	return edge(sys(SYS_dup3, fd, to, flags));
}

RAW(int, fcntl64, (int fd, int cmd, ...))
{
	va_list ap;

	va_start(ap, cmd);
	long arg = va_arg(ap, long);
	va_end(ap);
	return edge(sys(SYS_FCNTL, fd, cmd, arg));
}

RAW(int, ioctl, (int fd, unsigned long request, ...))
{
	va_list ap;

	va_start(ap, request);
	long arg = va_arg(ap, long);
	va_end(ap);
	return edge(sys(SYS_ioctl, fd, request, arg));
}

RAW(int, socket, (int domain, int type, int protocol))
{
	return edge(sys(SYS_socket, domain, type, protocol));
}

RAW(int, pipe2, (int *fds, int flags))
{
	return edge(sys(SYS_pipe2, fds, flags));
}

RAW(int, pipe, (int *fds))
{
	return edge(sys(SYS_pipe2, fds, 0));
}

/* The kernel's stat structure is glibc's on the supported 64-bit systems. */
RAW(int, fstatat64, (int dir, const char *path, struct stat64 *st, int flags))
{
	return edge(sys(SYS_FSTATAT, dir, path, st, flags));
}

RAW(int, fstat64, (int fd, struct stat64 *st))
{
	return edge(sys(SYS_FSTAT, fd, st));
}

RAW(int, stat64, (const char *path, struct stat64 *st))
{
	return edge(sys(SYS_FSTATAT, AT_FDCWD, path, st, 0));
}

RAW(int, lstat64, (const char *path, struct stat64 *st))
{
	return edge(sys(SYS_FSTATAT, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW));
}

RAW(void *, mmap64, (void *addr, size_t len, int prot, int flags, int fd, off64_t off))
{
	return (void *)edge(sys_mmap(addr, len, prot, flags, fd, off));
}

RAW(int, ftruncate64, (int fd, off64_t len))
{
	return edge(sys(SYS_FTRUNCATE, fd, SYS_OFF(len)));
}

RAW(int, fsync, (int fd))
{
	return edge(sys(SYS_fsync, fd));
}

RAW(int, fdatasync, (int fd))
{
	return edge(sys(SYS_fdatasync, fd));
}

RAW(int, kill, (pid_t pid, int sig))
{
	return edge(sys(SYS_kill, pid, sig));
}

RAW(long, syscall, (long nr, ...))
{
	long a[6];
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return edge(sys6(nr, a[0], a[1], a[2], a[3], a[4], a[5]));
}

RAW(int, prctl, (int option, ...))
{
	long a[4];
	va_list ap;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return edge(sys(SYS_prctl, option, a[0], a[1], a[2], a[3]));
}

RAW(void, _exit, (int status))
{
	for (;;)
		sys(SYS_exit_group, status);
}

#define SEED(name) .name = raw_##name
struct real real = {
	SEED(open64),
	SEED(openat64),
	SEED(__open64_2),
	SEED(__openat64_2),
	SEED(creat64),
	SEED(read),
	SEED(__read_chk),
	SEED(write),
	SEED(pread64),
	SEED(__pread64_chk),
	SEED(pwrite64),
	SEED(readv),
	SEED(writev),
	SEED(lseek64),
	SEED(close),
	SEED(dup),
	SEED(dup2),
	SEED(dup3),
	SEED(fcntl64),
	SEED(ioctl),
	SEED(socket),
	SEED(pipe),
	SEED(pipe2),
#if __GLIBC_PREREQ(2, 33)
	SEED(fstatat64),
	SEED(fstat64),
	SEED(stat64),
	SEED(lstat64),
#endif
	SEED(mmap64),
	SEED(ftruncate64),
	SEED(fsync),
	SEED(fdatasync),
	SEED(kill),
	SEED(syscall),
	SEED(prctl),
	SEED(_exit),
};

static const struct {
	const char *name;
	void **slot;
} table[] = {
#define CALLS CALLS_ALL
#define CALL(type, name, parameters) {#name, (void **)&real.name},
#define SAME(alias, name)
#include "calls.def"
#undef CALLS
#undef CALL
#undef SAME
};

static long missing(void)
{
	errno = ENOSYS;
	return -1;
}

void real_find(void **slot)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		if (table[i].slot != slot)
			continue;
		void *f = dlsym(RTLD_NEXT, table[i].name);
		*slot = f ? f : (void *)missing;
		return;
	}
}

void *real_symbol(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

void real_init(void)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		void *f = dlsym(RTLD_NEXT, table[i].name);

		if (f)
			*table[i].slot = f;
		else if (!*table[i].slot)
			*table[i].slot = (void *)missing;
	}
}
