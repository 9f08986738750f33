/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exploring against brute force: random small programs with locks, semaphores and branches. MCR must come
 * to exactly the final states that there are; of the patterns that some interleaving shows PCR must cover each,
 * and what it calls impossible none may show. The interpreter and the reading of patterns here share
 * nothing with the room but its model.
 */
#include "analyzer/explore/drive.h"
#include "tests/lib/check.h"

#include <string.h>

#define MAX_INSNS 12
#define MAX_THREADS 3
#define MAX_VARS 3
#define MAX_LOCKS 2
#define REGS 3

enum op { RD, WR, ADD, LOCK, UNLOCK, POST, WAIT, SKIP };

struct insn {
	enum op op;
	int var, reg, value;
};

struct program {
	int nthreads, n[MAX_THREADS], vars, events;
	struct insn code[MAX_THREADS][MAX_INSNS];
};

struct state {
	int8_t pc[MAX_THREADS], regs[MAX_THREADS][REGS], vars[MAX_VARS], owner[MAX_LOCKS], sem;
};

static uint64_t seed;

static unsigned rnd(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 11) % n;
}

static void make(struct program *p, int nthreads, int length, bool locked)
{
	memset(p, 0, sizeof *p);
	p->nthreads = nthreads;
	p->vars = 1 + (int)rnd(MAX_VARS);
	for (int t = 0; t < nthreads; t++) {
		int held = -1, n = 0;

		if (locked)
			p->code[t][n++] = (struct insn){ .op = LOCK, .var = held = (int)rnd(MAX_LOCKS) };
		while (n < length - 1) {
			struct insn *i = &p->code[t][n++];
			unsigned what = rnd(12);

			*i = (struct insn){ .var = (int)rnd((unsigned)p->vars), .reg = (int)rnd(REGS), .value = (int)rnd(3) };
			if (what < 4)
				i->op = RD;
			else if (what < 7)
				i->op = WR;
			else if (what < 8)
				i->op = ADD;
			else if (what == 8 && held < 0)
				*i = (struct insn){ .op = LOCK, .var = held = (int)rnd(MAX_LOCKS) };
			else if (what == 9 && held >= 0)
				*i = (struct insn){ .op = UNLOCK, .var = held }, held = -1;
			else if (what == 10)
				i->op = rnd(4) ? POST : WAIT;
			else
				i->op = SKIP, i->value = (int)rnd(2), i->var = 0;
		}
		if (held >= 0)
			p->code[t][n++] = (struct insn){ .op = UNLOCK, .var = held };
		p->n[t] = n;
	}
	/* A branch leads over the next instruction, and not over a lock. */
	for (int t = 0; t < nthreads; t++)
		for (int i = 0; i < p->n[t]; i++) {
			struct insn *s = &p->code[t][i];

			if (s->op == SKIP && (i + 1 >= p->n[t] || p->code[t][i + 1].op >= LOCK))
				s->op = RD;
			p->events += s->op != SKIP;
		}
}

static bool can(const struct program *p, const struct state *s, int t)
{
	const struct insn *i = &p->code[t][s->pc[t]];

	return s->pc[t] < p->n[t] && !(i->op == LOCK && s->owner[i->var]) && !(i->op == WAIT && s->sem <= 0);
}

