#include "analyzer/hunt/plan.h"

#include "common/vec.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEARNING_RUNS 3
#define FIRST_RUNS 32

err_t plan_sites_open(const char *path, uint64_t build, struct ctl_sites **out)
{
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_errno("%s", path);
	if (ftruncate(fd, sizeof(struct ctl_sites))) {
		close(fd);
		return err_errno("%s", path);
	}
	struct ctl_sites *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (s == MAP_FAILED)
		return err_errno("%s", path);
	if (s->magic != CTL_SITES_MAGIC || s->version != CTL_SITES_VERSION || s->build != build) {
		memset(s, 0, sizeof *s);
		s->build = build;
		s->version = CTL_SITES_VERSION;
		s->size = CTL_MAX_SITES;
		s->magic = CTL_SITES_MAGIC;
	}
	*out = s;
	return NULL;
}

void plan_sites_close(struct ctl_sites *s)
{
	if (s)
		munmap(s, sizeof *s);
}

/* splitmix64: a seed and a run number give the same choice everywhere. */
static uint64_t mix(uint64_t seed, uint64_t n)
{
	uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/*
 * Delays scale with the run: a fixed 5 ms found nothing in a 100-thread program. In a long run what matters may be over in a
 * moment (requests to a server that is then told to end): there they are of all magnitudes.
 */
#define LONGEST_US 100000
static unsigned delay_us(const struct plan *p, uint64_t random)
{
	static const double part[] = { 0.1, 0.25, 0.5, 1.0 }, of_longest[] = { 1.0, 0.3, 0.1, 0.03 };
	double us = p->run_seconds * 1e6 * part[random % 4];

	if (us > LONGEST_US)
		us = LONGEST_US * of_longest[random / 4 % 4];
	return us < 1000 ? 1000 : (unsigned)us;
}

static void learn(struct plan *p, uint64_t run, uint64_t random, char *out, size_t size)
{
	if (run % LEARNING_RUNS == 0)
		snprintf(out, size, "learn/0/0");
	else
		snprintf(out, size, "learn/%u/%u", run % LEARNING_RUNS == 1 ? 5 : 50,
			 delay_us(p, random) / 4);
}

/* ---- going through the sites ---- */

/* Lower is earlier; -1: nothing can be won there. */
static int rank(const struct ctl_site *s)
{
	if (!(s->flags & CTL_SITE_USED) || !(s->flags & CTL_SITE_MULTI))
		return -1;
	/* What was checked just before, and is used now. */
	if (s->flags & CTL_SITE_RACY)
		return s->flags & CTL_SITE_PAIR ? 0 : 1;
	return s->flags & CTL_SITE_SHARED ? 2 : s->flags & CTL_SITE_CALL ? 3 : -1;
}
#define RANKS 4

/*
 * Shards share the sites out anew in each pass, which delays in another way: together they go through all of them in all
 * ways, and none does what another does. By the site's place, not by its number: what each has learned may differ.
 */
static bool is_mine(const struct plan *p, const struct ctl_site *s)
{
	uint64_t place = (uint64_t)s->module << 32 | s->offset;

	return p->shards < 2 || (mix(0, place) + p->pass) % p->shards == p->shard;
}

/* What is executed again and again has had its chances without us: what is seldom comes first. */
static unsigned bucket(const struct ctl_site *s)
{
	return s->hits < 32 ? 0 : s->hits < 1024 ? 1 : 2;
}
#define BUCKETS 3

/* Inside a rank and a bucket the order is the hash table's: as good as random, and the same each time. */
static void make_list(struct plan *p)
{
	if (!p->list)
		p->list = xcalloc(CTL_MAX_SITES, sizeof *p->list);
	p->nlist = p->at = 0;
	for (unsigned turn = 0; p->sites && turn < RANKS * BUCKETS; turn++)
		for (uint32_t i = 0; i < CTL_MAX_SITES; i++) {
			const struct ctl_site *s = &p->sites->site[i];

			if (s->flags && rank(s) == (int)(turn / BUCKETS) && bucket(s) == turn % BUCKETS && is_mine(p, s))
				p->list[p->nlist++] = i;
		}
}

static const struct ctl_site *next_site(struct plan *p)
{
	/* What was learned since comes to its turn with the others, not behind them. */
	if (p->sites && p->sites->nshared != p->listed) {
		p->listed = p->sites->nshared;
		make_list(p);
	}
	if (p->at >= p->nlist) {
		p->pass += p->nlist != 0;
		make_list(p);
	}
	/* Fewer sites than shards: in some passes there is none for this one. */
	for (uint32_t i = 1; !p->nlist && i < p->shards && p->sites && p->sites->nshared; i++) {
		p->pass++;
		make_list(p);
	}
	return p->nlist ? &p->sites->site[p->list[p->at++]] : NULL;
}

static void sample(struct plan *p, uint64_t random, char *out, size_t size)
{
	static const unsigned permille[] = { 1000, 300, 50 };
	uint32_t of = p->sites && p->sites->nsites > 40 ? p->sites->nsites : 40;

	snprintf(out, size, "sample/%u/%u/%u/%u", (unsigned)(1 + random % 4), of,
		 permille[random / 7 % 3], delay_us(p, random >> 8));
}

/*
 * Which execution of a site: mostly one of the first. What goes wrong late in a run needs a late one; how many there are
 * was learned, up to LEARNED of them, and each order of magnitude gets its share.
 */
#define LEARNED 1000
static unsigned execution(const struct ctl_site *s, uint64_t random)
{
	unsigned bits = 0;

	if (s->hits < 16 || random & 3)
		return (unsigned)(random >> 2) % 4;
	while (bits < 17 && (s->hits >> bits > 1 || s->hits >= LEARNED))
		bits++;
	bits = (unsigned)(random >> 8) % (bits + 1);
	return (1u << bits) + (unsigned)((random >> 16) & ((1u << bits) - 1));
}

/* Each pass through the sites delays in another way; later ones at random. */
static unsigned how_now(const struct plan *p, const struct ctl_site *s, uint64_t random)
{
	static const unsigned hows[] = { 0, CTL_HOW_AFTER, CTL_HOW_SOME, CTL_HOW_AFTER | CTL_HOW_SOME };

	if (p->pass < 4)
		return hows[p->pass];
	return hows[random % 4] | execution(s, random >> 8) << CTL_HOW_SHIFT;
}

/* An update in one instruction is delayed between its halves only when they are ordered. */
static bool is_update(const struct ctl_site *s)
{
	return (s->flags & (CTL_SITE_READ | CTL_SITE_WRITE)) == (CTL_SITE_READ | CTL_SITE_WRITE);
}

static void delay_at(struct plan *p, const struct ctl_site *s, uint64_t random, char *out, size_t size)
{
	p->ordered = is_update(s);
	snprintf(out, size, "site/%u/%u/%u/%u", s->module, s->offset, delay_us(p, random),
		 how_now(p, s, random >> 16));
}

static void demote_at(const struct ctl_site *s, uint64_t random, char *out, size_t size)
{
	static const unsigned nth[] = { 1, 1, 2, 0, 1, 3, 2, 4 };
	unsigned n = s->hits < 16 || random >> 24 & 3 ? nth[random >> 16 & 7] : execution(s, random >> 26 << 2);

	snprintf(out, size, "demote/%u/%u/%u", s->module, s->offset, n);
}

static void site(struct plan *p, uint64_t random, char *out, size_t size)
{
	const struct ctl_site *s = next_site(p);

	if (s)
		delay_at(p, s, random, out, size);
	else
		sample(p, random, out, size);
}

static void demote(struct plan *p, uint64_t random, char *out, size_t size)
{
	const struct ctl_site *s = next_site(p);

	if (s)
		demote_at(s, random, out, size);
	else
		sample(p, random, out, size);
}

/* The racy sites come first in the list; here they have a turn of their own. */
static const struct ctl_site *next_with(struct plan *p, uint32_t flags, uint32_t *at)
{
	if (!p->nlist)
		make_list(p);
	for (uint32_t tried = 0; tried < p->nlist; tried++) {
		const struct ctl_site *s = &p->sites->site[p->list[(*at)++ % p->nlist]];

		if ((s->flags & flags) == flags)
			return s;
	}
	return NULL;
}

static const struct ctl_site *next_racy(struct plan *p)
{
	return next_with(p, CTL_SITE_RACY, &p->racy_at);
}

/* Where no lock protects anything most failures begin: delayed there again and again, each time differently. */
static void racy(struct plan *p, uint64_t random, char *out, size_t size)
{
	/* Every other time one that is the second of two steps. */
	const struct ctl_site *pair = random >> 19 & 1 ? next_with(p, CTL_SITE_RACY | CTL_SITE_PAIR, &p->pair_at) : NULL;
	const struct ctl_site *s = pair ? pair : next_racy(p);
	unsigned how = random >> 16 & (CTL_HOW_AFTER | CTL_HOW_SOME);

	if (!s) {
		site(p, random, out, size);
		return;
	}
	p->ordered = is_update(s);
	if (random >> 18 & 1)
		how |= execution(s, random >> 24) << CTL_HOW_SHIFT;
	snprintf(out, size, "site/%u/%u/%u/%u", s->module, s->offset, delay_us(p, random), how);
}

static void meet(struct plan *p, uint64_t random, char *out, size_t size)
{
	static const unsigned us[] = { 100, 500, 2000 };
	const struct ctl_site *s = next_racy(p);

	if (s)
		snprintf(out, size, "meet/%u/%u/%u", s->module, s->offset, us[random % 3]);
	else
		site(p, random, out, size);
}

static void shared(struct plan *p, uint64_t random, char *out, size_t size)
{
	static const unsigned permille[] = { 10, 100, 500 };

	snprintf(out, size, "shared/%u/%u", permille[random % 3], delay_us(p, random >> 4));
}

static void sync_noise(struct plan *p, uint64_t random, char *out, size_t size)
{
	static const unsigned permille[] = { 50, 300, 800 };

	snprintf(out, size, "sync/%u/%u", permille[random % 3], delay_us(p, random >> 4));
}

static void start(struct plan *p, uint64_t random, char *out, size_t size)
{
	snprintf(out, size, "start/%u", delay_us(p, random) * 2);
}

static void pct(struct plan *p, uint64_t random, char *out, size_t size)
{
	uint64_t steps = p->sites && p->sites->steps ? p->sites->steps : 1000;

	snprintf(out, size, "pct/%u/%llu", (unsigned)(1 + random % 4),
		 (unsigned long long)steps);
}

static void native(struct plan *p, uint64_t random, char *out, size_t size)
{
	(void)p;
	(void)random;
	snprintf(out, size, "%s", "");
}

/* Who shares what with whom may depend on who gets which task: a few runs do not show all of it. */
static void learn_more(struct plan *p, uint64_t random, char *out, size_t size)
{
	static const unsigned permille[] = { 5, 50, 300 };

	snprintf(out, size, "learn/%u/%u", permille[random % 3], delay_us(p, random >> 8) / 4);
}

typedef void strategy_function(struct plan *, uint64_t, char *, size_t);

static void automatic(struct plan *p, uint64_t random, char *out, size_t size)
{
	/* One site at a time finds most; the others cover what needs two delays, no
	 * delay where threads meet, or a particular start order. */
	static strategy_function *const turn[] = { site,   start,  demote, racy,   sample, demote, site,
						   pct,    racy,   demote, shared, site,   sync_noise,
						   racy,   demote, meet,   site,   meet,   racy,   native, learn_more };
	uint32_t n = p->turns++;

	turn[n % (sizeof turn / sizeof *turn)](p, random, out, size);
}

/* ---- strategies ---- */

static const struct {
	const char *name;
	strategy_function *next; /* NULL: can only be given in full */
	unsigned learns;         /* so many first runs learn the shared sites */
} strategies[] = {
	{ "auto", automatic, LEARNING_RUNS }, { "site", site, LEARNING_RUNS },      { "demote", demote, LEARNING_RUNS },
	{ "shared", shared, LEARNING_RUNS },  { "pct", pct, LEARNING_RUNS },        { "sample", sample, 0 },
	{ "meet", meet, LEARNING_RUNS },      { "sync", sync_noise, 0 }, { "start", start, 0 }, { "native", native, 1 },
	{ "learn", NULL, 0 },
};
#define NSTRATEGIES (sizeof strategies / sizeof *strategies)

/* By the name before the first '/'; NSTRATEGIES: unknown. */
static size_t find(const char *text)
{
	size_t len = strcspn(text, "/"), i = 0;

	while (i < NSTRATEGIES &&
	       (strlen(strategies[i].name) != len || memcmp(strategies[i].name, text, len)))
		i++;
	return i;
}

bool plan_strategy_known(const char *name)
{
	size_t i = find(name);

	return i < NSTRATEGIES && (strategies[i].next || strchr(name, '/'));
}

const char *plan_strategy_names(void)
{
	return "auto, site, demote, meet, shared, pct, sample, sync, start, native";
}

/*
 * Tickets make a failure easy to explain, and those that need a store buffer
 * impossible. Where one thread runs at a time nothing is lost by them. Most
 * failures come within the first runs; what has not come by then may need the other kind.
 */
static bool takes_tickets(const struct plan *p, uint64_t run, uint64_t random, const char *hunt)
{
	unsigned of_four = random >> 40 & 3;

	if (p->ordered)
		return true;
	/* A learning run knows no shared sites yet: without tickets nothing would tell their order. */
	if (!strncmp(hunt, "pct", 3) || !strncmp(hunt, "demote", 6) || !strncmp(hunt, "learn", 5))
		return true;
	/* Made for two threads at the same instant: these are what store buffers need. */
	if (!*hunt || !strncmp(hunt, "meet", 4))
		return run < FIRST_RUNS && of_four > 1;
	return run < FIRST_RUNS ? of_four > 0 : of_four == 0;
}

void plan_next(struct plan *p, uint64_t run, uint64_t *seed, char *out, size_t size)
{
	uint64_t number = p->shards > 1 ? run * p->shards + p->shard : run; /* among those of all shards */
	uint64_t random = mix(p->seed, number);
	size_t i = find(p->strategy);
	bool exact = strchr(p->strategy, '/') != NULL;

	p->ordered = false;
	/* A strategy given in full is to do the same again, each time. */
	*seed = exact ? p->seed : p->seed + number;
	if (i < NSTRATEGIES && run < strategies[i].learns)
		learn(p, run, random, out, size);
	else if (exact || i == NSTRATEGIES)
		snprintf(out, size, "%s", p->strategy);
	else
		strategies[i].next(p, random, out, size);
	if (!exact)
		*seed &= ~CTL_SEED_NO_TICKETS;
	if (!exact && !takes_tickets(p, run, random, out))
		*seed |= CTL_SEED_NO_TICKETS;
}

void plan_free(struct plan *p)
{
	free(p->list);
	plan_sites_close(p->sites);
}
