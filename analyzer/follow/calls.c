/* What ordered points do to the machine's state: system calls, signals, exits, locks. */
#include "analyzer/follow/follow.h"

#include "analyzer/follow/call_args.h"
#include "analyzer/engine/code.h"
#include "analyzer/engine/shadow_ops.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define NOT_STARTED (-512) /* see struct trc_enter */

static void add_words(char ***v, size_t *n, size_t *cap, const char *fmt, va_list ap)
{
	char *s = NULL;

	if (vasprintf(&s, fmt, ap) < 0)
		return;
	for (size_t i = 0; i < *n; i++)
		if (!strcmp((*v)[i], s)) {
			free(s);
			return;
		}
	if (*n == *cap)
		*v = vec_grow(*v, cap, sizeof **v, *n + 1);
	(*v)[(*n)++] = s;
}

void run_note(struct mach_run *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_words(&r->notes.v, &r->notes.n, &r->notes.cap, fmt, ap);
	va_end(ap);
}

void run_undetermined(struct mach_run *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_words(&r->undetermined.v, &r->undetermined.n, &r->undetermined.cap, fmt, ap);
	va_end(ap);
}

/* ---- system calls ---- */

static const uint8_t arg_regs[6] = { 7, 6, 2, 10, 8, 9 };

static uint64_t reg(const struct mach_run *r, unsigned x86)
{
	return *(uint64_t *)mach_at(r->m, gpr_offset(x86));
}

static void tell_kernel_access(struct mach_run *r, struct run_thread *t, unsigned flags,
			       uint64_t address, const uint8_t *bytes, size_t n)
{
	if (!r->hooks || !r->hooks->access || r->time < r->hooks_from)
		return;
	while (n) {
		unsigned size = n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;
		struct mach_access a = { .thread = t->index, .size = (uint16_t)size,
					 .flags = (uint16_t)(flags | MACH_KERNEL),
					 .pc = r->m->frame->g.guest_RIP, .address = address,
					 .insn = r->m->insns, .time = r->time };

		memcpy(&a.value, bytes, size);
		r->hooks->access(r->hooks->arg, &a, EXPR_NONE);
		address += size;
		bytes += size;
		n -= size;
	}
}

void run_kernel_wrote(struct mach_run *r, struct run_thread *t, uint64_t address, const uint8_t *bytes, size_t n)
{
	uint8_t held;

	/* Listeners are told before: they may ask what memory held. */
	if (mem_peek(r->m->mem, address, &held, 1))
		tell_kernel_access(r, t, MACH_WRITE, address, bytes, n);
	if (!mem_poke(r->m->mem, address, bytes, n)) {
		run_note(r, "what the kernel wrote at 0x%" PRIx64 " lies outside the memory known",
			 address);
		return;
	}
	if (r->m->access) /* the search wants to know, too */
		for (size_t i = 0; i < n; i += 8) {
			unsigned size = n - i < 8 ? (unsigned)(n - i) : 8;
			uint64_t value = 0;

			memcpy(&value, bytes + i, size);
			r->m->access(r->m->access_arg, r->m, r->m->frame->g.guest_RIP, address + i, size,
				     ACCESS_WRITE, value);
		}
	shadow_forget_memory(r->m, address, n);
}

/* Long outputs are compared by their checksums. */
static bool output_agrees(const struct trc_effect *e, const uint8_t *mine)
{
	struct trc_output_sum s;

	if (e->kind != TRC_EFFECT_OUTPUT_SUM)
		return !memcmp(mine, trc_effect_bytes(e), e->length);
	memcpy(&s, trc_effect_bytes(e), sizeof s);
	return trc_checksum(mine, s.length) == s.sum;
}

