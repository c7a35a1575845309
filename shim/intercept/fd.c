/* Calls that make, copy, change or close descriptors. */
#include <limits.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/un.h>
#include <unistd.h>

#include "../core/rate.h"
#include "../core/process.h"
#include "../sys.h"
#include "twins.h"
#include "wrap.h"

/* --- closing --- */

static int close_one(int fd)
{
	if (own_is(fd)) {
		errno = EBADF;
		return -1;
	}
	int e = fdtable_close(fd);
	rate_pay();
	int r = real.close(fd);

	return e && r == 0 ? edge(e) : r;
}

WRAP(int, close, (int fd))
{
	return close_one(fd);
}

#if __GLIBC_PREREQ(2, 34)
/* What is ours below the range's end stays; the kernel gets the pieces between. */
static int close_pieces(unsigned low, unsigned high, int flags)
{
	for (int own; low <= INT_MAX && (own = own_next(low)) >= 0 && (unsigned)own <= high;) {
		if ((unsigned)own > low && next(close_range)(low, own - 1, flags))
			return -1;
		low = own + 1;
	}
	return low <= high ? next(close_range)(low, high, flags) : 0;
}

static void before_close_range(unsigned low, unsigned high, int flags)
{
	/* CLOSE_RANGE_CLOEXEC (linux/close_range.h) only marks. */
	if (flags & 4 || low > INT_MAX)
		return;
	for (int fd = fdtable_next((int)low - 1); fd >= 0 && (unsigned)fd <= high;
		fd = fdtable_next(fd))
		fdtable_close(fd);
}

WRAP(int, close_range, (unsigned int low, unsigned int high, int flags))
{
	/* CLOSE_RANGE_UNSHARE 2, CLOSE_RANGE_CLOEXEC 4 */
	if (low > high || flags & ~6)
		return next(close_range)(low, high, flags);
	before_close_range(low, high, flags);
	return close_pieces(low, high, flags);
}

WRAP(void, closefrom, (int low))
{
	int own = own_next(low < 0 ? 0 : low);

	before_close_range(low < 0 ? 0 : low, UINT_MAX, 0);
	if (own >= 0 && !close_pieces(low < 0 ? 0 : low, UINT_MAX, 0))
		return;
	next(closefrom)(low);
}
#endif

/* --- copying --- */

static int duplicated(int old, int new)
{
	int error = errno;

	if (new >= 0) {
		process_handed(old);
		fdtable_dup(old, new);
	}
	errno = error;
	return new;
}

/*
 * dup2 closes its target without a word: what is pending there goes first.
 * Bytes that are lost there are said by the call, for want of a later one.
 */
static int before_dup2(int old, int new)
{
	struct file *f = fdtable_peek(new);

	if (old == new || !(f || own_is(new)))
		return 0;
	if (f && fdtable_idle(f))
		return 0;
	if (sys_failed(sys(SYS_FCNTL, old, F_GETFD)))
		return 0;
	own_make_way(new);
	return fdtable_close(new);
}

/* Our own are not there, for the program. */
static bool hidden(int fd)
{
	if (!own_is(fd))
		return false;
	errno = EBADF;
	return true;
}

WRAP(int, dup, (int fd))
{
	if (hidden(fd))
		return -1;
	return duplicated(fd, real.dup(fd));
}

WRAP(int, dup2, (int old, int new))
{
	if (hidden(old))
		return -1;
	int e = before_dup2(old, new);
	int r = real.dup2(old, new);
	if (old != new)
		duplicated(old, r);
	return e && r >= 0 ? edge(e) : r;
}

WRAP(int, dup3, (int old, int new, int flags))
{
	if (hidden(old))
		return -1;
	int e = flags & ~O_CLOEXEC ? 0 : before_dup2(old, new);
	int r = duplicated(old, real.dup3(old, new, flags));
	return e && r >= 0 ? edge(e) : r;
}

/* Locks and leases: others may look now, and what was read before is old. */
static bool locks(int cmd)
{
	switch (cmd) {
	case F_SETLK:
	case F_SETLKW:
	case F_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
	case F_OFD_GETLK:
#ifndef __LP64__
	case F_SETLK64:
	case F_SETLKW64:
	case F_GETLK64:
#endif
	case F_SETLEASE:
		return true;
	default:
		return false;
	}
}

