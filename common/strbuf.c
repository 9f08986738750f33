#include "common/strbuf.h"

#include "common/vec.h"

#include "common/utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void room(struct strbuf *b, size_t more)
{
	if (b->n + more + 1 > b->cap)
		b->s = vec_grow(b->s, &b->cap, 1, b->n + more + 1);
}

void strbuf_add(struct strbuf *b, const void *data, size_t n)
{
	room(b, n);
	if (n)
		memcpy(b->s + b->n, data, n);
	b->n += n;
	b->s[b->n] = 0;
}

void strbuf_str(struct strbuf *b, const char *s)
{
	strbuf_add(b, s, strlen(s));
}

void strbuf_char(struct strbuf *b, char c)
{
	strbuf_add(b, &c, 1);
}

void strbuf_fmt(struct strbuf *b, const char *fmt, ...)
{
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n > 0) {
		room(b, (size_t)n);
		vsnprintf(b->s + b->n, (size_t)n + 1, fmt, again);
		b->n += (size_t)n;
	}
	va_end(again);
}

/* Bytes of a character that may stand there as it is; 0: none. */
static size_t shown(const char *s, size_t n)
{
	uint32_t c;

	return utf8_shown(s, n, &c);
}

void strbuf_word(struct strbuf *b, const char *word, size_t n)
{
	bool plain = n > 0, control = false;

	for (size_t i = 0; i < n; i++)
		plain &= !strchr(" \"'\\$&|;<>()*?[]#~`!{}", word[i]);
	for (size_t i = 0, len; i < n && !control; i += len) {
		len = shown(word + i, n - i);
		control = !len;
	}
	if (plain && !control) {
		strbuf_add(b, word, n);
		return;
	}
	strbuf_str(b, control ? "$'" : "'");
	for (size_t i = 0, len; i < n; i += len ? len : 1) {
		len = shown(word + i, n - i);
		/* Octal: a hexadecimal escape would swallow the digits behind it. */
		if (!len)
			strbuf_fmt(b, "\\%03o", (unsigned char)word[i]);
		else if (control && (word[i] == '\'' || word[i] == '\\'))
			strbuf_fmt(b, "\\%c", word[i]);
		else if (word[i] == '\'')
			strbuf_str(b, "'\\''");
		else
			strbuf_add(b, word + i, len);
	}
	strbuf_char(b, '\'');
}

char *strbuf_take(struct strbuf *b)
{
	strbuf_add(b, "", 0);
	char *s = b->s;

	*b = (struct strbuf){ 0 };
	return s;
}

void strbuf_free(struct strbuf *b)
{
	free(b->s);
	*b = (struct strbuf){ 0 };
}
