/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of a string may be shown: common/utf8.h, for strings that end with a NUL. */
#include "analyzer/report/internal.h"
#include "common/utf8.h"

#include <string.h>

size_t rep_utf8(const char *text, uint32_t *c)
{
	return utf8_shown(text, strnlen(text, 4), c);
}
