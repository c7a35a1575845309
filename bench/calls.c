/*
 * What one call costs. Run under the shim; in the same process the bare call is made through libc's own
 * entry point, in short batches that take turns with the intercepted ones, so that both see the same machine.
 *
 *   calls read SMALL BARE N      512-byte reads; SMALL through the shim, BARE (the same size, warm) past it
 *   calls write SMALL BARE N     512-byte writes to new files
 *   calls untuned N              read of 0 bytes on a pipe, write on an eventfd
 *   calls start N LIB            posix_spawn to exit of /bin/true, LD_PRELOAD empty and LIB by turns
 *   calls peak LIB CMD...        the command's peak resident memory in KiB (LIB may be empty)
 *
 * The first three print "NAME BARE SHIM": the median over the batches, in nanoseconds per call. The median leaves out
 * the batches in which a transfer is started or waited for; read and write therefore print a second line, NAME-cpu,
 * with the processor time of all calls, transfers included.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE 512
#define BATCH 64

extern char **environ;

static ssize_t (*bare_read)(int, void *, size_t);
static ssize_t (*bare_write)(int, const void *, size_t);
static int (*bare_open)(const char *, int, ...);

static void die(const char *what)
{
	fprintf(stderr, "calls: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return n ? v[n / 2] : 0;
}

static void find_libc(void)
{
	/* RTLD_NEXT, seen from the program, would find the shim. */
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	if (!libc) {
		fprintf(stderr, "calls: no libc.so.6 in this process\n");
		exit(1);
	}
	*(void **)&bare_read = dlsym(libc, "read");
	*(void **)&bare_write = dlsym(libc, "write");
	*(void **)&bare_open = dlsym(libc, "open");
}

static void check(ssize_t got, ssize_t want, const char *what)
{
	if (got == want)
		return;
	if (got >= 0)
		errno = ENODATA;
	die(what);
}

/* One batch, nanoseconds per call. */
static double reads(ssize_t (*call)(int, void *, size_t), int fd, size_t size, int batch)
{
	static char buf[SIZE];
	double start = now(CLOCK_MONOTONIC);

	for (int i = 0; i < batch; i++)
		check(call(fd, buf, size), size, "read");
	return (now(CLOCK_MONOTONIC) - start) / batch;
}

static double writes(ssize_t (*call)(int, const void *, size_t), int fd, const void *buf, size_t size, int batch)
{
	double start = now(CLOCK_MONOTONIC);

	for (int i = 0; i < batch; i++)
		check(call(fd, buf, size), size, "write");
	return (now(CLOCK_MONOTONIC) - start) / batch;
}

static void small_reads(const char *small, const char *bare, size_t n)
{
	size_t batches = n / BATCH;
	double *a = calloc(batches, sizeof(*a)), *b = calloc(batches, sizeof(*b)), cpu[3];
	int through, past;

	through = open(small, O_RDONLY);
	past = bare_open(bare, O_RDONLY);
	if (through < 0 || past < 0 || !a || !b)
		die(small);
	for (size_t i = 0; i < batches; i++) {
		a[i] = reads(bare_read, past, SIZE, BATCH);
		b[i] = reads(read, through, SIZE, BATCH);
	}
	close(through);

	lseek(past, 0, SEEK_SET);
	through = open(small, O_RDONLY);
	cpu[0] = now(CLOCK_PROCESS_CPUTIME_ID);
	for (size_t i = 0; i < batches; i++)
		reads(bare_read, past, SIZE, BATCH);
	cpu[1] = now(CLOCK_PROCESS_CPUTIME_ID);
	for (size_t i = 0; i < batches; i++)
		reads(read, through, SIZE, BATCH);
	close(through);
	cpu[2] = now(CLOCK_PROCESS_CPUTIME_ID);
	printf("read %.1f %.1f\n", median(a, batches), median(b, batches));
	printf("read-cpu %.1f %.1f\n", (cpu[1] - cpu[0]) / (batches * BATCH), (cpu[2] - cpu[1]) / (batches * BATCH));
}