/* One instruction; an event of it goes into trace, when there is one. */
static void step(const struct program *p, struct state *s, int t, struct xpl_trace *trace)
{
	const struct insn *i = &p->code[t][s->pc[t]];
	struct xpl_event e = { .thread = (uint32_t)t, .target = (uint32_t)i->var, .mutex = XPL_NONE, .peer = XPL_NONE,
			       .result = 1, .program = true, .pc = (uint64_t)(t * 100 + s->pc[t] + 1), .nth = 1,
			       .mask = 255 };
	bool event = true;

	e.place = e.pc;
	s->pc[t]++;
	switch (i->op) {
	case RD:
		s->regs[t][i->reg] = s->vars[i->var];
		e.op = XPL_READ;
		e.value = (uint8_t)s->vars[i->var];
		break;
	case WR:
		s->vars[i->var] = (int8_t)((s->regs[t][i->reg] + i->value) & 7);
		e.op = XPL_WRITE;
		e.wvalue = (uint8_t)s->vars[i->var];
		break;
	case ADD:
		e.op = XPL_RMW;
		e.value = (uint8_t)s->vars[i->var];
		s->vars[i->var] = (int8_t)((s->vars[i->var] + 1) & 7);
		e.wvalue = (uint8_t)s->vars[i->var];
		break;
	case LOCK:
		s->owner[i->var] = 1;
		e.op = XPL_LOCK;
		break;
	case UNLOCK:
		s->owner[i->var] = 0;
		e.op = XPL_UNLOCK;
		break;
	case POST:
	case WAIT:
		s->sem = (int8_t)(s->sem + (i->op == POST ? 1 : -1));
		e.op = i->op == POST ? XPL_SEM_POST : XPL_SEM_WAIT;
		e.target = MAX_LOCKS;
		break;
	default:
		event = false;
		if (s->regs[t][i->reg] == i->value)
			s->pc[t]++;
	}
	if (event && trace)
		xpl_trace_add(trace, &e);
}

/* ---- sets ---- */

struct set {
	uint64_t *v;
	size_t n, cap;
};

static bool set_add(struct set *s, uint64_t h)
{
	h |= !h;
	if (2 * (s->n + 1) > s->cap) {
		struct set old = *s;

		*s = (struct set){ xcalloc(old.cap ? 2 * old.cap : 256, sizeof *s->v), 0, old.cap ? 2 * old.cap : 256 };
		for (size_t i = 0; i < old.cap; i++)
			if (old.v[i])
				set_add(s, old.v[i]);
		free(old.v);
	}
	size_t k = h & (s->cap - 1);
	while (s->v[k] && s->v[k] != h)
		k = (k + 1) & (s->cap - 1);
	if (s->v[k])
		return false;
	s->v[k] = h;
	s->n++;
	return true;
}

static bool set_has(const struct set *s, uint64_t h)
{
	h |= !h;
	size_t k = h & (s->cap - 1);
	while (s->cap && s->v[k] && s->v[k] != h)
		k = (k + 1) & (s->cap - 1);
	return s->cap && s->v[k];
}

static uint64_t hash(const struct state *s)
{
	const uint8_t *b = (const uint8_t *)s;
	uint64_t h = 1469598103934665603ull;

	for (size_t i = 0; i < sizeof *s; i++)
		h = (h ^ b[i]) * 1099511628211ull;
	return h ^ h >> 29;
}

/* ---- all states, and all interleavings ---- */

static void all_states(const struct program *p, struct state s, struct set *seen, struct set *final)
{
	bool any = false;

	if (!set_add(seen, hash(&s)))
		return;
	for (int t = 0; t < p->nthreads; t++)
		if (can(p, &s, t)) {
			struct state n = s;

			any = true;
			step(p, &n, t, NULL);
			all_states(p, n, seen, final);
		}
	if (!any)
		set_add(final, hash(&s));
}

static bool steps_are(const struct xpl_event *const *e, const struct xpl_kind *k, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (!(k->steps[i] == 'R' ? xpl_reads(e[i]) : xpl_writes(e[i])))
			return false;
		for (unsigned j = 0; j < i; j++)
			if ((k->threads[i] == k->threads[j]) != (e[i]->thread == e[j]->thread) ||
			    (k->vars[i] == k->vars[j]) != (e[i]->target == e[j]->target))
				return false;
	}
	return true;
}

/* Does the order show it? Read from the definition. */
static bool shown(const struct xpl_trace *t, const uint32_t *at, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = i + 1; j < n; j++) {
			const struct xpl_event *a = &t->events.v[at[i]], *b = &t->events.v[at[j]];

			for (uint32_t k = at[i] + 1; k < at[j]; k++) {
				const struct xpl_event *e = &t->events.v[k];
				bool is = false;

				for (unsigned m = 0; m < n; m++)
					is |= at[m] == k;
				if (is || !xpl_is_access(e))
					continue;
				if (a->target == b->target && xpl_writes(e) && e->target == a->target)
					return false;
				if (a->thread == b->thread && e->thread == a->thread &&
				    (e->target == a->target || e->target == b->target))
					return false;
			}
		}
	return true;
}

