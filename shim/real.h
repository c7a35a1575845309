/*
 * The next library's entry points. Only these may be called for intercepted
 * names. Those that a program may need before any constructor has run start
 * as raw system calls (real.c), so that allocators and constructors of other
 * libraries find them working from the first instruction; real_init()
 * replaces them by what the next library in the search order has.
 */
#ifndef REAL_H
#define REAL_H

#include "calls.h"

struct real {
#define CALLS CALLS_ALL
#define CALL(type, name, parameters) type(*name) parameters;
#define SAME(alias, name)
#include "calls.def"
#undef CALLS
#undef CALL
#undef SAME
};

extern struct real real;

/*
 * next(f): the next library's f, also for calls without a raw system call
 * behind them, which are looked up at their first use when that comes before
 * the constructor. A name that the library lacks answers -1 with ENOSYS.
 */
#define next(f) (real.f ? real.f : (real_find((void **)&real.f), real.f))

/* Looks all entry points up; called once, by the constructor. */
void real_init(void);
void real_find(void **slot);
/* A symbol of the next library that is not in the list, or NULL. */
void *real_symbol(const char *name);

#endif
