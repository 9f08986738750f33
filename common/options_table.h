/*
 * Every option of the shim, once: the shim parses CSCHED_OPTIONS with this
 * table, `csched run` makes its flags and help from it.
 *
 *   OPT(key, type, default, values, help)
 *
 * type: CHOICE one of `values` (| between them); NUMBER (k, m, g suffixes);
 * SECONDS (a number, fractions allowed; "ms" may follow); STRING; STATUSES (exit statuses,
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
	OPT(dir, STRING, NULL, "DIR", "directory for traces (default: the current one)")      \
	OPT(keep, CHOICE, "failure", "failure|always",                                         \
	    "keep only the traces of runs that fail, or all")                                  \
	OPT(max_size, NUMBER, "4g", "BYTES", "stop recording (not the program) at this size")  \
	OPT(ring, NUMBER, "0", "BYTES",                                                        \
	    "flight recorder: keep only the latest BYTES of trace (0: keep all)")              \
	OPT(last, SECONDS, "0", "SECONDS", "flight recorder: keep only the latest SECONDS (0: see ring)") \
	OPT(epoch, SECONDS, "5", "SECONDS", "flight recorder: seconds between two checkpoints")  \
	OPT(on_signal, NUMBER, "0", "NUMBER", "flight recorder: save what is there when this signal comes")  \
	OPT(hang, SECONDS, "0", "SECONDS", "treat SECONDS without progress as a failure (0: never)")   \
	OPT(fail_exit, STATUSES, NULL, "STATUS,...", "exit statuses that count as failures")   \
	OPT(follow, BOOL, "1", "0|1", "record child processes")                                \
	OPT(quiet, BOOL, "0", "0|1", "print nothing")                                          \
	OPT(verbosity, NUMBER, "0", "N", "print more: 1 reports start and end, 2 adds details")             \
	OPT(deadlock, CHOICE, "wait", "wait|abort",                                            \
	    "after a deadlock: stay deadlocked, or abort")                                 \
	OPT(check, BOOL, "0", "0|1", "record registers at system calls, for testing replay")   \
	OPT(final, BOOL, "0", "0|1", "record memory at the end, for testing replay")           \
	OPT(sites, STRING, NULL, "FILE", "used by hunt: file of learned shared sites")       \
	OPT(schedule, STRING, NULL, "FILE", "used by replay: the order to enforce")             \
	OPT(fix, STRING, NULL, "FILE", "used by hunt: a fix to apply to the running program")       \
	OPT(hunt, STRING, NULL, "STRATEGY", "used by hunt: how to perturb this run")                \
	OPT(seed, NUMBER, "0", "N", "used by hunt: seed of the random choices")

#endif
