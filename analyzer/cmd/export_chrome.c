/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The trace-event format of Chrome and Perfetto, from the records of synchronisation: a slice for each wait and for each time a
 * lock was held, by thread; the failure as an instant.
 */
#include "analyzer/cmd/export.h"

#include "analyzer/cmd/show.h"
#include "common/json.h"
#include "common/trace_types.h"
#include "common/vec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct open_slice {
	uint64_t object;
	double since; /* us */
	unsigned op;
	uint64_t site;
};

struct chrome {
	struct json j;
	struct trc *t;
	struct show show;
	uint32_t thread;
	double now, end; /* us: of the record at hand, of the last one of all */
	VEC(struct open_slice) held;
	struct open_slice wait; /* op 0: it does not wait */
};

static void event(struct chrome *c, const char *phase, const char *name, const char *category, double at)
{
	json_object(&c->j, NULL);
	json_str(&c->j, "name", name);
	json_str(&c->j, "cat", category);
	json_str(&c->j, "ph", phase);
	json_fixed(&c->j, "ts", at, 3);
	json_uint(&c->j, "pid", trc_identity_uint(c->t, "pid", 1));
	json_uint(&c->j, "tid", c->thread);
}

static void arguments(struct chrome *c, const struct open_slice *s)
{
	char *site = show_site(&c->show, s->site);

	json_object(&c->j, "args");
	json_hex(&c->j, "address", s->object);
	json_str(&c->j, "at", site);
	json_end(&c->j);
	free(site);
}

/* A thread waits for one thing at a time: slices of its own track. */
static void waited(struct chrome *c, const struct open_slice *s, double end)
{
	char *object = show_object(&c->show, s->object, s->op);
	char *name = xasprintf("waits for %s %s", show_object_word(s->op), object);

	event(c, "X", name, "wait", s->since);
	json_fixed(&c->j, "dur", end > s->since ? end - s->since : 0, 3);
	arguments(c, s);
	json_end(&c->j);
	free(object);
	free(name);
}

/* Locks need not be released in the order they were taken: each has a track, as asynchronous events have. */
static void held(struct chrome *c, const struct open_slice *s, double end)
{
	char *object = show_object(&c->show, s->object, s->op);
	char *name = xasprintf("%s holds %s %s", trc_thread_id(c->t, c->thread), show_object_word(s->op), object);
	char *id = xasprintf("%u:%" PRIx64, c->thread, s->object);

	event(c, "b", name, "held", s->since);
	json_str(&c->j, "id", id);
	arguments(c, s);
	json_end(&c->j);
	event(c, "e", name, "held", end > s->since ? end : s->since);
	json_str(&c->j, "id", id);
	json_end(&c->j);
	free(object);
	free(name);
	free(id);
}

static bool takes_lock(unsigned op)
{
	return op == TRC_OP_LOCK || op == TRC_OP_TRYLOCK || op == TRC_OP_TIMEDLOCK || op == TRC_OP_RDLOCK ||
	       op == TRC_OP_TRYRDLOCK || op == TRC_OP_TIMEDRDLOCK || op == TRC_OP_WRLOCK || op == TRC_OP_TRYWRLOCK ||
	       op == TRC_OP_TIMEDWRLOCK || op == TRC_OP_SPINLOCK || op == TRC_OP_SPINTRYLOCK;
}

static bool gives_lock(unsigned op)
{
	return op == TRC_OP_UNLOCK || op == TRC_OP_RWUNLOCK || op == TRC_OP_SPINUNLOCK;
}

static void release(struct chrome *c, uint64_t object)
{
	for (size_t i = c->held.n; i--;)
		if (c->held.v[i].object == object) {
			held(c, &c->held.v[i], c->now);
			memmove(&c->held.v[i], &c->held.v[i + 1], (c->held.n - i - 1) * sizeof *c->held.v);
			c->held.n--;
			return;
		}
}

static void acquire(struct chrome *c, uint64_t object, unsigned op, uint64_t site)
{
	struct open_slice s = { object, c->now, op, site };

	vec_push(&c->held, s);
}

