/*
 * The descriptor table: two levels, leaves made when needed, nothing sized by
 * RLIMIT_NOFILE. It lives in memory that a child sees as zeros
 * (MADV_WIPEONFORK, Linux 4.14), so that a child of whatever kind (fork,
 * raw clone) finds no descriptor to be ours: it shares the descriptions with
 * its parent, which has put everything into the kernel before.
 *
 * Slots change by atomic exchange: whoever gets a file out of a slot does
 * what is left to do. Files are never unmapped and never lose their change
 * count, so a late look at one that has been reused is harmless.
 */
#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "../real.h"
#include "../sys.h"
#include "config.h"
#include "file.h"
#include "jump.h"
#include "policy.h"
#include "report.h"

#define SLAB  32
#define SLABS 8192

/* Files, and the list of the free ones: file i is followed by link[i] - 1. */
struct slab {
	struct file file[SLAB];
	uint32_t link[SLAB];
};

struct table {
	struct leaf *leaf[FD_ROOT]; /* first: fdtable points here */
	struct slab *slab[SLABS];
	uint64_t unused; /* list of free files: tag << 32 | index + 1 */
	uint32_t made;   /* files ever made */
	int closed;      /* not 0: descriptors are not taken up, a fork is on its way */
	bool live;       /* false in a child */
	struct leaf first_leaf; /* what most programs get by with, in the same memory */
	struct slab first_slab;
};

static struct table *table;
struct leaf **fdtable;

/* The table's memory, in whole pages of whatever size they are: a mapping would cost a call. */
#define PAGE_MOST 65536
static unsigned char room[sizeof(struct table) + 2 * PAGE_MOST];

static void *map_wiped(size_t size)
{
	long p = sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (sys_failed(p))
		return NULL;
	sys(SYS_madvise, p, size, MADV_WIPEONFORK);
	return (void *)p;
}

/* Makes *slot point to zeroed memory of this size, once. */
static void *grow(void **slot, size_t size)
{
	void *seen = __atomic_load_n(slot, __ATOMIC_ACQUIRE), *fresh;

	if (seen)
		return seen;
	fresh = map_wiped((size + PAGE - 1) & ~(size_t)(PAGE - 1));
	if (!fresh)
		return NULL;
	if (__atomic_compare_exchange_n(slot, &seen, fresh, false, __ATOMIC_ACQ_REL,
		    __ATOMIC_ACQUIRE))
		return fresh;
	sys(SYS_munmap, fresh, (size + PAGE - 1) & ~(size_t)(PAGE - 1));
	return seen;
}

void file_lock(struct file *f)
{
	jump_hold(f);
	lock_take(&f->lock);
}

void file_unlock(struct file *f)
{
	lock_drop(&f->lock);
	jump_let();
}

struct file *file_get_locked(int fd)
{
	for (;;) {
		struct file *f = fdtable_peek(fd);

		/* One that is the kernel's has nothing to say, but to the report, or of bytes that were lost. */
		if (!f || file_off)
			return NULL;
		if (file_state(f) == FILE_PASSED && !report_on && !__atomic_load_n(&f->late, __ATOMIC_RELAXED))
			return NULL;
		if (!__libc_single_threaded) {
			file_lock(f);
			if (fdtable_peek(fd) != f) {
				file_unlock(f);
				continue;
			}
		}
		f->fd = fd;
		return f;
	}
}

static struct file *file_at(struct table *t, uint32_t i)
{
	struct slab *s = __atomic_load_n(&t->slab[i / SLAB], __ATOMIC_ACQUIRE);

	return s ? &s->file[i % SLAB] : NULL;
}

static uint32_t *link_at(struct table *t, uint32_t i)
{
	return &t->slab[i / SLAB]->link[i % SLAB];
}

static struct file *file_alloc(struct table *t, uint32_t *index)
{
	uint64_t head = __atomic_load_n(&t->unused, __ATOMIC_ACQUIRE), next;

	while ((uint32_t)head) {
		uint32_t i = (uint32_t)head - 1;

		next = ((head >> 32) + 1) << 32 | __atomic_load_n(link_at(t, i), __ATOMIC_RELAXED);
		if (__atomic_compare_exchange_n(&t->unused, &head, next, false, __ATOMIC_ACQ_REL,
			    __ATOMIC_ACQUIRE)) {
			*index = i;
			return file_at(t, i);
		}
	}
	uint32_t i = __atomic_load_n(&t->made, __ATOMIC_RELAXED);
	do {
		if (i >= SLAB * SLABS || !grow((void **)&t->slab[i / SLAB], sizeof(struct slab)))
			return NULL;
	} while (!__atomic_compare_exchange_n(&t->made, &i, i + 1, false, __ATOMIC_ACQ_REL,
		__ATOMIC_RELAXED));
	*index = i;
	return file_at(t, i);
}

