/* The statements of the .sym text; one function each, found in a table. */
#include "analyzer/symtrace/sym_parse.h"
#include "common/strbuf.h"
#include "common/vec.h"

#include <string.h>

/* A name of a thread that may be declared further down. */
struct forward {
	struct sym_parser at;
	char *id;
	enum { FWD_PEER, FWD_OWNER, FWD_FAILURE, FWD_BLOCKED } what;
	uint32_t thread, index;
};

struct reader {
	struct sym_parser p;
	VEC(struct forward) forwards;
	VEC(struct sym_frame) frames; /* of the stack being read */
	bool in_stack;
	char *stack_name;
};

typedef err_t statement_fn(struct reader *r);

static struct sym_trace *trace(struct reader *r)
{
	return r->p.t;
}

static err_t end_of_line(struct reader *r)
{
	if (r->p.tok != TOK_LINE && r->p.tok != TOK_END)
		return sym_parse_error(&r->p, "end of line expected");
	return NULL;
}

static err_t take_thread_later(struct reader *r, int what, uint32_t thread, uint32_t index)
{
	struct forward f = { .at = r->p, .what = what, .thread = thread, .index = index };

	TRY(sym_take_text(&r->p, "name of a thread", &f.id));
	vec_push(&r->forwards, f);
	return NULL;
}

static void drop_frames(struct reader *r)
{
	for (size_t i = 0; i < r->frames.n; i++) {
		free(r->frames.v[i].function);
		free(r->frames.v[i].file);
		free(r->frames.v[i].module);
	}
	r->frames.n = 0;
	r->in_stack = false;
	free(r->stack_name);
	r->stack_name = NULL;
}

static err_t flush_stack(struct reader *r)
{
	err_t e;

	if (!r->in_stack)
		return NULL;
	e = sym_name_define(&r->p, NAME_STACK, r->stack_name,
			    sym_add_stack(trace(r), r->frames.v, r->frames.n));
	drop_frames(r);
	return e;
}

static err_t read_program(struct reader *r)
{
	free(trace(r)->program);
	trace(r)->program = NULL;
	return sym_take_text(&r->p, "program", &trace(r)->program);
}

static err_t read_symbol(struct reader *r)
{
	char *id = NULL, *name = NULL;
	uint8_t width;
	err_t e;

	TRY(sym_take_text(&r->p, "name of the symbol", &id));
	e = sym_take_width(&r->p, &width);
	if (!e && r->p.tok == TOK_STRING)
		e = sym_take_text(&r->p, "name", &name);
	if (!e)
		e = sym_name_define(&r->p, NAME_SYMBOL, id,
				    expr_symbol(trace(r)->pool, width, name ? name : id));
	free(id);
	free(name);
	return e;
}

static err_t read_let(struct reader *r)
{
	expr_id value;
	char *id;
	err_t e;

	TRY(sym_take_text(&r->p, "name", &id));
	e = sym_take_expr(&r->p, -1, &value);
	if (!e)
		e = sym_name_define(&r->p, NAME_LET, id, value);
	free(id);
	return e;
}

static err_t read_var_attributes(struct reader *r, struct sym_var *v)
{
	TRY(sym_take_width(&r->p, &v->width));
	while (r->p.tok == TOK_WORD) {
		bool name = sym_at_word(&r->p, "name"), type = sym_at_word(&r->p, "type");
		bool address = sym_at_word(&r->p, "address");

		if (!name && !type && !address && !sym_at_word(&r->p, "init"))
			return sym_parse_error(&r->p, "unknown attribute '%s'", r->p.word);
		TRY(sym_next(&r->p));
		if (name || type) {
			char **to = name ? &v->name : &v->type;

			free(*to);
			*to = NULL;
			TRY(sym_take_text(&r->p, "text", to));
		} else if (address) {
			TRY(sym_take_number(&r->p, "address", &v->address));
		} else {
			TRY(sym_take_expr(&r->p, v->width, &v->init));
			v->has_init = true;
		}
	}
	return NULL;
}

