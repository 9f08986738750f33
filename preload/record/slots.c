/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slots: the first chunks of threads, many at a time, in the file of the process stream.
 *
 * A file for each stream of each thread costs 75 us, and milliseconds where many were removed a short while ago (ext4
 * then looks at every such inode). Most threads never fill their first chunk. So these lie side by side behind what the
 * process stream has written so far; a thread that fills its slot gets a file, which begins with its second chunk.
 */
#include "preload/record/slots.h"

#include "preload/raw.h"
#include "preload/record/file.h"
#include "preload/shim.h"

#include <sys/mman.h>

#define SLOT (16ul << 10)
#define FIRST_SLOTS 2u
#define MOST_SLOTS 64u

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Slots that were made together, of one kind. */
struct slots {
	uint8_t *base; /* NULL: not mapped any more */
	size_t len, slot;
	unsigned n, taken, closed;
	struct slots *next; /* of those that are there, or of those that may be used again */
};

static struct slots *there, *spare;
static uint64_t bytes;
static struct {
	struct slots *now;
	unsigned made;
} of_kind[2];

uint64_t slots_bytes(void)
{
	return bytes;
}

static unsigned which(const struct rec_stream *s)
{
	return s->kind == TRC_STREAM_PATH;
}

/* Path bytes are stopped by an inaccessible page, which belongs to the slot: its chunk never uses it. */
static size_t slot_len(unsigned kind)
{
	return SLOT + (kind ? RAW_PAGE : 0);
}

static struct slots *new_entry(void)
{
	if (!spare) {
		struct slots *room = raw_alloc(RAW_PAGE);

		for (size_t i = 0; room && i < RAW_PAGE / sizeof *room; i++) {
			room[i].next = spare;
			spare = &room[i];
		}
	}
	struct slots *e = spare;

	if (e) {
		spare = e->next;
		memset(e, 0, sizeof *e);
	}
	return e;
}

static struct trc_chunk *slot_at(const struct slots *b, unsigned i)
{
	return (struct trc_chunk *)(b->base + i * b->slot);
}

static void write_free(const struct slots *b, unsigned i, unsigned kind)
{
	struct trc_chunk *c = slot_at(b, i), h = { .version = TRC_VERSION, .capacity = (uint32_t)(b->slot - sizeof h) };

	h.magic = TRC_MAGIC;
	h.stream = kind ? TRC_STREAM_PATH : TRC_STREAM_THREAD;
	h.length = TRC_CHUNK_OPEN;
	h.place = TRC_PLACE_FREE;
	h.header_sum = trc_checksum(&h, offsetof(struct trc_chunk, header_sum));
	memcpy(&c->magic + 1, &h.magic + 1, sizeof h - sizeof h.magic);
	__atomic_store_n(&c->magic, TRC_MAGIC, __ATOMIC_RELEASE);
}

/* Behind the process stream's last chunk. Readers find each slot by the capacity of the one before. */
static bool make(struct slots *b, unsigned kind, unsigned n)
{
	b->n = n;
	b->slot = slot_len(kind);
	b->len = n * b->slot;
	if (rec_total() + b->len > shim_opt.max_size)
		return false;
	uint64_t offset = rec_process.file_end;
	int fd = file_open_to_grow(&rec_process, b->len);

	if (fd < 0)
		return false;
	long err = file_allocate(fd, offset, b->len);

	if (!err) {
		b->base = file_map(fd, offset, b->len);
		err = b->base ? 0 : -1;
		if (err)
			raw(SYS_ftruncate, fd, offset);
	}
	if (!err && n > FIRST_SLOTS)
		raw(SYS_madvise, b->base, b->len, MADV_POPULATE_WRITE);
	for (unsigned i = 0; i < n && !err; i++)
		write_free(b, i, kind);
	file_grown(&rec_process, fd, b->len, err);
	if (!err)
		bytes += b->len;
	return !err;
}

static struct slots *current(unsigned kind)
{
	struct slots *b = of_kind[kind].now;
	unsigned n = of_kind[kind].made;

	if (b && b->taken < b->n)
		return b;
	if (rec_process.dead || !rec_process.map.head)
		return NULL;
	b = new_entry();
	n = n < FIRST_SLOTS ? FIRST_SLOTS : n > MOST_SLOTS ? MOST_SLOTS : n;
	if (!b)
		return NULL;
	if (!make(b, kind, n)) {
		b->next = spare;
		spare = b;
		return NULL;
	}
	b->next = there;
	there = b;
	of_kind[kind].made += n;
	return of_kind[kind].now = b;
}

/* Killed in the middle, the slot is still free: `place` is not part of what the header's sum covers, and comes last. */
static void begin(struct trc_chunk *c, uint32_t thread)
{
	c->thread = thread;
	c->header_sum = trc_checksum(c, offsetof(struct trc_chunk, header_sum));
	__atomic_store_n(&c->place, TRC_PLACE_SEQUENCE, __ATOMIC_RELEASE);
}

bool slots_take(const struct rec_stream *s, struct rec_chunk_map *map)
{
	unsigned kind = which(s);
	uint64_t saved;
	bool good = false;

	if (s->sequence || !s->thread || (s->kind != TRC_STREAM_THREAD && s->kind != TRC_STREAM_PATH))
		return false;
	rec_lock(&saved);
	struct slots *b = current(kind);
	struct trc_chunk *c = b ? slot_at(b, b->taken) : NULL;

	if (c && (!kind || !raw(SYS_mprotect, (uint8_t *)c + SLOT, RAW_PAGE, PROT_NONE))) {
		b->taken++;
		begin(c, s->thread);
		*map = (struct rec_chunk_map){ .head = c, .len = SLOT, .slot = true, .slots = b };
		good = true;
	}
	rec_unlock(&saved);
	return good;
}

/* No longer mapped, and no longer in the list. Under the lock. */
static void let_go(struct slots **at)
{
	struct slots *b = *at;

	for (unsigned kind = 0; kind < 2; kind++)
		if (of_kind[kind].now == b)
			of_kind[kind].now = NULL;
	raw_free(b->base, b->len + RAW_PAGE);
	*at = b->next;
	b->next = spare;
	spare = b;
}

void slots_give(const struct rec_chunk_map *map)
{
	uint64_t saved;

	rec_lock(&saved);
	if (++map->slots->closed == map->slots->n) {
		struct slots **at = &there;

		while (*at && *at != map->slots)
			at = &(*at)->next;
		if (*at)
			let_go(at);
	}
	rec_unlock(&saved);
}

void slots_forget(void)
{
	while (there)
		let_go(&there);
	memset(of_kind, 0, sizeof of_kind);
	bytes = 0;
}