/* The first byte that is another, as far as the record has them. */
static void say_output(struct mach_run *r, const struct run_thread *t, const struct trc_effect *e, const uint8_t *mine, uint32_t n)
{
	const uint8_t *theirs = trc_effect_bytes(e);
	uint32_t at = 0;

	while (e->kind != TRC_EFFECT_OUTPUT_SUM && at < n && mine[at] == theirs[at])
		at++;
	if (e->kind == TRC_EFFECT_OUTPUT_SUM || at == n)
		run_undetermined(r, "%" PRIu32 " bytes that %s wrote at 0x%" PRIx64, n, trc_thread_id(r->t, t->index),
				 e->address);
	else
		run_undetermined(r, "%" PRIu32 " bytes that %s wrote at 0x%" PRIx64 ": the one at 0x%" PRIx64
				 " is 0x%02x, recorded 0x%02x", n, trc_thread_id(r->t, t->index), e->address,
				 e->address + at, mine[at], theirs[at]);
}

/* True: it is as recorded, or not compared. What the kernel read is told the first time. */
static bool compare_output(struct mach_run *r, struct run_thread *t, const struct trc_effect *e, bool again)
{
	struct trc_output_sum s = { e->length, 0 };

	if (e->kind == TRC_EFFECT_OUTPUT_SUM)
		memcpy(&s, trc_effect_bytes(e), sizeof s);
	if (e->kind == TRC_EFFECT_OUTPUT_SUM && s.length > TRC_OUTPUT_MAX)
		return true;
	uint8_t *mine = xcalloc(s.length + 1, 1);
	bool agrees = mem_peek(r->m->mem, e->address, mine, s.length) && output_agrees(e, mine);

	if (again && !agrees) {
		r->res.output_identical = false;
		if (!r->free)
			say_output(r, t, e, mine, s.length);
	} else if (!again) {
		r->res.output_bytes += s.length;
		tell_kernel_access(r, t, MACH_READ, e->address, mine, s.length);
	}
	free(mine);
	return agrees;
}

static const struct trc_module *module_of_mapping(const struct mach_run *r, uint64_t start,
						  uint64_t tsc)
{
	const struct trc_module *best = NULL;

	for (size_t i = 0; i < r->t->modules.n; i++) {
		const struct trc_module *m = r->t->modules.v[i];

		if (start >= m->start && start < m->end && m->tsc <= tsc)
			best = m; /* the youngest that is old enough */
	}
	return best;
}

static void apply_effects(struct mach_run *r, struct run_thread *t, const struct trc_leave *l,
			  uint64_t offset)
{
	struct trc_effects fx = trc_effects(l);
	VEC(const struct trc_effect *) other = { 0 };

	for (const struct trc_effect *e = trc_effect_next(&fx); e; e = trc_effect_next(&fx)) {
		const struct trc_module *m;

		switch (e->kind) {
		case TRC_EFFECT_WRITE:
		case TRC_EFFECT_FILE:
			run_kernel_wrote(r, t, e->address, trc_effect_bytes(e), e->length);
			break;
		case TRC_EFFECT_MODULE:
			m = module_of_mapping(r, e->address, l->tsc);
			if (m)
				run_file_map(r, e->address, m->end, offset, m);
			else
				run_note(r, "a module mapped at 0x%" PRIx64 " was not recorded",
					 e->address);
			break;
		case TRC_EFFECT_OBJECT:
			break; /* map_new() */
		default:
			if (!compare_output(r, t, e, false))
				vec_push(&other, e);
		}
	}
	/* The recorder looks at outputs after the call: one written into the file that it comes from is what it became. */
	for (size_t i = 0; i < other.n; i++)
		compare_output(r, t, other.v[i], true);
	vec_free(&other);
}

/* back: NULL where the call has not returned yet. */
static void child_starts(struct mach_run *r, uint32_t index, const struct trc_enter *call, const struct trc_leave *back)
{
	struct run_thread *child = &r->threads[index];

	if (child->s.life != LIFE_UNBORN)
		return;
	if (!child->start && (!back || !run_unstarted(r, child, call, back))) {
		child->s.life = LIFE_ENDED; /* killed before its first instruction */
		return;
	}
	run_born(r, child);
	if (r->hooks && r->hooks->thread_start && r->time >= r->hooks_from)
		r->hooks->thread_start(r->hooks->arg, index, r->current);
}

