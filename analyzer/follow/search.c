/*
 * Finding an order for racing segments: see follow.h, "When the guess was
 * wrong". Depth-first over candidates, each try executed from the last
 * checkpoint. A mismatch's orders are first tried by themselves: what runs into
 * another mismatch before it has brought the thread past this one is put aside.
 * Only when none helps alone are those taken up again, and the other mismatch
 * resolved as well. When no order helps at all a load is forced.
 */
#include "analyzer/follow/search.h"

#include <string.h>

#define WINDOW 200000u      /* instructions between checkpoints to go back to */
#define WINDOW_BUSY 6000u   /* while mismatches are being resolved */
#define SETTLED 6000u       /* so far past the last mismatch an order is committed ... */
#define SETTLED_LOAD 2000u  /* ... when it was resolved by what a load should have seen */
#define SETTLED_CROWDED 20u /* ... or after CROWDED mismatches in a row */
#define WINDOW_CROWDED 200u /* and then so many apart */
#define MAX_TRIES 400u      /* per base, unless the options say otherwise */
#define DEEP_TRIES 60u      /* spent on other mismatches that an order brings with it */
#define VENTURE_TRIES 20u   /* likewise, when the other mismatch lies on new ground */
#define NEAR_BASE 6000u     /* instructions: so little behind it was looked at */
#define MOST_LOOKS 6u       /* so many checkpoints back for one load ... */
#define LONGEST_LOOK 3000000u /* ... and instructions */
#define MAX_DEPTH 48u
#define MOST_BACKS 300u     /* per run: against going round in circles */
#define MOST_AGAIN 4u       /* edges for one mismatch */
#define PATIENCE_TRIES 150u /* for one stretch; then loads are forced sooner */
#define PATIENCE_SECONDS 1.5
#define HURRIED_ORDERS 8u   /* orders of the nearest reads before a load is forced, then */
#define STAGE_SECONDS 5.0   /* from one base */
#define SEARCH_SECONDS 20.0 /* for one mismatch, from all bases */

static struct search *search_of(struct mach_run *r)
{
	if (!r->search) {
		r->search = xcalloc(1, sizeof *r->search);
		r->search->r = r;
	}
	return r->search;
}

static void free_frame(struct frame *f)
{
	free(f->candidates);
	free(f->at);
}

static void drop_frame(struct search *s)
{
	free_frame(&s->frames.v[--s->frames.n]);
}

static void drop_base(struct mach_run *r, struct search *s, size_t i)
{
	checkpoint_free(r, s->bases[i].c);
	vec_free(&s->bases[i].edges);
	memmove(&s->bases[i], &s->bases[i + 1], (s->nbases - i - 1) * sizeof s->bases[0]);
	s->nbases--;
	memset(&s->bases[s->nbases], 0, sizeof s->bases[0]);
}

/* Makes room: the further back, the fewer are needed. */
static void thin_bases(struct mach_run *r, struct search *s)
{
	size_t drop = 1;
	double least = 1e300;

	for (size_t i = 1; i + 1 < s->nbases; i++) {
		uint64_t gap = s->bases[i + 1].c->time - s->bases[i - 1].c->time;
		double weight = (double)gap / (double)(r->time - s->bases[i].c->time + 1);

		if (weight < least) {
			least = weight;
			drop = i;
		}
	}
	for (size_t k = 0; k < s->bases[drop].edges.n; k++)
		vec_push(&s->bases[drop - 1].edges, s->bases[drop].edges.v[k]);
	drop_base(r, s, drop);
}

void search_end(struct mach_run *r)
{
	struct search *s = r->search;

	if (!s)
		return;
	while (s->frames.n)
		drop_frame(s);
	while (s->nbases)
		drop_base(r, s, s->nbases - 1);
	vec_free(&s->frames);
	vec_free(&s->touches);
	vec_free(&s->wrong);
	vec_free(&s->sources);
	vec_free(&s->total.tried);
	free(s->first_why);
	free(s);
	r->search = NULL;
}

/* ---- checkpoints ---- */