/* Patterns of all lengths whose last step is the trace's last event. */
static void patterns_of_last(const struct xpl_trace *t, struct set *out)
{
	uint32_t at[4] = { 0 }, last = (uint32_t)t->events.n - 1;

	if (!t->events.n || !xpl_is_access(&t->events.v[last]))
		return;
	for (unsigned kind = 1; kind <= XPL_KINDS; kind++) {
		unsigned n = (unsigned)strlen(xpl_kinds[kind].steps);

		at[n - 1] = last;
		for (at[0] = 0; at[0] < last; at[0]++)
			for (at[1] = n > 2 ? at[0] + 1 : last; at[1] < last + (n == 2); at[1]++)
				for (at[2] = n > 3 ? at[1] + 1 : last; at[2] < last + (n < 4); at[2]++) {
					const struct xpl_event *e[4];
					uint64_t key = xpl_mix(0, kind);
					bool ok = true;

					for (unsigned i = 0; i < n; i++) {
						e[i] = &t->events.v[at[i]];
						ok &= xpl_is_access(e[i]);
						key = xpl_mix(key, e[i]->pc);
					}
					if (ok && steps_are(e, &xpl_kinds[kind], n) && shown(t, at, n))
						set_add(out, key);
				}
	}
}

static struct xpl_trace *new_trace(const struct program *p)
{
	struct xpl_trace *t = xpl_trace_new((uint32_t)p->nthreads);

	for (int i = 0; i < p->nthreads; i++)
		t->threads[i].from_start = true;
	for (int v = 0; v < p->vars; v++)
		vec_push(&t->vars, (struct xpl_var){ .word = 8 * (uint64_t)v, .mask = 255 });
	for (int l = 0; l <= MAX_LOCKS; l++)
		vec_push(&t->objects, (struct xpl_object){ .kind = l < MAX_LOCKS ? XPL_MUTEX : XPL_SEM,
							   .address = (uint64_t)l, .owner = XPL_NONE });
	return t;
}

/* Who has executed all it has ends. */
static void end_threads(const struct program *p, const struct state *s, struct xpl_trace *t)
{
	for (int i = 0; i < p->nthreads; i++)
		if (s->pc[i] >= p->n[i]) {
			struct xpl_event e = { .op = XPL_EXIT, .thread = (uint32_t)i, .target = XPL_NONE,
					       .mutex = XPL_NONE, .peer = XPL_NONE, .result = 1 };

			xpl_trace_add(t, &e);
			t->threads[i].ended = true;
		}
}

/* Behind what the trace holds; an event's patterns are read once for all orders that begin like that. */
static bool all_orders(const struct program *p, const struct state *s, struct xpl_trace *trace, struct set *out,
		       unsigned *left)
{
	bool any = false;

	for (int t = 0; t < p->nthreads; t++)
		if (can(p, s, t)) {
			struct state next = *s;
			size_t before = trace->events.n;

			any = true;
			step(p, &next, t, trace);
			bool event = trace->events.n > before;
			if (event)
				patterns_of_last(trace, out);
			bool ok = all_orders(p, &next, trace, out, left);
			if (event) {
				trace->events.n--;
				trace->threads[t].events.n--;
			}
			if (!ok)
				return false;
		}
	return any || (*left)-- > 1;
}

/* ---- the executor ---- */

struct running {
	const struct program *p;
	struct set final;
};

static bool has_passed(const struct xpl_trace *t, const struct mach_step *s)
{
	for (size_t i = 0; i < t->events.n; i++)
		if (t->events.v[i].thread == s->thread && t->events.v[i].place == s->place)
			return true;
	return false;
}

