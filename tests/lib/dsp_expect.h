/* What a projection's hint should be: shared by the tests of hints. */
#ifndef CSCHED_TESTS_DSP_EXPECT_H
#define CSCHED_TESTS_DSP_EXPECT_H

#include "tests/lib/check.h"
#include "tests/lib/sym_fixture.h"

struct expected {
	const char *what;
	void (*make)(struct fixture *fx);
	enum dsp_hint_kind kind;
	const char *words[4]; /* all in the hint's text */
	enum dsp_hint_kind also;
	size_t regions;
};

static void check_hint(const struct expected *x)
{
	struct fixture fx;
	struct dsp *d = NULL;

	x->make(&fx);
	err_t e = dsp_build(fx.trace, &fx.answer, &d);

	if (!CHECK(!e, "%s projects", x->what)) {
		err_free(e);
		fixture_free(&fx);
		return;
	}
	CHECK(d->hint.kind == x->kind, "%s: hint is %s (is %s)", x->what, dsp_hint_name(x->kind),
	      dsp_hint_name(d->hint.kind));
	for (size_t k = 0; k < 4 && x->words[k]; k++)
		CHECK(d->hint.text && strstr(d->hint.text, x->words[k]), "%s: says \"%s\" (says %s)",
		      x->what, x->words[k], d->hint.text ? d->hint.text : "nothing");
	CHECK(d->also.kind == x->also, "%s: second way is %s (is %s)", x->what,
	      dsp_hint_name(x->also), dsp_hint_name(d->also.kind));
	CHECK(d->nregions == x->regions, "%s: %zu regions (has %zu)", x->what, x->regions, d->nregions);
	dsp_free(d);
	fixture_free(&fx);
}

#endif
