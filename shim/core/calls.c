/* The data calls: a small-call path without a system call, and the way to the rest. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "../engine/pool.h"
#include "../real.h"
#include "config.h"
#include "file.h"
#include "jump.h"
#include "pass.h"
#include "policy.h"
#include "rate.h"
#include "reader.h"
#include "report.h"
#include "writer.h"

/* The kernel moves no more than this in one call (MAX_RW_COUNT, read(2)). */
#define CALL_MOST 0x7ffff000UL
/* Positions beyond this are the kernel's to judge (s_maxbytes differs by filesystem). */
#define POS_MOST  (1LL << 43)

/*
 * Other threads wait for the lock; only a signal handler on this thread can
 * have come between. One instruction is enough for that, without a bus lock.
 */
static inline bool commit(struct file *f, uint64_t seen, uint32_t n)
{
#if defined(__x86_64__)
	bool done;

	__asm__ volatile("cmpxchgq %3, %1"
			 : "=@ccz"(done), "+m"(f->cur), "+a"(seen)
			 : "r"(seen + n)
			 : "memory");
	return done;
#else
	return __atomic_compare_exchange_n(&f->cur, &seen, seen + n, false, __ATOMIC_RELAXED,
		__ATOMIC_RELAXED);
#endif
}

/* All of it from the current block: true. */
static inline bool small_read(struct file *f, void *buf, size_t n)
{
	for (;;) {
		uint64_t cur = __atomic_load_n(&f->cur, __ATOMIC_ACQUIRE);
		uint32_t at = PLACE(cur);
		const unsigned char *data = f->data;

		if (f->doing != READING || at > f->len || n > f->len - at || !n || !data ||
			f->epoch != __atomic_load_n(&file_epoch, __ATOMIC_RELAXED) ||
			(uintptr_t)buf < f->ok_low || (uint64_t)(uintptr_t)buf + n > f->ok_high)
			return false;
		memcpy(buf, data + at, n);
		if (commit(f, cur, n))
			return true;
	}
}

/* A small write's hold on the block that it copies into. */
struct pin {
	struct undo undo;
	struct file *file;
	unsigned char *data;
	uint32_t size;
};

/* Another call has sent the block off, or may have: then its buffer was left for us to give back. */
static void unpin(const struct pin *pin)
{
	struct quiet q;

	quiet_begin(&q);
	pin->file->pinned = NULL;
	if (pin->file->data != pin->data)
		pool_put(pin->data, pin->size);
	quiet_end(&q);
}

static void undo_pin(struct undo *u)
{
	const struct pin *pin = (const struct pin *)u;

	if (pin->file->pinned == pin->data)
		unpin(pin);
}

/*
 * All of it into the current block, which does not become full: true. While
 * the bytes are copied the block is pinned: a signal handler that sends it
 * off must not give its memory to somebody else.
 */
static inline bool small_write(struct file *f, const void *buf, size_t n)
{
	for (;;) {
		uint64_t cur = __atomic_load_n(&f->cur, __ATOMIC_ACQUIRE);
		uint32_t at = PLACE(cur);
		struct pin pin = {.file = f, .data = f->data, .size = f->size_block};
		bool done;

		/* On top of another small write: its bytes go where ours would. */
		if (f->pinned || f->doing != WRITING || at >= f->len || n >= f->len - at || !n ||
			(uintptr_t)buf < f->ok_low || (uint64_t)(uintptr_t)buf + n > f->ok_high)
			return false;
		if (config.hold == HOLD_AUTO) {
			uint64_t now = clock_coarse();

			if (f->slow || (int64_t)(now - f->wrote_at) > PAUSE_NS)
				return false;
			f->wrote_at = now;
			f->waited_at = __atomic_load_n(&file_waited, __ATOMIC_RELAXED);
		}
		jump_guard(&pin.undo, undo_pin);
		__atomic_store_n(&f->pinned, pin.data, __ATOMIC_RELEASE);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (f->cur != cur) { /* a signal came before the pin */
			f->pinned = NULL;
			jump_done(&pin.undo);
			continue;
		}
		memcpy(pin.data + at, buf, n);
		done = commit(f, cur, n);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (done)
			f->pinned = NULL;
		else
			unpin(&pin);
		jump_done(&pin.undo);
		if (done) {
			f->grain = n;
			return true;
		}
	}
}

