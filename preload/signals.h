/*
 * Fatal signals in sync mode. (In path mode the translator owns all handlers and
 * none of this is active.)
 *
 * For SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS and SIGTRAP (and SIGPIPE,
 * which ends a run without being a failure) the shim has handlers wherever the
 * program has the default action. The program never sees them: what it asks is
 * answered from its own view, its own handlers replace ours, and when it goes
 * back to the default ours return. After recording, the default action is
 * restored and the very same signal is sent again, so the process dies as it
 * would have.
 *
 * Blocked faults: the kernel kills a thread that faults on a signal it has blocked,
 * without asking any handler. Programs do block everything in their workers,
 * so the fault signals that are ours stay unblocked underneath, and the program is told
 * they are blocked.
 */
#ifndef CSCHED_PRELOAD_SIGNALS_H
#define CSCHED_PRELOAD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct shim_thread;

void signals_start(void);
void signals_stop(void); /* the program's own dispositions, for good; no system call of ours from here on */
void signals_thread_start(struct shim_thread *t); /* alternate stack for the calling thread */
void signals_thread_end(struct shim_thread *t);
bool signals_active(void);

/*
 * The wrappers of interpose/signal.c; same results as the functions they stand
 * for, errors as positive errno. Only while signals_active().
 */
int signals_sigaction(int sig, const struct sigaction *act, struct sigaction *old);
/* After a signal()-like call that returned prev: repairs our side, returns the program's view. */
sighandler_t signals_after_signal(int sig, sighandler_t prev);
int signals_mask(int how, const sigset_t *set, sigset_t *old);
/* The program's mask, as it believes it to be, for the program that an exec or spawn makes; and back. */
void signals_exec(bool begin);
int signals_altstack(const stack_t *ss, stack_t *old);

#endif
