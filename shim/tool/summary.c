/* blktune --summary: the JSON reports of many processes, and hosts, as one table. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../core/table.h"
#include "json.h"
#include "tool.h"

/* One process's report. */
struct report {
	char *program, *host, *engine;
	double start, elapsed, throttle; /* s; start since 1970, 0 not told */
	bool has_files;
	struct row *rows;
	size_t count;
};

static struct sum {
	struct row *rows;
	size_t count;
	uint64_t processes;
	double first, last, longest; /* s: start of the first, end of the last; longest elapsed */
	double throttle;
	char **hosts, **engines;
	size_t host_count, engine_count;
	bool bad; /* something could not be taken in */
} sum;

static void *more(void *p, size_t count, size_t size)
{
	/* Twice as much at each power of two. */
	if (count & (count - 1))
		return p;
	p = realloc(p, (count ? count * 2 : 1) * size);
	if (!p) {
		complain("out of memory");
		exit(STATUS_OWN);
	}
	return p;
}

/* The member of a list that is this string, added where there is none. */
static char *one_of(char ***list, size_t *count, char *s)
{
	for (size_t i = 0; i < *count; i++)
		if (!strcmp((*list)[i], s))
			return (*list)[i];
	*list = more(*list, *count, sizeof(**list));
	return (*list)[(*count)++] = s;
}

/* --- one object --- */

static uint64_t seconds(struct json *j)
{
	double s;

	if (json_number(j, &s) && s > 1e9)
		json_fail(j, "a time that is too long");
	return j->error ? 0 : s * 1e9 + 0.5;
}

static void read_counts(struct json *j, struct counts *c)
{
	bool first = true, moved = false;
	char *name;

	while (json_member(j, &first, &name)) {
		uint64_t *to = !strcmp(name, "calls")	     ? &c->calls
			       : !strcmp(name, "bytes")	     ? &c->bytes
			       : !strcmp(name, "transfers") ? &c->transfers
			       : !strcmp(name, "smallest")  ? &c->smallest
			       : !strcmp(name, "largest")   ? &c->largest
			       : !strcmp(name, "moved")	     ? &c->moved
			       : !strcmp(name, "direct")    ? &c->direct
							     : NULL;

		moved |= to == &c->moved;
		if (to)
			json_count(j, to);
		else if (!strcmp(name, "wait_s"))
			c->waited = seconds(j);
		else
			json_skip(j);
		free(name);
	}
	/* What carried the bytes is not told: then at least that all of them went. */
	if (!moved && c->transfers)
		c->moved = c->bytes;
}

static void read_file(struct json *j, struct row *r)
{
	bool first = true;
	char *name;

	*r = (struct row){0};
	while (json_member(j, &first, &name)) {
		const char **to = !strcmp(name, "path")     ? &r->path
				  : !strcmp(name, "mode")   ? &r->mode
				  : !strcmp(name, "reason") ? &r->reason
							    : NULL;

		if (to)
			*to = json_string(j);
		else if (!strcmp(name, "read"))
			read_counts(j, &r->read);
		else if (!strcmp(name, "write"))
			read_counts(j, &r->write);
		else if (!strcmp(name, "open_s"))
			r->open = seconds(j);
		else
			json_skip(j);
		free(name);
	}
	if (!r->reason)
		r->reason = "";
	if (!j->error && (!r->path || !r->mode))
		json_fail(j, "a file without path or mode");
}

static void read_files(struct json *j, struct report *r)
{
	bool first = true;

	r->has_files = true;
	while (json_element(j, &first)) {
		r->rows = more(r->rows, r->count, sizeof(*r->rows));
		read_file(j, &r->rows[r->count++]);
	}
}

static void read_report(struct json *j, struct report *r)
{
	bool first = true;
	char *name;

	*r = (struct report){0};
	while (json_member(j, &first, &name)) {
		char **to = !strcmp(name, "program")  ? &r->program
			    : !strcmp(name, "host")   ? &r->host
			    : !strcmp(name, "engine") ? &r->engine
						      : NULL;
		double *number = !strcmp(name, "start_s")      ? &r->start
				 : !strcmp(name, "elapsed_s")  ? &r->elapsed
				 : !strcmp(name, "throttle_s") ? &r->throttle
							       : NULL;

		if (to)
			*to = json_string(j);
		else if (number)
			json_number(j, number);
		else if (!strcmp(name, "files") && !r->has_files)
			read_files(j, r);
		else
			json_skip(j);
		free(name);
	}
	if (!j->error && (!r->program || !r->has_files))
		j->error = "not a report of blktune";
}

static void take_in(struct report *r)
{
	double end = r->start + r->elapsed;
	char *host = one_of(&sum.hosts, &sum.host_count, r->host ? r->host : (char *)"");

	if (r->engine && strcmp(r->engine, "none"))
		one_of(&sum.engines, &sum.engine_count, r->engine);
	for (size_t i = 0; i < r->count; i++) {
		sum.rows = more(sum.rows, sum.count, sizeof(*sum.rows));
		sum.rows[sum.count] = r->rows[i];
		sum.rows[sum.count++].host = host;
	}
	if (r->start > 0 && (!sum.first || r->start < sum.first))
		sum.first = r->start;
	if (r->start > 0 && end > sum.last)
		sum.last = end;
	if (r->elapsed > sum.longest)
		sum.longest = r->elapsed;
	sum.throttle += r->throttle;
	sum.processes++;
}

