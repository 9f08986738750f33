/*
 * The hint: what kind of fix the projection speaks for, with its lines.
 * Never guessed: each sentence states what the trace holds (who held which
 * lock, who forked and joined whom, which order failed and which did not).
 */
#include "analyzer/dsp/pattern.h"

#include <string.h>

static const char *const hint_names[DSP_HINT_KINDS] = {
	[DSP_HINT_NONE] = "none",
	[DSP_HINT_ATOMIC] = "atomic",
	[DSP_HINT_ORDER] = "order",
	[DSP_HINT_LOCK_ORDER] = "locks",
	[DSP_HINT_FENCE] = "fence",
	[DSP_HINT_RELEASE] = "release",
	[DSP_HINT_RECHECK] = "recheck",
	[DSP_HINT_WAKE] = "wake",
};

const char *dsp_hint_name(enum dsp_hint_kind k)
{
	return k < DSP_HINT_KINDS ? hint_names[k] : "none";
}

void dsp_say_does(struct strbuf *b, const struct sym_trace *t, struct sched_ref r)
{
	const struct sym_event *e = order_event_at(t, r);
	const char *subject = dsp_subject(t, e);

	strbuf_str(b, dsp_verb(e->op));
	if (*subject)
		strbuf_fmt(b, " `%s'", subject);
}

void dsp_say_at(struct strbuf *b, const struct sym_trace *t, struct sched_ref r)
{
	char *where = dsp_where(t, r);

	strbuf_str(b, where);
	free(where);
}

const char *dsp_thread_id(const struct sym_trace *t, uint32_t thread)
{
	return t->threads[thread].id;
}

static void place_in(struct strbuf *b, const struct sym_trace *t, struct sched_ref r)
{
	const struct sym_frame *f = dsp_place(t, order_event_at(t, r));

	dsp_say_at(b, t, r);
	if (f && f->file) /* else it is the function that was said */
		strbuf_fmt(b, " (%s)", f->function);
}

/* Without lines: is it the same instruction? */
static bool same_code(const struct sym_trace *t, struct sched_ref a, struct sched_ref b)
{
	char *x = dsp_where(t, a), *y = dsp_where(t, b);
	bool same = !strcmp(x, y);

	free(x);
	free(y);
	return same;
}

/* One line, but a loop goes over several things there. */
static bool is_in_loop(const struct sym_trace *t, const struct dsp_region *r)
{
	return !r->compared && r->last != SYM_NONE && r->var == SYM_NONE &&
	       same_code(t, (struct sched_ref){ r->thread, r->first }, r->end);
}

/* The program's frames of an event, outermost first. */
static size_t frames_of(const struct sym_trace *t, struct sched_ref r, const struct sym_frame **out, size_t max)
{
	const struct sym_event *e = order_event_at(t, r);
	const struct sym_stack *k = e->stack < t->nstacks ? &t->stacks[e->stack] : NULL;
	const struct sym_frame *place = dsp_place(t, e);
	size_t n = 0;

	for (uint32_t i = k ? k->n : 0; i-- > 0 && n < max && &k->frames[i] >= place;)
		if (k->frames[i].file && !dsp_is_runtime(&k->frames[i]))
			out[n++] = &k->frames[i];
	return n;
}

#define DEEPEST 40

/* Is what a frame called inlined there? */
static bool inlines(const struct sym_frame *const *a, const struct sym_frame *const *b)
{
	return a[0]->pc == a[1]->pc && b[0]->pc == b[1]->pc;
}

/* The same call: by its address, or what was inlined there by its line. */
static bool is_same_call(const struct sym_frame *const *a, const struct sym_frame *const *b)
{
	return a[0]->line == b[0]->line && (inlines(a, b) || a[0]->pc == b[0]->pc) && !strcmp(a[0]->function, b[0]->function);
}

/* Two helpers, called by one function: that has to be changed, not the helpers. */
static bool calls_of_one(const struct sym_trace *t, struct sched_ref a, struct sched_ref b, const struct sym_frame **x,
			 const struct sym_frame **y)
{
	const struct sym_frame *of_a[DEEPEST], *of_b[DEEPEST];
	size_t n = frames_of(t, a, of_a, DEEPEST), k = frames_of(t, b, of_b, DEEPEST), i = 0;

	while (i + 1 < n && i + 1 < k && is_same_call(of_a + i, of_b + i))
		i++;
	/* Both in one statement. */
	if (i && i + 1 == n && i + 1 == k && inlines(of_a + i - 1, of_b + i - 1) && strcmp(of_a[i]->function, of_b[i]->function)) {
		*x = *y = of_a[i - 1];
		return true;
	}
	if (i + 1 >= n || i + 1 >= k || strcmp(of_a[i]->function, of_b[i]->function) || strcmp(of_a[i]->file, of_b[i]->file))
		return false;
	*x = of_a[i];
	*y = of_b[i];
	return true;
}

