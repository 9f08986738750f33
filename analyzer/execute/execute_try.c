/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trying orders: mach_try() executes an order that nobody recorded, from a saved state, and tells
 * what happens. Unlike mach_execute() it asks for no recorded failure, so it works on a run that
 * passed; and its steps are places, not instruction numbers, so nothing is translated first. What one
 * order showed can be a step of the next. Compiled code stays from one to the next.
 */
#include "analyzer/engine/exec_space.h"
#include "analyzer/execute/execute.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define TRY_MOST 20000000ull /* instructions of an order that ends, if nothing else is said */
#define TRY_PATIENCE 10u     /* part of these that a thread may take to its next step while it polls: it may do so for ever */
#define TRY_TURN 160000u     /* instructions of a thread in a row, as long as others can go on ... */
#define TRY_LOOK 500u        /* ... and between two looks at whether it waits for one of them */
#define TRY_PIECE 4096u      /* bytes of output copied at a time */
#define POLL_STACK 4096u     /* bytes around a stack pointer */
#define POLL_SHORT 4u        /* accesses of a thread between two such reads: so many to begin with, ... */
#define POLL_LENGTH 256u     /* ... and at most */

uint64_t mach_sync_place(unsigned op_at, uint64_t site)
{
	return exec_event_place(op_at, site);
}

uint64_t mach_sync_inside(unsigned op_at, uint64_t site)
{
	uint64_t inside;

	exec_inside(&inside, op_at, site);
	return inside;
}

/* ---- what is told ---- */

void exec_try_event(struct mach_run *r, struct execution *x, uint32_t thread)
{
	const VexGuestAMD64State *g = &r->m->frame->g;
	struct trc_sync s = { .rec = { .type = TRC_SYNC, .flags = (uint16_t)g->guest_RDI },
			      .object = g->guest_RSI, .site = g->guest_RDX,
			      .result = (int32_t)g->guest_RCX, .thread = (uint32_t)g->guest_R8,
			      .value = g->guest_R9 };

	if (x->try->hooks.sync)
		x->try->hooks.sync(x->try->hooks.arg, thread, &s);
}

static void tell_output(struct mach_run *r, struct execution *x, int fd, uint64_t at, uint64_t n)
{
	char piece[TRY_PIECE];

	for (uint64_t done = 0; done < n;) {
		size_t now = n - done < sizeof piece ? (size_t)(n - done) : sizeof piece;

		if (!mem_peek(r->m->mem, at + done, piece, now))
			return;
		x->try->hooks.output(x->try->hooks.arg, fd, piece, now);
		done += now;
	}
}

void exec_try_syscall(struct mach_run *r, struct execution *x, struct run_thread *t)
{
	uint64_t nr = (uint32_t)r->m->frame->g.guest_RAX, fd = run_arg(r, 0);

	x->makes_way |= nr == SYS_sched_yield || nr == SYS_nanosleep || nr == SYS_clock_nanosleep;
	if (nr == SYS_write && (fd == 1 || fd == 2) && x->try->hooks.output)
		tell_output(r, x, (int)fd, run_arg(r, 1), run_arg(r, 2));
	if (nr != SYS_clone && nr != SYS_clone3) {
		exec_syscall(r, x, t);
		return;
	}
	uint8_t *life = xcalloc(r->nthreads + 1, 1);
	for (size_t i = 0; i < r->nthreads; i++)
		life[i] = (uint8_t)r->threads[i].s.life;
	exec_syscall(r, x, t);
	for (uint32_t i = 0; i < r->nthreads; i++)
		if (life[i] == LIFE_UNBORN && r->threads[i].s.life != LIFE_UNBORN && x->try->hooks.born)
			x->try->hooks.born(x->try->hooks.arg, i, t->index);
	free(life);
}

void exec_try_ended(struct mach_run *r, struct execution *x, uint32_t thread)
{
	(void)r;
	if (x->try->hooks.ended)
		x->try->hooks.ended(x->try->hooks.arg, thread);
}

/* The load of an update whose store comes later; see execute_split.c. */
void exec_try_half(struct mach_run *r, struct execution *x, uint32_t thread, uint64_t pc)
{
	struct early_load *l = &x->early[thread];
	struct mach_access a = { .thread = thread, .size = (uint16_t)l->size, .flags = MACH_READ, .pc = pc,
				 .address = l->address, .value = l->value, .insn = r->m->insns, .time = r->time };

	if (!x->try->hooks.access)
		return;
	l->told = true;
	x->try->hooks.access(x->try->hooks.arg, &a);
}

