/*
 * room FROM TO GO FILLED FILLER: a copy that sees the disk fill up meanwhile and
 * makes room. After 8 MiB it creates GO, and spins until FILLED is there; when
 * write, fsync or close says that there is no room, it says so, once for each,
 * removes FILLER and tries again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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

int main(int argc, char **argv)
{
	static char buf[10240];
	long written = 0;
	ssize_t n, m, done;

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
			if (written / 8388608 != (written + m) / 8388608 && written < 8388608) {
				close(open(argv[3], O_WRONLY | O_CREAT, 0644));
				while (access(argv[4], F_OK))
					;
			}
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
