/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets from the confined stub, checked before gdb sees them. */
#include "analyzer/debug/filter.h"

#include "analyzer/debug/packet.h"

#include <string.h>

#define MOST_BYTES (2 * PACKET_MAX) /* of a packet: what is escaped takes two */

void filter_free(struct filter *f)
{
	strbuf_free(&f->packet);
}

/* Console output is hex digits of text that gdb prints as it is: lines without escapes, also none of the two-byte kind. */
static bool is_plain_output(const char *hex)
{
	unsigned char piece[256], before = 0;
	size_t n;

	while ((n = packet_unhex(hex, piece, sizeof piece))) {
		for (size_t i = 0; i < n; before = piece[i++])
			if ((piece[i] < 0x20 && piece[i] != '\n' && piece[i] != '\t') || piece[i] == 0x7f ||
			    (before == 0xc2 && piece[i] >= 0x80 && piece[i] < 0xa0))
				return false;
		hex += 2 * n;
	}
	return *hex == '#';
}

static bool is_answer(const struct strbuf *packet)
{
	const char *body = packet->s + 1;

	for (size_t i = 1; i < packet->n; i++)
		if ((unsigned char)packet->s[i] < 0x20 || (unsigned char)packet->s[i] >= 0x7f)
			return false;
	if (*body == 'F' || *body == '}' || *body == '*')
		return false;
	return *body != 'O' || !strncmp(body, "OK#", 3) || is_plain_output(body + 1);
}

/* One byte more of a packet; *whole: it was the last one. */
static bool add_byte(struct strbuf *packet, char c, bool *whole)
{
	bool in_sum = packet->n > 1 && (packet->s[packet->n - 1] == '#' || packet->s[packet->n - 2] == '#');

	if (in_sum && !strchr("0123456789abcdef", c))
		return false;
	if (c == '$' || packet->n == MOST_BYTES)
		return false; /* a new one before the end of the old: gdb would take it for a packet */
	strbuf_char(packet, c);
	*whole = in_sum && packet->s[packet->n - 3] == '#';
	return true;
}

bool filter_add(struct filter *f, const char *data, size_t n, struct strbuf *out)
{
	for (size_t i = 0; i < n; i++) {
		bool whole = false;

		if (f->packet.n) {
			if (!data[i] || !add_byte(&f->packet, data[i], &whole))
				return false;
		} else if (data[i] == '$') {
			strbuf_char(&f->packet, '$');
		} else if (data[i] == '+' || data[i] == '-') {
			strbuf_char(out, data[i]);
		} else {
			return false;
		}
		if (whole && !is_answer(&f->packet))
			return false;
		if (whole) {
			strbuf_add(out, f->packet.s, f->packet.n);
			strbuf_free(&f->packet);
		}
	}
	return true;
}
