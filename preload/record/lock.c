/* The lock of the recorder: held with every signal blocked, by one thread at a time. */
#include "preload/record/stream.h"

#include "preload/raw.h"

#include <signal.h>

void rec_signals_block(uint64_t *saved)
{
	uint64_t all = ~0ull;

	raw(SYS_rt_sigprocmask, SIG_BLOCK, &all, saved, 8);
}

void rec_signals_restore(const uint64_t *saved)
{
	raw(SYS_rt_sigprocmask, SIG_SETMASK, saved, NULL, 8);
}

/* Recursive: failing to write while holding it leads to a note, which wants it again. */
static uint32_t lock_word; /* tid of the owner */
static uint32_t lock_depth;

void rec_lock(uint64_t *saved)
{
	uint32_t me = (uint32_t)raw(SYS_gettid);

	rec_signals_block(saved);
	if (__atomic_load_n(&lock_word, __ATOMIC_RELAXED) == me) {
		lock_depth++;
		return;
	}
	for (uint32_t seen = 0; !__atomic_compare_exchange_n(&lock_word, &seen, me, false,
							     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
	     seen = 0)
		raw(SYS_sched_yield);
	lock_depth = 1;
}

void rec_unlock(const uint64_t *saved)
{
	if (--lock_depth == 0)
		__atomic_store_n(&lock_word, 0, __ATOMIC_RELEASE);
	rec_signals_restore(saved);
}

void rec_lock_reset(void)
{
	lock_word = 0;
	lock_depth = 0;
}
