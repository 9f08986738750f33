/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A log for whoever wonders what the analyzer does: CSCHED_LOG=explain:2,follow:1.
 *
 * A domain is silent unless it is named there; the number (1 when left out) says how much is
 * wanted. Lines go to standard error, which no report uses; what a trace says is made harmless.
 */
#ifndef CSCHED_COMMON_LOG_H
#define CSCHED_COMMON_LOG_H

#include <stdbool.h>

enum log_domain {
	LOG_EXPLAIN, /* attempts at an answer: 1 what came of each, 2 each execution, too */
	LOG_SOLVE,   /* questions to the solver: 1 each phase, 2 each question */
	LOG_FOLLOW,  /* following the recorded run: 1 how it ended */
	LOG_EXPLORE, /* orders: 1 how each ended, and what it did not show; 2 what happened in it, too */
	LOG_DOMAINS
};

bool log_wants(enum log_domain d, unsigned level);
/* One line, without its newline. */
void log_line(enum log_domain d, unsigned level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Reads a specification in place of CSCHED_LOG's; what is wrong with it, malloc'd, or NULL. */
char *log_configure(const char *spec);

#endif
