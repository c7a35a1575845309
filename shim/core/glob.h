/*
 * Patterns as in glob(7), a slash being like any other character, and without
 * its character classes, whose colon would end the pattern. Not by
 * fnmatch(3): that one asks malloc for memory, which may be the program's and
 * in use, and answers by the locale that the program has set so far. Here
 * text is UTF-8, always; ranges go by code point.
 */
#ifndef GLOB_H
#define GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Does the pattern of n bytes match all of the string? Behind it stands a NUL, or a colon. */
bool glob_match(const char *pattern, size_t n, const char *s);

#endif
