/* Text for terminals: what a byte may do there, and how wide it is. */
#include "analyzer/report/rails.h"

#include <string.h>

/* Code points that take two columns, as ranges; what matters in practice. */
static const uint32_t wide[][2] = {
	{ 0x1100, 0x115f }, { 0x2e80, 0x303e }, { 0x3041, 0xa4cf }, { 0xac00, 0xd7a3 },
	{ 0xf900, 0xfaff }, { 0xfe30, 0xfe6f }, { 0xff00, 0xff60 }, { 0xffe0, 0xffe6 },
	{ 0x1f300, 0x1f64f }, { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd },
};

static unsigned width_of(uint32_t c)
{
	/* Marks that join the letter before them, and characters without width. */
	if ((c >= 0x300 && c <= 0x36f) || (c >= 0x200b && c <= 0x200f) || c == 0xfeff)
		return 0;
	for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
		if (c >= wide[i][0] && c <= wide[i][1])
			return 2;
	return 1;
}

/* The next piece of s as it may be printed; returns the bytes of s it stands for. */
static size_t piece(const char *s, bool unicode, char out[8], unsigned *columns)
{
	uint32_t c;
	size_t n = rep_utf8(s, &c);

	if (n && (unicode || n == 1)) {
		memcpy(out, s, n);
		out[n] = 0;
		*columns = width_of(c);
		return n;
	}
	if (n)
		snprintf(out, 8, "?");
	else if (*s == '\t')
		snprintf(out, 8, " ");
	else
		snprintf(out, 8, "\\x%02x", (unsigned char)*s);
	*columns = (unsigned)strlen(out);
	return n ? n : 1;
}

size_t text_columns(const char *s, bool unicode)
{
	size_t total = 0;
	unsigned columns;
	char out[8];

	while (*s) {
		s += piece(s, unicode, out, &columns);
		total += columns;
	}
	return total;
}

size_t text_add(struct strbuf *b, const char *s, size_t max, bool unicode)
{
	const char *dots = unicode ? "\u2026" : "...";
	size_t used = 0, keep = max, ndots = unicode ? 1 : 3;
	bool cut = text_columns(s, unicode) > max;
	unsigned columns;
	char out[8];

	if (cut)
		keep = max > ndots ? max - ndots : 0;
	while (*s) {
		s += piece(s, unicode, out, &columns);
		if (used + columns > keep)
			break;
		strbuf_str(b, out);
		used += columns;
	}
	if (cut && max >= ndots) {
		strbuf_str(b, dots);
		used += ndots;
	}
	return used;
}

/* As much of s as fits, at least one character; returns its bytes. */
static size_t fitting(const char *s, size_t columns, bool unicode)
{
	size_t n = 0, used = 0;
	unsigned wide;
	char out[8];

	while (s[n] && s[n] != ' ' && s[n] != '\n') {
		size_t bytes = piece(s + n, unicode, out, &wide);

		if (n && used + wide > columns)
			break;
		used += wide;
		n += bytes;
	}
	return n;
}

void text_wrap(FILE *f, const char *lead, const char *s, unsigned width, bool unicode)
{
	size_t indent = text_columns(lead, unicode), column = indent;
	bool first = true;

	fputs(lead, f);
	for (s += strspn(s, " \n"); *s; s += strspn(s, " \n")) {
		/* A word that no line can hold is broken. */
		size_t n = fitting(s, width > indent ? width - indent : 1, unicode);
		char *word = xasprintf("%.*s", (int)n, s);
		size_t columns = text_columns(word, unicode);
		struct strbuf b = { 0 };

		if (!first && column + 1 + columns > width) {
			fprintf(f, "\n%*s", (int)indent, "");
			column = indent;
			first = true;
		}
		if (!first)
			fputc(' ', f);
		column += !first + columns;
		text_add(&b, word, columns, unicode);
		fputs(b.s ? b.s : "", f);
		first = false;
		strbuf_free(&b);
		free(word);
		s += n;
	}
	fputc('\n', f);
}

const char *text_style(const struct report_term *term, enum term_style style)
{
	struct term t = { .color = term->color };

	return term_style(&t, style);
}
