/*
 * Two threads made to pass two places at the same instant: one waits at the
 * chosen site, busily, until another comes to a racy site, and both go on
 * together. Delays put one thread before the other; only this finds what needs
 * both at once, like stores that are visible late (Dekker's and Peterson's
 * algorithms without fences).
 */
#include "preload/control/control.h"

#include "preload/raw.h"

/* Time one run may spend waiting in vain. */
#define BUDGET_US 300000

static uint32_t waiter;  /* thread index + 1 of the one who waits; 0 nobody */
static uint64_t wasted_us;

static void relax(void)
{
	__asm__ volatile("pause");
}

static void wait_here(uint32_t me, uint64_t us)
{
	uint64_t begin = ctl_now_us();
	uint32_t expected = me;

	while (__atomic_load_n(&waiter, __ATOMIC_ACQUIRE) == me) {
		for (unsigned i = 0; i < 200 && __atomic_load_n(&waiter, __ATOMIC_ACQUIRE) == me; i++)
			relax();
		if (ctl_now_us() - begin < us)
			continue;
		/* Fails when the other has come at the last moment: all the better. */
		__atomic_compare_exchange_n(&waiter, &expected, 0, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
		__atomic_fetch_add(&wasted_us, us, __ATOMIC_RELAXED);
		return;
	}
}

void ctl_meet(const struct shim_thread *t, bool chosen, uint64_t us)
{
	uint32_t me = t->index + 1, there = __atomic_load_n(&waiter, __ATOMIC_ACQUIRE);

	if (there && there != me) {
		__atomic_compare_exchange_n(&waiter, &there, 0, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
		return;
	}
	uint32_t nobody = 0;
	if (chosen && __atomic_load_n(&wasted_us, __ATOMIC_RELAXED) < BUDGET_US &&
	    __atomic_compare_exchange_n(&waiter, &nobody, me, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		wait_here(me, us);
}
