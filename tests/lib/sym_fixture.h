/*
 * Small hand-made traces and answers for tests of the projection and the
 * reports: the classic kinds of bugs, each a few events long.
 *
 *   struct fixture fx;
 *   fixture_lost_update(&fx);
 *   ... fx.trace, &fx.answer ...
 *   fixture_free(&fx);
 *
 * Orders are given as text, one letter-number per event in the order executed:
 * fixture_order(&fx, &order, "0 0 1 2 1") runs the next event of thread 0, 0,
 * 1, 2, 1; values follow from executing it.
 */
#ifndef CSCHED_TESTS_SYM_FIXTURE_H
#define CSCHED_TESTS_SYM_FIXTURE_H

#include "analyzer/dsp/dsp.h"
#include "common/vec.h"

#include <stdio.h>
#include <string.h>

struct fixture {
	struct sym_trace *trace;
	struct sched_answer answer;
	const char *file;
};

#define FX_UNUSED __attribute__((unused))

static FX_UNUSED void fixture_init(struct fixture *fx, const char *program, const char *file)
{
	memset(fx, 0, sizeof *fx);
	fx->trace = sym_trace_new();
	fx->trace->program = xstrdup(program);
	fx->trace->failure.thread = SYM_NONE;
	fx->file = file;
	fx->answer.found = true;
	fx->answer.cause_minimal = true;
}

static FX_UNUSED void fixture_order_free(struct sched_order *o)
{
	free(o->refs);
	free(o->values);
}

static FX_UNUSED void fixture_free(struct fixture *fx)
{
	fixture_order_free(&fx->answer.recorded);
	fixture_order_free(&fx->answer.failing);
	for (size_t i = 0; i < fx->answer.nalternates; i++)
		fixture_order_free(&fx->answer.alternates[i].order);
	free(fx->answer.alternates);
	free(fx->answer.cause);
	free(fx->answer.why);
	sym_trace_free(fx->trace);
}

static FX_UNUSED uint32_t fixture_var(struct fixture *fx, const char *name, const char *type,
				      uint64_t init)
{
	struct sym_var v = { .name = (char *)name, .type = (char *)type, .width = 32 };

	if (type && strchr(type, '*'))
		v.width = 64;
	v.has_init = true;
	v.init = expr_const(fx->trace->pool, v.width, init);
	return sym_add_var(fx->trace, &v);
}

static FX_UNUSED uint32_t fixture_mutex(struct fixture *fx, const char *name)
{
	struct sym_object o = { .name = (char *)name, .kind = SYM_MUTEX, .owner = SYM_NONE };

	return sym_add_object(fx->trace, &o);
}

static FX_UNUSED uint32_t fixture_stack(struct fixture *fx, const char *function, uint32_t line,
					const char *caller)
{
	struct sym_frame f[3] = {
		{ .function = (char *)function, .file = (char *)fx->file, .line = line,
		  .module = fx->trace->program, .pc = 0x401000 + line * 16 },
		{ .function = (char *)caller, .file = (char *)fx->file, .line = 90,
		  .module = fx->trace->program, .pc = 0x402000 },
		{ .function = (char *)"start_thread", .module = (char *)"libc.so.6", .pc = 0x7f00 },
	};

	return sym_add_stack(fx->trace, f, 3);
}

/* An event at a line; READ and RMW get a fresh symbol. Returns its index. */
static FX_UNUSED uint32_t fixture_event(struct fixture *fx, uint32_t thread, enum sym_op op,
					uint32_t target, const char *function, uint32_t line)
{
	static const char *const callers[] = { "main", "worker", "worker" };
	struct sym_event e;
	char name[64];

	sym_event_init(&e, op);
	if (op == SYM_FORK || op == SYM_JOIN)
		e.peer = target;
	else
		e.target = target;
	e.pc = 0x401000 + line * 16 + (op == SYM_WRITE ? 4 : 0);
	e.occurrence = 1;
	if (op == SYM_READ || op == SYM_RMW) {
		snprintf(name, sizeof name, "%s@%s.%zu", fx->trace->vars[target].name,
			 fx->trace->threads[thread].id, fx->trace->threads[thread].nevents);
		e.symbol = expr_symbol(fx->trace->pool, fx->trace->vars[target].width, name);
	}
	e.stack = fixture_stack(fx, function, line, callers[thread > 2 ? 2 : thread]);
	return sym_add_event(fx->trace, thread, &e);
}

