/* What a hunt tries: learning first, racy sites before others, the same again for the same seed. */
#include "analyzer/hunt/plan.h"
#include "tests/lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/csched-test.XXXXXX";

static void add_site(struct ctl_sites *s, uint32_t at, uint32_t offset, uint32_t flags)
{
	s->site[at] = (struct ctl_site){ 1, offset, flags | CTL_SITE_USED | CTL_SITE_MULTI, 1 };
	s->nsites++;
}

static struct plan new_plan(const char *strategy, uint64_t seed)
{
	struct plan p = { .strategy = strategy, .seed = seed, .run_seconds = 0.02 };
	err_t e = plan_sites_open(path, 1, &p.sites);

	if (e) {
		printf("not ok sites: %s\n", e->msg);
		exit(1);
	}
	return p;
}

static void learns_first(void)
{
	struct plan p = new_plan("auto", 1);
	char text[128];
	uint64_t seed;

	for (uint64_t run = 0; run < 3; run++) {
		plan_next(&p, run, &seed, text, sizeof text);
		CHECK(!strncmp(text, "learn/", 6), "run %d learns: %s", (int)run, text);
	}
	plan_next(&p, 3, &seed, text, sizeof text);
	CHECK(strncmp(text, "learn/", 6) && (seed & ~CTL_SEED_NO_TICKETS) == 4, "then it does not: %s", text);
	plan_free(&p);
}

/* The second of two steps first, seldom ones before those that come again and again; what is learned later has its turn at once. */
static void pairs_first(void)
{
	static const uint32_t wanted[] = { 50, 40, 30, 60 };
	struct plan p = new_plan("site", 1);
	char text[128];
	uint64_t seed;

	memset(p.sites->site, 0, sizeof p.sites->site);
	add_site(p.sites, 7, 30, CTL_SITE_SHARED | CTL_SITE_RACY | CTL_SITE_READ);
	add_site(p.sites, 8, 40, CTL_SITE_SHARED | CTL_SITE_RACY | CTL_SITE_PAIR | CTL_SITE_READ);
	p.sites->site[8].hits = 100;
	add_site(p.sites, 9, 50, CTL_SITE_SHARED | CTL_SITE_RACY | CTL_SITE_PAIR | CTL_SITE_WRITE);
	for (unsigned i = 0; i < 4; i++) {
		unsigned module, offset = 0, us, how;

		if (i == 3) {
			add_site(p.sites, 10, 60, CTL_SITE_SHARED | CTL_SITE_RACY | CTL_SITE_PAIR | CTL_SITE_READ);
			p.sites->site[10].hits = 0;
			p.sites->site[9].flags &= ~(uint32_t)CTL_SITE_SHARED & ~(uint32_t)CTL_SITE_RACY;
			p.sites->nshared = 4;
		}
		plan_next(&p, 3 + i, &seed, text, sizeof text);
		CHECK(sscanf(text, "site/%u/%u/%u/%u", &module, &offset, &us, &how) == 4 && offset == wanted[i],
		      "run %u: site %u (%s)", 3 + i, wanted[i], text);
	}
	plan_free(&p);
}

/* Also behind the first runs: who shares what may depend on who gets which task. */
static void learns_on(void)
{
	struct plan p = new_plan("auto", 1);
	unsigned learned = 0;
	char text[128];
	uint64_t seed;

	for (uint64_t run = 3; run < 87; run++) {
		plan_next(&p, run, &seed, text, sizeof text);
		learned += !strncmp(text, "learn/", 6);
	}
	CHECK(learned == 4, "one run of 21 learns (%u of 84)", learned);
	plan_free(&p);
}

static void racy_first(void)
{
	static const uint32_t wanted[] = { 30, 20, 10 };
	struct plan p = new_plan("site", 1);
	char text[128];
	uint64_t seed;

	add_site(p.sites, 5, 10, CTL_SITE_CALL);
	add_site(p.sites, 6, 20, CTL_SITE_SHARED | CTL_SITE_READ);
	add_site(p.sites, 7, 30, CTL_SITE_SHARED | CTL_SITE_RACY | CTL_SITE_WRITE);
	add_site(p.sites, 8, 40, CTL_SITE_READ); /* shared with nobody */
	for (unsigned i = 0; i < 3; i++) {
		unsigned module, offset, us, how;

		plan_next(&p, 3 + i, &seed, text, sizeof text);
		CHECK(sscanf(text, "site/%u/%u/%u/%u", &module, &offset, &us, &how) == 4 &&
		      offset == wanted[i] && us >= 1000 && us <= 100000 && how == 0,
		      "site %u comes as number %u: %s", wanted[i], i, text);
	}
	plan_next(&p, 6, &seed, text, sizeof text);
	unsigned offset = 0, how = 0;
	CHECK(sscanf(text, "site/%*u/%u/%*u/%u", &offset, &how) == 2 && offset == 30 && how == CTL_HOW_AFTER,
	      "the second time round it is delayed behind them: %s", text);
	plan_free(&p);
}

