/*
 * What the program did lately, read from its own path: which way each branch usually goes,
 * and where indirect ones lead.
 * Fragments are first made before anything is known, and stop where others begin. Once a
 * thread has left PROFILE_FROM bytes and hardly any code is new (python3 translates for 6 MB
 * before it runs a line; doing it all again then cost a third of its start), half a chunk of
 * its path is decoded before it is emptied; then all fragments are dropped, and those made from then on follow the usual
 * way of their branches, through code that other fragments hold, too. It is done again
 * whenever a path is PROFILE_AGAIN times as long, for programs whose work comes in phases.
 *
 * Nothing here bears on what is recorded: a wrong guess makes a fragment that is left early.
 */
#include "preload/translate/hooks.h"


#define PROFILE_FROM (1ull << 20)
#define PROFILE_AGAIN 8
#define PROFILE_SAMPLE (128u << 10) /* bytes of the chunk that are read */
#define PROFILE_STEADY 48 /* new fragments while a chunk was filled, at most */
#define PROFILE_ANYWAY 16 /* times as long: unsteady programs have hot code, too */
#define PLACES (1u << 14)
#define TALLIES_FIRST (1u << 17) /* exits that are counted in what is mapped at first */
#define SEEN_ENOUGH 16 /* in one chunk */
#define STORE_BYTE 0xc6
#define STORE_WORD 0xc7

struct place {
	uint64_t pc;
	uint32_t taken, passed; /* a conditional branch */
	uint32_t begun;         /* a fragment begins here: how often it was executed */
};

/* One exit, in the chunk that is read; all that a step needs in one place. */
struct tally {
	uint32_t count;
	uint32_t next; /* direct ones: id of the fragment it leads to, once looked up */
	uint32_t id[TR_TARGETS], n[TR_TARGETS]; /* indirect ones: to which fragments, how often */
};

static struct place *places;
static uint32_t nplaces;
static struct tally *tallies; /* by exit */
static struct tr_growing tallies_room;
static uint64_t next_at = PROFILE_FROM;
static struct tr_ctx *watched; /* whose chunk will be read */

static struct place *place_of(uint64_t pc, bool add)
{
	uint32_t h = (uint32_t)(pc * 0x9e3779b97f4a7c15ull >> 40) & (PLACES - 1);

	if (!places)
		return NULL;
	while (places[h].pc && places[h].pc != pc)
		h = (h + 1) & (PLACES - 1);
	if (!places[h].pc) {
		if (!add || nplaces > PLACES / 4 * 3)
			return NULL;
		nplaces++;
		places[h].pc = pc;
	}
	return &places[h];
}

enum tr_usual tr_usual_way(uint64_t branch_pc)
{
	const struct place *p = place_of(branch_pc, false);

	if (!p || p->taken + p->passed < SEEN_ENOUGH)
		return TR_USUAL_UNKNOWN;
	return p->taken > p->passed ? TR_USUAL_TAKEN : TR_USUAL_PASSED;
}

bool tr_is_hot(uint64_t pc)
{
	const struct place *p = place_of(pc, false);

	return p && p->begun >= SEEN_ENOUGH;
}

/* ---- where in the chunk decoding can begin ---- */

/* The fragment that follows the record stored at rip, in a stub or at a body's end. */
static struct tr_frag *after_record(uint64_t rip)
{
	struct insn in;

	for (int i = 0; i < 8 && insn_decode(&in, (const uint8_t *)rip, 15, rip); i++) {
		rip = in.cls == INSN_JMP ? in.target : rip + in.len;
		struct tr_frag *f = tr_frag_of(rip);

		if (f && (uint64_t)f->body == rip)
			return f;
		if (in.cls != INSN_NORMAL)
			break;
	}
	return NULL;
}

