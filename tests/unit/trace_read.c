/* The reader against traces written by the letter of the format. */
#include "common/path.h"
#include "common/trace_read.h"
#include "tests/lib/check.h"
#include "tests/lib/trace_writer.h"

#include <fcntl.h>
#include <unistd.h>

#define DIR_NAME "sample.csched"

static uint64_t count(struct trc_stream_file *s, err_t *e)
{
	uint64_t n = 0;

	*e = trc_verify(s, &n);
	return n;
}

static void a_whole_trace(void)
{
	struct trc *t;
	err_t e = trc_open(DIR_NAME "/", 0, &t);

	if (!CHECK(!e, "a valid trace opens (%s)", e ? e->msg : "")) {
		err_free(e);
		return;
	}
	CHECK(t->threads.n == 3, "it has three threads");
	CHECK(!strcmp(trc_thread_id(t, 0), "T0") && !strcmp(trc_thread_id(t, 2), "T0.2"),
	      "threads have stable names");
	CHECK(!strcmp(trc_thread_id(t, 99), "T?"), "a thread that does not exist has none");
	CHECK(t->threads.v[1].name && !strcmp(t->threads.v[1].name, "worker"),
	      "a thread's own name is known");
	CHECK(!strcmp(trc_identity(t, "command"), "./abba 1 2"), "identity values are readable");
	CHECK(trc_identity_uint(t, "pid", 0) == 4242 && trc_identity_uint(t, "cwd", 7) == 7,
	      "numbers among them too, and what is no number is told apart");
	CHECK(trc_seconds(t, 1500) > 4.9e-7 && trc_seconds(t, 1500) < 5.1e-7,
	      "time stamps become seconds");
	CHECK(t->failure && t->failure->rec.flags == TRC_FAIL_DEADLOCK && t->blocked.n == 2 &&
		      t->stacks.n == 1 && t->end,
	      "the failure, the blocked threads, a stack and the end are there");
	CHECK(t->children.n == 1 && t->exec, "child and exec too; what was withdrawn is gone");
	CHECK(t->modules.n == 1 && t->notes.n == 1, "module and note too");
	uint64_t n = count(t->threads.v[1].rec_stream, &e);
	CHECK(!e && n == 1 + 40 + 15, "every record of a thread comes out (%d)", (int)n);
	CHECK(t->threads.v[1].rec_stream->cut_off && !t->process->cut_off,
	      "an open last chunk is told from a sealed one");
	CHECK(t->threads.v[1].rec_stream->spans.n > 3, "it spans several chunks");
	trc_close(t);
}

static void the_path(void)
{
	struct trc *t;
	struct path_frags *frags;
	struct path_walk w;
	struct path_step step;
	static const uint64_t want[] = { 0x401100, 0x401110, 0x401120, 0x401100, 0x401120,
					 0x401100 };
	static const enum path_exit exits[] = { PATH_FALL, PATH_SIDE, PATH_INDIRECT, PATH_SIDE,
						PATH_INDIRECT, PATH_CUT };
	bool done, same = true;
	size_t n = 0;
	err_t e = trc_open(DIR_NAME, 0, &t);

	CHECK(!e && !path_frags_load(t, &frags), "the fragment table loads");
	CHECK(path_frag_count(frags) == 3 && !path_frag_by_id(frags, 0) &&
		      !path_frag_by_id(frags, 4) && path_frag_by_id(frags, 3)->pc == 0x401120,
	      "fragments by id");
	CHECK(path_frag_at(frags, 0x401110, 0)->id == 2 && !path_frag_at(frags, 0x401111, 0),
	      "fragments by address");
	CHECK(!path_walk_init(&w, t, frags, &t->threads.v[1]), "a walk begins at the start record");
	uint32_t ticket = 0;
	uint16_t value = 0;
	while (!(e = path_walk_next(&w, &step, NULL, &done)) && !done && n < 6) {
		same &= step.frag->pc == want[n] && step.exit == exits[n];
		if (n == 1)
			ticket = step.items[0].ticket;
		if (n == 2)
			memcpy(&value, step.items[0].value, 2);
		n++;
	}
	CHECK(!e && n == 6 && same, "six fragments, each left as recorded (%s)", e ? e->msg : "");
	CHECK(ticket == 3 && value == 0x0900, "tickets and values come out, across chunks");
	err_free(e);
	path_walk_free(&w);
	path_frags_free(frags);
	trc_close(t);
}

