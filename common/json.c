#include "common/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Length of the valid UTF-8 sequence at s (at most n bytes), 0 if none. */
static size_t utf8_len(const unsigned char *s, size_t n)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 :
		     s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
	uint32_t c = len > 1 ? s[0] & (0x7fu >> len) : s[0];

	if (!len || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (len > 1 && (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)))
		return 0;
	return len;
}

static void quoted(struct strbuf *b, const char *str, size_t n)
{
	const unsigned char *s = (const unsigned char *)str;

	strbuf_char(b, '"');
	for (size_t i = 0; i < n;) {
		size_t len = utf8_len(s + i, n - i);

		if (!len) {
			strbuf_str(b, "\\ufffd");
			i++;
		} else if (s[i] == '"' || s[i] == '\\') {
			strbuf_fmt(b, "\\%c", s[i++]);
		} else if (s[i] == '\n') {
			strbuf_str(b, "\\n");
			i++;
		} else if (s[i] < 0x20 || s[i] == 0x7f) {
			strbuf_fmt(b, "\\u%04x", s[i++]);
		} else {
			strbuf_add(b, s + i, len);
			i += len;
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
