/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What trying a hint showed, in words, and what follows for the order of the hints. */
#include "analyzer/dsp/internal.h"

const char *dsp_tried_name(enum dsp_tried v)
{
	static const char *const names[DSP_TRIED_KINDS] = {
		[DSP_UNTRIED] = "untried", [DSP_HOLDS] = "holds", [DSP_WEAK] = "too-few-failures",
		[DSP_STILL_FAILS] = "still-fails", [DSP_DEADLOCKS] = "deadlocks", [DSP_UNREACHED] = "not-reached",
	};

	return v < DSP_TRIED_KINDS ? names[v] : "untried";
}

bool dsp_is_refuted(const struct dsp_hint *h)
{
	return h->trial.verdict == DSP_STILL_FAILS || h->trial.verdict == DSP_DEADLOCKS;
}

char *dsp_trial_text(const struct dsp_trial *t)
{
	struct strbuf b = { 0 };

	if (t->verdict == DSP_UNTRIED)
		return NULL;
	if (t->verdict == DSP_UNREACHED) {
		strbuf_fmt(&b, "This fix could not be tried: none of %llu runs came to a place where it applies.",
			   (unsigned long long)t->runs);
		return strbuf_take(&b);
	}
	strbuf_fmt(&b, "With this fix applied by csched: %llu failure%s in %llu runs (without: %llu in %llu).",
		   (unsigned long long)t->failures, t->failures == 1 ? "" : "s", (unsigned long long)t->runs,
		   (unsigned long long)t->without_failures, (unsigned long long)t->without_runs);
	if (t->deadlocks)
		strbuf_fmt(&b, " It deadlocked in %llu of them.", (unsigned long long)t->deadlocks);
	if (t->timeouts)
		strbuf_fmt(&b, " %llu did not end in time.", (unsigned long long)t->timeouts);
	if (t->verdict == DSP_STILL_FAILS)
		strbuf_str(&b, " It still fails: this is a symptom, not the cause.");
	if (t->verdict == DSP_WEAK)
		strbuf_str(&b, " The program fails too seldom without it to tell.");
	return strbuf_take(&b);
}

static int rank(const struct dsp_hint *h)
{
	return h->trial.verdict == DSP_HOLDS ? 2 : !dsp_is_refuted(h);
}

/* What is only tried is said when it holds; what the hint was before is then what did not help. */
void dsp_rank_hints(struct dsp *d)
{
	struct dsp_hint first = d->hint;

	if (d->also.text && rank(&d->also) > rank(&d->hint)) {
		d->hint = d->also;
		d->also = first;
	}
	for (size_t i = 0; i < d->nmore && rank(&d->hint) < 2; i++) {
		struct dsp_hint better = d->more[i];

		if (rank(&better) < 2)
			continue;
		d->more[i] = d->also;
		d->also = d->hint;
		d->hint = better;
	}
}
