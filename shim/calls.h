/* Families of calls.def, and the types that its prototypes name. */
#ifndef CALLS_H
#define CALLS_H

#define CALLS_OPEN    0x001
#define CALLS_IO      0x002
#define CALLS_FD      0x004
#define CALLS_STAT    0x008
#define CALLS_META    0x010
#define CALLS_COPY    0x020
#define CALLS_STDIO   0x040
#define CALLS_PROCESS 0x080
#define CALLS_WAIT    0x100
#define CALLS_NARROW  0x200
#define CALLS_ALL     0x3ff

#include <features.h>
#ifndef __GLIBC__
#error "libblktune interposes glibc's entry points; other C libraries are not supported"
#endif

#ifndef CALLS_NAMES_ONLY
#include <aio.h>
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <utime.h>
#endif

#endif
