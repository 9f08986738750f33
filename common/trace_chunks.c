#include "common/trace_chunks.h"

#include "common/trace_types.h"

#include <inttypes.h>
#include <string.h>

/*
 * Path bytes behind the last one that is not zero which may still belong to
 * its record: a logged value of PATH_MAX_VALUE bytes can be all zero.
 */
#define PATH_TAIL 72

static bool all_zero(const uint8_t *p, size_t n)
{
	for (; n && ((uintptr_t)p & 7); p++, n--)
		if (*p)
			return false;
	for (; n >= 8; p += 8, n -= 8)
		if (*(const uint64_t *)p)
			return false;
	for (; n; p++, n--)
		if (*p)
			return false;
	return true;
}

/* Live chunks that were met before their turn; hardly ever more than one. */
#define LIVE_MAX 16

struct chunks {
	struct trc_stream_file *s;
	uint64_t live[LIVE_MAX]; /* offsets */
	unsigned nlive;
	bool moved; /* killed between two chunks */
};

static void damage_in(struct trc_stream_file *s, const char *label, uint64_t offset, const char *what)
{
	free(s->damage);
	s->damage = xasprintf("%s: damaged: chunk %zu at offset %" PRIu64 ": %s", label, s->spans.n, offset,
			      what);
}

static void damage(struct trc_stream_file *s, uint64_t offset, const char *what)
{
	damage_in(s, s->label, offset, what);
}

/* Does the process stream's file hold the beginning of another stream here? See trace_format.h. */
static bool is_guest(const struct trc_stream_file *s, const struct trc_chunk *h)
{
	bool of_thread = h->stream == TRC_STREAM_THREAD || h->stream == TRC_STREAM_PATH;

	return s->kind == TRC_STREAM_PROCESS && h->version >= TRC_VERSION_GUESTS &&
	       !h->sequence && h->place == TRC_PLACE_SEQUENCE &&
	       (h->thread ? of_thread && h->version >= TRC_VERSION_SLOTS && h->thread < TRC_MAX_THREADS :
			    of_thread || h->stream == TRC_STREAM_FRAGS);
}

/* What is wrong with a header by itself, or NULL. */
static const char *header_wrong(const struct trc_stream_file *s, const struct trc_chunk *h)
{
	if (h->magic != TRC_MAGIC)
		return "no chunk begins here (bad magic)";
	if (h->header_sum != trc_checksum(h, offsetof(struct trc_chunk, header_sum)))
		return "the header's checksum is wrong";
	if (h->stream != s->kind && !is_guest(s, h))
		return "the chunk belongs to another kind of stream";
	if (h->stream == s->kind && h->thread != s->thread)
		return "the chunk belongs to another thread";
	if (h->place > TRC_PLACE_MOVED) /* a free slot is looked for elsewhere: is_only_room() */
		return "an unknown place";
	if (!h->capacity || h->capacity % 8)
		return "an impossible capacity";
	if (h->length != TRC_CHUNK_OPEN && h->length > h->capacity)
		return "more bytes than its capacity";
	return NULL;
}

/*
 * A chunk that was not sealed but has a successor: that one knows its length.
 * (A handler filled chunks while the record it interrupted was half written.)
 */
static const char *close_previous(struct trc_stream_file *s, uint64_t start)
{
	struct trc_span *last = s->spans.n ? &s->spans.v[s->spans.n - 1] : NULL;

	if (!last)
		return start && s->epoch <= 1 ? "the stream does not begin at its beginning" : NULL;
	if (last->open) {
		if (start < last->start || start - last->start > last->length)
			return "the chunk does not continue the one before";
		last->length = (uint32_t)(start - last->start);
	}
	return start != last->start + last->length ? "the chunk does not continue the one before"
						   : NULL;
}

/*
 * A zero magic ends the stream: the space behind was reserved and not used. A
 * header may have been half written when the process was killed, so only what
 * would be payload must be empty.
 */
static void end_of_stream(struct trc_stream_file *s, uint64_t offset)
{
	uint64_t behind = offset + sizeof(struct trc_chunk);

	if (behind < s->size && !all_zero(s->data + behind, s->size - behind))
		damage(s, offset, "a hole: no chunk begins here but bytes follow");
}

/* In an open path chunk: where the zeros begin. */
static uint32_t used_bytes(const uint8_t *payload, uint32_t n)
{
	uint32_t used = n;

	while (used && !payload[used - 1])
		used--;
	return n - used > PATH_TAIL ? used + PATH_TAIL : n;
}

/* The chunk at this offset of a stream's file is next in the stream `s`. False: it cannot be. */
static bool add_span_of(struct trc_stream_file *s, const struct trc_stream_file *file, uint64_t offset)
{
	struct trc_chunk h;
	uint64_t left = file->size - offset - sizeof h;
	const char *wrong = NULL;

	memcpy(&h, file->data + offset, sizeof h);
	if (h.sequence != s->spans.n)
		wrong = "chunks are missing or out of order";
	else if (h.length != TRC_CHUNK_OPEN && h.length > left)
		wrong = "the file ends inside the chunk (truncated)";
	else
		wrong = close_previous(s, h.start);
	if (wrong) {
		damage_in(s, file->label, offset, wrong);
		return false;
	}
	struct trc_span span = {
		.payload = file->data + offset + sizeof h, .start = h.start, .offset = offset,
		.label = file->label, .length = h.length, .open = h.length == TRC_CHUNK_OPEN,
	};
	if (span.open) {
		span.clipped = h.capacity > left;
		span.length = span.clipped ? (uint32_t)left : h.capacity;
	}
	vec_push(&s->spans, span);
	return true;
}

