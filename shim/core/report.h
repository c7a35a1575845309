/* What was done, for BLKTUNE_REPORT: per file counts, written at exit. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>

#include "file.h"

/* Counts are wanted, also those of files that are passed through: for the report, or for progress. */
extern bool report_on;

/* Around waiting for the kernel; only where somebody asks is the clock read. */
static inline uint64_t wait_begin(void)
{
	return __builtin_expect(report_on, 0) ? clock_exact() : 0;
}

static inline void wait_end(struct counts *c, uint64_t since)
{
	if (__builtin_expect(since != 0, 0))
		c->waited += clock_exact() - since;
}

/* The program is about to run: its name, the clock. */
void report_init(void);
/* A path made absolute, for as long as the process lives; NULL where nothing asks for it. */
const char *report_path(const char *path);
/* For a path that is relative to a directory's descriptor: what to give to report_path. */
const char *report_path_at(int dir, const char *path);
/* A file was opened. */
void report_opened(struct file *f);
/* A file is done with: its counts are added. */
void report_add(const struct file *f);
/* Writes the report once; called when the process ends. */
void report_write(void);
/* In a child: the counts are the parent's. */
void report_forget(void);

#endif
