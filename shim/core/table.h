/* The report for people; the library's at the end of a process, the launcher's over many. */
#ifndef TABLE_H
#define TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "counts.h"
#include "text.h"

#define TABLE_FILES 20 /* most lines of single files; the rest is counted together */

/* One file, as reported. */
struct row {
	const char *host; /* shown before the path; NULL: not shown */
	const char *path;
	const char *mode, *reason;
	struct counts read, write;
	uint64_t open; /* ns from its opening to its last close; 0 not known */
};

struct table {
	const struct row *top[TABLE_FILES]; /* by bytes, the most first */
	int shown;
	uint64_t folded; /* files that are not in top */
	struct counts folded_read, folded_write, read, write; /* sums; the last two of all */
};

/* Adds a file; the row must stay until table_put. */
void table_add(struct table *t, const struct row *r);
/* Writes the table. elapsed: ns that it all took, for the rate of the total. */
void table_put(struct text *text, const struct table *t, uint64_t elapsed);

void counts_add(struct counts *to, const struct counts *c);
/* A size in binary units: "512 B", "64 KiB", "1.5 GiB". */
const char *table_size(char *to, size_t room, double bytes);

#endif