static bool is_vfork(const struct mach_run *r, const struct trc_enter *e)
{
	uint64_t flags = 0;

	if (e->rec.flags == SYS_vfork)
		return true;
	if (e->rec.flags == SYS_clone)
		flags = e->args[0];
	else if (e->rec.flags == SYS_clone3 && !mem_peek(r->m->mem, e->args[0], &flags, sizeof flags))
		return false;
	return flags & CLONE_VFORK;
}

/* The call's return names the child; where the record ends before, it is the first not born yet. */
static uint32_t vfork_child(struct mach_run *r, struct run_thread *t)
{
	const struct trc_leave *l = (const void *)run_head(t);

	if (l)
		return l->rec.type == TRC_LEAVE && l->result >= 0 ? l->thread : NO_THREAD;
	for (uint32_t i = 0; i < r->nthreads; i++) {
		const struct trc_thread_info *info = trc_thread_at(r->t, i);

		if (r->threads[i].s.life == LIFE_UNBORN && info && info->rec &&
		    info->rec->parent == t->index)
			return i;
	}
	return NO_THREAD;
}

/*
 * The parent comes back when the child has become another program or has ended: until then
 * it works in the parent's memory, from the call's entry on.
 */
static void vfork_child_starts(struct mach_run *r, struct run_thread *t, const struct trc_enter *e)
{
	uint32_t child = is_vfork(r, e) ? vfork_child(r, t) : NO_THREAD;

	if (child >= r->nthreads)
		return;
	r->threads[child].s.vforked = true;
	child_starts(r, child, e, NULL);
}

/* ---- signals ---- */

static enum action perform_signal(struct mach_run *r, struct run_thread *t)
{
	const struct trc_signal *s = (const void *)run_head(t);
	VexGuestAMD64State *g = &r->m->frame->g;

	run_kernel_wrote(r, t, s->frame, s->bytes, s->frame_len);
	if (r->m->slots)
		run_frame_shadow(r, s);
	run_handler_state(r);
	for (unsigned i = 0; i < 16; i++)
		run_set_reg(r, i, s->regs[i]);
	mach_set_rflags(g, s->regs[TRC_RFLAGS]);
	shadow_forget(r->m, MACH_OFF(CC_OP), 32);
	g->guest_RIP = s->regs[TRC_RIP];
	t->s.cursor.pos = s->path_pos;
	t->s.cursor.bytes = t->s.cursor.bytes_end = NULL;
	path_goto(&t->s.cursor, s->regs[TRC_RIP]);
	t->s.in_step = false;
	run_clock_set(t, r->m->insns, s->tsc);
	t->s.call = NULL;
	t->s.call_pc = 0;
	t->s.life = LIFE_RUNNING;
	t->s.rec++;
	r->seq++;
	r->res.signals++;
	if (r->hooks && r->hooks->signal && r->time >= r->hooks_from)
		r->hooks->signal(r->hooks->arg, t->index, s);
	return ACT_RUN;
}

/* ---- entries and returns ---- */

static enum action compare_entry(struct mach_run *r, const struct trc_enter *e)
{
	uint64_t pc = r->m->frame->g.guest_RIP;

	if (e->pc != pc)
		return run_mismatch(r, pc, "a system call, recorded at 0x%" PRIx64, e->pc);
	if ((uint32_t)reg(r, 0) != e->rec.flags && (uint16_t)reg(r, 0) != e->rec.flags)
		return run_mismatch(r, pc, "system call %" PRIu64 ", recorded %u", reg(r, 0),
				    e->rec.flags);
	for (unsigned i = 0; i < mach_call_args(e->rec.flags); i++)
		if (reg(r, arg_regs[i]) != e->args[i])
			return run_mismatch(r, pc,
					    "argument %u of system call %u is 0x%" PRIx64
					    ", recorded 0x%" PRIx64,
					    i + 1, e->rec.flags, reg(r, arg_regs[i]), e->args[i]);
	return ACT_RUN;
}

static bool is_failing_exit(const struct mach_run *r, const struct run_thread *t)
{
	return r->t->failure && r->t->failure->rec.flags == TRC_FAIL_EXIT &&
	       r->t->failure->thread == t->index;
}

