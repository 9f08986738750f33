#include "analyzer/dsp/internal.h"

#include <string.h>

#define MOST_DELAYS 8 /* shown */

static err_t place_order(struct dsp_map *m, enum dsp_which w, const struct sched_order *o)
{
	m->order[w] = o;
	m->flow_of[w] = xmalloc((m->nids + 1) * sizeof *m->flow_of[w]);
	for (size_t i = 0; i < m->nids; i++)
		m->flow_of[w][i] = ORDER_NOWHERE;
	for (size_t i = 0; i < o->n; i++)
		if (!order_has(m->t, o->refs[i]))
			return err_new(ERR_INTERNAL, "schedule names event %u of thread %u, "
				       "which the trace does not have",
				       o->refs[i].index, o->refs[i].thread);
	m->places[w] = order_places_of(m->t, o);
	m->nflows[w] = order_flows(m->t, o, &m->flows[w]);
	for (size_t i = 0; i < m->nflows[w]; i++)
		m->flow_of[w][dsp_id(m, m->flows[w][i].read)] = i;
	return NULL;
}

const struct order_flow *dsp_flow_into(const struct dsp_map *m, enum dsp_which w,
				       struct sched_ref r)
{
	size_t i = m->flow_of[w] ? m->flow_of[w][dsp_id(m, r)] : ORDER_NOWHERE;

	return i == ORDER_NOWHERE ? NULL : &m->flows[w][i];
}

bool dsp_inverted(const struct dsp_map *m, struct sched_ref before, struct sched_ref after)
{
	size_t after_fail = dsp_at(m, DSP_FAILING, after);
	size_t after_alt = dsp_at(m, DSP_ALTERNATE, after);

	return dsp_at(m, DSP_FAILING, before) < after_fail && after_alt != ORDER_NOWHERE &&
	       dsp_at(m, DSP_ALTERNATE, before) > after_alt;
}

/* The thread that would have failed ends where it took the other branch; what the
 * alternate lists behind that was put in order, but not executed. */
static size_t until_branch(const struct dsp_map *m)
{
	const struct sched_order *o = m->order[DSP_ALTERNATE];

	for (size_t i = o->n; i-- > 0;)
		if (o->refs[i].thread == m->t->failure.thread)
			return i + 1;
	return o->n;
}

static err_t map_init(struct dsp_builder *b, const struct sym_trace *t)
{
	struct dsp_map *m = &b->map;

	m->t = t;
	m->base = xcalloc(t->nthreads + 1, sizeof *m->base);
	for (size_t i = 0; i < t->nthreads; i++)
		m->base[i + 1] = m->base[i] + t->threads[i].nevents;
	m->nids = m->base[t->nthreads];
	b->why = xcalloc(m->nids + 1, 1);
	b->in_cause = xcalloc(m->nids + 1, 1);
	b->matters = xcalloc(expr_symbol_count(t->pool) + 1, sizeof *b->matters);
	if (b->a->found)
		TRY(place_order(m, DSP_FAILING, &b->a->failing));
	if (b->alt)
		TRY(place_order(m, DSP_ALTERNATE, &b->alt->order));
	for (int w = 0; w < DSP_SIDES; w++)
		m->exact[w] = m->order[w] ? m->order[w]->n : 0;
	if (b->alt && b->alt->path_differs)
		m->exact[DSP_ALTERNATE] = until_branch(m);
	return NULL;
}

static void builder_free(struct dsp_builder *b)
{
	for (int w = 0; w < DSP_SIDES; w++) {
		order_places_free(&b->map.places[w]);
		free(b->map.flows[w]);
		free(b->map.flow_of[w]);
	}
	free(b->map.base);
	free(b->why);
	free(b->in_cause);
	free(b->matters);
	vec_free(&b->pairs);
}

static void project(struct dsp_builder *b, struct sched_ref r, unsigned why)
{
	b->why[dsp_id(&b->map, r)] |= why;
}

