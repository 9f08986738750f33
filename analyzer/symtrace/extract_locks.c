/*
 * Locks of the program's own making. A spin lock or a mutex made of a futex is a word that goes
 * from zero to something and back, and only who made it something makes it zero. Taken for plain
 * data, every order in which two threads meet at it the other way round is another path, and the
 * words drown what they protect; taken for a lock, it is what it is in the source.
 *
 * Such a word is found by what is done to it in the window, in the order of the run: taken by an
 * atomic update that looks whether it succeeded, by two threads at least; attempts that fail go
 * on until one succeeds (or are those of a trylock, unless the program fails because it is taken); what was read of
 * it decides nothing but that. A word that is counted up is taken for one only where somebody was seen to wait for
 * it: who counts users, and checks that there was none, does not lock anything.
 * One step that does not fit, and it stays a variable.
 *
 * In a deadlock whose threads sleep in futexes (Rust's mutexes, C++20's waits) the record says which word each of them
 * sleeps at: the attempt that it has begun there is the acquisition that never ends.
 */
#include "analyzer/symtrace/extract_internal.h"

#include <string.h>

enum part { PART_NONE, PART_LOCK, PART_UNLOCK, PART_TRY, PART_DROPPED };

struct touch {
	uint64_t step;
	struct sym_event *e;
};

struct word {
	bool no;          /* it is none */
	uint32_t taken;   /* how often */
	uint32_t takers;  /* threads that did, as far as two */
	uint32_t last;    /* one of them */
	uint32_t owner;   /* when the window begins, or SYM_NONE */
	uint32_t last_owner; /* and when it ends */
	uint32_t object;
	bool counted;     /* taken by counting up */
	bool waited;      /* somebody stayed at it until it was free */
	VEC(struct touch) touches;
};

struct locks {
	struct sym_trace *t;
	const struct trc *record;
	struct word *words;   /* by variable */
	uint32_t *var_of;     /* by symbol: what was read, or SYM_NONE */
	bool *asked;          /* by symbol: a branch asks for it */
	enum part **parts;    /* by thread and event */
	uint64_t *probe;      /* by symbol: values to try an expression with, all zero */
	/* An expression's symbols: of which word, and are there others? */
	uint32_t word;
	bool others;
};

static bool on_variable(const struct sym_event *e)
{
	return e->op == SYM_READ || e->op == SYM_WRITE || e->op == SYM_RMW;
}

static bool known(const struct sym_event *e)
{
	return e->step && (e->has_seen || (e->op == SYM_RMW && !e->value));
}

static void collect(struct locks *l)
{
	struct sym_trace *t = l->t;

	for (size_t i = 0; i < t->nthreads; i++) {
		for (size_t k = 0; k < t->threads[i].nevents; k++) {
			struct sym_event *e = &t->threads[i].events[k];

			if (!on_variable(e))
				continue;
			struct word *w = &l->words[e->target];

			w->no |= !known(e);
			if (e->symbol)
				l->var_of[expr_get(t->pool, e->symbol)->value] = e->target;
			vec_push(&w->touches, (struct touch){ e->step, e });
		}
	}
}

static int by_step(const void *a, const void *b)
{
	const struct touch *x = a, *y = b;

	return x->step < y->step ? -1 : x->step > y->step;
}

/* Does the thread's next event touch the same word? Then it is still at it. */
static bool stays_at_it(const struct locks *l, const struct sym_event *e)
{
	const struct sym_thread *th = &l->t->threads[e->thread];
	const struct sym_event *next = e + 1;

	if (e->index + 1 >= th->nevents)
		return true;
	return on_variable(next) && next->target == e->target;
}

/* Does it go on changing, taken once more? */
static bool counts_up(const struct locks *l, const struct sym_event *e, uint64_t now)
{
	uint64_t *was, next;

	if (!e->symbol || !e->value)
		return false;
	was = &l->probe[expr_get(l->t->pool, e->symbol)->value];
	*was = now;
	next = expr_eval(l->t->pool, e->value, l->probe);
	*was = 0;
	return next != now;
}

/* It is not its own, and its thread does not leave it alone. */
static bool waits_at(const struct locks *l, const struct sym_event *e, uint32_t owner)
{
	return owner != e->thread && e->index + 1 < l->t->threads[e->thread].nevents && stays_at_it(l, e);
}

