/*
 * The hint where threads wait (locks in a ring: pattern_ring.c): a lock that its owner took along or waits with, a
 * wake-up that nobody heard or the wrong one, a condition that is not tested again after it.
 */
#include "analyzer/dsp/pattern.h"

/* ---- a lock whose owner has ended, or does not come back ---- */

static bool has_ended(const struct sym_thread *th)
{
	return th->nevents && th->events[th->nevents - 1].op == SYM_EXIT;
}

static bool is_blocked(const struct sym_trace *t, uint32_t thread)
{
	for (size_t k = 0; k < t->failure.nblocked; k++)
		if (t->failure.blocked[k].thread == thread)
			return true;
	return false;
}

/*
 * The thread that had this lock to the end: one that has ended, or one that waits for nothing that
 * is known here. SYM_NONE: there is none. *since: where it took it.
 */
static uint32_t last_owner(const struct sym_trace *t, uint32_t object, bool ended, uint32_t *since)
{
	order_held_locks held = { 0 };
	uint32_t who = SYM_NONE;

	for (uint32_t i = 0; i < t->nthreads && who == SYM_NONE; i++) {
		if (has_ended(&t->threads[i]) != ended || is_blocked(t, i))
			continue;
		order_locks_held(t, i, (uint32_t)t->threads[i].nevents, &held);
		for (size_t h = 0; h < held.n; h++)
			if (held.v[h].object == object) {
				who = i;
				*since = held.v[h].since;
			}
	}
	vec_free(&held);
	return who;
}

static void say_since(struct strbuf *b, const struct sym_trace *t, const char *word, uint32_t who,
		      uint32_t since)
{
	if (since == SYM_NONE)
		return;
	strbuf_str(b, word);
	dsp_say_at(b, t, (struct sched_ref){ who, since });
}

static char *ended_text(const struct sym_trace *t, struct sched_ref want, uint32_t who, uint32_t since)
{
	struct strbuf b = { 0 };

	strbuf_fmt(&b, "%s ended while it held `%s'", dsp_thread_id(t, who),
		   dsp_subject(t, order_event_at(t, want)));
	say_since(&b, t, ", which it had locked at ", who, since);
	strbuf_str(&b, ": nobody can have it any more. Let it go on every way out, also when the "
		       "thread is cancelled (pthread_cleanup_push) or an exception passes, or make "
		       "it a robust mutex.");
	return strbuf_take(&b);
}

static char *kept_text(const struct sym_trace *t, struct sched_ref want, uint32_t who, uint32_t since)
{
	const char *name = dsp_subject(t, order_event_at(t, want));
	struct strbuf b = { 0 };

	strbuf_fmt(&b, "%s wants `%s' at ", dsp_thread_id(t, want.thread), name);
	dsp_say_at(&b, t, want);
	strbuf_fmt(&b, ", and %s, which has it", dsp_thread_id(t, who));
	say_since(&b, t, " since ", who, since);
	strbuf_fmt(&b, ", does not come back to let it go: what it is at is no lock and no condition, "
		   "but a system call (read, accept, ...) or a loop. Let `%s' go before what ends only "
		   "when another thread goes on.", name);
	return strbuf_take(&b);
}

static bool release_hint(const struct sym_trace *t, bool ended, struct dsp_hint *h)
{
	for (size_t k = 0; k < t->failure.nblocked; k++) {
		struct sched_ref want = { t->failure.blocked[k].thread, t->failure.blocked[k].event };
		const struct sym_event *e = order_event_at(t, want);
		uint32_t since = SYM_NONE, who;

		if (!e || !order_acquires(e))
			continue;
		who = last_owner(t, e->target, ended, &since);
		if (who == SYM_NONE)
			continue;
		h->kind = DSP_HINT_RELEASE;
		h->text = ended ? ended_text(t, want, who, since) : kept_text(t, want, who, since);
		return true;
	}
	return false;
}

/* ---- a wait with a lock that whoever should end it wants ---- */

/* The blocked thread that wants one of these locks; SIZE_MAX: none does. *lock: which. */
static size_t who_wants(const struct sym_trace *t, const order_held_locks *held, struct order_held *lock)
{
	for (size_t k = 0; k < t->failure.nblocked; k++) {
		const struct sym_event *e = order_event_at(t, (struct sched_ref){
			t->failure.blocked[k].thread, t->failure.blocked[k].event });

		for (size_t i = 0; e && order_acquires(e) && i < held->n; i++)
			if (held->v[i].object == e->target) {
				*lock = held->v[i];
				return k;
			}
	}
	return SIZE_MAX;
}

