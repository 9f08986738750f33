/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The framing of gdb's remote protocol: see packet.h. */
#include "analyzer/debug/packet.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define INTERRUPT 0x03
#define MOST_DAMAGED 16u      /* packets in a row; then nobody speaks this protocol */
#define MOST_GARBAGE 0x10000u /* bytes between two packets */

/* The next byte; < 0: there is none. wait: milliseconds, -1 for ever. */
static int next_byte(struct packets *p, int wait)
{
	if (p->from < p->upto)
		return p->in[p->from++];
	for (;;) {
		struct pollfd f = { .fd = p->fd, .events = POLLIN };
		int ready = poll(&f, 1, wait);

		if (ready == 0)
			return -1;
		if (ready < 0 && errno == EINTR)
			continue;
		ssize_t n = ready < 0 ? -1 : read(p->fd, p->in, sizeof p->in);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			p->broken = true;
			return -1;
		}
		p->from = 1;
		p->upto = (size_t)n;
		return p->in[0];
	}
}

static void put(struct packets *p, const char *data, size_t n)
{
	while (n && !p->broken) {
		ssize_t w = write(p->fd, data, n); /* the stub ignores SIGPIPE; send() is not for a confined process */

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			p->broken = true;
			return;
		}
		data += w;
		n -= (size_t)w;
	}
}

static int digit(int c)
{
	return c >= '0' && c <= '9' ? c - '0' :
	       c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The body and its sum; false: damaged. */
static bool read_body(struct packets *p)
{
	uint8_t sum = 0;
	int c;

	p->n = 0;
	while ((c = next_byte(p, -1)) >= 0 && c != '#') {
		if (c == '$') { /* the one before was cut off */
			p->n = 0;
			sum = 0;
			continue;
		}
		if (p->n == PACKET_MAX)
			return false;
		sum = (uint8_t)(sum + c);
		p->body[p->n++] = (char)c;
	}
	p->body[p->n] = 0;
	int high = digit(next_byte(p, -1)), low = digit(next_byte(p, -1));

	return p->no_ack || (high >= 0 && low >= 0 && (uint8_t)(high << 4 | low) == sum);
}

bool packet_read(struct packets *p)
{
	size_t garbage = 0;

	while (!p->broken && p->damaged < MOST_DAMAGED && garbage < MOST_GARBAGE) {
		int c = next_byte(p, -1);

		if (c != '$') {
			garbage++;
			continue;
		}
		bool good = read_body(p);

		if (p->broken)
			return false;
		if (!p->no_ack)
			put(p, good ? "+" : "-", 1);
		if (good) {
			p->damaged = 0;
			return true;
		}
		p->damaged++;
	}
	return false;
}

/* Waits for the acknowledgement; what was not understood is sent again a few times. */
void packet_send(struct packets *p, const char *body, size_t n)
{
	struct strbuf b = { 0 };
	uint8_t sum = 0;

	strbuf_char(&b, '$');
	for (size_t i = 0; i < n; i++) {
		char c = body[i];

		if (c == '#' || c == '$' || c == '}' || c == '*') {
			strbuf_char(&b, '}');
			sum = (uint8_t)(sum + '}');
			c ^= 0x20;
		}
		strbuf_char(&b, c);
		sum = (uint8_t)(sum + (uint8_t)c);
	}
	strbuf_fmt(&b, "#%02x", sum);
	for (unsigned tries = 0; tries < MOST_DAMAGED && !p->broken; tries++) {
		int c;

		put(p, b.s, b.n);
		if (p->no_ack)
			break;
		do
			c = next_byte(p, -1);
		while (c >= 0 && c != '+' && c != '-' && c != '$');
		if (c == '$')
			p->from--; /* it did not wait for us: the next packet */
		if (c != '-')
			break;
	}
	strbuf_free(&b);
}

bool packet_interrupted(struct packets *p)
{
	int c = next_byte(p, 0);

	if (c >= 0 && c != INTERRUPT)
		p->from--;
	return c == INTERRUPT || p->broken;
}

void packet_hex(struct strbuf *b, const void *data, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *v = data;

	for (size_t i = 0; i < n; i++) {
		strbuf_char(b, digits[v[i] >> 4]);
		strbuf_char(b, digits[v[i] & 15]);
	}
}

size_t packet_unhex(const char *s, void *out, size_t size)
{
	uint8_t *v = out;
	size_t n = 0;

	while (n < size && digit(s[0]) >= 0 && digit(s[1]) >= 0) {
		v[n++] = (uint8_t)(digit(s[0]) << 4 | digit(s[1]));
		s += 2;
	}
	return n;
}