static err_t add_cause(struct dsp_builder *b)
{
	const struct sched_answer *a = b->a;

	for (size_t i = 0; a->found && i < a->ncause; i++) {
		struct dsp_pair p = { a->cause[i].before, a->cause[i].after, false };

		if (!order_has(b->map.t, p.before) || !order_has(b->map.t, p.after))
			return err_new(ERR_INTERNAL, "root cause names an event that the trace "
				       "does not have");
		p.inverted = dsp_inverted(&b->map, p.before, p.after);
		b->in_cause[dsp_id(&b->map, p.before)] = 1;
		b->in_cause[dsp_id(&b->map, p.after)] = 1;
		vec_push(&b->pairs, p);
	}
	b->d->npairs = b->pairs.n;
	b->d->pairs = xcalloc(b->pairs.n + 1, sizeof *b->d->pairs);
	if (b->pairs.n)
		memcpy(b->d->pairs, b->pairs.v, b->pairs.n * sizeof *b->pairs.v);
	b->d->has_cause = b->pairs.n > 0;
	return NULL;
}

static bool has_a_say(const struct dsp_builder *b, const struct order_flow *f)
{
	const struct dsp_map *m = &b->map;
	const struct sym_event *e = order_event_at(m->t, f->read);
	const struct expr *x = e->symbol != EXPR_NONE ? expr_get(m->t->pool, e->symbol) : NULL;

	return b->in_cause[dsp_id(m, f->read)] ||
	       (x && x->op == EX_SYMBOL && b->matters[x->value]);
}

/* Weaker: a write of the root cause is seen in one schedule and not in the other. */
static bool sees_cause(const struct dsp_builder *b, const struct order_flow *fail,
		       const struct order_flow *alt)
{
	return (!fail->initial && b->in_cause[dsp_id(&b->map, fail->write)]) ||
	       (!alt->initial && b->in_cause[dsp_id(&b->map, alt->write)]);
}

static void add_pair(struct dsp_builder *b, struct sched_ref before, struct sched_ref after)
{
	/* Enough to find regions and a hint in; more only costs time. */
	if (b->pairs.n >= b->d->npairs + 256)
		return;
	for (size_t i = 0; i < b->pairs.n; i++)
		if (order_same_ref(b->pairs.v[i].before, before) && order_same_ref(b->pairs.v[i].after, after))
			return;
	if (before.thread != after.thread && dsp_inverted(&b->map, before, after))
		vec_push(&b->pairs, (struct dsp_pair){ before, after, true });
}

static void add_variation(struct dsp_builder *b, struct order_flow *fail, struct order_flow *alt)
{
	fail->differs = alt->differs = true;
	project(b, fail->read, DSP_IN_FLOW);
	if (!fail->initial) {
		project(b, fail->write, DSP_IN_FLOW);
		add_pair(b, fail->write, fail->read);
	}
	if (!alt->initial) {
		project(b, alt->write, DSP_IN_FLOW);
		add_pair(b, fail->read, alt->write);
	}
}

static size_t add_variations(struct dsp_builder *b, bool weaker)
{
	const struct dsp_map *m = &b->map;
	size_t n = 0;

	for (size_t i = 0; i < m->nflows[DSP_FAILING]; i++) {
		struct order_flow *fail = &m->flows[DSP_FAILING][i];
		size_t other = m->flow_of[DSP_ALTERNATE][dsp_id(m, fail->read)];
		struct order_flow *alt = other == ORDER_NOWHERE ? NULL : &m->flows[DSP_ALTERNATE][other];

		if (!alt || dsp_same_source(fail, alt) ||
		    dsp_at(m, DSP_ALTERNATE, fail->read) >= m->exact[DSP_ALTERNATE])
			continue;
		/* Another write of the same value changes nothing. */
		if (fail->has_value && alt->has_value && fail->value == alt->value &&
		    !b->in_cause[dsp_id(m, fail->read)])
			continue;
		if (weaker ? sees_cause(b, fail, alt) : has_a_say(b, fail)) {
			add_variation(b, fail, alt);
			n++;
		}
	}
	return n;
}

