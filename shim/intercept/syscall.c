#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "../core/file.h"
#include "../core/process.h"
#include "../sys.h"
#include "syscall.h"

/* Makes a process that shares our descriptions, and perhaps our memory. */
static int forks(long nr, const long *a)
{
	switch (nr) {
#ifdef SYS_fork
	case SYS_fork:
		return 1;
#endif
	case SYS_clone:
		return a[0] & CLONE_VM ? 2 : 1;
	case SYS_clone3:
		/* Some ask with NULL whether the call is there. */
		if (!memory_ok_now((void *)a[0], sizeof(unsigned long long)))
			return 0;
		return *(const unsigned long long *)a[0] & CLONE_VM ? 2 : 1;
#ifdef SYS_vfork
	case SYS_vfork:
		return 2;
#endif
	default:
		return 0;
	}
}

#ifdef __LP64__

/* Calls whose first argument is a descriptor that they read, write, move or look at. */
static int takes_fd(long nr)
{
	switch (nr) {
	case SYS_read:
	case SYS_write:
	case SYS_pread64:
	case SYS_pwrite64:
	case SYS_readv:
	case SYS_writev:
	case SYS_preadv:
	case SYS_pwritev:
	case SYS_preadv2:
	case SYS_pwritev2:
	case SYS_lseek:
	case SYS_fstat:
	case SYS_ftruncate:
	case SYS_fallocate:
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_sync_file_range:
	case SYS_fadvise64:
	case SYS_readahead:
	case SYS_ioctl:
	case SYS_fcntl:
	case SYS_flock:
	case SYS_dup:
	case SYS_fchmod:
	case SYS_fchown:
	case SYS_fsetxattr:
	case SYS_fremovexattr:
	case SYS_copy_file_range:
	case SYS_sendfile:
	case SYS_splice:
#ifdef SYS_dup2
	case SYS_dup2:
#endif
	case SYS_dup3:
		return 1;
	default:
		return 0;
	}
}

/* Those of them that go wrong where the kernel refuses bytes of ours that come before them. */
static int needs_all(long nr)
{
	switch (nr) {
	case SYS_read:
	case SYS_write:
	case SYS_pread64:
	case SYS_pwrite64:
	case SYS_readv:
	case SYS_writev:
	case SYS_preadv:
	case SYS_pwritev:
	case SYS_preadv2:
	case SYS_pwritev2:
	case SYS_lseek:
	case SYS_ftruncate:
	case SYS_copy_file_range:
	case SYS_sendfile:
	case SYS_splice:
		return 1;
	default:
		return 0;
	}
}

/* Calls that find files by name, or all of them. */
static int looks_around(long nr)
{
	switch (nr) {
	case SYS_openat:
#ifdef SYS_openat2
	case SYS_openat2:
#endif
	case SYS_open_by_handle_at:
	case SYS_newfstatat:
	case SYS_statx:
	case SYS_truncate:
	case SYS_renameat2:
	case SYS_unlinkat:
	case SYS_linkat:
	case SYS_utimensat:
	case SYS_fchmodat:
	case SYS_fchownat:
	case SYS_sync:
	case SYS_syncfs:
	case SYS_msync:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_setxattr:
	case SYS_lsetxattr:
	case SYS_removexattr:
	case SYS_lremovexattr:
#ifdef SYS_renameat
	case SYS_renameat:
#endif
#ifdef SYS_open
	case SYS_open:
	case SYS_creat:
	case SYS_stat:
	case SYS_lstat:
	case SYS_rename:
	case SYS_unlink:
	case SYS_link:
	case SYS_chmod:
	case SYS_chown:
	case SYS_lchown:
	case SYS_utime:
	case SYS_utimes:
	case SYS_futimesat:
#endif
		return 1;
	default:
		return 0;
	}
}

/* Sets the limit on file size. */
static int limits(long nr, const long *a)
{
	if (nr == SYS_prlimit64)
		return a[2] && a[1] == RLIMIT_FSIZE;
	return nr == SYS_setrlimit && a[0] == RLIMIT_FSIZE;
}

static void submits(const long *a)
{
	struct iocb **list = (struct iocb **)a[2];

	for (long i = 0; i < a[1] && memory_ok_now(&list[i], sizeof(*list)); i++)
		if (memory_ok_now(list[i], sizeof(*list[i])))
			file_release_fd(list[i]->aio_fildes, REASON_AIO);
}

/* A number that the call takes away; where it fails, the file is the kernel's from now on. */
static int goes(int fd)
{
	file_release_fd(fd, REASON_RAW);
	return fdtable_close(fd);
}

static int closes(long nr, const long *a)
{
	if (nr == SYS_close)
		return goes(a[0]);
	if (nr == SYS_dup3)
		return goes(a[1]);
#ifdef SYS_dup2
	if (nr == SYS_dup2 && a[0] != a[1])
		return goes(a[1]);
#endif
	if (nr == SYS_close_range && !(a[2] & 4))
		for (int fd = fdtable_next((int)a[0] - 1); fd >= 0 && (unsigned)fd <= (unsigned)a[1];
			fd = fdtable_next(fd))
			goes(fd);
	return 0;
}

/* A call that names a file by its path, or by another descriptor, is going to cut it. */
static void cuts(long nr, const long *a)
{
	if (nr == SYS_truncate)
		file_settle_path(AT_FDCWD, (const char *)a[0], 0);
	else if (nr == SYS_ftruncate || nr == SYS_fallocate)
		file_settle_path(a[0], "", AT_EMPTY_PATH);
}

