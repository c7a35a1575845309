/* Settings: one table of names, parsers and defaults. */
#include <string.h>

#include "config.h"
#include "glob.h"
#include "say.h"

struct config config;

static const struct config defaults = {
	.on = true,
	.mode = MODE_DIRECT,
	.hold = HOLD_AUTO,
	.engine = ENGINE_AUTO,
	.min = 64 << 10,
	.read_block = 1 << 20,
	.write_block = 4 << 20,
	.depth = -1,
	.memory = 64 << 20,
	.direct_min = 1 << 20,
};

/*
 * A size: decimal digits and at most one of K, M, G for powers of 1024.
 * False when it is anything else, or does not fit.
 */
static bool parse_size(const char *s, uint64_t *value)
{
	uint64_t v = 0;
	int shift = 0;

	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s - '0', &v))
			return false;
	switch (*s) {
	case 'k':
	case 'K':
		shift = 10;
		break;
	case 'm':
	case 'M':
		shift = 20;
		break;
	case 'g':
	case 'G':
		shift = 30;
		break;
	}
	s += shift != 0;
	if (*s || v > UINT64_MAX >> shift)
		return false;
	*value = v << shift;
	return true;
}

/* The index of s in a list "a|b|c", or -1. */
static int parse_word(const char *s, const char *list)
{
	size_t n = strlen(s);

	for (int i = 0;; i++) {
		size_t len = strcspn(list, "|");

		if (len == n && !memcmp(s, list, n))
			return i;
		if (!list[len])
			return -1;
		list += len + 1;
	}
}

enum type { SWITCH, WORD, SIZE32, SIZE64, NUMBER, PATH };

static const struct setting {
	const char *name;     /* after BLKTUNE_; "" is BLKTUNE itself */
	enum type type;
	void *value;
	const char *words;    /* SWITCH, WORD: the accepted words, in the order of the values */
	uint64_t low, high;   /* SIZE, NUMBER: the range */
	uint64_t step;        /* SIZE: a multiple of this */
	const char *expected; /* for the line about a bad value */
	const char *used;     /* what stands instead */
} settings[] = {
	{"", SWITCH, &config.on, "off|on", 0, 0, 0, "on or off", "on"},
	{"MODE", WORD, &config.mode, "direct|dontcache|buffered|observe", 0, 0, 0,
		"direct, dontcache, buffered or observe", "direct"},
	{"HOLD", WORD, &config.hold, "auto|always|never", 0, 0, 0, "auto, always or never",
		"auto"},
	{"ENGINE", WORD, &config.engine, "auto|uring|aio|sync", 0, 0, 0,
		"auto, uring, aio or sync", "auto"},
	{"HOT", SWITCH, &config.hot_cache, "direct|cache", 0, 0, 0, "direct or cache", "direct"},
	{"MIN", SIZE32, &config.min, NULL, 512, 64 << 20, 512,
		"a multiple of 512 from 512 to 64M", "64K"},
	{"BLOCK", SIZE32, &config.read_block, NULL, 512, 64 << 20, 512,
		"a multiple of 512 from 512 to 64M", "1M to read, 4M to write"},
	{"READ_BLOCK", SIZE32, &config.read_block, NULL, 512, 64 << 20, 512,
		"a multiple of 512 from 512 to 64M", "1M"},
	{"WRITE_BLOCK", SIZE32, &config.write_block, NULL, 512, 64 << 20, 512,
		"a multiple of 512 from 512 to 64M", "4M"},
	{"DEPTH", NUMBER, &config.depth, NULL, 0, 64, 1, "a number from 0 to 64",
		"the engine's default"},
	{"MEMORY", SIZE64, &config.memory, NULL, 0, 1ULL << 40, 1, "a size up to 1024G", "64M"},
	{"DIRECT_MIN", SIZE64, &config.direct_min, NULL, 0, 1ULL << 62, 1,
		"a size in bytes, or with K, M or G", "1M"},
	{"SYNC", SWITCH, &config.sync_close, "off|close", 0, 0, 0, "off or close", "off"},
	{"STDIO", SWITCH, &config.stdio, "off|on", 0, 0, 0, "on or off", "off"},
	{"RATE", SIZE64, &config.rate, NULL, 1 << 10, 1ULL << 40, 1,
		"bytes per second, from 1K to 1024G", "none"},
	{"PROGRESS", SWITCH, &config.progress, "off|on", 0, 0, 0, "on or off", "off"},
	{"BLKSIZE", SIZE32, &config.blksize, NULL, 512, 64 << 20, 512,
		"a multiple of 512 from 512 to 64M", "none"},
	{"ONLY", PATH, config.only, NULL, 1, CONFIG_PATH_MAX - 1, 0,
		"colon-separated patterns shorter than 4096 bytes", "none"},
	{"SKIP", PATH, config.skip, NULL, 1, CONFIG_PATH_MAX - 1, 0,
		"colon-separated patterns shorter than 4096 bytes", "none"},
	{"PROGRAMS", PATH, config.programs, NULL, 1, CONFIG_PATH_MAX - 1, 0,
		"colon-separated patterns shorter than 4096 bytes", "none"},
	{"SKIP_PROGRAMS", PATH, config.skip_programs, NULL, 1, CONFIG_PATH_MAX - 1, 0,
		"colon-separated patterns shorter than 4096 bytes", "none"},
	{"REPORT", PATH, config.report, NULL, 1, CONFIG_PATH_MAX - 1, 0,
		"- or a path shorter than 4096 bytes", "no report"},
};

