#include "analyzer/cmd/dump_path.h"

#include <inttypes.h>

static const char *const exit_names[] = {
	[PATH_SIDE] = "taken", [PATH_FALL] = "on", [PATH_INDIRECT] = "indirect", [PATH_ASTRAY] = "astray",
	[PATH_STOP] = "stop", [PATH_CUT] = "cut",
};

static void dump_item(struct dump *d, const struct path_item *it)
{
	if (it->item->kind == TRC_ITEM_ORDER) {
		dump_uint(d, d->json ? NULL : "ticket", it->ticket);
		return;
	}
	struct strbuf b = { 0 };

	for (uint32_t i = 0; i < it->length; i++)
		strbuf_fmt(&b, "%02x", it->value[i]);
	if (d->json)
		json_str(d->json, NULL, b.s ? b.s : "");
	else
		fprintf(d->show.term.f, " value=%s", b.s ? b.s : "");
	strbuf_free(&b);
}

static void dump_step(struct dump *d, const char *id, const struct path_step *s)
{
	dump_begin(d, id, "path");
	dump_uint(d, "pos", s->pos);
	dump_uint(d, "fragment", s->frag->id);
	dump_place(d, "pc", s->frag->pc, false);
	if (d->json)
		json_array(d->json, "items");
	for (uint32_t i = 0; i < s->nitems; i++)
		dump_item(d, &s->items[i]);
	if (d->json)
		json_end(d->json);
	dump_word(d, "exit", exit_names[s->exit]);
	/* The branches before the one that was taken fell through. */
	if (s->exit == PATH_SIDE || s->exit == PATH_ASTRAY) {
		dump_uint(d, "side", s->side);
		dump_place(d, "branch", trc_fragment_sides(s->frag->rec)[s->side].pc, false);
	}
	if (s->next_pc)
		dump_place(d, "next", s->next_pc, false);
	dump_end(d);
}

err_t dump_path(struct dump *d, const struct path_frags *frags,
		const struct trc_thread_info *thread)
{
	const char *id = trc_thread_id(d->show.t, thread->index);
	struct path_walk w;
	struct path_step step;
	bool done = false;
	err_t e = path_walk_init(&w, d->show.t, frags, thread);

	while (!e && !done) {
		e = path_walk_next(&w, &step, NULL, &done);
		if (!e && !done)
			dump_step(d, id, &step);
	}
	if (!e && w.why) {
		dump_begin(d, id, "path-end");
		dump_uint(d, "pos", w.cursor.pos);
		dump_word(d, "why", w.why);
		dump_end(d);
	}
	path_walk_free(&w);
	return e;
}