static void take_sync(struct chrome *c, const struct trc_sync *s)
{
	unsigned op = TRC_SYNC_OP(s->rec.flags), at = TRC_SYNC_AT(s->rec.flags);
	bool condition = op == TRC_OP_WAIT || op == TRC_OP_TIMEDWAIT;

	if (at == TRC_AT_BLOCK) {
		c->wait = (struct open_slice){ s->object, c->now, op, s->site };
		/* A wait for a condition lets the mutex go. */
		if (condition)
			release(c, s->value);
		return;
	}
	if (at != TRC_AT_DONE)
		return;
	if (c->wait.op == op && c->wait.object == s->object) {
		waited(c, &c->wait, c->now);
		c->wait.op = 0;
	}
	if (condition)
		acquire(c, s->value, TRC_OP_LOCK, s->site);
	else if (takes_lock(op) && !s->result)
		acquire(c, s->object, op, s->site);
	else if (gives_lock(op))
		release(c, s->object);
}

static uint64_t tsc_of(const struct trc_rec *rec)
{
	return rec->type == TRC_SYNC ? ((const struct trc_sync *)rec)->tsc :
	       rec->type == TRC_ENTER ? ((const struct trc_enter *)rec)->tsc : 0;
}

/* Records without a time happened when the one before did. */
static void tick(struct chrome *c, const struct trc_rec *rec)
{
	uint64_t tsc = tsc_of(rec);
	double at = tsc ? trc_seconds(c->t, tsc) * 1e6 : -1;

	if (at > c->now)
		c->now = at;
	if (c->now > c->end)
		c->end = c->now;
}

static err_t each_record(struct chrome *c, const struct trc_thread_info *info, void (*fn)(struct chrome *, const struct trc_sync *))
{
	const struct trc_rec *rec;
	struct trc_iter it;

	c->thread = info->index;
	c->now = 0;
	if (!info->rec_stream)
		return NULL;
	trc_iter_init(&it, info->rec_stream);
	for (;;) {
		TRY(trc_next(&it, &rec));
		if (!rec)
			return NULL;
		tick(c, rec);
		if (fn && rec->type == TRC_SYNC)
			fn(c, (const struct trc_sync *)rec);
	}
}

static void name_thread(struct chrome *c, const struct trc_thread_info *info)
{
	char *name = xasprintf("%s%s%s", trc_thread_id(c->t, info->index), info->name ? " " : "", info->name ? info->name : "");

	c->thread = info->index;
	event(c, "M", "thread_name", "__metadata", 0);
	json_object(&c->j, "args");
	json_str(&c->j, "name", name);
	json_end(&c->j);
	json_end(&c->j);
	free(name);
}

/* What is still open when the record ends, lasts until the run does: of a deadlock that is what it is about. */
static void close_all(struct chrome *c)
{
	if (c->wait.op)
		waited(c, &c->wait, c->end);
	for (size_t i = 0; i < c->held.n; i++)
		held(c, &c->held.v[i], c->end);
	c->wait.op = 0;
	c->held.n = 0;
}

static void failure(struct chrome *c)
{
	const struct trc_failure *f = c->t->failure;

	if (!f)
		return;
	char *text = trace_failure_text(f), *place = trace_failure_place(c->show.img, c->t);

	c->thread = f->thread;
	event(c, "i", text, "failure", trc_seconds(c->t, f->tsc) * 1e6);
	json_str(&c->j, "s", "p");
	json_object(&c->j, "args");
	json_str(&c->j, "at", place);
	json_end(&c->j);
	json_end(&c->j);
	free(text);
	free(place);
}

err_t export_chrome(FILE *f, struct trc *t)
{
	struct chrome c = { .t = t };
	struct term none = { .f = f };
	err_t e = t->tsc_hz ? NULL : err_new(ERR_NOANSWER, "%s has no usable clock", t->path);

	show_init(&c.show, t, &none);
	json_object(&c.j, NULL);
	json_array(&c.j, "traceEvents");
	/* Once for the end, which everything that stays open lasts to. */
	for (size_t i = 0; i < t->threads.n && !e; i++)
		e = each_record(&c, &t->threads.v[i], NULL);
	if (t->failure && trc_seconds(t, t->failure->tsc) * 1e6 > c.end)
		c.end = trc_seconds(t, t->failure->tsc) * 1e6;
	for (size_t i = 0; i < t->threads.n && !e; i++) {
		name_thread(&c, &t->threads.v[i]);
		e = each_record(&c, &t->threads.v[i], take_sync);
		close_all(&c);
	}
	failure(&c);
	json_end(&c.j);
	json_str(&c.j, "displayTimeUnit", "ns");
	json_object(&c.j, "otherData");
	json_str(&c.j, "command", trc_identity(t, "command"));
	json_end(&c.j);
	json_end(&c.j);
	json_print(&c.j, f);
	vec_free(&c.held);
	show_free(&c.show);
	return e;
}
