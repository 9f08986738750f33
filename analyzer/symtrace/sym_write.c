/*
 * The .sym writer. Expressions are a graph with shared parts, so writing each
 * use out in full could grow without bound: parts used twice, and parts
 * nested deeply, get a `let` line of their own first.
 */
#include "analyzer/expr/expr_pool.h"
#include "analyzer/symtrace/sym_names.h"
#include "common/utf8.h"
#include "common/vec.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#define LET_DEPTH 12

struct writer {
	FILE *f;
	const struct sym_trace *t;
	uint32_t *uses; /* by expr_id: how often written; then 1 + number of its let */
	uint32_t *let;
	uint8_t *depth; /* below the nearest let */
};

static void put_string(FILE *f, const char *s)
{
	putc('"', f);
	while (*s) {
		uint32_t c;
		size_t n = utf8_shown(s, strnlen(s, 4), &c);

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", (char)c);
		else if (n)
			fwrite(s, 1, n, f);
		else
			fprintf(f, "\\x%02x", (unsigned char)*s);
		s += n ? n : 1;
	}
	putc('"', f);
}

/* A word as it is where the reader takes it for one, else quoted. */
static void put_word(FILE *f, const char *s)
{
	bool plain = *s != 0;

	for (const char *c = s; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			plain = false;
	if (plain)
		fputs(s, f);
	else
		put_string(f, s);
}

static void put_width(FILE *f, unsigned width)
{
	if (width == EXPR_INT)
		fputs("int", f);
	else if (width == EXPR_BOOL)
		fputs("bool", f);
	else
		fprintf(f, "%u", width);
}

static void count_uses(struct writer *w, expr_id e)
{
	VEC(expr_id) stack = { 0 };

	if (e)
		vec_push(&stack, e);
	while (stack.n) {
		const struct expr *n;

		e = stack.v[--stack.n];
		if (w->uses[e]++)
			continue;
		n = expr_get(w->t->pool, e);
		for (const expr_id *kid = (expr_id[]){ n->a, n->b, n->c, 0 }; *kid; kid++)
			vec_push(&stack, *kid);
	}
	vec_free(&stack);
}

static void count_all(struct writer *w)
{
	const struct sym_trace *t = w->t;

	for (size_t i = 0; i < t->nvars; i++)
		if (t->vars[i].has_init)
			count_uses(w, t->vars[i].init);
	for (size_t k = 0; k < t->nthreads; k++) {
		const struct sym_thread *th = &t->threads[k];

		for (size_t i = 0; i < th->nevents; i++)
			if (th->events[i].op == SYM_WRITE || th->events[i].op == SYM_RMW)
				count_uses(w, th->events[i].value);
		for (size_t i = 0; i < th->nconds; i++)
			count_uses(w, th->conds[i].cond);
	}
	count_uses(w, t->failure.condition);
}

static void put_node(struct writer *w, expr_id e);

static void put_expr(struct writer *w, expr_id e)
{
	if (w->let[e])
		fprintf(w->f, "e%u", w->let[e] - 1);
	else
		put_node(w, e);
}

static void put_node(struct writer *w, expr_id e)
{
	const struct expr *n = expr_get(w->t->pool, e);

	if (n->op == EX_CONST && n->width == EXPR_BOOL) {
		fputs(n->value ? "true" : "false", w->f);
	} else if (n->op == EX_CONST && n->width == EXPR_INT) {
		fprintf(w->f, "%" PRId64 ":int", (int64_t)n->value);
	} else if (n->op == EX_CONST) {
		fprintf(w->f, n->value < 4096 ? "%" PRIu64 : "0x%" PRIx64, n->value);
		fprintf(w->f, ":%u", n->width);
	} else if (n->op == EX_SYMBOL) {
		fprintf(w->f, "s%" PRIu64, n->value);
	} else {
		fprintf(w->f, "(%s", expr_ops[n->op].name);
		if (n->op == EX_EXTRACT)
			fprintf(w->f, " %" PRIu64 " %u", n->value, n->width);
		else if (n->op == EX_ZEXT || n->op == EX_SEXT)
			fprintf(w->f, " %u", n->width);
		for (const expr_id *kid = (expr_id[]){ n->a, n->b, n->c, 0 }; *kid; kid++) {
			putc(' ', w->f);
			put_expr(w, *kid);
		}
		putc(')', w->f);
	}
}

static void put_symbols(struct writer *w)
{
	const struct expr_pool *p = w->t->pool;
	size_t n = expr_symbol_count(p);
	uint8_t *width = xcalloc(n ? n : 1, 1);

	for (expr_id e = 1; e < expr_count(p); e++)
		if (expr_get(p, e)->op == EX_SYMBOL)
			width[expr_get(p, e)->value] = expr_get(p, e)->width;
	for (size_t i = 0; i < n; i++) {
		fprintf(w->f, "symbol s%zu ", i);
		put_width(w->f, width[i]);
		putc(' ', w->f);
		put_string(w->f, expr_symbol_name(p, i));
		putc('\n', w->f);
	}
	free(width);
}

/* Operands have smaller ids, so ascending order defines before use. */
static void put_lets(struct writer *w)
{
	uint32_t lets = 0;

	for (expr_id e = 1; e < expr_count(w->t->pool); e++) {
		const struct expr *n = expr_get(w->t->pool, e);
		unsigned depth = 0;

		if (!w->uses[e] || !n->a)
			continue;
		for (const expr_id *kid = (expr_id[]){ n->a, n->b, n->c, 0 }; *kid; kid++)
			if (!w->let[*kid] && w->depth[*kid] >= depth)
				depth = w->depth[*kid] + 1;
		w->depth[e] = depth;
		if (w->uses[e] < 2 && depth < LET_DEPTH)
			continue;
		fprintf(w->f, "let e%u ", lets);
		put_node(w, e);
		putc('\n', w->f);
		w->let[e] = ++lets;
	}
}

static void put_vars(struct writer *w)
{
	for (size_t i = 0; i < w->t->nvars; i++) {
		const struct sym_var *v = &w->t->vars[i];

		fprintf(w->f, "var v%zu ", i);
		put_width(w->f, v->width);
		fputs(" name ", w->f);
		put_string(w->f, v->name);
		if (v->type) {
			fputs(" type ", w->f);
			put_string(w->f, v->type);
		}
		if (v->address)
			fprintf(w->f, " address 0x%" PRIx64, v->address);
		if (v->has_init) {
			fputs(" init ", w->f);
			put_expr(w, v->init);
		}
		putc('\n', w->f);
	}
}

static void put_objects(struct writer *w)
{
	for (size_t i = 0; i < w->t->nobjects; i++) {
		const struct sym_object *o = &w->t->objects[i];

		fprintf(w->f, "object o%zu %s name ", i, sym_object_names[o->kind]);
		put_string(w->f, o->name);
		if (o->address)
			fprintf(w->f, " address 0x%" PRIx64, o->address);
		if (o->recursive)
			fputs(" recursive", w->f);
		if (o->count)
			fprintf(w->f, " count %" PRId64, o->count);
		if (o->owner != SYM_NONE) {
			fputs(" owner ", w->f);
			put_word(w->f, w->t->threads[o->owner].id);
		}
		putc('\n', w->f);
	}
}

static void put_stacks(struct writer *w)
{
	for (size_t i = 0; i < w->t->nstacks; i++) {
		fprintf(w->f, "stack k%zu\n", i);
		for (uint32_t k = 0; k < w->t->stacks[i].n; k++) {
			const struct sym_frame *fr = &w->t->stacks[i].frames[k];

			fputs("  frame ", w->f);
			put_string(w->f, fr->function);
			if (fr->file) {
				fputs(" file ", w->f);
				put_string(w->f, fr->file);
			}
			if (fr->line)
				fprintf(w->f, " line %u", fr->line);
			if (fr->pc)
				fprintf(w->f, " pc 0x%" PRIx64, fr->pc);
			if (fr->module) {
				fputs(" module ", w->f);
				put_string(w->f, fr->module);
			}
			putc('\n', w->f);
		}
	}
}

static void put_operands(struct writer *w, const struct sym_event *e)
{
	switch (sym_ops[e->op].on) {
	case SYM_ON_VAR: fprintf(w->f, " v%u", e->target); break;
	case SYM_ON_OBJECT: fprintf(w->f, " o%u", e->target); break;
	case SYM_ON_THREAD:
		putc(' ', w->f);
		put_word(w->f, w->t->threads[e->peer].id);
		break;
	case SYM_ON_NOTHING: break;
	}
	if (e->op == SYM_READ || e->op == SYM_RMW) {
		putc(' ', w->f);
		if (e->symbol)
			put_node(w, e->symbol);
		else
			fputs("none", w->f);
	}
	if (e->op == SYM_WRITE || e->op == SYM_RMW) {
		putc(' ', w->f);
		if (e->value)
			put_expr(w, e->value);
		else
			fputs("none", w->f);
	}
}

static void put_event(struct writer *w, const struct sym_event *e)
{
	fprintf(w->f, "  %s", sym_op_name(e->op));
	put_operands(w, e);
	if (e->link != SYM_NONE)
		fprintf(w->f, " link %u", e->link);
	if (e->result != 1)
		fprintf(w->f, " result %d", e->result);
	if (e->has_seen)
		fprintf(w->f, " %s 0x%" PRIx64, e->fixed ? "fixed" : "seen", e->seen);
	if (e->time_lo || e->time_hi != UINT64_MAX)
		fprintf(w->f, " time %" PRIu64 " %" PRIu64, e->time_lo, e->time_hi);
	if (e->step)
		fprintf(w->f, " step %" PRIu64, e->step);
	if (e->pc || e->occurrence)
		fprintf(w->f, " at 0x%" PRIx64 " %" PRIu64, e->pc, e->occurrence);
	if (e->stack != SYM_NONE)
		fprintf(w->f, " stack k%u", e->stack);
	if (e->variable != SYM_NONE)
		fprintf(w->f, " operand v%u", e->variable);
	putc('\n', w->f);
}

/* A condition stands behind its event; `after` only where the list is not sorted so. */
static void put_cond(struct writer *w, const struct sym_cond *c, size_t written)
{
	fputs("  cond ", w->f);
	put_expr(w, c->cond);
	if (c->after == SYM_NONE && written)
		fputs(" after start", w->f);
	else if (c->after != SYM_NONE && c->after + (size_t)1 != written)
		fprintf(w->f, " after %u", c->after);
	if (c->stack != SYM_NONE)
		fprintf(w->f, " stack k%u", c->stack);
	putc('\n', w->f);
}

static void put_thread(struct writer *w, const struct sym_thread *th)
{
	size_t k = 0;

	fputs("thread ", w->f);
	put_word(w->f, th->id);
	if (th->name) {
		fputs(" name ", w->f);
		put_string(w->f, th->name);
	}
	putc('\n', w->f);
	for (size_t i = 0; i <= th->nevents; i++) {
		while (k < th->nconds && (th->conds[k].after == SYM_NONE ||
					  th->conds[k].after < i || i == th->nevents))
			put_cond(w, &th->conds[k++], i);
		if (i < th->nevents)
			put_event(w, &th->events[i]);
	}
}

static void put_failure(struct writer *w)
{
	const struct sym_failure *f = &w->t->failure;

	if (f->thread == SYM_NONE && !f->nblocked && !f->text && !f->condition)
		return;
	fprintf(w->f, "failure %s", sym_failure_names[f->kind]);
	if (f->thread != SYM_NONE) {
		fputs(" thread ", w->f);
		put_word(w->f, w->t->threads[f->thread].id);
	}
	if (f->text) {
		fputs(" text ", w->f);
		put_string(w->f, f->text);
	}
	if (f->condition) {
		fputs(" if ", w->f);
		put_expr(w, f->condition);
	}
	putc('\n', w->f);
	for (size_t i = 0; i < f->nblocked; i++) {
		fputs("blocked ", w->f);
		put_word(w->f, w->t->threads[f->blocked[i].thread].id);
		fprintf(w->f, " %u\n", f->blocked[i].event);
	}
}

err_t sym_write(FILE *f, const struct sym_trace *t)
{
	size_t n = expr_count(t->pool);
	struct writer w = { .f = f, .t = t };

	w.uses = xcalloc(n, sizeof *w.uses);
	w.let = xcalloc(n, sizeof *w.let);
	w.depth = xcalloc(n, sizeof *w.depth);
	count_all(&w);
	fprintf(f, "csched-sym %d\n", SYM_TEXT_VERSION);
	if (t->program) {
		fputs("program ", f);
		put_string(f, t->program);
		putc('\n', f);
	}
	put_symbols(&w);
	put_lets(&w);
	put_vars(&w);
	put_objects(&w);
	put_stacks(&w);
	for (size_t i = 0; i < t->nthreads; i++)
		put_thread(&w, &t->threads[i]);
	put_failure(&w);
	for (size_t i = 0; i < t->nassumptions; i++) {
		fputs("assumption ", f);
		put_string(f, t->assumptions[i]);
		putc('\n', f);
	}
	free(w.uses);
	free(w.let);
	free(w.depth);
	if (fflush(f) || ferror(f))
		return err_errno("cannot write the symbolic trace");
	return NULL;
}