/* A ticket that is one more than the last, whoever wrote that one whole. */
static void short_tickets(void)
{
	static const uint8_t bytes[] = { 2, 7, 0, 0, 0, 1, 1, 0x81, 0, 2, TRC_TICKET_NEXT, 1, 1, 0x81, 0,
					 2, TRC_TICKET_NEXT, 1, 1, 0x81, 0, 2, 4, 1 };
	struct tw w;
	struct trc *t;
	struct path_frags *frags;
	struct path_walk walk;
	struct path_step step;
	uint32_t want = 3;
	bool done, same = true;

	tw_open(&w, TRC_STREAM_PATH, 1, 16);
	tw_bytes(&w, bytes, sizeof bytes);
	tw_save(&w, DIR_NAME, "t1.path");
	err_t e = trc_open(DIR_NAME, 0, &t);

	CHECK(!e && !path_frags_load(t, &frags) && !path_walk_init(&walk, t, frags, &t->threads.v[1]),
	      "a path with short tickets opens");
	while (!(e = path_walk_next(&walk, &step, NULL, &done)) && !done)
		for (uint32_t i = 0; i < step.nitems; i++)
			if (step.items[i].item->kind == TRC_ITEM_ORDER)
				same &= step.items[i].ticket == want++;
	CHECK(same && want == 6, "a short ticket is one more than the one before it");
	CHECK(e && strstr(e->msg, "no ticket where one is due"), "what is neither is damage (%s)", e ? e->msg : "");
	err_free(e);
	path_walk_free(&walk);
	path_frags_free(frags);
	trc_close(t);
	tw_sample(DIR_NAME);
}

/* ---- damage: each row breaks one file in one way ---- */

static void patch(const char *name, long offset, const void *bytes, size_t n)
{
	char path[256];

	snprintf(path, sizeof path, DIR_NAME "/%s", name);
	int fd = open(path, O_WRONLY);
	if (fd < 0 || pwrite(fd, bytes, n, offset) != (ssize_t)n)
		printf("not ok cannot patch %s\n", path);
	close(fd);
}

static void cut(const char *name, long size)
{
	char path[256];

	snprintf(path, sizeof path, DIR_NAME "/%s", name);
	if (truncate(path, size))
		printf("not ok cannot truncate %s\n", path);
}

static struct trc_chunk header_of(const char *name)
{
	struct trc_chunk h = { 0 };
	char path[256];

	snprintf(path, sizeof path, DIR_NAME "/%s", name);
	int fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, &h, sizeof h) != sizeof h)
		printf("not ok cannot read %s\n", path);
	close(fd);
	return h;
}

static void put_header(const char *name, struct trc_chunk h)
{
	h.header_sum = trc_checksum(&h, offsetof(struct trc_chunk, header_sum));
	patch(name, 0, &h, sizeof h);
}

/* Opens strictly, then reads every stream; the first error. */
static err_t read_all(void)
{
	struct trc *t;
	err_t e = trc_open(DIR_NAME, 0, &t);

	if (e)
		return e;
	for (size_t i = 0; i < t->streams.n && !e; i++)
		e = trc_verify(t->streams.v[i], NULL);
	trc_close(t);
	return e;
}

static void expect(const char *what, const char *part)
{
	err_t e = read_all();

	CHECK(e && e->code == ERR_INPUT && strstr(e->msg, part), "%s: \"%s\"", what,
	      e ? e->msg : "no error");
	err_free(e);
	tw_sample(DIR_NAME);
}

