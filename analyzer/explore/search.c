/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Depth first through the states of a trace; see search.h. */
#include "analyzer/explore/search_internal.h"

#include <string.h>

#define STOP_EVERY 4096u /* states: a millisecond or so */
static void find_again(struct search *s)
{
	const struct xpl_trace *t = s->t;
	uint32_t *has = xcalloc(t->objects.n * t->nthreads + 1, sizeof *has);

	for (size_t i = 0; i < t->events.n; i++) {
		const struct xpl_event *e = &t->events.v[i];
		uint32_t *mine = &has[e->target == XPL_NONE || xpl_is_access(e) ? 0 : (size_t)e->target * t->nthreads + e->thread];

		if (e->op == XPL_UNLOCK && *mine)
			--*mine;
		if (e->op != XPL_LOCK || !e->shared || !(*mine)++)
			continue;
		if (!s->again)
			s->again = xcalloc(t->events.n + 1, sizeof *s->again);
		s->again[i] = *mine > 1;
	}
	free(has);
}

static void search_new(struct search *s, const struct xpl_trace *t, uint64_t most, struct xpl_path *path)
{
	*s = (struct search){ .t = t, .vars_at = t->nthreads, .objects_at = t->nthreads + t->vars.n,
			      .words = t->nthreads + t->vars.n + 2 * t->objects.n, .most = most, .path = path };
	s->position = xcalloc(t->nthreads + 1, sizeof *s->position);
	s->try_on = xcalloc(t->objects.n + 1, sizeof *s->try_on);
	for (size_t i = 0; i < t->events.n; i++)
		if (t->events.v[i].op == XPL_TRY)
			s->try_on[t->events.v[i].target] = true;
	find_again(s);
	path->events.n = 0;
	path->states = 0;
	path->obstacles = (struct xpl_obstacles){ .object = XPL_NONE };
}

static void search_free(struct search *s)
{
	free(s->seen);
	free(s->position);
	free(s->try_on);
	free(s->again);
}

/* False: it was seen before. */
static bool note_state(struct search *s, uint64_t hash, unsigned step)
{
	uint64_t h = xpl_mix(hash, step + 1);

	h |= !h;
	if (2 * (s->nseen + 1) > s->cap) {
		uint64_t *old = s->seen;
		size_t n = s->cap;

		s->cap = n ? 2 * n : 1024;
		s->seen = xcalloc(s->cap, sizeof *s->seen);
		for (size_t i = 0; i < n; i++)
			for (size_t k = old[i] & (s->cap - 1); old[i]; k = (k + 1) & (s->cap - 1))
				if (!s->seen[k]) {
					s->seen[k] = old[i];
					break;
				}
		free(old);
	}
	size_t k = h & (s->cap - 1);
	while (s->seen[k] && s->seen[k] != h)
		k = (k + 1) & (s->cap - 1);
	if (s->seen[k])
		return false;
	s->seen[k] = h;
	s->nseen++;
	return true;
}

/*
 * Such an event commutes with all that others can do and keeps nobody from anything: it is
 * executed at once, and no other order is tried.
 */
static bool is_quiet(const struct search *s, const struct xpl_event *e)
{
	return e->op == XPL_EXIT || e->op == XPL_JOIN || e->op == XPL_FORK || e->op == XPL_BAR_OUT ||
	       (e->op == XPL_UNLOCK && !s->try_on[e->target]);
}

/* ---- patterns ---- */

/* Is the variable between two steps on it, when so many steps are done? */
static bool is_open(const struct search *s, uint32_t var, unsigned done)
{
	bool before = false, after = false;

	for (unsigned i = 0; i < s->nsteps; i++)
		if (s->t->events.v[s->steps[i]].target == var)
			*(i < done ? &before : &after) = true;
	return before && after;
}

/* This step's being one was a reason to refuse something. */
static bool use(struct search *s, unsigned step)
{
	if (step >= s->path->obstacles.used)
		s->path->obstacles.used = step + 1;
	return true;
}

static bool has_later_step(struct search *s, uint32_t thread, unsigned done)
{
	for (unsigned i = done; i < s->nsteps; i++)
		if (s->t->events.v[s->steps[i]].thread == thread)
			return use(s, i);
	return false;
}

static bool is_step(struct search *s, uint32_t number)
{
	for (unsigned i = 0; i < s->nsteps; i++)
		if (s->steps[i] == number)
			return use(s, i);
	return false;
}

/* May the event come now, as far as the pattern is concerned? *done: steps behind it. */
static bool fits(struct search *s, const struct xpl_event *e, unsigned *done, bool otherwise)
{
	uint32_t number = s->t->threads[e->thread].events.v[e->index];

	if (*done < s->nsteps && s->steps[*done] == number) {
		if (otherwise && has_later_step(s, e->thread, *done + 1)) {
			s->path->obstacles.data = true;
			return false;
		}
		++*done;
		if (*done > s->path->obstacles.reached)
			s->path->obstacles.reached = *done;
		return true;
	}
	if (otherwise) {
		s->path->obstacles.data = true;
		return false;
	}
	if (is_step(s, number)) {
		s->path->obstacles.order = true;
		return false;
	}
	if (!s->loose && xpl_writes(e) && is_open(s, e->target, *done)) {
		s->path->obstacles.writes = true;
		return false;
	}
	return true;
}