static err_t run(void *arg, const struct xpl_order *order, struct xpl_seen *out)
{
	const struct mach_step *steps = order->steps;
	size_t n = order->n;
	struct running *r = arg;
	struct state s = { 0 };

	*out = (struct xpl_seen){ .trace = new_trace(r->p) };
	for (size_t i = 0; i < n; i++) {
		int t = (int)steps[i].thread;

		while (can(r->p, &s, t) && !has_passed(out->trace, &steps[i]))
			step(r->p, &s, t, out->trace);
		if (!has_passed(out->trace, &steps[i]))
			break;
		out->tried.steps++;
	}
	for (bool any = true; any;) {
		any = false;
		for (int t = 0; t < r->p->nthreads; t++)
			for (; can(r->p, &s, t); any = true)
				step(r->p, &s, t, out->trace);
	}
	end_threads(r->p, &s, out->trace);
	for (int t = 0; t < r->p->nthreads; t++)
		if (s.pc[t] < r->p->n[t]) {
			struct state later = s;
			struct xpl_trace *one = new_trace(r->p);

			step(r->p, &later, t, one);
			xpl_trace_pending(out->trace, &one->events.v[0]);
			xpl_trace_free(one);
		}
	out->tried.end = MACH_TRIED_EXIT;
	set_add(&r->final, hash(&s));
	return NULL;
}

static struct set explore(const struct program *p, enum xpl_strategy strategy, uint64_t most, struct xpl_drive *d)
{
	struct running r = { .p = p };
	const struct xpl_executor executor = { .arg = &r, .run = run };
	const struct xpl_drive_options o = { .strategy = strategy, .max_schedules = most, .keep_going = true };
	struct xpl_seen first;

	xpl_drive_new(d, &o, &executor);
	run(&r, &(struct xpl_order){ 0 }, &first);
	err_t e = xpl_drive_go(d, first.trace);
	if (e)
		err_free(e);
	return r.final;
}

static bool same_sets(const struct set *a, const struct set *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->cap; i++)
		if (a->v[i] && !set_has(b, a->v[i]))
			return false;
	return true;
}

#define PROGRAMS 1000
#define MOST_EXECUTIONS 300
#define PATTERN_PROGRAMS 1000
#define MOST_ORDERS 3000
#define CORE_PROGRAMS 1000

static void final_states(void)
{
	unsigned wrong = 0, open = 0, most = 0, done = 0, large = 0;
	uint64_t executed = 0, events = 0;

	for (unsigned i = 0; done < PROGRAMS; i++) {
		struct program p;
		struct set seen = { 0 }, want = { 0 }, got;
		struct xpl_drive d;
		struct state s = { 0 };

		seed = 77 + i * 1000003ull;
		make(&p, 2 + (int)(i % 2), i % 2 ? 4 + (int)rnd(5) : 5 + (int)rnd(6), false);
		all_states(&p, s, &seen, &want);
		got = explore(&p, XPL_MCR, MOST_EXECUTIONS, &d);
		if (d.over) {
			large++;
			goto next;
		}
		done++;
		if (!same_sets(&want, &got) && ++wrong < 4)
			printf("  program %u: %zu final states, %zu found\n", i, want.n, got.n);
		open += !d.exhausted;
		executed += d.schedules;
		events += (uint64_t)p.events;
		most = (unsigned)p.events > most ? (unsigned)p.events : most;
next:
		xpl_drive_free(&d);
		free(seen.v);
		free(want.v);
		free(got.v);
	}
	printf("  %u programs, up to %u events, %llu executions; %u others have too many outcomes\n", done, most, (unsigned long long)executed, large);
	CHECK(large < PROGRAMS / 2, "most programs can be explored to the end");
	CHECK(!wrong, "mcr comes to exactly the final states that brute force finds");
	CHECK(!open, "and says that nothing is left");
	CHECK(executed > PROGRAMS, "the programs have more than one outcome");
}

