/*
 * Linux AIO by its system calls (io_setup(2)): no descriptor, and allowed in
 * the default container profiles that forbid io_uring. A context costs some
 * 30 ms when the process ends, so it is made with the first transfer only.
 */
#include <errno.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <string.h>

#include "../sys.h"
#include "engine.h"

#define EVENTS 128

static aio_context_t context;

static int open_context(void)
{
	struct iocb *none = NULL;
	long r = sys(SYS_io_setup, EVENTS, &context);

	if (sys_failed(r))
		return r;
	/* A filter may let a context be made, and not be used. */
	r = sys(SYS_io_submit, context, 0, &none);
	if (sys_failed(r)) {
		sys(SYS_io_destroy, context);
		context = 0;
	}
	return sys_failed(r) ? r : 0;
}

static int submit(struct transfer *t)
{
	struct iocb cb, *list = &cb;
	long r;

	memset(&cb, 0, sizeof(cb));
	cb.aio_lio_opcode = t->write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
	cb.aio_fildes = t->fd;
	cb.aio_buf = (uintptr_t)t->buf;
	cb.aio_nbytes = t->len;
	cb.aio_offset = t->off;
	cb.aio_data = (uintptr_t)t;
	do {
		r = sys(SYS_io_submit, context, 1, &list);
	} while (r == -EINTR);
	return r == 1 ? 0 : r < 0 ? r : -EAGAIN;
}

static void reap(void)
{
	struct io_event events[16];
	long n = sys(SYS_io_getevents, context, 1, 16, events, 0);

	for (long i = 0; i < n; i++)
		engine_done((struct transfer *)(uintptr_t)events[i].data, events[i].res);
}

static void close_context(void)
{
	sys(SYS_io_destroy, context);
	context = 0;
}

/* A context belongs to the memory that it was made in. */
static void forget(void)
{
	context = 0;
}

const struct engine engine_aio = {
	.name = "aio",
	.depth = ENGINE_DEPTH,
	.open = open_context,
	.submit = submit,
	.reap = reap,
	.close = close_context,
	.forget = forget,
};
