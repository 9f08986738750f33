// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checkpoints that hold what has changed: a list of all pages of the last one, with a sum of each and the epoch in which it was
 * written, sorted by address. The copy of the process goes through memory and the list together, and makes the next list; both are
 * shared with the program, which never looks into them. A list counts when its checkpoint is whole: one that was not
 * finished leaves the one before in force.
 *
 * A page that is gone stays in the list as such, so that a checkpoint can say so that holds everything since an earlier one.
 *
 * Why sums: they need no right, no setting of the kernel and no state in the page tables that others might use. Soft-dirty bits
 * are compiled into few kernels, and clearing them makes each page fault once more; PAGEMAP_SCAN (Linux 6.7) wants a userfaultfd
 * registered for each mapping, which is the program's to use. The copy of the process makes the pages fault anyway. Sums of 300 MB
 * cost 18 ms (AMD EPYC), and not the program's threads but the copy. Two contents of a page have the same sum of
 * 64 bits by chance once in 2^64.
 */
#include "preload/translate/pages.h"

#include "preload/raw.h"
#include "preload/record/stream.h"
#include "preload/translate/translate.h"

#include <sys/mman.h>

#define EPOCH_BITS 28
#define EPOCH_MASK ((1u << EPOCH_BITS) - 1) /* there are no more, see record/ring.c */
#define ROOM_MIN (1ul << 20)  /* bytes of a list */
#define FIRST_PART 8u         /* of all pages change until the next checkpoint, as long as nothing is known of that */

struct entry {
	uint64_t at;  /* page number << 29 | epoch << 1 | gone */
	uint64_t sum;
};

struct list {
	uint64_t n;
	struct tr_pages_known known;
	bool overflowed; /* it does not hold all */
	bool ended;      /* all of memory was looked at */
	struct entry v[];
};

static struct {
	struct list *list[2];
	uint64_t size[2]; /* bytes */
	unsigned current; /* which of them is the last whole checkpoint's */
	bool known;       /* there is such a one */
} pages;

/* While a checkpoint is written; the copy's own. */
static struct {
	const struct list *old;
	struct list *new;
	uint64_t i, room;
	struct tr_pages_what what;
	void (*left)(uint64_t page);
} walk;

static uint64_t page_of(const struct entry *e)
{
	return e->at >> (EPOCH_BITS + 1) << 12;
}

static uint32_t epoch_of(const struct entry *e)
{
	return (uint32_t)(e->at >> 1) & EPOCH_MASK;
}

static bool is_gone(const struct entry *e)
{
	return e->at & 1;
}

void tr_pages_forget(void)
{
	pages.known = false;
	/* The parent's, which goes on using them: others take their place. */
	for (unsigned i = 0; i < 2; i++) {
		long p = pages.size[i] ? raw(SYS_mmap, pages.list[i], pages.size[i], PROT_READ | PROT_WRITE,
					     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) : 0;

		if (raw_failed(p))
			pages.size[i] = 0;
	}
}

bool tr_pages_known(struct tr_pages_known *k)
{
	if (pages.known)
		*k = pages.list[pages.current]->known;
	return pages.known;
}

bool tr_pages_tried(struct tr_pages_known *k)
{
	unsigned next = !pages.current;
	bool tried = pages.size[next] && pages.list[next]->ended;

	if (tried)
		*k = pages.list[next]->known;
	return tried;
}