static char *waits_holding_text(const struct sym_trace *t, struct sched_ref wait, struct order_held lock,
				struct sched_ref want)
{
	const char *name = t->objects[lock.object].name;
	struct strbuf b = { 0 };

	strbuf_fmt(&b, "Do not wait with `%s' locked: %s ", name, dsp_thread_id(t, wait.thread));
	dsp_say_does(&b, t, wait);
	strbuf_str(&b, " at ");
	dsp_say_at(&b, t, wait);
	strbuf_str(&b, " and holds it");
	if (lock.since != SYM_NONE) {
		strbuf_str(&b, " since ");
		dsp_say_at(&b, t, (struct sched_ref){ wait.thread, lock.since });
	}
	strbuf_fmt(&b, ", and %s, which might end that wait, wants it at ", dsp_thread_id(t, want.thread));
	dsp_say_at(&b, t, want);
	strbuf_char(&b, '.');
	return strbuf_take(&b);
}

static bool waits_holding_hint(const struct sym_trace *t, struct dsp_hint *h)
{
	order_held_locks held = { 0 };
	bool found = false;

	for (size_t k = 0; k < t->failure.nblocked && !found; k++) {
		struct sched_ref wait = { t->failure.blocked[k].thread, t->failure.blocked[k].event };
		const struct sym_event *e = order_event_at(t, wait);
		struct order_held lock;
		size_t who;

		if (!e || e->op != SYM_WAIT)
			continue;
		order_locks_held(t, wait.thread, wait.index, &held);
		who = who_wants(t, &held, &lock);
		if (who == SIZE_MAX)
			continue;
		h->kind = DSP_HINT_RELEASE;
		h->text = waits_holding_text(t, wait, lock, (struct sched_ref){
			t->failure.blocked[who].thread, t->failure.blocked[who].event });
		found = true;
	}
	vec_free(&held);
	return found;
}

/* ---- a signal that woke one who could do nothing with it ---- */

/* The thread's wait before `last`, of the same condition, behind which it wrote nothing; SYM_NONE: none. */
static uint32_t woken_for_nothing(const struct sym_trace *t, const struct sym_thread *th, uint32_t last)
{
	for (uint32_t i = last; i-- > 0;) {
		const struct sym_event *e = &th->events[i];

		if (e->op == SYM_WAIT)
			return e->target == th->events[last].target &&
			       dsp_same_place(t, e, &th->events[last]) ? i : SYM_NONE;
		if (order_writes(e) || e->op == SYM_SIGNAL || e->op == SYM_BROADCAST)
			return SYM_NONE;
	}
	return SYM_NONE;
}

/* Another one waits for ever for the same condition variable, but elsewhere: for something else. */
static size_t waits_elsewhere(const struct sym_trace *t, const struct sym_event *e)
{
	for (size_t k = 0; k < t->failure.nblocked; k++) {
		const struct sym_event *x = order_event_at(t, (struct sched_ref){
			t->failure.blocked[k].thread, t->failure.blocked[k].event });

		if (x && x->op == SYM_WAIT && x->target == e->target && !dsp_same_place(t, x, e))
			return k;
	}
	return SIZE_MAX;
}

/* The last time before a wait that it ended when somebody woke who waits there, in the failing order. */
static const struct sym_event *woken_by(const struct dsp_map *m, struct sched_ref wait, struct sched_ref *signal)
{
	const struct sched_order *o = m->order[DSP_FAILING];
	size_t at = dsp_at(m, DSP_FAILING, wait);

	for (size_t i = o && at != ORDER_NOWHERE ? at : 0; i-- > 0;) {
		const struct sym_event *e = order_event_at(m->t, o->refs[i]);

		if (e->target != order_event_at(m->t, wait)->target ||
		    (e->op != SYM_SIGNAL && e->op != SYM_BROADCAST))
			continue;
		*signal = o->refs[i];
		return e;
	}
	return NULL;
}

/* It was a signal, for one of them. */
static bool signal_before(const struct dsp_map *m, struct sched_ref wait, struct sched_ref *signal)
{
	const struct sym_event *e = woken_by(m, wait, signal);

	return e && e->op == SYM_SIGNAL;
}

