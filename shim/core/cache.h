/* The page cache: what of a file is in it, and transfers that leave it as it was. */
#ifndef CACHE_H
#define CACHE_H

#include "file.h"

enum resident { RESIDENT_NONE, RESIDENT_PART, RESIDENT_ALL, RESIDENT_UNKNOWN };

/* How much of [low, high), bytes, is in the cache (cachestat(2), Linux 6.5; else mincore(2)). */
enum resident cache_resident(const struct file *f, off64_t low, off64_t high);
/* For BLKTUNE_HOT=cache: is a transfer of [low, high) to be a copy out of the cache? */
bool cache_hot(const struct file *f, off64_t low, off64_t high);
/*
 * One buffered transfer whose pages do not stay (RWF_DONTCACHE, Linux 6.14 on
 * ext4 and xfs; else written out and dropped behind), but for pages that were
 * cached before. As preadv2(2) and pwritev2(2): bytes, or -errno.
 */
ssize_t cache_read(struct file *f, void *buf, size_t n, off64_t off);
ssize_t cache_write(struct file *f, const void *buf, size_t n, off64_t off);
/* Waits for the last window that was written behind, and drops it. 0 or -errno. */
int cache_finish(struct file *f);

#endif