static void repeats(void)
{
	struct plan p = new_plan("auto", 77), q = new_plan("auto", 77);
	char a[128], b[128];
	uint64_t seed;
	bool same = true;

	for (uint64_t run = 0; run < 100; run++) {
		plan_next(&p, run, &seed, a, sizeof a);
		plan_next(&q, run, &seed, b, sizeof b);
		same = same && !strcmp(a, b);
	}
	CHECK(same, "the same seed and sites give the same hundred runs");
	plan_free(&p);
	plan_free(&q);
	p = new_plan("site/1/2/3/0", 5);
	plan_next(&p, 9, &seed, a, sizeof a);
	CHECK(!strcmp(a, "site/1/2/3/0") && seed == 5, "a strategy given in full is used as it is");
	plan_free(&p);
}

/* One thread at a time loses nothing by tickets; store buffers need runs without, more of them later. */
static void some_go_without_tickets(void)
{
	struct plan p = new_plan("auto", 1);
	unsigned first = 0, later = 0, serial = 0;
	char text[128];
	uint64_t seed;

	for (uint64_t run = 0; run < 64; run++) {
		plan_next(&p, run, &seed, text, sizeof text);
		bool without = seed & CTL_SEED_NO_TICKETS;

		*(run < 32 ? &first : &later) += without;
		serial += without && (!strncmp(text, "pct/", 4) || !strncmp(text, "demote/", 7));
		if ((seed & ~CTL_SEED_NO_TICKETS) != 1 + run)
			serial = 99;
	}
	CHECK(first > 0 && first < 16 && later > first && !serial,
	      "%u of 32 runs take no tickets, then %u of 32", first, later);
	plan_free(&p);
}

/* A site that is executed often is also delayed late; an update in one instruction always with tickets. */
static void racy_often_and_late(void)
{
	struct plan p = new_plan("auto", 3);
	unsigned runs = 0, racy = 0, late = 0, unordered = 0;
	char text[128];
	uint64_t seed;

	add_site(p.sites, 20, 50, CTL_SITE_SHARED | CTL_SITE_RACY | CTL_SITE_READ | CTL_SITE_WRITE);
	p.sites->site[20].hits = 1000;
	for (uint32_t i = 0; i < 40; i++)
		add_site(p.sites, 100 + i, 1000 + i, CTL_SITE_CALL);
	for (; runs < 400; runs++) {
		unsigned offset, how = 0;

		plan_next(&p, runs, &seed, text, sizeof text);
		if (sscanf(text, "site/%*u/%u/%*u/%u", &offset, &how) != 2)
			continue;
		racy += offset == 50 || offset == 30;
		unordered += offset == 50 && seed & CTL_SEED_NO_TICKETS;
		late += offset == 50 && how >> CTL_HOW_SHIFT > 4;
	}
	CHECK(racy > runs / 8 && late > 2 && !unordered,
	      "%u of %u runs delay at one of two racy sites among 44, %u of them at a late execution", racy, runs, late);
	plan_free(&p);
}

int main(void)
{
	close(mkstemp(path));
	learns_first();
	racy_first();
	repeats();
	some_go_without_tickets();
	racy_often_and_late();
	struct ctl_sites *other = NULL;
	err_t e = plan_sites_open(path, 2, &other);
	CHECK(!e && other->nsites == 0, "what was learned of another build is forgotten");
	plan_sites_close(other);
	CHECK(plan_strategy_known("demote") && plan_strategy_known("meet/1/2/3") &&
	      !plan_strategy_known("learn") && !plan_strategy_known("sit") && !plan_strategy_known("x/1"),
	      "strategies are known by name");
	pairs_first();
	learns_on();
	unlink(path);
	CHECK_END();
}
