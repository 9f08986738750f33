/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process confines itself, for good. */
#include "analyzer/sandbox/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>

uint64_t sandbox_memory_default(void)
{
	struct sysinfo i;
	uint64_t most = SANDBOX_MEMORY;

	if (!sysinfo(&i) && (uint64_t)i.totalram * i.mem_unit / 4 * 3 < most)
		most = (uint64_t)i.totalram * i.mem_unit / 4 * 3;
	return most > SANDBOX_MEMORY_LEAST ? most : SANDBOX_MEMORY_LEAST;
}

/* A limit that is lower already stays. */
static void limit(int what, uint64_t most)
{
	struct rlimit r;

	if (getrlimit(what, &r))
		return;
	if (r.rlim_max > most)
		r.rlim_max = most;
	if (r.rlim_cur > r.rlim_max)
		r.rlim_cur = r.rlim_max;
	setrlimit(what, &r);
}

static void set_limits(const struct sandbox_limits *l)
{
	limit(RLIMIT_CORE, 0); /* it would hold the program's memory */
	limit(RLIMIT_FSIZE, l->file_size ? l->file_size : SANDBOX_FILE_SIZE);
	limit(RLIMIT_CPU, l->cpu ? l->cpu : SANDBOX_CPU);
	/* Sanitizers reserve more than anybody has. */
#ifndef __SANITIZE_ADDRESS__
	limit(RLIMIT_DATA, l->memory ? l->memory : sandbox_memory_default());
	limit(RLIMIT_AS, SANDBOX_ADDRESS_SPACE);
#endif
}

err_t sandbox_confine(const struct sandbox_limits *l, int sock)
{
	tzset(); /* reads its file now */
	set_limits(l);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return err_new(ERR_INTERNAL, "no_new_privs: %s", strerror(errno));
	sandbox_landlock(); /* where the kernel has it; the filter stands without it */
	sandbox_ask_through(sock);
	return sandbox_filter(sock);
}
