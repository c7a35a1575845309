/*
 * wide FILE: writes and reads over the line that 32 bits have: of 4 GiB where off_t has
 * 64 bits, else of 2 GiB, where the kernel ends the file. Prints what each call returned.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define LINE   (sizeof(off_t) == 8 ? (off_t)1 << 31 << 1 : (off_t)0x7fffffff)
#define BEFORE 1000000
#define PIECE  1000

static char piece[PIECE], back[PIECE];

static void fill(int n)
{
	for (int i = 0; i < PIECE; i++)
		piece[i] = (char)(n * 31 + i * 7 + i / 251);
}

static void say(const char *what, long long r)
{
	printf("%s %lld %s\n", what, r, r < 0 ? strerrorname_np(errno) : "");
}

static void writes(int fd, int most)
{
	ssize_t r = 0;
	int n;

	for (n = 0; n < most; n++) {
		fill(n);
		r = n % 3 ? write(fd, piece, PIECE) : writev(fd, &(struct iovec){piece, PIECE}, 1);
		if (r != PIECE)
			break;
	}
	printf("pieces %d\n", n);
	say("the last", r);
	say("at", lseek(fd, 0, SEEK_CUR));
}

static void reads(int fd)
{
	unsigned long hash = 0, n = 0;
	ssize_t r;

	say("back to", lseek(fd, LINE - BEFORE, SEEK_SET));
	while ((r = read(fd, back, 777)) > 0)
		for (n++; r; r--)
			hash = hash * 31 + (unsigned char)back[r - 1];
	say("reads end", r);
	printf("%lu %lx\n", n, hash);
	say("at", lseek(fd, 0, SEEK_CUR));
}

static void by_offset(int fd, const char *other)
{
	off_t from = LINE - 2500;
	off64_t from64 = LINE - 5000;
	int to = open(other, O_RDWR | O_CREAT | O_TRUNC, 0644);

	for (off_t at = LINE - 3000; at < LINE && at > 0 && LINE - at >= 500; at += 500) {
		say("pwrite", pwrite(fd, piece, 800, at));
		say("pread", pread(fd, back, 900, at));
	}
	say("preadv", preadv(fd, &(struct iovec){back, PIECE}, 1, LINE - 100));
	say("sendfile", sendfile(to, fd, &from, 100000));
	say("from", from);
	say("copy_file_range", copy_file_range(fd, &from64, to, NULL, 200000, 0));
	say("from", from64);
	close(to);
}

static void streams(const char *path)
{
	FILE *f = fopen(path, "r+");
	int n;

	say("fopen", f ? 0 : -1);
	if (!f)
		return;
	say("fseeko", fseeko(f, LINE - 5000, SEEK_SET));
	for (n = 0; n < 20; n++)
		if (fwrite(piece, PIECE, 1, f) != 1)
			break;
	printf("fwrite %d\n", n < 5 ? n : 5);
	say("fflush", fflush(f));
	say("ftello", ftello(f));
	say("fclose", fclose(f));
}

int main(int argc, char **argv)
{
	char other[4096];
	struct stat st;

	if (argc != 2)
		return 2;
	snprintf(other, sizeof(other), "%s.copy", argv[1]);
	int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);

	say("seek", lseek(fd, LINE - BEFORE, SEEK_SET));
	writes(fd, 3000);
	reads(fd);
	by_offset(fd, other);
	say("fstat", fstat(fd, &st));
	say("size", st.st_size);
	say("beyond", lseek(fd, 10, SEEK_END));
	say("write there", write(fd, "x", 1));
	say("ftruncate", ftruncate(fd, LINE - 123));
	say("end", lseek(fd, 0, SEEK_END));
	writes(fd, 2);
	say("close", close(fd));
	streams(argv[1]);
	/* one that only the large-file calls may open */
	fd = open64(argv[1], O_RDWR);
	say("ftruncate64", ftruncate64(fd, 5LL << 30));
	close(fd);
	say("open", open(argv[1], O_RDONLY) < 0 ? -1 : 0);
	say("stat", stat(argv[1], &st));
	return 0;
}
