// SPDX-License-Identifier: GPL-2.0-or-later
/* Checkpoints that hold what has changed since an earlier one: which those are, and what of their memory still counts. */
#include "common/trace_chunks.h"
#include "common/trace_read.h"
#include "common/trace_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool trc_is_base(const char *name)
{
	const char *dot = strchr(name, '.');

	return name[0] == 'e' && dot && !strcmp(dot, ".pages");
}

/* The epoch that it is a difference to; 0: it is complete. */
static err_t base_of(struct trc_stream_file *s, uint32_t *since)
{
	const struct trc_rec *rec;
	struct trc_iter it;

	*since = 0;
	trc_iter_init(&it, s);
	TRY(trc_next(&it, &rec));
	if (!rec || rec->type != TRC_BASE)
		return NULL;
	*since = ((const struct trc_base *)rec)->since;
	if (*since >= s->epoch)
		return err_new(ERR_INPUT, "%s: damaged: a difference to a later checkpoint", s->label);
	return NULL;
}

static err_t open_base(struct trc *t, uint32_t epoch, const char *needed_by)
{
	for (size_t i = 0; i < trc_source_count(t->source); i++) {
		const char *name = trc_source_name(t->source, i);
		uint32_t thread, of;
		enum trc_stream kind;

		if (!trc_parse_name(name, &kind, &thread, &of) || of != epoch || kind != TRC_STREAM_MEMORY)
			continue;
		struct trc_stream_file *s = xcalloc(1, sizeof *s);

		/* In a pack it is no more than that. */
		s->name = xasprintf("e%" PRIu32 ".pages", epoch);
		s->label = xasprintf("%s/%s", t->path, name);
		s->kind = kind;
		s->epoch = epoch;
		vec_push(&t->bases, s);
		TRY(trc_source_map(t->source, i, &s->data, &s->size));
		return trc_find_chunks(s);
	}
	return err_new(ERR_INPUT, "%s: the checkpoint of epoch %" PRIu32 ", which it is a difference to, is not there",
		       needed_by, epoch);
}

err_t trc_open_bases(struct trc *t)
{
	struct trc_stream_file *s = t->memory;
	uint32_t since;

	for (; s && s->epoch; s = t->bases.v[t->bases.n - 1]) {
		TRY(base_of(s, &since));
		if (!since)
			break;
		TRY(open_base(t, since, s->label));
	}
	return NULL;
}

uint64_t trc_bases_bytes(struct trc *t)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < trc_source_count(t->source); i++)
		if (trc_is_base(trc_source_name(t->source, i)))
			bytes += trc_source_size(t->source, i);
	return bytes;
}

/* ---- what counts ---- */

struct page_at {
	uint64_t address;
	const uint8_t *bytes; /* NULL: the last checkpoint's own */
};

struct range {
	uint64_t start, end;
};

struct earlier {
	VEC(struct page_at) pages;                /* that count so far, by address */
	VEC(struct page_at) more; VEC(struct range) gone; /* of one checkpoint */
};

static int by_address(const void *a, const void *b)
{
	const struct page_at *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static err_t take_pages(struct earlier *e, const struct trc_stream_file *s, const struct trc_pages *p, bool own)
{
	if (p->address % TRC_PAGE || p->length % TRC_PAGE)
		return err_new(ERR_INPUT, "%s: damaged: contents that are no whole pages", s->label);
	for (uint32_t at = 0; at < p->length; at += TRC_PAGE)
		vec_push(&e->more, (struct page_at){ p->address + at, own ? NULL : p->bytes + at });
	return NULL;
}

/* own: the last one; of the others, memory that was shared with others does not count. */
static err_t read_checkpoint(struct earlier *e, struct trc_stream_file *s, bool own)
{
	const struct trc_rec *rec;
	struct trc_iter it;
	bool shared = false;

	e->more.n = e->gone.n = 0;
	for (trc_iter_init(&it, s);;) {
		TRY(trc_next(&it, &rec));
		if (!rec)
			return NULL;
		if (rec->type == TRC_REGION) {
			const struct trc_region *g = (const void *)rec;

			shared = g->rec.flags & TRC_REGION_SHARED;
			if (shared)
				vec_push(&e->gone, (struct range){ g->start, g->end });
		} else if (rec->type == TRC_LEFT) {
			const struct trc_left *l = (const void *)rec;

			vec_push(&e->gone, (struct range){ l->start, l->end });
		} else if (rec->type == TRC_PAGES && (own || !shared)) {
			TRY(take_pages(e, s, (const void *)rec, own));
		}
	}
}

/* What was known, without what is gone, and with what is new. */
static void merge(struct earlier *e)
{
	VEC(struct page_at) all = { 0 };
	size_t k = 0, g = 0;
	uint64_t gone_until = 0;

	if (e->more.n)
		qsort(e->more.v, e->more.n, sizeof *e->more.v, by_address);
	if (e->gone.n)
		qsort(e->gone.v, e->gone.n, sizeof *e->gone.v, by_start);
	for (size_t i = 0; i < e->pages.n; i++) {
		struct page_at p = e->pages.v[i];

		for (; g < e->gone.n && e->gone.v[g].start <= p.address; g++)
			if (e->gone.v[g].end > gone_until)
				gone_until = e->gone.v[g].end;
		for (; k < e->more.n && e->more.v[k].address < p.address; k++)
			vec_push(&all, e->more.v[k]);
		if (p.address >= gone_until && (k == e->more.n || e->more.v[k].address != p.address))
			vec_push(&all, p);
	}
	for (; k < e->more.n; k++)
		vec_push(&all, e->more.v[k]);
	vec_free(&e->pages);
	e->pages.v = all.v;
	e->pages.n = all.n;
	e->pages.cap = all.cap;
}

err_t trc_earlier_pages(struct trc *t, void (*page)(void *arg, uint64_t address, const uint8_t *bytes), void *arg)
{
	struct earlier e = { 0 };
	err_t bad = NULL;

	for (size_t i = t->bases.n; i-- > 0 && !bad;) {
		bad = read_checkpoint(&e, t->bases.v[i], false);
		merge(&e);
	}
	if (t->bases.n && !bad) {
		bad = read_checkpoint(&e, t->memory, true);
		merge(&e);
	}
	for (size_t i = 0; i < e.pages.n && !bad; i++)
		if (e.pages.v[i].bytes)
			page(arg, e.pages.v[i].address, e.pages.v[i].bytes);
	vec_free(&e.pages);
	vec_free(&e.more);
	vec_free(&e.gone);
	return bad;
}