static enum part take(struct word *w, const struct sym_event *e)
{
	if (!w->taken++)
		w->takers = 1;
	else if (w->last != e->thread)
		w->takers = 2;
	w->last = e->thread;
	return PART_LOCK;
}

/* One step of its life; *owner has it, *now is its value. */
static enum part step(const struct locks *l, struct word *w, const struct sym_event *e, uint32_t *owner,
		      uint64_t *now)
{
	uint64_t was = *now;

	w->waited |= was && waits_at(l, e, *owner);
	if (e->op == SYM_READ)
		return *owner == e->thread || stays_at_it(l, e) ? PART_DROPPED : PART_NONE;
	if (e->op == SYM_WRITE || e->value)
		*now = e->seen;
	if (!was && *now && e->op == SYM_RMW) {
		*owner = e->thread;
		w->counted |= counts_up(l, e, *now);
		return take(w, e);
	}
	if (was && !*now && (*owner == e->thread || *owner == SYM_NONE)) {
		if (*owner == SYM_NONE)
			w->owner = e->thread; /* since before the window */
		*owner = SYM_NONE;
		return PART_UNLOCK;
	}
	if (!was || !*now || e->op != SYM_RMW)
		return PART_NONE;
	if (*owner == e->thread || stays_at_it(l, e))
		return PART_DROPPED;
	/* Who goes on having changed it got something: a share of it, say. */
	return *now == was ? PART_TRY : PART_NONE;
}

/* Does the thread sleep at this word when the run ends, as the recorder has seen? */
static bool sleeps_at(const struct locks *l, uint32_t thread, uint32_t var)
{
	const struct sym_var *v = &l->t->vars[var];

	for (size_t i = 0; i < l->record->blocked.n; i++) {
		const struct trc_blocked *b = l->record->blocked.v[i];

		if (b->op == TRC_OP_FUTEX && b->thread == thread)
			return v->address && b->object >= v->address && b->object - v->address < (v->width + 7u) / 8;
	}
	return false;
}

/* Who sleeps at it wants it as well as those that got it. */
static void note_sleepers(struct locks *l, uint32_t var, uint32_t owner)
{
	struct word *w = &l->words[var];

	w->last_owner = owner;
	for (uint32_t i = 0; i < l->t->nthreads && owner != SYM_NONE; i++)
		if (i != owner && sleeps_at(l, i, var)) {
			w->waited = true;
			w->takers = 2;
		}
}

/* Had the thread no events yet? */
static bool begins_after(const struct locks *l, uint32_t thread, uint64_t step)
{
	const struct sym_thread *th = &l->t->threads[thread];

	return !th->nevents || th->events[0].step > step;
}

/*
 * How many of its touches were before it was a lock: memory is used again, and a lock is written when it is made. They stay
 * what they are, as long as those who take the lock were not there yet.
 */
static size_t made_by(struct locks *l, const struct word *w, uint64_t *now)
{
	size_t n = 0;

	while (n < w->touches.n && w->touches.v[n].e->op != SYM_RMW && w->touches.v[n].e->thread == w->touches.v[0].e->thread)
		n++;
	while (n && w->touches.v[n - 1].e->op != SYM_WRITE) /* who takes it may look before */
		n--;
	for (size_t i = n; n && i < w->touches.n; i++) {
		uint32_t thread = w->touches.v[i].e->thread;

		if (thread != w->touches.v[0].e->thread && !begins_after(l, thread, w->touches.v[n - 1].step))
			return 0;
	}
	for (size_t i = 0; i < n; i++) {
		const struct sym_event *e = w->touches.v[i].e;

		if (e->op == SYM_WRITE)
			*now = e->seen;
		else if (e->symbol)
			l->var_of[expr_get(l->t->pool, e->symbol)->value] = SYM_NONE;
	}
	return n;
}

static void live(struct locks *l, uint32_t var)
{
	struct word *w = &l->words[var];
	const struct sym_var *v = &l->t->vars[var];
	uint32_t owner = SYM_NONE;
	uint64_t now;

	if (w->no || !v->has_init || expr_get(l->t->pool, v->init)->op != EX_CONST) {
		w->no = true;
		return;
	}
	now = expr_get(l->t->pool, v->init)->value;
	w->owner = SYM_NONE;
	qsort(w->touches.v, w->touches.n, sizeof *w->touches.v, by_step);
	for (size_t i = made_by(l, w, &now); i < w->touches.n && !w->no; i++) {
		const struct sym_event *e = w->touches.v[i].e;
		enum part p = step(l, w, e, &owner, &now);

		l->parts[e->thread][e->index] = p;
		w->no = p == PART_NONE;
	}
	if (!w->no)
		note_sleepers(l, var, owner);
	w->no |= w->takers < 2 || (w->counted && !w->waited);
}

