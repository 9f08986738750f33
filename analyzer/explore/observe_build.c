/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From what was noted of an execution to a trace: which memory is shared, and what happened to it. */
#include "analyzer/explore/assumed.h"
#include "analyzer/explore/observe_internal.h"

#include <string.h>

/* ---- the model ---- */

/* A pthread_t and whose it is; the latest counts. */
struct handle {
	uint64_t value;
	uint32_t thread;
};

struct building {
	struct observer *o;
	struct xpl_trace *t;
	struct obs_words words;
	struct last {
		size_t event; /* number in t of its last read, for what becomes a XPL_RMW; SIZE_MAX: none */
		uint64_t address, pc, nth;
		bool atomic;
		uint32_t begun; /* operation that it is inside of */
		uint32_t rounds;
		uint32_t child;  /* made last */
	} *last; /* by thread */
	VEC(struct handle) handles;
	uint32_t most;     /* events of one thread */
	bool pending;      /* what is added was never executed: see build_pending() */
};

static uint32_t var_of(struct building *b, struct obs_word *w, uint64_t mask)
{
	for (unsigned i = 0; i < 8 && w->parts[i]; i++) {
		if (!(w->parts[i] & mask))
			continue;
		if (!w->vars[i]) {
			struct xpl_var v = { .word = (w->address - 1) * 8, .mask = w->parts[i] };

			vec_push(&b->t->vars, v);
			w->vars[i] = (uint32_t)b->t->vars.n;
		}
		return w->vars[i] - 1;
	}
	return XPL_NONE;
}

static uint32_t object_of(struct building *b, uint64_t address, enum xpl_object_kind kind)
{
	const struct xpl_prelude *p = b->o->prelude;
	struct xpl_object o = { .kind = kind, .address = address, .owner = XPL_NONE };

	for (size_t i = 0; i < b->t->objects.n; i++)
		if (b->t->objects.v[i].address == address && b->t->objects.v[i].kind == kind)
			return (uint32_t)i;
	for (size_t i = 0; i < p->initial.n; i++)
		if (p->initial.v[i].address == address && p->initial.v[i].kind == kind) {
			o.count = p->initial.v[i].count;
			o.recursive = p->initial.v[i].recursive;
		}
	vec_push(&b->t->objects, o);
	return (uint32_t)b->t->objects.n - 1;
}

/* The second half of a locked instruction: it becomes one event with its first. */
static bool joins_last(struct building *b, const struct raw *r, uint32_t var, uint64_t value)
{
	struct last *l = &b->last[r->thread];

	if (l->event == SIZE_MAX || l->pc != r->pc || l->nth != r->place_nth || !(r->flags & MACH_WRITE))
		return false;
	struct xpl_event *e = &b->t->events.v[l->event];
	if (e->target != var || e->op != XPL_READ)
		return false;
	if (r->flags & MACH_ATOMIC) {
		e->op = XPL_RMW;
		e->wvalue = value;
		return true;
	}
	e->half = true;
	return false;
}

/* Of a thread that has too many events the first are looked at: what it does then is not known. */
static bool has_room(struct building *b, uint32_t thread)
{
	bool is = b->t->threads[thread].events.n < b->most;

	b->t->cut |= !is;
	return is;
}

static void build_access(struct building *b, const struct raw *r)
{
	uint64_t number, mask, value;

	for (unsigned k = 0; k < 2 && obs_piece_of(r, k, &number, &mask, &value); k++) {
		struct obs_word *w = obs_word_at(&b->words, number);

		if (!w->second || !w->written || w->left_out)
			continue;
		uint32_t var = var_of(b, w, mask);
		if (var == XPL_NONE || joins_last(b, r, var, value) || !has_room(b, r->thread))
			continue;
		struct last *l = &b->last[r->thread];
		struct xpl_event e = {
			.op = r->flags & MACH_WRITE ? XPL_WRITE : XPL_READ, .program = r->program,
			.thread = r->thread, .target = var, .mask = mask & b->t->vars.v[var].mask, .pc = r->pc,
			.place = r->program ? r->pc : 0, .inside = r->inside, .nth = r->place_nth,
			.mutex = XPL_NONE, .peer = XPL_NONE, .result = 1,
			.half = l->event != SIZE_MAX && b->t->events.v[l->event].half && l->pc == r->pc &&
				l->nth == r->place_nth,
		};
		*(e.op == XPL_WRITE ? &e.wvalue : &e.value) = value;
		uint32_t at = xpl_trace_add(b->t, &e);
		l->event = at;
		l->pc = r->pc;
		l->nth = r->place_nth;
	}
}