static FX_UNUSED struct sym_event *fixture_at(struct fixture *fx, uint32_t thread, uint32_t index)
{
	return &fx->trace->threads[thread].events[index];
}

static FX_UNUSED expr_id fixture_sym(struct fixture *fx, uint32_t thread, uint32_t index)
{
	return fixture_at(fx, thread, index)->symbol;
}

static FX_UNUSED void fixture_cond(struct fixture *fx, uint32_t thread, uint32_t after,
				   expr_id cond)
{
	struct sym_cond c = { .after = after, .cond = cond, .stack = SYM_NONE };

	sym_add_cond(fx->trace, thread, &c);
}

/* Executes thread numbers in turn, see above; the characters after '9' are threads, too. */
static FX_UNUSED void fixture_order(struct fixture *fx, struct sched_order *o, const char *turns)
{
	const struct sym_trace *t = fx->trace;
	uint32_t next['z' - '0' + 1] = { 0 }, last = SYM_NONE;
	uint64_t *memory = xcalloc(t->nvars + 1, sizeof *memory);
	VEC(struct sched_ref) refs = { 0 };

	o->nvalues = expr_symbol_count(t->pool);
	o->values = xcalloc(o->nvalues + 1, sizeof *o->values);
	for (size_t i = 0; i < t->nvars; i++)
		memory[i] = expr_eval(t->pool, t->vars[i].init, o->values);
	for (; *turns; turns++) {
		if (*turns == ' ')
			continue;
		struct sched_ref r = { (uint32_t)(*turns - '0'), next[*turns - '0']++ };
		const struct sym_event *e = order_event_at(t, r);

		if (e->symbol != EXPR_NONE)
			o->values[expr_get(t->pool, e->symbol)->value] = memory[e->target];
		if (e->value != EXPR_NONE)
			memory[e->target] = expr_eval(t->pool, e->value, o->values);
		o->switches += last != SYM_NONE && last != r.thread;
		last = r.thread;
		vec_push(&refs, r);
	}
	o->refs = refs.v;
	o->n = refs.n;
	free(memory);
}

static FX_UNUSED void fixture_cause(struct fixture *fx, uint32_t bt, uint32_t bi, uint32_t at,
				    uint32_t ai)
{
	struct sched_answer *a = &fx->answer;

	a->cause = xrealloc(a->cause, (a->ncause + 1) * sizeof *a->cause);
	a->cause[a->ncause++] = (struct sched_edge){ { bt, bi }, { at, ai } };
}

/* The alternate turns round the first root-cause edge. */
static FX_UNUSED void fixture_alternate(struct fixture *fx, const char *turns)
{
	struct sched_answer *a = &fx->answer;

	a->alternates = xcalloc(1, sizeof *a->alternates);
	a->nalternates = 1;
	a->alternates[0].inverted = a->cause[0];
	a->alternates[0].single = true;
	fixture_order(fx, &a->alternates[0].order, turns);
}

static FX_UNUSED void fixture_fails(struct fixture *fx, enum sym_failure_kind kind,
				    uint32_t thread, const char *text, expr_id condition)
{
	fx->trace->failure.kind = kind;
	fx->trace->failure.thread = thread;
	fx->trace->failure.text = text ? xstrdup(text) : NULL;
	fx->trace->failure.condition = condition;
}

/* An assertion that fails when what `read' of the thread read is `value' (32 bits). */
static FX_UNUSED void fixture_asserts(struct fixture *fx, uint32_t thread, uint32_t read, uint64_t value,
				      const char *text)
{
	struct expr_pool *pool = fx->trace->pool;

	fixture_fails(fx, SYM_FAIL_ASSERT, thread, text,
		      expr_binary(pool, EX_EQ, fixture_sym(fx, thread, read), expr_const(pool, 32, value)));
}

