/*
 * System calls without libc: for the entry points that must work before libc
 * or this library is initialised, and for what the shim does for itself.
 * Each returns the kernel's answer: a value, or -errno.
 */
#ifndef SYS_H
#define SYS_H

#include <stddef.h>
#include <sys/syscall.h>

#if __SIZEOF_LONG__ != 8
#error "libblktune is 64-bit for now: the 32-bit entry points need bodies of their own"
#endif

#if defined(__x86_64__)
static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#else
#error "no system call stub for this architecture: x86-64 and aarch64 are supported"
#endif

#define SYS_ARG_(nr, a, b, c, d, e, f, ...)                                                        \
	sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* sys(SYS_x, up to six arguments) */
#define sys(...) SYS_ARG_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* Is this answer of the kernel an error? (asm-generic/errno: 1 to 4095) */
static inline int sys_failed(long r)
{
	return (unsigned long)r > -4096UL;
}

#endif
