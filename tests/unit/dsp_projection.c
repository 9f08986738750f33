/* What a projection holds: the differences between two schedules, and no more. */
#include "tests/lib/check.h"
#include "tests/lib/sym_fixture.h"

static struct dsp *build(struct fixture *fx)
{
	struct dsp *d = NULL;
	err_t e = dsp_build(fx->trace, &fx->answer, &d);

	CHECK(!e, "%s projects%s%s", fx->trace->program, e ? ": " : "", e ? e->msg : "");
	err_free(e);
	return d;
}

static const struct dsp_event *find(const struct dsp_side *s, uint32_t thread, uint32_t index)
{
	for (size_t i = 0; i < s->nevents; i++)
		if (s->events[i].ref.thread == thread && s->events[i].ref.index == index)
			return &s->events[i];
	return NULL;
}

static void lost_update(void)
{
	struct fixture fx;

	fixture_lost_update(&fx);
	struct dsp *d = build(&fx);
	const struct dsp_side *f = &d->side[DSP_FAILING], *a = &d->side[DSP_ALTERNATE];
	const struct dsp_event *read = find(f, 2, 2), *write = find(f, 1, 3);

	CHECK(f->nprojected == 3, "a lost update shows 3 events (shows %zu)", f->nprojected);
	CHECK(read && read->reordered && read->in_flow && read->in_cause, "the stale read is one");
	CHECK(write && write->reordered && write->in_flow, "the write it missed is one");
	CHECK(find(f, 0, 7) && find(f, 0, 7)->failure, "the failure is one");
	CHECK(find(f, 2, 3) && find(f, 2, 3)->context, "the end of the region is there as context");
	CHECK(!find(f, 1, 1) && !find(f, 0, 5), "an unrelated variable is left out");
	CHECK(!find(f, 0, 1), "the common prefix is left out");
	CHECK(f->nflows == 1 && f->ndiffers == 1 && f->flows[0].initial && f->flows[0].value == 100,
	      "failing: the read sees the initial value");
	CHECK(a->nflows == 1 && a->flows[0].differs && !a->flows[0].initial &&
	      a->flows[0].write.thread == 1 && a->flows[0].value == 110,
	      "alternate: it sees the other thread's write");
	CHECK(find(a, 2, 3)->value == 130 && find(f, 2, 3)->value == 120,
	      "values are those of each schedule");
	CHECK(f->all_events == 17 && f->all_flows == 4, "the whole schedule is counted");
	CHECK(f->events[0].at < f->events[1].at && f->events[1].at < f->events[2].at,
	      "events stand in the order of their schedule");
	CHECK(d->npairs == 1 && d->pairs[0].inverted, "the root-cause pair is inverted");
	CHECK(!d->note, "nothing is missing");
	dsp_free(d);
	fixture_free(&fx);
}

static void no_alternate(void)
{
	struct fixture fx;

	fixture_lost_update(&fx);
	fx.answer.nalternates = 0;
	fx.answer.why = xstrdup("ran out of time");
	struct dsp *d = build(&fx);
	const struct dsp_side *f = &d->side[DSP_FAILING];

	CHECK(!d->has_alternate && !d->side[DSP_ALTERNATE].nevents, "no alternate: one side only");
	CHECK(f->nprojected == 3 && find(f, 2, 2) && find(f, 1, 3),
	      "it holds the root-cause events");
	CHECK(f->nflows == 1 && !f->flows[0].differs, "and their dataflows");
	CHECK(d->note && strstr(d->note, "ran out of time"), "and says why: %s", d->note);
	CHECK(d->hint.kind == DSP_HINT_NONE && !d->nregions, "without evidence there is no hint");
	dsp_free(d);
	fixture_order_free(&fx.answer.alternates[0].order);
	fixture_free(&fx);
}

/* The alternate goes another way before either of them. */
static void cause_not_reached(void)
{
	struct fixture fx;

	fixture_lost_update(&fx);
	fx.answer.alternates[0].path_differs = true;
	fx.answer.alternates[0].order.n = 3;
	struct dsp *d = build(&fx);
	const struct dsp_side *f = &d->side[DSP_FAILING];

	CHECK(find(f, 2, 2) && find(f, 1, 3) && d->pairs[0].inverted,
	      "what the alternate does not come to is shown as it happened");
	CHECK(d->hint.kind == DSP_HINT_ATOMIC, "and has a hint (is %s)", dsp_hint_name(d->hint.kind));
	CHECK(!find(&d->side[DSP_ALTERNATE], 2, 2)->executed, "and not said to be in the alternate");
	dsp_free(d);
	fixture_free(&fx);
}

