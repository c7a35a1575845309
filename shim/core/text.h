/* Text that grows, in memory of its own: no malloc, which may be the program's, and in use. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
	char *p;  /* NULL: nothing yet */
	size_t n; /* bytes in it */
	size_t room;
};

/* At most 1023 bytes; longer strings by text_add. */
void text_put(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add(struct text *t, const char *s, size_t n);
/* A JSON string. Bytes that are not UTF-8 become U+FFFD, so that the file stays valid. */
void text_json(struct text *t, const char *s);
/* For a line of people's: what text_plain makes of it. */
void text_line(struct text *t, const char *s);
/*
 * For a terminal: the n bytes at s with control characters (C1, too, which some
 * terminals obey), and what is not UTF-8, as '?', byte by byte. NUL need not end it.
 */
void text_plain(char *s, size_t n);
/*
 * One write(2). That nobody reads there, or that the file may not grow, is no
 * reason for the program to die: no signal comes of it.
 */
void text_out(int fd, const char *p, size_t n);
void text_free(struct text *t);
/* Bytes of the character that begins here, 1 to 4, or 0: not UTF-8 (RFC 3629). A NUL is to end it. */
int text_utf8(const char *s);

#endif
