/* Between the wrappers and the native side: what shim_event() is handed besides numbers. */
#ifndef CSCHED_PRELOAD_EVENT_H
#define CSCHED_PRELOAD_EVENT_H

#include "preload/shim.h"

#define SHIM_EOWNERDEAD 130 /* a robust mutex was acquired from a dead owner */

/* TRC_OP_ASSERT: object points to one of these on the wrapper's stack; value is its rsp. */
struct shim_assertion {
	const char *expression, *file, *function;
	unsigned line;
};

/* TRC_OP_USER_FAIL: object is the text. TRC_OP_NONE: a thread gets a name; object
 * is its pthread_t, thread the length, value the name. */

void shim_failure_assert(struct shim_thread *t, const struct shim_fault *f,
			 const uint64_t regs[TRC_NREGS], const struct shim_assertion *a);
void shim_failure_user(struct shim_thread *t, const struct shim_fault *f,
		       const uint64_t regs[TRC_NREGS], const char *why);
/* A Rust panic; it stands when the process ends with a status other than zero. exception: address of what is raised. */
void shim_failure_panic(struct shim_thread *t, const struct shim_fault *f,
			const uint64_t regs[TRC_NREGS], uint64_t exception);

#endif
