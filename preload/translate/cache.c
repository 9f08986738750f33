/* Memory of the translator: the low area, cache regions, and what is ours. */
#include "preload/translate/build.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>

#define REGION_SIZE (16ull << 20)
#define REGION_MAX 64
#define REGION_REACH 0x60000000ull /* a region serves code this far away */
#define REGION_FRAGS (1u << 18)
#define OWN_MAX 8192
#define POPULATE_MIN (8ul << 10)
#define POPULATE_MAX (64ul << 10)
#define POPULATE_AHEAD (2u << 10)

struct tr_machine tr_machine;
struct tr_state tr;

static struct tr_region regions[REGION_MAX] RAW_LARGE;
static unsigned nregions;
static uint32_t lock_word; /* 0 free, 1 held, 2 held and waited for */

void tr_lock(void)
{
	uint32_t was = 0;

	if (__atomic_compare_exchange_n(&lock_word, &was, 1, false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE))
		raw(SYS_futex, &lock_word, FUTEX_WAIT_PRIVATE, 2, 0);
}

void tr_unlock(void)
{
	if (__atomic_exchange_n(&lock_word, 0, __ATOMIC_RELEASE) == 2)
		raw(SYS_futex, &lock_word, FUTEX_WAKE_PRIVATE, 1);
}

/* In a forked child: whoever held the lock is not here. */
void tr_lock_reset(void);
void tr_lock_reset(void)
{
	lock_word = 0;
}

/* ---- what is ours: left out of snapshots, defended against munmap ---- */

static struct {
	uint64_t start, end;
} own[OWN_MAX] RAW_LARGE;
static uint32_t nown;

static uint32_t own_add(uint64_t start, size_t len)
{
	uint32_t i = __atomic_fetch_add(&nown, 1, __ATOMIC_RELAXED);

	if (i >= OWN_MAX)
		return OWN_MAX;
	own[i].end = start + ((len + RAW_PAGE - 1) & ~(RAW_PAGE - 1));
	own[i].start = start;
	return i;
}

/* Memory of the shim's that was not allocated here. */
void tr_own(void *p, size_t len)
{
	own_add((uint64_t)p, len);
}

static unsigned own_count(void)
{
	uint32_t n = __atomic_load_n(&nown, __ATOMIC_RELAXED);

	return n < OWN_MAX ? n : OWN_MAX;
}

bool tr_owns(uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < own_count(); i++)
		if (own[i].start < end && start < own[i].end)
			return true;
	return false;
}

uint64_t tr_owned_bytes(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < own_count(); i++)
		sum += own[i].end - own[i].start;
	return sum;
}

uint64_t tr_owned_next(uint64_t address, uint64_t *end)
{
	uint64_t best = UINT64_MAX;

	for (unsigned i = 0; i < own_count(); i++)
		if (own[i].end > address && own[i].start < best) {
			best = own[i].start;
			*end = own[i].end;
		}
	return best;
}

/* Most of what is mapped here is never used: it must not all be present because the program locks its memory. */
static long map(uint64_t address, size_t len, int prot, int flags)
{
	flags |= MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	if (!tr_locks_future)
		return raw(SYS_mmap, address, len, prot, flags, -1, 0);
	long p = raw(SYS_mmap, address, len, PROT_NONE, flags, -1, 0);

	if (!raw_failed(p)) {
		raw(SYS_munlock, p, len);
		raw(SYS_mprotect, p, len, prot);
	}
	return p;
}

void *tr_alloc(size_t len)
{
	long p = map(raw_place(len), len, PROT_READ | PROT_WRITE, 0);

	if (raw_failed(p))
		return NULL;
	own_add((uint64_t)p, len);
	return (void *)p;
}

void *tr_alloc_at(uint64_t address, size_t len, int prot)
{
	long p = map(address, len, prot, MAP_FIXED_NOREPLACE);

	if (raw_failed(p))
		return NULL;
	if ((uint64_t)p != address) { /* old kernels take the address as a hint */
		raw(SYS_munmap, p, len);
		return NULL;
	}
	own_add(address, len);
	return (void *)p;
}