/* The chunk is empty; the instruction at rip is about to write its first record. */
void tr_profile_begin(struct tr_ctx *c, uint64_t rip)
{
	const uint8_t *code = (const uint8_t *)rip;
	struct tr_ctx *none = NULL;
	struct tr_frag *f = NULL;
	uint32_t word;

	uint32_t made = tr_frag_count(), fresh = made - c->profile_made;
	uint64_t left = c->thread->path.start;

	c->profile_made = made;
	if (c->path_dead || ctl_plan || tr.detached || left < next_at ||
	    (fresh > PROFILE_STEADY && left < next_at * PROFILE_ANYWAY))
		return;
	if (code[0] == STORE_WORD && code[1] == 1) { /* an entry stub names its fragment */
		memcpy(&word, code + 2, 4);
		if (tr_frag_known(trc_target_id(word)))
			f = tr_frag_at(trc_target_id(word) - 1);
		c->profile_from = c->ptr + trc_target_len(word);
	} else if (code[0] == STORE_BYTE || code[1] == STORE_BYTE) {
		f = after_record(rip);
		c->profile_from = c->ptr + 1;
	}
	if (!f || !__atomic_compare_exchange_n(&watched, &none, c, false, __ATOMIC_ACQUIRE,
					       __ATOMIC_RELAXED))
		return;
	c->profile_frag = f->id;
}

/* ---- counting ---- */

static const uint8_t *skip_items(const struct tr_frag *f, const uint8_t *p, const uint8_t *end)
{
	for (unsigned i = 0; i < f->nitems && p < end; i++)
		p += f->values >> i & 1 ? *p ? *p : 1 : *p & 1 ? 4 : 1;
	return p;
}

/* The least of the few that are counted gives way to others, in time. */
static void vote(struct tally *g, uint32_t id)
{
	unsigned least = 0;

	for (unsigned i = 0; i < TR_TARGETS; i++) {
		if (g->id[i] == id) {
			g->n[i]++;
			return;
		}
		if (g->n[i] < g->n[least])
			least = i;
	}
	if (g->n[least]) {
		g->n[least]--;
		return;
	}
	g->id[least] = id;
	g->n[least] = 1;
}

/* An indirect branch's target, counted; NULL when there is no such fragment. */
static struct tr_frag *count_target(uint32_t exit, const uint8_t **at)
{
	struct tally *g = &tallies[exit];
	uint32_t word;

	memcpy(&word, *at, 4);
	unsigned len = trc_target_len(word);
	uint32_t id = trc_target_id(len == 2 ? word & 0xffff : word & 0xffffff);

	if (!(word & 0x80) || !tr_frag_known(id))
		return NULL;
	*at += len;
	g->count++;
	vote(g, id);
	return tr_frag_at(id - 1);
}

/* A direct exit, counted; NULL when it leads to no fragment. */
static struct tr_frag *count_exit(uint32_t exit)
{
	struct tally *t = &tallies[exit];

	t->count++;
	if (!t->next) {
		struct tr_frag *f = tr_lookup(tr_exit_at(exit)->target);

		if (!f)
			return NULL;
		t->next = f->id;
	}
	return tr_frag_at(t->next - 1);
}

/* One fragment; the next one, or NULL when it is not known. */
static struct tr_frag *count_one(const struct tr_frag *f, const uint8_t **at, const uint8_t *end)
{
	const uint8_t *p = skip_items(f, *at, end);
	uint32_t exit = f->exits + f->nsides;

	*at = p;
	if (f->kind == TRC_FRAG_TRAP || p + 5 > end)
		return NULL;
	if (f->kind == TRC_FRAG_INDIRECT && *p & 0x80)
		return count_target(exit, at);
	if (f->nsides || f->kind == TRC_FRAG_INDIRECT) {
		if (!*p || *p > f->nsides + 1)
			return NULL;
		exit = f->exits + *p - 1u;
		*at = p + 1;
		if (f->guessed >> (*p - 1) & 1)
			return count_target(exit, at);
	}
	return count_exit(exit);
}

static void count(const struct tr_ctx *c, const uint8_t *end)
{
	const struct tr_frag *f = tr_frag_at(c->profile_frag - 1);
	const uint8_t *at = (const uint8_t *)c->profile_from;

	if (end > at + PROFILE_SAMPLE)
		end = at + PROFILE_SAMPLE;

	/* Fragments that leave no byte stand in no loop of their own. */
	for (uint32_t n = 0; f && f->generation == tr.generation && n < 4u << 20; n++)
		f = count_one(f, &at, end);
}

