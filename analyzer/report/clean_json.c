/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Foreign JSON: read strictly, written token by token. */
#include "analyzer/report/clean.h"

#include "common/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DEEPEST 64 /* ours stays below 20 */

struct reader {
	FILE *f;
	const char *s;
	size_t n, at;
	bool sarif; /* its texts may hold links */
};

static err_t no_json(const struct reader *r)
{
	return err_new(ERR_INPUT, "its JSON is damaged at byte %zu", r->at);
}

static char peek(const struct reader *r)
{
	return r->at < r->n ? r->s[r->at] : 0;
}

static void skip(struct reader *r)
{
	for (; r->at < r->n && strchr(" \t\r\n", r->s[r->at]) && r->s[r->at]; r->at++)
		if (r->s[r->at] == '\n' || r->s[r->at] == ' ')
			fputc(r->s[r->at], r->f);
}

/* Of a SARIF text: [words](target) is a link. And an address may only be one of a file or of the web. */
static bool is_known_scheme(const char *s, size_t n)
{
	static const char *const schemes[] = { "http:", "https:", "file:" };
	size_t len = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");

	if (!len || len >= n || s[len] != ':' || strncmp(s + len, ":", 1))
		return true;
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
		if (len + 1 == strlen(schemes[i]) && !strncasecmp(s, schemes[i], len + 1))
			return true;
	return s[len + 1] == ' ' || s[len + 1] == '"'; /* "crasher: it failed" */
}

static size_t escape(struct reader *r)
{
	const char *s = r->s + r->at;
	size_t left = r->n - r->at;

	if (left > 1 && strchr("\"\\/bfnrt", s[1]) && s[1])
		return 2;
	return left > 5 && s[1] == 'u' && strspn(s + 2, "0123456789abcdefABCDEF") >= 4 ? 6 : 0;
}

static err_t string(struct reader *r)
{
	if (peek(r) != '"')
		return no_json(r);
	fputc('"', r->f);
	r->at++;
	if (r->sarif && !is_known_scheme(r->s + r->at, r->n - r->at))
		fputs("./", r->f);
	while (peek(r) != '"') {
		uint32_t c;
		size_t len;

		if (r->at >= r->n)
			return no_json(r);
		if (peek(r) == '\\') {
			len = escape(r);
			if (!len)
				return no_json(r);
			fwrite(r->s + r->at, 1, len, r->f);
			r->at += len;
			continue;
		}
		len = utf8_shown(r->s + r->at, r->n - r->at, &c);
		if (len)
			fwrite(r->s + r->at, 1, len, r->f);
		else
			fputs("\\ufffd", r->f);
		r->at += len ? len : 1;
		if (r->sarif && c == ']' && peek(r) == '(')
			fputc(' ', r->f);
	}
	fputc('"', r->f);
	r->at++;
	return NULL;
}

static err_t number_or_word(struct reader *r)
{
	static const char *const words[] = { "true", "false", "null" };
	size_t len = strspn(r->s + r->at, "0123456789+-.eE");

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (r->n - r->at >= strlen(words[i]) && !memcmp(r->s + r->at, words[i], strlen(words[i])))
			len = strlen(words[i]);
	if (!len || len > 40)
		return no_json(r);
	fwrite(r->s + r->at, 1, len, r->f);
	r->at += len;
	return NULL;
}

static err_t value(struct reader *r, unsigned depth);

static err_t members(struct reader *r, bool object, unsigned depth)
{
	char end = object ? '}' : ']';

	fputc(r->s[r->at++], r->f);
	skip(r);
	for (bool first = true; peek(r) != end; first = false) {
		if (!first) {
			if (peek(r) != ',')
				return no_json(r);
			fputc(',', r->f);
			r->at++;
			skip(r);
		}
		if (object) {
			TRY(string(r));
			skip(r);
			if (peek(r) != ':')
				return no_json(r);
			fputc(':', r->f);
			r->at++;
			skip(r);
		}
		TRY(value(r, depth + 1));
		skip(r);
	}
	fputc(end, r->f);
	r->at++;
	return NULL;
}

static err_t value(struct reader *r, unsigned depth)
{
	char c = peek(r);

	if (depth > DEEPEST)
		return no_json(r);
	return c == '{' || c == '[' ? members(r, c == '{', depth) : c == '"' ? string(r) : number_or_word(r);
}

static err_t clean(FILE *f, const char *s, size_t n, bool sarif)
{
	struct reader r = { .f = f, .s = s, .n = n, .sarif = sarif };

	skip(&r);
	TRY(value(&r, 0));
	skip(&r);
	return r.at == n ? NULL : no_json(&r);
}

err_t clean_json(FILE *f, const char *s, size_t n)
{
	return clean(f, s, n, false);
}

err_t clean_sarif(FILE *f, const char *s, size_t n)
{
	return clean(f, s, n, true);
}
