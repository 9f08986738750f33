/*
 * Two threads made to pass two places at the same instant: one waits at the
 * chosen site, busily, until another comes to a racy site, and both go on
 * together. Delays put one thread before the other; only this finds what needs
 * both at once, like stores that are visible late (Dekker's and Peterson's
 * algorithms without fences).
 */
#include "preload/control/control.h"

#include "preload/raw.h"

#include <time.h>

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

/*
 * ---- the same, as exact as can be ----
 *
 * Who came first waits; the second joins it, on another processor. The first then names an instant, again
 * and again, until the second agrees in time: only then both are running, and not one of them waiting for
 * a processor.
 */
#define GUEST_SHIFT 16
#define GO_CYCLES 6000   /* from naming an instant to it ... */
#define SEEN_CYCLES 2500 /* ... and how long before it one must have agreed */
#define COLD_LINES 24    /* less than a store buffer holds */
#define SPREAD_BITS 7    /* up to so many cycles (a power of 2) later, each time another number */
#define LOOK_CYCLES 100000
#define NAP_NS 50000
#define AHEAD 8          /* instructions to look for what is loaded */
#define MOST_LOADS 4
#define INSN_MAX 15
#define CPU_SELECTOR 0x7b

/*
 * What the next instructions load from. Stores are late by as long as it takes to get their cache
 * line; a load that must get its own takes as long, and sees them. Here the lines can be fetched before.
 */
static unsigned loads_ahead(const struct tr_ctx *c, uint64_t pc, uint64_t out[MOST_LOADS])
{
	unsigned n = 0;
	struct insn in;

	for (unsigned i = 0; i < AHEAD && n < MOST_LOADS; i++) {
		const uint8_t *code = (const uint8_t *)pc;
		size_t there = RAW_PAGE - pc % RAW_PAGE; /* of the next page nothing is known */

		if (!insn_decode(&in, code, there < INSN_MAX ? there : INSN_MAX, pc))
			break;
		if (i && in.flags & INSN_MEM && !(in.flags & INSN_USES_FS))
			out[n++] = tr_operand_address(&in, pc, code, c);
		if (in.cls != INSN_NORMAL && in.cls != INSN_JMP)
			break;
		pc = in.cls == INSN_JMP ? in.target : pc + in.len;
	}
	return n;
}

/*
 * Stores become visible one after the other. Behind some of ours, to lines that are in no cache, those of the
 * program wait in the processor's buffer for a hundred nanoseconds, while its loads are done at once.
 */
static struct {
	_Alignas(64) uint8_t line[COLD_LINES][64];
} cold[2];

static void chill(unsigned side)
{
	for (unsigned i = 0; i < COLD_LINES; i++)
		__asm__ volatile("clflush (%0)" : : "r"(cold[side].line[i]) : "memory");
}

/* A prefetch of what is not there does nothing. Stores are held up half of the time: what is best is not known. */
static void go_at(uint64_t go, const uint64_t *loads, unsigned n, unsigned side, uint64_t random)
{
	unsigned late = random & 1 ? 0 : (random >> 1) % (COLD_LINES + 1);

	go += (random >> 16) % (1u << (random >> 32) % (SPREAD_BITS + 1));
	while (raw_tsc() < go)
		for (unsigned i = 0; i < n; i++)
			__asm__ volatile("prefetcht0 (%0)" : : "r"(loads[i]));
	for (unsigned i = 0; i < late; i++)
		__atomic_store_n(cold[side].line[i], 1, __ATOMIC_RELAXED);
}

/* The processor this runs on. The kernel keeps it where this finds it, as for its own getcpu(). */
static uint32_t here(void)
{
	uint32_t limit = 0;

	__asm__ volatile("lsl %1, %0" : "+r"(limit) : "r"(CPU_SELECTOR) : "cc");
	return limit & 0xfff;
}

