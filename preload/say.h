/* The shim's own way to standard error; shim_say() and friends are in shim.h. */
#ifndef CSCHED_PRELOAD_SAY_H
#define CSCHED_PRELOAD_SAY_H

void say_start(void); /* what is standard error now? Nothing is said anywhere else later. */
void say_keep(void);  /* once the options are known */
void say_after_fork(void);

/* About the place traces go to: once for this process and its descendants. */
void say_in_tree(const char *text);
void say_degraded_tree(const char *text); /* shim_degrade() of that kind */

#endif
