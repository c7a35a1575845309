/*
 * engines SITUATION SOURCE COPY [ARG]: copies a file of at least 12 MB by small calls,
 * the source as descriptor 0 and the copy as 1. Half-way it does what the situation
 * says, printing to stderr what it sees, and goes on. All of it must look the same
 * with the shim as without.
 *
 * NOTE in the environment: a file to which the number of the io_uring descriptor is
 * written, or -1, before the situation and after the copy.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HALF (6LL << 20)
#define ALL (1LL << 40)
#define SPARE 700 /* a number to act on where there is no ring */

extern char **environ;
static const char *source, *copy, *arg;

/* --- moving --- */

static ssize_t write_all(int fd, const char *buf, ssize_t n)
{
	for (ssize_t done = 0, m; done < n; done += m) {
		m = write(fd, buf + done, n - done);
		if (m < 0)
			err(1, "write");
	}
	return n;
}

static ssize_t by_read(int in, int out, size_t n)
{
	char buf[4096];
	ssize_t r = read(in, buf, n < sizeof(buf) ? n : sizeof(buf));

	return r > 0 ? write_all(out, buf, r) : r;
}

static ssize_t by_range(int in, int out, size_t n)
{
	return copy_file_range(in, NULL, out, NULL, n, 0);
}

static ssize_t by_sendfile(int in, int out, size_t n)
{
	return sendfile(out, in, NULL, n);
}

static ssize_t (*way)(int, int, size_t) = by_read;

/* Moves that many bytes, or what there is: how many. */
static long long move_between(int in, int out, long long want)
{
	long long done = 0;
	ssize_t r = 1;

	while (done < want && r) {
		r = way(in, out, want - done);
		if (r < 0)
			err(1, "after %lld bytes", done);
		done += r;
	}
	return done;
}

static long long move(long long want)
{
	return move_between(0, 1, want);
}

static void begin(void)
{
	close(0);
	close(1);
	if (open(source, O_RDONLY) != 0)
		err(1, "%s", source);
	if (open(copy, O_RDWR | O_CREAT | O_TRUNC, 0644) != 1)
		err(1, "%s", copy);
}

/* --- looking --- */

static void report(const char *what, long n)
{
	if (n < 0)
		fprintf(stderr, "%s: %ld %s\n", what, n, strerror(errno));
	else
		fprintf(stderr, "%s: %ld\n", what, n);
}

