/*
 * A strict reader of JSON (RFC 8259) in memory, one value after the other.
 * The first error stays: then every call fails, and error says what and at
 * says where.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
	const char *at, *end;
	const char *error; /* what was expected or found, NULL: all well */
	int depth;
};

/* Behind white space: is there anything left? */
bool json_more(struct json *j);
/* Is this the next character? Not taken. */
bool json_is(struct json *j, char c);
/*
 * Walks an object: begins with *first true; each true return has read a name
 * (a string of the caller's to free) and stands before its value.
 */
bool json_member(struct json *j, bool *first, char **name);
/* The same for an array: each true return stands before an element. */
bool json_element(struct json *j, bool *first);
/* A string, decoded, or NULL. To be freed. */
char *json_string(struct json *j);
/* A number that is not negative, whole or not. */
bool json_count(struct json *j, uint64_t *value);
bool json_number(struct json *j, double *value);
/* Any value. */
bool json_skip(struct json *j);
bool json_fail(struct json *j, const char *error);

#endif
