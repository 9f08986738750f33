/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A bug pattern of the catalogue. Inside the room only. */
#ifndef CSCHED_DSP_PATTERN_H
#define CSCHED_DSP_PATTERN_H

#include "analyzer/dsp/internal.h"

/* What a matcher may look at. */
struct dsp_case {
	const struct dsp_map *m;       /* both orders over the trace */
	const dsp_pairs *pairs;        /* of the root cause, and what the variations turned round */
	const struct sched_answer *a;
	const struct dsp *d;           /* its regions, pairs and waits */
	const struct dsp_pair *order;  /* the pair that an order would turn round, or NULL */
};

enum dsp_pattern_flag {
	DSP_NEEDS_BLOCKED = 1,   /* a deadlock */
	DSP_NEEDS_ALTERNATE = 2, /* an order that does not fail */
	DSP_ONLY_TRIED = 4,      /* no hint by itself: said only when it was tried and holds */
};

/* True: it is there, linked to the root cause or the failure; the hint is filled in, its steps included. */
typedef bool dsp_matcher(const struct dsp_case *c, struct dsp_hint *h);

struct dsp_pattern {
	const char *name;
	dsp_matcher *match;
	unsigned flags;
	const char *beside; /* another pattern whose hint is a second way then, or NULL */
};

/* pattern_ring.c */
dsp_matcher dsp_match_lock_ring;
/* hint.c, hint_waits.c */
dsp_matcher dsp_match_store_buffer, dsp_match_waits_holding, dsp_match_ended_holding,
	dsp_match_kept_lock, dsp_match_wrong_waiter, dsp_match_came_and_went, dsp_match_lost_wakeup, dsp_match_wait_once;
/* pattern_one_woken.c */
dsp_matcher dsp_match_one_woken;
bool dsp_waited_at(const struct dsp_map *m, struct sched_ref wait, struct sched_ref by); /* it had begun to, in the failing order */
/* pattern_barrier.c */
dsp_matcher dsp_match_barrier_count;
/* pattern_once.c */
dsp_matcher dsp_match_lazy_init, dsp_match_atomic_check;
/* pattern_wider.c */
dsp_matcher dsp_match_wider_region, dsp_match_earlier_join;
/* hint_aba.c, hint_published.c, hint_locks.c */
dsp_matcher dsp_match_aba, dsp_match_publication, dsp_match_broken_lock, dsp_match_readers, dsp_match_unguarded,
	dsp_match_half_done;
/* hint.c */
dsp_matcher dsp_match_barrier_round, dsp_match_missing_join, dsp_match_region, dsp_match_order;

/* hint.c: shared words. */
const struct dsp_pair *dsp_pair_to_order(const struct sym_trace *t, const dsp_pairs *pairs);
char *dsp_order_text(const struct sym_trace *t, struct sched_ref early, struct sched_ref late);
void dsp_ask_order(struct dsp_hint *h, const struct sym_trace *t, struct sched_ref early, struct sched_ref late);
void dsp_ask_region(struct dsp_hint *h, const struct dsp_region *r);
char *dsp_atomic_text(const struct sym_trace *t, const struct dsp_region *r);

#endif
