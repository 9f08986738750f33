/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call sequences by sequential coverage (AutoConTest, sections 4.2 and 4.3). A tree of sequences is walked depth first; an
 * iteration ends with the sequence that adds most traces of calls to those of all earlier ones, of equals the shortest.
 * What it adds is tested against all that is known, from the states in which each of the two calls was made.
 */
#include "analyzer/testgen/search.h"

#include <stdio.h>
#include <string.h>

#define MOST_TRACES 512      /* of calls that are told apart; others count as known */
#define WORDS (MOST_TRACES / 64)
#define SATURATION 3         /* k at first: so many extensions in a row without gain end a branch */
#define MOST_SATURATION 6
/* An iteration is cut off there; its best sequence counts. */
#define PATIENCE 24          /* executions without a better sequence, at the first one */
#define MORE_PATIENCE 24     /* at each further one */
#define MOST_STEPS 150000    /* instructions stepped through: less than a second */

/* A set of traces of calls. */
struct cover {
	uint64_t w[WORDS];
};

/* A sequence, and what it covers beyond the earlier iterations' sequences. */
struct node {
	struct prefix p;
	struct cover gain;
	uint64_t state;
	unsigned moves[SEQ_CALLS], length;
	size_t index; /* among those explored */
};

/* What Definition 5 asks of the sequences explored at this iteration. */
struct reached {
	uint64_t state;
	struct cover gain;
	unsigned length;
};

/* A call of a chosen sequence, and the state it was made in. */
struct known {
	struct prefix p;
	unsigned move;
	struct trace trace; /* from that state */
};

struct walk {
	struct search *s;
	VEC(uint64_t) traces;    /* hashes, by number */
	struct cover covered;    /* by the sequences of earlier iterations */
	VEC(struct reached) explored;
	VEC(struct known) known;
	unsigned saturation, idle, patience; /* idle: executions since the best sequence */
	uint64_t steps;
	VEC(unsigned) order;     /* of moves: each function's first, then each one's second ... */
	unsigned first;          /* in it, that is tried first: another one at each iteration */
	bool cut;                /* saturation or the limit of executions ended a branch */
};

static int function_of(const struct search *s, size_t move)
{
	const struct seq *m = &s->moves.v[move];

	return m->calls[m->n - 1].function;
}

static bool has(const struct cover *c, unsigned trace)
{
	return c->w[trace / 64] & 1ull << trace % 64;
}

static unsigned size_of(const struct cover *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WORDS; i++)
		n += (unsigned)__builtin_popcountll(c->w[i]);
	return n;
}

static bool is_within(const struct cover *a, const struct cover *b)
{
	for (unsigned i = 0; i < WORDS; i++)
		if (a->w[i] & ~b->w[i])
			return false;
	return true;
}

/* The trace's number; MOST_TRACES: there are too many. */
static unsigned number_of(struct walk *w, uint64_t hash)
{
	for (size_t i = 0; i < w->traces.n; i++)
		if (w->traces.v[i] == hash)
			return (unsigned)i;
	if (w->traces.n == MOST_TRACES)
		return MOST_TRACES;
	vec_push(&w->traces, hash);
	return (unsigned)w->traces.n - 1;
}

static bool is_better(const struct node *a, const struct node *b)
{
	unsigned x = size_of(&a->gain), y = size_of(&b->gain);

	return x != y ? x > y : a->length < b->length;
}

/* Definition 5; n itself may be among those explored. */
static bool is_redundant(const struct walk *w, const struct node *n)
{
	for (size_t i = 0; i < w->explored.n; i++) {
		const struct reached *r = &w->explored.v[i];

		if (i != n->index && r->state == n->state && is_within(&n->gain, &r->gain) &&
		    (!is_within(&r->gain, &n->gain) || r->length <= n->length))
			return true;
	}
	return false;
}