static bool wrong_waiter_hint(const struct dsp_map *m, struct dsp_hint *h)
{
	const struct sym_trace *t = m->t;

	for (size_t k = 0; k < t->failure.nblocked; k++) {
		struct sched_ref again = { t->failure.blocked[k].thread, t->failure.blocked[k].event };
		const struct sym_event *e = order_event_at(t, again);
		struct sched_ref woken = { again.thread, SYM_NONE }, signal;
		struct strbuf b = { 0 };

		if (!e || e->op != SYM_WAIT)
			continue;
		woken.index = woken_for_nothing(t, &t->threads[again.thread], again.index);
		size_t other = waits_elsewhere(t, e);
		if (woken.index == SYM_NONE || other == SIZE_MAX || !signal_before(m, woken, &signal))
			continue;

		struct sched_ref missed = { t->failure.blocked[other].thread, t->failure.blocked[other].event };
		strbuf_fmt(&b, "Wake all who wait for `%s' (broadcast), or have one condition variable for "
			   "each thing waited for: where %s ",
			   t->objects[e->target].name, dsp_thread_id(t, signal.thread));
		dsp_say_does(&b, t, signal);
		strbuf_str(&b, " at ");
		dsp_say_at(&b, t, signal);
		strbuf_fmt(&b, " it wakes %s, which has nothing to do and waits again at ",
			   dsp_thread_id(t, again.thread));
		dsp_say_at(&b, t, again);
		strbuf_fmt(&b, ", and not %s, which waits at ", dsp_thread_id(t, missed.thread));
		dsp_say_at(&b, t, missed);
		strbuf_char(&b, '.');
		h->kind = DSP_HINT_WAKE;
		h->text = strbuf_take(&b);
		dsp_ask(h, DSP_STEP_WAKE_ALL, signal, signal, SYM_NONE);
		return true;
	}
	return false;
}

/* ---- a condition that held, and did no more when the waiter looked ---- */

/*
 * Between waking up and waiting again the thread read something that another one wrote since `from`
 * in the failing order, and not before that read in the alternate: that write.
 */
static bool changed_before_look(const struct dsp_map *m, struct sched_ref woken, uint32_t again, size_t from,
				struct sched_ref *write)
{
	const struct sched_order *o = m->order[DSP_FAILING];

	for (uint32_t i = woken.index + 1; i < again; i++) {
		struct sched_ref read = { woken.thread, i };
		const struct sym_event *r = order_event_at(m->t, read);
		size_t at = dsp_at(m, DSP_FAILING, read);

		if (!r || !order_reads(r) || at == ORDER_NOWHERE)
			continue;
		for (size_t k = at; k-- > from;) {
			const struct sym_event *w = order_event_at(m->t, o->refs[k]);

			*write = o->refs[k];
			if (order_writes(w) && w->target == r->target && w->thread != r->thread &&
			    dsp_inverted(m, *write, read))
				return true;
		}
	}
	return false;
}

static bool came_and_went_hint(const struct dsp_map *m, struct dsp_hint *h)
{
	const struct sym_trace *t = m->t;

	for (size_t k = 0; k < t->failure.nblocked; k++) {
		struct sched_ref again = { t->failure.blocked[k].thread, t->failure.blocked[k].event };
		const struct sym_event *e = order_event_at(t, again), *call;
		struct sched_ref woken = { again.thread, SYM_NONE }, by, write;
		struct strbuf b = { 0 };

		if (!e || e->op != SYM_WAIT)
			continue;
		woken.index = woken_for_nothing(t, &t->threads[again.thread], again.index);
		call = woken.index == SYM_NONE ? NULL : woken_by(m, woken, &by);
		/* Who is woken alone may rightly find that another one was quicker. */
		if (!call || call->op != SYM_BROADCAST ||
		    !changed_before_look(m, woken, again.index, dsp_at(m, DSP_FAILING, by), &write))
			continue;
		strbuf_fmt(&b, "What %s waits for at ", dsp_thread_id(t, again.thread));
		dsp_say_at(&b, t, again);
		strbuf_fmt(&b, " came and went: %s ", dsp_thread_id(t, by.thread));
		dsp_say_does(&b, t, by);
		strbuf_str(&b, " at ");
		dsp_say_at(&b, t, by);
		strbuf_fmt(&b, ", but before %s looks again %s ", dsp_thread_id(t, again.thread),
			   dsp_thread_id(t, write.thread));
		dsp_say_does(&b, t, write);
		strbuf_str(&b, " at ");
		dsp_say_at(&b, t, write);
		strbuf_str(&b, ". Let it wait for something that does not change back, such as the number of the round.");
		h->kind = DSP_HINT_ORDER;
		h->text = strbuf_take(&b);
		return true;
	}
	return false;
}