/* ---- what was read of it ---- */

static void look_at(void *arg, uint64_t symbol)
{
	struct locks *l = arg;
	uint32_t var = l->var_of[symbol];

	if (var == SYM_NONE || l->words[var].no || (l->word != SYM_NONE && l->word != var))
		l->others = true;
	if (var != SYM_NONE && !l->words[var].no) {
		if (l->word != SYM_NONE && l->word != var)
			l->words[l->word].no = true;
		l->word = var;
	}
}

/* The word this is about and nothing else, SYM_NONE: about none. Mixed, it is no lock. */
static uint32_t only_about(struct locks *l, expr_id e)
{
	l->word = SYM_NONE;
	l->others = false;
	if (e)
		expr_symbols(l->t->pool, e, look_at, l);
	if (l->word != SYM_NONE && l->others)
		l->words[l->word].no = true;
	return l->word;
}

/* It was found taken, and that is what fails: whoever took it ought not to have been there, and nobody waits. */
static void look_at_failure(void *arg, uint64_t symbol)
{
	struct locks *l = arg;
	uint32_t var = l->var_of[symbol];

	for (size_t i = 0; var != SYM_NONE && i < l->words[var].touches.n; i++) {
		const struct sym_event *e = l->words[var].touches.v[i].e;

		if (e->symbol && expr_get(l->t->pool, e->symbol)->value == symbol)
			l->words[var].no |= l->parts[e->thread][e->index] == PART_TRY;
	}
}

static void note_asked(void *arg, uint64_t symbol)
{
	((struct locks *)arg)->asked[symbol] = true;
}

static void look_at_uses(struct locks *l)
{
	struct sym_trace *t = l->t;
	uint32_t var;

	if (t->failure.condition)
		expr_symbols(t->pool, t->failure.condition, look_at_failure, l);
	only_about(l, t->failure.condition);
	for (size_t i = 0; i < t->nthreads; i++) {
		const struct sym_thread *th = &t->threads[i];

		for (size_t k = 0; k < th->nevents; k++) {
			var = only_about(l, th->events[k].value);
			if (var != SYM_NONE && var != th->events[k].target)
				l->words[var].no = true;
		}
		for (size_t k = 0; k < th->nconds; k++)
			if (only_about(l, th->conds[k].cond) != SYM_NONE)
				expr_symbols(t->pool, th->conds[k].cond, note_asked, l);
	}
}

/* A counter goes up and down as well; nobody cares what it was. */
static void look_at_questions(struct locks *l)
{
	for (size_t i = 0; i < l->t->nvars; i++) {
		struct word *w = &l->words[i];

		for (size_t k = 0; k < w->touches.n && !w->no; k++) {
			const struct sym_event *e = w->touches.v[k].e;

			w->no = l->parts[e->thread][e->index] == PART_LOCK &&
				!(e->symbol && l->asked[expr_get(l->t->pool, e->symbol)->value]);
		}
	}
}

/* ---- taking them for what they are ---- */

static uint32_t object_of(struct locks *l, uint32_t var)
{
	struct word *w = &l->words[var];
	const struct sym_var *v = &l->t->vars[var];

	if (w->object == SYM_NONE) {
		struct sym_object o = { .name = v->name, .kind = SYM_MUTEX, .address = v->address,
					.home_made = true, .owner = w->owner };
		bool own = !strstr(v->name, ".so") && strncmp(v->name, EXT_RUST_LIBRARY, strlen(EXT_RUST_LIBRARY));
		char *said = own ? xasprintf("`%s' is used as a lock and is treated as one.", v->name) : NULL;

		w->object = sym_add_object(l->t, &o);
		/* That a library has locks is no news. */
		if (said)
			sym_add_assumption(l->t, said);
		free(said);
	}
	return w->object;
}

static void become(struct locks *l, struct sym_event *e, enum part p)
{
	e->op = p == PART_LOCK ? SYM_LOCK : p == PART_UNLOCK ? SYM_UNLOCK : SYM_TRYLOCK;
	e->result = p != PART_TRY;
	e->variable = e->target;
	e->target = object_of(l, e->target);
	e->symbol = e->value = EXPR_NONE;
	e->has_seen = e->fixed = false;
}

