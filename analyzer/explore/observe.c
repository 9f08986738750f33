/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Watching an execution: everything that happens is noted; what is shared is known only at its end. */
#include "analyzer/explore/observe_internal.h"

#include "analyzer/symtrace/extract_level.h"

#include <string.h>

struct counter *xpl_counter_at(struct counters *c, uint32_t thread, uint64_t place, uint64_t inside)
{
	if (2 * (c->n + 1) > c->cap) {
		struct counters old = *c;

		c->cap = old.cap ? 2 * old.cap : 1024;
		c->v = xcalloc(c->cap, sizeof *c->v);
		c->n = 0;
		for (size_t i = 0; i < old.cap; i++)
			if (old.v[i].place)
				*xpl_counter_at(c, old.v[i].thread, old.v[i].place, old.v[i].inside) = old.v[i];
		free(old.v);
	}
	size_t i = (size_t)xpl_mix(xpl_mix(place, thread), inside) & (c->cap - 1);
	while (c->v[i].place && (c->v[i].place != place || c->v[i].thread != thread || c->v[i].inside != inside))
		i = (i + 1) & (c->cap - 1);
	if (!c->v[i].place) {
		c->v[i] = (struct counter){ .place = place, .inside = inside, .thread = thread, .insn = UINT64_MAX };
		c->n++;
	}
	return &c->v[i];
}

static uint64_t count_up(struct counters *c, uint32_t thread, uint64_t place, uint64_t inside, uint64_t insn)
{
	struct counter *k = xpl_counter_at(c, thread, place, inside);

	k->n += k->insn != insn;
	k->insn = insn;
	return k->n;
}

/* ---- noting ---- */

/* The same place in the first run; modules lie elsewhere in each. */
static uint64_t in_terms(struct observer *o, uint64_t pc)
{
	const struct img_module *mine = o->terms && pc ? img_module_at(o->images, pc) : NULL;
	struct img_module *const *all;

	if (!mine || mine == o->moved)
		return mine ? pc + o->moved_by : pc;
	o->moved = mine;
	o->moved_by = 0;
	for (size_t i = 0, n = img_modules(o->terms->images, &all); i < n; i++)
		if (!strcmp(img_module_path(all[i]), img_module_path(mine)))
			o->moved_by = img_module_bias(all[i]) - img_module_bias(mine);
	return pc + o->moved_by;
}

static uint32_t thread_in_terms(const struct observer *o, uint32_t thread)
{
	return o->terms && thread < mach_thread_count(o->run) ? o->terms->threads[thread] : thread;
}

static void note(struct observer *o, const struct raw *r)
{
	if (o->raws.n >= OBS_MAX_RAW && !o->full)
		obs_make_room(o);
	if (o->raws.n < OBS_MAX_RAW)
		vec_push(&o->raws, *r);
}

static void on_access(void *arg, const struct mach_access *a)
{
	struct observer *o = arg;
	bool program = !(a->flags & MACH_KERNEL) && level_is_program(o->level, a->thread, a->pc);
	uint32_t thread = thread_in_terms(o, a->thread);

	if (thread == XPL_NONE)
		return;
	uint64_t n = count_up(&o->counts, thread, a->pc, o->inside[thread], a->insn);

	if (!program && !(a->flags & MACH_WRITE))
		return;
	note(o, &(struct raw){ .kind = RAW_ACCESS, .size = (uint8_t)a->size, .flags = (uint8_t)a->flags,
			       .program = program, .thread = thread, .pc = program ? in_terms(o, a->pc) : a->pc,
			       .place_nth = n, .inside = o->inside[thread], .address = a->address, .value = a->value });
}

static void on_sync(void *arg, uint32_t thread, const struct trc_sync *s)
{
	struct observer *o = arg;
	uint64_t site = in_terms(o, s->site), place = mach_sync_place(s->rec.flags, site);

	thread = thread_in_terms(o, thread);
	if (thread == XPL_NONE)
		return;
	uint64_t n = ++xpl_counter_at(&o->counts, thread, place, 0)->n;

	note(o, &(struct raw){ .kind = RAW_SYNC, .thread = thread, .pc = site, .place_nth = n,
			       .object = s->object, .mutex = s->value, .op_at = s->rec.flags,
			       .peer = thread_in_terms(o, s->thread), .result = s->result });
	o->inside[thread] = mach_sync_inside(s->rec.flags, site);
}