/* Room for `most` bytes in a row, of which a part is mapped now. What lies there instead some day, because it is not ours, ends its growth. */
bool tr_grow_begin(struct tr_growing *g, size_t most, size_t first)
{
	uint64_t at = raw_place(most);
	long p = at ? map(at, first, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE) : -ENOMEM;

	if (!raw_failed(p) && (uint64_t)p != at)
		raw(SYS_munmap, p, first);
	if (raw_failed(p) || (uint64_t)p != at) { /* all of it, wherever there is room */
		first = most;
		p = map(0, most, PROT_READ | PROT_WRITE, 0);
		if (raw_failed(p))
			return false;
	}
	*g = (struct tr_growing){ (uint8_t *)p, first, most, own_add((uint64_t)p, first) };
	return true;
}

/* Doubles what is mapped until it holds `need` bytes. Signal handlers read what was there before, and what is ours, without the lock. */
bool tr_grow(struct tr_growing *g, size_t need)
{
	while (g->mapped < need) {
		size_t more = g->mapped < g->most - g->mapped ? g->mapped : g->most - g->mapped;
		uint64_t at = (uint64_t)g->base + g->mapped;

		if (!more || g->own == OWN_MAX)
			return false;
		long p = map(at, more, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE);

		if (!raw_failed(p) && (uint64_t)p != at)
			raw(SYS_munmap, p, more);
		if (raw_failed(p) || (uint64_t)p != at)
			return false;
		__atomic_store_n(&own[g->own].end, at + more, __ATOMIC_RELEASE);
		g->mapped += more;
	}
	return true;
}

/* Before anything else of ours is mapped: the translator does not fit, and its memory is the program's again. */
void tr_give_back(void);
void tr_give_back(void)
{
	for (unsigned i = 0; i < own_count(); i++)
		raw(SYS_munmap, own[i].start, own[i].end - own[i].start);
	nown = 0;
}

/* Pages about to be used, in one call instead of a fault each; errors do not matter. */
void tr_populate(void *p, size_t len)
{
	raw(SYS_madvise, p, len, 23 /* MADV_POPULATE_WRITE */);
}

/*
 * Keeps a->ready ahead of `used`, a step at a time, by a quarter of what there is. A page costs 1.5 us, whether
 * it is used or not: with steps of 64 KiB from the start `true` takes 5 % longer.
 */
void tr_stay_ahead(struct tr_area *a, const uint8_t *used)
{
	size_t step = (size_t)(a->ready - a->start) / 4 & ~(RAW_PAGE - 1);

	if (used + POPULATE_AHEAD < a->ready)
		return;
	step = step < POPULATE_MIN ? POPULATE_MIN : step > POPULATE_MAX ? POPULATE_MAX : step;
	if (a->ready + step > a->end)
		return;
	tr_populate(a->ready, step);
	a->ready += step;
}

/* ---- regions ---- */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static bool roomy(const struct tr_region *r)
{
	return r->hot + 65536 < r->hot_end && r->cold + 65536 < r->end &&
	       r->nfrags + 16 < REGION_FRAGS;
}

static struct tr_region *region_at(uint64_t address)
{
	if (nregions == REGION_MAX)
		return NULL;
	uint8_t *p = tr_alloc_at(address, REGION_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
	if (!p)
		return NULL;
	uint32_t *frags = tr_alloc(REGION_FRAGS * sizeof(uint32_t));
	if (!frags)
		return NULL;
	struct tr_region *r = &regions[nregions];

	r->base = r->hot = p;
	r->hot_end = r->cold = p + REGION_SIZE / 4 * 3;
	r->end = p + REGION_SIZE;
	r->hot_area = (struct tr_area){ r->base, r->base, r->hot_end };
	r->cold_area = (struct tr_area){ r->cold, r->cold, r->end };
	r->frags = frags;
	__atomic_store_n(&nregions, nregions + 1, __ATOMIC_RELEASE);
	return r;
}

/*
 * Below the code first: above it lies the heap of the main program. Far
 * enough away to leave room for what the program itself will map nearby.
 */
struct tr_region *tr_region_for(uint64_t pc)
{
	for (unsigned i = nregions; i-- > 0;)
		if (distance((uint64_t)regions[i].base, pc) < REGION_REACH && roomy(&regions[i]))
			return &regions[i];
	uint64_t at = pc & ~0x1fffffull;

