/*
 * An answer about the end of a run, told of a longer stretch of it. What lies before was
 * committed in the order in which it was followed, so the orders are the old ones behind
 * that; all of them are executed again, from the earlier beginning.
 */
#include "analyzer/schedule/schedule.h"
#include "analyzer/schedule/work.h"

#include <string.h>

struct longer {
	const struct sym_trace *was, *t;
	const uint32_t *more;    /* by thread: so many events are new, at its beginning */
	struct sched_ref *prefix; /* these, in order */
	size_t n;
	struct order_view *v;
};

static int by_step(const void *a, const void *b, void *arg)
{
	const struct sym_trace *t = arg;
	const struct sched_ref *x = a, *y = b;
	uint64_t s = t->threads[x->thread].events[x->index].step;
	uint64_t u = t->threads[y->thread].events[y->index].step;

	return s < u ? -1 : s > u;
}

static void find_prefix(struct longer *l)
{
	for (uint32_t i = 0; i < l->t->nthreads; i++)
		l->n += l->more[i];
	l->prefix = xcalloc(l->n + 1, sizeof *l->prefix);
	l->n = 0;
	for (uint32_t i = 0; i < l->t->nthreads; i++)
		for (uint32_t k = 0; k < l->more[i]; k++)
			l->prefix[l->n++] = (struct sched_ref){ i, k };
	if (l->n)
		qsort_r(l->prefix, l->n, sizeof *l->prefix, by_step, (void *)l->t);
}

static struct sched_ref shifted(const struct longer *l, struct sched_ref r)
{
	return (struct sched_ref){ r.thread, r.index + l->more[r.thread] };
}

static struct sched_edge shifted_edge(const struct longer *l, struct sched_edge e)
{
	return (struct sched_edge){ shifted(l, e.before), shifted(l, e.after) };
}

/* A condition that holds behind the same event; thread SYM_NONE: there is none. */
static struct sched_ref shifted_cond(const struct longer *l, struct sched_ref r)
{
	const struct sym_thread *t = r.thread == SYM_NONE ? NULL : &l->t->threads[r.thread];
	uint32_t after = t ? l->was->threads[r.thread].conds[r.index].after : SYM_NONE;

	for (uint32_t i = 0; t && after != SYM_NONE && i < t->nconds; i++)
		if (t->conds[i].after == after + l->more[r.thread])
			return (struct sched_ref){ r.thread, i };
	return (struct sched_ref){ .thread = SYM_NONE };
}

/* partial: it ends where a thread leaves the recorded path, so only its steps are checked. */
static bool lengthen_order(const struct longer *l, const struct sched_order *o, bool partial,
			   struct sched_order *out)
{
	struct order_check *c = order_check_new(l->v, o->fails ? ORDER_EXACT : ORDER_ONWARD, NULL, NULL);
	uint32_t last = SYM_NONE;
	bool good = true;

	*out = (struct sched_order){ .n = l->n + o->n, .fails = o->fails };
	out->refs = xcalloc(out->n + 1, sizeof *out->refs);
	memcpy(out->refs, l->prefix, l->n * sizeof *out->refs);
	for (size_t k = 0; k < out->n; k++) {
		if (k >= l->n)
			out->refs[k] = shifted(l, o->refs[k - l->n]);
		struct sched_ref r = out->refs[k];

		/* Behind the branch it turns, a partial order may not satisfy what follows. */
		if (order_check_step(c, l->v->first[r.thread] + r.index) != ORDER_OK && (!partial || k < l->n))
			good = false;
		out->switches += last != SYM_NONE && last != r.thread;
		last = r.thread;
	}
	if (!partial)
		good = good && order_check_late(c) == ORDER_OK && (o->fails ? order_check_fails(c) : order_check_avoids(c));
	out->nvalues = expr_symbol_count(l->t->pool);
	out->values = xcalloc(out->nvalues + 1, sizeof *out->values);
	memcpy(out->values, order_check_values(c), out->nvalues * sizeof *out->values);
	order_check_free(c);
	return good;
}

static bool lengthen_alternate(const struct longer *l, const struct sched_alternate *a,
			       struct sched_alternate *out)
{
	*out = *a;
	if (a->inverted.before.index != SYM_NONE)
		out->inverted = shifted_edge(l, a->inverted);
	out->left = a->path_differs ? shifted_cond(l, a->left) : a->left;
	return lengthen_order(l, &a->order, a->path_differs || a->executed, &out->order);
}

static bool lengthen_all(const struct longer *l, const struct sched_answer *a, struct sched_answer *out)
{
	bool good = lengthen_order(l, &a->recorded, false, &out->recorded) &&
		    lengthen_order(l, &a->failing, false, &out->failing);

	out->cause = xcalloc(a->ncause + 1, sizeof *out->cause);
	for (; out->ncause < a->ncause; out->ncause++)
		out->cause[out->ncause] = shifted_edge(l, a->cause[out->ncause]);
	out->delays = xcalloc(a->ndelays + 1, sizeof *out->delays);
	for (; out->ndelays < a->ndelays; out->ndelays++) {
		struct sched_delay d = a->delays[out->ndelays];

		out->delays[out->ndelays] = (struct sched_delay){ shifted(l, d.store), shifted(l, d.load) };
	}
	out->alternates = xcalloc(a->nalternates + 1, sizeof *out->alternates);
	while (good && out->nalternates < a->nalternates) {
		size_t i = out->nalternates++;

		good = lengthen_alternate(l, &a->alternates[i], &out->alternates[i]);
	}
	return good;
}

struct sched_answer *sched_lengthen(const struct sym_trace *was, const struct sym_trace *t,
				    enum sched_model model, const struct sched_answer *a,
				    const uint32_t *more)
{
	struct longer l = { .was = was, .t = t, .more = more, .v = order_view_new(t, model, false) };
	struct sched_answer *out = xcalloc(1, sizeof *out);
	bool good;

	find_prefix(&l);
	out->found = a->found;
	out->cause_minimal = a->cause_minimal;
	out->cause_events = a->cause_events;
	out->timed_out = a->timed_out;
	out->why = a->why ? xstrdup(a->why) : NULL;
	out->stats = a->stats;
	out->stats.events = l.v->n;
	good = a->found && lengthen_all(&l, a, out);
	out->cause_executed = a->cause_executed;
	out->cause_tested = a->cause_tested;
	out->cause_earlier = a->cause_earlier;
	out->cause_kept = a->cause_kept + (out->failing.n - a->failing.n);
	order_view_free(l.v);
	free(l.prefix);
	if (good)
		return out;
	sched_answer_free(out);
	return NULL;
}
