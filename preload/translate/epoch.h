// SPDX-License-Identifier: GPL-2.0-or-later
/* Checkpoints of the flight recorder: what the rest of the translator does for them. See epoch.c. */
#ifndef CSCHED_TRANSLATE_EPOCH_H
#define CSCHED_TRANSLATE_EPOCH_H

#include "preload/translate/translate.h"

struct tr_epochs {
	uint64_t due;      /* tsc of the next checkpoint; UINT64_MAX: none, or one is being taken */
	bool save;         /* what there is, too */
	bool taking;       /* somebody prepares a checkpoint, or takes it */
	uint32_t stopping; /* a futex: 1 while threads are to stand still */
};
extern struct tr_epochs tr_epochs;

#define TR_SAVE TRC_SAVE_CODE /* si_code of csched save's: to save what there is */
#define TR_PARK (-78) /* si_code of the signal that leads a thread to its next boundary */

void tr_epochs_start(struct tr_ctx *c); /* behind the first snapshot, in a forked child, too */

/* A system call begins, at this time. */
static inline void tr_epoch_look(struct tr_ctx *c, uint64_t tsc)
{
	if (__builtin_expect(tsc >= tr_epochs.due, 0))
		c->pending = 1;
}

void tr_epoch_save(struct tr_ctx *c);     /* a signal asks for it: at the next boundary */
void tr_epoch_turn(struct tr_ctx *c);     /* a chunk of the path is full */
void tr_epoch_boundary(struct tr_ctx *c); /* at a boundary: parks, or takes a checkpoint, if it is time */
bool tr_epoch_rest(struct tr_ctx *c);     /* before a system call that may take any time */
void tr_epoch_rested(struct tr_ctx *c);
void tr_epoch_unasked(struct tr_ctx *c, bool unasked); /* no signal of ours from here on */
void tr_epoch_states(struct rec_stream *out);

/* What copies of the process have used that are gone: times in microseconds, the others as in struct rusage. */
struct tr_copies {
	uint64_t n, utime, stime;
	long minflt, majflt, inblock, oublock, nvcsw, nivcsw;
};
const struct tr_copies *tr_epoch_copies(void);

/* epoch_child.c: memory, written by a copy of the process, or right here. */
void tr_epoch_write_start(void);
void tr_epoch_write(const struct rec_ring_next *next, uint64_t room); /* there may be so many bytes of pages */
bool tr_epoch_writing(void);            /* it still is; asking is what makes the checkpoint complete when it is written */
/* Bytes of the last one, if that is known by now; is_short: it could not be written whole, for want of room in the ring. */
uint64_t tr_epoch_written(uint64_t expected, bool *is_short);
bool tr_epoch_failed(void); /* for want of room or otherwise */
void tr_epoch_no_copy(void);            /* the program has memory that a copy would not have */

#endif
