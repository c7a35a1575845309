/*
 * Transfers between a buffer of the pool and a file. One interface; behind it
 * one of three implementations, chosen at the first transfer that is started
 * (BLKTUNE_ENGINE): io_uring, Linux AIO, or plain pread and pwrite.
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
	bool busy;      /* in flight: buf belongs to the kernel; atomic */
};

/* Carries a transfer out and waits for it: bytes moved, or -errno. */
ssize_t engine_do(struct transfer *t);
/* Starts a transfer. It may be over on return (busy false). Never fails by itself. */
void engine_start(struct transfer *t);
/* Waits until this one is over: bytes moved, or -errno. Returns at once when it is. */
ssize_t engine_wait(struct transfer *t);
/*
 * Transfers that one file may usefully have in flight: 1 means one at a time.
 * Chooses the implementation when that has not happened.
 */
int engine_depth(void);
/* "uring", "aio" or "sync": what carried transfers out; "none": there were none to start. */
const char *engine_name(void);
/* Nothing is in flight: gives the kernel's side back (before unshare, seccomp, exit). */
void engine_close(void);
/*
 * Before epoll_wait(2) or sigtimedwait(2): what is in flight lands. A completion
 * of io_uring's is taken in by the thread that submitted it, which is woken for
 * that as for a signal (TIF_NOTIFY_SIGNAL); other calls are restarted then, these
 * would return EINTR.
 */
void engine_land(void);
/* Has the kernel made threads of its own for us? */
bool engine_had_workers(void);
/* In a child: the kernel's side stayed with the parent. */
void engine_forget(void);

/* --- for the implementations --- */

/*
 * The default depth. Cold dd bs=512 of 1 GiB, ext4 on virtio, 2 CPUs, Linux
 * 6.18, blocks of 1 MiB, ms, median of 7 alternating runs (least, most): depth
 * 2: 390 (330, 718), 4: 356 (300, 527), 6: 348 (320, 421), 8: 390 (330, 443);
 * blocks of 512 KiB at depth 8: 342 (315, 390). fio, 1 MiB x 8: 440.
 */
#define ENGINE_DEPTH 6

struct engine {
	const char *name;
	int depth;
	/* 0, or -errno: not here (EPERM, ENOSYS, ENOMEM under RLIMIT_MEMLOCK 0 alike). */
	int (*open)(void);
	/* 0, or -errno: not started. Calls do not overlap. */
	int (*submit)(struct transfer *t);
	/* Takes in what is over, waiting for at least one. Calls do not overlap, but with submit. */
	void (*reap)(void);
	void (*close)(void);
	/* In a child. */
	void (*forget)(void);
};

extern const struct engine engine_uring, engine_aio, engine_sync;

/* Transfers in flight; atomic. */
extern int engine_flying;

/* Is it in flight still? Whoever takes it in may be another thread. */
static inline bool engine_busy(const struct transfer *t)
{
	return __atomic_load_n(&t->busy, __ATOMIC_ACQUIRE);
}

/* A transfer is over. */
static inline void engine_done(struct transfer *t, ssize_t res)
{
	__atomic_sub_fetch(&engine_flying, 1, __ATOMIC_ACQ_REL);
	t->res = res;
	__atomic_store_n(&t->busy, false, __ATOMIC_RELEASE);
}

#endif
