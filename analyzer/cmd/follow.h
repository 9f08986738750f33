/* What the commands that follow a run share: progress on the terminal, and the end they need. */
#ifndef CSCHED_CMD_FOLLOW_H
#define CSCHED_CMD_FOLLOW_H

#include "analyzer/explain/explain.h"

/*
 * Follows the run with a progress line (also for the phases that come after it,
 * through o->progress). ERR_NOANSWER when it could not be followed to its end;
 * the message says how far it came and why. ^C stops the work.
 */
err_t follow_to_end(const char *path, struct explain_options *o, struct explanation **out);

/*
 * What became of a recorded file, and what to do about it, when that is why the run
 * could not be followed; else NULL. The caller frees it.
 */
char *follow_file_changed(const struct trc *t, const char *why);

/* Ends the progress line. */
void follow_quiet(void);

#endif
