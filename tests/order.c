/*
 * order SITUATION DIR SIZE: writes SIZE bytes to DIR/f by 1000, then looks at the file
 * in the way that SITUATION names, and prints what it saw. What it prints bare is
 * right; under the shim it must print the same. "raw" looks are system calls that no
 * library can see.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static char path[4096], other[4096], command[16384];
static long size;
static int fd;

static long raw(long nr, long a, long b, long c, long d, long e)
{
	long ret;
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;

	__asm__ volatile("syscall" : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;

	__asm__ volatile("svc 0" : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
	ret = x0;
#else
#error raw system calls are not written for this machine
#endif
	return ret;
}

static long long raw_size(const char *name)
{
	struct statx st;

	if (raw(SYS_statx, AT_FDCWD, (long)name, 0, STATX_BASIC_STATS, (long)&st))
		return -1;
	return (long long)st.stx_size;
}

static long long raw_offset(int of)
{
	return raw(SYS_lseek, of, 0, SEEK_CUR, 0, 0);
}

static unsigned char byte_at(long at)
{
	return (unsigned char)((uint64_t)at * 2654435761u >> 13);
}

static void write_some(int to, long from, long n)
{
	char buf[1000];
	long i, m;

	for (; n > 0; n -= m, from += m) {
		m = n < 1000 ? n : 1000;
		for (i = 0; i < m; i++)
			buf[i] = (char)byte_at(from + i);
		if (write(to, buf, (size_t)m) != m)
			err(1, "write");
	}
}

/* How many bytes of it are there, and are they right? */
static void check_bytes(const char *what, const unsigned char *p, long n)
{
	long i;

	for (i = 0; i < n && p[i] == byte_at(i); i++)
		;
	printf("%s: %ld bytes, %ld right\n", what, n, i);
}

static void read_all(const char *what, int from)
{
	unsigned char *p = malloc((size_t)size + 5000);
	long n = 0;
	ssize_t m;

	while (n < size + 5000 && (m = read(from, p + n, (size_t)(size + 5000 - n))) > 0)
		n += m;
	check_bytes(what, p, n);
	free(p);
}

static void read_path(const char *what, const char *name)
{
	int in = open(name, O_RDONLY);

	if (in < 0)
		err(1, "%s", name);
	read_all(what, in);
	close(in);
}

static void reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		err(1, "waitpid");
	if (status)
		printf("status %x\n", status);
}

static void run_line(FILE *p)
{
	char line[4096];

	if (!p)
		err(1, "popen");
	while (fgets(line, sizeof(line), p))
		fputs(line, stdout);
	printf("pclose %d\n", pclose(p));
}

static void stat_by_path(void)
{
	struct stat st;
	struct statx sx;

	printf("stat %d ", stat(path, &st));
	printf("%lld\n", (long long)st.st_size);
	write_some(fd, size, 700);
	printf("lstat %d ", lstat(path, &st));
	printf("%lld\n", (long long)st.st_size);
	write_some(fd, size + 700, 700);
	printf("fstatat %d ", fstatat(AT_FDCWD, path, &st, 0));
	printf("%lld\n", (long long)st.st_size);
	write_some(fd, size + 1400, 700);
	printf("statx %d", statx(AT_FDCWD, path, 0, STATX_SIZE, &sx));
	printf(" %llu\n", (unsigned long long)sx.stx_size);
	write_some(fd, size + 2100, 700);
	printf("access %d\n", access(path, F_OK));
	printf("lseek %lld\n", (long long)lseek(fd, 0, SEEK_END));
}

static void stat_by_fd(void)
{
	struct stat st;
	struct statx sx;

	printf("fstat %d ", fstat(fd, &st));
	printf("%lld\n", (long long)st.st_size);
	write_some(fd, size, 700);
	printf("fstatat %d ", fstatat(fd, "", &st, AT_EMPTY_PATH));
	printf("%lld\n", (long long)st.st_size);
	write_some(fd, size + 700, 700);
	printf("statx %d", statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &sx));
	printf(" %llu\n", (unsigned long long)sx.stx_size);
}

