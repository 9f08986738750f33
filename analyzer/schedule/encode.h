/*
 * The encoding: a window as constraints over an acyclic order.
 *
 * The papers give each event an integer and say, for every read, "this write
 * is before me and every other write is before it or after me": cubic in the
 * accesses of a variable. Here every write w gets a second node, the end of
 * its lifetime E_w, with w -> E_w -> the next write. Then
 *
 *   read r:        OR_w rf(r,w);  rf -> r's value is w's, w -> r, r -> E_w
 *   writes w, w':  E_w -> w'  or  E_w' -> w
 *
 * which is quadratic, and because only "must come before" is ever said, an
 * order is an acyclic graph: a propagator keeps it so (smt.h), and what the
 * trace itself orders (program order, fork, join, time) are static edges that
 * Z3 never sees. Vector clocks over the static edges prune reads-from
 * candidates that are overwritten or come too late.
 *
 * An atomic read-modify-write has two nodes, in -> out: it reads at `in` and
 * writes at `out`, and no other write of the variable comes between.
 *
 * TSO: a plain write's node is the moment it leaves the store buffer, so the
 * static edges from it to later reads of its thread are missing. A read sees
 * the newest earlier write of its own thread unless another write came after
 * that one: from a foreign write w it may read only if E_own -> w.
 */
#ifndef CSCHED_SCHEDULE_ENCODE_H
#define CSCHED_SCHEDULE_ENCODE_H

#include "analyzer/schedule/smt.h"
#include "analyzer/order/window.h"

struct smt_terms; /* expressions as Z3 terms */

struct encoding {
	const struct order_window *w;
	const struct order_view *v;
	struct smt *smt;
	struct smt_terms *terms;
	uint32_t *in, *out;   /* by local index: nodes */
	uint32_t *clock;      /* local index x chain: how many events of the chain precede */
	bool *needed;         /* by symbol */
	Z3_ast *exec;         /* by local index: pending events: "it happened"; else NULL */
	Z3_ast *init;         /* by variable: unknown initial value, or NULL */
	uint64_t *known;      /* by symbol: value a condition pins it to ... */
	bool *is_known;
	uint64_t *pin;        /* the same by expression: `cond (eq EXPR CONST)` */
	bool *is_pinned;
	Z3_ast yes, no;
	Z3_ast fails, avoids; /* assume one of them */
	bool contradiction;   /* the static order is cyclic */
	bool track;           /* path conditions are assumptions: */
	VEC(Z3_ast) tracked;
	VEC(uint32_t) tracked_cond; /* view.conds[] numbers */
	VEC(Z3_ast) tmp;
};

/* Where the graph has the node of an event at first: as in the order the window was made of, with
 * room before and behind it for the ends of lifetimes. */
#define ENCODE_RANK(place) (4 * (uint64_t)(place) + 1)

/* With track the path conditions hold only as far as tracked[] is assumed. */
struct encoding *encode_new(const struct order_window *w, struct smt_limit *limit, bool track);
void encode_free(struct encoding *c);

/* "a before b" for two events of the window: may be the constant true or false. */
Z3_ast encode_before(struct encoding *c, uint32_t a, uint32_t b);
bool encode_must(const struct encoding *c, uint32_t a, uint32_t b);
/* A literal that, assumed, puts a before b. Before encode_start() only. */
Z3_ast encode_edge(struct encoding *c, uint32_t a, uint32_t b);
/* All literals are there: get ready to be asked. */
void encode_start(struct encoding *c);
/* After SMT_SAT: the window's events in an order close to rank (by event). */
size_t encode_order(struct encoding *c, const uint64_t *rank, uint32_t *out);
/* After SMT_SAT: initial values and free symbols the model chose; NULL if none. */
void encode_model(struct encoding *c, uint64_t *init, uint64_t *syms);

/* The parts, for encode.c only. */
void encode_static_order(struct encoding *c);
void encode_data(struct encoding *c);
void encode_locks(struct encoding *c);
void encode_conds(struct encoding *c);  /* condition variables */
void encode_counts(struct encoding *c); /* semaphores and barriers */
bool encode_stuck(struct encoding *c, uint32_t event); /* pending lock can never succeed */

struct smt_terms *smt_terms_new(struct encoding *c);
void smt_terms_free(struct smt_terms *x);
Z3_ast smt_term(struct smt_terms *x, expr_id e);
/* The same, though the expression itself is pinned: to say that it is. */
Z3_ast smt_term_raw(struct smt_terms *x, expr_id e);
Z3_ast smt_number(struct encoding *c, unsigned width, uint64_t value);

#endif
