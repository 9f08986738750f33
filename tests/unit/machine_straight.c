/*
 * Straight code against the interpreter: every operation it knows, alone and in random runs, with
 * operands that are registers, halves of them, temporaries and constants, must leave
 * the frame and memory as the interpreter does, and stop where it stops.
 */
#include "analyzer/engine/compile.h"
#include "analyzer/engine/straight.h"
#include "analyzer/engine/straight_ops.h"
#include "tests/lib/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define DATA 0x50000000ull
#define NTEMPS 12

static const struct {
	const char *name;
	uint8_t a_bits, b_bits, r_bits;
} ops[] = {
#define MACH_OP(name, kind, a, b, r, ...) { #name, a, b, r },
#include "analyzer/engine/ops.def"
#undef MACH_OP
};

static uint64_t state = 88172645463325252ull;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Numbers at which arithmetic changes, and any. */
static uint64_t number(void)
{
	static const uint64_t edges[] = { 0, 1, 2, 7, 31, 32, 63, 64, 0x7f, 0x80, 0xff, 0x7fff, 0x8000,
					  0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
					  0x7fffffffffffffff, 0x8000000000000000, UINT64_MAX };

	return rnd() % 3 ? edges[rnd() % (sizeof edges / sizeof edges[0])] : rnd();
}

static uint32_t temp(void)
{
	return MACH_TEMPS + (uint32_t)(rnd() % NTEMPS) * MACH_TEMP_SIZE;
}

/* A place to read so many bits from. */
static uint32_t source(struct mach *m, unsigned bits)
{
	switch (rnd() % 4) {
	case 0:
		return mach_const(m, number(), 0);
	case 1: /* a register, or a part of one */
		return gpr_offset((unsigned)(rnd() % 16)) + (bits == 8 ? (uint32_t)(rnd() % 2) : 0);
	default:
		return temp();
	}
}

static uint32_t target(void)
{
	return rnd() % 4 ? temp() : gpr_offset((unsigned)(rnd() % 16));
}

static uint64_t helper(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	(void)c;
	(void)d;
	(void)e;
	(void)f;
	return a * 3 ^ b;
}

static const struct mach_call helper_call = {
	.fn = helper, .name = "helper", .nargs = 2, .size = 4,
	.arg = { MACH_TEMPS, MACH_TEMPS + MACH_TEMP_SIZE },
};

/* Addresses of accesses: in the page, across its end, in one that may only be read, nowhere. */
static uint32_t address(struct mach *m)
{
	uint64_t at = DATA + rnd() % 3 * MEM_PAGE + rnd() % (MEM_PAGE - 16);

	if (rnd() % 8 == 0)
		at = DATA + MEM_PAGE - 3;
	if (rnd() % 32 == 0)
		at = DATA + 3 * MEM_PAGE + 8;
	if (rnd() % 32 == 0)
		at = rnd();
	return mach_const(m, at, 0);
}

static struct mach_op random_op(struct mach *m, unsigned code)
{
	struct mach_op op = { .code = (uint16_t)code, .size = ops[code].r_bits / 8 };

	op.a = source(m, ops[code].a_bits);
	op.b = source(m, ops[code].b_bits);
	op.d = target();
	if (code >= OP_LOAD8 && code <= OP_STORE64) {
		op.a = address(m);
	} else if (code >= OP_LOADAT8 && code <= OP_LOADAT64) {
		op.a = address(m), op.b = mach_const(m, rnd() % 8, 0), op.imm = temp();
	} else if (code >= OP_STOREAT8 && code <= OP_STOREAT64) {
		op.a = address(m), op.b = mach_const(m, rnd() % 8, 0), op.d = temp();
		do
			op.imm = source(m, 64);
		while (op.imm == op.d);
	} else if (code == OP_ITE) {
		op.size = (uint8_t)(1u << rnd() % 4);
		op.imm = source(m, 64);
		op.b = source(m, 64);
	} else if (code >= OP_PUTS2 && code <= OP_PUTS4) {
		op.d = gpr_offset((unsigned)(rnd() % 12));
		op.a = temp(), op.b = temp();
		op.imm = code == OP_PUTS2 ? gpr_offset((unsigned)(rnd() % 16)) :
					    temp() | (uint64_t)temp() << 32;
		if (code == OP_PUTS3)
			op.imm = (uint32_t)op.imm;
	} else if (code == OP_PUT8 || code == OP_PUT16 || code == OP_PUT32) {
		op.d = gpr_offset((unsigned)(rnd() % 16)) + (code == OP_PUT8 ? (uint32_t)(rnd() % 2) : 0);
	} else if (code == OP_CALL) {
		op.imm = (uint64_t)&helper_call;
		op.size = 4;
	} else if (ops[code].r_bits == 128 || code == OP_MOVE || ops[code].a_bits == 128) {
		op.d = temp();
		op.a = ops[code].a_bits == 128 || code == OP_MOVE ? temp() : op.a;
	} else if (code == OP_EXIT) {
		op.imm = 0x1234;
	}
	return op;
}

