// SPDX-License-Identifier: GPL-2.0-or-later
/* A flight recorder's trace: which epochs are there, where reading begins, and streams that go on from one to the next. */
#include "common/trace_chunks.h"
#include "common/trace_read.h"
#include "common/trace_source.h"

#include <inttypes.h>
#include <stdlib.h>

uint32_t trc_epoch_wanted;

static struct trc_epoch_info *epoch_slot(struct trc *t, uint32_t number)
{
	for (size_t i = 0; i < t->epochs.n; i++)
		if (t->epochs.v[i].number == number)
			return &t->epochs.v[i];
	vec_push(&t->epochs, (struct trc_epoch_info){ .number = number });
	return &t->epochs.v[t->epochs.n - 1];
}

static int by_number(const void *a, const void *b)
{
	const struct trc_epoch_info *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* Which epochs there are, and where reading begins. */
err_t trc_find_epochs(struct trc *t)
{
	for (size_t i = 0; i < trc_source_count(t->source); i++) {
		enum trc_stream kind;
		uint32_t thread, epoch;

		if (trc_parse_name(trc_source_name(t->source, i), &kind, &thread, &epoch) && epoch &&
		    !trc_is_base(trc_source_name(t->source, i)))
			epoch_slot(t, epoch)->whole |= kind == TRC_STREAM_MEMORY;
	}
	if (!t->epochs.n)
		return NULL;
	qsort(t->epochs.v, t->epochs.n, sizeof *t->epochs.v, by_number);
	for (size_t i = 0; i < t->epochs.n; i++) {
		const struct trc_epoch_info *e = &t->epochs.v[i];

		if (e->whole && (!trc_epoch_wanted || e->number <= trc_epoch_wanted))
			t->epoch = e->number;
		if (i && e->number != e[-1].number + 1)
			t->epoch = e->whole ? t->epoch : 0; /* what lies before a gap leads nowhere */
	}
	if (trc_epoch_wanted && t->epoch != trc_epoch_wanted)
		return err_new(ERR_NOANSWER, "%s: epoch %" PRIu32 " is not there, or its checkpoint is not: see csched info",
			       t->path, trc_epoch_wanted);
	if (!t->epoch)
		t->epoch = t->epochs.v[0].number; /* killed as the run began */
	return NULL;
}

uint64_t trc_epoch_bytes(struct trc *t, uint32_t number)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < trc_source_count(t->source); i++) {
		enum trc_stream kind;
		uint32_t thread, epoch;

		if (trc_parse_name(trc_source_name(t->source, i), &kind, &thread, &epoch) && epoch == number &&
		    !trc_is_base(trc_source_name(t->source, i)))
			bytes += trc_source_size(t->source, i);
	}
	return bytes;
}

uint32_t trc_epochs_before(const struct trc *t, uint32_t most)
{
	uint32_t from = t->epoch;

	for (size_t i = t->epochs.n; i-- > 0 && t->epoch - from < most;)
		if (from && t->epochs.v[i].number == from - 1 && t->epochs.v[i].whole)
			from--;
	return from == t->epoch ? 0 : from;
}

uint32_t trc_epoch_before(const struct trc *t)
{
	return trc_epochs_before(t, 1);
}

void trc_continue_stream(struct trc_stream_file *s, struct trc_stream_file *later)
{
	struct trc_span *last = s->spans.n ? &s->spans.v[s->spans.n - 1] : NULL;
	struct trc_span *first = later->spans.n ? later->spans.v : NULL;

	if (s->damage)
		return;
	if (last && first && last->open && first->start >= last->start && first->start - last->start <= last->length)
		last->length = (uint32_t)(first->start - last->start);
	if (last && first && first->start != last->start + last->length) {
		s->damage = xasprintf("%s: damaged: epoch %" PRIu32 " does not continue the one before", later->label,
				      later->epoch);
		return;
	}
	for (size_t i = 0; i < later->spans.n; i++) {
		vec_push(&s->spans, later->spans.v[i]);
		s->spans.v[s->spans.n - 1].seam = !i;
	}
	s->cut_off = later->cut_off;
	s->damage = later->damage ? xstrdup(later->damage) : NULL;
}
