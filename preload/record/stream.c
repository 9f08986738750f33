/* Streams: reserve space, switch chunks, seal. The contract is in stream.h. */
#include "preload/record/file.h"
#include "preload/record/slots.h"

#include "preload/raw.h"
#include "preload/say.h"
#include "preload/shim.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

/*
 * A thread that does little costs little: its first chunk is small. The second
 * one of tN.rec and tN.path is *live*: it stays mapped, and whenever it is full its
 * contents are appended to the file and it begins again, empty. So the
 * thread writes to the same few pages all the time. Measured on ext4 in a VM, per byte
 * of trace: new pages mapped for every 4 MiB 0.2-2.6 ns, depending on what the host
 * has to find; a live chunk of 256 KiB 0.15-0.3 ns.
 * The chunks of other streams make the file four times as large each.
 */
#define FIRST_CHUNK (16ul << 10)
#define FIRST_CHUNK_FRAGS (32ul << 10) /* what `true` leaves fits */
#define LIVE_CHUNK REC_LARGE_FROM
#define LAST_CHUNK (4ul << 20)
#define LAST_CHUNK_FRAGS (512ul << 10)
#define SHRINK_MIN (256ul << 10)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct rec_stream rec_process;

static long new_chunk(struct rec_stream *s, size_t len, struct rec_chunk_map *map)
{
	int fd = file_open_to_grow(s, len);

	if (fd < 0)
		return fd;
	long err = file_allocate(fd, s->file_end, len);

	if (!err) {
		map->head = file_map(fd, s->file_end, len);
		err = map->head ? 0 : -ENOMEM;
	}
	map->len = len;
	map->offset = s->file_end;
	map->used = 0;
	/*
	 * The pages of all chunks but the first are made present and writable before they are used.
	 * Measured on ext4 in a VM, per 4 KiB: faulting them in one by one 4.4-6 us; zeros written, then
	 * populated 0.9-1.6 us (large folios, no fault each). Only speed depends on it.
	 */
	if (!err && s->sequence)
		raw(SYS_madvise, map->head, map->len, MADV_POPULATE_WRITE);
	file_grown(s, fd, len, err);
	return err;
}

static bool has_live_chunk(const struct rec_stream *s)
{
	return s->kind == TRC_STREAM_THREAD || s->kind == TRC_STREAM_PATH;
}

static void sum_header(struct trc_chunk *c)
{
	c->header_sum = trc_checksum(c, offsetof(struct trc_chunk, header_sum));
}

/* The magic comes last: readers take a header without it for one that was not finished. */
static void write_header(struct rec_stream *s, const struct rec_chunk_map *map)
{
	struct trc_chunk *c = map->head, h = { .magic = TRC_MAGIC };

	h.version = TRC_VERSION;
	h.stream = s->kind;
	h.thread = s->thread;
	h.sequence = s->sequence++;
	h.capacity = (uint32_t)(map->len - sizeof *c);
	h.start = s->start;
	h.length = TRC_CHUNK_OPEN;
	h.place = map->live ? TRC_PLACE_LIVE : TRC_PLACE_SEQUENCE;
	sum_header(&h);
	memcpy(&c->magic + 1, &h.magic + 1, sizeof h - sizeof h.magic);
	__atomic_store_n(&c->magic, TRC_MAGIC, __ATOMIC_RELEASE);
}

static void seal(const struct rec_chunk_map *map, uint32_t used)
{
	struct trc_chunk *c = map->head;

	c->checksum = trc_checksum(c + 1, used);
	__atomic_store_n(&c->length, used, __ATOMIC_RELEASE);
}

static bool ending;

void rec_ending(void)
{
	ending = true;
}

static void unmap(struct rec_chunk_map *map)
{
	if (map->slot)
		slots_give(map);
	else if (!map->lent && !ending)
		raw_free(map->head, map->len + (map->part ? 0 : RAW_PAGE));
	map->head = NULL;
}

