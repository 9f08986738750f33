/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A test as a C program of its own: declarations, the calls before, two threads, the calls after. */
#include "analyzer/testgen/emit.h"

#include <string.h>

struct emitter {
	FILE *f;
	const struct api *a;
	const struct test *t;
	unsigned first;  /* number of the first call of the part at hand */
	bool prints;     /* what the threads' calls return */
	bool strings;    /* some value is a std::string */
};

static const struct seq *part_of(const struct test *t, unsigned part)
{
	const struct seq *parts[] = { &t->prefix, &t->a, &t->b, &t->post };

	return parts[part];
}

static bool uses(const struct test *t, int function)
{
	for (unsigned p = 0; p < JOB_PARTS; p++)
		for (unsigned i = 0; i < part_of(t, p)->n; i++)
			if (part_of(t, p)->calls[i].function == function)
				return true;
	return false;
}

static bool uses_kind(const struct test *t, enum seq_value_kind kind)
{
	for (unsigned p = 0; p < JOB_PARTS; p++)
		for (unsigned i = 0; i < part_of(t, p)->n; i++)
			for (unsigned k = 0; k < part_of(t, p)->calls[i].nargs; k++)
				if (part_of(t, p)->calls[i].args[k].kind == kind)
					return true;
	return false;
}

/* ---- declarations ---- */

static void function_name(struct emitter *e, const struct api_function *f)
{
	const char *end = f->cxx ? strchr(f->name, '(') : NULL;

	if (!f->cxx) {
		fputs(f->symbol, e->f);
		return;
	}
	/* log::Logger::~Logger(): letters and digits, a tilde told as "end". */
	for (const char *p = f->name; *p && p != end; p++)
		if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '_')
			fputc(*p, e->f);
		else if (*p == '~')
			fputs("end_", e->f);
		else if (*p == ':' && p[1] == ':')
			fputc('_', e->f);
	/* Overloads have different symbols. */
	fprintf(e->f, "_%x", (unsigned)(f->offset & 0xffff));
}

static void declare_types(struct emitter *e)
{
	for (size_t o = 0; o < e->a->objects.n; o++) {
		bool used = false;

		for (size_t i = 0; i < e->a->functions.n && !used; i++) {
			const struct api_function *f = &e->a->functions.v[i];

			if (!uses(e->t, (int)i))
				continue;
			used = (f->result.kind == API_OBJECT && f->result.object == (int)o);
			for (unsigned k = 0; k < f->nparams; k++)
				used |= f->params[k].object == (int)o;
		}
		if (used)
			fprintf(e->f, "struct %s;\n", e->a->objects.v[o].c_name);
	}
}

static bool returns_string(const struct api_function *f)
{
	return f->result.kind == API_STRING && f->result.size;
}

static void declare_functions(struct emitter *e)
{
	for (size_t i = 0; i < e->a->functions.n; i++) {
		const struct api_function *f = &e->a->functions.v[i];

		if (!uses(e->t, (int)i))
			continue;
		const char *r = returns_string(f) ? "void" : f->result.spelling;
		fprintf(e->f, "%s%s", r, r[strlen(r) - 1] == '*' ? "" : " ");
		function_name(e, f);
		fputc('(', e->f);
		if (returns_string(f))
			fprintf(e->f, "void *result%s", f->nparams ? ", " : "");
		for (unsigned k = 0; k < f->nparams; k++)
			fprintf(e->f, "%s%s", k ? ", " : "", f->params[k].spelling);
		fputs(f->nparams || returns_string(f) ? ")" : "void)", e->f);
		if (f->cxx)
			fprintf(e->f, " __asm__(\"%s\")", f->symbol);
		fputs(";\n", e->f);
	}
}

