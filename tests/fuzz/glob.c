/*
 * Patterns: the input is one, a newline, and a name. It agrees with fnmatch(3)
 * where both mean the same: ASCII, and no character classes. An input that
 * takes more than a moment ends the run.
 */
#include "fuzz.h"

#include <fnmatch.h>

#include "../../shim/core/glob.h"
#include "../../shim/core/text.h"

static bool comparable(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!s[i] || (unsigned char)s[i] > 126)
			return false;
	/* classes, and what glibc makes of sets that do not end, or of a backslash in one */
	return !memchr(s, '[', n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	size_t n = end ? (size_t)(end - data) : size;
	char *pattern = fuzz_string(data, n), *name = fuzz_string(data + n + !!end, size - n - !!end);
	bool matches = glob_match(pattern, n, name);

	if (comparable(pattern, n) && comparable(name, strlen(name)))
		must(matches == !fnmatch(pattern, name, 0));
	/* A pattern in which nothing is special, and one of stars, are clear anyway. */
	if (!strpbrk(pattern, "*?[\\") && strlen(pattern) == n)
		must(matches == !strcmp(pattern, name));
	if (n && strspn(pattern, "*") == n)
		must(matches);

	/* The same with stars between: what it matches must not become less. */
	char *more = malloc(2 * n + 2);
	size_t k = 0;

	must(more);
	if (!memchr(pattern, '[', n) && !memchr(pattern, '\\', n)) {
		for (size_t i = 0; i < n;) {
			int c = text_utf8(pattern + i);

			more[k++] = '*';
			for (c = c ? c : 1; c > 0; c--)
				more[k++] = pattern[i++];
		}
		more[k] = 0;
		must(!matches || glob_match(more, k, name));
	}
	free(more);
	free(pattern);
	free(name);
	return 0;
}