/* The last one's bytes are followed by the guard page. */
static const struct part {
	uint16_t kind;
	uint32_t len;
} parts[] = {
	{ TRC_STREAM_PROCESS, FIRST_CHUNK },
	{ TRC_STREAM_THREAD, FIRST_CHUNK },
	{ TRC_STREAM_FRAGS, FIRST_CHUNK_FRAGS },
	{ TRC_STREAM_PATH, FIRST_CHUNK },
};
#define NPARTS (sizeof parts / sizeof parts[0])
#define PARTS_LEN (3 * FIRST_CHUNK + FIRST_CHUNK_FRAGS)
static struct trc_chunk *part_of[NPARTS]; /* NULL: there is none, or it is in use */

void rec_open_together(void)
{
	struct rec_stream process = { .kind = TRC_STREAM_PROCESS };
	struct rec_chunk_map all;
	bool good = !rec_epoch && rec_total() + PARTS_LEN <= shim_opt.max_size && !new_chunk(&process, PARTS_LEN, &all);
	uint8_t *at = good ? (uint8_t *)all.head : NULL;

	for (unsigned i = 0; i < NPARTS; i++) {
		part_of[i] = (struct trc_chunk *)at;
		if (!good)
			continue;
		/* Headers at once: behind one that is missing nothing could be found. */
		write_header(&(struct rec_stream){ .kind = parts[i].kind },
			     &(struct rec_chunk_map){ .head = part_of[i], .len = parts[i].len });
		at += parts[i].len;
	}
}

static bool take_part(struct rec_stream *s, struct rec_chunk_map *map)
{
	for (unsigned i = 0; i < NPARTS; i++) {
		if (s->sequence || s->thread || parts[i].kind != s->kind || !part_of[i])
			continue;
		*map = (struct rec_chunk_map){ .head = part_of[i], .len = parts[i].len, .part = true };
		part_of[i] = NULL;
		s->together = true;
		s->file_end = s->kind == TRC_STREAM_PROCESS ? PARTS_LEN : 0;
		return true;
	}
	return false;
}

/* Bytes of its chunks, wherever they are. */
static uint64_t grown_by(const struct rec_stream *s, size_t first)
{
	uint64_t own = s->file_end - (s == &rec_process ? slots_bytes() : 0);

	if (!s->together)
		return own;
	return own + first - (s->kind == TRC_STREAM_PROCESS ? PARTS_LEN : 0);
}

static size_t chunk_len(const struct rec_stream *s, size_t record)
{
	size_t first = s->kind == TRC_STREAM_FRAGS ? FIRST_CHUNK_FRAGS : FIRST_CHUNK;
	/* Fragments come slowly: what is reserved and not used has cost its zeros all the same. */
	size_t last = s->kind == TRC_STREAM_FRAGS ? LAST_CHUNK_FRAGS : LAST_CHUNK;
	size_t grown = grown_by(s, first), len = grown < first ? first :
		     has_live_chunk(s) ? LIVE_CHUNK :
		     3 * grown > last ? last : 3 * grown;
	size_t need = (record + sizeof(struct trc_chunk) + RAW_PAGE - 1) & ~(RAW_PAGE - 1);

	return need > len ? need : len & ~(RAW_PAGE - 1);
}

/* Puts the current chunk away; nested writers may still have a record open in it. */
static void retire(struct rec_stream *s, bool nested)
{
	struct rec_chunk_map old = s->map;

	if (!old.head)
		return;
	old.used = (uint32_t)(s->pos - (uint8_t *)(old.head + 1));
	s->start += old.used;
	s->map.head = NULL;
	if (!nested) {
		seal(&old, old.used);
		unmap(&old);
		return;
	}
	for (int i = 0; i < REC_RETIRED; i++) {
		if (!s->retired[i].head) {
			s->retired[i] = old;
			return;
		}
	}
	/* Deeper nesting of handlers than anyone has seen: stays mapped and unsealed. */
}

/* The live chunk, empty, comes behind what was just appended. */
static void renumber_live(struct rec_stream *s)
{
	struct trc_chunk *c = s->map.head;

	c->sequence = s->sequence++;
	c->start = s->start;
	sum_header(c);
	__atomic_store_n(&c->place, TRC_PLACE_LIVE, __ATOMIC_RELEASE);
}

/* The header of a sealed chunk that is appended in the live one's place in the sequence. */
static struct trc_chunk instead_of_live(const struct rec_stream *s, size_t len, uint32_t used, uint64_t sum)
{
	struct trc_chunk head = *s->map.head;

