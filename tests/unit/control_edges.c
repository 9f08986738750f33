/* Which edges of an order are left when those that follow from others are left out. */
#include "analyzer/enforce/edges.h"
#include "tests/lib/check.h"

#include <stdio.h>

#define THREADS 6

/* Each thread once in a section of one lock, one after the other. */
static struct sym_trace *sections(struct sched_ref *refs, size_t *n)
{
	struct sym_trace *t = sym_trace_new();
	uint32_t lock = sym_add_object(t, &(struct sym_object){ .name = (char *)"m", .kind = SYM_MUTEX,
								 .address = 0x10, .owner = SYM_NONE });
	uint32_t var = sym_add_var(t, &(struct sym_var){ .name = (char *)"v", .width = 32, .address = 0x20 });

	*n = 0;
	for (uint32_t i = 0; i < THREADS; i++) {
		char id[8];
		static const enum sym_op ops[] = { SYM_LOCK, SYM_WRITE, SYM_UNLOCK };

		snprintf(id, sizeof id, i ? "T0.%u" : "T0", i);
		sym_add_thread(t, id, NULL);
		for (unsigned k = 0; k < 3; k++) {
			struct sym_event e;

			sym_event_init(&e, ops[k]);
			e.target = ops[k] == SYM_WRITE ? var : lock;
			if (ops[k] == SYM_WRITE)
				e.value = expr_const(t->pool, 32, i);
			e.pc = 0x1000 + k;
			e.occurrence = 1;
			refs[(*n)++] = (struct sched_ref){ i, sym_add_event(t, i, &e) };
		}
	}
	return t;
}

int main(void)
{
	struct sched_ref refs[3 * THREADS];
	struct sched_order order = { .refs = refs };
	struct sym_trace *t = sections(refs, &order.n);
	/* The last write comes too late: all before it matter. */
	struct sched_edge cause = { { 0, 1 }, { THREADS - 1, 1 } };
	struct sched_answer a = { .cause = &cause, .ncause = 1 };
	struct edges edges = { 0 };

	edges_that_matter(t, &a, NULL, &order, order.n, 100, &edges);
	CHECK(edges.v.n == THREADS - 1, "each section waits for the one before it, and for no other: %zu edges", edges.v.n);
	bool next = true;
	for (size_t i = 0; i < edges.v.n; i++)
		next &= edges.v.v[i].after.thread == edges.v.v[i].before.thread + 1 &&
			edges.v.v[i].before.index == 2 && edges.v.v[i].after.index == 0;
	CHECK(next, "from where the lock is given back to where it is taken");
	vec_free(&edges.v);
	vec_free(&edges.wakes);
	sym_trace_free(t);
	CHECK_END();
}
