/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The values parameters are given, and the short sequences that bring a function's arguments about. */
#include "analyzer/testgen/seq.h"

#include <string.h>

#define CHOICES 10       /* values tried for one parameter */
#define AUXILIARY_DEPTH 2 /* objects made to make objects */

struct choices {
	struct seq_value v[CHOICES];
	unsigned n;
};

static void add(struct choices *c, struct seq_value v)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->v[i].kind == v.kind && c->v[i].number == v.number && c->v[i].text == v.text &&
		    c->v[i].real == v.real)
			return;
	if (c->n < CHOICES)
		c->v[c->n++] = v;
}

static void add_number(struct choices *c, int64_t v)
{
	add(c, (struct seq_value){ .kind = SEQ_NUMBER, .number = v });
}

static void add_text(struct choices *c, enum seq_value_kind kind, const char *s)
{
	add(c, (struct seq_value){ .kind = kind, .text = s });
}

static int64_t largest(const struct api_type *t)
{
	unsigned bits = t->size * 8u - (t->is_signed ? 1 : 0);

	return bits >= 63 ? INT64_MAX : (int64_t)((1ull << bits) - 1);
}

static void numbers(const struct seq_pools *p, const struct api_type *t, bool length, struct choices *c)
{
	if (length) {
		static const int64_t lengths[] = { 8, 0, 1, JOB_BUFFER - 1 };

		for (unsigned i = 0; i < 4; i++)
			add_number(c, lengths[i]);
		return;
	}
	for (size_t i = 0; i < t->values.n; i++)
		add_number(c, t->values.v[i]);
	if (t->is_enum)
		return;
	for (size_t i = 0; p->conf && i < p->conf->numbers.n; i++)
		add_number(c, p->conf->numbers.v[i]);
	if (!strcmp(t->spelling, "_Bool")) {
		add_number(c, 1);
		add_number(c, 0);
		return;
	}
	add_number(c, 1);
	add_number(c, 0);
	add_number(c, 2);
	add_number(c, t->is_signed ? -1 : largest(t));
	for (size_t i = 0; i < p->api->constants.n && c->n < CHOICES - 2; i++)
		if (p->api->constants.v[i] <= largest(t))
			add_number(c, p->api->constants.v[i]);
	add_number(c, 10);
	add_number(c, largest(t));
}

static void texts(const struct seq_pools *p, enum seq_value_kind kind, struct choices *c)
{
	for (size_t i = 0; p->conf && i < p->conf->texts.n; i++)
		add_text(c, kind, p->conf->texts.v[i]);
	add_text(c, kind, "a");
	add_text(c, kind, "bc");
	add_text(c, kind, "");
	add_text(c, kind, "a text that is longer than short texts are");
}

/* Makes an object of another type in front of the call; its result is the value. */
static bool make_object(const struct seq_pools *p, int object, struct seq *s, int depth, struct seq_value *out)
{
	seq_list_t roots = { 0 };

	if (depth > AUXILIARY_DEPTH)
		return false;
	seq_roots(p, object, 1, &roots);
	bool made = roots.n && s->n + roots.v[0].n < SEQ_CALLS;
	if (made) {
		struct seq_value last = { .kind = SEQ_LOCAL, .number = s->n + roots.v[0].n - 1 };

		made = seq_append(s, &roots.v[0]);
		*out = last;
	}
	vec_free(&roots);
	return made;
}

/* Parameter i of f: its choices; objects are made in s. */
static void choose(const struct seq_pools *p, const struct api_function *f, unsigned i, bool makes, struct seq *s,
		   struct choices *c)
{
	const struct api_type *t = &f->params[i];
	struct seq_value v;
	bool behind_pointer = i && (f->params[i - 1].kind == API_BYTES ||
				    (f->params[i - 1].kind == API_TEXT && !f->params[i - 1].is_const));

