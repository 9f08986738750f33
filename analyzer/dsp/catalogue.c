/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The catalogue of bug patterns. Each is a row: its name, a function that looks for it, what it needs. All of
 * them look; what they find is ranked by how much it takes to find it: a pattern that rests on the failure
 * itself or on a known mechanism comes before one that only knows that two events ought to be the other way round.
 * The first is the hint, the others are tried when it turns out not to help (analyzer/fix/).
 *
 * To add one: see CONTRIBUTING.md.
 */
#include "analyzer/dsp/pattern.h"

#include <string.h>

static const struct dsp_pattern catalogue[] = {
	/* Evidence: the failure itself. */
	{ "store-buffer", dsp_match_store_buffer, 0, NULL },
	{ "lock-ring", dsp_match_lock_ring, DSP_NEEDS_BLOCKED, NULL },
	{ "waits-holding", dsp_match_waits_holding, DSP_NEEDS_BLOCKED, NULL },
	{ "ended-holding", dsp_match_ended_holding, DSP_NEEDS_BLOCKED, NULL },
	{ "kept-lock", dsp_match_kept_lock, DSP_NEEDS_BLOCKED, NULL },
	{ "barrier-count", dsp_match_barrier_count, DSP_NEEDS_BLOCKED, NULL },
	{ "wrong-waiter", dsp_match_wrong_waiter, DSP_NEEDS_BLOCKED, NULL },
	{ "came-and-went", dsp_match_came_and_went, DSP_NEEDS_BLOCKED, NULL },
	{ "one-woken", dsp_match_one_woken, DSP_NEEDS_BLOCKED, NULL },
	{ "lost-wake-up", dsp_match_lost_wakeup, DSP_NEEDS_BLOCKED, NULL },
	/* Evidence: a mechanism, found in the failing order. */
	{ "aba", dsp_match_aba, 0, NULL },
	{ "wait-once", dsp_match_wait_once, 0, NULL },
	{ "broken-lock", dsp_match_broken_lock, DSP_NEEDS_ALTERNATE, NULL },
	{ "publication", dsp_match_publication, DSP_NEEDS_ALTERNATE, NULL },
	{ "barrier-round", dsp_match_barrier_round, DSP_NEEDS_ALTERNATE, NULL },
	{ "read-locked-write", dsp_match_readers, DSP_NEEDS_ALTERNATE, NULL },
	{ "missing-join", dsp_match_missing_join, DSP_NEEDS_ALTERNATE, "region" },
	{ "lazy-init", dsp_match_lazy_init, DSP_NEEDS_ALTERNATE, NULL },
	{ "atomic-check-act", dsp_match_atomic_check, DSP_NEEDS_ALTERNATE, NULL },
	/* Evidence: what the alternate keeps together, or turns round. */
	{ "region", dsp_match_region, DSP_NEEDS_ALTERNATE, NULL },
	{ "unguarded", dsp_match_unguarded, DSP_NEEDS_ALTERNATE, NULL },
	{ "half-done", dsp_match_half_done, DSP_NEEDS_ALTERNATE, NULL },
	{ "order", dsp_match_order, DSP_NEEDS_ALTERNATE, NULL },
	/* What else may be meant by the same evidence; only tried. */
	{ "wider-region", dsp_match_wider_region, DSP_NEEDS_ALTERNATE | DSP_ONLY_TRIED, NULL },
	{ "earlier-join", dsp_match_earlier_join, DSP_NEEDS_ALTERNATE | DSP_ONLY_TRIED, NULL },
};

#define NPATTERNS (sizeof catalogue / sizeof *catalogue)

static bool applies(const struct dsp_pattern *p, const struct dsp_case *c)
{
	return (!(p->flags & DSP_NEEDS_BLOCKED) || c->m->t->failure.nblocked) &&
	       (!(p->flags & DSP_NEEDS_ALTERNATE) || c->d->has_alternate);
}

static bool is_named(const struct dsp_hint *h, const char *pattern)
{
	return h->text && pattern && !strcmp(h->pattern, pattern);
}

static void drop(struct dsp *d, size_t i)
{
	d->nmore--;
	memmove(&d->more[i], &d->more[i + 1], (d->nmore - i) * sizeof *d->more);
	d->more[d->nmore] = (struct dsp_hint){ 0 };
}

/* The best one that may be said is the hint; the way that its pattern names beside it comes along. */
static void choose(struct dsp *d)
{
	const char *beside = NULL;

	for (size_t i = 0; i < NPATTERNS && !d->hint.text; i++)
		for (size_t k = 0; k < d->nmore; k++)
			if (is_named(&d->more[k], catalogue[i].name) && !(catalogue[i].flags & DSP_ONLY_TRIED)) {
				d->hint = d->more[k];
				beside = catalogue[i].beside;
				drop(d, k);
				break;
			}
	for (size_t k = 0; k < d->nmore && beside; k++)
		if (is_named(&d->more[k], beside)) {
			d->also = d->more[k];
			drop(d, k);
			break;
		}
}

void dsp_find_hint(const struct dsp_map *m, const dsp_pairs *pairs, const struct sched_answer *a, struct dsp *d)
{
	const struct dsp_case c = { m, pairs, a, d, dsp_pair_to_order(m->t, pairs) };

	for (size_t i = 0; i < NPATTERNS && d->nmore < DSP_MAX_HINTS; i++) {
		struct dsp_hint h = { 0 };

		if (!applies(&catalogue[i], &c) || !catalogue[i].match(&c, &h))
			continue;
		h.pattern = catalogue[i].name;
		d->more[d->nmore++] = h;
	}
	choose(d);
}

const char *dsp_pattern_name(size_t i)
{
	return i < NPATTERNS ? catalogue[i].name : NULL;
}
