/* The launcher's parts. */
#ifndef TOOL_H
#define TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses, as those of env(1). */
#define STATUS_OWN        125 /* the launcher's own errors */
#define STATUS_CANNOT_RUN 126
#define STATUS_NOT_FOUND  127

/* One line on stderr, in one write: "blktune: " and the formatted text. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A copy without what a terminal might obey; the launcher ends before it need be freed. */
const char *clean(const char *s);

/* --- options.c: settings as options --- */

/* An option that sets a variable; the library's settings are all of this kind. */
struct choice {
	const char *variable; /* its name in the environment */
	const char *option;   /* long form, without the dashes */
	char letter;          /* short form of the option without a value, or 0 */
	const char *implied;  /* value when none is given; NULL: one must be given */
	bool bare;            /* never takes a value */
	const char *shown;    /* what stands for the value in the help */
	const char *standing; /* the default, as text */
	const char *help;
};

extern const struct choice choices[];
extern const int choices_count;

/*
 * Puts a choice into the environment; value NULL for the implied one. False,
 * after a line about it, when the library would not take the value.
 */
bool choose(int i, const char *value);
/* The line about an option that needs a value and has none. */
void choose_missing(int i);
/* The line about an option that is not there; name without the dashes. */
void choose_unknown(const char *name);
/* The library's view of the environment, in config; a line for each wrong variable. */
void settings_read(void);
void settings_show(const char *preload);
/* A size in the largest unit that it is a multiple of: 65536 is 64K. */
void size_exact(uint64_t v, char *text, size_t room);

/* --- target.c --- */

/* A line for each reason why the library cannot work in the command. */
void target_check(const char *command, const char *library);

/* --- probe.c --- */

/* Says what would happen at each path: 0, or 1 when one of them could not be looked at. */
int probe(char **paths);

/* --- summary.c --- */

/* One table of the JSON reports in these directories and files: 0, or 1 when one was skipped. */
int summary(char **names);

/* --- engines.c --- */

/* What would carry transfers out: "uring", "aio" or "sync", and why not the others. */
const char *engine_choice(char *why, int room);

#endif
