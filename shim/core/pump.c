#include <errno.h>
#include <linux/fs.h>
#include <signal.h>
#include <string.h>

#include "../real.h"
#include "../sys.h"
#include "cache.h"
#include "config.h"
#include "file.h"
#include "jump.h"
#include "policy.h"
#include "pump.h"
#include "rate.h"
#include "reader.h"
#include "report.h"
#include "writer.h"

#define CALL_MOST 0x7ffff000UL
#define PARTS     16

/* Locks both files; in which order the program names them must not matter. */
static bool get_both(int from, int to, struct file **in, struct file **out)
{
	for (;;) {
		*in = file_get(from);
		if (!*in)
			return false;
		*out = fdtable_peek(to);
		if (!*out || *out == *in || (*out)->state == FILE_PASSED)
			break;
		if (__libc_single_threaded)
			return true;
		jump_hold(*out);
		if (lock_try(&(*out)->lock)) {
			if (fdtable_peek(to) == *out)
				return true;
			lock_drop(&(*out)->lock);
		}
		jump_let();
		file_put(*in);
		sys(SYS_sched_yield);
	}
	file_put(*in);
	return false;
}

/* A small file whole into one that has nothing yet: as a first small read and write. */
static bool both_small(struct file *in, struct file *out, size_t n)
{
	if (out->state != FILE_FRESH || out->moved || config.hold == HOLD_ALWAYS ||
		!policy_small_read(in, n < config.write_block ? n : config.write_block))
		return false;
	writer_buffered(out, 0, in->size);
	return true;
}

static bool both_tuned(struct file *in, struct file *out)
{
	policy_classify(in, false);
	policy_classify(out, true);
	return in->state == FILE_TUNED && out->state == FILE_TUNED &&
	       (in->flags & O_ACCMODE) != O_WRONLY && (out->flags & O_ACCMODE) != O_RDONLY;
}

/* Has a signal arrived that the program wants to see? It waits only because we block it. */
static bool interrupted(const struct quiet *q)
{
	uint64_t pending = 0;

	sys(SYS_rt_sigpending, &pending, sizeof(pending));
	return pending & ~q->mask;
}

/* Lets the filesystem share the blocks: bytes, or 0 when it does not. */
static ssize_t share_extents(struct file *in, struct file *out, off64_t size, size_t n)
{
	off64_t from = file_pos(in), to = file_pos(out);
	struct file_clone_range range = {
		.src_fd = in->fd,
		.src_offset = from,
		.dest_offset = to,
	};

	if (in->dev != out->dev || in->kind != KIND_REGULAR || in->unshared || !policy_shares(in) || size <= from)
		return 0;
	/* Up to the end the length may be odd; FICLONERANGE(2const) wants block alignment else. */
	n = (off64_t)n < size - from ? n / PAGE * PAGE : (size_t)(size - from);
	if (!n)
		return 0;
	range.src_length = n;
	if (file_settle(in) || file_settle(out))
		return 0;
	in->unshared = sys_failed(sys(SYS_ioctl, out->fd, FICLONERANGE, &range));
	if (in->unshared)
		return 0;
	file_set_pos(in, from + n);
	file_set_pos(out, to + n);
	file_offset(in);
	file_offset(out);
	if (out->size < (off64_t)(to + n))
		out->size = to + n;
	return n;
}

/*
 * Reads the next bytes of in straight into room, several transfers at once.
 * Bytes, or -errno.
 */
static ssize_t read_into(struct file *in, unsigned char *room, size_t n, bool direct)
{
	struct transfer part[PARTS];
	off64_t pos = file_pos(in);
	size_t done = 0, got = 0, block = config.read_block;
	ssize_t bad = 0;

	/* Each part but the last ends where the next begins. */
	if (direct)
		block = block < in->align ? in->align : block / in->align * in->align;
	int parts = 0, depth = direct && n > block ? policy_depth() : 1;

	if (file_set_direct(in, direct))
		return -EINVAL;
	uint64_t since = wait_begin();
	while (done < n && parts < PARTS && parts < depth) {
		size_t k = n - done < block ? n - done : block;

		part[parts] = (struct transfer){
			.fd = in->fd,
			.buf = room + done,
			.len = direct ? (k + in->align - 1) / in->align * in->align : k,
			.off = pos + done,
		};
		if (depth > 1)
			engine_start(&part[parts++]);
		else
			engine_do(&part[parts++]);
		done += k;
	}
	for (int i = 0; i < parts; i++) {
		ssize_t r = engine_wait(&part[i]);

		wait_end(&in->read, since);
		since = wait_begin();
		file_counted(in, &in->read, r);
		if (bad || got < (size_t)i * block)
			continue; /* behind a failed or short one */
		if (r < 0)
			bad = r;
		else
			got += r;
	}
	if (got > n)
		got = n;
	if (!got && bad)
		return bad;
	file_set_pos(in, pos + got);
	if (in->kernel != pos + (off64_t)got)
		in->kernel = real.lseek64(in->fd, pos + got, SEEK_SET);
	return got;
}

