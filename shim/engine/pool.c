#include <linux/mman.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "../core/config.h"
#include "../core/lock.h"
#include "../sys.h"
#include "pool.h"

#define PAGE_SHIFT 12
#define CLASSES    15 /* 4 KiB to 64 MiB */
#define RESERVE    (8 << 20)

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
	long p = sys(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return sys_failed(p) ? NULL : (void *)p;
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

void *pool_get(size_t size)
{
	int c = class_of(size);
	void *buffer = NULL;

	size = pool_size(size);
	lock_take(&lock);
	if (used + size > config.memory)
		goto out;
	struct spare *s = spare[c];
	if (s) {
		buffer = s->buffer;
		resident -= s->resident ? size : 0;
		spare[c] = s->next;
		s->next = unused;
		unused = s;
	} else {
		buffer = map(size);
		if (buffer)
			sys(SYS_madvise, buffer, size, MADV_DONTFORK);
	}
	if (buffer)
		used += size;
out:
	lock_drop(&lock);
	return buffer;
}

void pool_put(void *buffer, size_t size)
{
	if (!buffer)
		return;
	int c = class_of(size);

	size = pool_size(size);
	lock_take(&lock);
	used -= size;
	struct spare *s = link_get();
	if (s) {
		s->buffer = buffer;
		s->resident = resident + size <= RESERVE;
		if (s->resident)
			resident += size;
		s->next = spare[c];
		spare[c] = s;
	}
	/* Without a link the buffer is lost to the pool, not its pages. */
	if (!s || !s->resident)
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