/* What an operation is; 0 in mutex and target: none, else their number + 1. */
struct op {
	enum xpl_op op;
	uint32_t target, mutex, peer;
	bool shared, fails; /* fails: result 0 */
	uint32_t round;
};

static void add_op(struct building *b, const struct raw *r, struct op o)
{
	struct xpl_event e = { .op = (uint8_t)o.op, .shared = o.shared, .program = true, .thread = r->thread,
			       .result = o.round ? (int32_t)o.round : !o.fails, .target = o.target - 1,
			       .mutex = o.mutex - 1, .peer = o.peer - 1, .pc = r->pc ? r->pc - 1 : 0 };

	if (r->kind == RAW_SYNC || (r->kind == RAW_BORN && r->pc)) {
		e.place = mach_sync_place(r->op_at, r->pc);
		e.nth = r->place_nth;
	}
	if (b->pending)
		xpl_trace_pending(b->t, &e);
	else if (has_room(b, r->thread))
		xpl_trace_add(b->t, &e);
}

#define OP(...) ((struct op){ __VA_ARGS__ })

/* Who lets go what it never acquired held it at the beginning. */
static void note_owner(struct building *b, uint32_t object, uint32_t thread)
{
	for (size_t i = 0; i < b->t->events.n; i++)
		if (b->t->events.v[i].target == object && !xpl_is_access(&b->t->events.v[i]))
			return;
	b->t->objects.v[object].owner = thread;
}

static void build_wait(struct building *b, const struct raw *r, bool done)
{
	uint32_t mutex = object_of(b, r->mutex, XPL_MUTEX), cond = object_of(b, r->object, XPL_COND);

	if (!done) {
		note_owner(b, mutex, r->thread);
		add_op(b, r, OP(.op = XPL_WAIT_IN, .target = cond + 1, .mutex = mutex + 1));
	} else {
		add_op(b, r, OP(.op = XPL_WAIT_OUT, .target = cond + 1, .mutex = mutex + 1, .fails = r->result != 0));
	}
}

static uint32_t joined(const struct building *b, const struct raw *r)
{
	for (size_t i = b->handles.n; i-- > 0;)
		if (b->handles.v[i].value == r->object)
			return b->handles.v[i].thread;
	return r->peer;
}

