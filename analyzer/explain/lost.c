/*
 * Updates that were lost. A thread reads a word, another one writes it, the first writes what it has made
 * of the old value: what the other did is gone, and far behind that somebody finds a sum wrong.
 * The run is executed once more to see where that happened first; a window around it is told.
 *
 * The thread may have stood still between its read and its write while others did their work a thousand times
 * over: then the window has a gap. Locks that are taken in front of the gap, or in it, are given back there: a
 * gap begins and ends where neither thread holds any.
 */
#include "analyzer/explain/lost.h"

#define AROUND 12u  /* touches of the word before the read and behind the write */
#define NO_GAP 60u  /* touches in between that are told one by one */

/* A thread that has read a word and not yet written it. */
struct look {
	bool reading;
	uint32_t other;      /* the first who wrote it since */
	uint64_t from;       /* the window would begin here */
	uint64_t touches;    /* of the word before the read */
	uint64_t writes;     /* likewise */
	uint64_t gap_from;   /* somebody wrote it, and both hold no lock; 0: not yet */
};

struct word {
	struct lost_word at;
	uint64_t writes, touches;
	uint64_t last[AROUND]; /* times of the last touches, a ring */
	uint64_t part_from;  /* where a part that begins with the last write begins */
	struct look *looks;  /* by thread */
};

struct holder {
	unsigned depth;      /* locks that the thread holds */
	uint64_t since;      /* the first of them */
};

struct finder {
	struct mach_run *run;
	struct word *words;
	size_t n, nthreads;
	struct holder *holders;
	uint64_t accessed;   /* the moment of the last access: the run's own clock stands while a thread runs */
	uint64_t behind;     /* touches still to come behind the write that was found */
	bool (*stop)(void *);
	void *stop_arg;
	bool stopped;
	struct lost *out;
};

static bool is_free(const struct finder *f, uint32_t a, uint32_t b)
{
	return !f->holders[a].depth && !f->holders[b].depth;
}

static uint64_t moment(const struct finder *f)
{
	uint64_t now = mach_time(f->run);

	return f->accessed > now ? f->accessed : now;
}

static struct word *word_at(struct finder *f, const struct mach_access *a)
{
	for (size_t i = 0; i < f->n; i++)
		if (a->address < f->words[i].at.address + f->words[i].at.size &&
		    f->words[i].at.address < a->address + a->size)
			return &f->words[i];
	return NULL;
}

static void end_window(struct finder *f, uint64_t now)
{
	struct ext_middle *m = &f->out->around;

	m->to = now;
	if (!f->behind && is_free(f, f->out->thread, f->out->other))
		f->behind = UINT64_MAX; /* it ends here */
}

/* Behind the first lost update only their number is of interest. */
static bool is_found(const struct finder *f)
{
	return f->out->times > 0;
}

static void on_read(struct word *w, const struct mach_access *a)
{
	struct look *l = &w->looks[a->thread];
	uint64_t first = w->touches ? w->last[w->touches < AROUND ? 0 : w->touches % AROUND] : a->time;

	*l = (struct look){ .reading = true, .from = first,
			    .touches = w->touches, .writes = w->writes };
}

static void lose(struct finder *f, struct word *w, const struct mach_access *a)
{
	const struct look *l = &w->looks[a->thread];
	struct lost *o = f->out;

	if (o->times++)
		return;
	o->word = (size_t)(w - f->words);
	o->thread = a->thread;
	o->other = l->other;
	o->around = (struct ext_middle){ .from = l->from, .to = a->time };
	if (w->touches - l->touches > NO_GAP && l->gap_from && l->gap_from < w->part_from) {
		o->around.gap_from = l->gap_from;
		o->around.gap_to = w->part_from;
	}
	f->behind = AROUND;
}

/* Others that have read the word are too late now. */
static void overtake(struct finder *f, struct word *w, const struct mach_access *a)
{
	for (uint32_t i = 0; i < f->nthreads; i++) {
		struct look *l = &w->looks[i];

		if (!l->reading || i == a->thread)
			continue;
		if (l->writes + 1 == w->writes)
			l->other = a->thread;
		if (!l->gap_from && is_free(f, i, a->thread))
			l->gap_from = a->time;
	}
	w->part_from = f->holders[a->thread].depth ? f->holders[a->thread].since : a->time;
}

