/* The report on the terminal: it fits, says what is known, and steers no terminal. */
#include "analyzer/report/report.h"
#include "tests/lib/check.h"
#include "tests/lib/sym_fixture.h"

struct shown {
	struct fixture fx;
	struct dsp *dsp;
	struct report r;
};

static const char *source_line(void *arg, const char *file, unsigned line)
{
	static char text[64];

	(void)arg;
	(void)file;
	snprintf(text, sizeof text, "\tsource_of_line(%u);\t/* here */", line);
	return text;
}

static void show(struct shown *s, void (*make)(struct fixture *))
{
	make(&s->fx);
	err_t e = dsp_build(s->fx.trace, &s->fx.answer, &s->dsp);

	CHECK(!e, "it projects");
	err_free(e);
	report_init(&s->r, s->fx.trace, &s->fx.answer, s->dsp);
	s->r.source_line = source_line;
}

static void done(struct shown *s)
{
	dsp_free(s->dsp);
	fixture_free(&s->fx);
}

static char *text(const struct report *r, unsigned width, bool color, bool unicode)
{
	struct report_term term = { .width = width, .color = color, .unicode = unicode };
	char *s = NULL;
	size_t n;
	FILE *f = open_memstream(&s, &n);

	report_terminal(f, r, &term);
	fclose(f);
	return s;
}

/* Columns of the widest line; characters are one column wide in our fixtures. */
static size_t widest(const char *s)
{
	size_t best = 0, n = 0;

	for (; *s; s++) {
		if (*s == '\n')
			n = 0;
		else if (((unsigned char)*s & 0xc0) != 0x80)
			n++;
		if (n > best)
			best = n;
	}
	return best;
}

static bool only_printable(const char *s, bool ascii)
{
	for (; *s; s++)
		if (((unsigned char)*s < 0x20 && *s != '\n') || *s == 0x7f ||
		    (ascii && (unsigned char)*s >= 0x80))
			return false;
	return true;
}

static bool has(const char *s, const char *what)
{
	bool found = strstr(s, what);

	if (!found)
		printf("  missing \"%s\" in:\n%s\n", what, s);
	return found;
}

static void fits(void)
{
	static void (*const all[])(struct fixture *) = {
		fixture_lost_update, fixture_check_then_act, fixture_deadlock,
		fixture_use_before_init, fixture_teardown, fixture_two_variables, fixture_hostile,
	};
	static const unsigned widths[] = { 60, 72, 80, 100, 132, 200 };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct shown s;

		show(&s, all[i]);
		for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
			char *a = text(&s.r, widths[w], false, false);
			char *u = text(&s.r, widths[w], false, true);

			CHECK(widest(a) <= widths[w], "report %zu fits %u columns (%zu)", i,
			      widths[w], widest(a));
			CHECK(widest(u) <= widths[w], "report %zu fits %u columns with lines (%zu)",
			      i, widths[w], widest(u));
			CHECK(only_printable(a, true), "report %zu at %u is ASCII", i, widths[w]);
			CHECK(only_printable(u, false), "report %zu at %u has no controls", i,
			      widths[w]);
			free(a);
			free(u);
		}
		done(&s);
	}
}

static void says(void)
{
	struct shown s;

	show(&s, fixture_lost_update);
	char *t = text(&s.r, 90, false, false);

	CHECK(has(t, "bank: Assertion `total == 130' failed in T0 at bank.c:30 (audit)\n"),
	      "the failure is the first line");
	CHECK(has(t, "T0.2 read `total' at bank.c:10 before T0.1 wrote it at bank.c:12"),
	      "the root cause is said in words");
	CHECK(has(t, "reads total = 100") && has(t, "reads total = 110"), "values of both orders");
	CHECK(has(t, "source_of_line(10); /* here */"), "source text");
	CHECK(has(t, "deposit < worker"), "short stacks");
	CHECK(has(t, "verified by the model"), "who confirmed it");
	CHECK(has(t, "82 %") && has(t, "75 %"), "how much smaller than the schedule");
	CHECK(has(t, s.dsp->fingerprint), "the fingerprint");
	CHECK(has(t, "Memory is sequentially consistent."), "the assumptions");
	CHECK(!strchr(t, 033), "no colour unless asked for");
	free(t);
	t = text(&s.r, 80, true, false);
	CHECK(strchr(t, 033), "colour when asked for");
	free(t);
	t = text(&s.r, 140, false, true);
	CHECK(has(t, "The failing order  ") && has(t, "\u2502  A passing order\n"),
	      "wide: side by side");
	free(t);
	done(&s);
}

