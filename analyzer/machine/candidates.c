/*
 * What to try after a mismatch: see follow.h, "When the guess was wrong". Each
 * read of a racing word is known with the writes around it (touches.c), and so
 * what it would have seen in each other place. Places that do not change what
 * it sees are of no interest; where the recorded value is known, only those
 * that give it.
 */
#include "analyzer/machine/search.h"

#include <string.h>

#define NEAR 64u            /* instructions before the mismatch: reads there come first */
#define AROUND 1500         /* touches of its word that are looked at, each way */
#define PER_VALUE 3u        /* places per read and way that give the same value */
#define PER_READ 12u        /* places per read, each way */
#define PER_LOAD 8u         /* places of a logged load that saw the wrong value */
#define MANY 60u            /* mismatches of a run; then a logged load is given its value at once */
#define FORCED_READS 6u     /* reads near the mismatch that are forced in the end ... */
#define FORCED_VALUES 3u    /* ... each to that many values its word had */
#define FORCED_QUIET 3u     /* likewise, of words that nobody else writes, when time is short ... */
#define QUIET 12u           /* ... if they are that near */

static int latest_first(const void *a, const void *b)
{
	const struct touch *x = *(const struct touch *const *)a, *y = *(const struct touch *const *)b;

	return x->order > y->order ? -1 : x->order < y->order;
}

/* ---- places of a read ---- */

/* The touches of one word, in order, and a read among them. */
struct place {
	const struct touch *lo, *hi, *read;
	const struct wanted_load *wanted; /* NULL: anything but what it saw */
	const struct order_edge *held;    /* edges in force */
	size_t nheld;
};

/* Some bytes of a word; known has a bit for each that is. */
struct bytes {
	uint64_t value;
	unsigned known;
};

static unsigned mask_of(const struct touch *t)
{
	return (0xffu << t->first) & (0xffu >> (7 - t->last));
}

static bool overlap(const struct touch *a, const struct touch *b)
{
	return mask_of(a) & mask_of(b);
}

static void overlay(struct bytes *b, unsigned mask, uint64_t value)
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
	unsigned need = mask_of(p->read);

	for (const struct touch *t = at; t-- > p->lo && (b.known & need) != need;)
		overlay(&b, mask_of(t) & ~b.known, t->value);
	return b;
}

static bool same_bytes(uint64_t a, uint64_t b, unsigned mask)
{
	for (unsigned i = 0; i < 8; i++)
		if (mask & 1u << i && ((uint8_t *)&a)[i] != ((uint8_t *)&b)[i])
			return false;
	return true;
}

/* Is a place where the read sees this worth a try? */
static bool is_good(const struct place *p, const struct bytes *b)
{
	unsigned mask = mask_of(p->read);
	uint64_t want = 0;

	if (!p->wanted)
		return (b->known & mask) != mask || !same_bytes(b->value, p->read->value, mask);
	for (unsigned i = 0; i < 8; i++) {
		uint64_t at = p->read->word * 8 + i;

		if (at < p->wanted->address || at >= p->wanted->address + p->wanted->size)
			mask &= ~(1u << i);
		else
			((uint8_t *)&want)[i] = ((const uint8_t *)&p->wanted->value)[at - p->wanted->address];
	}
	return same_bytes(b->value, want, mask & b->known);
}

