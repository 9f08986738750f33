/*
 * Other places for a read among the writes to its word: what it would see there, and the edges
 * that bring it there. Part of candidates.c's work.
 */
#include "analyzer/follow/search.h"

#include <string.h>

#define AROUND 1500         /* touches of its word that are looked at, each way */
#define PER_READ 12u        /* places per read, each way */

static bool overlap(const struct touch *a, const struct touch *b)
{
	return touch_mask(a) & touch_mask(b);
}

void place_overlay(struct bytes *b, unsigned mask, uint64_t value)
{
	for (unsigned i = 0; i < 8; i++)
		if (mask & 1u << i)
			((uint8_t *)&b->value)[i] = ((const uint8_t *)&value)[i];
	b->known |= mask;
}

/* What the read's bytes were right before the touch `at`, as far as others tell. */
static struct bytes before(const struct place *p, const struct touch *at)
{
	struct bytes b = { 0, 0 };
	unsigned need = touch_mask(p->read);

	for (const struct touch *t = at; t-- > p->lo && (b.known & need) != need;)
		place_overlay(&b, touch_mask(t) & ~b.known, t->value);
	return b;
}

bool place_same_bytes(uint64_t a, uint64_t b, unsigned mask)
{
	for (unsigned i = 0; i < 8; i++)
		if (mask & 1u << i && ((uint8_t *)&a)[i] != ((uint8_t *)&b)[i])
			return false;
	return true;
}

/* Is a place where the read sees this worth a try? */
static bool is_good(const struct place *p, const struct bytes *b)
{
	unsigned mask = touch_mask(p->read);
	uint64_t want = 0;

	if (!p->wanted)
		return (b->known & mask) != mask || !place_same_bytes(b->value, p->read->value, mask);
	for (unsigned i = 0; i < 8; i++) {
		uint64_t at = p->read->word * 8 + i;

		if (at < p->wanted->address || at >= p->wanted->address + p->wanted->size)
			mask &= ~(1u << i);
		else
			((uint8_t *)&want)[i] = ((const uint8_t *)&p->wanted->value)[at - p->wanted->address];
	}
	return place_same_bytes(b->value, want, mask & b->known);
}

/* Tickets order both, or one of them may be moved. */
static bool racing_write(const struct place *p, const struct touch *w)
{
	return w->write && w->thread != p->read->thread && !(w->locked && p->read->locked) &&
	       overlap(w, p->read);
}

static void add_candidate(struct frame *f, const struct candidate *c)
{
	if (f->n == MAX_CANDIDATES)
		return;
	for (size_t i = 0; i < f->n; i++)
		if (!f->candidates[i].force && f->candidates[i].n == c->n &&
		    !memcmp(f->candidates[i].edges, c->edges, c->n * sizeof c->edges[0]))
			return;
	f->candidates[f->n++] = *c;
}

static void push_edge(struct candidate *c, uint32_t thread, uint64_t insn, uint32_t other,
		      uint64_t other_insn)
{
	if (c->n < MAX_EDGES)
		c->edges[c->n++] = (struct order_edge){ thread, other, insn, other_insn };
}

/* How often a value was given already by places of this read. */
struct seen_values {
	uint64_t value[PER_READ];
	unsigned n;
};

static bool often(struct seen_values *v, uint64_t value)
{
	unsigned times = 0;

	for (unsigned i = 0; i < v->n; i++)
		times += v->value[i] == value;
	if (times >= PER_VALUE || v->n == PER_READ)
		return true;
	v->value[v->n++] = value;
	return false;
}

/* The read after writes that it did not see. */
static void places_after(struct frame *f, const struct place *p)
{
	const struct touch *r = p->read;
	struct bytes b = { r->value, touch_mask(r) };
	struct candidate waits = { 0 };
	struct seen_values seen = { .n = 0 };

	for (const struct touch *w = r + 1; w < p->hi && seen.n < PER_READ; w++) {
		uint32_t i = 0;

		if (!racing_write(p, w))
			continue;
		place_overlay(&b, touch_mask(w) & touch_mask(r), w->value);
		while (i < waits.n && waits.edges[i].other != w->thread)
			i++;
		if (i == MAX_EDGES - 1)
			return;
		if (i == waits.n)
			waits.n++;
		waits.edges[i] = (struct order_edge){ r->thread, w->thread, r->insn, w->insn + 1 };
		if (!is_good(p, &b) || often(&seen, b.value))
			continue;
		/* Who waited goes on at once: it need not be held against later writes, and is
		 * free to come even later when the next mismatch asks for that. */
		add_candidate(f, &waits);
	}
}

/*
 * The read as late as it can be: after all writes that came before its thread's next
 * access of the word, or before the mismatch. A compare-and-swap that succeeded saw
 * what was read for it.
 */
