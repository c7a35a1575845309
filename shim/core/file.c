/* Life of a file: drain, settle, release. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "../engine/pool.h"
#include "../real.h"
#include "../sys.h"
#include "cache.h"
#include "config.h"
#include "file.h"
#include "jump.h"
#include "policy.h"
#include "progress.h"
#include "rate.h"
#include "reader.h"
#include "report.h"
#include "writer.h"

int file_dirty, file_tuned, file_unheld;
uint64_t file_dirty_at, file_epoch;
bool file_forked;
uint64_t file_waited;
bool file_off, file_ending;

/* All signals but those that a faulting instruction raises. */
#define BLOCKED                                                                                    \
	(~(1ULL << (SIGSEGV - 1) | 1ULL << (SIGBUS - 1) | 1ULL << (SIGFPE - 1) |                    \
		1ULL << (SIGILL - 1) | 1ULL << (SIGTRAP - 1) | 1ULL << (SIGSYS - 1)))

void quiet_begin(struct quiet *q)
{
	uint64_t blocked = BLOCKED;

	q->error = errno;
	q->cancel = -1;
	q->at = clock_coarse();
	sys(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, &q->mask, sizeof(q->mask));
	if (!__libc_single_threaded)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &q->cancel);
}

void quiet_end(const struct quiet *q)
{
	__atomic_add_fetch(&file_waited, clock_coarse() - q->at, __ATOMIC_RELAXED);
	if (q->cancel >= 0)
		pthread_setcancelstate(q->cancel, NULL);
	sys(SYS_rt_sigprocmask, SIG_SETMASK, &q->mask, 0, sizeof(q->mask));
	errno = q->error;
}

