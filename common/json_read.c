/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recursive descent over JSON text. */
#include "common/json_read.h"

#include "common/strbuf.h"
#include "common/vec.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH 64

struct reader {
	const char *text, *p, *end;
};

static err_t bad(const struct reader *r, const char *what)
{
	return err_new(ERR_INPUT, "JSON: %s at byte %zu", what, (size_t)(r->p - r->text));
}

static void skip(struct reader *r)
{
	while (r->p < r->end && strchr(" \t\r\n", *r->p) && *r->p)
		r->p++;
}

static bool take(struct reader *r, char c)
{
	skip(r);
	if (r->p >= r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

static bool hex4(struct reader *r, unsigned *out)
{
	*out = 0;
	for (int i = 0; i < 4; i++, r->p++) {
		char c = r->p < r->end ? *r->p : 0;
		int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 :
			c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;

		if (d < 0)
			return false;
		*out = *out << 4 | (unsigned)d;
	}
	return true;
}

static void utf8(struct strbuf *b, unsigned c)
{
	if (c < 0x80) {
		strbuf_char(b, (char)c);
	} else if (c < 0x800) {
		strbuf_char(b, (char)(0xc0 | c >> 6));
		strbuf_char(b, (char)(0x80 | (c & 63)));
	} else {
		if (c >= 0x10000) {
			strbuf_char(b, (char)(0xf0 | c >> 18));
			strbuf_char(b, (char)(0x80 | (c >> 12 & 63)));
		} else {
			strbuf_char(b, (char)(0xe0 | c >> 12));
		}
		strbuf_char(b, (char)(0x80 | (c >> 6 & 63)));
		strbuf_char(b, (char)(0x80 | (c & 63)));
	}
}

static bool escape(struct reader *r, struct strbuf *b)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = r->p < r->end ? *r->p++ : 0;
	const char *at = c ? strchr(from, c) : NULL;
	unsigned u, low;

	if (at) {
		strbuf_char(b, to[at - from]);
		return true;
	}
	if (c != 'u' || !hex4(r, &u))
		return false;
	if (u >= 0xd800 && u < 0xdc00 && r->end - r->p >= 6 && r->p[0] == '\\' && r->p[1] == 'u') {
		r->p += 2;
		if (!hex4(r, &low) || low < 0xdc00 || low > 0xdfff)
			return false;
		u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
	}
	utf8(b, u);
	return true;
}

static err_t read_string(struct reader *r, char **out)
{
	struct strbuf b = { 0 };

	if (!take(r, '"'))
		return bad(r, "a string is missing");
	while (r->p < r->end && *r->p != '"') {
		char c = *r->p++;

		if (c != '\\') {
			strbuf_char(&b, c);
		} else if (!escape(r, &b)) {
			strbuf_free(&b);
			return bad(r, "an escape is not understood");
		}
	}
	if (!take(r, '"')) {
		strbuf_free(&b);
		return bad(r, "a string does not end");
	}
	strbuf_str(&b, "");
	*out = b.s ? strbuf_take(&b) : xstrdup("");
	return NULL;
}

static err_t read_value(struct reader *r, struct jv *out, unsigned depth);

static err_t read_list(struct reader *r, struct jv *v, char close, unsigned depth)
{
	bool object = close == '}';

	v->kind = object ? JV_OBJECT : JV_ARRAY;
	if (take(r, close))
		return NULL;
	do {
		if (!(v->n & (v->n - 1))) {
			size_t room = v->n ? 2 * v->n : 1;

			v->items = xrealloc(v->items, room * sizeof *v->items);
			if (object)
				v->keys = xrealloc(v->keys, room * sizeof *v->keys);
		}
		v->items[v->n] = (struct jv){ 0 };
		if (object)
			v->keys[v->n] = NULL;
		v->n++;
		if (object)
			TRY(read_string(r, &v->keys[v->n - 1]));
		if (object && !take(r, ':'))
			return bad(r, "':' is missing");
		TRY(read_value(r, &v->items[v->n - 1], depth + 1));
	} while (take(r, ','));
	return take(r, close) ? NULL : bad(r, "a list does not end");
}

static bool word(struct reader *r, const char *w)
{
	size_t n = strlen(w);

	if ((size_t)(r->end - r->p) < n || memcmp(r->p, w, n))
		return false;
	r->p += n;
	return true;
}

static err_t read_number(struct reader *r, struct jv *v)
{
	char buf[64], *end;
	size_t n = 0;

	while (r->p + n < r->end && n + 1 < sizeof buf && strchr("+-.0123456789eE", r->p[n]) && r->p[n])
		n++;
	memcpy(buf, r->p, n);
	buf[n] = 0;
	v->kind = JV_NUMBER;
	v->number = strtod(buf, &end);
	if (end == buf || *end || !isfinite(v->number))
		return bad(r, "a value is not understood");
	r->p += n;
	return NULL;
}

static err_t read_value(struct reader *r, struct jv *v, unsigned depth)
{
	if (depth > MOST_DEPTH)
		return bad(r, "too deep");
	skip(r);
	if (take(r, '{'))
		return read_list(r, v, '}', depth);
	if (take(r, '['))
		return read_list(r, v, ']', depth);
	if (r->p < r->end && *r->p == '"') {
		v->kind = JV_STRING;
		return read_string(r, &v->string);
	}
	if (word(r, "null"))
		return NULL;
	bool yes = word(r, "true");
	if (yes || word(r, "false")) {
		v->kind = JV_BOOL;
		v->number = yes;
		return NULL;
	}
	return read_number(r, v);
}

err_t jv_read(const char *text, size_t n, struct jv *out)
{
	struct reader r = { text, text, text + n };

	*out = (struct jv){ 0 };
	TRY(read_value(&r, out, 0));
	skip(&r);
	return r.p == r.end ? NULL : bad(&r, "something follows the value");
}

void jv_free(struct jv *v)
{
	for (size_t i = 0; i < v->n; i++) {
		jv_free(&v->items[i]);
		if (v->keys)
			free(v->keys[i]);
	}
	free(v->items);
	free(v->keys);
	free(v->string);
	*v = (struct jv){ 0 };
}

const struct jv *jv_get(const struct jv *v, const char *key)
{
	for (size_t i = 0; v && v->kind == JV_OBJECT && i < v->n; i++)
		if (!strcmp(v->keys[i], key))
			return &v->items[i];
	return NULL;
}

const char *jv_text(const struct jv *v)
{
	return v && v->kind == JV_STRING ? v->string : "";
}
