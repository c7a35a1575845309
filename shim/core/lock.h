/*
 * A lock that knows its owner, so that a signal handler that comes in on top
 * of its own thread's operation passes instead of waiting for itself. While
 * the process has one thread no atomic operation is spent on it.
 *
 * Order, outermost first: classify (policy.c); a file's lock (file.h; two
 * files only by trying the second); the leaf locks (pool, report, engine).
 */
#ifndef LOCK_H
#define LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/single_threaded.h>

struct lock {
	uint32_t owner; /* thread id, 0 free; bit 31: somebody waits in futex(2) */
	uint32_t depth; /* entries of the owner on top of its own */
};

#define LOCK_WAITERS 0x80000000u
#define LOCK_ALONE   0x40000000u /* the owner while there is one thread; no thread's id */

/* This thread's id, asked from the kernel once a thread. */
uint32_t lock_self(void);
void lock_wait(struct lock *l, uint32_t self);
void lock_wake(struct lock *l);

static inline bool lock_try(struct lock *l)
{
	uint32_t self, free = 0;

	if (__libc_single_threaded) {
		l->depth += l->owner != 0;
		l->owner = LOCK_ALONE;
		return true;
	}
	self = lock_self();
	if (__atomic_compare_exchange_n(&l->owner, &free, self, false, __ATOMIC_ACQUIRE,
		    __ATOMIC_RELAXED))
		return true;
	if ((free & ~LOCK_WAITERS) != self)
		return false;
	l->depth++;
	return true;
}

static inline void lock_take(struct lock *l)
{
	if (!lock_try(l))
		lock_wait(l, lock_self());
}

static inline void lock_drop(struct lock *l)
{
	if (l->depth) {
		l->depth--;
		return;
	}
	if (__libc_single_threaded) {
		l->owner = 0;
		return;
	}
	if (__atomic_exchange_n(&l->owner, 0, __ATOMIC_RELEASE) & LOCK_WAITERS)
		lock_wake(l);
}

/* Is it this thread's? */
static inline bool lock_mine(const struct lock *l)
{
	return (__atomic_load_n(&l->owner, __ATOMIC_RELAXED) & ~LOCK_WAITERS) == lock_self();
}

/* In a child: whoever held it stayed in the parent. */
static inline void lock_reset(struct lock *l)
{
	l->owner = l->depth = 0;
}

/* Forgets the cached thread id: the caller has become another thread (fork). */
void lock_forget_self(void);

#endif
