/* Lines for people, on stderr, in one write each; never through stdio. */
#ifndef SAY_H
#define SAY_H

#include <stddef.h>

/* Writes "blktune: " and the formatted text; at most 500 bytes. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
