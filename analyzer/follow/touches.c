/*
 * Who touched what around a mismatch. The stretch up to it is executed once
 * more, watched, and then the other threads a little further.
 */
#include "analyzer/follow/search.h"

#include <string.h>

#define EXPLORE 3000000u    /* how far the others run ahead at most, looking for writes ... */
#define EXPLORE_SOON 60000u /* ... where mismatches crowd ... */
#define EXPLORE_FAR 30000000u /* ... and when nothing was found */
#define EXPLORE_TURN 20000u
#define EXPLORE_AT_LEAST 4000u /* of each thread, whatever the clocks show: between timestamps they are guesses */
#define MOST_TOUCHES 16000000u /* that are kept: 0.6 GB */
#define SAME_READS 40u      /* in a row: more are not kept one by one */

static uint64_t *word_slot(const struct search *s, uint64_t word)
{
	size_t i = (size_t)(word * 0x9e3779b97f4a7c15ull >> 24) & (s->words_cap - 1);

	while (s->words[i] && s->words[i] != word + 1)
		i = (i + 1) & (s->words_cap - 1);
	return &s->words[i];
}

/* What the thread has touched in this window. */
static void words_of(struct search *s, uint32_t thread)
{
	size_t n = 0;

	for (size_t i = 0; i < s->touches.n; i++)
		n += s->touches.v[i].thread == thread;
	for (s->words_cap = 64; s->words_cap < 2 * n;)
		s->words_cap *= 2;
	s->words = xcalloc(s->words_cap, sizeof *s->words);
	for (size_t i = 0; i < s->touches.n; i++) {
		const struct touch *t = &s->touches.v[i];
		uint64_t key = 2 * t->word + t->write;

		if (t->thread == thread)
			*word_slot(s, key) = key + 1;
	}
}

static bool of_interest(const struct search *s, const struct touch *t)
{
	if (s->only_hi)
		return t->word >= s->only_lo && t->word <= s->only_hi;
	return !s->words || *word_slot(s, 2 * t->word + !t->write);
}

/* A loop that waits reads the same thing for ever: the first and the last of it will do. */
static bool is_the_same_again(struct search *s, const struct touch *t)
{
	struct last_touch *l = &s->last[t->word % LAST_TOUCHES];
	struct touch *was = l->index < s->touches.n ? &s->touches.v[l->index] : NULL;
	bool same = was && was->word == t->word && was->thread == t->thread && !was->write &&
		    !t->write && was->first == t->first && was->last == t->last &&
		    was->value == t->value;

	l->times = same ? l->times + 1 : 0;
	if (l->times > SAME_READS) {
		*was = *t;
		return true;
	}
	l->index = s->touches.n;
	return false;
}

/* What it saw is what must be explained. */
static bool is_the_wrong_load(const struct search *s, uint64_t insn)
{
	return s->r->current == s->wrong_thread && insn + 1 == s->wrong_insn;
}

static void on_fence(void *arg, struct mach *m)
{
	struct search *s = arg;

	(void)m;
	if (s->buffers)
		buffers_fence(s->buffers, s->r->current);
}

static void on_access(void *arg, struct mach *m, uint64_t pc, uint64_t address, unsigned size,
		      unsigned how, uint64_t value)
{
	struct search *s = arg;
	uint64_t insn = m->insns + (m->now_op ? m->now_op->insn : 0);

	if (s->buffers && !is_the_wrong_load(s, insn))
		buffers_access(s->buffers, pc, address, size, how);
	s->order++;
	for (uint64_t at = address; at < address + size;) {
		unsigned first = at % 8, n = 8 - first;
		struct touch t = { .word = at / 8, .insn = insn, .order = s->order,
				   .thread = s->r->current, .write = how & ACCESS_WRITE,
				   .locked = how & ACCESS_LOCKED };

		if (n > address + size - at)
			n = (unsigned)(address + size - at);
		t.first = (uint8_t)first;
		t.last = (uint8_t)(first + n - 1);
		memcpy((uint8_t *)&t.value + first, (uint8_t *)&value + (at - address), n);
		at += n;
		if (s->touches.n < MOST_TOUCHES && of_interest(s, &t) && !is_the_same_again(s, &t))
			vec_push(&s->touches, t);
	}
}

static void watch(struct search *s, bool on)
{
	s->r->m->access = on ? on_access : NULL;
	s->r->m->fence = on ? on_fence : NULL;
	s->r->m->access_arg = on ? s : NULL;
}

