/*
 * A total that came out wrong. Threads add to a word without a lock, now and then an update is lost,
 * and nobody notices before somebody looks at the sum: the mismatch lies far behind all of them, and
 * moving reads one by one would have to hit the very number that was lost. So, in two steps:
 *
 * What should the reader have seen? Its thread goes on alone from that read, with one value after
 * the other, those nearest to the one in memory first. The one by which it follows the record
 * furthest is taken.
 *
 * Where can the difference have been lost? Between load and store of somebody's update, by updates
 * of others that come to as much: they wait until it has loaded, it waits with its store until they
 * are done. What happened between is not in the record, so any such place will do; the closest is
 * tried first. When the stretch has none an earlier one is looked at.
 */
#include "analyzer/follow/search.h"

#include <string.h>

#define WORDS 3u              /* that may be the total */
#define LEAST_UPDATES 8u      /* in the last stretch; of fewer the search for an order sees to each */
#define PROBE_INSNS 10000000u /* for one read, of its thread alone ... */
#define PROBE_COST 1000u      /* ... and as many again for going back, however soon it goes wrong */
#define PROBE_FAR 60000u      /* in one go */
#define PROBE_EACH 64         /* steps away each value is tried first */
#define PROBE_MOST (1 << 28)
#define OWN_STEPS 256u        /* different sizes of updates that may be what was lost */
#define WATCHED 200000000u    /* instructions, of all the stretches that are looked at */
#define LONGEST 200000u       /* updates that one update overwrites */
#define STEPS 20000000u       /* looking for them */
#define MOST_PLACES 24u
#define MOST_OTHERS 5u        /* threads: two edges each, see MAX_EDGES */

/* Loaded, changed, stored: by one instruction or by several. */
struct update {
	uint32_t thread;
	uint64_t load, store;   /* instruction numbers */
	uint64_t began, order;  /* when: load and store */
	uint64_t saw, added;
	bool first;             /* what came before it in the word was no update */
};

struct total {
	struct search *s;
	struct frame *f;
	struct touch read;      /* by the thread that went wrong */
	uint64_t lost;          /* how much less than it saw it should have seen */
	VEC(struct update) updates;
};

struct spot {
	size_t update, from, to; /* it overwrites those of other threads from .. to */
	uint64_t span;
	bool saves;              /* or rather does no longer */
};

static unsigned size_of(const struct touch *t)
{
	return t->last - t->first + 1u;
}

static uint64_t cut(const struct touch *read, uint64_t value)
{
	unsigned bits = 8 * size_of(read);

	return bits == 64 ? value : value & ((1ull << bits) - 1);
}

static uint64_t value_of(const struct touch *t)
{
	return cut(t, t->value >> 8 * t->first);
}

static bool same_place(const struct touch *a, const struct touch *b)
{
	return a->word == b->word && a->first == b->first && a->last == b->last;
}

/* ---- updates ---- */

/* What a thread does to the word at most: read it, then write it. */
static const struct touch *read_for(const struct touch *lo, const struct touch *write)
{
	for (const struct touch *t = write; t-- > lo;)
		if (t->thread == write->thread)
			return t->write || t->locked || !same_place(t, write) ? NULL : t;
	return NULL;
}

static void find_updates(struct total *x, const struct touch *lo, const struct touch *hi)
{
	bool first = true;

	x->updates.n = 0;
	for (const struct touch *t = lo; t < hi && t->order <= x->s->happened; t++) {
		const struct touch *read = t->write && same_place(t, &x->read) ? read_for(lo, t) : NULL;

		if (!t->write)
			continue;
		if (!read || t->locked) {
			first = true; /* set, not added to */
			continue;
		}
		vec_push(&x->updates, (struct update){
			.thread = t->thread, .load = read->insn, .store = t->insn,
			.began = read->order, .order = t->order,
			.saw = value_of(read), .added = cut(t, value_of(t) - value_of(read)), .first = first });
		first = false;
	}
}

