/*
 * descriptors SITUATION DIR: what programs know about descriptors, record locks and
 * leases, with a 3 MB file DIR/f under way. Prints what it sees.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BULK 3000000

static char path[4096], other[4096];
static char buf[10000];

static int bulk(const char *name, int flags)
{
	int i, to = open(name, flags | O_CREAT, 0644);

	if (to < 0)
		err(1, "%s", name);
	for (i = 0; i < BULK; i += (int)sizeof(buf))
		if (write(to, memset(buf, 'a' + i / 10000 % 26, sizeof(buf)), sizeof(buf)) != sizeof(buf))
			err(1, "write");
	return to;
}

static void report(const char *what, long n)
{
	if (n < 0)
		printf("%s: %ld %s\n", what, n, strerror(errno));
	else
		printf("%s: %ld\n", what, n);
	fflush(stdout);
}

static void numbers(void)
{
	int fd = bulk(path, O_RDWR | O_TRUNC), ends[2], a, b;

	report("first", fd);
	report("second", a = open(path, O_RDONLY));
	report("read", read(a, buf, 100));
	close(fd);
	report("reuse", b = open("/dev/null", O_RDONLY));
	report("dup", dup(b));
	report("pipe", pipe(ends));
	printf("%d %d\n", ends[0], ends[1]);
	close(0);
	report("zero", open(path, O_RDONLY));
	report("F_DUPFD 100", fcntl(a, F_DUPFD, 100));
	report("dup2", dup2(a, 60));
	report("next", open(path, O_RDONLY));
	report("close twice", close(b));
	report("close twice", close(b));
	report("read closed", read(b, buf, 1));
	report("write to a reader", write(a, buf, 1));
	report("read a directory", read(open("/", O_RDONLY), buf, 10));
	report("open nothing", open("/nonexistent", O_RDONLY));
}

static void reuse(void)
{
	int fd = bulk(path, O_RDWR | O_TRUNC), ends[2];
	FILE *f = fdopen(fd, "r+");
	DIR *dir;
	ssize_t n;

	fputs("by stdio", f);
	fclose(f);
	if (pipe(ends))
		err(1, "pipe");
	printf("pipe %d %d\n", ends[0], ends[1]);
	report("write", write(ends[1], "hello", 5));
	n = read(ends[0], buf, sizeof(buf));
	printf("through the pipe: %.*s\n", (int)n, buf);
	close(ends[0]);
	close(ends[1]);
	fd = bulk(other, O_RDWR | O_TRUNC);
	dup2(fd, 9);
	close(fd);
	dir = opendir("/");
	printf("dirfd %d\n", dirfd(dir));
	report("write on a directory", write(dirfd(dir), "x", 1));
	closedir(dir);
	fd = open(path, O_RDONLY);
	report("number", fd);
	report("read", read(fd, buf, 20));
	printf("%.20s\n", buf);
	report("write 9", write(9, "more", 4));
	report("size", lseek(9, 0, SEEK_END));
}

static int locked_for_child(void)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int fd = open(path, O_RDWR);
		struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

		_exit(fcntl(fd, F_SETLK, &l) ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void locks(void)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644), i, out;
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	report("lock", fcntl(fd, F_SETLK, &l));
	for (i = 0; i < 300; i++)
		if (write(fd, buf, sizeof(buf)) != sizeof(buf))
			err(1, "write");
	report("locked after writes", locked_for_child());
	lseek(fd, 0, SEEK_SET);
	for (i = 0; i < 300; i++)
		if (read(fd, buf, sizeof(buf)) != sizeof(buf))
			err(1, "read");
	report("locked after reads", locked_for_child());
	report("fsync", fsync(fd));
	report("locked after fsync", locked_for_child());
	out = bulk(other, O_RDWR | O_TRUNC);
	close(out);
	report("locked after another file's close", locked_for_child());
	report("stat", access(path, R_OK));
	report("locked after access", locked_for_child());
	close(open(path, O_RDONLY));
	report("locked after a close of the same file", locked_for_child());
}

static void leases(void)
{
	int fd = bulk(path, O_RDWR | O_TRUNC), i;

	close(fd);
	fd = open(path, O_RDONLY);
	signal(SIGIO, SIG_IGN);
	report("lease", fcntl(fd, F_SETLEASE, F_RDLCK));
	for (i = 0; i < 200; i++)
		if (read(fd, buf, sizeof(buf)) != sizeof(buf))
			err(1, "read");
	report("still there", fcntl(fd, F_GETLEASE) == F_RDLCK);
	report("given back", fcntl(fd, F_SETLEASE, F_UNLCK));
	report("write lease", fcntl(open(other, O_RDWR | O_CREAT | O_TRUNC, 0644), F_SETLEASE, F_WRLCK));
}

static void append(void)
{
	int a, b, i;

	close(bulk(path, O_RDWR | O_TRUNC));
	a = open(path, O_WRONLY | O_APPEND);
	b = open(path, O_WRONLY | O_APPEND);
	for (i = 0; i < 100; i++) {
		report("a", write(a, "from a\n", 7));
		report("b", write(b, "from b\n", 7));
	}
	report("offset", lseek(a, 0, SEEK_CUR));
	report("pwrite", pwrite(a, "at the end", 10, 5));
	close(a);
	a = open(path, O_RDWR);
	lseek(a, 1000000, SEEK_SET);
	for (i = 0; i < 10; i++)
		report("write", write(a, buf, sizeof(buf)));
	report("F_SETFL", fcntl(a, F_SETFL, O_APPEND));
	report("write", write(a, "appended", 8));
	report("offset", lseek(a, 0, SEEK_CUR));
	report("flags", fcntl(a, F_GETFL) & (O_APPEND | O_ACCMODE));
}

static void few(void)
{
	struct rlimit lim = { 40, 40 };
	int i, fd, count = 0;

	if (setrlimit(RLIMIT_NOFILE, &lim))
		err(1, "setrlimit");
	for (i = 0; i < 50; i++) {
		snprintf(other, sizeof(other), "%s.%d", path, i);
		fd = open(other, O_RDWR | O_CREAT | O_TRUNC, 0644);
		if (fd < 0)
			break;
		if (write(fd, buf, sizeof(buf)) == sizeof(buf))
			count++;
	}
	printf("opened %d, wrote %d: %s\n", i, count, strerror(errno));
	fflush(stdout);
}

/* A program that closes all it does not know, and goes on. */
static void close_all(void)
{
	int fd = bulk(path, O_RDWR | O_TRUNC), i, ok = 0, bad = 0, odd = 0;

	for (i = 3; i < 5000; i++) {
		errno = 0;
		if (close(i) == 0)
			ok++;
		else if (errno == EBADF)
			bad++;
		else
			odd++;
	}
	printf("closed %d, EBADF %d, other %d\n", ok, bad, odd);
	report("number", fd = bulk(other, O_RDWR | O_TRUNC));
	report("read", pread(fd, buf, 100, 0));
#if __GLIBC_PREREQ(2, 34)
	report("close_range", close_range(3, ~0U, 0));
	report("number", fd = bulk(other, O_RDWR));
	closefrom(3);
	report("after closefrom", write(fd, "x", 1));
#endif
	report("number", fd = bulk(path, O_RDWR));
	close(fd);
}

