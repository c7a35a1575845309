/*
 * Descriptors of the shim's own: high, closed on exec, in nobody's way. A
 * program that closes all it can find must not hit them, and one that takes
 * their number by dup2 gets it.
 */
#include <errno.h>

#include "../real.h"
#include "../sys.h"
#include "file.h"

#define OWN_MOST 3 /* the ring, the report's stderr, the progress line's terminal */
#define OWN_FROM 512

static int own[OWN_MOST] = {-1, -1, -1};

int own_dup(int fd)
{
	int low = OWN_FROM, copy = -1;

	/* Under a small RLIMIT_NOFILE as high as it goes. */
	for (; copy < 0 && low > 8; low /= 2)
		copy = sys(SYS_FCNTL, fd, F_DUPFD_CLOEXEC, low);
	for (int i = 0; copy >= 0 && i < OWN_MOST; i++) {
		if (own[i] >= 0)
			continue;
		fdtable_reset(copy);
		own[i] = copy;
		return i;
	}
	if (copy >= 0)
		sys(SYS_close, copy);
	return -1;
}

int own_at(int handle)
{
	return handle < 0 ? -1 : own[handle];
}

void own_close(int handle)
{
	int fd = own_at(handle);

	if (fd < 0)
		return;
	own[handle] = -1;
	sys(SYS_close, fd);
}

bool own_is(int fd)
{
	for (int i = 0; i < OWN_MOST && fd >= 0; i++)
		if (own[i] == fd)
			return true;
	return false;
}

int own_next(int fd)
{
	int best = -1;

	for (int i = 0; i < OWN_MOST; i++)
		if (own[i] >= fd && (best < 0 || own[i] < best))
			best = own[i];
	return best;
}

void own_make_way(int fd)
{
	for (int i = 0; i < OWN_MOST && fd >= 0; i++) {
		if (own[i] != fd)
			continue;
		int to = sys(SYS_FCNTL, fd, F_DUPFD_CLOEXEC, OWN_FROM);

		own[i] = to < 0 ? -1 : to;
	}
}