static void build_sync(struct building *b, const struct raw *r)
{
	bool done = TRC_SYNC_AT(r->op_at) == TRC_AT_DONE, ok = !r->result;
	uint32_t o;

	b->t->timed |= xpl_assumed_timed(TRC_SYNC_OP(r->op_at));
	switch (TRC_SYNC_OP(r->op_at)) {
	case TRC_OP_LOCK:
	case TRC_OP_TIMEDLOCK:
	case TRC_OP_SPINLOCK:
	case TRC_OP_WRLOCK:
	case TRC_OP_TIMEDWRLOCK:
		if (done && ok)
			add_op(b, r, OP(.op = XPL_LOCK, .target = object_of(b, r->object, XPL_MUTEX) + 1));
		break;
	case TRC_OP_RDLOCK:
	case TRC_OP_TIMEDRDLOCK:
		if (done && ok)
			add_op(b, r, OP(.op = XPL_LOCK, .shared = true, .target = object_of(b, r->object, XPL_MUTEX) + 1));
		break;
	case TRC_OP_TRYLOCK:
	case TRC_OP_SPINTRYLOCK:
	case TRC_OP_TRYWRLOCK:
	case TRC_OP_TRYRDLOCK:
		if (done)
			add_op(b, r, OP(.op = XPL_TRY, .fails = !ok, .target = object_of(b, r->object, XPL_MUTEX) + 1,
					.shared = TRC_SYNC_OP(r->op_at) == TRC_OP_TRYRDLOCK));
		break;
	case TRC_OP_UNLOCK:
	case TRC_OP_SPINUNLOCK:
	case TRC_OP_RWUNLOCK:
		if (!done)
			break;
		o = object_of(b, r->object, XPL_MUTEX);
		note_owner(b, o, r->thread);
		add_op(b, r, OP(.op = XPL_UNLOCK, .target = o + 1));
		break;
	case TRC_OP_WAIT:
	case TRC_OP_TIMEDWAIT:
		build_wait(b, r, done);
		break;
	case TRC_OP_SIGNAL:
	case TRC_OP_BROADCAST:
		if (done)
			add_op(b, r, OP(.op = TRC_SYNC_OP(r->op_at) == TRC_OP_SIGNAL ? XPL_SIGNAL : XPL_BROADCAST,
					.target = object_of(b, r->object, XPL_COND) + 1));
		break;
	case TRC_OP_SEM_INIT:
		if (done && ok)
			b->t->objects.v[object_of(b, r->object, XPL_SEM)].count = (int64_t)r->mutex;
		break;
	case TRC_OP_SEM_WAIT:
	case TRC_OP_SEM_TIMEDWAIT:
		if (done && ok)
			add_op(b, r, OP(.op = XPL_SEM_WAIT, .target = object_of(b, r->object, XPL_SEM) + 1));
		break;
	case TRC_OP_SEM_TRYWAIT:
		if (done)
			add_op(b, r, OP(.op = XPL_SEM_TRY, .fails = !ok, .target = object_of(b, r->object, XPL_SEM) + 1));
		break;
	case TRC_OP_SEM_POST:
		if (done)
			add_op(b, r, OP(.op = XPL_SEM_POST, .target = object_of(b, r->object, XPL_SEM) + 1));
		break;
	case TRC_OP_BARRIER_INIT:
		if (done && ok)
			b->t->objects.v[object_of(b, r->object, XPL_BARRIER)].count = (int64_t)r->mutex;
		break;
	case TRC_OP_BARRIER:
		o = object_of(b, r->object, XPL_BARRIER);
		b->last[r->thread].rounds += !done;
		add_op(b, r, OP(.op = done ? XPL_BAR_OUT : XPL_BAR_IN, .target = o + 1,
				.round = b->last[r->thread].rounds));
		break;
	case TRC_OP_ONCE:
		o = object_of(b, r->object, XPL_ONCE);
		if (done) {
			add_op(b, r, OP(.op = XPL_ONCE_END, .target = o + 1, .fails = b->last[r->thread].begun != o + 1));
			b->last[r->thread].begun = 0;
		} else if (!b->t->objects.v[o].count) {
			b->t->objects.v[o].count = -1; /* who runs it, in this execution */
			b->last[r->thread].begun = o + 1;
			add_op(b, r, OP(.op = XPL_ONCE_RUN, .target = o + 1));
		}
		break;
	case TRC_OP_JOIN:
	case TRC_OP_TRYJOIN:
	case TRC_OP_TIMEDJOIN:
		o = joined(b, r);
		if (done && ok && o < b->t->nthreads)
			add_op(b, r, OP(.op = XPL_JOIN, .peer = o + 1));
		break;
	case TRC_OP_CREATE:
		if (done && ok && b->last[r->thread].child)
			vec_push(&b->handles, (struct handle){ r->object, b->last[r->thread].child });
		break;
	default:
		break;
	}
}

/* Nobody can go on: what each began and did not end, as if it had. */
static void build_pending(struct building *b)
{
	const struct raw **begun = xcalloc(b->t->nthreads + 1, sizeof *begun);

	for (size_t i = 0; i < b->o->raws.n; i++) {
		const struct raw *r = &b->o->raws.v[i];

		if (r->kind == RAW_SYNC)
			begun[r->thread] = TRC_SYNC_AT(r->op_at) == TRC_AT_BLOCK ? r : NULL;
	}
	b->pending = true;
	for (uint32_t i = 0; i < b->t->nthreads; i++) {
		if (!begun[i])
			continue;
		struct raw r = *begun[i];
		r.op_at = TRC_SYNC_OP(r.op_at) | TRC_AT_DONE << 12;
		r.place_nth = xpl_counter_at(&b->o->counts, i, mach_sync_place(r.op_at, r.pc), 0)->n + 1;
		r.result = 0;
		build_sync(b, &r);
	}
	b->pending = false;
	free(begun);
}