static void word_bounds(const struct search *s, const struct touch *read, const struct touch **lo,
			const struct touch **hi)
{
	const struct touch *v = s->touches.v, *end = v + s->touches.n;

	*lo = end;
	for (const struct touch *t = v; t < end && *lo == end; t++)
		if (t->word == read->word)
			*lo = t;
	for (*hi = *lo; *hi < end && (*hi)->word == read->word;)
		++*hi;
}

/* ---- what it should have seen ---- */

struct probe {
	struct checkpoint *at;  /* right before the read */
	uint64_t spent;         /* instructions of all tries, and what going back cost */
	uint64_t best, far;     /* value, and how far it led */
	bool right;             /* what it wrote was as recorded */
	bool done;              /* it could not have got further */
};

/* The stretch once more, up to the read. */
static struct checkpoint *stop_before(const struct total *x)
{
	struct mach_run *r = x->s->r;
	size_t n = r->log.n;
	err_t bad = NULL;

	checkpoint_restore(r, search_base(x->s));
	r->log.n = n;
	for (size_t i = search_base(x->s)->log; i < n && !bad; i++) {
		struct log_step step = r->log.v[i];
		uint64_t now = mach_thread_insns(r, step.thread);

		if (step.thread == x->read.thread && step.action == ACT_RUN &&
		    now + step.insns > x->read.insn) {
			step.insns = x->read.insn - now;
			bad = step.insns ? run_log_step(r, &step) : NULL;
			break;
		}
		bad = run_log_step(r, &step);
	}
	bool there = !bad && mach_thread_insns(r, x->read.thread) == x->read.insn;
	err_free(bad);
	return there ? checkpoint_take(r) : NULL;
}

static void go_alone(struct mach_run *r, struct run_thread *t, bool *done)
{
	uint64_t end = r->time + PROBE_FAR;
	enum action a = ACT_RUN;

	while (a != ACT_MISMATCH && r->time < end && run_alive(t) && run_is_due(r, t)) {
		uint64_t time = r->time, seq = r->seq;
		enum action stood = t->s.action;

		a = run_turn(r, t, PROBE_FAR);
		if (a == ACT_FAILURE || a == ACT_STOPPED ||
		    (r->time == time && r->seq == seq && t->s.action == stood))
			break;
	}
	*done = a != ACT_MISMATCH && a != ACT_STOPPED;
}

/* Goes on with this value; true: nothing better can be found. */
static bool probe(struct total *x, struct probe *p, uint64_t value)
{
	struct mach_run *r = x->s->r;
	struct mach_forced load = { .thread = x->read.thread, .insn = x->read.insn,
				    .address = x->read.word * 8 + x->read.first,
				    .size = size_of(&x->read), .value = cut(&x->read, value) };
	uint64_t serial = r->force_serial, began = r->worked, far;
	size_t told = r->undetermined.n;
	bool done, right;

	run_force(r, &load);
	go_alone(r, &r->threads[load.thread], &done);
	far = mach_thread_insns(r, load.thread);
	right = r->undetermined.n == told;
	if (far > p->far || (far == p->far && right && !p->right)) {
		p->far = far;
		p->best = load.value;
		p->right = right;
		p->done = done;
	}
	p->spent += r->worked - began + PROBE_COST;
	run_unforce(r, serial);
	checkpoint_restore(r, p->at);
	return p->done && p->right;
}

static bool enough_probing(const struct total *x, const struct probe *p)
{
	return p->spent > PROBE_INSNS || run_out_of_time(x->s->r);
}

/* What a single update added or took away may be all that was lost. */
static bool probe_updates(struct total *x, struct probe *p)
{
	uint64_t tried[OWN_STEPS];
	size_t n = 0, k;

	for (size_t i = x->updates.n; i-- > 0 && n < OWN_STEPS && !enough_probing(x, p);) {
		uint64_t added = x->updates.v[i].added;

		for (k = 0; k < n && tried[k] != added; k++)
			;
		if (k < n || !added)
			continue;
		tried[n++] = added;
		if (probe(x, p, value_of(&x->read) - added))
			return true;
	}
	return false;
}

