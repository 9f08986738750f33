/* A thread's path together with those of its records that steer it. */
#include "common/path.h"

#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>

/* The next record that bears on the path. */
static err_t look_ahead(struct path_walk *w)
{
	for (;;) {
		TRY(trc_next(&w->records, &w->ahead));
		if (!w->ahead)
			return NULL;
		switch (w->ahead->type) {
		case TRC_START:
		case TRC_ENTER:
		case TRC_LEAVE:
		case TRC_NONDET:
		case TRC_SIGNAL:
		case TRC_GENERATION:
		case TRC_NATIVE:
		case TRC_THREAD_EXIT:
			return NULL;
		}
	}
}

err_t path_walk_init(struct path_walk *w, struct trc *t, const struct path_frags *frags,
		     const struct trc_thread_info *thread)
{
	(void)t;
	*w = (struct path_walk){ .thread = thread->index };
	path_cursor_init(&w->cursor, frags, thread->path_stream, 0, 0);
	trc_iter_init(&w->records, thread->rec_stream);
	TRY(look_ahead(w));
	if (!w->ahead || w->ahead->type != TRC_START) {
		w->why = "the thread's first registers were not recorded";
		return NULL;
	}
	path_goto(&w->cursor, ((const struct trc_start *)w->ahead)->regs[TRC_RIP]);
	return look_ahead(w);
}

void path_walk_free(struct path_walk *w)
{
	path_cursor_free(&w->cursor);
	vec_free(&w->interrupted);
}

static bool is_due(const struct path_walk *w, uint64_t path_pos)
{
	return path_pos <= w->cursor.pos;
}

bool path_generation_due(const struct path_cursor *c, const struct trc_generation *g)
{
	return g->path_pos < c->pos || (g->path_pos == c->pos && (!g->pc || g->pc == c->pc));
}

/* Generations and signals that take effect before the next fragment. */
static err_t before_fragment(struct path_walk *w, const struct trc_rec **event)
{
	while (w->ahead) {
		const struct trc_rec *r = w->ahead;

		if (r->type == TRC_GENERATION &&
		    path_generation_due(&w->cursor, (const struct trc_generation *)r)) {
			w->cursor.generation = ((const struct trc_generation *)r)->generation;
		} else if (r->type == TRC_SIGNAL && ((const struct trc_signal *)r)->fragment) {
			const struct trc_signal *s = (const void *)r;

			if (!path_limit(&w->cursor, s))
				return NULL;
			w->cursor.limited = false;
			vec_push(&w->interrupted, s->interrupted_pc);
			w->cursor.pos = s->path_pos;
			w->cursor.bytes = w->cursor.bytes_end = NULL;
			path_goto(&w->cursor, s->regs[TRC_RIP]);
			*event = r;
		} else if (r->type == TRC_SIGNAL &&
			   is_due(w, ((const struct trc_signal *)r)->path_pos)) {
			const struct trc_signal *s = (const void *)r;

			/* Not yet: fragments that leave no byte stand between. */
			if (w->cursor.pc && w->cursor.pc != s->interrupted_pc &&
			    w->call_pc != s->interrupted_pc)
				return NULL;
			vec_push(&w->interrupted, s->interrupted_pc);
			path_goto(&w->cursor, s->regs[TRC_RIP]);
			*event = r;
		} else {
			return NULL;
		}
		TRY(look_ahead(w));
	}
	return NULL;
}

/* A system call: where it leads, or the end of the path. */
static err_t after_syscall(struct path_walk *w, const struct trc_rec **event)
{
	const struct trc_rec *r = w->ahead;

	if (!r || r->type != TRC_ENTER) {
		w->why = "the thread ended in a system call that was not recorded";
		path_goto(&w->cursor, 0);
		return NULL;
	}
	*event = r;
	unsigned number = r->flags;
	w->call_pc = ((const struct trc_enter *)r)->pc;
	TRY(look_ahead(w));
	if (number == SYS_rt_sigreturn) {
		uint64_t to = w->interrupted.n ? w->interrupted.v[--w->interrupted.n] : 0;

		/* The handler may have changed where it returns to. */
		if (w->ahead && w->ahead->type == TRC_LEAVE) {
			to = (uint64_t)((const struct trc_leave *)w->ahead)->result;
			TRY(look_ahead(w));
		}
		path_goto(&w->cursor, to);
		return NULL;
	}
	if (!w->ahead || w->ahead->type != TRC_LEAVE) {
		/* A signal may be delivered before the call returns. */
		if (!w->ahead || w->ahead->type != TRC_SIGNAL)
			path_goto(&w->cursor, 0);
		return NULL;
	}
	return look_ahead(w);
}

static err_t after_fragment(struct path_walk *w, const struct path_step *step,
			    const struct trc_rec **event)
{
	enum trc_frag_kind kind = path_frag_kind(step->frag);

	if (step->exit == PATH_FALL && kind == TRC_FRAG_SYSCALL)
		return after_syscall(w, event);
	if (step->exit == PATH_FALL && kind == TRC_FRAG_NONDET) {
		if (w->ahead && w->ahead->type == TRC_NONDET) {
			*event = w->ahead;
			return look_ahead(w);
		}
		w->why = "a non-deterministic instruction was not recorded";
		path_goto(&w->cursor, 0);
	}
	if (step->exit == PATH_STOP && w->ahead && w->ahead->type == TRC_NATIVE) {
		const struct trc_native *n = (const void *)w->ahead;

		*event = w->ahead;
		path_goto(&w->cursor, w->ahead->flags == 1 ? n->pc : 0);
		return look_ahead(w);
	}
	return NULL;
}

err_t path_walk_next(struct path_walk *w, struct path_step *step, const struct trc_rec **event,
		     bool *done)
{
	const struct trc_rec *unused;

	if (!event)
		event = &unused;
	*event = NULL;
	TRY(before_fragment(w, event));
	w->call_pc = 0;
	TRY(path_next(&w->cursor, step, done));
	if (*done)
		return NULL;
	w->steps++;
	return after_fragment(w, step, event);
}
