/* The fragment table and the walk: generations, signals, spins, and what cannot be. */
#include "common/path.h"
#include "tests/lib/check.h"
#include "tests/lib/trace_writer.h"

#include <sys/syscall.h>

#define DIR_NAME "path.csched"
#define A 0x1000ull
#define B 0x2000ull
#define C 0x3000ull

/* One thread that starts at A; the caller adds records, fragments and bytes. */
struct scene {
	struct tw rec, path, frags;
};

static void begin(struct scene *s)
{
	tw_open(&s->rec, TRC_STREAM_THREAD, 0, 4096);
	tw_open(&s->path, TRC_STREAM_PATH, 0, 256);
	tw_open(&s->frags, TRC_STREAM_FRAGS, 0, 4096);
	struct trc_start *start = tw_rec(&s->rec, TRC_START, 0, sizeof *start);
	start->regs[TRC_RIP] = A;
}

static struct trc_fragment *frag(struct scene *s, uint32_t id, unsigned kind, uint64_t pc,
				 uint64_t next, uint64_t side, uint64_t generation)
{
	struct trc_side one = { pc + 4, side };

	tw_fragment(&s->frags, id, kind, pc, next, &one, side ? 1 : 0, NULL, 0);
	/* tw_fragment leaves the record as the last one. */
	size_t size = sizeof(struct trc_fragment) + (side ? sizeof one : 0);
	struct trc_fragment *f = (void *)(s->frags.data + s->frags.chunk + 64 + s->frags.used - size);
	f->generation = generation;
	return f;
}

static void call(struct scene *s, unsigned number, int64_t result, uint64_t pc)
{
	struct trc_enter *e = tw_rec(&s->rec, TRC_ENTER, number, sizeof *e);

	e->pc = pc;
	struct trc_leave *l = tw_rec(&s->rec, TRC_LEAVE, number, sizeof *l);
	l->result = result;
	l->thread = UINT32_MAX;
}

/* Saves the scene and walks it: the visited fragments as text, "12!" ends in an error. */
static const char *walk(struct scene *s)
{
	static char text[256];
	struct tw process;
	struct trc *t;
	struct path_frags *frags = NULL;
	struct path_walk w = { 0 };
	struct path_step step;
	bool done = false;
	size_t n = 0;

	mkdir(DIR_NAME, 0700);
	tw_open(&process, TRC_STREAM_PROCESS, 0, 256);
	tw_kv(&process, "pid", "1");
	tw_thread(&process, 0, 0, 0);
	tw_save(&process, DIR_NAME, "process");
	tw_save(&s->rec, DIR_NAME, "t0.rec");
	tw_save(&s->path, DIR_NAME, "t0.path");
	tw_save(&s->frags, DIR_NAME, "frags");
	text[0] = 0;
	err_t e = trc_open(DIR_NAME, 0, &t);
	if (!e)
		e = path_frags_load(t, &frags);
	if (!e)
		e = path_walk_init(&w, t, frags, &t->threads.v[0]);
	while (!e && !done && n < 64) {
		e = path_walk_next(&w, &step, NULL, &done);
		if (!e && !done)
			text[n++] = (char)('0' + step.frag->id);
	}
	if (e)
		text[n++] = '!';
	else if (!done)
		text[n++] = '?';
	text[n] = 0;
	err_free(e);
	path_walk_free(&w);
	path_frags_free(frags);
	trc_close(t);
	return text;
}

static void expect(struct scene *s, const char *want, const char *what)
{
	const char *got = walk(s);

	CHECK(!strcmp(got, want), "%s (%s)", what, got);
}

static void loops(void)
{
	struct scene s;

	begin(&s);
	frag(&s, 1, TRC_FRAG_DIRECT, A, B, B, 0);
	frag(&s, 2, TRC_FRAG_DIRECT, B, A, 0, 0);
	tw_bytes(&s.path, "\1\1\2", 3);
	expect(&s, "1212121", "round and round, until the bytes end");

	begin(&s);
	frag(&s, 1, TRC_FRAG_DIRECT, A, A, 0, 0);
	expect(&s, "11", "a thread that spins without leaving bytes ends");

	begin(&s);
	frag(&s, 1, TRC_FRAG_SYSCALL, A, B, 0, 0);
	frag(&s, 2, TRC_FRAG_DIRECT, B, A, 0, 0);
	for (int i = 0; i < 5; i++)
		call(&s, SYS_pause, -4, A + 8);
	expect(&s, "12121212121", "a loop of system calls goes on as long as its records");
}

static void generations(void)
{
	struct scene s;

	begin(&s);
	frag(&s, 1, TRC_FRAG_DIRECT, A, B, B, 0);
	frag(&s, 2, TRC_FRAG_DIRECT, B, A, A, 0);
	struct trc_dropped *d = tw_rec(&s.frags, TRC_DROPPED, 0, sizeof *d);
	d->generation = 1;
	d->start = B;
	d->end = B + 0x100;
	frag(&s, 3, TRC_FRAG_DIRECT, B, A, A, 1);
	struct trc_generation *g = tw_rec(&s.rec, TRC_GENERATION, 0, sizeof *g);
	g->generation = 1;
	g->path_pos = 2;
	tw_bytes(&s.path, "\1\1\1\1", 4);
	expect(&s, "12131", "a dropped fragment is replaced where the thread says so");

	begin(&s);
	frag(&s, 1, TRC_FRAG_DIRECT, A, B, 0, 0);
	frag(&s, 2, TRC_FRAG_DIRECT, B, A, A, 0);
	d = tw_rec(&s.frags, TRC_DROPPED, 0, sizeof *d);
	d->generation = 1;
	d->end = UINT64_MAX;
	frag(&s, 3, TRC_FRAG_DIRECT, A, C, C, 1);
	frag(&s, 4, TRC_FRAG_DIRECT, B, A, A, 1);
	g = tw_rec(&s.rec, TRC_GENERATION, 0, sizeof *g);
	g->generation = 1;
	g->path_pos = 1;
	g->pc = B;
	tw_bytes(&s.path, "\1\1", 2);
	expect(&s, "12143", "a generation begins behind a fragment that leaves no byte");

	begin(&s);
	frag(&s, 1, TRC_FRAG_DIRECT, A, B, B, 0);
	frag(&s, 2, TRC_FRAG_DIRECT, B, A, A, 5);
	tw_bytes(&s.path, "\1\1", 2);
	expect(&s, "121", "a fragment of a later generation serves when there is no other");
}

