/* Streams: reserve space, switch chunks, seal. The contract is in stream.h. */
#include "preload/record/stream.h"

#include "preload/raw.h"
#include "preload/say.h"
#include "preload/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>

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
#define FIRST_CHUNK_LARGE (64ul << 10) /* paths and fragments: what `true` leaves fits */
#define LIVE_CHUNK (256ul << 10)
#define LAST_CHUNK (4ul << 20)
#define RESERVE_FROM (8ul << 20)
#define RESERVE_STEP (4ul << 20)
#define SHRINK_MIN (256ul << 10)
#define HUGE (2ul << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct rec_stream rec_process;
static uint64_t total; /* bytes allocated on disk by this process */

uint64_t rec_total(void)
{
	return __atomic_load_n(&total, __ATOMIC_RELAXED);
}

static void block_signals(uint64_t *saved)
{
	uint64_t all = ~0ull;

	raw(SYS_rt_sigprocmask, SIG_BLOCK, &all, saved, 8);
}

static void restore_signals(const uint64_t *saved)
{
	raw(SYS_rt_sigprocmask, SIG_SETMASK, saved, NULL, 8);
}

/* Recursive: failing to write while holding it leads to a note, which wants it again. */
static uint32_t lock_word; /* tid of the owner */
static uint32_t lock_depth;

