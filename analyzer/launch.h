/*
 * Starting programs under the shim: where libcsched.so is, what the
 * environment must say, and which programs it cannot ride in.
 */
#ifndef CSCHED_ANALYZER_LAUNCH_H
#define CSCHED_ANALYZER_LAUNCH_H

#include <stdbool.h>

#include "common/err.h"
#include "common/strbuf.h"

/*
 * The absolute path of libcsched.so, malloc'd: $CSCHED_LIB, or beside csched
 * (as in build/), or ../lib/csched/ from it (as installed).
 */
err_t launch_find_shim(char **path);

/* The value LD_PRELOAD must have: the shim first, then what was there. malloc'd. */
char *launch_preload(const char *shim);

/* Adds what $CSCHED_OPTIONS holds; what is added behind it wins. */
void launch_options_given(struct strbuf *options);

/* Adds "key=value" to the options, escaped, with a ':' before all but the first. */
void launch_option(struct strbuf *options, const char *key, const char *value);

/* LD_PRELOAD and CSCHED_OPTIONS of this process; options go behind those that are there. */
err_t launch_set_environment(const char *shim, const char *options);

/* Where traces go with the options in the environment, malloc'd; "." by default. */
char *launch_trace_dir(void);

/* A path as seen from everywhere, and as seen from the current directory if it lies below; malloc'd. */
char *launch_absolute(const char *path);
char *launch_relative(const char *path);

/*
 * What this program needs besides: gcc's AddressSanitizer ends programs in which another library
 * was loaded before it, unless told not to look.
 */
void launch_suit(const char *name);

/*
 * Becomes the program. Comes back only when that failed: says why, as `who`,
 * and returns the exit status env(1) and the shells have for it.
 */
int launch_exec(const char *who, char **command);

/*
 * Why the shim cannot record this program (static, 32-bit, set-uid, ...), in
 * words, malloc'd; NULL when it can. name is looked up as execvp would, and a
 * script stands for its interpreter. *alone: with the shim in its environment it would not even start.
 */
char *launch_obstacle(const char *name, bool *alone);

#endif
