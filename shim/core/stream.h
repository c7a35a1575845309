/*
 * stdio streams. libc reads, writes, seeks and closes the descriptor of a
 * stream inside itself, through five entries of its tables of stream
 * functions (struct _IO_jump_t: __read, __write, __seek, __close, __stat).
 * Those entries are pointed here, so that a stream's bytes take the same way
 * as those of read(2) and write(2); all else about the stream stays libc's:
 * buffer, orientation, conversion, error flags, position.
 *
 * fopencookie(3) was not enough: such a stream has no wide orientation, a
 * buffer of another size, and seeks otherwise, which a program sees in the
 * descriptor's offset.
 *
 * The tables are read-only after relocation; they are made writable for the
 * moment of the change. What is changed is found by its contents (libc
 * exports the functions that stand there); where that fails, or mprotect(2)
 * does, streams stay libc's and their files are released (reason stdio).
 */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stdio.h>

/* From now on streams come here, if they can: the first call decides. */
bool stream_take(void);
/* A stream that popen(3) made: those are taken with the others. */
void stream_popen(FILE *s);
/* Do they? */
bool stream_taken(void);

#endif