struct level {
	uint32_t first;  /* thread tried first */
	uint32_t tried;
	unsigned done;
	uint64_t hash;   /* of its state */
	bool quiet;      /* only one way was worth trying, and has been */
};

static void note_blocked(struct search *s, const struct xpl_event *e)
{
	s->path->obstacles.locks = true;
	if (e->op == XPL_JOIN)
		s->path->obstacles.order = true;
	else if (s->path->obstacles.object == XPL_NONE)
		s->path->obstacles.object = e->target;
}

/* The thread to begin with: that of the next step, else who was running. */
static uint32_t first_of(const struct search *s, unsigned done, uint32_t last)
{
	return done < s->nsteps ? s->t->events.v[s->steps[done]].thread : last;
}

/* A quiet event that some thread can do next, or XPL_NONE. */
static uint32_t quiet_thread(struct search *s, uint64_t *st)
{
	uint64_t value;

	for (uint32_t t = 0; t < s->t->nthreads; t++) {
		const struct xpl_event *e = xpl_state_next(s, st, t);

		if (e && is_quiet(s, e) && !xpl_state_is_pending(s, e) && xpl_state_can(s, st, e, &value) == CAN)
			return t;
	}
	return XPL_NONE;
}

/* Nobody can go on, all for reasons of their operations, and the process would not end. */
static bool is_deadlock(struct search *s, uint64_t *st)
{
	uint64_t value;
	bool waits = false;

	for (uint32_t t = 0; t < s->t->nthreads; t++) {
		const struct xpl_event *e = xpl_state_next(s, st, t);

		if (!(st[t] & ALIVE))
			continue;
		/* Whoever ends without saying so ends the process, or what it does next is not known. */
		if (!e && !s->t->threads[t].ended)
			return false;
		if (!e)
			continue;
		if (xpl_state_can(s, st, e, &value) != CANNOT)
			return false;
		waits = true;
	}
	return waits;
}

static uint64_t memory_of(const struct search *s, const uint64_t *st)
{
	uint64_t h = 1;

	for (size_t i = s->vars_at; i < s->objects_at; i++)
		h = xpl_mix(h, st[i]);
	return h;
}

static bool tell_last(struct search *s, uint64_t *st)
{
	if (!s->ways->last)
		return false;
	for (uint32_t t = 0; t < s->t->nthreads; t++) {
		s->position[t] = POSITION(st[t]);
		if (s->position[t] < s->t->threads[t].events.n)
			return false;
	}
	return s->ways->last(s->ways->arg, s->position, memory_of(s, st), s->path);
}

/* A writer waits for a lock that a reader is about to acquire once more. */
static bool tell_writers(struct search *s, uint64_t *st)
{
	bool enough = false;

	for (uint32_t t = 0; t < s->t->nthreads && s->again && !enough; t++) {
		const struct xpl_event *e = xpl_state_next(s, st, t);

		if (!e || xpl_state_is_pending(s, e) || !s->again[s->t->threads[t].events.v[e->index]])
			continue;
		for (uint32_t w = 0; w < s->t->nthreads && !enough; w++) {
			const struct xpl_event *f = w == t ? NULL : xpl_state_next(s, st, w);

			s->position[t] = POSITION(st[t]);
			s->position[w] = POSITION(st[w]);
			if (f && f->op == XPL_LOCK && !f->shared && f->target == e->target && s->ways->deadlock)
				enough = s->ways->deadlock(s->ways->arg, s->position, s->path, f);
		}
	}
	return enough;
}

static bool tell_end(struct search *s, uint64_t *st)
{
	if (!s->ways)
		return false;
	if (tell_last(s, st) || tell_writers(s, st))
		return true;
	if (!s->ways->deadlock || !is_deadlock(s, st))
		return false;
	for (uint32_t t = 0; t < s->t->nthreads; t++)
		s->position[t] = POSITION(st[t]);
	return s->ways->deadlock(s->ways->arg, s->position, s->path, NULL);
}

static bool tell_way_out(struct search *s, uint64_t *st, const struct xpl_event *e, uint64_t value)
{
	bool enough;

	for (uint32_t t = 0; t < s->t->nthreads; t++)
		s->position[t] = POSITION(st[t]);
	if (!xpl_state_is_pending(s, e))
		vec_push(&s->path->events, s->t->threads[e->thread].events.v[e->index]);
	const struct xpl_way_out w = { s->position, e->thread, e, value, s->path };
	enough = s->ways->out && s->ways->out(s->ways->arg, &w);
	if (!enough && !xpl_state_is_pending(s, e))
		s->path->events.n--;
	return enough;
}