static void patterns(void)
{
	unsigned done = 0, absent = 0, invented = 0, impossible = 0, missed = 0, open = 0;
	uint64_t covered = 0, proved = 0;

	for (unsigned i = 0; done < PATTERN_PROGRAMS; i++) {
		struct program p;
		struct set want = { 0 }, got;
		struct xpl_drive d;
		struct state s = { 0 };
		unsigned left = MOST_ORDERS;

		seed = 991 + i * 7777777ull;
		make(&p, 2 + (int)(i % 3 == 0), i % 3 ? 6 + (int)rnd(2) : 4, i & 1);
		struct xpl_trace *none = new_trace(&p);
		bool all = all_orders(&p, &s, none, &want, &left);
		xpl_trace_free(none);
		if (!all) {
			free(want.v);
			continue;
		}
		done++;
		got = explore(&p, XPL_PCR, 0, &d);
		open += !d.exhausted;
		for (size_t k = 0; k < d.known.n; k++) {
			bool is = set_has(&want, d.known.v[k].key);

			covered += d.known.v[k].status == XPL_COVERED;
			proved += d.known.v[k].status == XPL_INFEASIBLE;
			invented += d.known.v[k].status == XPL_COVERED && !is;
			impossible += d.known.v[k].status == XPL_INFEASIBLE && is;
			open += d.known.v[k].status == XPL_OPEN;
		}
		for (size_t k = 0; k < want.cap; k++)
			if (want.v[k]) {
				bool is = false;

				for (size_t m = 0; m < d.known.n && !is; m++)
					is = d.known.v[m].key == want.v[k] && d.known.v[m].status == XPL_COVERED;
				missed += !is;
			}
		absent += want.n == 0;
		xpl_drive_free(&d);
		free(want.v);
		free(got.v);
	}
	printf("  %u programs, %llu patterns covered, %llu proved impossible\n", done, (unsigned long long)covered,
	       (unsigned long long)proved);
	CHECK(!impossible, "what pcr calls impossible no interleaving shows");
	CHECK(!invented, "what it calls covered some interleaving shows");
	CHECK(!missed, "and it covers all that some interleaving shows");
	CHECK(!open, "nothing is left open");
	CHECK(proved > 100 && covered > 1000, "there was something of either kind");
	CHECK(absent < done / 2, "most programs have patterns");
}

/* ---- cores ---- */

struct coring {
	const struct xpl_trace *t;
	struct xpl_cores cores;
	uint64_t searched, discarded, wrong, by_other;
};

static bool with_cores(void *arg, const struct xpl_pattern *p)
{
	struct coring *c = arg;
	const struct xpl_core *core = xpl_cores_find(&c->cores, c->t, 0, p->steps, p->n);
	struct xpl_path path = { 0 };
	enum xpl_found f = xpl_search_pattern(c->t, p->steps, p->n, 1u << 20, &path);

	c->searched++;
	c->discarded += core != NULL;
	c->by_other += core && memcmp(core->steps, p->steps, core->n * sizeof *core->steps);
	c->wrong += core && f != XPL_IMPOSSIBLE;
	if (!core && f == XPL_IMPOSSIBLE)
		xpl_cores_add(&c->cores, c->t, 0, p->steps, p->n, &path.obstacles, 0, 0);
	xpl_path_free(&path);
	return false;
}

/* Of every pattern in one trace: what a core discards a search of its own finds impossible as well. */
static void cores(void)
{
	struct coring all = { 0 };

	for (unsigned i = 0; i < CORE_PROGRAMS; i++) {
		struct program p;
		struct running r = { .p = &p };
		struct xpl_seen first;
		uint64_t filtered[XPL_RULES] = { 0 };

		seed = 4242 + i * 999983ull;
		make(&p, 2 + (int)(i % 2), i % 2 ? 6 + (int)rnd(4) : 8 + (int)rnd(5), i & 2);
		run(&r, &(struct xpl_order){ 0 }, &first);
		all.t = first.trace;
		xpl_patterns(first.trace, with_cores, &all, filtered);
		xpl_cores_free(&all.cores);
		xpl_seen_free(&first);
		free(r.final.v);
	}
	printf("  %llu patterns, %llu discarded by a core (%llu by one that is not their beginning), %llu of them possible\n",
	       (unsigned long long)all.searched, (unsigned long long)all.discarded, (unsigned long long)all.by_other,
	       (unsigned long long)all.wrong);
	CHECK(!all.wrong, "what a core discards no order shows");
	CHECK(all.discarded > 1000 && all.by_other > 100, "cores discard patterns, not only those that begin alike");
}

