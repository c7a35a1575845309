/*
 * Calls that make the process wait: what is held goes to the kernel first, so
 * that nobody who follows a file waits for more than a moment. Sleeps shorter
 * than 100 ms, and waits that end within it, leave it alone.
 */
#include "../engine/engine.h"
#include "twins.h"
#include "wrap.h"

#define MOMENT_MS 100

static bool holds(void)
{
	return __atomic_load_n(&file_dirty, __ATOMIC_ACQUIRE);
}

/* Many short waits are a long one, too. */
static bool held_long(void)
{
	return holds() && clock_coarse() - file_dirty_at > MOMENT_MS * 1000000ULL;
}

int waited(int r)
{
	if (__atomic_load_n(&file_tuned, __ATOMIC_RELAXED))
		__atomic_store_n(&file_epoch, file_epoch + 1, __ATOMIC_RELEASE);
	return r;
}

static void before_wait(bool is_long)
{
	if (is_long || held_long())
		file_drain_all();
}

static bool long_enough(const struct timespec *t)
{
	return t && (t->tv_sec > 0 || t->tv_nsec >= MOMENT_MS * 1000000L);
}

WRAP(int, nanosleep, (const struct timespec *t, struct timespec *left))
{
	before_wait(long_enough(t));
	return waited(next(nanosleep)(t, left));
}

WRAP(int, clock_nanosleep, (clockid_t clock, int flags, const struct timespec *t, struct timespec *left))
{
	before_wait(flags || long_enough(t));
	return waited(next(clock_nanosleep)(clock, flags, t, left));
}

WRAP(unsigned int, sleep, (unsigned int seconds))
{
	before_wait(seconds);
	return waited(next(sleep)(seconds));
}

WRAP(int, usleep, (useconds_t us))
{
	before_wait(us >= MOMENT_MS * 1000);
	return waited(next(usleep)(us));
}

WRAP(int, pause, (void))
{
	file_drain_all();
	return waited(next(pause)());
}

WRAP(int, sigsuspend, (const sigset_t *mask))
{
	file_drain_all();
	return waited(next(sigsuspend)(mask));
}

WRAP(int, sigwait, (const sigset_t *set, int *sig))
{
	file_drain_all();
	return waited(next(sigwait)(set, sig));
}

WRAP(int, sigwaitinfo, (const sigset_t *set, siginfo_t *info))
{
	file_drain_all();
	engine_land();
	return waited(next(sigwaitinfo)(set, info));
}

WRAP(int, sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *t))
{
	before_wait(!t || long_enough(t));
	engine_land();
	return waited(next(sigtimedwait)(set, info, t));
}

WRAP(pid_t, wait, (int *status))
{
	file_drain_all();
	return waited(next(wait)(status));
}

WRAP(pid_t, waitpid, (pid_t pid, int *status, int options))
{
	before_wait(!(options & WNOHANG));
	return waited(next(waitpid)(pid, status, options));
}

WRAP(pid_t, wait3, (int *status, int options, struct rusage *usage))
{
	before_wait(!(options & WNOHANG));
	return waited(next(wait3)(status, options, usage));
}

WRAP(pid_t, wait4, (pid_t pid, int *status, int options, struct rusage *usage))
{
	before_wait(!(options & WNOHANG));
	return waited(next(wait4)(pid, status, options, usage));
}

WRAP(int, waitid, (idtype_t type, id_t id, siginfo_t *info, int options))
{
	before_wait(!(options & WNOHANG));
	return waited(next(waitid)(type, id, info, options));
}

WRAP(int, pclose, (FILE *f))
{
	file_settle_all();
	return waited(next(pclose)(f));
}

/*
 * The poll family: a moment with what is held kept, then it is drained and
 * the rest of the time is waited. These calls are never restarted after a
 * signal (signal(7)), so EINTR of the first part is the answer.
 */

static bool splits_ms(int timeout)
{
	if (held_long() && timeout)
		file_drain_all();
	return holds() && (timeout < 0 || timeout > MOMENT_MS);
}

