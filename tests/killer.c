/*
 * killer SEED COUNT REFERENCE OUT COMMAND ARG...
 *
 * Runs the command COUNT times and sends it SIGKILL at a random moment of its
 * run. What it leaves in OUT must be a prefix of REFERENCE each time. COMMAND
 * "writer" is this program's own: it writes REFERENCE to OUT in pieces of odd
 * sizes, and says in shared memory how far write(2) has returned. What
 * KILLER_PRELOAD names is preloaded into the command.
 * Prints: kills that met the command running, and the largest lag of the
 * writer's file behind what it had written, in bytes.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t seed;
static const char *reference, *out;
static volatile uint64_t *written;

static uint64_t draw(uint64_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return below ? (seed >> 33) % below : 0;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int writer(void)
{
	static char buf[20000];
	unsigned n = 1;
	int in = open(reference, O_RDONLY), to = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	ssize_t r;

	if (in < 0 || to < 0)
		return 1;
	while ((r = read(in, buf, n % sizeof(buf) + 1)) > 0) {
		if (write(to, buf, r) != r)
			return 1;
		*written += r;
		n = n * 1103515245u + 12345u;
	}
	return close(to) != 0;
}

static pid_t start(char **argv)
{
	pid_t pid;

	*written = 0;
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		err(2, "fork");
	if (pid)
		return pid;
	if (getenv("KILLER_PRELOAD"))
		setenv("LD_PRELOAD", getenv("KILLER_PRELOAD"), 1);
	if (!strcmp(argv[0], "writer")) {
		/* by exec, so that the library is new there */
		char number[20];

		snprintf(number, sizeof(number), "%d", 3);
		execl("/proc/self/exe", "killer", "-writer", number, reference, out, (char *)NULL);
	} else {
		execvp(argv[0], argv);
	}
	_exit(127);
}

/* The size of OUT, which is a prefix of REFERENCE; 0 where there is none. */
static uint64_t check(void)
{
	static char a[1 << 20], b[1 << 20];
	int f = open(out, O_RDONLY), g = open(reference, O_RDONLY);
	uint64_t at = 0;
	ssize_t n, m;

	if (f < 0 && errno == ENOENT) {
		close(g);
		return 0;
	}
	if (f < 0 || g < 0)
		err(2, "%s", f < 0 ? out : reference);
	while ((n = read(f, a, sizeof(a))) > 0) {
		m = read(g, b, n);
		if (m < n)
			errx(1, "%s is longer than %s", out, reference);
		if (memcmp(a, b, n))
			for (ssize_t i = 0; i < n; i++)
				if (a[i] != b[i])
					errx(1, "%s differs at %llu: %d, not %d", out,
						(unsigned long long)(at + i), a[i], b[i]);
		at += n;
	}
	if (n < 0)
		err(1, "%s", out);
	close(f);
	close(g);
	return at;
}

int main(int argc, char **argv)
{
	uint64_t lasts = 0, lag = 0;
	long count, met = 0;
	char shared[] = "/dev/shm/killer.XXXXXX";
	int fd, status;

	if (argc == 5 && !strcmp(argv[1], "-writer")) {
		reference = argv[3];
		out = argv[4];
		written = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[2]), 0);
		return written == MAP_FAILED ? 2 : writer();
	}
	if (argc < 6)
		errx(2, "usage: killer SEED COUNT REFERENCE OUT COMMAND ARG...");
	seed = strtoull(argv[1], NULL, 10);
	count = atol(argv[2]);
	reference = argv[3];
	out = argv[4];
	fd = mkstemp(shared);
	if (fd < 0 || ftruncate(fd, 4096) || dup2(fd, 3) < 0)
		err(2, "%s", shared);
	unlink(shared);
	written = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);
	if (written == MAP_FAILED)
		err(2, "mmap");
	/* How long it takes undisturbed, the second time. */
	for (int i = 0; i < 2; i++) {
		uint64_t began = now();

		unlink(out);
		if (waitpid(start(argv + 5), &status, 0) < 0 || status)
			errx(2, "%s fails: status %x", argv[5], status);
		lasts = now() - began;
		check();
	}
	for (long i = 0; i < count; i++) {
		uint64_t wait = draw(lasts + lasts / 10);
		struct timespec t = {wait / 1000000000, wait % 1000000000};
		pid_t pid;

		unlink(out);
		pid = start(argv + 5);
		nanosleep(&t, NULL);
		kill(pid, SIGKILL);
		if (waitpid(pid, &status, 0) < 0)
			err(2, "waitpid");
		met += WIFSIGNALED(status);
		uint64_t size = check();
		if (*written > size && *written - size > lag)
			lag = *written - size;
	}
	printf("%ld %llu\n", met, (unsigned long long)lag);
	return 0;
}
