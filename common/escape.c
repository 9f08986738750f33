/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing and reading %XX. */
#include "common/escape.h"

#include <stdbool.h>

static void escape(FILE *f, const char *s, char first)
{
	for (; *s; s++)
		if (*s >= first && *s <= '~' && *s != '%')
			fputc(*s, f);
		else
			fprintf(f, "%%%02x", (unsigned char)*s);
}

void escape_word(FILE *f, const char *s)
{
	if (!*s)
		fputs("%00", f);
	escape(f, s, '!');
}

void escape_line(FILE *f, const char *s)
{
	escape(f, s, ' ');
}

/* 0 to 15; more: no digit. */
static unsigned digit(char c)
{
	return c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) :
	       c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10) : 16;
}

char *escape_undo(char *s)
{
	char *to = s;

	for (const char *from = s; *from; from++) {
		bool escaped = *from == '%' && digit(from[1]) < 16 && digit(from[2]) < 16;

		*to++ = escaped ? (char)(digit(from[1]) << 4 | digit(from[2])) : *from;
		from += escaped ? 2 : 0;
	}
	*to = 0;
	return s;
}