static void guesses(void)
{
	struct scene s;

	/* A follows its indirect branch to C, and ends in a jump to B. */
	begin(&s);
	frag(&s, 1, TRC_FRAG_DIRECT, A, B, C, 0)->guessed = 1;
	frag(&s, 2, TRC_FRAG_DIRECT, B, A, 0, 0);
	frag(&s, 3, TRC_FRAG_DIRECT, C + 8, A, 0, 0);
	tw_bytes(&s.path, "\2\1\x83\0\2", 5);
	expect(&s, "1213121", "an indirect branch goes where it usually goes, or says where");

	begin(&s);
	frag(&s, 1, TRC_FRAG_DIRECT, A, B, C, 0)->guessed = 1;
	frag(&s, 2, TRC_FRAG_DIRECT, B, A, 0, 0);
	tw_bytes(&s.path, "\1\2", 2);
	expect(&s, "!", "an indirect branch that went elsewhere, and nobody says where");

	begin(&s);
	frag(&s, 1, TRC_FRAG_DIRECT, A, B, C, 0)->guessed = 1;
	tw_bytes(&s.path, "\1", 1);
	expect(&s, "1", "killed between the two");
}

/* A ends in an indirect branch that goes to B, which leaves one byte, or elsewhere. */
static void cases(void)
{
	struct scene s;

	begin(&s);
	frag(&s, 1, TRC_FRAG_INDIRECT, A, 0, B, 0)->cases = 1;
	frag(&s, 2, TRC_FRAG_DIRECT, B, A, 0, 0);
	frag(&s, 3, TRC_FRAG_DIRECT, C, A, 0, 0);
	tw_bytes(&s.path, "\1\x83\0\1", 4);
	expect(&s, "1213121", "an indirect branch goes one of the ways that are looked for, or says where");

	begin(&s);
	frag(&s, 1, TRC_FRAG_INDIRECT, A, 0, B, 0)->cases = 1;
	tw_bytes(&s.path, "\2", 1);
	expect(&s, "!", "a way that is not among them");

	begin(&s);
	frag(&s, 1, TRC_FRAG_INDIRECT, A, 0, B, 0)->cases = 3;
	expect(&s, "!", "more ways than side exits");

	begin(&s);
	struct trc_fragment *f = frag(&s, 1, TRC_FRAG_INDIRECT, A, 0, B, 0);
	f->cases = f->guessed = 1;
	expect(&s, "!", "a way that is followed and left");
}

static void signals(void)
{
	struct scene s;

	begin(&s);
	frag(&s, 1, TRC_FRAG_DIRECT, A, B, B, 0);
	frag(&s, 2, TRC_FRAG_DIRECT, B, A, A, 0);
	frag(&s, 3, TRC_FRAG_SYSCALL, C, 0, 0, 0);
	struct trc_signal *g = tw_rec(&s.rec, TRC_SIGNAL, 10, sizeof *g);
	g->path_pos = 1;
	g->interrupted_pc = B;
	g->regs[TRC_RIP] = C;
	call(&s, SYS_rt_sigreturn, (int64_t)B, C + 8);
	tw_bytes(&s.path, "\1\1", 2);
	expect(&s, "1321", "a handler runs between two fragments and returns");
}

static void impossible(void)
{
	struct scene s;

	begin(&s);
	frag(&s, 1, TRC_FRAG_DIRECT, A, B, B, 0);
	tw_bytes(&s.path, "\3", 1);
	expect(&s, "!", "a side exit the fragment does not have");

	begin(&s);
	frag(&s, 1, TRC_FRAG_INDIRECT, A, 0, 0, 0);
	tw_bytes(&s.path, "\x89\1\0\0", 4);
	expect(&s, "!", "an indirect branch to a fragment that does not exist");

	begin(&s);
	frag(&s, 1, TRC_FRAG_DIRECT, A, B, B, 0);
	tw_bytes(&s.path, "\1\1", 2);
	expect(&s, "1!", "a way to code that was never translated, with bytes left");

	begin(&s);
	frag(&s, 1, TRC_FRAG_DIRECT, A, B, B, 0);
	tw_bytes(&s.path, "\1", 1);
	expect(&s, "1", "the same as the last thing a killed thread did");

	begin(&s);
	frag(&s, 1, TRC_FRAG_DIRECT, A, B, B, 0);
	frag(&s, 1, TRC_FRAG_DIRECT, B, A, A, 0);
	expect(&s, "!", "a fragment that is there twice");
}

int main(void)
{
	loops();
	generations();
	guesses();
	cases();
	signals();
	impossible();
	CHECK_END();
}
