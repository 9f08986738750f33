/*
 * What to try after a mismatch: see follow.h, "When the guess was wrong". Each
 * read of a racing word is known with the writes around it (touches.c), and so
 * what it would have seen in each other place. Places that do not change what
 * it sees are of no interest; where the recorded value is known, only those
 * that give it.
 */
#include "analyzer/follow/search.h"

#include <string.h>

#define NEAR 64u            /* instructions before the mismatch: reads there come first */
#define PER_LOAD 8u         /* places of a logged load that saw the wrong value */
#define FORCED_READS 6u     /* reads near the mismatch that are forced in the end ... */
#define FORCED_VALUES 3u    /* ... each to that many values its word had */
#define FORCED_QUIET 3u     /* likewise, of words that nobody else writes, when time is short ... */
#define QUIET 12u           /* ... if they are that near */

static int latest_first(const void *a, const void *b)
{
	const struct touch *x = *(const struct touch *const *)a, *y = *(const struct touch *const *)b;

	return x->order > y->order ? -1 : x->order < y->order;
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
	if (place_same_bytes(read->value, value, touch_mask(read)))
		return;
	for (unsigned i = 0; i < given->n; i++)
		if (place_same_bytes(given->v[i], value, touch_mask(read)))
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
	place_bounds(s, &p);
	for (const struct touch *t = p.lo; t < p.hi && given.n < FORCED_VALUES; t++) {
		place_overlay(&b, touch_mask(t), t->value);
		if ((b.known & touch_mask(read)) == touch_mask(read))
			force_value(f, read, b.value, &given);
	}
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		force_value(f, read, (uint64_t)usual[i] << shift, &given);
	force_value(f, read, read->value + (1ull << shift), &given);
	force_value(f, read, read->value - (1ull << shift), &given);
}

enum { CLASS_SOURCE, CLASS_NEAR, CLASS_AHEAD, CLASS_OWN, CLASS_SAME_WORDS, CLASS_OTHERS, NCLASSES,
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
		vec_push(&out->of[sources_have(s, t->thread, t->insn) ? CLASS_SOURCE :
				  t->insn + NEAR >= f->insn ? CLASS_NEAR : CLASS_OWN], t);
	}
	for (const struct touch *t = lo; t < hi; t++)
		if (!t->write && t->thread != f->thread && t->thread != writer)
			vec_push(&out->of[sources_have(s, t->thread, t->insn) ? CLASS_SOURCE :
					  went_wrong(s, t) ? CLASS_AHEAD :
					  mine ? CLASS_SAME_WORDS : CLASS_OTHERS], t);
}

/*
 * Reads worth moving, in this order: those that the branch was made of; those of the mismatching
 * thread right before the mismatch; those of other threads that will go wrong, right before they do;
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
	size_t first, given = 0;

	for (int c = CLASS_SOURCE; c <= CLASS_NEAR; c++)
		for (size_t i = 0; i < reads->of[c].n && given < FORCED_READS; i++, given++)
			force_read(s, f, reads->of[c].v[i]);
	first = f->n;
	for (size_t i = 0; i < reads->of[CLASS_QUIET].n && i < FORCED_QUIET; i++)
		force_read(s, f, reads->of[CLASS_QUIET].v[i]);
	for (size_t i = first; i < f->n; i++)
		f->candidates[i].quiet = true;
}

/*
 * The thread was not running for a while, and its clock has it do everything before that. Then from here on
 * behind it: as late as its next timestamp allows.
 */
static void place_late(struct frame *f, const struct reads *reads)
{
	static const int classes[] = { CLASS_SOURCE, CLASS_NEAR, CLASS_QUIET };
	struct candidate c = { .n = 1, .near = true };
	uint64_t insn = UINT64_MAX;

	for (size_t k = 0; k < sizeof classes / sizeof *classes; k++)
		for (size_t i = 0; i < reads->of[classes[k]].n; i++)
			if (reads->of[classes[k]].v[i]->thread == f->thread && reads->of[classes[k]].v[i]->insn < insn)
				insn = reads->of[classes[k]].v[i]->insn;
	if (!f->stalled || insn == UINT64_MAX || f->n == MAX_CANDIDATES)
		return;
	c.edges[0] = (struct order_edge){ f->thread, f->thread, insn, EDGE_LATE };
	f->candidates[f->n++] = c;
}

