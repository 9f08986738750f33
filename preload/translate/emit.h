/*
 * Writing machine code. One cursor, tr_at, guarded by tr_lock(). Registers are
 * numbered as in the instruction encoding (rax rcx rdx rbx rsp rbp rsi rdi r8..).
 */
#ifndef CSCHED_TRANSLATE_EMIT_H
#define CSCHED_TRANSLATE_EMIT_H

#include "preload/translate/translate.h"

/* Offsets in the low area, whose base is tr_low. */
#define LOW_INDIRECT 0x00000u  /* 65536 pointers, by the target's low 16 bits; see table.c */
#define LOW_SHARDS 0x80000u    /* TRC_SHARDS times 64 bytes: next ticket << 1, lock */
#define LOW_POINTERS 0xc0000u  /* enum low_pointer */
#define LOW_ADDENDS 0xc0100u   /* 16 bytes each: 0, 1, 2 ... 64 as 64-bit vectors */
#define LOW_SHARD_MASK 0xc0f00u
#define LOW_SMALL 0xc0600u     /* 256 pointers, by the low 8 bits, while there are few */
#define LOW_CONSTANTS 0xd0000u
#define LOW_SIZE 0x4000000u

enum low_pointer {
	LOW_P_DIRECT, LOW_P_SIDE, LOW_P_INDIRECT, LOW_P_SPECIAL, LOW_P_CALLOUT, LOW_P_SPIN,
	LOW_P_EVENT,
	LOW_P_COUNT
};

/* Registers that emitted code may use at some address; see liveness.c. */
struct tr_free {
	uint32_t dead;   /* certainly overwritten before read, from pc on */
	uint32_t unseen; /* ... and before anything can fault */
};

extern uint32_t tr_low;
extern uint8_t *tr_at;

/* Unaligned stores without a call: this is the translator's inner loop. */
struct tr_unaligned {
	union {
		uint16_t v16;
		uint32_t v32;
		uint64_t v64;
	};
} __attribute__((packed, may_alias));

static inline void e8(unsigned b)
{
	*tr_at++ = (uint8_t)b;
}
static inline void e16(unsigned v)
{
	((struct tr_unaligned *)tr_at)->v16 = (uint16_t)v;
	tr_at += 2;
}
static inline void e32(uint32_t v)
{
	((struct tr_unaligned *)tr_at)->v32 = v;
	tr_at += 4;
}
static inline void e64(uint64_t v)
{
	((struct tr_unaligned *)tr_at)->v64 = v;
	tr_at += 8;
}
/* n <= 16 bytes, overlapping stores instead of a loop */
static inline void emit_bytes(const uint8_t *from, unsigned n)
{
	const struct tr_unaligned *a = (const void *)from, *b;
	struct tr_unaligned *to = (void *)tr_at, *end;

	if (n >= 8) {
		b = (const void *)(from + n - 8);
		end = (void *)(tr_at + n - 8);
		uint64_t last = b->v64;

		to->v64 = a->v64;
		end->v64 = last;
	} else if (n >= 4) {
		b = (const void *)(from + n - 4);
		end = (void *)(tr_at + n - 4);
		uint32_t last = b->v32;

		to->v32 = a->v32;
		end->v32 = last;
	} else {
		for (unsigned i = 0; i < n; i++)
			tr_at[i] = from[i];
	}
	tr_at += n;
}

/* An instruction as it is: as many bytes as the longest has, so no branch on lengths. */
static inline void emit_plain(const uint8_t *code, unsigned len)
{
	const struct tr_unaligned *first = (const void *)code, *last = (const void *)(code + 7);
	uint8_t *at = tr_at;

	if (((uint64_t)code & (RAW_PAGE - 1)) > RAW_PAGE - 15) {
		emit_bytes(code, len);
		return;
	}
	((struct tr_unaligned *)at)->v64 = first->v64;
	((struct tr_unaligned *)(at + 7))->v64 = last->v64;
	tr_at = at + len;
}

void emit_gs_load(int reg, unsigned offset);       /* mov reg, gs:[offset] */
void emit_gs_store(unsigned offset, int reg);
void emit_gs_zero(unsigned offset);                /* movq $0, gs:[offset] */
void emit_jump_pointer(enum low_pointer p);        /* jmp [pointer] */
void emit_jump_to(const uint8_t *to);              /* jmp rel32 */
void emit_align_rel32(unsigned before);            /* a rel32 there can be patched atomically */
void emit_ptr_get(int reg);                        /* movq reg, xmm15 */
void emit_ptr_add(unsigned n);                     /* paddq xmm15, n; n <= 64 */
void emit_vec15_in(void);  /* the application's xmm15 into the register, the pointer to ctx */
void emit_vec15_in_exact(void);
void emit_vec15_out(void);
void emit_vec15_low_in(void);                      /* only the low 128 bits */
void emit_vec15_low_out(void);
void emit_vzeroupper_fix(void);                    /* the same for the saved copy */
void emit_copy(const struct insn *in, const uint8_t *code, uint64_t pc);
bool emit_copy_reaches(const struct insn *in, const uint8_t *code, uint64_t pc);
bool emit_far_possible(const struct insn *in); /* it can be copied even so */
/* Behind an opcode: `reg` and the instruction's operand. No immediate may follow. */
void emit_operand(int reg, const struct insn *in, const uint8_t *code, uint64_t pc);
void emit_lea(int reg, const struct insn *in, const uint8_t *code, uint64_t pc);
void emit_load_target(const struct insn *in, const uint8_t *code, uint64_t pc); /* mov rcx, r/m */
void emit_push_constant(uint64_t v);
uint32_t emit_constant(uint64_t v);                /* address in the low area */
void emit_record_byte(unsigned byte, struct tr_free free); /* registers free at this point */
/* rcx += v without flags; rdx is lost when v is not small. */
static inline bool emit_small(uint64_t v)
{
	return (uint64_t)(int64_t)(int32_t)v == v;
}
void emit_add_to_rcx(uint64_t v);

/* table.c */
void emit_table_jump(void); /* rcx is the target; rcx and rdx are saved in ctx */
uint64_t tr_table_at(uint64_t pc);                 /* what the bucket of a target holds, ... */
void tr_table_set(uint64_t pc, const uint8_t *entry); /* ... and now holds */
void tr_table_empty(void);
void tr_table_forget(void); /* all code that was emitted is gone */

/* liveness.c */
struct tr_free tr_dead_registers(uint64_t pc);
bool tr_flags_dead(uint64_t pc);

#endif
