/* The address space of a recorded process, from the modules its trace names. */
#ifndef CSCHED_ANALYZER_TRACE_IMAGE_H
#define CSCHED_ANALYZER_TRACE_IMAGE_H

#include "analyzer/image/image.h"
#include "common/trace_read.h"

/*
 * An image set with every module of the trace; files inside a packed trace are
 * preferred. A module whose file has another build-id now is known by name
 * only; strict makes that an error instead. The set needs t until it is freed.
 */
err_t trace_image(struct trc *t, bool strict, struct img_set **out);

/* "function (file.c:12)", "module+0x1234" or "0x1234": malloc'd, never NULL. */
char *trace_pc_text(struct img_set *set, uint64_t pc);
/* The same for a return address (of a call site). */
char *trace_site_text(struct img_set *set, uint64_t return_address);

/*
 * Where the failure is to be looked for: the innermost frame of the failing thread outside the C and C++
 * run-time (inside abort() there is nothing to see); the place itself when the stack leads nowhere.
 */
char *trace_failure_place(struct img_set *set, const struct trc *t);
/* The reason in words, as recorded (not safe for a terminal), types of exceptions as in the source. */
char *trace_failure_text(const struct trc_failure *f);

/*
 * The command that starts the run again, quoted for a shell: the script's when the process is one that it started, as far as
 * known (csched hunt notes it); else that of the process. malloc'd; NULL: not recorded.
 */
char *trace_start_command(struct trc *t);

#endif
