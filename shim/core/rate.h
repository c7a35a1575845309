/*
 * BLKTUNE_RATE: how fast the transfers of tuned files may go. Each direction
 * has an account that is charged when a transfer is over; the debt is slept
 * off at the end of the program's call, where nothing is locked and signals
 * arrive. So a copy is limited once, not twice.
 */
#ifndef RATE_H
#define RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"

/* The program begins a call of so many bytes. */
void rate_call(size_t n);
/* A transfer of so many bytes is over. */
void rate_charge(bool write, size_t bytes);
/* Is there a debt? Then nothing more is started than what the program waits for. */
bool rate_owes(void);
/* Sleeps the debt off. Restarted after a signal, whose handler has run by then. */
void rate_sleep(void);
/* What rate_sleep was asked to sleep in all, ns. */
uint64_t rate_slept(void);
/* In a child: a budget of its own. */
void rate_forget(void);

/* At the end of a call that may have made transfers; no lock of ours is held. */
static inline void rate_pay(void)
{
	if (__builtin_expect(config.rate != 0, 0))
		rate_sleep();
}

#endif
