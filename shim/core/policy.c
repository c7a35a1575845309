#include <errno.h>
#include <link.h>
#include <linux/fs.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>

#include "../engine/pool.h"
#include "../real.h"
#include "../sys.h"
#include "config.h"
#include "place.h"
#include "policy.h"
#include "stream.h"
#include "writer.h"

/* Filesystems seen last: device << 8 | enum fs + 1, in one word for readers without a lock. */
static uint64_t seen[8];

/* Free bytes of the filesystem asked last. A leaf lock. */
static struct lock space_lock;
static struct {
	uint64_t dev;
	int64_t free;
	uint64_t at; /* coarse clock, ns */
} space;

#define SPACE_AGE    100000000ULL      /* ns that an answer is used */
#define SPACE_ENOUGH (1LL << 30)       /* above this it need not be exact */

static bool ask_space(const struct file *f, struct statfs64 *sfs)
{
	if (sys_failed(sys_fstatfs(f->fd, sfs)))
		return false;
	lock_take(&space_lock);
	space.free = (int64_t)sfs->f_bavail * sfs->f_bsize;
	space.dev = f->dev;
	space.at = clock_coarse();
	lock_drop(&space_lock);
	return true;
}

static enum fs fs_of_file(const struct file *f)
{
	uint64_t *slot = &seen[f->dev % 8], word = __atomic_load_n(slot, __ATOMIC_RELAXED);
	struct statfs64 sfs;
	enum fs fs;

	if (word & 0xff && word >> 8 == f->dev)
		return (word & 0xff) - 1;
	if (!ask_space(f, &sfs))
		return FS_NONE;
	fs = place_fs(sfs.f_type);
	__atomic_store_n(slot, f->dev << 8 | (fs + 1), __ATOMIC_RELAXED);
	return fs;
}

bool policy_shares(const struct file *f)
{
	struct statfs64 sfs;

	return !sys_failed(sys_fstatfs(f->fd, &sfs)) && place_shares(sfs.f_type);
}

bool policy_space(struct file *f)
{
	int64_t need = (int64_t)pool_used() + 2 * (int64_t)config.write_block;
	struct statfs64 sfs;

	if (f->kind != KIND_REGULAR)
		return true;
	lock_take(&space_lock);
	bool enough = space.dev == f->dev && space.free > SPACE_ENOUGH && clock_coarse() - space.at < SPACE_AGE;
	lock_drop(&space_lock);
	return enough || (ask_space(f, &sfs) && (int64_t)sfs.f_bavail * sfs.f_bsize > need);
}

/* --- limits --- */

static enum { LIMIT_UNKNOWN, LIMIT_NONE, LIMIT_SET } limit;

void policy_limits(void)
{
	limit = LIMIT_UNKNOWN;
}

/* A file size limit: where it bites, and how, is the kernel's to say. */
static bool limited(void)
{
	struct rlimit64 r;

	if (limit == LIMIT_UNKNOWN)
		limit = !sys_failed(sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &r)) &&
					r.rlim_cur != RLIM64_INFINITY
				? LIMIT_SET
				: LIMIT_NONE;
	return limit == LIMIT_SET;
}

/* --- block devices --- */

static enum reason classify_device(struct file *f, uint64_t rdev, bool write)
{
	int sector = 0;
	uint64_t size = 0;

	f->kind = KIND_BLOCK;
	if (sys_failed(sys(SYS_ioctl, f->fd, BLKSSZGET, &sector)) ||
		sys_failed(sys(SYS_ioctl, f->fd, BLKGETSIZE64, &size)))
		return REASON_RAW;
	f->size = size;
	f->align = place_align(&(struct dio){0}, sector);
	f->direct = config.mode == MODE_DIRECT;
	f->probed = true;
	if (f->direct && place_in_use(rdev)) {
		f->direct = false;
		f->reason = REASON_MOUNTED;
		if (write)
			return REASON_MOUNTED;
	}
	return REASON_NONE;
}

