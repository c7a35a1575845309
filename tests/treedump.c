/*
 * treedump [-t] [-b] [-s] DIR: one line per file of a tree, sorted by name, with
 * all that a copy must reproduce: type, size, mode, owner, links, extended
 * attributes, the map of data and holes, and a hash of the content.
 *
 *   -t  modification times too (of regular files)
 *   -b  allocated space too, where the filesystem's st_blocks means something
 *   -s  without the map of data and holes
 *
 * The hash skips zero blocks, so it says nothing about holes: the map does.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define UNIT 4096
#define CHUNK (1 << 20)

static int times, blocks, no_map;

static void mix(uint64_t h[2], uint64_t v)
{
	h[0] = (h[0] ^ v) * 0x9E3779B97F4A7C15u;
	h[0] ^= h[0] >> 29;
	h[1] = (h[1] + v) * 0xC2B2AE3D27D4EB4Fu;
	h[1] ^= h[1] >> 31;
}

static void hash_unit(uint64_t h[2], off_t at, const unsigned char *p, size_t n)
{
	static const unsigned char zero[UNIT];
	uint64_t v;
	size_t i;

	if (memcmp(p, zero, n) == 0)
		return;
	mix(h, (uint64_t)at);
	for (i = 0; i < n; i += 8) {
		v = 0;
		memcpy(&v, p + i, n - i < 8 ? n - i : 8);
		mix(h, v);
	}
}

static void hash_range(uint64_t h[2], int fd, off_t from, off_t to)
{
	static unsigned char buf[CHUNK];
	ssize_t n;
	size_t i;

	while (from < to) {
		size_t want = to - from < CHUNK ? (size_t)(to - from) : CHUNK;

		n = pread(fd, buf, want, from);
		if (n <= 0)
			err(1, "read at %jd", (intmax_t)from);
		/* stay on unit boundaries, so that the cut does not matter */
		if ((size_t)n < want && n >= UNIT)
			n -= n % UNIT;
		for (i = 0; i < (size_t)n; i += UNIT)
			hash_unit(h, from + i, buf + i,
				  (size_t)n - i < UNIT ? (size_t)n - i : UNIT);
		from += n;
	}
}

static void dump_content(const char *path, const struct stat *st)
{
	uint64_t h[2] = { 1, 2 };
	off_t data, hole = 0, sum = 0;
	int fd = open(path, O_RDONLY | O_NOATIME);

	if (fd < 0)
		err(1, "%s", path);
	if (!no_map)
		printf(" data=");
	while (hole < st->st_size) {
		data = lseek(fd, hole, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break;
		if (data < 0)
			err(1, "%s: SEEK_DATA", path);
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole < 0)
			err(1, "%s: SEEK_HOLE", path);
		if (!no_map)
			printf("%jd-%jd,", (intmax_t)data, (intmax_t)hole);
		sum += hole - data;
		hash_range(h, fd, data - data % UNIT, hole);
	}
	if (blocks) {
		off_t extra = (off_t)st->st_blocks * 512 - sum;

		/* a block of extent tree here or there is no difference */
		if (extra > -65536 && extra < 65536)
			extra = 0;
		printf(" extra=%jd", (intmax_t)extra);
	}
	printf(" hash=%016" PRIx64 "%016" PRIx64, h[0], h[1]);
	close(fd);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void dump_xattrs(const char *path)
{
	char list[4096], value[4096], *sorted[64];
	ssize_t n = llistxattr(path, list, sizeof(list)), m;
	size_t i, count = 0;
	char *p;

	for (p = list; n > 0 && p < list + n && count < 64; p += strlen(p) + 1)
		sorted[count++] = p;
	qsort(sorted, count, sizeof(*sorted), by_name);
	for (i = 0; i < count; i++) {
		m = lgetxattr(path, sorted[i], value, sizeof(value));
		printf(" %s=", sorted[i]);
		for (p = value; m > 0 && p < value + m; p++)
			printf("%02x", (unsigned char)*p);
	}
}

static void dump(const char *path, const char *shown)
{
	struct dirent **names;
	struct stat st;
	char target[4096];
	ssize_t m;
	int i, n;

	if (lstat(path, &st))
		err(1, "%s", path);
	printf("%s mode=%o uid=%u gid=%u", *shown ? shown : ".", st.st_mode,
	       st.st_uid, st.st_gid);
	dump_xattrs(path);
	if (S_ISREG(st.st_mode)) {
		printf(" links=%ju size=%jd", (uintmax_t)st.st_nlink,
		       (intmax_t)st.st_size);
		if (times)
			printf(" mtime=%jd.%09ld", (intmax_t)st.st_mtim.tv_sec,
			       st.st_mtim.tv_nsec);
		dump_content(path, &st);
	} else if (S_ISLNK(st.st_mode)) {
		m = readlink(path, target, sizeof(target));
		printf(" -> %.*s", (int)m, target);
	}
	putchar('\n');
	if (!S_ISDIR(st.st_mode))
		return;
	n = scandir(path, &names, NULL, alphasort);
	if (n < 0)
		err(1, "%s", path);
	for (i = 0; i < n; i++) {
		char *sub, *name = names[i]->d_name, *show;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    strcmp(name, "lost+found") == 0)
			continue;
		if (asprintf(&sub, "%s/%s", path, name) < 0 ||
		    asprintf(&show, "%s/%s", shown, name) < 0)
			err(1, NULL);
		dump(sub, show);
		free(sub);
		free(show);
	}
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "tbs")) != -1) {
		if (c == 't')
			times = 1;
		else if (c == 'b')
			blocks = 1;
		else if (c == 's')
			no_map = 1;
		else
			return 2;
	}
	if (argc - optind != 1)
		errx(2, "usage: treedump [-t] [-b] [-s] DIR");
	dump(argv[optind], "");
	return 0;
}
