/*
 * A file: one open file description that this process opened itself, with
 * the data that the shim holds between the program and the kernel.
 *
 * Functions take the file locked (file_get) and return a value or -errno.
 */
#ifndef FILE_H
#define FILE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "../engine/engine.h"
#include "counts.h"
#include "lock.h"

/* The unit of buffers, and the least alignment. The machine's own pages may be larger. */
#define PAGE 4096

/* Why a description is not tuned, or no longer. The names are part of the report's format. */
#define REASONS(R)                                                                                 \
	R(NONE, "")                                                                                \
	R(APPEND, "append")                                                                        \
	R(SYNC, "sync")                                                                            \
	R(INHERITED, "inherited")                                                                  \
	R(FORKED, "forked")                                                                        \
	R(MAPPED, "mapped")                                                                        \
	R(LOCKED, "locked")                                                                        \
	R(RANDOM, "random")                                                                        \
	R(SHARED_INODE, "shared-inode")                                                            \
	R(KERNEL, "kernel")                                                                        \
	R(PASSED_ON, "passed")                                                                     \
	R(AIO, "aio")                                                                              \
	R(SMALL, "small")                                                                          \
	R(SLOW, "slow")                                                                            \
	R(FILESYSTEM, "filesystem")                                                                \
	R(MOUNTED, "mounted")                                                                      \
	R(FILTER, "filter")                                                                        \
	R(NEARLY_FULL, "nearly-full")                                                              \
	R(LIMIT, "limit")                                                                          \
	R(MEMORY, "memory")                                                                        \
	R(SECCOMP, "seccomp")                                                                      \
	R(RAW, "raw")                                                                              \
	R(STDIO, "stdio")                                                                          \
	R(EXITING, "exiting")

enum reason {
#define R(name, text) REASON_##name,
	REASONS(R)
#undef R
};

enum state {
	FILE_FREE,
	FILE_FRESH,    /* opened; nothing is known of it but its flags */
	FILE_TUNED,
	FILE_OBSERVED, /* MODE=observe: counted, otherwise left alone */
	FILE_PASSED,   /* the kernel's alone, for the reason given */
};

enum kind { KIND_REGULAR, KIND_BLOCK, KIND_MEMORY /* /dev/null, /dev/zero: no offset */ };

enum doing { IDLE, READING, WRITING };

/* A buffer of the pool and the transfer that fills or empties it. */
struct block {
	struct transfer t;
	unsigned char *data;
	size_t size;  /* bytes asked of the pool */
	off64_t base; /* file offset of data[0] */
	size_t from;  /* writing: first byte that is not in the kernel */
	size_t to;    /* writing: end of the bytes */
};

#define DEPTH_MAX  64
#define PAUSE_NS   100000000LL /* a writer that rests longer between small writes is slow */
#define JUMPS_MOST 16          /* non-sequential accesses after which a file is left to the kernel */

/*
 * The program's position is base + place, where place is the low half of cur
 * and the high half counts changes of everything it refers to. A small read
 * or write copies first and commits by one compare-and-exchange of cur; when
 * a signal handler (on the same thread: others wait for the lock) has used
 * the file meanwhile, the exchange fails and the call starts over. All else
 * happens with signals blocked (struct quiet).
 */
struct file {
	_Alignas(8) uint64_t cur; /* changes << 32 | place */
	unsigned char *data; /* the current block's bytes; NULL while IDLE */
	off64_t base;        /* file offset of data[0]; page aligned unless IDLE */
	uint32_t len;        /* READING: valid bytes; WRITING: small writes end below it */
	uint8_t doing;       /* enum doing */
	uint8_t state;       /* enum state */
	uint8_t reason;      /* enum reason */
	uint8_t kind;        /* enum kind */
	uint8_t ok_doing;    /* enum doing that the next two are for */
	uintptr_t ok_low, ok_high; /* program memory that the kernel found accessible */
	uint64_t epoch;      /* file_epoch when what was read ahead was last found unchanged */
	uint64_t wrote_at;   /* coarse clock of the last write, ns */
	uint64_t waited_at;  /* file_waited at that time */
	void *pinned;        /* buffer that a small write is copying into */
	struct counts read, write;