void tr_pages_room(uint64_t bytes)
{
	unsigned next = !pages.current;
	uint64_t n = bytes / RAW_PAGE + (pages.known ? pages.list[pages.current]->n : 0);
	uint64_t size = (sizeof(struct list) + (n + n / 8) * sizeof(struct entry)) | (ROOM_MIN - 1);

	if (size < pages.size[next])
		return;
	/* Twice as much: memory of ours is never given back, so that nobody maps anything there unseen. */
	struct list *l = raw_map(2 * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (!l)
		return;
	tr_own(l, 2 * size);
	if (pages.size[next])
		raw(SYS_madvise, pages.list[next], pages.size[next], MADV_REMOVE);
	pages.list[next] = l;
	pages.size[next] = 2 * size;
}

void tr_pages_begin(const struct tr_pages_what *what, void (*left)(uint64_t page))
{
	unsigned next = !pages.current;

	memset(&walk, 0, sizeof walk);
	walk.what = *what;
	walk.old = pages.known ? pages.list[pages.current] : NULL;
	walk.new = pages.size[next] ? pages.list[next] : NULL;
	walk.room = walk.new ? (pages.size[next] - sizeof *walk.new) / sizeof(struct entry) : 0;
	walk.left = left;
	if (walk.new)
		memset(walk.new, 0, sizeof *walk.new);
}

static void add(uint64_t page, uint64_t sum, uint32_t epoch, bool gone)
{
	if (!walk.new || walk.new->n == walk.room) {
		if (walk.new)
			walk.new->overflowed = true;
		return;
	}
	walk.new->v[walk.new->n++] = (struct entry){ page >> 12 << (EPOCH_BITS + 1) | (uint64_t)epoch << 1 | gone, sum };
	if (gone)
		return;
	walk.new->known.all += RAW_PAGE;
	if (epoch > walk.what.base)
		walk.new->known.recent += RAW_PAGE;
	if (epoch == walk.what.now)
		walk.new->known.changed += RAW_PAGE;
}

/* The old list up to this page: what was not met is there no more. */
static void pass_until(uint64_t page)
{
	for (; walk.old && walk.i < walk.old->n && page_of(&walk.old->v[walk.i]) < page; walk.i++) {
		const struct entry *e = &walk.old->v[walk.i];
		uint32_t epoch = is_gone(e) ? epoch_of(e) : walk.what.now;

		if (!walk.what.since)
			continue; /* a complete one need not say so */
		add(page_of(e), 0, epoch, true);
		if (epoch > walk.what.since)
			walk.left(page_of(e));
	}
}

bool tr_page(uint64_t page, uint64_t sum)
{
	uint32_t epoch = walk.what.now;

	pass_until(page);
	if (walk.old && walk.i < walk.old->n && page_of(&walk.old->v[walk.i]) == page) {
		const struct entry *e = &walk.old->v[walk.i++];

		if (!is_gone(e) && e->sum == sum)
			epoch = epoch_of(e);
	}
	add(page, sum, epoch, false);
	return epoch > walk.what.since;
}

void tr_pages_elsewhere(uint64_t start, uint64_t end)
{
	pass_until(start);
	while (walk.old && walk.i < walk.old->n && page_of(&walk.old->v[walk.i]) < end)
		walk.i++;
}

void tr_pages_end(void)
{
	pass_until(UINT64_MAX);
	if (!walk.new)
		return;
	walk.new->ended = !walk.new->overflowed;
	if (!walk.old)
		walk.new->known.changed = walk.new->known.all / FIRST_PART;
}

void tr_pages_keep(void)
{
	unsigned next = !pages.current;

	pages.known = pages.size[next] && !pages.list[next]->overflowed;
	if (pages.known)
		pages.current = next;
}

/* ---- sums ---- */

static inline uint64_t mixed(uint64_t a, uint64_t b)
{
	unsigned __int128 p = (unsigned __int128)a * b;

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* Odd numbers without a pattern: digits of e. */
#define MIX_A 0xb7e151628aed2a6bull
#define MIX_B 0xbf7158809cf4f3c7ull
#define MIX_C 0x62e7160f38b4da57ull
#define MIX_D 0xa784d9045190cfefull

uint64_t tr_page_sum(const void *page)
{
	const uint64_t *p = page;
	uint64_t any = 0, a = MIX_A, b = MIX_B;

	/* Most pages that are zero are so throughout, most others not in the beginning. */
	for (unsigned i = 0; i < RAW_PAGE / 8; i += 4) {
		any |= p[i] | p[i + 1] | p[i + 2] | p[i + 3];
		a = mixed(p[i] ^ MIX_C ^ a, p[i + 1] ^ MIX_D);
		b = mixed(p[i + 2] ^ MIX_A ^ b, p[i + 3] ^ MIX_B);
	}
	uint64_t sum = mixed(a ^ MIX_B, b ^ MIX_C);

	return !any ? 0 : sum ? sum : 1;
}