static void file_free(struct table *t, struct file *f)
{
	uint64_t head = __atomic_load_n(&t->unused, __ATOMIC_ACQUIRE), next;
	uint32_t i = f->index;

	do {
		__atomic_store_n(link_at(t, i), (uint32_t)head, __ATOMIC_RELAXED);
		next = ((head >> 32) + 1) << 32 | (i + 1);
	} while (!__atomic_compare_exchange_n(&t->unused, &head, next, false, __ATOMIC_ACQ_REL,
		__ATOMIC_ACQUIRE));
}

static struct table *table_make(void)
{
	uintptr_t page = getauxval(AT_PAGESZ);
	struct table *t = (void *)(((uintptr_t)room + page - 1) & ~(page - 1));

	sys(SYS_madvise, t, (sizeof(*t) + page - 1) & ~(page - 1), MADV_WIPEONFORK);
	__atomic_store_n(&table, t, __ATOMIC_RELEASE);
	return t;
}

static struct table *table_get(void)
{
	static bool known;
	struct table *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

	if (!t)
		t = table_make();
	if (!t->live) {
		/* Made before, and empty: this is a child, and what the parent had is not here. */
		if (known)
			fdtable_forget();
		t->leaf[0] = &t->first_leaf;
		t->slab[0] = &t->first_slab;
		known = t->live = true;
		__atomic_store_n(&fdtable, t->leaf, __ATOMIC_RELEASE);
	}
	return t;
}

void fdtable_check(void)
{
	struct table *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

	if (t && !t->live)
		table_get();
}

void fdtable_pause(int by)
{
	struct table *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

	/* In a child the count has gone back to 0 with the rest. */
	if (t && t->live)
		__atomic_add_fetch(&t->closed, by, __ATOMIC_ACQ_REL);
}

static struct file **slot_make(int fd)
{
	struct table *t = table_get();

	if ((unsigned)fd >= FD_LEAF * FD_ROOT)
		return NULL;
	struct leaf *l = grow((void **)&t->leaf[fd / FD_LEAF], sizeof(struct leaf));
	return l ? &l->slot[fd % FD_LEAF] : NULL;
}

/* Another descriptor of the file than fd, or -1. */
static int other_fd(const struct file *f, int fd)
{
	for (int i = fdtable_next(-1); i >= 0; i = fdtable_next(i))
		if (i != fd && fdtable_peek(i) == f)
			return i;
	return -1;
}

/* Forgets what the slot of fd held. */
static void drop(struct file *f, int fd)
{
	if (!f)
		return;
	if (!__atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL)) {
		file_finish(f);
		file_free(table, f);
	} else if (__libc_single_threaded && f->fd == fd) {
		f->fd = other_fd(f, fd);
	}
}

static void slot_set(int fd, struct file *f)
{
	struct file **s = slot_make(fd);

	if (s)
		drop(__atomic_exchange_n(s, f, __ATOMIC_ACQ_REL), fd);
	else
		drop(f, fd);
}

void fdtable_reset(int fd)
{
	struct file **s = fdtable_slot(fd);

	if (s && *s)
		drop(__atomic_exchange_n(s, NULL, __ATOMIC_ACQ_REL), fd);
}

void fdtable_open(int fd, int flags, const char *path)
{
	uint32_t index;

	if (fd < 0)
		return;
	if (!config.on || file_off || flags & O_PATH ||
		(flags & O_DIRECTORY && (flags & O_TMPFILE) != O_TMPFILE)) {
		fdtable_reset(fd);
		return;
	}
	struct table *t = table_get();
	struct file *f = file_alloc(t, &index);
	if (!f) {
		fdtable_reset(fd);
		return;
	}
	/* From its state on others find it; a thread that came late for what it was before may hold it. */
	if (!__libc_single_threaded)
		file_lock(f);
	file_init(f, fd, flags);
	f->index = index;
	f->reason = policy_flags(flags);
	f->low = fd <= 2;
	file_set_state(f, f->reason ? FILE_PASSED : FILE_FRESH);
	/*
	 * A child that is on its way will have it, too. Both sides change the count,
	 * so that one sees the other: we that it is not 0, or its parent our state.
	 */
	if (!f->reason && __atomic_fetch_add(&t->closed, 0, __ATOMIC_ACQ_REL)) {
		f->reason = REASON_FORKED;
		file_set_state(f, FILE_PASSED);
	}
	f->path = report_path(path);
	report_opened(f);
	file_put(f);
	if ((f->reason || flags & O_TRUNC) && __atomic_load_n(&file_tuned, __ATOMIC_ACQUIRE)) {
		struct quiet q;

		quiet_begin(&q);
		policy_untracked(f);
		quiet_end(&q);
	}
	slot_set(fd, f);
}

