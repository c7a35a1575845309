/*
 * What a place in the file tree is good for: the rules that do not depend on
 * the file's use. The library decides by them, and `blktune --probe` tells.
 */
#ifndef PLACE_H
#define PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"

/* What a filesystem is good for. */
enum fs {
	FS_NONE,   /* not a disk's: left alone */
	FS_CACHED, /* in memory: worth larger transfers in buffered mode only */
	FS_ASK,    /* direct if statx says so (overlay: as its layers) */
	FS_DIRECT, /* direct, unless statx says that it is not meant */
	FS_BTRFS,  /* direct reads; writes of checksummed data are buffered in disguise */
};

/* What statx says of direct I/O on a file. */
struct dio {
	bool told;       /* it says anything at all */
	uint32_t memory; /* alignments, bytes; 0: accepted but not direct */
	uint32_t offset;
	uint64_t mount;  /* id of the mount, 0 not known */
};

#define PLACE_ALIGN 4096 /* the least alignment that is used, whatever is allowed */

/* By the magic number of statfs(2). */
enum fs place_fs(uint32_t magic);
/* Can it share blocks between files? FICLONERANGE answers for the rest: xfs may be made without. */
bool place_shares(uint32_t magic);
/* path "" asks about the descriptor. */
void place_dio(int fd, const char *path, struct dio *dio);
/* Of file offset and length: what statx says and the logical sector size, where known. */
uint32_t place_align(const struct dio *dio, uint32_t sector);
/* May O_DIRECT be used, in this direction? */
bool place_direct(enum fs fs, const struct dio *dio, bool write);
/* Or is the file left alone? */
bool place_tuned(enum fs fs, const struct dio *dio, enum mode mode);
/*
 * Is a block device mounted or a part of something (md, dm)? Direct reads
 * would miss what its filesystem has in memory. Yes when it cannot be seen.
 * Read from /proc and /sys: opening the device with O_EXCL would tell, too,
 * but claims it for an instant in which somebody's mount may fail.
 */
bool place_in_use(uint64_t rdev);

#endif
