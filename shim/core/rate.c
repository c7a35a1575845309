#include <errno.h>
#include <time.h>

#include "../sys.h"
#include "file.h"
#include "rate.h"

/*
 * What a program that falls behind may catch up on: without any credit each
 * oversleep and each slow transfer would be lost; with this much the rate over
 * 10 s is at most 2.5 % too high.
 */
#define CREDIT_NS 250000000ULL

/*
 * A program that reads much in one call and then writes it in one call catches
 * up on that in the second: a copy takes its time once. Of the last call; atomic.
 */
static uint64_t credit = CREDIT_NS;

/* When what was moved will have been worth its time, monotonic ns; atomic. */
static uint64_t due[2];
static uint64_t first; /* when the first transfer was over; atomic, 0: not yet */
static uint64_t slept; /* atomic */

static uint64_t cost_of(size_t bytes)
{
	return (double)bytes / config.rate * 1e9;
}

void rate_call(size_t n)
{
	uint64_t cost = n < SIZE_MAX / 2 ? cost_of(n) : 0;

	__atomic_store_n(&credit, cost > CREDIT_NS ? cost : CREDIT_NS, __ATOMIC_RELAXED);
}

void rate_charge(bool write, size_t bytes)
{
	uint64_t cost = cost_of(bytes), most = __atomic_load_n(&credit, __ATOMIC_RELAXED);
	uint64_t now = clock_exact(), none = 0, old, from;

	__atomic_compare_exchange_n(&first, &none, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	old = __atomic_load_n(&due[write], __ATOMIC_ACQUIRE);
	do {
		/* Nobody has credit from before the first transfer. */
		from = old ? old : first;
		if (now - from > most && from < now)
			from = now - most;
	} while (!__atomic_compare_exchange_n(&due[write], &old, from + cost, false,
		__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

static uint64_t latest(void)
{
	uint64_t r = __atomic_load_n(&due[0], __ATOMIC_ACQUIRE);
	uint64_t w = __atomic_load_n(&due[1], __ATOMIC_ACQUIRE);

	return r > w ? r : w;
}

bool rate_owes(void)
{
	return config.rate && latest() > clock_exact();
}

void rate_sleep(void)
{
	uint64_t until = latest(), now = clock_exact();
	struct timespec t = {until / 1000000000, until % 1000000000};

	if (until <= now)
		return;
	__atomic_add_fetch(&slept, until - now, __ATOMIC_RELAXED);
	/* The coarse clock's view of it: this is not a rest that the program took. */
	uint64_t began = clock_coarse();
	while (sys(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0) == -EINTR)
		;
	__atomic_add_fetch(&file_waited, clock_coarse() - began, __ATOMIC_RELAXED);
}

uint64_t rate_slept(void)
{
	return __atomic_load_n(&slept, __ATOMIC_RELAXED);
}

void rate_forget(void)
{
	due[0] = due[1] = first = slept = 0;
}