static err_t read_var(struct reader *r)
{
	struct sym_var v = { 0 };
	char *id;
	err_t e;

	TRY(sym_take_text(&r->p, "name of the variable", &id));
	e = read_var_attributes(r, &v);
	if (!v.name)
		v.name = xstrdup(id);
	if (!e)
		e = sym_name_define(&r->p, NAME_VAR, id, sym_add_var(trace(r), &v));
	free(id);
	free(v.name);
	free(v.type);
	return e;
}

static err_t read_object_attributes(struct reader *r, struct sym_object *o)
{
	unsigned kind = 0;

	while (kind < SYM_OBJECT_KINDS && !sym_at_word(&r->p, sym_object_names[kind]))
		kind++;
	if (kind == SYM_OBJECT_KINDS)
		return sym_parse_error(&r->p, "kind of object expected");
	o->kind = kind;
	TRY(sym_next(&r->p));
	while (r->p.tok == TOK_WORD) {
		if (sym_at_word(&r->p, "name")) {
			TRY(sym_next(&r->p));
			free(o->name);
			o->name = NULL;
			TRY(sym_take_text(&r->p, "text", &o->name));
		} else if (sym_at_word(&r->p, "address")) {
			TRY(sym_next(&r->p));
			TRY(sym_take_number(&r->p, "address", &o->address));
		} else if (sym_at_word(&r->p, "recursive")) {
			o->recursive = true;
			TRY(sym_next(&r->p));
		} else if (sym_at_word(&r->p, "count")) {
			uint32_t count;

			TRY(sym_next(&r->p));
			TRY(sym_take_index(&r->p, "count", &count));
			o->count = count;
		} else if (sym_at_word(&r->p, "owner")) {
			TRY(sym_next(&r->p));
			TRY(take_thread_later(r, FWD_OWNER, trace(r)->nobjects, 0));
		} else {
			return sym_parse_error(&r->p, "unknown attribute '%s'", r->p.word);
		}
	}
	return NULL;
}

static err_t read_object(struct reader *r)
{
	struct sym_object o = { .owner = SYM_NONE };
	char *id;
	err_t e;

	TRY(sym_take_text(&r->p, "name of the object", &id));
	e = read_object_attributes(r, &o);
	if (!o.name)
		o.name = xstrdup(id);
	if (!e)
		e = sym_name_define(&r->p, NAME_OBJECT, id, sym_add_object(trace(r), &o));
	free(id);
	free(o.name);
	return e;
}

static err_t read_stack(struct reader *r)
{
	r->in_stack = true;
	return sym_take_text(&r->p, "name of the stack", &r->stack_name);
}

static err_t read_frame(struct reader *r)
{
	struct sym_frame *f;
	uint32_t line;

	if (!r->in_stack)
		return sym_parse_error(&r->p, "frame outside of a stack");
	vec_push(&r->frames, (struct sym_frame){ 0 });
	f = &r->frames.v[r->frames.n - 1];
	TRY(sym_take_text(&r->p, "function", &f->function));
	while (r->p.tok == TOK_WORD) {
		if (sym_at_word(&r->p, "file") || sym_at_word(&r->p, "module")) {
			char **to = r->p.word[0] == 'f' ? &f->file : &f->module;

			TRY(sym_next(&r->p));
			free(*to);
			*to = NULL;
			TRY(sym_take_text(&r->p, "text", to));
		} else if (sym_at_word(&r->p, "line")) {
			TRY(sym_next(&r->p));
			TRY(sym_take_index(&r->p, "line", &line));
			f->line = line;
		} else if (sym_at_word(&r->p, "pc")) {
			TRY(sym_next(&r->p));
			TRY(sym_take_number(&r->p, "pc", &f->pc));
		} else {
			return sym_parse_error(&r->p, "unknown attribute '%s'", r->p.word);
		}
	}
	return NULL;
}

