#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "../real.h"
#include "../sys.h"
#include "cache.h"
#include "config.h"

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x80
#endif
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

struct range {
	uint64_t off, len;
};

struct residency {
	uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

/*
 * Before Linux 6.5: mincore(2) on a mapping that is there for this only. It
 * tells the truth to the file's owner and to root, and calls all resident else.
 * (preadv2 with RWF_NOWAIT would tell, too, but starts to read ahead.)
 */
static enum resident by_mincore(const struct file *f, off64_t low, off64_t high)
{
	unsigned char in_core[256];
	const off64_t page = page_size();
	size_t pages, there = 0;
	struct stat64 st;
	long uid = sys(SYS_GETEUID), map;

	if (sys_failed(sys(SYS_FSTAT, f->fd, &st)) || (uid && uid != (long)st.st_uid))
		return RESIDENT_UNKNOWN;
	low = low / page * page;
	pages = (high - low + page - 1) / page;
	map = sys_mmap(NULL, pages * page, PROT_READ, MAP_SHARED, f->fd, low);
	if (sys_failed(map))
		return RESIDENT_UNKNOWN;
	for (size_t at = 0; at < pages; at += sizeof(in_core)) {
		size_t n = pages - at < sizeof(in_core) ? pages - at : sizeof(in_core);

		if (sys_failed(sys(SYS_mincore, map + at * page, n * page, in_core)))
			break;
		for (size_t i = 0; i < n; i++)
			there += in_core[i] & 1;
	}
	sys(SYS_munmap, map, pages * page);
	return !there ? RESIDENT_NONE : there == pages ? RESIDENT_ALL : RESIDENT_PART;
}

enum resident cache_resident(const struct file *f, off64_t low, off64_t high)
{
	const off64_t page = page_size();
	struct range range = {low, high - low};
	struct residency r;

	if (low >= high)
		return RESIDENT_NONE;
	if (sys_failed(sys(SYS_cachestat, f->fd, &range, &r, 0)))
		return by_mincore(f, low, high);
	if (!r.cached)
		return RESIDENT_NONE;
	/* Pages that the range touches. */
	uint64_t pages = (high + page - 1) / page - low / page;
	return r.cached >= pages ? RESIDENT_ALL : RESIDENT_PART;
}

bool cache_hot(const struct file *f, off64_t low, off64_t high)
{
	if (!config.hot_cache || f->kind == KIND_MEMORY)
		return false;
	if (high > f->size)
		high = f->size;
	return cache_resident(f, low, high) == RESIDENT_ALL;
}

/* Whole pages of [low, high): a page that is only touched may hold somebody else's bytes. */
static void drop(const struct file *f, off64_t low, off64_t high)
{
	const off64_t page = page_size();

	low = (low + page - 1) / page * page;
	if (high < f->size)
		high = high / page * page;
	if (high > low)
		next(posix_fadvise64)(f->fd, low, high - low, POSIX_FADV_DONTNEED);
}

ssize_t cache_read(struct file *f, void *buf, size_t n, off64_t off)
{
	struct iovec v = {buf, n};
	ssize_t r;

	if (!f->plain_only) {
		r = next(preadv64v2)(f->fd, &v, 1, off, RWF_DONTCACHE);
		if (r >= 0)
			return r;
		if (errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS)
			return -errno;
		f->plain_only = true;
		/* The kernel's own read-ahead would make the next blocks look cached before. */
		f->was_cold = cache_resident(f, 0, f->size) == RESIDENT_NONE;
	}
	bool spare = !f->was_cold && cache_resident(f, off, off + n) != RESIDENT_NONE;
	r = real.pread64(f->fd, buf, n, off);
	if (r > 0 && !spare)
		drop(f, off, off + r);
	return r < 0 ? -errno : r;
}

int cache_finish(struct file *f)
{
	off64_t low = f->behind_low, n = f->behind_high - low;
	int e = 0;

	if (n <= 0)
		return 0;
	if (next(sync_file_range)(f->fd, low, n,
		    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
			    SYNC_FILE_RANGE_WAIT_AFTER) < 0)
		e = errno == ENOSYS || errno == EINVAL || errno == ESPIPE ? 0 : -errno;
	if (!f->behind_keep)
		drop(f, low, low + n);
	f->behind_low = f->behind_high = 0;
	return e;
}

/*
 * The window before the last is waited for and dropped, the last is only
 * started: the disk is kept busy, and dirty pages stay few.
 */
static void push(struct file *f, off64_t off, ssize_t n, bool keep)
{
	int e = cache_finish(f);

	if (e) /* The kernel says this once: keep it for the program. */
		file_set_late(f, e);
	next(sync_file_range)(f->fd, off, n, SYNC_FILE_RANGE_WRITE);
	f->behind_low = off;
	f->behind_high = off + n;
	f->behind_keep = keep;
}

ssize_t cache_write(struct file *f, const void *buf, size_t n, off64_t off)
{
	struct iovec v = {(void *)buf, n};
	ssize_t r;

	if (!f->plain_only) {
		r = next(pwritev64v2)(f->fd, &v, 1, off, RWF_DONTCACHE);
		if (r >= 0)
			return r;
		if (errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS)
			return -errno;
		f->plain_only = true;
	}
	enum resident before = off >= f->size ? RESIDENT_NONE : cache_resident(f, off, off + n);
	r = real.pwrite64(f->fd, buf, n, off);
	if (r < 0)
		return -errno;
	/* Small leftovers are not worth a wait. */
	if (r >= (ssize_t)config.min)
		push(f, off, r, before != RESIDENT_NONE);
	return r;
}
