/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CSCHED_LOG: what it may say, and what is said about the rest. */
#include "common/log.h"
#include "tests/lib/check.h"

#include <stdlib.h>
#include <string.h>

static bool accepts(const char *spec)
{
	char *bad = log_configure(spec);
	bool good = !bad;

	free(bad);
	return good;
}

int main(void)
{
	char hostile[5000];

	CHECK(accepts("") && accepts(NULL) && !log_wants(LOG_EXPLAIN, 1), "silent by default");
	CHECK(accepts("explain:2,follow") && log_wants(LOG_EXPLAIN, 2) && !log_wants(LOG_EXPLAIN, 3),
	      "a level of its own");
	CHECK(log_wants(LOG_FOLLOW, 1) && !log_wants(LOG_FOLLOW, 2), "1 without a number");
	CHECK(!log_wants(LOG_SOLVE, 1), "others stay silent");
	CHECK(accepts("solve:9,") && log_wants(LOG_SOLVE, 9) && !log_wants(LOG_EXPLAIN, 1), "the last one counts");
	CHECK(!accepts("solve:10") && !accepts("solve:") && !accepts("solve:-") && !accepts("solv:1") &&
	      !accepts("solve:1:1") && !accepts(":1"), "what is no domain or level is said");
	CHECK(!accepts("nothing,explain:1") && log_wants(LOG_EXPLAIN, 1), "and does not spoil the rest");
	memset(hostile, 'x', sizeof hostile - 1);
	hostile[sizeof hostile - 1] = 0;
	CHECK(!accepts(hostile), "a long one");
	CHECK_END();
}