	head.capacity = (uint32_t)(len - sizeof head);
	head.length = used;
	head.checksum = sum;
	head.place = TRC_PLACE_SEQUENCE;
	sum_header(&head);
	return head;
}

/* Of what is mapped: whole pages. */
static size_t chunk_size(size_t used)
{
	return (sizeof(struct trc_chunk) + used + RAW_PAGE - 1) & ~(RAW_PAGE - 1);
}

/*
 * Appends the live chunk's contents to the file as a sealed chunk, then empties it. Killed
 * in the middle of the first, there is a half-written copy at the file's end that
 * readers leave alone, having the original; killed in the middle of the second, the
 * original says that it has moved.
 */
static long move_live(struct rec_stream *s)
{
	struct trc_chunk *c = s->map.head;
	uint32_t used = (uint32_t)(s->pos - (uint8_t *)(c + 1));
	size_t len = s->map.lent ? sizeof *c + ((used + 7ul) & ~7ul) : chunk_size(used);
	int fd = file_open_to_grow(s, len);

	if (fd < 0)
		return fd;
	struct trc_chunk head = instead_of_live(s, len, used, trc_checksum(c + 1, used));

	file_reserve(s, fd, len);
	long err = (s->map.lent ? file_append_whole : file_append)(fd, s->file_end, &head, c + 1);

	file_grown(s, fd, len, err);
	if (err)
		return err;
	s->start += used;
	s->pos = (uint8_t *)(c + 1);
	__atomic_store_n(&c->place, TRC_PLACE_MOVED, __ATOMIC_RELEASE);
	if (!s->map.lent)
		memset(c + 1, 0, used);
	renumber_live(s);
	return 0;
}

/* Makes room in a new chunk or in the live one; negative errno. */
static long turn(struct rec_stream *s, size_t record, bool nested)
{
	struct rec_chunk_map map = { 0 };
	size_t len = chunk_len(s, record);

	if (s->dead)
		return -ENOENT;
	s->again_end = REC_NONE;
	if (s->map.head && s->map.live && !nested && (len <= s->map.len || s->map.lent))
		return move_live(s);
	if (!rec_epoch && record + sizeof(struct trc_chunk) <= FIRST_CHUNK && slots_take(s, &map)) {
		s->together = true;
		s->sequence++;
	} else {
		long err = take_part(s, &map) ? 0 : new_chunk(s, len, &map);

		if (err)
			return err;
		map.live = has_live_chunk(s) && s->sequence && len == LIVE_CHUNK;
		retire(s, nested);
		write_header(s, &map);
	}
	s->map = map;
	s->pos = (uint8_t *)(map.head + 1);
	s->end = (uint8_t *)map.head + map.len;
	return 0;
}

/* Nothing can be written any more: says so, once, if there was something to record. */
static void go_dead(struct rec_stream *s, long err, bool nested)
{
	retire(s, nested);
	s->pos = s->end = NULL;
	s->again_end = REC_NONE;
	/* Without a directory there was never anything to record, as in children with follow=0. */
	if (!s->dead && shim.state != SHIM_ENDED && rec_dir_path()[0]) {
		if (rec_epoch && err == -E2BIG)
			rec_ring_broken();
		else
			(err == -E2BIG ? shim_degrade : say_degraded_tree)(file_refused(err));
	}
	s->dead = true;
}

static bool next_chunk(struct rec_stream *s, size_t record, bool nested)
{
	long err = turn(s, record, nested);

	if (err)
		go_dead(s, err, nested);
	return !err;
}

void *rec_begin_slow(struct rec_stream *s, size_t size)
{
	uint64_t saved;
	uint8_t *at = NULL;

	rec_signals_block(&saved);
	/* A handler may have switched chunks before we blocked it. */
	if (s->pos && s->pos + size <= s->end)
		at = s->pos;
	else if (next_chunk(s, size, s->open > 1))
		at = s->pos;
	if (at)
		s->pos = at + size;
	else
		s->open--;
	rec_signals_restore(&saved);
	return at;
}

/* ---- large records ---- */

static long empty_live_chunk(struct rec_stream *s)
{
	long err = 0;

	/* The first chunk is not live; the one behind it is. */
	for (int i = 0; !err && i < 3; i++) {
		if (s->map.head && s->map.live && s->pos == (uint8_t *)(s->map.head + 1))
			return 0;
		err = turn(s, 0, false);
	}
	return err ? err : -ENOMEM;
}

