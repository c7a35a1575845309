/* Calls that look at a file or its filesystem: they find what is pending. */
#include "../core/config.h"
#include "wrap.h"

/* The file that a directory descriptor and an empty or a real path name. */
static void look(int dir, const char *path, int flags)
{
	if (!__atomic_load_n(&file_dirty, __ATOMIC_ACQUIRE))
		return;
	file_drain_path(dir, path, flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
}

#if __GLIBC_PREREQ(2, 33)
WRAP(int, fstat64, (int fd, struct stat64 *st))
{
	look(fd, "", AT_EMPTY_PATH);
	return file_told(real.fstat64(fd, st), st);
}

WRAP(int, stat64, (const char *path, struct stat64 *st))
{
	look(AT_FDCWD, path, 0);
	return file_told(real.stat64(path, st), st);
}

WRAP(int, lstat64, (const char *path, struct stat64 *st))
{
	look(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW);
	return file_told(real.lstat64(path, st), st);
}

WRAP(int, fstatat64, (int dir, const char *path, struct stat64 *st, int flags))
{
	look(dir, path, flags);
	return file_told(real.fstatat64(dir, path, st, flags), st);
}
#endif

WRAP(int, __fxstat64, (int version, int fd, struct stat64 *st))
{
	look(fd, "", AT_EMPTY_PATH);
	return file_told(next(__fxstat64)(version, fd, st), st);
}

WRAP(int, __xstat64, (int version, const char *path, struct stat64 *st))
{
	look(AT_FDCWD, path, 0);
	return file_told(next(__xstat64)(version, path, st), st);
}

WRAP(int, __lxstat64, (int version, const char *path, struct stat64 *st))
{
	look(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW);
	return file_told(next(__lxstat64)(version, path, st), st);
}

WRAP(int, __fxstatat64, (int version, int dir, const char *path, struct stat64 *st, int flags))
{
	look(dir, path, flags);
	return file_told(next(__fxstatat64)(version, dir, path, st, flags), st);
}

WRAP(int, statx, (int dir, const char *path, int flags, unsigned int mask, struct statx *st))
{
	look(dir, path ? path : "", path ? flags : flags | AT_EMPTY_PATH);
	int r = next(statx)(dir, path, flags, mask, st);
	if (!r && config.blksize && st->stx_mask & STATX_TYPE && S_ISREG(st->stx_mode))
		st->stx_blksize = config.blksize;
	return r;
}

WRAP(int, statfs64, (const char *path, struct statfs64 *st))
{
	file_drain_all();
	return next(statfs64)(path, st);
}

WRAP(int, fstatfs64, (int fd, struct statfs64 *st))
{
	file_drain_all();
	return next(fstatfs64)(fd, st);
}

WRAP(int, statvfs64, (const char *path, struct statvfs64 *st))
{
	file_drain_all();
	return next(statvfs64)(path, st);
}

WRAP(int, fstatvfs64, (int fd, struct statvfs64 *st))
{
	file_drain_all();
	return next(fstatvfs64)(fd, st);
}

#define CALLS CALLS_STAT
#include "same.h"
