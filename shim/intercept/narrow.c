/*
 * 32-bit systems: the calls whose off_t and structures have 32 bits, and those
 * whose time_t has 64 (a program chooses by _FILE_OFFSET_BITS and _TIME_BITS).
 * A file opened here lacks O_LARGEFILE: where its 2 GiB end, the kernel's own
 * call says what it says (core/writer.c).
 */
#ifndef __LP64__
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../core/config.h"
#include "../core/process.h"
#include "../core/pump.h"
#include "../engine/engine.h"
#include "twins.h"
#include "wrap.h"

/* --- opening --- */

WRAP(int, open, (const char *path, int flags, ...))
{
	va_list ap;

	va_start(ap, flags);
	int mode = has_mode(flags) ? va_arg(ap, int) : 0;
	va_end(ap);
	before_open(AT_FDCWD, path, flags);
	return opened(next(open)(path, flags, mode), flags, path);
}

WRAP(int, openat, (int dir, const char *path, int flags, ...))
{
	va_list ap;

	va_start(ap, flags);
	int mode = has_mode(flags) ? va_arg(ap, int) : 0;
	va_end(ap);
	before_open(dir, path, flags);
	return opened_at(dir, next(openat)(dir, path, flags, mode), flags, path);
}

WRAP(int, __open_2, (const char *path, int flags))
{
	before_open(AT_FDCWD, path, flags);
	return opened(next(__open_2)(path, flags), flags, path);
}

WRAP(int, __openat_2, (int dir, const char *path, int flags))
{
	before_open(dir, path, flags);
	return opened_at(dir, next(__openat_2)(dir, path, flags), flags, path);
}

WRAP(int, creat, (const char *path, mode_t mode))
{
	int flags = O_CREAT | O_WRONLY | O_TRUNC;

	before_open(AT_FDCWD, path, flags);
	return opened(next(creat)(path, mode), flags, path);
}

WRAP(int, mkstemp, (char *template))
{
	return opened(next(mkstemp)(template), O_RDWR | O_CREAT | O_EXCL, template);
}

WRAP(int, mkostemp, (char *template, int flags))
{
	return opened(next(mkostemp)(template, flags), flags | O_RDWR | O_CREAT, template);
}

WRAP(int, mkstemps, (char *template, int suffix))
{
	return opened(next(mkstemps)(template, suffix), O_RDWR | O_CREAT | O_EXCL, template);
}

WRAP(int, mkostemps, (char *template, int suffix, int flags))
{
	return opened(next(mkostemps)(template, suffix, flags), flags | O_RDWR | O_CREAT, template);
}

/* --- data and offsets --- */

WRAP(ssize_t, pread, (int fd, void *buf, size_t n, off_t off))
{
	struct file *f = file_enter(fd);
	if (!f)
		return real.pread64(fd, buf, n, off);
	ssize_t r = file_pread(f, buf, n, off);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, __pread_chk, (int fd, void *buf, size_t n, off_t off, size_t size))
{
	struct file *f = n <= size ? file_enter(fd) : NULL;
	if (!f)
		return real.__pread64_chk(fd, buf, n, off, size);
	ssize_t r = file_pread(f, buf, n, off);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, pwrite, (int fd, const void *buf, size_t n, off_t off))
{
	struct file *f = file_enter(fd);
	if (!f)
		return real.pwrite64(fd, buf, n, off);
	ssize_t r = file_pwrite(f, buf, n, off);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, preadv, (int fd, const struct iovec *v, int n, off_t off))
{
	struct file *f = off < 0 ? NULL : file_enter(fd);
	if (!f)
		return next(preadv)(fd, v, n, off);
	ssize_t r = file_preadv(f, v, n, off, 0);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t off))
{
	struct file *f = off < 0 ? NULL : file_enter(fd);
	if (!f)
		return next(pwritev)(fd, v, n, off);
	ssize_t r = file_pwritev(f, v, n, off, 0);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, preadv2, (int fd, const struct iovec *v, int n, off_t off, int flags))
{
	struct file *f = file_enter(fd);
	if (!f)
		return next(preadv2)(fd, v, n, off, flags);
	ssize_t r = file_preadv(f, v, n, off, flags);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, pwritev2, (int fd, const struct iovec *v, int n, off_t off, int flags))
{
	struct file *f = file_enter(fd);
	if (!f)
		return next(pwritev2)(fd, v, n, off, flags);
	ssize_t r = file_pwritev(f, v, n, off, flags);
	file_put(f);
	return edge(r);
}