static bool over(const struct walk *w)
{
	return w->s->done || lab_expired(w->s->lab) || w->idle >= w->patience || w->steps >= MOST_STEPS;
}

/* A rule that is on applies; it counts either way. */
static bool prunes(struct walk *w, enum testgen_rule rule, bool applies)
{
	if (applies)
		search_pruned(w->s, rule);
	return applies && search_on(w->s, rule);
}

static err_t walk(struct walk *w, const struct node *from, unsigned idle, struct node *best);

/* One extension of a node. *breadth: the node gets no further one. */
static err_t extend(struct walk *w, const struct node *from, unsigned move, unsigned idle, struct node *best, bool *breadth)
{
	struct node n = *from;
	struct trace t;

	if (!seq_append(&n.p.s, &w->s->moves.v[move])) {
		w->cut = true;
		return NULL;
	}
	w->idle++;
	TRY(search_trace(w->s, &from->p, &w->s->moves.v[move], &t));
	w->steps += t.nsteps;
	unsigned trace = number_of(w, t.hash ^ t.shape);
	bool fails = t.end != JOB_DONE, ends = t.frees_object;
	n.state = t.state;
	n.moves[n.length++] = move;
	n.index = w->explored.n;
	trace_free(&t);
	if (prunes(w, TESTGEN_D1, fails))
		return NULL;
	bool gains = !fails && trace < MOST_TRACES && !has(&w->covered, trace) && !has(&n.gain, trace);
	if (gains)
		n.gain.w[trace / 64] |= 1ull << trace % 64;
	bool same_state = n.state == from->state;
	if (gains && is_better(&n, best)) {
		*best = n;
		w->idle = 0;
	}
	if (prunes(w, TESTGEN_D2, !gains && same_state) || prunes(w, TESTGEN_D3, !gains && !same_state && is_redundant(w, &n)))
		return NULL;
	vec_push(&w->explored, ((struct reached){ n.state, n.gain, n.length }));
	/* After the object has ended nothing can be called on it. */
	if (!ends)
		TRY(walk(w, &n, gains ? 0 : idle + 1, best));
	*breadth = prunes(w, TESTGEN_B1, gains && same_state) || prunes(w, TESTGEN_B2, is_redundant(w, from));
	return NULL;
}

/* callGen of Figure 7. */
static err_t walk(struct walk *w, const struct node *from, unsigned idle, struct node *best)
{
	bool breadth = false;

	if (idle >= w->saturation) {
		w->cut = true;
		return NULL;
	}
	for (unsigned i = 0; i < w->order.n && !breadth; i++) {
		unsigned move = w->order.v[(w->first + i) % w->order.n];

		if (over(w)) {
			w->cut = true;
			return NULL;
		}
		if (!w->s->lab->api->functions.v[function_of(w->s, move)].left_out)
			TRY(extend(w, from, move, idle, best, &breadth));
	}
	return NULL;
}

/* The calls of a chosen sequence that are new, each with the state it was made in. */
static err_t take_in(struct walk *w, const struct prefix *root, const struct node *best)
{
	struct prefix p = *root;

	for (unsigned i = 0; i < best->length && !lab_expired(w->s->lab); i++) {
		const struct seq *move = &w->s->moves.v[best->moves[i]];
		struct trace t;

		TRY(search_trace(w->s, &p, move, &t));
		unsigned trace = number_of(w, t.hash ^ t.shape);
		if (trace < MOST_TRACES && !has(&w->covered, trace)) {
			w->covered.w[trace / 64] |= 1ull << trace % 64;
			vec_push(&w->known, ((struct known){ p, best->moves[i], t }));
		} else {
			trace_free(&t);
		}
		seq_append(&p.s, move);
	}
	return NULL;
}