static void damage(void)
{
	struct trc_chunk h;
	struct trc_rec bad = { TRC_SYNC, 0xfff, 8 };

	patch("t1.rec", 64 + 20, "x", 1);
	expect("a flipped byte", "t1.rec: damaged: chunk 0 at offset 0: the checksum");
	patch("memory", 64 + 100, "x", 1);
	expect("a flipped byte in memory", "memory: damaged: chunk 0");
	h = header_of("t1.rec");
	h.version = TRC_VERSION + 1;
	put_header("t1.rec", h);
	expect("a foreign version", "format version 12, this csched reads versions 1 to 11");
	h.version = TRC_VERSION;
	h.thread = 2;
	put_header("t1.rec", h);
	expect("a stream of another thread", "another thread");
	h.thread = 1;
	h.sequence = 4;
	put_header("t1.rec", h);
	expect("a chunk out of order", "out of order");
	h.sequence = 0;
	h.capacity = 504;
	put_header("t1.rec", h);
	expect("a capacity that leads nowhere", "t1.rec: damaged: chunk");
	patch("t1.rec", 8, "\1\2", 2);
	expect("a header that was changed", "the header's checksum");
	cut("t0.rec", 300);
	expect("a truncated sealed chunk", "truncated");
	cut("process", 0);
	expect("an empty trace", "empty trace");
	unlink(DIR_NAME "/process");
	expect("no trace at all", "not a csched trace");
	/* In an open chunk there is no checksum: the records must speak. */
	struct tw w;
	tw_open(&w, TRC_STREAM_THREAD, 0, 64);
	tw_rec(&w, TRC_SYNC, TRC_OP_LOCK, sizeof(struct trc_sync));
	memcpy(w.data + 64, &bad, sizeof bad);
	tw_save(&w, DIR_NAME, "t0.rec");
	expect("a record too short for its type", "too short for its type");
	tw_open(&w, TRC_STREAM_THREAD, 0, 64);
	bad = (struct trc_rec){ TRC_SYNC, 0, 1 << 20 };
	memcpy(w.data + 64, &bad, sizeof bad);
	tw_save(&w, DIR_NAME, "t0.rec");
	expect("a record that leaves its chunk", "leaves its chunk");
	tw_open(&w, TRC_STREAM_THREAD, 0, 64);
	tw_rec(&w, TRC_FRAGMENT, 0, sizeof(struct trc_fragment));
	tw_save(&w, DIR_NAME, "t0.rec");
	expect("a record of another stream", "does not belong");
	tw_open(&w, TRC_STREAM_THREAD, 0, 512);
	tw_named(&w, TRC_OP_LOCK, 1, 2, 3, 5);
	tw_again(&w, 2, 6);
	tw_save(&w, DIR_NAME, "t0.rec");
	expect("a repetition of nothing", "one that was not recorded");
	tw_open(&w, TRC_STREAM_THREAD, 0, 512);
	tw_again(&w, 2, TRC_SYNC_SLOTS);
	tw_save(&w, DIR_NAME, "t0.rec");
	expect("a repetition of what cannot be", "an impossible number");
	tw_open(&w, TRC_STREAM_THREAD, 0, 512);
	tw_named(&w, TRC_OP_LOCK, 1, 2, 3, 5);
	tw_agains(&w, 5, "\5\6", 2);
	tw_save(&w, DIR_NAME, "t0.rec");
	expect("one of several repetitions is of nothing", "one that was not recorded");
	tw_open(&w, TRC_STREAM_THREAD, 0, 512);
	tw_agains(&w, 5, "\5\x80", 2);
	tw_save(&w, DIR_NAME, "t0.rec");
	expect("one of several repetitions cannot be", "an impossible number");
	tw_open(&w, TRC_STREAM_THREAD, 0, 512);
	tw_named(&w, TRC_OP_LOCK, 1, 2, 3, 5);
	tw_agains(&w, 5, "\5\377\5", 3);
	tw_save(&w, DIR_NAME, "t0.rec");
	expect("repetitions with a hole", "an impossible number");
	tw_open(&w, TRC_STREAM_THREAD, 0, 512);
	tw_named(&w, TRC_OP_LOCK, 1, 2, 3, TRC_SYNC_SLOTS);
	tw_save(&w, DIR_NAME, "t0.rec");
	expect("a number that cannot be", "an impossible number");
}

