/*
 * What a counter can come to: that no order makes a sum large enough a solver would prove by
 * trying them all; adding up what there is to add tells it at once.
 */
#include "analyzer/schedule/work.h"

/* Everything a variable can hold lies in [lowest base + down, highest base + up]. */
struct range {
	bool known; /* ... unless something else is written there, or they are too many */
	uint64_t low, high; /* of the bases */
	uint64_t up, down;  /* sums of what is added and taken away */
};

static void base_at(struct range *r, uint64_t value, bool first)
{
	r->low = first || value < r->low ? value : r->low;
	r->high = first || value > r->high ? value : r->high;
}

static bool constant(const struct expr_pool *p, expr_id e, uint64_t *value)
{
	const struct expr *x = expr_get(p, e);

	*value = x->value;
	return x->op == EX_CONST;
}

/* Was it read from this variable? */
static bool read_from(const struct order_view *v, expr_id e, uint32_t var)
{
	const struct expr *x = expr_get(v->t->pool, e);
	uint32_t r = x->op == EX_SYMBOL ? v->reader[x->value] : SYM_NONE;

	return r != SYM_NONE && v->ev[r].e->target == var;
}

/*
 * Adds a constant to what was read there? Each such write counts once in a value at most, however
 * many updates are lost.
 */
static bool adds(const struct order_view *v, const struct sym_event *e, struct range *r)
{
	const struct expr *x = expr_get(v->t->pool, e->value);
	uint8_t width = v->t->vars[e->target].width;
	uint64_t mask = width < 64 ? (1ull << width) - 1 : UINT64_MAX, c = 0;
	bool fits = false;

	if (x->op == EX_ADD || x->op == EX_SUB)
		fits = read_from(v, x->a, e->target) && constant(v->t->pool, x->b, &c);
	if (!fits && x->op == EX_ADD)
		fits = read_from(v, x->b, e->target) && constant(v->t->pool, x->a, &c);
	if (!fits)
		return false;
	if (x->op == EX_SUB)
		c = -c & mask;
	if (c >> (width - 1) & 1)
		r->down += -c & mask;
	else
		r->up += c;
	/* What is too much stays so. */
	if (r->up > MOST_VALUES || r->down > MOST_VALUES)
		return false;
	return true;
}

static struct range range_of(const struct order_view *v, uint32_t var)
{
	const struct sym_trace *t = v->t;
	struct range r = { 0 };
	uint64_t c;

	if (!t->vars[var].has_init || t->vars[var].width > 64 || !constant(t->pool, t->vars[var].init, &c))
		return r;
	base_at(&r, c, true);
	for (uint32_t i = 0; i < v->n; i++) {
		const struct sym_event *e = v->ev[i].e;

		if (!order_writes(e) || e->target != var)
			continue;
		if (e->op == SYM_WRITE && constant(t->pool, e->value, &c))
			base_at(&r, c, false);
		else if (!adds(v, e, &r))
			return r;
	}
	/* Nothing may wrap round. */
	r.known = r.down <= r.low && r.high - r.low + r.up + r.down <= MOST_VALUES;
	if (r.known && t->vars[var].width < 64)
		r.known = r.high + r.up < 1ull << t->vars[var].width;
	return r;
}

struct only {
	uint64_t symbol;
	size_t n;
};

static void note_symbol(void *arg, uint64_t symbol)
{
	struct only *o = arg;

	o->n += !o->n || o->symbol != symbol;
	o->symbol = symbol;
}

bool range_always_fails(const struct order_view *v)
{
	const struct sym_failure *f = &v->t->failure;
	struct only o = { 0 };
	uint64_t *values;
	struct range r;
	bool always = true;

	if (!f->condition)
		return false;
	expr_symbols(v->t->pool, f->condition, note_symbol, &o);
	if (o.n != 1 || v->reader[o.symbol] == SYM_NONE)
		return false;
	r = range_of(v, v->ev[v->reader[o.symbol]].e->target);
	if (!r.known)
		return false;
	values = xcalloc(expr_symbol_count(v->t->pool) + 1, sizeof *values);
	for (uint64_t x = r.low - r.down; x <= r.high + r.up && always; x++) {
		values[o.symbol] = x;
		always = expr_eval(v->t->pool, f->condition, values) != 0;
	}
	free(values);
	return always;
}
