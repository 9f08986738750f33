/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decoding UTF-8, strictly. */
#include "common/utf8.h"

#include <stdbool.h>

static const uint32_t hidden[][2] = {
	{ 0x00, 0x1f },       { 0x7f, 0x9f },       { 0xad, 0xad },     { 0x61c, 0x61c },     { 0x115f, 0x1160 },
	{ 0x180e, 0x180e },   { 0x200b, 0x200f },   { 0x2028, 0x202e }, { 0x2060, 0x206f },   { 0xfeff, 0xfeff },
	{ 0xfff9, 0xfffb },   { 0xfffe, 0xffff },   { 0xe0000, 0xe0fff },
};

static bool is_hidden(uint32_t c)
{
	for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
		if (c >= hidden[i][0] && c <= hidden[i][1])
			return true;
	return false;
}

size_t utf8_valid(const char *text, size_t n, uint32_t *c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)text;
	size_t len = !n ? 0 : *s < 0x80 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;

	*c = !n ? 0 : len > 1 ? *s & (0x7fu >> len) : *s;
	if (!len || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (s[i] & 0x3f);
	}
	return *c < least[len] || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000) ? 0 : len;
}

size_t utf8_shown(const char *text, size_t n, uint32_t *c)
{
	size_t len = utf8_valid(text, n, c);

	return len && is_hidden(*c) ? 0 : len;
}
