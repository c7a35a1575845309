/* What was done, for BLKTUNE_REPORT: per file counts, written at exit. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>

struct file;

extern bool report_on;

/* The program is about to run: its name, the clock. */
void report_init(void);
/* A path made absolute, for as long as the process lives; NULL where nothing asks for it. */
const char *report_path(const char *path);
/* A file is done with: its counts are added. */
void report_add(const struct file *f);
/* Writes the report once; called when the process ends. */
void report_write(void);
/* In a child: the counts are the parent's. */
void report_forget(void);

#endif