static bool conflict(const struct sym_trace *t, struct sched_ref a, struct sched_ref b)
{
	const struct sym_event *x = order_event_at(t, a), *y = order_event_at(t, b);

	if (a.thread == b.thread || x->target != y->target || x->target == SYM_NONE)
		return false;
	if (order_is_access(x) != order_is_access(y))
		return false;
	return !order_is_access(x) || order_writes(x) || order_writes(y);
}

/* Every conflicting pair of root-cause events that the schedules order differently. */
static void add_reordered(struct dsp_builder *b)
{
	const struct dsp_map *m = &b->map;
	VEC(struct sched_ref) cause = { 0 };

	for (size_t i = 0; i < b->d->npairs; i++) {
		const struct dsp_pair *p = &b->d->pairs[i];

		vec_push(&cause, p->before);
		vec_push(&cause, p->after);
		if (p->inverted) {
			project(b, p->before, DSP_REORDERED);
			project(b, p->after, DSP_REORDERED);
		}
	}
	for (size_t i = 0; i < cause.n; i++) {
		for (size_t k = 0; k < cause.n; k++) {
			if (!conflict(m->t, cause.v[i], cause.v[k]) ||
			    !dsp_inverted(m, cause.v[i], cause.v[k]))
				continue;
			project(b, cause.v[i], DSP_REORDERED);
			project(b, cause.v[k], DSP_REORDERED);
		}
	}
	if (order_has(m->t, b->alt->inverted.before) && order_has(m->t, b->alt->inverted.after) &&
	    dsp_inverted(m, b->alt->inverted.before, b->alt->inverted.after)) {
		project(b, b->alt->inverted.before, DSP_REORDERED);
		project(b, b->alt->inverted.after, DSP_REORDERED);
		/* Found by executing, it need not be one of the root cause. */
		add_pair(b, b->alt->inverted.before, b->alt->inverted.after);
	}
	vec_free(&cause);
}

/* Who waits for whom is the dataflow of a deadlock. */
static void add_failure(struct dsp_builder *b)
{
	const struct sym_trace *t = b->map.t;
	const struct sym_failure *f = &t->failure;

	b->d->waits = xcalloc(f->nblocked + 1, sizeof *b->d->waits);
	for (size_t i = 0; i < f->nblocked; i++) {
		struct sched_ref want = { f->blocked[i].thread, f->blocked[i].event }, has;
		uint32_t since = SYM_NONE;
		size_t holder;

		if (!order_has(t, want))
			continue;
		project(b, want, DSP_FAILURE);
		holder = dsp_blocker(t, i, &since);
		if (holder == SIZE_MAX || since == SYM_NONE)
			continue;
		has = (struct sched_ref){ f->blocked[holder].thread, since };
		b->d->waits[b->d->nwaits++] = (struct dsp_wait){ want, has };
		project(b, has,
			b->alt && dsp_inverted(&b->map, has, want) ? DSP_REORDERED : DSP_FAILURE);
		if (b->alt)
			add_pair(b, has, want);
	}
	if (f->thread >= t->nthreads)
		return;
	for (uint32_t i = (uint32_t)t->threads[f->thread].nevents; i-- > 0;) {
		if (t->threads[f->thread].events[i].op != SYM_FAIL)
			continue;
		project(b, (struct sched_ref){ f->thread, i }, DSP_FAILURE);
		break;
	}
}

/* No alternate: the root cause as it is, and where its reads got their values. */
static void add_cause_events(struct dsp_builder *b)
{
	const struct dsp_map *m = &b->map;

	for (size_t i = 0; i < b->d->npairs; i++) {
		struct sched_ref ends[] = { b->d->pairs[i].before, b->d->pairs[i].after };

		for (int k = 0; k < 2; k++) {
			const struct order_flow *f = dsp_flow_into(m, DSP_FAILING, ends[k]);

			project(b, ends[k], DSP_IN_CAUSE);
			if (f && !f->initial)
				project(b, f->write, DSP_IN_FLOW);
		}
	}
}

