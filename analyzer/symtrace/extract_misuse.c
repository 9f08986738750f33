/*
 * Use after free. What breaks the heap and where it shows are often far apart: the first access to a
 * block that had been freed is worth more than the abort it led to.
 *
 * Frees are seen as calls of free() through any module's PLT, or straight into it. glibc marks a block that it keeps
 * in a thread's cache with a key in its second word, and takes the mark away when it hands the block out
 * again: while it is there the block is free, whoever allocates by whatever way. When a thread ends, its cache is
 * given back, and the marks are gone; such a block is free until the allocator is seen to hand it out, or to do
 * anything else with it than free it. Nothing is claimed of blocks that never were in a cache (large ones, or when it is full).
 */
#include "analyzer/symtrace/extract_internal.h"

#include <string.h>

#define GRANULE 16u
#define MOST_BYTES 1040u        /* larger blocks are not kept in that cache */
#define MOST_STACKS 20000u      /* unwound for; who frees more often is told without a place */
#define FEWEST_SLOTS 4096u
#define MOST_HANDED (1u << 20)  /* bytes of one allocation that are looked at */

static struct ext_freed_slot *slot_of(struct ext_misuse_watch *w, uint64_t granule)
{
	size_t i = (granule * 0x9e3779b97f4a7c15ull >> 20) & (w->nslots - 1);

	while (w->slots[i].granule && w->slots[i].granule != granule)
		i = (i + 1) & (w->nslots - 1);
	return &w->slots[i];
}

static void make_room(struct ext_misuse_watch *w, size_t more)
{
	struct ext_freed_slot *old = w->slots;
	size_t n = w->nslots;

	if (2 * (w->used + more) < n)
		return;
	w->nslots = n ? 2 * n : FEWEST_SLOTS;
	w->slots = xcalloc(w->nslots, sizeof *w->slots);
	for (size_t i = 0; i < n; i++)
		if (old[i].granule)
			*slot_of(w, old[i].granule) = old[i];
	free(old);
}

static void note_freed(struct ext_misuse_watch *w, const struct ext_freed *f)
{
	make_room(w, MOST_BYTES / GRANULE);
	vec_push(&w->freed, *f);
	for (uint64_t at = 0; at < f->size; at += GRANULE) {
		struct ext_freed_slot *s = slot_of(w, (f->base + at) / GRANULE);

		w->used += !s->granule;
		*s = (struct ext_freed_slot){ (f->base + at) / GRANULE, (uint32_t)w->freed.n };
	}
}

/* The block at this address that is free now, or NULL. */
static struct ext_freed *free_at(struct ext *x, uint64_t address)
{
	struct ext_misuse_watch *w = &x->misuse_watch;
	const struct ext_freed_slot *s = w->nslots ? slot_of(w, address / GRANULE) : NULL;
	uint64_t key;

	if (!s || !s->granule)
		return NULL;
	struct ext_freed *f = &w->freed.v[s->index - 1];
	return !f->gone && (f->moved || (mach_read(x->run, f->base + 8, &key, 8) && key == f->key)) ? f : NULL;
}

/* The allocator hands out this memory: what was moved there is free no more. */
static void handed_out(struct ext *x, uint64_t base, uint64_t size)
{
	struct ext_misuse_watch *w = &x->misuse_watch;

	if (!w->nmoved || size > MOST_HANDED)
		size = w->nmoved ? MOST_HANDED : 0;
	for (uint64_t at = 0; at < size; at += GRANULE) {
		const struct ext_freed_slot *s = slot_of(w, (base + at) / GRANULE);

		if (s->granule)
			w->freed.v[s->index - 1].gone |= w->freed.v[s->index - 1].moved;
	}
}

/* Is this the allocator's code that frees? Without names of its functions that is not known. */
static bool is_freeing(struct ext *x, uint64_t pc)
{
	struct img_frame f[4];
	size_t n = img_frames(x->images, pc, f, 4);
	bool frees = false;

	for (size_t i = 0; i < n; i++) {
		frees |= strstr(f[i].function, "free") != NULL || !strncmp(f[i].function, "tcache_thread_shutdown", 22);
		if (strstr(f[i].function, "alloc") || strstr(f[i].function, "consolidate"))
			return false;
	}
	return frees;
}

/* A free block in the allocator's hands: a thread that ends gives its cache back. */
static void worked_on(struct ext *x, struct ext_freed *f, const struct mach_access *a)
{
	if (!(a->flags & MACH_WRITE))
		return;
	if (!is_freeing(x, a->pc)) {
		f->gone = true;
		return;
	}
	x->misuse_watch.nmoved += !f->moved;
	f->moved = true;
}

static uint32_t next_event(const struct ext *x, uint32_t thread)
{
	return x->in_window ? (uint32_t)x->trace->threads[thread].nevents : SYM_NONE;
}

