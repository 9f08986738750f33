/*
 * The papers' formulation, for comparison in `make bench` only: an integer per
 * event; every read says, for every write, "this one is before me and each
 * other one is before it or after me"; every lock section the same for the
 * sections of its lock. Cubic, all of it in Z3's arithmetic.
 *
 *   naive FILE.sym SECONDS    prints "sat 1.234" | "unsat ..." | "unknown ..."
 *
 * Reads the subset the generated traces use. Values are integers.
 */
#include "analyzer/symtrace/symbiosis.h"
#include "common/vec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <z3.h>

static Z3_context z;
static Z3_solver s;
static const struct sym_trace *t;
static Z3_ast **at; /* order variable by thread and index */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static Z3_ast constant(const char *prefix, unsigned a, unsigned b)
{
	char name[64];

	snprintf(name, sizeof name, "%s%u_%u", prefix, a, b);
	return Z3_mk_const(z, Z3_mk_string_symbol(z, name), Z3_mk_int_sort(z));
}

static Z3_ast lt(const struct sym_event *a, const struct sym_event *b)
{
	return Z3_mk_lt(z, at[a->thread][a->index], at[b->thread][b->index]);
}

static Z3_ast term(expr_id e)
{
	const struct expr *n = expr_get(t->pool, e);
	Z3_ast a = n->a ? term(n->a) : NULL, b = n->b ? term(n->b) : NULL, ab[2] = { a, b };

	switch ((enum expr_op)n->op) {
	case EX_CONST:
		if (n->width == EXPR_BOOL)
			return n->value ? Z3_mk_true(z) : Z3_mk_false(z);
		return Z3_mk_int64(z, (int64_t)n->value, Z3_mk_int_sort(z));
	case EX_SYMBOL: return constant("v", n->value, 0);
	case EX_ADD: return Z3_mk_add(z, 2, ab);
	case EX_SUB: return Z3_mk_sub(z, 2, ab);
	case EX_EQ: return Z3_mk_eq(z, a, b);
	case EX_ULT: case EX_SLT: return Z3_mk_lt(z, a, b);
	case EX_ULE: case EX_SLE: return Z3_mk_le(z, a, b);
	case EX_BNOT: return Z3_mk_not(z, a);
	case EX_BAND: return Z3_mk_and(z, 2, ab);
	case EX_BOR: return Z3_mk_or(z, 2, ab);
	default:
		fprintf(stderr, "naive: operator %d is not supported\n", n->op);
		exit(4);
	}
}

static void add(Z3_ast a)
{
	Z3_solver_assert(z, s, a);
}

typedef VEC(const struct sym_event *) events;

static void collect(events *out, enum sym_op op, uint32_t target)
{
	out->n = 0;
	for (size_t k = 0; k < t->nthreads; k++)
		for (size_t i = 0; i < t->threads[k].nevents; i++)
			if (t->threads[k].events[i].op == op &&
			    t->threads[k].events[i].target == target)
				vec_push(out, &t->threads[k].events[i]);
}

static void program_order(void)
{
	for (size_t k = 0; k < t->nthreads; k++) {
		const struct sym_thread *th = &t->threads[k];

		for (size_t i = 0; i < th->nevents; i++) {
			const struct sym_event *e = &th->events[i];

			if (i)
				add(lt(e - 1, e));
			if (e->op == SYM_FORK && t->threads[e->peer].nevents)
				add(lt(e, &t->threads[e->peer].events[0]));
			if (e->op == SYM_JOIN && t->threads[e->peer].nevents)
				add(lt(&t->threads[e->peer].events[t->threads[e->peer].nevents - 1], e));
		}
		for (size_t i = 0; i < th->nconds; i++)
			add(term(th->conds[i].cond));
	}
}

static void memory(uint32_t var)
{
	events reads = { 0 }, writes = { 0 };
	VEC(Z3_ast) any = { 0 }, all = { 0 };

	collect(&reads, SYM_READ, var);
	collect(&writes, SYM_WRITE, var);
	for (size_t r = 0; r < reads.n; r++) {
		Z3_ast value = term(reads.v[r]->symbol);

		any.n = all.n = 0;
		vec_push(&all, Z3_mk_eq(z, value, t->vars[var].has_init ? term(t->vars[var].init) :
					constant("i", var, 0)));
		for (size_t w = 0; w < writes.n; w++)
			vec_push(&all, lt(reads.v[r], writes.v[w]));
		vec_push(&any, Z3_mk_and(z, all.n, all.v));
		for (size_t w = 0; w < writes.n; w++) {
			all.n = 0;
			vec_push(&all, Z3_mk_eq(z, value, term(writes.v[w]->value)));
			vec_push(&all, lt(writes.v[w], reads.v[r]));
			for (size_t o = 0; o < writes.n; o++)
				if (o != w)
					vec_push(&all, Z3_mk_or(z, 2, (Z3_ast[]){
						lt(writes.v[o], writes.v[w]),
						lt(reads.v[r], writes.v[o]) }));
			vec_push(&any, Z3_mk_and(z, all.n, all.v));
		}
		add(Z3_mk_or(z, any.n, any.v));
	}
}

struct section {
	const struct sym_event *from, *to; /* to NULL: never released */
};