static void stat_by_link(void)
{
	struct stat st;

	unlink(other);
	if (symlink(path, other))
		err(1, "symlink");
	write_some(fd, size, 100);
	printf("stat %d ", stat(other, &st));
	printf("%lld\n", (long long)st.st_size);
	unlink(other);
	printf("link %d\n", link(path, other));
	write_some(fd, size + 100, 100);
	printf("stat %d ", stat(other, &st));
	printf("%lld\n", (long long)st.st_size);
}

static void second_open(void)
{
	int in = open(path, O_RDONLY);

	read_all("second open", in);
	write_some(fd, size, 1500);
	lseek(in, 0, SEEK_SET);
	read_all("and again", in);
	close(in);
}

/* By number: calls for which libc has no function, or which go past it. */
static void raw_open(void)
{
	uint64_t how[3] = { O_RDONLY };
	int in = syscall(SYS_openat2, AT_FDCWD, path, how, sizeof(how));

	read_all("openat2", in);
	write_some(fd, size, 1500);
	lseek(in, 0, SEEK_SET);
	read_all("and again", in);
	close(in);
	how[0] = O_RDWR | O_TRUNC;
	in = syscall(SYS_openat2, AT_FDCWD, path, how, sizeof(how));
	printf("cut: %lld\n", raw_size(path));
	write_some(fd, size + 1500, 300);
#ifdef SYS_creat
	close(syscall(SYS_creat, path, 0644));
	printf("cut again: %lld\n", raw_size(path));
	write_some(in, 0, 700);
#endif
	printf("and now: %lld\n", (long long)lseek(in, 0, SEEK_END));
}

static void open_before(void)
{
	int in = open(path, O_RDWR);

	read_all("opened before", in);
	write_some(fd, size, 1500);
	read_all("no more than", in);
	/* and the other way round */
	if (pwrite(in, "XYZ", 3, 10) != 3)
		err(1, "pwrite");
	lseek(fd, 0, SEEK_SET);
	read_all("through the first", fd);
}

static void pread_same(void)
{
	unsigned char *p = malloc((size_t)size + 1);
	ssize_t n = pread(fd, p, (size_t)size, 0);

	check_bytes("pread", p, n);
	printf("offset %lld\n", (long long)lseek(fd, 0, SEEK_CUR));
	free(p);
}

static void forked(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		printf("child: raw size %lld, raw offset %lld\n", raw_size(path), raw_offset(fd));
		read_path("child", path);
		write_some(fd, size, 3000);
		fflush(stdout);
		_exit(0);
	}
	reap(pid);
	printf("parent: size %lld, offset %lld\n", (long long)lseek(fd, 0, SEEK_END), raw_offset(fd));
	write_some(fd, size + 3000, 2000);
	read_path("both wrote", path);
}

static void vforked(void)
{
	pid_t pid;

	snprintf(command, sizeof(command), "wc -c <%s; echo x >&%d", path, fd);
	fflush(stdout);
	pid = vfork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	reap(pid);
	printf("offset %lld\n", (long long)lseek(fd, 0, SEEK_CUR));
	read_path("then", path);
}

static void by_system(void)
{
	fflush(stdout);
	snprintf(command, sizeof(command), "wc -c <%s; cksum <%s; echo tail >&%d", path, path, fd);
	printf("system %d\n", system(command));
	write_some(fd, 0, 10);
	printf("offset %lld\n", (long long)lseek(fd, 0, SEEK_CUR));
	fflush(stdout);
	printf("system %d\n", system(command));
}

static void by_popen(void)
{
	FILE *p;

	snprintf(command, sizeof(command), "wc -c <%s; cksum <%s", path, path);
	run_line(popen(command, "r"));
	write_some(fd, size, 777);
	run_line(popen(command, "r"));
	write_some(fd, size + 777, 777);
	fflush(stdout);
	p = popen("cat", "w");
	fprintf(p, "to cat, size of the file then %lld\n", raw_size(path));
	printf("pclose %d\n", pclose(p));
}

