/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that read a trace, confined. */
#include "analyzer/cmd/confined.h"

#include "common/door.h"
#include "common/pack.h"
#include "common/trace_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who keeps a timeout by himself has this much more before he is ended. */
#define GRACE_SECONDS 1.7
#define GRACE_PART 0.05

bool confined_off;

static uint64_t memory;

static err_t parse_size(const char *option, const char *text, uint64_t *out)
{
	static const char units[] = "kmgt";
	char *end;

	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end | 0x20) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;

	if (errno || end == text || *text == '-' || (*end && (!unit || end[1])) || !n || n > UINT64_MAX >> shift)
		return err_new(ERR_USAGE, "--%s: '%s' is no size (500m, 16g)", option, text);
	*out = n << shift;
	return NULL;
}

static err_t set_memory(void *arg, const char *option, const char *value)
{
	(void)arg;
	return parse_size(option, value, &memory);
}

static err_t set_unpacked(void *arg, const char *option, const char *value)
{
	uint64_t most = 0;

	(void)arg;
	TRY(parse_size(option, value, &most));
	pack_set_most_unpacked(most);
	return NULL;
}

static err_t set_epoch(void *arg, const char *option, const char *value)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	(void)arg;
	if (*value < '1' || *value > '9' || *end || n > UINT32_MAX / 2)
		return err_new(ERR_USAGE, "--%s: '%s' is no number of an epoch", option, value);
	trc_epoch_wanted = (uint32_t)n;
	return NULL;
}

struct cmd_call confined_epoch = { set_epoch, NULL };
struct cmd_call confined_memory = { set_memory, NULL }, confined_unpacked = { set_unpacked, NULL };

int confined_run(const struct confined *c, int (*work)(void *), void *arg)
{
	struct sandbox_options o = { .command = c->command, .needs_input = c->needs_input, .limits.memory = memory };

	for (int i = 0; i < SANDBOX_KEEP; i++)
		o.keep[i] = c->keep[i];
	if (c->timeout > 0)
		o.limits.seconds = c->timeout * (1 + GRACE_PART) + GRACE_SECONDS;
	door_grant_alone(c->input);
	if (c->also)
		door_grant(c->also);
	door_sources_from_environment();
#ifdef __SANITIZE_ADDRESS__
	confined_off = true; /* its leak checker traces us */
#else
	if (confined_off)
		fprintf(stderr, "csched %s: --no-sandbox: a trace made to attack its reader can do what you can\n", c->command);
#endif
	return confined_off ? work(arg) : sandbox_run(&o, work, arg);
}
