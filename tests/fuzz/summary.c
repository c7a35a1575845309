/*
 * Reports of other processes, and hosts: the input is a file of them. At most
 * one line about it, and a table of readable text in which nothing is lost.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdarg.h>
#include <sys/stat.h>

/* The launcher ends when it has shown the table; here all that it took is given back after each input. */
struct piece {
	struct piece *next, *before;
	size_t size;
};

static struct piece all = {&all, &all, 0};

static void *take_memory(size_t size)
{
	struct piece *p = malloc(sizeof(*p) + size);

	if (!p)
		abort();
	*p = (struct piece){all.next, &all, size};
	all.next->before = p;
	all.next = p;
	return p + 1;
}

static void give_back(void *memory)
{
	struct piece *p = memory;

	if (!p)
		return;
	p--;
	p->next->before = p->before;
	p->before->next = p->next;
	free(p);
}

static void *take_more(void *memory, size_t size)
{
	void *more = take_memory(size);

	if (memory) {
		size_t had = ((struct piece *)memory)[-1].size;

		memcpy(more, memory, had < size ? had : size);
		give_back(memory);
	}
	return more;
}

#define malloc take_memory
#define realloc take_more
#define free give_back
#include "../../shim/tool/json.c"
#include "../../shim/tool/summary.c"
#undef malloc
#undef realloc
#undef free

void complain(const char *format, ...)
{
	va_list ap;

	/* what the launcher's own does with it is looked at elsewhere */
	va_start(ap, format);
	must(vsnprintf(NULL, 0, format, ap) > 0);
	va_end(ap);
	fuzz_lines++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct table table = {0};
	struct text text = {0};
	uint64_t bytes = 0, merged = 0;

	fuzz_lines = 0;
	memset(&sum, 0, sizeof(sum));
	/* exactly as large as it is: a byte beyond it is seen */
	char *exact = malloc(size ? size : 1);
	must(exact);
	memcpy(exact, data, size);
	read_text("name", exact, size);
	must(fuzz_lines <= 1 && sum.bad == fuzz_lines);
	for (size_t i = 0; i < sum.count; i++)
		bytes += sum.rows[i].read.bytes + sum.rows[i].write.bytes;
	merge();
	for (size_t i = 0; i < sum.count; i++) {
		merged += sum.rows[i].read.bytes + sum.rows[i].write.bytes;
		table_add(&table, &sum.rows[i]);
	}
	must(bytes == merged && bytes == table.read.bytes + table.write.bytes);
	put_head(&text, sum.longest);
	table_put(&text, &table, 1000000000);
	fuzz_readable(text.p, text.n);
	must(text.n && text.p[text.n - 1] == '\n');
	text_free(&text);
	free(exact);
	while (all.next != &all)
		give_back(all.next + 1);
	return 0;
}
