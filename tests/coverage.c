/*
 * For the coverage build only: a process that ends, or becomes another
 * program, without libc's exit handlers has its counts written before.
 */
#include <stdbool.h>

void __gcov_dump(void);

void __real_process_before_exec(void);
void __wrap_process_before_exec(void);
void __wrap_process_before_exec(void)
{
	__real_process_before_exec();
	__gcov_dump();
}

void __real_process_settle(bool ends);
void __wrap_process_settle(bool ends);
void __wrap_process_settle(bool ends)
{
	__real_process_settle(ends);
	if (ends)
		__gcov_dump();
}