static void small_writes(const char *small, const char *bare, size_t n)
{
	static char buf[SIZE];
	size_t batches = n / BATCH;
	double *a = calloc(batches, sizeof(*a)), *b = calloc(batches, sizeof(*b)), cpu[3];
	int through, past;

	memset(buf, 'x', sizeof(buf));
	through = open(small, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	past = bare_open(bare, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (through < 0 || past < 0 || !a || !b)
		die(small);
	for (size_t i = 0; i < batches; i++) {
		a[i] = writes(bare_write, past, buf, SIZE, BATCH);
		b[i] = writes(write, through, buf, SIZE, BATCH);
	}
	close(through);
	close(past);

	through = open(small, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	past = bare_open(bare, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	cpu[0] = now(CLOCK_PROCESS_CPUTIME_ID);
	for (size_t i = 0; i < batches; i++)
		writes(bare_write, past, buf, SIZE, BATCH);
	close(past);
	cpu[1] = now(CLOCK_PROCESS_CPUTIME_ID);
	for (size_t i = 0; i < batches; i++)
		writes(write, through, buf, SIZE, BATCH);
	close(through);
	cpu[2] = now(CLOCK_PROCESS_CPUTIME_ID);
	printf("write %.1f %.1f\n", median(a, batches), median(b, batches));
	printf("write-cpu %.1f %.1f\n", (cpu[1] - cpu[0]) / (batches * BATCH), (cpu[2] - cpu[1]) / (batches * BATCH));
}

static void untuned(size_t n)
{
	static const unsigned long long one = 1;
	const int batch = 256;
	size_t batches = n / batch;
	double *v[4];
	int fds[2], event;

	event = eventfd(0, EFD_NONBLOCK);
	if (pipe(fds) || event < 0)
		die("pipe");
	for (int i = 0; i < 4; i++) {
		v[i] = calloc(batches, sizeof(double));
		if (!v[i])
			die("memory");
	}
	for (size_t i = 0; i < batches; i++) {
		v[0][i] = reads(bare_read, fds[0], 0, batch);
		v[1][i] = reads(read, fds[0], 0, batch);
		v[2][i] = writes(bare_write, event, &one, sizeof(one), batch);
		v[3][i] = writes(write, event, &one, sizeof(one), batch);
	}
	printf("pipe-read %.1f %.1f\n", median(v[0], batches), median(v[1], batches));
	printf("eventfd-write %.1f %.1f\n", median(v[2], batches), median(v[3], batches));
}

/* This process's environment with LD_PRELOAD=lib; empty is set too, so that both arms' environments have the same size or nearly. */
static char **preloading(const char *lib)
{
	size_t n = 0, kept = 0;
	char **env, *var = NULL;

	while (environ[n])
		n++;
	env = calloc(n + 2, sizeof(*env));
	if (!env || asprintf(&var, "LD_PRELOAD=%s", lib) < 0)
		die("memory");
	env[kept++] = var;
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", 11))
			env[kept++] = environ[i];
	return env;
}

/* Runs it to its end; nanoseconds. */
static double run(char **argv, char **env, struct rusage *usage)
{
	double start = now(CLOCK_MONOTONIC);
	int status;
	pid_t pid;

	errno = posix_spawnp(&pid, argv[0], NULL, NULL, argv, env);
	if (errno)
		die(argv[0]);
	if (wait4(pid, &status, 0, usage) != pid)
		die("wait4");
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		fprintf(stderr, "calls: %s failed (status %#x)\n", argv[0], status);
		exit(1);
	}
	return now(CLOCK_MONOTONIC) - start;
}

static void start(size_t n, const char *lib)
{
	char *argv[] = { "/bin/true", NULL };
	char **plain = preloading(""), **shim = preloading(lib);
	double *a = calloc(n, sizeof(*a)), *b = calloc(n, sizeof(*b));
	struct rusage usage;

	if (!a || !b)
		die("memory");
	for (size_t i = 0; i < n; i++) {
		a[i] = run(argv, plain, &usage);
		b[i] = run(argv, shim, &usage);
	}
	printf("start %.0f %.0f\n", median(a, n), median(b, n));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	find_libc();
	if (!strcmp(mode, "read") && argc == 5) {
		small_reads(argv[2], argv[3], strtoul(argv[4], NULL, 10));
	} else if (!strcmp(mode, "write") && argc == 5) {
		small_writes(argv[2], argv[3], strtoul(argv[4], NULL, 10));
	} else if (!strcmp(mode, "untuned") && argc == 3) {
		untuned(strtoul(argv[2], NULL, 10));
	} else if (!strcmp(mode, "start") && argc == 4) {
		start(strtoul(argv[2], NULL, 10), argv[3]);
	} else if (!strcmp(mode, "peak") && argc > 3) {
		struct rusage usage;

		run(argv + 3, preloading(argv[2]), &usage);
		printf("peak %ld\n", usage.ru_maxrss);
	} else {
		fprintf(stderr, "usage: calls read|write SMALL BARE N | untuned N | start N LIB | peak LIB CMD...\n");
		return 2;
	}
	return 0;
}
