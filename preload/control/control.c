#include "preload/control/control.h"

#include "preload/raw.h"
#include "preload/translate/translate.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct ctl ctl;

static const char *const strategy_names[CTL_STRATEGIES] = {
	[CTL_LEARN] = "learn", [CTL_SITE] = "site", [CTL_SAMPLE] = "sample", [CTL_SHARED] = "shared",
	[CTL_SYNC] = "sync", [CTL_START] = "start", [CTL_PCT] = "pct", [CTL_DEMOTE] = "demote",
	[CTL_MEET] = "meet",
};

/* ---- what the options say ---- */

static const char *word_end(const char *p)
{
	while (*p && *p != '/')
		p++;
	return p;
}

static enum ctl_strategy strategy_of(const char *text, const char *end)
{
	for (int i = 1; i < CTL_STRATEGIES; i++) {
		size_t n = strlen(strategy_names[i]);

		if ((size_t)(end - text) == n && !memcmp(text, strategy_names[i], n))
			return (enum ctl_strategy)i;
	}
	return CTL_NONE;
}

/* "site/1/2/3": the name, and up to four numbers. */
static bool parse_strategy(const char *text)
{
	const char *p = word_end(text);

	ctl.strategy = strategy_of(text, p);
	for (int i = 0; i < CTL_ARGS && *p == '/'; i++)
		for (p++; *p >= '0' && *p <= '9'; p++)
			ctl.arg[i] = ctl.arg[i] * 10 + (uint64_t)(*p - '0');
	return ctl.strategy != CTL_NONE && !*p;
}

/* The shared table, or a private one when there is no file to share. */
static bool map_sites(void)
{
	long fd = *shim_opt.sites ? raw(SYS_openat, AT_FDCWD, shim_opt.sites, O_RDWR | O_CLOEXEC) : -1;
	struct stat st;
	bool shared = !raw_failed(fd) && !raw_failed(raw(SYS_fstat, fd, &st)) &&
		      st.st_size >= (off_t)sizeof *ctl.sites;
	long m = raw(SYS_mmap, 0, sizeof *ctl.sites, PROT_READ | PROT_WRITE,
		     shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, shared ? fd : -1, 0);

	if (!raw_failed(fd))
		raw(SYS_close, fd);
	if (raw_failed(m))
		return false;
	ctl.sites = (struct ctl_sites *)m;
	tr_own(ctl.sites, sizeof *ctl.sites);
	return true;
}

