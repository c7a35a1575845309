/*
 * doors KIND: the calls that wait, make descriptors, become another program, signal or
 * print, one after the other, each with bytes of a file pending. Prints what each
 * returned, and what others saw of the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../shim/sys.h"

#define PIECES 300
#define PIECE  701

static char piece[PIECE];

static off_t size_of(const char *path)
{
	struct stat st;

	return sys(SYS_newfstatat, AT_FDCWD, path, &st, 0) ? -1 : st.st_size;
}

static int fill(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);

	for (int i = 0; i < PIECES; i++)
		if (write(fd, piece, PIECE) != PIECE)
			_exit(9);
	return fd;
}

/* Has somebody else all of it, within a minute? */
static bool complete(const char *path)
{
	for (int i = 0; i < 6000 && size_of(path) != PIECES * PIECE; i++)
		usleep(10000);
	return size_of(path) == PIECES * PIECE;
}

/* --- waits: another process sees all of the file before it ends the wait --- */

static int ends[2];
static pid_t other, me;

/* How the wait is ended. */
enum { BYTE, SIGNAL, EXIT };

static void begin(const char *path, int how)
{
	unlink(path);
	me = getpid();
	other = fork();
	if (other)
		return;
	bool all = complete(path);
	if (how == BYTE && write(ends[1], all ? "y" : "n", 1) != 1)
		_exit(2);
	if (how == SIGNAL)
		kill(me, all ? SIGUSR1 : SIGUSR2);
	_exit(all ? 7 : 8);
}

static volatile sig_atomic_t signalled;

static void on(int sig)
{
	signalled = sig;
}

/* Of a file that is larger: more of it is on its way then. */
static void read_some(const char *path)
{
	static int fd = -1;
	char b[512];

	close(fd);
	fd = open(path, O_RDONLY);
	for (int i = 0; i < 20; i++)
		if (read(fd, b, sizeof(b)) != sizeof(b))
			_exit(9);
}

static int wait_by(int kind)
{
	struct pollfd p = {ends[0], POLLIN, 0};
	struct timespec minute = {60, 0};
	struct timeval tv = {60, 0};
	struct epoll_event e = {.events = EPOLLIN};
	struct rusage usage;
	siginfo_t info = {0};
	sigset_t usr;
	fd_set set;
	int status = 0, ep, r = -1;

	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	switch (kind) {
	case 0: return poll(&p, 1, 60000);
	case 1: return poll(&p, 1, -1);
	case 2: return ppoll(&p, 1, &minute, NULL);
	case 3: return ppoll(&p, 1, NULL, NULL);
	case 4: return select(ends[0] + 1, &set, NULL, NULL, &tv);
	case 5: return select(ends[0] + 1, &set, NULL, NULL, NULL);
	case 6: return pselect(ends[0] + 1, &set, NULL, NULL, &minute, NULL);
	case 7:
	case 8:
		ep = epoll_create1(0);
		epoll_ctl(ep, EPOLL_CTL_ADD, ends[0], &e);
		read_some("wait.00");
		r = kind == 7 ? epoll_wait(ep, &e, 1, 60000) : epoll_pwait(ep, &e, 1, -1, NULL);
		close(ep);
		return r;
	case 9: return pause();
	case 10: return nanosleep(&minute, NULL);
	case 11: return clock_nanosleep(CLOCK_MONOTONIC, 0, &minute, NULL);
	case 12: return usleep(59000000);
	case 18: read_some("wait.00"); return sigwaitinfo(&usr, NULL);
	case 19: read_some("wait.00"); return sigtimedwait(&usr, NULL, &minute);
	case 21:
		ep = epoll_create1(0);
		epoll_ctl(ep, EPOLL_CTL_ADD, ends[0], &e);
		r = epoll_pwait2(ep, &e, 1, &minute, NULL);
		close(ep);
		return r;
	case 20: return sigwait(&usr, &status) ? -1 : status;
	case 13: return wait4(other, &status, 0, &usage) == other ? status : -1;
	case 14: return waitid(P_PID, other, &info, WEXITED) ? -1 : info.si_status;
	case 15: return waitpid(other, &status, 0) == other ? status : -1;
	case 16: return wait(&status) == other ? status : -1;
	case 17: return wait3(&status, 0, &usage) == other ? status : -1;
	default: return -2;
	}
}

