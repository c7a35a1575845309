#include <stdlib.h>
#include <string.h>

#include "../core/text.h"
#include "json.h"

#define DEPTH_MOST 64

bool json_fail(struct json *j, const char *error)
{
	if (!j->error)
		j->error = j->at >= j->end ? "it ends too early" : error;
	return false;
}

bool json_more(struct json *j)
{
	while (j->at < j->end && strchr(" \t\r\n", *j->at) && *j->at)
		j->at++;
	return j->at < j->end;
}

bool json_is(struct json *j, char c)
{
	return !j->error && json_more(j) && *j->at == c;
}

static bool take(struct json *j, char c, const char *error)
{
	if (!json_is(j, c))
		return json_fail(j, error);
	j->at++;
	return true;
}

/* Before a member or an element: false at the end, which is taken, and after an error. */
static bool next(struct json *j, bool *first, char open, char close, const char *error)
{
	if (*first) {
		if (!take(j, open, error))
			return false;
		if (++j->depth > DEPTH_MOST)
			return json_fail(j, "it is nested too deep");
		if (!json_is(j, close)) {
			*first = false;
			return !j->error;
		}
	} else if (json_is(j, ',')) {
		j->at++;
		return true;
	}
	j->depth--;
	take(j, close, open == '{' ? "expected , or }" : "expected , or ]");
	return false;
}

bool json_element(struct json *j, bool *first)
{
	return next(j, first, '[', ']', "expected [");
}

bool json_member(struct json *j, bool *first, char **name)
{
	*name = NULL;
	if (!next(j, first, '{', '}', "expected {"))
		return false;
	*name = json_string(j);
	if (*name && take(j, ':', "expected :"))
		return true;
	free(*name);
	*name = NULL;
	return false;
}

static int hex(const char *p)
{
	int v = 0;

	for (int i = 0; i < 4; i++) {
		char c = p[i];

		if (c >= '0' && c <= '9')
			v = v * 16 + c - '0';
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			v = v * 16 + (c | 32) - 'a' + 10;
		else
			return -1;
	}
	return v;
}

/* \uXXXX, or two of them for what is beyond 16 bits; j->at is behind the u. 0: not one. */
static uint32_t code(struct json *j)
{
	int high = j->end - j->at < 4 ? -1 : hex(j->at), low;

	if (high <= 0 || (high & 0xfc00) == 0xdc00)
		return 0;
	j->at += 4;
	if ((high & 0xfc00) != 0xd800)
		return high;
	low = j->end - j->at < 6 || j->at[0] != '\\' || j->at[1] != 'u' ? -1 : hex(j->at + 2);
	if (low < 0 || (low & 0xfc00) != 0xdc00)
		return 0;
	j->at += 6;
	return 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff);
}

static char *put_code(char *to, uint32_t c)
{
	int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

	if (!more)
		*to++ = c;
	else
		*to++ = (0xff00 >> (more + 1) & 0xff) | c >> 6 * more;
	for (int left = more; left > 0; left--)
		*to++ = 0x80 | (c >> 6 * (left - 1) & 0x3f);
	return to;
}

/* The character behind a backslash. */
static bool escape(struct json *j, char **to)
{
	static const char from[] = "\"\\/bfnrt", is[] = "\"\\/\b\f\n\r\t";
	const char *p = j->at < j->end && *j->at ? strchr(from, *j->at) : NULL;
	uint32_t c;

	if (p) {
		*(*to)++ = is[p - from];
		j->at++;
		return true;
	}
	if (j->at >= j->end || *j->at != 'u')
		return json_fail(j, "a wrong escape in a string");
	j->at++;
	c = code(j);
	if (!c)
		return json_fail(j, "a wrong \\u in a string");
	*to = put_code(*to, c);
	return true;
}