/* A write of a constant (32 bits). Its index. */
static FX_UNUSED uint32_t fixture_writes(struct fixture *fx, uint32_t thread, uint32_t var, uint64_t value,
					 const char *function, uint32_t line)
{
	uint32_t w = fixture_event(fx, thread, SYM_WRITE, var, function, line);

	fixture_at(fx, thread, w)->value = expr_const(fx->trace->pool, 32, value);
	return w;
}

/* Two threads add to `total' without a lock; main asserts the sum. */
static FX_UNUSED void fixture_lost_update(struct fixture *fx)
{
	fixture_init(fx, "/home/u/bank", "/src/bank.c");
	struct sym_trace *t = fx->trace;
	uint32_t total = fixture_var(fx, "total", "int", 100);
	uint32_t noise = fixture_var(fx, "log_lines", "int", 0);

	for (int i = 0; i < 3; i++)
		sym_add_thread(t, (const char *[]){ "T0", "T0.1", "T0.2" }[i], NULL);
	fixture_event(fx, 0, SYM_START, SYM_NONE, "main", 40);
	fixture_event(fx, 0, SYM_FORK, 1, "main", 41);
	fixture_event(fx, 0, SYM_FORK, 2, "main", 42);
	for (uint32_t th = 1; th < 3; th++) {
		fixture_event(fx, th, SYM_START, SYM_NONE, "worker", 20);
		uint32_t n = fixture_event(fx, th, SYM_WRITE, noise, "worker", 21);

		fixture_at(fx, th, n)->value = expr_const(t->pool, 32, th);
		uint32_t r = fixture_event(fx, th, SYM_READ, total, "deposit", 10);
		uint32_t w = fixture_event(fx, th, SYM_WRITE, total, "deposit", 12);

		fixture_at(fx, th, w)->value = expr_binary(t->pool, EX_ADD, fixture_sym(fx, th, r),
							   expr_const(t->pool, 32, th * 10));
		fixture_event(fx, th, SYM_EXIT, SYM_NONE, "worker", 24);
	}
	fixture_event(fx, 0, SYM_JOIN, 1, "main", 43);
	fixture_event(fx, 0, SYM_JOIN, 2, "main", 44);
	uint32_t n = fixture_event(fx, 0, SYM_READ, noise, "main", 45);
	uint32_t r = fixture_event(fx, 0, SYM_READ, total, "audit", 30);

	(void)n;
	fixture_event(fx, 0, SYM_FAIL, SYM_NONE, "audit", 30);
	expr_id holds = expr_binary(t->pool, EX_EQ, fixture_sym(fx, 0, r),
				    expr_const(t->pool, 32, 130));

	fixture_fails(fx, SYM_FAIL_ASSERT, 0, "Assertion `total == 130' failed",
		      expr_unary(t->pool, EX_BNOT, holds));
	sym_add_assumption(t, "Memory is sequentially consistent.");
	fixture_order(fx, &fx->answer.recorded, "0001212121 1 200000");
	fixture_order(fx, &fx->answer.failing, "000112221 1 2200000");
	fixture_cause(fx, 2, 2, 1, 3);
	fixture_alternate(fx, "00011111222220 0000");
}

#define FX_MANY 64

