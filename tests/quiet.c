/* quiet DIR: no bulk data, but all sorts of small calls; prints what it has seen of itself. */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int entries(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	struct sigaction sa;
	sigset_t mask;
	char buf[300], name[4096];
	int i, n = 0, fd;

	if (argc != 2)
		return 2;
	snprintf(name, sizeof(name), "%s/q", argv[1]);
	printf("descriptors %d, threads %d\n", entries("/proc/self/fd"), entries("/proc/self/task"));
	for (i = 0; i < 20; i++) {
		fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
		if (fd < 0 || write(fd, "small\n", 6) != 6 || pread(fd, buf, 100, 0) != 6)
			err(1, "%s", name);
		close(fd);
	}
	for (i = 1; i < 65; i++)
		if (sigaction(i, NULL, &sa) == 0 && sa.sa_handler != SIG_DFL)
			n++;
	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (i = 1; i < 65; i++)
		n += sigismember(&mask, i) == 1;
	printf("handlers and blocked signals %d\n", n);
	if (fork() == 0)
		_exit(entries("/proc/self/fd"));
	wait(&i);
	printf("descriptors of a child %d\n", WEXITSTATUS(i));
	printf("descriptors %d, threads %d\n", entries("/proc/self/fd"), entries("/proc/self/task"));
	unlink(name);
	return 0;
}
