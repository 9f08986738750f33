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
	return t->prefix.n + t->a.n + t->b.n;
}

unsigned test_first(const struct test *t, enum job_part part)
{
	unsigned n = 0;

	n += part > JOB_PREFIX ? t->prefix.n : 0;
	n += part > JOB_A ? t->a.n : 0;
	n += part > JOB_B ? t->b.n : 0;
	return n;
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

static bool load_value(const struct test *t, unsigned first, const struct seq_value *v, struct job *j,
		       struct job_arg *out)
{
	switch (v->kind) {
	case SEQ_REAL:
		out->kind = JOB_REAL;
		memcpy(&out->value, &v->real, sizeof out->value);
		return true;
	case SEQ_TEXT: out->kind = JOB_TEXT_AT; return put_text(j, v->text, &out->value);
	case SEQ_STRING: out->kind = JOB_STRING; return put_text(j, v->text, &out->value);
	case SEQ_BUFFER: out->kind = JOB_BUFFER_OF; break;
	case SEQ_STUB: out->kind = JOB_STUB; break;
	case SEQ_OUT: out->kind = JOB_OUT; break;
	case SEQ_PLACE: out->kind = JOB_PLACE; break;
	case SEQ_SHARED: out->kind = JOB_RESULT; out->value = t->object_call; return true;
	case SEQ_LOCAL: out->kind = JOB_RESULT; out->value = (int64_t)first + v->number; return true;
	default: out->kind = JOB_NUMBER; break;
	}
	out->value = v->number;
	return true;
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
		*to = (struct job_call){ .offset = f->offset, .nargs = (uint8_t)c->nargs, .part = (uint8_t)part,
					 .result = (uint8_t)f->result.kind, .result_size = f->result.size,
					 .result_signed = f->result.is_signed };
		for (unsigned k = 0; k < c->nargs; k++) {
			bool real = f->params[k].kind == API_FLOAT;

			to->float_args |= (uint8_t)(real << k);
			to->single_args |= (uint8_t)((real && f->params[k].size == 4) << k);
			if (!load_value(t, first, &c->args[k], j, &to->args[k]))
				return false;
			if (c->args[k].kind == SEQ_BUFFER && f->params[k].kind == API_SCALAR)
				to->args[k].number = f->params[k].size;
		}
	}
	return true;
}

bool test_load(const struct api *a, const struct test *t, struct job *j)
{
	j->ncalls = j->ntext = j->norder = j->nsegments = 0;
	j->one_thread = j->want_state = j->fast = false;
	j->object_call = (int32_t)t->object_call;
	return load_part(a, t, &t->prefix, JOB_PREFIX, j) && load_part(a, t, &t->a, JOB_A, j) &&
	       load_part(a, t, &t->b, JOB_B, j) && load_part(a, t, &t->post, JOB_POST, j);
}

/* ---- in words ---- */

static void value_text(struct strbuf *b, const struct seq_value *v)
{
	switch (v->kind) {
	case SEQ_NUMBER: strbuf_fmt(b, "%ld", (long)v->number); break;
	case SEQ_REAL: strbuf_fmt(b, "%g", v->real); break;
	case SEQ_TEXT:
	case SEQ_STRING: strbuf_fmt(b, "\"%.20s%s\"", v->text, strlen(v->text) > 20 ? "..." : ""); break;
	case SEQ_BUFFER: strbuf_str(b, "buffer"); break;
	case SEQ_STUB: strbuf_str(b, "callback"); break;
	case SEQ_SHARED: strbuf_str(b, "shared"); break;
	case SEQ_LOCAL: strbuf_fmt(b, "v%ld", (long)v->number); break;
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
		value_text(&b, &c->args[k]);
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
