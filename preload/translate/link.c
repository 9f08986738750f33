/*
 * Tables of fragments and exits; linking, publishing and dropping them. All
 * under tr_lock(), except that signal handlers read fragments without it.
 */
#include "preload/translate/emit.h"

#include <errno.h>

#define FRAGS_MAX (1u << 21) /* ids fit trc_target() */
#define LENS_MAX (1u << 25)
#define FIRST_PART 32 /* of each table is there from the start: 20 MB in all */
#define HASH_FIRST (1u << 9) /* a page */
#define HASH_MAX (1u << 22)

void tr_regions_reset(void);

struct rec_stream tr_frags_stream;

static struct tr_frag *frags;
static struct tr_exit *exits;
static uint16_t *lens;
/*
 * hash_size slots of the reserved HASH_MAX. Low half: fragment index + 1; high half: low
 * half of the address, so that a search that finds nothing looks at no fragment.
 */
static uint64_t *hash;
static uint32_t hash_size = HASH_FIRST, hash_used;
static uint32_t nfrags, nexits, nlens;
static struct tr_area frags_area, exits_area;
static struct tr_growing frags_room, exits_room, lens_room, hash_room;
/*
 * Most look-ups find nothing: does another fragment begin where this one could go on? A bit for
 * each address that does, by hash, says so without leaving the processor's cache. It grows with the hash.
 */
#define FILTER_MAX (1u << 17) /* bits */
static uint64_t filter[FILTER_MAX / 64] RAW_LARGE;

static uint32_t filter_bits(void)
{
	return hash_size < FILTER_MAX / 8 ? hash_size * 8 : FILTER_MAX;
}

static uint32_t filter_bit(uint64_t pc)
{
	return (uint32_t)(pc ^ pc >> 17) & (filter_bits() - 1);
}

static void filter_add(uint64_t pc)
{
	uint32_t bit = filter_bit(pc);

	filter[bit / 64] |= 1ull << bit % 64;
}

static struct tr_area area_of(const struct tr_growing *g)
{
	return (struct tr_area){ g->base, g->base, g->base + g->mapped };
}

bool tr_link_init(void);
bool tr_link_init(void)
{
	if (!tr_grow_begin(&frags_room, FRAGS_MAX * sizeof *frags, FRAGS_MAX / FIRST_PART * sizeof *frags) ||
	    !tr_grow_begin(&exits_room, TR_EXITS_MAX * sizeof *exits, TR_EXITS_MAX / FIRST_PART * sizeof *exits) ||
	    !tr_grow_begin(&lens_room, LENS_MAX * sizeof *lens, LENS_MAX / FIRST_PART * sizeof *lens) ||
	    !tr_grow_begin(&hash_room, HASH_MAX * sizeof *hash, HASH_MAX / FIRST_PART * sizeof *hash))
		return false;
	frags = (struct tr_frag *)frags_room.base;
	exits = (struct tr_exit *)exits_room.base;
	lens = (uint16_t *)lens_room.base;
	hash = (uint64_t *)hash_room.base;
	frags_area = area_of(&frags_room);
	exits_area = area_of(&exits_room);
	return true;
}

static bool area_grow(struct tr_area *a, struct tr_growing *g, size_t need)
{
	bool there = tr_grow(g, need);

	a->end = g->base + g->mapped;
	return there;
}

/* For the next fragment. Where the hash could not grow it fills up, and must not be full: searches end at a free slot. */
bool tr_tables_full(void);
bool tr_tables_full(void)
{
	return hash_used > hash_size / 8 * 7 || !area_grow(&frags_area, &frags_room, (nfrags + 16) * sizeof *frags) ||
	       !area_grow(&exits_area, &exits_room, (nexits + 256) * sizeof *exits) ||
	       !tr_grow(&lens_room, (nlens + 4096) * sizeof *lens);
}