static bool is_passed(const struct mach_run *r, const struct order_edge *e)
{
	return mach_thread_insns(r, e->thread) > e->insn &&
	       (EDGE_IS_OPEN(e) || mach_thread_insns(r, e->other) >= e->other_insn);
}

/* Edges that are behind us go to the base they started from; the others stay in force. */
static void settle_edges(struct mach_run *r, struct base *last)
{
	size_t n = 0;

	last->edges.n = 0;
	for (size_t i = 0; i < r->edges.n; i++) {
		vec_push(&last->edges, r->edges.v[i]);
		if (!is_passed(r, &r->edges.v[i]))
			r->edges.v[n++] = r->edges.v[i];
	}
	r->edges.n = n;
}

static bool is_settled(const struct mach_run *r, const struct search *s)
{
	uint64_t far = SETTLED_LOAD, last = s->pinned ? s->first_time : 0;

	if (!s->frames.n && !s->pinned)
		return true;
	for (size_t i = 0; i < s->frames.n; i++) {
		const struct frame *f = &s->frames.v[i];

		if (mach_thread_insns(r, f->thread) <= f->insn &&
		    r->threads[f->thread].s.life != LIFE_ENDED)
			return false; /* it is being tried */
		if (!f->load)
			far = SETTLED;
		if (last < f->time)
			last = f->time;
	}
	/* So many in a row: what was decided first was good enough to get here. */
	if (s->frames.n >= CROWDED)
		far = SETTLED_CROWDED;
	return r->time >= last + far;
}

static uint64_t window(const struct search *s)
{
	return s->frames.n >= CROWDED ? WINDOW_CROWDED : s->frames.n ? WINDOW_BUSY : WINDOW;
}

void search_checkpoint(struct mach_run *r)
{
	struct search *s;

	if (r->nthreads < 2)
		return;
	s = search_of(r);
	if (s->nbases && (r->time - search_base(s)->time < window(s) || !is_settled(r, s)))
		return;
	while (s->frames.n)
		drop_frame(s);
	if (s->nbases)
		settle_edges(r, &s->bases[s->nbases - 1]);
	s->tries = 0;
	s->began = 0;
	s->looks = 0;
	s->pinned = s->desperate = false;
	free(s->first_why);
	s->first_why = NULL;
	free(r->reason);
	r->reason = NULL;
	if (s->nbases == MAX_BASES)
		thin_bases(r, s);
	s->bases[s->nbases].forces = r->force_serial;
	s->bases[s->nbases++].c = checkpoint_take(r);
}

/* ---- the search ---- */

static bool spent(struct mach_run *r, const struct search *s)
{
	size_t max = r->o.max_tries ? r->o.max_tries : MAX_TRIES;
	double now = run_seconds();

	if (run_out_of_time(r))
		return true;
	return s->tries >= max || now > s->stage + STAGE_SECONDS || now > s->began + SEARCH_SECONDS;
}

static void try_candidate(struct mach_run *r, struct search *s, const struct frame *f,
			  const struct candidate *c)
{
	r->edges.n = f->edges;
	run_unforce(r, f->forces);
	for (uint32_t i = 0; i < c->n; i++)
		vec_push(&r->edges, c->edges[i]);
	if (c->force)
		run_force(r, &c->load);
	if (c->halves)
		run_force_half(r, &c->load);
	s->tries++;
	r->res.tries++;
	r->res.rollbacks++;
	checkpoint_restore(r, search_base(s));
}

static bool is_of_round(const struct candidate *c, const struct frame *f, bool hurry)
{
	switch (f->round) {
	case ROUND_ALONE:
		return !c->force || c->buffered;
	case ROUND_DEEP:
		return (!c->force || c->buffered) && c->elsewhere;
	case ROUND_FORCE:
		return c->force && !c->buffered && (hurry || !c->quiet);
	default:
		return f->hurried && !c->force &&
		       (!c->near || (size_t)(c - f->candidates) >= HURRIED_ORDERS);
	}
}

static void next_round(const struct mach_run *r, struct frame *f)
{
	f->round++;
	f->next = 0;
	f->deep_since = r->res.tries;
}

