/*
 * Finding deadlocks the moment they happen. See deadlock.c for the argument why
 * a reported cycle is one.
 */
#ifndef CSCHED_PRELOAD_DEADLOCK_H
#define CSCHED_PRELOAD_DEADLOCK_H

#include "preload/shim.h"

void deadlock_block(struct shim_thread *t, unsigned op, uint64_t object, uint64_t site,
		    uint64_t value);
void deadlock_unblock(struct shim_thread *t);
void deadlock_leave(const struct shim_thread *t); /* t is not counted as living any more */
void deadlock_wake(struct shim_thread *t, uint64_t object);
void deadlock_wake_end(struct shim_thread *t);

/*
 * Are all threads blocked for good, the caller, which is about to block, included?
 * NULL: the kernel says that all of them sleep, so hints that one may have been
 * woken no longer count.
 */
enum deadlock_verdict { DEADLOCK_NO, DEADLOCK_MAYBE, DEADLOCK_YES };
enum deadlock_verdict deadlock_all_blocked(const struct shim_thread *caller);

/* deadlock_report.c. Each does nothing when a failure is recorded already. */
void deadlock_report_cycle(struct shim_thread *t);
void deadlock_report_all(void);
void deadlock_report_hang(void);
void deadlock_die(void); /* the process ends, as deadlock=abort wants it to */
void deadlock_withdraw(struct shim_thread *t); /* t went on after all */

/* Who holds what t waits for (NULL: nobody known), and its entry for that object. */
struct shim_thread *deadlock_owner(const struct shim_thread *t);
const struct shim_held *deadlock_held(const struct shim_thread *t, uint64_t object);

#endif