/* As many threads, main included, add to `total'; the first two lose an update. */
static FX_UNUSED void fixture_many(struct fixture *fx)
{
	fixture_init(fx, "/home/u/many", "/src/many.c");
	struct sym_trace *t = fx->trace;
	uint32_t total = fixture_var(fx, "total", "int", 0);
	char failing[5 * FX_MANY] = "", *f = failing, passing[5 * FX_MANY] = "", *p = passing;

	sym_add_thread(t, "T0", NULL);
	for (int i = 1; i < FX_MANY; i++) {
		char id[16];

		snprintf(id, sizeof id, "T0.%d", i);
		sym_add_thread(t, id, NULL);
		fixture_event(fx, 0, SYM_FORK, (uint32_t)i, "main", 40);
		*f++ = *p++ = '0';
	}
	for (uint32_t th = 1; th < FX_MANY; th++) {
		fixture_event(fx, th, SYM_START, SYM_NONE, "worker", 20);
		uint32_t r = fixture_event(fx, th, SYM_READ, total, "deposit", 10);
		uint32_t w = fixture_event(fx, th, SYM_WRITE, total, "deposit", 12);

		fixture_at(fx, th, w)->value = expr_binary(t->pool, EX_ADD, fixture_sym(fx, th, r),
							   expr_const(t->pool, 32, 1));
		if (th > 2)
			f += sprintf(f, "%c%c%c", '0' + th, '0' + th, '0' + th);
		p += sprintf(p, "%c%c%c", '0' + th, '0' + th, '0' + th);
		if (th == 2)
			f += sprintf(f, "112212");
	}
	uint32_t r = fixture_event(fx, 0, SYM_READ, total, "audit", 30);

	fixture_event(fx, 0, SYM_FAIL, SYM_NONE, "audit", 30);
	fixture_fails(fx, SYM_FAIL_ASSERT, 0, "Assertion `total == 63' failed",
		      expr_unary(t->pool, EX_BNOT,
				 expr_binary(t->pool, EX_EQ, fixture_sym(fx, 0, r),
					     expr_const(t->pool, 32, FX_MANY - 1))));
	strcpy(f, "00");
	strcpy(p, "00");
	fixture_order(fx, &fx->answer.failing, failing);
	fixture_cause(fx, 2, 1, 1, 2);
	fixture_alternate(fx, passing);
}

/* The main thread, and two that it creates at lines 50 and 51. */
static FX_UNUSED void fixture_children(struct fixture *fx)
{
	for (int i = 0; i < 3; i++)
		sym_add_thread(fx->trace, (const char *[]){ "T0", "T0.1", "T0.2" }[i], NULL);
	fixture_event(fx, 0, SYM_FORK, 1, "main", 50);
	fixture_event(fx, 0, SYM_FORK, 2, "main", 51);
}

/* if (p) ... *p with p = NULL in between; each access under a lock of its own. */
static FX_UNUSED void fixture_check_then_act(struct fixture *fx)
{
	fixture_init(fx, "/home/u/crasher", "/src/crasher.c");
	struct sym_trace *t = fx->trace;
	uint32_t p = fixture_var(fx, "p", "char *", 0x5555000);
	uint32_t m = fixture_mutex(fx, "m");

	fixture_children(fx);
	fixture_event(fx, 1, SYM_START, SYM_NONE, "use", 9);
	fixture_event(fx, 1, SYM_LOCK, m, "use", 10);
	uint32_t check = fixture_event(fx, 1, SYM_READ, p, "use", 11);

	fixture_event(fx, 1, SYM_UNLOCK, m, "use", 12);
	fixture_event(fx, 1, SYM_LOCK, m, "use", 13);
	uint32_t use = fixture_event(fx, 1, SYM_READ, p, "use", 14);

	fixture_event(fx, 1, SYM_FAIL, SYM_NONE, "use", 14);
	fixture_event(fx, 2, SYM_START, SYM_NONE, "drop", 19);
	fixture_event(fx, 2, SYM_LOCK, m, "drop", 20);
	uint32_t drop = fixture_event(fx, 2, SYM_WRITE, p, "drop", 21);

	fixture_at(fx, 2, drop)->value = expr_const(t->pool, 64, 0);
	fixture_event(fx, 2, SYM_UNLOCK, m, "drop", 22);
	expr_id null = expr_const(t->pool, 64, 0);

	fixture_cond(fx, 1, check,
		     expr_unary(t->pool, EX_BNOT,
				expr_binary(t->pool, EX_EQ, fixture_sym(fx, 1, check), null)));
	fixture_fails(fx, SYM_FAIL_SIGNAL, 1, "SIGSEGV",
		      expr_binary(t->pool, EX_EQ, fixture_sym(fx, 1, use), null));
	fixture_order(fx, &fx->answer.failing, "00 1111 2222 111");
	fixture_cause(fx, 2, drop, 1, use);
	fixture_alternate(fx, "00 1111111");
}

