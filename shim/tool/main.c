/*
 * blktune: runs a command with the library in its LD_PRELOAD and the settings
 * that the options name in its environment. It becomes the command: no
 * process of its own stays.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../core/text.h"
#include "tool.h"

#ifndef LIBDIR
#define LIBDIR "/usr/local/lib"
#endif
#ifndef VERSION
#define VERSION "(unknown version)"
#endif

#define LIBRARY "libblktune.so"

enum { CHOICE = 256, PROBE = 512, SHOW_CONFIG, SUMMARY };

static const struct option own_options[] = {
	{"quiet", no_argument, NULL, 'q'},
	{"probe", no_argument, NULL, PROBE},
	{"show-config", no_argument, NULL, SHOW_CONFIG},
	{"summary", no_argument, NULL, SUMMARY},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
};

#define OWN_OPTIONS (sizeof(own_options) / sizeof(*own_options))

void complain(const char *format, ...)
{
	char line[PIPE_BUF], *text;
	const int tail = 512, most = sizeof(line) - sizeof("blktune: ...\n");
	va_list ap;
	size_t n;
	int len;

	va_start(ap, format);
	len = vasprintf(&text, format, ap);
	va_end(ap);
	if (len < 0)
		return;
	/* Of a name that is too long the middle goes: what is wrong with it stands behind it. */
	if (len > most)
		snprintf(line, sizeof(line) - 1, "blktune: %.*s...%s", most - tail, text,
			text + len - tail);
	else
		snprintf(line, sizeof(line) - 1, "blktune: %s", text);
	free(text);
	/* One line, whatever was in the names that are quoted. */
	n = strlen(line);
	text_plain(line, n);
	line[n++] = '\n';
	text_out(2, line, n);
}

const char *clean(const char *s)
{
	char *copy = strdup(s);

	if (!copy)
		abort();
	text_plain(copy, strlen(copy));
	return copy;
}

static int help(void)
{
	printf("usage: blktune [options] [--] command [argument ...]\n"
	       "       blktune [options] --probe path ...\n"
	       "       blktune [options] --show-config\n"
	       "       blktune --summary directory|file ...\n\n"
	       "Runs a command with its file transfers turned into large direct ones.\n"
	       "Sizes take K, M and G.\n\n");
	for (int i = 0; i < choices_count; i++) {
		const struct choice *c = &choices[i];
		char form[64];

		if (c->shown)
			snprintf(form, sizeof(form), c->implied ? "--%s[=%s]" : "--%s=%s",
				c->option, c->shown);
		else
			snprintf(form, sizeof(form), "--%s", c->option);
		printf("  %c%c%s %-22s %s", c->letter ? '-' : ' ', c->letter ? c->letter : ' ',
			c->letter ? "," : " ", form, c->help);
		printf(strcmp(c->standing, "none") && !c->implied ? " (%s)\n" : "\n", c->standing);
	}
	printf("\n"
	       "  -q, --quiet                no warnings about the command\n"
	       "      --probe                say what would happen at each path, and why\n"
	       "      --show-config          say which settings are in effect, and where from\n"
	       "      --summary              one table of the JSON reports in a directory\n"
	       "  -h, --help                 this\n"
	       "  -V, --version              the version\n\n"
	       "Exit status: that of the command; 125 for an error of blktune itself, 126 when\n"
	       "the command cannot be run, 127 when it cannot be found.\n");
	return fflush(stdout) ? STATUS_OWN : 0;
}

/* The library beside the launcher, or where it was installed; false after a line about it. */
static bool find_library(char *path, size_t room)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = 0;
	slash = strrchr(self, '/');
	if (slash) {
		*slash = 0;
		if ((size_t)snprintf(path, room, "%s/" LIBRARY, self) < room && !access(path, R_OK))
			return true;
	}
	snprintf(path, room, "%s", LIBDIR "/" LIBRARY);
	if (!access(path, R_OK))
		return true;
	if (slash)
		complain("no " LIBRARY " in %s nor in " LIBDIR, self);
	else
		complain("no " LIBRARY " in " LIBDIR ", and /proc does not say where blktune is");
	return false;
}

