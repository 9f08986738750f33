/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From what a hint asks for to places in code. Advice is given in source lines, so a region begins where
 * the statement of its first event does and ends behind that of its last one; it goes for every thread that comes there.
 */
#include "analyzer/fix/fix.h"

#include "analyzer/hunt/place.h"
#include "common/vec.h"

#include <string.h>

/* A region whose end is executed several times ends with its function. */
#define NEVER 1000000000u
#define MAX_DEPTH 256
/* Farther from where its module begins a variable is not believed to be of it. */
#define MOST_DATA (1ull << 30)
#define MOST_CODE (1ull << 32) /* of one module */
/* A lock of the program's own making outlives the functions that acquire it. */
#define FOR_EVER 1000000
#define MOST_TEST 96 /* bytes of code of a condition */

struct work {
	const struct sym_trace *t;
	struct img_set *images;
	struct fix *f;
};

/* A statement of the program and its copies, by run-time addresses in its module. */
struct spot {
	const char *module;
	uint64_t bias;
	struct fix_copies c;
};

static err_t spot_of_frame(struct work *w, const struct sym_frame *frame, struct spot *s)
{
	uint64_t pc = frame ? frame->pc : 0;
	struct img_module *m = pc ? img_module_at(w->images, pc) : NULL;

	if (!m)
		return err_new(ERR_NOANSWER, "where it is to be applied is not known");
	*s = (struct spot){ .module = img_module_name(m), .bias = img_module_bias(m) };
	if (strpbrk(s->module, " \n"))
		return err_new(ERR_NOANSWER, "the name of module '%s' has a blank in it", s->module);
	if (frame->file)
		fix_copies(w->images, frame->file, frame->line, pc, &s->c);
	if (!s->c.n)
		s->c = (struct fix_copies){ { pc }, { pc }, { pc }, 1 };
	return NULL;
}

static err_t spot_of(struct work *w, struct sched_ref r, struct spot *s)
{
	return spot_of_frame(w, dsp_place(w->t, order_event_at(w->t, r)), s);
}

static void points(struct work *w, const char *keyword, unsigned item, const struct spot *s, const uint64_t *pcs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pcs[i] - s->bias < MOST_CODE)
			fix_point(w->f, keyword, item, s->module, pcs[i] - s->bias);
}

/* The calls that an event is made in, outermost first, from its place on; each function that was really called once. */
static size_t calls_of(const struct work *w, struct sched_ref r, uint64_t pcs[MAX_DEPTH])
{
	const struct sym_event *e = order_event_at(w->t, r);
	const struct sym_frame *place = dsp_place(w->t, e);
	const struct sym_stack *k = place ? &w->t->stacks[e->stack] : NULL;
	size_t n = 0;

	for (uint32_t i = k ? k->n : 0; i-- > 0 && n < MAX_DEPTH && &k->frames[i] >= place;)
		if (!n || pcs[n - 1] != k->frames[i].pc)
			pcs[n++] = k->frames[i].pc;
	return n;
}

/* Is the code of this call the program's, whose returns the shim sees? (preload/control/module.c) */
static bool sees_return(const struct work *w, uint64_t pc)
{
	struct img_module *m = img_module_at(w->images, pc);
	const char *path = m ? img_module_path(m) : "/lib/", *name = dsp_basename(path);

	if (!strncmp(name, "libstdc++.", 10) || !strncmp(name, "libc++.", 7))
		return true;
	return strncmp(path, "/lib/", 5) && strncmp(path, "/lib64/", 7) && strncmp(path, "/usr/lib/", 9) &&
	       strncmp(path, "/usr/lib64/", 11) && *path == '/';
}

/* How many functions return before the one that both events are in does. */
static unsigned returns_between(const struct work *w, struct sched_ref first, struct sched_ref last)
{
	uint64_t a[MAX_DEPTH], b[MAX_DEPTH];
	size_t n = calls_of(w, first, a), k = calls_of(w, last, b), same = 0;
	unsigned up = 0;

	while (same + 1 < n && same + 1 < k && a[same] == b[same])
		same++;
	for (size_t i = same + 1; i < n; i++)
		up += sees_return(w, a[i]);
	return up;
}

/* Executions of the last event's place from the first event on. */
static unsigned executions(const struct work *w, struct sched_ref first, struct sched_ref last)
{
	const struct sym_thread *th = &w->t->threads[first.thread];
	uint64_t pc = th->events[last.index].pc;
	unsigned n = 0;

	for (uint32_t i = first.index; pc && i <= last.index; i++)
		n += th->events[i].pc == pc;
	return n > 1 ? NEVER : 1;
}

