/* Calls that move data inside the kernel, map it, or hand it to another queue. */
#include <sys/mman.h>

#include "../core/pump.h"
#include "wrap.h"

WRAP(ssize_t, copy_file_range, (int from, off64_t *from_off, int to, off64_t *to_off, size_t n, unsigned int flags))
{
	ssize_t r = from_off || to_off || flags ? pump_not(from, to) : pump(from, NULL, to, n, 1);
	if (r != PUMP_NOT)
		return edge(r);
	r = next(copy_file_range)(from, from_off, to, to_off, n, flags);
	pump_after(from, to, r);
	return r;
}

WRAP(ssize_t, sendfile64, (int to, int from, off64_t *off, size_t n))
{
	ssize_t r = pump(from, off, to, n, 0);
	if (r != PUMP_NOT)
		return edge(r);
	r = next(sendfile64)(to, from, off, n);
	pump_after(from, to, r);
	return r;
}

WRAP(ssize_t, splice, (int from, off64_t *from_off, int to, off64_t *to_off, size_t n, unsigned int flags))
{
	ssize_t r = pump_not(from, to);
	if (r != PUMP_NOT)
		return edge(r);
	r = next(splice)(from, from_off, to, to_off, n, flags);
	pump_after(from, to, r);
	return r;
}

WRAP(ssize_t, tee, (int from, int to, size_t n, unsigned int flags))
{
	file_drain_all();
	return next(tee)(from, to, n, flags);
}

WRAP(ssize_t, vmsplice, (int fd, const struct iovec *v, size_t n, unsigned int flags))
{
	file_drain_all();
	return next(vmsplice)(fd, v, n, flags);
}

/* Allocators map anonymous memory from anywhere: nothing is touched for that. */
WRAP(void *, mmap64, (void *addr, size_t len, int prot, int flags, int fd, off64_t off))
{
	if (!(flags & MAP_ANONYMOUS) && fd >= 0)
		file_release_inode(fd, REASON_MAPPED);
	return real.mmap64(addr, len, prot, flags, fd, off);
}

/* POSIX aio works behind our back from here on. */

WRAP(int, aio_read64, (struct aiocb64 *cb))
{
	file_release_fd(cb->aio_fildes, REASON_AIO);
	return next(aio_read64)(cb);
}

WRAP(int, aio_write64, (struct aiocb64 *cb))
{
	file_release_fd(cb->aio_fildes, REASON_AIO);
	return next(aio_write64)(cb);
}

WRAP(int, aio_fsync64, (int op, struct aiocb64 *cb))
{
	file_release_fd(cb->aio_fildes, REASON_AIO);
	return next(aio_fsync64)(op, cb);
}

WRAP(int, lio_listio64, (int mode, struct aiocb64 *const *list, int n, struct sigevent *event))
{
	for (int i = 0; i < n; i++)
		if (list[i])
			file_release_fd(list[i]->aio_fildes, REASON_AIO);
	return next(lio_listio64)(mode, list, n, event);
}

#define CALLS CALLS_COPY
#include "same.h"
