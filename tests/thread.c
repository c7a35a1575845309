/* thread FROM TO: copies in a thread that has the smallest stack there is, 16 KiB. */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static char **name, buf[5120];

static void *copy(void *bad)
{
	int in = open(name[1], O_RDONLY), out = open(name[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
	ssize_t n;

	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, (size_t)n) != n)
			return bad;
	return n || close(out) || close(in) ? bad : NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t attr;
	pthread_t t;
	void *bad;

	name = argv;
	if (argc != 3 || pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, 16384) ||
		pthread_create(&t, &attr, copy, &t) || pthread_join(t, &bad) || bad) {
		fprintf(stderr, "thread: failed\n");
		return 1;
	}
	return 0;
}
