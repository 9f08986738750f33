/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System calls and ioctls that are not in the tables: what they write is unknown. What lies at their arguments is
 * compared before and after; a difference is recorded, and named, since there may be more behind pointers.
 */
#include "preload/translate/syscall.h"

#define FIRST_ADDRESS 0x10000u /* below it nothing is mapped */

static bool copy_up_to_page(uint8_t *to, uint64_t from)
{
	uint64_t first = RAW_PAGE - from % RAW_PAGE;

	memset(to, 0, GUESS_BYTES);
	if (first >= GUESS_BYTES)
		return tr_copy(to, (void *)from, GUESS_BYTES);
	if (!tr_copy(to, (void *)from, first))
		return false;
	if (!tr_copy(to + first, (void *)(from + first), GUESS_BYTES - first))
		memset(to + first, 0, GUESS_BYTES - first);
	return true;
}

void call_guess_before(struct call *k, struct guess *g)
{
	g->there = 0;
	for (unsigned i = 0; i < 6; i++)
		if (k->args[i] >= FIRST_ADDRESS && k->args[i] < 1ull << 47 &&
		    copy_up_to_page(g->bytes[i], k->args[i]))
			g->there |= (uint8_t)(1u << i);
}

static void name_it(const struct call *k)
{
	TEXT(t, 160);

	text_str(&t, "found by comparing, perhaps not all: what was written by ");
	text_str(&t, k->nr >= 0 && k->nr < CALL_MAX && call_table[k->nr].kind != CALL_UNKNOWN ?
			     call_table[k->nr].name : "system call number ");
	if (k->nr < 0 || k->nr >= CALL_MAX || call_table[k->nr].kind == CALL_UNKNOWN)
		text_num(&t, k->nr);
	if (k->nr == SYS_ioctl) {
		text_str(&t, " ");
		text_hex(&t, (uint32_t)k->args[1]);
	}
	shim_note(false, t.s);
}

void call_guess_after(struct call *k, const struct guess *g)
{
	uint8_t now[GUESS_BYTES];
	bool any = false;

	for (unsigned i = 0; i < 6; i++) {
		unsigned from = 0, to = GUESS_BYTES;

		if (!(g->there >> i & 1) || !copy_up_to_page(now, k->args[i]))
			continue;
		while (from < to && now[from] == g->bytes[i][from])
			from++;
		while (to > from && now[to - 1] == g->bytes[i][to - 1])
			to--;
		call_effect_add(k, k->args[i] + from, to - from, TRC_EFFECT_WRITE);
		any |= to > from;
	}
	if (any)
		name_it(k);
}
