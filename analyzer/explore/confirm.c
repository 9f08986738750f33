/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Failures: an order that failed on the machine, on the real program; and runs of that with delays. */
#include "analyzer/explore/explore_internal.h"

#include "analyzer/hunt/interrupt.h"
#include "analyzer/hunt/pick.h"
#include "analyzer/trace_image.h"
#include "common/log.h"

#include <string.h>
#include <sys/wait.h>

#define MOST_ATTEMPTS 4u   /* orders of one kind of failure that are tried natively until one fails */
#define RUNS_EACH 2u       /* native runs per order */
#define HANG_TIMES 20.0    /* as long as the recorded run took, and ... */
#define HANG_LEAST 1.0     /* ... seconds: a native run that has not ended by then hangs, or the order did not make it hang */
#define SHOWN_OUTPUT 200u  /* bytes of an output in a failure's text */

static struct explore_failure *failure_like(struct explore_result *r, const struct xpl_seen *seen, enum xpl_bad bad)
{
	for (size_t i = 0; i < r->failures.n; i++) {
		struct explore_failure *f = &r->failures.v[i];

		if (f->bad == bad && f->pc == seen->tried.pc && f->sig == seen->tried.sig)
			return f;
	}
	vec_push(&r->failures, (struct explore_failure){ .bad = bad, .pc = seen->tried.pc, .sig = seen->tried.sig,
							 .schedule = r->drive.schedules });
	return &r->failures.v[r->failures.n - 1];
}

/* Did this run fail? Then its trace is kept. */
static err_t take_trace(struct session *s, struct explore_failure *f, const char *trace)
{
	struct trc *t = NULL;
	err_t e = trc_open(trace, TRC_TOLERANT, &t);

	/* Standing still, or running on, is no crash. */
	bool still = !e && t->failure && (t->failure->rec.flags == TRC_FAIL_HANG || t->failure->rec.flags == TRC_FAIL_DEADLOCK);
	if (e || !t->failure || (still && f->bad != XPL_BAD_DEADLOCK && f->bad != XPL_BAD_ENDLESS)) {
		if (t)
			trc_close(t);
		err_free(e);
		return NULL;
	}
	free(f->text);
	f->text = trace_failure_text(t->failure);
	f->print = pick_print(t->failure);
	f->kind = t->failure->rec.flags;
	f->seconds = xpl_now() - s->began;
	trc_close(t);
	TRY(xpl_native_keep(trace, s->o->out, &f->trace));
	f->confirmed = true;
	return NULL;
}

static char *differs_text(const struct xpl_seen *seen)
{
	return xasprintf("no serial order of the threads ends like this: exit status %d, output \"%.*s\"",
			 seen->tried.status, (int)(seen->output_len < SHOWN_OUTPUT ? seen->output_len : SHOWN_OUTPUT),
			 seen->output ? seen->output : "");
}

/* The real program ended as the machine says, and as no serial order does. */
static err_t take_end(struct session *s, struct explore_failure *f, const struct xpl_seen *seen, const char *trace)
{
	const struct xpl_serial *serial = &s->res->serial;
	int status = s->native.status;

	if (s->native.timed_out || !WIFEXITED(status) || WEXITSTATUS(status) != (seen->tried.status & 255) ||
	    !xpl_native_printed(&s->native, seen->output, seen->output_len))
		return NULL;
	for (size_t i = 0; i < serial->v.n; i++)
		if ((serial->v.v[i].status & 255) == WEXITSTATUS(status) &&
		    xpl_native_printed(&s->native, serial->v.v[i].output, serial->v.v[i].len))
			return NULL;
	TRY(xpl_native_keep(trace, s->o->out, &f->trace));
	free(f->text);
	f->text = differs_text(seen);
	f->print = trc_checksum(f->text, strlen(f->text));
	f->seconds = xpl_now() - s->began;
	f->confirmed = true;
	return NULL;
}

