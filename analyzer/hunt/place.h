/*
 * Where an instruction is in the source, told so that it can be found again
 * in another build: the function, the line and its text, and which of the
 * line's memory accesses and calls it is.
 */
#ifndef CSCHED_HUNT_PLACE_H
#define CSCHED_HUNT_PLACE_H

#include "analyzer/image/image.h"

struct place {
	char *function; /* that holds the instruction, not one inlined into it */
	char *file;
	unsigned line;    /* file:line of the innermost inlined function */
	unsigned ordinal; /* among the line's accesses and calls, from 0 */
	char *text;       /* of the line, without blanks around; NULL: source not found */
};

/* False: nothing is known about pc, or it neither accesses memory nor calls. */
bool place_of(struct img_set *set, uint64_t pc, struct place *out);
void place_free(struct place *p);

/*
 * The instruction in the images of another build. A line that moved is found
 * by its text, the nearest one if there are several.
 */
bool place_find(struct img_set *set, const struct place *p, uint64_t *pc);

/* The call instruction that returns to this address, 0 when unclear. */
uint64_t place_call_before(struct img_set *set, uint64_t return_address);

/*
 * The statement at pc: the instructions around it without a gap that belong to this line, those inlined into it
 * included. *first is where it begins; *last the last of its accesses and calls from pc on. The stack may
 * tell of a call as inside of it: *pc becomes the instruction it is in.
 */
bool place_statement(struct img_set *set, uint64_t *pc, const char *file, unsigned line, uint64_t *first, uint64_t *last);

/* An image set of one file at the addresses it was linked for. */
err_t place_open(const char *file, struct img_set **out);

#endif
