/*
 * filter ANSWER CALL[,CALL...] PROGRAM [ARG ...]: runs the program under a seccomp
 * filter that answers the calls with EPERM or ENOSYS, or kills who makes one (KILL).
 *
 * filter probe: prints, for io_uring_setup and then io_setup, "yes" or why not.
 */
#include <err.h>
#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned number;
} calls[] = {
	{"io_uring_setup", SYS_io_uring_setup},
	{"io_uring_enter", SYS_io_uring_enter},
	{"io_setup", SYS_io_setup},
	{"io_submit", SYS_io_submit},
	{"cachestat", 451},
};

static const struct {
	const char *name;
	unsigned value;
} answers[] = {
	{"EPERM", SECCOMP_RET_ERRNO | EPERM},
	{"ENOSYS", SECCOMP_RET_ERRNO | ENOSYS},
	{"KILL", SECCOMP_RET_KILL_PROCESS},
};

static unsigned number_of(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (!strcmp(calls[i].name, name))
			return calls[i].number;
	errx(2, "no call %s", name);
}

static unsigned value_of(const char *name)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if (!strcmp(answers[i].name, name))
			return answers[i].value;
	errx(2, "no answer %s", name);
}

static void install(unsigned answer, char *list)
{
	struct sock_filter code[32];
	struct sock_fprog program = {.filter = code};
	unsigned n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (char *name = strtok(list, ","); name && n < 30; name = strtok(NULL, ",")) {
		code[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, number_of(name), 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		err(1, "seccomp filter");
}

static void probe(void)
{
	struct io_uring_params p = {0};
	aio_context_t context = 0;

	puts(syscall(SYS_io_uring_setup, 128, &p) < 0 ? strerror(errno) : "yes");
	puts(syscall(SYS_io_setup, 128, &context) < 0 ? strerror(errno) : "yes");
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "probe")) {
		probe();
		return 0;
	}
	if (argc < 4)
		errx(2, "usage: filter ANSWER CALL[,CALL...] PROGRAM [ARG ...]");
	install(value_of(argv[1]), argv[2]);
	execvp(argv[3], argv + 3);
	err(127, "%s", argv[3]);
}
