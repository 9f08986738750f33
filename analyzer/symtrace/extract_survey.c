#include "analyzer/symtrace/extract_internal.h"

/* Behind the record: what was missing by a hair comes soon. */
#define ONWARD_EVENTS 400
/* Instructions: a run up to so long is surveyed as a whole ... */
#define SHORT_RUN 16000000u
/* ... of a longer one only a stretch before its end: at least so long, and so long for every
 * event that the window asks for. Where they lie thinner the window holds fewer. */
#define SHORTEST_STRETCH 4000000u
#define STRETCH_PER_EVENT 2000u
/* Before a window in the middle, to see what is shared. */
#define BEFORE_MIDDLE 1000000u
/* What one thread did alone at the end (to write a summary, and find that the sum is wrong) comes on
 * top, unless it is more than a person would wait for. */
#define LONGEST_ALONE 4000000000u

struct ext_survey *ext_survey_new(void)
{
	return xcalloc(1, sizeof(struct ext_survey));
}

static void clear(struct ext_survey *s)
{
	share_free(s->share);
	spins_free(s->spins);
	free(s->events);
	vec_free(&s->computed);
	vec_free(&s->words);
	vec_free(&s->last_call);
	*s = (struct ext_survey){ 0 };
}

void ext_survey_free(struct ext_survey *s)
{
	if (s)
		clear(s);
	free(s);
}

/* An access of the failing thread that makes no event, so far. */
static void note_last_call(struct ext *x, const struct mach_access *a)
{
	struct ext_survey *s = x->o->survey;
	uint64_t since = ext_thread(x, a->thread)->program_insn;

	if (x->last_call_since != since)
		s->last_call.n = 0;
	x->last_call_since = since;
	if (a->insn > since && share_touches(s->share, a->address, a->size))
		vec_push(&s->last_call, (struct ext_touch){ a->time, a->address, a->thread,
							    (uint8_t)a->size, false });
}

static void note_event(struct ext *x, const struct ext_touch *e)
{
	struct ext_survey *s = x->o->survey;

	s->events[s->n++ % EXT_MAX_EVENTS] = *e;
	if (e->thread == x->failing)
		s->failing = s->n;
}

static expr_id count_access(void *arg, const struct mach_access *a, expr_id value)
{
	struct ext *x = arg;
	struct ext_survey *s = x->o->survey;
	struct mach_access part;

	(void)value;
	s->accesses++;
	x->accessed = a->time;
	bool matters = ext_matters(x, a, &part);
	spins_access(s->spins, a, matters);
	if (!matters) {
		if (x->failing_in_runtime && a->thread == x->failing) {
			note_last_call(x, a);
			share_event(s->share, a); /* it may turn out to be one */
		}
		return EXPR_NONE;
	}
	if (!share_event(s->share, &part))
		return EXPR_NONE;
	struct ext_touch e = { a->time, part.address, a->thread, (uint8_t)part.size,
			       (part.flags & (MACH_READ | MACH_WRITE | MACH_ATOMIC)) == MACH_WRITE };

	if (!x->onward) {
		note_event(x, &e);
	} else {
		vec_push(&s->computed, e);
		if (s->computed.n == ONWARD_EVENTS)
			s->until = x->until = a->time;
	}
	return EXPR_NONE;
}

/* What comes behind a window in the middle makes no events. */
static bool on_stop(void *arg)
{
	return ext_stop(arg) || ext_is_behind(arg);
}

static void on_onward(void *arg)
{
	ext_onward(arg);
}

static void on_start(void *arg, uint32_t thread, uint32_t parent)
{
	const struct ext *x = arg;

	handed_created(share_handed(x->share), parent, thread);
}

static void on_sync(void *arg, uint32_t thread, const struct trc_sync *rec)
{
	const struct ext *x = arg;
	enum trc_op op = TRC_SYNC_OP(rec->rec.flags);

	spins_leave(x->o->survey->spins, thread);

	if ((op == TRC_OP_JOIN || op == TRC_OP_TRYJOIN || op == TRC_OP_TIMEDJOIN) &&
	    TRC_SYNC_AT(rec->rec.flags) == TRC_AT_DONE && !rec->result && rec->thread < x->threads.n)
		handed_joined(share_handed(x->share), thread, rec->thread);
}

