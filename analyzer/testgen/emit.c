/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A test as a C program of its own: declarations, the calls before, two threads, the calls after. */
#include "analyzer/testgen/emit.h"
#include "analyzer/testgen/heap.h"
#include "analyzer/testgen/heap_guard.h"

#include <stdlib.h>
#include <string.h>

struct emitter {
	FILE *f;
	const struct api *a;
	const struct test *t;
	unsigned first;  /* number of the first call of the part at hand */
	const char *program; /* path of the copy that is loaded; NULL: the library is linked */
	bool prints;     /* what the threads' calls return */
	bool strings;    /* some value is a std::string */
	bool texts;      /* some buffer begins with a text */
	bool guard;
	unsigned threads;
};

static bool uses(const struct test *t, int function)
{
	for (unsigned p = 0; p < JOB_PARTS; p++)
		for (unsigned i = 0; i < test_part_of(t, p)->n; i++)
			if (test_part_of(t, p)->calls[i].function == function)
				return true;
	return false;
}

static bool uses_kind(const struct test *t, enum seq_value_kind kind)
{
	for (unsigned p = 0; p < JOB_PARTS; p++)
		for (unsigned i = 0; i < test_part_of(t, p)->n; i++)
			for (unsigned k = 0; k < test_part_of(t, p)->calls[i].nargs; k++)
				if (test_part_of(t, p)->calls[i].args[k].kind == kind)
					return true;
	return false;
}

/* ---- declarations ---- */

/* The headers that the test includes declare some functions themselves, with types of their own. */
static bool is_included(const struct emitter *e, const struct api_function *f)
{
	return !f->cxx && !strncmp(e->a->soname, "libc.so", 7);
}