/* A program that puts something of its own over every number. */
static void dup2_all(void)
{
	int fd = bulk(path, O_RDWR | O_TRUNC), null = open("/dev/null", O_RDWR), i, n = 0;

	for (i = 3; i < 1000; i++)
		if (i != null && dup2(null, i) == i)
			n++;
	printf("%d numbers\n", n);
	report("write to null", write(fd, "x", 1));
	report("read null", read(fd, buf, 10));
	for (i = 3; i < 1000; i++)
		close(i);
	report("number", fd = bulk(other, O_RDWR | O_TRUNC));
	report("size", lseek(fd, 0, SEEK_END));
}

static const struct {
	const char *name;
	void (*run)(void);
} situations[] = {
	{ "numbers", numbers }, { "reuse", reuse }, { "locks", locks }, { "leases", leases },
	{ "append", append }, { "few", few }, { "close-all", close_all }, { "dup2-all", dup2_all },
};

int main(int argc, char **argv)
{
	size_t i;

	if (argc != 3)
		errx(2, "usage: descriptors SITUATION DIR");
	snprintf(path, sizeof(path), "%s/f", argv[2]);
	snprintf(other, sizeof(other), "%s/g", argv[2]);
	for (i = 0; i < sizeof(situations) / sizeof(*situations); i++)
		if (strcmp(argv[1], situations[i].name) == 0) {
			situations[i].run();
			return 0;
		}
	errx(2, "no situation %s", argv[1]);
}
