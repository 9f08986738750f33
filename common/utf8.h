/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which characters of a hostile string may be shown: one answer for terminals, pages and files. */
#ifndef CSCHED_COMMON_UTF8_H
#define CSCHED_COMMON_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of the character at s, of at most n bytes, and its code point. 0: it is not to be shown as it is: no valid UTF-8, a
 * control character (C0, DEL, C1), what turns the writing direction round, ends a line unseen or is invisible.
 */
size_t utf8_shown(const char *s, size_t n, uint32_t *c);
/* The same, whatever the character does: 0 only for what is no valid UTF-8. */
size_t utf8_valid(const char *s, size_t n, uint32_t *c);

#endif
