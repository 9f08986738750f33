/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call sequences: joined, put into jobs, told in words. */
#include "analyzer/testgen/seq.h"

#include <string.h>

bool seq_append(struct seq *to, const struct seq *more)
{
	unsigned at = to->n;

	if (to->n + more->n > SEQ_CALLS)
		return false;
	for (unsigned i = 0; i < more->n; i++) {
		struct seq_call *c = &to->calls[to->n++];

		*c = more->calls[i];
		for (unsigned k = 0; k < c->nargs; k++)
			if (c->args[k].kind == SEQ_LOCAL)
				c->args[k].number += at;
	}
	return true;
}

unsigned test_calls(const struct test *t)
{
	unsigned n = t->prefix.n;

	for (unsigned i = 0; i < JOB_THREADS; i++)
		n += t->part[i].n;
	return n;
}

unsigned test_threads(const struct test *t)
{
	unsigned n = 0;

	while (n < JOB_THREADS && t->part[n].n)
		n++;
	return n;
}

unsigned test_first(const struct test *t, enum job_part part)
{
	unsigned n = 0;

	for (unsigned p = JOB_PREFIX; p < part; p++)
		n += test_part_of(t, p)->n;
	return n;
}

const struct seq *test_part_of(const struct test *t, enum job_part part)
{
	return part == JOB_PREFIX ? &t->prefix : part == JOB_POST ? &t->post : &t->part[part - JOB_A];
}

struct seq *test_part(struct test *t, enum job_part part)
{
	return (struct seq *)test_part_of(t, part);
}

static bool put_text(struct job *j, const char *text, int64_t *at)
{
	size_t n = strlen(text) + 1;

	if (n > sizeof j->text - j->ntext)
		return false;
	*at = j->ntext;
	memcpy(j->text + j->ntext, text, n);
	j->ntext += (uint32_t)n;
	return true;
}

int64_t seq_length(const struct seq_call *c, int64_t of)
{
	const struct seq_value *v = of >= 0 && of < (int64_t)c->nargs ? &c->args[of] : NULL;

	return !v ? 0 : v->text ? (int64_t)strlen(v->text) : v->kind == SEQ_BUFFER ? JOB_BUFFER - 1 : 0;
}

/* Addresses are those of the child: it is a copy of this process, and the job is in the same place. */
static int64_t field_value(struct job *j, const struct api_field *f, int64_t variant)
{
	int64_t v = api_field_value(f, (unsigned)variant), at = 0;
	double d = (double)v;
	float s = (float)v;

	if (f->kind == API_FUNCTION)
		return v ? (int64_t)child_stub(false) : 0;
	if (f->kind == API_TEXT)
		return v && put_text(j, "a", &at) ? (int64_t)(j->text + at) : 0;
	if (f->kind == API_FLOAT && f->size == 8)
		memcpy(&v, &d, sizeof d);
	else if (f->kind == API_FLOAT)
		v = 0, memcpy(&v, &s, sizeof s);
	return v;
}

static bool put_block(struct job *j, const struct api_object *o, int64_t variant, int64_t *at)
{
	unsigned char *bytes;

	if (o->size > sizeof j->text - j->ntext)
		return false;
	*at = j->ntext;
	bytes = (unsigned char *)j->text + j->ntext;
	memset(bytes, 0, o->size);
	j->ntext += (uint32_t)o->size;
	for (size_t i = 0; o->flat && i < o->fields.n; i++) {
		const struct api_field *f = &o->fields.v[i];
		int64_t v = field_value(j, f, variant);

		memcpy(bytes + f->offset, &v, f->size);
	}
	return true;
}

static struct job_arg *next_arg(struct job_call *to)
{
	return to->nargs < JOB_ARGS ? &to->args[to->nargs++] : NULL;
}

#define IN_REGISTERS 16 /* bytes of a structure; larger ones are on the stack */

/* A structure by value: its eightbytes in registers, all of them, or on the stack. */
static bool load_struct(const struct api *a, const struct api_type *t, int64_t variant, unsigned left_integer,
			unsigned left_vector, struct job *j, struct job_call *to)
{
	const struct api_object *o = &a->objects.v[t->object];
	unsigned words = (unsigned)(o->size + 7) / 8, integers = 0;
	bool integer[32] = { false };
	int64_t at, v;

	for (size_t i = 0; i < o->fields.n; i++)
		integer[o->fields.v[i].offset / 8] |= o->fields.v[i].kind != API_FLOAT;
	for (unsigned i = 0; i < words; i++)
		integers += integer[i];
	bool stack = o->size > IN_REGISTERS || integers > left_integer || words - integers > left_vector;
	if (!put_block(j, o, variant, &at))
		return false;
	for (unsigned i = 0; i < words; i++) {
		struct job_arg *arg = next_arg(to);
		size_t n = o->size - 8 * i < 8 ? o->size - 8 * i : 8;

		if (!arg)
			return false;
		v = 0;
		memcpy(&v, j->text + at + 8 * i, n);
		*arg = (struct job_arg){ .kind = JOB_NUMBER, .value = v,
					 .way = stack ? JOB_BY_STACK : integer[i] ? JOB_BY_INTEGER : JOB_BY_BITS };
	}
	return true;
}