static void found(struct ext *x, const struct ext_freed *f, uint32_t thread, uint32_t stack)
{
	x->misuse = (struct ext_misuse){ .kind = EXT_MISUSE_FREED, .thread = thread,
					 .stack = stack, .freed_by = f->thread,
					 .freed_stack = f->stack, .base = f->base, .size = f->size,
					 .event = next_event(x, thread), .freed_event = f->event,
					 .made_stack = SYM_NONE };
	struct img_heap heap;
	if (ext_heap_find(x, f->base, &heap) && heap.base == f->base && heap.n_alloc_pcs)
		x->misuse.made_stack = ext_stack_at(x, heap.alloc_pcs[0]);
}

static void call(struct ext *x, struct ext_thread *th, const struct mach_access *a,
		 const struct mach_entered *e)
{
	uint64_t block = e->args[0];
	const struct ext_freed *f = free_at(x, block);

	if (!block)
		return;
	if (f && f->base == block) {
		found(x, f, a->thread, ext_stack_called(x, a->thread, e));
		x->misuse.again = true;
		return;
	}
	th->freeing = (struct ext_freed){ .base = block, .thread = a->thread, .stack = SYM_NONE,
					   .event = next_event(x, a->thread) };
	if (!mach_read(x->run, block + 8, &th->freeing.key, 8))
		return;
	th->free_site = e->site;
	if (x->misuse_watch.nstacks++ < MOST_STACKS)
		th->freeing.stack = ext_stack_called(x, a->thread, e);
}

/* It is in the cache when its second word is the key: no address, and not what was there before. */
static void returned(struct ext *x, struct ext_thread *th)
{
	struct ext_freed *f = &th->freeing;
	uint64_t header, before = f->key;
	char c;

	th->free_site = 0;
	if (!mach_read(x->run, f->base - 8, &header, 8) || !mach_read(x->run, f->base + 8, &f->key, 8))
		return;
	f->size = (header & ~7ull) - 8;
	if (f->key != before && !mach_read(x->run, f->key, &c, 1) && f->size <= MOST_BYTES)
		note_freed(&x->misuse_watch, f);
}

static bool has_prefix(const char *s, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; s && i < n; i++)
		if (!strncmp(s, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* The program's own instruction, or one of strlen(), memcpy(), pthread_mutex_lock() ... on its behalf; not
 * those of malloc(), which works on free blocks by trade, also when it is strdup() that calls it. */
bool ext_is_accused(struct ext *x, const struct mach_access *a)
{
	static const char *const movers[] = { "mem", "__mem", "str", "__str" };
	static const char *const locks[] = { "pthread_mutex_", "__pthread_mutex_", "___pthread_mutex_",
					     "pthread_cond_", "__pthread_cond_", "___pthread_cond_",
					     "pthread_rwlock_", "__pthread_rwlock_", "___pthread_rwlock_",
					     "sem_", "__new_sem_" };

	if (!level_is_runtime(x->level, a->pc))
		return true;
	const char *symbol = img_symbol(x->images, a->pc, NULL);

	return has_prefix(symbol, locks, sizeof locks / sizeof *locks) ||
	       (level_is_program(x->level, a->thread, a->pc) &&
		has_prefix(symbol, movers, sizeof movers / sizeof *movers));
}

void ext_misuse_watch(struct ext *x, const struct mach_access *a, uint64_t looked, unsigned size)
{
	struct ext_thread *th = ext_thread(x, a->thread);
	struct mach_entered e;
	const char *called;

	if (x->misuse.kind || x->onward)
		return;
	if (th->free_site && (a->flags & MACH_READ) && a->size == 8 && a->value == th->free_site)
		returned(x, th);
	else if (th->hand_site && (a->flags & MACH_READ) && a->size == 8 && a->value == th->hand_site) {
		uint64_t block;

		if (mach_returned(x->run, a->thread, &block) && block)
			handed_out(x, block, th->hand_size);
		th->hand_site = 0;
	} else if ((called = ext_heap_called(x, a, true, &e)) && !strcmp(called, "free"))
		call(x, th, a, &e);
	else if (called && ext_heap_allocates(x, called, &e, &th->hand_size))
		th->hand_site = e.site;
	else if (size && !(a->flags & MACH_KERNEL)) {
		struct ext_freed *f = free_at(x, looked);

		if (f && !ext_is_accused(x, a)) {
			worked_on(x, f, a);
			return;
		}
		if (!f)
			return;
		found(x, f, a->thread, ext_stack(x, a->thread, a->pc));
		x->misuse.write = a->flags & MACH_WRITE;
		x->misuse.name = ext_name(x, a->thread, looked, size, NULL, &(struct ext_named){ 0 });
	}
}