/* From the state at `depth' one event on, into the next; false: thread t has none that fits. */
static bool advance(struct search *s, uint64_t *st, uint64_t *next, uint32_t t, unsigned *done, bool *enough)
{
	const struct xpl_event *e = xpl_state_next(s, st, t);
	uint64_t value = 0;

	if (!e)
		return false;
	enum can can = xpl_state_can(s, st, e, &value);
	if (can == OTHERWISE && s->loose)
		can = CAN;
	if (can == CANNOT) {
		note_blocked(s, e);
		return false;
	}
	if (s->ways) {
		if (can == OTHERWISE || xpl_state_is_pending(s, e)) {
			*enough = tell_way_out(s, st, e, value);
			return false;
		}
	} else if (xpl_state_is_pending(s, e) || !fits(s, e, done, can == OTHERWISE)) {
		return false;
	}
	memcpy(next, st, s->words * sizeof *next);
	xpl_state_go(s, next, e);
	if (can == OTHERWISE)
		next[t] |= STOPPED;
	return true;
}

static enum xpl_found walk(struct search *s)
{
	VEC(struct level) levels = { 0 };
	uint64_t *states = NULL;
	size_t cap = 0;
	enum xpl_found answer = XPL_IMPOSSIBLE;

	states = xmalloc((cap = 64) * s->words * sizeof *states + 8);
	xpl_state_start(s, states);
	vec_push(&levels, (struct level){ .first = first_of(s, 0, 0), .hash = xpl_state_hash(s, states) });
	note_state(s, levels.v[0].hash, 0);
	if (s->ways && tell_end(s, states)) {
		answer = XPL_FOUND;
		levels.n = 0;
	}
	while (levels.n) {
		struct level *l = &levels.v[levels.n - 1];
		uint64_t *st = states + (levels.n - 1) * s->words;
		bool enough = false;

		if (levels.n + 1 > cap) {
			cap *= 2;
			states = xrealloc(states, cap * s->words * sizeof *states + 8);
			st = states + (levels.n - 1) * s->words;
		}
		uint32_t t, quiet = l->tried ? XPL_NONE : quiet_thread(s, st);
		if (l->quiet || l->tried >= s->t->nthreads) {
			levels.n--;
			if (levels.n)
				s->path->events.n--;
			continue;
		}
		if (quiet != XPL_NONE) {
			t = quiet;
			l->quiet = true;
		} else {
			t = (l->first + l->tried) % s->t->nthreads;
		}
		l->tried++;
		unsigned done = l->done;
		uint64_t *next = st + s->words;
		if (!advance(s, st, next, t, &done, &enough)) {
			if (enough) {
				answer = XPL_FOUND;
				break;
			}
			continue;
		}
		const struct xpl_event *e = xpl_state_next(s, st, t);
		if (!s->ways && done == s->nsteps) {
			vec_push(&s->path->events, s->t->threads[t].events.v[e->index]);
			answer = XPL_FOUND;
			break;
		}
		uint64_t hash = l->hash + xpl_state_change(s, st, next, e);
		if (!note_state(s, hash, done))
			continue;
		if (++s->path->states > s->most) {
			answer = XPL_TOO_LARGE;
			break;
		}
		if (!(s->path->states % STOP_EVERY) && s->path->stop && s->path->stop(s->path->stop_arg)) {
			answer = XPL_STOPPED;
			break;
		}
		vec_push(&s->path->events, s->t->threads[t].events.v[e->index]);
		if (s->ways && tell_end(s, next)) {
			answer = XPL_FOUND;
			break;
		}
		vec_push(&levels, (struct level){ .first = first_of(s, done, t), .done = done, .hash = hash });
	}
	vec_free(&levels);
	free(states);
	return answer;
}

enum xpl_found xpl_search_pattern(const struct xpl_trace *t, const uint32_t *steps, unsigned n,
				  uint64_t most, struct xpl_path *out)
{
	struct search s;
	enum xpl_found answer;

	search_new(&s, t, most, out);
	s.steps = steps;
	s.nsteps = n;
	answer = walk(&s);
	search_free(&s);
	return answer;
}

enum xpl_found xpl_search_order(const struct xpl_trace *t, uint32_t first, uint32_t second, uint64_t most,
				struct xpl_path *out)
{
	uint32_t steps[2] = { first, second };
	struct search s;
	enum xpl_found answer;

	search_new(&s, t, most, out);
	s.steps = steps;
	s.nsteps = 2;
	s.loose = true;
	answer = walk(&s);
	search_free(&s);
	return answer;
}

enum xpl_found xpl_search_ways(const struct xpl_trace *t, const struct xpl_ways *w, uint64_t most,
			       struct xpl_path *path)
{
	struct search s;
	enum xpl_found answer;

	search_new(&s, t, most, path);
	s.ways = w;
	answer = walk(&s);
	search_free(&s);
	return answer;
}

uint64_t xpl_search_memory(const struct xpl_trace *t)
{
	struct search s;
	struct xpl_path none = { 0 };
	uint64_t *st, h;

	search_new(&s, t, 0, &none);
	st = xmalloc((s.words + 1) * sizeof *st);
	xpl_state_start(&s, st);
	for (size_t i = 0; i < t->events.n; i++)
		xpl_state_go(&s, st, &t->events.v[i]);
	h = memory_of(&s, st);
	free(st);
	search_free(&s);
	return h;
}

void xpl_path_free(struct xpl_path *p)
{
	vec_free(&p->events);
}
