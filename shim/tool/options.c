/*
 * The library's settings as options. The rules for values are the library's
 * own (core/config.c is part of both); here are only the names and the help.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/config.h"
#include "../core/say.h"
#include "tool.h"

extern char **environ;

const struct choice choices[] = {
	{"BLKTUNE", "off", 0, "off", true, NULL, "on", "change nothing, for comparison"},
	{"BLKTUNE_MODE", "mode", 0, NULL, false, "MODE", "direct",
		"direct, dontcache, buffered or observe"},
	{"BLKTUNE_MIN", "min", 0, NULL, false, "SIZE", "64K", "smallest transfer"},
	{"BLKTUNE_BLOCK", "block", 0, NULL, false, "SIZE", "1M to read, 4M to write",
		"size of a transfer, both ways"},
	{"BLKTUNE_READ_BLOCK", "read-block", 0, NULL, false, "SIZE", "1M", "size of a read"},
	{"BLKTUNE_WRITE_BLOCK", "write-block", 0, NULL, false, "SIZE", "4M", "size of a write"},
	{"BLKTUNE_HOLD", "hold", 0, NULL, false, "WHEN", "auto",
		"hold writes back to fill a transfer: auto, always or never"},
	{"BLKTUNE_DEPTH", "depth", 0, NULL, false, "N", "the engine's default",
		"transfers in flight per file, 0 for one synchronous transfer"},
	{"BLKTUNE_MEMORY", "memory", 0, NULL, false, "SIZE", "64M", "cap on the buffers"},
	{"BLKTUNE_DIRECT_MIN", "direct-min", 0, NULL, false, "SIZE", "1M",
		"smaller files keep the page cache"},
	{"BLKTUNE_HOT", "hot", 0, NULL, false, "HOW", "direct",
		"files that are in the page cache are read direct, or from the cache"},
	{"BLKTUNE_SYNC", "sync", 0, NULL, false, "WHEN", "off",
		"close: on stable storage when close returns, or off"},
	{"BLKTUNE_STDIO", "stdio", 0, "on", false, "WHEN", "off",
		"on: tune stdin and stdout that are files, too"},
	{"BLKTUNE_RATE", "rate", 0, NULL, false, "SIZE", "none", "bytes per second for the process"},
	{"BLKTUNE_ONLY", "only", 0, NULL, false, "GLOBS", "none",
		"tune only these paths (colon-separated)"},
	{"BLKTUNE_SKIP", "skip", 0, NULL, false, "GLOBS", "none", "leave these paths alone"},
	{"BLKTUNE_PROGRAMS", "programs", 0, NULL, false, "GLOBS", "none",
		"tune only these programs"},
	{"BLKTUNE_SKIP_PROGRAMS", "skip-programs", 0, NULL, false, "GLOBS", "none",
		"leave these programs alone"},
	{"BLKTUNE_BLKSIZE", "blksize", 0, NULL, false, "SIZE", "none",
		"st_blksize that programs are told"},
	{"BLKTUNE_ENGINE", "engine", 0, NULL, false, "ENGINE", "auto",
		"auto, uring, aio or sync"},
	{"BLKTUNE_REPORT", "report", 'r', "-", false, "WHERE", "none",
		"report at the end, on stderr or to a file (.json: as JSON)"},
	{"BLKTUNE_PROGRESS", "progress", 'p', "on", false, "WHEN", "off",
		"show on a terminal how far it is"},
};

const int choices_count = sizeof(choices) / sizeof(*choices);

/* How much of a word of any length is quoted, and what stands for the rest. */
#define QUOTED 64

static const char *dots(size_t len)
{
	return len > QUOTED ? "..." : "";
}

static bool chosen[sizeof(choices) / sizeof(*choices)];

/* What config.c had to say last, or "". */
static char heard[512];

/* In place of the library's: config.c's lines are kept, not printed. */
void say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(heard, sizeof(heard), format, ap);
	va_end(ap);
	heard[strlen(heard) - (heard[0] && heard[strlen(heard) - 1] == '\n')] = 0;
}

/* Lets config.c judge one variable; what it says is in heard. */
static void judge(const char *variable, const char *value)
{
	char *entry, *env[2] = {NULL, NULL};

	*heard = 0;
	if (asprintf(&entry, "%s=%s", variable, value) < 0)
		abort();
	env[0] = entry;
	config_read(env);
	free(entry);
}

/* What was expected in place of a value, or NULL when it is right, or not config.c's to judge. */
static const char *expected(const char *variable, const char *value)
{
	static const char before[] = ": expected ";
	char *found = NULL;

	judge(variable, value);
	for (char *p = heard; (p = strstr(p, before)); p++)
		found = p + strlen(before);
	if (!found)
		return NULL;
	char *end = strstr(found, "; using ");
	if (end)
		*end = 0;
	return found;
}

bool choose(int i, const char *value)
{
	const struct choice *c = &choices[i];
	const char *wanted;

	if (!value)
		value = c->implied;
	wanted = expected(c->variable, value);
	if (wanted) {
		complain("--%s=%.*s%s: expected %s", c->option, QUOTED, value,
			dots(strlen(value)), wanted);
		return false;
	}
	if (setenv(c->variable, value, 1)) {
		complain("--%s: out of memory", c->option);
		return false;
	}
	chosen[i] = true;
	return true;
}

