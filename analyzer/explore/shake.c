/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs of the real program with delays, in slices between the orders. */
#include "analyzer/explore/shake.h"

#include "analyzer/explore/drive.h"
#include "analyzer/hunt/hunt.h"

#include <string.h>

#define FIRST_SECONDS 1.0 /* of exploring before the first runs; each time twice as long */
#define SHAKE_PART 0.5    /* of the time explored since; ... */
#define SHAKE_MORE 2.0    /* ... when no pattern is open */

void xpl_shake_begin(struct xpl_shake *k)
{
	*k = (struct xpl_shake){ .since = xpl_now(), .explore = FIRST_SECONDS };
}

bool xpl_shake_is_due(const struct xpl_shake *k)
{
	return k->since > 0 && !k->busy && xpl_now() - k->since >= k->explore;
}

/* Is it a failure by itself, whatever the time that it took and how other runs ended? */
static bool is_plain(const struct xpl_native *n, uint32_t kind)
{
	return kind && kind != TRC_FAIL_HANG && (kind != TRC_FAIL_EXIT || n->fail_exit);
}

err_t xpl_shake(struct xpl_shake *k, const struct xpl_native *n, double until, bool open, uint64_t seed,
		char **trace, uint32_t *kind)
{
	char *out = xasprintf("%s/shaken", n->work), *sites = xasprintf("%s/sites", n->work);
	double now = xpl_now(), most = (now - k->since) * (open ? SHAKE_PART : SHAKE_MORE);
	struct hunt_options o = { .argv = n->argv, .shim = n->shim, .out = out, .strategy = "auto", .sites = sites,
				  .fail_exit = n->fail_exit, .seed = seed + k->turns++, .input = n->input, .jobs = 1, .quiet = true,
				  .max_seconds = most < until - now ? most : until - now };
	struct hunt_result res;

	*trace = NULL;
	k->busy = true;
	err_t e = hunt_run(&o, &res);
	k->busy = false;
	k->runs += res.runs;
	for (uint32_t i = 0; i < res.nkinds && !*trace && !e; i++)
		if (res.kinds[i].trace && is_plain(n, res.kinds[i].kind)) {
			*trace = xstrdup(res.kinds[i].trace);
			*kind = res.kinds[i].kind;
		}
	hunt_result_free(&res);
	k->since = xpl_now();
	k->explore *= 2;
	free(out);
	free(sites);
	return e;
}