void rec_lock(uint64_t *saved)
{
	uint32_t me = (uint32_t)raw(SYS_gettid);

	block_signals(saved);
	if (__atomic_load_n(&lock_word, __ATOMIC_RELAXED) == me) {
		lock_depth++;
		return;
	}
	for (uint32_t seen = 0; !__atomic_compare_exchange_n(&lock_word, &seen, me, false,
							     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
	     seen = 0)
		raw(SYS_sched_yield);
	lock_depth = 1;
}

void rec_unlock(const uint64_t *saved)
{
	if (--lock_depth == 0)
		__atomic_store_n(&lock_word, 0, __ATOMIC_RELEASE);
	restore_signals(saved);
}

void rec_lock_reset(void)
{
	lock_word = 0;
	lock_depth = 0;
}

static const char *stream_name(const struct rec_stream *s, struct raw_text *name)
{
	switch (s->kind) {
	case TRC_STREAM_PROCESS: return "process";
	case TRC_STREAM_FRAGS: return "frags";
	case TRC_STREAM_MEMORY: return "memory";
	case TRC_STREAM_FINAL: return "final";
	default: break;
	}
	text_str(name, "t");
	text_num(name, s->thread);
	text_str(name, s->kind == TRC_STREAM_PATH ? ".path" : ".rec");
	return name->s;
}

static const char *allocation_refused(long err)
{
	switch (-err) {
	case ENOSPC: return "no space left for the trace; recording stopped";
	case EDQUOT: return "disk quota exceeded; recording stopped";
	case EFBIG: return "file size limit (RLIMIT_FSIZE) reached; recording stopped";
	case EMFILE:
	case ENFILE: return "no file descriptor left for the trace; recording stopped";
	case ENOENT: return "the trace directory is gone; recording stopped";
	case EACCES:
	case EPERM: return "the trace may no longer be written (another user?); recording stopped";
	case ENOMEM: return "no memory left to map the trace; recording stopped";
	case E2BIG: return "max_size reached; recording stopped";
	default: return "cannot write the trace; recording stopped";
	}
}

/* In one call as far as possible, so that the kernel can use large pages for it. */
static long write_zeros(int fd, uint64_t offset, size_t len)
{
	static const char zeros[64 << 10];
	struct iovec iov[64];
	int n = 0;

	for (; len && n < 64; n++) {
		size_t part = len < sizeof zeros ? len : sizeof zeros;

		iov[n].iov_base = (void *)zeros;
		iov[n].iov_len = part;
		len -= part;
	}
	return raw(SYS_pwritev, fd, iov, n, offset, offset >> 32);
}

/* Beyond the limit the kernel would send SIGXFSZ to the program. */
static bool beyond_limit(uint64_t size)
{
	struct rlimit limit;

	return !raw(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) &&
	       limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

/*
 * Reserves disk space by writing zeros. Most traces are removed when the program ends well, and
 * a file whose blocks were never chosen goes in 25 us; one that fallocate() gave blocks takes 0.2-8 ms
 * (ext4, mounted with discard). The reservation holds all the same.
 */
static long allocate(int fd, uint64_t offset, size_t len)
{
	if (beyond_limit(offset + len))
		return -EFBIG;
	for (size_t n = 0; n < len;) {
		long done = write_zeros(fd, offset + n, len - n);

		if (done == -EINTR)
			continue;
		if (done <= 0) {
			raw(SYS_ftruncate, fd, offset);
			return done ? done : -ENOSPC;
		}
		n += (size_t)done;
	}
	return 0;
}

/*
 * The mapping, with an inaccessible page behind it. Large ones lie in memory as
 * they do in the file, modulo the size of a huge page.
 */
static void *map_guarded(int fd, uint64_t offset, size_t len)
{
	size_t slack = len >= HUGE ? HUGE : 0;
	char *area = raw_map(len + slack + RAW_PAGE, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t skip = slack ? (offset - (uint64_t)area) % HUGE : 0;

	if (!area)
		return NULL;
	long p = raw(SYS_mmap, area + skip, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		     offset);
	if (raw_failed(p)) {
		raw_free(area, len + slack + RAW_PAGE);
		return NULL;
	}
	if (skip)
		raw_free(area, skip);
	if (slack - skip)
		raw_free(area + skip + len + RAW_PAGE, slack - skip);
	return area + skip;
}

static void give_back(size_t len)
{
	__atomic_sub_fetch(&total, len, __ATOMIC_RELAXED);
}

/* The stream's file, if it may grow by len bytes, which then count; negative errno. */
static int open_to_grow(const struct rec_stream *s, size_t len)
{
	TEXT(name, 32);
	/* The process stream always may: the reason for a failure must find room. */
	bool limited = s->kind != TRC_STREAM_PROCESS;
	uint64_t sum = __atomic_add_fetch(&total, len, __ATOMIC_RELAXED);
	int fd = -E2BIG;

	if (shim.state == SHIM_ENDED)
		fd = -ENOENT;
	else if (!limited || sum <= shim_opt.max_size)
		fd = rec_dir_open(stream_name(s, &name), O_RDWR | O_CREAT);
	if (fd < 0)
		give_back(len);
	return fd;
}

/* Closes the file; err is how growing by len bytes went. */
static void grown(struct rec_stream *s, int fd, size_t len, long err)
{
	raw(SYS_close, fd);
	if (err)
		give_back(len);
	else
		s->file_end += len;
}

static long new_chunk(struct rec_stream *s, size_t len, struct rec_chunk_map *map)
{
	int fd = open_to_grow(s, len);

	if (fd < 0)
		return fd;
	long err = allocate(fd, s->file_end, len);

	if (!err) {
		map->head = map_guarded(fd, s->file_end, len);
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
	if (!err && s->file_end)
		raw(SYS_madvise, map->head, map->len, MADV_POPULATE_WRITE);
	grown(s, fd, len, err);
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

static void unmap(struct rec_chunk_map *map)
{
	raw_free(map->head, map->len + RAW_PAGE);
	map->head = NULL;
}

static size_t chunk_len(const struct rec_stream *s, size_t record)
{
	bool large = s->kind == TRC_STREAM_PATH || s->kind == TRC_STREAM_FRAGS;
	size_t first = large ? FIRST_CHUNK_LARGE : FIRST_CHUNK;
	size_t len = s->file_end < first ? first :
		     has_live_chunk(s) ? LIVE_CHUNK :
		     s->file_end >= LAST_CHUNK ? LAST_CHUNK : 3 * s->file_end;
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

/*
 * Blocks of large files are allocated many at a time, before they are written: 0.19
 * instead of 0.29 ns per byte. Errors do not matter here: writing will meet them.
 */
static void reserve(struct rec_stream *s, int fd, size_t len)
{
	if (s->file_end < RESERVE_FROM || s->file_end + len <= s->reserved)
		return;
	raw(SYS_fallocate, fd, FALLOC_FL_KEEP_SIZE, s->file_end, RESERVE_STEP);
	s->reserved = s->file_end + RESERVE_STEP;
}

static long append(int fd, uint64_t offset, const struct trc_chunk *head, const void *payload)
{
	struct iovec iov[2] = { { (void *)head, sizeof *head }, { (void *)payload, head->length } };
	size_t len = sizeof *head + head->length;

	if (beyond_limit(offset + len))
		return -EFBIG;
	long n = raw(SYS_pwritev, fd, iov, 2, offset, offset >> 32);

	if (n >= 0 && n != (long)len) {
		raw(SYS_ftruncate, fd, offset);
		n = -ENOSPC;
	}
	return n < 0 ? n : 0;
}

/*
 * Appends the live chunk's contents to the file as a sealed chunk, then empties it. Killed
 * in the middle of the first, there is a half-written copy at the file's end that
 * readers leave alone, having the original; killed in the middle of the second, the
 * original says that it has moved.
 */
static long move_live(struct rec_stream *s)
{
	struct trc_chunk *c = s->map.head, head = *c;
	uint32_t used = (uint32_t)(s->pos - (uint8_t *)(c + 1));
	size_t len = (sizeof head + used + RAW_PAGE - 1) & ~(RAW_PAGE - 1);
	int fd = open_to_grow(s, len);

	if (fd < 0)
		return fd;
	head.capacity = (uint32_t)(len - sizeof head);
	head.length = used;
	head.checksum = trc_checksum(c + 1, used);
	head.place = TRC_PLACE_SEQUENCE;
	sum_header(&head);
	reserve(s, fd, len);
	long err = append(fd, s->file_end, &head, c + 1);

	grown(s, fd, len, err);
	if (err)
		return err;
	s->start += used;
	s->pos = (uint8_t *)(c + 1);
	__atomic_store_n(&c->place, TRC_PLACE_MOVED, __ATOMIC_RELEASE);
	memset(c + 1, 0, used);
	c->sequence = s->sequence++;
	c->start = s->start;
	sum_header(c);
	__atomic_store_n(&c->place, TRC_PLACE_LIVE, __ATOMIC_RELEASE);
	return 0;
}

/* Makes room in a new chunk or in the live one; negative errno. */
static long turn(struct rec_stream *s, size_t record, bool nested)
{
	struct rec_chunk_map map = { 0 };
	size_t len = chunk_len(s, record);

	if (s->dead)
		return -ENOENT;
	if (s->map.head && s->map.live && !nested && len <= s->map.len)
		return move_live(s);
	long err = new_chunk(s, len, &map);

	if (err)
		return err;
	map.live = has_live_chunk(s) && s->sequence;
	retire(s, nested);
	write_header(s, &map);
	s->map = map;
	s->pos = (uint8_t *)(map.head + 1);
	s->end = (uint8_t *)map.head + map.len;
	return 0;
}

static bool next_chunk(struct rec_stream *s, size_t record, bool nested)
{
	long err = turn(s, record, nested);

	if (!err)
		return true;
	retire(s, nested);
	s->pos = s->end = NULL;
	/* Without a directory there was never anything to record, as in children with follow=0. */
	if (!s->dead && shim.state != SHIM_ENDED && rec_dir_path()[0])
		(err == -E2BIG ? shim_degrade : say_degraded_tree)(allocation_refused(err));
	s->dead = true;
	return false;
}

void *rec_begin_slow(struct rec_stream *s, size_t size)
{
	uint64_t saved;
	uint8_t *at = NULL;

	block_signals(&saved);
	/* A handler may have switched chunks before we blocked it. */
	if (s->pos && s->pos + size <= s->end)
		at = s->pos;
	else if (next_chunk(s, size, s->open > 1))
		at = s->pos;
	if (at)
		s->pos = at + size;
	else
		s->open--;
	restore_signals(&saved);
	return at;
}

void rec_settle(struct rec_stream *s)
{
	uint64_t saved;

	block_signals(&saved);
	for (int i = 0; i < REC_RETIRED && !s->open; i++) {
		if (!s->retired[i].head)
			continue;
		seal(&s->retired[i], s->retired[i].used);
		unmap(&s->retired[i]);
	}
	restore_signals(&saved);
}

bool rec_open(struct rec_stream *s, enum trc_stream kind, uint32_t thread)
{
	memset(s, 0, sizeof *s);
	s->kind = (uint16_t)kind;
	s->thread = thread;
	return next_chunk(s, 0, false);
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
	TEXT(name, 32);

	s->map.head = NULL;
	s->pos = s->end = NULL;
	s->dead = true;
	if (!c)
		return;
	size_t len = (used + sizeof *c + RAW_PAGE - 1) & ~(RAW_PAGE - 1);

	/* A live chunk may lie before others. */
	bool shrink = map.len - len >= SHRINK_MIN && map.offset + map.len == s->file_end;
	uint64_t end = shrink ? map.offset + len : s->file_end;

	if (shrink) {
		c->capacity = (uint32_t)(len - sizeof *c);
		c->header_sum = trc_checksum(c, offsetof(struct trc_chunk, header_sum));
	}
	seal(&map, used);
	unmap(&map);
	if (!shrink && s->reserved <= s->file_end)
		return;
	int fd = rec_dir_open(stream_name(s, &name), O_RDWR);

	if (fd < 0)
		return;
	if (!raw(SYS_ftruncate, fd, end))
		give_back(s->file_end - end);
	raw(SYS_close, fd);
}

void rec_close(struct rec_stream *s)
{
	uint64_t saved;

	block_signals(&saved);
	s->open = 0;
	rec_settle(s);
	close_chunk(s, s->map.head ? (uint32_t)(s->pos - (uint8_t *)(s->map.head + 1)) : 0);
	restore_signals(&saved);
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

void rec_forget_total(void)
{
	total = 0;
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

	block_signals(&saved);
	if (s->map.head)
		s->pos = (uint8_t *)(s->map.head + 1) + used;
	bool good = next_chunk(s, 0, false);

	path_range(s, begin, end);
	restore_signals(&saved);
	return good;
}

void rec_path_close(struct rec_stream *s, size_t used)
{
	uint64_t saved;

	block_signals(&saved);
	close_chunk(s, (uint32_t)used);
	restore_signals(&saved);
}
