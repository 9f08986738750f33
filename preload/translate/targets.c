/*
 * Where indirect branches lead, as the profile counted it: for each the TR_TARGETS most
 * frequent addresses, as far as such a small table can know.
 */
#include "preload/translate/translate.h"

#define FANS (1u << 11)
#define SEEN_ENOUGH 16
#define RARE 16      /* fewer than one of so many is not looked for */
#define USUAL_OF_TEN 5

struct fan {
	uint64_t pc; /* of the branch */
	uint64_t to[TR_TARGETS];
	uint32_t n[TR_TARGETS];
	uint32_t all;
};

static struct fan *fans;
static uint32_t nfans;

bool tr_targets_clear(void)
{
	if (fans) {
		memset(fans, 0, FANS * sizeof *fans);
	} else {
		fans = tr_alloc(FANS * sizeof *fans);
		if (fans)
			tr_populate(fans, FANS * sizeof *fans);
	}
	nfans = 0;
	return fans;
}

static struct fan *fan_of(uint64_t pc, bool add)
{
	uint32_t h = (uint32_t)(pc * 0x9e3779b97f4a7c15ull >> 40) & (FANS - 1);

	if (!fans)
		return NULL;
	while (fans[h].pc && fans[h].pc != pc)
		h = (h + 1) & (FANS - 1);
	if (!fans[h].pc) {
		if (!add || nfans > FANS / 4 * 3)
			return NULL;
		nfans++;
		fans[h].pc = pc;
	}
	return &fans[h];
}

/* So many times it was executed, ... */
void tr_targets_seen(uint64_t pc, uint32_t times)
{
	struct fan *f = fan_of(pc, true);

	if (f)
		f->all += times;
}

/* ... and of these so many times it went there. */
void tr_targets_add(uint64_t pc, uint64_t to, uint32_t times)
{
	struct fan *f = times ? fan_of(pc, true) : NULL;
	unsigned i = 0;

	if (!f)
		return;
	while (i < TR_TARGETS - 1 && f->n[i] && f->to[i] != to)
		i++;
	if (f->to[i] == to)
		f->n[i] += times;
	else if (f->n[i] < times) {
		f->to[i] = to;
		f->n[i] = times;
	}
	for (; i && f->n[i] > f->n[i - 1]; i--) { /* they stay sorted */
		uint64_t address = f->to[i - 1];
		uint32_t n = f->n[i - 1];

		f->to[i - 1] = f->to[i], f->n[i - 1] = f->n[i];
		f->to[i] = address, f->n[i] = n;
	}
}

struct tr_targets tr_targets_of(uint64_t pc)
{
	const struct fan *f = fan_of(pc, false);
	struct tr_targets t = { .n = 0 };

	if (!f || f->all < SEEN_ENOUGH)
		return t;
	for (unsigned i = 0; i < TR_TARGETS && f->n[i] > f->all / RARE; i++)
		t.to[t.n++] = f->to[i];
	t.usual = (uint64_t)f->n[0] * 10 >= (uint64_t)f->all * USUAL_OF_TEN;
	return t;
}
