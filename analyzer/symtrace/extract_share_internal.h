/* Between extract_share.c, which watches, and extract_parts.c, which is asked for what came of it. */
#ifndef CSCHED_SYMTRACE_EXTRACT_SHARE_INTERNAL_H
#define CSCHED_SYMTRACE_EXTRACT_SHARE_INTERNAL_H

#include "analyzer/symtrace/extract_share.h"
#include "common/vec.h"

struct granule;
struct split;

/* A granule that has shared bytes. */
struct part {
	uint64_t key;
	uint8_t shared;
	uint8_t together, alone; /* touched by accesses with, without any shared byte */
	bool suspect;            /* only handed on, in an earlier watch */
	uint32_t place;          /* see extract_handed.h */
};

struct stack {
	uint64_t lo, hi; /* 0, 0: not known yet, or dead */
	bool alive;
};

/* A call of pthread_cancel(). */
struct cancel {
	uint64_t descriptor; /* the target's pthread_t */
	uint64_t word;       /* in it, which the call changes and the target tests; 0: not seen */
	uint32_t by, target;
	bool open;           /* the call is under way */
};

struct share {
	struct level *level;
	struct granule *table;
	size_t size, used;
	VEC(struct split) splits;
	struct part *shared; /* few, and asked for at every access */
	size_t nshared;
	struct handed *handed;
	VEC(struct stack) stacks; /* by thread */
	VEC(struct cancel) cancels;
	uint32_t alive;
	uint64_t accesses;
	struct mach_run *run;
	bool (*stop)(void *);
	void *stop_arg;
};

static inline size_t share_home(uint64_t key, size_t size)
{
	/* Four neighbours lie in one line of the cache. */
	return ((key >> 2) * 0x9e3779b97f4a7c15ull >> 16 << 2 | (key & 3)) & (size - 1);
}

/* The bytes of [address, address + size) that lie in address's granule. */
static inline uint8_t share_bytes_of(uint64_t address, unsigned size)
{
	return (uint8_t)(((1u << size) - 1) << (address & 7));
}

static inline struct part *share_part(const struct share *s, uint64_t key)
{
	size_t i = share_home(key, s->nshared);

	while (s->shared[i].key && s->shared[i].key != key)
		i = (i + 1) & (s->nshared - 1);
	return &s->shared[i];
}

#endif
