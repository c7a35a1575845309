/* Settings, from the environment, read once before the program's main. */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mode { MODE_DIRECT, MODE_DONTCACHE, MODE_BUFFERED, MODE_OBSERVE };
enum hold { HOLD_AUTO, HOLD_ALWAYS, HOLD_NEVER };
enum engine_kind { ENGINE_AUTO, ENGINE_URING, ENGINE_AIO, ENGINE_SYNC };

#define CONFIG_PATH_MAX 4096

struct config {
	bool on;              /* BLKTUNE: false passes everything through */
	bool hot_cache;       /* BLKTUNE_HOT=cache: read what is resident from the cache */
	enum mode mode;       /* BLKTUNE_MODE */
	enum hold hold;       /* BLKTUNE_HOLD */
	enum engine_kind engine; /* BLKTUNE_ENGINE */
	uint32_t min;         /* BLKTUNE_MIN: floor of a transfer, bytes, 512 to 64M */
	uint32_t read_block;  /* BLKTUNE_READ_BLOCK: bytes, a multiple of 512, 512 to 64M */
	uint32_t write_block; /* BLKTUNE_WRITE_BLOCK: the same */
	int depth;            /* BLKTUNE_DEPTH: transfers in flight per file, 0 to 64; -1: default */
	uint64_t memory;      /* BLKTUNE_MEMORY: cap on the buffers of the process, bytes */
	uint64_t direct_min;  /* BLKTUNE_DIRECT_MIN: bytes from which O_DIRECT is used */
	bool sync_close;      /* BLKTUNE_SYNC=close: close returns when the data is on stable storage */
	bool stdio;           /* BLKTUNE_STDIO: an inherited stdin or stdout that is a file is tuned */
	bool progress;        /* BLKTUNE_PROGRESS: a line on the terminal */
	uint64_t rate;        /* BLKTUNE_RATE: bytes per second for the process, each way; 0: no limit */
	uint32_t blksize;     /* BLKTUNE_BLKSIZE: st_blksize of regular files, bytes; 0: the kernel's */
	char only[CONFIG_PATH_MAX]; /* BLKTUNE_ONLY, BLKTUNE_SKIP: colon-separated path globs */
	char skip[CONFIG_PATH_MAX];
	char programs[CONFIG_PATH_MAX]; /* BLKTUNE_PROGRAMS, BLKTUNE_SKIP_PROGRAMS: of names */
	char skip_programs[CONFIG_PATH_MAX];
	char report[CONFIG_PATH_MAX]; /* BLKTUNE_REPORT: "" none, "-" stderr, or a path */
};

extern struct config config;

/*
 * Reads the BLKTUNE_ names of an environment into the settings. Each value
 * that cannot be used, and each name that is unknown, gives one line on
 * stderr, and the default stands.
 */
void config_read(char **env);

/* Does one of these colon-separated patterns (glob.h) match? */
bool config_match(const char *globs, const char *name);

#endif
