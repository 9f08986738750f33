/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that make threads, and wait for their end. */
#include "analyzer/order/order.h"

#include <string.h>

/* Threads in such a chain: a damaged trace may hold a ring of them. */
#define MOST_GENERATIONS 4

static bool leads_to(const struct sym_trace *t, enum sym_op op, uint32_t thread, uint32_t from, uint32_t to, uint32_t other,
		     unsigned generations)
{
	const struct sym_thread *th = &t->threads[thread];

	for (uint32_t i = from; generations && i < to && i < th->nevents; i++)
		if (th->events[i].op == op && (th->events[i].peer == other ||
					       leads_to(t, op, th->events[i].peer, 0, SYM_NONE, other, generations - 1)))
			return true;
	return false;
}

bool order_leads_to(const struct sym_trace *t, enum sym_op op, uint32_t thread, uint32_t from, uint32_t to, uint32_t other)
{
	return leads_to(t, op, thread, from, to, other, MOST_GENERATIONS);
}

uint32_t order_fork_towards(const struct sym_trace *t, uint32_t parent, uint32_t child)
{
	/* At most nthreads steps up: a damaged trace may hold a ring of forks. */
	for (size_t steps = 0; steps < t->nthreads; steps++) {
		bool moved = false;

		for (uint32_t p = 0; p < t->nthreads && !moved; p++) {
			for (uint32_t i = 0; i < t->threads[p].nevents; i++) {
				const struct sym_event *e = &t->threads[p].events[i];

				if (e->op != SYM_FORK || e->peer != child)
					continue;
				if (p == parent)
					return i;
				child = p;
				moved = true;
				break;
			}
		}
		if (!moved)
			break;
	}
	return SYM_NONE;
}

/* "T0.2.1" descends from "T0.2" and from "T0". */
static bool is_named_after(const struct sym_trace *t, uint32_t parent, uint32_t child)
{
	const char *p = t->threads[parent].id, *c = t->threads[child].id;
	size_t n = strlen(p);

	return !strncmp(c, p, n) && c[n] == '.';
}

bool order_made_before(const struct sym_trace *t, uint32_t parent, uint32_t child, uint32_t before)
{
	uint32_t fork = order_fork_towards(t, parent, child);

	/* A window reaches to the end of what its threads did: what it lacks lies before it. */
	return fork != SYM_NONE ? fork < before : is_named_after(t, parent, child);
}

bool order_related(const struct sym_trace *t, uint32_t a, uint32_t b)
{
	return order_made_before(t, a, b, SYM_NONE) || order_made_before(t, b, a, SYM_NONE);
}
