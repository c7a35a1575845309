#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "../real.h"
#include "../sys.h"
#include "config.h"
#include "file.h"
#include "policy.h"
#include "process.h"
#include "report.h"

void process_init(char **env)
{
	int error = errno;

	real_init();
	config_read(env);
	/* In a set-uid program (/etc/ld.so.preload) the environment is somebody else's. */
	if (getauxval(AT_SECURE))
		config.on = false;
	const char *name = program_invocation_short_name;
	if ((*config.programs && !config_match(config.programs, name)) ||
		(*config.skip_programs && config_match(config.skip_programs, name)))
		config.on = false;
	report_init();
	errno = error;
}

void process_before_fork(void)
{
	fdtable_check();
	file_forked = true;
	fdtable_pause(1);
	file_release_all(REASON_FORKED);
}

void process_after_fork(bool child)
{
	int error = errno;

	if (child)
		fdtable_check();
	else
		fdtable_pause(-1);
	errno = error;
}

void process_before_exec(void)
{
	fdtable_check();
	file_settle_all();
	report_write();
}

void process_settle(bool last)
{
	int error = errno;

	if (file_off)
		return;
	fdtable_check();
	file_settle_all();
	if (last)
		report_write();
	errno = error;
}

void process_off(int reason)
{
	int error = errno;

	if (file_off)
		return;
	fdtable_check();
	file_ending = true;
	file_release_all(reason);
	engine_close();
	report_write();
	file_off = true;
	errno = error;
}

void process_before_namespace(void)
{
	int error = errno;

	fdtable_check();
	file_settle_all();
	engine_close();
	errno = error;
}

/* Is a signal waiting whose handler is to interrupt the program's call, not to restart it? */
static bool interrupts(uint64_t signals)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} action;

	for (int sig = 1; sig <= 64; sig++) {
		if (!(signals >> (sig - 1) & 1) ||
			sys_failed(sys(SYS_rt_sigaction, sig, 0, &action, sizeof(action.mask))))
			continue;
		if (action.handler != SIG_DFL && action.handler != SIG_IGN &&
			!(action.flags & SA_RESTART))
			return true;
	}
	return false;
}

static bool ready(int fd, short events, long ms)
{
	struct pollfd p = {.fd = fd, .events = events};
	struct timespec t = {0, ms * 1000000};

	return sys(SYS_ppoll, &p, 1, &t, 0, 0) != 0;
}

#define MOMENT_NS 100000000ULL
#define SLICE_MS  10

int process_before_block(int fd, short events)
{
	static uint64_t drained;
	uint64_t signals = 0;
	struct quiet q;
	int ret = 0;

	if (!__atomic_load_n(&file_dirty, __ATOMIC_ACQUIRE) || file_off || ready(fd, events, 0))
		return 0;
	long flags = sys(SYS_fcntl, fd, F_GETFL);
	if (sys_failed(flags) || flags & O_NONBLOCK)
		return 0; /* it will not wait */
	/*
	 * In slices with signals held back: a signal that comes must find the
	 * program in its own call, or end that call as it would have.
	 */
	quiet_begin(&q);
	while (clock_coarse() - drained < MOMENT_NS && !signals) {
		if (ready(fd, events, SLICE_MS))
			goto out;
		sys(SYS_rt_sigpending, &signals, sizeof(signals));
		signals &= ~q.mask;
	}
	file_drain_all();
	drained = clock_coarse();
	if (signals && interrupts(signals))
		ret = -EINTR;
out:
	quiet_end(&q);
	return ret;
}

bool process_workers_wait(void)
{
	static int waits; /* of a tenth of a second, since the ring was closed */
	struct timespec t = {0, 100000000};

	if (!engine_had_workers() || ++waits > 70)
		return false;
	sys(SYS_nanosleep, &t, 0);
	return true;
}

void process_before_signal(pid_t pid, int sig)
{
	pid_t self = sys(SYS_getpid);

	if (file_off)
		return;
	__atomic_add_fetch(&file_unheld, 1, __ATOMIC_ACQ_REL);
	if (sig && (pid == self || pid == 0 || pid == -1 || -pid == sys(SYS_getpgid, 0)))
		process_settle(false);
	else /* whoever gets it may look */
		file_drain_all();
}

void process_after_signal(void)
{
	if (!file_off)
		__atomic_sub_fetch(&file_unheld, 1, __ATOMIC_ACQ_REL);
}

/* The environment as the kernel gave it: programs bring getenv of their own. */
extern char **environ;

__attribute__((constructor)) static void begin(int argc, char **argv, char **env)
{
	(void)argc;
	(void)argv;
	process_init(env ? env : environ);
}

__attribute__((destructor)) static void end(void)
{
	process_off(REASON_EXITING);
}
