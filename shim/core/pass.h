/*
 * Calls on descriptors that are not ours, as libc's: -1 and errno. They may
 * wait, and what is held must not wait with them.
 */
#ifndef PASS_H
#define PASS_H

#include <errno.h>
#include <poll.h>

#include "../real.h"
#include "file.h"
#include "process.h"
#include "progress.h"

static inline int before_block(int fd, short events)
{
	if (__builtin_expect(!__atomic_load_n(&file_dirty, __ATOMIC_RELAXED), 1))
		return 0;
	int e = process_before_block(fd, events);
	errno = e ? -e : errno;
	return e;
}

/*
 * What is read may be word from somebody who has changed a file. Said before
 * the call, so that the call is the last thing done: a return more, behind a
 * system call, costs a mispredicted branch.
 */
static inline void heard(void)
{
	if (__builtin_expect(__atomic_load_n(&file_tuned, __ATOMIC_RELAXED), 0))
		__atomic_store_n(&file_epoch, file_epoch + 1, __ATOMIC_RELEASE);
}

/* What is written may be word to a child, which then looks. */
static inline int before_word(int fd)
{
	if (__builtin_expect(__atomic_load_n(&progress_shown, __ATOMIC_RELAXED), 0))
		progress_clear(fd);
	if (__builtin_expect(!__atomic_load_n(&file_dirty, __ATOMIC_RELAXED), 1))
		return 0;
	if (!__atomic_load_n(&file_forked, __ATOMIC_RELAXED))
		return before_block(fd, POLLOUT);
	file_drain_all();
	return 0;
}

/*
 * The same calls while something is held, or progress shown. Away from the rest:
 * the short way ends in a jump, and saves no register.
 */
ssize_t pass_read_held(int fd, void *buf, size_t n);
ssize_t pass_write_held(int fd, const void *buf, size_t n);
ssize_t pass_readv_held(int fd, const struct iovec *v, int n);
ssize_t pass_writev_held(int fd, const struct iovec *v, int n);

static inline bool pass_reads(void)
{
	return __builtin_expect(!__atomic_load_n(&file_dirty, __ATOMIC_RELAXED), 1);
}

static inline bool pass_writes(void)
{
	return pass_reads() && __builtin_expect(!__atomic_load_n(&progress_shown, __ATOMIC_RELAXED), 1);
}

static inline ssize_t pass_read(int fd, void *buf, size_t n)
{
	heard();
	return pass_reads() ? real.read(fd, buf, n) : pass_read_held(fd, buf, n);
}

static inline ssize_t pass_write(int fd, const void *buf, size_t n)
{
	return pass_writes() ? real.write(fd, buf, n) : pass_write_held(fd, buf, n);
}

static inline ssize_t pass_readv(int fd, const struct iovec *v, int n)
{
	heard();
	return pass_reads() ? real.readv(fd, v, n) : pass_readv_held(fd, v, n);
}

static inline ssize_t pass_writev(int fd, const struct iovec *v, int n)
{
	return pass_writes() ? real.writev(fd, v, n) : pass_writev_held(fd, v, n);
}

#endif
