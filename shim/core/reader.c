#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "../engine/pool.h"
#include "../real.h"
#include "../sys.h"
#include "cache.h"
#include "config.h"
#include "policy.h"
#include "rate.h"
#include "reader.h"
#include "report.h"
#include "writer.h"

static void give_back(struct file *f)
{
	pool_put(f->data, f->size_block);
	f->data = NULL;
	f->size_block = 0;
}

/* Waits for what is in flight, and forgets it. */
static void drop_ahead(struct file *f)
{
	while (f->ahead_count) {
		struct block *b = &f->ahead[f->ahead_head];

		engine_wait(&b->t);
		pool_put(b->data, b->size);
		f->ahead_head = (f->ahead_head + 1) % DEPTH_MAX;
		f->ahead_count--;
	}
}

static void drop_side(struct file *f)
{
	pool_put(f->side.data, f->side.size);
	f->side.data = NULL;
	f->side.to = 0;
}

void reader_drop(struct file *f)
{
	if (f->side.data)
		drop_side(f);
	if (f->doing != READING)
		return;
	drop_ahead(f);
	give_back(f);
	file_set_pos(f, file_pos(f));
}

off64_t reader_size(struct file *f)
{
	struct stat64 st;
	int64_t mtime;
	long r;

	if (f->kind != KIND_REGULAR)
		return f->size;
	r = sys(SYS_FSTAT, f->fd, &st);
	if (sys_failed(r))
		return r;
	mtime = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
	if ((st.st_size != f->size || mtime != f->mtime) && f->doing == READING)
		drop_ahead(f);
	f->size = st.st_size;
	f->mtime = mtime;
	return f->size;
}

static bool want_direct(struct file *f)
{
	if (!f->direct || (f->kind == KIND_REGULAR && (uint64_t)f->size < config.direct_min))
		return false;
	return policy_direct(f, false);
}

/*
 * Where a transfer that is to deliver the bytes from pos on begins and ends:
 * aligned for O_DIRECT, at block boundaries once the ramp has reached the
 * block size, never beyond the end of the file but to complete the last unit.
 */
static void range(const struct file *f, off64_t pos, bool direct, off64_t *low, off64_t *high)
{
	uint32_t unit = direct ? f->align : 1;

	*low = pos / unit * unit;
	*high = *low + f->ramp;
	if (f->ramp >= config.read_block && *high / f->ramp * f->ramp - pos >= config.min)
		*high = *high / f->ramp * f->ramp;
	if (*high > f->size)
		*high = f->size;
	*high = (*high + unit - 1) / unit * unit;
	if (*high - *low > config.read_block && config.read_block >= unit)
		*high = *low + config.read_block / unit * unit;
}

static void describe(struct file *f, struct block *b, off64_t low, off64_t high)
{
	b->base = low / PAGE * PAGE;
	b->from = low - b->base;
	b->to = b->from;
	b->t = (struct transfer){
		.fd = f->fd,
		.buf = b->data + b->from,
		.len = high - low,
		.off = f->kind == KIND_MEMORY ? 0 : low,
	};
}

/* A buffer for [low, high): the whole, or as much as the pool has. */
static bool buffer(struct block *b, off64_t low, off64_t *high, uint32_t unit)
{
	off64_t base = low / PAGE * PAGE;

	for (;;) {
		b->size = *high - base;
		b->data = pool_get(b->size, true);
		if (b->data)
			return true;
		if (*high - low <= (off64_t)config.min || *high - low <= unit)
			return false;
		off64_t half = (*high - low) / 2;
		*high = low + (half < (off64_t)unit ? unit : half / unit * unit);
	}
}

/* One synchronous transfer into b: bytes, or -errno. A refusal of O_DIRECT is not shown. */
static ssize_t fetch(struct file *f, struct block *b, bool direct)
{
	ssize_t r;

	if (file_set_direct(f, direct)) {
		f->direct = false;
		if (file_set_direct(f, false))
			return -EIO;
	}
	uint64_t since = wait_begin();
	if (f->behind && !f->direct_set && f->size >= (off64_t)config.direct_min &&
		!cache_hot(f, b->t.off, b->t.off + b->t.len))
		r = cache_read(f, b->t.buf, b->t.len, b->t.off);
	else
		r = engine_do(&b->t);
	wait_end(&f->read, since);
	if (r == -EINVAL && f->direct_set) {
		f->direct = false;
		return fetch(f, b, false);
	}
	file_counted(f, &f->read, r);
	return r;
}

