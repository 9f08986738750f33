/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exit statuses of the runs so far: which of them some runs end with and some do not. */
#ifndef CSCHED_HUNT_STATUSES_H
#define CSCHED_HUNT_STATUSES_H

#include "common/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

struct statuses {
	uint64_t count[256];
	bool odd[256]; /* learned to be a failure: some runs end with it, some with 0 */
	uint32_t nodd;
};

/* A run ended with it. True: a status became one to be hunted for. */
bool statuses_note(struct statuses *s, int status);
/* "1,124", for fail_exit=; nothing when none was learned. */
void statuses_list(const struct statuses *s, struct strbuf *out);

#endif
