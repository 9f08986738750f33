/*
 * The shim's options on csched's command lines. What the shim would refuse is refused before the
 * program runs: inside of it there is nobody to tell but the program's user.
 */
#ifndef CSCHED_ANALYZER_CMD_SHIM_FLAGS_H
#define CSCHED_ANALYZER_CMD_SHIM_FLAGS_H

#include "common/err.h"
#include "common/options_table.h"

#include <stdbool.h>

enum shim_type { CHOICE, NUMBER, SECONDS, STRING, STATUSES, BOOL };

/* One row of common/options_table.h. */
struct shim_flag {
	const char *key;
	enum shim_type type;
	const char *dflt;
	const char *values;
	const char *help;
};

#define SHIM_ONE_MORE(...) +1
enum { SHIM_NFLAGS = 0 OPTIONS_TABLE(SHIM_ONE_MORE) };

extern const struct shim_flag shim_flags[SHIM_NFLAGS];

/* The shim takes such a value. */
bool shim_flag_takes(const struct shim_flag *f, const char *value);
/* A text as in CSCHED_OPTIONS: each key is known, each value taken. */
err_t shim_flags_check(const char *options);

#endif
