/* What a thread of the run is apart from its path: registers, records, its clock; and words about it. */
#include "analyzer/follow/follow.h"

#include "analyzer/engine/code.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- words ---- */

static char *format(const char *fmt, va_list ap)
{
	char *s = NULL;

	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	return s;
}

void run_say(struct mach_run *r, const char *fmt, ...)
{
	va_list ap;

	free(r->why);
	va_start(ap, fmt);
	r->why = format(fmt, ap);
	va_end(ap);
}

enum action run_mismatch(struct mach_run *r, uint64_t pc, const char *fmt, ...)
{
	va_list ap;

	free(r->why);
	va_start(ap, fmt);
	r->why = format(fmt, ap);
	va_end(ap);
	r->mismatch_pc = pc;
	r->mismatch_load = false;
	return ACT_MISMATCH;
}

/* ---- switching ---- */

void run_settle(struct mach_run *r)
{
	struct run_thread *t;

	if (r->current == NO_THREAD)
		return;
	t = &r->threads[r->current];
	mach_cpu_store(r->m, &t->s.cpu);
	if (r->m->shadow && t->shadow)
		shadow_cpu_store(r->m->shadow, t->shadow);
	r->current = NO_THREAD;
}

void run_switch(struct mach_run *r, uint32_t thread)
{
	struct run_thread *t = &r->threads[thread];

	if (r->current == thread)
		return;
	run_settle(r);
	mach_cpu_load(r->m, &t->s.cpu);
	if (r->m->shadow) {
		if (!t->shadow)
			t->shadow = shadow_cpu_new();
		shadow_cpu_load(r->m->shadow, t->shadow);
	}
	r->current = thread;
}

void run_set_reg(struct mach_run *r, unsigned x86, uint64_t value)
{
	*(uint64_t *)mach_at(r->m, gpr_offset(x86)) = value;
	shadow_forget(r->m, gpr_offset(x86), 8);
}

/* ---- records ---- */

const struct trc_rec *run_head(struct run_thread *t)
{
	return t->s.rec < t->recs.n ? t->recs.v[t->s.rec] : NULL;
}

static uint64_t record_time(const struct trc_rec *rec)
{
	switch (rec->type) {
	case TRC_SYNC:
	case TRC_ENTER:
	case TRC_LEAVE:
	case TRC_SIGNAL:
	case TRC_TIME:
	case TRC_NATIVE:
	case TRC_THREAD_EXIT:
	case TRC_STOP:
		return ((const struct trc_time *)rec)->tsc; /* all have it behind the head */
	default:
		return 0;
	}
}

#define RATE_SHIFT 8
#define RATE_MIN_INSNS 2000 /* shorter segments say little about the speed */
#define AHEAD_RECORDS 64u    /* without a place on the path that are passed over */

/* The thread's clock is right at this instruction. */
void run_clock(struct run_thread *t, uint64_t insns, uint64_t tsc)
{
	struct thread_state *s = &t->s;
	uint64_t n = insns - s->clock_insn;

	if (s->clock_tsc && tsc > s->clock_tsc && n > RATE_MIN_INSNS) {
		uint64_t rate = ((tsc - s->clock_tsc) << RATE_SHIFT) / n;

		if (rate < 64)
			rate = 64;
		if (rate > 64 << RATE_SHIFT)
			rate = 64 << RATE_SHIFT;
		s->clock_rate = (uint32_t)((s->clock_rate + rate) / 2);
	}
	run_clock_set(t, insns, tsc);
}

void run_clock_set(struct run_thread *t, uint64_t insns, uint64_t tsc)
{
	t->s.clock_tsc = tsc;
	t->s.clock_insn = insns;
	t->s.clock_pos = t->s.cursor.pos;
}

