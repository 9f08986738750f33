/* See straight.h. */
#include "analyzer/engine/straight.h"

#include "analyzer/engine/code.h"
#include "analyzer/engine/exec_space.h"
#include "analyzer/engine/straight_ops.h"

#include <cpuid.h>

#define SPACE (128u << 20)
#define RUN_MAX 65536u /* bytes of code, more than a block can need */
#define WORTH_IT 3     /* operations */

struct straight {
	struct exec_space space;
	uint8_t *next; /* where to write */
	const uint8_t *blocks; /* behind what all of it calls */
	struct straight_thunks thunks;
};

/* ---- what straight code calls when the buffers do not know a page ---- */

static uint64_t slow_load(struct mem *mem, uint64_t address, uint64_t *value, unsigned size)
{
	*value = 0;
	return mem_load(mem, address, value, size);
}

static uint64_t slow_store(struct mem *mem, uint64_t address, const uint64_t *value, unsigned size)
{
	return mem_store(mem, address, value, size);
}

/*
 * In: rdx the address, rcx the value to store. Out: eax 0 when it is refused, rdx the value
 * loaded. Everything else stays. With what is pushed the stack is aligned for the call.
 */
static const uint8_t *emit_thunk(struct code *c, unsigned size, bool store)
{
	static const uint8_t saved[] = { R_CX, R_SI, R_DI, R_8, R_9, R_10, R_11 };
	const uint8_t *at = c->p;

	for (unsigned i = 0; i < sizeof saved; i++)
		x_op(c, 0x50 | (saved[i] & 7), false, 0, 0, saved[i], false);
	x_op(c, 0x51, false, 0, 0, 0, false); /* push rcx: the value's place */
	x_rr(c, I_MOV, true, R_DI, R_SI);     /* mem */
	x_rr(c, I_MOV, true, R_SI, R_DX);     /* address */
	x_rr(c, I_MOV, true, R_DX, R_SP);     /* &value */
	x_constant(c, R_CX, size);
	x_constant(c, R_AX, store ? (uint64_t)slow_store : (uint64_t)slow_load);
	x_byte(c, 0xff), x_byte(c, 0xd0); /* call rax */
	x_op(c, 0x5a, false, 0, 0, 0, false); /* pop rdx */
	for (unsigned i = sizeof saved; i-- > 0;)
		x_op(c, 0x58 | (saved[i] & 7), false, 0, 0, saved[i], false);
	x_byte(c, 0xc3);
	return at;
}

/* ---- runs ---- */

/* Something the interpreter will stumble over in any case is no part of a run. */
static size_t run_length(const struct mach_op *ops, size_t n)
{
	size_t i = 0;

	while (i < n && straight_knows(&ops[i]))
		i++;
	return i;
}

static void *emit_run(struct mach *m, struct mach_block *b, const struct mach_op *ops, size_t first,
		      size_t n)
{
	struct straight *s = m->straight;
	struct straight_run run = {
		.code = { s->next, s->next + RUN_MAX }, .m = m, .b = b, .thunks = &s->thunks,
	};

	if (s->next + RUN_MAX > s->space.write + SPACE) {
		m->flush_wanted = true; /* room again from the next block on */
		return NULL;
	}
	straight_begin(&run);
	for (size_t i = first; i < first + n; i++)
		if (!straight_op(&run, &ops[i], (uint32_t)i))
			return NULL;
	straight_end(&run, (uint32_t)(first + n));
	void *at = exec_space_run(&s->space, s->next);

	s->next = run.code.p;
	return at;
}

/* First the places of all operations, then the code, which names them. */
struct mach_op *straight_add(struct mach *m, struct mach_block *b, const struct mach_op *ops,
			     size_t *n)
{
	uint32_t *moved = xmalloc((*n + 1) * sizeof *moved);
	struct mach_op *out = mach_arena(m, 2 * *n * sizeof *out + 1);
	size_t kept = 0;

	for (size_t i = 0; i < *n;) {
		size_t run = m->straight ? run_length(ops + i, *n - i) : 0;

		if (run >= WORTH_IT)
			out[kept++] = (struct mach_op){ .code = OP_STRAIGHT, .insn = ops[i].insn,
							.a = (uint32_t)run };
		for (size_t end = i + (run ? run : 1); i < end; i++) {
			moved[i] = (uint32_t)kept;
			out[kept++] = ops[i];
		}
	}
	for (size_t i = 0; i < kept; i++) {
		if (out[i].code != OP_STRAIGHT)
			continue;
		out[i].imm = (uint64_t)emit_run(m, b, out, i + 1, out[i].a);
		if (!out[i].imm)
			out[i].code = OP_NOTHING;
	}
	for (uint32_t i = 0; i < b->nlate; i++) {
		b->late[i].at = moved[b->late[i].at];
		b->late[i].until = moved[b->late[i].until];
	}
	free(moved);
	*n = kept;
	return out;
}

/* ---- life ---- */

/* lzcnt and popcnt: others than the host's first models all have them. */
static bool host_is_modern(void)
{
	unsigned a, b, c = 0, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 23 & 1))
		return false;
	if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c >> 5 & 1))
		return false;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 3 & 1; /* tzcnt */
}

void straight_init(struct mach *m)
{
	struct straight *s;

	if (!host_is_modern())
		return;
	s = xcalloc(1, sizeof *s);
	if (!exec_space_new(&s->space, SPACE)) {
		free(s);
		return;
	}
	struct code c = { s->space.write, s->space.write + SPACE };

	for (unsigned i = 0; i < 4; i++) {
		s->thunks.load[i] = emit_thunk(&c, 1u << i, false);
		s->thunks.store[i] = emit_thunk(&c, 1u << i, true);
	}
	s->blocks = s->next = c.p;
	m->straight = s;
}

void straight_flush(struct mach *m)
{
	if (m->straight)
		m->straight->next = (uint8_t *)(uintptr_t)m->straight->blocks;
}

void straight_free(struct mach *m)
{
	if (m->straight)
		exec_space_free(&m->straight->space);
	free(m->straight);
}
