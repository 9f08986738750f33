/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Orders on the machine, or on the real program, here or in other processes. */
#include "analyzer/explore/runner.h"

#include "analyzer/hunt/files.h"

#include <stdio.h>
#include <string.h>

/* events: the order's, where they are known; else they are looked up when they are needed. */
static err_t execute(void *arg, const struct xpl_order *order, const struct xpl_trace *events, struct xpl_seen *out)
{
	struct xpl_runner *r = arg;
	/* An order in a schedule's terms needs the events of a trace. */
	bool known = events || r->drive->traces.n;

	if (r->on != EXPLORE_NATIVE || !known) {
		TRY(xpl_observe(r->run, r->live.images, r->live.prelude, order, r->most, out));
		if (r->on == EXPLORE_MACHINE || out->tried.end != MACH_TRIED_LEFT || !known)
			return NULL;
		xpl_seen_free(out);
	}
	struct xpl_trace *own = events ? NULL : xpl_live_events(r->drive, order->steps, order->n);
	err_t e = xpl_live_run(&r->live, order, events ? events : own, out);

	xpl_trace_free(own);
	return e;
}

err_t xpl_runner_run(void *runner, const struct xpl_order *order, struct xpl_seen *out)
{
	struct xpl_runner *r = runner;
	err_t e = execute(r, order, NULL, out);

	r->native_orders += !e && out->native;
	return e;
}

err_t xpl_runner_run_all(void *runner, const struct xpl_order *orders, size_t n, struct xpl_seen *out)
{
	struct xpl_runner *r = runner;
	struct xpl_trace **events = xcalloc(n + 1, sizeof *events);

	for (size_t i = 0; i < n && r->on != EXPLORE_MACHINE; i++)
		events[i] = xpl_live_events(r->drive, orders[i].steps, orders[i].n);
	err_t e = xpl_workers_run(r->workers, orders, n, events, out);
	for (size_t i = 0; i < n; i++) {
		r->native_orders += out[i].native;
		xpl_trace_free(events[i]);
	}
	free(events);
	return e;
}

/* In a worker: its native runs have a place of their own. */
static void begin_work(void *arg, unsigned number)
{
	struct xpl_native *native = ((struct xpl_runner *)arg)->live.native;
	size_t n = strlen(native->work);

	if (!n)
		return;
	snprintf(native->work + n, sizeof native->work - n, "/job%u", number);
	err_free(files_make_dirs(native->work));
}

err_t xpl_runner_start(struct xpl_runner *r, unsigned jobs)
{
	const struct xpl_work work = { r, begin_work, execute };

	return jobs < 2 ? NULL : xpl_workers_start(jobs, &work, &r->workers);
}

void xpl_runner_end(struct xpl_runner *r)
{
	xpl_workers_end(r->workers);
	r->workers = NULL;
}
