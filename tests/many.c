/* many FILES KIB: that many files open at once, written and read in turns by 4 KiB; prints its peak memory, KiB. */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char b[4096], c[4096];
	int n = argc == 3 ? atoi(argv[1]) : 0, pieces = n ? atoi(argv[2]) / 4 : 0;
	int *fd = calloc(n + 1, sizeof(*fd));
	struct rusage r;
	char name[40];

	if (!n || !fd)
		errx(2, "usage: many FILES KIB");
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "many.%d", i);
		fd[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
		if (fd[i] < 0)
			err(1, "%s", name);
	}
	for (int p = 0; p < pieces; p++)
		for (int i = 0; i < n; i++) {
			memset(b, p * 7 + i, sizeof(b));
			if (write(fd[i], b, sizeof(b)) != sizeof(b))
				err(1, "write");
		}
	for (int i = 0; i < n; i++)
		lseek(fd[i], 0, SEEK_SET);
	for (int p = 0; p < pieces; p++)
		for (int i = 0; i < n; i++) {
			memset(b, p * 7 + i, sizeof(b));
			if (read(fd[i], c, sizeof(c)) != sizeof(c) || memcmp(b, c, sizeof(c)))
				errx(1, "piece %d of file %d is wrong", p, i);
		}
	getrusage(RUSAGE_SELF, &r);
	printf("%ld\n", r.ru_maxrss);
	return 0;
}
