/* The in-memory symbolic trace: builders, release, names. */
#include "analyzer/symtrace/symtrace.h"
#include "common/vec.h"

#include <string.h>

static const char *const op_names[SYM_OP_COUNT] = {
	[SYM_READ] = "read", [SYM_WRITE] = "write", [SYM_RMW] = "rmw", [SYM_FENCE] = "fence",
	[SYM_LOCK] = "lock", [SYM_RDLOCK] = "rdlock", [SYM_UNLOCK] = "unlock",
	[SYM_TRYLOCK] = "trylock", [SYM_TRYRDLOCK] = "tryrdlock", [SYM_WAIT] = "wait",
	[SYM_SIGNAL] = "signal", [SYM_BROADCAST] = "broadcast", [SYM_SEMWAIT] = "semwait",
	[SYM_SEMPOST] = "sempost", [SYM_BARRIER_ENTER] = "barrier-enter",
	[SYM_BARRIER_LEAVE] = "barrier-leave", [SYM_ONCE_BEGIN] = "once-begin",
	[SYM_ONCE_END] = "once-end", [SYM_FORK] = "fork", [SYM_START] = "start",
	[SYM_EXIT] = "exit", [SYM_JOIN] = "join", [SYM_FAIL] = "fail",
};

const char *sym_op_name(enum sym_op op)
{
	return op < SYM_OP_COUNT ? op_names[op] : "?";
}

static char *dup_or_null(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

#define GROW(v, n, cap)                                                  \
	do {                                                             \
		if ((n) == (cap))                                        \
			(v) = vec_grow((v), &(cap), sizeof *(v), (n) + 1); \
	} while (0)

struct sym_trace *sym_trace_new(void)
{
	struct sym_trace *t = xcalloc(1, sizeof *t);

	t->pool = expr_pool_new();
	t->failure.thread = SYM_NONE;
	return t;
}

void sym_trace_free(struct sym_trace *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nvars; i++) {
		free(t->vars[i].name);
		free(t->vars[i].type);
	}
	for (size_t i = 0; i < t->nenums; i++) {
		free(t->enums[i].type);
		free(t->enums[i].names);
	}
	free(t->enums);
	for (size_t i = 0; i < t->nobjects; i++)
		free(t->objects[i].name);
	for (size_t i = 0; i < t->nthreads; i++) {
		free(t->threads[i].id);
		free(t->threads[i].name);
		free(t->threads[i].events);
		free(t->threads[i].conds);
	}
	for (size_t i = 0; i < t->nstacks; i++) {
		for (uint32_t k = 0; k < t->stacks[i].n; k++) {
			free(t->stacks[i].frames[k].function);
			free(t->stacks[i].frames[k].file);
			free(t->stacks[i].frames[k].module);
		}
		free(t->stacks[i].frames);
	}
	for (size_t i = 0; i < t->nassumptions; i++)
		free(t->assumptions[i]);
	free(t->vars);
	free(t->objects);
	free(t->threads);
	free(t->stacks);
	free(t->assumptions);
	free(t->failure.text);
	free(t->failure.blocked);
	free(t->program);
	expr_pool_free(t->pool);
	free(t);
}

uint32_t sym_add_thread(struct sym_trace *t, const char *id, const char *name)
{
	GROW(t->threads, t->nthreads, t->cap_threads);
	t->threads[t->nthreads] = (struct sym_thread){ .id = xstrdup(id),
						       .name = dup_or_null(name) };
	return t->nthreads++;
}

uint32_t sym_add_var(struct sym_trace *t, const struct sym_var *v)
{
	GROW(t->vars, t->nvars, t->cap_vars);
	t->vars[t->nvars] = *v;
	t->vars[t->nvars].name = xstrdup(v->name ? v->name : "?");
	t->vars[t->nvars].type = dup_or_null(v->type);
	return t->nvars++;
}

const char *sym_enum_names(const struct sym_trace *t, const char *type)
{
	for (size_t i = 0; type && i < t->nenums; i++)
		if (!strcmp(t->enums[i].type, type))
			return t->enums[i].names;
	return NULL;
}

void sym_add_enum(struct sym_trace *t, const char *type, char *names)
{
	if (sym_enum_names(t, type)) {
		free(names);
		return;
	}
	GROW(t->enums, t->nenums, t->cap_enums);
	t->enums[t->nenums++] = (struct sym_enum){ xstrdup(type), names };
}

uint32_t sym_add_object(struct sym_trace *t, const struct sym_object *o)
{
	GROW(t->objects, t->nobjects, t->cap_objects);
	t->objects[t->nobjects] = *o;
	t->objects[t->nobjects].name = xstrdup(o->name ? o->name : "?");
	return t->nobjects++;
}

uint32_t sym_add_stack(struct sym_trace *t, const struct sym_frame *frames, uint32_t n)
{
	struct sym_stack *s;

	GROW(t->stacks, t->nstacks, t->cap_stacks);
	s = &t->stacks[t->nstacks];
	s->frames = xcalloc(n ? n : 1, sizeof *s->frames);
	s->n = n;
	for (uint32_t i = 0; i < n; i++) {
		s->frames[i] = frames[i];
		s->frames[i].function = xstrdup(frames[i].function ? frames[i].function : "?");
		s->frames[i].file = dup_or_null(frames[i].file);
		s->frames[i].module = dup_or_null(frames[i].module);
	}
	return t->nstacks++;
}

uint32_t sym_add_event(struct sym_trace *t, uint32_t thread, const struct sym_event *e)
{
	struct sym_thread *th = &t->threads[thread];

	GROW(th->events, th->nevents, th->cap_events);
	th->events[th->nevents] = *e;
	th->events[th->nevents].thread = thread;
	th->events[th->nevents].index = th->nevents;
	return th->nevents++;
}

void sym_add_cond(struct sym_trace *t, uint32_t thread, const struct sym_cond *c)
{
	struct sym_thread *th = &t->threads[thread];

	GROW(th->conds, th->nconds, th->cap_conds);
	th->conds[th->nconds++] = *c;
}

void sym_add_assumption(struct sym_trace *t, const char *sentence)
{
	for (size_t i = 0; i < t->nassumptions; i++)
		if (!strcmp(t->assumptions[i], sentence))
			return;
	GROW(t->assumptions, t->nassumptions, t->cap_assumptions);
	t->assumptions[t->nassumptions++] = xstrdup(sentence);
}

void sym_event_init(struct sym_event *e, enum sym_op op)
{
	*e = (struct sym_event){
		.op = op, .thread = SYM_NONE, .index = SYM_NONE, .target = SYM_NONE,
		.peer = SYM_NONE, .link = SYM_NONE, .result = 1, .time_hi = UINT64_MAX,
		.stack = SYM_NONE, .variable = SYM_NONE,
	};
}
