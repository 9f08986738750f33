/*
 * A logged load that saw what nobody has written yet. Before anything is taken back the others
 * go on a little, the load's thread stands still: clocks between timestamps are guesses, and
 * most often the writer is only a few instructions late.
 */
#include "analyzer/follow/follow.h"

#include <string.h>

#define WAIT_INSNS 20000u /* of the others */
#define WAIT_TURN 2000u
#define WAIT_SLACK 3000u  /* ticks that their clocks may be past the load's next timestamp */


static void on_access(void *arg, struct mach *m, uint64_t pc, uint64_t address, unsigned size,
		      unsigned how, uint64_t value)
{
	const struct wanted_load *w = arg;

	(void)pc;
	(void)value;
	if (how & ACCESS_WRITE && address < w->address + w->size && w->address < address + size)
		m->stop_asked = true; /* behind this block it is looked at */
}

static bool has_come(struct mach_run *r, const struct wanted_load *w)
{
	uint64_t now = 0;

	return mem_peek(r->m->mem, w->address, &now, w->size) && !memcmp(&now, &w->value, w->size);
}

/* The others go on until memory holds what is wanted; false: they did not get there. */
static bool others_go(struct mach_run *r, const struct run_thread *t, struct wanted_load *w)
{
	uint64_t end = r->time + WAIT_INSNS, late = run_head_time(t), insns;
	bool come = false;

	late = late > UINT64_MAX - WAIT_SLACK ? UINT64_MAX : late + WAIT_SLACK;
	r->m->access = on_access;
	r->m->access_arg = w;
	while (!come && r->time < end && !r->asked_to_stop) {
		struct run_thread *o = run_choose(r, &insns);
		uint64_t time = r->time, seq = r->seq;
		enum action stood, a;

		if (!o || run_clock_now(r, o) > late)
			break;
		stood = o->s.action;
		a = run_turn(r, o, insns < WAIT_TURN ? insns : WAIT_TURN);
		come = has_come(r, w);
		if (a == ACT_MISMATCH || a == ACT_FAILURE || a == ACT_STOPPED) {
			come = false;
			break;
		}
		if (r->time == time && r->seq == seq && o->s.action == stood)
			break;
	}
	r->m->access = NULL;
	r->m->access_arg = NULL;
	return come;
}

void run_wait_for_value(struct mach_run *r, struct run_thread *t)
{
	struct wanted_load w = r->wanted;
	struct checkpoint *c = checkpoint_take(r);

	if (!others_go(r, t, &w))
		checkpoint_restore(r, c);
	checkpoint_free(r, c);
	t->s.action = ACT_RUN;
}