	struct lock lock; /* guards all but refs and state's reads in file_get */
	int refs;         /* descriptors of this process, atomic */
	int fd;           /* one of them, usable for transfers */
	int flags;        /* of open(2) */
	int fl;           /* F_GETFL without our O_DIRECT; -1 not asked yet */
	uint64_t dev, ino; /* ino 0: not known yet */
	off64_t size;     /* READING: end that the last fstat saw; WRITING: end of allocated data */
	int64_t mtime;    /* READING: of that fstat, ns */
	uint32_t align;   /* of offset and length for O_DIRECT, bytes */
	bool direct;      /* O_DIRECT may be used */
	bool direct_set;  /* O_DIRECT is set on the description now */
	bool low;         /* has been descriptor 0, 1 or 2: libc's own streams may use it */
	int lent;         /* calls of the kernel's under way that move the offset; FRESH stays so */
	int kept;         /* those of them that are children on their way to exec */
	bool moved;       /* FRESH: the kernel's offset is not known to be 0 */
	bool dirty;       /* counted in file_dirty */
	bool slow;        /* slow writer: written through */
	uint32_t size_block; /* bytes of the current block's buffer, 0 none */
	uint32_t from;    /* WRITING: first byte of the block that is not in the kernel */
	uint32_t grain;   /* the program's last write, bytes: the granularity of a replay */
	uint32_t ramp;    /* READING: bytes of the next transfer */
	uint32_t jumps;   /* non-sequential accesses, less the sequential transfers since */
	int error;        /* -errno of refused bytes that are still held, or 0 */
	uint8_t wanted;   /* enum reason: release as soon as the held bytes are in the kernel */
	uint64_t since;   /* slow writer: bytes written since the last pause */
	off64_t wary;     /* reads below this offset go to the kernel as the program asks */
	off64_t next;     /* pread: end of the last one */
	uint32_t run;     /* pread: how many followed each other */
	off64_t kernel;   /* the kernel's offset, -1 not known */
	int ahead_head, ahead_count; /* ring of blocks in flight */
	struct block *ahead; /* DEPTH_MAX of them, or NULL */
	struct block side; /* pread: bytes [0, side.to) of what was read ahead */
	uint32_t hint;    /* WRITING: buffer size that the last block grew to */
	uint32_t end;     /* WRITING: place at which the block is full */
	off64_t buffered_low, buffered_high; /* what we wrote buffered and did not wait for */
	bool loose;       /* some of those wait for the kernel's own write-out */
	int late;         /* -errno of write-out after the kernel accepted the bytes */
	bool behind;      /* buffered transfers do not leave their pages in the cache */
	bool plain_only;  /* RWF_DONTCACHE was refused */
	bool was_cold;    /* nothing of it was cached when the first such transfer was made */
	bool behind_keep; /* pages of the window below were cached before: they stay */
	off64_t behind_low, behind_high; /* window that is being written out */
	bool strict;      /* an error was seen: every write reaches the kernel before it returns */
	bool classifying; /* waits to be, or is being classified; atomic */
	bool probed;      /* direct was checked by statx */
	bool unshared;    /* the filesystem did not share its blocks */
	uint32_t index;   /* place among all files */
	const char *path; /* as opened, for the report; may be NULL */
	uint64_t opened;  /* exact clock, ns, for the report; 0 not kept */
};

/* Memory that may be read need not be writable: what is known of it is for one direction. */
static inline void file_doing(struct file *f, enum doing doing)
{
	if (f->ok_doing != doing)
		f->ok_low = f->ok_high = 0;
	f->ok_doing = f->doing = doing;
}

#define PLACE(cur) ((uint32_t)(cur))

static inline off64_t file_pos(const struct file *f)
{
	return f->base + PLACE(f->cur);
}

/* What the slow paths do with the rest of the process out of the way. */
struct quiet {
	uint64_t mask; /* the program's signal mask */
	int error;     /* its errno */
	int cancel;    /* its cancellation state, -1 left alone */
	uint64_t at;   /* coarse clock when it began, ns */
};

/* Is there anything of it that its closing would have to see to? */
static inline bool file_holds(const struct file *f)
{
	return f->doing != IDLE || f->dirty || f->side.data || f->late || f->behind_high;
}

void quiet_begin(struct quiet *q);
void quiet_end(const struct quiet *q);

/* Files with bytes that the kernel does not have; atomic. */
extern int file_dirty;
/* Files that are tuned; atomic. */
extern int file_tuned;
/* Coarse clock when the oldest bytes that are held came, ns. */
extern uint64_t file_dirty_at;
/*
 * Raised when the program has waited for or heard from somebody else: what
 * was read ahead before is looked at again before it is used. Atomic.
 */
