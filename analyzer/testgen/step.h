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

/* A thread that is stepped through. */
struct stepper {
	struct job *job;
	struct job_thread *t;
	unsigned index;
	pid_t tid;
	bool stepping, parked, ended, begun;
	uint64_t breakpoint;   /* where its code will be stepped again; 0: none */
	uint64_t run_to;       /* the breakpoint at the next instruction that counts; 0: none */
	uint64_t rearm;        /* another thread's breakpoint that it has just gone through */
	uint64_t last_pc, last_call; /* places */
	uint64_t turn_began;   /* step */
	uint64_t low, high;    /* places within the current window ... */
	uint32_t window;       /* ... which ends at this step */
	unsigned narrow;       /* windows in a row that were narrow */
	uint64_t stack_low, stack_high;
	enum step_effect effect; /* of the function it is in, to be noted when that returns */
	uint64_t effect_argument;
	uint8_t call;
	uint64_t entry;        /* of the function that has just been called, when it may be a table's */
	bool called;           /* the last instruction was a call: what comes is a function's first one */
	uint32_t unseen;       /* events from this one on whose values are not known yet */
};

/* step.c: the library's instruction there; NULL: not decodable. */
const struct step_insn *step_insn_at(uint64_t pc);

/* step_note.c: what a thread does, as events. */
void step_note(struct stepper *s, enum job_event_kind kind, uint64_t address, uint64_t size);
void step_note_accesses(struct stepper *s, const struct step_insn *in, const greg_t *g);
/* The function outside that it is about to enter, and what that has done when it returns. */
void step_note_call_out(struct stepper *s, uint64_t pc, const greg_t *g);
void step_note_came_back(struct stepper *s, const greg_t *g);
/* After the instruction or function that made the last events. */
void step_note_values(struct stepper *s);

#endif
