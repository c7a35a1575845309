/* syscall(2) with a number that this shim would otherwise have seen as a call. */
#ifndef SYSCALL_H
#define SYSCALL_H

/*
 * a: the six arguments. May be called for any number. 0, or -errno of bytes that
 * the kernel refused, instead of the call. *lost: -errno for the call to say when
 * it succeeds, or 0: such bytes of a file that it closes or puts on the disk.
 */
int syscall_before(long nr, const long *a, int *lost);
void syscall_after(long nr, const long *a, long result);

#endif