/* A failure that needs store buffers: the stores that came too late and the loads that did not wait. */
static void add_delays(struct dsp_builder *b)
{
	for (size_t i = 0; i < b->a->ndelays && i < MOST_DELAYS; i++) {
		const struct sched_delay *d = &b->a->delays[i];

		if (!order_has(b->map.t, d->store) || !order_has(b->map.t, d->load))
			continue;
		project(b, d->store, DSP_IN_CAUSE);
		project(b, d->load, DSP_IN_CAUSE);
	}
}

static int by_place(const void *pa, const void *pb)
{
	const struct dsp_event *a = pa, *b = pb;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	if (a->ref.thread != b->ref.thread)
		return a->ref.thread < b->ref.thread ? -1 : 1;
	return a->ref.index < b->ref.index ? -1 : a->ref.index > b->ref.index;
}

/* A later event of the same thread comes before this write. A store buffer is
 * short (56 entries on the largest cores): no need to look far. */
static bool overtaken(const struct dsp_map *m, enum dsp_which w, struct sched_ref r)
{
	const struct sym_thread *th = &m->t->threads[r.thread];
	size_t at = dsp_at(m, w, r);

	if (th->events[r.index].op != SYM_WRITE)
		return false;
	for (uint32_t i = r.index + 1; i < th->nevents && i < r.index + 200; i++)
		if (dsp_at(m, w, (struct sched_ref){ r.thread, i }) < at)
			return true;
	return false;
}

static void lay_out(struct dsp_builder *b, enum dsp_which w)
{
	const struct dsp_map *m = &b->map;
	struct dsp_side *side = &b->d->side[w];
	VEC(struct dsp_event) events = { 0 };
	VEC(struct order_flow) flows = { 0 };

	for (uint32_t th = 0; th < m->t->nthreads; th++) {
		for (uint32_t i = 0; i < m->t->threads[th].nevents; i++) {
			struct dsp_event e = { .ref = { th, i } };
			size_t id = dsp_id(m, e.ref);

			if (!b->why[id])
				continue;
			e.in_flow = b->why[id] & DSP_IN_FLOW;
			e.reordered = b->why[id] & DSP_REORDERED;
			e.in_cause = b->in_cause[id];
			e.failure = b->why[id] & DSP_FAILURE;
			e.context = b->why[id] == DSP_CONTEXT;
			side->nprojected += !e.context;
			e.at = dsp_at(m, w, e.ref);
			e.executed = e.at != ORDER_NOWHERE;
			e.buffered = e.executed && overtaken(m, w, e.ref);
			e.has_value = e.executed && e.at < m->exact[w] &&
				      order_value(m->t, m->order[w], e.ref, &e.value);
			vec_push(&events, e);
		}
	}
	for (size_t i = 0; i < m->nflows[w]; i++) {
		const struct order_flow *f = &m->flows[w][i];

		if (!b->why[dsp_id(m, f->read)] || (!f->initial && !b->why[dsp_id(m, f->write)]))
			continue;
		vec_push(&flows, *f);
		if (dsp_at(m, w, f->read) >= m->exact[w])
			flows.v[flows.n - 1].has_value = false;
		side->ndiffers += f->differs;
	}
	if (events.n)
		qsort(events.v, events.n, sizeof *events.v, by_place);
	side->events = events.v;
	side->nevents = events.n;
	side->flows = flows.v;
	side->nflows = flows.n;
	side->exact = m->exact[w];
	side->all_events = m->order[w] ? m->order[w]->n : 0;
	side->all_flows = m->nflows[w];
}

static char *note(const struct dsp_builder *b)
{
	const struct sched_answer *a = b->a;
	const char *why = a->why ? a->why : "";
	const char *colon = a->why ? ": " : "";

	if (!a->found)
		return xasprintf("No failing schedule was found%s%s.", colon, why);
	if (a->deterministic)
		return xstrdup("The failure does not depend on the order of events: "
			       "it happens in every schedule along these paths.");
	if (a->tried_always)
		return xstrdup("No ordering of the threads is to blame, as far as was tried: it fails in every one.");
	if (!a->ncause)
		return xasprintf("No ordering could be named as the cause%s%s.", colon, why);
	if (!b->alt)
		return xasprintf("No schedule that avoids the failure was found%s%s. Shown are "
				 "the events of the root cause alone.", colon, why);
	return NULL;
}