/* The number of this process's io_uring descriptor, or -1. */
static int ring(void)
{
	char name[64], link[64];
	struct dirent *e;
	int found = -1;
	DIR *d = opendir("/proc/self/fd");

	while (d && (e = readdir(d))) {
		ssize_t n;

		snprintf(name, sizeof(name), "/proc/self/fd/%.20s", e->d_name);
		n = readlink(name, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = 0;
		if (!strcmp(link, "anon_inode:[io_uring]"))
			found = atoi(e->d_name);
	}
	closedir(d);
	return found;
}

static void note(void)
{
	const char *path = getenv("NOTE");
	int r = ring(), fd;

	if (!path)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
	dprintf(fd, "%d\n", r);
	close(fd);
}

/* A number that is the ring's if there is one, and free if there is not. */
static int number(void)
{
	int r = ring();

	return r < 0 ? SPARE : r;
}

/* Every open number, and the count of threads. */
static void list(const char *who)
{
	struct dirent *e;
	char line[4096] = "", *p = line;
	int threads = 0;
	DIR *d = opendir("/proc/self/fd");

	for (int i = 0; i < 65536; i++)
		if (i != dirfd(d) && fcntl(i, F_GETFD) >= 0 && p < line + sizeof(line) - 16)
			p += sprintf(p, " %d", i);
	p += sprintf(p, " /");
	while ((e = readdir(d)))
		if (*e->d_name != '.' && atoi(e->d_name) != dirfd(d) &&
			p < line + sizeof(line) - 16)
			p += sprintf(p, " %s", e->d_name);
	closedir(d);
	d = opendir("/proc/self/task");
	while (d && (e = readdir(d)))
		threads += *e->d_name != '.';
	closedir(d);
	fprintf(stderr, "%s:%s, %d thread(s)\n", who, line, threads);
}

/* --- the descriptor in the way --- */

static void counted(const char *what, int from, int to)
{
	int ok = 0, bad = 0, odd = 0;

	for (int i = from; i < to; i++) {
		errno = 0;
		if (close(i) == 0)
			ok++;
		else if (errno == EBADF)
			bad++;
		else
			odd++;
	}
	fprintf(stderr, "%s: closed %d, EBADF %d, other %d\n", what, ok, bad, odd);
}

static void close_loop(void)
{
	counted("from 3", 3, 65536);
}

static void close_down(void)
{
	for (int i = 65535; i > 2; i--)
		close(i);
}

static void close_listed(void)
{
	struct dirent *e;
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while ((e = readdir(d)))
		if (atoi(e->d_name) > 2 && atoi(e->d_name) != dirfd(d))
			n += close(atoi(e->d_name)) == 0;
	closedir(d);
	report("closed", n);
}

static void range(void)
{
	int fd = open("/dev/null", O_RDONLY);

	report("close_range", close_range(3, ~0U, 0));
	report("closed", fcntl(fd, F_GETFD));
	report("backwards", close_range(9, 3, 0));
	report("flags", close_range(3, ~0U, 128));
	report("one number", close_range(number(), number(), 0));
}

static void range_unshare(void)
{
	report("close_range", close_range(3, ~0U, CLOSE_RANGE_UNSHARE));
}

static void range_cloexec(void)
{
	int fd = open("/dev/null", O_RDONLY);

	report("close_range", close_range(3, ~0U, CLOSE_RANGE_CLOEXEC));
	report("flag", fcntl(fd, F_GETFD));
	close(fd);
}

static void from(void)
{
	int fd = open("/dev/null", O_RDONLY);

	closefrom(3);
	report("closed", fcntl(fd, F_GETFD));
}

static void close_number(void)
{
	int n = number();

	report("close", close(n));
	report("close", close(n));
}

/* Every call that takes a number: the shim's descriptor is none of the program's. */
static void touch(void)
{
	int n = number();

	report("F_GETFD", fcntl(n, F_GETFD));
	report("F_GETFL", fcntl(n, F_GETFL));
	report("dup", dup(n));
	report("dup2", dup2(n, 5));
	report("F_SETFD", fcntl(n, F_SETFD, 0));
}

/* Another file over the number: it is the program's own until the program closes it. */
static void over(int how)
{
	char name[4096], buf[100] = "";
	int n = number(), fd, r = -1;

	snprintf(name, sizeof(name), "%s.other", copy);
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (how == 2)
		r = dup2(fd, n);
	else
		r = dup3(fd, n, O_CLOEXEC);
	report("over", r == n ? 0 : -1);
	report("flag", fcntl(n, F_GETFD));
	report("write", write(n, "by the number, ", 15));
	report("write", write(fd, "by its own", 10));
	report("more", move(1 << 20));
	report("read", pread(n, buf, sizeof(buf) - 1, 0));
	fprintf(stderr, "%s\n", buf);
	report("close", close(n));
	report("close", close(n));
	report("close", close(fd));
	unlink(name);
}

static void dup2_over(void)
{
	over(2);
}

static void dup3_over(void)
{
	over(3);
}

/* The same again and again, each time onto where it is now. */
static void dup2_chase(void)
{
	for (int i = 0; i < 20; i++) {
		int fd = open("/dev/null", O_RDWR), n = number();

		if (dup2(fd, n) != n || move(100000) != 100000)
			errx(1, "round %d", i);
		report("write", write(n, "x", 1));
		report("close", close(n));
		report("close", close(n));
		close(fd);
	}
}

/* Onto its number, and no room above: few descriptors are allowed. */
static void few(void)
{
	struct rlimit lim;
	int fd, n = number();

	getrlimit(RLIMIT_NOFILE, &lim);
	lim.rlim_cur = n + 1;
	report("setrlimit", setrlimit(RLIMIT_NOFILE, &lim));
	fd = open("/dev/null", O_RDWR);
	report("dup2", dup2(fd, n) == n ? 0 : -1);
	report("more", move(2 << 20));
	report("close", close(n));
	report("close", close(n));
	close(fd);
}

/* --- children --- */

static void waited(const char *what, pid_t pid)
{
	int status = -1;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		warn("%s", what);
	fprintf(stderr, "%s: status %x\n", what, status);
	errno = 0;
	report("no other child", waitpid(-1, &status, WNOHANG | __WALL));
}

static void child_of(const char *what, pid_t (*make)(void))
{
	pid_t pid = make();

	if (pid == 0) {
		list(what);
		_exit(3);
	}
	waited(what, pid);
	report("more", move(300000));
}

static pid_t raw_clone(void)
{
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

#ifdef SYS_fork
static pid_t raw_fork(void)
{
	return syscall(SYS_fork);
}
#endif

static int listing(void *who)
{
	list(who);
	_exit(4);
}

static pid_t by_clone(void)
{
	static char stack[1 << 17] __attribute__((aligned(16)));

	return clone(listing, stack + sizeof(stack), SIGCHLD, "clone");
}

static void forks(void)
{
	child_of("fork", fork);
	child_of("_Fork", _Fork);
	child_of("clone", by_clone);
	child_of("raw clone", raw_clone);
#ifdef SYS_fork
	child_of("raw fork", raw_fork);
#endif
}

/* Each of them becomes this program once more, in the situation "list". */
static void execs(void)
{
	char *argv[] = {"engines", "list", (char *)source, (char *)copy, NULL}, command[9000];
	pid_t pid = fork();

	if (pid == 0) {
		execv("/proc/self/exe", argv);
		_exit(9);
	}
	waited("fork and exec", pid);
	report("more", move(300000));
	pid = vfork();
	if (pid == 0) {
		execv("/proc/self/exe", argv);
		_exit(9);
	}
	waited("vfork and exec", pid);
	report("more", move(300000));
	errno = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ);
	waited("posix_spawn", errno ? -1 : pid);
	report("more", move(300000));
	snprintf(command, sizeof(command), "'%s' list %s %s", arg, source, copy);
	report("system", system(command));
	report("more", move(300000));
	report("popen", pclose(popen(command, "w")));
}

/* The child moves bulk data of its own while the parent goes on. */
static void worker(void)
{
	char name[4096];
	pid_t pid = fork();

	if (pid == 0) {
		int in, out;

		list("child");
		in = open(source, O_RDONLY);
		snprintf(name, sizeof(name), "%s.child", copy);
		out = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
		report("child", move_between(in, out, ALL));
		_exit(0);
	}
	move(4 << 20);
	waited("child", pid);
}

/* --- threads --- */

static void *thread(void *number)
{
	char name[4096];
	int in = open(source, O_RDONLY), out;

	snprintf(name, sizeof(name), "%s.%d", copy, (int)(long)number);
	out = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (move_between(in, out, ALL) < HALF || close(in) || close(out))
		err(1, "thread");
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];

	for (long i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, thread, (void *)i))
			errx(1, "pthread_create");
	report("meanwhile", move(4 << 20));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

