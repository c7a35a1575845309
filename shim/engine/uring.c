/*
 * io_uring by its system calls (Linux 5.6 for IORING_OP_READ and WRITE): one
 * ring for the process. Its descriptor is the shim's only one: high, closed on
 * exec, and looked up at every use, since it moves when the program takes its
 * number.
 *
 * Only direct transfers come here. The kernel's submission reads our tail and
 * we read its with acquire and release, as io_uring(7) wants it.
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "../core/file.h"
#include "../sys.h"
#include "engine.h"

#define ENTRIES 128

static struct {
	int handle; /* own_dup's */
	unsigned *sq_head, *sq_tail, sq_mask, *sq_array, sq_entries;
	unsigned *cq_head, *cq_tail, cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	void *ring, *sq_ring;
	size_t ring_size, sq_ring_size, sqes_size;
} u = {.handle = -1};

static void *map(int fd, size_t size, unsigned long long what)
{
	long p = sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);

	if (sys_failed(p))
		return NULL;
	sys(SYS_madvise, p, size, MADV_DONTFORK);
	return (void *)p;
}

static void unmap(void)
{
	if (u.sq_ring && u.sq_ring != u.ring)
		sys(SYS_munmap, u.sq_ring, u.sq_ring_size);
	if (u.ring)
		sys(SYS_munmap, u.ring, u.ring_size);
	if (u.sqes)
		sys(SYS_munmap, u.sqes, u.sqes_size);
	u.sq_ring = u.ring = u.sqes = NULL;
}

static bool map_all(int fd, const struct io_uring_params *p)
{
	u.sq_ring_size = p->sq_off.array + p->sq_entries * sizeof(unsigned);
	u.ring_size = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	u.sqes_size = p->sq_entries * sizeof(struct io_uring_sqe);
	if (p->features & IORING_FEAT_SINGLE_MMAP && u.sq_ring_size > u.ring_size)
		u.ring_size = u.sq_ring_size;
	u.ring = map(fd, u.ring_size,
		p->features & IORING_FEAT_SINGLE_MMAP ? IORING_OFF_SQ_RING : IORING_OFF_CQ_RING);
	u.sq_ring = p->features & IORING_FEAT_SINGLE_MMAP
			    ? u.ring
			    : map(fd, u.sq_ring_size, IORING_OFF_SQ_RING);
	u.sqes = map(fd, u.sqes_size, IORING_OFF_SQES);
	return u.ring && u.sq_ring && u.sqes;
}

static long enter(unsigned submit, unsigned wait)
{
	int fd = own_at(u.handle);

	if (fd < 0)
		return -EBADF;
	return sys(SYS_io_uring_enter, fd, submit, wait, wait ? IORING_ENTER_GETEVENTS : 0, 0, 0);
}

static void close_ring(void)
{
	unmap();
	own_close(u.handle);
	u.handle = -1;
}

static int open_ring(void)
{
	struct io_uring_params p;
	char *sq, *cq;
	int fd;

	memset(&p, 0, sizeof(p));
	fd = sys(SYS_io_uring_setup, ENTRIES, &p);
	if (fd < 0)
		return fd;
	u.handle = own_dup(fd);
	bool mapped = u.handle >= 0 && map_all(fd, &p);
	sys(SYS_close, fd);
	/* IORING_FEAT_RW_CUR_POS came with the plain read and write (5.6). */
	if (!mapped || !(p.features & IORING_FEAT_RW_CUR_POS)) {
		unmap();
		own_close(u.handle);
		u.handle = -1;
		return -ENOSYS;
	}
	sq = u.sq_ring;
	cq = u.ring;
	u.sq_head = (unsigned *)(sq + p.sq_off.head);
	u.sq_tail = (unsigned *)(sq + p.sq_off.tail);
	u.sq_mask = *(unsigned *)(sq + p.sq_off.ring_mask);
	u.sq_array = (unsigned *)(sq + p.sq_off.array);
	u.sq_entries = p.sq_entries;
	u.cq_head = (unsigned *)(cq + p.cq_off.head);
	u.cq_tail = (unsigned *)(cq + p.cq_off.tail);
	u.cq_mask = *(unsigned *)(cq + p.cq_off.ring_mask);
	u.cqes = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
	/* A filter may let a ring be made, and not be used. */
	long r = enter(0, 0);
	if (r < 0)
		close_ring();
	return r < 0 ? r : 0;
}

static int submit(struct transfer *t)
{
	unsigned tail = *u.sq_tail, i = tail & u.sq_mask;
	struct io_uring_sqe *sqe = &u.sqes[i];
	long r;

	if (tail - __atomic_load_n(u.sq_head, __ATOMIC_ACQUIRE) >= u.sq_entries)
		return -EBUSY;
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = t->write ? IORING_OP_WRITE : IORING_OP_READ;
	sqe->fd = t->fd;
	sqe->addr = (uintptr_t)t->buf;
	sqe->len = t->len;
	sqe->off = t->off;
	sqe->user_data = (uintptr_t)t;
	u.sq_array[i] = i;
	__atomic_store_n(u.sq_tail, tail + 1, __ATOMIC_RELEASE);
	do {
		r = enter(1, 0);
	} while (r == -EINTR);
	if (r == 1)
		return 0;
	/* Not taken (EAGAIN, EBUSY): take it back; the caller does it itself. */
	__atomic_store_n(u.sq_tail, tail, __ATOMIC_RELEASE);
	return r < 0 ? r : -EAGAIN;
}

static void reap(void)
{
	unsigned head = *u.cq_head;

	if (head == __atomic_load_n(u.cq_tail, __ATOMIC_ACQUIRE))
		enter(0, 1);
	while (head != __atomic_load_n(u.cq_tail, __ATOMIC_ACQUIRE)) {
		const struct io_uring_cqe *cqe = &u.cqes[head & u.cq_mask];
		struct transfer *t = (struct transfer *)(uintptr_t)cqe->user_data;
		int res = cqe->res;

		head++;
		__atomic_store_n(u.cq_head, head, __ATOMIC_RELEASE);
		engine_done(t, res);
	}
}

/* The mappings were not inherited; the descriptor was. */
static void forget(void)
{
	own_close(u.handle);
	u.handle = -1;
	u.ring = u.sq_ring = u.sqes = NULL;
}

const struct engine engine_uring = {
	.name = "uring",
	.depth = ENGINE_DEPTH,
	.open = open_ring,
	.submit = submit,
	.reap = reap,
	.close = close_ring,
	.forget = forget,
};
