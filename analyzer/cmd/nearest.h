/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of the known words somebody may have meant. */
#ifndef CSCHED_CMD_NEAREST_H
#define CSCHED_CMD_NEAREST_H

#include <stddef.h>

struct nearest {
	const char *wanted;
	size_t length;
	const char *found; /* NULL: nothing is near */
	unsigned distance;
};

void nearest_begin(struct nearest *n, const char *wanted, size_t length);
void nearest_try(struct nearest *n, const char *word);

#endif