/* --- regular files --- */

bool policy_direct(struct file *f, bool write)
{
	struct dio dio;

	if (!f->direct || f->probed)
		return f->direct && !(write && f->behind);
	f->probed = true;
	enum fs fs = fs_of_file(f);
	place_dio(f->fd, "", &dio);
	f->align = place_align(&dio, f->align);
	f->direct = place_direct(fs, &dio, false);
	if (!f->direct) {
		f->wanted = REASON_FILESYSTEM;
		return false;
	}
	if ((f->flags & O_ACCMODE) != O_RDONLY && !place_direct(fs, &dio, true)) {
		/* btrfs: checksummed data is buffered in disguise, and waited for. */
		f->behind = true;
		f->reason = REASON_FILESYSTEM;
	}
	return !(write && f->behind);
}

static enum reason classify_regular(struct file *f, const struct stat64 *st)
{
	f->kind = KIND_REGULAR;
	f->size = st->st_size;
	f->mtime = st->st_mtim.tv_sec * 1000000000LL + st->st_mtim.tv_nsec;
	switch (fs_of_file(f)) {
	case FS_NONE:
		return REASON_FILESYSTEM;
	case FS_CACHED:
		if (config.mode != MODE_BUFFERED)
			return REASON_FILESYSTEM;
		break;
	case FS_ASK:
		f->direct = config.mode == MODE_DIRECT;
		if (f->direct && !policy_direct(f, false))
			return REASON_FILESYSTEM;
		break;
	default:
		f->direct = config.mode == MODE_DIRECT;
	}
	f->behind = config.mode == MODE_DONTCACHE;
	if ((f->flags & O_ACCMODE) != O_RDONLY && limited())
		return REASON_LIMIT;
	if ((uint64_t)st->st_size < config.direct_min)
		f->reason = REASON_SMALL;
	return REASON_NONE;
}

static enum reason classify_memory(struct file *f, const struct stat64 *st, bool write)
{
	f->kind = KIND_MEMORY;
	/* null takes everything, zero gives everything: there is nothing to get wrong. */
	if (st->st_rdev == makedev(1, 3) && write)
		return REASON_NONE;
	if (st->st_rdev == makedev(1, 5) && !write) {
		f->size = INT64_MAX;
		return REASON_NONE;
	}
	return REASON_RAW;
}

/* --- the same inode twice --- */

/*
 * Outermost of what is held while waiting: a file that is being classified is
 * locked, waits for this, and then looks at the others. One that is locked by
 * an operation of another thread is waited for; one that waits itself to be
 * classified is not: it will find this one.
 */
static struct lock classify_lock;

static bool lock_twin(struct file *f)
{
	while (!lock_try(&f->lock)) {
		if (__atomic_load_n(&f->classifying, __ATOMIC_ACQUIRE))
			return false;
		sys(SYS_sched_yield);
	}
	return true;
}

/* Other descriptions of the same inode, of which one writes, are the kernel's from now on. */
static bool writes(const struct file *f)
{
	return (f->flags & O_ACCMODE) != O_RDONLY || f->flags & O_TRUNC;
}

/*
 * A glance without its lock, which may be held for as long as a transfer takes:
 * what is found is looked at again under it. A file that is missed because it
 * changes just now has its own classification before it, and finds this one.
 */
__attribute__((no_sanitize("thread"))) static bool may_be_twin(struct file *f, const struct file *self)
{
	if (f == self || file_state(f) == FILE_FREE)
		return false;
	if (!__atomic_load_n(&f->ino, __ATOMIC_ACQUIRE) && lock_twin(f)) {
		file_identify(f);
		lock_drop(&f->lock);
	}
	return f->ino == self->ino && f->dev == self->dev &&
	       (writes(f) || writes(self) || f->reason == REASON_LOCKED);
}