static void waits(void)
{
	struct sigaction a = {.sa_handler = on};
	char c, path[] = "wait.00";

	sigaction(SIGUSR1, &a, NULL);
	sigaction(SIGUSR2, &a, NULL);
	if (pipe(ends))
		_exit(9);
	for (int kind = 0; kind < 22; kind++) {
		int how = kind < 9 || kind == 21 ? BYTE : kind < 13 || kind > 17 ? SIGNAL : EXIT;

		if (kind == 18) {
			sigset_t usr;

			sigemptyset(&usr);
			sigaddset(&usr, SIGUSR1);
			sigprocmask(SIG_BLOCK, &usr, NULL);
		}
		snprintf(path, sizeof(path), "wait.%02d", kind);
		begin(path, how);
		int fd = fill(path);
		signalled = 0;
		int r = wait_by(kind), error = r < 0 ? errno : 0;
		c = '-';
		if (how == BYTE && read(ends[0], &c, 1) != 1)
			c = '?';
		if (how != EXIT)
			waitpid(other, NULL, 0);
		printf("%d: %d %d %c %d, then %zd\n", kind, r, error, c, signalled, write(fd, "x", 1));
		close(fd);
	}
	/* and one that nothing ends */
	int fd = fill("wait.xx");
	struct pollfd p = {ends[0], POLLIN, 0};
	struct timespec moment = {0, 300000000};
	struct timeval tv = {0, 300000};
	printf("%d %d %d %d\n", poll(&p, 1, 300), ppoll(&p, 1, &moment, NULL), select(0, NULL, NULL, NULL, &tv),
		pselect(0, NULL, NULL, NULL, &moment, NULL));
	printf("%d %d\n", poll(&p, 1, 0), nanosleep(&moment, NULL));
	close(fd);
}

/* --- descriptors: made on a number that was closed unseen --- */

static int make(int kind)
{
	struct mq_attr attr = {.mq_maxmsg = 4, .mq_msgsize = 64};
	int pair[2];
	sigset_t set;

	sigemptyset(&set);
	switch (kind) {
	case 0: return eventfd(0, 0);
	case 1: return epoll_create(1);
	case 2: return epoll_create1(0);
	case 3: return timerfd_create(CLOCK_MONOTONIC, 0);
	case 4: return signalfd(-1, &set, 0);
	case 5: return inotify_init();
	case 6: return inotify_init1(0);
	case 7: return mq_open("/doors", O_RDWR | O_CREAT, 0600, &attr);
	case 8: return posix_openpt(O_RDWR | O_NOCTTY);
	case 9: return getpt();
	case 10: return pidfd_open(getpid(), 0);
	case 11: return socket(AF_UNIX, SOCK_STREAM, 0);
	case 12: return pipe(pair) ? -1 : pair[0];
	case 13: return pipe2(pair, 0) ? -1 : pair[0];
	case 14: return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ? -1 : pair[0];
	case 15: return memfd_create("doors", 0);
	case 16: return open("/dev/null", O_RDWR);
	case 17: return openat(AT_FDCWD, "/dev/zero", O_RDWR);
	default: return -2;
	}
}

static void makers(void)
{
	struct stat st;

	for (int kind = 0; kind < 18; kind++) {
		int fd = fill("made"), n;

		fsync(fd);
		sys(SYS_close, fd);
		n = make(kind);
		printf("%d: %d", kind, n == fd);
		ssize_t r = write(n, "12345678", 8);
		printf(" %zd %d", r, r < 0 ? errno : 0);
		printf(" %d %o %ld\n", fstat(n, &st), st.st_mode & S_IFMT, (long)lseek(n, 0, SEEK_CUR));
		close(n);
		for (int i = 3; i < 12; i++)
			close(i);
	}
	mq_unlink("/doors");
	printf("%ld\n", (long)size_of("made"));
	/* accept, and a descriptor by another's hand */
	int pair[2], fd = fill("by-hand"), pid = pidfd_open(getpid(), 0), twin = pidfd_getfd(pid, fd, 0);
	printf("%zd", write(twin, "more", 4));
	printf(" %ld\n", (long)size_of("by-hand"));
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		_exit(9);
	char c = 'c', control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec v = {&c, 1};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)}};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m.msg_hdr);
	*h = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
	int sent = fill("sent"), got = -1;
	memcpy(CMSG_DATA(h), &sent, sizeof(int));
	printf("%d", sendmmsg(pair[0], &m, 1, 0));
	m.msg_hdr.msg_controllen = sizeof(control);
	printf(" %d", recvmmsg(pair[1], &m, 1, 0, NULL));
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m.msg_hdr)), sizeof(int));
	printf(" %zd %zd", write(got, "by it", 5), write(sent, "by us", 5));
	printf(" %ld\n", (long)size_of("sent"));
}

/* --- ends: bytes pending in a process that becomes another program, or signals itself --- */

extern char **environ;

