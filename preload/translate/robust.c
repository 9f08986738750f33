/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Robust mutexes of a thread that ends. The kernel marks them when the thread is really gone, which is after we have
 * told joiners that it is: they would find locks whose owner is dead and nobody says so, and its list on a stack that
 * is in use again. So we do here, in the kernel's order, what it would do, and it finds an empty list.
 */
#include "preload/translate/syscall.h"

#include <linux/futex.h>

struct head {
	uint64_t next, offset, pending;
};

struct walk {
	struct tr_ctx *c;
	uint64_t head, offset;
	struct trc_exit_word *words; /* NULL: they are counted */
	uint32_t n, most;
};

static bool head_of(uint64_t *at, struct head *h)
{
	uint64_t len = 0;

	return !raw(SYS_get_robust_list, 0, at, &len) && *at && tr_copy(h, (void *)*at, sizeof *h);
}

/* As handle_futex_death(). */
static void owner_died(struct walk *w, uint64_t address, bool pi, bool pending)
{
	uint32_t tid = w->c->thread->tid, old, new;

	if (address % 4 || !tr_copy(&old, (void *)address, 4))
		return;
	if ((old & FUTEX_TID_MASK) != tid) {
		/* It had unlocked, and died before it woke the next. */
		if (pending && !pi && !old && w->words)
			raw(SYS_futex, address, FUTEX_WAKE, 1);
		return;
	}
	if (!w->words) {
		w->n++;
		return;
	}
	if (w->n == w->most)
		return;
	struct trc_exit_word *r = &w->words[w->n++];

	r->ticket = tr_order_begin(address);
	do
		new = (old & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
	while (!__atomic_compare_exchange_n((uint32_t *)address, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	r->address = address;
	r->value = new;
	r->pad = 0;
	tr_order_end(address);
	/* Waiters with priorities are the kernel's to wake: it knows the owner. */
	if (!pi && (old & FUTEX_WAITERS))
		raw(SYS_futex, address, FUTEX_WAKE, 1);
}

static void walk(struct walk *w, const struct head *h)
{
	uint64_t entry = h->next, next;

	for (unsigned i = 0; i < ROBUST_LIST_LIMIT && (entry & ~1ull) != w->head; i++, entry = next) {
		bool there = tr_copy(&next, (void *)(entry & ~1ull), 8);

		if ((entry & ~1ull) != (h->pending & ~1ull))
			owner_died(w, (entry & ~1ull) + w->offset, entry & 1, false);
		if (!there)
			break;
	}
	if (h->pending)
		owner_died(w, (h->pending & ~1ull) + w->offset, h->pending & 1, true);
}

uint32_t tr_robust_count(struct tr_ctx *c)
{
	struct walk w = { .c = c };
	struct head h;

	if (!head_of(&w.head, &h) || ((h.next & ~1ull) == w.head && !h.pending))
		return 0;
	w.offset = h.offset;
	walk(&w, &h);
	return w.n;
}

void tr_robust_died(struct tr_ctx *c, struct trc_exit_word *words, uint32_t n)
{
	struct walk w = { .c = c, .words = words, .most = n };
	struct head h;

	if (!head_of(&w.head, &h))
		return;
	w.offset = h.offset;
	walk(&w, &h);
	raw(SYS_set_robust_list, NULL, sizeof h);
}