bool policy_twins(struct file *self)
{
	bool found = false;
	struct file *f;

	file_identify(self);
	for (uint32_t i = 0; fdtable_nth(i, &f); i++) {
		if (!f || !may_be_twin(f, self))
			continue;
		found = true;
		if (!lock_twin(f))
			continue;
		if (f->dev != self->dev || f->ino != self->ino) { /* closed meanwhile */
			lock_drop(&f->lock);
			continue;
		}
		if (f->state == FILE_TUNED) {
			file_release(f, REASON_SHARED_INODE);
		} else if (f->state == FILE_FRESH) { /* without looking for its twins in turn */
			file_set_state(f, FILE_PASSED);
			f->reason = REASON_SHARED_INODE;
		}
		lock_drop(&f->lock);
	}
	return found;
}

void policy_untracked(struct file *f)
{
	__atomic_store_n(&f->classifying, true, __ATOMIC_RELEASE);
	lock_take(&classify_lock);
	policy_twins(f);
	lock_drop(&classify_lock);
	__atomic_store_n(&f->classifying, false, __ATOMIC_RELEASE);
}

#define INHERITED  64
#define FIRST_MOST 512 /* a first write of fewer bytes is no bulk data yet */

/* Low descriptors that this process was born with, on files that may be opened again. */
static struct {
	uint64_t dev, ino;
} inherited[INHERITED];
static int inherited_known;

static bool async_linked;

static int is_async(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;

	(void)size, (void)arg;
	return !strncmp(name, "liburing.so", 11) || !strncmp(name, "libaio.so", 9);
}

void policy_init(void)
{
	async_linked = dl_iterate_phdr(is_async, NULL);
}

enum reason policy_flags(int flags)
{
	if (async_linked)
		return REASON_AIO;
	if (flags & O_APPEND)
		return REASON_APPEND;
	if (flags & (O_DIRECT | O_DSYNC))
		return REASON_SYNC;
	return REASON_NONE;
}

void policy_forget(void)
{
	memset(inherited, 0, sizeof(inherited));
	inherited_known = 0;
	/* Another thread of the parent may have held it. */
	lock_reset(&classify_lock);
	lock_reset(&space_lock);
}

static void inherited_look(void)
{
	struct pollfd open[INHERITED];
	struct timespec now = {0, 0};
	struct stat64 st;

	/* Which are open at all, in one call. */
	for (int fd = 0; fd < INHERITED; fd++)
		open[fd] = (struct pollfd){.fd = fd};
	if (sys_failed(sys(SYS_ppoll, open, INHERITED, &now, 0, 0)))
		open[0].revents = 0;
	for (int fd = 0; fd < INHERITED; fd++) {
		if (open[fd].revents & POLLNVAL || fdtable_peek(fd) || sys_failed(sys(SYS_FSTAT, fd, &st)) ||
			!(S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)))
			continue;
		inherited[fd].dev = st.st_dev;
		inherited[fd].ino = st.st_ino;
	}
	inherited_known = 1;
}

static bool is_inherited(const struct file *f)
{
	if (!inherited_known)
		inherited_look();
	for (int i = 0; i < INHERITED; i++)
		if (inherited[i].ino == f->ino && inherited[i].dev == f->dev && f->ino)
			return true;
	return false;
}

static enum reason classify(struct file *f, bool write)
{
	enum reason reason = REASON_NONE;
	struct stat64 st;

	if (file_off || sys_failed(sys(SYS_FSTAT, f->fd, &st)))
		return REASON_RAW;
	file_known(f, &st);
	if (file_ending)
		return REASON_EXITING;
	if (S_ISCHR(st.st_mode))
		return classify_memory(f, &st, write);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return REASON_RAW;
	/* A relative path is one in a directory without a name: it may be among those to skip. */
	if ((*config.only && !(f->path && config_match(config.only, f->path))) ||
		(*config.skip && f->path &&
			(*f->path != '/' || config_match(config.skip, f->path))))
		reason = REASON_FILTER;
	if (file_was_mapped(f))
		return REASON_MAPPED;
	if (policy_twins(f) || is_inherited(f))
		return REASON_SHARED_INODE;
	if (reason)
		return reason;
	return S_ISBLK(st.st_mode) ? classify_device(f, st.st_rdev, write)
				   : classify_regular(f, &st);
}