static bool is_about_lock(struct locks *l, expr_id cond)
{
	uint32_t var = only_about(l, cond);

	return var != SYM_NONE && !l->words[var].no;
}

static enum part part_of(const struct locks *l, const struct sym_event *e)
{
	return on_variable(e) && !l->words[e->target].no ? l->parts[e->thread][e->index] : PART_NONE;
}

/* The attempts that the thread's events end with, from `first` on, if it sleeps there: one acquisition, which never ends. */
static uint32_t keep_pending(struct locks *l, struct sym_thread *th, struct ext_thread *x, uint32_t first, uint32_t n)
{
	struct sym_event e;

	if (first == SYM_NONE || !sleeps_at(l, th->events[first].thread, th->events[first].target))
		return n;
	e = th->events[first];
	become(l, &e, PART_LOCK);
	e.index = n;
	x->points.v[n] = x->points.v[first];
	th->events[n] = e;
	return n + 1;
}

/* The thread's last event never ends. */
static void add_pending(struct locks *l, uint32_t thread, uint32_t event)
{
	struct sym_failure *f = &l->t->failure;

	f->blocked = xrealloc(f->blocked, (f->nblocked + 1) * sizeof *f->blocked);
	f->blocked[f->nblocked++] = (struct sym_blocked){ thread, event };
	f->kind = SYM_FAIL_DEADLOCK;
}

/*
 * Events that are gone make others move up; place[] tells where to. Taking a lock may need several
 * attempts, and letting go that somebody waits for takes two steps. How many, other orders do not
 * know; the first step they all have: it stands for what it leads to.
 */
static uint32_t move_events(struct locks *l, struct sym_thread *th, struct ext_thread *x,
			    uint32_t *place)
{
	uint32_t n = 0, first = SYM_NONE; /* nothing from n on is written over yet */

	for (uint32_t k = 0; k < th->nevents; k++) {
		struct sym_event e = th->events[k];
		enum part p = part_of(l, &e);
		bool led = first != SYM_NONE && on_variable(&e) && th->events[first].target == e.target;

		place[k] = n;
		if (p == PART_DROPPED) {
			first = led ? first : k;
			continue;
		}
		x->points.v[n] = x->points.v[k];
		if (led && (p == PART_LOCK || p == PART_UNLOCK)) {
			e.pc = th->events[first].pc;
			e.occurrence = th->events[first].occurrence;
			x->points.v[n] = x->points.v[first];
		}
		first = SYM_NONE;
		if (p != PART_NONE)
			become(l, &e, p);
		if (e.link != SYM_NONE)
			e.link = place[e.link];
		e.index = n;
		th->events[n++] = e;
	}
	place[th->nevents] = n;
	return keep_pending(l, th, x, first, n);
}

/* What else counts a thread's events. */
static void move_others(struct ext *all, uint32_t thread, const uint32_t *place)
{
	struct ext_thread *x = ext_thread(all, thread);
	struct sym_failure *f = &all->trace->failure;

	if (x->computed != SYM_NONE)
		x->computed = place[x->computed];
	for (size_t i = 0; i < f->nblocked; i++)
		if (f->blocked[i].thread == thread)
			f->blocked[i].event = place[f->blocked[i].event];
	for (size_t i = 0; i < all->interrupts.n; i++)
		if (all->interrupts.v[i].receiver == thread)
			all->interrupts.v[i].next = place[all->interrupts.v[i].next];
}

static void move_up(struct locks *l, struct ext *all, uint32_t thread)
{
	struct sym_thread *th = &l->t->threads[thread];
	struct ext_thread *x = ext_thread(all, thread);
	uint32_t *place = xcalloc(th->nevents + 1, sizeof *place);
	uint32_t n = move_events(l, th, x, place);
	size_t m = 0;

	for (size_t k = 0; k < th->nconds; k++) {
		struct sym_cond c = th->conds[k];
		bool gone;

		if (is_about_lock(l, c.cond))
			continue;
		if (c.after != SYM_NONE) {
			gone = place[c.after + 1] == place[c.after];
			c.after = place[c.after];
			if (gone) /* it holds behind what came before */
				c.after = c.after ? c.after - 1 : SYM_NONE;
		}
		th->conds[m++] = c;
	}
	bool pending = n > place[th->nevents];

	move_others(all, thread, place);
	if (pending)
		add_pending(l, thread, n - 1);
	th->nevents = x->points.n = n;
	th->nconds = m;
	free(place);
}