	c->n = 0;
	switch (t->kind) {
	case API_INT: numbers(p, t, behind_pointer, c); break;
	case API_FLOAT:
		for (int n = 1; n >= -1; n--)
			add(c, (struct seq_value){ .kind = SEQ_REAL, .real = n });
		add(c, (struct seq_value){ .kind = SEQ_REAL, .real = 1e9 });
		break;
	case API_TEXT:
		if (t->is_const)
			texts(p, SEQ_TEXT, c);
		else
			add(c, (struct seq_value){ .kind = SEQ_BUFFER });
		break;
	case API_BYTES:
	case API_SCALAR: add(c, (struct seq_value){ .kind = SEQ_BUFFER }); break;
	case API_OUT: add(c, (struct seq_value){ .kind = SEQ_OUT }); break;
	case API_FUNCTION:
		add(c, (struct seq_value){ .kind = SEQ_STUB, .number = 0 });
		add(c, (struct seq_value){ .kind = SEQ_STUB, .number = 1 });
		break;
	case API_STRING: texts(p, SEQ_STRING, c); break;
	case API_OBJECT:
		/* One of the type under test is the shared one itself, and then another one. */
		if (!makes && t->object == p->object)
			add(c, (struct seq_value){ .kind = SEQ_SHARED });
		if (make_object(p, t->object, s, makes ? AUXILIARY_DEPTH : 1, &v))
			add(c, v);
		break;
	default: break;
	}
	if (t->kind == API_FUNCTION || t->kind == API_OBJECT || t->kind == API_BYTES || (t->kind == API_TEXT && t->is_const))
		add_number(c, 0);
}

/*
 * All parameters at their first choice, then one at a time at its others, then all of them at their second:
 * what matters is mostly one value at a time.
 */
static void combine(const struct seq_pools *p, int function, bool makes, unsigned most, seq_list_t *out)
{
	const struct api_function *f = &p->api->functions.v[function];
	struct choices c[API_PARAMS];
	struct seq base = { 0 };
	struct seq_call call = { .function = function, .nargs = f->nparams };
	unsigned made = 0;

	for (unsigned i = 0; i < f->nparams; i++) {
		bool self = i == f->self && f->object != API_NONE && f->params[i].kind != API_INT;

		c[i].n = 0;
		if (self && f->role == API_INITIALISER)
			add(&c[i], (struct seq_value){ .kind = SEQ_PLACE,
						       .number = (int64_t)p->api->objects.v[f->object].size });
		else if (self && (f->role == API_METHOD || f->role == API_DESTRUCTOR))
			add(&c[i], (struct seq_value){ .kind = SEQ_SHARED });
		else
			choose(p, f, i, makes, &base, &c[i]);
		if (!c[i].n)
			return;
		call.args[i] = c[i].v[0];
	}
	if (base.n >= SEQ_CALLS)
		return;
	unsigned at = base.n++;
	base.calls[at] = call;
	vec_push(out, base);
	made++;
	for (unsigned k = 1; k < CHOICES && made < most; k++)
		for (unsigned i = 0; i < f->nparams && made < most; i++) {
			if (k >= c[i].n)
				continue;
			struct seq s = base;
			s.calls[at].args[i] = c[i].v[k];
			vec_push(out, s);
			made++;
		}
}

void seq_roots(const struct seq_pools *p, int object, unsigned most, seq_list_t *out)
{
	static const enum api_role roles[] = { API_CONSTRUCTOR, API_FILLER, API_INITIALISER };
	static int depth;
	size_t before = out->n;

	if (depth > AUXILIARY_DEPTH)
		return;
	depth++;
	for (unsigned r = 0; r < 3; r++)
		for (int f = api_next(p->api, object, roles[r], 0); f != API_NONE && out->n - before < most;
		     f = api_next(p->api, object, roles[r], f + 1))
			combine(p, f, true, most - (unsigned)(out->n - before), out);
	depth--;
}

void seq_moves(const struct seq_pools *p, int function, unsigned most, seq_list_t *out)
{
	combine(p, function, false, most, out);
}

bool seq_ending(const struct seq_pools *p, struct seq *out)
{
	seq_list_t all = { 0 };
	int f = api_next(p->api, p->object, API_DESTRUCTOR, 0);

	if (f != API_NONE)
		combine(p, f, false, 1, &all);
	bool found = all.n && all.v[0].n == 1;
	*out = (struct seq){ 0 };
	if (found)
		*out = all.v[0];
	vec_free(&all);
	return found;
}
