/*
 * A compute-bound producer, as a compressor is: so many rounds of arithmetic for each 8 KiB that it writes (xz's size)
 * to a file that it opens itself. The work is fixed, not the time, so what the writing costs shows in the wall time.
 *
 *   produce RATE            prints the rounds that make about RATE MiB/s on this machine
 *   produce ROUNDS MIB OUT  writes
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 8192

static uint64_t chunk[CHUNK / 8];

static void work(long rounds)
{
	uint64_t x = chunk[0] | 1;

	for (long i = 0; i < rounds; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		chunk[i % (CHUNK / 8)] = x;
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static long calibrate(double rate)
{
	const long rounds = 20000000;
	double best = 1e9;

	for (int i = 0; i < 5; i++) {
		double t = now();

		work(rounds);
		t = now() - t;
		if (t < best)
			best = t;
	}
	return rounds / best * CHUNK / (rate * 1048576);
}

int main(int argc, char **argv)
{
	int fd;

	if (argc == 2) {
		printf("%ld\n", calibrate(atof(argv[1])));
		return 0;
	}
	if (argc != 4) {
		fprintf(stderr, "usage: produce RATE | produce ROUNDS MIB OUT\n");
		return 2;
	}
	fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd < 0) {
		perror(argv[3]);
		return 1;
	}
	for (long left = atol(argv[2]) * (1048576 / CHUNK); left > 0; left--) {
		work(atol(argv[1]));
		if (write(fd, chunk, CHUNK) != CHUNK) {
			perror(argv[3]);
			return 1;
		}
	}
	if (close(fd)) {
		perror(argv[3]);
		return 1;
	}
	return 0;
}