/* Somebody else failed while this thread was ending the process: that is still to come. */
static bool failure_to_come(const struct mach_run *r, const struct run_thread *t)
{
	const struct trc_failure *f = r->t->failure;

	return f && f->thread != t->index && f->thread < r->nthreads &&
	       f->rec.flags != TRC_FAIL_DEADLOCK && f->rec.flags != TRC_FAIL_HANG &&
	       r->threads[f->thread].s.life != LIFE_ENDED;
}

/*
 * What goes into a call decides what comes out of it, which is known only for the
 * recorded arguments. Not so for calls whose results do not depend on the world.
 */
static void fix_arguments(struct mach_run *r, const struct trc_enter *e)
{
	static const uint16_t free_calls[] = { SYS_write, SYS_sendto, SYS_futex, SYS_madvise, SYS_munmap,
					       SYS_mprotect, SYS_sched_yield, SYS_nanosleep,
					       SYS_clock_nanosleep, SYS_exit, SYS_exit_group };

	if (!r->m->slots)
		return;
	for (size_t i = 0; i < sizeof free_calls / sizeof *free_calls; i++)
		if (e->rec.flags == free_calls[i])
			return;
	for (unsigned i = 0; i < mach_call_args(e->rec.flags); i++)
		shadow_concretize_operand(r->m, e->pc, gpr_offset(arg_regs[i]), 64, "system call");
}

static enum action perform_enter(struct mach_run *r, struct run_thread *t)
{
	const struct trc_enter *e = (const void *)run_head(t);
	enum action a = compare_entry(r, e);

	if (a != ACT_RUN)
		return a;
	fix_arguments(r, e);
	t->s.rec++;
	run_clock(t, r->m->insns, e->tsc);
	t->s.call = e;
	t->s.call_pc = e->pc;
	t->s.life = LIFE_IN_CALL;
	r->m->insns++;
	r->time++;
	r->seq++;
	r->res.syscalls++;
	if (r->hooks && r->hooks->syscall && r->time >= r->hooks_from)
		r->hooks->syscall(r->hooks->arg, t->index, e, NULL);
	run_take_mapping(r, t->index, e, (const void *)run_head(t));
	vfork_child_starts(r, t, e);
	if (e->rec.flags == SYS_exit_group && !t->s.vforked) {
		if (is_failing_exit(r, t))
			return ACT_FAILURE;
		if (failure_to_come(r, t))
			return ACT_RUN;
		r->stop_end = MACH_END_EXIT;
		return ACT_STOPPED;
	}
	if (e->rec.flags == SYS_rt_sigreturn &&
	    (!run_head(t) || run_head(t)->type != TRC_LEAVE)) {
		t->s.life = LIFE_RUNNING;
		t->s.call = NULL;
		return run_return_from_handler(r, t);
	}
	return ACT_RUN;
}

static enum action perform_leave(struct mach_run *r, struct run_thread *t)
{
	const struct trc_leave *l = (const void *)run_head(t);
	const struct trc_enter *e = t->s.call;
	VexGuestAMD64State *g = &r->m->frame->g;

	t->s.rec++;
	r->seq++;
	run_clock_set(t, r->m->insns, l->tsc);
	t->s.life = LIFE_RUNNING;
	t->s.call = NULL;
	if (e->rec.flags == SYS_rt_sigreturn)
		return run_return_from_handler(r, t);
	if (l->result == NOT_STARTED) {
		path_goto(&t->s.cursor, e->pc);
		return ACT_RUN; /* rip is still at the instruction */
	}
	if (l->result >= 0 || l->result < -4095)
		run_apply_mapping(r, t->index, e, l);
	else if (l->result == -ENOMEM)
		run_apply_in_part(r, e);
	apply_effects(r, t, l, e->args[5]);
	run_set_reg(r, 0, (uint64_t)l->result);
	run_set_reg(r, 1, e->pc + 2);
	run_set_reg(r, 11, mach_rflags(g) | 0x202);
	g->guest_RIP = e->pc + 2;
	if (r->hooks && r->hooks->syscall && r->time >= r->hooks_from)
		r->hooks->syscall(r->hooks->arg, t->index, e, l);
	if (l->thread < r->nthreads && l->result >= 0)
		child_starts(r, l->thread, e, l);
	return ACT_RUN;
}

