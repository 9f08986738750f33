/* Mappings come and go: the set against an array with one entry per page. */
#include "analyzer/image/internal.h"
#include "tests/lib/check.h"

#include <sys/mman.h>

enum { PAGES = 64, MODULES = 5, STEPS = 20000 };

static uint32_t draw(uint32_t below)
{
	static uint64_t seed = 7;

	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % below;
}

/* What lies on each page: module + 1 and the page of its file. */
static struct {
	int module;
	uint32_t page;
} model[PAGES];

static struct img_module *module[MODULES];

static void map(struct img_set *set)
{
	uint32_t lo = draw(PAGES), n = 1 + draw(PAGES - lo), off = draw(100), who = draw(MODULES);
	struct img_mapping m = { lo * IMG_PAGE, (lo + n) * IMG_PAGE, off * IMG_PAGE, PROT_READ };

	(void)set;
	img_add_mapping(module[who], &m);
	for (uint32_t i = 0; i < n; i++) {
		model[lo + i].module = (int)who + 1;
		model[lo + i].page = off + i;
	}
}

static void unmap(struct img_set *set)
{
	uint32_t lo = draw(PAGES), n = 1 + draw(PAGES - lo);

	img_remove_range(set, lo * IMG_PAGE, (lo + n) * IMG_PAGE);
	for (uint32_t i = 0; i < n; i++)
		model[lo + i].module = 0;
}

static bool agrees(struct img_set *set)
{
	for (uint32_t i = 0; i < PAGES; i++) {
		uint64_t addr = i * IMG_PAGE + draw(IMG_PAGE);
		const struct img_live *l = img_live_at(set, addr);

		if (!l != !model[i].module)
			return false;
		if (l && (l->module != module[model[i].module - 1] ||
			  l->file_offset + (addr - l->start) !=
				  model[i].page * IMG_PAGE + addr % IMG_PAGE))
			return false;
	}
	for (size_t i = 1; i < set->live.n; i++)
		if (set->live.v[i - 1].end > set->live.v[i].start)
			return false;
	return true;
}

int main(void)
{
	struct img_set *set = img_set_new();
	int wrong = 0;

	for (int i = 0; i < MODULES; i++) {
		struct img_module_desc d = { .path = "/nowhere/module" };

		err_free(img_add_module(set, &d, &module[i]));
	}
	for (int i = 0; i < STEPS && !wrong; i++) {
		if (draw(3))
			map(set);
		else
			unmap(set);
		wrong += !agrees(set);
	}
	CHECK(!wrong, "%d mappings and unmappings", STEPS);
	img_remove_range(set, 0, UINT64_MAX);
	CHECK(set->live.n == 0, "nothing is left");
	img_set_free(set);
	CHECK_END();
}
