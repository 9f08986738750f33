/*
 * Pairs too far apart for any window: what the failure read and the writes of
 * other threads around it, at any distance, turned by execution alone. This
 * finds alternates of long traces; it proves nothing about causes.
 */
#include "analyzer/schedule/work.h"

#include <string.h>

struct reads {
	const struct order_view *v;
	VEC(uint32_t) events;
};

static void add_read(void *arg, uint64_t symbol)
{
	struct reads *r = arg;

	if (r->v->reader[symbol] != SYM_NONE && r->events.n < FAR_READS)
		vec_push(&r->events, r->v->reader[symbol]);
}

static bool is_other_write(const struct work *w, uint32_t i, uint32_t read)
{
	const struct sym_event *e = w->v->ev[i].e, *r = w->v->ev[read].e;

	return order_writes(e) && e->target == r->target && e->thread != r->thread;
}

static void pairs_around(struct study *s, uint32_t read)
{
	const struct work *w = s->w;
	size_t at = w->rank[read];
	unsigned n = 0;

	for (size_t k = at; k-- > 0 && n < FAR_WRITES;) {
		if (is_other_write(w, w->order[k], read)) {
			vec_push(&s->edges, (struct study_edge){ w->order[k], read, NULL, NULL });
			n++;
		}
	}
	n = 0;
	for (size_t k = at + 1; k < w->n && n < FAR_WRITES; k++) {
		if (is_other_write(w, w->order[k], read)) {
			vec_push(&s->edges, (struct study_edge){ read, w->order[k], NULL, NULL });
			n++;
		}
	}
}

struct study *far_study(struct work *w)
{
	struct study *s = xcalloc(1, sizeof *s);
	struct reads r = { .v = w->v };

	s->w = w;
	s->diverge = SYM_NONE;
	s->to = w->n;
	s->run = work_state(w, 0, ORDER_ONWARD);
	s->base = order_check_save(s->run);
	s->place = xcalloc(w->v->n + 1, sizeof *s->place);
	if (w->v->t->failure.condition)
		expr_symbols(w->v->t->pool, w->v->t->failure.condition, add_read, &r);
	for (size_t i = 0; i < r.events.n; i++)
		pairs_around(s, r.events.v[i]);
	vec_free(&r.events);
	return s;
}
