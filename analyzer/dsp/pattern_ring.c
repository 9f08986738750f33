/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that hold locks and wait for each other's. */
#include "analyzer/dsp/pattern.h"

/* Threads that wait for each other's locks, each once; 0 when there is no ring. */
static size_t find_ring(const struct sym_trace *t, size_t *ring, uint32_t *since)
{
	size_t n = t->failure.nblocked;

	for (size_t start = 0; start < n; start++) {
		size_t len = 0, at_ = start;

		while (len < n) {
			ring[len] = at_;
			at_ = dsp_blocker(t, at_, &since[len]);
			len++;
			if (at_ == start)
				return len;
			if (at_ == SIZE_MAX)
				break;
		}
	}
	return 0;
}

/* Another one that waits to write, where this one waits to read; SIZE_MAX: none. */
static size_t waiting_writer(const struct sym_trace *t, const struct sym_event *want)
{
	for (size_t k = 0; want->op == SYM_RDLOCK && k < t->failure.nblocked; k++) {
		const struct sym_event *e = order_event_at(t, (struct sched_ref){
			t->failure.blocked[k].thread, t->failure.blocked[k].event });

		if (e && e->op == SYM_LOCK && e->target == want->target && e->thread != want->thread)
			return k;
	}
	return SIZE_MAX;
}

/* Longer rings are drawn instead: their first links, and how many more there are. */
enum { RING_SAID = 4, RING_DRAWN = 3 };

/* ring[i] waits for what ring[i+1] holds: "`fork[0]' (held by T0.1) -> `fork[1]' (T0.2) -> ... -> `fork[0]'". */
static char *long_ring_text(const struct sym_trace *t, const size_t *ring, const uint32_t *since, size_t n)
{
	const struct sym_blocked *blocked = t->failure.blocked;
	struct strbuf b = { 0 };
	struct sched_ref has = { blocked[ring[0]].thread, since[n - 1] };

	strbuf_fmt(&b, "Take these locks in one order everywhere. %zu threads hold one each and wait for the next, in a ring: ", n);
	for (size_t i = 0; i < RING_DRAWN; i++) {
		struct sched_ref before = { blocked[ring[(i + n - 1) % n]].thread, blocked[ring[(i + n - 1) % n]].event };

		strbuf_fmt(&b, "`%s' (%s%s) -> ", dsp_subject(t, order_event_at(t, before)), i ? "" : "held by ",
			   dsp_thread_id(t, blocked[ring[i]].thread));
	}
	struct sched_ref last = { blocked[ring[n - 1]].thread, blocked[ring[n - 1]].event };
	struct sched_ref first = { blocked[ring[0]].thread, blocked[ring[0]].event };

	strbuf_fmt(&b, "%zu more -> `%s'. ", n - RING_DRAWN, dsp_subject(t, order_event_at(t, last)));
	if (has.index != SYM_NONE) {
		strbuf_fmt(&b, "%s takes its lock at ", dsp_thread_id(t, has.thread));
		dsp_say_at(&b, t, has);
		strbuf_str(&b, " and waits");
	} else {
		strbuf_fmt(&b, "%s waits", dsp_thread_id(t, first.thread));
	}
	strbuf_fmt(&b, " for `%s' at ", dsp_subject(t, order_event_at(t, first)));
	dsp_say_at(&b, t, first);
	strbuf_char(&b, '.');
	return strbuf_take(&b);
}

static char *ring_text(const struct sym_trace *t, const size_t *ring, const uint32_t *since,
		       size_t n)
{
	const struct sym_blocked *blocked = t->failure.blocked;
	struct strbuf b = { 0 };

	if (n == 1) {
		struct sched_ref want = { blocked[ring[0]].thread, blocked[ring[0]].event };

		strbuf_fmt(&b, "%s ", dsp_thread_id(t, want.thread));
		dsp_say_does(&b, t, want);
		strbuf_str(&b, " at ");
		dsp_say_at(&b, t, want);
		strbuf_str(&b, " while it already holds it");
		if (since[0] != SYM_NONE) {
			strbuf_str(&b, " since ");
			dsp_say_at(&b, t, (struct sched_ref){ want.thread, since[0] });
		}
		size_t writer = waiting_writer(t, order_event_at(t, want));
		if (writer == SIZE_MAX) {
			strbuf_str(&b, ": it waits for itself.");
			return strbuf_take(&b);
		}
		struct sched_ref other = { blocked[writer].thread, blocked[writer].event };
		strbuf_fmt(&b, ", and %s waits to write at ", dsp_thread_id(t, other.thread));
		dsp_say_at(&b, t, other);
		strbuf_str(&b, ": a waiting writer comes before further readers, so neither continues. Do not "
			       "acquire it for reading twice.");
		return strbuf_take(&b);
	}
	if (n > RING_SAID)
		return long_ring_text(t, ring, since, n);
	strbuf_str(&b, "Take these locks in one order everywhere:");
	for (size_t i = 0; i < n; i++) {
		/* ring[i] waits for what ring[i+1] took at since[i] */
		size_t before = (i + n - 1) % n;
		struct sched_ref want = { blocked[ring[i]].thread, blocked[ring[i]].event };
		struct sched_ref has = { want.thread, since[before] };
		const struct sym_event *mine =
		    &t->threads[blocked[ring[before]].thread].events[blocked[ring[before]].event];

		strbuf_fmt(&b, "%s %s takes `%s'", i ? ";" : "", dsp_thread_id(t, want.thread),
			   t->objects[mine->target].name);
		if (has.index != SYM_NONE) {
			strbuf_str(&b, " at ");
			dsp_say_at(&b, t, has);
		}
		strbuf_fmt(&b, ", then `%s' at ", dsp_subject(t, order_event_at(t, want)));
		dsp_say_at(&b, t, want);
	}
	strbuf_char(&b, '.');
	return strbuf_take(&b);
}

static bool lock_hint(const struct sym_trace *t, struct dsp_hint *h)
{
	size_t n = t->failure.nblocked, len;
	size_t *ring = xcalloc(n + 1, sizeof *ring);
	uint32_t *since = xcalloc(n + 1, sizeof *since);

	len = find_ring(t, ring, since);
	if (len) {
		h->kind = len > 1 ? DSP_HINT_LOCK_ORDER : DSP_HINT_NONE;
		h->text = ring_text(t, ring, since, len);
		for (size_t i = 0; i < len && len > 1; i++) {
			struct sched_ref want = { t->failure.blocked[ring[i]].thread, t->failure.blocked[ring[i]].event };
			uint32_t has = since[(i + len - 1) % len];

			if (has != SYM_NONE)
				dsp_ask_hold(h, (struct sched_ref){ want.thread, has }, want);
		}
	}
	free(ring);
	free(since);
	return len > 0;
}

bool dsp_match_lock_ring(const struct dsp_case *c, struct dsp_hint *h)
{
	return lock_hint(c->m->t, h);
}
