/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cores of failed searches; why they may be used for other patterns is said in cores.h. */
#include "analyzer/explore/cores.h"

#include <string.h>

/* Is there a step on the same variable behind the first m? A bit for each of these. */
static uint8_t open_of(const struct xpl_trace *t, const uint32_t *steps, unsigned n, unsigned m)
{
	uint8_t open = 0;

	for (unsigned i = 0; i < m; i++)
		for (unsigned k = m; k < n; k++)
			if (t->events.v[steps[k]].target == t->events.v[steps[i]].target)
				open |= (uint8_t)(1u << i);
	return open;
}

static uint64_t hash_of(const struct xpl_core *c)
{
	uint64_t h = xpl_mix(xpl_mix(c->trace, c->n), c->open);

	for (unsigned i = 0; i < c->n; i++)
		h = xpl_mix(h, c->steps[i]);
	return h;
}

static bool is_same(const struct xpl_core *a, const struct xpl_core *b)
{
	return a->trace == b->trace && a->n == b->n && a->open == b->open &&
	       !memcmp(a->steps, b->steps, a->n * sizeof *a->steps);
}

static uint32_t *slot_of(const struct xpl_cores *c, const struct xpl_core *core)
{
	size_t k = (size_t)hash_of(core) & (c->cap - 1);

	while (c->table[k] && !is_same(&c->v.v[c->table[k] - 1], core))
		k = (k + 1) & (c->cap - 1);
	return &c->table[k];
}

static void make_room(struct xpl_cores *c)
{
	if (2 * (c->v.n + 1) <= c->cap)
		return;
	c->cap = c->cap ? 2 * c->cap : 1024;
	free(c->table);
	c->table = xcalloc(c->cap, sizeof *c->table);
	for (size_t i = 0; i < c->v.n; i++)
		*slot_of(c, &c->v.v[i]) = (uint32_t)i + 1;
}

void xpl_cores_add(struct xpl_cores *c, const struct xpl_trace *t, uint32_t trace, const uint32_t *steps, unsigned n,
		   const struct xpl_obstacles *o, uint8_t reason, uint64_t object)
{
	unsigned m = o->reached + 1 > o->used ? o->reached + 1 : o->used;

	m = m < n ? m : n;
	struct xpl_core core = { .trace = trace, .n = (uint8_t)m, .open = open_of(t, steps, n, m), .reason = reason,
				 .object = object };
	memcpy(core.steps, steps, m * sizeof *steps);
	make_room(c);
	uint32_t *slot = slot_of(c, &core);
	if (*slot)
		return;
	vec_push(&c->v, core);
	*slot = (uint32_t)c->v.n;
}

/* Does a step on a variable of the chosen ones come between them? */
static bool is_disturbed(const struct xpl_trace *t, const uint32_t *steps, unsigned chosen, unsigned last)
{
	for (unsigned i = 0, begun = 0; i < last; i++) {
		begun |= chosen >> i & 1;
		for (unsigned k = 0; begun && !(chosen >> i & 1) && k <= last; k++)
			if (chosen >> k & 1 && t->events.v[steps[k]].target == t->events.v[steps[i]].target)
				return true;
	}
	return false;
}

/* The chosen steps as a core, with fewer variables open than they are here or as many. */
static const struct xpl_core *find_chosen(const struct xpl_cores *c, const struct xpl_trace *t, uint32_t trace,
					  const uint32_t *steps, unsigned n, unsigned chosen)
{
	struct xpl_core core = { .trace = trace };
	unsigned last = 0;
	uint8_t open = 0;

	for (unsigned i = 0; i < n; i++)
		if (chosen >> i & 1)
			last = i;
	if (is_disturbed(t, steps, chosen, last))
		return NULL;
	uint8_t here = open_of(t, steps, n, last + 1);
	for (unsigned i = 0; i <= last; i++)
		if (chosen >> i & 1) {
			open |= (uint8_t)((here >> i & 1) << core.n);
			core.steps[core.n++] = steps[i];
		}
	for (unsigned fewer = open;; fewer = (fewer - 1) & open) {
		core.open = (uint8_t)fewer;
		uint32_t slot = *slot_of(c, &core);
		if (slot)
			return &c->v.v[slot - 1];
		if (!fewer)
			return NULL;
	}
}

const struct xpl_core *xpl_cores_find(const struct xpl_cores *c, const struct xpl_trace *t, uint32_t trace,
				      const uint32_t *steps, unsigned n)
{
	if (!c->v.n)
		return NULL;
	for (unsigned chosen = 3; chosen < 1u << n; chosen++) {
		const struct xpl_core *core = chosen & (chosen - 1) ? find_chosen(c, t, trace, steps, n, chosen) : NULL;

		if (core)
			return core;
	}
	return NULL;
}

void xpl_cores_free(struct xpl_cores *c)
{
	vec_free(&c->v);
	free(c->table);
	*c = (struct xpl_cores){ 0 };
}