/* So many steps down or up. */
static bool probe_step(struct total *x, struct probe *p, int64_t steps)
{
	uint64_t step = x->updates.v[x->updates.n - 1].added;

	return !enough_probing(x, p) && probe(x, p, value_of(&x->read) - (uint64_t)steps * step);
}

/* The least that leads as far; `far` does, and half of it does not. */
static void probe_between(struct total *x, struct probe *p, int64_t far)
{
	int64_t near = far / 2;

	while (far - near > 1 || near - far > 1) {
		int64_t middle = near + (far - near) / 2;
		struct probe here = { .at = p->at, .spent = p->spent };

		if (enough_probing(x, p))
			return;
		probe_step(x, &here, middle);
		p->spent = here.spent;
		if (here.far < p->far) {
			near = middle;
			continue;
		}
		far = middle;
		*p = here;
	}
}

/* Each of the nearest; then ever larger steps, and back; then each for which there is time. */
static void probe_steps(struct total *x, struct probe *p)
{
	uint64_t had = p->far;

	for (int64_t k = 1; k <= PROBE_EACH; k++)
		if (probe_step(x, p, k) || probe_step(x, p, -k))
			return;
	for (int64_t k = 2 * PROBE_EACH; k <= PROBE_MOST && p->far == had; k *= 2)
		for (int sign = 1; sign >= -1 && p->far == had; sign -= 2) {
			probe_step(x, p, sign * k);
			if (p->far > had)
				probe_between(x, p, sign * k);
		}
	if (p->far > had && p->right)
		return;
	for (int64_t k = PROBE_EACH; k <= PROBE_MOST && !enough_probing(x, p); k++)
		if (probe_step(x, p, k) || probe_step(x, p, -k))
			return;
}

static bool find_value(struct total *x)
{
	struct mach_run *r = x->s->r;
	struct probe p = { .at = stop_before(x), .far = x->f->insn };
	size_t n = r->log.n;

	if (!p.at)
		return false;
	r->looking_ahead = true;
	/* Where it gets past that alone, with what it saw, the value is not to blame. */
	probe(x, &p, value_of(&x->read));
	if (p.far == x->f->insn && !probe_updates(x, &p))
		probe_steps(x, &p);
	r->looking_ahead = false;
	r->log.n = n;
	checkpoint_free(r, p.at);
	x->lost = cut(&x->read, value_of(&x->read) - p.best);
	return p.far > x->f->insn && x->lost;
}

/* ---- where it can have been lost ---- */

typedef VEC(struct spot) spots;

static void add_spot(struct total *x, spots *out, size_t u, size_t from, size_t to)
{
	uint64_t a = x->updates.v[from < u ? from : u].order, b = x->updates.v[to > u ? to : u].order;

	vec_push(out, ((struct spot){ .update = u, .from = from, .to = to, .span = b - a }));
}

/* Updates of others behind u, while its thread waits with its store. */
static size_t spot_behind(struct total *x, size_t u, spots *out)
{
	const struct update *v = x->updates.v;
	uint64_t sum = 0;
	size_t from = SIZE_MAX, i;

	for (i = u + 1; i < x->updates.n && i - u < LONGEST && !v[i].first; i++) {
		if (v[i].thread == v[u].thread)
			continue;
		if (from == SIZE_MAX)
			from = i;
		sum += v[i].added;
		if (cut(&x->read, sum) == x->lost) {
			add_spot(x, out, u, from, i);
			break;
		}
	}
	return i - u;
}

