/* The dispatcher: translated code was left, see why, and say where to go on. */
#include "preload/translate/hooks.h"

void (*ctl_callout)(struct tr_ctx *c, uint32_t id, uint64_t pc, enum ctl_at at);

/* The generation this thread lives in from here on; see tr_settled(). */
void tr_new_generation(struct tr_ctx *c, uint64_t pc, uint64_t now)
{
	struct rec_stream *s = &c->thread->rec;
	struct trc_generation *r = rec_begin(s, sizeof *r);

	if (r) {
		r->generation = now;
		r->path_pos = tr_pos(c);
		r->pc = pc;
		rec_commit(s, r, TRC_GENERATION, 0, sizeof *r);
	}
	__atomic_store_n(&c->generation, now, __ATOMIC_RELEASE);
}

#define VSYSCALL 0xffffffffff600000ull /* three calls of before the vdso, which the kernel emulates */

/* The fragment at pc, or NULL after arranging for the fault or for native execution. */
static struct tr_frag *find(struct tr_ctx *c, uint64_t pc, struct tr_way way)
{
	struct tr_frag *f;
	enum tr_found found = tr_find(pc, &way, &f);

	c->pc = pc;
	if (found == TR_FOUND)
		return f;
	if (found == TR_UNMAPPED && pc / RAW_PAGE == VSYSCALL / RAW_PAGE) {
		tr_detach(c, "the program calls the vsyscall page");
	} else if (found == TR_UNMAPPED) {
		tr_fetch_fault(c, pc);
	} else {
		tr_detach(c, "code that cannot be translated (writable, unknown instruction, or a debugger's breakpoint)");
	}
	return NULL;
}

static void direct(struct tr_ctx *c)
{
	struct tr_exit x = *tr_exit_at((uint32_t)c->exit);

	tr_note_generation(c, x.target);
	struct tr_frag *f = find(c, x.target, (struct tr_way){ 0 });

	if (!f)
		return;
	tr_link_direct(tr_exit_at((uint32_t)c->exit), f);
	c->resume = (uint64_t)f->body;
}

static void side(struct tr_ctx *c)
{
	struct tr_exit x = *tr_exit_at((uint32_t)c->exit);

	tr_path_byte(c, x.index + 1u);
	tr_note_generation(c, x.target);
	struct tr_frag *f = find(c, x.target, (struct tr_way){ TR_WAY_SIDE, (uint32_t)c->exit });
	if (!f)
		return;
	tr_link_side(tr_exit_at((uint32_t)c->exit), f);
	c->resume = (uint64_t)f->body;
}

static void indirect(struct tr_ctx *c)
{
	struct tr_frag *f = find(c, c->pc, (struct tr_way){ .kind = TR_WAY_ENTRY });

	/* The fragment that is left still belongs to the old generation, and so does its target. */
	tr_path_target(c, f ? f->id : 0);
	tr_note_generation(c, c->pc);
	if (!f)
		return;
	tr_publish(f);
	c->resume = (uint64_t)f->body;
}

/* Goes on at c->pc, wherever that came from. */
void tr_go_on(struct tr_ctx *c)
{
	if (tr.detached)
		tr_leave(c);
	tr_lock();
	tr_note_generation(c, c->pc);
	struct tr_frag *f = find(c, c->pc, (struct tr_way){ 0 });
	tr_unlock();
	if (f)
		c->resume = (uint64_t)f->body;
	else if (tr.detached)
		tr_leave(c);
}

static void special(struct tr_ctx *c)
{
	uint32_t id = (uint32_t)c->exit;
	/* First the generation: x.body is of this one, or void. */
	uint64_t generation = __atomic_load_n(&tr.generation, __ATOMIC_ACQUIRE);
	const struct tr_exit *x = tr_exit_at(id); /* by the end it may be another's */
	uint64_t target = x->target, body = (uint64_t)x->body, next = target;

	c->pc = x->pc;
	if (x->kind == TRC_FRAG_SYSCALL)
		next = tr_syscall(c, c->pc, target);
	else if (!tr_nondet(c, c->pc))
		next = c->pc;
	c->pc = next;
	tr_note_generation(c, next); /* behind the call's records */
	if (next == target && body && generation == tr.generation && !tr.detached) {
		c->resume = body;
		return;
	}
	tr_go_on(c);
	tr_lock();
	if (next == target && generation == tr.generation && !c->pending && tr_settled())
		tr_exit_at(id)->body = (uint8_t *)c->resume;
	tr_unlock();
}

/* Called by entry.S on the native stack; returns to tr_resume. */
void tr_dispatch(struct tr_ctx *c)
{
	if (c->kind == ENTRY_SPECIAL) {
		special(c);
		return;
	}
	if (c->kind == ENTRY_START) {
		tr_go_on(c);
		return;
	}
	tr_lock();
	if (c->kind == ENTRY_DIRECT)
		direct(c);
	else if (c->kind == ENTRY_SIDE)
		side(c);
	else
		indirect(c);
	tr_unlock();
	if (tr.detached)
		tr_leave(c);
}
