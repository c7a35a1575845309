#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../sys.h"
#include "place.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#ifndef BCACHEFS_SUPER_MAGIC
#define BCACHEFS_SUPER_MAGIC 0xca451a4e
#endif

/*
 * statx as the kernel has it: libc's structure ends before the fields on
 * direct I/O (Linux 6.1, STATX_DIOALIGN). statx(2).
 */
#define DIOALIGN 0x2000u
#define MNT_ID 0x1000u
struct kernel_statx {
	uint32_t mask, blksize;
	uint64_t attributes;
	uint32_t nlink, uid, gid;
	uint16_t mode, pad;
	uint64_t ino, size, blocks, attributes_mask;
	uint64_t times[8];
	uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
	uint64_t mnt_id;
	uint32_t dio_mem_align, dio_offset_align;
	uint64_t spare[12];
};
_Static_assert(sizeof(struct kernel_statx) == 256, "statx(2)");
_Static_assert(__builtin_offsetof(struct kernel_statx, dio_offset_align) == 156, "statx(2)");

enum fs place_fs(long magic)
{
	switch (magic) {
	case EXT4_SUPER_MAGIC: /* ext2 and ext3 too */
	case XFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
		return FS_DIRECT;
	case BTRFS_SUPER_MAGIC:
		return FS_BTRFS;
	case OVERLAYFS_SUPER_MAGIC:
	case BCACHEFS_SUPER_MAGIC:
		return FS_ASK;
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
		return FS_CACHED;
	default:
		return FS_NONE;
	}
}

void place_dio(int fd, const char *path, struct dio *dio)
{
	struct kernel_statx st;

	memset(dio, 0, sizeof(*dio));
	if (sys_failed(sys(SYS_statx, fd, path, *path ? 0 : AT_EMPTY_PATH, DIOALIGN | MNT_ID, &st)))
		return;
	if (st.mask & MNT_ID)
		dio->mount = st.mnt_id;
	if (!(st.mask & DIOALIGN))
		return;
	dio->told = true;
	dio->memory = st.dio_mem_align;
	dio->offset = st.dio_offset_align;
}

uint32_t place_align(const struct dio *dio, uint32_t sector)
{
	uint32_t align = sector > PLACE_ALIGN ? sector : PLACE_ALIGN;

	return dio->told && dio->offset > align ? dio->offset : align;
}

bool place_direct(enum fs fs, const struct dio *dio, bool write)
{
	switch (fs) {
	case FS_ASK:
		return dio->told && dio->offset;
	case FS_BTRFS:
		return !write && (!dio->told || dio->offset);
	case FS_DIRECT:
		/* 0: encrypted, journalled or inline data. */
		return !dio->told || dio->offset;
	default:
		return false;
	}
}

bool place_tuned(enum fs fs, const struct dio *dio, enum mode mode)
{
	if (fs == FS_NONE)
		return false;
	if (fs == FS_CACHED)
		return mode == MODE_BUFFERED;
	return mode != MODE_DIRECT || place_direct(fs, dio, false);
}

/* Is the number in mountinfo, or has the device holders? */
static bool listed(uint64_t rdev)
{
	char text[4096], want[32];
	int n = snprintf(want, sizeof(want), " %u:%u ", major(rdev), minor(rdev));
	size_t kept = 0;
	bool found = false;

	int fd = sys(SYS_openat, AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	for (;;) {
		ssize_t r = sys(SYS_read, fd, text + kept, sizeof(text) - 1 - kept);

		if (r <= 0)
			break;
		kept += r;
		text[kept] = 0;
		found |= strstr(text, want) != NULL;
		size_t tail = kept < (size_t)n ? kept : (size_t)n;
		memmove(text, text + kept - tail, tail);
		kept = tail;
	}
	sys(SYS_close, fd);
	if (found)
		return true;
	snprintf(text, sizeof(text), "/sys/dev/block/%u:%u/holders", major(rdev), minor(rdev));
	fd = sys(SYS_openat, AT_FDCWD, text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return true;
	char entries[1024] __attribute__((aligned(8)));
	ssize_t r = sys(SYS_getdents64, fd, entries, sizeof(entries));
	sys(SYS_close, fd);
	/* "." and ".." take 24 bytes each */
	return r > 48;
}

bool place_in_use(int fd, uint64_t rdev)
{
	char name[32];
	long r;

	/*
	 * The kernel knows: with O_EXCL it refuses a device that a filesystem,
	 * swap, md or dm has claimed, also by way of a partition, and also where
	 * mountinfo has another number (btrfs). It is claimed for an instant.
	 */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	r = sys(SYS_openat, AT_FDCWD, name, O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC);
	if (r == -EBUSY)
		return true;
	if (sys_failed(r))
		return listed(rdev);
	sys(SYS_close, r);
	return false;
}
