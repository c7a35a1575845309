/*
 * forms FILE: one of each of the calls that headers rename, with sizes that the compiler
 * cannot see, so that fortified builds call the checking forms. Built in several ways.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef USE64
#define open open64
#define openat openat64
#define creat creat64
#define pread pread64
#define pwrite pwrite64
#define lseek lseek64
#define ftruncate ftruncate64
#define fstat fstat64
#define stat stat64
#define off_t off64_t
#endif

#define BULK 3000000

static volatile int flags_read = O_RDONLY, flags_write = O_RDWR;

int main(int argc, char **argv)
{
	volatile size_t n = 1000;
	char buf[5000], *p;
	struct stat st;
	struct iovec iov[2];
	long i;
	int fd, in;

	if (argc != 2)
		return 2;
	fd = creat(argv[1], 0644);
	if (fd < 0)
		err(1, "creat");
	for (i = 0; i < BULK / 1000; i++)
		if (write(fd, memset(buf, (int)(i % 251), sizeof(buf)), n) != (ssize_t)n)
			err(1, "write");
	if (fstat(fd, &st))
		err(1, "fstat");
	printf("size %lld\n", (long long)st.st_size);
	close(fd);
	fd = open(argv[1], flags_write);
	in = openat(AT_FDCWD, argv[1], flags_read);
	if (fd < 0 || in < 0)
		err(1, "open");
	printf("pwrite %zd\n", pwrite(fd, "at an offset", 12, (off_t)1234567));
	printf("pread %zd\n", pread(in, buf, n, (off_t)1234560));
	printf("%.12s\n", buf + 7);
	printf("lseek %lld\n", (long long)lseek(in, (off_t)-1500, SEEK_END));
	printf("read %zd\n", read(in, buf, n));
	printf("read %zd\n", read(in, buf, n));
	printf("read %zd\n", read(in, buf, n));
	printf("offset %lld\n", (long long)lseek(in, 0, SEEK_CUR));
	p = malloc(n);
	lseek(in, (off_t)0, SEEK_SET);
	for (i = 0; read(in, p, n) == (ssize_t)n; i++)
		if (p[n - 1] != (char)(i % 251))
			errx(1, "block %ld", i);
	printf("%ld blocks\n", i);
	iov[0].iov_base = buf;
	iov[0].iov_len = 10;
	iov[1].iov_base = buf + 10;
	iov[1].iov_len = n;
	printf("writev %zd\n", writev(fd, iov, 2));
	lseek(in, (off_t)0, SEEK_SET);
	printf("readv %zd\n", readv(in, iov, 2));
	printf("pwritev %zd\n", pwritev(fd, iov, 2, (off_t)100000));
	printf("preadv %zd\n", preadv(in, iov, 2, (off_t)99990));
	printf("ftruncate %d\n", ftruncate(fd, (off_t)2500001));
	if (stat(argv[1], &st))
		err(1, "stat");
	printf("then %lld\n", (long long)st.st_size);
	return 0;
}