/* ---- the filter rules ---- */

static bool tell_nothing(void *arg, const struct xpl_pattern *p)
{
	uint64_t *told = arg;

	/* Of an update several kinds are told; it is one candidate. */
	told[0]++;
	told[1] += p->rule == XPL_RULE_NONE || p->rule == XPL_RULE_REDUNDANT;
	return false;
}

static bool conflicting(const struct xpl_event *a, const struct xpl_event *b)
{
	return xpl_is_access(a) && xpl_is_access(b) && a->target == b->target && a->thread != b->thread &&
	       (xpl_writes(a) || xpl_writes(b));
}

/* Read from algorithm 3 and table 2, for patterns of length 2 and 3: which rule is the first against each candidate. */
static void count_by_rule(const struct xpl_trace *t, uint64_t by_rule[XPL_RULES])
{
	const struct xpl_event *e = t->events.v;
	size_t n = t->events.n;

	for (size_t a = 0; a < n; a++)
		for (size_t b = 0; b < n; b++)
			for (size_t c = 0; conflicting(&e[a], &e[b]) && c < n; c++) {
				bool between = false;

				if (c == a || e[c].thread != e[a].thread || !conflicting(&e[b], &e[c]))
					continue;
				for (size_t i = 0; i < n; i++)
					between |= xpl_is_access(&e[i]) && e[i].thread == e[a].thread &&
						   e[i].target == e[a].target && e[i].index > e[a].index && e[i].index < e[c].index;
				bool ab = xpl_writes(&e[a]) && xpl_reads(&e[b]) ? e[a].wvalue != e[b].value : a > b;
				bool bc = xpl_writes(&e[b]) && xpl_reads(&e[c]) ? e[b].wvalue != e[c].value : b > c;

				if (e[c].index < e[a].index)
					by_rule[XPL_RULE_ORDER]++;
				else if (between)
					by_rule[ab || bc ? XPL_RULE_INTERRUPTED : XPL_RULE_OLD_STATE]++;
			}
}

static void rules(void)
{
	uint64_t order = 0, interrupted = 0, all = 0;
	unsigned wrong = 0;

	for (unsigned i = 0; i < CORE_PROGRAMS; i++) {
		struct program p;
		struct running r = { .p = &p };
		struct xpl_seen first;
		uint64_t filtered[XPL_RULES] = { 0 }, want[XPL_RULES] = { 0 }, told[2] = { 0 };

		seed = 31337 + i * 7919ull;
		make(&p, 2 + (int)(i % 2), 6 + (int)rnd(5), i & 2);
		/* One variable: no patterns of length 4, whose counts would be added. */
		for (int t = 0; t < p.nthreads; t++)
			for (int k = 0; k < p.n[t]; k++)
				if (p.code[t][k].op <= ADD)
					p.code[t][k].var = 0;
		run(&r, &(struct xpl_order){ 0 }, &first);
		xpl_patterns(first.trace, tell_nothing, told, filtered);
		count_by_rule(first.trace, want);
		wrong += filtered[XPL_RULE_ORDER] != want[XPL_RULE_ORDER] ||
			 filtered[XPL_RULE_INTERRUPTED] != want[XPL_RULE_INTERRUPTED] ||
			 filtered[XPL_RULE_OLD_STATE] < want[XPL_RULE_OLD_STATE];
		wrong += told[0] != told[1] + filtered[XPL_RULE_COVERED] + filtered[XPL_RULE_OLD_STATE] - want[XPL_RULE_OLD_STATE];
		order += want[XPL_RULE_ORDER];
		interrupted += want[XPL_RULE_INTERRUPTED];
		all += told[0];
		xpl_seen_free(&first);
		free(r.final.v);
	}
	CHECK(!wrong, "each candidate is counted by the first rule against it");
	CHECK(order > 1000 && interrupted > 1000 && all > 1000, "there are candidates of each sort");
}

int main(void)
{
	rules();
	final_states();
	patterns();
	cores();
	CHECK_END();
}