/* Where on its path a record stands that has a time, too. */
static bool record_place(const struct trc_rec *rec, uint64_t *pos)
{
	switch (rec->type) {
	case TRC_ENTER:
	case TRC_SIGNAL:
	case TRC_THREAD_EXIT:
	case TRC_STOP:
		*pos = ((const struct trc_enter *)rec)->path_pos; /* in the same place of all four */
		return true;
	case TRC_TIME:
	case TRC_NATIVE:
		*pos = ((const struct trc_time *)rec)->path_pos;
		return true;
	default:
		return false;
	}
}

#define SLOWEST 10000u /* ticks for a byte of path; slower a thread is only when it does not run */

static bool is_ahead(const struct thread_state *s, uint64_t pos, uint64_t tsc)
{
	return s->clock_tsc && tsc > s->clock_tsc && pos > s->clock_pos;
}

/* The place with a time that the thread comes to next; false: its clock does not lead there. */
static bool next_place(const struct run_thread *t, uint64_t *pos, uint64_t *tsc)
{
	const struct thread_state *s = &t->s;

	for (size_t i = s->rec; i < t->recs.n && i < s->rec + AHEAD_RECORDS; i++) {
		if (!record_place(t->recs.v[i], pos))
			continue;
		*tsc = record_time(t->recs.v[i]);
		return is_ahead(s, *pos, *tsc);
	}
	*pos = t->failed_pos;
	*tsc = t->failed_tsc;
	return t->recs.n - s->rec <= AHEAD_RECORDS && is_ahead(s, *pos, *tsc);
}

static double ticks_per_byte(const struct thread_state *s, uint64_t pos, uint64_t tsc)
{
	return (double)(tsc - s->clock_tsc) / (double)(pos - s->clock_pos);
}

bool run_was_stalled(const struct run_thread *t)
{
	uint64_t pos, tsc;

	return next_place(t, &pos, &tsc) && ticks_per_byte(&t->s, pos, tsc) > SLOWEST;
}

/*
 * Between two places whose times are known a thread's time goes by with the bytes of its path;
 * without one ahead, with its instructions, at the speed it had. 0: nothing is known.
 *
 * Somewhere on the way it may have lost its processor for long, and nobody knows where. That this was close to
 * the end is the guess that is easily put right: who comes too early can be made to wait, what others did
 * in the meantime lies far back when it turns out to have come too late.
 */
uint64_t run_clock_between(const struct run_thread *t)
{
	const struct thread_state *s = &t->s;
	uint64_t pos, tsc, at = s->cursor.pos;

	if (!next_place(t, &pos, &tsc))
		return 0;
	double speed = ticks_per_byte(s, pos, tsc);
	at = at < s->clock_pos ? s->clock_pos : at > pos ? pos : at;
	return s->clock_tsc + (uint64_t)((double)(at - s->clock_pos) * (speed < SLOWEST ? speed : SLOWEST));
}

uint64_t run_head_time(const struct run_thread *t)
{
	for (size_t i = t->s.rec; i < t->recs.n; i++) {
		uint64_t tsc = record_time(t->recs.v[i]);

		if (tsc)
			return tsc;
	}
	return t->failed_tsc ? t->failed_tsc : UINT64_MAX;
}

const struct trc_note *run_degraded(const struct mach_run *r)
{
	for (size_t i = 0; i < r->t->notes.n; i++)
		if (r->t->notes.v[i]->rec.flags == 1)
			return r->t->notes.v[i];
	return NULL;
}

/* Nothing but marks is left. */
bool run_ended(const struct run_thread *t)
{
	for (size_t i = t->s.rec; i < t->recs.n; i++)
		switch (t->recs.v[i]->type) {
		case TRC_TIME:
		case TRC_REGS:
		case TRC_GENERATION:
			break;
		default:
			return false;
		}
	return true;
}

/* The path is where the recorded failure was, and it was not inside a fragment. */
bool run_failure_near(const struct mach_run *r, const struct run_thread *t)
{
	const struct trc_failure *f = r->t->failure;

	return f && f->thread == t->index && f->signal && f->path_pos == t->s.cursor.pos &&
	       run_between(t) && run_ended(t);
}
