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

enum fs place_fs(uint32_t magic)
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

bool place_shares(uint32_t magic)
{
	return magic == BTRFS_SUPER_MAGIC || magic == XFS_SUPER_MAGIC ||
	       magic == BCACHEFS_SUPER_MAGIC || magic == OVERLAYFS_SUPER_MAGIC;
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

/* Is the number in mountinfo? */
static bool mounted(uint64_t rdev)
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
	return found;
}

struct dirent64 {
	uint64_t ino, off;
	unsigned short len;
	unsigned char type;
	char name[];
};

typedef bool entry_test(const char *dir, const char *name, const char *arg);

/* Does the test hold for an entry of a directory? True, too, when that cannot be read. */
static bool any_entry(const char *dir, entry_test *test, const char *arg)
{
	char entries[2048] __attribute__((aligned(8)));
	int fd = sys(SYS_openat, AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found = false;
	long n;

	if (fd < 0)
		return true;
	while (!found && (n = sys(SYS_getdents64, fd, entries, sizeof(entries))) > 0)
		for (long at = 0; at < n && !found;) {
			struct dirent64 *e = (struct dirent64 *)(entries + at);

			found = e->name[0] != '.' && test(dir, e->name, arg);
			at += e->len;
		}
	sys(SYS_close, fd);
	return found;
}

static bool is_there(const char *dir, const char *name, const char *arg)
{
	(void)dir;
	(void)name;
	(void)arg;
	return true;
}

/* A mounted btrfs lists its devices by name; mountinfo has a number of its own for it. */
static bool has_device(const char *dir, const char *name, const char *device)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/%s/devices/%s", dir, name, device);
	return !sys_failed(sys(SYS_faccessat, AT_FDCWD, path, F_OK));
}

bool place_in_use(uint64_t rdev)
{
	char path[80], link[300];
	long n;

	if (mounted(rdev))
		return true;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/holders", major(rdev), minor(rdev));
	if (any_entry(path, is_there, NULL))
		return true;
	*strrchr(path, '/') = 0;
	n = sys(SYS_readlinkat, AT_FDCWD, path, link, sizeof(link) - 1);
	if (sys_failed(n))
		return true;
	link[n] = 0;
	const char *device = strrchr(link, '/') ? strrchr(link, '/') + 1 : link;
	return !sys_failed(sys(SYS_faccessat, AT_FDCWD, "/sys/fs/btrfs", F_OK)) &&
	       any_entry("/sys/fs/btrfs", has_device, device);
}