static void last_place(struct frame *f, const struct place *p)
{
	const struct touch *r = p->read;
	struct bytes b = { r->value, touch_mask(r) };
	struct candidate c = { 0 };

	for (const struct touch *w = r + 1; w < p->hi && w->order <= p->happened; w++) {
		uint32_t i = 0;

		if (w->thread == r->thread && w->insn != r->insn && overlap(w, r))
			break;
		if (!racing_write(p, w))
			continue;
		place_overlay(&b, touch_mask(w) & touch_mask(r), w->value);
		while (i < c.n && c.edges[i].other != w->thread)
			i++;
		if (i == MAX_EDGES)
			return;
		if (i == c.n)
			c.n++;
		c.edges[i] = (struct order_edge){ r->thread, w->thread, r->insn, w->insn + 1 };
	}
	if (c.n && is_good(p, &b))
		add_candidate(f, &c);
}

/* The write was made to wait for the reading thread again and again: does that wait for it? */
static bool was_held(const struct place *p, const struct touch *w)
{
	unsigned times = 0;

	for (size_t i = 0; i < p->nheld; i++) {
		const struct order_edge *e = &p->held[i];

		if (e->thread != w->thread || e->insn != w->insn || e->other != p->read->thread)
			continue;
		if (e->other_insn == EDGE_LAZY)
			return false; /* as long as possible: that was not it */
		times++;
	}
	return times >= 2;
}

/* The read before writes that it saw. */
static void places_before(struct frame *f, const struct place *p)
{
	const struct touch *r = p->read;
	struct candidate waits = { 0 };
	struct bytes own = { 0, 0 }; /* written by the read's own thread, between there and here */
	struct seen_values seen = { .n = 0 };

	for (const struct touch *w = r; w-- > p->lo && seen.n < PER_READ;) {
		uint32_t i = 0;

		if (w->write && w->thread == r->thread)
			place_overlay(&own, touch_mask(w) & ~own.known, w->value);
		if (!racing_write(p, w))
			continue;
		while (i < waits.n && waits.edges[i].thread != w->thread)
			i++;
		if (i == MAX_EDGES - 1)
			return;
		if (i == waits.n)
			waits.n++;
		waits.edges[i] = (struct order_edge){ w->thread, r->thread, w->insn, r->insn + 1 };
		struct bytes b = before(p, w);

		place_overlay(&b, own.known, own.value);
		if (!is_good(p, &b) || often(&seen, b.value))
			continue;
		struct candidate c = waits;
		const struct touch *last = w;

		if (was_held(p, w)) {
			c.edges[i].other_insn = EDGE_LAZY;
			add_candidate(f, &c);
			c.edges[i].other_insn = r->insn + 1;
		}

		while (last > p->lo && !racing_write(p, last - 1))
			last--;
		if (last > p->lo)
			push_edge(&c, r->thread, r->insn, last[-1].thread, last[-1].insn + 1);
		add_candidate(f, &c);
	}
}

/* What the read would see if the thread of `w` wrote that, and what it wrote since, right before it. */
static struct bytes written_last(const struct place *p, const struct touch *w)
{
	struct bytes b = { p->read->value, touch_mask(p->read) };

	for (const struct touch *t = w; t < p->read; t++)
		if (t->write && t->thread == w->thread)
			place_overlay(&b, touch_mask(t) & touch_mask(p->read), t->value);
	return b;
}

/*
 * The read sees a write that was overwritten in between: by writes of other threads
 * that came before it instead. (Of the read's own write, say, when an update was lost; or
 * of some bytes of what it reads, when several threads fill one buffer.)
 */
static void places_of_writes(struct frame *f, const struct place *p)
{
	const struct touch *r = p->read;
	struct candidate between = { 0 }; /* the last write of each thread, in other and other_insn */
	struct seen_values seen = { .n = 0 };

	for (const struct touch *w = r; w-- > p->lo && seen.n < PER_READ;) {
		struct candidate c = { 0 };
		uint32_t i = 0;

		if (!w->write || !overlap(w, r))
			continue;
		for (uint32_t k = 0; k < between.n; k++)
			if (between.edges[k].other != w->thread)
				push_edge(&c, w->thread, w->insn, between.edges[k].other,
					  between.edges[k].other_insn);
		struct bytes b = written_last(p, w);

		if (c.n && is_good(p, &b) && !often(&seen, b.value))
			add_candidate(f, &c);
		while (i < between.n && between.edges[i].other != w->thread)
			i++;
		if (i == between.n) {
			if (i == MAX_EDGES)
				return;
			push_edge(&between, 0, 0, w->thread, w->insn + 1);
		}
	}
}

void place_bounds(const struct search *s, struct place *p)
{
	const struct touch *lo = s->touches.v, *hi = lo + s->touches.n;

	if (p->read - lo > AROUND)
		lo = p->read - AROUND;
	if (hi - p->read > AROUND)
		hi = p->read + AROUND;
	for (p->lo = p->read; p->lo > lo && p->lo[-1].word == p->read->word;)
		p->lo--;
	for (p->hi = p->read + 1; p->hi < hi && p->hi->word == p->read->word;)
		p->hi++;
}

void places_of(struct search *s, struct frame *f, const struct touch *read,
		      const struct wanted_load *wanted)
{
	struct place p = { .read = read, .wanted = wanted, .held = s->r->edges.v,
			   .nheld = s->r->edges.n, .happened = s->happened };

	place_bounds(s, &p);
	last_place(f, &p);
	places_after(f, &p);
	places_before(f, &p);
	places_of_writes(f, &p);
}