static void deterministic(void)
{
	struct fixture fx;

	fixture_lost_update(&fx);
	fx.answer.nalternates = fx.answer.ncause = 0;
	fx.answer.deterministic = true;
	struct dsp *d = build(&fx);

	CHECK(d->deterministic && !d->has_cause, "a deterministic failure has no cause");
	CHECK(d->side[DSP_FAILING].nprojected == 1, "only the failure is shown");
	CHECK(d->note && strstr(d->note, "every schedule"), "and it says so: %s", d->note);
	CHECK(strlen(d->fingerprint) == 12, "it still has a fingerprint");
	dsp_free(d);
	fixture_order_free(&fx.answer.alternates[0].order);
	fixture_free(&fx);
}

static void nothing_found(void)
{
	struct fixture fx;

	fixture_lost_update(&fx);
	fx.answer.found = false;
	fx.answer.why = xstrdup("the path conditions contradict each other");
	struct dsp *d = build(&fx);

	CHECK(!d->has_cause && !d->has_alternate && !d->npairs, "nothing found: nothing claimed");
	CHECK(d->note && strstr(d->note, "contradict"), "and it says why: %s", d->note);
	dsp_free(d);
	fixture_free(&fx);
}

static void foreign_refs(void)
{
	struct fixture fx;
	struct dsp *d = NULL;
	err_t e;

	fixture_lost_update(&fx);
	fx.answer.cause[0].after.index = 4000;
	e = dsp_build(fx.trace, &fx.answer, &d);
	CHECK(e && !d, "an edge to no event is refused: %s", e ? e->msg : "");
	err_free(e);
	fx.answer.cause[0].after.index = 3;
	fx.answer.failing.refs[3].thread = 77;
	e = dsp_build(fx.trace, &fx.answer, &d);
	CHECK(e && !d, "a schedule of no thread is refused: %s", e ? e->msg : "");
	err_free(e);
	fixture_free(&fx);
}

static void deadlock(void)
{
	struct fixture fx;

	fixture_deadlock(&fx);
	struct dsp *d = build(&fx);
	const struct dsp_side *f = &d->side[DSP_FAILING];

	CHECK(f->nprojected == 4, "a deadlock of two shows four acquisitions (shows %zu)",
	      f->nprojected);
	CHECK(find(f, 1, 2) && !find(f, 1, 2)->executed && find(f, 1, 2)->failure,
	      "the acquisition that never succeeds is not executed");
	CHECK(find(&d->side[DSP_ALTERNATE], 1, 2)->executed, "in the alternate it is");
	CHECK(d->nwaits == 2 && d->waits[0].wants.thread == 1 && d->waits[0].holds.thread == 2 &&
	      d->waits[0].holds.index == 1 && d->waits[1].holds.thread == 1,
	      "who waits for whom is known");
	dsp_free(d);
	fixture_free(&fx);
}

/*
 * Two threads add to `x' forty times each; the schedules differ in almost every
 * dataflow, yet the failure is explained by the last ones.
 */
static void long_chains(void)
{
	struct fixture fx;
	char turns[163], *at = turns;

	fixture_init(&fx, "/home/u/long", "/src/long.c");
	uint32_t x = fixture_var(&fx, "x", "int", 0);

	for (int i = 0; i < 3; i++)
		sym_add_thread(fx.trace, (const char *[]){ "T0", "T0.1", "T0.2" }[i], NULL);
	for (uint32_t th = 1; th < 3; th++) {
		for (int i = 0; i < 40; i++) {
			uint32_t r = fixture_event(&fx, th, SYM_READ, x, "add", 10);
			uint32_t w = fixture_event(&fx, th, SYM_WRITE, x, "add", 11);

			fixture_at(&fx, th, w)->value =
				expr_binary(fx.trace->pool, EX_ADD, fixture_sym(&fx, th, r),
					    expr_const(fx.trace->pool, 32, 1));
		}
	}
	uint32_t last = fixture_event(&fx, 0, SYM_READ, x, "main", 50);

	fixture_event(&fx, 0, SYM_FAIL, SYM_NONE, "main", 50);
	fixture_fails(&fx, SYM_FAIL_ASSERT, 0, "Assertion `x == 80' failed",
		      expr_unary(fx.trace->pool, EX_BNOT,
				 expr_binary(fx.trace->pool, EX_EQ, fixture_sym(&fx, 0, last),
					     expr_const(fx.trace->pool, 32, 80))));
	for (int i = 0; i < 40; i++)
		at = stpcpy(at, "1212");
	strcpy(at, "00");
	fixture_order(&fx, &fx.answer.failing, turns);
	memset(turns, '1', 80);
	memset(turns + 80, '2', 80);
	fixture_cause(&fx, 2, 78, 1, 79);
	fixture_alternate(&fx, turns);
	struct dsp *d = build(&fx);
	const struct dsp_side *f = &d->side[DSP_FAILING];

	CHECK(f->all_events == 162 && f->nprojected <= 10,
	      "of 162 events in chains only the last ones are shown (%zu)", f->nprojected);
	CHECK(f->ndiffers >= 1 && f->ndiffers <= 4, "and as few dataflows (%zu)", f->ndiffers);
	CHECK(find(f, 2, 78) && find(f, 1, 79), "the root cause among them");
	dsp_free(d);
	fixture_free(&fx);
}