static void locks(uint32_t object)
{
	VEC(struct section) list = { 0 };

	for (size_t k = 0; k < t->nthreads; k++) {
		unsigned depth = 0;

		for (size_t i = 0; i < t->threads[k].nevents; i++) {
			const struct sym_event *e = &t->threads[k].events[i];

			if (e->target != object)
				continue;
			if (e->op == SYM_LOCK && !depth++)
				vec_push(&list, (struct section){ e, NULL });
			else if (e->op == SYM_UNLOCK && depth && !--depth)
				list.v[list.n - 1].to = e;
		}
	}
	/* Each section is the first, or directly follows one other. */
	for (size_t a = 0; a < list.n; a++) {
		VEC(Z3_ast) any = { 0 }, all = { 0 };

		if (!list.v[a].to) {
			for (size_t b = 0; b < list.n; b++)
				if (b != a && list.v[b].to)
					add(lt(list.v[b].to, list.v[a].from));
			continue;
		}
		for (size_t b = 0; b < list.n; b++)
			if (b != a)
				vec_push(&all, lt(list.v[a].to, list.v[b].from));
		vec_push(&any, all.n ? Z3_mk_and(z, all.n, all.v) : Z3_mk_true(z));
		for (size_t b = 0; b < list.n; b++) {
			if (b == a || !list.v[b].to)
				continue;
			all.n = 0;
			vec_push(&all, lt(list.v[b].to, list.v[a].from));
			for (size_t c = 0; c < list.n; c++) {
				Z3_ast after;

				if (c == a || c == b)
					continue;
				after = lt(list.v[a].to, list.v[c].from);
				vec_push(&all, list.v[c].to ? Z3_mk_or(z, 2, (Z3_ast[]){
					lt(list.v[c].to, list.v[b].from), after }) : after);
			}
			vec_push(&any, Z3_mk_and(z, all.n, all.v));
		}
		add(Z3_mk_or(z, any.n, any.v));
		vec_free(&any);
		vec_free(&all);
	}
	vec_free(&list);
}

static void signals(uint32_t object)
{
	events waits = { 0 }, sent = { 0 };
	VEC(Z3_ast) any = { 0 };

	collect(&waits, SYM_WAIT, object);
	collect(&sent, SYM_SIGNAL, object);
	for (size_t w = 0; w < waits.n; w++) {
		const struct sym_event *wait = waits.v[w];

		any.n = 0;
		for (size_t k = 0; k < sent.n; k++) {
			Z3_ast m = constant("m", object * 100000 + w, k);

			add(Z3_mk_le(z, Z3_mk_int(z, 0, Z3_mk_int_sort(z)), m));
			vec_push(&any, Z3_mk_and(z, 3, (Z3_ast[]){
				Z3_mk_eq(z, m, Z3_mk_int(z, 1, Z3_mk_int_sort(z))),
				lt(&t->threads[wait->thread].events[wait->link], sent.v[k]),
				lt(sent.v[k], wait) }));
		}
		add(any.n ? Z3_mk_or(z, any.n, any.v) : Z3_mk_false(z));
	}
	for (size_t k = 0; k < sent.n && waits.n; k++) {
		any.n = 0;
		for (size_t w = 0; w < waits.n; w++)
			vec_push(&any, constant("m", object * 100000 + w, k));
		add(Z3_mk_le(z, Z3_mk_add(z, any.n, any.v), Z3_mk_int(z, 1, Z3_mk_int_sort(z))));
	}
}

int main(int argc, char **argv)
{
	struct sym_trace *trace;
	Z3_config cfg = Z3_mk_config();
	struct stat st;
	double start;
	Z3_lbool r;
	err_t e;

	if (argc != 3)
		return 2;
	if (!stat(argv[1], &st) && S_ISDIR(st.st_mode)) {
		e = symbiosis_read(argv[1], &trace);
	} else {
		FILE *f = fopen(argv[1], "r");

		e = f ? sym_read(f, argv[1], &trace) : err_errno("%s", argv[1]);
	}
	if (e) {
		fprintf(stderr, "naive: %s\n", e->msg);
		return 3;
	}
	t = trace;
	start = now();
	Z3_set_param_value(cfg, "timeout", "4294967295");
	z = Z3_mk_context(cfg);
	s = Z3_mk_simple_solver(z);
	Z3_solver_inc_ref(z, s);
	Z3_params p = Z3_mk_params(z);
	Z3_params_inc_ref(z, p);
	Z3_params_set_uint(z, p, Z3_mk_string_symbol(z, "timeout"), atoi(argv[2]) * 1000);
	Z3_solver_set_params(z, s, p);
	at = xcalloc(t->nthreads, sizeof *at);
	for (size_t k = 0; k < t->nthreads; k++) {
		at[k] = xcalloc(t->threads[k].nevents + 1, sizeof **at);
		for (size_t i = 0; i < t->threads[k].nevents; i++)
			at[k][i] = constant("o", k, i);
	}
	program_order();
	for (size_t i = 0; i < t->nvars; i++)
		memory(i);
	for (size_t i = 0; i < t->nobjects; i++) {
		if (t->objects[i].kind == SYM_MUTEX)
			locks(i);
		else if (t->objects[i].kind == SYM_COND)
			signals(i);
	}
	add(term(t->failure.condition));
	r = Z3_solver_check(z, s);
	printf("%s %.3f\n", r == Z3_L_TRUE ? "sat" : r == Z3_L_FALSE ? "unsat" : "unknown",
	       now() - start);
	return 0;
}
