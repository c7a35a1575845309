/* Calls that move data or the offset. */
#include <unistd.h>

#include "../core/pass.h"
#include "wrap.h"

/* A call on what is, or was, a file of ours: away from the short way for all others. */
#define OURS(type, name, parameters) __attribute__((noinline)) static type ours_##name parameters

OURS(ssize_t, read, (int fd, void *buf, size_t n))
{
	struct file *f = file_enter(fd);
	if (!f)
		return pass_read(fd, buf, n);
	ssize_t r = file_read(f, buf, n);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, read, (int fd, void *buf, size_t n))
{
	return fdtable_peek(fd) ? ours_read(fd, buf, n) : pass_read(fd, buf, n);
}

WRAP(ssize_t, __read_chk, (int fd, void *buf, size_t n, size_t size))
{
	struct file *f = n <= size ? file_enter(fd) : NULL;
	if (!f)
		return real.__read_chk(fd, buf, n, size);
	ssize_t r = file_read(f, buf, n);
	file_put(f);
	return edge(r);
}

OURS(ssize_t, write, (int fd, const void *buf, size_t n))
{
	struct file *f = file_enter(fd);
	if (!f)
		return pass_write(fd, buf, n);
	ssize_t r = file_write(f, buf, n);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, write, (int fd, const void *buf, size_t n))
{
	return fdtable_peek(fd) ? ours_write(fd, buf, n) : pass_write(fd, buf, n);
}

WRAP(ssize_t, pread64, (int fd, void *buf, size_t n, off64_t off))
{
	struct file *f = file_enter(fd);
	if (!f)
		return real.pread64(fd, buf, n, off);
	ssize_t r = file_pread(f, buf, n, off);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, __pread64_chk, (int fd, void *buf, size_t n, off64_t off, size_t size))
{
	struct file *f = n <= size ? file_enter(fd) : NULL;
	if (!f)
		return real.__pread64_chk(fd, buf, n, off, size);
	ssize_t r = file_pread(f, buf, n, off);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, pwrite64, (int fd, const void *buf, size_t n, off64_t off))
{
	struct file *f = file_enter(fd);
	if (!f)
		return real.pwrite64(fd, buf, n, off);
	ssize_t r = file_pwrite(f, buf, n, off);
	file_put(f);
	return edge(r);
}

OURS(ssize_t, readv, (int fd, const struct iovec *v, int n))
{
	struct file *f = file_enter(fd);
	if (!f)
		return pass_readv(fd, v, n);
	ssize_t r = file_readv(f, v, n);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, readv, (int fd, const struct iovec *v, int n))
{
	return fdtable_peek(fd) ? ours_readv(fd, v, n) : pass_readv(fd, v, n);
}

OURS(ssize_t, writev, (int fd, const struct iovec *v, int n))
{
	struct file *f = file_enter(fd);
	if (!f)
		return pass_writev(fd, v, n);
	ssize_t r = file_writev(f, v, n);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, writev, (int fd, const struct iovec *v, int n))
{
	return fdtable_peek(fd) ? ours_writev(fd, v, n) : pass_writev(fd, v, n);
}

/* An offset of -1 is an error here, and the position in the calls with flags. */
WRAP(ssize_t, preadv64, (int fd, const struct iovec *v, int n, off64_t off))
{
	struct file *f = off < 0 ? NULL : file_enter(fd);
	if (!f)
		return next(preadv64)(fd, v, n, off);
	ssize_t r = file_preadv(f, v, n, off, 0);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, pwritev64, (int fd, const struct iovec *v, int n, off64_t off))
{
	struct file *f = off < 0 ? NULL : file_enter(fd);
	if (!f)
		return next(pwritev64)(fd, v, n, off);
	ssize_t r = file_pwritev(f, v, n, off, 0);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, preadv64v2, (int fd, const struct iovec *v, int n, off64_t off, int flags))
{
	struct file *f = file_enter(fd);
	if (!f)
		return next(preadv64v2)(fd, v, n, off, flags);
	ssize_t r = file_preadv(f, v, n, off, flags);
	file_put(f);
	return edge(r);
}

WRAP(ssize_t, pwritev64v2, (int fd, const struct iovec *v, int n, off64_t off, int flags))
{
	struct file *f = file_enter(fd);
	if (!f)
		return next(pwritev64v2)(fd, v, n, off, flags);
	ssize_t r = file_pwritev(f, v, n, off, flags);
	file_put(f);
	return edge(r);
}

WRAP(off64_t, lseek64, (int fd, off64_t off, int whence))
{
	if (whence > SEEK_CUR) /* the end, data and holes are the kernel's to find */
		file_drain_path(fd, "", AT_EMPTY_PATH);
	struct file *f = file_get(fd);
	if (!f)
		return real.lseek64(fd, off, whence);
	off64_t r = file_seek(f, off, whence);
	file_put(f);
	return edge(r);
}

#define CALLS CALLS_IO
#include "same.h"