static err_t read_thread(struct reader *r)
{
	char *id, *name = NULL;
	err_t e;

	TRY(sym_take_text(&r->p, "name of the thread", &id));
	e = NULL;
	if (sym_at_word(&r->p, "name")) {
		e = sym_next(&r->p);
		if (!e)
			e = sym_take_text(&r->p, "name", &name);
	}
	if (!e)
		e = sym_name_define(&r->p, NAME_THREAD, id, trace(r)->nthreads);
	if (!e)
		sym_add_thread(trace(r), id, name);
	free(id);
	free(name);
	return e;
}

static err_t need_thread(struct reader *r, uint32_t *thread)
{
	if (!trace(r)->nthreads)
		return sym_parse_error(&r->p, "no thread yet");
	*thread = trace(r)->nthreads - 1;
	return NULL;
}

static err_t read_cond(struct reader *r)
{
	struct sym_cond c = { .stack = SYM_NONE };
	uint32_t thread = 0;

	TRY(need_thread(r, &thread));
	c.after = trace(r)->threads[thread].nevents - 1;
	TRY(sym_take_expr(&r->p, EXPR_BOOL, &c.cond));
	while (r->p.tok == TOK_WORD) {
		if (sym_at_word(&r->p, "after")) {
			TRY(sym_next(&r->p));
			if (sym_at_word(&r->p, "start")) {
				c.after = SYM_NONE;
				TRY(sym_next(&r->p));
			} else {
				TRY(sym_take_index(&r->p, "index of an event", &c.after));
			}
		} else if (sym_at_word(&r->p, "stack")) {
			TRY(sym_next(&r->p));
			TRY(sym_take_name(&r->p, NAME_STACK, &c.stack));
		} else {
			return sym_parse_error(&r->p, "unknown attribute '%s'", r->p.word);
		}
	}
	sym_add_cond(trace(r), thread, &c);
	return NULL;
}

/* A read may introduce its symbol: hand-written files need no `symbol` lines. */
static err_t read_read_symbol(struct reader *r, struct sym_event *e)
{
	unsigned width = trace(r)->vars[e->target].width;

	if (sym_at_word(&r->p, "none"))
		return sym_next(&r->p);
	if (r->p.tok != TOK_WORD && r->p.tok != TOK_STRING)
		return sym_parse_error(&r->p, "symbol expected");
	if (!sym_name_find(&r->p, NAME_SYMBOL, r->p.word, &e->symbol)) {
		e->symbol = expr_symbol(trace(r)->pool, width, r->p.word);
		TRY(sym_name_define(&r->p, NAME_SYMBOL, r->p.word, e->symbol));
	} else if (expr_get(trace(r)->pool, e->symbol)->width != width) {
		return sym_parse_error(&r->p, "symbol and variable differ in width");
	}
	return sym_next(&r->p);
}

static err_t read_operands(struct reader *r, struct sym_event *e, uint32_t thread)
{
	switch (sym_ops[e->op].on) {
	case SYM_ON_VAR: TRY(sym_take_name(&r->p, NAME_VAR, &e->target)); break;
	case SYM_ON_OBJECT: TRY(sym_take_name(&r->p, NAME_OBJECT, &e->target)); break;
	case SYM_ON_THREAD:
		return take_thread_later(r, FWD_PEER, thread,
					 trace(r)->threads[thread].nevents);
	case SYM_ON_NOTHING: return NULL;
	}
	if (e->op == SYM_READ || e->op == SYM_RMW)
		TRY(read_read_symbol(r, e));
	if (e->op == SYM_RMW && sym_at_word(&r->p, "none"))
		return sym_next(&r->p);
	if (e->op == SYM_WRITE || e->op == SYM_RMW)
		TRY(sym_take_expr(&r->p, trace(r)->vars[e->target].width, &e->value));
	return NULL;
}

