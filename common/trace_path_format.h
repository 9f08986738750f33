/*
 * The fragment table and path bytes.
 *
 * A fragment is a straight run of application instructions (direct jumps and
 * calls followed) with up to TRC_MAX_SIDES conditional branches, each a side
 * exit when taken. Executing one leaves, in tN.path, in this order:
 *
 *   its items, in order: each locked instruction, each plain access of libc's
 *       synchronisation, and in hunted runs each at a site that threads share
 *       (TRC_ITEM_ORDER), leaves 4 bytes
 *       (ticket << 1 | 1), or the byte TRC_TICKET_NEXT: one more than the ticket before it
 *       in this stream (0 at its beginning). The ticket counts operations on that address's
 *       shard, see trc_shard(); each logged load (TRC_ITEM_VALUE) leaves one
 *       byte 1 + length and the value's bytes; its ticket comes first. An item never stands behind a
 *       conditional branch of its fragment: the fragment ends before it.
 *   then one of:
 *     1 byte k+1       side exit k was taken: go on at side[k].target. All branches
 *                      before it were passed: not taken, or, when the fragment goes
 *                      round a small loop (bit in passed_taken), taken
 *     1 byte k+1, then 2 or 3 bytes   side exit k is an indirect branch (bit in guessed)
 *                      that the fragment follows to side[k].target; it went to
 *                      the fragment with this id instead
 *                      Side exits before it may be ways of the same branch (bit in
 *                      cases): taken, it went to side[k].target; passed, it did not
 *     1 byte nsides+1  fell through to `next` (left out when nsides is 0)
 *     2 or 3 bytes     an indirect branch went to the fragment with this id
 *                      (kind TRC_FRAG_INDIRECT), see trc_target(); id 0: to an
 *                      address that is not code, where it faults
 *   For the kinds SYSCALL, NONDET and EVENT the fall-through byte is written
 *   before the instruction takes effect, and `next` is the address behind it.
 *
 * So no path record begins with a zero byte, and an open chunk ends at its
 * first zero. A direct successor is the fragment of that address that is alive
 * in the thread's generation.
 */
#ifndef CSCHED_COMMON_TRACE_PATH_FORMAT_H
#define CSCHED_COMMON_TRACE_PATH_FORMAT_H

#include "common/trace_format.h"

#define TRC_MAX_SIDES 32
#define TRC_TICKET_NEXT 2 /* format 7 */

/* Ids of 14 bits take two bytes, others (up to 22 bits) three. */
#define TRC_TARGET_LONG 0x40

static inline uint32_t trc_target(uint32_t id)
{
	return 0x80 | (id >> 14 ? TRC_TARGET_LONG : 0) | (id & 0x3f) | id >> 6 << 8;
}

/* Bytes of it that are written. */
static inline unsigned trc_target_len(uint32_t target)
{
	return target & TRC_TARGET_LONG ? 3 : 2;
}

static inline uint32_t trc_target_id(uint32_t target)
{
	return (target & 0x3f) | target >> 8 << 6;
}

enum trc_frag_kind {
	TRC_FRAG_DIRECT,   /* falls through to next */
	TRC_FRAG_INDIRECT, /* ends in ret, call *x, jmp *x */
	TRC_FRAG_SYSCALL,  /* ends in a syscall instruction */
	TRC_FRAG_NONDET,   /* ends in rdtsc, cpuid, ... */
	TRC_FRAG_EVENT,    /* ends in the record primitive (see identity key event_pc) */
	TRC_FRAG_TRAP,     /* ends in an instruction that faults: ud2, hlt, int3 */
	TRC_FRAG_NATIVE,   /* continues untranslated */
};

enum trc_item_kind { TRC_ITEM_ORDER = 1, TRC_ITEM_VALUE };

struct trc_side {
	uint64_t pc;     /* of the conditional branch */
	uint64_t target; /* where the side exit leads; guessed: where it leads when passed */
};

struct trc_item {
	uint64_t pc;
	uint32_t kind;   /* enum trc_item_kind */
	uint32_t size;   /* VALUE: bytes of the load */
};

struct trc_fragment {
	struct trc_rec rec; /* flags: enum trc_frag_kind */
	uint32_t id;        /* from 1 */
	uint32_t ninsns;
	uint64_t generation; /* alive from */
	uint64_t pc, next;   /* next: fall-through; 0 when there is none */
	uint64_t last_pc;    /* of the final instruction */
	uint16_t nsides, nitems;
	uint32_t passed_taken; /* bit k: side exit k is the branch not taken, see above */
	uint32_t guessed;      /* bit k: side exit k is an indirect branch that is followed */
	uint32_t cases;        /* bit k: side exit k is one way of an indirect branch */
	/* nsides times struct trc_side, then nitems times struct trc_item */
};

struct trc_dropped {
	struct trc_rec rec;
	uint64_t generation; /* from this generation on */
	uint64_t start, end; /* fragments that overlap this range */
};

/*
 * Locked instructions are ordered per shard, not globally: two threads that
 * never touch the same line never meet at a counter either.
 */
#define TRC_SHARDS 4096
static inline uint32_t trc_shard(uint64_t address)
{
	return (uint32_t)(address >> 6) & (TRC_SHARDS - 1);
}

#endif
