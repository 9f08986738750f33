/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A deadlock of a forked process: it waits for a lock that was held when its parent forked, by a thread that does not exist in it. */
#include "analyzer/explain/explain.h"

#include <inttypes.h>

static bool is_locking(unsigned op)
{
	return (op >= TRC_OP_LOCK && op <= TRC_OP_TIMEDLOCK) || (op >= TRC_OP_RDLOCK && op <= TRC_OP_TIMEDWRLOCK) ||
	       op == TRC_OP_SPINLOCK || op == TRC_OP_SPINTRYLOCK;
}

/* The first thing that its main thread does is to return from fork(). */
static bool is_forked(const struct trc *t)
{
	const struct trc_thread_info *main = trc_thread_at(t, 0);
	const struct trc_rec *rec = NULL;
	struct trc_iter it;
	err_t e = NULL;

	if (!main || !main->rec_stream)
		return false;
	trc_iter_init(&it, main->rec_stream);
	do
		e = trc_next(&it, &rec);
	while (!e && rec && rec->type != TRC_SYNC);
	bool forked = !e && rec && TRC_SYNC_OP(rec->flags) == TRC_OP_FORK && TRC_SYNC_AT(rec->flags) == TRC_AT_DONE &&
		      !((const struct trc_sync *)rec)->result;

	err_free(e);
	return forked;
}

/* Did this thread ever have it? */
static bool had(const struct trc_thread_info *thread, uint64_t lock)
{
	const struct trc_rec *rec = NULL;
	struct trc_iter it;
	err_t e = NULL;

	if (!thread || !thread->rec_stream)
		return false;
	trc_iter_init(&it, thread->rec_stream);
	while (!(e = trc_next(&it, &rec)) && rec) {
		const struct trc_sync *s = (const struct trc_sync *)rec;

		if (rec->type == TRC_SYNC && s->object == lock && is_locking(TRC_SYNC_OP(rec->flags)) &&
		    TRC_SYNC_AT(rec->flags) == TRC_AT_DONE && !s->result)
			return true;
	}
	err_free(e);
	return false;
}

static bool is_inherited(const struct trc *t, const struct trc_blocked *b)
{
	if (!is_locking(b->op) || trc_thread_at(t, b->owner))
		return false;
	for (uint32_t i = 0; i < t->threads.n; i++)
		if (had(trc_thread_at(t, i), b->object))
			return false;
	return true;
}

static err_t refuse(const struct trc *t, const struct trc_blocked *b, struct img_set *images)
{
	const char *name = img_symbol(images, b->object, NULL);
	struct img_frame at;
	bool known = img_frames(images, b->site - 1, &at, 1) && at.file && at.line;
	char *lock = name ? xasprintf("`%s'", name) : xasprintf("the lock at 0x%" PRIx64, b->object);
	char *place = known ? xasprintf(" at %s:%u", at.file, at.line) : xstrdup("");
	err_t e = err_new(ERR_NOANSWER, "%s waits%s for %s, which no thread of this forked process has had: it was held when the "
			  "parent forked, by a thread that does not exist here, or another process holds it. No order of this "
			  "process's threads avoids that. Fork while nobody holds the lock (pthread_atfork(3)), or let the child "
			  "only exec", trc_thread_id(t, b->thread), place, lock);

	free(lock);
	free(place);
	return e;
}

err_t explain_inherited_lock(const struct trc *t, struct img_set *images)
{
	const struct trc_failure *f = t->failure;

	if (!f || (f->rec.flags != TRC_FAIL_DEADLOCK && f->rec.flags != TRC_FAIL_HANG) || !t->blocked.n || !is_forked(t))
		return NULL;
	for (size_t i = 0; i < t->blocked.n; i++)
		if (is_inherited(t, t->blocked.v[i]))
			return refuse(t, t->blocked.v[i], images);
	return NULL;
}
