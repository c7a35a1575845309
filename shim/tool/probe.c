/* blktune --probe: what would happen at a path. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../core/config.h"
#include "../core/file.h"
#include "../core/place.h"
#include "tool.h"

struct probe {
	const char *path;
	struct stat st;
	int fd; /* the file; of a directory a nameless file in it; -1 none */
	int error; /* errno of opening it */
	enum fs fs;
	char fs_name[64], mount[256], source[256]; /* of mountinfo, "" not known */
	struct dio dio;
	dev_t dev; /* of the device below, 0 none */
	uint32_t logical, physical; /* its sectors, bytes, 0 not known */
	uint32_t align;
	bool in_use; /* a block device that is mounted or part of something */
	const char *trial; /* why a direct transfer was refused, NULL: it was not */
};

static const char *rounded(double v, char *text, size_t room)
{
	int unit = 0;

	while (v >= 1024 && unit < 6) {
		v /= 1024;
		unit++;
	}
	snprintf(text, room, unit && v < 100 ? "%.1f%c" : "%.0f%c", v, "BKMGTPE"[unit]);
	return text;
}

/* Octal escapes of /proc/self/mountinfo: blanks and backslashes. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*to++ = (s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0');
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = 0;
}

/* Names of the filesystem and its source; by the mount's id, on old kernels by the device. */
static void look_mount(struct probe *p)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		unsigned long long id;
		unsigned int high, low;
		char *rest = strstr(line, " - ");
		int at = 0;

		if (!rest || sscanf(line, "%llu %*u %u:%u %*s %n", &id, &high, &low, &at) < 3 ||
			!at)
			continue;
		if (p->dio.mount ? id != p->dio.mount : makedev(high, low) != p->st.st_dev)
			continue;
		sscanf(line + at, "%255s", p->mount);
		sscanf(rest, " - %63s %255s", p->fs_name, p->source);
		unescape(p->mount);
		unescape(p->source);
	}
	free(line);
	if (f)
		fclose(f);
}

static uint32_t queue_value(dev_t dev, const char *name)
{
	/* A partition has the queue of its disk, one directory up. */
	static const char *const ways[] = {"", "/.."};
	uint32_t value = 0;

	for (int i = 0; i < 2 && !value; i++) {
		char path[128];
		FILE *f;

		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u%s/queue/%s", major(dev),
			minor(dev), ways[i], name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%u", &value) != 1)
			value = 0;
		fclose(f);
	}
	return value;
}

static void look_device(struct probe *p)
{
	struct stat st;

	if (S_ISBLK(p->st.st_mode))
		p->dev = p->st.st_rdev;
	else if (major(p->st.st_dev))
		p->dev = p->st.st_dev;
	else if (!stat(p->source, &st) && S_ISBLK(st.st_mode))
		p->dev = st.st_rdev; /* btrfs numbers its volumes itself */
	if (p->dev) {
		p->logical = queue_value(p->dev, "logical_block_size");
		p->physical = queue_value(p->dev, "physical_block_size");
	}
	if (S_ISBLK(p->st.st_mode)) {
		int size;

		if (p->fd >= 0 && !ioctl(p->fd, BLKSSZGET, &size))
			p->logical = size;
		p->in_use = place_in_use(p->dev);
	}
}

static bool direct(const struct probe *p, bool write)
{
	if (p->trial)
		return false;
	if (S_ISBLK(p->st.st_mode))
		return !p->in_use;
	return place_direct(p->fs, &p->dio, write);
}

/* One direct transfer each way in the nameless file, one read of any other. */
static void try_direct(struct probe *p)
{
	void *buf;
	ssize_t n = 0;

	if (p->fd < 0 || !direct(p, false) || posix_memalign(&buf, p->align, p->align))
		return;
	memset(buf, 0, p->align);
	if (fcntl(p->fd, F_SETFL, O_DIRECT) < 0)
		n = -1;
	else if (S_ISDIR(p->st.st_mode) && direct(p, true))
		n = pwrite(p->fd, buf, p->align, 0);
	if (n >= 0)
		n = pread(p->fd, buf, p->align, 0);
	if (n < 0 && errno != ENOSPC && errno != EDQUOT && errno != EFBIG)
		p->trial = strerror(errno);
	free(buf);
}

/* Why not direct: the report's word, and more. */
static void why_not(const struct probe *p, bool write, char *text, size_t room)
{
	if (p->trial)
		snprintf(text, room, "the kernel refuses it: %s", p->trial);
	else if (S_ISBLK(p->st.st_mode))
		snprintf(text, room, "mounted: the device is in use");
	else if (p->dio.told && !p->dio.offset && p->fs != FS_NONE && p->fs != FS_CACHED)
		snprintf(text, room, "filesystem: it takes O_DIRECT here but does not mean it");
	else if (p->fs == FS_BTRFS && write)
		snprintf(text, room, "filesystem: btrfs buffers writes of checksummed data");
	else if (p->fs == FS_ASK)
		snprintf(text, room, "filesystem: %s does not promise it here%s%s", p->fs_name,
			p->fd < 0 && p->error ? ", as far as can be seen: " : "",
			p->fd < 0 && p->error ? strerror(p->error) : "");
	else
		snprintf(text, room, "filesystem: no direct transfers on %s",
			*p->fs_name ? p->fs_name : "this one");
}

static bool tuned(const struct probe *p, bool write)
{
	if (S_ISBLK(p->st.st_mode))
		return !(write && p->in_use && config.mode == MODE_DIRECT);
	return place_tuned(p->fs, &p->dio, config.mode);
}