/* This stretch has cost enough: orders of the nearest reads only, then force. */
static bool is_impatient(const struct mach_run *r, const struct search *s)
{
	return s->desperate || r->res.tries > s->began_tries + PATIENCE_TRIES ||
	       run_seconds() > s->began + PATIENCE_SECONDS;
}

static bool may_force(const struct search *s)
{
	for (size_t i = 0; i + 1 < s->frames.n; i++)
		if (s->frames.v[i].round == ROUND_DEEP || s->frames.v[i].ventured)
			return false;
	return true;
}

/* Since the checkpoint little has happened; or little in its thread, whose clock may have kept it back too long. */
static bool is_near_base(const struct search *s, const struct frame *f)
{
	const struct checkpoint *c = search_base(s);

	return f->time < c->time + NEAR_BASE || f->insn < c->threads[f->thread].cpu.insns + NEAR_BASE;
}

/*
 * The load's write may lie before the checkpoint, if that is near: look there before forcing, and, as long as its
 * thread has not come far since, before the one in front of that.
 */
static bool looks_back(const struct mach_run *r, const struct search *s)
{
	const struct frame *f = &s->frames.v[0];

	return s->frames.n == 1 && f->load && s->nbases > 1 && r->res.mismatches <= MANY && is_near_base(s, f) &&
	       (!s->pinned || (s->looks < MOST_LOOKS && f->time - s->bases[s->nbases - 2].c->time < LONGEST_LOOK));
}

static bool near_left(const struct frame *f)
{
	for (size_t i = f->next; i < f->n; i++)
		if (f->candidates[i].near && !f->candidates[i].force)
			return true;
	return false;
}

/* All that is near was tried, and what lay behind it left alone: once more, and it is not. */
static void start_over(struct frame *f)
{
	if (f->shy != SHY || f->round != ROUND_ALONE || near_left(f))
		return;
	f->shy = SHY_OVER;
	f->next = 0;
}

/*
 * The next candidate of the topmost frame; NULL: none is left. Below a frame
 * that is looking for an order nothing is forced: it can still do so itself.
 */
static const struct candidate *next_candidate(struct mach_run *r, struct search *s)
{
	struct frame *f = &s->frames.v[s->frames.n - 1];
	bool hurry = is_impatient(r, s);

	for (; f->round < NROUNDS; next_round(r, f)) {
		start_over(f);
		if (f->round == ROUND_FORCE && !hurry && (!may_force(s) || looks_back(r, s)))
			return NULL;
		while (f->next < f->n) {
			const struct candidate *c = &f->candidates[f->next];

			if (hurry && f->round < ROUND_FORCE &&
			    (f->round == ROUND_DEEP || !c->near || f->next >= HURRIED_ORDERS)) {
				f->hurried = true;
				f->round = ROUND_DEEP;
				break;
			}
			f->next++;
			if (is_of_round(c, f, hurry))
				return c;
		}
	}
	return NULL;
}

/* A frame has spent what it may on other mismatches: back to it. */
static void leave_the_deep(const struct mach_run *r, struct search *s)
{
	for (size_t i = 0; i < s->frames.n; i++) {
		struct frame *f = &s->frames.v[i];
		bool deep = f->round == ROUND_DEEP && r->res.tries - f->deep_since >= DEEP_TRIES;

		if (!deep && (!f->ventured || r->res.tries - f->ventured < VENTURE_TRIES))
			continue;
		while (s->frames.n > i + 1)
			drop_frame(s);
		f->ventured = 0;
		if (deep)
			next_round(r, f);
	}
}

/*
 * No other place of what the mismatch was made of, or of what lies right before it, has led on; but the
 * one before it was resolved by one of several such orders: more likely that was the wrong one.
 */
static void leave_alone(const struct mach_run *r, struct search *s)
{
	struct frame *top = &s->frames.v[s->frames.n - 1], *below = s->frames.n > 1 ? top - 1 : NULL;

	if (!below || top->round != ROUND_ALONE || top->load || near_left(top) ||
	    below->round != ROUND_ALONE || below->shy == SHY_OVER || !near_left(below) || is_impatient(r, s))
		return;
	below->shy = SHY;
	drop_frame(s);
}