/* --- namespaces --- */

static const struct {
	const char *name;
	int flag;
} flags[] = {
	{"user", CLONE_NEWUSER},
	{"pid", CLONE_NEWPID},
	{"net", CLONE_NEWNET},
	{"mount", CLONE_NEWNS},
	{"files", CLONE_FILES},
	{"fs", CLONE_FS},
	{"thread", CLONE_THREAD},
};

/* arg: names, with commas between. */
static void namespaces(void)
{
	int set = 0;

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (strstr(arg, flags[i].name))
			set |= flags[i].flag;
	report("unshare", unshare(set));
	report("more", move(4 << 20));
	report("another", unshare(CLONE_NEWUTS));
}

/* A mount namespace can be joined only by who shares its directories with nobody. */
static void join(void)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY);

	report("setns", setns(fd, CLONE_NEWNS));
	close(fd);
}

/* --- filters that the program installs itself --- */

static void forbid(unsigned answer, int raw)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_submit, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_getevents, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, answer),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

	report("no new privileges", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	report("filter", raw ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
			     : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void forbid_eperm(void)
{
	forbid(SECCOMP_RET_ERRNO | EPERM, 0);
}

static void forbid_kill(void)
{
	forbid(SECCOMP_RET_KILL_PROCESS, 0);
}

static void forbid_kill_raw(void)
{
	forbid(SECCOMP_RET_KILL_PROCESS, 1);
}

/* --- a source that changes --- */

static void at_fifo(const char *which, int flag, char c)
{
	char name[4096];
	int fd;

	snprintf(name, sizeof(name), "%s.%s", copy, which);
	fd = open(name, flag);
	if (fd < 0 || (flag == O_RDONLY ? read(fd, &c, 1) : write(fd, &c, 1)) != 1)
		err(1, "%s", name);
	close(fd);
}

/* arg: read, range or sendfile; a comma; how many bytes to move before the change. */
static void changing(void)
{
	way = !strncmp(arg, "read", 4)	  ? by_read
	      : !strncmp(arg, "range", 5) ? by_range
					  : by_sendfile;
	begin();
	report("before", move(atoll(strchr(arg, ',') + 1)));
	note();
	at_fifo("at", O_WRONLY, 'x');
	at_fifo("go", O_RDONLY, 0);
	report("after", move(ALL));
	report("end", move(ALL));
}

/* --- */

static void nothing(void)
{
}

static const struct {
	const char *name;
	void (*run)(void);
} situations[] = {
	{"nothing", nothing},
	{"close-loop", close_loop},
	{"close-down", close_down},
	{"close-listed", close_listed},
	{"close_range", range},
	{"close_range-unshare", range_unshare},
	{"close_range-cloexec", range_cloexec},
	{"closefrom", from},
	{"close-number", close_number},
	{"touch", touch},
	{"dup2", dup2_over},
	{"dup3", dup3_over},
	{"dup2-chase", dup2_chase},
	{"few", few},
	{"forks", forks},
	{"execs", execs},
	{"worker", worker},
	{"threads", threads},
	{"namespaces", namespaces},
	{"join", join},
	{"forbid-EPERM", forbid_eperm},
	{"forbid-KILL", forbid_kill},
	{"forbid-KILL-raw", forbid_kill_raw},
};

int main(int argc, char **argv)
{
	if (argc < 4)
		errx(2, "usage: engines SITUATION SOURCE COPY [ARG]");
	source = argv[2];
	copy = argv[3];
	arg = argc > 4 ? argv[4] : argv[0];
	if (!strcmp(argv[1], "list")) {
		list("exec");
		return 5;
	}
	if (!strcmp(argv[1], "changing")) {
		changing();
		return 0;
	}
	for (size_t i = 0; i < sizeof(situations) / sizeof(*situations); i++) {
		if (strcmp(argv[1], situations[i].name))
			continue;
		begin();
		report("half", move(HALF));
		note();
		situations[i].run();
		report("rest", move(ALL));
		note();
		report("close", close(1));
		return 0;
	}
	errx(2, "no situation %s", argv[1]);
}
