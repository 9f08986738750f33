/*
 * Fewer operations: what often stands together becomes one, after everything else was done. A third
 * of what a block does is writing registers (an arithmetic instruction writes four words of flags), and
 * most addresses are a sum. With the conversions that convert.c leaves out, 165 million operations
 * for 48 million instructions of python became 93 million.
 */
#include "analyzer/engine/compile.h"

static bool is_put(const struct mach_op *op)
{
	return op->code == OP_PUT64;
}

/* How many of the n operations write words that lie side by side, up to four. */
static unsigned neighbours(const struct mach_op *op, size_t n)
{
	unsigned k = 1;

	while (k < 4 && k < n && is_put(&op[k]) && op[k].d == op[0].d + 8 * k)
		k++;
	return k;
}

/* Some register writes in a row: returns how many became one. */
static unsigned fuse_puts(const struct mach_op *op, size_t n, struct mach_op *out)
{
	unsigned k = neighbours(op, n);

	*out = op[0];
	if (k >= 3) {
		out->code = k == 3 ? OP_PUTS3 : OP_PUTS4;
		out->b = op[1].a;
		out->imm = op[2].a | (uint64_t)(k == 4 ? op[3].a : 0) << 32;
		return k;
	}
	if (n < 2 || !is_put(&op[1]) || neighbours(&op[1], n - 1) >= 3)
		return 1;
	out->code = OP_PUTS2;
	out->b = op[1].a;
	out->imm = op[1].d;
	return 2;
}

static bool is_sum(const struct mach_op *op)
{
	return op->code == OP_ADD64 || (op->code == OP_SUB64 && op->b >= MACH_CONSTS);
}

/* An address that was just computed, and its access. The sum is kept: others may use it. */
static bool fuse_access(struct builder *w, const struct mach_op *op, struct mach_op *out)
{
	const struct mach_op *access = &op[1];
	bool load = access->code >= OP_LOAD8 && access->code <= OP_LOAD64;
	bool store = access->code >= OP_STORE8 && access->code <= OP_STORE64;

	if (!is_sum(op) || (!load && !store) || access->a != op->d || (store && access->b == op->d))
		return false;
	*out = *access;
	out->a = op->a;
	out->b = op->b;
	if (op->code == OP_SUB64)
		out->b = mach_const(w->m, -*(uint64_t *)mach_at(w->m, op->b), 0);
	if (load) {
		out->code = (uint16_t)(access->code - OP_LOAD8 + OP_LOADAT8);
		out->imm = op->d;
	} else {
		out->code = (uint16_t)(access->code - OP_STORE8 + OP_STOREAT8);
		out->d = op->d;
		out->imm = access->b;
	}
	return true;
}

void compile_fuse(struct builder *w)
{
	uint32_t *moved = xmalloc((w->ops.n + 1) * sizeof *moved);
	size_t kept = 0;

	for (size_t i = 0; i < w->ops.n;) {
		const struct mach_op *op = &w->ops.v[i];
		size_t left = w->ops.n - i;
		struct mach_op fused = *op;
		unsigned n = 1;

		if (is_put(op))
			n = fuse_puts(op, left, &fused);
		else if (left > 1 && fuse_access(w, op, &fused))
			n = 2;
		for (unsigned k = 0; k < n; k++)
			moved[i + k] = (uint32_t)kept;
		i += n;
		w->ops.v[kept++] = fused;
	}
	moved[w->ops.n] = (uint32_t)kept;
	w->ops.n = kept;
	for (uint32_t i = 0; i < w->b->nlate; i++) {
		struct mach_late_put *p = &w->b->late[i];

		p->at = moved[p->at];
		p->until = moved[p->until];
	}
	free(moved);
}