void fdtable_dup(int old, int new)
{
	if (new < 0 || old == new)
		return;
	struct file *f = fdtable_peek(old);
	int refs = f ? __atomic_load_n(&f->refs, __ATOMIC_ACQUIRE) : 0;
	/* Not one that another thread's close has just freed. */
	while (refs > 0 && !__atomic_compare_exchange_n(&f->refs, &refs, refs + 1, false,
				   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
	if (refs <= 0) {
		fdtable_reset(new);
		return;
	}
	f->low |= new <= 2;
	slot_set(new, f);
}

/* BLKTUNE_SYNC=close: what this description wrote is on stable storage, or close says why not. */
static int sync_last(const struct file *f, int fd)
{
	if (f->refs > 1 || (f->flags & O_ACCMODE) == O_RDONLY || f->kind == KIND_MEMORY ||
		real.fsync(fd) == 0)
		return 0;
	/* Not what fsync(2) says of things that have none. */
	return errno == EINVAL || errno == EROFS ? 0 : -errno;
}

int fdtable_close(int fd)
{
	struct file **s = fdtable_slot(fd), *f;
	int ret = 0;

	if (!s || !*s)
		return 0;
	f = fdtable_peek(fd);
	bool shared = f && f->refs > 1 && f->state == FILE_TUNED, mine = true;
	if (f && (!__libc_single_threaded || shared || file_holds(f))) {
		struct quiet q;

		quiet_begin(&q);
		lock_take(&f->lock);
		mine = fdtable_peek(fd) == f;
		if (mine) {
			bool last = __atomic_load_n(&f->refs, __ATOMIC_ACQUIRE) == 1;

			ret = last ? file_close(f) : file_settle(f);
			if (!last && f->fd == fd)
				f->fd = other_fd(f, fd);
			/* Whoever waits for the file finds it gone. */
			__atomic_store_n(s, NULL, __ATOMIC_RELEASE);
		}
		lock_drop(&f->lock);
		quiet_end(&q);
	} else {
		__atomic_store_n(s, NULL, __ATOMIC_RELEASE);
	}
	if (!mine) /* another thread's close was first, and its next file has the number */
		return fdtable_close(fd);
	if (config.sync_close && f && !ret)
		ret = sync_last(f, fd);
	drop(f, fd);
	return ret;
}

bool fdtable_idle(struct file *f)
{
	uint8_t fresh = FILE_FRESH;

	if (!__libc_single_threaded || f->refs > 1 || file_holds(f) || config.sync_close)
		return false;
	__atomic_compare_exchange_n(&f->state, &fresh, FILE_PASSED, false, __ATOMIC_ACQ_REL,
		__ATOMIC_ACQUIRE);
	return f->state == FILE_PASSED;
}

int fdtable_next(int fd)
{
	struct table *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

	for (unsigned i = fd + 1; t && i < FD_LEAF * FD_ROOT;) {
		struct leaf *l = __atomic_load_n(&t->leaf[i / FD_LEAF], __ATOMIC_ACQUIRE);

		if (!l)
			i = (i / FD_LEAF + 1) * FD_LEAF;
		else if (l->slot[i % FD_LEAF])
			return i;
		else
			i++;
	}
	return -1;
}

bool fdtable_nth(uint32_t i, struct file **f)
{
	struct table *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

	if (!t || !t->live || i >= __atomic_load_n(&t->made, __ATOMIC_ACQUIRE))
		return false;
	*f = file_at(t, i);
	return true;
}

void fdtable_each(void (*f)(struct file *, void *), void *arg)
{
	struct file *at;
	struct quiet q;
	bool quiet = __atomic_load_n(&file_tuned, __ATOMIC_ACQUIRE) || !__libc_single_threaded;

	if (!fdtable_nth(0, &at))
		return;
	if (quiet)
		quiet_begin(&q);
	for (uint32_t i = 0; fdtable_nth(i, &at); i++) {
		if (!at || file_state(at) == FILE_FREE)
			continue;
		lock_take(&at->lock);
		if (at->state != FILE_FREE && at->refs > 0)
			f(at, arg);
		lock_drop(&at->lock);
	}
	if (quiet)
		quiet_end(&q);
}
