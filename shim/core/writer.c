#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../engine/pool.h"
#include "../real.h"
#include "cache.h"
#include "config.h"
#include "policy.h"
#include "reader.h"
#include "report.h"
#include "stream.h"
#include "writer.h"

#define FIRST_BUFFER (64 << 10)
#define PACE         (1 << 20) /* a slow writer is fast again after this much without a rest */

static off64_t align_up(off64_t v, uint32_t to)
{
	return (v + to - 1) / to * to;
}

static off64_t align_down(off64_t v, uint32_t to)
{
	return v / to * to;
}

/* --- into the kernel --- */

/* Where the bytes of the program stand in the file's metadata now. */
static void landed(struct file *f, off64_t end)
{
	if (end > f->size)
		f->size = end;
	/* Monitors read /proc/PID/fdinfo; and whoever looks finds the offset true soon. */
	if (f->kind != KIND_MEMORY && f->kernel != end)
		f->kernel = real.lseek64(f->fd, end, SEEK_SET);
}

static ssize_t timed(struct file *f, struct transfer *t)
{
	uint64_t since = wait_begin();
	ssize_t r = engine_wait(t);

	wait_end(&f->write, since);
	file_counted(f, &f->write, r);
	return r;
}

/* write where the kernel's offset is there already: it need not be set afterwards. */
static ssize_t write_at(struct file *f, const void *buf, size_t n, off64_t off)
{
	bool here = f->kernel == off;
	ssize_t r = here ? real.write(f->fd, buf, n) : real.pwrite64(f->fd, buf, n, off);

	if (r < 0)
		return -errno;
	if (here)
		f->kernel += r;
	return r;
}

void writer_buffered(struct file *f, off64_t off, off64_t n)
{
	if (f->buffered_high <= f->buffered_low || off < f->buffered_low)
		f->buffered_low = off;
	if (off + n > f->buffered_high)
		f->buffered_high = off + n;
	f->loose = true;
}

/*
 * Before the first transfer that is direct, or is written out at once, and
 * extends the file behind buffered ones of ours, those are written out: across
 * a power cut its bytes must not be there without the ones before them.
 */
