/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The words of memory that threads share, and which of them are looked at when there are too many.
 *
 * Of a table whose cells the same code of the same threads accesses a few cells show what there is to see: patterns are
 * counted by code place. What is left then and accessed most often (a counter that was raised a million times) tells
 * less than what is accessed twice. Orders that come from such a trace are guesses as far as what was left out goes: executing
 * them decides, and nothing is called impossible.
 */
#include "analyzer/explore/observe_internal.h"

#include <stdlib.h>

struct obs_word *obs_word_at(struct obs_words *w, uint64_t number)
{
	if (2 * (w->n + 1) > w->cap) {
		struct obs_words old = *w;

		w->cap = old.cap ? 2 * old.cap : 4096;
		w->v = xcalloc(w->cap, sizeof *w->v);
		w->n = 0;
		for (size_t i = 0; i < old.cap; i++)
			if (old.v[i].address)
				*obs_word_at(w, old.v[i].address - 1) = old.v[i];
		free(old.v);
	}
	size_t i = (size_t)xpl_mix(number, 7) & (w->cap - 1);
	while (w->v[i].address && w->v[i].address != number + 1)
		i = (i + 1) & (w->cap - 1);
	if (!w->v[i].address) {
		w->v[i] = (struct obs_word){ .address = number + 1, .first = XPL_NONE };
		w->n++;
	}
	return &w->v[i];
}

static uint64_t bits_of(unsigned from, unsigned size)
{
	uint64_t all = size >= 8 ? UINT64_MAX : (1ull << 8 * size) - 1;

	return all << 8 * from;
}

bool obs_piece_of(const struct raw *r, unsigned which, uint64_t *number, uint64_t *mask, uint64_t *value)
{
	unsigned at = r->address & 7, first = at + r->size > 8 ? 8 - at : r->size;

	if (!which) {
		*number = r->address / 8;
		*mask = bits_of(at, first);
		*value = r->value << 8 * at & *mask;
		return true;
	}
	if (first == r->size)
		return false;
	*number = r->address / 8 + 1;
	*mask = bits_of(0, r->size - first);
	*value = r->value >> 8 * first & *mask;
	return true;
}

static void add_part(struct obs_word *w, uint64_t mask)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 8 && w->parts[i]; i++)
		if (w->parts[i] & mask)
			mask |= w->parts[i];
		else
			w->parts[n++] = w->parts[i];
	w->parts[n++] = mask;
	while (n < 8)
		w->parts[n++] = 0;
}

void obs_find_words(const struct observer *o, struct obs_words *w)
{
	for (size_t i = 0; i < o->raws.n; i++) {
		const struct raw *r = &o->raws.v[i];
		uint64_t number, mask, value;

		for (unsigned k = 0; r->kind == RAW_ACCESS && r->program && k < 2 &&
				     obs_piece_of(r, k, &number, &mask, &value); k++) {
			struct obs_word *x = obs_word_at(w, number);

			if (x->first == XPL_NONE)
				x->first = r->thread;
			x->second |= x->first != r->thread;
			x->written |= (r->flags & MACH_WRITE) != 0;
			add_part(x, mask);
		}
	}
}

/* ---- which of them ---- */

static bool is_shared(const struct obs_word *w)
{
	return w->address && w->second && w->written;
}

static void count_accesses(const struct observer *o, struct obs_words *words)
{
	for (size_t i = 0; i < o->raws.n; i++) {
		const struct raw *r = &o->raws.v[i];
		uint64_t number, mask, value;

		for (unsigned k = 0; r->kind == RAW_ACCESS && k < 2 && obs_piece_of(r, k, &number, &mask, &value); k++) {
			struct obs_word *w = obs_word_at(words, number);
			uint64_t by = xpl_mix(xpl_mix(r->pc, r->thread), r->flags & MACH_WRITE);

			w->accesses += w->accesses < UINT32_MAX;
			w->by[0] |= 1ull << (by & 63);
			w->by[1] |= 1ull << (by >> 6 & 63);
		}
	}
}