static void on_born(void *arg, uint32_t thread, uint32_t parent)
{
	struct observer *o = arg;

	thread = thread_in_terms(o, thread);
	parent = thread_in_terms(o, parent);
	if (thread != XPL_NONE && parent != XPL_NONE)
		note(o, &(struct raw){ .kind = RAW_BORN, .thread = parent, .peer = thread });
}

static void on_ended(void *arg, uint32_t thread)
{
	thread = thread_in_terms(arg, thread);
	if (thread != XPL_NONE)
		note(arg, &(struct raw){ .kind = RAW_ENDED, .thread = thread });
}

static void on_output(void *arg, int fd, const void *bytes, size_t n)
{
	struct observer *o = arg;
	size_t room = OBS_MAX_OUTPUT - o->seen->output_len;

	(void)fd;
	o->seen->output_full |= n > room;
	n = n < room ? n : room;
	o->seen->output = xrealloc(o->seen->output, o->seen->output_len + n + 1);
	memcpy(o->seen->output + o->seen->output_len, bytes, n);
	o->seen->output_len += n;
	o->seen->output[o->seen->output_len] = 0;
}

/* What comes behind that would not be looked at. */
static bool is_full(void *arg)
{
	return ((const struct observer *)arg)->full;
}

static expr_id hook_access(void *arg, const struct mach_access *a, expr_id value)
{
	(void)value;
	on_access(arg, a);
	return EXPR_NONE;
}

/* ---- before the first thread ---- */

static expr_id prelude_access(void *arg, const struct mach_access *a, expr_id value)
{
	struct xpl_prelude *p = arg;

	(void)value;
	if (!p->found)
		count_up(&p->counts, a->thread, a->pc, 0, a->insn);
	return EXPR_NONE;
}

static struct initial *initial_at(struct xpl_prelude *p, uint64_t address, enum xpl_object_kind kind)
{
	for (size_t i = 0; i < p->initial.n; i++)
		if (p->initial.v[i].address == address && p->initial.v[i].kind == kind)
			return &p->initial.v[i];
	vec_push(&p->initial, (struct initial){ .address = address, .kind = kind });
	return &p->initial.v[p->initial.n - 1];
}

static void note_initial(struct xpl_prelude *p, const struct trc_sync *s)
{
	if (TRC_SYNC_AT(s->rec.flags) != TRC_AT_DONE || s->result)
		return;
	switch (TRC_SYNC_OP(s->rec.flags)) {
	case TRC_OP_MUTEX_INIT:
		initial_at(p, s->object, XPL_MUTEX)->recursive = s->value == 1;
		break;
	case TRC_OP_SEM_INIT:
	case TRC_OP_SEM_OPEN:
		initial_at(p, s->object, XPL_SEM)->count = (int64_t)s->value;
		break;
	case TRC_OP_SEM_POST:
		initial_at(p, s->object, XPL_SEM)->count++;
		break;
	case TRC_OP_SEM_WAIT:
	case TRC_OP_SEM_TIMEDWAIT:
	case TRC_OP_SEM_TRYWAIT:
		initial_at(p, s->object, XPL_SEM)->count--;
		break;
	case TRC_OP_BARRIER_INIT:
		initial_at(p, s->object, XPL_BARRIER)->count = (int64_t)s->value;
		break;
	case TRC_OP_ONCE:
		initial_at(p, s->object, XPL_ONCE)->count = 2;
		break;
	default:
		break;
	}
}

static void prelude_sync(void *arg, uint32_t thread, const struct trc_sync *s)
{
	struct xpl_prelude *p = arg;

	if (p->found)
		return;
	if (TRC_SYNC_OP(s->rec.flags) == TRC_OP_CREATE && TRC_SYNC_AT(s->rec.flags) == TRC_AT_BEGIN) {
		p->found = true;
		p->from = mach_time(p->run);
		return;
	}
	xpl_counter_at(&p->counts, thread, mach_sync_place(s->rec.flags, s->site), 0)->n++;
	note_initial(p, s);
}

