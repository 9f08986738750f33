/* A run from outside: opening, looking around, executing the committed order again. */
#include "analyzer/follow/follow.h"

#include "analyzer/engine/shadow_ops.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

err_t mach_open(struct trc *t, struct img_set *images, const struct mach_options *o,
		struct mach_run **out)
{
	struct mach_run *r = xcalloc(1, sizeof *r);
	err_t e;

	*out = NULL;
	r->t = t;
	r->images = images;
	if (o)
		r->o = *o;
	r->current = NO_THREAD;
	e = mach_engine_new(&r->m);
	if (!e) {
		r->m->give_up = run_gives_up;
		r->m->give_up_arg = r;
		e = run_load(r);
	}
	if (e) {
		mach_close(r);
		return e;
	}
	*out = r;
	return NULL;
}

static void free_words(char **v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i]);
	free(v);
}

void run_computed_forget(struct mach_run *r)
{
	for (size_t i = 0; i < r->computed.n; i++)
		free(r->computed.v[i]);
	r->computed.n = 0;
}

void mach_close(struct mach_run *r)
{
	if (!r)
		return;
	search_end(r);
	run_seek_free(r);
	for (size_t i = 0; i < r->checkpoints.n; i++)
		checkpoint_free(r, r->checkpoints.v[i]);
	checkpoint_free(r, r->try_from);
	for (size_t i = 0; r->threads && i < r->nthreads; i++) {
		vec_free(&r->threads[i].recs);
		path_cursor_free(&r->threads[i].s.cursor);
		shadow_cpu_free(r->threads[i].shadow);
		free(r->threads[i].begun);
		free(r->threads[i].resting);
	}
	free(r->threads);
	run_files_free(r);
	path_frags_free(r->frags);
	mach_engine_free(r->m);
	vec_free(&r->checkpoints);
	vec_free(&r->seqs);
	free(r->calls);
	vec_free(&r->item_pcs);
	vec_free(&r->forces);
	vec_free(&r->forced);
	vec_free(&r->log);
	vec_free(&r->edges);
	vec_free(&r->spins);
	run_computed_forget(r);
	vec_free(&r->computed);
	if (r->order.free)
		r->order.free(r);
	free_words(r->notes.v, r->notes.n);
	free_words(r->undetermined.v, r->undetermined.n);
	vec_free(&r->shared);
	vec_free(&r->objects);
	vec_free(&r->growing);
	vec_free(&r->carried);
	vec_free(&r->before);
	free(r->reason);
	free(r->why);
	free(r);
}

/* ---- looking around ---- */

bool mach_read(struct mach_run *r, uint64_t address, void *buf, size_t n)
{
	return mem_peek(r->m->mem, address, buf, n);
}

bool mach_img_regs(struct mach_run *r, uint32_t thread, struct img_regs *out)
{
	uint64_t regs[TRC_NREGS];

	memset(out, 0, sizeof *out);
	if (!mach_regs(r, thread, regs, &out->fs_base))
		return false;
	for (unsigned i = 0; i < 16; i++)
		out->r[img_reg_of_x86[i]] = regs[i];
	out->r[IMG_RIP] = regs[TRC_RIP];
	out->known = IMG_ALL_REGS;
	return true;
}

#define RAX 0
#define RSI 6
#define RDI 7

bool mach_entered(struct mach_run *r, uint32_t thread, struct mach_entered *out)
{
	uint64_t regs[TRC_NREGS];

	if (!mach_regs(r, thread, regs, NULL))
		return false;
	*out = (struct mach_entered){ .args = { regs[RDI], regs[RSI] }, .sp = regs[TRC_RSP] };
	if (!mach_read(r, out->sp, &out->site, sizeof out->site))
		out->site = 0;
	return true;
}

bool mach_returned(struct mach_run *r, uint32_t thread, uint64_t *out)
{
	uint64_t regs[TRC_NREGS];

	if (!mach_regs(r, thread, regs, NULL))
		return false;
	*out = regs[RAX];
	return true;
}

static bool read_memory(void *arg, uint64_t address, void *buf, size_t n)
{
	return mach_read(arg, address, buf, n);
}

