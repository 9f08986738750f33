/*
 * Every option of the shim, once: the shim parses CSCHED_OPTIONS with this
 * table, `csched run` makes its flags and help from it.
 *
 *   OPT(key, type, default, values, help)
 *
 * type: CHOICE one of `values` (| between them); NUMBER (k, m, g suffixes);
 * SECONDS (a number, fractions allowed); STRING; STATUSES (exit statuses,
 * separated by commas); BOOL (0 or 1). A default of NULL: not set.
 * CSCHED_OPTIONS is key=value pairs separated by ':'; a ':' or '\' inside a value is
 * written "\:" and "\\". A bare key means key=1.
 */
#ifndef CSCHED_COMMON_OPTIONS_TABLE_H
#define CSCHED_COMMON_OPTIONS_TABLE_H

/* Position of value among "a|b|c", or -1. For both sides: calls nothing. */
static inline int options_choice(const char *values, const char *value)
{
	for (int i = 0; *values; i++) {
		const char *v = value;

		for (; *values && *values != '|' && *v == *values; v++)
			values++;
		if ((!*values || *values == '|') && !*v)
			return i;
		while (*values && *values++ != '|')
			;
	}
	return -1;
}

#define OPTIONS_TABLE(OPT)                                                                     \
	OPT(mode, CHOICE, "path", "path|sync",                                                 \
	    "what to record: control flow too, or sync operations only")                       \
	OPT(dir, STRING, NULL, "DIR", "where traces go (default: the current directory)")      \
	OPT(keep, CHOICE, "failure", "failure|always",                                         \
	    "keep only the traces of runs that fail, or all")                                  \
	OPT(max_size, NUMBER, "4g", "BYTES", "stop recording (not the program) at this size")  \
	OPT(hang, SECONDS, "0", "SECONDS", "no event for this long is a failure (0: never)")   \
	OPT(fail_exit, STATUSES, NULL, "STATUS,...", "exit statuses that count as failures")   \
	OPT(follow, BOOL, "1", "0|1", "record child processes")                                \
	OPT(quiet, BOOL, "0", "0|1", "print nothing")                                          \
	OPT(verbosity, NUMBER, "0", "N", "print more: 1 start and end, 2 details")             \
	OPT(deadlock, CHOICE, "wait", "wait|abort",                                            \
	    "after a deadlock: hang on as natively, or abort")                                 \
	OPT(check, BOOL, "0", "0|1", "record registers at system calls, for testing replay")   \
	OPT(final, BOOL, "0", "0|1", "record memory at the end, for testing replay")           \
	OPT(sites, STRING, NULL, "FILE", "hunting: where learned shared sites are kept")       \
	OPT(schedule, STRING, NULL, "FILE", "native replay: the order to enforce")             \
	OPT(fix, STRING, NULL, "FILE", "hunting: a fix to apply to the running program")       \
	OPT(hunt, STRING, NULL, "STRATEGY", "hunting: how to perturb this run")                \
	OPT(seed, NUMBER, "0", "N", "hunting: seed of the random choices")

#endif
