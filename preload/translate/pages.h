// SPDX-License-Identifier: GPL-2.0-or-later
/* Which pages a checkpoint has to hold: those that are not as an earlier one left them. See pages.c. */
#ifndef CSCHED_TRANSLATE_PAGES_H
#define CSCHED_TRANSLATE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

void tr_pages_forget(void); /* a new trace, also in a forked child */

/* Of the last checkpoint that is whole, in bytes; false: there is none with a list, the next one has to hold all. */
struct tr_pages_known {
	uint64_t all;     /* pages that differ from what their mapping begins with */
	uint64_t recent;  /* of these, what is not as it was at the last complete checkpoint */
	uint64_t changed; /* ... and not as it was at the checkpoint before */
};
bool tr_pages_known(struct tr_pages_known *k);
/* The same of the one that was tried last and could not be written whole; false: it did not come to the end of memory. */
bool tr_pages_tried(struct tr_pages_known *k);

/*
 * The checkpoint of an epoch: with what has changed since that of epoch `since` (0: all), where the last complete one was of
 * epoch `base`. Who writes it calls tr_page() for each page that would be in a complete one, addresses going up;
 * `left` is called for pages that are not any more. tr_pages_room() before the process is copied: room for so many bytes of pages.
 */
struct tr_pages_what {
	uint32_t now, since, base;
};
void tr_pages_room(uint64_t bytes);
void tr_pages_begin(const struct tr_pages_what *what, void (*left)(uint64_t page));
bool tr_page(uint64_t page, uint64_t sum); /* true: it is to be written */
void tr_pages_elsewhere(uint64_t start, uint64_t end); /* written already, whatever is known of it */
void tr_pages_end(void);
void tr_pages_keep(void); /* the checkpoint is whole: the next one is compared with it */

/* Of a page; 0: it holds zeros only. */
uint64_t tr_page_sum(const void *page);

#endif
