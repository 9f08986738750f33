/* Memory: which write each read sees. See encode.h for the formulas. */
#include "analyzer/schedule/encode.h"

#include <string.h>

/* The accesses of one variable in the window. */
struct var_use {
	VEC(uint32_t) writes; /* chain by chain, in chain order */
	VEC(uint32_t) reads;  /* those that matter */
	VEC(uint32_t) runs;   /* where in writes[] a new chain begins */
};

struct data {
	struct encoding *c;
	struct var_use *use;
	uint32_t *end;       /* by local index: end-of-lifetime node of a write */
	uint32_t init_end;   /* of the variable's value before the window */
	Z3_ast init_value;
	VEC(Z3_ast) choice;
};

static const struct order_view_event *ev(const struct data *d, uint32_t i)
{
	return &d->c->v->ev[i];
}

static uint32_t in(const struct data *d, uint32_t i)
{
	return d->c->in[d->c->w->local[i]];
}

static uint32_t out(const struct data *d, uint32_t i)
{
	return d->c->out[d->c->w->local[i]];
}

static uint32_t end(const struct data *d, uint32_t i)
{
	return d->end[d->c->w->local[i]];
}

static bool is_rmw(const struct data *d, uint32_t i)
{
	return ev(d, i)->e->op == SYM_RMW;
}

static void collect(struct data *d)
{
	const struct expr_pool *p = d->c->v->t->pool;

	for (uint32_t l = 0; l < d->c->w->n; l++) {
		uint32_t i = d->c->w->events[l];
		const struct sym_event *e = ev(d, i)->e;
		struct var_use *u;

		if (!order_reads(e) && !order_writes(e))
			continue;
		u = &d->use[e->target];
		if (order_reads(e) && e->symbol && d->c->needed[expr_get(p, e->symbol)->value])
			vec_push(&u->reads, i);
		if (!order_writes(e))
			continue;
		if (!u->writes.n || ev(d, u->writes.v[u->writes.n - 1])->chain != ev(d, i)->chain)
			vec_push(&u->runs, u->writes.n);
		vec_push(&u->writes, i);
	}
}

static size_t run_end(const struct var_use *u, size_t run)
{
	return run + 1 < u->runs.n ? u->runs.v[run + 1] : u->writes.n;
}

/* How many writes of the run must come before event i. */
static size_t writes_before(const struct data *d, const struct var_use *u, size_t run, uint32_t i)
{
	size_t lo = u->runs.v[run], hi = run_end(u, run);

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (encode_must(d->c, u->writes.v[mid], i))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo - u->runs.v[run];
}

static int by_place(const void *a, const void *b, void *window)
{
	const struct order_window *w = window;
	size_t x = w->place[w->local[*(const uint32_t *)a]], y = w->place[w->local[*(const uint32_t *)b]];

	return x < y ? -1 : x > y;
}

/*
 * In the order the window was made of a value lives until the next write: there its end is
 * put at first (an update reads before that and writes behind it).
 */
static void prefer_ends(struct data *d, const struct var_use *u)
{
	const struct order_window *w = d->c->w;
	uint32_t *sorted = xcalloc(u->writes.n + 1, sizeof *sorted);

	if (u->writes.n) {
		memcpy(sorted, u->writes.v, u->writes.n * sizeof *sorted);
		qsort_r(sorted, u->writes.n, sizeof *sorted, by_place, (void *)w);
	}
	for (size_t k = 0; k <= u->writes.n; k++) {
		uint64_t rank = UINT64_MAX;

		if (k < u->writes.n)
			rank = ENCODE_RANK(w->place[w->local[sorted[k]]]) + (is_rmw(d, sorted[k]) ? 1 : -1);
		order_acyclic_prefer(d->c->smt->g, k ? end(d, sorted[k - 1]) : d->init_end, rank);
	}
	free(sorted);
}

/* w before x: w's lifetime ends before x writes, and w comes before x reads. */
static void write_order(struct data *d, Z3_ast when, uint32_t w, uint32_t x)
{
	struct smt *s = d->c->smt;
	Z3_ast no = when ? smt_not(s, when) : d->c->no;

	smt_or2(s, no, smt_lt(s, end(d, w), out(d, x)));
	if (is_rmw(d, x))
		smt_or2(s, no, smt_lt(s, out(d, w), in(d, x)));
}