static void helpers(struct emitter *e)
{
	e->strings = uses_kind(e->t, SEQ_STRING);
	for (size_t i = 0; i < e->a->functions.n; i++)
		e->strings |= uses(e->t, (int)i) && returns_string(&e->a->functions.v[i]);
	if (e->strings)
		fputs("\n/* std::string as libstdc++ lays it out. */\n"
		      "struct string { char *text; unsigned long length; char here[16]; };\n\n"
		      "static struct string *string(const char *text)\n{\n"
		      "\tstruct string *s = calloc(1, sizeof *s);\n\n"
		      "\ts->length = strlen(text);\n"
		      "\ts->text = s->length < sizeof s->here ? s->here : malloc(s->length + 1);\n"
		      "\tmemcpy(s->text, text, s->length + 1);\n\treturn s;\n}\n", e->f);
	if (uses_kind(e->t, SEQ_BUFFER))
		fprintf(e->f, "\n/* A buffer of %d bytes. */\nstatic void *buffer(void)\n{\n"
			"\tstatic char buffers[64][%d];\n\tstatic int n;\n\tchar *b = buffers[__atomic_fetch_add(&n, 1, "
			"__ATOMIC_RELAXED) %% 64];\n\n\tfor (int i = 0; i < %d; i++)\n\t\tb[i] = (char)(i + 1);\n"
			"\treturn b;\n}\n", JOB_BUFFER, JOB_BUFFER, JOB_BUFFER - 1);
	if (uses_kind(e->t, SEQ_STUB))
		fputs("\nstatic long callback0(void) { return 0; }\nstatic long callback1(void) { return 1; }\n", e->f);
}

/* ---- calls ---- */

static void text_literal(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < 32 || (unsigned char)*s > 126)
			fprintf(f, "\\%03o", (unsigned char)*s);
		else
			fputc(*s, f);
	fputc('"', f);
}

static void number(FILE *f, const struct api_type *t, int64_t v)
{
	if (t->kind != API_INT) {
		fputs(v ? "(void *)1" : "NULL", f);
		return;
	}
	if (v == INT64_MIN)
		fputs("(-9223372036854775807L - 1)", f);
	else
		fprintf(f, "%ld%s", (long)v, v > INT32_MAX || v < INT32_MIN ? "L" : "");
}

static void value(struct emitter *e, const struct api_function *f, unsigned k, unsigned call, const struct seq_value *v)
{
	const struct api_type *t = &f->params[k];

	switch (v->kind) {
	case SEQ_NUMBER: number(e->f, t, v->number); break;
	case SEQ_REAL: fprintf(e->f, "%.1f", v->real); break;
	case SEQ_TEXT: text_literal(e->f, v->text); break;
	case SEQ_STRING:
		fputs("string(", e->f);
		text_literal(e->f, v->text);
		fputc(')', e->f);
		break;
	case SEQ_BUFFER: fputs("buffer()", e->f); break;
	case SEQ_STUB: fprintf(e->f, "(void *)callback%d", v->number != 0); break;
	case SEQ_SHARED: fputs("shared", e->f); break;
	case SEQ_LOCAL: fprintf(e->f, "v%u", e->first + (unsigned)v->number); break;
	case SEQ_OUT: fprintf(e->f, "(void *)&v%u", call); break;
	case SEQ_PLACE: fprintf(e->f, "(void *)place%u", call); break;
	}
}

/* Is the result of this call asked for? */
static bool is_used(const struct emitter *e, const struct seq *s, unsigned i, bool prefix)
{
	if (prefix && i == e->t->object_call)
		return true;
	for (unsigned k = i + 1; k < s->n; k++)
		for (unsigned n = 0; n < s->calls[k].nargs; n++)
			if (s->calls[k].args[n].kind == SEQ_LOCAL && s->calls[k].args[n].number == i)
				return true;
	return false;
}

static const struct seq_value *special(const struct seq_call *c, unsigned *at)
{
	for (*at = 0; *at < c->nargs; ++*at)
		if (c->args[*at].kind == SEQ_OUT || c->args[*at].kind == SEQ_PLACE)
			return &c->args[*at];
	return NULL;
}

