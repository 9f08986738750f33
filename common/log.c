/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The log: domains and levels from CSCHED_LOG, lines to standard error. */
#include "common/log.h"

#include "common/strbuf.h"
#include "common/vec.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MOST_LEVEL 9

static const char *const names[LOG_DOMAINS] = {
	[LOG_EXPLAIN] = "explain", [LOG_SOLVE] = "solve", [LOG_FOLLOW] = "follow",
	[LOG_EXPLORE] = "explore",
};

static unsigned char wanted[LOG_DOMAINS];
static bool configured;

static bool set_one(const char *item, size_t n)
{
	const char *colon = memchr(item, ':', n);
	size_t name = colon ? (size_t)(colon - item) : n;
	unsigned level = 1;

	if (colon) {
		if (item + n - colon != 2 || colon[1] < '0' || colon[1] > '0' + MOST_LEVEL)
			return false;
		level = (unsigned)(colon[1] - '0');
	}
	for (int d = 0; d < LOG_DOMAINS; d++)
		if (strlen(names[d]) == name && !memcmp(names[d], item, name)) {
			wanted[d] = (unsigned char)level;
			return true;
		}
	return false;
}

static char *complaint(const char *item, size_t n)
{
	struct strbuf b = { 0 };

	strbuf_str(&b, "CSCHED_LOG: ");
	strbuf_word(&b, item, n);
	strbuf_str(&b, " is not DOMAIN or DOMAIN:0 to DOMAIN:9, of");
	for (int d = 0; d < LOG_DOMAINS; d++)
		strbuf_fmt(&b, "%s %s", d ? "," : "", names[d]);
	return strbuf_take(&b);
}

char *log_configure(const char *spec)
{
	char *bad = NULL;

	configured = true;
	memset(wanted, 0, sizeof wanted);
	while (spec && *spec) {
		size_t n = strcspn(spec, ",");

		if (n && !set_one(spec, n) && !bad)
			bad = complaint(spec, n);
		spec += n + (spec[n] == ',');
	}
	return bad;
}

bool log_wants(enum log_domain d, unsigned level)
{
	if (!configured) {
		char *bad = log_configure(getenv("CSCHED_LOG"));

		if (bad)
			fprintf(stderr, "csched: %s\n", bad);
		free(bad);
	}
	return wanted[d] >= level;
}

void log_line(enum log_domain d, unsigned level, const char *fmt, ...)
{
	char line[2000];
	va_list ap;

	if (!log_wants(d, level))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	fprintf(stderr, "%s: %s\n", names[d], line);
}