/* The word that is next: those of robust mutexes, then the one that joiners wait for. */
static void next_exit_word(struct run_thread *t)
{
	const struct trc_thread_exit *e = t->s.exit;
	const struct trc_exit_word *w = (const void *)(e + 1);
	uint64_t ticket;

	if (t->s.exit_words < trc_exit_words(e)) {
		w += t->s.exit_words++;
		t->s.cleared = w->address;
		t->s.clear_value = w->value;
		t->s.clear_ordered = w->address;
		ticket = w->ticket;
	} else {
		t->s.exit = NULL;
		t->s.cleared = e->cleared;
		t->s.clear_value = 0;
		t->s.clear_ordered = e->rec.flags & TRC_EXIT_ORDERED;
		ticket = t->s.clear_ordered ? e->ticket : 0;
	}
	if (t->s.clear_ordered) {
		t->s.shard = trc_shard(t->s.cleared);
		t->s.ticket = (uint32_t)ticket;
	}
}

static enum action perform_exit(struct mach_run *r, struct run_thread *t)
{
	/* Counts as an instruction, so that edges can tell the exit from the clearing. */
	r->m->insns++;
	r->time++;
	t->s.exit = (const void *)run_head(t);
	t->s.exit_words = 0;
	t->s.rec++;
	r->seq++;
	next_exit_word(t);
	return ACT_CLEAR;
}

/* Joiners wait for this, and look before they wait: it has a ticket like their looks. */
static enum action perform_clear(struct mach_run *r, struct run_thread *t)
{
	if (t->s.clear_ordered && !r->free)
		r->tickets[t->s.shard] = t->s.ticket + 1;
	if (t->s.cleared)
		run_kernel_wrote(r, t, t->s.cleared, (const uint8_t *)&t->s.clear_value, sizeof t->s.clear_value);
	if (t->s.exit) {
		next_exit_word(t);
		return ACT_CLEAR;
	}
	t->s.life = LIFE_ENDED;
	if (r->hooks && r->hooks->thread_exit && r->time >= r->hooks_from)
		r->hooks->thread_exit(r->hooks->arg, t->index);
	return ACT_END;
}

/* It stays where it is: what its stack holds is alive (verdict.c). */
static enum action perform_stop(struct mach_run *r, struct run_thread *t)
{
	t->s.rec++;
	r->seq++;
	return ACT_END;
}

/* What an in-call thread waits for. */
enum action run_after_entry(struct run_thread *t)
{
	const struct trc_rec *rec = run_head(t);

	if (!rec)
		return ACT_END;
	switch (rec->type) {
	case TRC_LEAVE:
		return ACT_LEAVE;
	case TRC_SIGNAL:
		return ACT_SIGNAL;
	case TRC_THREAD_EXIT:
		return ACT_EXIT;
	default:
		return ACT_END;
	}
}

/* Performs the thread's action; its next one is returned and stored. */
enum action run_perform(struct mach_run *r, struct run_thread *t)
{
	enum action a;

	run_switch(r, t->index);
	switch (t->s.action) {
	case ACT_ENTER:
		a = perform_enter(r, t);
		if (a == ACT_RUN && t->s.life == LIFE_IN_CALL)
			a = run_after_entry(t);
		break;
	case ACT_LEAVE:
		a = perform_leave(r, t);
		break;
	case ACT_SIGNAL:
		a = perform_signal(r, t);
		break;
	case ACT_EXIT:
		a = perform_exit(r, t);
		break;
	case ACT_CLEAR:
		a = perform_clear(r, t);
		break;
	case ACT_STOP:
		a = perform_stop(r, t);
		break;
	default:
		a = t->s.action;
	}
	return t->s.action = a;
}
