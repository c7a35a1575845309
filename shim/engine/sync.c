/* One transfer at a time, by pread and pwrite. */
#include <errno.h>

#include "../real.h"
#include "engine.h"

ssize_t engine_do(struct transfer *t)
{
	do {
		t->res = t->write ? real.pwrite64(t->fd, t->buf, t->len, t->off)
				  : real.pread64(t->fd, t->buf, t->len, t->off);
	} while (t->res < 0 && errno == EINTR);
	if (t->res < 0)
		t->res = -errno;
	t->busy = false;
	return t->res;
}

static int submit(struct transfer *t)
{
	engine_done(t, engine_do(t));
	return 0;
}

static int nothing(void)
{
	return 0;
}

static void nothing_to_do(void)
{
}

const struct engine engine_sync = {
	.name = "sync",
	.depth = 1,
	.open = nothing,
	.submit = submit,
	.reap = nothing_to_do,
	.close = nothing_to_do,
	.forget = nothing_to_do,
};
