/* Calls that open a file by its name. */
#include <stdlib.h>

#include "../core/report.h"
#include "twins.h"
#include "wrap.h"

void before_open(int dir, const char *path, int flags)
{
	if (flags & O_TRUNC && __atomic_load_n(&file_dirty, __ATOMIC_ACQUIRE))
		file_drain_path(dir, path, 0);
}

int opened(int fd, int flags, const char *path)
{
	int error = errno;

	if (fd >= 0)
		fdtable_open(fd, flags, path);
	errno = error;
	return fd;
}

int opened_at(int dir, int fd, int flags, const char *path)
{
	return opened(fd, flags, fd >= 0 ? report_path_at(dir, path) : path);
}

WRAP(int, open64, (const char *path, int flags, ...))
{
	va_list ap;

	va_start(ap, flags);
	int mode = has_mode(flags) ? va_arg(ap, int) : 0;
	va_end(ap);
	before_open(AT_FDCWD, path, flags);
	return opened(real.open64(path, flags, mode), flags | O_LARGEFILE, path);
}

WRAP(int, openat64, (int dir, const char *path, int flags, ...))
{
	va_list ap;

	va_start(ap, flags);
	int mode = has_mode(flags) ? va_arg(ap, int) : 0;
	va_end(ap);
	before_open(dir, path, flags);
	return opened_at(dir, real.openat64(dir, path, flags, mode), flags | O_LARGEFILE, path);
}

WRAP(int, __open64_2, (const char *path, int flags))
{
	before_open(AT_FDCWD, path, flags);
	return opened(real.__open64_2(path, flags), flags | O_LARGEFILE, path);
}

WRAP(int, __openat64_2, (int dir, const char *path, int flags))
{
	before_open(dir, path, flags);
	return opened_at(dir, real.__openat64_2(dir, path, flags), flags | O_LARGEFILE, path);
}

WRAP(int, creat64, (const char *path, mode_t mode))
{
	int flags = O_CREAT | O_WRONLY | O_TRUNC;

	before_open(AT_FDCWD, path, flags);
	return opened(real.creat64(path, mode), flags | O_LARGEFILE, path);
}

WRAP(int, mkstemp64, (char *template))
{
	return opened(next(mkstemp64)(template), O_RDWR | O_CREAT | O_EXCL | O_LARGEFILE, template);
}

WRAP(int, mkostemp64, (char *template, int flags))
{
	return opened(next(mkostemp64)(template, flags), flags | O_RDWR | O_CREAT | O_LARGEFILE, template);
}

WRAP(int, mkstemps64, (char *template, int suffix))
{
	return opened(next(mkstemps64)(template, suffix), O_RDWR | O_CREAT | O_EXCL | O_LARGEFILE, template);
}

WRAP(int, mkostemps64, (char *template, int suffix, int flags))
{
	int fd = next(mkostemps64)(template, suffix, flags);

	return opened(fd, flags | O_RDWR | O_CREAT | O_LARGEFILE, template);
}

WRAP(int, open_by_handle_at, (int mount, struct file_handle *handle, int flags))
{
	if (flags & O_TRUNC)
		file_drain_all();
	return opened(next(open_by_handle_at)(mount, handle, flags), flags, NULL);
}

#if __GLIBC_PREREQ(2, 43)
WRAP(int, openat2, (int dir, const char *path, struct open_how *how, size_t size))
{
	before_open(dir, path, how->flags);
	return opened_at(dir, next(openat2)(dir, path, how, size), how->flags, path);
}
#endif

#define CALLS CALLS_OPEN
#include "same.h"
