/*
 * flags SOURCE COPY: moves 16 MiB from one to the other by 4 KiB, printing the status
 * flags of both descriptors on the way, set, and in the hands of a child.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void show(const char *when, int in, int out)
{
	printf("%s: %o %o\n", when, fcntl(in, F_GETFL), fcntl(out, F_GETFL));
	fflush(stdout);
}

static void move(int in, int out, int times)
{
	char buf[4096];

	while (times--)
		if (read(in, buf, sizeof(buf)) != sizeof(buf) ||
		    write(out, buf, sizeof(buf)) != sizeof(buf))
			err(1, "move");
}

int main(int argc, char **argv)
{
	int in, out, status;

	if (argc != 3)
		return 2;
	in = open(argv[1], O_RDONLY);
	out = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (in < 0 || out < 0)
		err(1, "open");
	show("open", in, out);
	move(in, out, 2048);
	show("8 MiB", in, out);
	printf("set: %d %d\n", fcntl(in, F_SETFL, O_NOATIME), fcntl(out, F_SETFL, O_NONBLOCK));
	show("after F_SETFL", in, out);
	move(in, out, 1024);
	show("12 MiB", in, out);
	printf("set: %d %d\n", fcntl(in, F_SETFL, 0), fcntl(out, F_SETFL, 0));
	move(in, out, 1023);
	if (fork() == 0) {
		show("child", in, out);
		move(in, out, 1);
		printf("child wrote 3: %zd\n", write(out, "end", 3));
		fflush(stdout);
		_exit(0);
	}
	wait(&status);
	show("after the child", in, out);
	printf("offsets: %lld %lld, status %x\n", (long long)lseek(in, 0, SEEK_CUR),
	       (long long)lseek(out, 0, SEEK_CUR), status);
	return 0;
}
