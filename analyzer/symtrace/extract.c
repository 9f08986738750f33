#include "analyzer/symtrace/extract_internal.h"
#include "analyzer/symtrace/extract_text.h"

#include <string.h>

/* Behind the record: what was missing by a hair comes soon. */
#define ONWARD_INSNS 1000000

struct ext_thread *ext_thread(struct ext *x, uint32_t thread)
{
	return &x->threads.v[thread];
}

uint64_t ext_onward_insns(const struct ext *x)
{
	return x->o->onward ? ONWARD_INSNS : 0;
}

void ext_onward(struct ext *x)
{
	x->onward = mach_time(x->run) + 1;
	if (x->failing != SYM_NONE)
		x->failed_insn = mach_thread_insns(x->run, x->failing);
	x->failed_step = ++x->steps;
}

bool ext_matters(struct ext *x, const struct mach_access *a, struct mach_access *part)
{
	bool program = !(a->flags & MACH_KERNEL) && level_is_program(x->level, a->thread, a->pc);
	const struct mach_access *touched = a;

	if (x->until && a->time > x->until)
		return false;
	if (program) {
		ext_thread(x, a->thread)->program_insn = a->insn;
		if (level_scan(x->level, a->thread)) {
			*part = text_part(x->level, x->run, a);
			touched = part;
		}
	}
	/* Nearly all accesses end here: nothing is copied for them. */
	if (!touched->size || !share_touches(x->share, touched->address, touched->size))
		return false;
	if (touched == a)
		*part = *a;
	/* The library call in which the failing thread died acts for the program. */
	if (x->failing_in_runtime && a->thread == x->failing && a->insn > x->failing_since)
		program = true;
	/* So does the one that tells a thread to end, or looks whether it has been told. */
	if (!program && share_cancelled(x->share, a->address) != SYM_NONE)
		program = true;
	return (program || (a->flags & MACH_WRITE)) && ext_in_focus(x->o->survey, touched->address) &&
	       !spins_leave_out(x->o->survey->spins, a);
}

/* ---- occurrences ---- */

static struct ext_counter *counter_slot(struct ext_counter *table, size_t size, uint32_t thread,
					uint64_t pc)
{
	uint64_t near = (pc >> 5 ^ (uint64_t)thread << 40) * 0x9e3779b97f4a7c15ull >> 20;
	size_t i = (near << 2 | (pc >> 3 & 3)) & (size - 1); /* neighbours come soon after */

	while (table[i].pc && (table[i].pc != pc || table[i].thread != thread))
		i = (i + 1) & (size - 1);
	return &table[i];
}

static void counters_grow(struct ext *x)
{
	size_t size = x->ncounters ? x->ncounters * 2 : 1 << 10;
	struct ext_counter *bigger = xcalloc(size, sizeof *bigger);

	for (size_t i = 0; i < x->ncounters; i++)
		if (x->counters[i].pc)
			*counter_slot(bigger, size, x->counters[i].thread, x->counters[i].pc) =
				x->counters[i];
	free(x->counters);
	x->counters = bigger;
	x->ncounters = size;
}

uint64_t ext_count(struct ext *x, uint32_t thread, uint64_t pc, uint64_t insn)
{
	if (!pc)
		return 0;
	if (x->used_counters * 2 >= x->ncounters)
		counters_grow(x);
	struct ext_counter *c = counter_slot(x->counters, x->ncounters, thread, pc);
	if (!c->pc) {
		*c = (struct ext_counter){ .pc = pc, .thread = thread, .insn = UINT64_MAX };
		x->used_counters++;
	}
	if (c->insn != insn) {
		c->insn = insn;
		c->n++;
	}
	return c->n;
}

/* ---- events ---- */

void ext_time(struct ext *x, uint32_t thread, uint64_t tsc)
{
	struct ext_thread *th = ext_thread(x, thread);
	struct sym_thread *s = &x->trace->threads[thread];

	if (!tsc || tsc < th->tsc)
		return;
	th->tsc = tsc;
	for (; th->untimed < s->nevents; th->untimed++)
		if (s->events[th->untimed].time_hi == UINT64_MAX)
			s->events[th->untimed].time_hi = tsc;
}