static void redacts(void)
{
	struct shown s;

	show(&s, fixture_lost_update);
	s.r.redact = true;
	char *t = text(&s.r, 80, false, false);

	CHECK(!strstr(t, "= 100") && !strstr(t, "= 110") && !strstr(t, "= 120"),
	      "redacted: no values");
	CHECK(has(t, "reads total"), "redacted: the events are there");
	free(t);
	done(&s);
	show(&s, fixture_use_before_init);
	s.r.redact = true;
	s.r.failure.text = "segmentation fault: nothing is mapped at 0xdeadbeef";
	t = text(&s.r, 100, false, false);
	CHECK(!strstr(t, "deadbeef") && has(t, "nothing is mapped at 0x...\n"), "redacted: no address of the fault");
	free(t);
	done(&s);
}

static void admits(void)
{
	struct shown s;
	const struct report_gap gap = { "native replay", "the program is not installed here" };

	show(&s, fixture_lost_update);
	s.r.failing_proof.by[REPORT_MACHINE] = (struct report_proof){ .runs = 1, .agreed = 0 };
	s.r.failing_proof.by[REPORT_NATIVE] = (struct report_proof){ .runs = 20, .agreed = 18 };
	s.r.gaps = &gap;
	s.r.ngaps = 1;
	char *t = text(&s.r, 100, false, false);

	CHECK(has(t, "the real program (18 of 20 runs)"), "native runs are counted");
	CHECK(has(t, "not by replay (0 of 1 runs)"), "what was not confirmed is said");
	CHECK(!report_validated(&s.r.failing_proof), "and the schedule is not validated");
	free(t);
	s.r.failing_proof.by[REPORT_MACHINE].why = "left at 0x7f00";
	t = text(&s.r, 100, false, false);
	CHECK(has(t, "not by replay (left at 0x7f00)"), "and why");
	free(t);
	s.r.redact = true;
	t = text(&s.r, 100, false, false);
	CHECK(!strstr(t, "7f00") && has(t, "0 of 1"), "but no address when redacted");
	s.r.redact = false;
	CHECK(report_validated(&s.r.alternate_proof), "the checker's word counts where it is all");
	CHECK(has(t, "native replay: the program is not installed here"), "gaps are named");
	free(t);
	s.r.failing_proof.by[REPORT_MACHINE].agreed = 1;
	CHECK(report_validated(&s.r.failing_proof), "the machine's word is what counts");
	done(&s);
	show(&s, fixture_lost_update);
	dsp_free(s.dsp);
	s.fx.answer.deterministic = true;
	s.fx.answer.ncause = 0;
	fixture_order_free(&s.fx.answer.alternates[0].order);
	s.fx.answer.nalternates = 0;
	err_free(dsp_build(s.fx.trace, &s.fx.answer, &s.dsp));
	report_init(&s.r, s.fx.trace, &s.fx.answer, s.dsp);
	s.r.trace_path = "bank.7.csched";
	t = text(&s.r, 80, false, false);
	CHECK(has(t, "does not depend on the order") && !strstr(t, "It fails because") &&
	      !strstr(t, "Suggested fix"), "a deterministic failure is not dressed up");
	CHECK(!strstr(t, "--native"), "and there is no order to enforce");
	free(t);
	done(&s);
}

/* A command is there to be pasted: a shell must see the words that were meant. */
/* The other order goes another way: what is known of the failure point is what executing it has shown. */
static void goes_another_way(void)
{
	struct shown s;

	show(&s, fixture_lost_update);
	for (size_t i = 0; i < s.dsp->side[DSP_ALTERNATE].nevents; i++) {
		struct dsp_event *e = &s.dsp->side[DSP_ALTERNATE].events[i];

		if (order_event_at(s.fx.trace, e->ref)->op == SYM_FAIL)
			e->executed = false;
	}
	char *t = text(&s.r, 80, false, false);
	CHECK(has(t, "bank.c:30  is not reached"), "as far as the checker knows it is not reached");
	free(t);
	s.r.alternate_proof.by[REPORT_MACHINE] = (struct report_proof){ .runs = 1, .agreed = 1 };
	t = text(&s.r, 80, false, false);
	CHECK(has(t, "bank.c:30  does not fail"), "the machine passed it");
	free(t);
	done(&s);
}

static void pastes(void)
{
	struct shown s;

	show(&s, fixture_lost_update);
	s.r.trace_path = "it's here/bank.7.csched";
	s.r.failure.command = "./bank 'two  blanks' --accounts 12345678901234567890";
	char *t = text(&s.r, 60, false, false);

	CHECK(has(t, "  csched replay --native 'it'\\''s here/bank.7.csched' -- \\\n"
		     "    ./bank 'two  blanks' --accounts 12345678901234567890\n"),
	      "a command that is too long goes on in the next line for a shell, too");
	free(t);
	t = text(&s.r, 200, false, false);
	CHECK(has(t, "s here/bank.7.csched' -- ./bank 'two  blanks' --accounts"), "one that fits is one line");
	free(t);
	done(&s);
}

