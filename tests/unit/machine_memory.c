/* Paged memory against a flat model: mapping, protection, accesses, saving and restoring. */
#include "analyzer/engine/memory.h"
#include "analyzer/engine/memory_inline.h"
#include "tests/lib/check.h"

#include <stdlib.h>
#include <string.h>

#define BASE 0x7f0000000000ull
#define PAGES 40u
#define SIZE (PAGES * MEM_PAGE)

struct model {
	uint8_t bytes[SIZE];
	uint8_t prot[PAGES]; /* 0xff: not mapped */
};

static uint64_t seed = 42;

static uint64_t next(uint64_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % below;
}

static bool may(const struct model *o, uint64_t at, unsigned n, unsigned need)
{
	for (uint64_t p = at / MEM_PAGE; p <= (at + n - 1) / MEM_PAGE; p++)
		if (o->prot[p] == 0xff || (need == MEM_R ? !o->prot[p] : !(o->prot[p] & need)))
			return false;
	return true;
}

/* What is watched, and what should have been noticed of it. */
static struct mem_watch watched[2];
static bool touched;

static void note(uint64_t at, unsigned n, bool write)
{
	for (unsigned i = 0; i < 2; i++)
		touched |= (write ? watched[i].writes : watched[i].reads) && BASE + at < watched[i].hi && BASE + at + n > watched[i].lo;
}

/* Two places that are watched, or none any more. */
static void one_watch(struct mem *m)
{
	memset(watched, 0, sizeof watched);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t lo = BASE + next(4 * MEM_PAGE);

		watched[i] = (struct mem_watch){ lo, lo + 1 + next(16), next(2), next(2) };
	}
	bool none = !next(4);

	if (none)
		memset(watched, 0, sizeof watched);
	mem_watch(m, none ? NULL : watched, none ? 0 : 2);
	touched = false;
}

static bool one_access(struct mem *m, struct model *o)
{
	/* Half of them where something is watched. */
	uint64_t at = next(next(2) ? SIZE - 8 : 4 * MEM_PAGE), value = next(UINT64_MAX >> 1), got = 0;
	bool good;

	if (next(2)) {
		good = mem_store64(m, BASE + at, value);
		if (good)
			note(at, 8, true);
		if (good != may(o, at, 8, MEM_W))
			return false;
		if (good)
			memcpy(o->bytes + at, &value, 8);
		return true;
	}
	good = mem_load32(m, BASE + at, &got);
	if (good)
		note(at, 4, false);
	if (good != may(o, at, 4, MEM_R))
		return false;
	return !good || !memcmp(&got, o->bytes + at, 4);
}

static void one_mapping(struct mem *m, struct model *o)
{
	uint64_t first = next(PAGES), n = 1 + next(PAGES - first);
	unsigned prot = (unsigned)next(4);
	uint64_t lo = BASE + first * MEM_PAGE, hi = lo + n * MEM_PAGE;

	switch (next(4)) {
	case 0:
		mem_map(m, lo, hi, prot, false);
		memset(o->bytes + first * MEM_PAGE, 0, n * MEM_PAGE);
		memset(o->prot + first, (int)prot, n);
		break;
	case 1:
		mem_unmap(m, lo, hi);
		memset(o->prot + first, 0xff, n);
		break;
	case 2:
		mem_protect(m, lo, hi, prot);
		for (uint64_t i = first; i < first + n; i++)
			if (o->prot[i] != 0xff)
				o->prot[i] = (uint8_t)prot;
		break;
	default:
		mem_discard(m, lo, hi);
		memset(o->bytes + first * MEM_PAGE, 0, n * MEM_PAGE);
	}
}

static void against_model(void)
{
	struct mem *m = mem_new();
	struct model *now = calloc(1, sizeof *now), *then = calloc(1, sizeof *then);
	struct mem_image image = { 0 };
	bool saved = false, good = true;

	memset(now->prot, 0xff, sizeof now->prot);
	mem_map(m, BASE, BASE + SIZE, MEM_R | MEM_W, false);
	memset(now->prot, MEM_R | MEM_W, sizeof now->prot);
	for (int i = 0; i < 200000 && good; i++) {
		uint64_t what = next(1000);

		if (what == 0) {
			one_mapping(m, now);
		} else if (what == 1 && !saved) {
			mem_save(m, &image);
			*then = *now;
			saved = true;
		} else if (what == 2 && saved) {
			mem_restore(m, &image);
			*now = *then;
		} else if (what == 3 && saved) {
			mem_image_free(&image);
			saved = false;
		} else if (what == 4) {
			one_watch(m);
		} else {
			good = one_access(m, now) && m->touched == touched;
		}
	}
	CHECK(good, "200000 random operations agree with a flat model, and what is watched is noticed");
	if (saved)
		mem_image_free(&image);
	mem_free(m);
	free(now);
	free(then);
}

static unsigned changes;

static void changed(void *arg, uint64_t lo, uint64_t hi)
{
	(void)arg;
	(void)lo;
	(void)hi;
	changes++;
}

static void edges(void)
{
	struct mem *m = mem_new();
	uint8_t bytes[64];
	uint64_t v;

	CHECK(!mem_map(m, MEM_TOP - MEM_PAGE, MEM_TOP + MEM_PAGE, MEM_R, false),
	      "nothing is mapped beyond user space");
	CHECK(!mem_load64(m, UINT64_MAX - 3, &v) && !mem_load64(m, 0x8000000000000000ull, &v),
	      "addresses that cannot be are refused");
	CHECK(!mem_peek(m, UINT64_MAX - 10, bytes, 64), "so are ranges that wrap around");
	mem_map(m, 0x1000, 0x3000, MEM_R | MEM_W | MEM_X, false);
	CHECK(mem_fetch(m, 0x2ff0, bytes, 64) == 16, "code is fetched up to the end of the mapping");
	m->code_changed = changed;
	mem_store64(m, 0x1000, 1);
	CHECK(changes == 0, "writing beside code is no change of code");
	mem_store64(m, 0x2000, 1);
	mem_store64(m, 0x2008, 1);
	CHECK(changes == 2, "every write to a page with code is told");
	mem_store64(m, 0x1ffc, 0x1122334455667788ull);
	CHECK(mem_load32(m, 0x2000, &v) && v == 0x11223344, "an access may cross pages");
	CHECK(!mem_store64(m, 0x2ffc, 1) && m->fault == 0x3000, "a fault names the first bad address");
	CHECK(mem_load32(m, 0x2ffc, &v) && v == 0, "and a refused store stores nothing");
	CHECK(mem_move(m, 0x1000, 0x2000, 0x10000, 0x3000) && mem_load32(m, 0x11000, &v) &&
		      v == 0x11223344 && !mem_load32(m, 0x1000, &v),
	      "a moved mapping takes its contents along");
	mem_free(m);
}

int main(void)
{
	against_model();
	edges();
	CHECK_END();
}