/* What a kill leaves is no damage. */
static void cut_off(void)
{
	struct trc *t;
	err_t e;
	struct tw w;

	tw_open(&w, TRC_STREAM_THREAD, 0, 4096);
	tw_sync(&w, TRC_OP_LOCK, TRC_AT_DONE, 1, 2, 3, UINT32_MAX);
	/* A record whose head was never stored. */
	struct trc_sync *s = tw_rec(&w, TRC_SYNC, 0, sizeof *s);
	s->tsc = 5;
	s->rec = (struct trc_rec){ 0 };
	tw_save(&w, DIR_NAME, "t0.rec");
	e = trc_open(DIR_NAME, 0, &t);
	uint64_t n = e ? 0 : count(t->threads.v[0].rec_stream, &e);
	CHECK(!e && n == 1 && t->threads.v[0].rec_stream->cut_off,
	      "a half written last record is left out");
	err_free(e);
	trc_close(t);
	tw_sample(DIR_NAME);

	cut("t2.path", 10);
	e = trc_open(DIR_NAME, 0, &t);
	CHECK(!e, "a file that ends inside a header does not spoil the others");
	e = trc_verify(t->threads.v[2].path_stream, NULL);
	CHECK(e && strstr(e->msg, "t2.path"), "and is reported when it is read");
	err_free(e);
	trc_close(t);
	tw_sample(DIR_NAME);

	cut("t2.path", 0);
	e = trc_open(DIR_NAME, 0, &t);
	CHECK(!e && t->threads.v[2].path_stream->cut_off &&
		      !trc_verify(t->threads.v[2].path_stream, NULL),
	      "an empty stream is a thread that was killed at birth");
	err_free(e);
	trc_close(t);
	tw_sample(DIR_NAME);
}

/* Repetitions are what they repeat, but for the time; kept ones stay when the iterator goes on. */
static void repetitions(void)
{
	struct tw w;
	struct trc *t;
	struct trc_iter it;
	const struct trc_rec *rec, *kept[20] = { NULL };
	int n = 0;

	tw_open(&w, TRC_STREAM_THREAD, 0, 4096);
	tw_named(&w, TRC_OP_LOCK, 1, 20, 3, 0);
	tw_named(&w, TRC_OP_UNLOCK, 2, 20, 4, 1);
	tw_again(&w, 3, 0);
	tw_again(&w, 4, 1);
	tw_named(&w, TRC_OP_LOCK, 5, 30, 3, 0);
	tw_again(&w, 6, 0);
	tw_again(&w, 0, 1);
	tw_again(&w, 0, 0);
	tw_agains(&w, 1, "\0", 1); /* zeros fill it up */
	tw_agains(&w, 0, "\1\0\1\0\1\0\1\0\1", 9);
	tw_save(&w, DIR_NAME, "t0.rec");
	err_t e = trc_open(DIR_NAME, 0, &t);

	trc_iter_init(&it, e ? NULL : t->threads.v[0].rec_stream);
	it.keep = true;
	while (!e && !(e = trc_next(&it, &rec)) && rec && n < 20)
		kept[n++] = rec;
	bool good = !e && n == 20;
	for (int i = 0; i < 20 && good; i++) {
		const struct trc_sync *s = (const void *)kept[i];
		bool unlock = i == 1 || i == 3 || (i >= 6 && i % 2 == (i < 10 ? 0 : 1));

		good = s->rec.type == TRC_SYNC && s->tsc == (i < 6 ? (uint64_t)i + 1 : 0) &&
		       s->rec.flags == (unlock ? TRC_OP_UNLOCK : TRC_OP_LOCK) &&
		       s->object == (i < 4 || unlock ? 20u : 30u) && s->thread == UINT32_MAX;
	}
	CHECK(good, "repetitions read as what they repeat (%s)", e ? e->msg : "");
	err_free(e);
	trc_close(t);
	tw_sample(DIR_NAME);
}

/* One record of very many: looked through again for each of them, it would take hours. */
static void many_repetitions(void)
{
	const size_t many = 8 << 20;
	char *slots = calloc(1, many);
	struct tw w;
	struct trc *t;
	struct trc_iter it;
	const struct trc_rec *rec;
	size_t n = 0;

	tw_open(&w, TRC_STREAM_THREAD, 0, many + 4096);
	tw_named(&w, TRC_OP_LOCK, 1, 20, 3, 0);
	tw_agains(&w, 0, slots, many);
	free(slots);
	tw_save(&w, DIR_NAME, "t0.rec");
	err_t e = trc_open(DIR_NAME, 0, &t);

	trc_iter_init(&it, e ? NULL : t->threads.v[0].rec_stream);
	while (!e && !(e = trc_next(&it, &rec)) && rec)
		n++;
	CHECK(!e && n == many + 2, "millions of repetitions in one record: %zu (%s)", n, e ? e->msg : "");
	err_free(e);
	trc_close(t);
	tw_sample(DIR_NAME);
}

