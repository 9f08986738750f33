/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Strings in files of one line per item (schedules): what would end a word or a line, '%' itself and every byte that is not
 * printable ASCII is written as %XX, and read back.
 */
#ifndef CSCHED_COMMON_ESCAPE_H
#define CSCHED_COMMON_ESCAPE_H

#include "common/strbuf.h"

#include <stdio.h>

/* One word: blanks are escaped, too, and an empty word is %00. */
void escape_word(FILE *f, const char *s);
/* The rest of a line: blanks stay. */
void escape_line(FILE *f, const char *s);
/* Back, in place; what is no escape stays as it is. Returns s. */
char *escape_undo(char *s);

#endif
