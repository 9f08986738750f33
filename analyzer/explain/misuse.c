/* Use of what was freed, destroyed or closed in words: what led to an abort in the heap, or to nonsense, far away. */
#include "analyzer/explain/explain.h"

#include "common/strbuf.h"
#include "common/syscall_names.h"

static void at(struct strbuf *b, const struct sym_trace *t, uint32_t stack)
{
	struct sym_event e;

	sym_event_init(&e, SYM_READ);
	e.stack = stack;
	const struct sym_frame *f = dsp_place(t, &e);
	if (f && f->file && f->line)
		strbuf_fmt(b, " at %s:%u (%s)", dsp_basename(f->file), f->line, f->function);
	else if (f)
		strbuf_fmt(b, " in %s", f->function);
}

/* A place that the program's reader knows? Libraries allocate for others. */
static bool is_of_program(const struct sym_trace *t, uint32_t stack)
{
	for (uint32_t i = 0; stack < t->nstacks && i < t->stacks[stack].n; i++)
		if (t->stacks[stack].frames[i].line && !dsp_is_runtime(&t->stacks[stack].frames[i]))
			return true;
	return false;
}

static char *closed_text(const struct sym_trace *t, const struct ext_misuse *m)
{
	const char *call = syscall_name(m->call);
	struct strbuf b = { 0 };

	strbuf_fmt(&b, "Closed descriptor: %s used %u in %s()", t->threads[m->thread].id, m->descriptor,
		   call ? call : "a system call");
	at(&b, t, m->stack);
	strbuf_fmt(&b, " that %s had closed", t->threads[m->freed_by].id);
	at(&b, t, m->freed_stack);
	strbuf_char(&b, '.');
	return strbuf_take(&b);
}

static char *destroyed_text(const struct sym_trace *t, const struct ext_misuse *m)
{
	struct strbuf b = { 0 };

	strbuf_fmt(&b, "Destroyed mutex: %s could not lock `%s'", t->threads[m->thread].id, m->name);
	at(&b, t, m->stack);
	strbuf_fmt(&b, ", which %s had destroyed",
		   m->freed_by == m->thread ? "it" : t->threads[m->freed_by].id);
	at(&b, t, m->freed_stack);
	strbuf_char(&b, '.');
	return strbuf_take(&b);
}

static char *left_text(const struct sym_trace *t, const struct ext_misuse *m)
{
	struct strbuf b = { 0 };

	strbuf_fmt(&b, "Use after return: %s %s", t->threads[m->thread].id, m->write ? "wrote" : "read");
	at(&b, t, m->stack);
	strbuf_fmt(&b, " what was on the stack of %s", t->threads[m->freed_by].id);
	at(&b, t, m->freed_stack);
	strbuf_fmt(&b, ", from where %s had returned.", t->threads[m->freed_by].id);
	return strbuf_take(&b);
}

char *explain_misuse(const struct explanation *e)
{
	const struct ext_misuse *m = &e->extracted->misuse;
	const struct sym_trace *t = e->extracted->trace;
	struct strbuf b = { 0 };

	if (m->kind == EXT_MISUSE_NONE)
		return NULL;
	if (m->kind == EXT_MISUSE_CLOSED)
		return closed_text(t, m);
	if (m->kind == EXT_MISUSE_LEFT)
		return left_text(t, m);
	if (m->kind == EXT_MISUSE_DESTROYED)
		return destroyed_text(t, m);
	strbuf_fmt(&b, "Use after free: %s ", t->threads[m->thread].id);
	if (m->again)
		strbuf_str(&b, "freed a block");
	else
		strbuf_fmt(&b, "%s `%s'", m->write ? "wrote" : "read", m->name);
	at(&b, t, m->stack);
	strbuf_fmt(&b, " that %s had freed", m->freed_by == m->thread ? "it" : t->threads[m->freed_by].id);
	if (m->freed_stack != SYM_NONE)
		at(&b, t, m->freed_stack);
	if (is_of_program(t, m->made_stack)) {
		strbuf_str(&b, "; it was allocated");
		at(&b, t, m->made_stack);
	}
	strbuf_char(&b, '.');
	return strbuf_take(&b);
}

/* Nothing is to be done about a use that nobody knows the place of, or about one's own. */
void explain_misuse_hint(struct explanation *e)
{
	const struct ext_misuse *m = &e->extracted->misuse;

	if (m->kind != EXT_MISUSE_FREED || m->again || m->stack == SYM_NONE || m->freed_stack == SYM_NONE)
		return;
	struct dsp_freed f = { .base = m->base, .size = m->size, .thread = m->thread, .event = m->event,
			       .stack = m->stack, .freed_by = m->freed_by, .freed_event = m->freed_event,
			       .freed_stack = m->freed_stack, .name = m->name };

	dsp_freed_hint(e->extracted->trace, &f, e->dsp);
}