/* The alternate takes another branch: what it lists behind that has no values. */
static void other_path(void)
{
	struct fixture fx;

	fixture_teardown(&fx);
	fixture_order_free(&fx.answer.alternates[0].order);
	free(fx.answer.alternates);
	fixture_alternate(&fx, "0 111 0");
	fx.answer.alternates[0].path_differs = true;
	struct dsp *d = build(&fx);
	const struct dsp_side *a = &d->side[DSP_ALTERNATE];

	CHECK(a->exact == 4, "events are exact up to the branch (%zu)", a->exact);
	CHECK(find(a, 0, 1) && find(a, 0, 1)->executed && !find(a, 0, 1)->has_value,
	      "an event behind it has a place but no value");
	CHECK(find(&d->side[DSP_FAILING], 0, 1)->has_value, "in the failing schedule it has one");
	dsp_free(d);
	fixture_free(&fx);
}

/* Store buffers: both threads raise their flag and look before either is seen. */
static void store_buffers(void)
{
	struct fixture fx;

	fixture_init(&fx, "/home/u/dekker", "/src/dekker.c");
	uint32_t flag[2] = { fixture_var(&fx, "a", "int", 0), fixture_var(&fx, "b", "int", 0) };
	const struct sched_ref order[] = { { 0, 1 }, { 1, 1 }, { 0, 2 }, { 0, 0 }, { 1, 0 } };

	for (uint32_t th = 0; th < 2; th++) {
		sym_add_thread(fx.trace, th ? "T0.2" : "T0.1", NULL);
		uint32_t w = fixture_event(&fx, th, SYM_WRITE, flag[th], "enter", 10);

		fixture_at(&fx, th, w)->value = expr_const(fx.trace->pool, 32, 1);
		fixture_event(&fx, th, SYM_READ, flag[!th], "enter", 11);
	}
	fixture_event(&fx, 0, SYM_READ, flag[0], "enter", 12);
	fixture_fails(&fx, SYM_FAIL_USER, 0, NULL, EXPR_NONE);
	fx.answer.failing.refs = xcalloc(5, sizeof *order);
	memcpy(fx.answer.failing.refs, order, sizeof order);
	fx.answer.failing.n = 5;
	fixture_cause(&fx, 0, 1, 1, 0);
	fixture_cause(&fx, 1, 1, 0, 0);
	fixture_cause(&fx, 0, 2, 0, 0);
	struct order_flow *flows;
	size_t n = order_flows(fx.trace, &fx.answer.failing, &flows);

	CHECK(n == 3 && flows[0].initial && flows[1].initial, "neither sees the other's flag");
	CHECK(!flows[2].initial && flows[2].write.thread == 0 && flows[2].write.index == 0,
	      "a thread sees its own write in its buffer");
	free(flows);
	struct dsp *d = build(&fx);
	const struct dsp_event *w = find(&d->side[DSP_FAILING], 0, 0);

	CHECK(w && w->buffered, "the write is marked as seen later");
	CHECK(!find(&d->side[DSP_FAILING], 0, 1)->buffered, "a read is not");
	dsp_free(d);
	fixture_free(&fx);
}

static char *fingerprint(struct fixture *fx)
{
	struct dsp *d = build(fx);
	char *s = xstrdup(d->fingerprint);

	dsp_free(d);
	fixture_free(fx);
	return s;
}