	for (uint64_t d = 0x18000000; d < REGION_REACH - REGION_SIZE; d += 0x4000000) {
		struct tr_region *r = NULL;

		if (at > d + 0x1000000)
			r = region_at(at - d);
		if (!r)
			r = region_at(at + d);
		if (r)
			return r;
	}
	return NULL;
}

bool tr_in_cache(uint64_t p)
{
	unsigned n = __atomic_load_n(&nregions, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < n; i++)
		if (p - (uint64_t)regions[i].base < REGION_SIZE)
			return true;
	return false;
}

/* Lock-free: called from signal handlers. Bodies rise with their place in frags[]. */
struct tr_frag *tr_frag_of(uint64_t p)
{
	unsigned n = __atomic_load_n(&nregions, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < n; i++) {
		struct tr_region *r = &regions[i];

		if (p - (uint64_t)r->base >= REGION_SIZE)
			continue;
		uint32_t lo = 0, hi = __atomic_load_n(&r->nfrags, __ATOMIC_ACQUIRE);
		while (lo < hi) {
			uint32_t mid = (lo + hi) / 2;

			if ((uint64_t)tr_frag_at(r->frags[mid])->body <= p)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (!lo)
			return NULL;
		struct tr_frag *f = tr_frag_at(r->frags[lo - 1]);
		return p < (uint64_t)f->body + f->len ? f : NULL;
	}
	return NULL;
}

/* Only one thread is left and it is not in the cache: the space can be used again. */
void tr_regions_reset(void);
void tr_regions_reset(void)
{
	for (unsigned i = 0; i < nregions; i++) {
		regions[i].hot = regions[i].base;
		regions[i].cold = regions[i].hot_end;
		__atomic_store_n(&regions[i].nfrags, 0, __ATOMIC_RELEASE);
	}
	callouts_forget();
	tr_table_forget();
}

static bool low_area(void)
{
	/* High in the first 2 GB: programs linked at 4 MB grow their heap upwards. */
	static const uint32_t places[] = { 0x78000000, 0x70000000, 0x68000000, 0x60000000,
					   0x50000000, 0x40000000, 0x30000000, 0x20000000 };

	for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++)
		if (tr_alloc_at(places[i], LOW_SIZE, PROT_READ | PROT_WRITE)) {
			tr_low = places[i];
			return true;
		}
	return false;
}

bool tr_cache_init(void)
{
	if (!low_area())
		return false;
	uint64_t *pointers = (uint64_t *)(uint64_t)(tr_low + LOW_POINTERS);
	uint64_t *addends = (uint64_t *)(uint64_t)(tr_low + LOW_ADDENDS);

	pointers[LOW_P_DIRECT] = (uint64_t)tr_enter_direct;
	pointers[LOW_P_SIDE] = (uint64_t)tr_enter_side;
	pointers[LOW_P_INDIRECT] = (uint64_t)tr_enter_indirect;
	pointers[LOW_P_SPECIAL] = (uint64_t)tr_enter_special;
	pointers[LOW_P_CALLOUT] = (uint64_t)tr_enter_callout;
	pointers[LOW_P_SPIN] = (uint64_t)tr_shard_spin;
	pointers[LOW_P_EVENT] = (uint64_t)tr_enter_event;
	for (unsigned i = 0; i <= 64; i++)
		addends[2 * i] = i;
	*(uint64_t *)(uint64_t)(tr_low + LOW_SHARD_MASK) = 0x3ffc0;
	tr_table_empty();
	return true;
}