static void spawned(void)
{
	char *argv[] = { (char *)"sh", (char *)"-c", command, NULL };
	pid_t pid;

	snprintf(command, sizeof(command), "wc -c <%s; cksum <%s; echo tail >&%d", path, path, fd);
	fflush(stdout);
	if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ))
		errx(1, "posix_spawn");
	reap(pid);
	write_some(fd, size, 100);
	if (posix_spawnp(&pid, "sh", NULL, NULL, argv, environ))
		errx(1, "posix_spawnp");
	reap(pid);
}

static void execed(void)
{
	snprintf(command, sizeof(command), "wc -c <%s; cksum <%s; echo tail >&%d; wc -c <%s", path, path, fd, path);
	fflush(stdout);
	execlp("sh", "sh", "-c", command, NULL);
	err(1, "exec");
}

static void exec_fails(void)
{
	printf("execv %d\n", execl("/nonexistent/program", "x", NULL));
	write_some(fd, size, 5000);
	close(fd);
	read_path("went on", path);
}

static void duped(void)
{
	struct stat st;
	int copy = dup(fd), third;

	printf("fstat of dup %d ", fstat(copy, &st));
	printf("%lld\n", (long long)st.st_size);
	write_some(copy, size, 500);
	write_some(fd, size + 500, 500);
	printf("offsets %lld %lld\n", (long long)lseek(fd, 0, SEEK_CUR), (long long)lseek(copy, 0, SEEK_CUR));
	close(fd);
	third = fcntl(copy, F_DUPFD, 50);
	write_some(third, size + 1000, 500);
	close(copy);
	write_some(third, size + 1500, 500);
	printf("third %d\n", third);
	close(third);
	read_path("all", path);
}

static void dup2_over(void)
{
	int next = open(other, O_RDWR | O_CREAT | O_TRUNC, 0644);

	write_some(next, 0, 100);
	printf("dup2 %d\n", dup2(next, fd) == fd);
	printf("raw size %lld\n", raw_size(path));
	write_some(fd, 100, 100);
	write_some(next, 200, 100);
	printf("offsets %lld %lld\n", (long long)lseek(fd, 0, SEEK_CUR), (long long)lseek(next, 0, SEEK_CUR));
	close(next);
	close(fd);
	read_path("first", path);
	read_path("second", other);
}

