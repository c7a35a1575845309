#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../real.h"
#include "../sys.h"
#include "config.h"
#include "file.h"
#include "jump.h"
#include "policy.h"
#include "process.h"
#include "progress.h"
#include "rate.h"
#include "report.h"
#include "stream.h"

/*
 * BLKTUNE_STDIO=on: the file or device on a standard descriptor is taken up,
 * at the offset where it stands, as if this process had opened it.
 */
static void adopt(int fd)
{
	char link[] = "/proc/self/fd/0", path[CONFIG_PATH_MAX] = "";
	struct stat64 st;
	int flags = real.fcntl64(fd, F_GETFL);

	if (flags < 0 || real.fstat64(fd, &st) || !(S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)))
		return;
	link[sizeof(link) - 2] += fd;
	long n = sys(SYS_readlinkat, AT_FDCWD, link, path, sizeof(path) - 1);
	fdtable_open(fd, flags, n > 0 && *path == '/' ? path : NULL);
	struct file *f = fdtable_peek(fd);
	if (f)
		f->moved = true;
	if (f && !stream_take())
		file_release_fd(fd, REASON_STDIO);
}

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
	if (config.on)
		policy_init();
	report_init();
	for (int fd = 0; fd <= 1 && config.on && config.stdio; fd++)
		adopt(fd);
	progress_init();
	errno = error;
}

/* Sets of descriptors; those beyond the size are in each of them. */
#define SET_SIZE 32768

static uint8_t will_hand[SET_SIZE / 8];
static uint8_t *handed; /* in memory shared with children of vfork(2); made when needed */
static bool in_vfork;

static void set_add(uint8_t *set, int fd)
{
	if (fd >= 0 && fd < SET_SIZE)
		__atomic_or_fetch(&set[fd / 8], 1 << fd % 8, __ATOMIC_RELAXED);
}

static bool set_has(const uint8_t *set, int fd)
{
	return fd >= SET_SIZE || __atomic_load_n(&set[fd / 8], __ATOMIC_RELAXED) >> fd % 8 & 1;
}

void process_before_fork(void)
{
	fdtable_check();
	/* A child of vfork's that has children: they may do what they like. */
	for (int fd = 0; in_vfork && fd < SET_SIZE; fd++)
		set_add(handed, fd);
	__atomic_store_n(&file_forked, true, __ATOMIC_RELAXED);
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

/* What the shim has to say when the program ends, or is replaced. */
static void last_words(void)
{
	progress_end();
	report_write();
}

void process_will_hand(int fd)
{
	set_add(will_hand, fd);
}

void process_handed(int fd)
{
	if (in_vfork)
		set_add(handed, fd);
}

static bool unsettled(int fd)
{
	const struct file *f = fdtable_peek(fd);

	return f && (f->state == FILE_FRESH || f->state == FILE_TUNED);
}

static void keep(struct file *f, void *arg)
{
	(void)arg;
	if ((f->state != FILE_TUNED && f->state != FILE_FRESH) || file_settle(f))
		return;
	f->moved = true;
	f->lent++;
	f->kept++;
}

static void unkeep(struct file *f, void *arg)
{
	(void)arg;
	if (!f->kept)
		return;
	f->kept--;
	if (!--f->lent && f->state == FILE_TUNED)
		file_resync(f);
}

/* Releases what the child will have, keeps the rest: true when there is any. */
static bool keep_all(const uint8_t *set)
{
	bool any = false;

	fdtable_check();
	__atomic_store_n(&file_forked, true, __ATOMIC_RELAXED);
	fdtable_pause(1);
	for (int fd = fdtable_next(-1); fd >= 0; fd = fdtable_next(fd)) {
		if (!unsettled(fd))
			continue;
		int flags = real.fcntl64(fd, F_GETFD);
		if (flags < 0 || !(flags & FD_CLOEXEC) || (set && set_has(set, fd)))
			file_release_fd(fd, REASON_FORKED);
		any |= unsettled(fd);
	}
	if (any)
		fdtable_each(keep, NULL);
	return any;
}

void process_before_spawn(bool actions)
{
	keep_all(actions ? will_hand : NULL);
}

void process_after_spawn(void)
{
	int error = errno;

	fdtable_each(unkeep, NULL);
	fdtable_pause(-1);
	errno = error;
}

void process_before_vfork(void)
{
	if (!keep_all(NULL) || handed)
		return;
	long p = sys_mmap(NULL, SET_SIZE / 8, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(p))
		file_release_all(REASON_FORKED);
	else
		handed = (uint8_t *)p;
}

void process_after_vfork(bool child)
{
	int error = errno;

	if (child) {
		in_vfork = handed != NULL;
		fdtable_check();
	} else {
		process_after_spawn();
		for (int fd = fdtable_next(-1); handed && fd >= 0; fd = fdtable_next(fd))
			if (set_has(handed, fd) && unsettled(fd))
				file_release_fd(fd, REASON_FORKED);
		if (handed && __libc_single_threaded)
			memset(handed, 0, SET_SIZE / 8);
	}
	errno = error;
}

void process_before_exec(void)
{
	fdtable_check();
	file_settle_all();
	last_words();
}

void process_settle(bool last)
{
	int error = errno;

	if (file_off)
		return;
	fdtable_check();
	file_settle_all();
	if (last)
		last_words();
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
	rate_pay();
	last_words();
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
	long flags = sys(SYS_FCNTL, fd, F_GETFL);
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

void process_before_limit(void)
{
	file_settle_all();
}

void process_after_limit(void)
{
	int error = errno;

	policy_limits();
	file_release_all(REASON_LIMIT);
	errno = error;
}

static void hold_again(struct undo *u)
{
	(void)u;
	if (!file_off)
		__atomic_sub_fetch(&file_unheld, 1, __ATOMIC_ACQ_REL);
}

void process_before_signal(struct undo *u, pid_t pid, int sig)
{
	pid_t self = sys(SYS_getpid);

	jump_guard(u, hold_again);
	if (file_off)
		return;
	__atomic_add_fetch(&file_unheld, 1, __ATOMIC_ACQ_REL);
	if (sig && (pid == self || pid == 0 || pid == -1 || -pid == sys(SYS_getpgid, 0)))
		process_settle(false);
	else /* whoever gets it may look */
		file_drain_all();
}

void process_after_signal(struct undo *u)
{
	jump_done(u);
	hold_again(u);
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
