/*
 * Signals that ask us to end (^C, kill, the terminal gone) while runs are under way: they
 * are noted, so that no run and no temporary file is left behind, and take effect when that is done.
 */
#ifndef CSCHED_HUNT_INTERRUPT_H
#define CSCHED_HUNT_INTERRUPT_H

#include <stdbool.h>

/* From here on they are noted; what was ignored stays so. System calls that wait end with EINTR. */
void interrupt_catch(void);
/* The signal that came, or 0. */
int interrupt_pending(void);
/* As before interrupt_catch(); in a child between fork and exec, too. */
void interrupt_release(void);
/* Releases; a signal that was noted ends us now. */
void interrupt_obey(void);

#endif
