/*
 * The kernel answers EFAULT for memory that is not there; a copy in user
 * space would die. So memory that a file's calls have not used before is shown
 * to the kernel first, and remembered a page at a time.
 */
#include <errno.h>
#include <linux/mman.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "../sys.h"
#include "file.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22 /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

uintptr_t page_size(void)
{
	static uintptr_t size;

	if (!size)
		size = getauxval(AT_PAGESZ);
	return size;
}

/* rt_sigprocmask(2) reads its set before it looks at how: EFAULT or EINVAL, and no effect. */
static bool readable(uintptr_t p)
{
	return sys(SYS_rt_sigprocmask, ~0, p, 0, 8) != -EFAULT;
}

/* Does the kernel know MADV_POPULATE_READ? It says EINVAL for a lack of permission, too. */
static bool populate_known(void)
{
	char here;
	uintptr_t size = page_size(), page = (uintptr_t)&here & ~(size - 1);

	return !sys_failed(sys(SYS_madvise, page, size, MADV_POPULATE_READ));
}

/*
 * What a thread's calls have used last, for reading and for writing: programs
 * use one buffer for file after file.
 */
static __thread struct {
	uintptr_t low, high;
} last[2] __attribute__((tls_model("initial-exec")));

static bool accessible(uintptr_t low, uintptr_t high, bool write)
{
	long r = sys(SYS_madvise, low, high - low,
		write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);

	if (!sys_failed(r))
		return true;
	if (r != -EINVAL || populate_known())
		return false;
	/* Whether memory can be written is not to be seen on such a kernel. */
	for (uintptr_t at = low; at < high; at += page_size())
		if (!readable(at))
			return false;
	return true;
}

bool memory_ok(struct file *f, const void *p, size_t n, bool write)
{
	uintptr_t page = page_size(), low = (uintptr_t)p & ~(page - 1), high;

	if (__builtin_add_overflow((uintptr_t)p, n + page - 1, &high))
		return false;
	high &= ~(page - 1);
	if (f->ok_doing != (write ? READING : WRITING)) {
		f->ok_low = f->ok_high = 0;
		f->ok_doing = write ? READING : WRITING;
	}
	if (low >= f->ok_low && high <= f->ok_high)
		return true;
	if (low < last[write].low || high > last[write].high) {
		if (!accessible(low, high, write))
			return false;
		last[write].low = low;
		last[write].high = high;
	}
	if (low <= f->ok_high && high >= f->ok_low && f->ok_high) {
		low = low < f->ok_low ? low : f->ok_low;
		high = high > f->ok_high ? high : f->ok_high;
	}
	f->ok_low = low;
	f->ok_high = high;
	return true;
}

bool memory_ok_now(const void *p, size_t n)
{
	struct file none = {0};

	return memory_ok(&none, p, n, false);
}