static bool next_try(struct mach_run *r, struct search *s)
{
	while (s->frames.n && !spent(r, s)) {
		const struct candidate *c;

		leave_the_deep(r, s);
		leave_alone(r, s);
		s->frames.v[s->frames.n - 1].ventured = 0;
		c = next_candidate(r, s);
		if (c) {
			try_candidate(r, s, &s->frames.v[s->frames.n - 1], c);
			return true;
		}
		drop_frame(s);
	}
	return false;
}

/* Edges that led from there on stay in force. */
void search_back_to(struct search *s, struct frame *f, size_t base)
{
	struct mach_run *r = s->r;
	struct base *b = &s->bases[base];

	while (s->nbases > base + 1) {
		const struct base *last = &s->bases[s->nbases - 1];

		for (size_t i = 0; i < last->edges.n; i++)
			vec_push(&b->edges, last->edges.v[i]);
		drop_base(r, s, s->nbases - 1);
	}
	for (size_t i = 0; i < b->edges.n; i++)
		vec_push(&r->edges, b->edges.v[i]);
	f->edges = r->edges.n;
	s->pinned = true;
}

void search_restore(struct mach_run *r, size_t base)
{
	struct search *s = r->search;
	struct base *b = &s->bases[base];

	for (; s->nbases > base + 1; drop_base(r, s, s->nbases - 1)) {
		run_unforce(r, s->bases[s->nbases - 1].forces);
		r->edges.n = 0;
		for (size_t i = 0; s->nbases == base + 2 && i < b->edges.n; i++)
			vec_push(&r->edges, b->edges.v[i]);
	}
	r->res.rollbacks++;
	checkpoint_restore(r, b->c);
}

/*
 * The wrong read may lie before the checkpoint: go back one further, run to the
 * same mismatch again, and search from there.
 */
static bool go_further_back(struct mach_run *r, struct search *s)
{
	if (s->nbases < 2 || run_out_of_time(r) || run_seconds() > s->began + SEARCH_SECONDS ||
	    ++s->backs > MOST_BACKS)
		return false;
	while (s->frames.n)
		drop_frame(s);
	search_restore(r, s->nbases - 2);
	s->tries = 0;
	s->stage = run_seconds();
	s->pinned = true;
	s->looks++;
	return true;
}

/* All failed: once more, and force loads without looking for an order of far reads. */
static bool despair(struct mach_run *r, struct search *s)
{
	if (s->desperate || !s->nbases || run_out_of_time(r))
		return false;
	s->desperate = true;
	while (s->frames.n)
		drop_frame(s);
	run_unforce(r, s->bases[s->nbases - 1].forces);
	r->edges.n = 0;
	s->tries = 0;
	s->began = s->stage = run_seconds();
	s->pinned = true;
	r->res.rollbacks++;
	checkpoint_restore(r, search_base(s));
	return true;
}

/* No time left to look for an order: the value of a logged load is known all the same. */
static bool force_at_once(struct mach_run *r, struct search *s, const struct frame *f)
{
	struct candidate c = { .force = true };

	if (!f->load || !f->wanted.address || run_out_of_time(r))
		return false;
	c.load = (struct mach_forced){ .thread = f->thread, .insn = f->insn - 1,
				       .address = f->wanted.address, .size = f->wanted.size,
				       .value = f->wanted.value, .logged = true };
	try_candidate(r, s, f, &c);
	return true;
}

static void push_frame(struct mach_run *r, struct search *s, struct frame *f)
{
	if (!s->first_why && r->why) {
		s->first_why = xstrdup(r->why);
		s->first_pc = r->mismatch_pc;
		s->first_thread = f->thread;
		s->first_insn = f->insn;
		s->suspected = false;
		run_blame(r, f->thread, false);
	}
	f->time = r->time;
	if (!s->frames.n && s->first_time < r->time)
		s->first_time = r->time;
	r->res.mismatches++;
	if (!s->began) {
		s->began = run_seconds();
		s->began_tries = r->res.tries;
	}
	s->stage = run_seconds(); /* it got this far: a new start */
	s->tries = 0;
	/* Too deep: what was decided first is no longer reconsidered. */
	if (s->frames.n == MAX_DEPTH) {
		free_frame(&s->frames.v[0]);
		memmove(&s->frames.v[0], &s->frames.v[1], (--s->frames.n) * sizeof *f);
	}
	f->at = xcalloc(r->nthreads + 1, sizeof *f->at);
	for (uint32_t i = 0; i < r->nthreads; i++)
		f->at[i] = mach_thread_insns(r, i);
	candidates_find(s, f);
	vec_push(&s->frames, *f);
}

