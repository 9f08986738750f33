/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The values parameters are given, and the short sequences that bring a function's arguments about. */
#include "analyzer/testgen/seq.h"

#include <string.h>
#include <strings.h>

#define CHOICES 10       /* values tried for one parameter */
#define NOBODY API_PARAMS  /* no parameter is the shared object */
#define ROOTS_OF_ONE 10     /* calls of one constructor */
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

/* Does the name say that it is a length? */
static bool is_length_word(const char *name)
{
	static const char *const words[] = { "len", "length", "size", "n", "count", "bytes", "nbytes", "room", "num", "cap",
					     "sz", "capacity", "max", NULL };
	size_t n = strlen(name);

	for (unsigned i = 0; words[i]; i++) {
		size_t w = strlen(words[i]);

		/* "buf_len", "bufLen", "buflen"; not "pollen" beside a word of its own, but who has that behind a buffer? */
		if (n >= w && !strcasecmp(name + n - w, words[i]) && (n == w || w > 2))
			return true;
	}
	return false;
}

/* The pointer that parameter i is the length of, or API_NONE. */
static int pointer_of(const struct api_function *f, unsigned i)
{
	const struct api_type *t = &f->params[i], *before = i ? &f->params[i - 1] : NULL;

	if (t->length_of)
		return (int)t->length_of - 1;
	if (!before || t->is_enum || before->kind == API_SCALAR || before->kind == API_OBJECT)
		return API_NONE;
	bool points = before->kind == API_BYTES || before->kind == API_TEXT;
	bool named = t->name ? is_length_word(t->name) : t->size == 8 && !t->is_signed;
	/* Nothing is known of what void * is: behind it any number may be a length. */
	return points && (named || (before->kind == API_BYTES && !t->name) ||
			  (before->kind == API_TEXT && !before->is_const && !t->name)) ? (int)i - 1 : API_NONE;
}

static void lengths(const struct api_function *f, unsigned of, struct choices *c)
{
	static const int64_t values[] = { 8, 0, 1, JOB_BUFFER - 1 };
	const struct api_type *t = &f->params[of];

	if (t->kind == API_TEXT && (t->is_const || t->texts.n)) {
		add(c, (struct seq_value){ .kind = SEQ_LENGTH, .number = of });
		add_number(c, 0);
		add_number(c, 1);
		return;
	}
	if (t->texts.n)
		add(c, (struct seq_value){ .kind = SEQ_LENGTH, .number = of });
	for (unsigned i = 0; i < 4; i++)
		add_number(c, values[i]);
}

static void numbers(const struct seq_pools *p, const struct api_type *t, struct choices *c)
{
	for (size_t i = 0; i < t->numbers.n; i++)
		add_number(c, t->numbers.v[i]);
	if (t->numbers.n)
		return;
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
	/* A comparison has two sides, and its constant may be the last or the first number of one. */
	for (size_t i = 0; i < p->api->constants.n && c->n < CHOICES - 2; i++)
		for (int64_t v = p->api->constants.v[i]; v <= p->api->constants.v[i] + 1; v++)
			if (v <= largest(t) && c->n < CHOICES - 2)
				add_number(c, v);
	add_number(c, 10);
	add_number(c, largest(t));
}

