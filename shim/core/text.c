#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../sys.h"
#include "text.h"

static bool make_room(struct text *t, size_t n)
{
	size_t room = t->room ? t->room : 65536;
	long m;

	while (room - t->n < n)
		room *= 2;
	if (room == t->room)
		return true;
	m = sys_mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(m))
		return false;
	if (t->p) {
		memcpy((char *)m, t->p, t->n);
		sys(SYS_munmap, t->p, t->room);
	}
	t->p = (char *)m;
	t->room = room;
	return true;
}

void text_put(struct text *t, const char *format, ...)
{
	va_list ap;
	int n;

	if (!make_room(t, 1024))
		return;
	va_start(ap, format);
	n = vsnprintf(t->p + t->n, 1024, format, ap);
	va_end(ap);
	if (n > 0)
		t->n += n < 1024 ? n : 1023;
}

void text_add(struct text *t, const char *s, size_t n)
{
	if (!make_room(t, n))
		return;
	memcpy(t->p + t->n, s, n);
	t->n += n;
}

int text_utf8(const char *s)
{
	unsigned char c = *s, d = c ? s[1] : 0;
	int n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

	for (int i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Too long for what they stand for, surrogates, beyond the last. */
	if ((c == 0xe0 && d < 0xa0) || (c == 0xed && d > 0x9f) || (c == 0xf0 && d < 0x90) ||
		(c == 0xf4 && d > 0x8f))
		return 0;
	return n;
}

void text_json(struct text *t, const char *s)
{
	text_add(t, "\"", 1);
	while (*s) {
		unsigned char c = *s;
		int n = text_utf8(s);

		if (!n)
			text_add(t, "\\ufffd", 6);
		else if (c == '"' || c == '\\')
			text_put(t, "\\%c", c);
		else if (c < ' ')
			text_put(t, "\\u%04x", c);
		else
			text_add(t, s, n);
		s += n ? n : 1;
	}
	text_add(t, "\"", 1);
}

static bool printable(const char *s, int n)
{
	unsigned char c = *s;

	return n && c >= ' ' && c != 127 && !(c == 0xc2 && (unsigned char)s[1] < 0xa0);
}

void text_plain(char *s, size_t n)
{
	char last[5];

	while (n) {
		size_t have = n < 4 ? n : 4;

		/* The last characters may lack bytes that are not there. */
		memcpy(last, s, have);
		last[have] = 0;
		int k = text_utf8(last);
		if (!printable(last, k))
			memset(s, '?', k ? k : (k = 1));
		s += k;
		n -= k;
	}
}

void text_line(struct text *t, const char *s)
{
	size_t from = t->n;

	text_add(t, s, strlen(s));
	if (t->n > from)
		text_plain(t->p + from, t->n - from);
}

void text_out(int fd, const char *p, size_t n)
{
	const uint64_t pipe = 1ULL << (SIGPIPE - 1), size = 1ULL << (SIGXFSZ - 1), both = pipe | size;
	struct timespec now = {0, 0};
	uint64_t mask = 0, pending = 0, raised;
	long r;

	sys(SYS_rt_sigprocmask, SIG_BLOCK, &both, &mask, sizeof(mask));
	/* What the program blocks may be pending for itself. */
	if (mask & both)
		sys(SYS_rt_sigpending, &pending, sizeof(pending));
	r = sys(SYS_write, fd, p, n);
	raised = (r == -EPIPE ? pipe : r == -EFBIG ? size : 0) & ~pending;
	if (raised)
		sys(SYS_rt_sigtimedwait, &raised, 0, &now, sizeof(raised));
	sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, sizeof(mask));
}

void text_free(struct text *t)
{
	if (t->p)
		sys(SYS_munmap, t->p, t->room);
	*t = (struct text){0};
}
