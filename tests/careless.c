/* careless FROM TO: a copy that looks at the result of write, and at no other. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char buf[10240];
	int in = argc > 2 ? open(argv[1], O_RDONLY) : -1;
	int out = open(argv[argc > 2 ? 2 : 0], O_WRONLY | O_CREAT | O_TRUNC, 0644);
	ssize_t n, m, done;

	while ((n = read(in, buf, sizeof(buf))) > 0)
		for (done = 0; done < n; done += m)
			if ((m = write(out, buf + done, (size_t)(n - done))) < 0) {
				perror("write");
				return 1;
			}
	close(out);
	return n != 0;
}