struct img_memory mach_img_memory(struct mach_run *r)
{
	return (struct img_memory){ read_memory, r };
}

uint64_t mach_thread_insns(const struct mach_run *r, uint32_t thread)
{
	if (thread >= r->nthreads)
		return 0;
	return r->current == thread ? r->m->insns : r->threads[thread].s.cpu.insns;
}

bool mach_thread_alive(const struct mach_run *r, uint32_t thread)
{
	enum thread_life life = thread < r->nthreads ? r->threads[thread].s.life : LIFE_UNBORN;

	return life == LIFE_RUNNING || life == LIFE_IN_CALL;
}

size_t mach_records(const struct mach_run *r, uint32_t thread, const struct trc_rec *const **out)
{
	const struct run_thread *t = &r->threads[thread];

	*out = (const struct trc_rec *const *)t->recs.v;
	return t->s.rec < t->recs.n ? t->s.rec : t->recs.n;
}

uint64_t mach_length(const struct mach_run *r)
{
	return r->length;
}

uint64_t mach_worked(const struct mach_run *r)
{
	return r->worked;
}

uint64_t mach_time(const struct mach_run *r)
{
	return r->time;
}

bool mach_mapping(struct mach_run *r, uint64_t address, uint64_t *lo, uint64_t *hi)
{
	const struct mem_map *m = mem_find(r->m->mem, address);

	if (!m)
		return false;
	*lo = m->start;
	*hi = m->end;
	return true;
}

bool mach_mapping_above(struct mach_run *r, uint64_t from, uint64_t *lo, uint64_t *hi, unsigned *prot)
{
	const struct mem_maps *maps = r->m->mem->maps;
	size_t first = 0, last = maps->n;

	while (first < last) {
		size_t middle = (first + last) / 2;

		if (maps->v[middle].end > from)
			last = middle;
		else
			first = middle + 1;
	}
	if (first == maps->n)
		return false;
	*lo = maps->v[first].start;
	*hi = maps->v[first].end;
	*prot = maps->v[first].prot;
	return true;
}

size_t mach_thread_count(const struct mach_run *r)
{
	return r->nthreads;
}

/* ---- hooks: from the engine's terms to the outside's ---- */

static uint64_t insn_now(const struct mach_run *r)
{
	const struct mach *m = r->m;

	return m->insns + (m->now_op ? m->now_op->insn : 0);
}

static uint64_t time_now(const struct mach_run *r)
{
	/* r->time counts up to where this stretch of the thread began. */
	return r->time + (insn_now(r) - r->stretch);
}

static expr_id hook_access(void *arg, struct mach *m, uint64_t pc, uint64_t address, unsigned size,
			   unsigned how, uint64_t value, expr_id e)
{
	struct mach_run *r = arg;
	struct mach_access a = { .thread = r->current, .size = (uint16_t)size,
				 .flags = (uint16_t)how, .pc = pc, .address = address,
				 .value = value, .insn = insn_now(r), .time = time_now(r) };

	if (!r->hooks->access || a.time < r->hooks_from)
		return EXPR_NONE;
	mach_mxcsr_keep(m);
	e = r->hooks->access(r->hooks->arg, &a, e);
	if (!(how & ACCESS_READ) || !e)
		return EXPR_NONE;
	shadow_fresh(m); /* a new symbol: what came before is no reason to make it concrete */
	return e;
}

static void hook_concretized(void *arg, struct mach *m, uint64_t pc, expr_id cond, const char *why)
{
	struct mach_run *r = arg;

	mach_mxcsr_keep(m);
	if (r->hooks->concretized && time_now(r) >= r->hooks_from)
		r->hooks->concretized(r->hooks->arg, r->current, pc, cond, why);
}

static void hook_locked_end(void *arg, struct mach *m, uint64_t pc)
{
	struct mach_run *r = arg;

	mach_mxcsr_keep(m);
	if (r->hooks->atomic_end && time_now(r) >= r->hooks_from)
		r->hooks->atomic_end(r->hooks->arg, r->current, pc);
}

