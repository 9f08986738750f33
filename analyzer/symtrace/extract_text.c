#include "analyzer/symtrace/extract_text.h"

/* Bytes of the widest block. */
#define WIDEST 64u

/* At the first access of a call its arguments are still where they were passed. */
static void begin(struct level_text *x, struct mach_run *run, const struct mach_access *a)
{
	struct mach_entered call;

	*x = (struct level_text){ .insn = UINT64_MAX };
	if (!mach_entered(run, a->thread, &call))
		return;
	x->start[0] = call.args[0];
	x->start[1] = call.args[1];
}

/* The string that begins in this block, if one does and the other may not reach into it; or 0. */
static uint64_t beginning(const struct level_text *x)
{
	for (unsigned i = 0; i < 2; i++) {
		uint64_t start = x->start[i], other = x->start[!i];

		if (start > x->block && start - x->block < WIDEST && x->block / WIDEST == start / WIDEST &&
		    (other >= start || start - other > 4096))
			return start;
	}
	return 0;
}

struct mach_access text_part(struct level *l, struct mach_run *run, const struct mach_access *a)
{
	struct mach_access part = *a;
	struct level_text *x = level_text(l, a->thread);
	enum level_scan scan = level_scan(l, a->thread);
	unsigned from = 0, n;

	if (scan == LEVEL_NO_SCAN || !(a->flags & MACH_READ))
		return part;
	if (scan == LEVEL_SCAN_BEGINS)
		begin(x, run, a);
	if (x->insn != a->insn) {
		x->insn = a->insn;
		x->block = a->address;
		x->ended = false;
	}
	/* Only a block that was aligned down begins before its string. */
	uint64_t start = x->block % 16 == 0 ? beginning(x) : 0;
	if (start > a->address)
		from = start - a->address < a->size ? (unsigned)(start - a->address) : a->size;
	for (n = 0; from + n < a->size && !x->ended; n++)
		x->ended = !(a->value >> 8 * (from + n) & 0xff);
	part.address += from;
	part.value = from < 8 ? part.value >> 8 * from : 0;
	part.size = (uint16_t)n;
	return part;
}
