/* The lock of the recorder: held with every signal blocked, by one thread at a time. */
#include "preload/record/stream.h"

#include "preload/raw.h"
#include "preload/silence.h"

#include <linux/futex.h>
#include <signal.h>

void rec_signals_block(uint64_t *saved)
{
	uint64_t all = ~0ull;

	silence_enter();
	raw(SYS_rt_sigprocmask, SIG_BLOCK, &all, saved, 8);
}

void rec_signals_restore(const uint64_t *saved)
{
	raw(SYS_rt_sigprocmask, SIG_SETMASK, saved, NULL, 8);
	silence_leave();
}

/* Recursive: failing to write while holding it leads to a note, which wants it again. */
static uint32_t lock_word; /* tid of the owner, and LOCK_WAITED */
static uint32_t lock_depth;
#define LOCK_WAITED 0x80000000u /* somebody sleeps until it is free */

/* A thousand threads that yield to each other instead took seconds. */
static void wait_for_lock(uint32_t me)
{
	for (;;) {
		uint32_t seen = 0;

		/* Others may sleep still: whoever has slept wakes the next one. */
		if (__atomic_compare_exchange_n(&lock_word, &seen, me | LOCK_WAITED, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
		if ((seen & LOCK_WAITED) ||
		    __atomic_compare_exchange_n(&lock_word, &seen, seen | LOCK_WAITED, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			raw(SYS_futex, &lock_word, FUTEX_WAIT_PRIVATE, seen | LOCK_WAITED, 0);
	}
}

void rec_lock(uint64_t *saved)
{
	silence_enter();
	uint32_t me = (uint32_t)raw(SYS_gettid);

	rec_signals_block(saved);
	silence_leave();
	if ((__atomic_load_n(&lock_word, __ATOMIC_RELAXED) & ~LOCK_WAITED) == me) {
		lock_depth++;
		return;
	}
	uint32_t seen = 0;

	if (!__atomic_compare_exchange_n(&lock_word, &seen, me, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		wait_for_lock(me);
	lock_depth = 1;
}

void rec_unlock(const uint64_t *saved)
{
	if (--lock_depth == 0 && __atomic_exchange_n(&lock_word, 0, __ATOMIC_RELEASE) & LOCK_WAITED)
		raw(SYS_futex, &lock_word, FUTEX_WAKE_PRIVATE, 1);
	rec_signals_restore(saved);
}

void rec_lock_reset(void)
{
	lock_word = 0;
	lock_depth = 0;
	silence_busy = 0;
}
