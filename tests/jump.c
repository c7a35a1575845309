/*
 * jump out|within|raise FILE COUNT [thread|stack ...]: writes records of 16 bytes, then
 * reads them, while a timer's handler comes in on top and
 *   out     leaves by siglongjmp, until COUNT times
 *   within  jumps inside itself, writes records of its own, and returns
 *   raise   is called by raise(3) between the records, and leaves by siglongjmp; then
 *           100 000 records without
 * With thread a second thread asks for the file's position all the time (within: writes
 * records, too), with stack the handler has a stack of its own. A record is its number
 * twice; they ascend where there is one flow that writes them, and none is torn. Prints
 * how many records are there beside the number of those known to be written.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

struct record {
	uint64_t number, again;
};

static sigjmp_buf out;
static volatile sig_atomic_t armed, jumps, over;
static volatile uint64_t number, from_handler, from_thread;
static char how;
static int fd;

static _Noreturn void fail(const char *what)
{
	perror(what);
	_exit(1);
}

static void put(void)
{
	struct record r;

	r.number = ++number;
	r.again = r.number;
	if (write(fd, &r, sizeof(r)) != sizeof(r))
		fail("write");
}

static void handler(int sig)
{
	volatile int inner = 0;
	jmp_buf here;

	(void)sig;
	if (!armed)
		return;
	if (how != 'w') {
		jumps++;
		siglongjmp(out, 1);
	}
	jumps++;
	if (!setjmp(here)) {
		inner = 1;
		longjmp(here, 1);
	}
	if (!inner)
		fail("setjmp");
	/* every now and then as many as fill a block, which is then sent off */
	for (int i = 0, most = jumps % 16 ? 1 : 5000; i < most; i++, from_handler++)
		put();
}

static void *other(void *unused)
{
	(void)unused;
	while (!over) {
		if (how == 'w') {
			put();
			from_thread++;
		} else if (lseek(fd, 0, SEEK_CUR) < 0)
			fail("lseek in a thread");
	}
	return NULL;
}

static void timer(suseconds_t us)
{
	struct itimerval t = {{0, us}, {0, us}};

	setitimer(ITIMER_REAL, &t, NULL);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct record r, last = {0};
	volatile uint64_t written = 0;
	volatile uint64_t there = 0;
	int count = argc > 3 ? atoi(argv[3]) : 0;
	pthread_t t;
	volatile int threads = 0;
	sigset_t alarm;

	if (count < 1 || (fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0644)) < 0) {
		fprintf(stderr, "usage: jump out|within|raise FILE COUNT [thread|stack ...]\n");
		return 2;
	}
	how = argv[1][0];
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	for (int i = 4; i < argc; i++) {
		if (!strcmp(argv[i], "thread")) {
			pthread_sigmask(SIG_BLOCK, &alarm, NULL);
			threads = !pthread_create(&t, NULL, other, NULL);
			pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
		} else {
			stack_t s = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};

			action.sa_flags |= SA_ONSTACK;
			if (!s.ss_sp || sigaltstack(&s, NULL))
				fail("sigaltstack");
		}
	}
	if (sigaction(SIGALRM, &action, NULL))
		fail("sigaction");
	/* a file is looked at with its first calls; leaving those is not asked here */
	for (int i = 0; i < 4; i++, written++)
		put();
	/* each jump lands here */
	sigsetjmp(out, 1);
	if (how != 'r')
		timer(61);
	armed = 1;
	while (jumps < count) {
		put();
		written++;
		if (how == 'r')
			raise(SIGALRM);
	}
	armed = 0;
	timer(0);
	for (int i = 0; how == 'r' && i < 100000; i++, written++)
		put();
	if (how == 'w') {
		over = 1;
		if (threads && pthread_join(t, NULL))
			fail("pthread_join");
		threads = 0;
		written += from_handler + from_thread;
	}
	/* and the same where it reads */
	if (lseek(fd, 0, SEEK_SET))
		fail("lseek");
	for (ssize_t n; (n = read(fd, &r, sizeof(r))) != 0; there++) {
		if (n != sizeof(r))
			fail("read");
		if (r.number != r.again || (how != 'w' && r.number <= last.number)) {
			fprintf(stderr, "jump: record %llu: %llx %llx\n", (unsigned long long)there,
				(unsigned long long)r.number, (unsigned long long)r.again);
			return 1;
		}
		last = r;
	}
	jumps = 0;
	if (how == 'o') {
		lseek(fd, 0, SEEK_SET);
		if (!sigsetjmp(out, 1))
			timer(61);
		armed = 1;
		while (jumps < count) {
			ssize_t n = read(fd, &r, sizeof(r));

			if (n < 0 || (n && (n != sizeof(r) || r.number != r.again)))
				fail("read while jumping");
			if (!n)
				lseek(fd, 0, SEEK_SET);
		}
		armed = 0;
		timer(0);
	}
	over = 1;
	if (threads && pthread_join(t, NULL))
		fail("pthread_join");
	if (close(fd))
		fail("close");
	printf("%llu records there, %llu known\n", (unsigned long long)there, (unsigned long long)written);
	return how == 'w' ? there != written : there < written;
}
