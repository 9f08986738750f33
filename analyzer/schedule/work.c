/* What the phases share: executing orders and writing them down. */
#include "analyzer/schedule/work.h"

#include <stdarg.h>
#include <string.h>

void work_why(struct work *w, const char *fmt, ...)
{
	va_list ap;
	char *s, *old = w->a->why;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	if (s && old) {
		w->a->why = xasprintf("%s; %s", old, s);
		free(old);
		free(s);
	} else if (s) {
		w->a->why = s;
	}
}

bool work_stopped(struct work *w)
{
	return smt_expired(&w->limit);
}

void work_asked(struct work *w, size_t events)
{
	if (events > w->a->stats.window)
		w->a->stats.window = events;
}

void work_executed(struct work *w, size_t events)
{
	w->limit.spent += events / EXECUTED;
}

struct order_check *work_state(struct work *w, size_t from, enum order_end end)
{
	struct order_check *c = order_check_new(end == ORDER_EXACT ? w->v : w->timeless, end, w->init,
						w->syms);

	for (size_t k = 0; k < from; k++)
		order_check_step(c, w->order[k]);
	return c;
}

bool work_avoids(struct work *w, const uint32_t *order, size_t n, uint32_t diverge)
{
	struct order_check *c = order_check_new(w->timeless, ORDER_ONWARD, w->init, w->syms);
	size_t at;
	bool good;

	order_check_set_diverge(c, diverge);
	order_check_set_relax(c, w->relax);
	good = order_check_run(c, order, n, &at) == ORDER_OK && order_check_avoids(c);
	order_check_free(c);
	return good;
}

void work_rank(struct work *w)
{
	memset(w->rank, 0xff, w->v->n * sizeof *w->rank);
	for (size_t k = 0; k < w->n; k++)
		w->rank[w->order[k]] = k;
	for (uint32_t i = 0; i < w->v->n; i++)
		if (w->v->ev[i].pending)
			w->rank[i] = w->n + w->v->ev[i].e->thread;
}

void work_export(struct work *w, const uint32_t *order, size_t n, bool fails,
		 struct sched_order *out)
{
	struct order_check *c = order_check_new(w->timeless, ORDER_ONWARD, w->init, w->syms);

	out->refs = xcalloc(n + 1, sizeof *out->refs);
	out->n = n;
	out->fails = fails;
	for (size_t k = 0; k < n; k++) {
		order_check_step(c, order[k]);
		out->refs[k] = order_view_ref(w->v, order[k]);
	}
	out->switches = order_switches(w->v, order, n);
	out->nvalues = expr_symbol_count(w->v->t->pool);
	out->values = xcalloc(out->nvalues + 1, sizeof *out->values);
	memcpy(out->values, order_check_values(c), out->nvalues * sizeof *out->values);
	order_check_free(c);
}
