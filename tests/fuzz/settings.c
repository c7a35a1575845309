/*
 * The settings: the input is an environment, an entry a line. Each entry
 * alone: one that is refused gets one line and changes nothing. All together:
 * whatever they are, what comes out lies in the ranges that config.h names.
 */
#include "fuzz.h"

#include "../../shim/core/text.h"
#define text_out fuzz_heard
#include "../../shim/core/say.c"

#include "../../shim/core/config.c"

#define ENTRIES_MOST 64

static void in_range(void)
{
	must(config.mode <= MODE_OBSERVE && config.hold <= HOLD_NEVER && config.engine <= ENGINE_SYNC);
	must(config.min >= 512 && config.min <= 64 << 20 && config.min % 512 == 0);
	must(config.read_block >= config.min && config.read_block <= 64 << 20 && config.read_block % 512 == 0);
	must(config.write_block >= config.min && config.write_block <= 64 << 20 && config.write_block % 512 == 0);
	must(config.depth >= -1 && config.depth <= 64);
	must(config.memory <= 1ULL << 40);
	must(config.direct_min <= 1ULL << 62);
	must(!config.rate || (config.rate >= 1 << 10 && config.rate <= 1ULL << 40));
	must(!config.blksize || (config.blksize >= 512 && config.blksize <= 64 << 20));
	must(memchr(config.only, 0, sizeof(config.only)) && memchr(config.skip, 0, sizeof(config.skip)));
	must(memchr(config.programs, 0, sizeof(config.programs)));
	must(memchr(config.skip_programs, 0, sizeof(config.skip_programs)));
	must(memchr(config.report, 0, sizeof(config.report)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct config first;
	char *env[ENTRIES_MOST + 1], *text = fuzz_string(data, size);
	int n = 0;

	for (char *p = text; n < ENTRIES_MOST && p; n++) {
		env[n] = p;
		p = strchr(p, '\n');
		if (p)
			*p++ = 0;
	}
	env[n] = NULL;
	for (int i = 0; i < n; i++) {
		char *one[] = {env[i], NULL};

		fuzz_lines = 0;
		config_read(one);
		in_range();
		must(fuzz_lines <= 1);
		must(!fuzz_lines || !memcmp(&config, &defaults, sizeof(config)));
	}
	fuzz_lines = 0;
	config_read(env);
	in_range();
	must(fuzz_lines <= n);
	memcpy(&first, &config, sizeof(config));
	config_read(env);
	must(!memcmp(&first, &config, sizeof(config)));
	/* Any name may be asked for. */
	config_match(config.only, "/some/where/a.file");
	config_match(config.skip, text);
	free(text);
	return 0;
}
