/* errors SITUATION FILE: calls that fail, or nearly, on a file with bulk data under way. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char buf[10240];
static const char *path;

static void result(const char *what, long long n)
{
	if (n < 0)
		printf("%s: %s\n", what, strerror(errno));
	else
		printf("%s: %lld\n", what, n);
	fflush(stdout);
	errno = 0;
}

static int bulk(long size)
{
	long i;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);

	if (fd < 0)
		err(1, "%s", path);
	for (i = 0; i < size; i += 1000)
		if (write(fd, memset(buf, (int)(i / 1000 % 250) + 1, 1000), 1000) != 1000)
			err(1, "write");
	return fd;
}

/* Half a page that is there, then nothing. */
static char *edge(void)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* Not unmapped: the next mapping of anybody's could take the place. */
	if (p == MAP_FAILED || mprotect(p + 4096, 4096, PROT_NONE))
		err(1, "mmap");
	return p;
}

static void pointers(void)
{
	char *p = edge(), *bad = p + 4096;
	struct iovec iov[2] = { { p, 100 }, { bad, 100 } };
	struct stat *st = (struct stat *)bad;
	long sizes[] = { 5000, 3000000 }, i;
	int fd;

	for (i = 0; i < 2; i++) {
		fd = bulk(sizes[i]);
		result("write", write(fd, bad, 100));
		result("offset", lseek(fd, 0, SEEK_CUR));
		result("pwrite", pwrite(fd, bad, 100, 50));
		result("writev of a good and a bad part", writev(fd, iov, 2));
		result("offset", lseek(fd, 0, SEEK_CUR));
		result("write of nothing", write(fd, bad, 0));
		lseek(fd, 100, SEEK_SET);
		result("read", read(fd, bad, 100));
		result("offset", lseek(fd, 0, SEEK_CUR));
		result("pread", pread(fd, bad, 100, 200));
		result("good read", read(fd, p, 100));
		result("offset", lseek(fd, 0, SEEK_CUR));
		result("read again", read(fd, bad, 1));
		result("readv of a good and a bad part", readv(fd, iov, 2));
		result("offset", lseek(fd, 0, SEEK_CUR));
		result("readv, bad vector", readv(fd, (struct iovec *)bad, 2));
		result("writev, bad vector", writev(fd, (struct iovec *)bad, 2));
		result("null", read(fd, NULL, 10));
		result("null", write(fd, NULL, 10));
		result("fstat", fstat(fd, st));
		result("size", lseek(fd, 0, SEEK_END));
		close(fd);
	}
	result("open", open(bad, O_RDONLY));
	result("stat", stat(bad, (struct stat *)buf));
}

static void arguments(void)
{
	struct iovec iov[2] = { { buf, 100 }, { buf, (size_t)-1 } };
	int fd = bulk(2000000), ro, wo;
	off_t at = -5;

	ro = open(path, O_RDONLY);
	wo = open(path, O_WRONLY);
	result("write to a reader", write(ro, buf, 10));
	result("read from a writer", read(wo, buf, 10));
	result("pread from a writer", pread(wo, buf, 10, 0));
	result("pread, negative", pread(fd, buf, 10, -1));
	result("pwrite, negative", pwrite(fd, buf, 10, -1));
	result("lseek, negative", lseek(fd, -1, SEEK_SET));
	result("lseek, whence", lseek(fd, 0, 77));
	result("lseek, far", lseek(fd, 0x7fffffffffffffffLL, SEEK_SET));
	result("offset", lseek(fd, 0, SEEK_CUR));
	result("readv, count", readv(fd, iov, -1));
	result("readv, count", readv(fd, iov, 5000));
	result("readv, length", readv(fd, iov, 2));
	result("writev, length", writev(fd, iov, 2));
	result("writev, none", writev(fd, iov, 0));
	result("preadv, negative", preadv(fd, iov, 1, -7));
	result("preadv2, current", preadv2(ro, iov, 1, -1, 0));
	result("preadv2, flags", preadv2(ro, iov, 1, -1, 0x40000000));
	result("ftruncate, reader", ftruncate(ro, 10));
	result("ftruncate, negative", ftruncate(fd, -1));
	result("fallocate, negative", fallocate(fd, 0, -1, 10));
	result("fallocate, reader", fallocate(ro, 0, 0, 10));
	result("fsync, bad", fsync(999));
	result("close, bad", close(999));
	result("write, bad", write(-1, buf, 10));
	result("copy_file_range onto itself", copy_file_range(fd, NULL, fd, NULL, 100, 0));
	result("copy_file_range, flags", copy_file_range(ro, NULL, wo, NULL, 100, 77));
	result("copy_file_range, to a reader", copy_file_range(fd, NULL, ro, NULL, 100, 0));
	result("copy_file_range, negative", copy_file_range(ro, &at, wo, NULL, 100, 0));
	result("fadvise", posix_fadvise(fd, 0, 0, 99));
	result("dup2, bad", dup2(999, fd));
	result("dup2, itself", dup2(fd, fd) == fd);
	result("dup3, itself", dup3(fd, fd, 0));
	result("F_DUPFD, negative", fcntl(fd, F_DUPFD, -1));
	result("fcntl, command", fcntl(fd, 9999, 0));
	result("open, exclusive", open(path, O_CREAT | O_EXCL | O_WRONLY, 0600));
	result("open, directory", open(path, O_DIRECTORY));
	result("size", lseek(fd, 0, SEEK_END));
}

