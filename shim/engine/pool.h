/*
 * Page-aligned buffers for transfers: whole pages, anonymous memory that a
 * child does not inherit (MADV_DONTFORK, open(2) NOTES on O_DIRECT and fork),
 * bounded by BLKTUNE_MEMORY. Sizes are rounded up to a power of two from
 * 4 KiB on. Memory given back is kept mapped, so that a reader that a signal
 * interrupted may still touch it; its pages go back to the kernel beyond a
 * small reserve.
 */
#ifndef POOL_H
#define POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A buffer of at least size bytes (1 to 64 MiB), or NULL: over the cap, or no
 * memory. touch: all of it will be filled, so its pages are made now; btrfs
 * falls back to the page cache for a direct read into pages that are not there.
 */
void *pool_get(size_t size, bool touch);
void pool_put(void *buffer, size_t size);
/* The size that pool_get makes of a request. */
size_t pool_size(size_t size);
/* Bytes handed out now. */
uint64_t pool_used(void);
/* In a child: the buffers were not inherited. */
void pool_forget(void);

#endif