struct outcome {
	enum mach_stop stop;
	uint8_t frame[MACH_TEMPS + NTEMPS * MACH_TEMP_SIZE + 16];
	uint8_t memory[3 * MEM_PAGE];
};

/* A block of these operations at an address of its own, entered as if it had been compiled. */
static void execute(struct mach *m, const struct mach_op *list, size_t n, bool straight,
		    const struct outcome *before, struct outcome *after)
{
	struct mach_block *b = mach_arena(m, sizeof *b);
	struct straight *have = m->straight;
	uint64_t pc = 0x60000000;

	memcpy(m->f, before->frame, sizeof before->frame);
	memset(m->frame->fx, 0, sizeof m->frame->fx);
	mem_poke(m->mem, DATA, before->memory, sizeof before->memory);
	memset(b, 0, sizeof *b);
	b->pc = pc;
	b->ninsns = 1;
	b->insn_pc[0] = pc;
	b->end_pc = b->insn_pc[1] = pc + 4;
	b->end = BLOCK_FALL;
	if (!straight)
		m->straight = NULL;
	b->ops = straight_add(m, b, list, &n);
	b->nops = (uint32_t)n;
	m->straight = have;
	mach_block_put(m, b); /* the newest is found first */
	m->frame->g.guest_RIP = pc;
	after->stop = mach_engine_run(m);
	memcpy(after->frame, m->f, sizeof after->frame);
	mem_peek(m->mem, DATA, after->memory, sizeof after->memory);
}

static void prepare(struct outcome *o)
{
	for (size_t i = 0; i + 8 <= sizeof o->frame; i += 8) {
		uint64_t v = number();

		memcpy(o->frame + i, &v, 8);
	}
	for (size_t i = 0; i < sizeof o->memory; i++)
		o->memory[i] = (uint8_t)rnd();
}

static unsigned compare(struct mach *m, const struct mach_op *list, size_t n)
{
	static struct outcome before, plain, fast;

	prepare(&before);
	execute(m, list, n, false, &before, &plain);
	execute(m, list, n, true, &before, &fast);
	return plain.stop != fast.stop || memcmp(plain.frame, fast.frame, sizeof plain.frame) ||
	       memcmp(plain.memory, fast.memory, sizeof plain.memory);
}

static const struct mach_op end = { .code = OP_STOP, .size = STOP_BREAK };

static bool known(unsigned code)
{
	const struct mach_op op = { .code = (uint16_t)code };

	return straight_knows(&op) && code != OP_NATIVE;
}

/* Three of one kind, so that it is worth it. */
static void each(struct mach *m)
{
	unsigned kinds = 0;

	for (unsigned code = 0; code < OP_COUNT; code++) {
		unsigned wrong = 0;

		if (!known(code))
			continue;
		kinds++;
		for (unsigned i = 0; i < 400; i++) {
			struct mach_op list[4];

			for (unsigned k = 0; k < 3; k++)
				list[k] = random_op(m, code);
			list[3] = end;
			wrong += compare(m, list, 4);
		}
		if (wrong)
			CHECK(false, "%s: %u of 400 differ", ops[code].name, wrong);
		mach_blocks_flush(m);
	}
	CHECK(kinds > 100, "%u operations do alone what the interpreter does", kinds);
}

static void runs(struct mach *m)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < 4000; i++) {
		struct mach_op list[41];
		size_t n = 5 + rnd() % 36;

		for (size_t k = 0; k + 1 < n; k++) {
			unsigned code;

			do
				code = (unsigned)(rnd() % OP_COUNT);
			while (!known(code) || (code == OP_EXIT && rnd() % 4));
			list[k] = random_op(m, code);
		}
		list[n - 1] = end;
		wrong += compare(m, list, n);
		if (i % 100 == 0)
			mach_blocks_flush(m);
	}
	CHECK(!wrong, "4000 random runs: %u differ", wrong);
}

int main(void)
{
	struct mach *m;

	err_free(mach_engine_new(&m));
	if (!m->straight) {
		printf("skip straight code: this processor has no lzcnt, tzcnt and popcnt\n");
		return 77;
	}
	mem_map(m->mem, DATA, DATA + 2 * MEM_PAGE, MEM_R | MEM_W, false);
	mem_map(m->mem, DATA + 2 * MEM_PAGE, DATA + 3 * MEM_PAGE, MEM_R, false);
	each(m);
	runs(m);
	mach_engine_free(m);
	CHECK_END();
}
