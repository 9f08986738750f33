/*
 * Random traces with random orders (deterministic: a fixed sequence of seeds).
 * They need not be feasible; projection and reports must stay sound on them.
 */
#include "analyzer/report/report.h"
#include "common/strbuf.h"
#include "tests/lib/check.h"
#include "tests/lib/sym_fixture.h"

static uint64_t state;

static unsigned pick(unsigned n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % n;
}

static void random_event(struct fixture *fx, uint32_t th, unsigned nvars, unsigned nlocks)
{
	static const enum sym_op ops[] = { SYM_READ, SYM_WRITE, SYM_RMW, SYM_LOCK, SYM_UNLOCK,
					   SYM_SIGNAL, SYM_TRYLOCK };
	enum sym_op op = ops[pick(7)];
	bool memory = op == SYM_READ || op == SYM_WRITE || op == SYM_RMW;
	uint32_t line = pick(30) + 1;
	uint32_t i = fixture_event(fx, th, op, memory ? pick(nvars) : pick(nlocks), "work", line);
	struct sym_event *e = fixture_at(fx, th, i);
	struct expr_pool *pool = fx->trace->pool;

	if (op == SYM_WRITE || (op == SYM_RMW && pick(3)))
		e->value = expr_const(pool, 32, pick(5));
	/* Sometimes what was read last. */
	for (uint32_t k = i; e->value != EXPR_NONE && pick(2) && k-- > 0;)
		if (fixture_at(fx, th, k)->symbol != EXPR_NONE)
			e->value = expr_binary(pool, EX_ADD, fixture_at(fx, th, k)->symbol,
					       expr_const(pool, 32, 1));
	if (!pick(6))
		e->stack = SYM_NONE;
	if (op == SYM_READ && pick(2))
		fixture_cond(fx, th, i,
			     expr_binary(pool, EX_ULT, e->symbol, expr_const(pool, 32, 3)));
}

static char *random_turns(struct fixture *fx)
{
	struct strbuf b = { 0 };
	size_t left[8], total = 0;

	for (size_t i = 0; i < fx->trace->nthreads; i++)
		total += left[i] = fx->trace->threads[i].nevents;
	/* An order may end early: threads that are never scheduled again. */
	total -= pick((unsigned)total / 4 + 1);
	while (total--) {
		size_t th = pick((unsigned)fx->trace->nthreads);

		while (!left[th])
			th = (th + 1) % fx->trace->nthreads;
		left[th]--;
		strbuf_char(&b, (char)('0' + th));
	}
	return strbuf_take(&b);
}

static struct sched_ref random_ref(struct fixture *fx)
{
	uint32_t th = pick((unsigned)fx->trace->nthreads);

	return (struct sched_ref){ th, pick((unsigned)fx->trace->threads[th].nevents) };
}

static void random_case(struct fixture *fx)
{
	static const char *const ids[] = { "T0", "T0.1", "T0.2", "T0.3", "T0.1.1", "T0.4" };
	unsigned nthreads = 1 + pick(6), nvars = 1 + pick(4), nlocks = 1 + pick(3);

	fixture_init(fx, "/bin/random", "/src/random.c");
	for (unsigned i = 0; i < nvars; i++)
		fixture_var(fx, (const char *[]){ "x", "buf[3]", "s->next", "0x7f0012" }[i],
			    pick(2) ? "int" : "unsigned", pick(9));
	for (unsigned i = 0; i < nlocks; i++)
		fixture_mutex(fx, (const char *[]){ "m", "n", "o" }[i]);
	for (unsigned th = 0; th < nthreads; th++)
		sym_add_thread(fx->trace, ids[th], NULL);
	for (unsigned th = 0; th < nthreads; th++) {
		if (th)
			fixture_event(fx, pick(th), SYM_FORK, th, "main", pick(30) + 1);
		for (unsigned n = 1 + pick(12); n--;)
			random_event(fx, th, nvars, nlocks);
	}
	uint32_t failing = pick(nthreads);

	fixture_event(fx, failing, SYM_FAIL, SYM_NONE, "work", pick(30) + 1);
	fixture_fails(fx, pick(SYM_FAIL_KINDS), failing, pick(2) ? "boom" : NULL, EXPR_NONE);
	if (!pick(4)) {
		struct sym_failure *f = &fx->trace->failure;

		f->nblocked = 1 + pick(3);
		f->blocked = xcalloc(f->nblocked, sizeof *f->blocked);
		for (size_t i = 0; i < f->nblocked; i++) {
			struct sched_ref r = random_ref(fx);

			f->blocked[i] = (struct sym_blocked){ r.thread, r.index };
		}
	}
	char *turns = random_turns(fx);

	fixture_order(fx, &fx->answer.failing, turns);
	free(turns);
	for (unsigned n = pick(5); n--;) {
		struct sched_ref a = random_ref(fx), b = random_ref(fx);

		fixture_cause(fx, a.thread, a.index, b.thread, b.index);
	}
	if (fx->answer.ncause && pick(5)) {
		turns = random_turns(fx);
		fixture_alternate(fx, turns);
		free(turns);
	}
}