static void untracked_quietly(struct file *f)
{
	struct quiet q;

	if (!__atomic_load_n(&file_tuned, __ATOMIC_ACQUIRE))
		return;
	quiet_begin(&q);
	policy_untracked(f);
	quiet_end(&q);
}

bool policy_small_read(struct file *f, size_t n)
{
	uint8_t fresh = FILE_FRESH;
	struct stat64 st;

	if (f->state != FILE_FRESH || f->moved || (f->flags & O_ACCMODE) != O_RDONLY ||
		config.mode == MODE_OBSERVE || sys_failed(sys(SYS_FSTAT, f->fd, &st)) ||
		!S_ISREG(st.st_mode) || (uint64_t)st.st_size > n ||
		(uint64_t)st.st_size > config.read_block ||
		(uint64_t)st.st_size >= config.direct_min)
		return false;
	file_known(f, &st);
	f->size = st.st_size;
	untracked_quietly(f);
	/* Unless a signal handler has classified it. */
	if (!__atomic_compare_exchange_n(&f->state, &fresh, FILE_PASSED, false, __ATOMIC_ACQ_REL,
		    __ATOMIC_ACQUIRE))
		return false;
	f->reason = REASON_SMALL;
	return true;
}

bool policy_small_write(struct file *f, size_t n)
{
	if (n >= FIRST_MOST || f->state != FILE_FRESH || f->moved || config.hold == HOLD_ALWAYS ||
		config.mode == MODE_OBSERVE)
		return false;
	f->lent++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (f->state != FILE_FRESH || f->moved) { /* a signal handler was faster */
		f->lent--;
		return false;
	}
	f->moved = true;
	f->reason = REASON_SMALL;
	untracked_quietly(f);
	return true;
}

void policy_classify(struct file *f, bool write)
{
	enum reason reason;

	if (f->state != FILE_FRESH || f->lent)
		return;
	f->reason = REASON_NONE;
	__atomic_store_n(&f->classifying, true, __ATOMIC_RELEASE);
	lock_take(&classify_lock);
	reason = classify(f, write);
	/*
	 * Libc itself may have moved the offset of the standard descriptors, and
	 * another thread that of any: its call was for whatever had the number before.
	 */
	f->low |= f->fd <= 2;
	bool unseen = f->low || !__libc_single_threaded;
	bool ask = (f->moved || unseen) && !reason && config.mode != MODE_OBSERVE;
	off64_t pos = ask ? real.lseek64(f->fd, 0, SEEK_CUR) : 0;
	if (pos < 0 && f->kind != KIND_MEMORY)
		reason = REASON_RAW;
	if (reason) {
		f->reason = reason;
		file_set_state(f, FILE_PASSED);
	} else if (config.mode == MODE_OBSERVE) {
		file_set_state(f, FILE_OBSERVED);
	} else {
		f->kernel = pos;
		file_set_pos(f, pos);
		f->ramp = config.min;
		if (unseen && pos > 0)
			writer_buffered(f, 0, pos);
		stream_take();
		file_set_state(f, FILE_TUNED);
	}
	lock_drop(&classify_lock);
	__atomic_store_n(&f->classifying, false, __ATOMIC_RELEASE);
}

int policy_depth(void)
{
	int depth = config.depth < 0 ? engine_depth() : config.depth;

	return depth < 1 ? 1 : depth > DEPTH_MAX - 1 ? DEPTH_MAX - 1 : depth;
}