#define SETTINGS (sizeof(settings) / sizeof(*settings))

static bool set(const struct setting *s, const char *v)
{
	uint64_t n;
	int word;

	switch (s->type) {
	case SWITCH:
		word = parse_word(v, s->words);
		if (word < 0)
			return false;
		*(bool *)s->value = word;
		return true;
	case WORD:
		word = parse_word(v, s->words);
		if (word < 0)
			return false;
		memcpy(s->value, &word, sizeof(word));
		return true;
	case PATH:
		n = strlen(v);
		if (n < s->low || n > s->high)
			return false;
		memcpy(s->value, v, n + 1);
		return true;
	default:
		break;
	}
	if (!parse_size(v, &n) || n < s->low || n > s->high || n % s->step)
		return false;
	if (s->type == SIZE64)
		*(uint64_t *)s->value = n;
	else
		*(uint32_t *)s->value = n;
	return true;
}

/* Edits (insert, delete, replace) between two short names: which known one was meant? */
static int distance(const char *a, const char *b)
{
	unsigned char row[32];
	size_t n = strlen(b);

	if (n >= sizeof(row) || strlen(a) >= sizeof(row))
		return 99;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		unsigned char diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 1; j <= n; j++) {
			unsigned char cost = diagonal + (a[i] != b[j - 1]);

			diagonal = row[j];
			if (cost > row[j - 1] + 1)
				cost = row[j - 1] + 1;
			if (cost > row[j] + 1)
				cost = row[j] + 1;
			row[j] = cost;
		}
	}
	return row[n];
}

static void unknown(const char *name, size_t len)
{
	char copy[32];
	int best = 99;
	const char *nearest = "";

	if (len >= sizeof(copy)) {
		say("BLKTUNE_%.*s...: no such variable\n", (int)sizeof(copy) - 1, name);
		return;
	}
	memcpy(copy, name, len);
	copy[len] = 0;
	for (size_t i = 0; i < SETTINGS; i++) {
		int d = *settings[i].name ? distance(copy, settings[i].name) : 99;

		if (d < best) {
			best = d;
			nearest = settings[i].name;
		}
	}
	say("BLKTUNE_%s: no such variable; the nearest is BLKTUNE_%s\n", copy, nearest);
}

static const char *value_of(char **env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++) {
		const char *e = *env;

		if (strncmp(e, "BLKTUNE", 7))
			continue;
		e += 7;
		if (n && *e++ != '_')
			continue;
		if (!strncmp(e, name, n) && e[n] == '=')
			return e + n + 1;
	}
	return NULL;
}

static void check_names(char **env)
{
	for (; env && *env; env++) {
		const char *name = *env + 8;
		bool known = false;

		if (strncmp(*env, "BLKTUNE_", 8))
			continue;
		size_t len = strcspn(name, "=");
		for (size_t i = 0; i < SETTINGS; i++)
			known |= strlen(settings[i].name) == len &&
				 !memcmp(settings[i].name, name, len) && len;
		if (!known)
			unknown(name, len);
	}
}

bool config_match(const char *globs, const char *name)
{
	for (;;) {
		size_t n = strcspn(globs, ":");

		if (n && glob_match(globs, n, name))
			return true;
		if (!globs[n])
			return false;
		globs += n + 1;
	}
}

/*
 * At a limited rate a transfer is worth an eighth of a second at most, so that
 * the rate is even. MIN holds as long as that is worth 0.3 s: 3 % of 10 s.
 */
static void limit_blocks(void)
{
	uint64_t most = 64 << 20;

	while (most > 4096 && most > config.rate / 8)
		most /= 2;
	if (most < config.min && config.min > config.rate * 3 / 10)
		config.min = most;
	if (most < config.min)
		most = config.min;
	if (config.read_block > most)
		config.read_block = most;
	if (config.write_block > most)
		config.write_block = most;
}

void config_read(char **env)
{
	config = defaults;
	for (size_t i = 0; i < SETTINGS; i++) {
		const struct setting *s = &settings[i];
		const char *v = value_of(env, s->name);

		if (!v)
			continue;
		if (!set(s, v))
			say("BLKTUNE%s%s=%.64s%s: expected %s; using %s\n", *s->name ? "_" : "",
				s->name, v, strlen(v) > 64 ? "..." : "", s->expected, s->used);
		else if (!strcmp(s->name, "BLOCK"))
			config.write_block = config.read_block;
	}
	check_names(env);
	/* The block is a ceiling, MIN a floor: the floor wins. */
	if (config.read_block < config.min)
		config.read_block = config.min;
	if (config.write_block < config.min)
		config.write_block = config.min;
	if (config.rate)
		limit_blocks();
}
