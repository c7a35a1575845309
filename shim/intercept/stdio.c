/*
 * Calls that make and end streams. Their bytes come to core/stream.c; where
 * streams are libc's alone, a descriptor is handed over when a stream is made
 * of it, and known afterwards only so that a second description of the same
 * file is recognised.
 */
#include <string.h>

#include "../core/config.h"
#include "../core/stream.h"
#include "twins.h"
#include "wrap.h"

/* open(2) flags of an fopen mode, as far as they matter here. */
static int flags_of(const char *mode)
{
	int flags = strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;

	return flags | (*mode == 'a' ? O_APPEND : *mode == 'w' ? O_TRUNC : 0);
}

/* Is it a file whose bytes are worth the way through here? Most streams are not. */
static bool bulk(int fd, int flags)
{
	struct stat64 st;

	if (stream_taken())
		return true;
	if (real.fstat64(fd, &st) || !(S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)))
		return false;
	return flags != O_RDONLY || S_ISBLK(st.st_mode) || st.st_size >= (off64_t)config.min;
}

FILE *opened_stream(FILE *f, const char *path, const char *mode, int large)
{
	int error = errno;

	if (f && fileno(f) >= 0) {
		int fd = fileno(f), flags = flags_of(mode) | large;

		fdtable_open(fd, flags, path);
		if (strchr(mode, 'm')) /* libc maps it, where it can */
			file_release_fd(fd, REASON_MAPPED);
		else if (fdtable_peek(fd) && !bulk(fd, flags))
			file_release_fd(fd, REASON_SMALL);
		else if (fdtable_peek(fd) && !stream_take())
			file_release_fd(fd, REASON_STDIO);
	}
	errno = error;
	return f;
}

WRAP(FILE *, fopen64, (const char *path, const char *mode))
{
	/* It may be cut, and its end looked for, inside. */
	file_drain_path(AT_FDCWD, path, 0);
	return opened_stream(next(fopen64)(path, mode), path, mode, O_LARGEFILE);
}

int before_reopen(FILE *f)
{
	int e = 0;

	if (fileno(f) >= 0) {
		/* Where it was read, too, libc leaves the offset at what the program has had. */
		fflush(f);
		e = fdtable_close(fileno(f));
	}
	file_drain_all();
	return e;
}

/* Lost bytes are said as a stream that could not be opened, for want of a later call. */
FILE *reopened(FILE *f, int e)
{
	if (!e || !f)
		return f;
	fdtable_close(fileno(f));
	next(fclose)(f);
	errno = -e;
	return NULL;
}

WRAP(FILE *, freopen64, (const char *path, const char *mode, FILE *f))
{
	int e = before_reopen(f);
	return reopened(opened_stream(next(freopen64)(path, mode, f), path, mode, O_LARGEFILE), e);
}

WRAP(FILE *, tmpfile64, (void))
{
	return opened_stream(next(tmpfile64)(), NULL, "w+", O_LARGEFILE);
}

/* Appending sets O_APPEND inside. */
WRAP(FILE *, fdopen, (int fd, const char *mode))
{
	if (*mode == 'a' || (fdtable_peek(fd) && !stream_take()))
		file_release_fd(fd, *mode == 'a' ? REASON_APPEND : REASON_STDIO);
	else
		file_settle_fd(fd);
	return next(fdopen)(fd, mode);
}

/* Where it is libc's the slot is cleared before: afterwards the number may be another thread's. */
WRAP(int, fclose, (FILE *f))
{
	bool ours = stream_taken() || !f || fileno(f) < 0;
	int e = ours ? 0 : fdtable_close(fileno(f));
	int r = next(fclose)(f);
	return e && !r ? edge(e) : r;
}

WRAP(int, fcloseall, (void))
{
	/* It flushes, and leaves the descriptors open. */
	int r = next(fcloseall)();
	file_settle_all();
	return r;
}

WRAP(DIR *, fdopendir, (int fd))
{
	DIR *d = next(fdopendir)(fd);
	if (d)
		fdtable_reset(fd);
	return d;
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
