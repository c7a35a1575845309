/*
 * The writing side of a file: small writes gather in a block, full blocks go
 * to the kernel, aligned and with O_DIRECT where that may be.
 *
 * Bytes that the kernel refuses stay held, in order, and are tried again by
 * every later write, fsync and close; nothing lands beyond them (file->error).
 */
#ifndef WRITER_H
#define WRITER_H

#include "file.h"

/* write(2) at the program's position, for what does not fit the small-call path. */
ssize_t writer_write(struct file *f, const void *buf, size_t n);
/* pwrite(2): nothing is held. */
ssize_t writer_pwrite(struct file *f, const void *buf, size_t n, off64_t off);
/* All held bytes into the kernel: 0, or -errno and they stay held. */
int writer_drain(struct file *f);
/* Bytes of ours went through the cache: they are waited for before direct ones extend the file. */
void writer_buffered(struct file *f, off64_t off, off64_t n);
/* Gives up what is held. */
void writer_discard(struct file *f);
/* The file was cut to this size: held bytes that all lie beyond it are gone with the rest. */
void writer_truncated(struct file *f, off64_t size);
/* May writes of this file be held now? (space, limits, BLKTUNE_HOLD, slow writer) */
bool writer_may_hold(struct file *f, size_t n);
/*
 * For the pump: room in the current block for up to n bytes at the program's
 * position, block started when needed. NULL when nothing can be held. The
 * room shares its page offset with the position. writer_added() takes in what
 * was put there, and sends the block off when it is full: 0 or -errno.
 */
unsigned char *writer_room(struct file *f, size_t *n);
int writer_added(struct file *f, size_t n);
/*
 * After an error in what was added from file offset start on: what of it the
 * kernel has, bytes, or -errno. The rest is taken back, the position with it.
 */
ssize_t writer_refused(struct file *f, off64_t start, int error);

#endif
