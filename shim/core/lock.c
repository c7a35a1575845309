#include <linux/futex.h>

#include "../sys.h"
#include "lock.h"

static __thread uint32_t self_tid __attribute__((tls_model("initial-exec")));

uint32_t lock_self(void)
{
	if (!self_tid)
		self_tid = sys(SYS_gettid);
	return self_tid;
}

void lock_forget_self(void)
{
	self_tid = 0;
}

void lock_wait(struct lock *l, uint32_t self)
{
	for (;;) {
		uint32_t seen = __atomic_load_n(&l->owner, __ATOMIC_RELAXED);

		if (!seen) {
			/* Others may wait too: take it with the bit set and let drop wake them. */
			if (__atomic_compare_exchange_n(&l->owner, &seen, self | LOCK_WAITERS,
				    false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
				return;
			continue;
		}
		if (seen & LOCK_WAITERS ||
			__atomic_compare_exchange_n(&l->owner, &seen, seen | LOCK_WAITERS, false,
				__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			sys(SYS_futex, &l->owner, FUTEX_WAIT_PRIVATE, seen | LOCK_WAITERS, 0);
	}
}

void lock_wake(struct lock *l)
{
	sys(SYS_futex, &l->owner, FUTEX_WAKE_PRIVATE, 1);
}
