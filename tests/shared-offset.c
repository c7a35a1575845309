// Several threads, a signal handler or children on one open file. FILE SITUATION; prints what
// every run has to print, bare or not. FILE record N: puts that record on standard output.
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, EACH = 2000, RECORD = 512, ALL = THREADS * EACH };

static int fd;
static char seen[ALL];
static volatile sig_atomic_t ticks;

static void put(int number)
{
	char record[RECORD];

	memset(record, 'a' + number % 26, sizeof(record));
	memcpy(record, &number, sizeof(number));
	if (write(fd, record, sizeof(record)) != sizeof(record))
		err(1, "write");
}

// Every record whole, each number below n exactly once.
static void judge(int n)
{
	char record[RECORD];
	int number, count = 0;
	ssize_t got;

	while ((got = pread(fd, record, sizeof(record), (off_t)count * RECORD)) == RECORD) {
		memcpy(&number, record, sizeof(number));
		if (number < 0 || number >= n || seen[number]++)
			errx(1, "record %d: number %d is wrong or there twice", count, number);
		for (size_t i = sizeof(number); i < sizeof(record); i++)
			if (record[i] != 'a' + number % 26)
				errx(1, "record %d is torn", count);
		count++;
	}
	if (got != 0 || count != n)
		errx(1, "%d records of %d, then %zd", count, n, got);
}

static void *writer(void *arg)
{
	for (int i = 0, base = *(int *)arg * EACH; i < EACH; i++)
		put(base + i);
	return NULL;
}

static void *reader(void *arg)
{
	char record[RECORD];
	int number;

	(void)arg;
	while (read(fd, record, sizeof(record)) == sizeof(record)) {
		memcpy(&number, record, sizeof(number));
		if (number < 0 || number >= ALL || __atomic_fetch_add(&seen[number], 1, __ATOMIC_RELAXED))
			errx(1, "number %d is wrong or read twice", number);
	}
	return NULL;
}

static void together(void *(*body)(void *))
{
	pthread_t thread[THREADS];
	int number[THREADS];

	for (int i = 0; i < THREADS; i++) {
		number[i] = i;
		if (pthread_create(&thread[i], NULL, body, &number[i]))
			errx(1, "pthread_create");
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static void writers(void)
{
	together(writer);
	judge(ALL);
}

static void readers(void)
{
	together(writer);
	lseek(fd, 0, SEEK_SET);
	together(reader);
	for (int i = 0; i < ALL; i++)
		if (seen[i] != 1)
			errx(1, "number %d was read %d times", i, seen[i]);
}

// Writes to the file whose write it interrupts. A number is drawn before the write, so that the
// handler draws another.
static volatile sig_atomic_t next;

static void tick(int sig)
{
	(void)sig;
	if (next < ALL)
		put(__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED));
	ticks++;
}

static void handler(void)
{
	struct itimerval every = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};

	signal(SIGALRM, tick);
	setitimer(ITIMER_REAL, &every, NULL);
	while (next < ALL - 1 || ticks == 0)
		put(__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED));
	setitimer(ITIMER_REAL, &never, NULL);
	judge(next);
}

// A child that no fork() made: libc and its fork handlers hear nothing of it.
static void clone_raw(void)
{
	int status;
	pid_t pid;

	for (int i = 0; i < 10; i++)
		put(i);
	pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid < 0)
		err(1, "clone");
	if (pid == 0) {
		for (int i = 10; i < 20; i++)
			put(i);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		errx(1, "child: %#x", status);
	for (int i = 20; i < 30; i++)
		put(i);
	judge(30);
}

// Cancelled in the middle of writing; whoever comes after must not find a lock held.
static void *forever(void *arg)
{
	(void)arg;
	for (int i = 0;; i++) {
		put(0);
		if (i % 1000 == 999)
			lseek(fd, 0, SEEK_SET);
	}
	return NULL;
}

static void cancel(void)
{
	pthread_t thread;
	void *result;

	for (int i = 0; i < 100; i++) {
		pthread_create(&thread, NULL, forever, NULL);
		usleep(i * 20);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		if (result != PTHREAD_CANCELED)
			errx(1, "not cancelled");
		lseek(fd, 0, SEEK_SET);
		put(0);
	}
	if (ftruncate(fd, RECORD))
		err(1, "ftruncate");
	judge(1);
}

// A thread goes on with a number whose file is closed, and which is another file's next.
enum { GENERATIONS = 150 };

static const char *path;
static volatile int over;

static int open_generation(int n, int flags)
{
	char name[4096];

	snprintf(name, sizeof(name), "%s.%d", path, n);
	return open(name, flags, 0644);
}

static void *write_on(void *count)
{
	char record[RECORD];
	int number = 0;

	while (!over) {
		memset(record, 'a' + number % 26, sizeof(record));
		memcpy(record, &number, sizeof(number));
		if (write(fd, record, sizeof(record)) == sizeof(record))
			number++;
		else if (errno != EBADF)
			err(1, "write");
	}
	*(int *)count = number;
	return NULL;
}

static void *read_on(void *unused)
{
	int last = -1, file = -1, record[RECORD / sizeof(int)];

	while (!over) {
		ssize_t n = read(fd, record, sizeof(record));

		if (n < 0 && errno != EBADF)
			err(1, "read");
		if (n <= 0)
			continue;
		if (n != sizeof(record) || (record[1] && (record[1] != last + 1 || record[0] != file)))
			errx(1, "record %d of file %d after %d of %d", record[1], record[0], last, file);
		file = record[0];
		last = record[1];
	}
	return unused;
}

