/* The process as a whole: what must be in the kernel before control can leave it. */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* The constructor's: settings, limits, the report. */
void process_init(char **env);
/*
 * Around anything that makes a process sharing our descriptions. Everything
 * is released before; afterwards descriptors that are opened are taken up again.
 */
void process_before_fork(void);
void process_after_fork(bool child);
/*
 * The same around a child that does nothing before its exec but what libc
 * (posix_spawn, system, popen) or vfork(2) lets it: a description all of whose
 * descriptors are closed by exec stays tuned. It is settled before, and lent
 * meanwhile. actions: some of posix_spawn's may hand descriptors on.
 */
void process_before_spawn(bool actions);
void process_after_spawn(void);
void process_before_vfork(void);
void process_after_vfork(bool child);
/* A child of vfork(2) has made a copy of this descriptor, or has it outlive exec. */
void process_handed(int fd);
/* One of posix_spawn's actions will do that. */
void process_will_hand(int fd);
/* Before the program is replaced: all is in the kernel, nothing is given up. */
void process_before_exec(void);
/* The process ends, or may: all is in the kernel; with last, the report is written. */
void process_settle(bool last);
/* Everything is the kernel's from now on, and no system call is made any more. */
void process_off(int reason);
/*
 * The program is about to wait for a descriptor (poll(2) events): what is
 * held goes to the kernel first, at once if that has not happened for a
 * moment, else when the moment is over and nothing has become ready. 0, or
 * -EINTR when the program's call is to be interrupted by a signal.
 */
int process_before_block(int fd, short events);
/* Namespaces are about to change: the kernel's side of the engine is given back. */
void process_before_namespace(void);
/*
 * The kernel's workers of a ring count as threads, and stay for some seconds
 * after it is closed (5 s, io_uring/io-wq.c). True: there may still be some,
 * and a tenth of a second has passed.
 */
bool process_workers_wait(void);
/*
 * Around setrlimit(2) of RLIMIT_FSIZE. What is held was written under the
 * limit that was; under another one, files are the kernel's.
 */
void process_before_limit(void);
void process_after_limit(void);
/*
 * Around sending a signal. To this process, or a group that it is in: it may
 * end here, and what a handler writes is not held. A handler may jump out.
 */
struct undo;
void process_before_signal(struct undo *u, pid_t pid, int sig);
void process_after_signal(struct undo *u);

#endif
