/* The options of this run, parsed once in the constructor; constant afterwards. */
#ifndef CSCHED_PRELOAD_OPTIONS_H
#define CSCHED_PRELOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum shim_mode { SHIM_MODE_PATH, SHIM_MODE_SYNC };
enum shim_keep { SHIM_KEEP_FAILURE, SHIM_KEEP_ALWAYS };
enum shim_on_deadlock { SHIM_DEADLOCK_WAIT, SHIM_DEADLOCK_ABORT };

#define SHIM_MAX_STATUSES 16

struct shim_options {
	enum shim_mode mode;
	const char *dir; /* "" when not given; strings live in the shim's memory */
	enum shim_keep keep;
	uint64_t max_size;
	unsigned on_signal; /* 0: none */
	uint64_t ring, last_ms, epoch_ms; /* ring and last_ms 0: no flight recorder */
	uint64_t hang_ms; /* 0: never */
	uint8_t fail_exit[SHIM_MAX_STATUSES];
	unsigned nfail_exit;
	bool follow, quiet;
	unsigned verbosity;
	enum shim_on_deadlock deadlock;
	bool check, final;
	const char *sites, *schedule, *fix, *hunt; /* "" when not given */
	uint64_t seed;
};
extern struct shim_options shim_opt;

/* Parses CSCHED_OPTIONS (NULL: defaults); names everything wrong in one message. */
void shim_options_parse(const char *text);
bool shim_options_fails(int status); /* is this status named by fail_exit? */

#endif
