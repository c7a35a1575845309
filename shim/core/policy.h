/* Which files are tuned, how, and why not. */
#ifndef POLICY_H
#define POLICY_H

#include "file.h"

/* Decides on a fresh file at its first data call of this direction; nothing happens to others. */
void policy_classify(struct file *f, bool write);
/*
 * A call on a fresh file that goes to the kernel as it is, with nothing set
 * up: a read that takes a small file whole (it stays the kernel's), and a
 * first write of a few bytes (which may be all; the file is lent, and to be
 * taken back behind the call).
 */
bool policy_small_read(struct file *f, size_t n);
bool policy_small_write(struct file *f, size_t n);
/*
 * May O_DIRECT be used on this file? statx is asked the first time; where the
 * filesystem accepts the flag without meaning it, the file is to be released.
 */
bool policy_direct(struct file *f, bool write);
/*
 * Once, early: is the program linked with liburing or libaio? These make their
 * system calls themselves, unseen, and may do so on any file of it.
 */
void policy_init(void);
/* Why a file opened with these open(2) flags is not for us from the start, or REASON_NONE. */
enum reason policy_flags(int flags);
/* Is there room on the file's filesystem for what the process holds, and more? */
bool policy_space(struct file *f);
/* Transfers in flight for one file: BLKTUNE_DEPTH, or what the engine is good for; at least 1. */
int policy_depth(void);
/*
 * This description is used in a way that the shim does not follow: others of
 * ours on its inode are released if one of them writes. True if there was one.
 * The file is locked, or new.
 */
bool policy_twins(struct file *f);
/* As policy_twins, for a file that is locked and has not been classified. */
void policy_untracked(struct file *f);
/* Can its filesystem share blocks between files (btrfs, xfs, ...)? */
bool policy_shares(const struct file *f);
/* In a child: what it was born with is something else. */
void policy_forget(void);
/* RLIMIT_FSIZE may have changed. */
void policy_limits(void);

#endif
