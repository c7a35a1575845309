#include <stdarg.h>
#include <stdio.h>

#include "say.h"
#include "text.h"

void say(const char *format, ...)
{
	char text[500];
	va_list ap;
	int head = snprintf(text, sizeof(text), "blktune: ");

	va_start(ap, format);
	int n = vsnprintf(text + head, sizeof(text) - head, format, ap);
	va_end(ap);
	if (n < 0)
		return;
	n += head;
	if (n >= (int)sizeof(text)) {
		n = sizeof(text) - 1;
		text[n - 1] = '\n';
	}
	/* One line, whatever was in the value that is quoted. */
	text_plain(text, n - 1);
	text_out(2, text, n);
}