uint32_t ext_event(struct ext *x, uint32_t thread, struct sym_event *e, uint64_t pc,
		   uint64_t occurrence, uint64_t insn)
{
	struct ext_thread *th = ext_thread(x, thread);

	e->pc = pc;
	e->occurrence = occurrence;
	e->time_lo = th->tsc;
	e->time_hi = UINT64_MAX;
	e->step = ++x->steps;
	/* A thread that called address 0 fails there; who called is on its stack. */
	e->stack = pc || e->op == SYM_FAIL ? ext_stack(x, thread, pc) : SYM_NONE;
	if (x->onward && th->computed == SYM_NONE && e->op != SYM_FAIL)
		th->computed = (uint32_t)th->points.n;
	vec_push(&th->points, (struct mach_point){ thread, insn });
	return sym_add_event(x->trace, thread, e);
}

bool ext_is_inside(const struct ext *x, uint64_t time)
{
	const struct ext_middle *m = x->o->middle;

	return time >= x->from && time <= x->to && !(m && m->gap_from && time > m->gap_from && time < m->gap_to);
}

/* While a thread runs, the run's own clock stands where it began to; its last access says more. */
uint64_t ext_now(const struct ext *x)
{
	uint64_t now = mach_time(x->run);

	return x->o->middle && x->accessed > now ? x->accessed : now;
}

bool ext_is_behind(const struct ext *x)
{
	return x->o->middle && ext_now(x) > x->to;
}

bool ext_stop(struct ext *x)
{
	uint64_t length = mach_length(x->run), now = mach_time(x->run);
	double part = length > x->base && now >= x->base && now <= length ?
			      (double)(now - x->base) / (double)(length - x->base) : -1;

	if (x->o->progress && x->o->progress(x->o->progress_arg, x->phase, part))
		x->stopped = true;
	return x->stopped;
}

/* ---- the driver ---- */

void ext_reset_level(struct ext *x)
{
	level_free(x->level);
	x->level = level_new(x->images);
}

/* Where the failing thread died: in the program, or inside a library call. */
static void look_at_failure(struct ext *x)
{
	const struct trc_failure *f = x->t->failure;

	x->failing = SYM_NONE;
	if (!f || f->thread >= x->threads.n)
		return;
	enum trc_failure_kind kind = (enum trc_failure_kind)f->rec.flags;
	if (kind == TRC_FAIL_DEADLOCK || kind == TRC_FAIL_HANG)
		return;
	x->failing = f->thread;
	bool heap = kind == TRC_FAIL_ABORT && f->detail_len > 0;
	x->failing_in_runtime = (kind == TRC_FAIL_SIGNAL || heap) &&
				level_is_runtime(x->level, f->regs[TRC_RIP]);
}

static void add_threads(struct ext *x)
{
	for (size_t i = 0; i < x->t->threads.n; i++) {
		vec_push(&x->threads,
			 (struct ext_thread){ .release = SYM_NONE, .enter = SYM_NONE,
					      .atomic = SYM_NONE, .computed = SYM_NONE });
		sym_add_thread(x->trace, trc_thread_id(x->t, (uint32_t)i),
			       x->t->threads.v[i].name);
	}
}

static err_t extract(struct ext *x)
{
	look_at_failure(x);
	TRY(ext_survey(x));
	ext_survey_window(x);
	ext_survey_locations(x);
	TRY(ext_build(x));
	if (x->stopped)
		return err_new(ERR_NOANSWER, "stopped while %s", x->phase);
	ext_failure(x);
	ext_find_locks(x);
	ext_tell_objects_apart(x);
	return NULL;
}

static struct ext_result *result_of(struct ext *x)
{
	struct ext_result *r = xcalloc(1, sizeof *r);