/* A thread is made somewhere inside pthread_create(); its return is a place that others can wait for. */
static void place_births(struct observer *o)
{
	const struct raw **made = xcalloc(o->nthreads + 1, sizeof *made);

	for (size_t i = o->raws.n; i-- > 0;) {
		struct raw *r = &o->raws.v[i];

		if (r->kind == RAW_SYNC && TRC_SYNC_OP(r->op_at) == TRC_OP_CREATE &&
		    TRC_SYNC_AT(r->op_at) == TRC_AT_DONE)
			made[r->thread] = r;
		if (r->kind != RAW_BORN || !made[r->thread])
			continue;
		r->pc = made[r->thread]->pc;
		r->place_nth = made[r->thread]->place_nth;
		r->op_at = made[r->thread]->op_at;
		made[r->thread] = NULL;
	}
	free(made);
}

static void build_all(struct building *b)
{
	struct observer *o = b->o;

	place_births(o);
	for (uint32_t i = 0; i < o->nthreads; i++)
		b->t->threads[i].from_start = true;
	for (size_t i = 0; i < o->raws.n; i++)
		if (o->raws.v[i].kind == RAW_BORN)
			b->t->threads[o->raws.v[i].peer].from_start = false;
	for (size_t i = 0; i < o->raws.n; i++) {
		const struct raw *r = &o->raws.v[i];

		if (r->kind == RAW_ACCESS)
			build_access(b, r);
		else if (r->kind == RAW_SYNC)
			build_sync(b, r);
		else if (r->kind == RAW_BORN) {
			b->last[r->thread].child = r->peer;
			add_op(b, r, OP(.op = XPL_FORK, .peer = r->peer + 1));
		} else
			add_op(b, r, OP(.op = XPL_EXIT));
	}
	for (size_t i = 0; i < b->t->objects.n; i++)
		if (b->t->objects.v[i].count == -1 && b->t->objects.v[i].kind == XPL_ONCE)
			b->t->objects.v[i].count = 0;
	for (uint32_t i = 0; i < b->t->nthreads; i++) {
		struct xpl_thread *th = &b->t->threads[i];

		th->ended = th->events.n && xpl_at(b->t, i, (uint32_t)th->events.n - 1)->op == XPL_EXIT;
	}
	b->t->cut |= o->full || o->lost;
}

/*
 * Variables that creation and joining of threads put in order everywhere are no matter of order:
 * their events are left out.
 */
static void drop_ordered(struct xpl_trace **trace)
{
	struct xpl_trace *t = *trace, *kept = xpl_trace_new(t->nthreads);
	struct xpl_life *life = xpl_life_new(t);
	uint32_t *last = xcalloc(t->vars.n * t->nthreads + 1, sizeof *last);
	uint32_t *lastw = xcalloc(t->vars.n * t->nthreads + 1, sizeof *lastw);
	uint32_t *number = xcalloc(t->vars.n + 1, sizeof *number);
	bool *matters = xcalloc(t->vars.n + 1, sizeof *matters);

	/* A thread's latest access is enough: what comes before none of it comes before none of the earlier ones. */
	for (size_t i = 0; i < t->events.n; i++) {
		const struct xpl_event *e = &t->events.v[i];

		if (!xpl_is_access(e))
			continue;
		uint32_t *l = &last[(size_t)e->target * t->nthreads], *w = &lastw[(size_t)e->target * t->nthreads];
		for (uint32_t k = 0; k < t->nthreads; k++) {
			uint32_t other = xpl_writes(e) ? l[k] : w[k];

			if (k != e->thread && other && !xpl_life_before(life, &t->events.v[other - 1], e))
				matters[e->target] = true;
		}
		l[e->thread] = (uint32_t)i + 1;
		if (xpl_writes(e))
			w[e->thread] = (uint32_t)i + 1;
	}
	for (size_t v = 0; v < t->vars.n; v++)
		if (matters[v]) {
			number[v] = (uint32_t)kept->vars.n;
			vec_push(&kept->vars, t->vars.v[v]);
		}
	for (size_t v = 0; v < t->objects.n; v++)
		vec_push(&kept->objects, t->objects.v[v]);
	for (size_t i = 0; i < t->events.n; i++) {
		struct xpl_event e = t->events.v[i];

		if (xpl_is_access(&e) && !matters[e.target])
			continue;
		if (xpl_is_access(&e))
			e.target = number[e.target];
		xpl_trace_add(kept, &e);
	}
	for (uint32_t i = 0; i < t->nthreads; i++) {
		kept->threads[i].from_start = t->threads[i].from_start;
		kept->threads[i].ended = t->threads[i].ended;
		if (t->threads[i].waits)
			xpl_trace_pending(kept, &t->threads[i].pending);
	}
	kept->cut = t->cut;
	kept->timed = t->timed;
	kept->exits = t->exits;
	xpl_life_free(life);
	free(last);
	free(lastw);
	free(number);
	free(matters);
	xpl_trace_free(t);
	*trace = kept;
}

