/*
 * What to try next. The measured default (control.md): learn which sites are
 * shared, then take them one by one, those first that no lock protects: delayed
 * there, or falling below all other threads there; mixed with random delays,
 * late thread starts, random priorities and undisturbed runs.
 */
#ifndef CSCHED_HUNT_PLAN_H
#define CSCHED_HUNT_PLAN_H

#include "common/control_format.h"
#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>

struct plan {
	const char *strategy;     /* a name of plan_names(), or a literal "site/..." */
	uint64_t seed;
	double run_seconds;       /* how long an undisturbed run takes */
	struct ctl_sites *sites;  /* shared with the shim; NULL: nothing can be learned */
	uint32_t shard, shards;   /* of so many (0: one) that hunt together, from 0: seeds and sites of its own */
	/* private */
	uint32_t *list;           /* indices of sites to go through; what is tried first comes first */
	uint32_t nlist, at, racy_at, pair_at;
	uint32_t pass;            /* times the list was gone through */
	uint32_t listed; /* shared sites when the list was made */
	uint32_t turns;
	bool ordered;             /* the run just planned needs tickets */
};

/* Maps (creating if needed) the file of learned sites; starts again for another build. */
err_t plan_sites_open(const char *path, uint64_t build, struct ctl_sites **out);
void plan_sites_close(struct ctl_sites *s);
void plan_free(struct plan *p);

/* False: no such strategy. */
bool plan_strategy_known(const char *name);
const char *plan_strategy_names(void);

/*
 * The value of the shim's hunt= for this run ("" for an undisturbed one). The
 * seed it is to be run with: *seed, which also says whether it takes tickets
 * (CTL_SEED_NO_TICKETS).
 */
void plan_next(struct plan *p, uint64_t run, uint64_t *seed, char *out, size_t size);

#endif