static void write_out(struct file *f, off64_t end)
{
	off64_t low = f->buffered_low, n = f->buffered_high - low;
	int e;

	if (n <= 0 || end <= f->size || f->kind != KIND_REGULAR)
		return;
	uint64_t since = wait_begin();
	e = next(sync_file_range)(f->fd, low, n,
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
	if (e < 0 && (errno == ENOSYS || errno == EINVAL || errno == ESPIPE))
		e = next(fdatasync)(f->fd);
	wait_end(&f->write, since);
	if (e < 0) /* The kernel says this once: keep it for the program. */
		file_set_late(f, -errno);
	f->buffered_low = f->buffered_high = 0;
	f->loose = false;
}

/* One ordinary pwrite, through the cache: bytes, or -errno. */
static ssize_t plain(struct file *f, const void *buf, size_t n, off64_t off)
{
	bool behind = f->behind && off + (off64_t)n >= (off64_t)config.direct_min;
	int e = file_set_direct(f, false);
	ssize_t r;

	if (e)
		return e;
	if (behind && f->loose)
		write_out(f, off + n);
	bool loose = f->loose || !behind;
	uint64_t since = wait_begin();
	do {
		if (behind)
			r = cache_write(f, buf, n, off);
		else
			r = write_at(f, buf, n, off);
	} while (r == -EINTR);
	wait_end(&f->write, since);
	if (r < 0)
		return r;
	file_counted(f, &f->write, r);
	writer_buffered(f, off, r);
	f->loose = loose;
	return r;
}

/* All of [b->from, to) through the cache in pieces of at most grain: 0 or -errno. */
static int plain_all(struct file *f, struct block *b, size_t to, size_t grain)
{
	while (b->from < to) {
		size_t n = to - b->from < grain ? to - b->from : grain;
		ssize_t r = plain(f, b->data + b->from, n, b->base + b->from);

		if (r < 0)
			return r;
		if (!r)
			return -ENOSPC; /* a device's end: write(2) would say so next */
		b->from += r;
		landed(f, b->base + b->from);
	}
	return 0;
}

/*
 * Replays [b->from, b->to), which a direct transfer did not take: as it is
 * when direct I/O itself was refused, else at the program's own granularity,
 * so that the kernel takes as much as it would have taken from the program.
 */
static int replay(struct file *f, struct block *b, int error)
{
	size_t grain = f->grain ? f->grain : PAGE;

	if (error == -EINVAL || error == -EOPNOTSUPP) {
		f->direct = false;
		grain = config.write_block;
	}
	error = plain_all(f, b, b->to, grain);
	if (error)
		f->strict = true;
	return error;
}

/* Is there to be a direct transfer up to end? Looks at the file once, when first needed. */
static bool want_direct(struct file *f, off64_t end)
{
	off64_t size = end > f->size ? end : f->size;

	if (!f->direct || (f->kind == KIND_REGULAR && (uint64_t)size < config.direct_min))
		return false;
	return policy_direct(f, true);
}

static int start(struct file *f, struct block *b)
{
	write_out(f, b->base + b->to);
	if (file_set_direct(f, true)) {
		f->direct = false;
		return -EINVAL;
	}
	b->t = (struct transfer){
		.fd = f->fd,
		.write = true,
		.buf = b->data + b->from,
		.len = b->to - b->from,
		.off = b->base + b->from,
	};
	engine_start(&b->t);
	return 0;
}

/* Takes the result of a block's transfer in: 0 when all of it is in the kernel. */
static int take_in(struct file *f, struct block *b)
{
	ssize_t r = timed(f, &b->t);

	if (r > 0) {
		b->from += r;
		landed(f, b->base + b->from);
	}
	if (b->from == b->to)
		return 0;
	return replay(f, b, r < 0 ? r : 0);
}

/* Waits for the oldest block in flight. */
static int reap(struct file *f)
{
	struct block *b = &f->ahead[f->ahead_head];
	int e = engine_busy(&b->t) || b->t.len ? take_in(f, b) : replay(f, b, f->error);

	b->t.len = 0;
	if (e)
		return e;
	pool_put(b->data, b->size);
	f->ahead_head = (f->ahead_head + 1) % DEPTH_MAX;
	f->ahead_count--;
	return 0;
}

static int reap_to(struct file *f, int most)
{
	while (f->ahead_count > most) {
		int e = reap(f);

		if (e)
			return e;
	}
	return 0;
}

/* A block that is not all aligned: head and tail through the cache, what can be direct between. */
static int put_pieces(struct file *f, struct block *b)
{
	off64_t low = b->base + b->from, high = b->base + b->to;
	off64_t first = align_up(low, f->align), last = align_down(high, f->align);
	int e;

	if (first != low)
		first = align_up(low + config.min, f->align);
	if (!want_direct(f, high) || last - first < (off64_t)config.min)
		return plain_all(f, b, b->to, config.write_block);
	e = plain_all(f, b, first - b->base, config.write_block);
	if (e)
		return e;
	struct block middle = *b;

	middle.to = last - b->base;
	e = start(f, &middle) ? replay(f, &middle, -EINVAL) : take_in(f, &middle);
	b->from = middle.from;
	return e ? e : plain_all(f, b, b->to, config.write_block);
}

/* The current block's buffer is free, or stays with the small write that a signal interrupted. */
static void give_back(struct file *f)
{
	if (f->pinned != f->data)
		pool_put(f->data, f->size_block);
	f->data = NULL;
	f->size_block = 0;
}

static bool in_flight_possible(struct file *f)
{
	if (!f->ahead && policy_depth() > 1)
		f->ahead = file_ring();
	return f->ahead && policy_depth() > 1;
}

/* The current block could not go: it stays, and every write looks at it first. */
static int stuck(struct file *f, const struct block *b, int error)
{
	f->from = b->from;
	f->len = 0;
	f->strict = true;
	return error;
}

/* Sends the current block off. 0, or -errno: bytes stay held, in flight or in the block. */
static int flush(struct file *f)
{
	off64_t pos = file_pos(f);
	struct block b = {
		.data = f->data,
		.size = f->size_block,
		.base = f->base,
		.from = f->from,
		.to = PLACE(f->cur),
	};
	off64_t low = b.base + b.from, high = b.base + b.to;
	int e;

	/* Somebody may have cut the file: what looks like an overwrite would extend it. */
	if (f->ahead_count && f->kind == KIND_REGULAR && high <= f->size)
		f->size = reader_size(f);
	if (low % f->align || high % f->align || f->pinned == f->data || !want_direct(f, high) ||
		!in_flight_possible(f)) {
		e = reap_to(f, 0);
		if (!e && b.from < b.to)
			e = put_pieces(f, &b);
		if (e)
			return stuck(f, &b, e);
		give_back(f);
	} else {
		/* What extends the file lands in order: one such transfer at a time. */
		e = reap_to(f, high > f->size || config.rate ? 0 : policy_depth() - 1);
		if (e)
			return stuck(f, &b, e);
		struct block *slot = &f->ahead[(f->ahead_head + f->ahead_count) % DEPTH_MAX];

		*slot = b;
		e = start(f, slot);
		if (e) {
			e = put_pieces(f, &b);
			if (e)
				return stuck(f, &b, e);
			give_back(f);
		} else {
			f->ahead_count++;
			f->data = NULL;
			f->size_block = 0;
		}
	}
	file_set_pos(f, pos);
	if (!f->ahead_count)
		file_mark_dirty(f, false);
	return 0;
}

int writer_drain(struct file *f)
{
	int e = 0;

	if (f->doing == WRITING)
		e = flush(f);
	else if (!f->dirty)
		return 0;
	if (!e)
		e = reap_to(f, 0);
	if (!e)
		file_mark_dirty(f, false);
	f->error = e;
	if (!e && f->wanted && f->state == FILE_TUNED) {
		enum reason reason = f->wanted;

		f->wanted = REASON_NONE;
		return file_release(f, reason);
	}
	return e;
}

void writer_discard(struct file *f)
{
	if (!f->dirty && f->doing != WRITING)
		return;
	while (f->ahead_count) {
		struct block *b = &f->ahead[f->ahead_head];

		engine_wait(&b->t);
		pool_put(b->data, b->size);
		f->ahead_head = (f->ahead_head + 1) % DEPTH_MAX;
		f->ahead_count--;
	}
	if (f->doing == WRITING)
		give_back(f);
	file_set_pos(f, file_pos(f));
	file_mark_dirty(f, false);
	f->error = 0;
}

/* --- from the program --- */

/* Beyond a device's end, or that of an offset of 32 bits (open(2), O_LARGEFILE), write(2) has something to say. */
static off64_t last_end(const struct file *f)
{
	if (f->kind == KIND_BLOCK)
		return f->size;
	return sizeof(off_t) > 4 || f->flags & O_LARGEFILE ? INT64_MAX : INT32_MAX;
}

/* Where the block that starts at pos ends: at a multiple of the block size if that is far enough. */
static off64_t block_end(off64_t pos)
{
	uint32_t size = config.write_block;
	off64_t end;

	if (size % PAGE)
		return pos + size;
	end = align_up(pos + 1, size);
	return end - pos >= config.min ? end : align_down(pos + size, PAGE);
}

/* Where streams are libc's, those on 0, 1 and 2 move the offset unseen: then the file is theirs. */
static bool moved_unseen(struct file *f)
{
	if (!f->low || stream_taken() || f->kind == KIND_MEMORY || f->kernel < 0)
		return false;
	off64_t now = real.lseek64(f->fd, 0, SEEK_CUR);
	if (now < 0 || now == f->kernel)
		return false;
	file_resync(f);
	file_release(f, REASON_STDIO);
	return true;
}

static bool begin(struct file *f)
{
	if (moved_unseen(f))
		return false;
	off64_t pos = file_pos(f), base = align_down(pos, PAGE);
	off64_t end = block_end(pos), last = last_end(f);
	size_t whole = (end < last ? end : last) - base;
	size_t size = f->hint > FIRST_BUFFER ? f->hint : FIRST_BUFFER;

	if (size > whole)
		size = whole;
	f->data = pool_get(size, false);
	if (!f->data && size > FIRST_BUFFER)
		f->data = pool_get(size = FIRST_BUFFER, false);
	if (!f->data)
		return false;
	f->size_block = pool_size(size);
	f->base = base;
	f->from = pos - base;
	f->end = whole;
	f->len = whole < f->size_block ? whole : f->size_block;
	f->cur = ((f->cur >> 32) + 1) << 32 | f->from;
	file_doing(f, WRITING);
	return true;
}

/* A larger buffer for a block that outgrows its own. */
static bool grow(struct file *f)
{
	size_t size = f->size_block * 16ULL < f->end ? f->size_block * 16ULL : f->end;
	unsigned char *data = pool_get(size, false);

	if (!data)
		return false;
	memcpy(data + f->from, f->data + f->from, PLACE(f->cur) - f->from);
	give_back(f);
	f->data = data;
	f->size_block = f->hint = pool_size(size);
	f->len = f->end < f->size_block ? f->end : f->size_block;
	f->cur += 1ULL << 32;
	return true;
}

unsigned char *writer_room(struct file *f, size_t *n)
{
	if (f->doing == READING || f->side.data)
		reader_drop(f);
	/* A signal came into a small write: its bytes may still be copied to where this block ends. */
	if (f->doing == WRITING && f->pinned == f->data && flush(f))
		return NULL;
	if (f->doing == IDLE && !begin(f))
		return NULL;
	size_t room = f->len - PLACE(f->cur);
	if (*n > room)
		*n = room;
	return f->data + PLACE(f->cur);
}

int writer_added(struct file *f, size_t n)
{
	f->cur = ((f->cur >> 32) + 1) << 32 | (PLACE(f->cur) + n);
	if (n)
		file_mark_dirty(f, true);
	if (PLACE(f->cur) < f->len)
		return 0;
	if (f->len < f->end && grow(f))
		return 0;
	return flush(f);
}

/* The file offset of the first held byte. */
static off64_t held_from(const struct file *f)
{
	if (f->ahead_count) {
		const struct block *b = &f->ahead[f->ahead_head];

		return b->base + b->from;
	}
	return f->doing == WRITING ? f->base + f->from : file_pos(f);
}

void writer_truncated(struct file *f, off64_t size)
{
	off64_t pos = file_pos(f);

	if (!f->dirty || held_from(f) < size)
		return;
	writer_discard(f);
	file_set_pos(f, pos);
}

/* Holds nothing from this file offset on: the program's position goes back there. */
static void hold_until(struct file *f, off64_t pos)
{
	if (f->doing == WRITING && pos > f->base + f->from) {
		f->cur = ((f->cur >> 32) + 1) << 32 | (uint32_t)(pos - f->base);
		return;
	}
	if (f->doing == WRITING)
		give_back(f);
	file_set_pos(f, pos);
	while (f->ahead_count) {
		int last = (f->ahead_head + f->ahead_count - 1) % DEPTH_MAX;
		struct block *b = &f->ahead[last];

		if (b->base + (off64_t)b->to <= pos)
			break;
		engine_wait(&b->t);
		if (b->base + (off64_t)b->from < pos) {
			b->to = pos - b->base;
			break;
		}
		pool_put(b->data, b->size);
		f->ahead_count--;
	}
	if (!f->ahead_count)
		file_mark_dirty(f, false);
}

/*
 * An error came up in a write that began at start. What of this call the
 * kernel has is what the program is told; what it has not is taken back.
 * Bytes of earlier calls stay held.
 */
ssize_t writer_refused(struct file *f, off64_t start, int error)
{
	off64_t reached = held_from(f);

	f->strict = true;
	hold_until(f, reached > start ? reached : start);
	if (reached > start)
		return reached - start;
	f->error = reached < start ? error : 0;
	return error;
}

/* write(2) as the program wrote it. */
static ssize_t through(struct file *f, const void *buf, size_t n)
{
	int e = f->lent ? 0 : file_settle(f);
	ssize_t r;

	if (e)
		return e;
	if (f->lent || f->state != FILE_TUNED) { /* the offset is the kernel's, or released on the way */
		r = real.write(f->fd, buf, n);
		return r < 0 ? -errno : r;
	}
	uint64_t since = wait_begin();
	r = real.write(f->fd, buf, n);
	wait_end(&f->write, since);
	if (r < 0)
		return -errno;
	file_counted(f, &f->write, r);
	if (f->kind == KIND_MEMORY)
		return r;
	f->kernel = file_pos(f) + r;
	file_set_pos(f, f->kernel);
	if (f->kernel > f->size)
		f->size = f->kernel;
	writer_buffered(f, f->kernel - r, r);
	return r;
}

/* The last left bytes of a write of n: what was taken before stands in any case. */
static ssize_t rest_through(struct file *f, const void *buf, size_t left, size_t n)
{
	ssize_t r = through(f, buf, left);

	if (left == n)
		return r;
	return (ssize_t)(n - left) + (r > 0 ? r : 0);
}

/* A slow writer's lines are not held: whoever follows the file sees each at once. */
static void pace(struct file *f, size_t n)
{
	uint64_t now = clock_coarse();
	uint64_t waited = __atomic_load_n(&file_waited, __ATOMIC_RELAXED);
	/* What it waited for in here (a slow source) is not its rest. */
	uint64_t pause = f->wrote_at ? now - f->wrote_at - (waited - f->waited_at) : 0;

	f->wrote_at = now;
	f->waited_at = waited;
	if (config.hold != HOLD_AUTO)
		return;
	if ((int64_t)pause > PAUSE_NS) {
		f->slow = true;
		f->since = 0;
		file_buffered_for(f, REASON_SLOW);
	} else if (f->slow) {
		f->since += n;
		f->slow = f->since < PACE;
	}
}

bool writer_may_hold(struct file *f, size_t n)
{
	off64_t end = file_pos(f) + n;

	if (config.hold == HOLD_NEVER || f->slow || f->strict || f->error || f->lent ||
		f->state != FILE_TUNED || __atomic_load_n(&file_unheld, __ATOMIC_ACQUIRE) ||
		(f->flags & O_ACCMODE) == O_RDONLY)
		return false;
	return end <= last_end(f);
}

ssize_t writer_write(struct file *f, const void *buf, size_t n)
{
	const unsigned char *from = buf;
	off64_t first = file_pos(f);
	size_t left = n;
	int e = file_late(f);

	if (!e && f->error)
		e = writer_drain(f);
	if (e)
		return e;
	pace(f, n);
	f->grain = n > UINT32_MAX ? UINT32_MAX : n;
	if (!n || !writer_may_hold(f, n) || !memory_ok(f, buf, n, false))
		return through(f, buf, n);
	if (f->doing != WRITING && !policy_space(f)) {
		file_release(f, REASON_NEARLY_FULL);
		return through(f, buf, n);
	}
	while (left) {
		size_t room = left;
		unsigned char *to = writer_room(f, &room);

		if (!to) /* no buffer, or bytes before these that are refused */
			return rest_through(f, from, left, n);
		memcpy(to, from, room);
		e = writer_added(f, room);
		if (e)
			return writer_refused(f, first, e);
		from += room;
		left -= room;
		if (f->doing == IDLE && !policy_space(f)) {
			int e2 = file_release(f, REASON_NEARLY_FULL);

			if (e2)
				return writer_refused(f, first, e2);
			return left ? rest_through(f, from, left, n) : (ssize_t)n;
		}
	}
	return n;
}

ssize_t writer_pwrite(struct file *f, const void *buf, size_t n, off64_t off)
{
	int e = writer_drain(f);
	ssize_t r;

	if (e)
		return e;
	reader_drop(f);
	e = file_set_direct(f, false);
	if (e)
		return e;
	uint64_t since = wait_begin();
	r = real.pwrite64(f->fd, buf, n, off);
	wait_end(&f->write, since);
	if (r < 0)
		return -errno;
	file_counted(f, &f->write, r);
	if (!f->write.direct)
		file_buffered_for(f, REASON_RANDOM);
	if (r && f->kind == KIND_REGULAR) {
		if (off + r > f->size)
			f->size = off + r;
		writer_buffered(f, off, r);
	}
	return r;
}