static err_t read_event_attribute(struct reader *r, struct sym_event *e)
{
	struct sym_parser *p = &r->p;
	uint64_t v;

	if (sym_at_word(p, "link")) {
		TRY(sym_next(p));
		return sym_take_index(p, "index of an event", &e->link);
	}
	if (sym_at_word(p, "result")) {
		TRY(sym_next(p));
		TRY(sym_take_number(p, "result", &v));
		e->result = (int32_t)v;
		return NULL;
	}
	if (sym_at_word(p, "seen") || sym_at_word(p, "fixed")) {
		e->has_seen = true;
		e->fixed = p->word[0] == 'f';
		TRY(sym_next(p));
		return sym_take_number(p, "value", &e->seen);
	}
	if (sym_at_word(p, "time")) {
		TRY(sym_next(p));
		TRY(sym_take_number(p, "earliest time", &e->time_lo));
		return sym_take_number(p, "latest time", &e->time_hi);
	}
	if (sym_at_word(p, "step")) {
		TRY(sym_next(p));
		return sym_take_number(p, "step", &e->step);
	}
	if (sym_at_word(p, "at")) {
		TRY(sym_next(p));
		TRY(sym_take_number(p, "pc", &e->pc));
		return sym_take_number(p, "occurrence", &e->occurrence);
	}
	if (sym_at_word(p, "stack")) {
		TRY(sym_next(p));
		return sym_take_name(p, NAME_STACK, &e->stack);
	}
	if (sym_at_word(p, "operand")) {
		TRY(sym_next(p));
		return sym_take_name(p, NAME_VAR, &e->variable);
	}
	return sym_parse_error(p, "unknown attribute '%s'", p->word);
}

static err_t read_event(struct reader *r, enum sym_op op)
{
	struct sym_event e;
	uint32_t thread = 0;

	sym_event_init(&e, op);
	TRY(need_thread(r, &thread));
	TRY(sym_next(&r->p));
	TRY(read_operands(r, &e, thread));
	while (r->p.tok == TOK_WORD)
		TRY(read_event_attribute(r, &e));
	sym_add_event(trace(r), thread, &e);
	return NULL;
}

static err_t read_failure(struct reader *r)
{
	struct sym_failure *f = &trace(r)->failure;
	unsigned kind = 0;

	while (kind < SYM_FAIL_KINDS && !sym_at_word(&r->p, sym_failure_names[kind]))
		kind++;
	if (kind == SYM_FAIL_KINDS)
		return sym_parse_error(&r->p, "kind of failure expected");
	f->kind = kind;
	TRY(sym_next(&r->p));
	while (r->p.tok == TOK_WORD) {
		if (sym_at_word(&r->p, "thread")) {
			TRY(sym_next(&r->p));
			TRY(take_thread_later(r, FWD_FAILURE, 0, 0));
		} else if (sym_at_word(&r->p, "text")) {
			TRY(sym_next(&r->p));
			free(f->text);
			f->text = NULL;
			TRY(sym_take_text(&r->p, "text", &f->text));
		} else if (sym_at_word(&r->p, "if")) {
			TRY(sym_next(&r->p));
			TRY(sym_take_expr(&r->p, EXPR_BOOL, &f->condition));
		} else {
			return sym_parse_error(&r->p, "unknown attribute '%s'", r->p.word);
		}
	}
	return NULL;
}

static err_t read_blocked(struct reader *r)
{
	struct sym_failure *f = &trace(r)->failure;
	struct sym_blocked b = { 0 };

	TRY(take_thread_later(r, FWD_BLOCKED, f->nblocked, 0));
	TRY(sym_take_index(&r->p, "index of an event", &b.event));
	f->blocked = xrealloc(f->blocked, (f->nblocked + 1) * sizeof *f->blocked);
	f->blocked[f->nblocked++] = b;
	return NULL;
}

static err_t read_assumption(struct reader *r)
{
	char *s;

	TRY(sym_take_text(&r->p, "sentence", &s));
	sym_add_assumption(trace(r), s);
	free(s);
	return NULL;
}

