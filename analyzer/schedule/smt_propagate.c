/*
 * Written for Z3 4.8.12: callbacks name expressions by unsigned ids, and an
 * explanation is given at once with the consequence.
 */
#include "analyzer/schedule/smt_propagate.h"

#include <string.h>

/* Nodes looked at in each direction for implied atoms; more did not pay. */
#define IMPLIED_LIMIT 400
/* Between two looks at the clock. */
#define POLL_EVERY 512

enum state { UNSET, TRUE_EDGE, FALSE_OR_TOLD }; /* all but UNSET is settled */

struct smt_propagator {
	struct smt *s;
	uint8_t *state;    /* by atom */
	uint32_t *by_id;   /* the propagator's id -> atom */
	size_t nids;
	VEC(uint32_t) trail; /* atom, or ~atom when no edge was added */
	VEC(size_t) levels;
	VEC(uint32_t) last_true;
	VEC(unsigned) ids;
	uint32_t polls;
	Z3_solver_callback cb;
	uint32_t cause;
};

static void on_push(void *arg)
{
	struct smt_propagator *p = arg;

	vec_push(&p->levels, p->trail.n);
}

static void on_pop(void *arg, unsigned n)
{
	struct smt_propagator *p = arg;
	size_t keep;

	p->levels.n -= n;
	keep = p->levels.v[p->levels.n];
	while (p->trail.n > keep) {
		uint32_t k = p->trail.v[--p->trail.n];

		if ((int32_t)k < 0) {
			p->state[~k] = UNSET;
			continue;
		}
		p->state[k] = UNSET;
		order_acyclic_undo(p->s->g, p->s->atoms.v[k].a, p->s->atoms.v[k].b);
	}
}

/* One solver, never copied: Z3 has no reason to call this. */
static void *on_fresh(void *arg, Z3_context z)
{
	(void)z;
	return arg;
}

static void explain(struct smt_propagator *p, const uint32_t *labels, size_t n, Z3_ast what)
{
	p->ids.n = 0;
	vec_push(&p->ids, p->s->atoms.v[p->cause].id);
	for (size_t i = 0; i < n; i++)
		vec_push(&p->ids, p->s->atoms.v[labels[i]].id);
	Z3_solver_propagate_consequence(p->s->z, p->cb, p->ids.n, p->ids.v, 0, NULL, NULL, what);
}

static void on_implied(void *arg, uint32_t atom, const uint32_t *labels, size_t n)
{
	struct smt_propagator *p = arg;

	p->state[atom] = FALSE_OR_TOLD;
	vec_push(&p->trail, ~atom);
	explain(p, labels, n, Z3_mk_not(p->s->z, p->s->atoms.v[atom].lit));
}

static void on_fixed(void *arg, Z3_solver_callback cb, unsigned id, Z3_ast value)
{
	struct smt_propagator *p = arg;
	uint32_t k = p->by_id[id];
	const struct smt_atom *x = &p->s->atoms.v[k];
	bool cycle;
	size_t n;

	if (++p->polls % POLL_EVERY == 0 &&
	    (order_acyclic_looked_at(p->s->g) > p->s->look_end || smt_expired(p->s->limit)))
		Z3_interrupt(p->s->z);
	if (Z3_get_bool_value(p->s->z, value) != Z3_L_TRUE) {
		if (p->state[k] == UNSET) {
			p->state[k] = FALSE_OR_TOLD;
			vec_push(&p->trail, ~k);
		}
		return;
	}
	p->cb = cb;
	p->cause = k;
	n = order_acyclic_add(p->s->g, x->a, x->b, k, &cycle);
	if (cycle) {
		explain(p, order_acyclic_labels(p->s->g), n, Z3_mk_false(p->s->z));
		return;
	}
	p->state[k] = TRUE_EDGE;
	vec_push(&p->trail, k);
	if (p->s->propagate)
		order_acyclic_implied(p->s->g, x->a, x->b, IMPLIED_LIMIT, p->state, on_implied, p);
}

static void on_final(void *arg, Z3_solver_callback cb)
{
	struct smt_propagator *p = arg;

	(void)cb;
	p->last_true.n = 0;
	for (size_t i = 0; i < p->trail.n; i++)
		if ((int32_t)p->trail.v[i] >= 0)
			vec_push(&p->last_true, p->trail.v[i]);
}

struct smt_propagator *smt_propagator_new(struct smt *s)
{
	struct smt_propagator *p = xcalloc(1, sizeof *p);

	p->s = s;
	p->state = xcalloc(s->atoms.n + 1, sizeof *p->state);
	Z3_solver_propagate_init(s->z, s->s, p, on_push, on_pop, on_fresh);
	Z3_solver_propagate_fixed(s->z, s->s, on_fixed);
	Z3_solver_propagate_final(s->z, s->s, on_final);
	for (size_t i = 0; i < s->atoms.n; i++) {
		unsigned id = Z3_solver_propagate_register(s->z, s->s, s->atoms.v[i].lit);

		s->atoms.v[i].id = id;
		if (id >= p->nids) {
			size_t n = id * 2 + 16;

			p->by_id = xrealloc(p->by_id, n * sizeof *p->by_id);
			memset(p->by_id + p->nids, 0, (n - p->nids) * sizeof *p->by_id);
			p->nids = n;
		}
		p->by_id[id] = i;
		if (s->propagate)
			order_acyclic_candidate(s->g, s->atoms.v[i].a, s->atoms.v[i].b, i);
	}
	return p;
}

void smt_propagator_free(struct smt_propagator *p)
{
	if (!p)
		return;
	free(p->state);
	free(p->by_id);
	vec_free(&p->trail);
	vec_free(&p->levels);
	vec_free(&p->last_true);
	vec_free(&p->ids);
	free(p);
}

const uint32_t *smt_propagator_true(const struct smt_propagator *p, size_t *n)
{
	*n = p->last_true.n;
	return p->last_true.v;
}