bool rec_large_begin(struct rec_large *l, struct rec_stream *s, size_t size)
{
	size = (size + 7) & ~(size_t)7;
	if (s->dead || s->open || !has_live_chunk(s) || size < LIVE_CHUNK || size > UINT32_MAX / 2)
		return false;
	*l = (struct rec_large){ .s = s, .size = size, .sum = trc_sum_begin(size) };
	l->piece = raw_map(REC_PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!l->piece)
		return false;
	rec_signals_block(&l->saved);
	l->err = empty_live_chunk(s);
	if (!l->err)
		l->fd = file_open_to_grow(s, chunk_size(size));
	if (!l->err && l->fd < 0)
		l->err = l->fd;
	else if (!l->err)
		l->err = file_may_grow(s->file_end + chunk_size(size));
	/* With a header first, a kill in the middle leaves what looks like a copy of the live chunk. */
	struct trc_chunk head = { 0 };

	if (!l->err) {
		head = instead_of_live(s, chunk_size(size), TRC_CHUNK_OPEN, 0);
		l->err = file_write(l->fd, s->file_end, &head, sizeof head);
	}
	/* Memory that is copied may be gone. */
	uint64_t faults = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1);

	raw(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, NULL, 8);
	return true;
}

static void piece_out(struct rec_large *l)
{
	uint64_t at = l->s->file_end + sizeof(struct trc_chunk) + l->done;

	trc_sum_add(&l->sum, l->piece, l->used);
	if (!l->err)
		l->err = file_write(l->fd, at, l->piece, l->used);
	l->done += l->used;
	l->used = 0;
}

uint8_t *rec_large_room(struct rec_large *l, size_t *n)
{
	/* The first is shorter by the header before it: the others are whole pages of the file then. */
	size_t full = l->done ? REC_PIECE : REC_PIECE - sizeof(struct trc_chunk);

	if (l->used == full) {
		piece_out(l);
		full = REC_PIECE;
	}
	if (*n > full - l->used)
		*n = full - l->used;
	l->used += *n;
	return l->piece + l->used - *n;
}

void rec_large_put(struct rec_large *l, const void *from, size_t len)
{
	const uint8_t *p = from;

	while (len) {
		size_t n = len;
		uint8_t *to = rec_large_room(l, &n);

		memcpy(to, p, n);
		p += n;
		len -= n;
	}
}

/* Sealed; the live chunk goes on behind it. */
static void seal_large(struct rec_large *l)
{
	struct rec_stream *s = l->s;
	size_t len = chunk_size(l->size);
	struct trc_chunk head = instead_of_live(s, len, (uint32_t)l->size, trc_sum_end(&l->sum));

	l->err = file_write(l->fd, s->file_end, &head, sizeof head);
	if (l->err)
		return;
	s->start += l->size;
	__atomic_store_n(&s->map.head->place, TRC_PLACE_MOVED, __ATOMIC_RELEASE);
	renumber_live(s);
}

void rec_large_end(struct rec_large *l)
{
	static const uint8_t zeros[8];
	struct rec_stream *s = l->s;
	size_t len = chunk_size(l->size);
	uint64_t saved;

	rec_signals_block(&saved);
	rec_large_put(l, zeros, l->size - l->done - l->used);
	piece_out(l);
	if (!l->err)
		seal_large(l);
	if (l->err && l->fd > 0)
		raw(SYS_ftruncate, l->fd, s->file_end);
	if (l->fd > 0)
		file_grown(s, l->fd, len, l->err);
	if (l->err)
		go_dead(s, l->err, false);
	raw_free(l->piece, REC_PIECE);
	rec_signals_restore(&l->saved);
}

void rec_settle(struct rec_stream *s)
{
	uint64_t saved;

	rec_signals_block(&saved);
	for (int i = 0; i < REC_RETIRED && !s->open; i++) {
		if (!s->retired[i].head)
			continue;
		seal(&s->retired[i], s->retired[i].used);
		unmap(&s->retired[i]);
	}
	rec_signals_restore(&saved);
}

