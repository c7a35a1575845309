/*
 * room FROM TO GO FILLED FILLER: a copy that sees the disk fill up meanwhile and
 * makes room. After 8 MiB it creates GO, and spins until FILLED is there; when
 * write, fsync or close says that there is no room, it says so, once for each,
 * removes FILLER and tries again.
 *
 * room DOOR TO GO FILLED: writes 8 MiB and a bit, which the kernel would have had
 * when the disk fills up, and leaves by that door. Prints what the call answered,
 * and whether all bytes are there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *filler;
static int made;

/* 0 when the call is to be made again. */
static int make_room(const char *call)
{
	if ((errno != ENOSPC && errno != EDQUOT) || made++ > 3) {
		perror(call);
		return -1;
	}
	if (unlink(filler) == 0)
		puts("made room");
	return 0;
}

static void until_filled(const char *go, const char *filled)
{
	close(open(go, O_WRONLY | O_CREAT, 0644));
	while (access(filled, F_OK))
		;
}

static int leave(const char *door, int fd, FILE *f)
{
	if (!strcmp(door, "close"))
		return close(fd);
	if (!strcmp(door, "fsync"))
		return fsync(fd);
	if (!strcmp(door, "dup2"))
		return dup2(2, fd);
	if (!strcmp(door, "close_by_number"))
		return syscall(SYS_close, fd);
	if (!strcmp(door, "fsync_by_number"))
		return syscall(SYS_fsync, fd);
	if (!strcmp(door, "dup3_by_number"))
		return syscall(SYS_dup3, 2, fd, 0);
	if (!strcmp(door, "write_by_number"))
		return syscall(SYS_write, fd, "", 1);
	if (!strcmp(door, "freopen"))
		return freopen("/dev/null", "w", f) ? 0 : -1;
	return -2;
}

static int doors(char **argv)
{
	static char buf[10240];
	FILE *f = fopen(argv[2], "w");
	int fd = fileno(f);
	long written = 0;
	struct stat st;

	while (written < 8400000)
		written += write(fd, buf, sizeof(buf));
	until_filled(argv[3], argv[4]);
	errno = 0;
	int r = leave(argv[1], fd, f);
	printf("%s: %s", argv[1], r < 0 ? strerror(errno) : "success");
	printf(", %s\n", stat(argv[2], &st) == 0 && st.st_size >= written ? "all there" : "bytes are missing");
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	static char buf[10240];
	long written = 0;
	ssize_t n, m, done;

	if (argc == 5)
		return doors(argv);
	if (argc != 6)
		return 2;
	int in = open(argv[1], O_RDONLY), out = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);

	filler = argv[5];
	while ((n = read(in, buf, sizeof(buf))) > 0)
		for (done = 0; done < n;) {
			if ((m = write(out, buf + done, (size_t)(n - done))) < 0) {
				if (make_room("write"))
					return 1;
				continue;
			}
			done += m;
			if (written / 8388608 != (written + m) / 8388608 && written < 8388608)
				until_filled(argv[3], argv[4]);
			written += m;
		}
	while (fsync(out) < 0)
		if (make_room("fsync"))
			return 1;
	if (close(out) < 0) {
		perror("close");
		return 1;
	}
	printf("%ld bytes, room made: %s\n", written, made ? "yes" : "no");
	return n != 0;
}