static void says_where_first(void)
{
	struct shown s;

	show(&s, fixture_use_before_init);
	s.r.failure.text = "segmentation fault: nothing is mapped at 0x0";
	char *t = text(&s.r, 100, false, false), *colon = strstr(t, ": nothing is mapped at 0x0\n");

	CHECK(colon && colon[-1] == ')' && strstr(t, ": segmentation fault in T0"),
	      "what a signal was about stands behind its place");
	free(t);
	done(&s);
}

/* Of a library's function only the name goes when there is no room; variable and value stay. */
static void makes_room(void)
{
	struct shown s;
	struct sym_frame f[2] = {
		{ .function = (char *)"std::vector<int>::emplace_back_of_a_long_name", .module = (char *)"libc.so.6",
		  .pc = 0x7f10 },
		{ .function = (char *)"deposit", .file = (char *)"bank.c", .line = 12, .module = (char *)"bank",
		  .pc = 0x401000 },
	};

	fixture_lost_update(&s.fx);
	uint32_t stack = sym_add_stack(s.fx.trace, f, 2);

	for (size_t i = 0; i < s.fx.trace->threads[1].nevents; i++)
		if (s.fx.trace->threads[1].events[i].op == SYM_WRITE)
			s.fx.trace->threads[1].events[i].stack = stack;
	err_free(dsp_build(s.fx.trace, &s.fx.answer, &s.dsp));
	report_init(&s.r, s.fx.trace, &s.fx.answer, s.dsp);
	char *wide = text(&s.r, 100, false, false), *narrow = text(&s.r, 60, false, false);

	CHECK(has(wide, "emplace_back_of_a_long_name() writes total = 110"), "room for the library's function");
	CHECK(has(narrow, "  writes total = 110\n"), "no room: variable and value stay");
	free(wide);
	free(narrow);
	done(&s);
}

static void many_threads(void)
{
	struct shown s;
	char id[16];

	show(&s, fixture_lost_update);
	dsp_free(s.dsp);
	/* Every thread of a pool writes once more between the two events. */
	for (int i = 0; i < 9; i++) {
		snprintf(id, sizeof id, "T0.%d", i + 101);
		uint32_t th = sym_add_thread(s.fx.trace, id, NULL);
		uint32_t w = fixture_event(&s.fx, th, SYM_WRITE, 0, "deposit", 12);

		fixture_at(&s.fx, th, w)->value = expr_const(s.fx.trace->pool, 32, 7);
		fixture_cause(&s.fx, th, w, 1, 3);
	}
	err_free(dsp_build(s.fx.trace, &s.fx.answer, &s.dsp));
	fixture_order_free(&s.fx.answer.alternates[0].order);
	s.fx.answer.nalternates = 0;
	dsp_free(s.dsp);
	err_free(dsp_build(s.fx.trace, &s.fx.answer, &s.dsp));
	report_init(&s.r, s.fx.trace, &s.fx.answer, s.dsp);
	char *t = text(&s.r, 80, false, false);

	CHECK(widest(t) <= 80, "twelve threads fit 80 columns (%zu)", widest(t));
	CHECK(has(t, "T0.109"), "each event then names its thread");
	free(t);
	done(&s);
}

/* T0.1 looks before T0.2 and T0.3 write, at the same line. */
static void looks_first(struct fixture *fx)
{
	fixture_init(fx, "/home/u/shop", "/src/shop.c");
	uint32_t v = fixture_var(fx, "open", "int", 0);

	fixture_children(fx);
	sym_add_thread(fx->trace, "T0.3", NULL);
	uint32_t look = fixture_event(fx, 1, SYM_READ, v, "look", 10);

	fixture_event(fx, 1, SYM_FAIL, SYM_NONE, "look", 11);
	uint32_t one = fixture_writes(fx, 2, v, 1, "set", 20), other = fixture_writes(fx, 3, v, 1, "set", 20);

	fixture_asserts(fx, 1, look, 0, "Assertion `open' failed");
	fixture_order(fx, &fx->answer.failing, "00 11 2 3");
	fixture_cause(fx, 1, look, 2, one);
	fixture_cause(fx, 1, look, 3, other);
	fixture_alternate(fx, "00 2 11 3");
}

static void says_once(void)
{
	struct shown s = { 0 };

	show(&s, looks_first);
	char *t = text(&s.r, 200, false, false);

	CHECK(has(t, "- T0.1 read `open' at shop.c:10 before T0.2 and T0.3 wrote it at shop.c:20."),
	      "what only differs in who came later is said once:\n%s", t);
	free(t);
	done(&s);
}

int main(void)
{
	says_once();
	fits();
	says();
	redacts();
	admits();
	goes_another_way();
	pastes();
	says_where_first();
	makes_room();
	many_threads();
	CHECK_END();
}