static void mapped(void)
{
	unsigned char *p = mmap(NULL, (size_t)size + 10000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	check_bytes("mapping", p, size);
	write_some(fd, size, 5000);
	check_bytes("mapping grown", p, size + 5000);
	p[5] ^= 0xff;
	p[5] ^= 0xff;
	p[7] = (unsigned char)(byte_at(7) + 1);
	lseek(fd, 0, SEEK_SET);
	read_all("after a store at 7", fd);
}

static void renamed(void)
{
	printf("rename %d\n", rename(path, other));
	printf("raw size %lld\n", raw_size(other));
	write_some(fd, size, 500);
	printf("renameat %d\n", renameat(AT_FDCWD, other, AT_FDCWD, path));
	printf("raw size %lld\n", raw_size(path));
	write_some(fd, size + 500, 500);
	unlink(other);
	printf("link %d\n", link(path, other));
	printf("raw size %lld\n", raw_size(other));
	write_some(fd, size + 1000, 500);
	printf("unlink %d\n", unlink(path));
	printf("raw size %lld\n", raw_size(other));
}

static void truncated(void)
{
	printf("truncate %d\n", truncate(path, size / 2));
	printf("raw size %lld\n", raw_size(path));
	write_some(fd, size, 100);
	printf("end %lld\n", (long long)lseek(fd, 0, SEEK_END));
	printf("truncate %d\n", truncate(path, 0));
	lseek(fd, 0, SEEK_SET);
	write_some(fd, 0, 3333);
	printf("ftruncate %d\n", ftruncate(fd, 10000));
	printf("raw size %lld\n", raw_size(path));
	write_some(fd, 3333, 333);
	printf("ftruncate %d\n", ftruncate(fd, 3500));
	printf("raw size %lld\n", raw_size(path));
	printf("offset %lld\n", (long long)lseek(fd, 0, SEEK_CUR));
	lseek(fd, 0, SEEK_SET);
	read_all("left", fd);
}

static void seeks(void)
{
	printf("end %lld\n", (long long)lseek(fd, 0, SEEK_END));
	printf("raw %lld %lld\n", raw_size(path), raw_offset(fd));
	write_some(fd, size, 100);
	printf("cur %lld\n", (long long)lseek(fd, 0, SEEK_CUR));
	printf("back %lld\n", (long long)lseek(fd, -50, SEEK_CUR));
	printf("data %lld\n", (long long)lseek(fd, 0, SEEK_DATA));
	printf("hole %lld\n", (long long)lseek(fd, 0, SEEK_HOLE));
	printf("beyond %lld\n", (long long)lseek(fd, 10000000, SEEK_SET));
	printf("data beyond %lld", (long long)lseek(fd, 10000000, SEEK_DATA));
	printf(" %s\n", strerror(errno));
	errno = 0;
	printf("before the start %lld", (long long)lseek(fd, -1, SEEK_SET));
	printf(" %s\n", strerror(errno));
	write_some(fd, 0, 10);
	printf("end %lld\n", (long long)lseek(fd, 0, SEEK_END));
	printf("raw %lld %lld\n", raw_size(path), raw_offset(fd));
}

static void syncs(void)
{
	printf("fsync %d\n", fsync(fd));
	printf("raw %lld\n", raw_size(path));
	write_some(fd, size, 100);
	printf("fdatasync %d\n", fdatasync(fd));
	printf("raw %lld\n", raw_size(path));
	write_some(fd, size + 100, 100);
	printf("syncfs %d\n", syncfs(fd));
	printf("raw %lld\n", raw_size(path));
	write_some(fd, size + 200, 100);
	printf("sync_file_range %d\n", sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
	printf("raw %lld\n", raw_size(path));
	write_some(fd, size + 300, 100);
	sync();
	printf("raw %lld\n", raw_size(path));
}

static void allocates(void)
{
	printf("fallocate %d\n", fallocate(fd, 0, 0, size + 5000));
	printf("raw %lld %lld\n", raw_size(path), raw_offset(fd));
	write_some(fd, size, 100);
	printf("punch %d\n", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
	printf("posix_fallocate %d\n", posix_fallocate(fd, size + 5000, 5000));
	printf("raw %lld %lld\n", raw_size(path), raw_offset(fd));
	lseek(fd, 4096, SEEK_SET);
	printf("hole then %lld\n", (long long)lseek(fd, 0, SEEK_DATA) > 0);
}

static void moves(void)
{
	int out = open(other, O_RDWR | O_CREAT | O_TRUNC, 0644), pipes[2];
	off_t at = 0, to = 0;
	ssize_t n;
	long sum = 0;

	while ((n = copy_file_range(fd, &at, out, &to, (size_t)size, 0)) > 0)
		sum += n;
	printf("copy_file_range %ld, offsets %lld %lld, raw %lld\n", sum, (long long)at, (long long)to, raw_size(other));
	printf("file offsets %lld %lld\n", (long long)lseek(fd, 0, SEEK_CUR), (long long)lseek(out, 0, SEEK_CUR));
	for (at = 0, sum = 0; (n = sendfile(out, fd, &at, (size_t)size)) > 0;)
		sum += n;
	printf("sendfile %ld, offset %lld, out %lld\n", sum, (long long)at, (long long)lseek(out, 0, SEEK_CUR));
	read_path("copy", other);
	write_some(fd, size, 1000);
	if (pipe(pipes))
		err(1, "pipe");
	at = size;
	printf("splice %zd\n", splice(fd, &at, pipes[1], NULL, 1000, 0));
	printf("splice %zd\n", splice(pipes[0], NULL, out, NULL, 1000, 0));
	printf("out %lld\n", (long long)lseek(out, 0, SEEK_END));
}

static void passed(void)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int ends[2], got;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		err(1, "socketpair");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		close(fd);
		if (recvmsg(ends[1], &msg, 0) != 1)
			err(1, "recvmsg");
		memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(got));
		printf("receiver: raw size %lld, raw offset %lld\n", raw_size(path), raw_offset(got));
		write_some(got, size + 1000, 500);
		fflush(stdout);
		_exit(0);
	}
	/* written after the fork, so that only the passing can bring it out */
	write_some(fd, size, 1000);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(ends[0], &msg, 0) != 1)
		err(1, "sendmsg");
	reap(pid);
	printf("sender: offset %lld\n", (long long)lseek(fd, 0, SEEK_CUR));
	write_some(fd, size + 1500, 500);
	read_path("then", path);
}