/* The ways of an indirect branch that were put on the path. */
static void digest_targets(uint32_t exit)
{
	const struct tally *g = &tallies[exit];
	uint64_t pc = tr_exit_at(exit)->pc;

	if (!g->count)
		return;
	tr_targets_seen(pc, g->count);
	for (unsigned i = 0; i < TR_TARGETS; i++)
		if (g->n[i])
			tr_targets_add(pc, tr_frag_at(g->id[i] - 1)->pc, g->n[i]);
}

static void digest_one(const struct tr_frag *f)
{
	uint32_t runs = 0;

	if (f->kind == TRC_FRAG_TRAP)
		return;
	for (unsigned k = 0; k <= f->nsides; k++)
		runs += tallies[f->exits + k].count;
	if (!runs)
		return;
	struct place *head = place_of(f->pc, true);

	if (head)
		head->begun += runs;
	for (unsigned k = 0; k < f->nsides && runs; k++) {
		const struct tr_exit *x = tr_exit_at(f->exits + k);
		uint32_t left = tallies[f->exits + k].count;
		bool passing = f->passed_taken >> k & 1;

		runs -= left;
		if (f->guessed >> k & 1) {
			digest_targets(f->exits + k);
			tr_targets_seen(x->pc, runs);
			tr_targets_add(x->pc, x->target, runs);
			continue;
		}
		if (f->cases >> k & 1) {
			tr_targets_seen(x->pc, left);
			tr_targets_add(x->pc, x->target, left);
			continue;
		}
		struct place *p = place_of(x->pc, true);

		if (!p)
			return;
		p->taken += passing ? runs : left;
		p->passed += passing ? left : runs;
	}
	if (f->kind == TRC_FRAG_INDIRECT)
		digest_targets(f->exits + f->nsides);
}

/*
 * The table of places stays present and is cleared: looking into pages that are not, before they are written to, made
 * two of five page faults of pigz, each of which stopped the other threads.
 */
static bool tables_ready(void)
{
	size_t len = PLACES * sizeof *places;

	if (!tallies && tr_grow_begin(&tallies_room, TR_EXITS_MAX * sizeof *tallies, TALLIES_FIRST * sizeof *tallies))
		tallies = (struct tally *)tallies_room.base;
	if (!places) {
		places = tr_alloc(len);
		if (places)
			tr_populate(places, len);
	} else {
		memset(places, 0, len);
	}
	nplaces = 0;
	return tr_targets_clear() && places && tallies && tr_grow(&tallies_room, tr_exit_next() * sizeof *tallies);
}

/*
 * The chunk of c is full up to `end` and about to be emptied. In a signal handler, but the
 * code it interrupted is translated code, which holds no lock.
 */
void tr_profile_end(struct tr_ctx *c, uint64_t end)
{
	if (__atomic_load_n(&watched, __ATOMIC_RELAXED) != c)
		return;
	tr_lock();
	if (!tr.detached && tr_frag_known(c->profile_frag) && tables_ready()) {
		count(c, (const uint8_t *)end);
		for (uint32_t i = 0; tr_frag_known(i + 1); i++)
			if (tr_frag_at(i)->generation == tr.generation)
				digest_one(tr_frag_at(i));
		raw_empty(tallies, tallies_room.mapped);
		next_at = c->thread->path.start * PROFILE_AGAIN;
		tr_drop_all_inside();
	}
	__atomic_store_n(&watched, NULL, __ATOMIC_RELEASE);
	tr_unlock();
}

/* The chunk of c changes otherwise, or is gone: it will not be read. */
void tr_profile_stop(struct tr_ctx *c)
{
	struct tr_ctx *me = c;

	__atomic_compare_exchange_n(&watched, &me, NULL, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* In a forked child: what is known stays, but nobody is watched. */
void tr_profile_forget(void)
{
	watched = NULL;
	next_at = PROFILE_FROM;
}
