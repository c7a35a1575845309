/*
 * The reading side of a file: transfers start at BLKTUNE_MIN and double while
 * access stays sequential, up to the block size, then several are kept in
 * flight. Nothing is read past the end that the last fstat saw, and nothing
 * that was read ahead is used after the file's size or time has changed, after
 * a seek backwards, or after a write of this process.
 */
#ifndef READER_H
#define READER_H

#include "file.h"

/* read(2) at the program's position, for what does not fit the small-call path. */
ssize_t reader_read(struct file *f, void *buf, size_t n);
ssize_t reader_pread(struct file *f, void *buf, size_t n, off64_t off);
/* Forgets all that was read ahead; the position stays. */
void reader_drop(struct file *f);
/*
 * For the pump: bytes at the program's position as they lie in the current
 * block, read when there are none. *n: how many; 0 at the end of the file.
 * reader_used() moves the position past them. 0 or -errno.
 */
int reader_bytes(struct file *f, const unsigned char **bytes, size_t *n);
void reader_used(struct file *f, size_t n);
/* The size of the file as the kernel has it now, bytes, or -errno. */
off64_t reader_size(struct file *f);

#endif