/* A position that does not fit is taken all the same (lseek(2), EOVERFLOW). */
static off_t fitting(off64_t r)
{
	return r == (off_t)r ? edge(r) : edge(-EOVERFLOW);
}

WRAP(off_t, lseek, (int fd, off_t off, int whence))
{
	if (whence > SEEK_CUR)
		file_drain_path(fd, "", AT_EMPTY_PATH);
	struct file *f = file_get(fd);
	if (!f)
		return next(lseek)(fd, off, whence);
	off64_t r = file_seek(f, off, whence);
	file_put(f);
	return fitting(r);
}

WRAP(ssize_t, sendfile, (int to, int from, off_t *off, size_t n))
{
	bool known = off && memory_ok_now(off, sizeof(*off));
	off64_t at = known ? *off : 0;
	ssize_t r = off && !known ? pump_not(from, to) : pump(from, off ? &at : NULL, to, n, 0);

	if (r != PUMP_NOT) {
		if (known)
			*off = at;
		return edge(r);
	}
	r = next(sendfile)(to, from, off, n);
	pump_after(from, to, r);
	return r;
}

WRAP(void *, mmap, (void *addr, size_t len, int prot, int flags, int fd, off_t off))
{
	if (!(flags & MAP_ANONYMOUS) && fd >= 0)
		file_release_inode(fd, REASON_MAPPED);
	return real.mmap64(addr, len, prot, flags, fd, (uint32_t)off);
}

WRAP(int, aio_read, (struct aiocb *cb))
{
	file_release_fd(cb->aio_fildes, REASON_AIO);
	return next(aio_read)(cb);
}

WRAP(int, aio_write, (struct aiocb *cb))
{
	file_release_fd(cb->aio_fildes, REASON_AIO);
	return next(aio_write)(cb);
}

WRAP(int, aio_fsync, (int op, struct aiocb *cb))
{
	file_release_fd(cb->aio_fildes, REASON_AIO);
	return next(aio_fsync)(op, cb);
}

WRAP(int, lio_listio, (int mode, struct aiocb *const *list, int n, struct sigevent *event))
{
	for (int i = 0; i < n; i++)
		if (list[i])
			file_release_fd(list[i]->aio_fildes, REASON_AIO);
	return next(lio_listio)(mode, list, n, event);
}

/* --- sizes, locks, limits --- */

WRAP(int, ftruncate, (int fd, off_t len))
{
	before_change(fd);
	int r = next(ftruncate)(fd, len);
	file_resized(fd, "", AT_EMPTY_PATH, r ? -1 : len);
	return r;
}

WRAP(int, truncate, (const char *path, off_t len))
{
	file_settle_path(AT_FDCWD, path, 0);
	int r = next(truncate)(path, len);
	file_resized(AT_FDCWD, path, 0, r ? -1 : len);
	return r;
}

WRAP(int, fallocate, (int fd, int mode, off_t off, off_t len))
{
	before_change(fd);
	int r = next(fallocate)(fd, mode, off, len);
	file_resized(fd, "", AT_EMPTY_PATH, -1);
	return r;
}

WRAP(int, posix_fallocate, (int fd, off_t off, off_t len))
{
	before_change(fd);
	int r = next(posix_fallocate)(fd, off, len);
	file_resized(fd, "", AT_EMPTY_PATH, -1);
	return r;
}

WRAP(int, posix_fadvise, (int fd, off_t off, off_t len, int advice))
{
	if (advice == POSIX_FADV_DONTNEED)
		file_drain_fd(fd);
	return next(posix_fadvise)(fd, off, len, advice);
}

WRAP(int, fcntl, (int fd, int cmd, ...))
{
	va_list ap;

	va_start(ap, cmd);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	return control(next(fcntl), fd, cmd, arg);
}

