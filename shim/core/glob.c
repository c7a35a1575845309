#include <stdint.h>

#include "glob.h"
#include "text.h"

/* The character at *s, which moves behind it; a byte that is not UTF-8 stands for itself only. */
static uint32_t next_char(const char **s)
{
	int n = text_utf8(*s);
	uint32_t c = (unsigned char)*(*s)++;

	if (!n)
		return 0x110000 + c;
	if (n > 1)
		c &= 0x7f >> n;
	while (--n > 0)
		c = c << 6 | (*(*s)++ & 0x3f);
	return c;
}

/* The same in a pattern, where a backslash takes the meaning of what follows. False: there is none. */
static bool next_literal(const char **p, const char *end, uint32_t *c)
{
	if (*p < end && **p == '\\')
		++*p;
	if (*p >= end)
		return false;
	*c = next_char(p);
	return true;
}

enum answer { NO, YES, NOT_A_SET };

/* "[...]" behind its bracket; *p moves behind it. */
static enum answer in_set(const char **p, const char *end, uint32_t c)
{
	const char *at = *p;
	bool others = at < end && (*at == '!' || *at == '^'), found = false;
	uint32_t low, high;

	at += others;
	for (const char *first = at; at < end && (*at != ']' || at == first);) {
		if (!next_literal(&at, end, &low))
			return NOT_A_SET;
		high = low;
		if (end - at > 1 && *at == '-' && at[1] != ']') {
			at++;
			if (!next_literal(&at, end, &high))
				return NOT_A_SET;
		}
		found |= low <= c && c <= high;
	}
	if (at >= end)
		return NOT_A_SET;
	*p = at + 1;
	return found != others;
}

/*
 * Does what stands at *p match one character? Both move behind it. From *open
 * on no bracket is closed: known from the first that is not, and not looked for again.
 */
static bool one(const char **p, const char *end, const char **s, const char **open)
{
	uint32_t c = next_char(s), wanted;

	if (**p == '?') {
		++*p;
		return true;
	}
	if (**p == '[' && *p < *open) {
		const char *set = *p + 1;
		enum answer answer = in_set(&set, end, c);

		if (answer != NOT_A_SET) {
			*p = set;
			return answer == YES;
		}
		*open = *p;
	}
	return next_literal(p, end, &wanted) && c == wanted;
}

bool glob_match(const char *p, size_t n, const char *s)
{
	const char *end = p + n, *open = end, *star = NULL, *from = NULL;

	/* What a star has taken once, a later one need not give back: steps of the order of n times strlen(s). */
	while (*s) {
		if (p < end && *p == '*') {
			star = ++p;
			from = s;
		} else if (p >= end || !one(&p, end, &s, &open)) {
			if (!star)
				return false;
			next_char(&from);
			p = star;
			s = from;
		}
	}
	while (p < end && *p == '*')
		p++;
	return p == end;
}