/* Events of each thread that are looked at, when there are too many in all. */
static uint32_t share_of_each(const struct observer *o)
{
	uint32_t each = OBS_CUT_EVENTS / (o->nthreads ? o->nthreads : 1);

	return each < OBS_LEAST_EVENTS ? OBS_LEAST_EVENTS : each;
}

/* sample: of too many variables those that say most are looked at. */
static struct xpl_trace *build_once(struct observer *o, uint32_t most, bool sample)
{
	struct building b = { .o = o, .t = xpl_trace_new(o->nthreads), .most = most };

	b.last = xcalloc(o->nthreads + 1, sizeof *b.last);
	for (uint32_t i = 0; i < o->nthreads; i++)
		b.last[i].event = SIZE_MAX;
	obs_find_words(o, &b.words);
	obs_leave_dropped(o, &b.words);
	b.t->cut |= sample && obs_sample(o, &b.words, obs_operations(o));
	build_all(&b);
	/* Of a recorded run the main thread is taken for it. */
	if (o->seen->tried.end == MACH_TRIED_EXIT && !b.t->threads[0].ended)
		b.t->exits = o->seen->tried.thread < o->nthreads ? o->seen->tried.thread : 0;
	if (o->seen->tried.end == MACH_TRIED_STUCK && !b.t->cut)
		build_pending(&b);
	drop_ordered(&b.t);
	free(b.words.v);
	free(b.last);
	vec_free(&b.handles);
	return b.t;
}

/* The expected access, whether this execution shares its memory or not. */
static bool is_expected(const struct raw *r, const struct xpl_event *e)
{
	uint64_t number, mask, value;
	bool same = false;

	if (r->kind != RAW_ACCESS || !r->program || r->thread != e->thread || r->pc != e->place ||
	    r->place_nth != e->nth || r->inside != e->inside || r->flags & MACH_WRITE)
		return false;
	/* Which word it is of is told by the bytes: one that crosses two has a part in each. */
	for (unsigned k = 0; k < 2 && !same && obs_piece_of(r, k, &number, &mask, &value); k++)
		same = !(e->mask & ~mask) && (value & e->mask) == e->value;
	return same;
}

static bool shows_expected(const struct observer *o)
{
	for (size_t i = 0; o->expect && i < o->raws.n; i++)
		if (is_expected(&o->raws.v[i], o->expect))
			return true;
	return false;
}

void xpl_observe_build(struct observer *o)
{
	o->seen->showed = o->expect && xpl_is_access(o->expect) && shows_expected(o);
	struct xpl_trace *t = build_once(o, OBS_MAX_EVENTS + 1, false);

	/* Of what goes round in circles the beginning says it all. */
	while (o->seen->tried.end == MACH_TRIED_ENDLESS && !o->full && t->events.n > OBS_MAX_EVENTS / 2) {
		xpl_trace_free(t);
		o->raws.n /= 2;
		t = build_once(o, OBS_MAX_EVENTS + 1, false);
	}
	if (t->events.n > OBS_MAX_EVENTS || t->cut) {
		xpl_trace_free(t);
		t = build_once(o, OBS_MAX_EVENTS + 1, true);
	}
	if (t->events.n > OBS_MAX_EVENTS) {
		xpl_trace_free(t);
		t = build_once(o, share_of_each(o), true);
	}
	mach_try_rewind(o->run);
	for (size_t i = 0; i < t->vars.n; i++) {
		struct xpl_var *v = &t->vars.v[i];
		uint64_t word = 0;

		if (mach_read(o->run, v->word, &word, sizeof word))
			v->init = word & v->mask;
	}
	o->seen->trace = t;
}