/* Files that are not tuned, and what a call on a fresh one finds out. */
static bool is_tuned(struct file *f, bool write)
{
	policy_classify(f, write);
	return f->state == FILE_TUNED;
}

/* BLKTUNE_RATE: what the call has moved is slept off; other threads may use the file meanwhile. */
static void pay(struct file *f)
{
	if (__builtin_expect(!config.rate, 1))
		return;
	file_put(f);
	rate_sleep();
	if (!__libc_single_threaded)
		file_lock(f);
}

ssize_t pass_read_held(int fd, void *buf, size_t n)
{
	return before_block(fd, POLLIN) ? -1 : real.read(fd, buf, n);
}

ssize_t pass_write_held(int fd, const void *buf, size_t n)
{
	return before_word(fd) ? -1 : real.write(fd, buf, n);
}

ssize_t pass_readv_held(int fd, const struct iovec *v, int n)
{
	return before_block(fd, POLLIN) ? -1 : real.readv(fd, v, n);
}

ssize_t pass_writev_held(int fd, const struct iovec *v, int n)
{
	return before_word(fd) ? -1 : real.writev(fd, v, n);
}

static off64_t or_errno(off64_t r)
{
	return r < 0 ? -errno : r;
}

/*
 * Around a call that is passed as it is, which may wait for long: the file is
 * not locked meanwhile. A fresh one is lent, so that nobody takes it up at an
 * offset that is about to change.
 */
struct passing {
	int fd;
	bool lent;
};

/*
 * Of a file that has been lent. Where the call is left by a jump or by
 * cancellation it stays so: the kernel's, until it is closed.
 */
static int pass_lent(struct file *f, struct passing *p)
{
	*p = (struct passing){f->fd, true};
	file_put(f);
	return p->fd;
}

static int pass(struct file *f, struct passing *p)
{
	if (f->state == FILE_FRESH) {
		f->lent++;
		return pass_lent(f, p);
	}
	*p = (struct passing){f->fd, false};
	file_put(f);
	return p->fd;
}

static void take_back(struct file *f, int fd)
{
	struct quiet q;

	if (fdtable_peek(fd) != f || !f->lent)
		return;
	if (f->state == FILE_FRESH) {
		f->lent--;
		return;
	}
	quiet_begin(&q);
	if (!--f->lent && f->state == FILE_TUNED) {
		file_resync(f);
		f->size = reader_size(f);
	}
	quiet_end(&q);
}

/* The answer of such a call counts as the program's and the kernel's. */
static ssize_t passed(struct file *f, struct counts *c, ssize_t r, const struct passing *p)
{
	r = or_errno(r);
	if (!__libc_single_threaded)
		file_lock(f);
	file_count(c, r);
	file_counted(f, c, r);
	if (p->lent)
		take_back(f, p->fd);
	return r;
}

/* A first small write: the file is looked at when there is a second. */
static ssize_t write_first(struct file *f, const void *buf, size_t n)
{
	struct passing p;
	ssize_t r = passed(f, &f->write, pass_write(pass_lent(f, &p), buf, n), &p);

	if (r > 0 && fdtable_peek(p.fd) == f)
		writer_buffered(f, 0, r);
	return r;
}

/*
 * The memory devices: what the kernel would do with them is done here, but
 * for memory that is not there.
 */
static bool memory_device(struct file *f, void *buf, size_t n, bool write)
{
	if (f->kind != KIND_MEMORY || f->state != FILE_TUNED || !n || n > CALL_MOST || f->lent ||
		(f->flags & O_ACCMODE) == (write ? O_RDONLY : O_WRONLY))
		return false;
	if (write) /* null does not even look at it */
		return true;
	/* zero has no end, null nothing else */
	if (f->size != INT64_MAX || !memory_ok(f, buf, n, true))
		return false;
	memset(buf, 0, n);
	return true;
}

