/*
 * The XSAVE area: where a processor keeps which registers. Offsets differ
 * between processors, so a trace says those of the one it was recorded on.
 */
#ifndef CSCHED_MACHINE_XSTATE_H
#define CSCHED_MACHINE_XSTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XSTATE_LEGACY 512u /* here the header begins ... */
#define XSTATE_BASIC 576u  /* ... and here it ends */
#define XSTATE_MAX 8192u

enum xstate_part {
	X_X87 = 0, X_SSE = 1, X_AVX = 2, X_MASKS = 5, X_UPPER = 6, X_HIGH = 7,
	X_PARTS = 8,
};
#define X_BIT(part) (1ull << (part))
/* Those the machine knows; the rest is not kept. */
#define X_KNOWN 0xe7ull

struct mach_xlayout {
	uint64_t xcr0;
	uint32_t offset[X_PARTS]; /* standard form; 0: the processor has no such part */
};

/* Of a processor with AVX and no more, and of the one that runs this. */
void xstate_plain(struct mach_xlayout *l);
void xstate_host(struct mach_xlayout *l);
/* As a trace has it: "XCR0 2:576 5:1088 ...". False: not such a text. */
bool xstate_parse(struct mach_xlayout *l, const char *text);

unsigned xstate_size(enum xstate_part part);
/* Where a part is; compact: XCOMP_BV, or 0 for the standard form. 0: nowhere. */
uint32_t xstate_offset(const struct mach_xlayout *l, enum xstate_part part, uint64_t compact);

/* One part between registers and an area, at its beginning. X_X87 and X_SSE are not among them. */
struct mach_wide;
void xstate_copy(enum xstate_part part, bool to_area, uint8_t *area, void *ymm0,
		 struct mach_wide *w);
/* Is it other than zero? */
bool xstate_used(enum xstate_part part, const void *ymm0, const struct mach_wide *w);

/* Any bit from 256 on. */
bool xstate_is_wide(const struct mach_wide *w);

/* A whole area in the standard form, from a trace or a signal frame; len bytes are there. */
struct mach_regs_at {
	void *ymm0;
	struct mach_wide *wide;
	uint8_t *fx;
};
void xstate_load(const struct mach_xlayout *l, const struct mach_regs_at *to, uint8_t *area,
		 size_t len, uint64_t present);

#endif
