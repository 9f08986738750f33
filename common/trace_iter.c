/* Records and bytes of one stream. */
#include "common/trace_chunks.h"
#include "common/trace_read.h"
#include "common/trace_types.h"

#include <inttypes.h>
#include <string.h>

void trc_iter_init(struct trc_iter *it, struct trc_stream_file *stream)
{
	*it = (struct trc_iter){ .stream = stream, .ended = !stream };
}

static err_t bad_record(const struct trc_iter *it, const char *what)
{
	const struct trc_span *span = &it->stream->spans.v[it->span];

	return err_new(ERR_INPUT, "%s: damaged: chunk %zu, record at offset %" PRIu64 ": %s",
		       span->label, it->span, span->offset + sizeof(struct trc_chunk) + it->offset,
		       what);
}

/* The record at the iterator. *rec NULL: this span has no more. */
static err_t record_here(struct trc_iter *it, const struct trc_rec **rec)
{
	const struct trc_span *span = &it->stream->spans.v[it->span];
	uint32_t left = span->length - it->offset;
	const struct trc_rec *r = (const void *)(span->payload + it->offset);

	*rec = NULL;
	if (!left || (span->open && left < sizeof *r))
		return NULL;
	if (left < sizeof *r)
		return bad_record(it, "fewer bytes left than a record needs");
	if (!r->type && !r->size && !r->flags && span->open)
		return NULL;
	if (r->size < sizeof *r || r->size % 8)
		return bad_record(it, "an impossible record size");
	if (r->size > left) {
		/* A copy that was cut inside the open chunk: the run's last
		 * record is lost, nothing else. */
		if (span->open && span->clipped)
			return NULL;
		return bad_record(it, "a record that leaves its chunk");
	}
	/* Once per record, not once per operation of TRC_AGAINS: looking through it takes as long as it is. */
	const char *wrong = it->again_at ? NULL : trc_rec_wrong(r, it->stream->kind);
	if (wrong)
		return bad_record(it, wrong);
	*rec = r;
	return NULL;
}

#define KEPT_BLOCK 1024

static struct trc_sync *place_for_again(struct trc_iter *it)
{
	struct trc_stream_file *s = it->stream;

	if (!it->keep)
		return &it->again;
	if (!s->kept.n || s->nkept == KEPT_BLOCK) {
		vec_push(&s->kept, xcalloc(KEPT_BLOCK, sizeof(struct trc_sync)));
		s->nkept = 0;
	}
	return &s->kept.v[s->kept.n - 1][s->nkept++];
}

/*
 * The operation with this number, again. Those without a time are all the same: one byte of the trace must not become a
 * record of its own in memory.
 */
static err_t repeat(struct trc_iter *it, uint32_t slot, uint64_t tsc, const struct trc_rec **rec)
{
	if (!it->named[slot])
		return bad_record(it, "an operation like one that was not recorded");
	if (it->keep && !tsc && it->timeless[slot]) {
		*rec = &it->timeless[slot]->rec;
		return NULL;
	}
	struct trc_sync *s = place_for_again(it);

	*s = *it->named[slot];
	s->rec.size = sizeof *s;
	s->tsc = tsc;
	if (it->keep && !tsc)
		it->timeless[slot] = s;
	*rec = &s->rec;
	return NULL;
}

/* The one at again_at, which goes on; to 0 when it was the last. */
static err_t repeat_next(struct trc_iter *it, const struct trc_rec **rec)
{
	const struct trc_agains *a = (const void *)*rec;
	uint32_t at = it->again_at, n = a->rec.size - sizeof a->rec;

	TRY(repeat(it, at ? a->more[at - 1] - 1u : a->rec.flags, 0, rec));
	it->again_at = at < n && a->more[at] ? at + 1 : 0;
	return NULL;
}

