/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "preload/said.h"

void said_note(struct shim_thread *t, uint64_t from, uint64_t len)
{
	uint64_t keep = sizeof t->said - 1;

	if (len > keep) {
		from += len - keep;
		len = keep;
	}
	if (t->nsaid + len > keep) {
		uint32_t drop = (uint32_t)(t->nsaid + len - keep);

		memmove(t->said, t->said + drop, t->nsaid - drop);
		t->nsaid -= drop;
	}
	t->nsaid += (uint32_t)raw_peek(t->said + t->nsaid, from, len);
}

static bool begins(const char *s, size_t n, const char *with)
{
	size_t len = strlen(with);

	return n >= len && !memcmp(s, with, len);
}

/* Up to the line's end, without signs that are none. */
static bool say_line(struct raw_text *text, const char *s, size_t n)
{
	size_t len = 0;

	while (len < n && (unsigned char)s[len] >= ' ')
		len++;
	text_strn(text, s, len);
	return len > 0;
}

/* Behind the last occurrence of the words; NULL: they do not occur. */
static const char *behind(const struct shim_thread *t, const char *words, size_t *left)
{
	for (size_t i = t->nsaid; i-- > 0;) {
		if (!begins(t->said + i, t->nsaid - i, words))
			continue;
		*left = t->nsaid - i - strlen(words);
		return t->said + i + strlen(words);
	}
	return NULL;
}

bool said_what(struct raw_text *text, const struct shim_thread *t)
{
	size_t n;
	const char *s = behind(t, "  what():  ", &n);

	return s && say_line(text, s, n);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "12:34:56.789: " says when, not what. */
static size_t time_length(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && (is_digit(s[i]) || (i && (s[i] == ':' || s[i] == '.'))))
		i++;
	return i > 8 && i < n && s[i - 1] == ':' && s[i] == ' ' ? i + 1 : 0;
}

bool said_glib(struct raw_text *text, const struct shim_thread *t)
{
	size_t n, time;
	const char *s = behind(t, "ERROR **: ", &n);

	if (s) {
		time = time_length(s, n);
		return say_line(text, s + time, n - time);
	}
	s = behind(t, "**\nERROR:", &n);
	return s && say_line(text, s, n);
}

bool said_last(struct raw_text *text, const struct shim_thread *t)
{
	size_t end = t->nsaid, from;

	while (end && (unsigned char)t->said[end - 1] <= ' ')
		end--;
	for (from = end; from && t->said[from - 1] != '\n';)
		from--;
	return say_line(text, t->said + from, end - from);
}