	r->trace = x->trace;
	r->from = x->from;
	r->to = x->o->middle ? x->to : 0;
	r->base = x->base;
	r->total = x->o->survey->n;
	r->accesses = x->o->survey->accesses;
	r->locations = x->locations.n;
	r->fate = x->fate;
	r->common_fd = x->common_fd;
	ext_inside_find(x, &r->inside);
	r->brink = x->brink;
	/* The one that explains most. (moved) */
	r->misuse = x->misuse.kind ? x->misuse : x->misused_stack.kind ? x->misused_stack :
		    x->misused_lock.kind ? x->misused_lock : x->misused_fd;
	if (r->misuse.kind != EXT_MISUSE_DESTROYED)
		free(x->misused_lock.name);
	for (size_t i = 0; i < x->sync_before.n && !x->sync_before_lost; i++)
		vec_push(&r->past, x->sync_before.v[i]);
	for (size_t i = 0; i < x->interrupts.n; i++)
		vec_push(&r->interrupts, x->interrupts.v[i]);
	for (size_t i = 0; i < x->calls.n && !x->calls_lost; i++)
		vec_push(&r->calls, x->calls.v[i]);
	r->onward_insns = ext_onward_insns(x);
	r->computed = xcalloc(x->threads.n + 1, sizeof *r->computed);
	for (size_t i = 0; i < x->threads.n; i++)
		r->computed[i] = x->threads.v[i].computed;
	r->started = xcalloc(x->threads.n + 1, sizeof *r->started);
	for (size_t i = 0; i < x->threads.n; i++)
		r->started[i] = x->threads.v[i].started && (!x->trace->threads[i].nevents ||
							     x->trace->threads[i].events[0].op != SYM_START);
	r->points = xcalloc(x->threads.n, sizeof *r->points);
	for (size_t i = 0; i < x->threads.n; i++)
		r->points[i] = x->threads.v[i].points.v; /* moved */
	return r;
}

err_t ext_extract(struct trc *t, struct img_set *images, struct mach_run *run,
		  const struct ext_options *given, struct ext_result **out)
{
	struct ext_options o = *given;
	struct ext x = { .t = t, .images = images, .run = run, .o = &o, .level = level_new(images),
			 .trace = sym_trace_new(), .common_fd = -1, .fate = { .thread = SYM_NONE },
			 .brink = { .thread = SYM_NONE } };
	const char *program = trc_identity(t, "program");

	if (!given->survey)
		o.survey = ext_survey_new();
	if (program)
		x.trace->program = xstrdup(program);
	add_threads(&x);
	err_t e = extract(&x);
	if (!e)
		e = err_wrap(sym_check(x.trace), "the extracted symbolic trace");
	if (!e) {
		*out = result_of(&x);
	} else {
		for (size_t i = 0; i < x.threads.n; i++)
			vec_free(&x.threads.v[i].points);
		free(x.misuse.name);
		free(x.misused_lock.name);
		sym_trace_free(x.trace);
	}
	if (!given->survey)
		ext_survey_free(o.survey);
	level_free(x.level);
	for (size_t i = 0; i < x.threads.n; i++)
		free(x.threads.v[i].birth);
	vec_free(&x.threads);
	vec_free(&x.locations);
	vec_free(&x.objects);
	vec_free(&x.blocks);
	vec_free(&x.misuse_watch.freed);
	vec_free(&x.closed);
	vec_free(&x.destroyed);
	vec_free(&x.sent);
	vec_free(&x.interrupts);
	ext_files_free(&x);
	free(x.misuse_watch.slots);
	vec_free(&x.pinned);
	vec_free(&x.sync_before);
	vec_free(&x.named);
	free(x.counters);
	free(x.stacks);
	return e;
}

void ext_result_free(struct ext_result *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->trace->nthreads; i++)
		free(r->points[i]);
	free(r->points);
	free(r->computed);
	free(r->misuse.name);
	free(r->inside.where);
	vec_free(&r->past);
	vec_free(&r->interrupts);
	vec_free(&r->calls);
	free(r->started);
	sym_trace_free(r->trace);
	free(r);
}
