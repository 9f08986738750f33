/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An order on the real program: its steps as a schedule, a run under that, and the run as a trace of the model. */
#include "analyzer/explore/live.h"

#include "analyzer/trace_image.h"

#include <string.h>
#include <sys/wait.h>

/* ---- the steps as events ---- */

static bool is_step(const struct xpl_event *e, const struct mach_step *s)
{
	return e->thread == s->thread && e->place == s->place && e->inside == s->inside && e->nth == s->nth;
}

/* Where the last step of a thread was found: the next one is behind it, as a rule. */
struct found {
	size_t trace;
	uint32_t next;
	const struct mach_step *step;
};

/* In this trace, from there on; of an instruction that was cut in two the half that comes now. */
static const struct xpl_event *event_in(const struct xpl_trace *t, const struct mach_step *s, uint32_t from, bool second)
{
	for (uint32_t k = from; s->thread < t->nthreads && k < t->threads[s->thread].events.n; k++) {
		const struct xpl_event *e = xpl_at(t, s->thread, k);

		if (is_step(e, s) && !(second && e->half && e->op == XPL_READ))
			return e;
	}
	return NULL;
}

static const struct xpl_event *event_of(const struct xpl_drive *d, const struct mach_step *s, struct found *f)
{
	bool second = f->step && f->step->place == s->place && f->step->nth == s->nth && f->step->inside == s->inside;
	const struct xpl_event *e = event_in(d->traces.v[f->trace], s, f->next, second);

	for (size_t i = 0; i < d->traces.n && !e; i++) {
		e = event_in(d->traces.v[i], s, 0, second);
		f->trace = e ? i : f->trace;
	}
	f->next = e ? e->index : f->next;
	f->step = s;
	return !e && d->expect && is_step(d->expect, s) ? d->expect : e;
}

struct xpl_trace *xpl_live_events(const struct xpl_drive *d, const struct mach_step *steps, size_t n)
{
	uint32_t nthreads = d->traces.v[0]->nthreads;
	struct found *found = xcalloc(nthreads + 1, sizeof *found);
	struct xpl_trace *t = xpl_trace_new(nthreads);

	for (size_t i = 0; i < n; i++) {
		const struct xpl_event *e = event_of(d, &steps[i], &found[steps[i].thread]);

		if (e)
			xpl_trace_add(t, e);
	}
	free(found);
	return t;
}

/* ---- the run as a trace ---- */

/* Threads by the names that their ancestry gives them. */
static uint32_t *threads_of(const struct xpl_live *l, const struct trc *t, size_t n)
{
	uint32_t *to = xmalloc((n + 1) * sizeof *to);

	for (size_t i = 0; i < n; i++) {
		to[i] = XPL_NONE;
		for (uint32_t k = 0; k < l->first->threads.n; k++)
			if (!strcmp(trc_thread_id(l->first, k), trc_thread_id(t, (uint32_t)i)))
				to[i] = k;
	}
	return to;
}

static err_t follow(const struct xpl_live *l, struct trc *t, struct img_set *images, const struct xpl_event *expect,
		    struct xpl_seen *out)
{
	struct mach_options m = { .keep_checkpoints = true, .max_insns = l->most };
	struct mach_result how = { 0 };
	struct xpl_prelude *prelude = NULL;
	struct mach_run *run = NULL;
	err_t e = mach_open(t, images, &m, &run);

	if (!e)
		e = mach_follow(run, &how);
	if (!e && how.end != MACH_END_EXIT && how.end != MACH_END_PATH && how.end != MACH_END_FAILURE)
		e = err_new(ERR_NOANSWER, "the run could not be followed: %s", how.why ? how.why : "no reason was given");
	if (!e)
		e = xpl_prelude_find(run, images, &prelude);
	if (!e) {
		struct xpl_seen seen = { 0 };
		uint32_t *threads = threads_of(l, t, mach_thread_count(run));
		const struct xpl_terms terms = { l->images, threads, (uint32_t)l->first->threads.n };

		e = xpl_observe_recorded(run, images, prelude, &terms, expect, &seen);
		out->trace = seen.trace;
		out->showed = seen.showed;
		seen.trace = NULL;
		xpl_seen_free(&seen);
		free(threads);
	}
	mach_result_free(&how);
	xpl_prelude_free(prelude);
	mach_close(run);
	return e;
}

/* How it ended, in the machine's words. */
static void take_end(const struct xpl_live *l, const struct trc *t, struct mach_tried *out)
{
	const struct trc_failure *f = t->failure;
	int status = l->native->status;

	out->end = MACH_TRIED_EXIT;
	out->status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	if (!f) {
		if (l->native->timed_out || !WIFEXITED(status))
			out->end = MACH_TRIED_LEFT;
		return;
	}
	out->why = trace_failure_text(f);
	out->pc = f->regs[TRC_RIP];
	out->sig = f->signal;
	if (f->rec.flags == TRC_FAIL_EXIT)
		out->status = f->status;
	else
		out->end = f->rec.flags == TRC_FAIL_DEADLOCK ? MACH_TRIED_STUCK :
			   f->rec.flags == TRC_FAIL_HANG ? MACH_TRIED_ENDLESS : MACH_TRIED_FAILED;
}

/* How much of the order came as it was asked for. */
static size_t steps_in(const struct xpl_trace *t, const struct mach_step *steps, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < t->events.n && at < n; i++)
		at += is_step(&t->events.v[i], &steps[at]);
	return at;
}

static err_t take_run(const struct xpl_live *l, char *path, const struct xpl_order *o, struct xpl_seen *out)
{
	struct img_set *images = img_set_new();
	struct trc *t = NULL;
	err_t e = trc_open(path, TRC_TOLERANT, &t);

	if (!e) {
		take_end(l, t, &out->tried);
		if (t->failure)
			out->left = xstrdup(path);
		e = t->memory && t->frags ? follow(l, t, images, o->expects ? &o->expect : NULL, out) : NULL;
	}
	/* Its end is known all the same. */
	if (e && !out->tried.why)
		out->tried.why = xstrdup(e->msg);
	if (out->trace)
		out->tried.steps = steps_in(out->trace, o->steps, o->n);
	if (t)
		trc_close(t);
	img_set_free(images);
	err_free(e);
	return NULL;
}

static err_t not_enforced(struct xpl_seen *out, const char *why)
{
	out->tried.end = MACH_TRIED_LEFT;
	free(out->tried.why);
	out->tried.why = xstrdup(why);
	return NULL;
}

err_t xpl_live_run(struct xpl_live *l, const struct xpl_order *order, const struct xpl_trace *events,
		   struct xpl_seen *out)
{
	const struct xpl_event **next = xcalloc(events->nthreads + 1, sizeof *next);
	char *file = xasprintf("%s/order", l->native->work), *trace = NULL, *output = NULL;
	err_t e = xpl_native_write(events, next, XPL_NONE, l->first, l->images, l->prelude, file);

	*out = (struct xpl_seen){ .native = true, .tried = { .thread = XPL_NONE } };
	free(next);
	if (e) {
		free(file);
		not_enforced(out, e->msg);
		err_free(e);
		return NULL;
	}
	e = xpl_native_run(l->native, file, &trace, &output);
	if (!e && trace)
		e = take_run(l, trace, order, out);
	else if (!e)
		not_enforced(out, "the run left no trace");
	out->output = output;
	out->output_len = output ? strlen(output) : 0;
	if (trace && !out->left)
		xpl_native_drop(trace);
	free(trace);
	free(file);
	return e;
}