static int alike_and_near(const void *a, const void *b)
{
	const struct obs_word *x = *(struct obs_word *const *)a, *y = *(struct obs_word *const *)b;

	for (unsigned i = 0; i < 2; i++)
		if (x->by[i] != y->by[i])
			return x->by[i] < y->by[i] ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static int fewest_first(const void *a, const void *b)
{
	const struct obs_word *x = *(struct obs_word *const *)a, *y = *(struct obs_word *const *)b;

	return x->accesses != y->accesses ? (x->accesses > y->accesses) - (x->accesses < y->accesses) :
					    (x->address > y->address) - (x->address < y->address);
}

typedef VEC(struct obs_word *) chosen_words;

/* The first ones of those that are alike. */
static void leave_out_alike(chosen_words *all)
{
	size_t kept = 0, alike = 0;

	qsort(all->v, all->n, sizeof *all->v, alike_and_near);
	for (size_t i = 0; i < all->n; i++) {
		struct obs_word *w = all->v[i], *before = i ? all->v[i - 1] : NULL;

		alike = before && before->by[0] == w->by[0] && before->by[1] == w->by[1] ? alike + 1 : 0;
		w->left_out = alike >= OBS_ALIKE;
	}
	for (size_t i = 0; i < all->n; i++)
		if (!all->v[i]->left_out)
			all->v[kept++] = all->v[i];
	all->n = kept;
}

static bool leave_out_busiest(chosen_words *all, size_t room)
{
	size_t accesses = 0;
	bool any = false;

	if (all->n)
		qsort(all->v, all->n, sizeof *all->v, fewest_first);
	for (size_t i = 0; i < all->n; i++) {
		accesses += all->v[i]->accesses;
		/* One at least: where everything is about one variable, its first accesses are looked at. */
		all->v[i]->left_out = i && accesses > room;
		any |= all->v[i]->left_out;
	}
	return any;
}

size_t obs_operations(const struct observer *o)
{
	size_t n = 0;

	for (size_t i = 0; i < o->raws.n; i++)
		n += o->raws.v[i].kind != RAW_ACCESS;
	return n;
}

bool obs_sample(const struct observer *o, struct obs_words *words, size_t operations)
{
	chosen_words all = { 0 };
	size_t accesses = 0, before;

	/* It makes entries for words that are looked up: pointers into it come later. */
	count_accesses(o, words);
	for (size_t i = 0; i < words->cap; i++)
		if (is_shared(&words->v[i]))
			vec_push(&all, &words->v[i]);
	before = all.n;
	if (all.n)
		leave_out_alike(&all);
	bool any = all.n < before;
	for (size_t i = 0; i < all.n; i++)
		accesses += all.v[i]->accesses;
	if (accesses + operations > OBS_MAX_EVENTS)
		any |= leave_out_busiest(&all, operations < OBS_CUT_EVENTS ? OBS_CUT_EVENTS - operations : OBS_LEAST_EVENTS);
	vec_free(&all);
	return any;
}

/* ---- room ---- */

static bool is_private(struct obs_words *words, const struct raw *r)
{
	uint64_t number, mask, value;

	for (unsigned k = 0; k < 2 && obs_piece_of(r, k, &number, &mask, &value); k++)
		if (obs_word_at(words, number)->second)
			return false;
	return true;
}

static bool is_left_out(struct obs_words *words, const struct raw *r)
{
	uint64_t number, mask, value;
	bool is = false;

	for (unsigned k = 0; k < 2 && obs_piece_of(r, k, &number, &mask, &value); k++)
		is |= obs_word_at(words, number)->left_out;
	return is;
}

/* Who accesses it, as far as it was dropped before. */
static void note_dropped(struct observer *o, const struct raw *r, bool busy)
{
	uint64_t number, mask, value;

	for (unsigned k = 0; k < 2 && obs_piece_of(r, k, &number, &mask, &value); k++) {
		struct obs_word *w = obs_word_at(&o->dropped, number);

		w->left_out |= busy;
		o->lost |= busy || (r->program && w->first != XPL_NONE && w->first != r->thread);
		if (r->program)
			w->first = r->thread;
	}
}

/* All accesses of what is private, or (busy) of what is left out. */
static void drop(struct observer *o, struct obs_words *words, bool busy)
{
	size_t kept = 0;

	for (size_t i = 0; i < o->raws.n; i++) {
		const struct raw *r = &o->raws.v[i];

		if (r->kind != RAW_ACCESS || !(busy ? is_left_out(words, r) : is_private(words, r))) {
			o->raws.v[kept++] = *r;
			continue;
		}
		note_dropped(o, r, busy);
	}
	o->raws.n = kept;
}

void obs_make_room(struct observer *o)
{
	struct obs_words words = { 0 };
	size_t before = o->raws.n;

	obs_find_words(o, &words);
	drop(o, &words, false);
	if (before - o->raws.n < OBS_LEAST_ROOM && obs_sample(o, &words, obs_operations(o)))
		drop(o, &words, true);
	o->full = before - o->raws.n < OBS_LEAST_ROOM;
	free(words.v);
}

void obs_leave_dropped(const struct observer *o, struct obs_words *words)
{
	for (size_t i = 0; i < o->dropped.cap; i++)
		if (o->dropped.v[i].address && o->dropped.v[i].left_out)
			obs_word_at(words, o->dropped.v[i].address - 1)->left_out = true;
}