static bool racing_write(const struct place *p, const struct touch *w)
{
	return w->write && w->thread != p->read->thread && overlap(w, p->read);
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
	struct bytes b = { r->value, mask_of(r) };
	struct candidate waits = { 0 };
	struct seen_values seen = { .n = 0 };

	for (const struct touch *w = r + 1; w < p->hi && seen.n < PER_READ; w++) {
		uint32_t i = 0;

		if (!racing_write(p, w))
			continue;
		overlay(&b, mask_of(w) & mask_of(r), w->value);
		while (i < waits.n && waits.edges[i].other != w->thread)
			i++;
		if (i == MAX_EDGES - 1)
			return;
		if (i == waits.n)
			waits.n++;
		waits.edges[i] = (struct order_edge){ r->thread, w->thread, r->insn, w->insn + 1 };
		if (!is_good(p, &b) || often(&seen, b.value))
			continue;
		struct candidate c = waits;
		const struct touch *next = w + 1;

		while (next < p->hi && !racing_write(p, next))
			next++;
		if (next < p->hi)
			push_edge(&c, next->thread, next->insn, r->thread, r->insn + 1);
		add_candidate(f, &c);
	}
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
			overlay(&own, mask_of(w) & ~own.known, w->value);
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

		overlay(&b, own.known, own.value);
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

/*
 * The read sees a write that was overwritten in between: by writes of other threads
 * that came before it instead. (Of the read's own write, say, when an update was lost.)
 */
static void places_of_writes(struct frame *f, const struct place *p)
{
	const struct touch *r = p->read;
	struct candidate between = { 0 }; /* the last write of each thread, in other and other_insn */
	unsigned added = 0;

	for (const struct touch *w = r; w-- > p->lo && added < PER_VALUE;) {
		struct bytes b = { w->value, mask_of(w) };
		struct candidate c = { 0 };
		uint32_t i = 0;

		if (!w->write || !overlap(w, r))
			continue;
		for (uint32_t k = 0; k < between.n; k++)
			if (between.edges[k].other != w->thread)
				push_edge(&c, w->thread, w->insn, between.edges[k].other,
					  between.edges[k].other_insn);
		if (c.n && (mask_of(w) & mask_of(r)) == mask_of(r) && is_good(p, &b)) {
			add_candidate(f, &c);
			added++;
		}
		while (i < between.n && between.edges[i].other != w->thread)
			i++;
		if (i == between.n) {
			if (i == MAX_EDGES)
				return;
			push_edge(&between, 0, 0, w->thread, w->insn + 1);
		}
	}
}

/* ---- all reads ---- */

static void bounds(const struct search *s, struct place *p)
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

static void places_of(struct search *s, struct frame *f, const struct touch *read,
		      const struct wanted_load *wanted)
{
	struct place p = { .read = read, .wanted = wanted, .held = s->r->edges.v,
			   .nheld = s->r->edges.n };

	bounds(s, &p);
	places_after(f, &p);
	places_before(f, &p);
	places_of_writes(f, &p);
}

static void force(struct frame *f, const struct touch *read, uint64_t value)
{
	struct candidate c = { .force = true };

	c.load = (struct mach_forced){ .thread = read->thread, .insn = read->insn,
				       .address = read->word * 8 + read->first,
				       .size = (uint32_t)(read->last - read->first + 1) };
	memcpy(&c.load.value, (uint8_t *)&value + read->first, c.load.size);
	if (f->n < MAX_CANDIDATES)
		f->candidates[f->n++] = c;
}

/* The instruction also writes: what it wrote must not be taken back. */
static bool also_writes(const struct search *s, const struct touch *read)
{
	for (size_t i = 0; i < s->touches.n; i++) {
		const struct touch *t = &s->touches.v[i];

		if (t->write && t->thread == read->thread && t->insn == read->insn)
			return true;
	}
	return read->locked;
}

struct given {
	uint64_t v[FORCED_VALUES + 8];
	unsigned n;
};

static void force_value(struct frame *f, const struct touch *read, uint64_t value,
			struct given *given)
{
	if (same_bytes(read->value, value, mask_of(read)))
		return;
	for (unsigned i = 0; i < given->n; i++)
		if (same_bytes(given->v[i], value, mask_of(read)))
			return;
	given->v[given->n++] = value;
	force(f, read, value);
}

/*
 * No order helped: the read is given other values that the word had, and then,
 * for those may lie further back, the ones that tests most often ask for.
 */
static void force_read(struct search *s, struct frame *f, const struct touch *read)
{
	static const int64_t usual[] = { 0, 1, -1 };
	struct place p = { .read = read };
	struct given given = { .n = 0 };
	struct bytes b = { 0, 0 };
	unsigned shift = 8u * read->first;

	/* What nobody may write is as it is: a constant explains nothing. */
	if (also_writes(s, read) || !mem_writable(s->r->m->mem, read->word * 8, 8))
		return;
	bounds(s, &p);
	for (const struct touch *t = p.lo; t < p.hi && given.n < FORCED_VALUES; t++) {
		overlay(&b, mask_of(t), t->value);
		if ((b.known & mask_of(read)) == mask_of(read))
			force_value(f, read, b.value, &given);
	}
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		force_value(f, read, (uint64_t)usual[i] << shift, &given);
	force_value(f, read, read->value + (1ull << shift), &given);
	force_value(f, read, read->value - (1ull << shift), &given);
}

enum { CLASS_NEAR, CLASS_AHEAD, CLASS_OWN, CLASS_SAME_WORDS, CLASS_OTHERS, NCLASSES,
       CLASS_QUIET = NCLASSES };

struct reads {
	VEC(const struct touch *) of[NCLASSES + 1];
};

#define NOBODY UINT32_MAX
#define SEVERAL (UINT32_MAX - 1)

/* Who writes the word whose touches are [lo, hi). */
static uint32_t writer_of(const struct touch *lo, const struct touch *hi)
{
	uint32_t who = NOBODY;

	for (const struct touch *t = lo; t < hi; t++)
		if (t->write && t->thread != who)
			who = who == NOBODY ? t->thread : SEVERAL;
	return who;
}

/* Right before another thread went wrong, looking ahead. */
static bool went_wrong(const struct search *s, const struct touch *t)
{
	for (size_t i = 0; i < s->wrong.n; i++)
		if (s->wrong.v[i].thread == t->thread && t->insn <= s->wrong.v[i].insn &&
		    t->insn + NEAR >= s->wrong.v[i].insn)
			return true;
	return false;
}

static bool on_stack(const struct search *s, uint32_t thread, const struct touch *t)
{
	uint64_t regs[TRC_NREGS], lo, hi;

	return mach_regs(s->r, thread, regs, NULL) && mach_mapping(s->r, regs[TRC_RSP], &lo, &hi) &&
	       t->word * 8 >= lo && t->word * 8 < hi;
}

static void classify_word(const struct search *s, const struct frame *f, struct reads *out,
			  const struct touch *lo, const struct touch *hi)
{
	uint32_t writer = writer_of(lo, hi);
	bool mine = false;

	if (writer == NOBODY || writer == f->thread)
		for (const struct touch *t = lo; t < hi && !on_stack(s, f->thread, lo); t++)
			if (!t->write && t->thread == f->thread && t->insn <= f->insn &&
			    t->insn + QUIET >= f->insn)
				vec_push(&out->of[CLASS_QUIET], t);
	if (writer == NOBODY)
		return;
	for (const struct touch *t = lo; t < hi; t++) {
		if (t->write || t->thread != f->thread || t->insn > f->insn || writer == f->thread)
			continue;
		mine = true;
		vec_push(&out->of[t->insn + NEAR >= f->insn ? CLASS_NEAR : CLASS_OWN], t);
	}
	for (const struct touch *t = lo; t < hi; t++)
		if (!t->write && t->thread != f->thread && t->thread != writer)
			vec_push(&out->of[went_wrong(s, t) ? CLASS_AHEAD :
					  mine ? CLASS_SAME_WORDS : CLASS_OTHERS], t);
}

/*
 * Reads worth moving, in this order: those of the mismatching thread right before
 * the mismatch; those of other threads that will go wrong, right before they do;
 * those of the mismatching thread further back; those of the others on the
 * same words (a lost update is seen only afterwards), and on any word.
 */
static void classify(struct search *s, const struct frame *f, struct reads *out)
{
	const struct touch *lo = s->touches.v, *end = lo + s->touches.n;

	while (lo < end) {
		const struct touch *hi = lo;

		while (hi < end && hi->word == lo->word)
			hi++;
		classify_word(s, f, out, lo, hi);
		lo = hi;
	}
	for (int c = 0; c <= CLASS_QUIET; c++)
		if (out->of[c].n)
			qsort(out->of[c].v, out->of[c].n, sizeof *out->of[c].v, latest_first);
}

static void force_reads(struct search *s, struct frame *f, const struct reads *reads)
{
	size_t first;

	for (size_t i = 0; i < reads->of[CLASS_NEAR].n && i < FORCED_READS; i++)
		force_read(s, f, reads->of[CLASS_NEAR].v[i]);
	first = f->n;
	for (size_t i = 0; i < reads->of[CLASS_QUIET].n && i < FORCED_QUIET; i++)
		force_read(s, f, reads->of[CLASS_QUIET].v[i]);
	for (size_t i = first; i < f->n; i++)
		f->candidates[i].quiet = true;
}

static void find_for_branch(struct search *s, struct frame *f)
{
	static const size_t most[NCLASSES] = { 64, 80, 128, 192, MAX_CANDIDATES };
	struct reads reads = { 0 };

	classify(s, f, &reads);
	for (int c = 0; c < NCLASSES; c++) {
		size_t first = f->n;

		if (c == CLASS_OTHERS)
			force_reads(s, f, &reads);
		for (size_t i = 0; i < reads.of[c].n && f->n < most[c]; i++)
			places_of(s, f, reads.of[c].v[i], NULL);
		for (size_t i = first; i < f->n && c <= CLASS_AHEAD; i++) {
			f->candidates[i].near = true;
			f->candidates[i].first_half = c == CLASS_AHEAD;
		}
	}
	for (int c = 0; c <= CLASS_QUIET; c++)
		vec_free(&reads.of[c]);
}

/* The read the mismatch is about. An indirect branch did not say where its target lies. */
static bool is_the_load(const struct frame *f, const struct touch *t)
{
	const struct wanted_load *w = &f->wanted;

	if (t->write || t->thread != f->thread || t->insn + 1 != f->insn)
		return false;
	if (!w->address)
		return mask_of(t) == 0xff;
	return t->word * 8 + t->first < w->address + w->size && t->word * 8 + t->last >= w->address;
}

/* What the load sees its own thread made of another value: i++ before it, say. */
static void places_of_updates(struct search *s, struct frame *f, const struct touch *read)
{
	struct place p = { .read = read };
	unsigned n = 0;

	bounds(s, &p);
	for (const struct touch *t = read; t-- > p.lo && n < PER_VALUE;)
		if (!t->write && t->thread == read->thread && t->insn != read->insn &&
		    also_writes(s, t)) {
			places_of(s, f, t, NULL);
			n++;
		}
}

static void find_for_load(struct search *s, struct frame *f)
{
	const struct touch *read = NULL;

	for (size_t i = 0; i < s->touches.n; i++) {
		const struct touch *t = &s->touches.v[i];

		if (!is_the_load(f, t))
			continue;
		if (!f->wanted.address)
			f->wanted.address = t->word * 8;
		read = t;
		places_of(s, f, t, &f->wanted);
	}
	for (size_t i = 0; i < f->n; i++)
		f->candidates[i].near = true;
	if (f->n > PER_LOAD)
		f->n = PER_LOAD;
	/* Store buffers: no order helps, and one that seems to leads the threads astray. */
	bool many = s->r->res.mismatches > MANY;
	if (many)
		f->n = 0;
	if (read && !many)
		places_of_updates(s, f, read);
	if (read && f->wanted.address) {
		struct candidate c = { .force = true };

		c.load = (struct mach_forced){ .thread = f->thread, .insn = read->insn,
					       .address = f->wanted.address,
					       .size = f->wanted.size, .value = f->wanted.value,
					       .logged = true };
		f->candidates[f->n++] = c;
	}
}

static bool has_order(const struct frame *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (!f->candidates[i].force)
			return true;
	return false;
}

static void find(struct search *s, struct frame *f)
{
	f->n = 0;
	if (!touches_gather(s, f))
		return;
	if (f->load)
		find_for_load(s, f);
	else
		find_for_branch(s, f);
}

void candidates_find(struct search *s, struct frame *f)
{
	f->candidates = xcalloc(MAX_CANDIDATES, sizeof *f->candidates);
	s->look_far = s->pinned;
	find(s, f);
	if (!s->cut || has_order(f))
		return;
	s->look_far = true;
	find(s, f);
}