/* One piece, at most a block: bytes, 0 at the end, or -errno with nothing moved. *bad: from out. */
static ssize_t step(struct file *in, struct file *out, size_t n, bool *bad)
{
	size_t k = n;
	unsigned char *room = writer_room(out, &k);
	off64_t from = file_pos(in);
	bool direct;
	ssize_t r;
	int e;

	*bad = true;
	if (!room)
		return -ENOMEM;
	*bad = false;
	direct = in->direct && in->kind == KIND_REGULAR &&
		 (uint64_t)in->size >= config.direct_min && policy_direct(in, false);
	if (direct && cache_hot(in, from, from + k))
		direct = false;
	if (in->doing == IDLE && from >= in->wary && in->kind == KIND_REGULAR &&
		(!direct || (from % in->align == 0 && (uintptr_t)room % PAGE == 0))) {
		size_t whole = (k + in->align - 1) / in->align * in->align;

		/* The last unit of the file may need more room than its bytes. */
		if (direct && whole > out->size_block - PLACE(out->cur))
			k = k / in->align * in->align;
		if (k) {
			r = read_into(in, room, k, direct);
			if (r == -EINVAL && direct)
				in->direct = false;
			if (r > 0)
				goto added;
			if (!r)
				return 0;
		}
	}
	const unsigned char *bytes;
	size_t have;

	e = reader_bytes(in, &bytes, &have);
	if (e)
		return e;
	r = have < k ? have : k;
	if (!r)
		return 0;
	memcpy(room, bytes, r);
	reader_used(in, r);
added:
	e = writer_added(out, r);
	if (e) {
		*bad = true;
		return e;
	}
	return r;
}

static ssize_t copy(struct file *in, struct file *out, size_t n, int share, const struct quiet *q)
{
	off64_t first_in = file_pos(in), first_out = file_pos(out);
	off64_t size = reader_size(in);
	size_t done = 0;
	ssize_t r;

	if (size < 0)
		return PUMP_NOT;
	if (n > CALL_MOST)
		n = CALL_MOST;
	/* Devices have copy_file_range refuse them. */
	if (share && (in->kind != KIND_REGULAR || out->kind != KIND_REGULAR))
		return PUMP_NOT;
	if (in->lent || out->lent)
		return PUMP_NOT;
	if (first_in >= size || !n)
		return 0;
	if (share) {
		r = share_extents(in, out, size, n);
		if (r)
			return r;
	}
	out->grain = PAGE;
	out->wrote_at = clock_coarse();
	if ((off64_t)n > size - first_in)
		n = size - first_in;
	while (done < n) {
		bool bad;

		if (!writer_may_hold(out, n - done) || (out->doing == IDLE && !policy_space(out)))
			break;
		r = step(in, out, n - done, &bad);
		if (r < 0 && bad) {
			r = r == -ENOMEM && out->doing == IDLE ? (ssize_t)done
							      : writer_refused(out, first_out, r);
			if (r > 0)
				done = r;
			reader_drop(in);
			file_set_pos(in, first_in + (r > 0 ? r : 0));
			if (r < 0)
				return r;
			break;
		}
		if (r <= 0)
			break;
		done += r;
		if (interrupted(q) || rate_owes())
			break;
	}
	file_count(&in->read, done);
	file_count(&out->write, done);
	return done ? (ssize_t)done : PUMP_NOT;
}

static void move_to(struct file *f, off64_t pos)
{
	reader_drop(f);
	file_set_pos(f, pos);
}

ssize_t pump(int from, off64_t *from_off, int to, size_t n, int share)
{
	struct file *in, *out;
	struct quiet q;
	ssize_t r = PUMP_NOT;

	if (from_off && !memory_ok_now(from_off, sizeof(*from_off)))
		return pump_not(from, to);
	if (get_both(from, to, &in, &out)) {
		in->fd = from;
		out->fd = to;
		if (!from_off && both_small(in, out, n)) {
			file_put(out);
			file_put(in);
			return pump_not(from, to);
		}
		quiet_begin(&q);
		if (both_tuned(in, out) && !writer_drain(in) && in->state == FILE_TUNED) {
			off64_t back = file_pos(in);

			if (from_off)
				move_to(in, *from_off);
			r = copy(in, out, n, share, &q);
			if (from_off) {
				if (r >= 0)
					*from_off = file_pos(in);
				move_to(in, back);
			}
		}
		file_put(out);
		file_put(in);
		quiet_end(&q);
		rate_pay();
	}
	return r == PUMP_NOT ? pump_not(from, to) : r;
}

ssize_t pump_not(int from, int to)
{
	int e = file_lend_fd(from);

	if (e)
		return e;
	e = file_lend_fd(to);
	if (e)
		file_take_back_fd(from);
	return e ? e : PUMP_NOT;
}

/* For the report, and for nothing else: no transfer of ours. */
static void count(int fd, bool write, ssize_t n)
{
	struct file *f = file_get(fd);

	if (!f)
		return;
	struct counts *c = write ? &f->write : &f->read;
	file_count(c, n);
	if (n > 0) {
		c->transfers++;
		c->moved += n;
		if ((uint64_t)n > c->largest)
			c->largest = n;
		if (!c->smallest || (uint64_t)n < c->smallest)
			c->smallest = n;
		if (!f->reason && !c->direct)
			f->reason = REASON_KERNEL;
	}
	file_put(f);
}

void pump_after(int from, int to, ssize_t moved)
{
	int error = errno;
	struct quiet q;

	if (report_on) {
		quiet_begin(&q);
		count(from, false, moved);
		count(to, true, moved);
		quiet_end(&q);
	}
	file_take_back_fd(from);
	file_take_back_fd(to);
	errno = error;
}
