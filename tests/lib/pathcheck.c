/*
 * pathcheck TRACE: decodes the path of every thread completely. Prints one line
 * per thread; ends non-zero when bytes are left over, do not fit, or when the
 * failing thread's path does not end at the recorded pc.
 *
 * pathcheck --pcs TRACE: the addresses of thread 0's fragments and their
 * conditional branches, one line per fragment: for comparison with other views.
 */
#include "common/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int fail(err_t e)
{
	fprintf(stderr, "pathcheck: %s\n", e->msg);
	err_free(e);
	return 1;
}

static err_t walk(struct trc *t, const struct path_frags *frags, struct trc_thread_info *ti,
		  int print, int *bad)
{
	struct path_walk w;
	struct path_step step;
	uint64_t steps = 0, insns = 0, end = 0, last_pc = 0, last_next = 0, tickets = 0;
	bool done = false;

	TRY(path_walk_init(&w, t, frags, ti));
	while (!done) {
		err_t e = path_walk_next(&w, &step, NULL, &done);

		if (e) {
			path_walk_free(&w);
			return e;
		}
		if (done)
			break;
		steps++;
		insns += step.frag->rec->ninsns;
		last_pc = step.frag->pc;
		last_next = step.next_pc;
		for (uint32_t i = 0; i < step.nitems; i++)
			tickets += step.items[i].item->kind == TRC_ITEM_ORDER;
		if (print)
			printf("%" PRIx64 " %u %d\n", step.frag->pc,
			       step.exit == PATH_SIDE ? step.side + 1 : 0, step.exit);
		end = w.cursor.pos;
	}
	uint64_t total = ti->path_stream ? trc_stream_bytes(ti->path_stream) : 0;

	if (!print)
		printf("%s: %" PRIu64 " fragments, at most %" PRIu64 " instructions, %" PRIu64
		       " tickets, %" PRIu64 " of %" PRIu64 " bytes, last %" PRIx64 " -> %" PRIx64
		       "%s%s\n", trc_thread_id(t, ti->index), steps, insns, tickets, end, total, last_pc,
		       last_next, w.why ? ": " : "", w.why ? w.why : "");
	path_walk_free(&w);
	if (end == total)
		return NULL;
	/* An open last chunk ends at its first zero byte. */
	const uint8_t *bytes;
	size_t n;

	TRY(trc_bytes_at(ti->path_stream, end, &bytes, &n));
	if (!ti->path_stream->cut_off || (n && *bytes))
		*bad = 1;
	return NULL;
}

int main(int argc, char **argv)
{
	int print = argc > 1 && !strcmp(argv[1], "--pcs"), bad = 0;
	struct path_frags *frags;
	struct trc *t;
	err_t e = trc_open(argv[argc - 1], 0, &t);

	if (e)
		return fail(e);
	if ((e = path_frags_load(t, &frags)))
		return fail(e);
	for (size_t i = 0; i < (print ? 1 : t->threads.n); i++)
		if ((e = walk(t, frags, &t->threads.v[i], print, &bad))) {
			fprintf(stderr, "%s: ", trc_thread_id(t, t->threads.v[i].index));
			bad = 1;
			fail(e);
		}
	path_frags_free(frags);
	trc_close(t);
	return bad;
}