static bool map_places(void)
{
	long m = raw(SYS_mmap, 0, CTL_MAX_SITES * sizeof *ctl.place, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (raw_failed(m))
		return false;
	ctl.place = (struct ctl_place *)m;
	tr_own(ctl.place, CTL_MAX_SITES * sizeof *ctl.place);
	return true;
}

/* ---- hooks ---- */

static bool is_the_site(const struct ctl_site *s)
{
	return s->module == ctl.arg[0] && s->offset == ctl.arg[1];
}

static bool sampled(const struct ctl_site *s)
{
	return ctl_random(ctl.seed, s->offset) % (ctl.arg[1] ? ctl.arg[1] : 1) < ctl.arg[0];
}

static unsigned site_wish(const struct ctl_site *s)
{
	if (!is_the_site(s))
		return 0;
	return ctl.arg[3] & CTL_HOW_AFTER && !(s->flags & CTL_SITE_CALL) ? CTL_CALLOUT_AFTER :
									   CTL_CALLOUT_BEFORE;
}

/* Where this run wants to be called at site s. */
static unsigned wish_at(const struct ctl_site *s)
{
	bool here = false;

	switch (ctl.strategy) {
	case CTL_LEARN:
		here = true;
		break;
	case CTL_SITE:
		return site_wish(s);
	case CTL_SAMPLE:
		here = sampled(s);
		break;
	case CTL_SHARED:
		here = s->flags & CTL_SITE_SHARED;
		break;
	case CTL_MEET:
		here = s->flags & CTL_SITE_RACY || is_the_site(s);
		break;
	case CTL_PCT: case CTL_DEMOTE:
		here = s->flags & (CTL_SITE_SHARED | CTL_SITE_CALL) ||
		       (ctl.strategy == CTL_DEMOTE && is_the_site(s));
		break;
	default:
		break;
	}
	return here ? CTL_CALLOUT_BEFORE : 0;
}

/*
 * What lies on a thread's own stack is worth a look only while there are others and it is not
 * known whether they come there; then it is a site like any other, or none.
 */
static bool is_passed_over(const struct ctl_site *s)
{
	return s->flags & CTL_SITE_LOCAL && !(s->flags & CTL_SITE_SHARED) &&
	       (ctl.strategy != CTL_LEARN || !tr.multi);
}

/* Nothing is known yet; of what is on the stack too much would be recorded. */
static bool is_learnt(const struct ctl_site *s)
{
	return ctl.strategy == CTL_LEARN && !(s->flags & CTL_SITE_LOCAL);
}

/*
 * What a race made a shared load see is the one thing path and order do not
 * tell: at the few sites known to be shared it is recorded, and while nothing
 * is known yet at all of them.
 */
static bool logs_value(const struct ctl_site *s)
{
	return s->flags & CTL_SITE_READ && !(s->flags & CTL_SITE_WRITE) &&
	       (s->flags & CTL_SITE_SHARED || is_learnt(s));
}

/*
 * With tickets at the same sites the order of racing accesses is recorded too,
 * and nothing is left to be searched for.
 */
static bool takes_ticket(const struct ctl_site *s)
{
	return ctl.tickets && s->flags & (CTL_SITE_READ | CTL_SITE_WRITE) &&
	       (s->flags & CTL_SITE_SHARED || is_learnt(s));
}

/*
 * An update in one instruction hardly ever loses another thread's; done in halves it
 * can, as the processor allows. Half of the runs delay between the halves.
 */
static unsigned split_wish(const struct ctl_site *s, unsigned wish)
{
	const unsigned both = CTL_SITE_READ | CTL_SITE_WRITE;

	if ((s->flags & both) != both || !takes_ticket(s))
		return wish;
	if (wish & CTL_CALLOUT_BEFORE && ctl_random(ctl.seed, 0x5b117) & 1)
		wish ^= CTL_CALLOUT_BEFORE | CTL_CALLOUT_MIDDLE;
	/* Behind it, that is behind its load. */
	if (wish & CTL_CALLOUT_AFTER)
		wish ^= CTL_CALLOUT_AFTER | CTL_CALLOUT_MIDDLE;
	return wish | CTL_SPLIT;
}

/*
 * Without tickets the times of shared loads, taken behind them, bring the threads'
 * accesses into line: a ticket is a locked instruction and empties the store buffer, and a time between
 * a store and the load behind it would give the buffer time to empty by itself.
 */
static bool takes_time(const struct ctl_site *s)
{
	return !ctl.tickets && !ctl.enforcing && logs_value(s) && s->flags & CTL_SITE_SHARED &&
	       !(wish_at(s) & CTL_CALLOUT_AFTER);
}

static struct ctl_wish plan(uint64_t pc, const struct insn *in)
{
	struct ctl_wish wish = { 0 };

	if (ctl.enforcing)
		wish.flags = ctl_enforce_plan(pc, in);
	if (ctl.fixing)
		wish.flags |= ctl_fix_plan(pc, in);
	wish.id = CTL_NO_SITE;
	int i = ctl.sites ? ctl_site_of(pc, in) : -1;
	if (i < 0)
		return wish;
	const struct ctl_site *s = ctl_site((uint32_t)i);
	if (is_passed_over(s))
		return wish;
	wish.id = (uint32_t)i;
	wish.flags |= split_wish(s, wish_at(s));
	if (logs_value(s))
		wish.flags |= CTL_LOG_VALUE;
	if (takes_ticket(s))
		wish.flags |= CTL_ORDER;
	if (takes_time(s))
		wish.flags |= CTL_CALLOUT_AFTER;
	return wish;
}

/* The longest run's steps are what PCT spreads its change points over. */
static void count_step(uint32_t site)
{
	static uint64_t steps;

	if (ctl_site(site)->flags & (CTL_SITE_SHARED | CTL_SITE_CALL) && shim.nlive > 1 &&
	    ++steps > ctl.sites->steps)
		ctl.sites->steps = steps;
}

/* Which execution of the strategy's one site this is for t, from 1. */
static uint64_t execution(const struct shim_thread *t)
{
	static uint32_t count[CTL_THREADS] RAW_LARGE;

	return ++count[t->index % CTL_THREADS];
}

static void at_site(const struct shim_thread *t)
{
	uint64_t nth = ctl.arg[3] >> CTL_HOW_SHIFT, n = execution(t);

	if (shim.nlive < 2 || (nth && n != nth))
		return;
	if (ctl.arg[3] & CTL_HOW_SOME && ctl_random(ctl.seed, 77 + t->index) % 2)
		return;
	ctl_sleep(ctl.arg[2]);
}

static void demote_at(struct tr_ctx *c, uint32_t site)
{
	if (is_the_site(ctl_site(site))) {
		uint64_t n = execution(c->thread);

		if (shim.nlive > 1 && (!ctl.arg[2] || n == ctl.arg[2]))
			ctl_pct_demote(c);
	}
	ctl_pct_step(c);
}

/* At a place that a fix is called at, too: is the strategy? */
static bool is_wished(uint32_t id, enum ctl_at at)
{
	const struct ctl_site *s = ctl_site(id);
	unsigned flags = split_wish(s, wish_at(s)) | (takes_time(s) ? CTL_CALLOUT_AFTER : 0);

	return flags & (at == CTL_AT_BEFORE ? CTL_CALLOUT_BEFORE : at == CTL_AT_AFTER ? CTL_CALLOUT_AFTER : CTL_CALLOUT_MIDDLE);
}

static void callout(struct tr_ctx *c, uint32_t id, uint64_t pc, enum ctl_at at)
{
	if (ctl.enforcing)
		ctl_enforce(c, pc, at);
	if (ctl.fixing)
		ctl_fix(c, pc, at);
	if (!ctl.sites || id == CTL_NO_SITE || (ctl.fixing && !is_wished(id, at)))
		return;
	if (at == CTL_AT_AFTER && takes_time(ctl_site(id))) {
		if (shim.nlive > 1)
			tr_time(c);
		return;
	}
	switch (ctl.strategy) {
	case CTL_LEARN:
		ctl_learn(c, id);
		count_step(id);
		if (ctl.arg[0] && shim.nlive > 1)
			ctl_maybe_sleep(c->thread, ctl.arg[0], ctl.arg[1]);
		break;
	case CTL_SITE:
		at_site(c->thread);
		break;
	case CTL_SAMPLE:
		if (shim.nlive > 1)
			ctl_maybe_sleep(c->thread, ctl.arg[2], ctl.arg[3]);
		break;
	case CTL_SHARED:
		if (shim.nlive > 1)
			ctl_maybe_sleep(c->thread, ctl.arg[0], ctl.arg[1]);
		break;
	case CTL_PCT:
		ctl_pct_step(c);
		break;
	case CTL_DEMOTE:
		demote_at(c, id);
		break;
	case CTL_MEET:
		if (shim.nlive > 1)
			ctl_meet(c->thread, is_the_site(ctl_site(id)), ctl.arg[2]);
		break;
	default:
		break;
	}
}

static void late_start(struct tr_ctx *c)
{
	uint64_t r = ctl_random(ctl.seed, c->thread->index);

	if (c->thread->index && r % 2)
		ctl_sleep(ctl.arg[0] / 2 + (r >> 8) % (ctl.arg[0] + 1));
}

void ctl_event(struct shim_thread *t, unsigned op_at, uint64_t object, uint64_t value)
{
	unsigned op = TRC_SYNC_OP(op_at);

	if (ctl.enforcing && TRC_SYNC_AT(op_at) == TRC_AT_BLOCK && (op == TRC_OP_WAIT || op == TRC_OP_TIMEDWAIT))
		ctl_enforce_wait(t, object, value);
	if (ctl.fixing)
		ctl_fix_event(t, op_at, object, value);
	if (ctl.strategy == CTL_SYNC && shim.nlive > 1)
		ctl_maybe_sleep(t, ctl.arg[0], ctl.arg[1]);
}

/* ---- begin and end ---- */

/* Which argument of a strategy is its longest delay. */
static const uint8_t delay_arg[CTL_STRATEGIES] = {
	[CTL_LEARN] = 1, [CTL_SITE] = 2, [CTL_SAMPLE] = 3, [CTL_SHARED] = 1, [CTL_SYNC] = 1,
	[CTL_START] = 0,
};

static bool is_pct(void)
{
	return ctl.strategy == CTL_PCT || ctl.strategy == CTL_DEMOTE;
}

static void start_strategy(void)
{
	if (!parse_strategy(shim_opt.hunt)) {
		shim_degrade("hunt= names no strategy; this run is not perturbed");
		ctl.strategy = CTL_NONE;
		return;
	}
	if (ctl.strategy == CTL_LEARN && !ctl_learn_init())
		ctl.strategy = CTL_NONE;
	if (ctl.strategy == CTL_START)
		ctl_thread_start = late_start;
	if (ctl.strategy == CTL_PCT)
		ctl_pct_init(ctl.arg[0], ctl.arg[1]);
	else if (ctl.strategy == CTL_DEMOTE)
		ctl_pct_init(0, 0);
	else
		ctl_delay_init(ctl.arg[delay_arg[ctl.strategy]]);
}

void ctl_init(void)
{
	if (!*shim_opt.hunt && !*shim_opt.schedule && !*shim_opt.sites && !*shim_opt.fix)
		return;
	ctl.seed = shim_opt.seed;
	if ((*shim_opt.hunt || *shim_opt.sites) && (!map_sites() || !map_places())) {
		shim_degrade("no memory for the sites of hunt=; this run is not perturbed");
		ctl.sites = NULL;
	} else if (*shim_opt.hunt) {
		start_strategy();
	}
	ctl.tickets = !*shim_opt.schedule && !(ctl.seed & CTL_SEED_NO_TICKETS);
	if (*shim_opt.schedule)
		ctl.enforcing = ctl_enforce_init(shim_opt.schedule);
	if (ctl.enforcing && !ctl_thread_start)
		ctl_thread_start = ctl_enforce_start;
	ctl.fixing = *shim_opt.fix && ctl_fix_init(shim_opt.fix);
	ctl.active = true;
	ctl_plan = plan;
	ctl_callout = callout;
}

void ctl_ending(void)
{
	if (!ctl.active)
		return;
	if (ctl.sites && ctl.sites->threads < shim.nthreads)
		ctl.sites->threads = shim.nthreads;
	if (is_pct())
		ctl_pct_end();
	else
		ctl_sleep_end();
	if (ctl.enforcing)
		ctl_enforce_end();
}

void ctl_forked(void)
{
	if (ctl.fixing)
		ctl_fix_forked();
	if (ctl.enforcing && ctl_enforce_forked())
		return;
	if (is_pct() || ctl.enforcing)
		ctl_pct_forked();
	else if (ctl.active)
		ctl_delay_init(ctl.arg[delay_arg[ctl.strategy]]);
	ctl.enforcing = false;
}
