/* One transfer at a time, by pread and pwrite. */
#include <errno.h>

#include "../real.h"
#include "engine.h"

void engine_start(struct transfer *t)
{
	do {
		t->res = t->write ? real.pwrite64(t->fd, t->buf, t->len, t->off)
				  : real.pread64(t->fd, t->buf, t->len, t->off);
	} while (t->res < 0 && errno == EINTR);
	if (t->res < 0)
		t->res = -errno;
	t->busy = false;
}

ssize_t engine_wait(struct transfer *t)
{
	return t->res;
}

int engine_depth(void)
{
	return 1;
}

const char *engine_name(void)
{
	return "sync";
}

void engine_close(void)
{
}

void engine_forget(void)
{
}

bool engine_owns(int fd)
{
	(void)fd;
	return false;
}