/* The same bug seen by other threads, at other lines, in another directory. */
static void move_everything(struct fixture *fx)
{
	for (size_t i = 0; i < fx->trace->nstacks; i++) {
		for (uint32_t k = 0; k < fx->trace->stacks[i].n; k++) {
			struct sym_frame *f = &fx->trace->stacks[i].frames[k];

			f->line += f->line ? 7 : 0;
			f->pc += 0x1000;
			if (f->file) {
				char *file = xasprintf("/elsewhere%s", f->file);

				free(f->file);
				f->file = file;
			}
		}
	}
	for (size_t i = 0; i < fx->trace->nthreads; i++) {
		char *id = xasprintf("T0.%zu", i + 5);

		free(fx->trace->threads[i].id);
		fx->trace->threads[i].id = id;
	}
}

static void rename_functions(struct fixture *fx, const char *name)
{
	for (size_t i = 0; i < fx->trace->nstacks; i++)
		for (uint32_t k = 0; k < fx->trace->stacks[i].n; k++) {
			free(fx->trace->stacks[i].frames[k].function);
			fx->trace->stacks[i].frames[k].function = xstrdup(name);
		}
}

static void fingerprints(void)
{
	struct fixture fx;

	fixture_lost_update(&fx);
	char *one = fingerprint(&fx);

	fixture_lost_update(&fx);
	char *again = fingerprint(&fx);

	fixture_lost_update(&fx);
	move_everything(&fx);
	char *moved = fingerprint(&fx);

	fixture_check_then_act(&fx);
	char *other = fingerprint(&fx);

	CHECK(strlen(one) == 12 && strspn(one, "0123456789abcdef") == 12,
	      "a fingerprint is 12 hex digits: %s", one);
	CHECK(!strcmp(one, again), "the same trace has the same fingerprint");
	CHECK(!strcmp(one, moved), "other lines, threads and directories do not change it");
	CHECK(strcmp(one, other), "another bug has another one");
	fixture_lost_update(&fx);
	free(fx.trace->vars[0].name);
	fx.trace->vars[0].name = xstrdup("elsewhere");
	char *variable = fingerprint(&fx);

	CHECK(!strcmp(one, variable), "the same on another field of the same object is the same");
	char *by_function[2], *by_variable[2];
	for (int i = 0; i < 2; i++) {
		fixture_lost_update(&fx);
		rename_functions(&fx, i ? "two" : "one");
		by_function[i] = fingerprint(&fx);
		fixture_lost_update(&fx);
		rename_functions(&fx, "?");
		free(fx.trace->vars[0].name);
		fx.trace->vars[0].name = xstrdup(i ? "two" : "one");
		by_variable[i] = fingerprint(&fx);
	}
	CHECK(strcmp(by_function[0], by_function[1]), "another function has another one");
	CHECK(strcmp(by_variable[0], by_variable[1]), "where functions are not known another variable has");
	for (int i = 0; i < 2; i++) {
		free(by_function[i]);
		free(by_variable[i]);
	}
	free(one);
	free(again);
	free(moved);
	free(other);
	free(variable);
}

/* Which library function an access went through, as its caller knows it. */
static void via(void)
{
	static const struct {
		const char *function, *module, *want;
	} cases[] = {
		{ "__GI___libc_free", "libc.so.6", "free" },
		{ "cfree", "libc.so.6", "free" },
		{ "__memcpy_avx_unaligned_erms", "libc.so.6", "memcpy" },
		{ "std::vector<int, std::allocator<int> >::push_back", "libstdc++.so.6", "vector::push_back" },
		{ "std::__cxx11::basic_string<char>::operator<", "libstdc++.so.6",
		  "basic_string::operator<" },
		{ "helper", "program", NULL },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture fx;

		fixture_lost_update(&fx);
		struct sym_frame frames[2] = {
			{ .function = (char *)cases[i].function, .module = (char *)cases[i].module },
			{ .function = "put", .file = "put.c", .line = 8, .module = "program" },
		};
		struct sym_event e;

		sym_event_init(&e, SYM_WRITE);
		e.target = 0;
		e.stack = sym_add_stack(fx.trace, frames, 2);
		char *got = dsp_via(fx.trace, &e);

		CHECK(cases[i].want ? got && !strcmp(got, cases[i].want) : !got, "%s is known as %s",
		      cases[i].function, got ? got : "none");
		free(got);
		fixture_free(&fx);
	}
}

int main(void)
{
	via();
	lost_update();
	no_alternate();
	cause_not_reached();
	deterministic();
	nothing_found();
	foreign_refs();
	deadlock();
	long_chains();
	store_buffers();
	other_path();
	fingerprints();
	CHECK_END();
}
