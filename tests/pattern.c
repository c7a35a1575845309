/* pattern SIZE [SEED]: that many bytes, no block like another, always the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static uint64_t buf[8192];
	long long left = argc > 1 ? atoll(argv[1]) : 0;
	uint64_t x = 0x9E3779B97F4A7C15u * (argc > 2 ? strtoull(argv[2], NULL, 10) + 1 : 1);

	while (left > 0) {
		size_t i, n = left < (long long)sizeof(buf) ? (size_t)left : sizeof(buf), done = 0;

		for (i = 0; i < sizeof(buf) / sizeof(*buf); i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			buf[i] = x;
		}
		while (done < n) {
			ssize_t m = write(1, (char *)buf + done, n - done);

			if (m < 0) {
				perror("pattern");
				return 1;
			}
			done += (size_t)m;
		}
		left -= (long long)n;
	}
	return 0;
}
