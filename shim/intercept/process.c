/* Calls that make, replace, change or end processes. */
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../core/jump.h"
#include "../core/policy.h"
#include "../core/process.h"
#include "../core/stream.h"
#include "../sys.h"
#include "syscall.h"
#include "wrap.h"

/* --- children --- */

WRAP(pid_t, fork, (void))
{
	process_before_fork();
	pid_t pid = next(fork)();
	process_after_fork(pid == 0);
	return pid;
}

#if __GLIBC_PREREQ(2, 34)
WRAP(pid_t, _Fork, (void))
{
	process_before_fork();
	pid_t pid = next(_Fork)();
	process_after_fork(pid == 0);
	return pid;
}
#endif

/*
 * A vfork child would run our wrappers in the parent's memory, and return
 * through our frame under the parent. It gets memory of its own; the parent
 * waits for its exec or exit as it expects to.
 */
WRAP(pid_t, vfork, (void))
{
	process_before_vfork();
	long pid = sys(SYS_clone, CLONE_VFORK | SIGCHLD);
	process_after_vfork(pid == 0);
	return edge(pid);
}

/* A raw thread, or a process in our memory: it cannot be told apart, so there is nothing to keep. */
static void before_clone(unsigned long flags)
{
	if (flags & CLONE_VM) {
		process_off(REASON_RAW);
		return;
	}
	process_before_fork();
	/* The child starts in a function of its own: what it must not have is not there. */
	engine_close();
}

WRAP(int, clone, (int (*fn)(void *), void *stack, int flags, void *arg, ...))
{
	va_list ap;

	va_start(ap, arg);
	void *parent_tid = va_arg(ap, void *), *tls = va_arg(ap, void *);
	void *child_tid = va_arg(ap, void *);
	va_end(ap);
	before_clone(flags);
	int pid = next(clone)(fn, stack, flags, arg, parent_tid, tls, child_tid);
	if (!(flags & CLONE_VM))
		process_after_fork(false);
	return pid;
}

WRAP(pid_t, forkpty, (int *master, char *name, const struct termios *t, const struct winsize *w))
{
	process_before_fork();
	pid_t pid = next(forkpty)(master, name, t, w);
	process_after_fork(pid == 0);
	if (pid > 0)
		fdtable_reset(*master);
	return pid;
}

/* The parent ends inside libc; who comes back is the child. */
WRAP(int, daemon, (int nochdir, int noclose))
{
	process_before_fork();
	int r = next(daemon)(nochdir, noclose);
	process_after_fork(r == 0);
	return r;
}

WRAP(int, posix_spawn, (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr, char *const *argv, char *const *env))
{
	process_before_spawn(actions);
	int r = next(posix_spawn)(pid, path, actions, attr, argv, env);
	process_after_spawn();
	return r;
}

WRAP(int, posix_spawnp, (pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr, char *const *argv, char *const *env))
{
	process_before_spawn(actions);
	int r = next(posix_spawnp)(pid, file, actions, attr, argv, env);
	process_after_spawn();
	return r;
}

#if __GLIBC_PREREQ(2, 39)
WRAP(int, pidfd_spawn, (int *pidfd, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr, char *const *argv, char *const *env))
{
	process_before_spawn(actions);
	int r = next(pidfd_spawn)(pidfd, path, actions, attr, argv, env);
	process_after_spawn();
	return r;
}

WRAP(int, pidfd_spawnp, (int *pidfd, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr, char *const *argv, char *const *env))
{
	process_before_spawn(actions);
	int r = next(pidfd_spawnp)(pidfd, file, actions, attr, argv, env);
	process_after_spawn();
	return r;
}
#endif

/* The copy that the child gets outlives its exec. */
WRAP(int, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t *actions, int fd, int to))
{
	process_will_hand(fd);
	return next(posix_spawn_file_actions_adddup2)(actions, fd, to);
}

WRAP(int, system, (const char *command))
{
	process_before_spawn(false);
	int r = next(system)(command);
	process_after_spawn();
	return r;
}

WRAP(FILE *, popen, (const char *command, const char *mode))
{
	process_before_spawn(false);
	FILE *f = next(popen)(command, mode);
	process_after_spawn();
	if (f) {
		fdtable_reset(fileno(f));
		stream_popen(f);
	}
	return f;
}

/* --- exec --- */

WRAP(int, execve, (const char *path, char *const *argv, char *const *env))
{
	process_before_exec();
	return next(execve)(path, argv, env);
}

WRAP(int, execv, (const char *path, char *const *argv))
{
	process_before_exec();
	return next(execv)(path, argv);
}

WRAP(int, execvp, (const char *file, char *const *argv))
{
	process_before_exec();
	return next(execvp)(file, argv);
}

WRAP(int, execvpe, (const char *file, char *const *argv, char *const *env))
{
	process_before_exec();
	return next(execvpe)(file, argv, env);
}

WRAP(int, fexecve, (int fd, char *const *argv, char *const *env))
{
	process_before_exec();
	return next(fexecve)(fd, argv, env);
}

#if __GLIBC_PREREQ(2, 34)
WRAP(int, execveat, (int dir, const char *path, char *const *argv, char *const *env, int flags))
{
	process_before_exec();
	return next(execveat)(dir, path, argv, env, flags);
}
#endif

/* The forms with a list: how long it is, and then the list itself. */
static size_t count_args(va_list ap)
{
	size_t n = 1;

	while (va_arg(ap, char *))
		n++;
	return n;
}