/* The end may be that of another thread, where this one did not come to it. */
static err_t hold(struct work *w, const struct dsp_step *s)
{
	bool own = s->first.thread == s->last.thread && s->first.index <= s->last.index;
	struct spot first, last;

	TRY(spot_of(w, s->first, &first));
	TRY(spot_of(w, s->last, &last));
	unsigned count = own ? executions(w, s->first, s->last) : 1;
	unsigned item = fix_region(w->f, 0, returns_between(w, s->first, s->last), count);
	points(w, "begin", item, &first, first.c.first, first.c.n);
	if (first.c.at[0] != first.c.first[0])
		points(w, "enter", item, &first, first.c.at, 1);
	points(w, "end", item, &last, last.c.last, last.c.n);
	return NULL;
}

/* The module whose variables this address is among, or NULL. */
static struct img_module *module_of_data(struct img_set *set, uint64_t address)
{
	struct img_module *const *all, *best = NULL;
	size_t n = img_modules(set, &all);

	if (!img_symbol(set, address, NULL))
		return NULL;
	for (size_t i = 0; i < n; i++) {
		uint64_t bias = img_module_bias(all[i]);

		if (bias <= address && address - bias < MOST_DATA && (!best || bias > img_module_bias(best)))
			best = all[i];
	}
	return best;
}

/* A lock of the program's own making is code that acquires and code that releases it. */
static err_t own_lock(struct work *w, uint32_t object)
{
	unsigned item = fix_region(w->f, 0, FOR_EVER, 1);
	uint64_t known[2] = { 0 };

	for (size_t i = 0; i < w->t->nthreads; i++)
		for (size_t k = 0; k < w->t->threads[i].nevents; k++) {
			const struct sym_event *e = &w->t->threads[i].events[k];
			bool acquires = order_acquires(e);
			struct spot s;

			if (e->op < SYM_LOCK || e->op > SYM_TRYRDLOCK || e->target != object || e->pc == known[acquires] ||
			    (!acquires && e->op != SYM_UNLOCK))
				continue;
			known[acquires] = e->pc;
			TRY(spot_of_frame(w, dsp_place(w->t, e), &s));
			points(w, acquires ? "begin" : "end", item, &s, acquires ? s.c.first : s.c.last, s.c.n);
		}
	return NULL;
}

/* A lock that is a variable has an address; of others it is known where they are acquired. */
static err_t lock(struct work *w, uint32_t object)
{
	const struct sym_object *o = &w->t->objects[object];
	struct img_module *m = module_of_data(w->images, o->address);
	uint64_t known = 0;

	if (o->home_made)
		return own_lock(w, object);
	if (o->kind == SYM_SEM)
		return NULL;
	if (m) {
		fix_point(w->f, "guard", 0, img_module_name(m), o->address - img_module_bias(m));
		return NULL;
	}
	for (size_t i = 0; i < w->t->nthreads; i++)
		for (size_t k = 0; k < w->t->threads[i].nevents; k++) {
			const struct sym_event *e = &w->t->threads[i].events[k];
			struct sym_frame call = { .pc = e->pc };
			struct spot s;

			if (!order_acquires(e) || e->target != object || e->pc == known || e->stack >= w->t->nstacks)
				continue;
			if (w->t->stacks[e->stack].n)
				call = w->t->stacks[e->stack].frames[0];
			err_t bad = spot_of_frame(w, &call, &s);
			known = e->pc;
			if (!bad)
				points(w, "taken", 0, &s, s.c.at, 1);
			err_free(bad);
		}
	return NULL;
}

/* How often the thread was at this event's place. */
static unsigned visits(const struct work *w, uint32_t thread, struct sched_ref r)
{
	const struct sym_event *e = order_event_at(w->t, r);
	unsigned n = 0;

	for (size_t i = 0; e->pc && i < w->t->threads[thread].nevents; i++) {
		const struct sym_event *x = &w->t->threads[thread].events[i];

		n += x->pc == e->pc && x->op == e->op;
	}
	return n;
}

static err_t order(struct work *w, const struct dsp_step *s)
{
	struct spot first, last;
	unsigned item = w->f->nitems++;
	/* What is done again and again is in order each time. */
	bool each = visits(w, s->last.thread, s->last) > 1 && visits(w, s->first.thread, s->first) > 1;

	TRY(spot_of(w, s->first, &first));
	TRY(spot_of(w, s->last, &last));
	strbuf_fmt(&w->f->points, "order %u %u\n", item, each);
	for (uint32_t i = 0; each && i < w->t->nthreads; i++)
		if (visits(w, i, s->first))
			strbuf_fmt(&w->f->points, "by %u %s\n", item, w->t->threads[i].id);
	points(w, "source", item, &first, first.c.last, first.c.n);
	points(w, "target", item, &last, last.c.first, last.c.n);
	return NULL;
}