/* Without a system call: true. */
static inline bool read_quick(struct file *f, void *buf, size_t n)
{
	if (!small_read(f, buf, n) && !memory_device(f, buf, n, false))
		return false;
	file_count(&f->read, n);
	return true;
}

static inline bool write_quick(struct file *f, const void *buf, size_t n)
{
	if (!small_write(f, buf, n) && !memory_device(f, NULL, n, true))
		return false;
	file_count(&f->write, n);
	return true;
}

static ssize_t read_slow(struct file *f, void *buf, size_t n)
{
	struct quiet q;
	struct passing p;
	ssize_t r;

	if (policy_small_read(f, n))
		return passed(f, &f->read, pass_read(pass(f, &p), buf, n), &p);
	quiet_begin(&q);
	bool tuned = is_tuned(f, false);
	if (tuned && memory_device(f, buf, n, false)) {
		r = n;
		file_count(&f->read, r);
	} else if (tuned) {
		r = reader_read(f, buf, n < CALL_MOST ? n : CALL_MOST);
		file_count(&f->read, r);
	}
	quiet_end(&q);
	return tuned ? r : passed(f, &f->read, pass_read(pass(f, &p), buf, n), &p);
}

static ssize_t write_slow(struct file *f, const void *buf, size_t n)
{
	struct quiet q;
	struct passing p;
	ssize_t r;

	if (policy_small_write(f, n))
		return write_first(f, buf, n);
	quiet_begin(&q);
	bool tuned = is_tuned(f, true);
	if (tuned) {
		r = writer_write(f, buf, n < CALL_MOST ? n : CALL_MOST);
		file_count(&f->write, r);
	}
	quiet_end(&q);
	return tuned ? r : passed(f, &f->write, pass_write(pass(f, &p), buf, n), &p);
}

/* Does BLKTUNE_RATE hold for this call? */
static bool limited(struct file *f, size_t n, bool write)
{
	struct quiet q;

	rate_call(n);
	quiet_begin(&q);
	bool tuned = is_tuned(f, write);
	quiet_end(&q);
	return tuned;
}

/* A call of many blocks is paid for block by block; it stays one call, and the file locked. */
static ssize_t paced(struct file *f, struct counts *c, unsigned char *buf, size_t n, size_t piece)
{
	size_t done = 0, k;
	ssize_t r;

	do {
		k = n - done < piece ? n - done : piece;
		if (done)
			rate_sleep();
		r = c == &f->read ? read_slow(f, buf + done, k) : write_slow(f, buf + done, k);
		c->calls -= done != 0;
		if (r < 0)
			return done ? (ssize_t)done : r;
		done += r;
	} while ((size_t)r == k && done < n);
	return done;
}

ssize_t file_read(struct file *f, void *buf, size_t n)
{
	ssize_t r;

	if (read_quick(f, buf, n))
		return n;
	if (!config.rate)
		return read_slow(f, buf, n);
	if (limited(f, n, false))
		r = paced(f, &f->read, buf, n, config.read_block);
	else
		r = read_slow(f, buf, n);
	pay(f);
	return r;
}

ssize_t file_write(struct file *f, const void *buf, size_t n)
{
	ssize_t r;

	if (write_quick(f, buf, n))
		return n;
	if (!config.rate)
		return write_slow(f, buf, n);
	if (limited(f, n, true))
		r = paced(f, &f->write, (unsigned char *)buf, n, config.write_block);
	else
		r = write_slow(f, buf, n);
	pay(f);
	return r;
}

