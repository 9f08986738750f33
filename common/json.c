#include "common/json.h"

#include "common/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Valid characters that are not to be shown stay what they are, escaped; broken ones become U+FFFD. Their bytes. */
static size_t hidden(struct strbuf *b, const unsigned char *s, size_t n)
{
	uint32_t c;
	size_t len = utf8_valid((const char *)s, n, &c);

	if (!len)
		strbuf_str(b, "\\ufffd");
	else if (c < 0x10000)
		strbuf_fmt(b, "\\u%04x", c);
	else
		strbuf_fmt(b, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
	return len ? len : 1;
}

static void quoted(struct strbuf *b, const char *str, size_t n)
{
	const unsigned char *s = (const unsigned char *)str;

	strbuf_char(b, '"');
	for (size_t i = 0; i < n;) {
		uint32_t c;
		size_t len = utf8_shown((const char *)s + i, n - i, &c);

		if (s[i] == '"' || s[i] == '\\') {
			strbuf_fmt(b, "\\%c", s[i++]);
		} else if (s[i] == '\n') {
			strbuf_str(b, "\\n");
			i++;
		} else if (len) {
			strbuf_add(b, s + i, len);
			i += len;
		} else {
			i += hidden(b, s + i, n - i);
		}
	}
	strbuf_char(b, '"');
}

static void newline(struct json *j)
{
	if (j->one_line)
		return;
	strbuf_char(&j->out, '\n');
	for (int i = 0; i < j->depth; i++)
		strbuf_str(&j->out, "  ");
}

static void lead(struct json *j, const char *key)
{
	if (j->some)
		strbuf_char(&j->out, ',');
	if (j->depth)
		newline(j);
	if (key) {
		quoted(&j->out, key, strlen(key));
		strbuf_str(&j->out, ": ");
	}
	j->some = true;
}

static void begin(struct json *j, const char *key, bool array)
{
	lead(j, key);
	strbuf_char(&j->out, array ? '[' : '{');
	j->depth++;
	if (array)
		j->array |= 1ull << j->depth;
	else
		j->array &= ~(1ull << j->depth);
	j->some = false;
}

void json_object(struct json *j, const char *key)
{
	begin(j, key, false);
}

void json_array(struct json *j, const char *key)
{
	begin(j, key, true);
}

void json_end(struct json *j)
{
	bool array = j->array >> j->depth & 1;

	j->depth--;
	if (j->some)
		newline(j);
	strbuf_char(&j->out, array ? ']' : '}');
	j->some = true;
}

void json_strn(struct json *j, const char *key, const char *s, size_t n)
{
	lead(j, key);
	quoted(&j->out, s, n);
}

void json_str(struct json *j, const char *key, const char *s)
{
	if (s)
		json_strn(j, key, s, strlen(s));
	else
		json_null(j, key);
}

void json_int(struct json *j, const char *key, int64_t v)
{
	lead(j, key);
	strbuf_fmt(&j->out, "%" PRId64, v);
}

void json_uint(struct json *j, const char *key, uint64_t v)
{
	lead(j, key);
	strbuf_fmt(&j->out, "%" PRIu64, v);
}

void json_hex(struct json *j, const char *key, uint64_t v)
{
	lead(j, key);
	strbuf_fmt(&j->out, "\"0x%" PRIx64 "\"", v);
}

void json_num(struct json *j, const char *key, double v)
{
	if (!isfinite(v)) {
		json_null(j, key);
		return;
	}
	lead(j, key);
	strbuf_fmt(&j->out, "%.6g", v);
}

void json_fixed(struct json *j, const char *key, double v, unsigned decimals)
{
	if (!isfinite(v)) {
		json_null(j, key);
		return;
	}
	lead(j, key);
	strbuf_fmt(&j->out, "%.*f", (int)decimals, v);
}

void json_bool(struct json *j, const char *key, bool v)
{
	lead(j, key);
	strbuf_str(&j->out, v ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
	lead(j, key);
	strbuf_str(&j->out, "null");
}

void json_print(struct json *j, FILE *f)
{
	fwrite(j->out.s ? j->out.s : "", 1, j->out.n, f);
	fputc('\n', f);
	strbuf_free(&j->out);
	*j = (struct json){ 0 };
}