char *json_string(struct json *j)
{
	char *text, *to, last[5];
	int n;

	if (!take(j, '"', "expected a string"))
		return NULL;
	/* Decoded it is no longer than it is here. */
	n = 0;
	for (const char *p = j->at; p < j->end && *p != '"'; p++, n++)
		if (*p == '\\' && p + 1 < j->end) {
			p++;
			n++;
		}
	text = to = malloc(n + 1);
	if (!text)
		abort();
	while (j->at < j->end && *j->at != '"') {
		if (*j->at == '\\') {
			j->at++;
			if (!escape(j, &to))
				goto bad;
			continue;
		}
		/* The last characters may lack bytes that are not there. */
		n = j->end - j->at < 4 ? j->end - j->at : 4;
		memcpy(last, j->at, n);
		last[n] = 0;
		n = (unsigned char)*last < ' ' ? 0 : text_utf8(last);
		if (!n) {
			json_fail(j, (unsigned char)*last < ' ' ? "a control character in a string"
								: "a string that is not UTF-8");
			goto bad;
		}
		memcpy(to, j->at, n);
		to += n;
		j->at += n;
	}
	*to = 0;
	if (take(j, '"', "expected \""))
		return text;
bad:
	free(text);
	return NULL;
}

static bool digit(const struct json *j)
{
	return j->at < j->end && *j->at >= '0' && *j->at <= '9';
}

/* The text of a number; where it ends is taken. */
static const char *number(struct json *j, bool *whole)
{
	const char *from;

	if (!json_more(j))
		goto bad;
	from = j->at;
	*whole = true;
	j->at += *j->at == '-';
	if (!digit(j))
		goto bad;
	if (*j->at == '0')
		j->at++;
	else
		while (digit(j))
			j->at++;
	if (j->at < j->end && *j->at == '.') {
		j->at++;
		*whole = false;
		if (!digit(j))
			goto bad;
		while (digit(j))
			j->at++;
	}
	if (j->at < j->end && (*j->at | 32) == 'e') {
		j->at++;
		*whole = false;
		if (j->at < j->end && (*j->at == '+' || *j->at == '-'))
			j->at++;
		if (!digit(j))
			goto bad;
		while (digit(j))
			j->at++;
	}
	return from;
bad:
	json_fail(j, "expected a number");
	return NULL;
}

bool json_count(struct json *j, uint64_t *value)
{
	bool whole;
	const char *p = j->error ? NULL : number(j, &whole);

	*value = 0;
	if (!p)
		return false;
	if (!whole || *p == '-')
		return json_fail(j, "expected a whole number, not negative");
	for (; p < j->at; p++)
		if (__builtin_mul_overflow(*value, 10, value) ||
			__builtin_add_overflow(*value, *p - '0', value))
			return json_fail(j, "a number that is too large");
	return true;
}

bool json_number(struct json *j, double *value)
{
	bool whole;
	const char *p = j->error ? NULL : number(j, &whole);
	char text[64];

	*value = 0;
	if (!p)
		return false;
	if (*p == '-' || j->at - p >= (long)sizeof(text))
		return json_fail(j, "expected a number that is not negative");
	memcpy(text, p, j->at - p);
	text[j->at - p] = 0;
	*value = strtod(text, NULL);
	return *value <= 1e15 || json_fail(j, "a number that is too large");
}

static bool word(struct json *j, const char *w)
{
	size_t n = strlen(w);

	if ((size_t)(j->end - j->at) < n || memcmp(j->at, w, n))
		return json_fail(j, "expected a value");
	j->at += n;
	return true;
}

bool json_skip(struct json *j)
{
	bool first = true, whole;
	char *name;

	if (j->error || !json_more(j))
		return json_fail(j, "expected a value");
	switch (*j->at) {
	case '{':
		while (json_member(j, &first, &name)) {
			free(name);
			json_skip(j);
		}
		break;
	case '[':
		while (json_element(j, &first))
			json_skip(j);
		break;
	case '"':
		free(json_string(j));
		break;
	case 't':
		return word(j, "true");
	case 'f':
		return word(j, "false");
	case 'n':
		return word(j, "null");
	default:
		number(j, &whole);
	}
	return !j->error;
}
