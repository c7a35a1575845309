/* copy_file_range(2) and sendfile(2) between two files of ours, without copying in memory. */
#ifndef PUMP_H
#define PUMP_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Copies up to n bytes between the positions of two descriptors, or from
 * *from_off when that is given. The count, 0 at the end of the file, or
 * -errno. PUMP_NOT: this pair is not the pump's, and both are settled: make
 * the kernel's call, then pump_after.
 */
#define PUMP_NOT (-100000)
ssize_t pump(int from, off64_t *from_off, int to, size_t n, int share);
/* Settles both for a call that is the kernel's in any case: PUMP_NOT or -errno. */
ssize_t pump_not(int from, int to);
void pump_after(int from, int to, ssize_t moved);

#endif