WRAP(int, lockf, (int fd, int cmd, off_t len))
{
	file_release_inode(fd, REASON_LOCKED);
	return next(lockf)(fd, cmd, len);
}

WRAP(int, setrlimit, (__rlimit_resource_t what, const struct rlimit *limit))
{
	if (what != RLIMIT_FSIZE)
		return next(setrlimit)(what, limit);
	process_before_limit();
	int r = next(setrlimit)(what, limit);
	if (!r)
		process_after_limit();
	return r;
}

WRAP(int, prlimit, (pid_t pid, __rlimit_resource_t what, const struct rlimit *limit, struct rlimit *old))
{
	if (what != RLIMIT_FSIZE || !limit)
		return next(prlimit)(pid, what, limit, old);
	process_before_limit();
	int r = next(prlimit)(pid, what, limit, old);
	if (!r)
		process_after_limit();
	return r;
}

/* --- looking --- */

static int told(int r, struct stat *st)
{
	if (!r && config.blksize && S_ISREG(st->st_mode))
		st->st_blksize = config.blksize;
	return r;
}

#if __GLIBC_PREREQ(2, 33)
WRAP(int, fstat, (int fd, struct stat *st))
{
	file_drain_path(fd, "", AT_EMPTY_PATH);
	return told(next(fstat)(fd, st), st);
}

WRAP(int, stat, (const char *path, struct stat *st))
{
	file_drain_path(AT_FDCWD, path, 0);
	return told(next(stat)(path, st), st);
}

WRAP(int, lstat, (const char *path, struct stat *st))
{
	file_drain_path(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW);
	return told(next(lstat)(path, st), st);
}