bool rec_open(struct rec_stream *s, enum trc_stream kind, uint32_t thread)
{
	memset(s, 0, sizeof *s);
	s->kind = (uint16_t)kind;
	s->thread = thread;
	return next_chunk(s, 0, false);
}

void rec_open_lent(struct rec_stream *s, enum trc_stream kind, void *memory, size_t len)
{
	memset(s, 0, sizeof *s);
	s->kind = (uint16_t)kind;
	s->map = (struct rec_chunk_map){ .head = memory, .len = len, .live = true, .lent = true };
	write_header(s, &s->map);
	s->pos = (uint8_t *)(s->map.head + 1);
	s->end = (uint8_t *)memory + len;
}

/*
 * Gives back what the last chunk did not use, if it is much: the header shrinks
 * with the file. Truncating takes milliseconds on a busy ext4, too much for
 * threads that come and go.
 */
static void close_chunk(struct rec_stream *s, uint32_t used)
{
	struct rec_chunk_map map = s->map;
	struct trc_chunk *c = map.head;

	s->map.head = NULL;
	s->pos = s->end = NULL;
	s->dead = true;
	if (!c || map.lent)
		return;
	size_t len = (used + sizeof *c + RAW_PAGE - 1) & ~(RAW_PAGE - 1);

	/* A live chunk may lie before others. */
	bool shrink = !map.slot && map.len - len >= SHRINK_MIN && map.offset + map.len == s->file_end;
	uint64_t end = shrink ? map.offset + len : s->file_end;

	if (shrink) {
		c->capacity = (uint32_t)(len - sizeof *c);
		c->header_sum = trc_checksum(c, offsetof(struct trc_chunk, header_sum));
	}
	seal(&map, used);
	unmap(&map);
	if (!shrink && s->reserved <= s->file_end)
		return;
	file_truncate(s, end);
}

bool rec_close(struct rec_stream *s)
{
	uint64_t saved;
	bool good = !s->dead;

	rec_signals_block(&saved);
	s->open = 0;
	rec_settle(s);
	if (s->map.head && s->map.lent) {
		long err = move_live(s);

		good = !err;
		if (err)
			go_dead(s, err, false);
	}
	close_chunk(s, s->map.head && !s->map.lent ? (uint32_t)(s->pos - (uint8_t *)(s->map.head + 1)) : 0);
	rec_signals_restore(&saved);
	return good;
}

void rec_renew(struct rec_stream *s, size_t used)
{
	uint64_t saved;

	rec_signals_block(&saved);
	rec_settle(s);
	if (s->map.head) {
		s->start += used;
		seal(&s->map, (uint32_t)used);
		unmap(&s->map);
	}
	s->map = (struct rec_chunk_map){ 0 };
	s->pos = s->end = NULL;
	s->again_end = REC_NONE;
	s->sequence = 0;
	s->file_end = s->reserved = 0;
	s->dead = s->together = false;
	rec_signals_restore(&saved);
}

void rec_forget(struct rec_stream *s)
{
	if (s->map.head)
		unmap(&s->map);
	for (int i = 0; i < REC_RETIRED; i++)
		if (s->retired[i].head)
			unmap(&s->retired[i]);
	memset(s, 0, sizeof *s);
	s->dead = true;
}

static void path_range(struct rec_stream *s, uint8_t **begin, uint8_t **end)
{
	*begin = s->pos;
	*end = s->end;
}

bool rec_path_open(struct rec_stream *s, uint32_t thread, uint8_t **begin, uint8_t **end)
{
	bool good = rec_open(s, TRC_STREAM_PATH, thread);

	path_range(s, begin, end);
	return good;
}

bool rec_path_next_chunk(struct rec_stream *s, size_t used, uint8_t **begin, uint8_t **end)
{
	uint64_t saved;

	rec_signals_block(&saved);
	if (s->map.head)
		s->pos = (uint8_t *)(s->map.head + 1) + used;
	bool good = next_chunk(s, 0, false);

	path_range(s, begin, end);
	rec_signals_restore(&saved);
	return good;
}

void rec_path_close(struct rec_stream *s, size_t used)
{
	uint64_t saved;

	rec_signals_block(&saved);
	close_chunk(s, (uint32_t)used);
	rec_signals_restore(&saved);
}
