/*
 * The launcher's command line: the input is its arguments, one a line. Either
 * it goes on, without a word; or one line, and status 125; or what -h and -V show.
 */
#include "fuzz.h"

#include <unistd.h>

#include "../../shim/core/text.h"

#define main launcher_main
#define text_out fuzz_heard
#define LIBDIR "/usr/local/lib"
#define VERSION "0"
#include "../../shim/tool/main.c"
#undef text_out
#undef main

#define ARGUMENTS_MOST 64

const char *engine_choice(char *why, int room)
{
	(void)why, (void)room;
	return "sync";
}

void target_check(const char *command, const char *library)
{
	(void)command, (void)library;
}

int probe(char **paths)
{
	return !*paths;
}

int summary(char **names)
{
	return !*names;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	/* what -h, -V and --show-config print */
	return !freopen("/dev/null", "w", stdout);
}

/* The launcher ends soon, and frees nothing. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static char *nothing[] = {NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *argv[ARGUMENTS_MOST + 2] = {"blktune"}, *text = fuzz_string(data, size);
	struct wish w = {.status = -1};
	int argc = 1;

	for (char *p = text; argc <= ARGUMENTS_MOST && p; argc++) {
		argv[argc] = p;
		p = strchr(p, '\n');
		if (p)
			*p++ = 0;
	}
	argv[argc] = NULL;
	environ = nothing;
	optind = 0;
	strcpy(letters, "+:qhV");
	fuzz_lines = 0;
	parse(argc, argv, &w);
	must(w.status == -1 || w.status == 0 || w.status == STATUS_OWN);
	must(fuzz_lines == (w.status == STATUS_OWN));
	/* What was taken, the library takes, too. */
	fuzz_lines = 0;
	settings_read();
	must(!fuzz_lines);
	if (w.showing && w.status < 0)
		settings_show("/usr/local/lib/libblktune.so");
	free(text);
	return 0;
}
