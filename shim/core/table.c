#include <stdio.h>
#include <string.h>

#include "table.h"

void counts_add(struct counts *to, const struct counts *c)
{
	to->calls += c->calls;
	to->bytes += c->bytes;
	to->transfers += c->transfers;
	to->moved += c->moved;
	to->direct += c->direct;
	to->direct_bytes += c->direct_bytes;
	to->waited += c->waited;
	if (c->largest > to->largest)
		to->largest = c->largest;
	if (c->smallest && (!to->smallest || c->smallest < to->smallest))
		to->smallest = c->smallest;
}

static uint64_t bytes_of(const struct row *r)
{
	return r->read.bytes + r->write.bytes;
}

void table_add(struct table *t, const struct row *r)
{
	const struct row *out = r;
	int i = t->shown;

	counts_add(&t->read, &r->read);
	counts_add(&t->write, &r->write);
	while (i > 0 && bytes_of(t->top[i - 1]) < bytes_of(r))
		i--;
	if (t->shown == TABLE_FILES && i < TABLE_FILES)
		out = t->top[TABLE_FILES - 1];
	if (i < TABLE_FILES) {
		int last = t->shown < TABLE_FILES ? t->shown : TABLE_FILES - 1;

		memmove(&t->top[i + 1], &t->top[i], (last - i) * sizeof(*t->top));
		t->top[i] = r;
	}
	if (t->shown < TABLE_FILES) {
		t->shown++;
		return;
	}
	t->folded++;
	counts_add(&t->folded_read, &out->read);
	counts_add(&t->folded_write, &out->write);
}

const char *table_size(char *to, size_t room, double v)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	int unit = 0;

	/* 1023.9 would be shown as 1024. */
	while (v >= 1023.5 && unit < 6) {
		v /= 1024;
		unit++;
	}
	v = v < 99.95 ? (uint64_t)(v * 10 + 0.5) / 10.0 : v;
	snprintf(to, room, v >= 99.95 || v == (int)v ? "%.0f %s" : "%.1f %s", v, units[unit]);
	return to;
}

/* A line: one direction of a file, or of several. */
static void put_line(struct text *t, const char *what, const struct counts *c, uint64_t took,
	const char *mode, const char *reason)
{
	char bytes[16], call[16], transfer[16], how[32], wait[24] = "-", rate[24] = "-";

	table_size(bytes, sizeof(bytes), c->bytes);
	table_size(call, sizeof(call), c->calls ? (double)c->bytes / c->calls : 0);
	table_size(transfer, sizeof(transfer),
		c->transfers ? (double)c->moved / c->transfers : 0);
	snprintf(how, sizeof(how), *reason ? "%s: %s" : "%s", mode, reason);
	text_plain(how, strlen(how));
	if (c->waited)
		snprintf(wait, sizeof(wait), "%.3f", c->waited / 1e9);
	if (took)
		snprintf(rate, sizeof(rate), "%.1f", c->bytes / 1048576.0 / (took / 1e9));
	text_put(t, "%-5s %9s %9llu %9s %9llu %9s %8s %8s  %-20s ", what, bytes,
		(unsigned long long)c->calls, call, (unsigned long long)c->transfers, transfer,
		wait, rate, how);
}

static void put_name(struct text *t, const struct row *r)
{
	if (r->host) {
		text_line(t, r->host);
		text_add(t, ":", 1);
	}
	text_line(t, r->path);
	text_add(t, "\n", 1);
}

void table_put(struct text *text, const struct table *t, uint64_t elapsed)
{
	char bytes[16];

	text_put(text, "%-5s %9s %9s %9s %9s %9s %8s %8s  %-20s %s\n", "", "bytes", "calls",
		"mean", "transfers", "mean", "wait s", "MiB/s", "how", "file");
	for (int i = 0; i < t->shown; i++) {
		const struct row *r = t->top[i];

		if (r->read.calls) {
			put_line(text, "read", &r->read, r->open, r->mode, r->reason);
			put_name(text, r);
		}
		if (r->write.calls) {
			put_line(text, "write", &r->write, r->open, r->mode, r->reason);
			put_name(text, r);
		}
	}
	if (t->folded)
		text_put(text, "and %llu more file%s, %s\n", (unsigned long long)t->folded,
			t->folded == 1 ? "" : "s", table_size(bytes, sizeof(bytes),
				(double)t->folded_read.bytes + t->folded_write.bytes));
	if (t->read.calls) {
		put_line(text, "read", &t->read, elapsed, "", "");
		text_put(text, "total\n");
	}
	if (t->write.calls) {
		put_line(text, "write", &t->write, elapsed, "", "");
		text_put(text, "total\n");
	}
}
