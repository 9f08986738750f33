/* Shared inside the room; nobody outside includes this. */
#ifndef CSCHED_DSP_INTERNAL_H
#define CSCHED_DSP_INTERNAL_H

#include "analyzer/dsp/dsp.h"
#include "common/strbuf.h"
#include "common/vec.h"

/* Both orders laid over the trace. Events have a dense id: base[thread] + index. */
struct dsp_map {
	const struct sym_trace *t;
	const struct sched_order *order[DSP_SIDES]; /* NULL: no such schedule */
	size_t *base;
	size_t nids;
	struct order_places places[DSP_SIDES];
	size_t exact[DSP_SIDES];        /* see struct dsp_side */
	struct order_flow *flows[DSP_SIDES];
	size_t nflows[DSP_SIDES];
	size_t *flow_of[DSP_SIDES];     /* id of a read -> flow, ORDER_NOWHERE if none */
};

typedef VEC(struct dsp_pair) dsp_pairs;
typedef VEC(struct dsp_region) dsp_regions;

static inline size_t dsp_id(const struct dsp_map *m, struct sched_ref r)
{
	return m->base[r.thread] + r.index;
}

static inline size_t dsp_at(const struct dsp_map *m, enum dsp_which w, struct sched_ref r)
{
	return m->order[w] ? order_place(&m->places[w], r) : ORDER_NOWHERE;
}

/* The flow into a read on one side, or NULL. */
const struct order_flow *dsp_flow_into(const struct dsp_map *m, enum dsp_which w,
				       struct sched_ref r);

/*
 * The failing schedule has before < after, the alternate does not. An event
 * that a schedule never executes counts as later than all it does execute
 * (an acquisition that blocks for ever would come last).
 */
bool dsp_inverted(const struct dsp_map *m, struct sched_ref before, struct sched_ref after);

/* Why an event is projected. */
enum { DSP_IN_FLOW = 1, DSP_REORDERED = 2, DSP_IN_CAUSE = 4, DSP_FAILURE = 8, DSP_CONTEXT = 16 };

struct dsp_builder {
	struct dsp_map map;
	const struct sched_answer *a;
	const struct sched_alternate *alt; /* NULL: none */
	struct dsp *d;
	uint8_t *why;      /* per event id; non-zero: projected */
	uint8_t *in_cause; /* per event id */
	bool *matters;     /* per symbol number: has a say in the failure */
	dsp_pairs pairs;   /* root cause, and what the variations turned round */
};

/* cone.c */

bool dsp_same_source(const struct order_flow *a, const struct order_flow *b);
/* Marks b->matters: the reads that have a say in the failure. */
void dsp_find_cone(struct dsp_builder *b);
/* ... and those that projected writes with differing values were computed from. */
void dsp_explain_values(struct dsp_builder *b);

/* locks.c */

/* Fills in which locks are held at a region and by who got in between. */
void dsp_region_locks(const struct sym_trace *t, struct dsp_region *r);
/* The thread that holds what the i-th blocked one wants, at its own blocked
 * event; returns the index into failure.blocked or SIZE_MAX. */
size_t dsp_blocker(const struct sym_trace *t, size_t i, uint32_t *since);

/* region.c: regions split by the pairs, best evidence only. */
void dsp_find_regions(const struct dsp_map *m, const dsp_pairs *inverted, dsp_regions *out);

/*
 * Nothing is atomic across the creation of the very thread that gets in between (`other'), or across a wait for others to come
 * along.
 */
bool dsp_spans_others(const struct sym_trace *t, struct sched_ref first, struct sched_ref last, uint32_t other);

/* claims.c: a region in which the threads of a pair claimed what they meet at, both; it goes before all others. */
void dsp_find_claims(const struct dsp_map *m, const dsp_pairs *pairs, dsp_regions *out);

/*
 * What the failure is decided by was looked at before, the thread came there by what it saw then, and it was changed in
 * between. The pairs need not say so: who brings what is checked may be turned round as well.
 */
bool dsp_find_stale_check(const struct dsp_map *m, struct sched_ref *first, struct sched_ref *by, struct sched_ref *last);
/* The first write by another thread, in the failing order, of what first is about, between the two of one thread. */
bool dsp_written_in(const struct dsp_map *m, struct sched_ref first, struct sched_ref last, struct sched_ref *by);

/* The failure's condition does. */
bool dsp_failure_mentions(const struct sym_trace *t, const struct sym_event *e);

/* hint_locks.c */
char *dsp_hold_text(const struct sym_trace *t, uint32_t lock, struct sched_ref without, struct sched_ref with);
char *dsp_two_locks_text(const struct sym_trace *t, struct sched_ref x, uint32_t its, struct sched_ref y,
			 uint32_t others);
/* x and y, of two threads, are both where a lock of the program's own making should let only one. */
bool dsp_broken_lock_hint(const struct dsp_map *m, struct sched_ref x, struct sched_ref y, struct dsp_hint *h);

/* What a hint asks for; more than there is room for makes it one that cannot be tried. */
void dsp_ask(struct dsp_hint *h, enum dsp_step_kind kind, struct sched_ref first, struct sched_ref last, uint32_t which);
void dsp_ask_hold(struct dsp_hint *h, struct sched_ref first, struct sched_ref last);
void dsp_ask_lock(struct dsp_hint *h, uint32_t object); /* SYM_NONE: nothing */

/* hint.c */
void dsp_say_does(struct strbuf *b, const struct sym_trace *t, struct sched_ref r);
void dsp_say_span(struct strbuf *b, const struct sym_trace *t, const struct dsp_region *r);
void dsp_say_intruder_at(struct strbuf *b, const struct sym_trace *t, const struct dsp_region *r);
void dsp_say_at(struct strbuf *b, const struct sym_trace *t, struct sched_ref r);
const char *dsp_thread_id(const struct sym_trace *t, uint32_t thread);
/* catalogue.c */
void dsp_find_hint(const struct dsp_map *m, const dsp_pairs *inverted,
		   const struct sched_answer *a, struct dsp *d);

/* place.c */
/*
 * One instruction of a library's is many places of the program: v.empty() here and there is the
 * same code. same_place: executed for the same line of the program; same_calls: called the same
 * way all through. Traces without stacks have only the instruction.
 */
/* Done by an instruction of the run-time's own, not by what the program inlined of its headers. */
bool dsp_is_in_library(const struct sym_trace *t, const struct sym_event *e);
bool dsp_same_place(const struct sym_trace *t, const struct sym_event *a, const struct sym_event *b);
bool dsp_same_calls(const struct sym_trace *t, const struct sym_event *a, const struct sym_event *b);
void dsp_fingerprint(const struct sym_trace *t, struct dsp *d);

#endif
