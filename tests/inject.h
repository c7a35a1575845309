/*
 * Included before each source of the library (-include) to build one whose
 * raw system calls and completions go through inject.c.
 */
#ifndef INJECT_H
#define INJECT_H

#include "shim/engine/engine.h"
#include "shim/sys.h"

long inject_sys(long nr, long a, long b, long c, long d, long e, long f);
ssize_t inject_result(const struct transfer *t, ssize_t res);

#undef SYS_ARG_
#define SYS_ARG_(nr, a, b, c, d, e, f, ...)                                                        \
	inject_sys(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define engine_done(t, res) engine_done(t, inject_result(t, res))

#endif