/* The order that failed, on the real program. */
static err_t confirm(struct session *s, struct explore_failure *f, const struct xpl_seen *seen)
{
	char *path = xasprintf("%s/schedule", s->native.work);
	const struct xpl_event **next = xcalloc(seen->trace->nthreads + 1, sizeof *next);
	err_t e;

	/* Whoever were held behind the order could not end what goes on for ever. */
	for (uint32_t t = 0; t < seen->trace->nthreads && f->bad != XPL_BAD_ENDLESS; t++)
		next[t] = xpl_drive_next(&s->res->drive, seen->trace, t);
	e = xpl_native_write(seen->trace, next, f->bad == XPL_BAD_DEADLOCK ? XPL_NONE : seen->tried.thread,
			     s->res->t, s->res->images, s->res->prelude, path);
	free(next);

	double limit = s->native.limit, hang = HANG_LEAST + HANG_TIMES * s->res->record_seconds;

	if (f->bad == XPL_BAD_ENDLESS && hang < limit)
		s->native.limit = hang;
	for (unsigned i = 0; i < RUNS_EACH && !e && !f->confirmed && !interrupt_pending(); i++) {
		char *trace = NULL;

		e = xpl_native_run(&s->native, path, &trace, NULL);
		s->res->native_runs++;
		f->attempts++;
		log_line(LOG_EXPLORE, 1, "the real program under this order: status %#x%s", (unsigned)s->native.status,
			 s->native.timed_out ? ", ended by the time limit" : "");
		if (!e && trace)
			e = f->bad == XPL_BAD_DIFFERS ? take_end(s, f, seen, trace) : take_trace(s, f, trace);
		free(trace);
	}
	s->native.limit = limit;
	free(path);
	return e;
}

bool confirm_failed(void *arg, const struct xpl_seen *seen, enum xpl_bad bad, bool *stop)
{
	struct session *s = arg;
	struct explore_failure *f = failure_like(s->res, seen, bad);

	f->orders++;
	if (f->confirmed)
		return true;
	if (!f->text)
		f->text = bad == XPL_BAD_DIFFERS ? differs_text(seen) : xstrdup(seen->tried.why ? seen->tried.why : "");
	/* Offline: the machine's word is all there is. */
	if (!s->o->argv)
		return true;
	if (seen->left && f->bad != XPL_BAD_DIFFERS) {
		f->attempts++;
		err_free(take_trace(s, f, seen->left));
	} else if (f->attempts < MOST_ATTEMPTS * RUNS_EACH && seen->trace) {
		err_t e = confirm(s, f, seen);

		if (e)
			log_line(LOG_EXPLORE, 1, "not confirmed: %s", e->msg);
		err_free(e);
	}
	if (!f->confirmed)
		*stop = false;
	return f->confirmed;
}

size_t confirm_count(const struct explore_result *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->failures.n; i++)
		n += r->failures.v[i].confirmed;
	return n;
}

enum xpl_bad confirm_bad(uint32_t kind)
{
	return kind == TRC_FAIL_DEADLOCK ? XPL_BAD_DEADLOCK : kind == TRC_FAIL_HANG ? XPL_BAD_ENDLESS :
	       kind == TRC_FAIL_EXIT ? XPL_BAD_EXIT : XPL_BAD_FAILED;
}

bool confirm_shake(struct session *s)
{
	struct xpl_drive *d = &s->res->drive;
	struct explore_failure f = { .schedule = d->schedules, .orders = 1, .attempts = 1, .shaken = true };
	char *trace = NULL;

	if (confirm_count(s->res) || !xpl_shake_is_due(&s->shake))
		return false;
	bool open = false;
	uint32_t kind = 0;

	for (size_t i = 0; i < d->known.n && !open; i++)
		open = d->known.v[i].status == XPL_OPEN;
	err_t e = xpl_shake(&s->shake, &s->native, s->drive.deadline, open, s->drive.seed, &trace, &kind);
	f.bad = confirm_bad(kind);
	if (!e && trace)
		e = take_trace(s, &f, trace);
	if (e)
		s->shake.since = 0; /* not here, then */
	err_free(e);
	free(trace);
	s->res->shaken_runs = s->shake.runs;
	if (!f.confirmed)
		return false;
	vec_push(&s->res->failures, f);
	xpl_drive_found(d);
	return !s->o->keep_going;
}