static err_t count_events(struct ext *x)
{
	struct ext_survey *s = x->o->survey;
	struct mach_hooks hooks = { .arg = x, .begin = ext_prelude_level, .access = count_access,
				    .sync = on_sync, .thread_start = on_start, .stop = on_stop,
				    .onward_insns = ext_onward_insns(x), .onward = on_onward, .go_onward = mach_go_onward };

	s->n = s->failing = s->accesses = s->until = x->until = 0;
	s->computed.n = s->last_call.n = 0;
	x->last_call_since = 0;
	err_t e = mach_again(x->run, s->base, &hooks, NULL);
	if (x->failing != SYM_NONE)
		s->failing_since = ext_thread(x, x->failing)->program_insn;
	if (s->failing_since != x->last_call_since)
		s->last_call.n = 0;
	x->onward = x->steps = 0;
	return e;
}

static void keep_shared_events(struct ext *x)
{
	struct ext_survey *s = x->o->survey;
	uint64_t n = s->n;

	s->n = s->failing = 0;
	for (uint64_t i = 0; i < n; i++)
		if (share_touches(s->share, s->events[i].address, s->events[i].size))
			note_event(x, &s->events[i]);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* From now on events are of what the failing thread has touched, as far as that is known. */
static bool focus(struct ext *x)
{
	struct ext_survey *s = x->o->survey;

	if (!x->o->focus || x->failing == SYM_NONE)
		return false;
	for (uint64_t k = s->n > EXT_MAX_EVENTS ? s->n - EXT_MAX_EVENTS : 0; k < s->n; k++) {
		const struct ext_touch *e = &s->events[k % EXT_MAX_EVENTS];

		for (uint64_t w = e->address / 8; e->thread == x->failing && w <= (e->address + e->size - 1) / 8; w++)
			vec_push(&s->words, w);
	}
	if (s->words.n)
		qsort(s->words.v, s->words.n, sizeof *s->words.v, by_number);
	return s->focused = true;
}

bool ext_in_focus(const struct ext_survey *s, uint64_t address)
{
	uint64_t word = address / 8;

	return !s->focused || (s->words.n && bsearch(&word, s->words.v, s->words.n, sizeof word, by_number));
}

/* What threads only hand each other looks like events until they all have been seen. */
static err_t find_events(struct ext *x)
{
	struct ext_survey *s = x->o->survey;

	x->phase = "looking for shared events";
	s->events = xcalloc(EXT_MAX_EVENTS, sizeof *s->events);
	s->spins = spins_new(x->run);
	TRY(count_events(x));
	if (x->stopped)
		return NULL;
	bool spun = spins_settle(s->spins), focused = focus(x);
	enum share_handed handed = share_drop_handed(s->share);
	if (spun || focused || handed == SHARE_MISTAKEN || (handed && (s->n > EXT_MAX_EVENTS || s->computed.n))) {
		ext_reset_level(x);
		TRY(count_events(x));
	} else if (handed) {
		keep_shared_events(x);
	}
	share_settle(s->share);
	return NULL;
}

static err_t survey_from(struct ext *x, uint64_t base)
{
	struct ext_survey *s = x->o->survey;
	struct share *earlier = s->share;

	s->share = NULL;
	clear(s);
	s->base = x->base = base;
	s->onward = x->o->onward;
	s->share = x->share = share_new(x->images);
	/* Until this execution has seen the stretch, nothing is "since". */
	x->failing_since = UINT64_MAX;
	x->until = 0;
	x->phase = "looking for shared memory";
	err_t bad = share_watch(s->share, x->run, base, ext_onward_insns(x), on_stop, x);
	if (!bad)
		share_suspect(s->share, earlier);
	share_free(earlier);
	if (bad)
		return bad;
	if (share_count(s->share))
		TRY(find_events(x));
	else
		s->accesses = share_accesses(s->share);
	ext_reset_level(x);
	x->accessed = 0;
	s->done = !x->stopped;
	return x->stopped ? err_new(ERR_NOANSWER, "stopped while %s", x->phase) : NULL;
}

static uint64_t window_of(const struct ext_options *o)
{
	return o->window && o->window < EXT_MAX_EVENTS ? o->window : EXT_MAX_EVENTS;
}

/* Where the stretch for this window begins: one of more events than are ever kept is for where they lie thin. */
static uint64_t base_for(const struct ext *x)
{
	uint64_t events = x->o->window ? x->o->window : EXT_MAX_EVENTS, alone = mach_alone(x->run);
	uint64_t stretch = events < UINT64_MAX / STRETCH_PER_EVENT ? events * STRETCH_PER_EVENT : UINT64_MAX / 2;

	if (x->o->whole || mach_length(x->run) <= SHORT_RUN)
		return 0;
	if (x->o->middle)
		return mach_moment(x->run, mach_length(x->run) - x->o->middle->from + BEFORE_MIDDLE);
	if (stretch < SHORTEST_STRETCH)
		stretch = SHORTEST_STRETCH;
	return mach_moment(x->run, stretch + (alone <= LONGEST_ALONE ? alone : 0));
}

/* A window counted from the failing thread's last event reaches further back. */
static bool fits(const struct ext *x)
{
	const struct ext_survey *s = x->o->survey;
	uint64_t behind = x->o->tail && s->failing ? s->n - s->failing : 0;

	return s->done && s->onward == x->o->onward &&
	       (s->base <= base_for(x) || (!x->o->whole && s->n - behind >= window_of(x->o)));
}

err_t ext_survey(struct ext *x)
{
	const struct ext_survey *s = x->o->survey;

	if (x->o->middle)
		x->to = x->o->middle->to; /* so far it goes */
	if (!fits(x)) {
		uint64_t base = base_for(x);

		/* With what comes behind the record it is the same stretch. */
		TRY(survey_from(x, s->done && s->base < base ? s->base : base));
	}
	x->share = s->share;
	x->base = s->base;
	x->until = s->until;
	x->failing_since = s->failing_since;
	return NULL;
}

/* Counted from the `last`-th event back. */
static uint64_t window_start(const struct ext_survey *s, uint64_t window, uint64_t last)
{
	if (!window || window > EXT_MAX_EVENTS)
		window = EXT_MAX_EVENTS;
	if (s->n - last + window > EXT_MAX_EVENTS)
		last = s->n; /* no longer known */
	if (last <= window)
		return s->base;
	/* The oldest that is known may be the rest of an instruction. */
	return s->events[(last - window) % EXT_MAX_EVENTS].time + (s->n - (last - window) == EXT_MAX_EVENTS);
}

void ext_survey_window(struct ext *x)
{
	const struct ext_survey *s = x->o->survey;
	bool cut = x->o->tail && s->failing;

	if (x->o->middle) {
		x->from = x->o->middle->from;
		return;
	}
	x->from = window_start(s, x->o->window, cut ? s->failing : s->n);
	x->to = UINT64_MAX;
	if (cut && s->failing + x->o->tail < s->n && s->n - s->failing - x->o->tail < EXT_MAX_EVENTS)
		x->to = s->events[(s->failing + x->o->tail) % EXT_MAX_EVENTS].time;
}

/* A location lies in 8 aligned bytes, all of them shared: accesses are cut accordingly. */
static void add_locations(struct ext *x, const struct ext_touch *e)
{
	if (e->time < x->from)
		return;
	for (unsigned from = 0, n; from < e->size; from += n) {
		uint64_t at = e->address + from;
		bool shared = share_is_shared(x->share, at);

		for (n = 1; from + n < e->size && ((at + n) & 7) &&
			    share_is_shared(x->share, at + n) == shared;)
			n++;
		if (shared)
			ext_locations_add(x, at, n, e->only_writes);
	}
}

void ext_survey_locations(struct ext *x)
{
	const struct ext_survey *s = x->o->survey;

	for (uint64_t k = s->n > EXT_MAX_EVENTS ? s->n - EXT_MAX_EVENTS : 0; k < s->n; k++)
		add_locations(x, &s->events[k % EXT_MAX_EVENTS]);
	for (size_t i = 0; i < s->computed.n; i++)
		add_locations(x, &s->computed.v[i]);
	for (size_t i = 0; i < s->last_call.n; i++)
		add_locations(x, &s->last_call.v[i]);
	ext_locations_done(x);
	ext_locations_drop_librarys(x);
}

uint64_t ext_survey_reach(const struct ext_options *o, const bool *wanted, size_t nthreads,
			  uint32_t more, uint64_t limit)
{
	const struct ext_survey *s = o->survey;
	uint64_t last = o->tail && s->failing ? s->failing : s->n;
	uint64_t start = last > o->window ? last - o->window : 0, far = start;
	uint32_t *have = xcalloc(nthreads + 1, sizeof *have);
	size_t open = 0;

	for (size_t i = 0; i < nthreads; i++)
		open += wanted[i];
	for (uint64_t k = start; open && k-- > 0 && last - k <= limit && s->n - k <= EXT_MAX_EVENTS;) {
		uint32_t t = s->events[k % EXT_MAX_EVENTS].thread;

		if (t >= nthreads || !wanted[t] || have[t] == more)
			continue;
		open -= ++have[t] == more;
		far = k;
	}
	free(have);
	return last - far;
}
