/* What the large-file form of a call and its narrow twin do alike (narrow.c). */
#ifndef TWINS_H
#define TWINS_H

#include <stdio.h>
#include <sys/socket.h>

/* open.c. A second open that truncates what an open file of ours has pending comes after it. */
void before_open(int dir, const char *path, int flags);
int opened(int fd, int flags, const char *path);
int opened_at(int dir, int fd, int flags, const char *path);

/* stdio.c. large: O_LARGEFILE, or 0. */
FILE *opened_stream(FILE *f, const char *path, const char *mode, int large);
/* Around freopen: -errno of bytes of what was open before, or 0; and the stream, or NULL for those. */
int before_reopen(FILE *f);
FILE *reopened(FILE *f, int e);

/* meta.c. By whatever descriptor a file is changed or written out, all of ours on it come first. */
void before_change(int fd);

/* fd.c. fcntl, the next one of that width. */
typedef int fcntl_call(int fd, int cmd, ...);
int control(fcntl_call *call, int fd, int cmd, void *arg);
/* What came over a socket. */
void received_rights(const struct msghdr *m);

/* wait.c. The program has waited, and somebody else has not. */
int waited(int r);

#endif
