/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that execute orders: a message for each order, and one for what it showed. */
#include "analyzer/explore/workers.h"

#include "analyzer/hunt/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY SIZE_MAX

struct worker {
	pid_t pid;
	int fd;
	size_t order; /* that it executes; NOBODY */
};

struct xpl_workers {
	struct worker *v;
	unsigned n;
};

/* ---- messages ---- */

struct message {
	VEC(char) bytes;
	size_t at; /* read up to here */
	bool bad;  /* shorter than what was read from it */
};

static void put(struct message *m, const void *bytes, size_t n)
{
	vec_reserve(&m->bytes, m->bytes.n + n);
	memcpy(m->bytes.v + m->bytes.n, bytes, n);
	m->bytes.n += n;
}

static void get(struct message *m, void *bytes, size_t n)
{
	m->bad |= n > m->bytes.n - m->at;
	if (m->bad) {
		memset(bytes, 0, n);
		return;
	}
	memcpy(bytes, m->bytes.v + m->at, n);
	m->at += n;
}

static void put_block(struct message *m, const void *bytes, size_t n)
{
	put(m, &n, sizeof n);
	if (n)
		put(m, bytes, n);
}

/* With a zero behind it; malloc'd. */
static void *get_block(struct message *m, size_t *n)
{
	get(m, n, sizeof *n);
	m->bad |= *n > m->bytes.n - m->at;
	*n = m->bad ? 0 : *n;
	char *bytes = xcalloc(*n + 1, 1);
	get(m, bytes, *n);
	return bytes;
}

static void put_text(struct message *m, const char *text)
{
	put_block(m, text, text ? strlen(text) + 1 : 0);
}

static char *get_text(struct message *m)
{
	size_t n;
	char *text = get_block(m, &n);

	if (n)
		return text;
	free(text);
	return NULL;
}

static void put_trace(struct message *m, const struct xpl_trace *t)
{
	bool is = t;

	put(m, &is, sizeof is);
	if (!is)
		return;
	put(m, &t->nthreads, sizeof t->nthreads);
	put(m, &t->cut, sizeof t->cut);
	put(m, &t->exits, sizeof t->exits);
	put(m, &t->timed, sizeof t->timed);
	put_block(m, t->events.v, t->events.n * sizeof *t->events.v);
	put_block(m, t->vars.v, t->vars.n * sizeof *t->vars.v);
	put_block(m, t->objects.v, t->objects.n * sizeof *t->objects.v);
	for (uint32_t i = 0; i < t->nthreads; i++) {
		const struct xpl_thread *th = &t->threads[i];

		put_block(m, th->events.v, th->events.n * sizeof *th->events.v);
		put(m, &th->from_start, sizeof th->from_start);
		put(m, &th->ended, sizeof th->ended);
		put(m, &th->waits, sizeof th->waits);
		put(m, &th->pending, sizeof th->pending);
	}
}

#define GET_VEC(m, vec)                                                \
	do {                                                           \
		size_t size_;                                          \
		(vec)->v = get_block(m, &size_);                       \
		(vec)->n = (vec)->cap = size_ / sizeof *(vec)->v;      \
	} while (0)

static struct xpl_trace *get_trace(struct message *m)
{
	uint32_t nthreads;
	bool is;

	get(m, &is, sizeof is);
	if (!is)
		return NULL;
	get(m, &nthreads, sizeof nthreads);
	struct xpl_trace *t = xpl_trace_new(nthreads);
	get(m, &t->cut, sizeof t->cut);
	get(m, &t->exits, sizeof t->exits);
	get(m, &t->timed, sizeof t->timed);
	GET_VEC(m, &t->events);
	GET_VEC(m, &t->vars);
	GET_VEC(m, &t->objects);
	for (uint32_t i = 0; i < nthreads; i++) {
		struct xpl_thread *th = &t->threads[i];

		GET_VEC(m, &th->events);
		get(m, &th->from_start, sizeof th->from_start);
		get(m, &th->ended, sizeof th->ended);
		get(m, &th->waits, sizeof th->waits);
		get(m, &th->pending, sizeof th->pending);
	}
	return t;
}

static void put_seen(struct message *m, const struct xpl_seen *s)
{
	put(m, &s->tried, sizeof s->tried);
	put_text(m, s->tried.why);
	put(m, &s->native, sizeof s->native);
	put(m, &s->showed, sizeof s->showed);
	put(m, &s->output_full, sizeof s->output_full);
	put_text(m, s->left);
	put_block(m, s->output, s->output_len);
	put_trace(m, s->trace);
}

static void get_seen(struct message *m, struct xpl_seen *s)
{
	get(m, &s->tried, sizeof s->tried);
	s->tried.why = get_text(m);
	get(m, &s->native, sizeof s->native);
	get(m, &s->showed, sizeof s->showed);
	get(m, &s->output_full, sizeof s->output_full);
	s->left = get_text(m);
	s->output = get_block(m, &s->output_len);
	s->trace = get_trace(m);
}

static bool send_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t done = send(fd, bytes, n, MSG_NOSIGNAL);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		bytes += done;
		n -= (size_t)done;
	}
	return true;
}

static bool receive_all(int fd, char *bytes, size_t n)
{
	while (n) {
		ssize_t done = recv(fd, bytes, n, 0);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		bytes += done;
		n -= (size_t)done;
	}
	return true;
}

static bool send_message(int fd, const struct message *m)
{
	return send_all(fd, (const char *)&m->bytes.n, sizeof m->bytes.n) && send_all(fd, m->bytes.v, m->bytes.n);
}