static bool projected(const struct dsp_side *s, struct sched_ref r)
{
	size_t times = 0;

	for (size_t i = 0; i < s->nevents; i++)
		times += s->events[i].ref.thread == r.thread && s->events[i].ref.index == r.index;
	return times == 1;
}

static bool sound(const struct dsp *d)
{
	for (int w = 0; w < DSP_SIDES; w++) {
		const struct dsp_side *s = &d->side[w];

		for (size_t i = 0; i < s->nflows; i++)
			if (!projected(s, s->flows[i].read) ||
			    (!s->flows[i].initial && !projected(s, s->flows[i].write)))
				return false;
		for (size_t i = 0; i < s->nevents; i++) {
			const struct dsp_event *e = &s->events[i];

			if ((i && e->at < s->events[i - 1].at) || !projected(s, e->ref) ||
			    !(e->in_flow || e->reordered || e->in_cause || e->failure ||
			      e->context))
				return false;
		}
	}
	return true;
}

static size_t widest(const char *s)
{
	size_t best = 0, n = 0;

	for (; *s; s++) {
		n = *s == '\n' ? 0 : n + (((unsigned char)*s & 0xc0) != 0x80);
		if (n > best)
			best = n;
	}
	return best;
}

static bool writes(const struct report *r)
{
	static void (*const writers[])(FILE *, const struct report *) = {
		report_html, report_json, report_dot, report_markdown, report_sarif,
	};
	const struct report_term term = {
	    .width = 60 + pick(100), .color = false, .unicode = pick(2)};
	bool good = true;
	char *s = NULL;
	size_t n;
	FILE *f = open_memstream(&s, &n);

	report_terminal(f, r, &term);
	fclose(f);
	good = widest(s) <= term.width;
	if (!good)
		printf("  %zu columns of %u:\n%s", widest(s), term.width, s);
	free(s);
	for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
		f = open_memstream(&s, &n);
		writers[i](f, r);
		fclose(f);
		good &= n > 0;
		free(s);
	}
	return good;
}

int main(void)
{
	int built = 0, bad_projection = 0, bad_report = 0;

	for (unsigned seed = 1; seed <= 600; seed++) {
		struct fixture fx;
		struct dsp *d = NULL;
		struct report r;

		state = seed;
		random_case(&fx);
		err_t e = dsp_build(fx.trace, &fx.answer, &d);

		if (!e) {
			built++;
			bad_projection += !sound(d);
			report_init(&r, fx.trace, &fx.answer, d);
			bad_report += !writes(&r);
			dsp_free(d);
		}
		err_free(e);
		fixture_free(&fx);
	}
	CHECK(built == 600, "every random trace projects (%d of 600)", built);
	CHECK(!bad_projection, "every projection is sound (%d are not)", bad_projection);
	CHECK(!bad_report, "every report is written and fits (%d do not)", bad_report);
	CHECK_END();
}
