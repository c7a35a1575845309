/*
 * System calls without libc: for the entry points that must work before libc
 * or this library is initialised, and for what the shim does for itself.
 * Each returns the kernel's answer: a value, or -errno.
 */
#ifndef SYS_H
#define SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/vfs.h>

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
#elif defined(__i386__)
/* Two of the registers hold the frame and the table of globals: they are kept around the call. */
static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	const long rest[] = {a, d, f};

	__asm__ volatile("pushl %%ebx\n\t"
			 "pushl %%ebp\n\t"
			 "movl (%%esi), %%ebx\n\t"
			 "movl 8(%%esi), %%ebp\n\t"
			 "movl 4(%%esi), %%esi\n\t"
			 "int $0x80\n\t"
			 "popl %%ebp\n\t"
			 "popl %%ebx"
			 : "+a"(nr), "+c"(b), "+d"(c), "+D"(e), "=S"(a)
			 : "S"(rest)
			 : "memory", "cc");
	return nr;
}
#else
#error "no system call stub for this architecture: x86-64, aarch64 and i386 are supported"
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

/*
 * Calls that take or return what a register of 32 bits does not hold; there the
 * kernel has others, whose structures are those of libc's large-file forms
 * (syscall(2), mmap2(2), lseek64(3)).
 */
#ifdef __LP64__
#define SYS_FSTAT   SYS_fstat
#define SYS_FSTATAT SYS_newfstatat
#define SYS_FCNTL   SYS_fcntl
#define SYS_GETEUID SYS_geteuid
#define SYS_OFF(o)  (o)
#define SYS_FTRUNCATE SYS_ftruncate

static inline long sys_mmap(void *at, size_t len, int prot, int flags, int fd, off64_t off)
{
	return sys(SYS_mmap, at, len, prot, flags, fd, off);
}

static inline long sys_fstatfs(int fd, struct statfs64 *st)
{
	return sys(SYS_fstatfs, fd, st);
}

static inline off64_t sys_lseek(int fd, off64_t off, int whence)
{
	return sys(SYS_lseek, fd, off, whence);
}
#else
#define SYS_FSTAT   SYS_fstat64
#define SYS_FSTATAT SYS_fstatat64
#define SYS_FCNTL   SYS_fcntl64
#define SYS_GETEUID SYS_geteuid32
#define SYS_FTRUNCATE SYS_ftruncate64
/* An offset, as two arguments: low and high. */
#define SYS_OFF(o)  (uint32_t)(o), (uint32_t)((uint64_t)(o) >> 32)

static inline long sys_mmap(void *at, size_t len, int prot, int flags, int fd, off64_t off)
{
	return sys(SYS_mmap2, at, len, prot, flags, fd, off >> 12);
}

static inline long sys_fstatfs(int fd, struct statfs64 *st)
{
	return sys(SYS_fstatfs64, fd, sizeof(*st), st);
}

static inline off64_t sys_lseek(int fd, off64_t off, int whence)
{
	off64_t at = 0;
	long r = sys(SYS__llseek, fd, (uint64_t)off >> 32, (uint32_t)off, &at, whence);

	return r ? r : at;
}
#endif

#endif
