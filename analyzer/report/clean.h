/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reports that somebody else wrote (in redacted packs), made harmless before they are shown or stored: read as what csched
 * writes, and rewritten. What csched does not write is left out, escaped, or refused.
 */
#ifndef CSCHED_REPORT_CLEAN_H
#define CSCHED_REPORT_CLEAN_H

#include "common/err.h"

#include <stddef.h>
#include <stdio.h>

/* Each reads n bytes and writes to f; ERR_INPUT: it is no such report. */
typedef err_t clean_function(FILE *f, const char *s, size_t n);

clean_function clean_text, clean_markdown, clean_dot, clean_json, clean_sarif, clean_html;

#endif