/* Both ends lie in helpers, or twice in the same one, that one function calls: there. */
static bool is_in_helpers(const struct sym_trace *t, const struct dsp_region *r, const struct sym_frame **from,
			  const struct sym_frame **to)
{
	struct sched_ref first = { r->thread, r->first };
	const struct sym_frame *x = dsp_place(t, order_event_at(t, first)), *y = dsp_place(t, order_event_at(t, r->end));

	return x && y && x->file && y->file && (strcmp(x->function, y->function) || x->line == y->line) &&
	       calls_of_one(t, first, r->end, from, to);
}

/* Where the other thread comes in between; as for the region, in the function that calls the helpers. */
void dsp_say_intruder_at(struct strbuf *b, const struct sym_trace *t, const struct dsp_region *r)
{
	const struct sym_frame *from, *to, *frames[DEEPEST];
	size_t n = is_in_helpers(t, r, &from, &to) ? frames_of(t, r->intruder, frames, DEEPEST) : 0;

	while (n > 0 && (strcmp(frames[n - 1]->function, from->function) || strcmp(frames[n - 1]->file, from->file)))
		n--;
	/* One and the same call in both threads: only the place inside of it says more. */
	if (n && (from->line != to->line || frames[n - 1]->line != from->line))
		strbuf_fmt(b, "%s:%u", dsp_basename(frames[n - 1]->file), frames[n - 1]->line);
	else
		dsp_say_at(b, t, r->intruder);
}

/* "bank.c:10 to 12"; in two functions "bank.c:10 (check) to bank.c:40 (use)". */
void dsp_say_span(struct strbuf *b, const struct sym_trace *t, const struct dsp_region *r)
{
	struct sched_ref first = { r->thread, r->first };
	const struct sym_frame *x = dsp_place(t, order_event_at(t, first));
	const struct sym_frame *y = dsp_place(t, order_event_at(t, r->end));

	const struct sym_frame *from, *to;
	if ((!x || !x->file) && same_code(t, first, r->end)) {
		dsp_say_at(b, t, first);
	} else if (is_in_helpers(t, r, &from, &to)) {
		unsigned low = from->line < to->line ? from->line : to->line, high = from->line < to->line ? to->line : from->line;

		strbuf_fmt(b, "%s:%u", dsp_basename(from->file), low);
		if (high > low)
			strbuf_fmt(b, " to %u", high);
		strbuf_fmt(b, " (%s)", from->function);
	} else if (!x || !y || !x->file || !y->file || strcmp(x->file, y->file) ||
	    strcmp(x->function, y->function)) {
		place_in(b, t, first);
		strbuf_str(b, " to ");
		place_in(b, t, r->end);
	} else if (x->line == y->line) {
		dsp_say_at(b, t, first);
		if (is_in_loop(t, r))
			strbuf_fmt(b, " (from `%s' to `%s')", dsp_subject(t, order_event_at(t, first)),
				   dsp_subject(t, order_event_at(t, r->end)));
	} else {
		/* Compilers move things: say the lines as the source has them. */
		dsp_say_at(b, t, x->line < y->line ? first : r->end);
		strbuf_fmt(b, " to %u", x->line < y->line ? y->line : x->line);
	}
}

static char *compared_text(const struct sym_trace *t, const struct dsp_region *r)
{
	struct sched_ref first = { r->thread, r->first };
	struct strbuf b = { 0 };

	strbuf_fmt(&b, "Read `%s' and `%s' in one atomic step (",
		   dsp_subject(t, order_event_at(t, first)), dsp_subject(t, order_event_at(t, r->end)));
	dsp_say_span(&b, t, r);
	strbuf_fmt(&b, ", %s), and change them in one: the failure depends on both, and %s had "
		   "only come to ",
		   dsp_thread_id(t, r->thread), dsp_thread_id(t, r->intruder.thread));
	dsp_say_intruder_at(&b, t, r);
	strbuf_str(&b, ", where it ");
	dsp_say_does(&b, t, r->intruder);
	strbuf_char(&b, '.');
	return strbuf_take(&b);
}