/*
 * The other mismatch lies where its thread had not been before: no sign that the order
 * is wrong, it may be the next one to resolve. Of the nearest reads, a few tries.
 */
static bool ventures(const struct mach_run *r, struct frame *top, const struct frame *f)
{
	if (top->round != ROUND_ALONE || !top->next || !top->candidates[top->next - 1].near ||
	    f->insn <= top->at[f->thread])
		return false;
	top->ventured = r->res.tries;
	return true;
}

/* A mismatch while a candidate of `top` is being tried: does it lead on? */
static bool leads_on(const struct mach_run *r, struct frame *top, struct frame *f)
{
	bool past = mach_thread_insns(r, top->thread) > top->insn ||
		    r->threads[top->thread].s.life == LIFE_ENDED;

	/* The same again, or even before it. */
	if (top->thread == f->thread && f->load && f->insn < top->insn && top->next) {
		/* Another load of its own that a store buffer may explain, then. */
		top->candidates[top->next - 1].elsewhere = true;
		return top->round == ROUND_DEEP;
	}
	if (top->thread == f->thread && f->insn <= top->insn) {
		f->again = top->again + 1;
		return f->insn == top->insn && f->again < MOST_AGAIN && top->next &&
		       top->candidates[top->next - 1].first_half;
	}
	if (!past && top->next)
		top->candidates[top->next - 1].elsewhere = true;
	return past || top->round == ROUND_DEEP || ventures(r, top, f) ||
	       (top->next && top->candidates[top->next - 1].first_half &&
		f->insn > top->at[f->thread]);
}

bool search_resolve(struct mach_run *r, struct run_thread *t)
{
	struct search *s;
	struct frame *top, f = { 0 };

	if (r->nthreads < 2)
		return false;
	s = search_of(r);
	f.thread = t->index;
	f.insn = mach_thread_insns(r, t->index);
	f.edges = r->edges.n;
	f.forces = r->force_serial;
	f.load = r->mismatch_load;
	f.stalled = run_was_stalled(t);
	f.wanted = r->wanted;
	top = s->frames.n ? &s->frames.v[s->frames.n - 1] : NULL;
	if (!top || leads_on(r, top, &f)) {
		if (s->began && spent(r, s) && force_at_once(r, s, &f))
			return true;
		push_frame(r, s, &f);
	}
	if (next_try(r, s) || go_further_back(r, s) || despair(r, s))
		return true;
	search_complain(r);
	return false;
}

/* No order was found that gives it the value it had. */
static void suspect_race(struct mach_run *r, const struct search *s)
{
	uint64_t address = 8 * s->suspect.word + s->suspect.first;

	if (!r->reason && s->suspected)
		r->reason = run_racy_reason(r, s->suspect.thread, address);
}

/* Says what was wrong first, not what the last try ran into. */
bool search_complain(struct mach_run *r)
{
	if (!r->search || !r->search->first_why)
		return false;
	run_say(r, "%s", r->search->first_why);
	r->mismatch_pc = r->search->first_pc;
	r->blamed = true;
	r->blamed_thread = r->search->first_thread;
	r->blamed_insn = r->search->first_insn;
	suspect_race(r, r->search);
	return true;
}

bool search_is_idle(const struct mach_run *r)
{
	return r->search && !r->search->frames.n && !r->search->pinned;
}

bool search_stuck(struct mach_run *r)
{
	if (!r->search || !r->edges.n)
		return false;
	return next_try(r, r->search) || go_further_back(r, r->search) || despair(r, r->search);
}