static uint32_t slot_of(uint64_t pc)
{
	uint32_t h = (uint32_t)(pc * 0x9e3779b97f4a7c15ull >> 40) & (hash_size - 1);

	while (hash[h] && (hash[h] >> 32 != (uint32_t)pc || frags[(uint32_t)hash[h] - 1].pc != pc))
		h = (h + 1) & (hash_size - 1);
	return h;
}

static uint64_t slot_value(uint64_t pc, uint32_t index)
{
	return pc << 32 | (index + 1);
}

/* Starts small: every page of it that a short-lived program touches costs a fault. */
static void hash_grow(void)
{
	if (!tr_grow(&hash_room, 2 * hash_size * sizeof *hash))
		return;
	for (uint32_t i = 0; i < hash_size; i++)
		hash[i] = 0;
	tr_populate(hash + hash_size, hash_size * sizeof *hash);
	memset(filter, 0, filter_bits() / 8);
	hash_size *= 2;
	for (uint32_t i = 0; i < nfrags; i++) {
		if (frags[i].generation != tr.generation)
			continue;
		hash[slot_of(frags[i].pc)] = slot_value(frags[i].pc, i);
		filter_add(frags[i].pc);
	}
}

static void hash_empty(void)
{
	memset(filter, 0, filter_bits() / 8);
	raw_empty(hash, hash_size * sizeof *hash);
	hash_used = 0;
}

struct tr_frag *tr_lookup(uint64_t pc)
{
	uint32_t bit = filter_bit(pc);

	if (!(filter[bit / 64] >> bit % 64 & 1))
		return NULL;
	uint32_t i = (uint32_t)hash[slot_of(pc)];

	return i ? &frags[i - 1] : NULL;
}

void tr_insert(struct tr_frag *f)
{
	filter_add(f->pc);
	if (!hash_used && hash_size > HASH_FIRST)
		tr_populate(hash, hash_size * sizeof *hash);
	hash[slot_of(f->pc)] = slot_value(f->pc, (uint32_t)(f - frags));
	if (++hash_used > hash_size / 4 * 3 && hash_size < HASH_MAX)
		hash_grow();
}

struct tr_frag *tr_frag_at(uint32_t index)
{
	return &frags[index];
}

uint32_t tr_frag_count(void)
{
	return __atomic_load_n(&nfrags, __ATOMIC_RELAXED);
}

bool tr_frag_known(uint32_t id)
{
	return id && id <= nfrags;
}

/* Ids run on across generations: id is the index plus one. */
struct tr_frag *tr_frag_new(void)
{
	struct tr_frag *f = &frags[nfrags++];

	tr_stay_ahead(&frags_area, (uint8_t *)(f + 1));
	*f = (struct tr_frag){ .id = nfrags }; /* a forked child uses its parent's again */
	return f;
}

uint32_t tr_exit_new(struct tr_exit **x)
{
	tr_stay_ahead(&exits_area, (uint8_t *)&exits[nexits + 1]);
	struct tr_exit *new = *x = &exits[nexits];

	/* One by one: as a whole the compiler makes it a string instruction, ten times as slow. */
	new->target = new->pc = 0;
	new->patch = new->stub = new->body = NULL;
	new->frag = 0;
	new->kind = new->index = new->linked = 0;
	return nexits++;
}

void *tr_exits_room(size_t len)
{
	uint8_t *p = (uint8_t *)(((uint64_t)&exits[nexits] + RAW_PAGE - 1) & ~(RAW_PAGE - 1));

	if (!area_grow(&exits_area, &exits_room, (size_t)(p + len - exits_room.base)))
		return NULL;
	if (exits_area.ready < p + len) {
		tr_populate(exits_area.ready, (size_t)(p + len - exits_area.ready));
		exits_area.ready = p + len;
	}
	return p;
}

uint32_t tr_exit_next(void)
{
	return nexits;
}

struct tr_exit *tr_exit_at(uint32_t id)
{
	return &exits[id];
}

