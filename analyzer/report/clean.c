/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Foreign reports as text, Markdown and Graphviz. */
#include "analyzer/report/clean.h"

#include "common/utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* One character, as it is or as \xNN; its bytes. */
static size_t one(FILE *f, const char *s, size_t n)
{
	uint32_t c;
	size_t len = utf8_shown(s, n, &c);

	if (len)
		fwrite(s, 1, len, f);
	else
		fprintf(f, "\\x%02x", (unsigned char)*s);
	return len ? len : 1;
}

err_t clean_text(FILE *f, const char *s, size_t n)
{
	for (size_t i = 0; i < n;)
		if (s[i] == '\n' || s[i] == '\t')
			fputc(s[i++] == '\n' ? '\n' : ' ', f);
		else
			i += one(f, s + i, n - i);
	return NULL;
}

/* ---- Markdown ---- */

static bool starts(const char *s, size_t n, const char *with)
{
	return n >= strlen(with) && !memcmp(s, with, strlen(with));
}

static const char *tag_of_ours(const char *s, size_t n)
{
	static const char *const tags[] = { "<br>", "<details>", "</details>", "<summary>", "</summary>" };

	for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
		if (starts(s, n, tags[i]))
			return tags[i];
	return NULL;
}

/* Of HTML that is all there is in ours; of links and pictures nothing. */
err_t clean_markdown(FILE *f, const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		if (s[i] == '\n') {
			fputc(s[i++], f);
		} else if (tag_of_ours(s + i, n - i)) {
			fputs(tag_of_ours(s + i, n - i), f);
			i += strlen(tag_of_ours(s + i, n - i));
		} else if (s[i] == '<') {
			fputs("&lt;", f);
			i++;
		} else if (starts(s + i, n - i, "](") || starts(s + i, n - i, "][") || starts(s + i, n - i, "]:")) {
			fprintf(f, "] %c", s[i + 1]);
			i += 2;
		} else {
			i += one(f, s + i, n - i);
		}
	}
	return NULL;
}

/* ---- Graphviz ---- */

static const char *const attributes[] = {
	"label", "labelloc", "fontname", "fontsize", "fontcolor", "shape", "style", "group", "color", "penwidth", "constraint",
	"weight", "arrowhead", "rank",
};

static bool is_attribute(const char *s, size_t n)
{
	for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
		if (strlen(attributes[i]) == n && !memcmp(attributes[i], s, n))
			return true;
	return false;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static err_t no_dot(void)
{
	return err_new(ERR_INPUT, "its graph holds what csched does not write");
}

/* From the quote at s; the bytes up to behind the closing one, 0: there is none. */
static size_t quoted(FILE *f, const char *s, size_t n)
{
	size_t i = 1;

	fputc('"', f);
	while (i < n && s[i] != '"') {
		if (s[i] == '\\' && i + 1 < n && (s[i + 1] == '"' || s[i + 1] == '\\' || s[i + 1] == 'n')) {
			fprintf(f, "\\%c", s[i + 1]);
			i += 2;
			continue;
		}
		uint32_t c;
		size_t len = utf8_shown(s + i, n - i, &c);

		if (len && c != '\\')
			fwrite(s + i, 1, len, f);
		else
			fputc('?', f);
		i += len ? len : 1;
	}
	fputc('"', f);
	return i < n ? i + 1 : 0;
}

err_t clean_dot(FILE *f, const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		if (s[i] == '"') {
			size_t len = quoted(f, s + i, n - i);

			if (!len)
				return no_dot();
			i += len;
		} else if (is_word(s[i])) {
			size_t len = 1;

			while (i + len < n && is_word(s[i + len]))
				len++;
			if (i + len < n && s[i + len] == '=' && !is_attribute(s + i, len))
				return no_dot();
			fwrite(s + i, 1, len, f);
			i += len;
		} else if (strchr("{}[];,=->\n\t ", s[i]) && s[i]) {
			/* name = "..." with blanks would get past the list of attributes. */
			if (s[i] == '=' && (!i || !is_word(s[i - 1])))
				return no_dot();
			fputc(s[i++], f);
		} else {
			return no_dot();
		}
	}
	return NULL;
}
