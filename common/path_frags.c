/* The fragment table of a trace. */
#include "common/path.h"

#include <inttypes.h>
#include <string.h>

struct path_frags {
	/* Index id - 1; entries with rec NULL are ids that were never written. */
	VEC(struct path_frag) frags;
	/* Open addressing by pc: id of the youngest fragment there, 0 empty. */
	uint32_t *by_pc;
	size_t mask;
	/* While loading: all before this index are dropped, and the largest id
	 * there can be. */
	size_t alive;
	uint64_t max_id;
};

uint32_t path_frag_count(const struct path_frags *f)
{
	return (uint32_t)f->frags.n;
}

const struct path_frag *path_frag_by_id(const struct path_frags *f, uint32_t id)
{
	if (!id || id > f->frags.n || !f->frags.v[id - 1].rec)
		return NULL;
	return &f->frags.v[id - 1];
}

static size_t slot_of(const struct path_frags *f, uint64_t pc)
{
	size_t i = (size_t)((pc * 0x9e3779b97f4a7c15ull) >> 32) & f->mask;

	while (f->by_pc[i] && f->frags.v[f->by_pc[i] - 1].pc != pc)
		i = (i + 1) & f->mask;
	return i;
}

const struct path_frag *path_frag_at(const struct path_frags *f, uint64_t pc, uint64_t generation)
{
	const struct path_frag *later = NULL, *earlier = NULL;

	if (!f->by_pc)
		return NULL;
	/* From young to old. */
	for (uint32_t id = f->by_pc[slot_of(f, pc)]; id;) {
		const struct path_frag *g = &f->frags.v[id - 1];

		if (g->generation > generation)
			later = g;
		else if (g->dropped > generation)
			return g;
		else if (!earlier)
			earlier = g; /* left when its successor noted the new generation */
		id = g->older;
	}
	return later ? later : earlier;
}

static void index_by_pc(struct path_frags *f)
{
	size_t size = 16;

	while (size < f->frags.n * 2)
		size *= 2;
	f->by_pc = xcalloc(size, sizeof *f->by_pc);
	f->mask = size - 1;
	for (size_t i = 0; i < f->frags.n; i++) {
		struct path_frag *g = &f->frags.v[i];

		if (!g->rec)
			continue;
		uint32_t *slot = &f->by_pc[slot_of(f, g->pc)];
		uint32_t *link = slot;

		/* Ids grow with time, generations nearly always too: the walk
		 * that keeps the list sorted is short. */
		while (*link && f->frags.v[*link - 1].generation > g->generation)
			link = &f->frags.v[*link - 1].older;
		g->older = *link;
		*link = g->id;
	}
}

static err_t add(struct path_frags *f, const struct trc *t, const struct trc_fragment *rec)
{
	/* Ids are dense but for records lost in a killed run: what the stream
	 * can hold bounds them, and what a hostile one makes us allocate. */
	if (rec->id > f->max_id)
		return err_new(ERR_INPUT, "%s: damaged: fragment %" PRIu32 " follows %zu",
			       t->frags->label, rec->id, f->frags.n);
	while (f->frags.n < rec->id)
		vec_push(&f->frags, (struct path_frag){ 0 });
	struct path_frag *g = &f->frags.v[rec->id - 1];
	if (g->rec)
		return err_new(ERR_INPUT, "%s: damaged: fragment %" PRIu32 " is there twice",
			       t->frags->label, rec->id);
	*g = (struct path_frag){ .rec = rec, .pc = rec->pc, .generation = rec->generation,
				 .dropped = PATH_ALIVE, .id = rec->id };
	return NULL;
}

/* Does the fragment hold code in [start, end)? Its ends are all that is known. */
static bool overlaps(const struct path_frag *g, uint64_t start, uint64_t end)
{
	const struct trc_side *side = trc_fragment_sides(g->rec);

	if ((g->pc >= start && g->pc < end) ||
	    (g->rec->last_pc >= start && g->rec->last_pc < end))
		return true;
	for (uint32_t i = 0; i < g->rec->nsides; i++)
		if (side[i].pc >= start && side[i].pc < end)
			return true;
	return false;
}

static void drop(struct path_frags *f, const struct trc_dropped *d)
{
	/* A program that unmaps much drops often: look only at what may live. */
	for (size_t i = f->alive; i < f->frags.n; i++) {
		struct path_frag *g = &f->frags.v[i];

		if (g->rec && g->generation < d->generation && g->dropped == PATH_ALIVE &&
		    overlaps(g, d->start, d->end))
			g->dropped = d->generation;
		if (i == f->alive && g->rec && g->dropped != PATH_ALIVE)
			f->alive++;
	}
}

static err_t load(struct path_frags *f, struct trc *t)
{
	struct trc_iter it;
	const struct trc_rec *rec;

	f->max_id = t->frags ? t->frags->size / sizeof(struct trc_fragment) + (1u << 16) : 0;
	trc_iter_init(&it, t->frags);
	for (;;) {
		TRY(trc_next(&it, &rec));
		if (!rec)
			break;
		if (rec->type == TRC_FRAGMENT)
			TRY(add(f, t, (const void *)rec));
		else if (rec->type == TRC_DROPPED)
			drop(f, (const void *)rec);
	}
	index_by_pc(f);
	return NULL;
}

err_t path_frags_load(struct trc *t, struct path_frags **out)
{
	struct path_frags *f = xcalloc(1, sizeof *f);
	err_t e = load(f, t);

	*out = NULL;
	if (e) {
		path_frags_free(f);
		return e;
	}
	*out = f;
	return NULL;
}

void path_frags_free(struct path_frags *f)
{
	if (!f)
		return;
	vec_free(&f->frags);
	free(f->by_pc);
	free(f);
}