static int rest_ms(int timeout)
{
	file_drain_all();
	return timeout < 0 ? timeout : timeout - MOMENT_MS;
}

WRAP(int, poll, (struct pollfd *fds, nfds_t n, int timeout))
{
	if (splits_ms(timeout)) {
		int r = next(poll)(fds, n, MOMENT_MS);
		if (r)
			return waited(r);
		timeout = rest_ms(timeout);
	}
	return waited(next(poll)(fds, n, timeout));
}

WRAP(int, __poll_chk, (struct pollfd *fds, nfds_t n, int timeout, size_t size))
{
	if (splits_ms(timeout)) {
		int r = next(__poll_chk)(fds, n, MOMENT_MS, size);
		if (r)
			return waited(r);
		timeout = rest_ms(timeout);
	}
	return waited(next(__poll_chk)(fds, n, timeout, size));
}

WRAP(int, epoll_wait, (int fd, struct epoll_event *events, int n, int timeout))
{
	engine_land();
	if (splits_ms(timeout)) {
		int r = next(epoll_wait)(fd, events, n, MOMENT_MS);
		if (r)
			return waited(r);
		timeout = rest_ms(timeout);
	}
	return waited(next(epoll_wait)(fd, events, n, timeout));
}

WRAP(int, epoll_pwait, (int fd, struct epoll_event *events, int n, int timeout, const sigset_t *mask))
{
	engine_land();
	if (splits_ms(timeout)) {
		int r = next(epoll_pwait)(fd, events, n, MOMENT_MS, mask);
		if (r)
			return waited(r);
		timeout = rest_ms(timeout);
	}
	return waited(next(epoll_pwait)(fd, events, n, timeout, mask));
}

static const struct timespec moment = {0, MOMENT_MS * 1000000L};

static bool splits(const struct timespec *t)
{
	if (held_long() && !(t && !t->tv_sec && !t->tv_nsec))
		file_drain_all();
	return holds() && (!t || long_enough(t));
}

/* What is left of t after a moment, in rest; NULL for no limit. */
static const struct timespec *rest_of(const struct timespec *t, struct timespec *rest)
{
	file_drain_all();
	if (!t)
		return NULL;
	*rest = *t;
	rest->tv_nsec -= moment.tv_nsec;
	if (rest->tv_nsec < 0) {
		rest->tv_nsec += 1000000000L;
		rest->tv_sec--;
	}
	return rest;
}

#if __GLIBC_PREREQ(2, 35)
WRAP(int, epoll_pwait2, (int fd, struct epoll_event *events, int n, const struct timespec *t, const sigset_t *mask))
{
	struct timespec rest;
	engine_land();
	if (splits(t)) {
		int r = next(epoll_pwait2)(fd, events, n, &moment, mask);
		if (r)
			return waited(r);
		t = rest_of(t, &rest);
	}
	return waited(next(epoll_pwait2)(fd, events, n, t, mask));
}
#endif

WRAP(int, ppoll, (struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask))
{
	struct timespec rest;
	if (splits(t)) {
		int r = next(ppoll)(fds, n, &moment, mask);
		if (r)
			return waited(r);
		t = rest_of(t, &rest);
	}
	return waited(next(ppoll)(fds, n, t, mask));
}

WRAP(int, __ppoll_chk, (struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask, size_t size))
{
	struct timespec rest;
	if (splits(t)) {
		int r = next(__ppoll_chk)(fds, n, &moment, mask, size);
		if (r)
			return waited(r);
		t = rest_of(t, &rest);
	}
	return waited(next(__ppoll_chk)(fds, n, t, mask, size));
}

/* select overwrites its sets, also when it times out: simply drain before a long one. */

WRAP(int, select, (int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t))
{
	before_wait(!t || t->tv_sec || t->tv_usec >= MOMENT_MS * 1000);
	return waited(next(select)(n, r, w, e, t));
}

WRAP(int, pselect, (int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *t, const sigset_t *mask))
{
	if (splits(t))
		file_drain_all();
	return waited(next(pselect)(n, r, w, e, t, mask));
}

#define CALLS CALLS_WAIT
#include "same.h"