/* ---- a wake-up that nobody heard ---- */

/* It ended the thread's wait before this one. */
static bool was_heard(const struct dsp_map *m, struct sched_ref wait, struct sched_ref signal)
{
	struct sched_ref by, woken = { wait.thread, woken_for_nothing(m->t, &m->t->threads[wait.thread], wait.index) };

	return woken.index != SYM_NONE && woken_by(m, woken, &by) && order_same_ref(by, signal);
}

/* Testing and waiting in one step, and the wake-up not in the middle of it. */
static void ask_heard(struct dsp_hint *h, const struct sym_trace *t, struct sched_ref wait, struct sched_ref signal)
{
	const struct sym_thread *waiter = &t->threads[wait.thread], *waker = &t->threads[signal.thread];

	for (uint32_t i = wait.index; i-- > 0;)
		for (uint32_t k = signal.index; order_reads(&waiter->events[i]) && k-- > 0;) {
			if (!order_writes(&waker->events[k]) || waker->events[k].target != waiter->events[i].target)
				continue;
			dsp_ask_hold(h, (struct sched_ref){ wait.thread, i }, wait);
			dsp_ask_hold(h, (struct sched_ref){ signal.thread, k }, signal);
			if (waiter->events[wait.index].link < waiter->nevents)
				dsp_ask_lock(h, waiter->events[waiter->events[wait.index].link].target);
			return;
		}
}

/* A wait that nothing ends, and the wake-up that came before it. */
static bool wakeup_hint(const struct dsp_map *m, struct dsp_hint *h)
{
	const struct sym_trace *t = m->t;
	const struct sched_order *o = m->order[DSP_FAILING];

	for (size_t k = 0; o && k < t->failure.nblocked; k++) {
		struct sched_ref wait = {t->failure.blocked[k].thread, t->failure.blocked[k].event};
		const struct sym_event *e = order_event_at(t, wait);
		struct strbuf b = { 0 };

		if (!e || e->op != SYM_WAIT)
			continue;
		for (size_t i = o->n; i-- > 0;) {
			const struct sym_event *s = order_event_at(t, o->refs[i]);

			if (!s || (s->op != SYM_SIGNAL && s->op != SYM_BROADCAST) ||
			    s->target != e->target || s->thread == e->thread)
				continue;
			if (was_heard(m, wait, o->refs[i]))
				break;
			/* It woke another one: nothing was lost before this one waited. */
			if (dsp_waited_at(m, wait, o->refs[i]))
				break;
			strbuf_fmt(&b, "The wake-up is lost: %s ", dsp_thread_id(t, s->thread));
			dsp_say_does(&b, t, o->refs[i]);
			strbuf_str(&b, " at ");
			dsp_say_at(&b, t, o->refs[i]);
			strbuf_fmt(&b, " before %s waits at ", dsp_thread_id(t, e->thread));
			dsp_say_at(&b, t, wait);
			strbuf_str(&b,
				   ". Change a condition under the mutex before signalling, and "
				   "test it under the same mutex before waiting.");
			h->kind = DSP_HINT_ORDER;
			h->text = strbuf_take(&b);
			ask_heard(h, t, wait, o->refs[i]);
			return true;
		}
	}
	return false;
}

bool dsp_match_waits_holding(const struct dsp_case *c, struct dsp_hint *h)
{
	return waits_holding_hint(c->m->t, h);
}

bool dsp_match_ended_holding(const struct dsp_case *c, struct dsp_hint *h)
{
	return release_hint(c->m->t, true, h);
}

bool dsp_match_kept_lock(const struct dsp_case *c, struct dsp_hint *h)
{
	return release_hint(c->m->t, false, h);
}

bool dsp_match_wrong_waiter(const struct dsp_case *c, struct dsp_hint *h)
{
	return wrong_waiter_hint(c->m, h);
}

bool dsp_match_came_and_went(const struct dsp_case *c, struct dsp_hint *h)
{
	return came_and_went_hint(c->m, h);
}

bool dsp_match_lost_wakeup(const struct dsp_case *c, struct dsp_hint *h)
{
	/* Where no order passes, it is not the order of the two. */
	return !c->a->tried_always && !c->a->deterministic && wakeup_hint(c->m, h);
}

/* ---- a condition that is tested once ---- */