static void regions(struct dsp_builder *b)
{
	dsp_regions found = { 0 };
	size_t all = b->pairs.n;

	/* Where the cause is what led to the rest, advice is about that, and not about what came of it. */
	if (b->alt && b->a->cause_earlier) {
		b->pairs.n = b->d->npairs;
		dsp_find_regions(&b->map, &b->pairs, &found);
		if (!found.n)
			b->pairs.n = all;
	}
	if (b->alt && !found.n)
		dsp_find_claims(&b->map, &b->pairs, &found);
	if (b->alt && !found.n)
		dsp_find_regions(&b->map, &b->pairs, &found);
	b->d->regions = found.v;
	b->d->nregions = found.n;
	for (size_t i = 0; i < found.n; i++) {
		project(b, (struct sched_ref){ found.v[i].thread, found.v[i].first }, DSP_CONTEXT);
		if (found.v[i].last != SYM_NONE)
			project(b, found.v[i].end, DSP_CONTEXT);
	}
}

static size_t common_prefix(const struct dsp_map *m)
{
	const struct sched_order *f = m->order[DSP_FAILING], *a = m->order[DSP_ALTERNATE];
	size_t n = 0;

	while (f && a && n < f->n && n < a->n && order_same_ref(f->refs[n], a->refs[n]))
		n++;
	return n;
}

/* Something of what the two schedules do differently is known. */
static bool tells(const struct dsp_builder *b)
{
	for (size_t i = 0; i < b->map.nids; i++)
		if (b->why[i])
			return true;
	return false;
}

/*
 * The alternate leaves the recorded path before it comes to any of the root cause: it does not have those
 * orderings, and what it does instead was never recorded. So they are shown as the failing schedule has them.
 */
static void add_not_reached(struct dsp_builder *b)
{
	add_cause_events(b);
	for (size_t i = 0; i < b->d->npairs; i++)
		b->d->pairs[i].inverted = b->pairs.v[i].inverted =
			dsp_at(&b->map, DSP_ALTERNATE, b->d->pairs[i].after) == ORDER_NOWHERE;
}

static err_t build(struct dsp_builder *b, const struct sym_trace *t)
{
	struct dsp *d = b->d;

	TRY(map_init(b, t));
	TRY(add_cause(b));
	if (b->alt) {
		dsp_find_cone(b);
		if (!add_variations(b, false))
			add_variations(b, true);
		dsp_explain_values(b);
		add_variations(b, false);
		add_reordered(b);
		if (!tells(b))
			add_not_reached(b);
	} else {
		add_cause_events(b);
	}
	add_failure(b);
	add_delays(b);
	d->has_alternate = b->alt;
	d->deterministic = b->a->deterministic;
	d->common_prefix = common_prefix(&b->map);
	regions(b);
	for (int w = 0; w < DSP_SIDES; w++)
		if (w == DSP_FAILING || b->alt)
			lay_out(b, w);
	dsp_find_hint(&b->map, &b->pairs, b->a, d);
	dsp_fingerprint(t, d);
	d->note = note(b);
	return NULL;
}

err_t dsp_build(const struct sym_trace *t, const struct sched_answer *a, struct dsp **out)
{
	struct dsp_builder b = { .a = a, .d = xcalloc(1, sizeof *b.d) };
	err_t e;

	if (a->found && a->nalternates)
		b.alt = &a->alternates[0];
	e = build(&b, t);
	builder_free(&b);
	if (e)
		dsp_free(b.d);
	else
		*out = b.d;
	return e;
}

void dsp_free(struct dsp *d)
{
	if (!d)
		return;
	for (int w = 0; w < DSP_SIDES; w++) {
		free(d->side[w].events);
		free(d->side[w].flows);
	}
	free(d->pairs);
	free(d->waits);
	free(d->regions);
	free(d->hint.text);
	free(d->also.text);
	for (size_t i = 0; i < d->nmore; i++)
		free(d->more[i].text);
	free(d->note);
	free(d);
}