static bool receive_message(int fd, struct message *m)
{
	size_t n;

	*m = (struct message){ 0 };
	if (!receive_all(fd, (char *)&n, sizeof n))
		return false;
	vec_reserve(&m->bytes, n + 1);
	m->bytes.n = n;
	return receive_all(fd, m->bytes.v, n);
}

/* ---- the worker ---- */

static void answer(const struct xpl_work *work, struct message *order, struct message *result)
{
	struct xpl_seen seen = { 0 };
	size_t size;
	struct xpl_order o = { .steps = get_block(order, &size) };

	o.n = size / sizeof *o.steps;
	get(order, &o.expects, sizeof o.expects);
	get(order, &o.expect, sizeof o.expect);
	struct xpl_trace *events = get_trace(order);
	err_t e = work->run(work->arg, &o, events, &seen);

	put_text(result, e ? e->msg : NULL);
	if (!e)
		put_seen(result, &seen);
	err_free(e);
	xpl_seen_free(&seen);
	xpl_trace_free(events);
	free(o.steps);
}

static _Noreturn void serve(int fd, const struct xpl_work *work, unsigned number)
{
	struct message order;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!mach_forked() || !send_all(fd, "", 1))
		_exit(1);
	work->begin(work->arg, number);
	while (receive_message(fd, &order)) {
		struct message result = { 0 };

		answer(work, &order, &result);
		if (!send_message(fd, &result))
			break;
		vec_free(&order.bytes);
		vec_free(&result.bytes);
	}
	_exit(0);
}

/* ---- outside ---- */

static err_t start_one(struct xpl_workers *w, const struct xpl_work *work)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_errno("socketpair");
	pid_t pid = fork();
	if (!pid) {
		for (unsigned k = 0; k < w->n; k++)
			close(w->v[k].fd);
		close(pair[0]);
		serve(pair[1], work, w->n);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_errno("fork");
	}
	child_spare(pid, true);
	w->v[w->n++] = (struct worker){ pid, pair[0], NOBODY };
	return NULL;
}

err_t xpl_workers_start(unsigned n, const struct xpl_work *work, struct xpl_workers **out)
{
	struct xpl_workers *w = xcalloc(1, sizeof *w);
	err_t e = NULL;
	char ready;

	*out = w;
	w->v = xcalloc(n, sizeof *w->v);
	fflush(NULL);
	mach_fork(true);
	for (unsigned i = 0; i < n && !e; i++)
		e = start_one(w, work);
	for (unsigned i = 0; i < w->n; i++)
		if (!receive_all(w->v[i].fd, &ready, 1) && !e)
			e = err_new(ERR_INTERNAL, "a process that executes orders did not begin");
	mach_fork(false);
	return e;
}

static err_t give(struct worker *w, const struct xpl_order *o, const struct xpl_trace *events, size_t number)
{
	struct message m = { 0 };

	put_block(&m, o->steps, o->n * sizeof *o->steps);
	put(&m, &o->expects, sizeof o->expects);
	put(&m, &o->expect, sizeof o->expect);
	put_trace(&m, events);
	bool sent = send_message(w->fd, &m);
	vec_free(&m.bytes);
	w->order = number;
	return sent ? NULL : err_new(ERR_INTERNAL, "a process that executes orders has ended");
}

static err_t take(struct worker *w, struct xpl_seen *out)
{
	struct message m;
	err_t e = NULL;

	w->order = NOBODY;
	if (!receive_message(w->fd, &m)) {
		vec_free(&m.bytes);
		return err_new(ERR_INTERNAL, "a process that executes orders has ended");
	}
	char *said = get_text(&m);
	if (said)
		e = err_new(ERR_NOANSWER, "%s", said);
	else
		get_seen(&m, out);
	if (!e && m.bad)
		e = err_new(ERR_INTERNAL, "a process that executes orders sent less than it said");
	free(said);
	vec_free(&m.bytes);
	return e;
}

static err_t take_any(struct xpl_workers *w, struct xpl_seen *out, size_t *done)
{
	struct pollfd *p = xcalloc(w->n, sizeof *p);
	err_t e = NULL;

	for (unsigned i = 0; i < w->n; i++)
		p[i] = (struct pollfd){ .fd = w->v[i].order == NOBODY ? -1 : w->v[i].fd, .events = POLLIN };
	if (poll(p, w->n, -1) > 0)
		for (unsigned i = 0; i < w->n && !e; i++)
			if (p[i].revents) {
				e = take(&w->v[i], &out[w->v[i].order]);
				++*done;
			}
	free(p);
	return e;
}

err_t xpl_workers_run(struct xpl_workers *w, const struct xpl_order *orders, size_t n, struct xpl_trace *const *events,
		      struct xpl_seen *out)
{
	size_t given = 0, done = 0;

	while (done < n) {
		for (unsigned i = 0; i < w->n && given < n; i++)
			if (w->v[i].order == NOBODY) {
				TRY(give(&w->v[i], &orders[given], events ? events[given] : NULL, given));
				given++;
			}
		TRY(take_any(w, out, &done));
	}
	return NULL;
}

void xpl_workers_end(struct xpl_workers *w)
{
	if (!w)
		return;
	for (unsigned i = 0; i < w->n; i++)
		close(w->v[i].fd);
	for (unsigned i = 0; i < w->n; i++) {
		while (waitpid(w->v[i].pid, NULL, 0) < 0 && errno == EINTR)
			;
		child_spare(w->v[i].pid, false);
	}
	free(w->v);
	free(w);
}