static void end_by(int kind)
{
	char *argv[] = {"true", NULL};

	switch (kind) {
	case 0: execve("/bin/true", argv, environ); break;
	case 1: execv("/bin/true", argv); break;
	case 2: execvp("true", argv); break;
	case 3: execvpe("true", argv, environ); break;
	case 4: execl("/bin/true", "true", NULL); break;
	case 5: execlp("true", "true", NULL); break;
	case 6: execle("/bin/true", "true", NULL, environ); break;
	case 7: fexecve(open("/bin/true", O_RDONLY), argv, environ); break;
	case 8: execveat(AT_FDCWD, "/bin/true", argv, environ, 0); break;
	case 9: kill(getpid(), SIGTERM); break;
	case 10: killpg(0, SIGTERM); break;
	case 11: tgkill(getpid(), gettid(), SIGTERM); break;
	case 12: pthread_kill(pthread_self(), SIGTERM); break;
	case 13: raise(SIGTERM); break;
	case 14: abort();
	case 15: quick_exit(5);
	case 16: _exit(5);
	case 17: exit(5);
	case 18: syscall(SYS_exit_group, 5); break;
	case 19: syscall(SYS_execve, "/bin/true", argv, environ); break;
	case 20: syscall(SYS_tgkill, getpid(), gettid(), SIGTERM); break;
	case 22: syscall(SYS_exit, 5); break;
	case 21: sigqueue(getpid(), SIGTERM, (union sigval){0}); break;
	default: break;
	}
	_exit(6);
}

static void leaves(void)
{
	char path[] = "end.00";

	for (int kind = 0; kind < 23; kind++) {
		int status, master;

		snprintf(path, sizeof(path), "end.%02d", kind);
		fflush(stdout);
		pid_t pid = kind % 2 ? fork() : forkpty(&master, NULL, NULL, NULL);
		if (!pid) {
			setpgid(0, 0);
			prctl(PR_SET_DUMPABLE, 0);
			fill(path);
			end_by(kind);
		}
		waitpid(pid, &status, 0);
		if (!(kind % 2))
			close(master);
		printf("%d: %x %ld\n", kind, status, (long)size_of(path));
	}
}

/* --- limits: on what is pending, by every door --- */

static void limits(void)
{
	char path[] = "limit.0";

	for (int kind = 0; kind < 5; kind++) {
		int status;

		snprintf(path, sizeof(path), "limit.%d", kind);
		fflush(stdout);
		if (!fork()) {
			struct rlimit64 limit;
			int r = -1;

			signal(SIGXFSZ, SIG_IGN);
			getrlimit64(RLIMIT_FSIZE, &limit);
			limit.rlim_cur = 100000;
			int fd = fill(path);
			if (kind == 0)
				r = setrlimit64(RLIMIT_FSIZE, &limit);
			else if (kind == 1)
				r = prlimit64(0, RLIMIT_FSIZE, &limit, NULL);
			else if (kind == 2)
				r = syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, &limit, NULL);
			else if (kind == 3)
				r = syscall(SYS_setrlimit, RLIMIT_FSIZE, &limit);
			else /* only asks */
				r = prlimit64(0, RLIMIT_FSIZE, NULL, &limit);
			ssize_t n = write(fd, piece, PIECE);
			_exit(r ? 99 : n < 0 ? errno : 0);
		}
		wait(&status);
		printf("%d: %x %ld\n", kind, status, (long)size_of(path));
	}
}

/* --- numbers: calls by number whose subject is a path: what is pending is there before --- */

static long by_number(int kind, const char *path)
{
	struct { unsigned long long flags, mode, resolve; } how = {O_RDWR, 0, 0};

	switch (kind) {
	case 0: return syscall(SYS_setxattr, path, "user.a", "b", 1, 0);
	case 1: return syscall(SYS_lsetxattr, path, "user.a", "b", 1, 0);
	case 2: return syscall(SYS_removexattr, path, "user.none");
	case 3: return syscall(SYS_lremovexattr, path, "user.none");
	case 4: return syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)) >= 0;
	case 5: return syscall(SYS_utimensat, AT_FDCWD, path, NULL, 0);
	case 6: return syscall(SYS_fchmodat, AT_FDCWD, path, 0600);
	case 7: return syscall(SYS_fchownat, AT_FDCWD, path, -1, -1, 0);
	case 8: return syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, "number.link", 0);
	case 9: return syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, path, 0);
#ifdef SYS_open
	case 10: return syscall(SYS_renameat, AT_FDCWD, path, AT_FDCWD, path);
	case 11: return syscall(SYS_lchown, path, -1, -1);
	case 12: return syscall(SYS_futimesat, AT_FDCWD, path, NULL);
	case 13: return syscall(SYS_chmod, path, 0600);
	case 14: return syscall(SYS_chown, path, -1, -1);
	case 15: return syscall(SYS_utimes, path, NULL);
	case 16: return syscall(SYS_link, path, "number.link2");
	case 17: return syscall(SYS_rename, path, path);
	case 18: return syscall(SYS_open, path, O_RDONLY) >= 0;