/* The program's own flags: those that the shim cannot keep up with mean hands off. */
static int set_flags(int fd, int flags)
{
	if (flags & (O_APPEND | O_DIRECT))
		file_release_fd(fd, flags & O_APPEND ? REASON_APPEND : REASON_SYNC);
	file_settle_fd(fd);
	struct file *f = file_get(fd);
	int r = real.fcntl64(fd, F_SETFL, flags);
	if (f) {
		f->fl = -1;
		file_put(f);
	}
	return r;
}

static int get_flags(int fd)
{
	struct file *f = file_get(fd);
	int r = real.fcntl64(fd, F_GETFL);

	if (f && r >= 0 && f->direct_set)
		r &= ~O_DIRECT;
	if (f)
		file_put(f);
	return r;
}

int control(fcntl_call *call, int fd, int cmd, void *arg)
{
	if (hidden(fd))
		return -1;
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
		return duplicated(fd, call(fd, cmd, arg));
	if (cmd == F_GETFL)
		return get_flags(fd);
	if (cmd == F_SETFL)
		return set_flags(fd, (int)(long)arg);
	if (locks(cmd))
		file_release_inode(fd, REASON_LOCKED);
	else if (cmd == F_SETFD)
		process_handed(fd);
	else if (cmd != F_GETFD)
		file_settle_fd(fd);
	return call(fd, cmd, arg);
}

WRAP(int, fcntl64, (int fd, int cmd, ...))
{
	va_list ap;

	va_start(ap, cmd);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	return control(real.fcntl64, fd, cmd, arg);
}

WRAP(int, flock, (int fd, int operation))
{
	file_release_inode(fd, REASON_LOCKED);
	return next(flock)(fd, operation);
}

WRAP(int, lockf64, (int fd, int cmd, off64_t len))
{
	file_release_inode(fd, REASON_LOCKED);
	return next(lockf64)(fd, cmd, len);
}

/* These name a second file, or more; nothing is moved by them (linux/fs.h). */
#define FICLONE_       0x40049409UL
#define FICLONERANGE_  0x4020940dUL
#define FIDEDUPERANGE_ 0xc0189436UL

WRAP(int, ioctl, (int fd, unsigned long request, ...))
{
	va_list ap;

	va_start(ap, request);
	long arg = va_arg(ap, long);
	va_end(ap);
	if (request == FICLONE_ || request == FICLONERANGE_ || request == FIDEDUPERANGE_)
		file_settle_all();
	else if (fdtable_peek(fd))
		file_lend_fd(fd);
	int r = real.ioctl(fd, request, arg);
	if (fdtable_peek(fd)) {
		file_take_back_fd(fd);
		file_resized(fd, "", AT_EMPTY_PATH, -1);
	}
	return r;
}

/* --- numbers that are handed out for other things --- */

static int fresh(int fd)
{
	if (fd >= 0)
		fdtable_reset(fd);
	return fd;
}

static int fresh_pair(int r, const int *fds)
{
	if (r == 0) {
		fdtable_reset(fds[0]);
		fdtable_reset(fds[1]);
	}
	return r;
}

WRAP(int, socket, (int domain, int type, int protocol))
{
	return fresh(real.socket(domain, type, protocol));
}

WRAP(int, socketpair, (int domain, int type, int protocol, int *fds))
{
	return fresh_pair(next(socketpair)(domain, type, protocol, fds), fds);
}

WRAP(int, pipe, (int *fds))
{
	return fresh_pair(real.pipe(fds), fds);
}

WRAP(int, pipe2, (int *fds, int flags))
{
	return fresh_pair(real.pipe2(fds, flags), fds);
}

WRAP(int, accept, (int fd, struct sockaddr *address, socklen_t *len))
{
	return fresh(next(accept)(fd, address, len));
}

WRAP(int, accept4, (int fd, struct sockaddr *address, socklen_t *len, int flags))
{
	return fresh(next(accept4)(fd, address, len, flags));
}

WRAP(int, eventfd, (unsigned int count, int flags))
{
	return fresh(next(eventfd)(count, flags));
}

WRAP(int, epoll_create, (int size))
{
	return fresh(next(epoll_create)(size));
}

WRAP(int, epoll_create1, (int flags))
{
	return fresh(next(epoll_create1)(flags));
}

WRAP(int, timerfd_create, (clockid_t clock, int flags))
{
	return fresh(next(timerfd_create)(clock, flags));
}

WRAP(int, signalfd, (int fd, const sigset_t *mask, int flags))
{
	return fresh(next(signalfd)(fd, mask, flags));
}

WRAP(int, inotify_init, (void))
{
	return fresh(next(inotify_init)());
}