static void take_args(char **argv, const char *first, va_list ap)
{
	argv[0] = (char *)first;
	for (size_t i = 1; argv[i - 1]; i++)
		argv[i] = va_arg(ap, char *);
}

#define ARGS(argv, first)                                                                          \
	va_list ap;                                                                                \
	va_start(ap, first);                                                                       \
	size_t n = first ? count_args(ap) : 0;                                                     \
	va_end(ap);                                                                                \
	char *argv[n + 1];                                                                         \
	va_start(ap, first);                                                                       \
	take_args(argv, first, ap)

WRAP(int, execl, (const char *path, const char *arg, ...))
{
	ARGS(argv, arg);
	va_end(ap);
	process_before_exec();
	return next(execv)(path, argv);
}

WRAP(int, execlp, (const char *file, const char *arg, ...))
{
	ARGS(argv, arg);
	va_end(ap);
	process_before_exec();
	return next(execvp)(file, argv);
}

WRAP(int, execle, (const char *path, const char *arg, ...))
{
	ARGS(argv, arg);
	char *const *env = va_arg(ap, char *const *);
	va_end(ap);
	process_before_exec();
	return next(execve)(path, argv, env);
}

/* --- the end --- */

WRAP(void, _exit, (int status))
{
	process_settle(true);
	real._exit(status);
	__builtin_unreachable();
}

WRAP(void, quick_exit, (int status))
{
	/* What its handlers write is not held: the end comes inside libc. */
	process_off(REASON_EXITING);
	next(quick_exit)(status);
}

WRAP(void, abort, (void))
{
	process_off(REASON_EXITING);
	next(abort)();
}

WRAP(void, longjmp, (struct __jmp_buf_tag env[1], int value))
{
	jump_leave(env);
	next(longjmp)(env, value);
}

WRAP(void, __longjmp_chk, (struct __jmp_buf_tag env[1], int value))
{
	jump_leave(env);
	next(__longjmp_chk)(env, value);
}

WRAP(int, raise, (int sig))
{
	struct undo u;

	process_before_signal(&u, 0, sig);
	int r = next(raise)(sig);
	process_after_signal(&u);
	return r;
}

WRAP(int, kill, (pid_t pid, int sig))
{
	struct undo u;

	process_before_signal(&u, pid, sig);
	int r = real.kill(pid, sig);
	process_after_signal(&u);
	return r;
}

WRAP(int, killpg, (pid_t group, int sig))
{
	struct undo u;

	process_before_signal(&u, -group, sig);
	int r = next(killpg)(group, sig);
	process_after_signal(&u);
	return r;
}

#if __GLIBC_PREREQ(2, 30)
WRAP(int, tgkill, (pid_t group, pid_t tid, int sig))
{
	struct undo u;

	process_before_signal(&u, group, sig);
	int r = next(tgkill)(group, tid, sig);
	process_after_signal(&u);
	return r;
}
#endif

WRAP(int, pthread_kill, (pthread_t thread, int sig))
{
	struct undo u;

	process_before_signal(&u, 0, sig);
	int r = next(pthread_kill)(thread, sig);
	process_after_signal(&u);
	return r;
}

WRAP(int, sigqueue, (pid_t pid, int sig, const union sigval value))
{
	struct undo u;

	process_before_signal(&u, pid, sig);
	int r = next(sigqueue)(pid, sig, value);
	process_after_signal(&u);
	return r;
}

/* --- what changes the process --- */

WRAP(int, prctl, (int option, ...))
{
	va_list ap;
	long a[4];

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (option == PR_SET_SECCOMP)
		process_off(REASON_SECCOMP);
	return real.prctl(option, a[0], a[1], a[2], a[3]);
}

WRAP(int, unshare, (int flags))
{
	process_before_namespace();
	int r = next(unshare)(flags);
	while (r < 0 && errno == EINVAL && process_workers_wait())
		r = next(unshare)(flags);
	return r;
}

WRAP(int, setns, (int fd, int type))
{
	process_before_namespace();
	int r = next(setns)(fd, type);
	while (r < 0 && errno == EINVAL && process_workers_wait())
		r = next(setns)(fd, type);
	return r;
}

WRAP(int, setrlimit64, (__rlimit_resource_t what, const struct rlimit64 *limit))
{
	if (what != RLIMIT_FSIZE)
		return next(setrlimit64)(what, limit);
	process_before_limit();
	int r = next(setrlimit64)(what, limit);
	if (!r)
		process_after_limit();
	return r;
}

WRAP(int, prlimit64, (pid_t pid, __rlimit_resource_t what, const struct rlimit64 *limit, struct rlimit64 *old))
{
	if (what != RLIMIT_FSIZE || !limit)
		return next(prlimit64)(pid, what, limit, old);
	process_before_limit();
	int r = next(prlimit64)(pid, what, limit, old);
	if (!r)
		process_after_limit();
	return r;
}

/* System calls by number: nothing of ours is in their way. */
WRAP(long, syscall, (long nr, ...))
{
	va_list ap;
	long a[6];

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	/* A worker of a ring's is a thread, too: the status would be that one's. */
	if (nr == SYS_exit && __libc_single_threaded)
		nr = SYS_exit_group;
	int lost, e = syscall_before(nr, a, &lost);
	long r = e ? edge(e) : real.syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	syscall_after(nr, a, r);
	return lost && r >= 0 ? edge(lost) : r;
}

#define CALLS CALLS_PROCESS
#include "same.h"