/* A file opened after the fork, passed to a child that never saw it. */
static void passed_fresh(void)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int ends[2], got, fresh;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		err(1, "socketpair");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (recvmsg(ends[1], &msg, 0) != 1)
			err(1, "recvmsg");
		memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(got));
		printf("receiver: raw size %lld, raw offset %lld\n", raw_size(other), raw_offset(got));
		write_some(got, size, 500);
		fflush(stdout);
		_exit(0);
	}
	fresh = open(other, O_RDWR | O_CREAT | O_TRUNC, 0644);
	write_some(fresh, 0, size);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fresh, sizeof(fresh));
	if (sendmsg(ends[0], &msg, 0) != 1)
		err(1, "sendmsg");
	reap(pid);
	write_some(fresh, size + 500, 500);
	read_path("then", other);
}

static void read_then_fork(void)
{
	char buf[100];
	pid_t pid;
	int in = open(path, O_RDONLY);

	if (read(in, buf, 100) != 100)
		errx(1, "read");
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		printf("child: raw offset %lld\n", raw_offset(in));
		if (read(in, buf, 50) != 50)
			errx(1, "read");
		printf("child: first byte %d\n", buf[0] == (char)byte_at(100));
		fflush(stdout);
		_exit(0);
	}
	reap(pid);
	printf("parent: offset %lld\n", (long long)lseek(in, 0, SEEK_CUR));
	if (read(in, buf, 50) != 50)
		errx(1, "read");
	printf("parent: first byte %d\n", buf[0] == (char)byte_at(150));
	snprintf(command, sizeof(command), "head -c 300 <&%d | cksum", in);
	fflush(stdout);
	printf("system %d\n", system(command));
	printf("parent: %d\n", read(in, buf, 1) == 1);
	fflush(stdout);
	dup2(in, 0);
	lseek(0, 1234, SEEK_SET);
	if (read(0, buf, 10) != 10)
		errx(1, "read");
	execlp("cksum", "cksum", NULL);
}

static void unlocks(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	printf("flock %d\n", flock(fd, LOCK_EX));
	write_some(fd, size, 100);
	printf("unlock %d\n", flock(fd, LOCK_UN));
	printf("raw size %lld\n", raw_size(path));
	printf("setlk %d\n", fcntl(fd, F_SETLK, &lock));
	write_some(fd, size + 100, 100);
	lock.l_type = F_UNLCK;
	printf("unlock %d\n", fcntl(fd, F_SETLK, &lock));
	printf("raw size %lld\n", raw_size(path));
	lseek(fd, 0, SEEK_SET);
	printf("lockf %d\n", lockf(fd, F_LOCK, 0));
	write_some(fd, 0, 100);
	lseek(fd, 0, SEEK_SET);
	printf("ulock %d\n", lockf(fd, F_ULOCK, 0));
	read_path("then", path);
}

