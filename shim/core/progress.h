/*
 * BLKTUNE_PROGRESS: one line on the terminal that stderr is, drawn by the
 * transfers themselves, at most five times a second, and only while the
 * process is in the terminal's foreground. Nothing else is ever written to.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Transfers are to be told of. */
extern bool progress_on;
/* There is a line on the terminal. */
extern bool progress_shown;

/* The program is about to run. */
void progress_init(void);
/* A transfer is over. */
void progress_moved(bool write, size_t bytes);
/* The program is about to write to fd: where that is the same terminal, the line goes first. */
void progress_clear(int fd);
/* The process ends: the line goes. */
void progress_end(void);
/* In a child: the line is the parent's. */
void progress_forget(void);

#endif