#endif
	default: return -2;
	}
}

static void numbers(void)
{
	for (int kind = 0; kind < 19; kind++) {
		char path[16];

		snprintf(path, sizeof(path), "number.%02d", kind);
		int fd = fill(path);
		errno = 0;
		long r = by_number(kind, path);
		printf("%d: %ld %d", kind, r, errno);
		printf(" %ld\n", (long)size_of(path));
		close(fd);
	}
	/* creat cuts what is pending, and it stays cut */
	int fd = fill("number.cut"), other = -1;
#ifdef SYS_creat
	other = syscall(SYS_creat, "number.cut", 0600);
#endif
	printf("%d %ld", other >= 0, (long)size_of("number.cut"));
	close(fd);
	printf(" %ld\n", (long)size_of("number.cut"));
#ifdef SYS_truncate
	/* what was read ahead of a file that is cut is not there */
	char b[512];
	close(fill("number.read"));
	fd = open("number.read", O_RDONLY);
	printf("%zd", read(fd, b, sizeof(b)));
	printf(" %ld", (long)syscall(SYS_truncate, "number.read", 1000));
	printf(" %zd", read(fd, b, sizeof(b)));
	printf(" %zd\n", read(fd, b, sizeof(b)));
	close(fd);
#endif
}

/* --- prints: by number, between writes --- */

static int out(int fd, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	int r = vdprintf(fd, format, ap);
	va_end(ap);
	return r;
}

static void prints(void)
{
	int fd = fill("printed");
	struct rlimit64 limit;

	printf("%d", dprintf(fd, "%s %d\n", "a line", 1));
	printf(" %zd", write(fd, piece, PIECE));
	printf(" %d", out(fd, "%s %d\n", "another", 2));
	printf(" %zd", write(fd, piece, PIECE));
	printf(" %ld\n", (long)lseek(fd, 0, SEEK_CUR));
	FILE *f = fopen("stream", "w");
	for (int i = 0; i < 30000; i++)
		fprintf(f, "line %d\n", i);
	printf("%d", fcloseall());
	fflush(stdout);
	/* standard output is closed, too: by number from here on */
	int report = open("report", O_WRONLY | O_CREAT, 0644);
	dprintf(report, "%ld %ld\n", (long)size_of("stream"), (long)size_of("printed"));
	signal(SIGXFSZ, SIG_IGN);
	int before = fill("before");
	prlimit64(0, RLIMIT_FSIZE, NULL, &limit);
	limit.rlim_cur = 100000;
	dprintf(report, "%d", prlimit64(0, RLIMIT_FSIZE, &limit, NULL));
	int w = open("limited", O_WRONLY | O_CREAT, 0644), n = 0;
	while (write(w, piece, PIECE) == PIECE)
		n++;
	dprintf(report, " %d %d", n, errno);
	close(w);
	dprintf(report, " %ld", (long)size_of("limited"));
	dprintf(report, " %d\n", close(before));
}

/* --- refusals: calls that fail on a file that is read ahead, and leave it as it was --- */

static void refused(void)
{
	char b[512];
	int fd = fill("refused");

	lseek(fd, 0, SEEK_SET);
	for (int turn = 0; turn < 6; turn++) {
		for (int i = 0; i < 20; i++)
			if (read(fd, b, sizeof(b)) != sizeof(b))
				_exit(9);
		errno = 0;
		long r = turn == 0   ? !!fdopendir(fd)
			 : turn == 1 ? syscall(SYS_dup3, 900, fd, 0)
			 : turn == 2 ? syscall(SYS_dup3, fd, fd, 0)
			 : turn == 3 ? syscall(SYS_close_range, fd, fd, 1 << 20)
			 : turn == 4 ? syscall(SYS_clone3, NULL, 0)
				     : dup2(900, fd);
		printf("%d: %ld %d", turn, r, errno);
		printf(" %ld", (long)sys(SYS_lseek, fd, 0, SEEK_CUR) % 512);
		printf(" %zd %ld\n", read(fd, b, sizeof(b)), (long)lseek(fd, 0, SEEK_CUR));
	}
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } kinds[] = {
		{"waits", waits}, {"makers", makers}, {"ends", leaves}, {"limits", limits}, {"numbers", numbers}, {"prints", prints}, {"refused", refused}};

	memset(piece, 'p', sizeof(piece));
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc == 2 && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(argv[1], kinds[i].name)) {
			kinds[i].run();
			return 0;
		}
	return 2;
}
