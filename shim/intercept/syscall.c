#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "../core/file.h"
#include "../core/process.h"
#include "../sys.h"
#include "syscall.h"

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

/* The resource whose limit is set, or -1. */
static int limits(long nr, const long *a)
{
	if (nr == SYS_prlimit64)
		return a[2] ? (int)a[1] : -1;
	return nr == SYS_setrlimit ? (int)a[0] : -1;
}

static void submits(const long *a)
{
	struct iocb **list = (struct iocb **)a[2];

	for (long i = 0; i < a[1] && memory_ok_now(&list[i], sizeof(*list)); i++)
		if (memory_ok_now(list[i], sizeof(*list[i])))
			file_release_fd(list[i]->aio_fildes, REASON_AIO);
}

/* A number that the call takes away; where it fails, the file is the kernel's from now on. */
static void goes(int fd)
{
	file_release_fd(fd, REASON_RAW);
	fdtable_close(fd);
}

static void closes(long nr, const long *a)
{
	if (nr == SYS_close)
		goes(a[0]);
	else if (nr == SYS_dup3)
		goes(a[1]);
#ifdef SYS_dup2
	else if (nr == SYS_dup2 && a[0] != a[1])
		goes(a[1]);
#endif
	else if (nr == SYS_close_range && !(a[2] & 4))
		for (int fd = fdtable_next((int)a[0] - 1); fd >= 0 && (unsigned)fd <= (unsigned)a[1];
			fd = fdtable_next(fd))
			goes(fd);
}

void syscall_before(long nr, const long *a)
{
	int error = errno, kind = forks(nr, a);

	if (file_off)
		return;
	if (takes_fd(nr))
		file_release_fd(a[0], REASON_RAW);
	if (nr == SYS_copy_file_range || nr == SYS_splice)
		file_release_fd(a[2], REASON_RAW);
	else if (nr == SYS_sendfile)
		file_release_fd(a[1], REASON_RAW);
	else if (nr == SYS_mmap && !(a[3] & MAP_ANONYMOUS))
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
	else if (limits(nr, a) >= 0)
		process_before_limit(limits(nr, a));
	else if (kind == 1)
		process_before_fork();
	else if (kind == 2)
		process_off(REASON_RAW);
	if (looks_around(nr))
		file_drain_all();
	closes(nr, a);
	errno = error;
}

static void opened(int fd, int flags)
{
	fdtable_open(fd, flags, NULL);
	file_release_fd(fd, REASON_RAW);
}

void syscall_after(long nr, const long *a, long result)
{
	if (forks(nr, a) == 1)
		process_after_fork(result == 0);
	else if (result >= 0 && limits(nr, a) >= 0)
		process_after_limit(limits(nr, a));
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
	/* A number that was handed out unseen: what it names is not ours. */
	else if (result >= 0 && ( nr == SYS_dup || nr == SYS_dup3 ||
				 nr == SYS_memfd_create || nr == SYS_socket || nr == SYS_accept4))
		fdtable_reset(result);
}