uint64_t clock_coarse(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

uint64_t clock_exact(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

void file_init(struct file *f, int fd, int flags)
{
	const size_t lock = offsetof(struct file, lock), after = lock + sizeof(f->lock);
	struct block *ahead = f->ahead;
	uint64_t cur = f->cur;

	/* Around the lock: a thread that came late may hold it. */
	memset(f, 0, lock);
	memset((char *)f + after, 0, sizeof(*f) - after);
	f->ahead = ahead;
	f->cur = ((cur >> 32) + 1) << 32;
	f->refs = 1;
	f->fd = fd;
	f->flags = flags;
	f->fl = -1;
	f->kernel = -1;
	f->align = PAGE;
}

struct block *file_ring(void)
{
	size_t size = (DEPTH_MAX * sizeof(struct block) + PAGE - 1) & ~(size_t)(PAGE - 1);
	long p = sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return sys_failed(p) ? NULL : (struct block *)p;
}

void file_set_pos(struct file *f, off64_t pos)
{
	f->doing = IDLE;
	f->len = 0;
	f->base = pos;
	f->cur = ((f->cur >> 32) + 1) << 32;
}

const char *file_reason(const struct file *f)
{
	static const char *const names[] = {
#define R(name, text) [REASON_##name] = text,
		REASONS(R)
#undef R
	};

	return names[f->reason];
}

void file_counted(struct file *f, struct counts *c, ssize_t moved)
{
	if (moved <= 0) /* the end of the file is not a transfer */
		return;
	if (config.rate && f->state == FILE_TUNED)
		rate_charge(c == &f->write, moved);
	c->transfers++;
	c->moved += moved;
	c->direct += f->direct_set;
	c->direct_bytes += f->direct_set ? moved : 0;
	if ((uint64_t)moved > c->largest)
		c->largest = moved;
	if (!c->smallest || (uint64_t)moved < c->smallest)
		c->smallest = moved;
	if (progress_on)
		progress_moved(c == &f->write, moved);
}

void file_count(struct counts *c, ssize_t bytes)
{
	c->calls++;
	if (bytes > 0)
		c->bytes += bytes;
}

void file_mark_dirty(struct file *f, bool dirty)
{
	if (f->dirty == dirty)
		return;
	f->dirty = dirty;
	if (__atomic_add_fetch(&file_dirty, dirty ? 1 : -1, __ATOMIC_ACQ_REL) == 1 && dirty)
		file_dirty_at = clock_coarse();
}

void file_set_late(struct file *f, int e)
{
	__atomic_store_n(&f->late, e, __ATOMIC_RELAXED);
}

int file_late(struct file *f)
{
	int e = f->late;

	if (e)
		file_set_late(f, 0);
	return e;
}

int file_set_direct(struct file *f, bool on)
{
	if (f->direct_set == on)
		return 0;
	if (f->fl < 0) {
		f->fl = real.fcntl64(f->fd, F_GETFL);
		if (f->fl < 0)
			return -errno;
		f->fl &= ~O_DIRECT;
	}
	while (real.fcntl64(f->fd, F_SETFL, on ? f->fl | O_DIRECT : f->fl) < 0)
		if (errno != EINTR)
			return -errno;
	f->direct_set = on;
	if (on && (f->reason == REASON_SMALL || f->reason == REASON_SLOW || f->reason == REASON_RANDOM ||
			  f->reason == REASON_KERNEL))
		f->reason = REASON_NONE;
	return 0;
}

void file_buffered_for(struct file *f, enum reason reason)
{
	if (f->reason == REASON_NONE || f->reason == REASON_SMALL)
		f->reason = reason;
}

int file_offset(struct file *f)
{
	off64_t pos = file_pos(f);

	if (f->kind == KIND_MEMORY || f->kernel == pos || f->lent)
		return 0;
	f->kernel = real.lseek64(f->fd, pos, SEEK_SET);
	return f->kernel == pos ? 0 : -errno;
}

void file_resync(struct file *f)
{
	f->kernel = real.lseek64(f->fd, 0, SEEK_CUR);
	if (f->kernel >= 0)
		file_set_pos(f, f->kernel);
}

int file_drain(struct file *f)
{
	return f->state == FILE_TUNED ? writer_drain(f) : 0;
}

int file_settle(struct file *f)
{
	int ret;

	if (f->state != FILE_TUNED)
		return 0;
	ret = writer_drain(f);
	reader_drop(f);
	if (ret)
		return ret;
	ret = file_set_direct(f, false);
	return ret ? ret : file_offset(f);
}

/* A fresh file is about to be used where the shim does not follow it. */
static void file_untracked(struct file *f)
{
	if (f->state == FILE_FRESH && __atomic_load_n(&file_tuned, __ATOMIC_ACQUIRE))
		policy_untracked(f);
}

int file_release(struct file *f, enum reason reason)
{
	int ret = 0;

	if (f->state == FILE_TUNED)
		ret = file_settle(f);
	if (ret)
		f->wanted = reason;
	else if (f->state != FILE_PASSED) {
		file_untracked(f);
		/* That the process ends says nothing of what was done with it before. */
		if (reason != REASON_EXITING || f->state == FILE_FRESH)
			f->reason = reason;
		file_set_state(f, FILE_PASSED);
	}
	return ret;
}

void file_set_state(struct file *f, enum state state)
{
	bool was = f->state == FILE_TUNED, is = state == FILE_TUNED;

	if (was != is)
		__atomic_add_fetch(&file_tuned, is ? 1 : -1, __ATOMIC_ACQ_REL);
	__atomic_store_n(&f->state, state, __ATOMIC_RELAXED);
}

int file_close(struct file *f)
{
	int ret = file_drain(f);

	if (ret)
		writer_discard(f);
	uint64_t since = wait_begin();
	int e = cache_finish(f);
	wait_end(&f->write, since);
	int late = file_late(f);
	if (!ret)
		ret = late ? late : e;
	reader_drop(f);
	/* Another thread's call may still come before the kernel's close. */
	if (!__libc_single_threaded && f->state == FILE_TUNED) {
		file_set_direct(f, false);
		file_offset(f);
	}
	return ret;
}

void file_finish(struct file *f)
{
	struct quiet q;

	if (file_holds(f)) {
		quiet_begin(&q);
		writer_discard(f);
		reader_drop(f);
		quiet_end(&q);
	}
	report_add(f);
	file_set_state(f, FILE_FREE);
}

typedef int operation(struct file *f, enum reason reason);

static int drain_for(struct file *f, enum reason reason)
{
	(void)reason;
	return file_drain(f);
}

static int settle_for(struct file *f, enum reason reason)
{
	(void)reason;
	return file_settle(f);
}

/* One file by descriptor, with the rest out of the way. */
static int by_fd(int fd, operation *op, enum reason reason)
{
	struct file *f = file_get(fd);
	struct quiet q;
	int ret;

	if (!f)
		return 0;
	if (f->state != FILE_TUNED && !__atomic_load_n(&file_tuned, __ATOMIC_ACQUIRE)) {
		/* Nothing is held that a signal could meet half-way. */
		ret = op(f, reason);
		file_put(f);
		return ret;
	}
	quiet_begin(&q);
	ret = op(f, reason);
	file_put(f);
	quiet_end(&q);
	return ret;
}

int file_drain_fd(int fd)
{
	return by_fd(fd, drain_for, REASON_NONE);
}

int file_settle_fd(int fd)
{
	return by_fd(fd, settle_for, REASON_NONE);
}

int file_release_fd(int fd, enum reason reason)
{
	return by_fd(fd, file_release, reason);
}

struct all {
	operation *op;
	enum reason reason;
};

static void one_of_all(struct file *f, void *arg)
{
	const struct all *all = arg;

	all->op(f, all->reason);
}

void file_drain_all(void)
{
	struct all all = {drain_for, REASON_NONE};

	if (__atomic_load_n(&file_dirty, __ATOMIC_ACQUIRE))
		fdtable_each(one_of_all, &all);
}

void file_settle_all(void)
{
	struct all all = {settle_for, REASON_NONE};

	if (__atomic_load_n(&file_tuned, __ATOMIC_ACQUIRE))
		fdtable_each(one_of_all, &all);
}

void file_release_all(enum reason reason)
{
	struct all all = {file_release, reason};

	fdtable_each(one_of_all, &all);
}

static int lend(struct file *f, enum reason reason)
{
	(void)reason;
	f->moved = true;
	file_untracked(f);
	int e = file_settle(f);
	if (!e && (f->state == FILE_TUNED || f->state == FILE_FRESH))
		f->lent++;
	return e;
}

static int take_back(struct file *f, enum reason reason)
{
	(void)reason;
	/* Other threads' calls have gone to the kernel meanwhile. */
	if (f->lent && !--f->lent && f->state == FILE_TUNED)
		file_resync(f);
	return 0;
}

static int flush_for(struct file *f, enum reason reason)
{
	int e = file_drain(f);

	(void)reason;
	return e ? e : file_late(f);
}

int file_flush_fd(int fd)
{
	return by_fd(fd, flush_for, REASON_NONE);
}

int file_lend_fd(int fd)
{
	return by_fd(fd, lend, REASON_NONE);
}

void file_take_back_fd(int fd)
{
	by_fd(fd, take_back, REASON_NONE);
}

struct inode {
	uint64_t dev, ino;
};

/*
 * Inodes that this process has mapped: a mapping outlives its descriptor, and
 * must go on seeing writes and being seen by reads. Never shortened; when it
 * is full every further file counts as mapped. An entry counts once its
 * inode's number is there; an inode may have two.
 */
#define MAPPED_MOST 256
static struct inode mapped[MAPPED_MOST];
static unsigned mapped_count;

static bool is_mapped(struct inode i)
{
	unsigned n = __atomic_load_n(&mapped_count, __ATOMIC_ACQUIRE);

	for (unsigned at = 0; at < n && at < MAPPED_MOST; at++)
		if (__atomic_load_n(&mapped[at].ino, __ATOMIC_ACQUIRE) == i.ino && mapped[at].dev == i.dev)
			return true;
	return n > MAPPED_MOST;
}

static void set_mapped(struct inode i)
{
	if (is_mapped(i))
		return;
	unsigned at = __atomic_fetch_add(&mapped_count, 1, __ATOMIC_ACQ_REL);
	if (at >= MAPPED_MOST) /* the count itself must not come round */
		__atomic_store_n(&mapped_count, MAPPED_MOST + 1, __ATOMIC_RELEASE);
	else {
		mapped[at].dev = i.dev;
		__atomic_store_n(&mapped[at].ino, i.ino, __ATOMIC_RELEASE);
	}
}

bool file_was_mapped(const struct file *f)
{
	return is_mapped((struct inode){f->dev, f->ino});
}

struct release_inode {
	struct inode inode;
	enum reason reason;
};

void file_known(struct file *f, const struct stat64 *st)
{
	f->dev = st->st_dev;
	/* Who sees the one without the lock sees the other. */
	__atomic_store_n(&f->ino, st->st_ino, __ATOMIC_RELEASE);
}

void file_identify(struct file *f)
{
	struct stat64 st;

	if (!f->ino && !sys_failed(sys(SYS_FSTAT, f->fd, &st)))
		file_known(f, &st);
}

static void release_one(struct file *f, void *arg)
{
	const struct release_inode *r = arg;

	file_identify(f);
	if (f->dev == r->inode.dev && f->ino == r->inode.ino)
		file_release(f, r->reason);
}

void file_release_inode(int fd, enum reason reason)
{
	struct release_inode r = {.reason = reason};
	struct stat64 st;

	if (!config.on || file_off || sys_failed(sys(SYS_FSTAT, fd, &st)) ||
		!(S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)))
		return;
	r.inode = (struct inode){st.st_dev, st.st_ino};
	/* Said first: who opens it meanwhile, in another thread, sees it, or is seen. */
	if (reason == REASON_MAPPED)
		set_mapped(r.inode);
	fdtable_each(release_one, &r);
}

static void settle_inode(struct file *f, void *arg)
{
	const struct inode *i = arg;

	file_identify(f);
	if (f->dev == i->dev && f->ino == i->ino)
		file_settle(f);
}

void file_settle_path(int dir, const char *path, int flags)
{
	struct stat64 st;

	if (!__atomic_load_n(&file_tuned, __ATOMIC_ACQUIRE) ||
		sys_failed(sys(SYS_FSTATAT, dir, path, &st, flags)))
		return;
	struct inode i = {st.st_dev, st.st_ino};
	fdtable_each(settle_inode, &i);
}

struct resized {
	struct inode inode;
	off64_t cut;
};

static void resize_one(struct file *f, void *arg)
{
	const struct resized *r = arg;

	if (f->state != FILE_TUNED || f->dev != r->inode.dev || f->ino != r->inode.ino)
		return;
	reader_drop(f);
	f->size = reader_size(f);
	if (r->cut >= 0)
		writer_truncated(f, r->cut);
}

void file_resized(int dir, const char *path, int flags, off64_t cut)
{
	struct stat64 st;
	int error = errno;

	if (__atomic_load_n(&file_tuned, __ATOMIC_ACQUIRE) &&
		!sys_failed(sys(SYS_FSTATAT, dir, path, &st, flags))) {
		struct resized r = {{st.st_dev, st.st_ino}, cut};

		fdtable_each(resize_one, &r);
	}
	errno = error;
}

int file_told(int r, struct stat64 *st)
{
	if (!r && config.blksize && S_ISREG(st->st_mode))
		st->st_blksize = config.blksize;
	return r;
}

static void drain_inode(struct file *f, void *arg)
{
	const struct inode *i = arg;

	if (f->dirty && f->dev == i->dev && f->ino == i->ino)
		file_drain(f);
}

/* May a file of ours have bytes pending for this inode? */
static bool pending(const struct inode *i)
{
	struct file *f;

	/* A look that costs no system call, where nobody can change what is looked at. */
	if (!__libc_single_threaded)
		return true;
	for (uint32_t at = 0; fdtable_nth(at, &f); at++)
		if (f && f->dirty && f->dev == i->dev && f->ino == i->ino)
			return true;
	return false;
}

void file_drain_path(int dir, const char *path, int flags)
{
	struct stat64 st;
	int error = errno;

	if (!__atomic_load_n(&file_dirty, __ATOMIC_ACQUIRE))
		return;
	if (!sys_failed(sys(SYS_FSTATAT, dir, path, &st, flags))) {
		struct inode i = {st.st_dev, st.st_ino};

		if (pending(&i))
			fdtable_each(drain_inode, &i);
	}
	errno = error;
}

void fdtable_forget(void)
{
	file_dirty = file_tuned = file_unheld = 0;
	lock_forget_self();
	jump_forget();
	pool_forget();
	engine_forget();
	policy_forget();
	rate_forget();
	progress_forget();
	report_forget();
}