/*
 * A stream of three chunks of two records each whose second chunk in the file is live and
 * has the last sequence number: what the shim leaves after emptying it once.
 */
static void live_stream(struct tw *w, uint32_t place)
{
	tw_open(w, TRC_STREAM_THREAD, 0, 2 * sizeof(struct trc_sync));
	for (int i = 0; i < 6; i++)
		tw_sync(w, TRC_OP_LOCK, TRC_AT_DONE, 1, (uint64_t)i, 3, UINT32_MAX);
	size_t len = 64 + w->capacity;
	uint8_t *swap = malloc(len);

	memcpy(swap, w->data + len, len);
	memcpy(w->data + len, w->data + 2 * len, len);
	memcpy(w->data + 2 * len, swap, len);
	free(swap);
	((struct trc_chunk *)(w->data + len))->place = place;
}

/* Objects are numbered: do they come in order, and how many? -1 no. */
static int in_order(err_t *e, bool *cut_off)
{
	struct trc *t;
	struct trc_iter it;
	const struct trc_rec *rec;
	int n = 0;

	*e = trc_open(DIR_NAME, 0, &t);
	if (*e)
		return -1;
	trc_iter_init(&it, t->threads.v[0].rec_stream);
	*cut_off = t->threads.v[0].rec_stream->cut_off;
	while (!(*e = trc_next(&it, &rec)) && rec && n >= 0)
		n = ((const struct trc_sync *)rec)->object == (uint64_t)n ? n + 1 : -1;
	trc_close(t);
	return n;
}

static void live_case(const char *what, const struct tw *w, size_t n, int want)
{
	struct tw saved = *w;
	err_t e;
	bool cut_off = false;

	saved.data = malloc(w->n);
	memcpy(saved.data, w->data, w->n);
	saved.n = n;
	tw_save(&saved, DIR_NAME, "t0.rec");
	int got = in_order(&e, &cut_off);

	CHECK(want < 0 ? !!e : !e && got == want && cut_off, "%s (%d: %s)", what, got,
	      e ? e->msg : "no error");
	err_free(e);
}

static void live_chunks(void)
{
	struct tw w;
	size_t len;

	live_stream(&w, TRC_PLACE_LIVE);
	len = 64 + w.capacity;
	live_case("a live chunk is read behind its predecessors", &w, w.n, 6);
	live_case("a stream whose live chunk's predecessor is missing is damaged", &w, 2 * len, -1);
	((struct trc_chunk *)(w.data + len))->place = TRC_PLACE_SEQUENCE;
	live_case("only a live chunk may be out of its place", &w, w.n, -1);

	/* Killed while the contents were being appended: the copy is at the end, or a part of it. */
	struct trc_chunk *h = (struct trc_chunk *)(w.data + len);
	h->place = TRC_PLACE_LIVE;
	h->sequence = 1;
	h->start = w.capacity;
	h->header_sum = trc_checksum(h, offsetof(struct trc_chunk, header_sum));
	memcpy(h + 1, w.data + 2 * len + 64, w.capacity);
	live_case("a whole copy of the live chunk is not read twice", &w, w.n, 4);
	live_case("half a copy of it is not read at all", &w, w.n - w.capacity / 2, 4);
	h->place = TRC_PLACE_MOVED;
	h->header_sum = 0;
	memset(h + 1, 0, w.capacity / 3);
	live_case("a chunk that has moved is read where it went", &w, w.n, 4);
	free(w.data);
	tw_sample(DIR_NAME);
}

static void tolerant(void)
{
	struct trc *t;
	struct tw w;
	err_t e;

	tw_open(&w, TRC_STREAM_PROCESS, 0, 64);
	tw_save(&w, DIR_NAME, "process");
	e = trc_open(DIR_NAME, 0, &t);
	CHECK(e && strstr(e->msg, "ended before it began"), "nothing recorded: nothing to explain");
	err_free(e);
	e = trc_open(DIR_NAME, TRC_TOLERANT, &t);
	CHECK(!e && t->process->cut_off, "but a run killed as the recording began can be looked at");
	trc_close(t);
	tw_sample(DIR_NAME);

	patch("process", 64 + 1024 + 64 + 20, "x", 1);
	e = trc_open(DIR_NAME, 0, &t);
	CHECK(e && strstr(e->msg, "process: damaged: chunk 1"), "a strict reader refuses damage");
	err_free(e);
	e = trc_open(DIR_NAME, TRC_TOLERANT, &t);
	CHECK(!e && t->damage && t->threads.n == 3 && trc_identity(t, "pid"),
	      "a tolerant one has what stands before it");
	err_free(e);
	trc_close(t);
	tw_sample(DIR_NAME);
}