/* The stretch from there up to the mismatch once more, watched. */
static bool repeat(struct search *s, const struct checkpoint *base)
{
	struct mach_run *r = s->r;
	size_t n = r->log.n;
	err_t e = NULL;

	s->touches.n = 0;
	memset(s->last, 0xff, sizeof s->last);
	s->order = 0;
	checkpoint_restore(r, base);
	r->log.n = n;
	watch(s, true);
	for (size_t i = base->log; i < n && !e; i++) {
		const struct log_step step = r->log.v[i];

		e = run_log_step(r, &step);
		if (s->buffers && step.action != ACT_RUN)
			buffers_fence(s->buffers, step.thread);
	}
	watch(s, false);
	s->happened = s->order;
	if (e) {
		run_say(r, "%s", e->msg);
		err_free(e);
		return false;
	}
	return true;
}

/*
 * The others go on without the mismatching thread, at first as long as their clocks
 * show less than its next timestamp: what will they write?
 */
static void explore(struct search *s, const struct frame *f)
{
	struct mach_run *r = s->r;
	uint64_t far = s->frames.n >= CROWDED ? EXPLORE_SOON : s->look_far ? EXPLORE_FAR : EXPLORE;
	uint64_t end = r->time + far;
	uint64_t *at_least = xcalloc(r->nthreads + 1, sizeof *at_least);
	uint64_t until = s->look_far ? UINT64_MAX : run_head_time(&r->threads[f->thread]);
	bool any = true;

	for (uint32_t i = 0; i < r->nthreads; i++)
		at_least[i] = mach_thread_insns(r, i) + EXPLORE_AT_LEAST;
	if (!s->only_hi)
		words_of(s, f->thread);
	watch(s, true);
	s->wrong.n = 0;
	r->lazy_go = true;
	r->looking_ahead = true;
	while (any && r->time < end && !r->asked_to_stop) {
		any = false;
		for (size_t i = 0; i < r->nthreads && r->time < end; i++) {
			struct run_thread *t = &r->threads[i];
			uint64_t time = r->time, seq = r->seq;
			enum action stood = t->s.action;

			if (i == f->thread ||
			    (t->s.life != LIFE_RUNNING && t->s.life != LIFE_IN_CALL) || t->s.waiting ||
			    !run_is_due(r, t))
				continue;
			bool late = run_clock_now(r, t) > until;
			uint64_t now = mach_thread_insns(r, t->index);
			if (late && now >= at_least[i])
				continue;
			if (run_turn(r, t, late ? at_least[i] - now : EXPLORE_TURN) == ACT_MISMATCH) {
				t->s.action = ACT_END; /* for this look ahead only */
				vec_push(&s->wrong, (struct wrong_ahead){ t->index,
						mach_thread_insns(r, t->index) });
			}
			/* Not held by an edge; it may only have noticed where it stands. */
			any |= r->time != time || r->seq != seq || t->s.action != stood;
		}
	}
	s->cut = !s->look_far && far == EXPLORE;
	r->looking_ahead = false;
	watch(s, false);
	free(at_least);
	free(s->words);
	s->words = NULL;
}

static int by_word(const void *a, const void *b)
{
	const struct touch *x = a, *y = b;

	if (x->word != y->word)
		return x->word < y->word ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Can the load have seen its value because stores were still in their threads' buffers? */
static void find_buffered(struct search *s, const struct frame *f)
{
	struct mach_forced *l = &s->load;
	uint64_t now = 0;

	*l = (struct mach_forced){ .thread = f->thread, .insn = f->insn - 1, .logged = true,
				   .address = f->wanted.address, .size = f->wanted.size,
				   .value = f->wanted.value };
	if (!s->buffers || !mem_peek(s->r->m->mem, l->address, &now, l->size))
		return;
	l->memory = now;
	buffers_explain(s->buffers, l);
}

bool touches_gather(struct search *s, const struct frame *f, bool all)
{
	bool good;

	s->only_lo = s->only_hi = 0;
	if (!all && f->load && f->wanted.address) {
		s->only_lo = f->wanted.address / 8;
		s->only_hi = (f->wanted.address + f->wanted.size - 1) / 8;
	}
	s->wrong_thread = f->thread;
	s->wrong_insn = f->insn;
	s->buffers = s->only_hi ? buffers_new(s->r) : NULL;
	good = repeat(s, search_base(s));
	find_buffered(s, f);
	buffers_free(s->buffers);
	s->buffers = NULL;
	if (!good)
		return false;
	size_t happened = s->r->log.n;
	explore(s, f);
	/* What was only looked at is no part of the stretch when it is gathered again. */
	s->r->log.n = happened;
	if (s->touches.n)
		qsort(s->touches.v, s->touches.n, sizeof *s->touches.v, by_word);
	return s->touches.n > 0;
}

bool touches_of_word(struct search *s, size_t base, uint64_t word)
{
	s->only_lo = s->only_hi = word;
	if (!repeat(s, s->bases[base].c))
		return false;
	if (s->touches.n)
		qsort(s->touches.v, s->touches.n, sizeof *s->touches.v, by_word);
	return true;
}
