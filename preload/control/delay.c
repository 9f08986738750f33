#include "preload/control/control.h"

#include "preload/raw.h"

#include <linux/futex.h>
#include <time.h>

/*
 * Wall time of one run in which some thread is held up by us, at most: a site
 * in a hot loop would otherwise make a run endless. So many of the longest
 * delays, and never less than BUDGET_MIN_US.
 */
#define BUDGET_DELAYS 12
#define BUDGET_MIN_US 300000
/* And of a run that takes longer than that half of its time: what goes wrong late is perturbed, too. */
#define BUDGET_PART 2
/* A failure that races with the end of the process gets this long to happen. */
#define LINGER_US 20000
/* Those who sleep then go on one after the other, as they would have: so many, so long apart. */
#define LAST_ONES 8
#define LAST_ONE_US 2000

static uint64_t budget_us;
static uint64_t began;     /* us */
static uint32_t gate;      /* 1: nobody sleeps any more */
static uint32_t lock;      /* guards the three below */
static uint32_t sleeping;
static uint64_t since;     /* when slept_us was last brought up to date */
static uint64_t slept_us;  /* time in which at least one slept */

uint64_t ctl_random(uint64_t a, uint64_t b)
{
	uint64_t z = a * 0x9e3779b97f4a7c15ull + b;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

uint64_t ctl_now_us(void)
{
	struct timespec t = { 0 };

	raw(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void ctl_delay_init(uint64_t us)
{
	lock = sleeping = 0; /* a forked child begins with nobody asleep */
	began = ctl_now_us();
	budget_us = us * BUDGET_DELAYS > BUDGET_MIN_US ? us * BUDGET_DELAYS : BUDGET_MIN_US;
}

static void account(int change)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		raw(SYS_sched_yield);
	uint64_t now = ctl_now_us();
	if (sleeping)
		slept_us += now - since;
	since = now;
	sleeping += (uint32_t)change;
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static bool has_budget(void)
{
	uint64_t slept = __atomic_load_n(&slept_us, __ATOMIC_RELAXED);

	return slept <= budget_us || slept - budget_us <= (ctl_now_us() - began) / BUDGET_PART;
}

void ctl_sleep(uint64_t us)
{
	struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000 * 1000) };

	if (__atomic_load_n(&gate, __ATOMIC_RELAXED) || !has_budget())
		return;
	account(1);
	raw(SYS_futex, &gate, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &t);
	account(-1);
}

void ctl_maybe_sleep(const struct shim_thread *t, uint64_t permille, uint64_t us)
{
	/* Per thread and step, so that another thread's pace changes nothing. */
	static uint64_t steps[CTL_THREADS] RAW_LARGE;
	uint64_t step = steps[t->index % CTL_THREADS]++;
	uint64_t r = ctl_random(ctl.seed ^ (uint64_t)t->index << 32, step);

	if (r % 1000 < permille)
		ctl_sleep(us / 4 + (r >> 20) % (us + 1));
}

static void pause_us(long us)
{
	struct timespec t = { 0, us * 1000 };

	raw(SYS_nanosleep, &t, 0);
}

void ctl_linger(void)
{
	pause_us(LINGER_US);
}

void ctl_sleep_end(void)
{
	bool some = __atomic_load_n(&sleeping, __ATOMIC_RELAXED) > 0;

	__atomic_store_n(&gate, 1, __ATOMIC_SEQ_CST);
	/* All at once would make a race of what was an order. */
	for (unsigned i = 0; some && i < LAST_ONES && raw(SYS_futex, &gate, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1) > 0; i++)
		pause_us(LAST_ONE_US);
	raw(SYS_futex, &gate, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 0x7fffffff);
	if (some)
		ctl_linger();
}
