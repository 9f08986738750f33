/*
 * Variables of functions that have returned. A thread is given the address of its creator's
 * variable, and the creator leaves the function before the thread has looked at it.
 *
 * When a thread is born the frames of its creator are noted. A frame lives as long as its return
 * address stands where it stood and the stack reaches over it: a function that was called anew
 * from the same place is taken for the same, so nobody is accused who should not be.
 */
#include "analyzer/symtrace/extract_internal.h"

#define MOST_FRAMES 24

struct ext_birth {
	uint32_t parent;
	size_t n;
	struct {
		uint64_t start, end; /* its part of the stack, the return address in the last word */
		uint64_t back;       /* the return address */
		uint64_t pc;         /* where it stood */
	} frames[MOST_FRAMES];
};

void ext_birth_note(struct ext *x, uint32_t thread, uint32_t parent)
{
	struct ext_thread *th = ext_thread(x, thread);
	struct img_memory mem = mach_img_memory(x->run);
	uint64_t pcs[MOST_FRAMES], ends[MOST_FRAMES], start;
	struct img_regs regs;

	free(th->birth);
	th->birth = NULL;
	if (parent >= x->threads.n || !mach_img_regs(x->run, parent, &regs))
		return;
	th->birth = xcalloc(1, sizeof *th->birth);
	th->birth->parent = parent;
	/* It stands in clone(), which has no frame of its own and tells no unwinder who called it. */
	if (!mach_read(x->run, regs.r[IMG_RSP], &regs.r[IMG_RIP], 8))
		return;
	start = regs.r[IMG_RSP] += 8;
	size_t n = img_unwind_ends(x->images, &regs, &mem, pcs, ends, MOST_FRAMES);
	for (size_t i = 0; i < n && ends[i]; i++) {
		size_t k = th->birth->n++;

		th->birth->frames[k].start = start;
		th->birth->frames[k].end = start = ends[i];
		th->birth->frames[k].pc = pcs[i];
		if (!mach_read(x->run, start - 8, &th->birth->frames[k].back, 8))
			break;
	}
}

/* The parent's stack does not reach over it any more, or another function's frame lies there. */
static bool is_left(struct ext *x, const struct ext_birth *b, size_t frame, uint64_t address)
{
	uint64_t back, regs[TRC_NREGS];

	return !mach_regs(x->run, b->parent, regs, NULL) || regs[TRC_RSP] > address ||
	       (mach_read(x->run, b->frames[frame].end - 8, &back, 8) && back != b->frames[frame].back);
}

static uint32_t one_frame(struct ext *x, uint64_t pc)
{
	struct img_frame f;

	if (!img_frames(x->images, pc, &f, 1))
		return SYM_NONE;
	struct sym_frame s = { (char *)f.function, (char *)f.file, f.line, pc, (char *)f.module };

	return sym_add_stack(x->trace, &s, 1);
}

void ext_left_watch(struct ext *x, const struct mach_access *a)
{
	const struct ext_birth *b = ext_thread(x, a->thread)->birth;

	if (x->misused_stack.kind || x->onward || !b || !b->n || (a->flags & MACH_KERNEL) ||
	    a->address < b->frames[0].start || a->address >= b->frames[b->n - 1].end)
		return;
	size_t i = 0;
	while (a->address >= b->frames[i].end)
		i++;
	if (level_is_runtime(x->level, b->frames[i].pc) || !is_left(x, b, i, a->address) || !ext_is_accused(x, a))
		return;
	x->misused_stack = (struct ext_misuse){
		.kind = EXT_MISUSE_LEFT, .write = a->flags & MACH_WRITE, .thread = a->thread,
		.stack = ext_stack(x, a->thread, a->pc), .freed_by = b->parent,
		.freed_stack = one_frame(x, b->frames[i].pc),
	};
}
