/* Counts of one direction of a file, for the report. */
#ifndef COUNTS_H
#define COUNTS_H

#include <stdint.h>

struct counts {
	uint64_t calls, bytes;     /* the program's */
	uint64_t transfers, moved; /* the kernel's; moved in bytes */
	uint64_t smallest, largest; /* transfer, bytes; 0 while there was none */
	uint64_t direct;           /* transfers with O_DIRECT */
	uint64_t direct_bytes;     /* of moved, theirs */
	uint64_t waited;           /* ns in the kernel, waiting for them; kept for the report only */
};

#endif
