/*
 * Writes to registers that a later write in the block makes superfluous move to
 * the block's side list (see engine.h).
 */
#include "analyzer/engine/compile.h"

#include <string.h>

#define SLOTS ((MACH_STATE_SIZE + 7) / 8)

struct liveness {
	uint32_t until[SLOTS]; /* op index of the next whole write of the slot; 0: it is read first */
};

static void reads_slot(struct liveness *l, uint32_t offset, unsigned size)
{
	if (offset >= MACH_STATE_SIZE)
		return;
	for (uint32_t s = offset / 8; s <= (offset + size - 1) / 8 && s < SLOTS; s++)
		l->until[s] = 0;
}

static void reads_all(struct liveness *l)
{
	memset(l->until, 0, sizeof l->until);
}

static void reads_of_op(struct liveness *l, const struct mach_op *op)
{
	switch (op->code) {
	case OP_NATIVE:
	case OP_SPECIAL:
	case OP_LOCK:
	case OP_UNLOCK:
	case OP_EXIT:
	case OP_END:
	case OP_ENDI:
	case OP_STOP:
		reads_all(l);
		break;
	case OP_CALL: {
		const struct mach_call *c = (const struct mach_call *)op->imm;

		for (unsigned i = 0; i < c->nargs; i++)
			reads_slot(l, c->arg[i], 8);
		break;
	}
	case OP_CAS: {
		const struct mach_cas *c = (const struct mach_cas *)op->imm;

		reads_slot(l, c->address, 8);
		for (int i = 0; i < 2; i++) {
			reads_slot(l, c->expected[i], 8);
			reads_slot(l, c->data[i], 8);
		}
		break;
	}
	case OP_ITE:
		reads_slot(l, (uint32_t)op->imm, 8);
		reads_slot(l, op->a, 1);
		reads_slot(l, op->b, 8);
		break;
	default:
		reads_slot(l, op->a, 8);
		reads_slot(l, op->b, 8);
	}
}

void compile_late_puts(struct builder *w)
{
	struct liveness l;
	VEC(struct mach_late_put) late = { 0 };
	bool *gone = xcalloc(w->ops.n + 1, sizeof *gone);

	reads_all(&l);
	for (size_t i = w->ops.n; i-- > 0;) {
		struct mach_op *op = &w->ops.v[i];

		if (op->code == OP_GONE) {
			gone[i] = true;
			continue;
		}
		if (op->code < OP_PUT8 || op->code > OP_PUT64) {
			reads_of_op(&l, op);
			continue;
		}
		uint32_t *until = &l.until[op->d / 8];
		bool whole = op->code == OP_PUT64 && op->d % 8 == 0;

		if (whole && *until && op->a >= MACH_STATE_SIZE) {
			struct mach_late_put put = { (uint32_t)i, *until, op->d, op->a };

			vec_push(&late, put);
			gone[i] = true;
			continue; /* the write that follows also covers those before this */
		}
		if (whole)
			*until = (uint32_t)i;
		else
			reads_slot(&l, op->d, op->size); /* keep the rest of the slot */
		reads_slot(&l, op->a, 8);
		if (whole && op->a / 8 == op->d / 8 && op->a < MACH_STATE_SIZE)
			*until = 0;
	}
	/* Compact, and translate op indices. */
	uint32_t *moved = xmalloc((w->ops.n + 1) * sizeof *moved);
	size_t kept = 0;

	for (size_t i = 0; i < w->ops.n; i++) {
		moved[i] = (uint32_t)kept;
		if (!gone[i])
			w->ops.v[kept++] = w->ops.v[i];
	}
	w->ops.n = kept;
	w->b->nlate = (uint32_t)late.n;
	w->b->late = mach_arena(w->m, late.n * sizeof *late.v + 1);
	for (size_t i = 0; i < late.n; i++) { /* in program order */
		struct mach_late_put put = late.v[late.n - 1 - i];

		put.at = moved[put.at];
		put.until = moved[put.until];
		w->b->late[i] = put;
	}
	free(moved);
	free(gone);
	vec_free(&late);
}