/* The function that a thread began with. */
static const char *started_with(const struct sym_trace *t, uint32_t thread)
{
	const struct sym_thread *th = &t->threads[thread];

	for (size_t i = 0; i < th->nevents; i++) {
		const struct sym_stack *k = th->events[i].stack < t->nstacks ? &t->stacks[th->events[i].stack] : NULL;

		for (uint32_t f = k ? k->n : 0; f-- > 0;)
			if (!dsp_is_runtime(&k->frames[f]))
				return k->frames[f].function;
	}
	return "";
}

/* Does this thread do that? Of one that did nothing in the window it is believed when it has the same creator. */
static bool may_do(const struct sym_trace *t, uint32_t thread, uint32_t like, const char *does)
{
	const char *other = started_with(t, thread), *a = t->threads[thread].id, *b = t->threads[like].id;
	const char *x = strrchr(a, '.'), *y = strrchr(b, '.');

	if (*other)
		return !strcmp(other, does);
	return x && y && x - a == y - b && !memcmp(a, b, (size_t)(x - a));
}

/* Threads that do the same are joined alike. */
static err_t join(struct work *w, const struct dsp_step *s)
{
	const struct sym_trace *t = w->t;
	const char *does;
	struct spot last;

	TRY(spot_of(w, s->last, &last));
	points(w, "join", 0, &last, last.c.first, last.c.n);
	does = started_with(t, s->which);
	for (uint32_t i = 0; i < t->nthreads; i++)
		if (i == s->which || (*does && i != s->last.thread && may_do(t, i, s->which, does)))
			strbuf_fmt(&w->f->points, "thread %s\n", t->threads[i].id);
	return NULL;
}

/*
 * All that the statement of a test reads, also what the trace has no event of: every byte of its code may begin an
 * instruction, and the shim looks at those that do.
 */
static err_t recheck(struct work *w, struct sched_ref r)
{
	struct spot s;

	TRY(spot_of(w, r, &s));
	for (uint64_t pc = s.c.first[0]; pc <= s.c.last[0] && pc - s.c.first[0] < MOST_TEST; pc++)
		points(w, "check", 0, &s, &pc, 1);
	return NULL;
}

static err_t at(struct work *w, const char *keyword, struct sched_ref r)
{
	struct spot s;

	TRY(spot_of(w, r, &s));
	points(w, keyword, 0, &s, s.c.at, 1);
	return NULL;
}

/* "free", "operator delete(void*)": what is called to free. */
static bool frees(const struct sym_frame *f)
{
	static const char *const names[] = { "free", "cfree", "operator delete", "operator delete[]", "__libc_free" };

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		size_t n = strlen(names[i]);

		if (!strncmp(f->function, names[i], n) && (!f->function[n] || f->function[n] == '(' || f->function[n] == '@'))
			return true;
	}
	return false;
}

/* The call of it, wherever that is: the pointer is what it is called with. */
static err_t keep(struct work *w, uint32_t stack)
{
	const struct sym_stack *k = stack < w->t->nstacks ? &w->t->stacks[stack] : NULL;
	uint32_t i = 0;
	struct spot s;

	/* The first frame may already be the caller's. */
	while (k && i + 1 < k->n && frees(&k->frames[i]))
		i++;
	TRY(spot_of_frame(w, k && k->n ? &k->frames[i] : NULL, &s));
	points(w, "keep", 0, &s, s.c.at, 1);
	return NULL;
}

static err_t step(struct work *w, const struct dsp_step *s)
{
	switch (s->kind) {
	case DSP_STEP_HOLD: return hold(w, s);
	case DSP_STEP_LOCK: return lock(w, s->which);
	case DSP_STEP_ORDER: return order(w, s);
	case DSP_STEP_JOIN: return join(w, s);
	case DSP_STEP_FENCE: return at(w, "fence", s->first);
	case DSP_STEP_WAKE_ALL: return at(w, "wake-all", s->first);
	case DSP_STEP_RECHECK: return recheck(w, s->first);
	case DSP_STEP_KEEP: return keep(w, s->which);
	}
	return NULL;
}

err_t fix_of_hint(const struct sym_trace *t, struct img_set *images, const struct dsp_hint *h, struct fix *out)
{
	struct work w = { t, images, out };
	err_t e = NULL;

	*out = (struct fix){ 0 };
	if (!h->nsteps)
		return err_new(ERR_NOANSWER, "this advice cannot be applied from outside");
	for (unsigned i = 0; i < h->nsteps && !e; i++)
		e = step(&w, &h->step[i]);
	if (e)
		fix_free(out);
	return e;
}
