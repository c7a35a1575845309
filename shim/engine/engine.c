/* Choosing an implementation, and keeping threads apart. */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../core/config.h"
#include "../core/lock.h"
#include "../sys.h"
#include "engine.h"

/*
 * Leaf locks, submitting before reaping, taken with signals blocked. submitting guards the submission
 * side and the choice, reaping the completion side: one thread waits in the
 * kernel for all, and takes in what is over for all.
 */
static struct lock submitting, reaping;
static const struct engine *engine, *used;
int engine_flying;

/*
 * Under a seccomp filter that was there before us the question itself may be
 * deadly: a child of no consequence asks it (no exit signal: the program's own
 * waits do not see it). True when open would work there.
 */
static bool survives(const struct engine *e)
{
	int status = 0;
	long pid;

	if (sys(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) != 2)
		return true;
	pid = sys(SYS_clone, 0, 0, 0, 0, 0);
	if (sys_failed(pid))
		return false;
	if (!pid) {
		int bad = e->open();

		for (;;)
			sys(SYS_exit_group, bad != 0);
	}
	while (sys(SYS_wait4, pid, &status, __WALL, 0) == -4 /* EINTR */)
		;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static const struct engine *choose(void)
{
	static const struct engine *const all[] = {&engine_uring, &engine_aio, &engine_sync};
	int first = config.engine == ENGINE_AUTO ? 0 : config.engine - ENGINE_URING;
	int last = config.engine == ENGINE_AUTO ? 2 : first;

	/* Depth 0 and 1 need no more than this. */
	if (config.depth == 0 || config.depth == 1)
		return &engine_sync;
	for (int i = first; i <= last; i++)
		if (survives(all[i]) && !all[i]->open())
			return all[i];
	return &engine_sync;
}

/* The implementation; chosen when there is none. submitting is held. */
static const struct engine *get(void)
{
	if (!engine)
		__atomic_store_n(&engine, used = choose(), __ATOMIC_RELEASE);
	return engine;
}

int engine_depth(void)
{
	const struct engine *e = __atomic_load_n(&engine, __ATOMIC_ACQUIRE);

	if (!e) {
		lock_take(&submitting);
		e = get();
		lock_drop(&submitting);
	}
	return e->depth;
}

const char *engine_name(void)
{
	return used ? used->name : "none";
}

void engine_start(struct transfer *t)
{
	int bad;

	t->busy = true;
	lock_take(&submitting);
	__atomic_add_fetch(&engine_flying, 1, __ATOMIC_ACQ_REL);
	bad = get()->submit(t);
	if (bad)
		__atomic_sub_fetch(&engine_flying, 1, __ATOMIC_ACQ_REL);
	lock_drop(&submitting);
	if (bad)
		engine_do(t);
}

ssize_t engine_wait(struct transfer *t)
{
	if (!engine_busy(t))
		return t->res;
	lock_take(&reaping);
	while (engine_busy(t))
		engine->reap();
	lock_drop(&reaping);
	return t->res;
}

/* Other threads may have transfers in flight: they land first. */
void engine_close(void)
{
	lock_take(&submitting);
	lock_take(&reaping);
	if (engine) {
		while (__atomic_load_n(&engine_flying, __ATOMIC_ACQUIRE) > 0)
			engine->reap();
		engine->close();
		engine = NULL;
	}
	lock_drop(&reaping);
	lock_drop(&submitting);
}

void engine_land(void)
{
	if (__atomic_load_n(&engine_flying, __ATOMIC_ACQUIRE) <= 0)
		return;
	lock_take(&submitting);
	lock_take(&reaping);
	while (engine == &engine_uring && __atomic_load_n(&engine_flying, __ATOMIC_ACQUIRE) > 0)
		engine->reap();
	lock_drop(&reaping);
	lock_drop(&submitting);
}

bool engine_had_workers(void)
{
	return used == &engine_uring;
}

void engine_forget(void)
{
	lock_reset(&submitting);
	lock_reset(&reaping);
	engine_flying = 0;
	if (engine)
		engine->forget();
	engine = NULL;
}
