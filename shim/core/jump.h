/*
 * siglongjmp(3) out of a handler that came in on top of one of our calls: the
 * call never ends, so what it holds (a file's lock, a pinned block, a file
 * that is lent) is given back by whoever jumps over it. A jump that stays
 * within the handler leaves the call below it alone.
 *
 * Operations with signals blocked cannot be jumped over and need none of this.
 */
#ifndef JUMP_H
#define JUMP_H

#include <stdint.h>

struct file;

/* What would stay behind, in the frame of the call that would leave it. */
struct undo {
	struct undo *outer;
	void (*undo)(struct undo *);
};

extern __thread struct undo *jump_undos __attribute__((tls_model("initial-exec")));

static inline void jump_guard(struct undo *u, void (*undo)(struct undo *))
{
	u->outer = jump_undos;
	u->undo = undo;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	jump_undos = u;
}

static inline void jump_done(struct undo *u)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	jump_undos = u->outer;
}

/* This thread is about to take the lock of a file. A file taken last is given back first. */
void jump_hold(struct file *f);
/* It has given it back. */
void jump_let(void);

/* This thread is about to jump to env (a jmp_buf or sigjmp_buf). */
void jump_leave(const void *env);
/* In a child: the locks are free there. */
void jump_forget(void);

#endif