static void has_cut(long nr, const long *a, bool failed)
{
	if (nr == SYS_truncate)
		file_resized(AT_FDCWD, (const char *)a[0], 0, failed ? -1 : a[1]);
	else if (nr == SYS_ftruncate)
		file_resized(a[0], "", AT_EMPTY_PATH, failed ? -1 : a[1]);
	else if (nr == SYS_fallocate)
		file_resized(a[0], "", AT_EMPTY_PATH, -1);
}

/* The descriptors are the kernel's from now on: 0, or -errno of bytes that it refused. */
static int hands_over(long nr, const long *a)
{
	int e = takes_fd(nr) ? file_release_fd(a[0], REASON_RAW) : 0, other = 0;

	if (nr == SYS_copy_file_range || nr == SYS_splice)
		other = file_release_fd(a[2], REASON_RAW);
	else if (nr == SYS_sendfile)
		other = file_release_fd(a[1], REASON_RAW);
	return e ? e : other;
}

int syscall_before(long nr, const long *a, int *lost)
{
	int error = errno, kind = forks(nr, a), e;

	*lost = 0;
	if (file_off)
		return 0;
	e = hands_over(nr, a);
	if (e && needs_all(nr))
		return e;
	if (nr == SYS_fsync || nr == SYS_fdatasync)
		*lost = file_flush_fd(a[0]);
	cuts(nr, a);
	if (nr == SYS_mmap && !(a[3] & MAP_ANONYMOUS))
		file_release_inode(a[4], REASON_MAPPED);
	else if (nr == SYS_io_submit)
		submits(a);
	else if (nr == SYS_io_uring_setup)
		process_off(REASON_AIO);
	else if (nr == SYS_execve || nr == SYS_execveat)
		process_before_exec();
	else if (nr == SYS_exit) /* of the last thread it is the end of the process */
		file_settle_all();
	else if (nr == SYS_exit_group || nr == SYS_kill || nr == SYS_tgkill || nr == SYS_tkill)
		process_settle(nr == SYS_exit_group);
	else if (nr == SYS_seccomp || (nr == SYS_prctl && a[0] == PR_SET_SECCOMP))
		process_off(REASON_SECCOMP);
	else if (nr == SYS_unshare || nr == SYS_setns)
		process_before_namespace();
	else if (limits(nr, a))
		process_before_limit();
	else if (kind == 1)
		process_before_fork();
	else if (kind == 2)
		process_off(REASON_RAW);
	if (looks_around(nr))
		file_drain_all();
	if (!*lost)
		*lost = closes(nr, a);
	errno = error;
	return 0;
}

static void opened(int fd, int flags)
{
	fdtable_open(fd, flags, NULL);
	file_release_fd(fd, REASON_RAW);
}

/* Hands out a number for what is not a file of ours. */
static int makes(long nr, const long *a)
{
	switch (nr) {
	case SYS_fcntl:
		return a[1] == F_DUPFD || a[1] == F_DUPFD_CLOEXEC;
	case SYS_dup:
	case SYS_dup3:
#ifdef SYS_dup2
	case SYS_dup2:
#endif
	case SYS_memfd_create:
	case SYS_socket:
	case SYS_accept:
	case SYS_accept4:
	case SYS_eventfd2:
	case SYS_epoll_create1:
	case SYS_timerfd_create:
	case SYS_signalfd4:
	case SYS_inotify_init1:
#ifdef SYS_pidfd_getfd
	case SYS_pidfd_open:
	case SYS_pidfd_getfd:
#endif
		return 1;
	default:
		return 0;
	}
}

void syscall_after(long nr, const long *a, long result)
{
	has_cut(nr, a, result < 0);
	if (forks(nr, a) == 1)
		process_after_fork(result == 0);
	else if (result >= 0 && limits(nr, a))
		process_after_limit();
	/* Not ours, but known: a second description of a file that is. */
	else if (result >= 0 && (nr == SYS_openat || nr == SYS_open_by_handle_at))
		opened(result, a[2]);
#ifdef SYS_openat2
	else if (result >= 0 && nr == SYS_openat2) /* its flags begin what it is given */
		opened(result, *(const unsigned long long *)a[2]);
#endif
#ifdef SYS_open
	else if (result >= 0 && nr == SYS_open)
		opened(result, a[1]);
	else if (result >= 0 && nr == SYS_creat)
		opened(result, O_WRONLY | O_TRUNC);
#endif
	else if (result >= 0 && makes(nr, a))
		fdtable_reset(result);
	else if (!result && (nr == SYS_pipe2 || nr == SYS_socketpair))
		for (int i = 0; i < 2; i++)
			fdtable_reset(((const int *)a[nr == SYS_pipe2 ? 0 : 3])[i]);
}

#else

/* Calls that neither see files nor change what a later one sees of them. */
static bool harmless(long nr)
{
	switch (nr) {
	case SYS_gettid:
	case SYS_getpid:
	case SYS_getppid:
	case SYS_getcpu:
	case SYS_getrandom:
	case SYS_futex:
	case SYS_futex_time64:
	case SYS_membarrier:
	case SYS_sched_yield:
	case SYS_sched_getaffinity:
	case SYS_sched_setaffinity:
	case SYS_ioprio_get:
	case SYS_ioprio_set:
	case SYS_clock_gettime:
	case SYS_clock_gettime64:
	case SYS_gettimeofday:
		return true;
	default:
		return false;
	}
}

/* Arguments are laid out in other ways for call after call here: what is not harmless ends the tuning. */
int syscall_before(long nr, const long *a, int *lost)
{
	*lost = 0;
	if (file_off || harmless(nr))
		return 0;
	if (forks(nr, a) == 1)
		process_before_fork();
	else
		process_off(REASON_RAW);
	return 0;
}

void syscall_after(long nr, const long *a, long result)
{
	if (forks(nr, a) == 1)
		process_after_fork(result == 0);
}

#endif
