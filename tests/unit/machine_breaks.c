/* Places to stop at: when they change, what was compiled for others is not executed any more. */
#include "analyzer/engine/engine.h"
#include "tests/lib/check.h"

#define CODE 0x10000000ull

/* inc eax at 0, 2 and 4, then jmp 0. */
static const uint8_t loop[] = { 0xff, 0xc0, 0xff, 0xc0, 0xff, 0xc0, 0xeb, 0xf8 };

static struct mach *machine(void)
{
	struct mach *m;
	struct mach_cpu cpu;

	err_free(mach_engine_new(&m));
	mem_map(m->mem, CODE, CODE + 4096, MEM_R | MEM_X, false);
	mem_poke(m->mem, CODE, loop, sizeof loop);
	mach_cpu_init(&cpu);
	cpu.g.guest_RIP = CODE;
	cpu.insns = 0;
	mach_cpu_load(m, &cpu);
	return m;
}

/* Runs up to the next stop, at most 100 instructions; where is that? */
static uint64_t stops_at(struct mach *m, enum block_variant how)
{
	enum mach_stop stop;

	/* A place at rip stops at once: step over it. */
	m->breaking = BLOCK_WHOLE;
	m->insn_limit = m->insns + 1;
	mach_engine_run(m);
	m->breaking = how;
	m->insn_limit = m->insns + 100;
	stop = mach_engine_run(m);
	return stop == STOP_BREAK ? m->frame->g.guest_RIP - CODE : stop == STOP_LIMIT ? 100 : 200;
}

int main(void)
{
	static const uint64_t two[] = { CODE + 2 }, four[] = { CODE + 4 },
			      both[] = { CODE + 2, CODE + 6 }, jump[] = { CODE + 6 };
	struct mach *m = machine();
	uint64_t lifted;

	mach_set_items(m, jump, 1);
	CHECK(stops_at(m, BLOCK_BREAK) == 100, "no places: the loop goes on");
	mach_set_breaks(m, two, 1);
	CHECK(stops_at(m, BLOCK_BREAK) == 2 && stops_at(m, BLOCK_BREAK) == 2, "stops at the place");
	mach_set_breaks(m, four, 1);
	CHECK(stops_at(m, BLOCK_BREAK) == 4 && stops_at(m, BLOCK_BREAK) == 4, "another place");
	CHECK(stops_at(m, BLOCK_ITEM) == 6, "items are places of their own");
	mach_set_breaks(m, both, 2);
	CHECK(stops_at(m, BLOCK_BREAK) == 2 && stops_at(m, BLOCK_BREAK) == 6 &&
		      stops_at(m, BLOCK_BREAK) == 2, "two places in one block");
	mach_set_breaks(m, NULL, 0);
	CHECK(stops_at(m, BLOCK_BREAK) == 100, "no places again");
	mach_set_breaks(m, jump, 1);
	stops_at(m, BLOCK_BREAK);
	stops_at(m, BLOCK_BREAK);
	lifted = m->lifted;
	mach_set_breaks(m, jump, 1);
	CHECK(stops_at(m, BLOCK_BREAK) == 6 && m->lifted == lifted, "what is right stays");
	mach_engine_free(m);
	CHECK_END();
}