static const struct {
	const char *word;
	statement_fn *fn;
} statements[] = {
	{ "program", read_program }, { "symbol", read_symbol }, { "let", read_let },
	{ "var", read_var }, { "object", read_object }, { "stack", read_stack },
	{ "frame", read_frame }, { "thread", read_thread }, { "cond", read_cond },
	{ "failure", read_failure }, { "blocked", read_blocked },
	{ "assumption", read_assumption },
};

static err_t read_statement(struct reader *r)
{
	if (r->p.tok != TOK_WORD)
		return sym_parse_error(&r->p, "statement expected");
	if (!sym_at_word(&r->p, "frame"))
		TRY(flush_stack(r));
	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
		if (strcmp(statements[i].word, r->p.word))
			continue;
		TRY(sym_next(&r->p));
		return statements[i].fn(r);
	}
	for (enum sym_op op = 0; op < SYM_OP_COUNT; op++)
		if (!strcmp(sym_op_name(op), r->p.word))
			return read_event(r, op);
	return sym_parse_error(&r->p, "unknown statement '%s'", r->p.word);
}

static err_t read_header(struct reader *r)
{
	uint32_t version;

	do
		TRY(sym_next(&r->p));
	while (r->p.tok == TOK_LINE);
	if (!sym_at_word(&r->p, "csched-sym"))
		return sym_parse_error(&r->p, "not a symbolic trace (csched-sym expected)");
	TRY(sym_next(&r->p));
	TRY(sym_take_index(&r->p, "version", &version));
	if (version != SYM_TEXT_VERSION)
		return sym_parse_error(&r->p, "version %u is not known here", version);
	return end_of_line(r);
}

static err_t resolve_threads(struct reader *r)
{
	struct sym_trace *t = trace(r);

	for (size_t i = 0; i < r->forwards.n; i++) {
		struct forward *f = &r->forwards.v[i];
		uint32_t index;

		if (!sym_name_find(&r->p, NAME_THREAD, f->id, &index))
			return sym_parse_error(&f->at, "unknown thread '%s'", f->id);
		switch (f->what) {
		case FWD_PEER: t->threads[f->thread].events[f->index].peer = index; break;
		case FWD_OWNER: t->objects[f->thread].owner = index; break;
		case FWD_FAILURE: t->failure.thread = index; break;
		case FWD_BLOCKED: t->failure.blocked[f->thread].thread = index; break;
		}
	}
	return NULL;
}

static err_t read_all(struct reader *r)
{
	TRY(read_header(r));
	while (r->p.tok != TOK_END) {
		if (r->p.tok == TOK_LINE) {
			TRY(sym_next(&r->p));
			continue;
		}
		TRY(read_statement(r));
		TRY(end_of_line(r));
	}
	TRY(flush_stack(r));
	TRY(resolve_threads(r));
	return err_wrap(sym_check(r->p.t), "%s", r->p.file);
}

static void reader_free(struct reader *r)
{
	drop_frames(r);
	for (size_t i = 0; i < r->forwards.n; i++)
		free(r->forwards.v[i].id);
	for (size_t i = 0; i < r->p.cap_names; i++)
		free(r->p.names[i].name);
	free(r->p.names);
	free(r->p.word);
	vec_free(&r->forwards);
	vec_free(&r->frames);
}

static err_t read_text(FILE *f, const char *name, struct strbuf *b)
{
	char chunk[65536];
	size_t n;

	while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
		strbuf_add(b, chunk, n);
	return ferror(f) ? err_errno("%s", name) : NULL;
}

err_t sym_read(FILE *f, const char *name, struct sym_trace **out)
{
	struct strbuf text = { 0 };
	struct reader r = { .p = { .file = name, .line = 1 } };
	err_t e = read_text(f, name, &text);

	*out = NULL;
	if (!e) {
		const char *s = text.n ? text.s : "";

		r.p.text = r.p.at = r.p.line_start = s;
		r.p.end = s + text.n;
		r.p.t = sym_trace_new();
		e = read_all(&r);
		if (e)
			sym_trace_free(r.p.t);
		else
			*out = r.p.t;
	}
	reader_free(&r);
	strbuf_free(&text);
	return e;
}
