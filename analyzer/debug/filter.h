/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a confined stub may send to gdb: packets that answer. gdb also obeys packets by which its target opens, writes and removes files
 * or runs commands on gdb's machine (F); those, terminal escapes, and everything the stub never sends end the connection.
 */
#ifndef CSCHED_DEBUG_FILTER_H
#define CSCHED_DEBUG_FILTER_H

#include "common/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

struct filter {
	struct strbuf packet; /* "$BODY#SU" as far as it has arrived */
};

/* Appends to *out what may pass. False: this is no stub of ours. */
bool filter_add(struct filter *f, const char *data, size_t n, struct strbuf *out);
void filter_free(struct filter *f);

#endif