/* What it writes to its own stack may be a count of rounds, or a return address. */
static bool is_on_stack(const struct mach *m, uint64_t address)
{
	uint64_t sp = m->frame->g.guest_RSP;

	return address + POLL_STACK > sp && address < sp + POLL_STACK;
}

/* A thread that reads the same over and over, and writes nothing else than in the round before, gets nowhere until another one does. */
static void note_poll(struct mach_run *r, struct execution *x, const struct mach_access *a)
{
	struct exec_poll *p = &x->poll[a->thread];

	p->quiet++;
	if (a->flags & MACH_WRITE) {
		/* A lock that is acquired and released in each round is as it was. */
		uint64_t *last = &p->written[(a->pc ^ a->pc >> 4) % POLL_WRITES], what = a->pc ^ a->address * 3 ^ a->value * 5;

		if (!is_on_stack(r->m, a->address) && *last != what)
			p->rounds = 0;
		*last = what;
	} else if (p->pc == a->pc && p->address == a->address && p->value == a->value) {
		p->rounds++;
		p->quiet = 0;
		x->makes_way |= p->rounds >= EXEC_POLLS;
	} else if (p->quiet > p->length || (p->pc == a->pc && p->address == a->address)) {
		/* Not again within so many accesses: another read, and more patience. */
		p->length = p->length && p->length < POLL_LENGTH ? 2 * p->length : POLL_SHORT;
		p->pc = a->pc;
		p->address = a->address;
		p->value = a->value;
		p->rounds = p->quiet = 0;
	}
}

static void told_access(void *arg, struct mach *m, uint64_t pc, uint64_t address, unsigned size,
			unsigned how, uint64_t value)
{
	struct mach_run *r = arg;
	struct execution *x = r->execution;
	uint64_t insn = m->insns + (m->now_op ? m->now_op->insn : 0);
	struct mach_access a = { .thread = r->current, .size = (uint16_t)size, .flags = (uint16_t)how,
				 .pc = pc, .address = address, .value = value, .insn = insn,
				 .time = r->time + (insn - r->stretch) };

	mach_mxcsr_keep(m);
	struct early_load *l = &x->early[r->current];
	if (l->told && how == ACCESS_READ && address == l->address)
		return;
	l->told = false;
	note_poll(r, x, &a);
	x->try->hooks.access(x->try->hooks.arg, &a);
}

/* ---- how it ends ---- */

static void end(struct execution *x, enum mach_tried_end how, uint32_t thread, uint64_t pc, char *why)
{
	x->tried->end = how;
	x->tried->thread = thread;
	x->tried->pc = pc;
	free(x->tried->why);
	x->tried->why = why;
	x->done = true;
}

void exec_try_exit(struct execution *x, uint32_t thread, int status)
{
	x->tried->status = status;
	end(x, MACH_TRIED_EXIT, thread, 0, xasprintf("exit status %d", status));
}

/* pc is where the call returns to when the program itself says that it fails. */
void exec_try_failed(struct mach_run *r, struct execution *x, uint32_t thread, int sig, uint64_t pc)
{
	char *place = run_place(r, sig ? pc : pc - 1);

	x->tried->sig = sig;
	end(x, MACH_TRIED_FAILED, thread, pc,
	    sig ? xasprintf("signal %d in %s at %s", sig, trc_thread_id(r->t, thread), place) :
		  xasprintf("failed assertion in %s at %s", trc_thread_id(r->t, thread), place));
	free(place);
}

void exec_try_left(struct mach_run *r, struct execution *x, uint32_t thread, const char *what)
{
	end(x, MACH_TRIED_LEFT, thread, r->m->frame->g.guest_RIP,
	    xasprintf("%s needs what was not recorded: %s", trc_thread_id(r->t, thread), what));
}

/* ---- the rest, when all steps are executed ---- */

/* Of those that can go on the first in a serial order; t when there is none. */
static uint32_t next_serial(struct mach_run *r, struct execution *x, uint32_t t)
{
	for (size_t i = r->nthreads; i-- > 0;)
		if (r->threads[x->try->serial[i]].s.life == LIFE_RUNNING)
			t = x->try->serial[i];
	return t;
}

/* As far as the thread can; one that waits for others without blocking makes way, but for a serial order's. */
static void rest_turn(struct mach_run *r, struct execution *x, struct run_thread *t)
{
	uint64_t since = r->time;

	x->makes_way = false;
	while (!x->done && t->s.life == LIFE_RUNNING && r->time - since < TRY_TURN) {
		exec_go(r, x, t, TRY_LOOK);
		if (x->made || (x->makes_way && !x->try->serial))
			break;
	}
	x->poll[t->index].rounds = 0;
}

