/* Choosing an implementation, and keeping threads apart. */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../core/config.h"
#include "../core/lock.h"
#include "../sys.h"
#include "engine.h"

/*
 * Leaf locks, taken with signals blocked. submitting guards the submission
 * side and the choice, reaping the completion side: one thread waits in the
 * kernel for all, and takes in what is over for all.
 */
static struct lock submitting, reaping;
static const struct engine *engine, *used;

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

static const struct engine *get(void)
{
	const struct engine *e = __atomic_load_n(&engine, __ATOMIC_ACQUIRE);

	if (e)
		return e;
	lock_take(&submitting);
	if (!engine)
		__atomic_store_n(&engine, used = choose(), __ATOMIC_RELEASE);
	e = engine;
	lock_drop(&submitting);
	return e;
}

int engine_depth(void)
{
	return get()->depth;
}

const char *engine_name(void)
{
	return used ? used->name : "none";
}

void engine_start(struct transfer *t)
{
	const struct engine *e = get();
	int bad;

	t->busy = true;
	lock_take(&submitting);
	bad = e->submit(t);
	lock_drop(&submitting);
	if (bad)
		engine_do(t);
}

ssize_t engine_wait(struct transfer *t)
{
	if (!__atomic_load_n(&t->busy, __ATOMIC_ACQUIRE))
		return t->res;
	lock_take(&reaping);
	while (__atomic_load_n(&t->busy, __ATOMIC_ACQUIRE))
		engine->reap();
	lock_drop(&reaping);
	return t->res;
}

void engine_close(void)
{
	if (!engine)
		return;
	engine->close();
	engine = NULL;
}

void engine_forget(void)
{
	lock_reset(&submitting);
	lock_reset(&reaping);
	if (engine)
		engine->forget();
	engine = NULL;
}
