/* The data calls: a small-call path without a system call, and the way to the rest. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "../engine/pool.h"
#include "../real.h"
#include "config.h"
#include "file.h"
#include "pass.h"
#include "policy.h"
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
			(uintptr_t)buf < f->ok_low || (uintptr_t)buf + n > f->ok_high)
			return false;
		memcpy(buf, data + at, n);
		if (commit(f, cur, n))
			return true;
	}
}

/* The block was sent off under us: its buffer was left for us to give back. */
static void unpin(struct file *f, unsigned char *data, uint32_t size)
{
	struct quiet q;

	quiet_begin(&q);
	if (f->data != data)
		pool_put(data, size);
	quiet_end(&q);
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
		uint32_t at = PLACE(cur), size = f->size_block;
		unsigned char *data = f->data;
		bool done;

		/* On top of another small write: its bytes go where ours would. */
		if (f->pinned || f->doing != WRITING || at >= f->len || n >= f->len - at || !n ||
			(uintptr_t)buf < f->ok_low || (uintptr_t)buf + n > f->ok_high)
			return false;
		if (config.hold == HOLD_AUTO) {
			uint64_t now = clock_coarse();

			if (f->slow || (int64_t)(now - f->wrote_at) > PAUSE_NS)
				return false;
			f->wrote_at = now;
			f->waited_at = __atomic_load_n(&file_waited, __ATOMIC_RELAXED);
		}
		__atomic_store_n(&f->pinned, data, __ATOMIC_RELEASE);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (f->cur != cur) { /* a signal came before the pin */
			f->pinned = NULL;
			continue;
		}
		memcpy(data + at, buf, n);
		done = commit(f, cur, n);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		f->pinned = NULL;
		if (!done)
			unpin(f, data, size);
		if (done) {
			f->grain = n;
			return true;
		}
	}
}

/* Files that are not tuned, and what a call on a fresh one finds out. */
static bool is_tuned(struct file *f, size_t n, bool write)
{
	if (f->state == FILE_FRESH)
		policy_classify(f, n, write);
	return f->state == FILE_TUNED;
}

static ssize_t or_errno(ssize_t r)
{
	return r < 0 ? -errno : r;
}

/* Around a call that is passed as it is, which may wait for long: the file is not held. */
static int pause_for(struct file *f)
{
	int fd = f->fd;

	file_put(f);
	return fd;
}