extern uint64_t file_epoch;
/* Not 0: nothing is held (the process may end in this call). Atomic. */
extern int file_unheld;
/* There have been children. */
extern bool file_forked;
/* ns that the program has spent in here, waiting for the kernel; atomic. */
extern uint64_t file_waited;
/* Everything passes through from now on (exit, seccomp). */
extern bool file_off;
/* That is about to happen: no file is tuned any more. */
extern bool file_ending;

/* --- descriptor table (fdtable.c) --- */

#define FD_LEAF 512
#define FD_ROOT 32768 /* up to 16 Mi descriptors; higher numbers are not tuned */

struct leaf {
	struct file *slot[FD_LEAF];
};

/* The first level. It lies in memory that is zero in a child. NULL: nothing was ever opened. */
extern struct leaf **fdtable;

static inline struct file **fdtable_slot(int fd)
{
	struct leaf **root = __atomic_load_n(&fdtable, __ATOMIC_ACQUIRE);

	if (!root || (unsigned)fd >= FD_LEAF * FD_ROOT)
		return NULL;
	struct leaf *l = __atomic_load_n(&root[fd / FD_LEAF], __ATOMIC_ACQUIRE);
	return l ? &l->slot[fd % FD_LEAF] : NULL;
}

/* A glance at its state without its lock: what was so a moment ago. */
static inline enum state file_state(const struct file *f)
{
	return __atomic_load_n(&f->state, __ATOMIC_RELAXED);
}

/* What a descriptor refers to, unlocked; NULL: nothing of ours. */
static inline struct file *fdtable_peek(int fd)
{
	struct file **s = fdtable_slot(fd);

	return s ? __atomic_load_n(s, __ATOMIC_ACQUIRE) : NULL;
}

struct file *file_get_locked(int fd);

/* The file behind a descriptor, locked, or NULL: nothing of ours. Give it back with file_put. */
__attribute__((always_inline)) static inline struct file *file_get(int fd)
{
	struct file *f = fdtable_peek(fd);

	if (__builtin_expect(!f, 1))
		return NULL;
	if (!__libc_single_threaded || file_state(f) == FILE_PASSED || file_off)
		return file_get_locked(fd);
	f->fd = fd;
	return f;
}

/* libpthread's until glibc 2.34. */
extern void pthread_testcancel(void) __attribute__((weak));

/*
 * file_get for the calls that are cancellation points (pthreads(7)): answered
 * from the block in hand they would never reach the kernel's.
 */
__attribute__((always_inline)) static inline struct file *file_enter(int fd)
{
	if (!__libc_single_threaded && fdtable_peek(fd) && pthread_testcancel)
		pthread_testcancel();
	return file_get(fd);
}

/* Takes a file's lock, to be given back by file_put, where there are other threads. */
void file_lock(struct file *f);
void file_unlock(struct file *f);

static inline void file_put(struct file *f)
{
	if (__atomic_load_n(&f->lock.owner, __ATOMIC_RELAXED))
		file_unlock(f);
}

/* A new description with these open(2) flags. The slot of its number is reset in any case. */
void fdtable_open(int fd, int flags, const char *path);
/* A number was handed out for something that is not ours. */
void fdtable_reset(int fd);
/* new is now a duplicate of old. */
void fdtable_dup(int old, int new);
/*
 * Before a descriptor goes away: what is pending is written. The slot is
 * cleared. 0, or -errno of bytes that the kernel refused; they are dropped.
 */
int fdtable_close(int fd);
/*
 * Would its closing have nothing to do? Then it is the kernel's from now on,
 * and its slot may be reset behind the call that closes it.
 */
bool fdtable_idle(struct file *f);
/* Runs f on every file that is in use, each locked. */
void fdtable_each(void (*f)(struct file *, void *), void *arg);
/* File number i of all, free ones included, unlocked; *f NULL where none is. False past the end. */
bool fdtable_nth(uint32_t i, struct file **f);
/* Runs fdtable_forget where this is a child that has not yet. */
void fdtable_check(void);
/* In a child: nothing of the parent's is ours. */
void fdtable_forget(void);
/* The lowest descriptor above fd that has a slot, or -1. */
int fdtable_next(int fd);
/* By 1: descriptors that are opened from now on are not taken up, a fork is on its way. By -1: over. */
void fdtable_pause(int by);

/* --- file.c --- */

