/*
 * A tape drive's stand-in: runs a command whose standard output keeps record boundaries (a sequential-packet socket:
 * one write, one record) and takes the records at a drive's pace: a gap for each, and its length at the drive's rate.
 * It holds one record while the next is written; the writer waits beyond that.
 *
 *   tape RATE GAP CMD...   RATE in MiB/s, GAP in microseconds
 *
 * Prints "RECORDS BYTES SMALLEST LARGEST". Ends with the command's status. Records over half of
 * /proc/sys/net/core/wmem_max need root.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LARGEST (1 << 20)

static void die(const char *what)
{
	fprintf(stderr, "tape: %s: %s\n", what, strerror(errno));
	exit(125);
}

static void later(struct timespec *t, double seconds)
{
	long ns = seconds * 1e9 + t->tv_nsec;

	t->tv_sec += ns / 1000000000;
	t->tv_nsec = ns % 1000000000;
}

static double since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - t->tv_sec + (now.tv_nsec - t->tv_nsec) / 1e9;
}

/* The command, its output on the socket; the preload is for it alone. */
static pid_t start(char **argv, int out, int other)
{
	const char *lib = getenv("TAPE_PRELOAD");
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	close(other);
	if (dup2(out, STDOUT_FILENO) < 0)
		die("dup2");
	close(out);
	if (lib)
		setenv("LD_PRELOAD", lib, 1);
	unsetenv("TAPE_PRELOAD");
	execvp(argv[0], argv);
	die(argv[0]);
	return -1;
}

int main(int argc, char **argv)
{
	static char record[LARGEST];
	unsigned long long records = 0, bytes = 0, smallest = 0, largest = 0;
	int pair[2], size = LARGEST, status;
	double rate, gap;
	struct timespec free_at;
	ssize_t n;
	pid_t pid;

	if (argc < 4) {
		fprintf(stderr, "usage: tape RATE GAP CMD...\n");
		return 125;
	}
	rate = atof(argv[1]) * 1048576;
	gap = atof(argv[2]) / 1e6;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		die("socketpair");
	if (setsockopt(pair[1], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	pid = start(argv + 3, pair[1], pair[0]);
	close(pair[1]);

	clock_gettime(CLOCK_MONOTONIC, &free_at);
	for (;;) {
		/* The record stays in the socket, which is the drive's buffer, until the drive is free. */
		n = recv(pair[0], record, 1, MSG_PEEK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (since(&free_at) > 0)
			clock_gettime(CLOCK_MONOTONIC, &free_at);
		n = recv(pair[0], record, sizeof(record), 0);
		if (n <= 0)
			break;
		later(&free_at, gap + n / rate);
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &free_at, NULL) == EINTR)
			;
		records++;
		bytes += n;
		if ((unsigned long long)n > largest)
			largest = n;
		if (!smallest || (unsigned long long)n < smallest)
			smallest = n;
	}
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	printf("%llu %llu %llu %llu\n", records, bytes, smallest, largest);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