static void errno_kept(void)
{
	struct stat st;
	int fd, i, bad = 0;

	errno = 77;
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	printf("open %d\n", errno);
	for (i = 0; i < 10000; i++) {
		errno = 77;
		if (write(fd, buf, 512) != 512 || errno != 77)
			bad++;
	}
	printf("write %d\n", bad);
	errno = 77;
	fstat(fd, &st);
	printf("fstat %d\n", errno);
	errno = 77;
	lseek(fd, 0, SEEK_SET);
	printf("lseek %d\n", errno);
	for (bad = i = 0; i < 10000; i++) {
		errno = 77;
		if (read(fd, buf, 512) != 512 || errno != 77)
			bad++;
	}
	printf("read %d\n", bad);
	errno = 77;
	read(fd, buf, 1) == 0 ? printf("end %d\n", errno) : printf("no end\n");
	errno = 77;
	fsync(fd);
	printf("fsync %d\n", errno);
	errno = 77;
	close(dup(fd));
	printf("dup and close %d\n", errno);
	errno = 77;
	close(fd);
	printf("close %d\n", errno);
}

static void ends(void)
{
	int fd = bulk(1500000), in = open(path, O_RDONLY), i;
	long n = 0;
	ssize_t m;

	while ((m = read(in, buf, 7000)) > 0)
		n += m;
	result("read", n);
	result("at the end", read(in, buf, 10));
	result("write more", write(fd, buf, 700));
	result("read on", read(in, buf, 7000));
	result("and on", read(in, buf, 7000));
	result("shrink", ftruncate(fd, 1000));
	result("past the end", read(in, buf, 10));
	result("offset", lseek(in, 0, SEEK_CUR));
	result("pread past the end", pread(in, buf, 10, 5000));
	result("pread up to the end", pread(in, buf, 7000, 900));
	lseek(in, 0, SEEK_SET);
	result("from the start", read(in, buf, 7000));
	for (i = 0; i < 300; i++)
		if (pwrite(fd, buf, 10000, 1000 + (off_t)i * 10000) != 10000)
			err(1, "pwrite");
	for (n = 0; (m = read(in, buf, 4096)) > 0;)
		n += m;
	result("all of it", n);
}

/* The disk is too small. What write accepted is there, to the byte, and after there is room it goes on. */
static void full(void)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644), hog, i, failed = 0;
	long long accepted = 0;
	struct stat st;
	ssize_t n;

	hog = open("y", O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (fallocate(hog, 0, 0, 6000000))
		err(1, "fallocate");
	for (i = 0; i < 100000 && failed < 3; i++) {
		n = write(fd, memset(buf, i % 250 + 1, 10240), 10240);
		if (n < 0) {
			result("write", n);
			failed++;
		} else {
			accepted += n;
		}
	}
	fstat(fd, &st);
	printf("all accepted bytes are in the file: %d\n", st.st_size == accepted);
	printf("offset: %d\n", lseek(fd, 0, SEEK_CUR) == accepted);
	result("make room", ftruncate(hog, 0));
	close(hog);
	unlink("y");
	sync();
	result("write", write(fd, buf, 10240));
	fstat(fd, &st);
	printf("all accepted bytes are in the file: %d\n", st.st_size == accepted + 10240);
	result("fsync", fsync(fd));
	result("close", close(fd));
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	path = argv[2];
	if (strcmp(argv[1], "pointers") == 0)
		pointers();
	else if (strcmp(argv[1], "arguments") == 0)
		arguments();
	else if (strcmp(argv[1], "errno") == 0)
		errno_kept();
	else if (strcmp(argv[1], "ends") == 0)
		ends();
	else if (strcmp(argv[1], "full") == 0)
		full();
	else
		return 2;
	return 0;
}