/* Whom the thread waits for, when it waits for one of these locks; SYM_NONE: for something else. */
static uint32_t awaited(const struct locks *l, uint32_t thread)
{
	for (uint32_t var = 0; var < l->t->nvars; var++)
		if (!l->words[var].no && sleeps_at(l, thread, var))
			return l->words[var].last_owner;
	return SYM_NONE;
}

static bool is_in_ring(const struct locks *l, uint32_t thread)
{
	uint32_t at = awaited(l, thread);

	for (size_t i = 0; i < l->t->nthreads && at != SYM_NONE && at != thread; i++)
		at = awaited(l, at);
	return at == thread;
}

/* What never ends is the last event of its thread: without it the thread is not there yet. */
static void take_back(struct locks *l, struct ext *x, const struct sym_blocked *b)
{
	struct sym_thread *th = &l->t->threads[b->thread];

	th->nevents = ext_thread(x, b->thread)->points.n = b->event;
	while (th->nconds && th->conds[th->nconds - 1].after != SYM_NONE && th->conds[th->nconds - 1].after >= b->event)
		th->nconds--;
}

/* Threads that hold each other's locks stand still whatever the others do; that some wait for their ends is no part of it. */
static void keep_ring(struct locks *l, struct ext *x)
{
	struct sym_failure *f = &l->t->failure;
	size_t n = 0;

	for (size_t i = 0; i < f->nblocked; i++)
		n += is_in_ring(l, f->blocked[i].thread);
	if (n) {
		n = 0;
		for (size_t i = 0; i < f->nblocked; i++) {
			if (is_in_ring(l, f->blocked[i].thread))
				f->blocked[n++] = f->blocked[i];
			else
				take_back(l, x, &f->blocked[i]);
		}
		f->nblocked = n;
	}
	if (f->nblocked)
		f->thread = f->blocked[0].thread;
}

static struct locks *locks_new(struct sym_trace *t, const struct trc *record)
{
	struct locks *l = xcalloc(1, sizeof *l);
	size_t symbols = expr_symbol_count(t->pool);

	l->t = t;
	l->record = record;
	l->words = xcalloc(t->nvars + 1, sizeof *l->words);
	for (size_t i = 0; i < t->nvars; i++)
		l->words[i].object = SYM_NONE;
	l->var_of = xcalloc(symbols + 1, sizeof *l->var_of);
	memset(l->var_of, 0xff, symbols * sizeof *l->var_of);
	l->asked = xcalloc(symbols + 1, sizeof *l->asked);
	l->probe = xcalloc(symbols + 1, sizeof *l->probe);
	l->parts = xcalloc(t->nthreads + 1, sizeof *l->parts);
	for (size_t i = 0; i < t->nthreads; i++)
		l->parts[i] = xcalloc(t->threads[i].nevents + 1, sizeof **l->parts);
	return l;
}

static void locks_free(struct locks *l)
{
	for (size_t i = 0; i < l->t->nvars; i++)
		vec_free(&l->words[i].touches);
	for (size_t i = 0; i < l->t->nthreads; i++)
		free(l->parts[i]);
	free(l->words);
	free(l->var_of);
	free(l->asked);
	free(l->probe);
	free(l->parts);
	free(l);
}

void ext_find_locks(struct ext *x)
{
	struct locks *l = locks_new(x->trace, x->t);
	bool some = false;

	collect(l);
	for (uint32_t i = 0; i < x->trace->nvars; i++) {
		live(l, i);
		some |= !l->words[i].no;
	}
	if (some) {
		look_at_uses(l);
		look_at_questions(l);
	}
	/* The last branch on the way was taken in giving a lock back: it does not decide. */
	if (some && is_about_lock(l, x->trace->failure.condition)) {
		x->trace->failure.condition = EXPR_NONE;
		x->fate.thread = x->brink.thread = SYM_NONE;
	}
	for (size_t i = 0; some && i < x->trace->nthreads; i++)
		move_up(l, x, (uint32_t)i);
	if (some && x->trace->failure.kind == SYM_FAIL_DEADLOCK)
		keep_ring(l, x);
	locks_free(l);
}