/* The next transfers of a sequential run are started behind the current block. */
static void go_on(struct file *f)
{
	off64_t next = f->base + f->len;
	int depth;

	/* Only now is an engine needed, and made. */
	if (f->ramp < config.read_block || !f->direct_set || f->kind == KIND_MEMORY ||
		next >= f->size)
		return;
	depth = policy_depth();
	if (depth < 2 || rate_owes())
		return;
	if (!f->ahead && !(f->ahead = file_ring()))
		return;
	if (f->ahead_count) {
		struct block *last = &f->ahead[(f->ahead_head + f->ahead_count - 1) % DEPTH_MAX];

		next = last->t.off + last->t.len;
	}
	while (f->ahead_count < depth && next < f->size && next % f->align == 0) {
		struct block *b = &f->ahead[(f->ahead_head + f->ahead_count) % DEPTH_MAX];
		off64_t low, high;

		range(f, next, true, &low, &high);
		if (cache_hot(f, low, high))
			return; /* that one is copied from the cache, when it is its turn */
		if (!buffer(b, low, &high, f->align))
			return;
		describe(f, b, low, high);
		engine_start(&b->t);
		f->ahead_count++;
		next = high;
	}
}

/* b becomes the current block, with got bytes from b->from on; the position is pos. */
static void install(struct file *f, struct block *b, ssize_t got, off64_t pos)
{
	f->data = b->data;
	f->size_block = b->size;
	f->base = b->base;
	f->len = b->from + got;
	f->cur = ((f->cur >> 32) + 1) << 32 | (uint32_t)(pos - b->base);
	file_doing(f, READING);
	/* Monitors read /proc/PID/fdinfo. */
	if (f->kind != KIND_MEMORY && f->kernel != pos)
		f->kernel = real.lseek64(f->fd, pos, SEEK_SET);
	go_on(f);
}

/* The oldest transfer in flight, if it delivers pos: 1; 0 when it does not. */
static int from_ahead(struct file *f, off64_t pos)
{
	struct block *first = &f->ahead[f->ahead_head], b;
	ssize_t r;

	if (!f->ahead_count)
		return 0;
	if (first->t.off != pos) {
		drop_ahead(f);
		return 0;
	}
	uint64_t since = wait_begin();
	r = engine_wait(&first->t);
	wait_end(&f->read, since);
	b = *first;
	f->ahead_head = (f->ahead_head + 1) % DEPTH_MAX;
	f->ahead_count--;
	if (r <= 0 || ((size_t)r < b.t.len && b.t.off + r < f->size)) {
		/* Failed or short: the program's own call goes to the kernel. */
		pool_put(b.data, b.size);
		drop_ahead(f);
		f->ramp = config.min;
		return 0;
	}
	file_counted(f, &f->read, r);
	give_back(f);
	install(f, &b, r, pos);
	return 1;
}

/*
 * Makes the bytes at the program's position the current block's.
 * 1: there are some; 0: end of the file; -errno: nothing could be read ahead,
 * and the program's own call is to be the kernel's.
 */
static int fill(struct file *f)
{
	off64_t pos = file_pos(f), size = reader_size(f), low, high;
	bool direct;
	ssize_t r;

	if (size < 0)
		return size;
	if (pos >= size)
		return 0;
	if (pos < f->wary)
		return -EIO;
	if (f->doing == READING) {
		int e = from_ahead(f, pos);

		if (e)
			return e;
		drop_ahead(f);
		give_back(f);
		file_set_pos(f, pos);
	}
	direct = want_direct(f);
	if (f->wanted)
		return -EOPNOTSUPP;
	range(f, pos, direct, &low, &high);
	if (direct && cache_hot(f, low, high))
		direct = false;
	struct block b = {0};
	if (!buffer(&b, low, &high, direct ? f->align : 1))
		return -ENOMEM;
	describe(f, &b, low, high);
	r = fetch(f, &b, direct);
	if (r <= pos - low) {
		pool_put(b.data, b.size);
		if (r < 0)
			f->wary = high;
		return r < 0 ? r : 0;
	}
	f->ramp = f->ramp * 2ULL < config.read_block ? f->ramp * 2 : config.read_block;
	if (f->jumps)
		f->jumps--;
	install(f, &b, r, pos);
	return 1;
}

int reader_bytes(struct file *f, const unsigned char **bytes, size_t *n)
{
	int r = 1;

	if (f->doing != READING || PLACE(f->cur) >= f->len)
		r = fill(f);
	if (r < 0)
		return r;
	*n = r ? f->len - PLACE(f->cur) : 0;
	*bytes = r ? f->data + PLACE(f->cur) : NULL;
	return 0;
}

void reader_used(struct file *f, size_t n)
{
	f->cur = ((f->cur >> 32) + 1) << 32 | (PLACE(f->cur) + n);
}

/* read(2) as the program wrote it. */
static ssize_t through(struct file *f, void *buf, size_t n)
{
	int e = f->lent ? 0 : file_settle(f);
	ssize_t r;

	if (e)
		return e;
	if (f->wanted && f->state == FILE_TUNED) {
		enum reason reason = f->wanted;

		f->wanted = REASON_NONE;
		file_release(f, reason);
	}
	uint64_t since = wait_begin();
	r = real.read(f->fd, buf, n);
	wait_end(&f->read, since);
	if (r < 0)
		return -errno;
	if (f->state != FILE_TUNED)
		return r;
	file_counted(f, &f->read, r);
	if (f->kind != KIND_MEMORY && !f->lent) {
		f->kernel = file_pos(f) + r;
		file_set_pos(f, f->kernel);
	}
	return r;
}