/* A call from the state that another one was made in, beside that one. */
static err_t pair_up(struct walk *w, const struct known *at, const struct known *other, struct trace *t, pairs_t *list)
{
	struct search *s = w->s;
	struct pair pair = { .prefix = &at->p, .move_a = &s->moves.v[at->move], .a = &at->trace,
			     .move_b = &s->moves.v[other->move], .b = t };

	TRY(search_trace(s, &at->p, pair.move_b, t));
	search_consider(s, pair, list);
	return NULL;
}

/* Call number i against each of those before it and itself, from the state of the one and from that of the other. */
static err_t assemble_one(struct walk *w, size_t i)
{
	struct trace *traces = xcalloc(2 * i + 1, sizeof *traces);
	const struct known *x = &w->known.v[i];
	pairs_t list = { 0 };
	err_t e = NULL;

	for (size_t k = 0; k <= i && !e && !lab_expired(w->s->lab); k++) {
		const struct known *y = &w->known.v[k];

		e = pair_up(w, x, y, &traces[2 * k], &list);
		if (!e && i != k)
			e = pair_up(w, y, x, &traces[2 * k + 1], &list);
	}
	if (!e)
		e = search_pairs(w->s, &list);
	for (size_t k = 0; k < 2 * i + 1; k++)
		trace_free(&traces[k]);
	free(traces);
	vec_free(&list);
	return e;
}

/* Each new call against each known one. */
static err_t assemble(struct walk *w, size_t first_new)
{
	err_t e = NULL;

	for (size_t i = first_new; i < w->known.n && !e && !w->s->done; i++)
		e = assemble_one(w, i);
	return e;
}

/* One iteration: *found: a sequence adds something, and its tests were explored. */
static err_t iterate(struct walk *w, const struct prefix *root, unsigned number, bool *found)
{
	struct node start = { .p = *root };
	struct test alone = search_test(root, NULL, NULL);
	size_t before = w->known.n;
	struct trace t;

	w->explored.n = 0;
	w->idle = 0;
	w->steps = 0;
	w->patience = PATIENCE + number * MORE_PATIENCE;
	w->cut = false;
	snprintf(w->s->where, sizeof w->s->where, "sequence %u, %zu traces of calls", number + 1, w->traces.n);
	w->first = number * ((unsigned)w->s->moves.n / 3 + 1);
	TRY(lab_trace(w->s->lab, &alone, JOB_A, &t));
	start.state = t.state;
	trace_free(&t);
	struct node best = start;
	vec_push(&w->explored, ((struct reached){ start.state, start.gain, 0 }));
	TRY(walk(w, &start, 0, &best));
	*found = size_of(&best.gain) > 0;
	if (!*found)
		return NULL;
	w->s->r->sequences++;
	TRY(take_in(w, root, &best));
	return assemble(w, before);
}

static void make_order(struct walk *w)
{
	const struct search *s = w->s;

	for (unsigned round = 0; w->order.n < s->moves.n; round++)
		for (size_t i = 0; i < s->moves.n; i++) {
			unsigned before = 0;

			for (size_t k = 0; k < i; k++)
				before += function_of(s, k) == function_of(s, i);
			if (before == round)
				vec_push(&w->order, (unsigned)i);
		}
}

err_t search_sequences(struct search *s)
{
	struct walk w = { .s = s };
	err_t e = NULL;

	make_order(&w);

	for (size_t root = 0; root < s->roots.n && !e && !s->done; root++) {
		w.saturation = SATURATION;
		for (unsigned i = 0; !e && !s->done && w.saturation <= MOST_SATURATION; i++) {
			bool found = false;

			e = iterate(&w, &s->roots.v[root], i, &found);
			s->done |= lab_expired(s->lab);
			if (!found && !w.cut)
				break; /* the whole tree was seen */
			w.saturation += !found;
		}
	}
	s->r->covered = size_of(&w.covered);
	vec_free(&w.order);
	vec_free(&w.traces);
	vec_free(&w.explored);
	for (size_t i = 0; i < w.known.n; i++)
		trace_free(&w.known.v[i].trace);
	vec_free(&w.known);
	return e;
}
