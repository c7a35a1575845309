/* locale NAME FILE: takes the locale, reads the file, says how often the library asked malloc meanwhile. */
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);

static unsigned asked;

void *malloc(size_t n)
{
	asked++;
	return __libc_malloc(n);
}

int main(int argc, char **argv)
{
	static char b[5000];
	unsigned before;

	if (argc != 3 || !setlocale(LC_ALL, argv[1]))
		return 2;
	before = asked;
	int fd = open(argv[2], O_RDONLY);
	while (read(fd, b, sizeof(b)) > 0)
		;
	close(fd);
	before = asked - before;
	fprintf(stderr, "%u\n", before);
	return 0;
}