/* T0.1 takes a then b, T0.2 takes b then a. */
static FX_UNUSED void fixture_deadlock(struct fixture *fx)
{
	fixture_init(fx, "/home/u/abba", "/src/abba.c");
	struct sym_trace *t = fx->trace;
	uint32_t lock[2] = { fixture_mutex(fx, "a"), fixture_mutex(fx, "b") };

	fixture_children(fx);
	for (uint32_t th = 1; th < 3; th++) {
		fixture_event(fx, th, SYM_START, SYM_NONE, "worker", 9 + th);
		fixture_event(fx, th, SYM_LOCK, lock[th - 1], "worker", 10 * th);
		fixture_event(fx, th, SYM_LOCK, lock[2 - th], "worker", 10 * th + 1);
	}
	fixture_fails(fx, SYM_FAIL_DEADLOCK, SYM_NONE, "deadlock", EXPR_NONE);
	t->failure.blocked = xcalloc(2, sizeof *t->failure.blocked);
	t->failure.nblocked = 2;
	t->failure.blocked[0] = (struct sym_blocked){ 1, 2 };
	t->failure.blocked[1] = (struct sym_blocked){ 2, 2 };
	fixture_order(fx, &fx->answer.failing, "0011 22");
	fixture_cause(fx, 2, 1, 1, 2);
	fixture_cause(fx, 1, 1, 2, 2);
	fixture_alternate(fx, "00 111 2");
}

/* The child uses `conf' before its creator sets it. */
static FX_UNUSED void fixture_use_before_init(struct fixture *fx)
{
	fixture_init(fx, "/home/u/init", "/src/init.c");
	struct sym_trace *t = fx->trace;
	uint32_t conf = fixture_var(fx, "conf", "struct conf *", 0);

	sym_add_thread(t, "T0", NULL);
	sym_add_thread(t, "T0.1", NULL);
	uint32_t clear = fixture_event(fx, 0, SYM_WRITE, conf, "main", 30);

	fixture_at(fx, 0, clear)->value = expr_const(t->pool, 64, 0);
	fixture_event(fx, 0, SYM_FORK, 1, "main", 31);
	uint32_t set = fixture_event(fx, 0, SYM_WRITE, conf, "main", 32);

	fixture_at(fx, 0, set)->value = expr_const(t->pool, 64, 0x5555aaaa0010);
	fixture_event(fx, 0, SYM_JOIN, 1, "main", 33);
	fixture_event(fx, 1, SYM_START, SYM_NONE, "child", 9);
	uint32_t use = fixture_event(fx, 1, SYM_READ, conf, "child", 10);

	fixture_event(fx, 1, SYM_FAIL, SYM_NONE, "child", 10);
	fixture_fails(fx, SYM_FAIL_SIGNAL, 1, "SIGSEGV",
		      expr_binary(t->pool, EX_EQ, fixture_sym(fx, 1, use),
				  expr_const(t->pool, 64, 0)));
	fixture_order(fx, &fx->answer.failing, "00 111");
	fixture_cause(fx, 1, use, 0, set);
	fixture_alternate(fx, "000 111");
}

/* main drops what its child still uses, and joins only afterwards. Not whole: the window begins behind its creation. */
static FX_UNUSED void fixture_teardown_in(struct fixture *fx, bool whole)
{
	fixture_init(fx, "/home/u/pbzip", "/src/pbzip.c");
	struct sym_trace *t = fx->trace;
	uint32_t fifo = fixture_var(fx, "fifo", "queue *", 0x5555000);

	sym_add_thread(t, "T0", NULL);
	sym_add_thread(t, "T0.1", NULL);
	if (whole)
		fixture_event(fx, 0, SYM_FORK, 1, "main", 30);
	uint32_t drop = fixture_event(fx, 0, SYM_WRITE, fifo, "main", 40);

	fixture_at(fx, 0, drop)->value = expr_const(t->pool, 64, 0);
	fixture_event(fx, 0, SYM_JOIN, 1, "main", 44);
	if (whole)
		fixture_event(fx, 1, SYM_START, SYM_NONE, "consumer", 9);
	fixture_event(fx, 1, SYM_READ, fifo, "consumer", 10);
	uint32_t use = fixture_event(fx, 1, SYM_READ, fifo, "consumer", 14);

	fixture_event(fx, 1, SYM_FAIL, SYM_NONE, "consumer", 14);
	fixture_fails(fx, SYM_FAIL_SIGNAL, 1, "SIGSEGV",
		      expr_binary(t->pool, EX_EQ, fixture_sym(fx, 1, use),
				  expr_const(t->pool, 64, 0)));
	fixture_order(fx, &fx->answer.failing, whole ? "0 11 0 11" : "1 0 11");
	fixture_cause(fx, 0, drop, 1, use);
	fixture_alternate(fx, whole ? "0 1111" : "111");
}

