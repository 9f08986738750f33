/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the loop of guided fuzzing knows of a target. */
#ifndef CSCHED_TESTS_GUIDED_H
#define CSCHED_TESTS_GUIDED_H

#include <stddef.h>
#include <stdint.h>

struct guided_target {
	const char *name;
	void (*run)(const uint8_t *data, size_t n); /* returns, or the input is a finding */
	void (*mend)(uint8_t *data, size_t n);      /* makes checksums good again; or NULL */
	const char *const *words;                   /* what a mutation may put in; NULL-terminated; or NULL */
	const char *const *seeds;                   /* inputs of its own (text); NULL-terminated; or NULL */
};

extern const struct guided_target guided_targets[]; /* the last has no name */

#endif