static bool load_value(const struct api *a, const struct test *t, unsigned first, const struct seq_call *c, unsigned k,
		       struct job *j, struct job_arg *out)
{
	const struct seq_value *v = &c->args[k];
	const struct api_type *type = &a->functions.v[c->function].params[k];

	out->way = type->kind != API_FLOAT ? JOB_BY_INTEGER : type->size == 4 ? JOB_BY_SINGLE : JOB_BY_DOUBLE;
	switch (v->kind) {
	case SEQ_REAL:
		out->kind = JOB_REAL;
		memcpy(&out->value, &v->real, sizeof out->value);
		return true;
	case SEQ_TEXT: out->kind = JOB_TEXT_AT; return put_text(j, v->text, &out->value);
	case SEQ_STRING: out->kind = JOB_STRING; return put_text(j, v->text, &out->value);
	case SEQ_BUFFER:
		out->kind = JOB_BUFFER_OF;
		out->number = type->kind == API_SCALAR ? type->size : 0;
		out->size = v->text ? (uint32_t)strlen(v->text) + 1 : 0;
		return !v->text || put_text(j, v->text, &out->value);
	case SEQ_STUB: out->kind = JOB_STUB; break;
	case SEQ_OUT: out->kind = JOB_OUT; break;
	case SEQ_PLACE: out->kind = JOB_PLACE; break;
	case SEQ_SHARED: out->kind = JOB_RESULT; out->value = t->object_call; return true;
	case SEQ_LOCAL: out->kind = JOB_RESULT; out->value = (int64_t)first + v->number; return true;
	case SEQ_PREFIX: out->kind = JOB_RESULT; out->value = v->number; return true;
	case SEQ_LENGTH: out->kind = JOB_NUMBER; out->value = seq_length(c, v->number); return true;
	case SEQ_BLOCK:
		out->kind = JOB_BLOCK;
		out->size = (uint32_t)a->objects.v[type->object].size;
		return put_block(j, &a->objects.v[type->object], v->number, &out->value);
	default: out->kind = JOB_NUMBER; break;
	}
	out->value = v->number;
	return true;
}

#define INTEGER_REGISTERS 6
#define VECTOR_REGISTERS 8

static bool load_sets(const struct api_type *t, unsigned arg, struct job *j, struct job_call *to)
{
	for (size_t i = 0; i < t->sets.n; i++) {
		const struct api_set *s = &t->sets.v[i];
		struct job_set *out = &to->sets[to->nsets];

		if (to->nsets == JOB_SETS)
			return false;
		*out = (struct job_set){ .arg = (uint8_t)arg, .size = s->size, .offset = s->offset, .buffer = s->buffer,
					 .filled = s->text != NULL, .value = s->number };
		if (s->text && !put_text(j, s->text, &out->value))
			return false;
		to->nsets++;
	}
	return true;
}

static bool load_call(const struct api *a, const struct test *t, unsigned first, const struct seq_call *c, struct job *j,
		      struct job_call *to)
{
	const struct api_function *f = &a->functions.v[c->function];
	unsigned used[2] = { to->result_in_memory, 0 };

	for (unsigned k = 0; k < c->nargs; k++) {
		unsigned begin = to->nargs;
		struct job_arg *arg;

		if (!load_sets(&f->params[k], begin, j, to))
			return false;
		if (f->params[k].kind == API_STRUCT) {
			if (!load_struct(a, &f->params[k], c->args[k].number,
					 used[0] < INTEGER_REGISTERS ? INTEGER_REGISTERS - used[0] : 0,
					 used[1] < VECTOR_REGISTERS ? VECTOR_REGISTERS - used[1] : 0, j, to))
				return false;
		} else if (!(arg = next_arg(to)) || !load_value(a, t, first, c, k, j, arg)) {
			return false;
		}
		for (unsigned i = begin; i < to->nargs; i++)
			if (to->args[i].way != JOB_BY_STACK)
				used[to->args[i].way != JOB_BY_INTEGER]++;
	}
	if (seq_needs_end(f)) {
		struct job_arg *arg = next_arg(to);

		if (!arg)
			return false;
		*arg = (struct job_arg){ .kind = JOB_NUMBER, .way = JOB_BY_INTEGER };
	}
	return true;
}