/* Keeps what has a number; turns TRC_AGAIN and TRC_AGAINS into what they stand for. */
static err_t resolve(struct trc_iter *it, const struct trc_rec **rec)
{
	if ((*rec)->type == TRC_SYNC && (*rec)->size >= sizeof(struct trc_sync_named)) {
		const struct trc_sync_named *n = (const void *)*rec;

		if (n->slot >= TRC_SYNC_SLOTS)
			return bad_record(it, "an impossible number of an operation");
		it->named[n->slot] = &n->sync;
		it->timeless[n->slot] = NULL;
	} else if ((*rec)->type == TRC_AGAIN) {
		const struct trc_again *a = (const void *)*rec;

		return repeat(it, a->rec.flags, a->rec.size >= sizeof *a ? a->tsc : 0, rec);
	} else if ((*rec)->type == TRC_AGAINS) {
		return repeat_next(it, rec);
	}
	return NULL;
}

static err_t next(struct trc_iter *it, const struct trc_rec **rec)
{
	struct trc_stream_file *s = it->stream;

	for (; it->span < s->spans.n; it->span++, it->offset = 0) {
		if (!it->offset)
			TRY(trc_check_span(s, it->span));
		TRY(record_here(it, rec));
		if (*rec) {
			uint32_t size = (*rec)->size, again = it->again_at;

			if (s->kind == TRC_STREAM_THREAD)
				TRY(resolve(it, rec));
			/* Each of TRC_AGAINS but the first is at its byte. */
			it->pos = s->spans.v[it->span].start + it->offset + (again ? sizeof(struct trc_rec) + again - 1 : 0);
			if (!it->again_at)
				it->offset += size;
			return NULL;
		}
	}
	it->ended = true;
	return s->damage ? err_new(ERR_INPUT, "%s", s->damage) : NULL;
}

err_t trc_next(struct trc_iter *it, const struct trc_rec **rec)
{
	*rec = NULL;
	if (it->ended)
		return NULL;
	err_t e = next(it, rec);
	if (e) {
		*rec = NULL;
		it->ended = true;
	}
	return e;
}

err_t trc_verify(struct trc_stream_file *stream, uint64_t *records)
{
	uint64_t ignored, *n = records ? records : &ignored;

	*n = 0;
	if (stream->kind == TRC_STREAM_PATH) {
		for (size_t i = 0; i < stream->spans.n; i++)
			TRY(trc_check_span(stream, i));
		return stream->damage ? err_new(ERR_INPUT, "%s", stream->damage) : NULL;
	}
	struct trc_iter it;
	const struct trc_rec *rec;

	trc_iter_init(&it, stream);
	for (;; ++*n) {
		TRY(trc_next(&it, &rec));
		if (!rec)
			return NULL;
	}
}

uint64_t trc_stream_bytes(const struct trc_stream_file *stream)
{
	const struct trc_span *last =
		stream->spans.n ? &stream->spans.v[stream->spans.n - 1] : NULL;
	uint32_t used = last ? last->length : 0;
	uint64_t before = stream->spans.n ? stream->spans.v[0].start : 0;

	while (used && last->open && !last->payload[used - 1])
		used--;
	return last ? last->start + used - before : 0;
}

/* The span that holds pos, or spans.n. */
static size_t span_of(const struct trc_stream_file *s, uint64_t pos)
{
	size_t lo = 0, hi = s->spans.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->spans.v[mid].start + s->spans.v[mid].length <= pos)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

err_t trc_bytes_at(struct trc_stream_file *stream, uint64_t pos, const uint8_t **bytes, size_t *n)
{
	size_t i = span_of(stream, pos);

	*bytes = NULL;
	*n = 0;
	if (i == stream->spans.n)
		return stream->damage ? err_new(ERR_INPUT, "%s", stream->damage) : NULL;
	TRY(trc_check_span(stream, i));
	const struct trc_span *span = &stream->spans.v[i];

	*bytes = span->payload + (pos - span->start);
	*n = span->length - (size_t)(pos - span->start);
	return NULL;
}