/* RLIMIT_FSIZE: the library leaves writes alone, so that the signal comes where it should. */
static bool limited(const struct probe *p)
{
	struct rlimit limit;

	return !S_ISBLK(p->st.st_mode) && !getrlimit(RLIMIT_FSIZE, &limit) &&
	       limit.rlim_cur != RLIM_INFINITY;
}

/* "direct in blocks of 1M": what the library would do. */
static void plan(const struct probe *p, bool write, char *text, size_t room)
{
	uint32_t block = write ? config.write_block : config.read_block;
	bool small = S_ISREG(p->st.st_mode) && (uint64_t)p->st.st_size < config.direct_min;
	char size[24], least[24];

	size_exact(block, size, sizeof(size));
	size_exact(config.direct_min, least, sizeof(least));
	if (!config.on || config.mode == MODE_OBSERVE)
		snprintf(text, room, "left alone (%s)", config.on ? "mode observe" : "off");
	else if (!tuned(p, write))
		snprintf(text, room, "left alone (%s)",
			S_ISBLK(p->st.st_mode) ? "mounted" : "filesystem");
	else if (write && limited(p))
		snprintf(text, room, "left alone (limit)");
	else if (config.mode == MODE_DONTCACHE)
		snprintf(
			text, room, "through the page cache in blocks of %s, dropped behind", size);
	else if (config.mode == MODE_BUFFERED || !direct(p, write))
		snprintf(text, room, "through the page cache in blocks of %s", size);
	else if (small)
		snprintf(text, room, "through the page cache in blocks of %s (small: below %s)",
			size, least);
	else if (S_ISDIR(p->st.st_mode) && config.direct_min)
		snprintf(text, room, "direct in blocks of %s; below %s through the page cache",
			size, least);
	else
		snprintf(text, room, "direct in blocks of %s", size);
}

static void show_space(const struct probe *p)
{
	char free[16], all[16];
	struct statvfs fs;
	uint64_t bytes;

	if (S_ISBLK(p->st.st_mode)) {
		if (p->fd >= 0 && !ioctl(p->fd, BLKGETSIZE64, &bytes))
			printf("  size          %s\n", rounded(bytes, all, sizeof(all)));
		return;
	}
	if (statvfs(p->path, &fs) || !fs.f_blocks)
		return;
	bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	printf("  free space    %s of %s%s\n", rounded(bytes, free, sizeof(free)),
		rounded((double)fs.f_blocks * fs.f_frsize, all, sizeof(all)),
		bytes > 2 * (uint64_t)config.write_block
			? ""
			: " (nearly-full: writes are not held back)");
}

static void show(const struct probe *p)
{
	const char *kind = S_ISDIR(p->st.st_mode)   ? "directory (as for new files in it)"
			   : S_ISBLK(p->st.st_mode) ? "block device"
						    : "file";
	char text[256], engine[64 + 256];

	printf("%s\n  what          %s\n", clean(p->path), kind);
	if (!S_ISBLK(p->st.st_mode))
		printf("  filesystem    %s%s%s%s%s\n", *p->fs_name ? p->fs_name : "not known",
			*p->mount ? " on " : "", clean(p->mount), *p->source ? " from " : "",
			clean(p->source));
	if (p->dev)
		printf("  device        %u:%u", major(p->dev), minor(p->dev));
	else
		printf("  device        none");
	if (p->logical)
		printf(", sectors of %u bytes", p->logical);
	if (p->physical)
		printf(" (physical %u)", p->physical);
	printf("\n  alignment     %u", p->align);
	if (p->dio.told && p->dio.offset)
		printf(" (statx: offset %u, memory %u)", p->dio.offset, p->dio.memory);
	for (int write = 0; write < 2; write++) {
		why_not(p, write, text, sizeof(text));
		printf("\n  direct %s %s%s", write ? "write " : "read  ",
			direct(p, write) ? "yes" : "no: ", direct(p, write) ? "" : text);
		if (direct(p, write) && p->error)
			printf(" (not tried: %s)", strerror(p->error));
	}
	snprintf(engine, sizeof(engine), "%s", engine_choice(text, sizeof(text)));
	printf("\n  engine        %s%s%s%s\n", engine, *text ? " (" : "", text, *text ? ")" : "");
	show_space(p);
	for (int write = 0; write < 2; write++) {
		plan(p, write, text, sizeof(text));
		printf("  would %s   %s\n", write ? "write" : "read ", text);
	}
}

static bool probe_one(const char *path)
{
	struct probe p = {.path = path, .fd = -1};
	struct statfs fs;

	if (stat(path, &p.st)) {
		complain("%s: %s", path, strerror(errno));
		return false;
	}
	if (!S_ISREG(p.st.st_mode) && !S_ISDIR(p.st.st_mode) && !S_ISBLK(p.st.st_mode)) {
		complain("%s: expected a file, a directory or a block device: "
			 "anything else is passed through",
			path);
		return false;
	}
	if (S_ISDIR(p.st.st_mode))
		p.fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	else
		p.fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	p.error = p.fd < 0 ? errno : 0;
	p.fs = statfs(path, &fs) ? FS_NONE : place_fs(fs.f_type);
	/* On a directory statx says nothing of direct I/O, but where it is mounted. */
	if (p.fd >= 0)
		place_dio(p.fd, "", &p.dio);
	else
		place_dio(AT_FDCWD, path, &p.dio);
	look_mount(&p);
	look_device(&p);
	p.align = place_align(&p.dio, p.logical);
	try_direct(&p);
	show(&p);
	if (p.fd >= 0)
		close(p.fd);
	return true;
}

int probe(char **paths)
{
	int status = 0;

	settings_read();
	for (; *paths; paths++) {
		if (!probe_one(*paths))
			status = 1;
		fflush(stdout);
	}
	return ferror(stdout) ? STATUS_OWN : status;
}
