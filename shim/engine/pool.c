#include <linux/mman.h>
#include <sys/mman.h>

#include "../core/config.h"
#include "../core/lock.h"
#include "../sys.h"
#include "pool.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define PAGE_SHIFT 12
#define CLASSES    15 /* 4 KiB to 64 MiB */
#define RESERVE    (24 << 20) /* bytes of free buffers that keep their pages */

/*
 * Lists of free buffers by size; the links stand beside the buffers, not in
 * them, since their pages may be given back to the kernel.
 */
struct spare {
	void *buffer;
	struct spare *next;
	bool resident;
};

/* Guards all below. Innermost: nothing else is taken under it; signals are blocked. */
static struct lock lock;
static struct spare *spare[CLASSES];
static struct spare *unused;
static uint64_t used, resident;

static int class_of(size_t size)
{
	int c = 0;

	while ((size_t)1 << (PAGE_SHIFT + c) < size)
		c++;
	return c;
}

size_t pool_size(size_t size)
{
	return (size_t)1 << (PAGE_SHIFT + class_of(size));
}

uint64_t pool_used(void)
{
	return __atomic_load_n(&used, __ATOMIC_RELAXED);
}

static void *map(size_t size)
{
	long p = sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return sys_failed(p) ? NULL : (void *)p;
}

#define HUGE  (2 << 20)
#define LARGE (256 << 10) /* for less, the zeroing of a huge page costs more than it gains */

/*
 * Large buffers lie in huge pages where the kernel gives some: a transfer is
 * then one segment, not 256 of which a request takes 128, and the throttle of
 * the blkio cgroup charges the rest of a request that was split a second time.
 */
static void *map_large(size_t size)
{
	size_t whole = size < HUGE ? HUGE : size;
	char *p = map(whole + HUGE), *at;

	if (!p)
		return NULL;
	at = (char *)(((uintptr_t)p + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	if (at > p)
		sys(SYS_munmap, p, at - p);
	sys(SYS_munmap, at + whole, p + HUGE - at);
	sys(SYS_madvise, at, whole, MADV_HUGEPAGE);
	sys(SYS_madvise, at, whole, MADV_DONTFORK);
	return at;
}

static struct spare *link_get(void)
{
	if (!unused) {
		struct spare *s = map(4096);

		if (!s)
			return NULL;
		for (size_t i = 0; i < 4096 / sizeof(*s); i++) {
			s[i].next = unused;
			unused = &s[i];
		}
	}
	struct spare *s = unused;
	unused = s->next;
	return s;
}

/* Puts a buffer into its list: 0 when there is no link for it. */
static bool keep(void *buffer, int c, bool there)
{
	struct spare *s = link_get();

	if (!s)
		return false;
	*s = (struct spare){.buffer = buffer, .next = spare[c], .resident = there};
	spare[c] = s;
	return true;
}

static void *fresh(int c, size_t size)
{
	char *buffer = size < LARGE ? NULL : map_large(size);

	if (buffer) {
		/* The rest of the huge page is for the next ones. */
		for (size_t at = HUGE; at > size; at -= size)
			keep(buffer + at - size, c, false);
		return buffer;
	}
	buffer = map(size);
	if (buffer)
		sys(SYS_madvise, buffer, size, MADV_DONTFORK);
	return buffer;
}

/* Free buffers give their pages back until so many bytes more fit under the cap. */
static void make_room(size_t size)
{
	for (int c = CLASSES - 1; c >= 0; c--)
		for (struct spare *s = spare[c]; s && used + size + resident > config.memory; s = s->next) {
			if (!s->resident)
				continue;
			sys(SYS_madvise, s->buffer, (size_t)1 << (PAGE_SHIFT + c), MADV_DONTNEED);
			s->resident = false;
			resident -= (size_t)1 << (PAGE_SHIFT + c);
		}
}

void *pool_get(size_t size, bool touch)
{
	int c = class_of(size);
	void *buffer = NULL;
	bool there = false;

	size = pool_size(size);
	lock_take(&lock);
	if (used + size > config.memory)
		goto out;
	struct spare *s = spare[c];
	if (s) {
		buffer = s->buffer;
		there = s->resident;
		resident -= there ? size : 0;
		spare[c] = s->next;
		s->next = unused;
		unused = s;
	} else {
		buffer = fresh(c, size);
	}
	if (buffer) {
		__atomic_store_n(&used, used + size, __ATOMIC_RELAXED);
		if (used + resident > config.memory)
			make_room(0);
	}
out:
	lock_drop(&lock);
	if (buffer && touch && !there)
		sys(SYS_madvise, buffer, size, MADV_POPULATE_WRITE);
	return buffer;
}

void pool_put(void *buffer, size_t size)
{
	if (!buffer)
		return;
	int c = class_of(size);

	size = pool_size(size);
	lock_take(&lock);
	__atomic_store_n(&used, used - size, __ATOMIC_RELAXED);
	bool there = resident + size <= RESERVE && used + resident + size <= config.memory;
	/* Without a link the buffer is lost to the pool, not its pages. */
	there = keep(buffer, c, there) && there;
	if (there)
		resident += size;
	else
		sys(SYS_madvise, buffer, size, MADV_DONTNEED);
	lock_drop(&lock);
}

void pool_forget(void)
{
	for (int c = 0; c < CLASSES; c++)
		spare[c] = NULL;
	used = resident = 0;
	lock_reset(&lock);
}