char *dsp_atomic_text(const struct sym_trace *t, const struct dsp_region *r)
{
	struct strbuf b = { 0 };
	const char *me = dsp_thread_id(t, r->thread), *other = dsp_thread_id(t, r->intruder.thread);

	if (r->common_lock != SYM_NONE) {
		strbuf_fmt(&b, "Keep `%s' locked from ", t->objects[r->common_lock].name);
		dsp_say_span(&b, t, r);
		strbuf_fmt(&b, ": %s releases it at ", me);
		dsp_say_at(&b, t, (struct sched_ref){ r->thread, r->release });
		strbuf_fmt(&b, ", and %s gets in between and ", other);
		dsp_say_does(&b, t, r->intruder);
		strbuf_str(&b, " at ");
		dsp_say_intruder_at(&b, t, r);
		strbuf_char(&b, '.');
		return strbuf_take(&b);
	}
	if (r->both_lock != SYM_NONE && r->other_lock != SYM_NONE && r->var == SYM_NONE)
		return dsp_two_locks_text(t, (struct sched_ref){ r->thread, r->first }, r->both_lock, r->intruder,
					  r->other_lock);
	if (r->both_lock != SYM_NONE && r->other_lock == SYM_NONE)
		return dsp_hold_text(t, r->both_lock, r->intruder, (struct sched_ref){ r->thread, r->first });
	strbuf_str(&b, "Make ");
	dsp_say_span(&b, t, r);
	strbuf_fmt(&b, " one atomic step: %s ", other);
	dsp_say_does(&b, t, r->intruder);
	strbuf_str(&b, " at ");
	dsp_say_intruder_at(&b, t, r);
	if (r->first_lock != SYM_NONE)
		strbuf_fmt(&b, " in the middle of it: %s holds `%s' for the one and `%s' for the other, but not both "
			   "at once. Who changes both, and who reads both, has to hold both locks (taken in the "
			   "same order everywhere), or one for all.", me, t->objects[r->first_lock].name,
			   t->objects[r->last_lock].name);
	else if (r->other_lock != SYM_NONE && r->own_lock != SYM_NONE)
		strbuf_fmt(&b, " in the middle of it. %s holds `%s' throughout, %s holds `%s': it has to be the same "
			   "lock at both places.", me, t->objects[r->own_lock].name, other,
			   t->objects[r->other_lock].name);
	else if (r->other_lock != SYM_NONE)
		strbuf_fmt(&b, " in the middle of it, under `%s', which %s does not hold "
			   "throughout. Hold it there too.",
			   t->objects[r->other_lock].name, me);
	else if (r->own_lock != SYM_NONE)
		strbuf_fmt(&b, " in the middle of it, without `%s', which %s holds throughout. Hold "
			   "it there too.", t->objects[r->own_lock].name, me);
	else if (r->shared_lock != SYM_NONE)
		strbuf_fmt(&b, " in the middle of it. Both hold `%s', but for reading, which keeps no other "
			   "reader out: lock it for writing at both places%s.", t->objects[r->shared_lock].name,
			   r->var != SYM_NONE ? ", or use an atomic operation where that is enough" : "");
	else
		strbuf_fmt(&b,
			   " in the middle of it, and no lock is held at both places. One "
			   "mutex around both%s would do.",
			   r->var != SYM_NONE ? ", or an atomic operation where that is enough,"
					      : "");
	return strbuf_take(&b);
}

void dsp_ask_region(struct dsp_hint *h, const struct dsp_region *r)
{
	dsp_ask_hold(h, (struct sched_ref){ r->thread, r->first }, r->end);
	dsp_ask_hold(h, r->intruder, r->intruder);
	dsp_ask_lock(h, r->common_lock);
	dsp_ask_lock(h, r->both_lock);
	dsp_ask_lock(h, r->other_lock);
	dsp_ask_lock(h, r->own_lock);
	dsp_ask_lock(h, r->first_lock);
	dsp_ask_lock(h, r->last_lock);
}

static uint32_t join_after(const struct sym_trace *t, struct sched_ref a, uint32_t child)
{
	for (uint32_t i = a.index + 1; i < t->threads[a.thread].nevents; i++) {
		const struct sym_event *e = &t->threads[a.thread].events[i];

		if (e->op == SYM_JOIN && e->peer == child)
			return i;
	}
	return SYM_NONE;
}

