/* Which files are tuned, how, and why not. */
#ifndef POLICY_H
#define POLICY_H

#include "file.h"

/*
 * Decides on a fresh file at its first data call.
 * n: the bytes of that call; write: its direction.
 */
void policy_classify(struct file *f, size_t n, bool write);
/*
 * May O_DIRECT be used on this file? statx is asked the first time; where the
 * filesystem accepts the flag without meaning it, the file is to be released.
 */
bool policy_direct(struct file *f, bool write);
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