/* LD_PRELOAD with the library before what is there, or once if it is there already. */
static char *preload(const char *library)
{
	const char *before = getenv("LD_PRELOAD");
	size_t len = strlen(library);
	char *text;

	if (!before || !*before)
		return strdup(library);
	for (const char *p = before; *p; p += *p != 0) {
		size_t n = strcspn(p, ": ");

		if (n == len && !memcmp(p, library, n))
			return strdup(before);
		p += n;
	}
	return asprintf(&text, "%s:%s", library, before) < 0 ? NULL : text;
}

static int run(char **command, const char *library, bool quiet)
{
	int error;

	if (!quiet)
		target_check(*command, library);
	execvp(*command, command);
	error = errno;
	complain("%s: %s", *command, strerror(error));
	return error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

#define OPTIONS_MOST 64

static struct option options[OPTIONS_MOST];
static char letters[32] = "+:qhV";

static void list_options(void)
{
	int n = 0;

	for (; n < choices_count; n++) {
		const struct choice *c = &choices[n];

		options[n].name = c->option;
		options[n].has_arg = c->bare ? no_argument : required_argument;
		if (c->implied && !c->bare)
			options[n].has_arg = optional_argument;
		options[n].val = CHOICE + n;
		if (c->letter)
			strncat(letters, &c->letter, 1);
	}
	memcpy(options + n, own_options, sizeof(own_options));
}

/* The choice that an option value of getopt_long stands for, or -1. */
static int choice_of(int option)
{
	if (option >= CHOICE)
		return option < CHOICE + choices_count ? option - CHOICE : -1;
	for (int i = 0; i < choices_count; i++)
		if (choices[i].letter && choices[i].letter == option)
			return i;
	return -1;
}

/* The line about an option that getopt_long refused; option: 0 for an unknown long one. */
static void refuse(const char *word, int option)
{
	if (!option)
		choose_unknown(word + 2);
	/* The first two of letters are getopt's own. */
	else if (option < CHOICE && !strchr(letters + 2, option))
		complain("-%c: no such option; blktune -h lists them", option);
	else
		complain("%.*s takes no value", (int)strcspn(word, "="), word);
}

/* What the command line asks for besides settings. */
struct wish {
	bool quiet, probing, showing, summing;
	int status; /* exit with it now, -1: go on */
};

static void parse(int argc, char **argv, struct wish *w)
{
	int option, i;

	list_options();
	while (w->status < 0 && (option = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		i = choice_of(option);
		if (i >= 0) {
			if (!choose(i, option < CHOICE ? NULL : optarg))
				w->status = STATUS_OWN;
			continue;
		}
		switch (option) {
		case 'q':
			w->quiet = true;
			break;
		case 'h':
			w->status = help();
			break;
		case 'V':
			printf("blktune " VERSION "\n");
			w->status = fflush(stdout) ? STATUS_OWN : 0;
			break;
		case PROBE:
			w->probing = true;
			break;
		case SHOW_CONFIG:
			w->showing = true;
			break;
		case SUMMARY:
			w->summing = true;
			break;
		case ':':
			choose_missing(optopt - CHOICE);
			w->status = STATUS_OWN;
			break;
		default:
			refuse(argv[optind - 1], optopt);
			w->status = STATUS_OWN;
		}
	}
}

int main(int argc, char **argv)
{
	struct wish w = {.status = -1};
	char library[PATH_MAX + sizeof(LIBRARY)], *value;

	parse(argc, argv, &w);
	if (w.status >= 0)
		return w.status;
	argv += optind;
	if (w.probing && *argv)
		return probe(argv);
	if (w.summing && *argv)
		return summary(argv);
	if (!*argv && !w.showing) {
		complain("expected %s; blktune -h tells more",
			w.probing   ? "a path after --probe"
			: w.summing ? "a directory after --summary"
				    : "a command, --probe, --show-config or --summary");
		return STATUS_OWN;
	}
	if (!find_library(library, sizeof(library)))
		return STATUS_OWN;
	if (strpbrk(library, ": ")) {
		complain("%s: expected a path without colons and spaces: LD_PRELOAD cannot hold it",
			library);
		return STATUS_OWN;
	}
	value = preload(library);
	if (!value || setenv("LD_PRELOAD", value, 1)) {
		complain("out of memory");
		exit(STATUS_OWN);
	}
	free(value);
	if (w.showing) {
		settings_show(getenv("LD_PRELOAD"));
		return fflush(stdout) ? STATUS_OWN : 0;
	}
	return run(argv, library, w.quiet);
}
