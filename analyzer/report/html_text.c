#include "analyzer/report/html.h"

#include <string.h>

static size_t one(FILE *f, const char *s)
{
	uint32_t c;
	size_t n = *s == '\t' ? 1 : rep_utf8(s, &c);

	switch (*s) {
	case '&': fputs("&amp;", f); return 1;
	case '<': fputs("&lt;", f); return 1;
	case '>': fputs("&gt;", f); return 1;
	case '"': fputs("&quot;", f); return 1;
	case '\'': fputs("&#39;", f); return 1;
	}
	if (!n) {
		fputs("\xef\xbf\xbd", f);
		return 1;
	}
	fwrite(s, 1, n, f);
	return n;
}

void html_text(FILE *f, const char *s)
{
	while (*s)
		s += one(f, s);
}

void html_sentence(FILE *f, const char *s)
{
	bool code = false;

	while (*s) {
		if (*s == '`' && !code && strchr(s + 1, '\'')) {
			fputs("<code>", f);
			code = true;
			s++;
		} else if (*s == '\'' && code) {
			fputs("</code>", f);
			code = false;
			s++;
		} else {
			s += one(f, s);
		}
	}
	if (code)
		fputs("</code>", f);
}