/* Updates of others before u, after its thread has loaded early. */
static size_t spot_before(struct total *x, size_t u, spots *out)
{
	const struct update *v = x->updates.v;
	uint64_t sum = 0;
	size_t i;

	for (i = u; i > 0 && u - i < LONGEST && !v[i].first && v[i - 1].thread != v[u].thread;) {
		sum += v[--i].added;
		if (cut(&x->read, sum) == x->lost) {
			add_spot(x, out, u, i, u - 1);
			break;
		}
	}
	return u - i;
}

/*
 * The guess itself has lost more here than the record: of those that u overwrites the last ones
 * come behind it, then.
 */
static size_t spot_saved(struct total *x, size_t u, spots *out)
{
	const struct update *v = x->updates.v;
	uint64_t sum = 0;
	size_t i = u;

	while (i > 0 && v[i - 1].order > v[u].began && v[i - 1].began > v[u].began &&
	       v[i - 1].thread != v[u].thread && !v[i].first) {
		sum += v[--i].added;
		if (cut(&x->read, sum + x->lost))
			continue;
		vec_push(out, ((struct spot){ .update = u, .from = i, .to = u - 1, .saves = true,
					      .span = v[u].order - v[i].order }));
		break;
	}
	return u - i + 1;
}

static int closest_first(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	if (x->span != y->span)
		return x->span < y->span ? -1 : 1;
	return x->update > y->update ? -1 : x->update < y->update;
}

/* The edges of one thread whose updates are overwritten. */
static bool hold(const struct total *x, const struct spot *p, uint32_t thread, struct candidate *c)
{
	const struct update *u = &x->updates.v[p->update], *first = NULL, *last = NULL;

	for (size_t i = p->from; i <= p->to; i++)
		if (x->updates.v[i].thread == thread) {
			last = &x->updates.v[i];
			first = first ? first : last;
		}
	if (!first || thread == u->thread)
		return true;
	if (c->n == 2 * MOST_OTHERS)
		return false;
	if (p->saves) {
		c->edges[c->n++] = (struct order_edge){ thread, u->thread, first->load, u->store + 1 };
		return true;
	}
	uint64_t loaded = u->load + (u->load != u->store);

	c->edges[c->n++] = (struct order_edge){ thread, u->thread, first->load, loaded };
	c->edges[c->n++] = (struct order_edge){ u->thread, thread, u->store, last->store + 1 };
	return true;
}

static bool was_tried(struct total *x, const struct spot *p)
{
	const struct update *u = &x->updates.v[p->update];
	struct total_tried here = { u->thread, u->load, x->updates.v[p->from].load };
	struct total_known *k = &x->s->total;

	for (size_t i = 0; i < k->tried.n; i++)
		if (k->tried.v[i].thread == here.thread && k->tried.v[i].load == here.load &&
		    k->tried.v[i].first == here.first)
			return true;
	vec_push(&k->tried, here);
	return false;
}

static void add_candidate(struct total *x, const struct spot *p)
{
	const struct update *u = &x->updates.v[p->update];
	uint64_t saw = p->from < p->update ? x->updates.v[p->from].saw : u->saw;
	struct candidate c = { .near = true, .halves = !p->saves && u->load == u->store };

	for (uint32_t i = 0; i < x->s->r->nthreads; i++)
		if (!hold(x, p, i, &c))
			return;
	c.load = (struct mach_forced){ .thread = u->thread, .insn = u->load, .value = saw,
				       .address = x->read.word * 8 + x->read.first,
				       .size = size_of(&x->read), .logged = true };
	x->f->candidates[x->f->n++] = c;
}

static bool add_places(struct total *x)
{
	spots all = { 0 };
	size_t steps = 0;

	/* Only where threads take turns: from further away it comes to the same. */
	for (size_t u = x->updates.n; u-- > 0 && steps < STEPS;) {
		const struct update *v = &x->updates.v[u];

		if (u + 1 < x->updates.n && v[1].thread != v->thread)
			steps += spot_behind(x, u, &all);
		if (u && v[-1].thread != v->thread)
			steps += spot_before(x, u, &all) + spot_saved(x, u, &all);
	}
	if (all.n)
		qsort(all.v, all.n, sizeof *all.v, closest_first);
	for (size_t i = 0; i < all.n && x->f->n < MOST_PLACES; i++)
		if (!was_tried(x, &all.v[i]))
			add_candidate(x, &all.v[i]);
	vec_free(&all);
	return x->f->n > 0;
}