/* The last left bytes of a read of n: an error behind delivered bytes is the next call's. */
static ssize_t rest_through(struct file *f, void *buf, size_t left, size_t n)
{
	ssize_t r = through(f, buf, left);

	if (left == n)
		return r;
	return (ssize_t)(n - left) + (r > 0 ? r : 0);
}

/* Somebody else has had a word since this was read: has the file changed? */
static void renew(struct file *f)
{
	uint64_t epoch = __atomic_load_n(&file_epoch, __ATOMIC_ACQUIRE);
	off64_t size = f->size;
	int64_t mtime = f->mtime;

	if (f->epoch == epoch)
		return;
	f->epoch = epoch;
	if ((f->doing != READING && !f->side.data) || f->kind != KIND_REGULAR)
		return;
	if (reader_size(f) != size || f->mtime != mtime)
		reader_drop(f);
}

ssize_t reader_read(struct file *f, void *buf, size_t n)
{
	unsigned char *to = buf;
	size_t left = n;

	if (f->doing == WRITING || f->dirty) {
		int e = writer_drain(f);

		if (e)
			return e;
	}
	/* Draining may have shown that it is not for us, and released it. */
	if (!n || (f->flags & O_ACCMODE) == O_WRONLY || f->lent || f->state != FILE_TUNED)
		return through(f, buf, n);
	renew(f);
	while (left) {
		const unsigned char *from;
		size_t k;
		int e = reader_bytes(f, &from, &k);

		if (e)
			return rest_through(f, to, left, n);
		if (!k)
			break;
		if (k > left)
			k = left;
		if (!memory_ok(f, to, k, true))
			return rest_through(f, to, left, n);
		memcpy(to, from, k);
		reader_used(f, k);
		to += k;
		left -= k;
	}
	return n - left;
}

/* --- pread --- */

static ssize_t pthrough(struct file *f, void *buf, size_t n, off64_t off)
{
	int e = file_set_direct(f, false);
	ssize_t r;

	if (e)
		return e;
	uint64_t since = wait_begin();
	r = real.pread64(f->fd, buf, n, off);
	wait_end(&f->read, since);
	if (r < 0)
		return -errno;
	file_counted(f, &f->read, r);
	return r;
}

/* Sequential preads have a block of their own. 1: it holds off; 0: end; -errno: use the kernel. */
static int fill_side(struct file *f, off64_t off)
{
	off64_t size = reader_size(f), low, high;
	bool direct;
	ssize_t r;

	if (f->side.data)
		drop_side(f);
	if (size < 0)
		return size;
	if (off >= size)
		return 0;
	if (off < f->wary || f->kind == KIND_MEMORY)
		return -EIO;
	direct = want_direct(f);
	if (f->wanted)
		return -EOPNOTSUPP;
	range(f, off, direct, &low, &high);
	if (direct && cache_hot(f, low, high))
		direct = false;
	if (!buffer(&f->side, low, &high, direct ? f->align : 1))
		return -ENOMEM;
	describe(f, &f->side, low, high);
	if (f->ahead_count && !direct)
		drop_ahead(f);
	r = fetch(f, &f->side, direct);
	if (r <= off - low) {
		drop_side(f);
		if (r < 0)
			f->wary = high;
		return r < 0 ? r : 0;
	}
	f->side.to = f->side.from + r;
	f->ramp = f->ramp * 2ULL < config.read_block ? f->ramp * 2 : config.read_block;
	return 1;
}

ssize_t reader_pread(struct file *f, void *buf, size_t n, off64_t off)
{
	unsigned char *to = buf;
	size_t left = n;

	if (f->doing == WRITING || f->dirty) {
		int e = writer_drain(f);

		if (e)
			return e;
	}
	renew(f);
	f->run = off == f->next ? f->run + 1 : 0;
	if (!f->run && f->side.data)
		drop_side(f);
	if (!f->run && ++f->jumps > JUMPS_MOST) {
		int e = file_release(f, REASON_RANDOM);

		if (e)
			return e;
	}
	if (f->run < 2 || f->lent || off < 0 || !n || f->state != FILE_TUNED ||
		(f->flags & O_ACCMODE) == O_WRONLY || !memory_ok(f, buf, n, true)) {
		ssize_t r = pthrough(f, buf, n, off);

		if (r > 0)
			f->next = off + r;
		return r;
	}
	while (left) {
		struct block *s = &f->side;
		int e = 1;

		if (!s->data || off < s->base + (off64_t)s->from || off >= s->base + (off64_t)s->to)
			e = fill_side(f, off);
		if (e < 0) {
			ssize_t r = pthrough(f, to, left, off);

			f->next = off + (r > 0 ? r : 0);
			return left == n ? r : (ssize_t)(n - left) + (r > 0 ? r : 0);
		}
		if (!e)
			break;
		size_t k = s->base + s->to - off;
		if (k > left)
			k = left;
		memcpy(to, s->data + (off - s->base), k);
		to += k;
		off += k;
		left -= k;
	}
	f->next = off;
	return n - left;
}