static void on_write(struct finder *f, struct word *w, const struct mach_access *a)
{
	struct look *l = &w->looks[a->thread];

	if (l->reading && l->writes != w->writes)
		lose(f, w, a);
	l->reading = false;
	w->writes++;
	if (!is_found(f))
		overtake(f, w, a);
}

static expr_id on_access(void *arg, const struct mach_access *a, expr_id value)
{
	struct finder *f = arg;
	struct word *w = word_at(f, a);

	(void)value;
	f->accessed = a->time;
	if (!w || a->thread >= f->nthreads)
		return EXPR_NONE;
	if (a->flags & MACH_WRITE)
		on_write(f, w, a);
	else
		on_read(w, a);
	w->last[w->touches++ % AROUND] = a->time;
	if (is_found(f) && f->behind != UINT64_MAX) {
		f->behind -= f->behind > 0;
		end_window(f, a->time);
	}
	return EXPR_NONE;
}

/* +1: the thread has taken a lock, -1: it gives one back. */
static int lock_change(const struct trc_sync *r)
{
	bool done = TRC_SYNC_AT(r->rec.flags) == TRC_AT_DONE, good = done && !r->result;

	switch (TRC_SYNC_OP(r->rec.flags)) {
	case TRC_OP_LOCK: case TRC_OP_TRYLOCK: case TRC_OP_TIMEDLOCK:
	case TRC_OP_RDLOCK: case TRC_OP_TRYRDLOCK: case TRC_OP_TIMEDRDLOCK:
	case TRC_OP_WRLOCK: case TRC_OP_TRYWRLOCK: case TRC_OP_TIMEDWRLOCK:
	case TRC_OP_SPINLOCK: case TRC_OP_SPINTRYLOCK:
		return good;
	case TRC_OP_UNLOCK: case TRC_OP_RWUNLOCK: case TRC_OP_SPINUNLOCK:
		return -done;
	default:
		return 0;
	}
}

/* The thread holds nothing any more: whoever waits for that has it. */
static void released(struct finder *f, uint32_t thread)
{
	uint64_t now = moment(f);

	if (is_found(f)) {
		if (f->behind == 0)
			end_window(f, now);
		return;
	}
	for (size_t k = 0; k < f->n; k++)
		for (uint32_t i = 0; i < f->nthreads; i++) {
			struct look *l = &f->words[k].looks[i];

			if (l->reading && !l->gap_from && l->writes != f->words[k].writes &&
			    (i == thread || l->other == thread) && is_free(f, i, l->other))
				l->gap_from = now;
		}
}

static void on_sync(void *arg, uint32_t thread, const struct trc_sync *r)
{
	struct finder *f = arg;
	int change = lock_change(r);

	if (!change || thread >= f->nthreads)
		return;
	struct holder *h = &f->holders[thread];
	if (change > 0 && !h->depth++)
		h->since = moment(f);
	if (change < 0 && h->depth && !--h->depth)
		released(f, thread);
}

static bool on_stop(void *arg)
{
	struct finder *f = arg;

	f->stopped |= f->stop && f->stop(f->stop_arg);
	return f->stopped;
}

err_t lost_find(struct mach_run *run, const struct lost_word *words, size_t n, bool (*stop)(void *), void *stop_arg,
		struct lost *out)
{
	struct finder f = { .run = run, .n = n, .nthreads = mach_thread_count(run), .stop = stop,
			    .stop_arg = stop_arg, .out = out };
	struct mach_hooks hooks = { .arg = &f, .access = on_access, .sync = on_sync, .stop = on_stop };

	*out = (struct lost){ 0 };
	f.words = xcalloc(n + 1, sizeof *f.words);
	f.holders = xcalloc(f.nthreads + 1, sizeof *f.holders);
	for (size_t i = 0; i < n; i++)
		f.words[i] = (struct word){ .at = words[i],
					    .looks = xcalloc(f.nthreads + 1, sizeof *f.words[i].looks) };
	err_t bad = mach_again(run, 0, &hooks, NULL);
	for (size_t i = 0; i < n; i++)
		free(f.words[i].looks);
	free(f.words);
	free(f.holders);
	if (f.stopped)
		*out = (struct lost){ 0 };
	return bad;
}
