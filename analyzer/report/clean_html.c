/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A foreign page: head, style and script are ours; of its body the elements and attributes that csched writes are written anew,
 * and everything else is left out.
 */
#include "analyzer/report/clean.h"

#include "analyzer/report/html.h"
#include "common/utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char *const elements[] = {
	"a", "b", "button", "code", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "footer", "h1", "h2", "h3", "header",
	"i", "li", "main", "ol", "p", "pre", "section", "small", "span", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul",
};

static const char *const attributes[] = {
	"aria-label", "aria-labelledby", "aria-pressed", "class", "colspan", "data-from", "data-key", "data-thread", "data-to",
	"data-variable", "href", "id", "scope", "style", "title", "type",
};

/* Their contents go with them. */
static const char *const swallowed[] = { "script", "style", "template", "iframe", "object", "svg", "math", "noscript", "title" };

#define IN(list, s, n) in(list, sizeof list / sizeof *list, s, n)

static bool in(const char *const *list, size_t count, const char *s, size_t n)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == n && !strncasecmp(list[i], s, n))
			return true;
	return false;
}

struct page {
	FILE *f;
	const char *s;
	size_t n, at;
};

static bool looking_at(const struct page *p, const char *text)
{
	return p->n - p->at >= strlen(text) && !strncasecmp(p->s + p->at, text, strlen(text));
}

/* An entity that our writer uses: its bytes, or 0. */
static size_t entity(const struct page *p)
{
	static const char *const known[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;", "&#8645;" };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (looking_at(p, known[i]))
			return strlen(known[i]);
	return 0;
}

/* One character of text or of an attribute's value. */
static void character(struct page *p)
{
	uint32_t c;
	size_t known = entity(p), len = known ? known : utf8_shown(p->s + p->at, p->n - p->at, &c);

	if (known || (len && !strchr("<>&\"'", *(p->s + p->at))))
		fwrite(p->s + p->at, 1, len, p->f);
	else if (len)
		fprintf(p->f, "&#%u;", (unsigned)c);
	else
		fputs(strchr("\n\t", p->s[p->at]) && p->s[p->at] ? "\n" : "\xef\xbf\xbd", p->f);
	p->at += len ? len : 1;
}

/* Numbers of a grid, and a link inside of the page. */
static bool is_good_value(const char *name, size_t n, const char *value, size_t len)
{
	if (n == 5 && !strncasecmp(name, "style", 5)) {
		for (size_t i = 0; i < len; i++)
			if (!isdigit((unsigned char)value[i]) && !strchr("gridcolumnw-:;/ ", value[i]))
				return false;
		return true;
	}
	if (n == 4 && !strncasecmp(name, "href", 4))
		return len && *value == '#';
	return n != 4 || strncasecmp(name, "type", 4) || (len == 6 && !strncmp(value, "button", 6));
}

static size_t name_length(const struct page *p)
{
	size_t n = 0;

	while (p->at + n < p->n && (isalnum((unsigned char)p->s[p->at + n]) || p->s[p->at + n] == '-'))
		n++;
	return n;
}

static void attribute(struct page *p, bool keep)
{
	const char *name = p->s + p->at;
	size_t n = name_length(p);

	p->at += n;
	if (!looking_at(p, "=\"") && !looking_at(p, "='")) {
		/* "open", "hidden": ours have none. */
		p->at += n ? 0 : 1;
		return;
	}
	char quote = p->s[p->at + 1];
	p->at += 2;
	const char *value = p->s + p->at, *end = memchr(value, quote, p->n - p->at);
	size_t len = end ? (size_t)(end - value) : p->n - p->at;

	if (!keep || !IN(attributes, name, n) || !is_good_value(name, n, value, len)) {
		p->at += len + (end ? 1 : 0);
		return;
	}
	fprintf(p->f, " %.*s=\"", (int)n, name);
	while (p->s + p->at < value + len)
		character(p);
	fputc('"', p->f);
	p->at += end ? 1 : 0;
}

/* Behind the end tag of an element that is left out with its contents. */
static void swallow(struct page *p, const char *name, size_t n)
{
	for (; p->at < p->n; p->at++)
		if (looking_at(p, "</") && p->n - p->at > n + 2 && !strncasecmp(p->s + p->at + 2, name, n)) {
			const char *end = memchr(p->s + p->at, '>', p->n - p->at);

			p->at = end ? (size_t)(end + 1 - p->s) : p->n;
			return;
		}
}

/* At a '<'. */
static void tag(struct page *p)
{
	bool closes = looking_at(p, "</");

	p->at += closes ? 2 : 1;
	const char *name = p->s + p->at;
	size_t n = name_length(p);
	bool keep = n && IN(elements, name, n);

	p->at += n;
	if (keep)
		fprintf(p->f, "<%s%.*s", closes ? "/" : "", (int)n, name);
	while (p->at < p->n && p->s[p->at] != '>') {
		size_t before = p->at;

		if (isalpha((unsigned char)p->s[p->at]))
			attribute(p, keep && !closes);
		p->at += p->at == before;
	}
	p->at += p->at < p->n;
	if (keep)
		fputc('>', p->f);
	else if (!closes && IN(swallowed, name, n))
		swallow(p, name, n);
}

err_t clean_html(FILE *f, const char *s, size_t n)
{
	struct page p = { .f = f, .s = s, .n = n };

	while (p.at < n && !looking_at(&p, "<body>"))
		p.at++;
	if (p.at == n)
		return err_new(ERR_INPUT, "its page is none that csched writes");
	p.at += strlen("<body>");
	html_begin(f, "csched", "a report from a redacted pack", true);
	while (p.at < n && !looking_at(&p, "</body>"))
		if (s[p.at] == '<')
			tag(&p);
		else
			character(&p);
	html_end(f);
	return NULL;
}