/* The answer of such a call counts as the program's and the kernel's. */
static ssize_t passed(struct file *f, struct counts *c, ssize_t r)
{
	r = or_errno(r);
	if (!__libc_single_threaded)
		lock_take(&f->lock);
	file_count(c, r);
	file_counted(f, c, r);
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

ssize_t file_read(struct file *f, void *buf, size_t n)
{
	struct quiet q;
	ssize_t r;

	if (small_read(f, buf, n) || memory_device(f, buf, n, false)) {
		file_count(&f->read, n);
		return n;
	}
	quiet_begin(&q);
	bool tuned = is_tuned(f, n, false);
	if (tuned && memory_device(f, buf, n, false)) {
		r = n;
		file_count(&f->read, r);
	} else if (tuned) {
		r = reader_read(f, buf, n < CALL_MOST ? n : CALL_MOST);
		file_count(&f->read, r);
	}
	quiet_end(&q);
	return tuned ? r : passed(f, &f->read, pass_read(pause_for(f), buf, n));
}

ssize_t file_write(struct file *f, const void *buf, size_t n)
{
	struct quiet q;
	ssize_t r;

	if (small_write(f, buf, n) || memory_device(f, NULL, n, true)) {
		file_count(&f->write, n);
		return n;
	}
	quiet_begin(&q);
	bool tuned = is_tuned(f, n, true);
	if (tuned) {
		r = writer_write(f, buf, n < CALL_MOST ? n : CALL_MOST);
		file_count(&f->write, r);
	}
	quiet_end(&q);
	return tuned ? r : passed(f, &f->write, pass_write(pause_for(f), buf, n));
}

ssize_t file_pread(struct file *f, void *buf, size_t n, off64_t off)
{
	struct quiet q;
	ssize_t r;

	quiet_begin(&q);
	bool tuned = is_tuned(f, n, false);
	if (tuned) {
		r = reader_pread(f, buf, n < CALL_MOST ? n : CALL_MOST, off);
		file_count(&f->read, r);
	}
	quiet_end(&q);
	return tuned ? r : passed(f, &f->read, real.pread64(pause_for(f), buf, n, off));
}

ssize_t file_pwrite(struct file *f, const void *buf, size_t n, off64_t off)
{
	struct quiet q;
	ssize_t r;

	quiet_begin(&q);
	bool tuned = is_tuned(f, n, true);
	if (tuned) {
		r = writer_pwrite(f, buf, n, off);
		file_count(&f->write, r);
	}
	quiet_end(&q);
	return tuned ? r : passed(f, &f->write, real.pwrite64(pause_for(f), buf, n, off));
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
	if (is_tuned(f, SIZE_MAX, write)) {
		e = f->lent ? 0 : file_settle(f);
		f->lent += !e;
	}
	quiet_end(&q);
	return e;
}

static void take_back(struct file *f, int fd)
{
	struct quiet q;

	if (fdtable_peek(fd) != f || !f->lent)
		return;
	quiet_begin(&q);
	if (!--f->lent && f->state == FILE_TUNED) {
		file_resync(f);
		f->size = reader_size(f);
	}
	quiet_end(&q);
}

typedef ssize_t vector_call(int fd, const struct iovec *v, int n);

/* A vector as its kernel call. */
static ssize_t vector_through(struct file *f, struct counts *c, vector_call *call,
	const struct iovec *v, int n)
{
	int e = lend(f, c == &f->write);

	if (e)
		return e;
	int fd = pause_for(f);
	ssize_t r = passed(f, c, call(fd, v, n));
	take_back(f, fd);
	return r;
}

ssize_t file_readv(struct file *f, const struct iovec *v, int n)
{
	struct quiet q;
	ssize_t sum = 0;

	quiet_begin(&q);
	bool tuned = is_tuned(f, SIZE_MAX, false);
	bool ok = tuned && vector_ok(f, v, n);
	quiet_end(&q);
	if (!tuned)
		return passed(f, &f->read, pass_readv(pause_for(f), v, n));
	if (!ok)
		return vector_through(f, &f->read, real.readv, v, n);
	f->read.calls++;
	for (int i = 0; i < n; i++) {
		ssize_t r = v[i].iov_len ? file_read(f, v[i].iov_base, v[i].iov_len) : 0;

		f->read.calls -= v[i].iov_len != 0;
		if (r < 0)
			return sum ? sum : r;
		sum += r;
		if ((size_t)r < v[i].iov_len)
			break;
	}
	return sum;
}

ssize_t file_writev(struct file *f, const struct iovec *v, int n)
{
	struct quiet q;
	ssize_t sum = 0;

	quiet_begin(&q);
	bool tuned = is_tuned(f, SIZE_MAX, true);
	bool ok = tuned && vector_ok(f, v, n);
	/* Nothing of it is taken before all of it can be read. */
	for (int i = 0; ok && i < n; i++)
		ok = !v[i].iov_len || memory_ok(f, v[i].iov_base, v[i].iov_len, false);
	quiet_end(&q);
	if (!tuned)
		return passed(f, &f->write, pass_writev(pause_for(f), v, n));
	if (!ok)
		return vector_through(f, &f->write, real.writev, v, n);
	f->write.calls++;
	for (int i = 0; i < n; i++) {
		ssize_t r = v[i].iov_len ? file_write(f, v[i].iov_base, v[i].iov_len) : 0;

		f->write.calls -= v[i].iov_len != 0;
		if (r < 0)
			return sum ? sum : r;
		sum += r;
		if ((size_t)r < v[i].iov_len)
			break;
	}
	return sum;
}

/* With flags, or at an offset: the kernel's own call, behind what is pending. */

ssize_t file_preadv(struct file *f, const struct iovec *v, int n, off64_t off, int flags)
{
	ssize_t r;
	int e;

	if (off == -1 && !flags)
		return file_readv(f, v, n);
	e = lend(f, false);
	if (e)
		return e;
	int fd = pause_for(f);
	r = flags ? next(preadv64v2)(fd, v, n, off, flags) : next(preadv64)(fd, v, n, off);
	r = passed(f, &f->read, r);
	take_back(f, fd);
	return r;
}

ssize_t file_pwritev(struct file *f, const struct iovec *v, int n, off64_t off, int flags)
{
	ssize_t r;
	int e;

	if (off == -1 && !flags)
		return file_writev(f, v, n);
	e = lend(f, true);
	if (e)
		return e;
	int fd = pause_for(f);
	r = flags ? next(pwritev64v2)(fd, v, n, off, flags) : next(pwritev64)(fd, v, n, off);
	r = passed(f, &f->write, r);
	take_back(f, fd);
	return r;
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
		f->moved = true;
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
