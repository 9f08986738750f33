/*
 * Z3 plus an order: Boolean atoms lt(a, b) over the nodes of an acyclic graph.
 *
 * An atom is used positively only: when Z3 makes it true, the edge enters the
 * graph, and a cycle is a conflict. False means nothing ("not known to be
 * before"), so formulas must never rely on the negation of an atom. The
 * propagator interface changes between Z3 versions; it is in smt_propagate.c.
 */
#ifndef CSCHED_SCHEDULE_SMT_H
#define CSCHED_SCHEDULE_SMT_H

#include "analyzer/order/acyclic.h"
#include "common/vec.h"

#include <z3.h>

struct smt_atom {
	uint32_t a, b;
	Z3_ast lit;
	unsigned id; /* the propagator's name for it */
};

enum smt_result { SMT_UNSAT, SMT_SAT, SMT_UNKNOWN };

/*
 * When to give up; shared by all solvers of one answer.
 *
 * The person's patience is measured by the clock. How hard we try on our own
 * account is measured by effort: what Z3 and we have done, counted, so that a
 * busy machine gives the same answer as an idle one, only later; but for single
 * questions that take far longer than their effort (PATIENCE in smt.c), where the
 * clock decides. The unit is about a second of a 3 GHz core.
 */
struct smt_limit {
	double deadline; /* CLOCK_MONOTONIC seconds; 0: none */
	bool (*stop)(void *arg);
	void *arg;
	bool expired;    /* set once one of these happened */
	double spent;    /* effort so far ... */
	double most;     /* ... and when that is enough; 0: never */
	/* What was asked: how often, and the largest question's clauses and Booleans. */
	size_t questions, clauses, bools;
};

struct smt {
	Z3_context z;
	Z3_solver s;
	struct order_acyclic *g;
	VEC(struct smt_atom) atoms;
	uint32_t *table; /* (a, b) -> 1 + atom */
	size_t table_cap;
	bool propagate;  /* also look for atoms that have become false */
	size_t clauses, bools;
	struct smt_limit *limit;
	struct smt_propagator *prop;
	uint64_t look_end; /* nodes the order may look at for this question */
	VEC(Z3_ast) core; /* see smt_take_core() */
	Z3_model model;   /* of the last SMT_SAT */
};

struct smt *smt_new(struct smt_limit *limit);
void smt_free(struct smt *s);

Z3_ast smt_lt(struct smt *s, uint32_t a, uint32_t b);
Z3_ast smt_bool(struct smt *s); /* a new Boolean */
Z3_ast smt_not(struct smt *s, Z3_ast a);
Z3_ast smt_and(struct smt *s, Z3_ast a, Z3_ast b);
void smt_assert(struct smt *s, Z3_ast a);
void smt_clause(struct smt *s, const Z3_ast *lits, size_t n);
void smt_or2(struct smt *s, Z3_ast a, Z3_ast b);
void smt_or3(struct smt *s, Z3_ast a, Z3_ast b, Z3_ast c);
void smt_implies(struct smt *s, Z3_ast a, Z3_ast b);
void smt_at_most(struct smt *s, const Z3_ast *lits, size_t n, unsigned k);

/* No further atoms or nodes after this. False: the static edges have a cycle. */
bool smt_start(struct smt *s);
/* effort: for this question alone; 0: only the common limit. */
enum smt_result smt_check(struct smt *s, const Z3_ast *assume, size_t n, double effort);
/* After SMT_UNSAT: the assumptions that contradict each other, in s->core. */
void smt_take_core(struct smt *s);
bool smt_in_core(const struct smt *s, Z3_ast assumed); /* after that */
bool smt_is_true(struct smt *s, Z3_ast lit);
uint64_t smt_value(struct smt *s, Z3_ast term);
/* The nodes in an order of the last SMT_SAT: see order_acyclic_sort(). */
void smt_order(struct smt *s, const uint64_t *rank, uint32_t *out);

bool smt_expired(struct smt_limit *l);
double smt_now(void);

#endif