static void sleeps(void)
{
	struct timespec nap = { 0, 150000000 };
	struct timeval tv = { 0, 150000 };
	pid_t pid;

	fflush(stdout);
	write_some(fd, size, 10);
	usleep(150000);
	printf("after usleep: raw size %lld\n", raw_size(path));
	write_some(fd, size + 10, 10);
	nanosleep(&nap, NULL);
	printf("after nanosleep: raw size %lld\n", raw_size(path));
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		usleep(400000);
		_exit(0);
	}
	write_some(fd, size + 20, 10);
	poll(NULL, 0, 150);
	printf("after poll: raw size %lld\n", raw_size(path));
	write_some(fd, size + 30, 10);
	select(0, NULL, NULL, NULL, &tv);
	printf("after select: raw size %lld\n", raw_size(path));
	write_some(fd, size + 40, 10);
	reap(pid);
	printf("after wait: raw size %lld\n", raw_size(path));
}

static void by_stdio(void)
{
	FILE *f;

	f = fdopen(fd, "r+");
	printf("raw %lld\n", raw_offset(fd));
	printf("ftell %ld\n", ftell(f));
	fputs("text", f);
	fclose(f);
	printf("raw %lld\n", raw_size(path));
	/* the number again, for another file */
	fd = open(other, O_RDWR | O_CREAT | O_TRUNC, 0644);
	write_some(fd, 0, 1000);
	close(fd);
	read_path("first", path);
	read_path("second", other);
}

/* Ways to end; the judge looks at the file afterwards. */
static void ends_exit(void) { exit(3); }
static void ends_return_exit(void) { _exit(4); }
static void ends_Exit(void) { _Exit(5); }
static void ends_quick(void) { quick_exit(6); }
static void ends_abort(void) { abort(); }
static void ends_raise(void) { raise(SIGTERM); }
static void ends_kill(void) { kill(getpid(), SIGKILL); }
static void ends_atexit_write(void) { write_some(fd, size, 1234); }
static void ends_atexit(void)
{
	atexit(ends_atexit_write);
	exit(0);
}
static void ends_sigint(void)
{
	signal(SIGINT, SIG_DFL);
	raise(SIGINT);
}

static const struct {
	const char *name;
	void (*look)(void);
} situations[] = {
	{ "stat", stat_by_path }, { "fstat", stat_by_fd }, { "stat-link", stat_by_link },
	{ "second-open", second_open }, { "raw-open", raw_open }, { "open-before", open_before },
	{ "pread", pread_same },
	{ "fork", forked }, { "vfork", vforked }, { "system", by_system }, { "popen", by_popen },
	{ "spawn", spawned }, { "exec", execed }, { "exec-fails", exec_fails }, { "dup", duped },
	{ "dup2", dup2_over }, { "mmap", mapped }, { "rename", renamed }, { "truncate", truncated },
	{ "seek", seeks }, { "sync", syncs }, { "allocate", allocates }, { "move", moves },
	{ "pass", passed }, { "pass-fresh", passed_fresh }, { "read-fork", read_then_fork },
	{ "unlock", unlocks }, { "sleep", sleeps }, { "stdio", by_stdio },
	{ "end-exit", ends_exit }, { "end-_exit", ends_return_exit }, { "end-_Exit", ends_Exit },
	{ "end-quick_exit", ends_quick }, { "end-abort", ends_abort }, { "end-raise", ends_raise },
	{ "end-kill-self", ends_kill }, { "end-atexit", ends_atexit }, { "end-sigint", ends_sigint },
};

int main(int argc, char **argv)
{
	size_t i;

	if (argc != 4)
		errx(2, "usage: order SITUATION DIR SIZE");
	snprintf(path, sizeof(path), "%s/f", argv[2]);
	snprintf(other, sizeof(other), "%s/g", argv[2]);
	size = atol(argv[3]);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		err(1, "%s", path);
	write_some(fd, 0, size);
	for (i = 0; i < sizeof(situations) / sizeof(*situations); i++)
		if (strcmp(argv[1], situations[i].name) == 0) {
			situations[i].look();
			fflush(stdout);
			return 0;
		}
	errx(2, "no situation %s", argv[1]);
}
