/*
 * faults [-q] WANT OUT LOG LIBRARY -- PROGRAM [ARG ...]
 *
 * Runs the program, which is to make OUT, with the injecting library
 * again and again, each time with another call of the shim's failing. WANT is
 * what OUT must be; a program that failed has left a prefix of it (tar, which could
 * not read its input, an archive with zeros). -q: not every fault at every call, but each by turns.
 * Environment FAULTS_STDOUT=1: OUT is the program's standard output, for appending:
 * copy_file_range does not write to such.
 *
 * Prints "N faults, ..."; each violation has a line. Exit status 1 with any.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject_log.h"

#define SHORT  -1
#define ALWAYS 1000000
#define HUNG   -2 /* instead of a status */

static const struct {
	int error;
	const char *name;
} faults[] = {
	{EIO, "EIO"}, {ENOSPC, "ENOSPC"}, {EINTR, "EINTR"}, {EAGAIN, "EAGAIN"},
	{ENOMEM, "ENOMEM"}, {EINVAL, "EINVAL"}, {SHORT, "short"},
};
#define FAULTS (int)(sizeof(faults) / sizeof(*faults))

static struct inject_log *record, clean;
static const char *out, *log_path, *library;
static char **program;
static unsigned char *want;
static size_t want_size;
static long injected, successes, told, violations;

static unsigned char *slurp(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	unsigned char *p;

	*size = 0;
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st))
		err(2, "%s", path);
	p = malloc(st.st_size + 1);
	if (!p || read(fd, p, st.st_size) != st.st_size)
		err(2, "%s", path);
	*size = st.st_size;
	close(fd);
	return p;
}

/* One run: its wait status, or HUNG. */
static int run(int first, int count, int fault)
{
	struct timespec limit = {.tv_sec = 20};
	sigset_t child;
	char value[400];
	int status;

	memset(record, 0, offsetof(struct inject_log, call));
	unlink(out);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	pid_t pid = fork();

	if (pid < 0)
		err(2, "fork");
	if (!pid) {
		snprintf(value, sizeof(value), "%s:%d:%d:%d", log_path, first, count, fault);
		setenv("INJECT", value, 1);
		setenv("LD_PRELOAD", library, 1);
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 2);
		if (getenv("FAULTS_STDOUT"))
			dup2(open(out, O_WRONLY | O_CREAT | O_APPEND, 0644), 1);
		sigprocmask(SIG_UNBLOCK, &child, NULL);
		execvp(*program, program);
		_exit(127);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (sigtimedwait(&child, NULL, &limit) >= 0 || errno == EINTR)
			continue;
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return HUNG;
	}
	while (sigtimedwait(&child, NULL, &(struct timespec){0}) >= 0)
		;
	return status;
}

static void violation(const char *what, int first, int count, const char *fault)
{
	violations++;
	printf("%s: %s at call %d (%s), %s\n", what, fault, first, record->name,
		count == 1 ? "once" : count == ALWAYS ? "ever after" : "some times");
}

static void judge(int status, int first, int count, int fault, const char *name)
{
	size_t size;
	unsigned char *got;
	bool whole, prefix, data = strchr("RW", record->fired_class);

	injected++;
	if (status == HUNG) {
		violation("hangs", first, count, name);
		return;
	}
	got = slurp(out, &size);
	prefix = size <= want_size && (!size || !memcmp(got, want, size));
	whole = got && prefix && size == want_size;
	free(got);
	if (WIFSIGNALED(status))
		violation("dies of a signal", first, count, name);
	else if (!prefix && !(status && record->fired_class == 'R' && !strcmp(*program, "tar")))
		violation(status ? "not a prefix" : "wrong bytes and status 0", first, count, name);
	else if (!status && !whole)
		violation("bytes are lost and status 0", first, count, name);
	else if (!status && data && count == ALWAYS && (fault == EIO || fault == ENOSPC))
		violation("the program is not told", first, count, name);
	else if (status && record->fired_class == 'O')
		violation("the program is told of a fault of the shim's own", first, count, name);
	else if (status)
		told++;
	else
		successes++;
}

/* Is this fault one that such a call can have? */
static bool possible(char class, int error)
{
	if (error == SHORT)
		return strchr("RW", class);
	return !(class == 'R' && error == ENOSPC);
}

static void once(int first, int count, int i)
{
	int status = run(first, count, faults[i].error);

	/* The run made fewer calls this time: what is in flight is a matter of time. */
	if (record->fired)
		judge(status, first, count, faults[i].error, faults[i].name);
}

static void one_call(int n, bool quick)
{
	char class = clean.call[n].class;
	bool ever = strchr("RW", class);

	for (int i = 0; i < FAULTS; i++) {
		if (!possible(class, faults[i].error) || (quick && (n + i) % FAULTS))
			continue;
		once(n + 1, 1, i);
		/* For ever a call is not interrupted. */
		if (faults[i].error == EINTR || faults[i].error == SHORT)
			once(n + 1, 3, i);
		else if (ever)
			once(n + 1, ALWAYS, i);
	}
	for (int before = 0; before < n; before++)
		if (!strcmp(clean.call[before].name, clean.call[n].name))
			return;
	/* The first of its name: all of them, as if the kernel did not have it. */
	if (ever || class == 'P' || !strcmp(clean.call[n].name, "io_getevents"))
		return;
	for (int i = 0; i < (quick ? 1 : FAULTS); i++)
		if (possible(class, faults[i].error) && faults[i].error != EINTR)
			once(n + 1, ALWAYS, i);
}

int main(int argc, char **argv)
{
	bool quick = argc > 1 && !strcmp(argv[1], "-q");
	int fd;

	argv += quick;
	argc -= quick;
	if (argc < 7 || strcmp(argv[5], "--"))
		errx(2, "usage: faults [-q] WANT OUT LOG LIBRARY -- PROGRAM [ARG ...]");
	want = slurp(argv[1], &want_size);
	out = argv[2];
	log_path = argv[3];
	library = argv[4];
	program = argv + 6;
	fd = open(log_path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (!want || fd < 0 || ftruncate(fd, sizeof(*record)))
		err(2, "%s", want ? log_path : argv[1]);
	record = mmap(NULL, sizeof(*record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (record == MAP_FAILED)
		err(2, "mmap");
	if (run(0, 0, 0))
		errx(2, "the program fails without a fault");
	clean = *record;
	if (!clean.calls || clean.calls > INJECT_MOST)
		errx(2, "%d calls", clean.calls);
	for (int n = 0; n < clean.calls; n++)
		one_call(n, quick);
	printf("%ld faults at %d calls: %ld runs went well, %ld said so, %ld violations\n", injected,
		clean.calls, successes, told, violations);
	return violations != 0;
}