static bool add_span(struct trc_stream_file *s, uint64_t offset)
{
	return add_span_of(s, s, offset);
}

void trc_take_guest(struct trc_stream_file *s, const struct trc_stream_file *host, uint64_t offset)
{
	add_span_of(s, host, offset);
}

static uint32_t sequence_at(const struct trc_stream_file *s, uint64_t offset)
{
	struct trc_chunk h;

	memcpy(&h, s->data + offset, sizeof h);
	return h.sequence;
}

/* Index of the live chunk with this number, or nlive. */
static unsigned find_live(const struct chunks *c, uint32_t sequence)
{
	unsigned i = 0;

	while (i < c->nlive && sequence_at(c->s, c->live[i]) != sequence)
		i++;
	return i;
}

/* Adds live chunks whose turn it is. */
static bool add_live(struct chunks *c)
{
	unsigned i;

	while ((i = find_live(c, (uint32_t)c->s->spans.n)) < c->nlive) {
		uint64_t offset = c->live[i];

		c->live[i] = c->live[--c->nlive];
		if (!add_span(c->s, offset))
			return false;
	}
	return true;
}

static bool place_chunk(struct chunks *c, const struct trc_chunk *h, uint64_t offset)
{
	struct trc_stream_file *s = c->s;

	if (h->place == TRC_PLACE_MOVED) {
		c->moved = true;
		return true;
	}
	if (h->place == TRC_PLACE_LIVE) {
		if (find_live(c, h->sequence) < c->nlive || c->nlive == LIVE_MAX) {
			damage(s, offset, "too many live chunks");
			return false;
		}
		c->live[c->nlive++] = offset;
		return true;
	}
	unsigned i = find_live(c, h->sequence);
	bool last = offset + sizeof *h + h->capacity >= s->size;

	if (i < c->nlive && last)
		return true; /* a copy of it that was being made */
	return add_live(c) && add_span(s, offset);
}

/* What a chunk that was being emptied says about itself need not hold, but its capacity; nor a slot's that is free. */
static bool is_only_room(const struct trc_stream_file *s, const struct trc_chunk *h)
{
	bool free = h->place == TRC_PLACE_FREE && s->kind == TRC_STREAM_PROCESS && h->version >= TRC_VERSION_SLOTS;

	return h->magic == TRC_MAGIC && (h->place == TRC_PLACE_MOVED || free) && h->capacity && h->capacity % 8 == 0;
}

/* Looks at the chunk at *offset and moves behind it. False: nothing follows. */
static bool add_chunk(struct chunks *c, uint64_t *offset)
{
	struct trc_stream_file *s = c->s;
	struct trc_chunk h;
	uint64_t left = s->size - *offset;

	if (left < sizeof h) {
		if (!all_zero(s->data + *offset, left))
			damage(s, *offset, "the file ends inside the chunk's header");
		return false;
	}
	memcpy(&h, s->data + *offset, sizeof h);
	if (!h.magic) {
		end_of_stream(s, *offset);
		return false;
	}
	const char *wrong = is_only_room(s, &h) ? NULL : header_wrong(s, &h);

	if (wrong) {
		damage(s, *offset, wrong);
		return false;
	}
	if (h.place == TRC_PLACE_FREE)
		; /* room */
	else if (h.stream != s->kind && h.place != TRC_PLACE_MOVED)
		vec_push(&s->guests, *offset);
	else if (!place_chunk(c, &h, *offset))
		return false;
	*offset += sizeof h + h.capacity;
	return *offset < s->size;
}

static bool foreign_version(const struct trc_stream_file *s, unsigned *version)
{
	struct trc_chunk h;

	if (s->size < sizeof h)
		return false;
	memcpy(&h, s->data, sizeof h);
	*version = h.version;
	return h.magic == TRC_MAGIC && (h.version < TRC_VERSION_OLDEST || h.version > TRC_VERSION) &&
	       h.header_sum == trc_checksum(&h, offsetof(struct trc_chunk, header_sum));
}

err_t trc_find_chunks(struct trc_stream_file *s)
{
	struct chunks c = { .s = s };
	uint64_t offset = 0;
	unsigned version;

	if (foreign_version(s, &version))
		return err_new(ERR_INPUT,
			       "%s: trace format version %u, this csched reads versions %d to %d",
			       s->label, version, TRC_VERSION_OLDEST, TRC_VERSION);
	if (s->size && !s->damage)
		while (add_chunk(&c, &offset))
			;
	if (!s->damage && add_live(&c) && c.nlive)
		damage(s, c.live[0], "chunks are missing or out of order");
	struct trc_span *last = s->spans.n ? &s->spans.v[s->spans.n - 1] : NULL;
	s->cut_off = !last || last->open || c.moved;
	if (last && last->open && s->kind == TRC_STREAM_PATH)
		last->length = used_bytes(last->payload, last->length);
	return NULL;
}

err_t trc_check_span(struct trc_stream_file *s, size_t i)
{
	struct trc_span *span = &s->spans.v[i];
	struct trc_chunk h;

	if (span->open || span->checked)
		return NULL;
	memcpy(&h, span->payload - sizeof h, sizeof h);
	if (trc_checksum(span->payload, span->length) != h.checksum)
		return err_new(ERR_INPUT,
			       "%s: damaged: chunk %zu at offset %" PRIu64
			       ": the checksum of its %" PRIu32 " bytes is wrong",
			       span->label, i, span->offset, span->length);
	span->checked = true;
	return NULL;
}
