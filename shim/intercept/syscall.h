/* syscall(2) with a number that this shim would otherwise have seen as a call. */
#ifndef SYSCALL_H
#define SYSCALL_H

/* a: the six arguments. May be called for any number. */
void syscall_before(long nr, const long *a);
void syscall_after(long nr, const long *a, long result);

#endif