WRAP(int, fstatat, (int dir, const char *path, struct stat *st, int flags))
{
	file_drain_path(dir, path, flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
	return told(next(fstatat)(dir, path, st, flags), st);
}
#endif

WRAP(int, __fxstat, (int version, int fd, struct stat *st))
{
	file_drain_path(fd, "", AT_EMPTY_PATH);
	return told(next(__fxstat)(version, fd, st), st);
}

WRAP(int, __xstat, (int version, const char *path, struct stat *st))
{
	file_drain_path(AT_FDCWD, path, 0);
	return told(next(__xstat)(version, path, st), st);
}

WRAP(int, __lxstat, (int version, const char *path, struct stat *st))
{
	file_drain_path(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW);
	return told(next(__lxstat)(version, path, st), st);
}

WRAP(int, __fxstatat, (int version, int dir, const char *path, struct stat *st, int flags))
{
	file_drain_path(dir, path, flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
	return told(next(__fxstatat)(version, dir, path, st, flags), st);
}

WRAP(int, statfs, (const char *path, struct statfs *st))
{
	file_drain_all();
	return next(statfs)(path, st);
}

WRAP(int, fstatfs, (int fd, struct statfs *st))
{
	file_drain_all();
	return next(fstatfs)(fd, st);
}

WRAP(int, statvfs, (const char *path, struct statvfs *st))
{
	file_drain_all();
	return next(statvfs)(path, st);
}

WRAP(int, fstatvfs, (int fd, struct statvfs *st))
{
	file_drain_all();
	return next(fstatvfs)(fd, st);
}

/* --- streams --- */

WRAP(FILE *, fopen, (const char *path, const char *mode))
{
	file_drain_path(AT_FDCWD, path, 0);
	return opened_stream(next(fopen)(path, mode), path, mode, 0);
}

WRAP(FILE *, freopen, (const char *path, const char *mode, FILE *f))
{
	int e = before_reopen(f);
	return reopened(opened_stream(next(freopen)(path, mode, f), path, mode, 0), e);
}

WRAP(FILE *, tmpfile, (void))
{
	return opened_stream(next(tmpfile)(), NULL, "w+", 0);
}

/* --- 64 bits of time --- */

#if __GLIBC_PREREQ(2, 34)
WRAP(int, __fstat64_time64, (int fd, void *st))
{
	file_drain_path(fd, "", AT_EMPTY_PATH);
	return next(__fstat64_time64)(fd, st);
}

WRAP(int, __stat64_time64, (const char *path, void *st))
{
	file_drain_path(AT_FDCWD, path, 0);
	return next(__stat64_time64)(path, st);
}

WRAP(int, __lstat64_time64, (const char *path, void *st))
{
	file_drain_path(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW);
	return next(__lstat64_time64)(path, st);
}

WRAP(int, __fstatat64_time64, (int dir, const char *path, void *st, int flags))
{
	file_drain_path(dir, path, flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
	return next(__fstatat64_time64)(dir, path, st, flags);
}

WRAP(int, __utime64, (const char *path, const void *t))
{
	file_drain_all();
	return next(__utime64)(path, t);
}

WRAP(int, __utimes64, (const char *path, const void *t))
{
	file_drain_all();
	return next(__utimes64)(path, t);
}

WRAP(int, __lutimes64, (const char *path, const void *t))
{
	file_drain_all();
	return next(__lutimes64)(path, t);
}

WRAP(int, __futimes64, (int fd, const void *t))
{
	file_drain_all();
	return next(__futimes64)(fd, t);
}

WRAP(int, __futimesat64, (int dir, const char *path, const void *t))
{
	file_drain_all();
	return next(__futimesat64)(dir, path, t);
}

WRAP(int, __futimens64, (int fd, const void *t))
{
	file_drain_all();
	return next(__futimens64)(fd, t);
}

WRAP(int, __utimensat64, (int dir, const char *path, const void *t, int flags))
{
	file_drain_all();
	return next(__utimensat64)(dir, path, t, flags);
}

/* Waits, however long: what is held goes out before each. */

WRAP(int, __nanosleep64, (const void *t, void *left))
{
	file_drain_all();
	return waited(next(__nanosleep64)(t, left));
}

WRAP(int, __clock_nanosleep_time64, (clockid_t clock, int flags, const void *t, void *left))
{
	file_drain_all();
	return waited(next(__clock_nanosleep_time64)(clock, flags, t, left));
}

WRAP(int, __select64, (int n, fd_set *r, fd_set *w, fd_set *e, void *t))
{
	file_drain_all();
	return waited(next(__select64)(n, r, w, e, t));
}

WRAP(int, __pselect64, (int n, fd_set *r, fd_set *w, fd_set *e, const void *t, const sigset_t *mask))
{
	file_drain_all();
	return waited(next(__pselect64)(n, r, w, e, t, mask));
}

WRAP(int, __ppoll64, (struct pollfd *fds, nfds_t n, const void *t, const sigset_t *mask))
{
	file_drain_all();
	return waited(next(__ppoll64)(fds, n, t, mask));
}

#if __GLIBC_PREREQ(2, 35)
WRAP(int, __epoll_pwait2_time64, (int fd, struct epoll_event *events, int n, const void *t, const sigset_t *mask))
{
	file_drain_all();
	engine_land();
	return waited(next(__epoll_pwait2_time64)(fd, events, n, t, mask));
}
#endif

WRAP(int, __sigtimedwait64, (const sigset_t *set, siginfo_t *info, const void *t))
{
	file_drain_all();
	engine_land();
	return waited(next(__sigtimedwait64)(set, info, t));
}

WRAP(pid_t, __wait3_time64, (int *status, int options, void *usage))
{
	file_drain_all();
	return waited(next(__wait3_time64)(status, options, usage));
}

WRAP(pid_t, __wait4_time64, (pid_t pid, int *status, int options, void *usage))
{
	file_drain_all();
	return waited(next(__wait4_time64)(pid, status, options, usage));
}

WRAP(ssize_t, __recvmsg64, (int fd, struct msghdr *m, int flags))
{
	ssize_t r = next(__recvmsg64)(fd, m, flags);
	if (r >= 0 && m->msg_controllen)
		received_rights(m);
	return r;
}

WRAP(int, __recvmmsg64, (int fd, struct mmsghdr *m, unsigned int n, int flags, void *t))
{
	int r = next(__recvmmsg64)(fd, m, n, flags, t);
	for (int i = 0; i < r; i++)
		received_rights(&m[i].msg_hdr);
	return r;
}
#endif

#define CALLS CALLS_NARROW
#include "same.h"
#endif
