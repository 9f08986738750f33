/*
 * Generated code that makes the processor fault: the last line, behind which nothing has been seen.
 *
 * What a guest may fault at is found before it is executed (native_allow.c, exec.c). Should generated
 * code fault all the same, the run of the machine ends where it is and says so, not the analyzer. A
 * fault anywhere else is whose it was before.
 */
#ifndef CSCHED_MACHINE_EXEC_GUARD_H
#define CSCHED_MACHINE_EXEC_GUARD_H

#include "analyzer/engine/exec_space.h"

#include <setjmp.h>

struct exec_guard {
	jmp_buf env;
	volatile int signal; /* that came ... */
	volatile uint32_t mxcsr; /* ... with this */
	struct exec_guard *outer;
};

/* Faults in generated code come back to g->env from here on ... */
void exec_guard_enter(struct exec_guard *g);
/* ... until here. */
void exec_guard_leave(struct exec_guard *g);

/* A fault that was not meant for g, which has been left: to the one around it. */
__attribute__((noreturn)) void exec_guard_pass(const struct exec_guard *g);

/* exec_space.c */
bool exec_space_holds(uintptr_t pc);

#endif