uint32_t tr_lens_new(const uint16_t *from, unsigned n)
{
	uint32_t at = nlens;

	memcpy(lens + at, from, n * sizeof *lens);
	nlens += n;
	return at;
}

uint16_t *tr_lens(uint32_t at)
{
	return lens + at;
}

static void patch(uint8_t *rel32, const uint8_t *to)
{
	__atomic_store_n((int32_t *)rel32, (int32_t)(to - (rel32 + 4)), __ATOMIC_RELEASE);
}

static bool reaches(const uint8_t *from, const uint8_t *to)
{
	int64_t d = to - (from + 4);

	return d == (int32_t)d;
}

/*
 * True when every thread lives in the newest generation, or is in a system
 * call and will note it on return: from then on links cannot lead anyone from
 * an old fragment to a new one unseen.
 */
bool tr_settled(void)
{
	if (!tr.unsettled)
		return true;
	for (struct tr_ctx *c = tr.contexts; c; c = c->next) {
		/* Killed alone, it has not said so. */
		if (c->own_process && c->alive && c->thread->tid && raw(SYS_kill, c->thread->tid, 0) == -ESRCH)
			c->alive = 0;
		if (c->alive && !c->native && !__atomic_load_n(&c->in_call, __ATOMIC_ACQUIRE) &&
		    __atomic_load_n(&c->generation, __ATOMIC_ACQUIRE) != tr.generation)
			return false;
	}
	tr.unsettled = false;
	return true;
}

/*
 * Links out of the newest generation's fragments are always safe: nobody is in these who has not noted it. Only old
 * ones must wait, and the table, through which old ones go, too. A thread that is not running at the moment holds
 * that up for as long as the scheduler likes; pigz came here 100,000 to 290,000 times meanwhile, on a busy machine.
 */
static bool may_link(const struct tr_exit *x)
{
	return frags[x->frag].generation == tr.generation || tr_settled();
}

/* A jump to code that may be in another region, 2 GB away or more. */
static void jump_anywhere(const uint8_t *to)
{
	if (reaches(tr_at + 1, to)) {
		emit_jump_to(to);
		return;
	}
	e8(0xff), e8(0x24), e8(0x25), e32(emit_constant((uint64_t)to)); /* jmp [constant] */
}

/* A place within reach of the rel32 from which control goes to the body; NULL none. */
static const uint8_t *way_to(const uint8_t *rel32, const uint8_t *body)
{
	struct tr_region *r;
	uint8_t *at = tr_at, *way;

	if (reaches(rel32, body))
		return body;
	r = tr_region_for((uint64_t)rel32);
	if (!r || !reaches(rel32, r->cold))
		return NULL;
	way = tr_at = r->cold;
	jump_anywhere(body);
	r->cold = tr_at;
	tr_at = at;
	return way;
}

void tr_link_direct(struct tr_exit *x, struct tr_frag *f)
{
	if (!x->patch || x->linked || !may_link(x))
		return;
	const uint8_t *way = way_to(x->patch, f->body);

	if (!way)
		return;
	patch(x->patch, way);
	x->linked = 1;
}

/*
 * The code of a side exit: record its number, go to the successor. A successor that does
 * not exist yet is put right behind it: tr_at then stands where its body begins.
 */
static void side_code(const struct tr_exit *x)
{
	emit_record_byte(x->index + 1u, tr_dead_registers(x->target));
}

static bool side_possible(const struct tr_exit *x, const uint8_t *at)
{
	return !x->linked && reaches(x->patch, at) && may_link(x);
}

bool tr_side_before(const struct tr_exit *x)
{
	if (!side_possible(x, tr_at))
		return false;
	side_code(x);
	return true;
}

void tr_side_linked(struct tr_exit *x, const uint8_t *code)
{
	patch(x->patch, code);
	x->linked = 1;
}