ssize_t file_pread(struct file *f, void *buf, size_t n, off64_t off)
{
	struct quiet q;
	struct passing p;
	ssize_t r;

	quiet_begin(&q);
	bool tuned = is_tuned(f, false);
	if (tuned) {
		r = reader_pread(f, buf, n < CALL_MOST ? n : CALL_MOST, off);
		file_count(&f->read, r);
	}
	quiet_end(&q);
	if (tuned)
		pay(f);
	return tuned ? r : passed(f, &f->read, real.pread64(pass(f, &p), buf, n, off), &p);
}

ssize_t file_pwrite(struct file *f, const void *buf, size_t n, off64_t off)
{
	struct quiet q;
	struct passing p;
	ssize_t r;

	quiet_begin(&q);
	bool tuned = is_tuned(f, true);
	if (tuned) {
		r = writer_pwrite(f, buf, n, off);
		file_count(&f->write, r);
	}
	quiet_end(&q);
	if (tuned)
		pay(f);
	return tuned ? r : passed(f, &f->write, real.pwrite64(pass(f, &p), buf, n, off), &p);
}

/* Vectors that the kernel would refuse, or that cannot be looked at, are shown to the kernel. */
static bool vector_ok(struct file *f, const struct iovec *v, int n)
{
	size_t sum = 0;

	if (n <= 0 || n > IOV_MAX || !memory_ok(f, v, n * sizeof(*v), false))
		return false;
	for (int i = 0; i < n; i++)
		if (__builtin_add_overflow(sum, v[i].iov_len, &sum))
			return false;
	/* Of nothing: whether the descriptor is open for this is the kernel's to say. */
	return sum && sum <= CALL_MOST;
}

/*
 * A call of the kernel's on a tuned file that may move its offset: settled
 * before, and lent, so that other threads' calls go to the kernel, too. The
 * lock is not held meanwhile. 0, or -errno and the call is not to be made.
 */
static int lend(struct file *f, bool write)
{
	struct quiet q;
	int e = 0;

	quiet_begin(&q);
	if (is_tuned(f, write))
		e = f->lent ? 0 : file_settle(f);
	f->moved |= f->state == FILE_FRESH;
	f->lent += !e && (f->state == FILE_TUNED || f->state == FILE_FRESH);
	quiet_end(&q);
	return e;
}

typedef ssize_t vector_call(int fd, const struct iovec *v, int n);

/* A vector as its kernel call. */
static ssize_t vector_through(struct file *f, struct counts *c, vector_call *call,
	const struct iovec *v, int n)
{
	int e = lend(f, c == &f->write);

	if (e)
		return e;
	struct passing p;
	return passed(f, c, call(pass_lent(f, &p), v, n), &p);
}

/* Its parts in turn, counted as one call; it ends where one comes short. */
static ssize_t vector_parts(struct file *f, bool write, const struct iovec *v, int n)
{
	struct counts *c = write ? &f->write : &f->read;
	ssize_t sum = 0;

	c->calls++;
	for (int i = 0; i < n; i++) {
		void *at = v[i].iov_base;
		size_t k = v[i].iov_len;
		ssize_t r = k;

		if (k && !(write ? write_quick(f, at, k) : read_quick(f, at, k)))
			r = write ? write_slow(f, at, k) : read_slow(f, at, k);
		c->calls -= k != 0;
		if (r < 0)
			sum = sum ? sum : r;
		else
			sum += r;
		if (r < (ssize_t)k)
			break;
	}
	pay(f);
	return sum;
}

ssize_t file_readv(struct file *f, const struct iovec *v, int n)
{
	struct quiet q;
	struct passing p;

	quiet_begin(&q);
	bool tuned = is_tuned(f, false);
	bool ok = tuned && vector_ok(f, v, n);
	quiet_end(&q);
	if (!tuned)
		return passed(f, &f->read, pass_readv(pass(f, &p), v, n), &p);
	if (!ok)
		return vector_through(f, &f->read, real.readv, v, n);
	return vector_parts(f, false, v, n);
}