static void serialize_pair(struct data *d, uint32_t w, uint32_t x)
{
	Z3_ast first = smt_bool(d->c->smt);

	write_order(d, first, w, x);
	write_order(d, smt_not(d->c->smt, first), x, w);
}

/* Ordered by the trace: a static edge to the first later write of each chain is enough. */
static void serialize(struct data *d, const struct var_use *u)
{
	struct order_acyclic *g = d->c->smt->g;

	for (size_t r = 0; r < u->runs.n; r++)
		order_acyclic_static(g, d->init_end, out(d, u->writes.v[u->runs.v[r]]));
	for (size_t a = 0; a < u->writes.n; a++) {
		uint32_t w = u->writes.v[a];

		for (size_t r = 0; r < u->runs.n; r++) {
			size_t k = run_end(u, r);

			/* Backwards over those that must come later. */
			while (k > u->runs.v[r] && encode_must(d->c, w, u->writes.v[k - 1]))
				k--;
			if (k < run_end(u, r))
				order_acyclic_static(g, end(d, w), out(d, u->writes.v[k]));
			if (ev(d, u->writes.v[u->runs.v[r]])->chain <= ev(d, w)->chain)
				continue;
			for (; k > u->runs.v[r]; k--) {
				uint32_t x = u->writes.v[k - 1];

				if (encode_must(d->c, x, w))
					break;
				serialize_pair(d, w, x);
			}
		}
	}
}

static bool values_differ(const struct data *d, const struct sym_event *r, bool known,
			  uint64_t value)
{
	uint64_t s = expr_get(d->c->v->t->pool, r->symbol)->value;

	return known && d->c->is_known[s] && d->c->known[s] != value;
}

static bool constant(const struct data *d, expr_id e, uint64_t *v)
{
	const struct expr *n = expr_get(d->c->v->t->pool, e);

	if (n->op == EX_SYMBOL && d->c->is_known[n->value]) {
		*v = d->c->known[n->value];
		return true;
	}
	*v = n->value;
	return n->op == EX_CONST;
}

/* Overwritten between w and r whatever the order. */
static bool hidden(const struct data *d, const struct var_use *u, uint32_t w, uint32_t r)
{
	for (size_t run = 0; run < u->runs.n; run++) {
		size_t n = writes_before(d, u, run, r);
		uint32_t last;

		if (!n)
			continue;
		last = u->writes.v[u->runs.v[run] + n - 1];
		if (last != w && last != r && encode_must(d->c, w, last))
			return true;
	}
	return false;
}

/* TSO: the newest write of r's own thread before it in the program, in the window. */
static uint32_t own_write(const struct data *d, const struct var_use *u, uint32_t r)
{
	uint32_t found = SYM_NONE;

	if (d->c->v->model != SCHED_TSO)
		return SYM_NONE;
	for (size_t k = 0; k < u->writes.n; k++) {
		uint32_t w = u->writes.v[k];

		if (ev(d, w)->e->thread == ev(d, r)->e->thread && w < r &&
		    (found == SYM_NONE || w > found))
			found = w;
	}
	return found;
}

/* A choice for r: a new literal that implies value and places. */
static Z3_ast choose(struct data *d, uint32_t r, Z3_ast value, uint32_t until)
{
	struct smt *s = d->c->smt;
	Z3_ast pick = smt_bool(s);

	smt_implies(s, pick, Z3_mk_eq(s->z, smt_term(d->c->terms, ev(d, r)->e->symbol), value));
	smt_implies(s, pick, smt_lt(s, in(d, r), until));
	vec_push(&d->choice, pick);
	return pick;
}

