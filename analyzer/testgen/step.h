/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files that step through a library's code share. */
#ifndef CSCHED_TESTGEN_STEP_H
#define CSCHED_TESTGEN_STEP_H

#include "analyzer/testgen/server.h"

#include <ucontext.h>

/* One memory operand of an instruction. */
struct step_operand {
	int8_t base, index;    /* index in gregs; -1: none */
	uint8_t scale, access; /* access: 1 read, 2 write, 3 both */
	uint16_t size;
	int64_t displacement;  /* with rip added where it counts */
};

struct step_insn {
	uint64_t pc;
	uint8_t length, noperands;
	bool is_call, is_return, is_branch, is_landing, repeats, locked;
	bool is_system, writes_frame; /* the frame pointer */
	struct step_operand operands[2];
};

/* step_decode.c: in the server. */
void step_decode_prepare(void);
/* From a cache of this process; NULL: not decodable. `code`: the bytes as they were loaded. */
const struct step_insn *step_decode(uint64_t pc, const uint8_t *code);

/* What a function outside the library does to memory and locks, as far as its arguments say. */
enum step_effect {
	STEP_NOTHING, STEP_LOCKS, STEP_TRIES, STEP_SHARES, STEP_UNLOCKS, STEP_ALLOCATES, STEP_FREES, STEP_REALLOCATES,
	STEP_COPIES, STEP_FILLS, STEP_READS, STEP_COMPARES, STEP_COPIES_TEXT, STEP_WAITS,
};
/* step_known.c: once, in the server. */
void step_known_init(void);
enum step_effect step_effect_of(uint64_t pc);

#endif
