/* Calls that change a file's size, attributes or names, or put it on the disk. */
#include "twins.h"
#include "wrap.h"

/* A later flush would undo the stamp (a write sets the time, clears setuid and capabilities). */
static void before_stamp(void)
{
	file_drain_all();
}

void before_change(int fd)
{
	file_settle_fd(fd);
	file_settle_path(fd, "", AT_EMPTY_PATH);
}

WRAP(int, ftruncate64, (int fd, off64_t len))
{
	before_change(fd);
	int r = real.ftruncate64(fd, len);
	file_resized(fd, "", AT_EMPTY_PATH, r ? -1 : len);
	return r;
}

WRAP(int, truncate64, (const char *path, off64_t len))
{
	file_settle_path(AT_FDCWD, path, 0);
	int r = next(truncate64)(path, len);
	file_resized(AT_FDCWD, path, 0, r ? -1 : len);
	return r;
}

WRAP(int, fallocate64, (int fd, int mode, off64_t off, off64_t len))
{
	before_change(fd);
	int r = next(fallocate64)(fd, mode, off, len);
	file_resized(fd, "", AT_EMPTY_PATH, -1);
	return r;
}

WRAP(int, posix_fallocate64, (int fd, off64_t off, off64_t len))
{
	before_change(fd);
	int r = next(posix_fallocate64)(fd, off, len);
	file_resized(fd, "", AT_EMPTY_PATH, -1);
	return r;
}

/* Advice on the cache says nothing about data; only DONTNEED wants it written. */
WRAP(int, posix_fadvise64, (int fd, off64_t off, off64_t len, int advice))
{
	if (advice == POSIX_FADV_DONTNEED)
		file_drain_fd(fd);
	return next(posix_fadvise64)(fd, off, len, advice);
}

WRAP(ssize_t, readahead, (int fd, off64_t off, size_t n))
{
	file_drain_fd(fd);
	return next(readahead)(fd, off, n);
}

/* The call itself also on error: what the kernel has is to be on the disk. */
static int flush(int fd)
{
	int e = file_flush_fd(fd);

	file_drain_path(fd, "", AT_EMPTY_PATH);
	return e;
}

WRAP(int, fsync, (int fd))
{
	int e = flush(fd);
	int r = real.fsync(fd);
	return e ? edge(e) : r;
}

WRAP(int, fdatasync, (int fd))
{
	int e = flush(fd);
	int r = real.fdatasync(fd);
	return e ? edge(e) : r;
}

WRAP(void, sync, (void))
{
	file_drain_all();
	next(sync)();
}

WRAP(int, syncfs, (int fd))
{
	file_drain_all();
	return next(syncfs)(fd);
}

WRAP(int, sync_file_range, (int fd, off64_t off, off64_t n, unsigned int flags))
{
	int e = flush(fd);
	int r = next(sync_file_range)(fd, off, n, flags);
	return e ? edge(e) : r;
}

WRAP(int, msync, (void *addr, size_t len, int flags))
{
	file_drain_all();
	return next(msync)(addr, len, flags);
}

WRAP(int, fchmod, (int fd, mode_t mode))
{
	before_stamp();
	return next(fchmod)(fd, mode);
}

WRAP(int, chmod, (const char *path, mode_t mode))
{
	before_stamp();
	return next(chmod)(path, mode);
}

WRAP(int, fchmodat, (int dir, const char *path, mode_t mode, int flags))
{
	before_stamp();
	return next(fchmodat)(dir, path, mode, flags);
}

WRAP(int, fchown, (int fd, uid_t uid, gid_t gid))
{
	before_stamp();
	return next(fchown)(fd, uid, gid);
}

WRAP(int, chown, (const char *path, uid_t uid, gid_t gid))
{
	before_stamp();
	return next(chown)(path, uid, gid);
}

WRAP(int, lchown, (const char *path, uid_t uid, gid_t gid))
{
	before_stamp();
	return next(lchown)(path, uid, gid);
}

WRAP(int, fchownat, (int dir, const char *path, uid_t uid, gid_t gid, int flags))
{
	before_stamp();
	return next(fchownat)(dir, path, uid, gid, flags);
}

WRAP(int, utime, (const char *path, const struct utimbuf *t))
{
	before_stamp();
	return next(utime)(path, t);
}

WRAP(int, utimes, (const char *path, const struct timeval *t))
{
	before_stamp();
	return next(utimes)(path, t);
}

WRAP(int, lutimes, (const char *path, const struct timeval *t))
{
	before_stamp();
	return next(lutimes)(path, t);
}

WRAP(int, futimes, (int fd, const struct timeval *t))
{
	before_stamp();
	return next(futimes)(fd, t);
}

WRAP(int, futimesat, (int dir, const char *path, const struct timeval *t))
{
	before_stamp();
	return next(futimesat)(dir, path, t);
}

WRAP(int, futimens, (int fd, const struct timespec *t))
{
	before_stamp();
	return next(futimens)(fd, t);
}

WRAP(int, utimensat, (int dir, const char *path, const struct timespec *t, int flags))
{
	before_stamp();
	return next(utimensat)(dir, path, t, flags);
}

WRAP(int, setxattr, (const char *path, const char *name, const void *v, size_t n, int flags))
{
	before_stamp();
	return next(setxattr)(path, name, v, n, flags);
}

WRAP(int, lsetxattr, (const char *path, const char *name, const void *v, size_t n, int flags))
{
	before_stamp();
	return next(lsetxattr)(path, name, v, n, flags);
}

WRAP(int, fsetxattr, (int fd, const char *name, const void *v, size_t n, int flags))
{
	before_stamp();
	return next(fsetxattr)(fd, name, v, n, flags);
}

WRAP(int, removexattr, (const char *path, const char *name))
{
	before_stamp();
	return next(removexattr)(path, name);
}

WRAP(int, lremovexattr, (const char *path, const char *name))
{
	before_stamp();
	return next(lremovexattr)(path, name);
}

WRAP(int, fremovexattr, (int fd, const char *name))
{
	before_stamp();
	return next(fremovexattr)(fd, name);
}

/* Names: whoever finds a file under its new name finds all of it. */

WRAP(int, rename, (const char *from, const char *to))
{
	file_drain_all();
	return next(rename)(from, to);
}

WRAP(int, renameat, (int dir, const char *from, int to_dir, const char *to))
{
	file_drain_all();
	return next(renameat)(dir, from, to_dir, to);
}

WRAP(int, renameat2, (int dir, const char *from, int to_dir, const char *to, unsigned int flags))
{
	file_drain_all();
	return next(renameat2)(dir, from, to_dir, to, flags);
}

WRAP(int, link, (const char *from, const char *to))
{
	file_drain_all();
	return next(link)(from, to);
}

WRAP(int, linkat, (int dir, const char *from, int to_dir, const char *to, int flags))
{
	file_drain_all();
	return next(linkat)(dir, from, to_dir, to, flags);
}

WRAP(int, unlink, (const char *path))
{
	file_drain_all();
	return next(unlink)(path);
}

WRAP(int, unlinkat, (int dir, const char *path, int flags))
{
	file_drain_all();
	return next(unlinkat)(dir, path, flags);
}

WRAP(int, remove, (const char *path))
{
	file_drain_all();
	return next(remove)(path);
}

#define CALLS CALLS_META
#include "same.h"