/* Failing: early before late. The fix is the other way round. */
static bool in_one_function(const struct sym_trace *t, struct sched_ref a, struct sched_ref b)
{
	const struct sym_frame *x = dsp_place(t, order_event_at(t, a)), *y = dsp_place(t, order_event_at(t, b));

	return x && y && x->file && y->file && !strcmp(x->function, y->function) && !strcmp(x->file, y->file);
}

char *dsp_order_text(const struct sym_trace *t, struct sched_ref early, struct sched_ref late)
{
	const char *first = dsp_thread_id(t, late.thread), *second = dsp_thread_id(t, early.thread);
	uint32_t fork;
	struct strbuf b = { 0 };

	if (order_made_before(t, early.thread, late.thread, early.index)) {
		uint32_t join = join_after(t, early, late.thread);

		strbuf_fmt(&b, "Let %s wait for %s before ", second, first);
		dsp_say_at(&b, t, early);
		strbuf_fmt(&b, ", where it ");
		dsp_say_does(&b, t, early);
		strbuf_fmt(&b, " while %s, which it created, still ", first);
		dsp_say_does(&b, t, late);
		strbuf_str(&b, " at ");
		dsp_say_at(&b, t, late);
		if (join != SYM_NONE) {
			strbuf_str(&b, ": the join at ");
			dsp_say_at(&b, t, (struct sched_ref){ early.thread, join });
			strbuf_str(&b, " comes too late");
		}
		strbuf_char(&b, '.');
		return strbuf_take(&b);
	}
	fork = order_fork_towards(t, late.thread, early.thread);
	/* Not where both do the same work: it cannot be done before the other is there to do its part. */
	if (fork != SYM_NONE && fork < late.index && !in_one_function(t, early, late)) {
		strbuf_str(&b, "Do ");
		dsp_say_at(&b, t, late);
		strbuf_str(&b, " (");
		dsp_say_does(&b, t, late);
		strbuf_fmt(&b, ") before %s is created at ", second);
		dsp_say_at(&b, t, (struct sched_ref){ late.thread, fork });
		strbuf_fmt(&b, ", or let %s wait for it before ", second);
		dsp_say_at(&b, t, early);
		strbuf_char(&b, '.');
		return strbuf_take(&b);
	}
	strbuf_fmt(&b, "Let %s wait, before it ", second);
	dsp_say_does(&b, t, early);
	strbuf_str(&b, " at ");
	dsp_say_at(&b, t, early);
	strbuf_fmt(&b, ", until %s is past ", first);
	dsp_say_at(&b, t, late);
	strbuf_str(&b, " (condition variable, semaphore or join).");
	return strbuf_take(&b);
}

void dsp_ask_order(struct dsp_hint *h, const struct sym_trace *t, struct sched_ref early, struct sched_ref late)
{
	bool join = order_made_before(t, early.thread, late.thread, early.index);

	dsp_ask(h, join ? DSP_STEP_JOIN : DSP_STEP_ORDER, late, early, late.thread);
}

static bool thread_writes(const struct sym_trace *t, uint32_t thread, uint32_t var)
{
	for (size_t i = 0; i < t->threads[thread].nevents; i++) {
		const struct sym_event *e = &t->threads[thread].events[i];

		if (order_writes(e) && e->target == var)
			return true;
	}
	return false;
}

/*
 * A creator changes what a thread it started still only reads: the region is
 * cut, but what is missing is a join. (Where the thread writes too it is an
 * update that was lost, and atomicity is what is missing.)
 */
static bool is_teardown(const struct sym_trace *t, const struct dsp_region *r)
{
	const struct sym_event *e = order_event_at(t, r->intruder);

	/* Where both take a lock they meant to share. */
	if (r->common_lock != SYM_NONE)
		return false;
	return order_made_before(t, r->intruder.thread, r->thread, r->intruder.index) && r->var != SYM_NONE &&
	       order_writes(e) && !thread_writes(t, r->thread, r->var);
}

const struct dsp_pair *dsp_pair_to_order(const struct sym_trace *t, const dsp_pairs *pairs)
{
	const struct dsp_pair *any = NULL;

	for (size_t i = 0; i < pairs->n; i++) {
		const struct dsp_pair *p = &pairs->v[i];

		if (!p->inverted || p->before.thread == p->after.thread)
			continue;
		if (order_is_access(order_event_at(t, p->before)) &&
		    order_is_access(order_event_at(t, p->after)))
			return p;
		if (!any)
			any = p;
	}
	return any;
}

