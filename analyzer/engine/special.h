/*
 * Instructions with semantics of our own: special.c has the table, the other
 * files of the family do them.
 */
#ifndef CSCHED_MACHINE_SPECIAL_H
#define CSCHED_MACHINE_SPECIAL_H

#include "analyzer/engine/code.h"

/* how, of special_strings.c and special_lanes.c */
enum { STR_MOVS, STR_STOS, STR_LODS, STR_CMPS, STR_SCAS };
enum { MASK_LOAD, MASK_STORE };
enum { LANES_BY_SIGN, LANES_BY_BIT }; /* gathers: where the mask is */

/* special_strings.c: with a rep prefix */
special_fn special_movs, special_stos, special_lods, special_compare;
/* special_state.c: mxcsr, the extended state, segment bases */
special_fn special_ldmxcsr, special_stmxcsr, special_fxsave, special_fxrstor;
special_fn special_xsave, special_xrstor, special_vzero, special_segment_base;
/* The vector registers' expressions to a signal frame and back; their values are there. */
void special_frame_save(struct mach *m, uint64_t at);
void special_frame_load(struct mach *m, uint64_t at, uint64_t present);
/* special_lanes.c: gathers and masked moves */
special_fn special_gather, special_scatter, special_mask_move;

static inline uint64_t *special_reg(struct mach *m, uint32_t offset)
{
	return mach_at(m, offset);
}

#endif
