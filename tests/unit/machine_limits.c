/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What one instruction may cost: string instructions over more memory than anybody has ask now and then whether
 * to go on, and are to be continued where they stopped; memory that is touched has an end.
 */
#include "analyzer/engine/code.h"
#include "tests/lib/check.h"

#include <string.h>

#define CODE 0x10000000ull
#define DATA 0x100000000000ull
#define SIZE (60ull << 30)

static struct mach *machine(const uint8_t *code, size_t n, unsigned prot)
{
	struct mach *m;
	struct mach_cpu cpu;

	err_free(mach_engine_new(&m));
	mem_map(m->mem, CODE, CODE + 4096, MEM_R | MEM_X, false);
	mem_map(m->mem, DATA, DATA + SIZE, prot, false);
	mem_map(m->mem, DATA + 2 * SIZE, DATA + 3 * SIZE, prot, false);
	mem_poke(m->mem, CODE, code, n);
	mach_cpu_init(&cpu);
	cpu.g.guest_RIP = CODE;
	cpu.g.guest_RSI = DATA;
	cpu.g.guest_RDI = DATA + 2 * SIZE;
	cpu.g.guest_RCX = SIZE;
	mach_cpu_load(m, &cpu);
	m->insn_limit = 100;
	return m;
}

static unsigned asked;

static bool at_third(void *arg)
{
	(void)arg;
	return ++asked % 3 == 0;
}

static void on_access(void *arg, struct mach *m, uint64_t pc, uint64_t address, unsigned size,
		      unsigned how, uint64_t value)
{
	(void)m, (void)pc, (void)address, (void)size, (void)how, (void)value;
	++*(uint64_t *)arg;
}

static void stops(const char *name, uint8_t opcode, bool watched, unsigned bytes)
{
	const uint8_t code[] = { 0xf3, opcode, 0xf4 };
	struct mach *m = machine(code, sizeof code, MEM_R);
	uint64_t told = 0;

	if (opcode == 0xa4 || opcode == 0xaa) {
		mem_protect(m->mem, DATA + 2 * SIZE, DATA + 3 * SIZE, MEM_R | MEM_W);
		m->mem->most = UINT64_MAX;
	}
	m->give_up = at_third;
	m->access = watched ? on_access : NULL;
	m->access_arg = &told;
	for (int i = 0; i < 2; i++) {
		uint64_t before = m->frame->g.guest_RCX;

		asked = 0;
		enum mach_stop stop = mach_engine_run(m);
		uint64_t done = before - m->frame->g.guest_RCX;

		CHECK(stop == STOP_WORK && asked == 3 && m->frame->g.guest_RIP == CODE && done &&
			      done <= 3ull * MACH_WORK / bytes + MEM_PAGE && m->insns == 0,
		      "%s%s, time %d: stops after %llu of %llu bytes", name, watched ? ", watched" : "", i + 1,
		      (unsigned long long)done, (unsigned long long)before);
		CHECK(m->frame->g.guest_RDI - (DATA + 2 * SIZE) == SIZE - m->frame->g.guest_RCX ||
			      opcode == 0xac,
		      "its registers are as the processor has them when it is interrupted");
	}
	m->frame->g.guest_RCX = 5;
	enum mach_stop stop = mach_engine_run(m);

	CHECK(stop == STOP_FAULT && m->frame->g.guest_RIP == CODE + 2 && m->insns == 1,
	      "%s is brought to its end", name);
	mach_engine_free(m);
}

/* Comes to an end by its count, not by being asked. */
static void ends(void)
{
	static const uint8_t code[] = { 0xf3, 0xaa, 0xf4 };
	struct mach *m = machine(code, sizeof code, MEM_R | MEM_W);

	asked = 0;
	m->give_up = at_third;
	m->frame->g.guest_RCX = MACH_WORK;
	enum mach_stop stop = mach_engine_run(m);

	CHECK(stop == STOP_FAULT && m->frame->g.guest_RCX == 0 && asked == 1,
	      "16 MB are asked about once, at the end: %u", asked);
	mach_engine_free(m);
}

static void memory_ends(void)
{
	static const uint8_t code[] = { 0xf3, 0xaa, 0xf4 };
	struct mach *m = machine(code, sizeof code, MEM_R | MEM_W);

	m->mem->most = 32 << 20;
	enum mach_stop stop = mach_engine_run(m);
	uint64_t done = SIZE - m->frame->g.guest_RCX;

	CHECK(stop == STOP_UNDECODED && strstr(m->why, "memory") && done > (20 << 20) && done < (32 << 20),
	      "stores end at the limit: stop %d after %llu bytes: %s", stop, (unsigned long long)done, m->why);
	/* What is there can still be read and written. */
	uint64_t word = 1;

	CHECK(mem_store(m->mem, DATA + 2 * SIZE, &word, 8) && mem_load(m->mem, DATA + 2 * SIZE, &word, 8),
	      "pages that are there stay in use");
	CHECK(!mem_poke(m->mem, DATA, &word, 8) && m->mem->exhausted, "no page for the kernel either");
	mach_engine_free(m);

	/* Reading makes no pages, but a tree of them. */
	m = machine(code, sizeof code, MEM_R | MEM_W);
	m->mem->most = 1 << 20;
	uint64_t at = DATA;
	while (at < DATA + SIZE && mem_load(m->mem, at, &word, 8))
		at += 1 << 18;
	CHECK(m->mem->exhausted && at < DATA + SIZE, "reads here and there end at the limit as well");
	mach_engine_free(m);
}

int main(void)
{
	stops("rep movsb", 0xa4, false, 1);
	stops("rep stosb", 0xaa, false, 1);
	stops("rep lodsb", 0xac, false, MACH_SLOW);
	stops("repe cmpsb", 0xa6, false, MACH_SLOW);
	stops("rep movsb", 0xa4, true, MACH_SLOW);
	stops("rep lodsb", 0xac, true, MACH_SLOW);
	ends();
	memory_ends();
	CHECK_END();
}
