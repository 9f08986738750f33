/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets of gdb's remote protocol on a descriptor: $BODY#SUM, acknowledged with + until the client says that it
 * need not be. Whoever is at the other end is not trusted: a packet is bounded, damaged ones are asked for again a
 * few times, garbage between packets is skipped.
 */
#ifndef CSCHED_DEBUG_PACKET_H
#define CSCHED_DEBUG_PACKET_H

#include "common/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

#define PACKET_MAX 0x4000u /* bytes of a body; what qSupported says */

struct packets {
	int fd;
	bool no_ack;
	bool broken; /* the client is gone */
	unsigned damaged;     /* in a row */
	unsigned char in[4096];
	size_t from, upto;    /* of in: not looked at yet */
	char body[PACKET_MAX + 1];
	size_t n;
};

/* Waits for the next packet; false: the client is gone, or sends nothing but garbage. */
bool packet_read(struct packets *p);
void packet_send(struct packets *p, const char *body, size_t n);
/* Has the client sent ^C meanwhile? Never waits. */
bool packet_interrupted(struct packets *p);

void packet_hex(struct strbuf *b, const void *data, size_t n);
/* Hex digits up to the first other character, at most size bytes; returns how many. */
size_t packet_unhex(const char *s, void *out, size_t size);

#endif