static void call(struct emitter *e, const struct seq *s, unsigned i, bool prefix)
{
	const struct seq_call *c = &s->calls[i];
	const struct api_function *f = &e->a->functions.v[c->function];
	unsigned n = e->first + i, at;
	const struct seq_value *made = special(c, &at);
	bool used = is_used(e, s, i, prefix);
	char name[24];

	snprintf(name, sizeof name, prefix && i == e->t->object_call ? "shared" : "v%u", n);
	if (made && made->kind == SEQ_PLACE)
		fprintf(e->f, "\tstatic _Alignas(64) char place%u[%ld];\n", n, (long)made->number);
	if (made && made->kind == SEQ_OUT)
		fprintf(e->f, "\tstatic void *v%u;\n", n);
	/* Where memory lies is no answer. */
	bool prints = e->prints && !prefix && !used && !made && f->result.kind == API_INT;
	fputc('\t', e->f);
	if (prints)
		fprintf(e->f, "printf(\"%u: %%ld\\n\", (long)", n);
	if (used && !made && f->result.kind != API_VOID)
		fprintf(e->f, "%s%s = ", strcmp(name, "shared") ? "void *" : "", name);
	function_name(e, f);
	fputc('(', e->f);
	if (returns_string(f))
		fprintf(e->f, "string(\"\")%s", c->nargs ? ", " : "");
	for (unsigned k = 0; k < c->nargs; k++) {
		if (k)
			fputs(", ", e->f);
		value(e, f, k, n, &c->args[k]);
	}
	fputs(prints ? "));\n" : ");\n", e->f);
	if (used && made && made->kind == SEQ_PLACE)
		fprintf(e->f, "\t%s%s = (void *)place%u;\n", strcmp(name, "shared") ? "void *" : "", name, n);
	else if (used && made && !strcmp(name, "shared"))
		fprintf(e->f, "\tshared = v%u;\n", n);
}

static void calls(struct emitter *e, unsigned part)
{
	const struct seq *s = part_of(e->t, part);

	e->first = test_first(e->t, part);
	for (unsigned i = 0; i < s->n; i++)
		call(e, s, i, part == JOB_PREFIX);
}

void emit_test(const struct api *a, const struct test *t, const char *remark, bool prints, FILE *f)
{
	struct emitter e = { .f = f, .a = a, .t = t, .prints = prints };

	fprintf(f, "/*\n%s */\n#include <malloc.h>\n#include <pthread.h>\n#include <stddef.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
		"#include <string.h>\n\n", remark);
	declare_types(&e);
	declare_functions(&e);
	fputs("\nstatic void *shared;\nstatic pthread_barrier_t both_done; /* a thread that ends frees memory of its own */\n", f);
	helpers(&e);
	fputs("\nstatic void *thread_a(void *unused)\n{\n", f);
	calls(&e, JOB_A);
	fputs("\tpthread_barrier_wait(&both_done);\n\treturn unused;\n}\n\nstatic void *thread_b(void *unused)\n{\n", f);
	calls(&e, JOB_B);
	fputs("\tpthread_barrier_wait(&both_done);\n\treturn unused;\n}\n\nint main(void)\n{\n\tpthread_t a, b;\n\n"
	      "\tmallopt(M_PERTURB, 0xa5); /* memory that is freed or fresh holds a pattern */\n"
	      "\tmallopt(M_ARENA_MAX, 1);   /* one heap for all threads */\n", f);
	calls(&e, JOB_PREFIX);
	fputs("\tpthread_barrier_init(&both_done, NULL, 2);\n\tpthread_create(&a, NULL, thread_a, NULL);\n\tpthread_create(&b, NULL, thread_b, NULL);\n"
	      "\tpthread_join(a, NULL);\n\tpthread_join(b, NULL);\n", f);
	e.prints = false;
	calls(&e, JOB_POST);
	fputs("\treturn 0;\n}\n", f);
}

void emit_schedule(const struct api *a, const struct violation *v, FILE *f)
{
	fputs("csched-schedule 1\n", f);
	for (unsigned i = 0; i < v->nedges; i++) {
		const struct lab_place *s = &v->edges[i].source, *t = &v->edges[i].target;

		fprintf(f, "edge %u T0.%u %s %x %u %s T0.%u %s %x %u before\n", i, s->thread + 1, a->soname, s->offset,
			s->n, s->after ? "after" : "before", t->thread + 1, a->soname, t->offset, t->n);
	}
}
