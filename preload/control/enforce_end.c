/* One end of an edge: where it is in this process, and whether a thread has come there. */
#include "preload/control/enforce.h"

#include "preload/translate/translate.h"

#include <pthread.h>

#define INSN_MAX 15

/*
 * Asked under the translator's lock; what it finds out is what callouts
 * compare with. "After" a call means when it has returned: the call is watched, and
 * the instruction behind it, which may also be reached in other ways.
 */
unsigned enf_plan_end(struct enf_end *e, bool source, uint64_t pc, const struct insn *in, const struct ctl_module *m)
{
	bool call = in->cls == INSN_CALL || in->cls == INSN_CALL_IND;

	if (pc == e->back && pc)
		return CTL_CALLOUT_BEFORE;
	if (e->module != m->hash || e->offset != pc - m->bias)
		return 0;
	if (e->when == ENF_MIDDLE && !split_possible(in)) /* of another build: the read alone, or the write */
		e->when = source ? ENF_AFTER : ENF_BEFORE;
	if (e->when != ENF_BEFORE && call)
		__atomic_store_n(&e->back, pc + in->len, __ATOMIC_RELAXED);
	__atomic_store_n(&e->pc, pc, __ATOMIC_RELEASE);
	if (e->when == ENF_MIDDLE)
		return CTL_SPLIT | CTL_CALLOUT_MIDDLE;
	return e->when == ENF_AFTER && !call ? CTL_CALLOUT_AFTER : CTL_CALLOUT_BEFORE;
}

static bool returned(struct enf_end *e, const struct tr_ctx *c, bool source)
{
	if (!e->stack || e->stack != c->regs[REG_RSP_])
		return false;
	e->stack = 0;
	/* Back with the mutex in its hands a thread is never held; its wake-up it has had. */
	return enf_in_wait(e) ? source || (e->when == ENF_AGAIN && e->touched < 2) : true;
}

void enf_waits(struct enf_end *e, const struct shim_thread *t, uint64_t cond, uint64_t mutex)
{
	if (enf_in_wait(e) && e->stack && !e->touched && enf_same(e->thread, t->id)) {
		e->cond = cond;
		e->mutex = mutex;
	}
}

static bool is_compare_exchange(const struct insn *in)
{
	return in->map == 1 && !in->vex && (in->op & 0xfe) == 0xb0;
}

/*
 * Inside the call, a thread that waits for a condition touches its mutex to let it
 * go and then to take it again: that is where it can be held without holding it. Between the two it
 * takes a wake-up off the condition's count (glibc: a compare-exchange inside the condition), and
 * whoever comes first gets it: that is where the choice among those who wait is made.
 */
static bool reached_in_wait(struct enf_end *e, const struct tr_ctx *c, uint64_t pc, bool source)
{
	const uint8_t *code = (const uint8_t *)pc;
	struct insn in;

	if (!enf_in_wait(e) || !e->stack || e->touched > 1 || !enf_same(e->thread, c->thread->id) ||
	    !insn_decode(&in, code, INSN_MAX, pc) || !(in.flags & INSN_LOCKED))
		return false;
	uint64_t to = tr_operand_address(&in, pc, code, c);
	if (to == e->mutex)
		return ++e->touched == 2 && (source || e->when == ENF_AGAIN);
	e->word = to;
	return e->when == ENF_WOKEN && !source && e->touched && is_compare_exchange(&in) &&
	       to - e->cond < sizeof(pthread_cond_t);
}

bool enf_reached(struct enf_end *e, const struct tr_ctx *c, uint64_t pc, enum ctl_at at, bool source)
{
	uint64_t mine = __atomic_load_n(&e->pc, __ATOMIC_ACQUIRE), back = e->back;
	enum ctl_at where = e->when == ENF_MIDDLE ? CTL_AT_MIDDLE :
			    e->when == ENF_AFTER && !back ? CTL_AT_AFTER : CTL_AT_BEFORE;

	if ((mine != pc && back != pc) || !pc || !enf_same(e->thread, c->thread->id))
		return reached_in_wait(e, c, pc, source);
	if (back == pc && at == CTL_AT_BEFORE && returned(e, c, source))
		return true;
	if (mine != pc || at != where)
		return false;
	if (++e->count != e->n && e->n)
		return false;
	if (back)
		e->stack = c->regs[REG_RSP_];
	return !back;
}