static bool look_for_places(struct total *x)
{
	struct search *s = x->s;
	uint64_t watched = 0;

	if (add_places(x))
		return true;
	for (size_t base = s->nbases - 1; base-- > 0 && !s->frames.n && watched < WATCHED;) {
		const struct touch *lo, *hi;

		watched += s->r->time - s->bases[base].c->time;
		if (!touches_of_word(s, base, x->read.word))
			return false;
		word_bounds(s, &x->read, &lo, &hi);
		find_updates(x, lo, hi);
		if (add_places(x)) {
			search_back_to(s, x->f, base);
			return true;
		}
	}
	return false;
}

/* ---- */

/* Others have added to it a number of times, and nobody has set it since. */
static bool is_a_total(const struct total *x)
{
	size_t others = 0;

	for (size_t k = x->updates.n; k-- > 0;) {
		if (x->updates.v[k].thread != x->f->thread && ++others == LEAST_UPDATES)
			return true;
		if (x->updates.v[k].first)
			return false;
	}
	return false;
}

/* What the thread has only looked at, last, and others have added to; the latest first. */
static unsigned choose_reads(struct total *x, struct touch *reads)
{
	const struct search *s = x->s;
	unsigned n = 0;

	for (const struct touch *lo = s->touches.v, *end = lo + s->touches.n, *hi; lo < end; lo = hi) {
		const struct touch *last = NULL;
		unsigned i;

		for (hi = lo; hi < end && hi->word == lo->word; hi++)
			if (hi->thread == x->f->thread && hi->insn <= x->f->insn)
				last = hi;
		if (!last || last->write)
			continue;
		x->read = *last;
		find_updates(x, lo, hi);
		if (!is_a_total(x))
			continue;
		for (i = n < WORDS ? n++ : WORDS; i > 0 && reads[i - 1].order < last->order; i--)
			if (i < WORDS)
				reads[i] = reads[i - 1];
		if (i < WORDS)
			reads[i] = *last;
	}
	return n;
}

/* Places for it; the search for an order begins with them. */
static bool places_found(struct total *x)
{
	const struct touch *lo, *hi;

	word_bounds(x->s, &x->read, &lo, &hi);
	find_updates(x, lo, hi);
	if (!look_for_places(x))
		return false;
	x->s->began = x->s->stage = run_seconds();
	return true;
}

bool totals_again(struct search *s, struct frame *f)
{
	struct total_known *k = &s->total;
	struct total x = { .s = s, .f = f, .read = k->read, .lost = k->lost };

	if (!k->known || f->load || k->thread != f->thread || k->insn != f->insn)
		return false;
	k->known = touches_of_word(s, s->nbases - 1, k->read.word) && places_found(&x);
	vec_free(&x.updates);
	return k->known;
}

bool totals_find(struct search *s, struct frame *f)
{
	struct total x = { .s = s, .f = f };
	struct touch reads[WORDS];
	unsigned n = choose_reads(&x, reads);
	bool found = false;

	for (unsigned i = 0; i < n && !found; i++) {
		const struct touch *lo, *hi;

		x.read = reads[i];
		word_bounds(s, &x.read, &lo, &hi);
		find_updates(&x, lo, hi);
		if (find_value(&x)) {
			s->total.tried.n = 0;
			found = places_found(&x);
		}
		/* Looking elsewhere has left something else. */
		if (!found && !touches_gather(s, f, false))
			break;
	}
	if (found) {
		s->total.known = true;
		s->total.thread = f->thread;
		s->total.insn = f->insn;
		s->total.read = x.read;
		s->total.lost = x.lost;
	}
	vec_free(&x.updates);
	return found;
}