/* --- files --- */

static unsigned long line_of(const char *text, const char *at)
{
	unsigned long n = 1;

	for (; text < at; text++)
		n += *text == '\n';
	return n;
}

/* Objects one after the other; behind a bad one, the next that begins a line. */
static void read_text(const char *name, const char *text, size_t n)
{
	struct json j = {.at = text, .end = text + n};
	unsigned long bad = 0, line = 0;
	const char *error = NULL;

	if (!json_more(&j)) {
		complain("%s: it is empty; skipped", name);
		sum.bad = true;
	}
	while (json_more(&j)) {
		const char *from = j.at;
		struct report r;

		read_report(&j, &r);
		if (!j.error) {
			take_in(&r);
			continue;
		}
		if (!bad++) {
			error = j.error;
			line = line_of(text, j.at);
		}
		j = (struct json){.at = memmem(from, j.end - from, "\n{", 2), .end = j.end};
		if (!j.at)
			break;
	}
	if (!bad)
		return;
	sum.bad = true;
	if (bad == 1)
		complain("%s: line %lu: %s; skipped", name, line, error);
	else
		complain("%s: line %lu: %s; skipped, and %lu more in it", name, line, error,
			bad - 1);
}

static bool read_all(int fd, size_t size, const char *name)
{
	char *text = malloc(size + 1);
	size_t n = 0;
	ssize_t r = 0;

	while (text && n < size && (r = read(fd, text + n, size - n)) > 0)
		n += r;
	if (!text || r < 0) {
		complain("%s: %s; skipped", name, strerror(text ? errno : ENOMEM));
		free(text);
		return false;
	}
	read_text(name, text, n);
	free(text);
	return true;
}

static bool read_one(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	bool ok = false;

	if (fd < 0 || fstat(fd, &st))
		complain("%s: %s; skipped", name, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		complain("%s: expected a file; skipped", name);
	else
		ok = read_all(fd, st.st_size, name);
	if (fd >= 0)
		close(fd);
	return ok;
}

static int is_json(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return n > 5 && !strcmp(d->d_name + n - 5, ".json");
}

static bool read_directory(const char *name)
{
	struct dirent **list;
	int n = scandir(name, &list, is_json, alphasort);
	bool ok = n > 0;

	if (n <= 0)
		complain("%s: %s", name, n ? strerror(errno) : "no .json files in it");
	for (int i = 0; i < n; i++) {
		char *path;

		if (asprintf(&path, "%s/%s", name, list[i]->d_name) < 0)
			abort();
		ok &= read_one(path);
		free(path);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return ok;
}

/* --- the table --- */

static int by_name(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int d = strcmp(x->host, y->host);

	d = d ? d : strcmp(x->path, y->path);
	d = d ? d : strcmp(x->mode, y->mode);
	return d ? d : strcmp(x->reason, y->reason);
}

/* What several processes did with the same file becomes one row. */
static void merge(void)
{
	size_t to = 0;

	if (!sum.count)
		return;
	qsort(sum.rows, sum.count, sizeof(*sum.rows), by_name);
	for (size_t i = 1; i < sum.count; i++) {
		struct row *r = &sum.rows[i], *last = &sum.rows[to];

		if (by_name(r, last)) {
			sum.rows[++to] = *r;
			continue;
		}
		counts_add(&last->read, &r->read);
		counts_add(&last->write, &r->write);
		last->open += r->open;
	}
	sum.count = to + 1;
}

static void put_head(struct text *t, double took)
{
	text_put(t, "blktune: %llu process%s", (unsigned long long)sum.processes,
		sum.processes == 1 ? "" : "es");
	if (sum.host_count > 1)
		text_put(t, " on %zu hosts", sum.host_count);
	text_put(t, ", %.2f s, engine ", took);
	for (size_t i = 0; i < sum.engine_count; i++) {
		text_put(t, "%s", i ? " and " : "");
		text_line(t, sum.engines[i]);
	}
	text_put(t, sum.engine_count ? "" : "none");
	if (sum.throttle > 0)
		text_put(t, ", %.2f s held back by BLKTUNE_RATE", sum.throttle);
	text_put(t, "\n");
}

int summary(char **names)
{
	struct table table = {0};
	struct text text = {0};
	struct stat st;
	double took;

	for (; *names; names++)
		if (!(stat(*names, &st) == 0 && S_ISDIR(st.st_mode) ? read_directory : read_one)(
			    *names))
			sum.bad = true;
	merge();
	for (size_t i = 0; i < sum.count; i++) {
		if (sum.host_count < 2)
			sum.rows[i].host = NULL;
		table_add(&table, &sum.rows[i]);
	}
	took = sum.last - sum.first > sum.longest ? sum.last - sum.first : sum.longest;
	if (took > 1e9) /* some host's clock */
		took = sum.longest < 1e9 ? sum.longest : 1e9;
	put_head(&text, took);
	table_put(&text, &table, took * 1e9);
	fwrite(text.p, 1, text.n, stdout);
	text_free(&text);
	if (fflush(stdout) || ferror(stdout))
		return STATUS_OWN;
	return sum.bad;
}