WRAP(int, inotify_init1, (int flags))
{
	return fresh(next(inotify_init1)(flags));
}

WRAP(int, fanotify_init, (unsigned int flags, unsigned int event_flags))
{
	return fresh(next(fanotify_init)(flags, event_flags));
}

WRAP(int, memfd_create, (const char *name, unsigned int flags))
{
	return fresh(next(memfd_create)(name, flags));
}

WRAP(int, shm_open, (const char *name, int flags, mode_t mode))
{
	return fresh(next(shm_open)(name, flags, mode));
}

WRAP(mqd_t, mq_open, (const char *name, int flags, ...))
{
	va_list ap;

	va_start(ap, flags);
	mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	struct mq_attr *attr = flags & O_CREAT ? va_arg(ap, struct mq_attr *) : NULL;
	va_end(ap);
	return fresh(next(mq_open)(name, flags, mode, attr));
}

WRAP(mqd_t, __mq_open_2, (const char *name, int flags))
{
	return fresh(next(__mq_open_2)(name, flags));
}

WRAP(int, posix_openpt, (int flags))
{
	return fresh(next(posix_openpt)(flags));
}

WRAP(int, getpt, (void))
{
	return fresh(next(getpt)());
}

WRAP(int, openpty, (int *master, int *slave, char *name, const struct termios *t, const struct winsize *w))
{
	int r = next(openpty)(master, slave, name, t, w);
	int fds[2] = {r ? -1 : *master, r ? -1 : *slave};

	return fresh_pair(r, fds);
}

#if __GLIBC_PREREQ(2, 36)
WRAP(int, pidfd_open, (pid_t pid, unsigned int flags))
{
	return fresh(next(pidfd_open)(pid, flags));
}

WRAP(int, pidfd_getfd, (int pidfd, int fd, unsigned int flags))
{
	/* The process may be this one: then there are two of one description. */
	file_release_fd(fd, REASON_PASSED_ON);
	return fresh(next(pidfd_getfd)(pidfd, fd, flags));
}
#endif

/* --- descriptors over sockets --- */

typedef void per_descriptor(int fd);

static void each_right(const struct msghdr *m, per_descriptor *f)
{
	struct cmsghdr *c = m && m->msg_control ? CMSG_FIRSTHDR(m) : NULL;

	for (; c; c = CMSG_NXTHDR((struct msghdr *)m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		int *fds = (int *)CMSG_DATA(c);
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; i < n; i++)
			f(fds[i]);
	}
}

static void pass_on(int fd)
{
	process_handed(fd);
	file_release_fd(fd, REASON_PASSED_ON);
}

/* Known only so that a description of our own on the same file is not taken for the only one. */
static void received(int fd)
{
	int flags = real.fcntl64(fd, F_GETFL);

	fdtable_open(fd, flags, NULL);
	process_handed(fd);
	file_release_fd(fd, REASON_PASSED_ON);
}

void received_rights(const struct msghdr *m)
{
	each_right(m, received);
}

WRAP(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags))
{
	ssize_t r = next(recvmsg)(fd, m, flags);
	if (r >= 0 && m->msg_controllen)
		received_rights(m);
	return r;
}

WRAP(int, recvmmsg, (int fd, struct mmsghdr *m, unsigned int n, int flags, struct timespec *t))
{
	int r = next(recvmmsg)(fd, m, n, flags, t);
	for (int i = 0; i < r; i++)
		received_rights(&m[i].msg_hdr);
	return r;
}

/* Word to somebody else, who may look. */

WRAP(ssize_t, send, (int fd, const void *buf, size_t n, int flags))
{
	file_drain_all();
	return next(send)(fd, buf, n, flags);
}

WRAP(ssize_t, sendto, (int fd, const void *buf, size_t n, int flags, const struct sockaddr *to, socklen_t len))
{
	file_drain_all();
	return next(sendto)(fd, buf, n, flags, to, len);
}

WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags))
{
	if (fdtable && memory_ok_now(m, sizeof(*m)) && m->msg_controllen)
		each_right(m, pass_on);
	file_drain_all();
	return next(sendmsg)(fd, m, flags);
}

WRAP(int, sendmmsg, (int fd, struct mmsghdr *m, unsigned int n, int flags))
{
	file_drain_all();
	for (unsigned i = 0; fdtable && i < n && memory_ok_now(&m[i], sizeof(m[i])); i++)
		each_right(&m[i].msg_hdr, pass_on);
	return next(sendmmsg)(fd, m, n, flags);
}

#define CALLS CALLS_FD
#include "same.h"
