/* stamp SOURCE COPY: copies by 1000 bytes, and sets owner, mode, attributes and times before the close. */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	/* cap_net_raw+ep, revision 2, as setcap writes it */
	static const unsigned char cap[20] = { 1, 0, 0, 2, 0, 0x20 };
	struct timespec times[2] = { { 900000000, 1 }, { 987654321, 123456789 } };
	char buf[1000];
	int in, out;
	ssize_t n;

	if (argc != 3)
		return 2;
	in = open(argv[1], O_RDONLY);
	out = open(argv[2], O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (in < 0 || out < 0)
		err(1, "open");
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, (size_t)n) != n)
			err(1, "write");
	if (fchown(out, 1, 1) || fchmod(out, 04755) || fsetxattr(out, "user.note", "kept", 4, 0) ||
	    fsetxattr(out, "security.capability", cap, sizeof(cap), 0) || futimens(out, times))
		err(1, "stamp");
	if (close(out))
		err(1, "close");
	return 0;
}