ssize_t file_writev(struct file *f, const struct iovec *v, int n)
{
	struct quiet q;
	struct passing p;

	quiet_begin(&q);
	bool tuned = is_tuned(f, true);
	bool ok = tuned && vector_ok(f, v, n);
	/* Nothing of it is taken before all of it can be read. */
	for (int i = 0; ok && i < n; i++)
		ok = !v[i].iov_len || memory_ok(f, v[i].iov_base, v[i].iov_len, false);
	quiet_end(&q);
	if (!tuned)
		return passed(f, &f->write, pass_writev(pass(f, &p), v, n), &p);
	if (!ok)
		return vector_through(f, &f->write, real.writev, v, n);
	return vector_parts(f, true, v, n);
}

typedef ssize_t vector_at_call(int fd, const struct iovec *v, int n, off64_t off);
typedef ssize_t vector_flags_call(int fd, const struct iovec *v, int n, off64_t off, int flags);

/* With flags, or at an offset: the kernel's own call, behind what is pending. */
static ssize_t vector_at(struct file *f, bool write, vector_at_call *at, vector_flags_call *flagged,
	const struct iovec *v, int n, off64_t off, int flags)
{
	int e = lend(f, write);

	if (e)
		return e;
	struct passing p;
	pass_lent(f, &p);
	ssize_t r = flags ? flagged(p.fd, v, n, off, flags) : at(p.fd, v, n, off);
	return passed(f, write ? &f->write : &f->read, r, &p);
}

ssize_t file_preadv(struct file *f, const struct iovec *v, int n, off64_t off, int flags)
{
	if (off == -1 && !flags)
		return file_readv(f, v, n);
	return vector_at(f, false, next(preadv64), next(preadv64v2), v, n, off, flags);
}

ssize_t file_pwritev(struct file *f, const struct iovec *v, int n, off64_t off, int flags)
{
	if (off == -1 && !flags)
		return file_writev(f, v, n);
	return vector_at(f, true, next(pwritev64), next(pwritev64v2), v, n, off, flags);
}

/* A seek that only moves the program's position. */
static off64_t seek_within(struct file *f, off64_t pos)
{
	off64_t old = file_pos(f);

	if (pos == old)
		return pos;
	if (f->doing == WRITING || f->dirty) {
		int e = writer_drain(f);

		if (e)
			return e;
	}
	if (f->doing == READING && pos > old && pos - f->base <= (off64_t)f->len) {
		f->cur = ((f->cur >> 32) + 1) << 32 | (uint32_t)(pos - f->base);
		return pos;
	}
	reader_drop(f);
	file_set_pos(f, pos);
	f->ramp = config.min;
	if (++f->jumps > JUMPS_MOST && f->read.transfers > JUMPS_MOST)
		file_release(f, REASON_RANDOM);
	return pos;
}

static off64_t seek(struct file *f, off64_t off, int whence)
{
	off64_t pos = off;
	int e;

	if (whence == SEEK_CUR && __builtin_add_overflow(file_pos(f), off, &pos))
		pos = -1;
	if ((whence == SEEK_SET || whence == SEEK_CUR) && f->kind != KIND_MEMORY && pos >= 0 &&
		pos <= (f->kind == KIND_BLOCK ? f->size : POS_MOST))
		return seek_within(f, pos);
	e = file_settle(f);
	if (e)
		return e;
	pos = real.lseek64(f->fd, off, whence);
	if (pos < 0)
		return -errno;
	file_resync(f);
	return pos;
}

off64_t file_seek(struct file *f, off64_t off, int whence)
{
	struct quiet q;
	off64_t pos;

	if (f->state != FILE_TUNED || f->lent) {
		f->moved |= off || whence != SEEK_CUR;
		return or_errno(real.lseek64(f->fd, off, whence));
	}
	if (!off && whence == SEEK_CUR && f->kind != KIND_MEMORY)
		return file_pos(f);
	quiet_begin(&q);
	pos = seek(f, off, whence);
	if (f->state != FILE_TUNED && pos >= 0)
		real.lseek64(f->fd, pos, SEEK_SET);
	quiet_end(&q);
	return pos;
}