static FX_UNUSED void fixture_teardown(struct fixture *fx)
{
	fixture_teardown_in(fx, true);
}

/* Two variables that belong together, read while only one is updated. */
static FX_UNUSED void fixture_two_variables(struct fixture *fx)
{
	fixture_init(fx, "/home/u/2stage", "/src/2stage.c");
	struct sym_trace *t = fx->trace;
	uint32_t a = fixture_var(fx, "a", "int", 0), b = fixture_var(fx, "b", "int", 0);

	fixture_children(fx);
	fixture_event(fx, 1, SYM_START, SYM_NONE, "stage", 9);
	uint32_t wa = fixture_event(fx, 1, SYM_WRITE, a, "stage", 10);
	uint32_t wb = fixture_event(fx, 1, SYM_WRITE, b, "stage", 14);

	fixture_at(fx, 1, wa)->value = expr_const(t->pool, 32, 1);
	fixture_at(fx, 1, wb)->value = expr_const(t->pool, 32, 2);
	fixture_event(fx, 2, SYM_START, SYM_NONE, "look", 19);
	uint32_t ra = fixture_event(fx, 2, SYM_READ, a, "look", 20);
	uint32_t rb = fixture_event(fx, 2, SYM_READ, b, "look", 21);

	fixture_event(fx, 2, SYM_FAIL, SYM_NONE, "look", 22);
	fixture_cond(fx, 2, ra, expr_unary(t->pool, EX_BNOT,
					   expr_binary(t->pool, EX_EQ, fixture_sym(fx, 2, ra),
						       expr_const(t->pool, 32, 0))));
	fixture_fails(fx, SYM_FAIL_ASSERT, 2, "Assertion `b > a' failed",
		      expr_binary(t->pool, EX_SLE, fixture_sym(fx, 2, rb), fixture_sym(fx, 2, ra)));
	fixture_order(fx, &fx->answer.failing, "00 11 222 2 1");
	fixture_cause(fx, 2, rb, 1, wb);
	fixture_cause(fx, 1, wa, 2, ra);
	fixture_alternate(fx, "00 111 2222");
}

/* A lost update whose every string tries to break out of the report. */
static FX_UNUSED void fixture_hostile(struct fixture *fx)
{
	static const char *const evil[] = {
		"</script><script>window.pwned=1</script>",
		"\"'><img src=x onerror=window.pwned=1>",
		"\033]0;title\007\033[31mred\033[0m\r\n\tend",
		"bad utf8 \xff\xfe\xc0\x80 and \xe2\x80\xae reversed \xc2\x9b" "31m",
		"| pipe `tick` *star* [link](javascript:pwn()) \\ ``two``",
		"\";} digraph x { a -> b } \\",
	};

	fixture_lost_update(fx);
	struct sym_trace *t = fx->trace;
	size_t n = 0;

#define FX_EVIL(place) (free(place), (place) = xstrdup(evil[n++ % 6]))
	FX_EVIL(t->vars[0].name);
	FX_EVIL(t->vars[0].type);
	for (size_t i = 0; i < t->nthreads; i++) {
		FX_EVIL(t->threads[i].id);
		FX_EVIL(t->threads[i].name);
	}
	for (size_t i = 0; i < t->nstacks; i++) {
		for (uint32_t k = 0; k < t->stacks[i].n; k++) {
			FX_EVIL(t->stacks[i].frames[k].function);
			FX_EVIL(t->stacks[i].frames[k].file);
			FX_EVIL(t->stacks[i].frames[k].module);
			n++;
		}
	}
	FX_EVIL(t->failure.text);
	FX_EVIL(t->program);
	for (size_t i = 0; i < 6; i++)
		sym_add_assumption(t, evil[i]);
#undef FX_EVIL
}

#endif
