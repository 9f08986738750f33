/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Landlock: of the file system, of TCP and of other processes nothing is left, where the kernel knows of them. */
#include "analyzer/sandbox/internal.h"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

/* <linux/landlock.h> may be older than the kernel. */
struct ruleset {
	uint64_t fs, net, scoped;
};

/* What a version of Landlock can handle: all of it is handled, and nothing is allowed. */
static const struct {
	int version;
	struct ruleset handles;
	size_t size;
} versions[] = {
	{ 1, { (1ull << 13) - 1, 0, 0 }, 8 },  { 2, { (1ull << 14) - 1, 0, 0 }, 8 },
	{ 3, { (1ull << 15) - 1, 0, 0 }, 8 },  { 4, { (1ull << 15) - 1, 3, 0 }, 16 },
	{ 5, { (1ull << 16) - 1, 3, 0 }, 16 }, { 6, { (1ull << 16) - 1, 3, 3 }, 24 },
};

int sandbox_landlock(void)
{
	int version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */);
	size_t i = sizeof versions / sizeof *versions;

	if (version < 1)
		return 0;
	while (--i && versions[i].version > version)
		;
	int rules = (int)syscall(SYS_landlock_create_ruleset, &versions[i].handles, versions[i].size, 0);
	if (rules < 0)
		return 0;
	bool good = !syscall(SYS_landlock_restrict_self, rules, 0);
	close(rules);
	return good ? version : 0;
}
