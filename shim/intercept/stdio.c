/*
 * stdio reads, writes and closes inside libc. A stream's descriptor belongs to
 * libc: it is handed over when a stream is made of it, and known afterwards
 * only so that a second description of the same file is recognised.
 */
#include <string.h>

#include "wrap.h"

/* open(2) flags of an fopen mode, as far as they matter here. */
static int flags_of(const char *mode)
{
	int flags = strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;

	return flags | (*mode == 'a' ? O_APPEND : 0);
}

static FILE *opened(FILE *f, const char *path, const char *mode)
{
	int error = errno;

	if (f && fileno(f) >= 0) {
		fdtable_open(fileno(f), flags_of(mode), path);
		file_release_fd(fileno(f), REASON_STDIO);
		/* Another description of the same file is not ours alone any more. */
		file_stream_fd(fileno(f));
	}
	errno = error;
	return f;
}

WRAP(FILE *, fopen64, (const char *path, const char *mode))
{
	/* It may be cut, and its end looked for, inside. */
	file_drain_path(AT_FDCWD, path, 0);
	return opened(next(fopen64)(path, mode), path, mode);
}

WRAP(FILE *, freopen64, (const char *path, const char *mode, FILE *f))
{
	if (fileno(f) >= 0)
		fdtable_close(fileno(f));
	file_drain_all();
	return opened(next(freopen64)(path, mode, f), path, mode);
}

WRAP(FILE *, tmpfile64, (void))
{
	return opened(next(tmpfile64)(), NULL, "w+");
}

WRAP(FILE *, fdopen, (int fd, const char *mode))
{
	file_release_fd(fd, REASON_STDIO);
	return next(fdopen)(fd, mode);
}

/* The slot is cleared before: afterwards the number may be another thread's. */
WRAP(int, fclose, (FILE *f))
{
	int e = f && fileno(f) >= 0 ? fdtable_close(fileno(f)) : 0;
	int r = next(fclose)(f);
	return e && !r ? edge(e) : r;
}

WRAP(int, fcloseall, (void))
{
	file_settle_all();
	return next(fcloseall)();
}

WRAP(DIR *, fdopendir, (int fd))
{
	fdtable_close(fd);
	return next(fdopendir)(fd);
}

/* dprintf writes inside libc. */

WRAP(int, dprintf, (int fd, const char *format, ...))
{
	va_list ap;

	if (edge(file_lend_fd(fd)))
		return -1;
	va_start(ap, format);
	int r = next(vdprintf)(fd, format, ap);
	va_end(ap);
	file_take_back_fd(fd);
	return r;
}

WRAP(int, vdprintf, (int fd, const char *format, va_list ap))
{
	if (edge(file_lend_fd(fd)))
		return -1;
	int r = next(vdprintf)(fd, format, ap);
	file_take_back_fd(fd);
	return r;
}

WRAP(int, __dprintf_chk, (int fd, int flag, const char *format, ...))
{
	va_list ap;

	if (edge(file_lend_fd(fd)))
		return -1;
	va_start(ap, format);
	int r = next(__vdprintf_chk)(fd, flag, format, ap);
	va_end(ap);
	file_take_back_fd(fd);
	return r;
}

WRAP(int, __vdprintf_chk, (int fd, int flag, const char *format, va_list ap))
{
	if (edge(file_lend_fd(fd)))
		return -1;
	int r = next(__vdprintf_chk)(fd, flag, format, ap);
	file_take_back_fd(fd);
	return r;
}

#define CALLS CALLS_STDIO
#include "same.h"
