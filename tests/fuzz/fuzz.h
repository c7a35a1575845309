/*
 * What the fuzzing targets share: the sources under test are included with
 * their way to stderr replaced, so that every line they say is looked at.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define must(what) ((what) ? (void)0 : fuzz_broken(__FILE__, __LINE__, #what))

static inline void fuzz_broken(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
	abort();
}

/* Characters that people can read, and newlines: no control character, no broken UTF-8. */
static inline void fuzz_readable(const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;

	for (size_t i = 0; i < n;) {
		int k = s[i] < 0x80 ? 1 : s[i] < 0xc2 ? 0 : s[i] < 0xe0 ? 2 : s[i] < 0xf0 ? 3 : s[i] < 0xf5 ? 4 : 0;

		must(k && i + k <= n);
		must(s[i] >= ' ' || s[i] == '\n');
		must(s[i] != 127 && !(s[i] == 0xc2 && s[i + 1] < 0xa0));
		for (int j = 1; j < k; j++)
			must((s[i + j] & 0xc0) == 0x80);
		i += k;
	}
}

static int fuzz_lines; /* said since the target set it to 0 */

/* In place of text_out: a line, whole, and the only one of this write. */
static inline long fuzz_heard(int fd, const char *text, size_t n)
{
	must(fd == 2 && n > 10 && n <= 4096);
	must(!memcmp(text, "blktune: ", 9));
	must(memchr(text, '\n', n) == text + n - 1);
	fuzz_readable(text, n);
	fuzz_lines++;
	return n;
}

/* Memory of the target's; a part of the input with a NUL behind it. */
static inline char *fuzz_string(const uint8_t *data, size_t n)
{
	char *s = malloc(n + 1);

	if (!s)
		abort();
	memcpy(s, data, n);
	s[n] = 0;
	return s;
}

#endif