static void choose_write(struct data *d, const struct var_use *u, uint32_t r, uint32_t w,
			 uint32_t own)
{
	struct smt *s = d->c->smt;
	bool forward = w == own;
	bool ordered = encode_must(d->c, w, r);
	uint64_t value;
	Z3_ast pick;

	if (w == r || encode_must(d->c, r, w) || (ordered && hidden(d, u, w, r)))
		return;
	/* Of its own thread a read sees the newest only. */
	if (own != SYM_NONE && !forward && ev(d, w)->e->thread == ev(d, r)->e->thread)
		return;
	if (constant(d, ev(d, w)->e->value, &value) &&
	    values_differ(d, ev(d, r)->e, true, value))
		return;
	pick = choose(d, r, smt_term(d->c->terms, ev(d, w)->e->value), end(d, w));
	if (!ordered && !forward)
		smt_implies(s, pick, smt_lt(s, out(d, w), in(d, r)));
	if (own != SYM_NONE && !forward)
		smt_implies(s, pick, encode_must(d->c, own, w) ? d->c->yes :
			    smt_lt(s, end(d, own), out(d, w)));
}

static void read_choices(struct data *d, const struct var_use *u, uint32_t r)
{
	uint32_t own = own_write(d, u, r);
	bool initial = own == SYM_NONE;
	uint32_t var = ev(d, r)->e->target;

	d->choice.n = 0;
	for (size_t run = 0; run < u->runs.n; run++) {
		size_t before = writes_before(d, u, run, r), k = u->runs.v[run];

		if (before)
			initial = false;
		for (k += before ? before - 1 : 0; k < run_end(u, run); k++) {
			if (encode_must(d->c, r, u->writes.v[k]) && u->writes.v[k] != r)
				break;
			choose_write(d, u, r, u->writes.v[k], own);
		}
	}
	if (initial && !values_differ(d, ev(d, r)->e, !d->c->init[var],
				      order_check_memory(d->c->w->start, var)))
		choose(d, r, d->init_value, d->init_end);
	smt_clause(d->c->smt, d->choice.v, d->choice.n);
}

static Z3_ast initial_value(struct data *d, uint32_t var)
{
	const struct sym_var *v = &d->c->v->t->vars[var];
	Z3_context z = d->c->smt->z;
	char name[32];

	if (!d->c->w->free_init)
		return smt_number(d->c, v->width, order_check_memory(d->c->w->start, var));
	if (v->has_init)
		return smt_term(d->c->terms, v->init);
	snprintf(name, sizeof name, "i%u", var);
	return d->c->init[var] = Z3_mk_const(z, Z3_mk_string_symbol(z, name),
		v->width == EXPR_INT ? Z3_mk_int_sort(z) : Z3_mk_bv_sort(z, v->width));
}

struct foreign {
	struct data *d;
	uint32_t write;
};

static void after_reader(void *arg, uint64_t symbol)
{
	struct foreign *f = arg;
	uint32_t r = f->d->c->v->reader[symbol];

	if (r != SYM_NONE && r != f->write && order_window_has(f->d->c->w, r))
		smt_assert(f->d->c->smt, encode_before(f->d->c, r, f->write));
}

void encode_data(struct encoding *c)
{
	struct data d = { .c = c };

	d.use = xcalloc(c->v->t->nvars + 1, sizeof *d.use);
	d.end = xcalloc(c->w->n + 1, sizeof *d.end);
	collect(&d);
	for (size_t var = 0; var < c->v->t->nvars; var++) {
		struct var_use *u = &d.use[var];

		if (u->reads.n) {
			d.init_end = order_acyclic_node(c->smt->g);
			d.init_value = initial_value(&d, var);
			for (size_t k = 0; k < u->writes.n; k++) {
				uint32_t w = u->writes.v[k];

				d.end[c->w->local[w]] = order_acyclic_node(c->smt->g);
				order_acyclic_static(c->smt->g, out(&d, w), end(&d, w));
			}
			prefer_ends(&d, u);
			serialize(&d, u);
			for (size_t k = 0; k < u->reads.n; k++)
				read_choices(&d, u, u->reads.v[k]);
		}
		vec_free(&u->writes);
		vec_free(&u->reads);
		vec_free(&u->runs);
	}
	for (uint32_t l = 0; l < c->w->n; l++) {
		struct foreign f = { &d, c->w->events[l] };

		if (ev(&d, f.write)->foreign)
			expr_symbols(c->v->t->pool, ev(&d, f.write)->e->value, after_reader, &f);
	}
	free(d.use);
	free(d.end);
	vec_free(&d.choice);
}