static void find_for_branch(struct search *s, struct frame *f)
{
	static const size_t most[NCLASSES] = { 64, 96, 112, 144, 192, MAX_CANDIDATES };
	struct reads reads = { 0 };

	if (s->frames.n < CROWDED && s->r->res.mismatches <= MANY)
		sources_find(s, f);
	classify(s, f, &reads);
	s->sources.n = 0;
	for (int c = CLASS_SOURCE; c <= CLASS_NEAR && !s->suspected; c++)
		if (reads.of[c].n) {
			s->suspect = *reads.of[c].v[0];
			s->suspected = true;
		}
	for (int c = 0; c < NCLASSES; c++) {
		size_t first = f->n;

		if (c == CLASS_AHEAD)
			place_late(f, &reads);
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
		return touch_mask(t) == 0xff;
	return t->word * 8 + t->first < w->address + w->size && t->word * 8 + t->last >= w->address;
}

/* What the load sees its own thread made of another value: i++ before it, say. */
static void places_of_updates(struct search *s, struct frame *f, const struct touch *read)
{
	struct place p = { .read = read };
	unsigned n = 0;

	place_bounds(s, &p);
	for (const struct touch *t = read; t-- > p.lo && n < PER_VALUE;)
		if (!t->write && t->thread == read->thread && t->insn != read->insn &&
		    also_writes(s, t)) {
			places_of(s, f, t, NULL);
			n++;
		}
}

/*
 * Nobody has written, or will write as far as could be looked ahead, what the load should have
 * seen: who goes wrong before that has to be put right first.
 */
static void places_ahead(struct search *s, struct frame *f)
{
	struct reads reads = { 0 };

	if (!s->wrong.n || !touches_gather(s, f, true))
		return;
	classify(s, f, &reads);
	for (size_t i = 0; i < reads.of[CLASS_AHEAD].n && f->n < PER_LOAD; i++)
		places_of(s, f, reads.of[CLASS_AHEAD].v[i], NULL);
	for (size_t i = 0; i < f->n; i++)
		f->candidates[i].near = f->candidates[i].first_half = true;
	for (int c = 0; c <= CLASS_QUIET; c++)
		vec_free(&reads.of[c]);
}

/* The value is known: when no order gives it, it is given. */
static void force_load(struct frame *f, uint64_t insn, bool buffered)
{
	struct candidate c = { .force = true, .near = true, .buffered = buffered };

	c.load = (struct mach_forced){ .thread = f->thread, .insn = insn, .address = f->wanted.address,
				       .size = f->wanted.size, .value = f->wanted.value,
				       .logged = true };
	f->candidates[f->n++] = c;
}

static void find_for_load(struct search *s, struct frame *f)
{
	/* Store buffers: no order helps, and one that seems to leads the threads astray. */
	bool many = s->r->res.mismatches > MANY, buffered = s->load.buffered;
	const struct touch *read = NULL;

	for (size_t i = 0; i < s->touches.n; i++) {
		const struct touch *t = &s->touches.v[i];

		if (!is_the_load(f, t))
			continue;
		if (!f->wanted.address)
			f->wanted.address = t->word * 8;
		read = t;
		if (!many)
			places_of(s, f, t, &f->wanted);
	}
	if (!read)
		return;

	uint64_t insn = read->insn;
	if (f->n > PER_LOAD)
		f->n = PER_LOAD;
	for (size_t i = 0; i < f->n; i++)
		f->candidates[i].near = true;
	if (!many)
		places_of_updates(s, f, read);
	if (!many && !f->n && !buffered)
		places_ahead(s, f);
	if (f->wanted.address)
		force_load(f, insn, buffered);
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
	if (totals_again(s, f) || !touches_gather(s, f, false))
		return;
	if (f->load)
		find_for_load(s, f);
	else if (s->r->res.mismatches > MANY || (s->look_far && !s->pinned) || !totals_find(s, f))
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