void run_tell_branch(struct mach_run *r, const struct mach_block *b, int taken, uint64_t next)
{
	expr_id cond = r->m->shadow ? shadow_branch_condition(r->m) : EXPR_NONE;
	struct mach_branch info = { .thread = r->current, .taken = taken == 1,
				    .indirect = b->end == BLOCK_INDIRECT, .pc = b->last_pc,
				    .target = next, .insn = r->m->insns - 1, .cond = cond };

	info.time = r->time + (info.insn - r->stretch);
	if (!r->hooks->branch || info.time < r->hooks_from || (info.indirect && !cond))
		return;
	mach_mxcsr_keep(r->m);
	r->hooks->branch(r->hooks->arg, &info);
}

void run_hooks_on(struct mach_run *r, const struct mach_hooks *hooks, struct expr_pool *pool,
		  uint64_t from)
{
	const struct shadow_hooks sh = { r, hook_access, hook_concretized };

	r->hooks = hooks;
	r->pool = pool;
	r->hooks_from = from;
	shadow_sleep(shadow_new(r->m, pool, &sh));
	r->m->locked_end = hook_locked_end;
	r->m->access_arg = r;
}

void run_hooks_off(struct mach_run *r)
{
	run_settle(r);
	shadow_free(r->m->shadow);
	r->m->locked_end = NULL;
	r->hooks = NULL;
	r->pool = NULL;
	for (size_t i = 0; i < r->nthreads; i++) {
		shadow_cpu_free(r->threads[i].shadow);
		r->threads[i].shadow = NULL;
	}
}

/* ---- again ---- */

static struct checkpoint *checkpoint_before(struct mach_run *r, uint64_t time)
{
	struct checkpoint *best = NULL;

	for (size_t i = 0; i < r->checkpoints.n; i++)
		if (r->checkpoints.v[i]->time <= time)
			best = r->checkpoints.v[i];
	return best;
}

uint64_t run_checkpoint_time(struct mach_run *r, uint64_t time)
{
	const struct checkpoint *c = checkpoint_before(r, time);

	return c ? c->time : 0;
}

uint64_t mach_moment(const struct mach_run *r, uint64_t before_end)
{
	uint64_t best = 0;

	for (size_t i = 0; i < r->checkpoints.n; i++)
		if (r->checkpoints.v[i]->time + before_end <= r->length)
			best = r->checkpoints.v[i]->time;
	return best;
}

uint64_t mach_alone(const struct mach_run *r)
{
	uint64_t insns = 0;

	for (size_t i = r->log.n; i-- > 0 && r->log.v[i].thread == r->log.v[r->log.n - 1].thread;)
		insns += r->log.v[i].insns;
	return insns;
}

static err_t off_the_log(struct mach_run *r, const struct log_step *s, enum action got)
{
	return err_new(ERR_INTERNAL,
		       "executing the committed order again went another way: thread %u, expected %u, "
		       "got %d%s%s",
		       s->thread, s->action, got, r->why ? ": " : "", r->why ? r->why : "");
}

static err_t log_run(struct mach_run *r, struct run_thread *t, const struct log_step *s)
{
	uint64_t target = mach_thread_insns(r, t->index) + s->insns;

	while (mach_thread_insns(r, t->index) < target) {
		bool granted = run_take_ticket(r, t);
		enum action a = run_thread_go(r, t, target, granted);

		if (mach_thread_insns(r, t->index) >= target)
			break;
		if (run_is_hopeless(r))
			return err_new(ERR_NOANSWER, "the time limit was reached");
		if (a != ACT_RUN && a != ACT_TICKET)
			return off_the_log(r, s, a);
		if (r->hooks && r->hooks->stop && r->hooks->stop(r->hooks->arg))
			return NULL;
	}
	return NULL;
}

err_t run_log_step(struct mach_run *r, const struct log_step *s)
{
	struct run_thread *t = &r->threads[s->thread];

	if (run_is_of_order(s))
		return r->order.step(r, s);
	if (s->action == ACT_RUN) {
		r->by_log = true;
		err_t bad = log_run(r, t, s);
		r->by_log = false;
		return bad;
	}
	if (t->s.action == ACT_RUN && s->action == ACT_SIGNAL)
		run_approach_signal(r, t);
	if (t->s.action == ACT_RUN)
		run_thread_go(r, t, UINT64_MAX, false);
	if (t->s.action != (enum action)s->action)
		return off_the_log(r, s, t->s.action);
	run_perform(r, t);
	return NULL;
}