static bool prelude_stop(void *arg)
{
	return ((struct xpl_prelude *)arg)->found;
}

err_t xpl_prelude_find(struct mach_run *run, struct img_set *images, struct xpl_prelude **out)
{
	struct xpl_prelude *p = xcalloc(1, sizeof *p);
	struct mach_hooks hooks = { .arg = p, .access = prelude_access, .sync = prelude_sync,
				    .stop = prelude_stop, .symbols_from = UINT64_MAX };

	(void)images;
	p->run = run;
	err_t e = mach_again(run, 0, &hooks, NULL);
	if (!e && !p->found)
		e = err_new(ERR_NOANSWER, "the run made no second thread: there is only one order");
	if (e) {
		xpl_prelude_free(p);
		return e;
	}
	*out = p;
	return mach_try_from(run, p->from);
}

void xpl_prelude_free(struct xpl_prelude *p)
{
	if (!p)
		return;
	free(p->counts.v);
	vec_free(&p->initial);
	free(p);
}

uint64_t xpl_prelude_count(const struct xpl_prelude *p, uint32_t thread, uint64_t pc)
{
	struct counters *c = (struct counters *)&p->counts; /* an entry more is no change */

	return xpl_counter_at(c, thread, pc, 0)->n;
}

/* ---- outside ---- */

static void observer_free(struct observer *o)
{
	level_free(o->level);
	free(o->counts.v);
	free(o->inside);
	vec_free(&o->raws);
	free(o->dropped.v);
}

static err_t observe(struct mach_run *run, struct img_set *images, const struct xpl_prelude *p, struct mach_try try,
		     const struct xpl_event *expect, struct xpl_seen *out)
{
	struct observer o = { .run = run, .level = level_new(images), .prelude = p, .seen = out, .expect = expect,
			      .nthreads = (uint32_t)mach_thread_count(run) };

	try.hooks = (struct mach_try_hooks){ &o, on_access, on_sync, on_born, on_ended, on_output };
	*out = (struct xpl_seen){ 0 };
	o.inside = xcalloc(o.nthreads + 1, sizeof *o.inside);
	err_t e = mach_try(run, &try, &out->tried);
	if (!e)
		xpl_observe_build(&o);
	observer_free(&o);
	return e;
}

err_t xpl_observe(struct mach_run *run, struct img_set *images, const struct xpl_prelude *p,
		  const struct xpl_order *order, uint64_t most, struct xpl_seen *out)
{
	const struct mach_try try = { .steps = order->steps, .nsteps = order->n, .most = most };

	return observe(run, images, p, try, order->expects ? &order->expect : NULL, out);
}

err_t xpl_observe_serial(struct mach_run *run, struct img_set *images, const struct xpl_prelude *p,
			 const uint32_t *order, uint64_t most, struct xpl_seen *out)
{
	return observe(run, images, p, (struct mach_try){ .serial = order, .most = most }, NULL, out);
}

err_t xpl_observe_recorded(struct mach_run *run, struct img_set *images, const struct xpl_prelude *p,
			   const struct xpl_terms *terms, const struct xpl_event *expect, struct xpl_seen *out)
{
	struct observer o = { .run = run, .level = level_new(images), .prelude = p, .seen = out, .images = images,
			      .expect = expect,
			      .terms = terms, .nthreads = terms ? terms->nthreads : (uint32_t)mach_thread_count(run) };
	const struct mach_hooks hooks = { .arg = &o, .access = hook_access, .sync = on_sync,
					  .thread_start = on_born, .thread_exit = on_ended, .stop = is_full,
					  .symbols_from = UINT64_MAX };

	*out = (struct xpl_seen){ 0 };
	o.inside = xcalloc(o.nthreads + 1, sizeof *o.inside);
	err_t e = mach_again(run, p->from, &hooks, NULL);
	if (!e)
		xpl_observe_build(&o);
	observer_free(&o);
	return e;
}

void xpl_seen_free(struct xpl_seen *s)
{
	xpl_trace_free(s->trace);
	mach_tried_free(&s->tried);
	free(s->left);
	free(s->output);
	*s = (struct xpl_seen){ 0 };
}