/* Is the event the C++ library's, about a barrier of its own? */
static bool is_in_barrier(const struct sym_trace *t, const struct sym_event *e)
{
	char *via = dsp_via(t, e);
	bool is = via && (!strcmp(via, "barrier::arrive_and_wait") || !strcmp(via, "barrier::wait"));

	free(via);
	return is;
}

/*
 * Such a barrier is an object whose members are changed, and so is memory that it alone knows of:
 * the barrier's name, malloc'd, when this event is of a member.
 */
static char *library_barrier(const struct sym_trace *t, const struct sym_event *e)
{
	const char *all = is_in_barrier(t, e) ? dsp_subject(t, e) : NULL;

	/* Memory that it alone knows of is called by where it was allocated. */
	return all && strncmp(all, "heap#", 5) ? xasprintf("%.*s", (int)strcspn(all, "{"), all) : NULL;
}

/* The name of the barrier that the thread left last before its event, malloc'd, and where; NULL: none. */
static char *barrier_before(const struct sym_trace *t, struct sched_ref r, uint32_t *left)
{
	for (*left = r.index; (*left)-- > 0;) {
		const struct sym_event *e = &t->threads[r.thread].events[*left];
		char *name = e->op == SYM_BARRIER_LEAVE ? xstrdup(t->objects[e->target].name) :
							  library_barrier(t, e);

		if (name)
			return name;
	}
	return NULL;
}

/*
 * Both come behind the same barrier; and since one order failed and the other did not, behind the
 * same round of it: from one round to the next there is only one order.
 */
static bool barrier_hint(const struct sym_trace *t, const struct dsp_pair *p, struct dsp_hint *h)
{
	uint32_t early_left, late_left;
	char *barrier = barrier_before(t, p->before, &early_left), *late = barrier_before(t, p->after, &late_left);
	bool same = barrier && late && !strcmp(barrier, late);
	struct strbuf b = { 0 };

	free(late);
	if (!same || !order_is_access(order_event_at(t, p->before)) || !order_is_access(order_event_at(t, p->after)) ||
	    is_in_barrier(t, order_event_at(t, p->before)) || is_in_barrier(t, order_event_at(t, p->after))) {
		free(barrier);
		return false;
	}
	strbuf_fmt(&b, "Let all wait once more (at `%s', say) before %s ", barrier,
		   dsp_thread_id(t, p->before.thread));
	dsp_say_does(&b, t, p->before);
	strbuf_str(&b, " at ");
	dsp_say_at(&b, t, p->before);
	strbuf_fmt(&b, ": it came past `%s' at ", barrier);
	dsp_say_at(&b, t, (struct sched_ref){ p->before.thread, early_left });
	strbuf_fmt(&b, " together with %s, which still has to do ", dsp_thread_id(t, p->after.thread));
	dsp_say_at(&b, t, p->after);
	strbuf_str(&b, " (");
	dsp_say_does(&b, t, p->after);
	strbuf_str(&b, ").");
	free(barrier);
	h->kind = DSP_HINT_ORDER;
	h->text = strbuf_take(&b);
	dsp_ask(h, DSP_STEP_ORDER, p->after, p->before, SYM_NONE);
	return true;
}

/* Nobody can be kept out while everybody is waited for: then who got in between has to wait. */
static bool spans_barrier(const struct sym_trace *t, const struct dsp_region *r, struct dsp_hint *h)
{
	struct dsp_pair p = { r->intruder, r->end, true };

	return is_in_barrier(t, &t->threads[r->thread].events[r->first]) && barrier_hint(t, &p, h);
}

/* Pairs named in one sentence; loops repeat the same lines. */
#define FENCES_NAMED 4

/* Do two pairs stand at the same lines? */
static bool same_places(const struct sym_trace *t, const struct sched_delay *a,
			const struct sched_delay *b)
{
	const struct sym_event *x = order_event_at(t, a->store), *y = order_event_at(t, b->store);
	const struct sym_event *u = order_event_at(t, a->load), *v = order_event_at(t, b->load);

	return a->store.thread == b->store.thread && x->pc && x->pc == y->pc && u->pc == v->pc;
}

static bool named_before(const struct sym_trace *t, const struct sched_answer *a, size_t k)
{
	for (size_t i = 0; i < k; i++)
		if (same_places(t, &a->delays[i], &a->delays[k]))
			return true;
	return false;
}