void choose_missing(int i)
{
	const char *wanted = expected(choices[i].variable, "");

	complain("--%s: expected %s", choices[i].option, wanted ? wanted : choices[i].shown);
}

/* An abbreviation that fits more than one option. */
static bool ambiguous(const char *name, size_t len)
{
	char list[256] = "";
	int found = 0;

	for (int i = 0; i < choices_count; i++) {
		size_t n = strlen(list);

		if (strncmp(choices[i].option, name, len))
			continue;
		snprintf(list + n, sizeof(list) - n, "%s--%s", found++ ? ", " : "",
			choices[i].option);
	}
	if (found < 2)
		return false;
	complain("--%.*s: expected one of %s", (int)len, name, list);
	return true;
}

/* config.c knows which variable was meant: so which option was. */
void choose_unknown(const char *name)
{
	char variable[48] = "BLKTUNE_";
	size_t n = strlen(variable), len = strcspn(name, "=");
	int some = len < QUOTED ? len : QUOTED;
	const char *nearest;


	if (ambiguous(name, len))
		return;
	for (size_t k = 0; k < len && n < sizeof(variable) - 1; k++)
		variable[n++] = name[k] == '-' ? '_' : toupper((unsigned char)name[k]);
	variable[n] = 0;
	judge(variable, "");
	nearest = strstr(heard, "the nearest is ");
	/* A variable's own name, such as --READ_BLOCK, is at no distance. */
	nearest = nearest ? nearest + strlen("the nearest is ") : variable;
	for (int i = 0; i < choices_count; i++) {
		if (strcmp(choices[i].variable, nearest))
			continue;
		complain("--%.*s: no such option; the nearest is --%s", some, name,
			choices[i].option);
		return;
	}
	complain("--%.*s%s: no such option; blktune -h lists them", some, name, dots(len));
}

static int choice_of(const char *entry)
{
	for (int i = 0; i < choices_count; i++) {
		size_t n = strlen(choices[i].variable);

		if (!strncmp(entry, choices[i].variable, n) && entry[n] == '=')
			return i;
	}
	return -1;
}

void settings_read(void)
{
	for (char **e = environ; *e; e++) {
		char *env[2] = {*e, NULL};

		if (strncmp(*e, "BLKTUNE", 7))
			continue;
		*heard = 0;
		config_read(env);
		/* A name that has an option and is not config.c's is somebody else's to judge. */
		if (*heard && (choice_of(*e) < 0 || strstr(heard, ": expected ")))
			complain("%s", heard);
	}
	config_read(environ);
}

void size_exact(uint64_t v, char *text, size_t room)
{
	int unit = 0;

	for (; v && unit < 3 && !(v % 1024); unit++)
		v /= 1024;
	snprintf(text, room, unit ? "%llu%c" : "%llu", (unsigned long long)v, "BKMG"[unit]);
}

/* A block size, which also follows from BLKTUNE_BLOCK and BLKTUNE_MIN; false: it does not. */
static bool show_block(const char *variable, bool own)
{
	const uint32_t *block = !strcmp(variable, "BLKTUNE_READ_BLOCK")	   ? &config.read_block
				: !strcmp(variable, "BLKTUNE_WRITE_BLOCK") ? &config.write_block
									   : NULL;
	const char *both = getenv("BLKTUNE_BLOCK");
	uint32_t size, floor;
	char text[24];
	const char *min;

	if (!block)
		return false;
	if (both && expected("BLKTUNE_BLOCK", both))
		both = NULL;
	config_read(environ);
	size = *block;
	floor = config.min;
	/* Would it be less with the lowest floor? */
	min = getenv("BLKTUNE_MIN");
	min = min ? strdupa(min) : NULL;
	setenv("BLKTUNE_MIN", "512", 1);
	config_read(environ);
	if (min)
		setenv("BLKTUNE_MIN", min, 1);
	else
		unsetenv("BLKTUNE_MIN");
	size_exact(size, text, sizeof(text));
	if (*block < size && size == floor)
		printf("%-22s %-24s raised to BLKTUNE_MIN\n", variable, text);
	else if (both && !own)
		printf("%-22s %-24s BLKTUNE_BLOCK\n", variable, text);
	else
		return false;
	return true;
}

void settings_show(const char *preload)
{
	settings_read();
	for (int i = 0; i < choices_count; i++) {
		const struct choice *c = &choices[i];
		const char *value = getenv(c->variable);
		bool refused = value && expected(c->variable, value);

		if (show_block(c->variable, value && !refused))
			continue;
		printf("%-22s %-24s ", c->variable, value && !refused ? clean(value) : c->standing);
		if (!value || refused)
			printf("default\n");
		else if (chosen[i])
			printf("option --%s\n", c->option);
		else
			printf("environment\n");
	}
	printf("%-22s %s\n", "LD_PRELOAD", clean(preload));
}