/* Whoever came last first. How long the steps took is no matter: the rest has all the time that an order may take. */
static void run_rest(struct mach_run *r, struct execution *x, uint32_t first)
{
	uint64_t most = x->try->most ? x->try->most : TRY_MOST, since = r->time;
	uint32_t t = first;

	while (!x->done && r->time - since < most) {
		bool any = false;

		for (size_t i = 0; i < r->nthreads && !any; i++) {
			uint32_t next = (uint32_t)((t + i) % r->nthreads);

			if (r->threads[next].s.life != LIFE_RUNNING)
				continue;
			any = true;
			t = next;
		}
		for (uint32_t i = 0; i < r->nthreads && !any; i++)
			if (exec_time_out(r, x, i)) {
				any = true;
				t = i;
			}
		if (!any) {
			end(x, MACH_TRIED_STUCK, NO_THREAD, 0, xstrdup("no thread can continue"));
			return;
		}
		rest_turn(r, x, &r->threads[t]);
		if (x->try->serial && (x->made || r->threads[t].s.life != LIFE_RUNNING))
			t = next_serial(r, x, t);
		else if (r->threads[t].s.life == LIFE_RUNNING)
			t = (uint32_t)((t + 1) % r->nthreads);
	}
	if (!x->done)
		end(x, MACH_TRIED_ENDLESS, t, 0,
		    xasprintf("had not ended after %llu instructions", (unsigned long long)(r->time - since)));
}

static void execute(struct mach_run *r, struct execution *x)
{
	uint32_t last = 0;

	exec_counts_reset(x);
	exec_set_breaks(r, x);
	r->free = true;
	exec_settle_calls(r, x);
	x->began = r->time;
	x->longest = x->try->most ? x->try->most : TRY_MOST;
	x->patience = x->longest / TRY_PATIENCE;
	exec_link_points(x, r->nthreads);
	if (x->try->hooks.access) {
		r->m->access = told_access;
		r->m->access_arg = r;
	}
	exec_run_points(r, x);
	if (x->at)
		last = x->points[x->at - 1].thread;
	x->broken = x->at < x->nstrict;
	/* What could not be executed in its place holds nobody up any more. */
	for (size_t i = 0; i < r->nthreads; i++)
		x->first_of[i] = SIZE_MAX;
	run_rest(r, x, last);
	run_settle(r);
	r->m->access = NULL;
	r->m->access_arg = NULL;
	r->free = false;
}

err_t mach_try_from(struct mach_run *r, uint64_t from)
{
	size_t log, keep = r->log.n;
	uint64_t left;

	r->free = false;
	r->edges.n = 0;
	checkpoint_free(r, r->try_from);
	r->try_from = NULL;
	TRY(run_go_exactly(r, from, &log, &left));
	r->try_from = checkpoint_take(r);
	r->log.n = keep;
	return NULL;
}

void mach_try_rewind(struct mach_run *r)
{
	size_t keep = r->log.n;

	checkpoint_restore(r, r->try_from);
	r->log.n = keep;
}

err_t mach_try(struct mach_run *r, const struct mach_try *o, struct mach_tried *out)
{
	struct mach_outcome none = { 0 };
	struct execution x = { .out = &none, .npoints = o->nsteps, .nstrict = o->nsteps, .try = o,
			       .tried = out, .others_first = true, .young_first = o->serial != NULL,
			       .fate = { .thread = NO_THREAD }, .brink = { .thread = NO_THREAD } };

	*out = (struct mach_tried){ .thread = NO_THREAD };
	if (!r->try_from)
		return err_new(ERR_INTERNAL, "no moment was chosen for orders to begin at");
	for (size_t i = 0; i < o->nsteps; i++)
		if (o->steps[i].thread >= r->nthreads)
			return err_new(ERR_INTERNAL, "a step of a thread that does not exist");
	mach_try_rewind(r);
	exec_new(r, &x);
	for (size_t i = 0; i < o->nsteps; i++)
		x.points[i] = (struct exec_point){ .thread = o->steps[i].thread, .place = o->steps[i].place,
						   .inside = o->steps[i].inside, .nth = o->steps[i].nth };
	r->execution = &x;
	execute(r, &x);
	out->steps = x.at;
	out->insns = r->time - x.began;
	out->gave_up = x.gave_up;
	out->blocked_at = x.blocked_at;
	r->execution = NULL;
	exec_free(r, &x);
	mach_outcome_free(&none);
	return NULL;
}

void mach_fork(bool begin)
{
	exec_spaces_fork(begin);
}

bool mach_forked(void)
{
	return exec_spaces_own();
}

void mach_tried_free(struct mach_tried *t)
{
	free(t->why);
	*t = (struct mach_tried){ 0 };
}
