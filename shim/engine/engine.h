/*
 * Transfers between a buffer of the pool and a file. One interface, carried
 * out synchronously (sync.c) or in flight (uring.c, aio.c).
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct transfer {
	void *buf;      /* page aligned for O_DIRECT */
	size_t len;     /* bytes */
	off64_t off;    /* file offset, bytes */
	ssize_t res;    /* when no longer busy: bytes moved, or -errno */
	int fd;
	bool write;
	bool busy;      /* in flight: buf belongs to the kernel */
};

/* Starts a transfer. It may be over on return (busy false). Never fails by itself. */
void engine_start(struct transfer *t);
/* Waits until this one is over: bytes moved, or -errno. Returns at once when it is. */
ssize_t engine_wait(struct transfer *t);
/* Transfers that one file may usefully have in flight at once: 1 means synchronous. */
int engine_depth(void);
/* "uring", "aio" or "sync": what carries transfers out now. */
const char *engine_name(void);
/* Nothing may be in flight: gives the kernel's side back (before unshare, seccomp ...). */
void engine_close(void);
/* In a child: the kernel's side stayed with the parent. */
void engine_forget(void);
/* Is this descriptor the engine's own? */
bool engine_owns(int fd);

#endif
