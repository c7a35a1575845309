/*
 * How an exported wrapper is written. It has a name of its own in C and the
 * intercepted one by asm label, so that libc's headers, fortified inlines and
 * large-file redirections never clash with it.
 */
#ifndef WRAP_H
#define WRAP_H

#include <errno.h>

#include "../core/file.h"
#include "../real.h"

#define EXPORT __attribute__((visibility("default"), used))
#define WRAP(type, name, parameters)                                                               \
	EXPORT type wrap_##name parameters __asm__(#name);                                         \
	type wrap_##name parameters

/* The one place where -errno becomes errno. */
static inline off64_t edge(off64_t r)
{
	if (r >= 0)
		return r;
	errno = -r;
	return -1;
}

/* A mode was passed only with these flags; O_TMPFILE contains O_DIRECTORY (open(2)). */
static inline bool has_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

#endif