/* A text in front of a variable number of arguments is a format, and ours ask for none. */
bool seq_needs_end(const struct api_function *f)
{
	return f->variadic && f->nparams && f->params[f->nparams - 1].kind != API_TEXT;
}

bool seq_result_in_memory(const struct api *a, const struct api_function *f)
{
	const struct api_type *r = &f->result;

	return (r->kind == API_STRING && r->size) || r->is_smart ||
	       (r->kind == API_STRUCT && a->objects.v[r->object].size > IN_REGISTERS);
}

static bool load_part(const struct api *a, const struct test *t, const struct seq *s, enum job_part part,
		      struct job *j)
{
	unsigned first = j->ncalls;

	for (unsigned i = 0; i < s->n; i++) {
		const struct seq_call *c = &s->calls[i];
		const struct api_function *f = &a->functions.v[c->function];

		if (j->ncalls == JOB_CALLS)
			return false;
		struct job_call *to = &j->calls[j->ncalls++];
		*to = (struct job_call){ .offset = f->offset, .part = (uint8_t)part,
					 .result = (uint8_t)f->result.kind, .result_size = f->result.size,
					 .result_signed = f->result.is_signed,
					 .result_in_memory = seq_result_in_memory(a, f) };
		if (!load_call(a, t, first, c, j, to))
			return false;
	}
	return true;
}

bool test_load(const struct api *a, const struct test *t, struct job *j)
{
	j->ncalls = j->ntext = j->norder = j->nsegments = 0;
	j->one_thread = j->want_state = j->fast = false;
	j->object_call = (int32_t)t->object_call;
	for (unsigned p = JOB_PREFIX; p < JOB_PARTS; p++)
		if (!load_part(a, t, test_part_of(t, p), p, j))
			return false;
	return true;
}

/* ---- in words ---- */

static void value_text(struct strbuf *b, const struct seq_call *c, const struct seq_value *v)
{
	switch (v->kind) {
	case SEQ_NUMBER: strbuf_fmt(b, "%ld", (long)v->number); break;
	case SEQ_REAL: strbuf_fmt(b, "%g", v->real); break;
	case SEQ_TEXT:
	case SEQ_STRING: strbuf_fmt(b, "\"%.20s%s\"", v->text, strlen(v->text) > 20 ? "..." : ""); break;
	case SEQ_BUFFER:
		if (!v->text)
			strbuf_str(b, "buffer");
		else
			strbuf_fmt(b, "buffer(\"%.20s%s\")", v->text, strlen(v->text) > 20 ? "..." : "");
		break;
	case SEQ_STUB: strbuf_str(b, "callback"); break;
	case SEQ_SHARED: strbuf_str(b, "shared"); break;
	case SEQ_LOCAL:
	case SEQ_PREFIX: strbuf_fmt(b, "%s%ld", v->kind == SEQ_PREFIX ? "p" : "v", (long)v->number); break;
	case SEQ_LENGTH: strbuf_fmt(b, "%ld", (long)seq_length(c, v->number)); break;
	case SEQ_BLOCK: strbuf_fmt(b, "{%s}", v->number == 2 ? "0" : v->number ? "8, ..." : "1, ..."); break;
	case SEQ_OUT:
	case SEQ_PLACE: strbuf_str(b, "&new"); break;
	}
}

/* Of a C++ name only what stands before the parameters. */
static size_t bare(const char *name)
{
	const char *end = strchr(name, '(');

	return end ? (size_t)(end - name) : strlen(name);
}

char *seq_call_text(const struct api *a, const struct seq *s, unsigned i)
{
	const struct seq_call *c = &s->calls[i];
	const char *name = a->functions.v[c->function].name;
	struct strbuf b = { 0 };

	strbuf_add(&b, name, bare(name));
	strbuf_char(&b, '(');
	for (unsigned k = 0; k < c->nargs; k++) {
		strbuf_str(&b, k ? ", " : "");
		value_text(&b, c, &c->args[k]);
	}
	strbuf_char(&b, ')');
	return strbuf_take(&b);
}

char *seq_text(const struct api *a, const struct seq *s)
{
	struct strbuf b = { 0 };

	for (unsigned i = 0; i < s->n; i++) {
		char *t = seq_call_text(a, s, i);

		strbuf_fmt(&b, "%s%s", i ? "; " : "", t);
		free(t);
	}
	return strbuf_take(&b);
}
