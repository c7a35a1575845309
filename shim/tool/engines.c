/*
 * Which asynchronous interfaces does the kernel let this user have? Asked in
 * a child, since a seccomp filter may answer by killing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../core/config.h"
#include "../sys.h"
#include "tool.h"

static long try_uring(void)
{
	uint64_t parameters[15] = {0}; /* struct io_uring_params, 120 bytes */

	return sys(SYS_io_uring_setup, 1, parameters);
}

static long try_aio(void)
{
	unsigned long context = 0;

	return sys(SYS_io_setup, 1, &context);
}

/* 0, an errno, or -1: killed. */
static int ask(long (*f)(void))
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (!pid) {
		long r = f();

		_exit(r < 0 ? (int)-r : 0);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *because(int answer)
{
	return answer < 0 ? "a seccomp filter kills for it" : strerror(answer);
}

const char *engine_choice(char *why, int room)
{
	int uring, aio;

	*why = 0;
	if (config.engine == ENGINE_SYNC || !config.depth) {
		snprintf(why, room, "as asked for");
		return "sync";
	}
	uring = config.engine == ENGINE_AIO ? 0 : ask(try_uring);
	if (!uring && config.engine != ENGINE_AIO)
		return "uring";
	aio = config.engine == ENGINE_URING ? 0 : ask(try_aio);
	if (config.engine == ENGINE_URING)
		snprintf(why, room, "no io_uring here: %s", because(uring));
	else if (config.engine == ENGINE_AIO && aio)
		snprintf(why, room, "no aio here: %s", because(aio));
	else if (aio)
		snprintf(why, room, "no io_uring here: %s; no aio: %s", because(uring),
			because(aio));
	else if (uring)
		snprintf(why, room, "no io_uring here: %s", because(uring));
	return config.engine == ENGINE_URING || aio ? "sync" : "aio";
}