/* Executes steps [first, last) of the log; stops early when the hooks say so. */
err_t run_log_again(struct mach_run *r, size_t first, size_t last, bool *stopped)
{
	*stopped = false;
	for (size_t i = first; i < last && !*stopped; i++) {
		const struct log_step s = r->log.v[i];

		if (r->hooks && r->m->shadow && r->time + s.insns >= r->hooks->symbols_from)
			shadow_wake(r->m->shadow);
		TRY(run_log_step(r, &s));
		*stopped = r->hooks && r->hooks->stop && r->hooks->stop(r->hooks->arg);
	}
	return NULL;
}

/* Puts the run where time is (at most) `time`; *log is the next step. */
err_t run_go_to(struct mach_run *r, uint64_t time, size_t *log)
{
	struct checkpoint *c = checkpoint_before(r, time);
	size_t keep = r->log.n;
	bool stopped;

	if (!c)
		return err_new(ERR_INTERNAL, "the run has not been followed yet");
	checkpoint_restore(r, c);
	r->log.n = keep; /* the committed order stays */
	*log = c->log;
	if (time == UINT64_MAX)
		TRY(run_log_again(r, c->log, keep, &stopped));
	return NULL;
}

/* Up to the run's time `time`, inside a step of the log if need be. */
err_t run_go_exactly(struct mach_run *r, uint64_t time, size_t *log, uint64_t *left)
{
	bool stopped;

	TRY(run_go_to(r, time, log));
	*left = 0;
	while (*log < r->log.n && r->time < time) {
		struct log_step s = r->log.v[*log];

		if (s.action == ACT_RUN && r->time + s.insns > time) {
			struct log_step part = s;

			part.insns = time - r->time;
			*left = s.insns - part.insns;
			return run_log_step(r, &part);
		}
		TRY(run_log_again(r, *log, *log + 1, &stopped));
		(*log)++;
	}
	return NULL;
}

/*
 * The instruction that faulted never completed, so it is in no log; execute it
 * into its fault, so that listeners learn of what its address was made.
 */
static void try_the_fault(struct mach_run *r)
{
	const struct trc_failure *f = r->t->failure;
	bool fault = f && (f->signal == SIGSEGV || f->signal == SIGBUS || f->signal == SIGFPE ||
			   f->signal == SIGILL);

	if (!fault || f->thread >= r->nthreads)
		return;
	run_switch(r, f->thread);
	if (r->m->frame->g.guest_RIP != f->regs[TRC_RIP])
		return;
	r->free = true; /* following, the thread would stop in front of it */
	run_thread_go(r, &r->threads[f->thread], r->m->insns + 1, true);
	r->free = false;
}

err_t mach_again(struct mach_run *r, uint64_t from, const struct mach_hooks *hooks,
		 struct expr_pool *pool)
{
	size_t log;
	bool stopped = false;
	err_t e;

	r->free = false;
	r->edges.n = 0;
	run_seek_lost(r);
	e = run_go_to(r, from, &log);
	if (e)
		return e;
	run_hooks_on(r, hooks, pool, from);
	if (hooks->begin)
		hooks->begin(hooks->arg);
	e = run_log_again(r, log, r->log.n, &stopped);
	if (hooks->symbols_from != UINT64_MAX)
		shadow_wake(r->m->shadow);
	if (!e && !stopped)
		try_the_fault(r);
	/* The last thread ran up to where the record ends: inside its last step. */
	if (!e && !stopped && hooks->end && r->res.thread != NO_THREAD) {
		run_switch(r, r->res.thread);
		hooks->end(hooks->arg, r->res.thread, r->m->frame->g.guest_RIP);
	}
	if (!e && !stopped && hooks->onward_insns && hooks->go_onward) {
		if (hooks->onward)
			hooks->onward(hooks->arg);
		hooks->go_onward(r, hooks->onward_insns);
	}
	run_hooks_off(r);
	return e;
}