/* Puts pending bytes into the kernel: 0 or -errno. */
int file_drain(struct file *f);
/* As file_drain; then the kernel's offset is true, O_DIRECT is off, nothing is read ahead. */
int file_settle(struct file *f);
void file_set_state(struct file *f, enum state state);
/* Hands the description back to the kernel for good. */
int file_release(struct file *f, enum reason reason);
/* The kernel's offset may have moved: ask it. The file is settled and idle. */
void file_resync(struct file *f);
/* Its device and inode: as fstat(2) told, or asked for where they are not known. */
void file_known(struct file *f, const struct stat64 *st);
void file_identify(struct file *f);
int file_set_direct(struct file *f, bool on);
void file_set_pos(struct file *f, off64_t pos);
/* Why what is written now is not direct; until something is. */
void file_buffered_for(struct file *f, enum reason reason);
/* The kernel's offset becomes that of the program: 0 or -errno. */
int file_offset(struct file *f);
void file_count(struct counts *c, ssize_t bytes);
void file_counted(struct file *f, struct counts *c, ssize_t moved);
void file_mark_dirty(struct file *f, bool dirty);
/* -errno of write-out for a later call of the program's; and it is said now: that, or 0. */
void file_set_late(struct file *f, int e);
int file_late(struct file *f);
/* A file that was just taken from the list of free ones. */
void file_init(struct file *f, int fd, int flags);
/* Room for the blocks of a file that are in flight: DEPTH_MAX of them, or NULL. */
struct block *file_ring(void);
/* Before its last descriptor is closed: 0, or -errno of bytes that are now dropped. */
int file_close(struct file *f);
/* The last descriptor is gone. */
void file_finish(struct file *f);
const char *file_reason(const struct file *f);

/* By descriptor; nothing happens to descriptors that are not ours. */
int file_drain_fd(int fd);
int file_settle_fd(int fd);
int file_release_fd(int fd, enum reason reason);
/*
 * Around a call of the kernel's that moves the offset of a descriptor:
 * settled before (0 or -errno), the position asked for afterwards.
 */
int file_lend_fd(int fd);
void file_take_back_fd(int fd);
/* What fd refers to is mapped or locked from now on: so are all descriptions of its inode. */
void file_release_inode(int fd, enum reason reason);
/* Was it mapped while it was open under another descriptor? */
bool file_was_mapped(const struct file *f);
/* For fsync and its kin: as file_drain_fd, and what write-out reported since. */
int file_flush_fd(int fd);
/*
 * A call of the program's may have changed the size of an inode. cut: it has
 * become this, by truncation: held bytes beyond it are gone with the rest; -1: not so.
 */
void file_resized(int dir, const char *path, int flags, off64_t cut);
/* What fstat(2) answered (r), with the block size that BLKTUNE_BLKSIZE has regular files report. */
int file_told(int r, struct stat64 *st);
/* For truncate(2) and its kin: settles the files of ours that a path names. */
void file_settle_path(int dir, const char *path, int flags);
/* All files of the process. */
void file_drain_all(void);
void file_settle_all(void);
void file_release_all(enum reason reason);
/* Drains the file that a path names when it is one of ours with bytes pending. */
void file_drain_path(int dir, const char *path, int flags);

/* --- the calls (calls.c) --- */

ssize_t file_read(struct file *f, void *buf, size_t n);
ssize_t file_write(struct file *f, const void *buf, size_t n);
ssize_t file_pread(struct file *f, void *buf, size_t n, off64_t off);
ssize_t file_pwrite(struct file *f, const void *buf, size_t n, off64_t off);
ssize_t file_readv(struct file *f, const struct iovec *v, int n);
ssize_t file_writev(struct file *f, const struct iovec *v, int n);
ssize_t file_preadv(struct file *f, const struct iovec *v, int n, off64_t off, int flags);
ssize_t file_pwritev(struct file *f, const struct iovec *v, int n, off64_t off, int flags);
off64_t file_seek(struct file *f, off64_t off, int whence);

/* --- own.c: the shim's own descriptors --- */

/* A duplicate high up, closed on exec: a handle for own_at and own_close, or -1. */
int own_dup(int fd);
void own_close(int handle);
bool own_is(int fd);
/* A number is about to be taken by dup2: what is ours there moves away. */
void own_make_way(int fd);
/* The next own descriptor at or above fd, or -1. */
int own_next(int fd);
/* The descriptor behind a handle, or -1. It may move. */
int own_at(int handle);

/* --- memory.c --- */

/* Of the machine's pages, bytes. */
uintptr_t page_size(void);
/* Would the kernel be able to read (write) this memory of the program? */
bool memory_ok(struct file *f, const void *p, size_t n, bool write);

bool memory_ok_now(const void *p, size_t n); /* readable, without a file */

/* The monotonic clock, ns: to a tick, which is cheap, or exact. */
uint64_t clock_coarse(void);
uint64_t clock_exact(void);

#endif
