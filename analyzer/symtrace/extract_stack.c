/* Short stacks of events: unwound in the machine, without the shim's frames. */
#include "analyzer/symtrace/extract_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Enough to come from where a library gives up to who called it: free(), operator delete and
 * the ten functions of a container's that are inlined into each other are twenty frames.
 */
#define MAX_PCS 40
#define MAX_FRAMES 40
#define MAX_INLINED 24

static bool is_shim(const struct img_frame *f)
{
	return f->module && !strncmp(f->module, "libcsched", 9);
}

/* Frames below the thread's own function are the C library's start-up code. */
static bool is_start_up(const struct img_frame *f)
{
	static const char *const names[] = { "start_thread", "clone", "clone3", "__clone3",
					     "__libc_start_main", "__libc_start_call_main", "_start" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strncmp(f->function, names[i], strlen(names[i])))
			return true;
	return false;
}

static uint32_t add_frames(struct ext *x, uint64_t pc, struct sym_frame *out, uint32_t n)
{
	struct img_frame frames[MAX_INLINED];
	size_t got = img_frames(x->images, pc, frames, MAX_INLINED);

	for (size_t i = 0; i < got && n < MAX_FRAMES; i++) {
		const struct img_frame *f = &frames[i];

		/* What the compiler wrote stands nowhere: who made the object, or let it go, is wanted. */
		if (is_shim(f) || is_start_up(f) || f->implicit ||
		    (f->module && !strncmp(f->module, "libc.so", 7) && !f->file && n > 0))
			continue;
		out[n++] = (struct sym_frame){ (char *)f->function, (char *)f->file, f->line, pc,
					       (char *)f->module };
	}
	return n;
}

/* The stack made of these pcs before, or a free slot for it. */
static struct ext_stack_seen *seen_at(struct ext *x, uint64_t hash)
{
	if (2 * (x->nstacks + 1) > x->stacks_cap) {
		size_t cap = x->stacks_cap ? 2 * x->stacks_cap : 1024;
		struct ext_stack_seen *bigger = xcalloc(cap, sizeof *bigger);

		for (size_t i = 0; i < x->stacks_cap; i++) {
			size_t k = x->stacks[i].hash & (cap - 1);

			while (x->stacks[i].hash && bigger[k].hash)
				k = (k + 1) & (cap - 1);
			if (x->stacks[i].hash)
				bigger[k] = x->stacks[i];
		}
		free(x->stacks);
		x->stacks = bigger;
		x->stacks_cap = cap;
	}
	size_t k = hash & (x->stacks_cap - 1);
	while (x->stacks[k].hash && x->stacks[k].hash != hash)
		k = (k + 1) & (x->stacks_cap - 1);
	return &x->stacks[k];
}

/* Never 0. 64 bits: two of a million stacks collide once in ten million runs. */
static uint64_t hash_of(uint64_t pc, const uint64_t *pcs, size_t n)
{
	uint64_t h = (pc + n) * 0x9e3779b97f4a7c15ull;

	for (size_t i = 0; i < n; i++) {
		h = (h ^ pcs[i]) * 0xbf58476d1ce4e5b9ull;
		h ^= h >> 29;
	}
	return h ? h : 1;
}

/* regs: NULL when there are none. */
static uint32_t stack_of(struct ext *x, const struct img_regs *regs, uint64_t pc)
{
	struct sym_frame frames[MAX_FRAMES];
	struct img_memory mem = mach_img_memory(x->run);
	uint64_t pcs[MAX_PCS];
	size_t npcs = regs ? img_unwind(x->images, regs, &mem, pcs, MAX_PCS) : 0;
	uint32_t n = 0;

	struct ext_stack_seen *seen = seen_at(x, hash_of(pc, pcs, npcs));
	if (seen->hash)
		return seen->stack;
	seen->hash = hash_of(pc, pcs, npcs);
	x->nstacks++;
	/* The unwound stack starts where the machine stands; begin at the event's own
	 * frame, which for a sync event is the caller of the interposed function. */
	size_t first = 0;
	while (first < npcs && pcs[first] != pc)
		first++;
	if (first == npcs) {
		n = add_frames(x, pc, frames, 0);
		first = 0;
		while (first < npcs && level_is_runtime(x->level, pcs[first]))
			first++;
		/* Then comes the frame of pc itself, unless that lies in the runtime, too: where a
		 * library gives up (abort), who called it is wanted. */
		if (first < npcs && !level_is_runtime(x->level, pc))
			first++;
	}
	for (size_t i = first; i < npcs && n < MAX_FRAMES; i++)
		n = add_frames(x, pcs[i], frames, n);
	if (!n) {
		char text[32];

		snprintf(text, sizeof text, "0x%llx", (unsigned long long)pc);
		frames[n++] = (struct sym_frame){ .function = text, .pc = pc };
		return seen->stack = sym_add_stack(x->trace, frames, n);
	}
	return seen->stack = sym_add_stack(x->trace, frames, n);
}

uint32_t ext_stack(struct ext *x, uint32_t thread, uint64_t pc)
{
	struct img_regs regs;

	return stack_of(x, mach_img_regs(x->run, thread, &regs) ? &regs : NULL, pc);
}

uint32_t ext_stack_at(struct ext *x, uint64_t pc)
{
	return stack_of(x, NULL, pc);
}

uint32_t ext_stack_called(struct ext *x, uint32_t thread, const struct mach_entered *e)
{
	struct img_regs regs;

	if (!mach_img_regs(x->run, thread, &regs))
		return stack_of(x, NULL, e->site - 1);
	/* As they were in the call: a function has not changed the others yet. */
	regs.r[IMG_RIP] = e->site - 1;
	regs.r[IMG_RSP] = e->sp + 8;
	return stack_of(x, &regs, e->site - 1);
}
