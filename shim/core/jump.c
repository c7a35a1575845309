#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "file.h"
#include "jump.h"

/* More at once are taken only by handlers on top of handlers. */
#define HELD_MOST 4

__thread struct undo *jump_undos;
static __thread struct held {
	struct file *file;
	uintptr_t frame;
} held[HELD_MOST] __attribute__((tls_model("initial-exec")));
static __thread uint32_t holds __attribute__((tls_model("initial-exec")));

/* A handler that comes between the two takes the places above. */
void jump_hold(struct file *f)
{
	uint32_t i = holds++;

	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (i < HELD_MOST)
		held[i] = (struct held){f, (uintptr_t)__builtin_frame_address(0)};
}

void jump_let(void)
{
	if (!holds)
		return;
	if (holds <= HELD_MOST)
		held[holds - 1].file = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	holds--;
}

/*
 * The stack pointer in env. glibc keeps it mangled with a secret that is the
 * same for all (PTR_MANGLE in its pointer_guard.h: exclusive or, on x86 then a
 * rotation), so that of two buffers tells one by the other. Elsewhere the
 * buffer's own address has to do: it mostly lies in the frame that is jumped to.
 */
#if defined(__x86_64__)
#define SAVED_SP    6
#define UNROTATE(x) ((x) >> 17 | (x) << 47)
#elif defined(__i386__)
#define SAVED_SP    4
#define UNROTATE(x) ((x) >> 9 | (x) << 23)
#elif defined(__aarch64__)
#define SAVED_SP    13
#define UNROTATE(x) (x)
#endif

__attribute__((noinline)) static uintptr_t target_of(const void *env)
{
#ifdef SAVED_SP
	jmp_buf here;
	uintptr_t a, b, sp;

	(void)!_setjmp(here);
#if defined(__x86_64__)
	__asm__ volatile("mov %%rsp, %0" : "=r"(sp));
#elif defined(__i386__)
	__asm__ volatile("mov %%esp, %0" : "=r"(sp));
#else
	__asm__ volatile("mov %0, sp" : "=r"(sp));
#endif
	memcpy(&a, (const char *)env + SAVED_SP * sizeof(a), sizeof(a));
	memcpy(&b, (const char *)here + SAVED_SP * sizeof(b), sizeof(b));
	a ^= b;
	return sp ^ UNROTATE(a);
#else
	return (uintptr_t)env;
#endif
}

struct stacks {
	uintptr_t target;
	uintptr_t low, high; /* the alternate signal stack */
};

static bool alternate(const struct stacks *s, uintptr_t frame)
{
	return frame >= s->low && frame < s->high;
}

/* Is the frame above which the jump ends over? */
static bool left(const struct stacks *s, uintptr_t frame)
{
	bool there = alternate(s, s->target);

	if (there != alternate(s, frame))
		return !there;
	return s->target > frame;
}

void jump_leave(const void *env)
{
	struct stacks s = {0};
	stack_t alt;
	struct quiet q;

	if (!jump_undos && !holds)
		return;
	quiet_begin(&q);
	s.target = target_of(env);
	if (!sigaltstack(NULL, &alt) && !(alt.ss_flags & SS_DISABLE)) {
		s.low = (uintptr_t)alt.ss_sp;
		s.high = s.low + alt.ss_size;
	}
	while (jump_undos && left(&s, (uintptr_t)jump_undos)) {
		struct undo *u = jump_undos;

		jump_undos = u->outer;
		u->undo(u);
	}
	while (holds && (holds > HELD_MOST || left(&s, held[holds - 1].frame))) {
		struct file *f = holds > HELD_MOST ? NULL : held[holds - 1].file;

		if (f && lock_mine(&f->lock))
			lock_drop(&f->lock);
		/* Whoever waits may have been woken by it, or was about to be. */
		if (f)
			lock_wake(&f->lock);
		jump_let();
	}
	quiet_end(&q);
}

void jump_forget(void)
{
	jump_undos = NULL;
	holds = 0;
}