/* Loads that overtook a store: the failure needs the processor's store buffer. */
static bool fence_hint(const struct sym_trace *t, const struct sched_answer *a, struct dsp_hint *h)
{
	struct strbuf b = { 0 };
	unsigned n = 0;

	if (!a->ndelays)
		return false;
	for (size_t k = 0; k < a->ndelays; k++)
		if (!order_has(t, a->delays[k].store) || !order_has(t, a->delays[k].load))
			return false;
	strbuf_str(&b, "Put a fence");
	for (size_t k = 0; k < a->ndelays; k++) {
		const struct sched_delay *d = &a->delays[k];

		if (named_before(t, a, k) || n == FENCES_NAMED)
			continue;
		strbuf_fmt(&b, "%s between where %s ", n++ ? " and" : "",
			   dsp_thread_id(t, d->store.thread));
		dsp_say_does(&b, t, d->store);
		strbuf_str(&b, " at ");
		dsp_say_at(&b, t, d->store);
		strbuf_str(&b, " and where it ");
		dsp_say_does(&b, t, d->load);
		strbuf_str(&b, " at ");
		dsp_say_at(&b, t, d->load);
		dsp_ask(h, DSP_STEP_FENCE, d->store, d->load, SYM_NONE);
	}
	strbuf_str(&b, ": the store was still in the processor's buffer when the load was done. "
		   "In program order no schedule along these paths fails.");
	h->kind = DSP_HINT_FENCE;
	h->text = strbuf_take(&b);
	return true;
}

/* Pairs that are looked at for it. */
#define PAIRS_INSIDE 16

/* What meets should not have met, by a lock that lets in two. */
static bool both_inside(const struct dsp_map *m, const dsp_pairs *pairs, const struct dsp *d, struct dsp_hint *h)
{
	const struct dsp_region *r = d->nregions ? &d->regions[0] : NULL;

	if (r && (dsp_broken_lock_hint(m, (struct sched_ref){ r->thread, r->first }, r->intruder, h) ||
		  (r->last != SYM_NONE && dsp_broken_lock_hint(m, r->end, r->intruder, h))))
		return true;
	for (size_t i = 0; i < pairs->n && i < PAIRS_INSIDE; i++)
		if (order_is_access(order_event_at(m->t, pairs->v[i].before)) &&
		    order_is_access(order_event_at(m->t, pairs->v[i].after)) &&
		    dsp_broken_lock_hint(m, pairs->v[i].before, pairs->v[i].after, h))
			return true;
	return false;
}

/* ---- patterns ---- */

bool dsp_match_store_buffer(const struct dsp_case *c, struct dsp_hint *h)
{
	return fence_hint(c->m->t, c->a, h);
}

bool dsp_match_broken_lock(const struct dsp_case *c, struct dsp_hint *h)
{
	return both_inside(c->m, c->pairs, c->d, h);
}

bool dsp_match_barrier_round(const struct dsp_case *c, struct dsp_hint *h)
{
	const struct dsp *d = c->d;

	return (c->order && (!d->nregions || d->regions[0].compared) && barrier_hint(c->m->t, c->order, h)) ||
	       (d->nregions && spans_barrier(c->m->t, &d->regions[0], h));
}

bool dsp_match_missing_join(const struct dsp_case *c, struct dsp_hint *h)
{
	const struct dsp_region *r = c->d->nregions ? &c->d->regions[0] : NULL;

	if (!r || !is_teardown(c->m->t, r))
		return false;
	h->kind = DSP_HINT_ORDER;
	h->text = dsp_order_text(c->m->t, r->intruder, r->end);
	dsp_ask_order(h, c->m->t, r->intruder, r->end);
	return true;
}

bool dsp_match_region(const struct dsp_case *c, struct dsp_hint *h)
{
	const struct dsp_region *r = c->d->nregions ? &c->d->regions[0] : NULL;

	if (!r)
		return false;
	h->kind = DSP_HINT_ATOMIC;
	h->text = r->compared ? compared_text(c->m->t, r) : dsp_atomic_text(c->m->t, r);
	dsp_ask_region(h, r);
	return true;
}

bool dsp_match_order(const struct dsp_case *c, struct dsp_hint *h)
{
	if (!c->order)
		return false;
	h->kind = DSP_HINT_ORDER;
	h->text = dsp_order_text(c->m->t, c->order->before, c->order->after);
	dsp_ask_order(h, c->m->t, c->order->before, c->order->after);
	return true;
}