/* Away from this processor, and free again to go wherever the program allows. */
static void leave(uint32_t cpu)
{
	uint64_t all[16] = { 0 }, others[16];
	long n = raw(SYS_sched_getaffinity, 0, sizeof all, all);

	if (raw_failed(n) || cpu >= 8 * sizeof all)
		return;
	memcpy(others, all, sizeof all);
	others[cpu / 64] &= ~(1ull << cpu % 64);
	if (!raw_failed(raw(SYS_sched_setaffinity, 0, n, others)))
		raw(SYS_sched_setaffinity, 0, n, all);
}

/* The clock is looked at seldom: that takes longer than what is waited for. */
bool ctl_await(const uint32_t *word, uint32_t held, uint64_t us)
{
	const struct timespec nap = { 0, NAP_NS };
	uint64_t begin = 0, spent = 0;

	while (spent < us) {
		uint64_t from = raw_tsc();

		while (raw_tsc() - from < LOOK_CYCLES)
			if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != held)
				return true;
		if (!begin)
			begin = ctl_now_us();
		/* The other may need this very processor. */
		raw(SYS_nanosleep, &nap, 0);
		spent = ctl_now_us() - begin;
	}
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) != held;
}

static bool change(uint32_t *who, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(who, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Names instants until the other agrees to one. 0: it does not. */
static uint64_t name_instant(struct ctl_meeting *m, uint64_t us)
{
	uint64_t begin = ctl_now_us();

	do {
		uint64_t go = raw_tsc() + GO_CYCLES;
		uint32_t asked = m->asked + 1;

		__atomic_store_n(&m->go, go, __ATOMIC_RELAXED);
		__atomic_store_n(&m->cpu, here(), __ATOMIC_RELAXED);
		__atomic_store_n(&m->asked, asked, __ATOMIC_RELEASE);
		while (raw_tsc() < go - SEEN_CYCLES / 2)
			if (__atomic_load_n(&m->agreed, __ATOMIC_ACQUIRE) == asked)
				return go;
	} while (ctl_now_us() - begin < us);
	return 0;
}

/* The other side of that, on another processor; ends when the one that waited does not wait any more. */
static uint64_t agree(struct ctl_meeting *m, uint32_t both)
{
	uint32_t seen = m->agreed;

	while (__atomic_load_n(&m->who, __ATOMIC_ACQUIRE) == both) {
		uint32_t asked = __atomic_load_n(&m->asked, __ATOMIC_ACQUIRE);
		uint64_t go = __atomic_load_n(&m->go, __ATOMIC_RELAXED);

		if (__atomic_load_n(&m->cpu, __ATOMIC_RELAXED) == here())
			leave(here());
		if (asked == seen)
			continue;
		seen = asked;
		if (raw_tsc() > go - SEEN_CYCLES)
			continue;
		__atomic_store_n(&m->agreed, asked, __ATOMIC_RELEASE);
		return go;
	}
	return 0;
}

bool ctl_rendezvous(struct ctl_meeting *m, const struct tr_ctx *c, uint64_t pc, uint64_t us, bool *met)
{
	uint32_t me = c->thread->index + 1, there;
	uint64_t loads[MOST_LOADS], go, random = ctl_random((uint64_t)shim.pid ^ me, raw_tsc());
	unsigned n = loads_ahead(c, pc, loads);

	*met = false;
	/* Whoever of two comes first: the other finds it there. A third one has no part in it. */
	do {
		there = __atomic_load_n(&m->who, __ATOMIC_ACQUIRE);
		if (there >> GUEST_SHIFT == me) { /* the last time; the first has not even gone on since then */
			if (!ctl_await(&m->who, there, us))
				return false;
			there = __atomic_load_n(&m->who, __ATOMIC_ACQUIRE);
		}
		if (me >> GUEST_SHIFT || there >> GUEST_SHIFT)
			return true;
	} while (!change(&m->who, there, there ? there | me << GUEST_SHIFT : me));
	chill(there != 0);
	if (there) {
		go = agree(m, there | me << GUEST_SHIFT);
	} else {
		if (!ctl_await(&m->who, me, us) && change(&m->who, me, 0))
			return false;
		go = name_instant(m, us);
		__atomic_store_n(&m->who, 0, __ATOMIC_RELEASE);
	}
	*met = go != 0;
	if (go)
		go_at(go, loads, n, there != 0, random);
	return go != 0;
}
