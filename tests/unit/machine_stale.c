/* Code that may have changed: what is the same as before is not compiled again, what is not is. */
#include "analyzer/engine/engine.h"
#include "tests/lib/check.h"

#include <string.h>

#define CODE 0x10000000ull
#define FAR (CODE + 0x10000)

/* At CODE: inc eax, jmp FAR. At FAR: inc eax, inc eax, jmp CODE. */
static const uint8_t here[] = { 0xff, 0xc0, 0xe9, 0xf9, 0xff, 0x00, 0x00 };
static const uint8_t there[] = { 0xff, 0xc0, 0xff, 0xc0, 0xe9, 0xf7, 0xff, 0xfe, 0xff };
/* Instead: add eax 16, nop, jmp CODE. */
static const uint8_t other[] = { 0x83, 0xc0, 0x10, 0x90, 0xe9, 0xf7, 0xff, 0xfe, 0xff };
/* inc eax, inc eax, and then memory ends. */
static const uint8_t edge[] = { 0xff, 0xc0, 0xff, 0xc0 };

static void map(struct mach *m, uint64_t at, const uint8_t *code, size_t n)
{
	mem_map(m->mem, at, at + 4096, MEM_R | MEM_X, false);
	mem_poke(m->mem, at, code, n);
}

static void go_to(struct mach *m, uint64_t pc)
{
	struct mach_cpu cpu;

	mach_cpu_init(&cpu);
	cpu.g.guest_RIP = pc;
	cpu.insns = 0;
	mach_cpu_load(m, &cpu);
}

/* What two rounds add to eax. */
static uint64_t rounds(struct mach *m)
{
	go_to(m, CODE);
	m->insn_limit = 10;
	mach_engine_run(m);
	return m->frame->g.guest_RAX;
}

static void same_and_other(void)
{
	struct mach *m;
	struct mem_image image;
	uint64_t lifted;

	err_free(mach_engine_new(&m));
	map(m, CODE, here, sizeof here);
	map(m, FAR, there, sizeof there);
	CHECK(rounds(m) == 6, "as it was first");
	mem_save(m->mem, &image);
	lifted = m->lifted;
	map(m, FAR, there, sizeof there);
	CHECK(rounds(m) == 6 && m->lifted == lifted, "the same code again is not compiled again");
	map(m, FAR, other, sizeof other);
	CHECK(rounds(m) == 34, "other code is executed");
	CHECK(m->lifted == lifted + 3, "and what lies elsewhere stays");
	mem_poke(m->mem, FAR + 2, "\x20", 1);
	CHECK(rounds(m) == 66, "a byte of it changes");
	mem_restore(m->mem, &image);
	CHECK(rounds(m) == 6, "a state of before has the code of before");
	mem_unmap(m->mem, FAR, FAR + 4096);
	go_to(m, CODE);
	m->insn_limit = 10;
	CHECK(mach_engine_run(m) == STOP_FAULT && m->frame->g.guest_RIP == FAR, "code that is gone is not executed");
	mem_image_free(&image);
	mach_engine_free(m);
}

/* A block that ends where memory does was made by what lies behind it. */
static void memory_ends(void)
{
	struct mach *m;
	uint64_t at = CODE + 4096 - sizeof edge;

	err_free(mach_engine_new(&m));
	mem_map(m->mem, CODE, CODE + 4096, MEM_R | MEM_X, false);
	mem_poke(m->mem, at, edge, sizeof edge);
	go_to(m, at);
	m->insn_limit = 3;
	CHECK(mach_engine_run(m) == STOP_FAULT, "memory ends");
	mem_map(m->mem, CODE + 4096, CODE + 8192, MEM_R | MEM_X, false);
	mem_poke(m->mem, CODE + 4096, edge, sizeof edge);
	go_to(m, at);
	CHECK(mach_engine_run(m) == STOP_LIMIT && m->frame->g.guest_RAX == 3, "and then it does not");
	mach_engine_free(m);
}

/* Places to stop at that change while it is not known whether the code does. */
static void breaks(void)
{
	static const uint64_t places[] = { FAR + 2 };
	struct mach *m;

	err_free(mach_engine_new(&m));
	map(m, CODE, here, sizeof here);
	map(m, FAR, there, sizeof there);
	m->breaking = BLOCK_BREAK;
	CHECK(rounds(m) == 6, "no place");
	map(m, FAR, there, sizeof there);
	mach_set_breaks(m, places, 1);
	go_to(m, CODE);
	CHECK(mach_engine_run(m) == STOP_BREAK && m->frame->g.guest_RIP == FAR + 2, "a place in it");
	mach_engine_free(m);
}

int main(void)
{
	same_and_other();
	memory_ends();
	breaks();
	CHECK_END();
}
