#include "analyzer/dsp/internal.h"

bool dsp_acquires(const struct sym_event *e)
{
	switch (e->op) {
	case SYM_LOCK:
	case SYM_RDLOCK:
		return true;
	case SYM_TRYLOCK:
	case SYM_TRYRDLOCK:
		return e->result == 1;
	default:
		return false;
	}
}

/* Recursive locks stand in the list once per acquisition; the last one goes first. */
static void release(dsp_held_locks *held, uint32_t object)
{
	for (size_t i = held->n; i-- > 0;) {
		if (held->v[i].object != object)
			continue;
		for (; i + 1 < held->n; i++)
			held->v[i] = held->v[i + 1];
		held->n--;
		return;
	}
}

void dsp_locks_held(const struct sym_trace *t, uint32_t thread, uint32_t index,
		    dsp_held_locks *held)
{
	const struct sym_thread *th = &t->threads[thread];

	held->n = 0;
	for (size_t i = 0; i < t->nobjects; i++)
		if (t->objects[i].owner == thread)
			vec_push(held, (struct dsp_held){ (uint32_t)i, SYM_NONE });
	for (uint32_t i = 0; i < index && i < th->nevents; i++) {
		const struct sym_event *e = &th->events[i];

		if (dsp_acquires(e))
			vec_push(held, (struct dsp_held){ e->target, i });
		else if (e->op == SYM_UNLOCK)
			release(held, e->target);
	}
}

size_t dsp_blocker(const struct sym_trace *t, size_t i, uint32_t *since)
{
	const struct sym_failure *f = &t->failure;
	const struct sched_ref want = { f->blocked[i].thread, f->blocked[i].event };
	const struct sym_event *e = dsp_event_at(t, want);
	dsp_held_locks held = { 0 };
	size_t found = SIZE_MAX;

	if (!e || !dsp_acquires(e))
		return SIZE_MAX;
	for (size_t k = 0; k < f->nblocked && found == SIZE_MAX; k++) {
		if (f->blocked[k].thread >= t->nthreads)
			continue;
		dsp_locks_held(t, f->blocked[k].thread, f->blocked[k].event, &held);
		for (size_t h = 0; h < held.n; h++) {
			if (held.v[h].object != e->target)
				continue;
			found = k;
			*since = held.v[h].since;
		}
	}
	vec_free(&held);
	return found;
}

uint32_t dsp_fork_towards(const struct sym_trace *t, uint32_t parent, uint32_t child)
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