static void close_written(void)
{
	char record[RECORD];
	int count, there = 0, number;
	pthread_t thread;

	close(fd);
	if (open_generation(0, O_RDWR | O_CREAT) != fd || pthread_create(&thread, NULL, write_on, &count))
		err(1, "start");
	for (int n = 1; n < GENERATIONS; n++) {
		usleep(n % 8 * 50);
		if (close(fd) || open_generation(n, O_RDWR | O_CREAT) != fd)
			err(1, "generation %d", n);
	}
	over = 1;
	pthread_join(thread, NULL);
	close(fd);
	for (int n = 0; n < GENERATIONS; n++, close(fd)) {
		if (open_generation(n, O_RDONLY) != fd)
			err(1, "generation %d", n);
		for (; read(fd, record, sizeof(record)) == sizeof(record); there++) {
			memcpy(&number, record, sizeof(number));
			if (number != there || record[RECORD - 1] != 'a' + number % 26)
				errx(1, "record %d of %d in file %d", number, there, n);
		}
	}
	if (there != count)
		errx(1, "%d records of %d", there, count);
}

static void close_read(void)
{
	int record[RECORD / sizeof(int)] = {0};
	pthread_t thread;

	for (record[0] = 0; record[0] < 2; record[0]++) {
		close(fd);
		if (open_generation(record[0], O_RDWR | O_CREAT) != fd)
			err(1, "open");
		for (record[1] = 0; record[1] < 20000; record[1]++)
			if (write(fd, record, sizeof(record)) != sizeof(record))
				err(1, "write");
	}
	close(fd);
	if (open_generation(0, O_RDONLY) != fd || pthread_create(&thread, NULL, read_on, NULL))
		err(1, "start");
	for (int n = 1; n < GENERATIONS; n++) {
		usleep(n % 8 * 50);
		if (close(fd) || open_generation(n % 2, O_RDONLY) != fd)
			err(1, "generation %d", n);
	}
	over = 1;
	pthread_join(thread, NULL);
}

// Others write while one forks, and the children write too.
static void *write_own(void *arg)
{
	int n = *(int *)arg, own = open_generation(n, O_RDWR | O_CREAT), count = 0, record[RECORD / sizeof(int)] = {0};

	for (; !over; count++) {
		record[0] = record[RECORD / sizeof(int) - 1] = count;
		if (write(own, record, sizeof(record)) != sizeof(record))
			err(1, "write");
	}
	for (int i = 0; i < count; i++)
		if (pread(own, record, sizeof(record), (off_t)i * RECORD) != sizeof(record) ||
			record[0] != i || record[RECORD / sizeof(int) - 1] != i)
			errx(1, "thread %d: record %d of %d", n, i, count);
	if (lseek(own, 0, SEEK_CUR) != (off_t)count * RECORD || lseek(own, 0, SEEK_END) != (off_t)count * RECORD)
		errx(1, "thread %d: its file is not %d records", n, count);
	return NULL;
}

static void forking(void)
{
	pthread_t thread[3];
	int number[3], status;

	for (int t = 0; t < 3; t++) {
		number[t] = t;
		pthread_create(&thread[t], NULL, write_own, &number[t]);
	}
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();

		if (pid < 0)
			err(1, "fork");
		if (!pid) {
			put(2 * i);
			_exit(0);
		}
		put(2 * i + 1);
		if (waitpid(pid, &status, 0) != pid || status)
			err(1, "child: status %d", status);
	}
	over = 1;
	for (int t = 0; t < 3; t++)
		pthread_join(thread[t], NULL);
	judge(200);
}

static void become_daemon(void)
{
	for (int i = 0; i < 1000; i++)
		put(i);
	if (daemon(1, 1))
		err(1, "daemon");
	for (int i = 1000; i < ALL; i++)
		put(i);
	judge(ALL);
}

// As shells and Python start programs: the child closes, and hands the file on as its output.
static void vforking(void)
{
	int status;

	for (int i = 0; i < 40; i++) {
		char number[16];
		volatile int failed = 0;

		for (int j = 0; j < 100; j++)
			put(i * 102 + j);
		snprintf(number, sizeof(number), "%d", i * 102 + 100);
		pid_t pid = vfork();

		if (!pid) {
			if (i % 2) {
				close(0);
				if (dup2(fd, 1) != 1 || close(fd))
					failed = 1;
				execl("/proc/self/exe", "record", path, "record", number, NULL);
			} else {
				close(fd);
				execl("/nonexistent", "record", NULL);
				execl("/bin/true", "true", NULL);
			}
			_exit(1);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status || failed)
			err(1, "child: status %d", status);
		if (i % 2 == 0)
			put(i * 102 + 100);
		put(i * 102 + 101);
	}
	judge(40 * 102);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {{"writers", writers}, {"readers", readers},
		{"handler", handler}, {"clone", clone_raw}, {"cancel", cancel},
		{"close-written", close_written}, {"close-read", close_read}, {"forking", forking},
		{"daemon", become_daemon}, {"vforking", vforking}};

	if (argc == 4 && !strcmp(argv[2], "record")) {
		fd = 1;
		put(atoi(argv[3]));
		return 0;
	}
	if (argc != 3 || (fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644)) < 0)
		err(1, "%s", argc > 1 ? argv[1] : "usage");
	path = argv[1];
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(argv[2], all[i].name)) {
			all[i].run();
			puts("whole");
			return 0;
		}
	errx(1, "no situation %s", argv[2]);
}