static void function_name(struct emitter *e, const struct api_function *f)
{
	const char *end = f->cxx ? strchr(f->name, '(') : NULL;

	if (!f->cxx) {
		fprintf(e->f, "%s%s", is_included(e, f) ? "called_" : "", f->symbol);
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

static const char *field_type(const struct api_field *f)
{
	static const char *const s[] = { "signed char", "short", "int", "", "long" };
	static const char *const u[] = { "unsigned char", "unsigned short", "unsigned int", "", "unsigned long" };
	unsigned i = f->size == 1 ? 0 : f->size == 2 ? 1 : f->size == 4 ? 2 : 4;

	switch (f->kind) {
	case API_FLOAT: return f->size == 4 ? "float" : "double";
	case API_TEXT: return "const char *";
	case API_INT: return f->is_signed ? s[i] : u[i];
	default: return "void *";
	}
}

/* Members of inner structures stand in a row. */
static void define_type(struct emitter *e, const struct api_object *o)
{
	fprintf(e->f, "struct %s {\n", o->c_name);
	for (size_t i = 0; i < o->fields.n; i++) {
		const char *type = field_type(&o->fields.v[i]);

		fprintf(e->f, "\t%s%s%s;\n", type, type[strlen(type) - 1] == '*' ? "" : " ", o->fields.v[i].name);
	}
	fputs("};\n", e->f);
}

/* Does the test write down the structure's members? */
static bool is_filled(const struct emitter *e, int object)
{
	if (!e->a->objects.v[object].flat)
		return false;
	for (unsigned p = 0; p < JOB_PARTS; p++)
		for (unsigned i = 0; i < test_part_of(e->t, p)->n; i++) {
			const struct seq_call *c = &test_part_of(e->t, p)->calls[i];
			const struct api_function *f = &e->a->functions.v[c->function];

			if (f->result.kind == API_STRUCT && f->result.object == object)
				return true;
			for (unsigned k = 0; k < c->nargs; k++)
				if (f->params[k].object == object &&
				    (f->params[k].kind == API_STRUCT || c->args[k].kind == SEQ_BLOCK))
					return true;
		}
	return false;
}

static void declare_types(struct emitter *e)
{
	for (size_t o = 0; o < e->a->objects.n; o++) {
		bool used = false;

		for (size_t i = 0; i < e->a->functions.n && !used; i++) {
			const struct api_function *f = &e->a->functions.v[i];

			if (!uses(e->t, (int)i))
				continue;
			used = ((f->result.kind == API_OBJECT || f->result.kind == API_STRUCT) &&
				f->result.object == (int)o);
			for (unsigned k = 0; k < f->nparams; k++)
				used |= f->params[k].object == (int)o;
		}
		if (used && !is_filled(e, (int)o))
			fprintf(e->f, "struct %s;\n", e->a->objects.v[o].c_name);
		else if (used)
			define_type(e, &e->a->objects.v[o]);
	}
}

static bool in_memory(const struct emitter *e, const struct api_function *f)
{
	return seq_result_in_memory(e->a, f);
}

static void declare_functions(struct emitter *e)
{
	for (size_t i = 0; i < e->a->functions.n; i++) {
		const struct api_function *f = &e->a->functions.v[i];

		if (!uses(e->t, (int)i))
			continue;
		bool memory = in_memory(e, f) && f->result.kind != API_STRUCT;
		const char *r = memory ? "void" : f->result.spelling;
		fprintf(e->f, "%s%s%s%s", e->program ? "static " : "", r, r[strlen(r) - 1] == '*' ? "" : " ",
			e->program ? "(*" : "");
		function_name(e, f);
		fputs(e->program ? ")(" : "(", e->f);
		if (memory)
			fprintf(e->f, "void *result%s", f->nparams ? ", " : "");
		for (unsigned k = 0; k < f->nparams; k++)
			fprintf(e->f, "%s%s", k ? ", " : "", f->params[k].spelling);
		fputs(f->variadic && f->nparams ? ", ...)" : f->nparams || memory ? ")" : "void)", e->f);
		if (!e->program && (f->cxx || is_included(e, f)))
			fprintf(e->f, " __asm__(\"%s\")", f->symbol);
		fputs(";\n", e->f);
	}
}

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

static void loader(struct emitter *e)
{
	fputs("\n/* Loads the program as a library; says where it lies. */\nstatic char *load(const char *path)\n{\n"
	      "\tstruct link_map *m;\n\tvoid *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);\n\n"
	      "\tif (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &m)) {\n\t\tfprintf(stderr, \"%s\\n\", dlerror());\n"
	      "\t\texit(2);\n\t}\n\treturn (char *)m->l_addr;\n}\n", e->f);
}

static void find_functions(struct emitter *e)
{
	fputs("\tchar *program = load(", e->f);
	text_literal(e->f, e->program);
	fputs(");\n\n", e->f);
	for (size_t i = 0; i < e->a->functions.n; i++) {
		if (!uses(e->t, (int)i))
			continue;
		fputs("\t*(void **)&", e->f);
		function_name(e, &e->a->functions.v[i]);
		fprintf(e->f, " = program + 0x%lx;\n", (long)e->a->functions.v[i].offset);
	}
}

/* Is there a buffer that begins with a text? */
static bool fills_buffers(const struct test *t)
{
	for (unsigned p = 0; p < JOB_PARTS; p++)
		for (unsigned i = 0; i < test_part_of(t, p)->n; i++)
			for (unsigned k = 0; k < test_part_of(t, p)->calls[i].nargs; k++)
				if (test_part_of(t, p)->calls[i].args[k].kind == SEQ_BUFFER &&
				    test_part_of(t, p)->calls[i].args[k].text)
					return true;
	return false;
}

/* Is the callback that returns this number in some argument or member? */
static bool calls_back(const struct emitter *e, int64_t number)
{
	for (unsigned p = 0; p < JOB_PARTS; p++)
		for (unsigned i = 0; i < test_part_of(e->t, p)->n; i++) {
			const struct seq_call *c = &test_part_of(e->t, p)->calls[i];

			for (unsigned k = 0; k < c->nargs; k++) {
				const struct api_type *t = &e->a->functions.v[c->function].params[k];
				const struct api_object *o = c->args[k].kind == SEQ_BLOCK ? &e->a->objects.v[t->object] : NULL;

				if (c->args[k].kind == SEQ_STUB && (c->args[k].number != 0) == (number != 0))
					return true;
				for (size_t m = 0; o && !number && m < o->fields.n; m++)
					if (o->fields.v[m].kind == API_FUNCTION &&
					    api_field_value(&o->fields.v[m], (unsigned)c->args[k].number))
						return true;
			}
		}
	return false;
}

static void define_buffer(const struct emitter *e, bool has_texts)
{
	fprintf(e->f, "\n/* A buffer of %d bytes. */\nstatic void *buffer(%s)\n{\n", JOB_BUFFER, has_texts ? "const char *text" : "void");
	if (e->guard)
		fprintf(e->f, "\tchar *b = malloc(%d);\n\n", JOB_BUFFER);
	else
		fprintf(e->f, "\tstatic char buffers[64][%d];\n\tstatic int n;\n"
			"\tchar *b = buffers[__atomic_fetch_add(&n, 1, __ATOMIC_RELAXED) %% 64];\n\n", JOB_BUFFER);
	fprintf(e->f, "\tfor (int i = 0; i < %d; i++)\n\t\tb[i] = (char)(i + 1);\n", JOB_BUFFER - 1);
	if (e->guard)
		fprintf(e->f, "\tb[%d] = 0;\n", JOB_BUFFER - 1);
	fprintf(e->f, "%s\treturn b;\n}\n", has_texts ? "\tif (text)\n\t\tstrcpy(b, text);\n" : "");
}

/* Is some member set to a buffer; and to one that begins with a text? */
static bool sets_buffers(const struct emitter *e, bool *texts)
{
	bool any = false;

	for (size_t i = 0; i < e->a->functions.n; i++)
		for (unsigned k = 0; uses(e->t, (int)i) && k < e->a->functions.v[i].nparams; k++)
			for (size_t m = 0; m < e->a->functions.v[i].params[k].sets.n; m++) {
				const struct api_set *s = &e->a->functions.v[i].params[k].sets.v[m];

				any |= s->buffer;
				*texts |= s->text != NULL;
			}
	return any;
}

static void helpers(struct emitter *e)
{
	bool has_texts = fills_buffers(e->t);

	sets_buffers(e, &has_texts);
	e->texts = has_texts;
	if (e->program)
		loader(e);
	e->strings = uses_kind(e->t, SEQ_STRING);
	for (size_t i = 0; i < e->a->functions.n; i++)
		e->strings |= uses(e->t, (int)i) && e->a->functions.v[i].result.kind == API_STRING &&
			      in_memory(e, &e->a->functions.v[i]);
	if (e->strings)
		fputs("\n/* std::string as libstdc++ lays it out. */\n"
		      "struct string { char *text; unsigned long length; char here[16]; };\n\n"
		      "static struct string *string(const char *text)\n{\n"
		      "\tstruct string *s = calloc(1, sizeof *s);\n\n"
		      "\ts->length = strlen(text);\n"
		      "\ts->text = s->length < sizeof s->here ? s->here : malloc(s->length + 1);\n"
		      "\tmemcpy(s->text, text, s->length + 1);\n\treturn s;\n}\n", e->f);
	if (uses_kind(e->t, SEQ_BUFFER) || sets_buffers(e, &has_texts))
		define_buffer(e, has_texts);
	for (int n = 0; n < 2; n++)
		if (calls_back(e, n))
			fprintf(e->f, "\nstatic long callback%d(void) { return %d; }\n", n, n);
}

/* ---- calls ---- */

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

/* "{ .slots = 8, .get = (void *)callback0 }" */
static void members(struct emitter *e, const struct api_object *o, int64_t variant)
{
	bool any = false;

	fputs("{", e->f);
	for (size_t i = 0; i < o->fields.n; i++) {
		const struct api_field *f = &o->fields.v[i];
		int64_t v = api_field_value(f, (unsigned)variant);

		if (!v)
			continue;
		fprintf(e->f, "%s .%s = ", any ? "," : "", f->name);
		any = true;
		if (f->kind == API_FUNCTION)
			fputs("(void *)callback0", e->f);
		else if (f->kind == API_TEXT)
			fputs("\"a\"", e->f);
		else
			fprintf(e->f, "%ld", (long)v);
	}
	fputs(any ? " }" : " 0 }", e->f);
}

/* A structure that a call gets the address of stays where it is: the object may keep the address. */
static void blocks(struct emitter *e, const struct seq_call *c, unsigned call)
{
	const struct api_function *f = &e->a->functions.v[c->function];

	for (unsigned k = 0; k < c->nargs; k++) {
		const struct api_object *o;

		if (c->args[k].kind != SEQ_BLOCK || f->params[k].kind == API_STRUCT)
			continue;
		o = &e->a->objects.v[f->params[k].object];
		if (!o->flat) {
			fprintf(e->f, "\tstatic _Alignas(16) char block%u_%u[%ld];\n", call, k, (long)o->size);
			continue;
		}
		fprintf(e->f, "\tstatic struct %s block%u_%u = ", o->c_name, call, k);
		members(e, o, c->args[k].number);
		fputs(";\n", e->f);
	}
}

static void value(struct emitter *e, const struct seq_call *c, unsigned k, unsigned call)
{
	const struct api_type *t = &e->a->functions.v[c->function].params[k];
	const struct seq_value *v = &c->args[k];

	switch (v->kind) {
	case SEQ_NUMBER: number(e->f, t, v->number); break;
	case SEQ_REAL: fprintf(e->f, "%.1f", v->real); break;
	case SEQ_TEXT: text_literal(e->f, v->text); break;
	case SEQ_STRING:
		fputs("string(", e->f);
		text_literal(e->f, v->text);
		fputc(')', e->f);
		break;
	case SEQ_BUFFER:
		fputs(v->text || !e->texts ? "buffer(" : "buffer(NULL", e->f);
		if (v->text)
			text_literal(e->f, v->text);
		fputc(')', e->f);
		break;
	case SEQ_LENGTH: fprintf(e->f, "%ld", (long)seq_length(c, v->number)); break;
	case SEQ_PREFIX: fprintf(e->f, "v%u", (unsigned)v->number); break;
	case SEQ_BLOCK:
		if (t->kind == API_STRUCT) {
			fprintf(e->f, "(%s)", t->spelling);
			members(e, &e->a->objects.v[t->object], v->number);
		} else {
			fprintf(e->f, "(void *)&block%u_%u", call, k);
		}
		break;
	case SEQ_STUB: fprintf(e->f, "(void *)callback%d", v->number != 0); break;
	case SEQ_SHARED: fputs("shared", e->f); break;
	case SEQ_LOCAL: fprintf(e->f, "v%u", e->first + (unsigned)v->number); break;
	case SEQ_OUT: fprintf(e->f, "(void *)&v%u", call); break;
	case SEQ_PLACE: fprintf(e->f, "(void *)place%u", call); break;
	}
}

/* What testgen.conf has the caller write to structures. */
static void sets(struct emitter *e, const struct seq_call *c, unsigned call)
{
	const struct api_function *f = &e->a->functions.v[c->function];

	for (unsigned k = 0; k < c->nargs; k++)
		for (size_t i = 0; i < f->params[k].sets.n; i++) {
			const struct api_set *s = &f->params[k].sets.v[i];
			const char *type = s->buffer ? "void *" : s->size == 8 ? "long" : s->size == 4 ? "int" : s->size == 2 ? "short" : "char";

			if (c->args[k].kind == SEQ_NUMBER)
				continue;
			fprintf(e->f, "\t*(%s%s*)((char *)", type, s->buffer ? "" : " ");
			value(e, c, k, call);
			fprintf(e->f, " + %u) = ", s->offset);
			if (!s->buffer)
				fprintf(e->f, "%ld", (long)s->number);
			else if (s->text) {
				fputs("buffer(", e->f);
				text_literal(e->f, s->text);
				fputc(')', e->f);
			} else
				fputs(e->texts ? "buffer(NULL)" : "buffer()", e->f);
			fprintf(e->f, "; /* %s */\n", s->member);
		}
}

/* What the threads use as well is declared for all. */
static bool is_common(const struct emitter *e, unsigned call)
{
	for (unsigned p = JOB_PREFIX; p < JOB_PARTS; p++)
		for (unsigned i = 0; i < test_part_of(e->t, p)->n; i++)
			for (unsigned k = 0; k < test_part_of(e->t, p)->calls[i].nargs; k++) {
				const struct seq_value *v = &test_part_of(e->t, p)->calls[i].args[k];

				if (v->kind == SEQ_PREFIX && v->number == call)
					return true;
			}
	return false;
}

/* Is the result of this call asked for? */
static bool is_used(const struct emitter *e, const struct seq *s, unsigned i, bool prefix)
{
	if (prefix && (i == e->t->object_call || is_common(e, i)))
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

/* "void *v3 = " */
static void assign(struct emitter *e, const char *name, bool prefix)
{
	bool declared = !strcmp(name, "shared") || (prefix && is_common(e, (unsigned)atoi(name + 1)));

	fprintf(e->f, "%s%s = ", declared ? "" : "void *", name);
}

static void call(struct emitter *e, const struct seq *s, unsigned i, bool prefix)
{
	const struct seq_call *c = &s->calls[i];
	const struct api_function *f = &e->a->functions.v[c->function];
	unsigned n = e->first + i, at;
	const struct seq_value *made = special(c, &at);
	bool used = is_used(e, s, i, prefix);
	char name[24];

	bool memory = in_memory(e, f) && f->result.kind != API_STRUCT;
	char result[32];

	snprintf(name, sizeof name, prefix && i == e->t->object_call ? "shared" : "v%u", n);
	snprintf(result, sizeof result, "smart%u", n);
	blocks(e, c, n);
	if (memory && f->result.kind != API_STRING)
		fprintf(e->f, "\tstatic void *%s[2]; /* a smart pointer: what it points to is its first word */\n", result);
	if (made && made->kind == SEQ_PLACE)
		fprintf(e->f, "\tstatic _Alignas(64) char place%u[%ld];\n", n, (long)made->number);
	if (made && made->kind == SEQ_OUT && !(prefix && is_common(e, i)))
		fprintf(e->f, "\tstatic void *v%u;\n", n);
	sets(e, c, n);
	/* Where memory lies is no answer. */
	bool prints = e->prints && !prefix && !used && !made && f->result.kind == API_INT;
	fputc('\t', e->f);
	if (prints)
		fprintf(e->f, "printf(\"%u: %%ld\\n\", (long)", n);
	if (used && !made && !memory && f->result.kind != API_VOID)
		assign(e, name, prefix);
	function_name(e, f);
	fputc('(', e->f);
	if (memory && f->result.kind == API_STRING)
		fprintf(e->f, "string(\"\")%s", c->nargs ? ", " : "");
	else if (memory)
		fprintf(e->f, "%s%s", result, c->nargs ? ", " : "");
	for (unsigned k = 0; k < c->nargs; k++) {
		if (k)
			fputs(", ", e->f);
		value(e, c, k, n);
	}
	if (seq_needs_end(f))
		fputs(", 0L", e->f);
	fputs(prints ? "));\n" : ");\n", e->f);
	if (used && made && made->kind == SEQ_PLACE) {
		fputc('\t', e->f);
		assign(e, name, prefix);
		fprintf(e->f, "(void *)place%u;\n", n);
	}
	if (used && !made && memory && f->result.kind != API_STRING) {
		fputc('\t', e->f);
		assign(e, name, prefix);
		fprintf(e->f, "%s[0];\n", result);
	}
	if (used && made && made->kind == SEQ_OUT && !strcmp(name, "shared"))
		fprintf(e->f, "\tshared = v%u;\n", n);
}

static void calls(struct emitter *e, unsigned part)
{
	const struct seq *s = test_part_of(e->t, part);

	e->first = test_first(e->t, part);
	for (unsigned i = 0; i < s->n; i++)
		call(e, s, i, part == JOB_PREFIX);
}

static const char *all_of(const struct emitter *e)
{
	return e->threads == 2 ? "both" : "all";
}

static void declare_threads(struct emitter *e)
{
	fprintf(e->f, "static pthread_barrier_t %s_done; /* a thread that ends frees memory of its own: %s, then A, then B%s */\n"
		"static pthread_t ", all_of(e), all_of(e), e->threads > 2 ? ", ..." : "");
	for (unsigned i = 0; i < e->threads; i++)
		fprintf(e->f, "%s%c", i ? ", " : "", 'a' + i);
	fputs(";\n", e->f);
}

static void thread(struct emitter *e, unsigned i)
{
	fprintf(e->f, "\nstatic void *thread_%c(void *unused)\n{\n", 'a' + i);
	calls(e, JOB_A + i);
	fprintf(e->f, "\tpthread_barrier_wait(&%s_done);\n", all_of(e));
	if (i)
		fprintf(e->f, "\tpthread_join(%c, NULL);\n", 'a' + i - 1);
	fputs("\treturn unused;\n}\n", e->f);
}

void emit_test(const struct api *a, const struct test *t, const char *remark, const char *program, bool prints,
	       bool guard, FILE *f)
{
	struct emitter e = { .f = f, .a = a, .t = t, .program = program, .prints = prints, .threads = test_threads(t), .guard = guard };

	fprintf(f, "/*\n%s */\n", remark);
	if (program)
		fputs("#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <link.h>\n", f);
	fprintf(f, "#include <malloc.h>\n#include <pthread.h>\n#include <stddef.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
		"#include <string.h>\n%s\n", guard ? "#include <sys/mman.h>\n" : "");
	declare_types(&e);
	declare_functions(&e);
	fprintf(f, "\n%s", t->object_call == TEST_NO_OBJECT ? "" : "static void *shared;\n");
	declare_threads(&e);
	for (unsigned i = 0; i < t->prefix.n; i++)
		if (is_common(&e, i) && i != t->object_call)
			fprintf(f, "static void *v%u;\n", i);
	helpers(&e);
	for (unsigned i = 0; i < e.threads; i++)
		thread(&e, i);
	fputs("\nint main(void)\n{\n"
	      "\tmallopt(M_PERTURB, 0xa5); /* memory that is freed or fresh holds a pattern */\n"
	      "\tmallopt(M_ARENA_MAX, 1);   /* one heap for all threads */\n", f);
	if (program)
		find_functions(&e);
	calls(&e, JOB_PREFIX);
	fprintf(f, "\tpthread_barrier_init(&%s_done, NULL, %u);\n", all_of(&e), e.threads);
	for (unsigned i = 0; i < e.threads; i++)
		fprintf(f, "\tpthread_create(&%c, NULL, thread_%c, NULL);\n", 'a' + i, 'a' + i);
	fprintf(f, "\tpthread_join(%c, NULL);\n", 'a' + e.threads - 1);
	e.prints = false;
	calls(&e, JOB_POST);
	fputs("\treturn 0;\n}\n", f);
	/* What it is about stands above. */
	fputs(guard ? heap_guard_as_text : heap_as_text, f);
}

void emit_schedule(const struct api *a, const struct violation *v, FILE *f)
{
	fputs("csched-schedule 1\n", f);
	for (unsigned i = 0; i < v->nedges; i++) {
		const struct lab_place *s = &v->edges[i].source, *t = &v->edges[i].target;

		fprintf(f, "edge %u T0.%u %s %x %u %s T0.%u %s %x %u before\n", i, s->thread + 1, a->module, s->offset,
			s->n, s->after ? "after" : "before", t->thread + 1, a->module, t->offset, t->n);
	}
}