static void texts(const struct seq_pools *p, const struct api_type *t, enum seq_value_kind kind, struct choices *c)
{
	for (size_t i = 0; i < t->texts.n; i++)
		add_text(c, kind, t->texts.v[i]);
	if (t->texts.n)
		return;
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

/* A structure that no function makes: the caller fills it in. */
static void add_blocks(const struct api_object *o, struct choices *c)
{
	static const int64_t variants[API_VARIANTS] = { 0, 2, 1 };

	for (unsigned i = 0; i < (o->flat ? API_VARIANTS : 1); i++)
		add(c, (struct seq_value){ .kind = SEQ_BLOCK, .number = variants[i] });
}

/* A parameter that is an object, and not the one that the function is a method of. */
static void objects(const struct seq_pools *p, const struct api_type *t, bool makes, struct seq *s, struct choices *c)
{
	const struct api_object *o = &p->api->objects.v[t->object];
	struct seq_value v;

	/* One of the type under test is the shared one itself, and then another one. */
	if (!makes && t->object == p->object && !t->takes)
		add(c, (struct seq_value){ .kind = SEQ_SHARED });
	if (make_object(p, t->object, s, makes ? AUXILIARY_DEPTH : 1, &v))
		add(c, v);
	else if (o->size && o->size <= JOB_BLOCK_BYTES && !o->cxx && !api_is_made(p->api, t->object))
		add_blocks(o, c);
	for (unsigned i = 0; i < p->nhelpers && !makes && !t->takes; i++)
		if (p->helpers[i].object == t->object)
			add(c, (struct seq_value){ .kind = SEQ_PREFIX, .number = p->helpers[i].call });
}

/* Parameter i of f: its choices; objects are made in s. */
static void choose(const struct seq_pools *p, const struct api_function *f, unsigned i, bool makes, struct seq *s,
		   struct choices *c)
{
	const struct api_type *t = &f->params[i];
	int pointer = t->kind == API_INT && !t->numbers.n ? pointer_of(f, i) : API_NONE;

	c->n = 0;
	switch (t->kind) {
	case API_INT:
		if (pointer != API_NONE)
			lengths(f, (unsigned)pointer, c);
		else
			numbers(p, t, c);
		break;
	case API_FLOAT:
		for (int n = 1; n >= -1; n--)
			add(c, (struct seq_value){ .kind = SEQ_REAL, .real = n });
		add(c, (struct seq_value){ .kind = SEQ_REAL, .real = 1e9 });
		break;
	case API_TEXT:
		if (t->is_const)
			texts(p, t, SEQ_TEXT, c);
		for (size_t k = 0; !t->is_const && k < t->texts.n; k++)
			add_text(c, SEQ_BUFFER, t->texts.v[k]);
		if (!c->n)
			add(c, (struct seq_value){ .kind = SEQ_BUFFER });
		break;
	case API_BYTES:
		for (size_t k = 0; k < t->texts.n; k++)
			add_text(c, SEQ_BUFFER, t->texts.v[k]);
		if (!c->n)
			add(c, (struct seq_value){ .kind = SEQ_BUFFER });
		break;
	case API_SCALAR: add(c, (struct seq_value){ .kind = SEQ_BUFFER }); break;
	case API_OUT: add(c, (struct seq_value){ .kind = SEQ_OUT }); break;
	case API_FUNCTION:
		add(c, (struct seq_value){ .kind = SEQ_STUB, .number = 0 });
		add(c, (struct seq_value){ .kind = SEQ_STUB, .number = 1 });
		break;
	case API_STRING: texts(p, t, SEQ_STRING, c); break;
	case API_STRUCT: add_blocks(&p->api->objects.v[t->object], c); break;
	case API_OBJECT: objects(p, t, makes, s, c); break;
	default: break;
	}
	/* NULL comes last, but where testgen.conf has the values it comes from there. */
	if (t->kind == API_FUNCTION || t->kind == API_OBJECT ||
	    ((t->kind == API_BYTES || t->kind == API_TEXT) && t->numbers.n) ||
	    (!t->texts.n && (t->kind == API_BYTES || (t->kind == API_TEXT && t->is_const))))
		add_number(c, 0);
}

static bool for_move; /* what the shared object hands out is asked of that */

/* Parameter i as the object that the function works on; false: it is none. */
static bool choose_self(const struct seq_pools *p, const struct api_function *f, unsigned i, unsigned shared, struct seq *s,
			struct choices *c)
{
	struct seq_value made;

	c->n = 0;
	if (i == shared && f->role == API_INITIALISER)
		add(c, (struct seq_value){ .kind = SEQ_PLACE, .number = (int64_t)p->api->objects.v[f->object].size });
	else if (i == shared)
		add(c, (struct seq_value){ .kind = SEQ_SHARED });
	else if (i == f->self && shared == NOBODY && for_move && f->object == p->object)
		add(c, (struct seq_value){ .kind = SEQ_SHARED });
	else if (i == f->self && make_object(p, f->object, s, 1, &made))
		add(c, made);
	else
		return false;
	return true;
}

/*
 * All parameters at their first choice, then one at a time at its others, then all of them at their second:
 * what matters is mostly one value at a time. The object under test is parameter `shared`.
 */
static void combine(const struct seq_pools *p, int function, unsigned shared, bool makes, unsigned most, seq_list_t *out)
{
	const struct api_function *f = &p->api->functions.v[function];
	struct choices c[API_PARAMS];
	struct seq base = { 0 };
	struct seq_call call = { .function = function, .nargs = f->nparams };
	unsigned made = 0;

	for (unsigned i = 0; i < f->nparams; i++) {
		bool works_on_it = f->role == API_INITIALISER || f->role == API_METHOD || f->role == API_DESTRUCTOR;

		if (!works_on_it || !choose_self(p, f, i, shared, &base, &c[i]))
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

/* Each constructor's first call, then each one's second ...: some refuse all values. At most so many behind `from`. */
static void take_turns(seq_list_t *l, size_t from, unsigned most)
{
	seq_list_t sorted = { 0 };

	for (unsigned round = 0; round < ROOTS_OF_ONE && sorted.n < most; round++) {
		unsigned nth = 0;
		int last = API_NONE;

		for (size_t i = from; i < l->n && sorted.n < most; i++) {
			const struct seq *s = &l->v[i];
			int function = s->n ? s->calls[s->n - 1].function : API_NONE;

			nth = function == last ? nth + 1 : 0;
			last = function;
			if (nth == round)
				vec_push(&sorted, *s);
		}
	}
	l->n = from;
	for (size_t i = 0; i < sorted.n; i++)
		vec_push(l, sorted.v[i]);
	vec_free(&sorted);
}

void seq_roots(const struct seq_pools *p, int object, unsigned most, seq_list_t *out)
{
	static const enum api_role roles[] = { API_CONSTRUCTOR, API_FILLER, API_INITIALISER };
	static int depth;
	size_t before = out->n;

	if (object == p->api->globals)
		vec_push(out, (struct seq){ 0 });

	if (depth > AUXILIARY_DEPTH)
		return;
	depth++;
	for (unsigned r = 0; r < 3; r++)
		for (int f = api_next(p->api, object, roles[r], 0); f != API_NONE; f = api_next(p->api, object, roles[r], f + 1))
			combine(p, f, p->api->functions.v[f].self, true, most < ROOTS_OF_ONE ? most : ROOTS_OF_ONE, out);
	take_turns(out, before, most);
	/* What another object hands out: a cursor of a table. */
	for (size_t f = 0; f < p->api->functions.n && out->n == before; f++)
		if (api_hands_out(&p->api->functions.v[f], object))
			combine(p, (int)f, NOBODY, true, most, out);
	depth--;
}

/* Types that the functions of the one under test work on, and nobody else: nodes of a list, say. */
static bool is_helper(const struct seq_pools *p, int object)
{
	bool passed = false;

	for (size_t i = 0; i < p->api->functions.n; i++) {
		const struct api_function *f = &p->api->functions.v[i];

		for (unsigned k = 0; api_is_move(p->api, f, p->object) && k < f->nparams; k++)
			passed |= k != f->self && f->params[k].kind == API_OBJECT && f->params[k].object == object &&
				  !f->params[k].takes;
	}
	return passed && object != p->object && !api_has_methods(p->api, object);
}

void seq_helpers(struct seq_pools *p, struct seq *setup)
{
	for (size_t o = 0; o < p->api->objects.n && p->nhelpers < SEQ_HELPERS; o++) {
		seq_list_t roots = { 0 };

		if (is_helper(p, (int)o) && p->object != p->api->globals)
			seq_roots(p, (int)o, 1, &roots);
		if (roots.n && setup->n + roots.v[0].n < SEQ_CALLS / 2 && seq_append(setup, &roots.v[0]))
			p->helpers[p->nhelpers++] = (struct seq_helper){ (int)o, setup->n - 1 };
		vec_free(&roots);
	}
}

void seq_moves(const struct seq_pools *p, int function, unsigned most, seq_list_t *out)
{
	const struct api_function *f = &p->api->functions.v[function];

	for_move = true;
	combine(p, function, f->self, false, most, out);
	/* Another object works on the one under test: append(other, shared). */
	for (unsigned i = 0; i < f->nparams && f->role == API_METHOD; i++)
		if (i != f->self && f->params[i].kind == API_OBJECT && f->params[i].object == p->object)
			combine(p, function, i, false, 1, out);
	for_move = false;
}

#define MOST_LOOKS 4

/* A call that needs nothing but the object: it may stumble over what the threads have left. */
static bool looks(const struct seq_pools *p, const struct api_function *f)
{
	bool simple = api_is_move(p->api, f, p->object) && f->nparams <= 2 && p->object != p->api->globals;

	for (unsigned k = 0; k < f->nparams && simple; k++)
		simple = k == f->self || f->params[k].kind == API_INT || f->params[k].kind == API_SCALAR ||
			 f->params[k].kind == API_STRING || (f->params[k].kind == API_TEXT && f->params[k].is_const);
	return simple;
}

void seq_looks(const struct seq_pools *p, struct seq *out)
{
	/* Those with the fewest parameters first. */
	for (unsigned n = 1; n <= 2; n++)
		for (size_t i = 0; i < p->api->functions.n; i++) {
			seq_list_t all = { 0 };

			if (p->api->functions.v[i].nparams != n || out->n == MOST_LOOKS || !looks(p, &p->api->functions.v[i]))
				continue;
			combine(p, (int)i, p->api->functions.v[i].self, false, 1, &all);
			if (all.n && all.v[0].n == 1)
				seq_append(out, &all.v[0]);
			vec_free(&all);
		}
}

bool seq_ending(const struct seq_pools *p, struct seq *out)
{
	seq_list_t all = { 0 };
	int f = api_next(p->api, p->object, API_DESTRUCTOR, 0);

	if (f != API_NONE)
		combine(p, f, p->api->functions.v[f].self, false, 1, &all);
	bool found = all.n && all.v[0].n == 1;
	*out = (struct seq){ 0 };
	if (found)
		*out = all.v[0];
	vec_free(&all);
	return found;
}