void tr_link_side(struct tr_exit *x, struct tr_frag *f)
{
	struct tr_region *r = tr_region_for((uint64_t)x->patch);

	if (!r || !side_possible(x, r->hot))
		return;
	uint8_t *start = tr_at = r->hot;

	side_code(x);
	jump_anywhere(f->body);
	r->hot = tr_at;
	tr_side_linked(x, start);
}

/*
 * An entry stub for indirect branches, put in front of its bucket's chain:
 *
 *      movabs rdx, -pc;  lea rcx, [rcx+rdx];  jrcxz hit
 *      movabs rdx, pc;   lea rcx, [rcx+rdx];  jmp [next in chain]
 * hit: record id; restore rcx, rdx;  jmp body, unless the body is put right behind it
 */
static void entry_code(const struct tr_frag *f)
{
	uint32_t dead = tr_dead_registers(f->pc).dead; /* both are in ctx, for fault.c */

	e8(0x48), e8(0xba), e64(-f->pc);
	e32(0x110c8d48);
	e8(0xe3);
	uint8_t *hit = tr_at++;
	e8(0x48), e8(0xba), e64(f->pc);
	e32(0x110c8d48);
	e8(0xff), e8(0x24), e8(0x25), e32(emit_constant(tr_table_at(f->pc)));
	*hit = (uint8_t)(tr_at - (hit + 1));
	emit_ptr_get(REG_RCX_);
	e8(0xc7), e8(0x01), e32(trc_target(f->id));
	emit_ptr_add(trc_target_len(trc_target(f->id)));
	if (!(dead & 1 << REG_RCX_))
		emit_gs_load(REG_RCX_, CTX_RCX);
	if (!(dead & 1 << REG_RDX_))
		emit_gs_load(REG_RDX_, CTX_RDX);
}

bool tr_entry_before(const struct tr_frag *f)
{
	if (!tr_settled())
		return false;
	entry_code(f);
	return true;
}

void tr_entry_ready(struct tr_frag *f, uint8_t *code)
{
	f->entry = code;
	tr_table_set(f->pc, code);
}

void tr_publish(struct tr_frag *f)
{
	struct tr_region *r = tr_region_for((uint64_t)f->body);

	if (f->entry || !r || !tr_settled() || !reaches(r->hot + 128, f->body))
		return;
	uint8_t *start = tr_at = r->hot;

	entry_code(f);
	emit_jump_to(f->body);
	r->hot = tr_at;
	tr_entry_ready(f, start);
}

static void record_drop(void)
{
	struct trc_dropped *d = rec_begin(&tr_frags_stream, sizeof *d);
	if (d) {
		d->generation = tr.generation;
		d->start = 0;
		d->end = UINT64_MAX;
		rec_commit(&tr_frags_stream, d, TRC_DROPPED, 0, sizeof *d);
	}
}

static void empty_tables(void)
{
	tr_table_empty();
	hash_empty();
	tr_code_forget();
}

/* A forked child begins a fragment table of its own. */
void tr_tables_reset(void);
void tr_tables_reset(void)
{
	empty_tables();
	tr_regions_reset();
	nfrags = nexits = nlens = 0;
}

static bool other_threads(const struct tr_ctx *self)
{
	for (struct tr_ctx *c = tr.contexts; c; c = c->next)
		if (c != self && c->alive && !c->native)
			return true;
	return false;
}

static void drop_all(bool others)
{
	empty_tables();
	for (uint32_t i = 0; i < nexits; i++) {
		if (exits[i].linked && exits[i].patch)
			patch(exits[i].patch, exits[i].stub);
		exits[i].linked = 0;
		exits[i].body = NULL;
	}
	__atomic_store_n(&tr.generation, tr.generation + 1, __ATOMIC_RELEASE);
	tr.unsettled = others;
	if (!others) {
		tr_regions_reset();
		nexits = nlens = 0;
	}
	record_drop();
}

void tr_drop_all(void)
{
	drop_all(other_threads(tr_self()));
}

void tr_drop_all_inside(void)
{
	drop_all(true);
}