/* The last wait of the thread before this event, between whose two ends others may come; SYM_NONE: none. */
static uint32_t wait_before(const struct sym_thread *th, uint32_t index)
{
	for (uint32_t i = index; i-- > 1;)
		if (th->events[i].op == SYM_WAIT && th->events[i - 1].op == SYM_UNLOCK && i + 1 < index &&
		    order_acquires(&th->events[i + 1]))
			return i;
	return SYM_NONE;
}

/* What the thread read of the variable last before `index`, or first from there on (`ahead`). */
static const struct sym_event *read_of(const struct sym_thread *th, uint32_t var, uint32_t index, bool ahead)
{
	for (uint32_t i = index; ahead ? i < th->nevents : i-- > 0; i += ahead) {
		const struct sym_event *e = &th->events[i];

		if (order_reads(e) && e->target == var)
			return e;
		if (!ahead && e->op == SYM_LOCK)
			break; /* what was read under an earlier lock is no test of this wait */
	}
	return NULL;
}

/*
 * before: another thread writes what `after` reads, between a wait's giving the mutex up and
 * having it again, and the test that led to the wait is not made again behind it.
 */
static bool not_tested_again(const struct dsp_map *m, const struct dsp_pair *p, uint32_t *wait,
			     const struct sym_event **test)
{
	const struct sym_trace *t = m->t;
	const struct sym_event *write = order_event_at(t, p->before), *read = order_event_at(t, p->after);
	const struct sym_thread *th = &t->threads[p->after.thread];
	const struct sym_event *again;

	if (!order_writes(write) || !order_reads(read) || write->target != read->target ||
	    p->before.thread == p->after.thread)
		return false;
	*wait = wait_before(th, p->after.index);
	if (*wait == SYM_NONE)
		return false;
	*test = read_of(th, read->target, *wait, false);
	again = read_of(th, read->target, *wait, true);

	size_t at = dsp_at(m, DSP_FAILING, p->before);
	return *test && again && !dsp_same_place(t, again, *test) && at != ORDER_NOWHERE &&
	       at > dsp_at(m, DSP_FAILING, (struct sched_ref){ p->after.thread, *wait - 1 }) &&
	       at < dsp_at(m, DSP_FAILING, (struct sched_ref){ p->after.thread, *wait + 1 });
}

/* All that the wait was decided by, under the same lock. */
static void ask_again(struct dsp_hint *h, const struct sym_trace *t, struct sched_ref tested, uint32_t wait)
{
	const struct sym_thread *th = &t->threads[tested.thread];
	const struct sched_ref at = { tested.thread, wait };

	dsp_ask(h, DSP_STEP_RECHECK, tested, at, SYM_NONE);
	for (uint32_t i = wait; i-- > 0 && th->events[i].op != SYM_LOCK;)
		if (i != tested.index && order_reads(&th->events[i]) &&
		    dsp_decides_on_way(t, &th->events[i], &th->events[wait]))
			dsp_ask(h, DSP_STEP_RECHECK, (struct sched_ref){ tested.thread, i }, at, SYM_NONE);
}

bool dsp_match_wait_once(const struct dsp_case *c, struct dsp_hint *h)
{
	const struct dsp_map *m = c->m;
	const struct dsp *d = c->d;
	const struct sym_trace *t = m->t;

	for (size_t i = 0; m->order[DSP_FAILING] && i < d->npairs; i++) {
		const struct dsp_pair *p = &d->pairs[i];
		const struct sym_event *test;
		uint32_t wait;
		struct strbuf b = { 0 };

		if (!not_tested_again(m, p, &wait, &test))
			continue;

		struct sched_ref tested = { p->after.thread,
					    (uint32_t)(test - t->threads[p->after.thread].events) };
		strbuf_fmt(&b, "Test again after the wait (while instead of if): %s ",
			   dsp_thread_id(t, p->after.thread));
		dsp_say_does(&b, t, tested);
		strbuf_str(&b, " at ");
		dsp_say_at(&b, t, tested);
		strbuf_str(&b, ", waits at ");
		dsp_say_at(&b, t, (struct sched_ref){ p->after.thread, wait });
		strbuf_fmt(&b, ", and before it has the mutex again %s ", dsp_thread_id(t, p->before.thread));
		dsp_say_does(&b, t, p->before);
		strbuf_str(&b, " at ");
		dsp_say_at(&b, t, p->before);
		strbuf_char(&b, '.');
		h->kind = DSP_HINT_RECHECK;
		h->text = strbuf_take(&b);
		ask_again(h, t, tested, wait);
		return true;
	}
	return false;
}
