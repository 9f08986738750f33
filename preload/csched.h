/*
 * For programs that want to say themselves that they failed:
 *
 *   #include <csched.h>
 *   if (balance < 0)
 *           csched_fail("negative balance");
 *
 * Needs no library: without libcsched.so in the process it does nothing. With
 * it, the failure is recorded with all threads' stacks, and the program goes on.
 */
#ifndef CSCHED_H
#define CSCHED_H

#ifdef __cplusplus
extern "C" {
#endif

extern void csched_fail(const char *why) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#define csched_fail(why)                   \
	do {                               \
		if (csched_fail)           \
			(csched_fail)(why); \
	} while (0)

#endif