/* Moves the first chunk of a file to the end of another. */
static void move_first(const char *from, const char *to)
{
	CHECK(tw_move_first(DIR_NAME, from, to), "%s: a first chunk", from);
}

static uint64_t records_of(enum trc_stream kind, uint32_t thread)
{
	struct trc *t;
	err_t e = trc_open(DIR_NAME, 0, &t);
	uint64_t n = e ? 0 : count(trc_stream(t, kind, thread), &e);

	CHECK(!e, "it opens: %s", e ? e->msg : "");
	err_free(e);
	trc_close(t);
	return n;
}

static void guests(void)
{
	uint64_t recs = records_of(TRC_STREAM_THREAD, 0), frags = records_of(TRC_STREAM_FRAGS, 0);
	struct stat st;

	stat(DIR_NAME "/process", &st);
	move_first("t0.rec", "process");
	move_first("frags", "process");
	CHECK(recs && records_of(TRC_STREAM_THREAD, 0) == recs && frags && records_of(TRC_STREAM_FRAGS, 0) == frags,
	      "streams that begin in the process stream's file are read as if in their own");
	patch("process", st.st_size + 64 + 20, "x", 1);
	expect("a flipped byte in a guest", "/process: damaged: chunk 0 at offset");
	move_first("memory", "frags");
	expect("a guest where there can be none", "frags: damaged");
	struct trc_chunk h = header_of("t0.rec");
	h.version = 5;
	put_header("t0.rec", h);
	move_first("t0.rec", "process");
	expect("a guest in an older format", "/process: damaged");
	struct tw w;
	for (int i = 0; i < 2; i++) {
		tw_open(&w, TRC_STREAM_THREAD, 0, 64);
		tw_save(&w, DIR_NAME, "t0.rec");
		move_first("t0.rec", "process");
	}
	expect("two guests of one stream", "out of order");
}

/* The first chunks of threads, among slots that nobody took. */
static void slots(void)
{
	uint64_t recs = records_of(TRC_STREAM_THREAD, 1), more = records_of(TRC_STREAM_THREAD, 2);
	struct trc_chunk h = header_of("t1.rec");

	tw_free_slot(DIR_NAME, TRC_STREAM_THREAD);
	move_first("t2.rec", "process");
	tw_free_slot(DIR_NAME, TRC_STREAM_PATH);
	move_first("t1.rec", "process");
	tw_free_slot(DIR_NAME, TRC_STREAM_THREAD);
	CHECK(recs && records_of(TRC_STREAM_THREAD, 1) == recs && more && records_of(TRC_STREAM_THREAD, 2) == more,
	      "streams of threads that begin in slots are read as if in their own files");
	move_first("t1.rec", "process");
	expect("a second chunk in a slot", "damaged");
	struct trc_chunk older = h;
	older.version = TRC_VERSION_SLOTS - 1;
	put_header("t1.rec", older);
	move_first("t1.rec", "process");
	expect("a slot in an older format", "/process: damaged");
	older = h;
	older.thread = TRC_MAX_THREADS;
	put_header("t1.rec", older);
	move_first("t1.rec", "process");
	expect("a slot of a thread that cannot be", "/process: damaged");
	patch("t1.rec", offsetof(struct trc_chunk, place), "\3", 1);
	expect("a slot in a file of its own", "t1.rec: damaged");
	h.capacity = 0;
	h.place = TRC_PLACE_FREE;
	put_header("t1.rec", h);
	move_first("t1.rec", "process");
	expect("a free slot without room", "/process: damaged");
}

int main(void)
{
	tw_sample(DIR_NAME);
	a_whole_trace();
	the_path();
	short_tickets();
	damage();
	cut_off();
	repetitions();
	many_repetitions();
	live_chunks();
	guests();
	slots();
	tolerant();
	CHECK_END();
}
