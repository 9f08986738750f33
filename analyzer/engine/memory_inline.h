/* The fast paths of memory.h: every load and store of the guest passes here, so
 * they are inlined and free of calls. */
#ifndef CSCHED_MACHINE_MEMORY_INLINE_H
#define CSCHED_MACHINE_MEMORY_INLINE_H

#include "analyzer/engine/memory.h"

#include <string.h>

/* The host bytes of [address, address + size) when one page holds them all and
 * the buffer knows it; NULL: take the slow path. */
static inline uint8_t *mem_hit(const struct mem_tlb *tlb, uint64_t address, unsigned size)
{
	const struct mem_tlb *e = &tlb[address / MEM_PAGE % MEM_TLB];
	uint64_t offset = address ^ e->tag;

	if (__builtin_expect(offset <= MEM_PAGE - size, 1))
		return e->host + offset;
	return NULL;
}

#define MEM_ACCESSORS(bits)                                                               \
	static inline bool mem_load##bits(struct mem *m, uint64_t address, uint64_t *out)  \
	{                                                                                  \
		uint##bits##_t v;                                                          \
		const uint8_t *p = mem_hit(m->read, address, bits / 8);                    \
                                                                                           \
		if (__builtin_expect(!p, 0)) {                                             \
			if (!mem_load(m, address, &v, bits / 8))                           \
				return false;                                              \
		} else {                                                                   \
			memcpy(&v, p, bits / 8);                                           \
		}                                                                          \
		*out = v;                                                                  \
		return true;                                                               \
	}                                                                                  \
	static inline bool mem_store##bits(struct mem *m, uint64_t address, uint64_t in)   \
	{                                                                                  \
		uint##bits##_t v = (uint##bits##_t)in;                                     \
		uint8_t *p = mem_hit(m->write, address, bits / 8);                         \
                                                                                           \
		if (__builtin_expect(!p, 0))                                               \
			return mem_store(m, address, &v, bits / 8);                        \
		memcpy(p, &v, bits / 8);                                                   \
		return true;                                                               \
	}

MEM_ACCESSORS(8)
MEM_ACCESSORS(16)
MEM_ACCESSORS(32)
MEM_ACCESSORS(64)

#endif
