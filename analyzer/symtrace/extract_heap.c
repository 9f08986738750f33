/*
 * Heap objects by their allocation: seen as calls of the allocator through the
 * program's PLT or straight into it, and their result as the return from it. Only for names;
 * what is not seen (an allocator of the program's own) is named by its pointers.
 */
#include "analyzer/symtrace/extract_internal.h"

#include <string.h>

/* Enough to name what is on screen; a program that allocates more keeps its latest. */
#define MAX_BLOCKS (1u << 20)

/* Which arguments give the size. */
enum size_rule { SIZE_FIRST, SIZE_SECOND, SIZE_PRODUCT, SIZE_STRING };

static const struct allocator {
	const char *name;
	enum size_rule rule;
} allocators[] = {
	{ "malloc", SIZE_FIRST },
	{ "calloc", SIZE_PRODUCT },
	{ "realloc", SIZE_SECOND },
	{ "aligned_alloc", SIZE_SECOND },
	{ "memalign", SIZE_SECOND },
	{ "strdup", SIZE_STRING },
	{ "_Znwm", SIZE_FIRST }, /* operator new(unsigned long) */
	{ "_Znam", SIZE_FIRST }, /* operator new[] */
	{ "_ZnwmSt11align_val_t", SIZE_FIRST },
	{ "_ZnamSt11align_val_t", SIZE_FIRST },
	{ "_ZnwmRKSt9nothrow_t", SIZE_FIRST },
	{ "_ZnamRKSt9nothrow_t", SIZE_FIRST },
};

static const struct allocator *allocator_named(const char *name)
{
	for (size_t i = 0; i < sizeof allocators / sizeof *allocators; i++)
		if (!strcmp(name, allocators[i].name))
			return &allocators[i];
	return NULL;
}

/* Bytes of a string and its end, at most 4096: a hostile trace need not have one. */
static uint64_t string_size(struct ext *x, uint64_t at)
{
	uint64_t n = 0;
	char c = 1;

	while (c && n < 4096 && mach_read(x->run, at + n, &c, 1))
		n++;
	return n;
}

static uint64_t size_asked(struct ext *x, enum size_rule rule, const uint64_t args[2])
{
	switch (rule) {
	case SIZE_PRODUCT:
		return args[0] * args[1];
	case SIZE_SECOND:
		return args[1];
	case SIZE_STRING:
		return string_size(x, args[0]);
	default:
		return args[0];
	}
}

bool ext_heap_allocates(struct ext *x, const char *name, const struct mach_entered *e, uint64_t *size)
{
	const struct allocator *by = allocator_named(name);

	if (by)
		*size = size_asked(x, by->rule, e->args);
	return by != NULL;
}

static void call(struct ext *x, struct ext_thread *th, enum size_rule rule, const struct mach_entered *e)
{
	/* An allocator that asks another one, as operator new does: the first was the program's. */
	if (th->alloc_site && e->sp < th->alloc_sp)
		return;
	th->alloc_site = e->site;
	th->alloc_sp = e->sp;
	th->alloc_size = size_asked(x, rule, e->args);
}

const char *ext_heap_called(struct ext *x, const struct mach_access *a, bool any, struct mach_entered *out)
{
	const struct ext_thread *th = ext_thread(x, a->thread);
	const char *name = NULL;
	enum level_memory how = level_memory(x->level, a->pc, &name);

	if (how == LEVEL_NO_MEMORY || (how == LEVEL_MEMORY_RUNTIME && !any) ||
	    (how == LEVEL_MEMORY_ENTRY && !th->call_site) || !mach_entered(x->run, a->thread, out))
		return NULL;
	/* The first access of a function may be that it saves a register, and moves the stack. */
	if (how == LEVEL_MEMORY_ENTRY) {
		out->site = th->call_site;
		out->sp = th->call_sp;
	}
	return out->site ? name : NULL;
}

void ext_heap_watched(struct ext *x, const struct mach_access *a)
{
	struct ext_thread *th = ext_thread(x, a->thread);
	bool may_call = (a->flags & (MACH_WRITE | MACH_KERNEL)) == MACH_WRITE && a->size == 8 &&
			!level_is_runtime(x->level, a->pc);

	th->call_site = may_call ? a->value : 0;
	th->call_sp = a->address;
}

static void ret(struct ext *x, struct ext_thread *th, uint32_t thread)
{
	uint64_t block;

	if (mach_returned(x->run, thread, &block) && block && x->blocks.n < MAX_BLOCKS)
		vec_push(&x->blocks, (struct ext_block){ block, th->alloc_size, th->alloc_site - 1 });
	th->alloc_site = 0;
}

void ext_heap_watch(struct ext *x, const struct mach_access *a)
{
	struct ext_thread *th = ext_thread(x, a->thread);

	/* Its ret pops the return address of the call (the allocator's own calls
	 * return elsewhere). */
	if (th->alloc_site && (a->flags & MACH_READ) && a->size == 8 &&
	    a->value == th->alloc_site) {
		ret(x, th, a->thread);
		return;
	}
	struct mach_entered e;
	const char *name = ext_heap_called(x, a, false, &e);
	const struct allocator *by = name ? allocator_named(name) : NULL;

	if (by)
		call(x, th, by->rule, &e);
}

bool ext_heap_find(const struct ext *x, uint64_t address, struct img_heap *out)
{
	for (size_t i = x->blocks.n; i > 0; i--) {
		const struct ext_block *b = &x->blocks.v[i - 1];

		if (address < b->base || address - b->base >= b->size)
			continue;
		*out = (struct img_heap){ b->base, b->size, (uint32_t)i, &b->site, 1 };
		return true;
	}
	return false;
}
