/* Schedule files: what is written is read again; what is no schedule is refused. */
#include "analyzer/enforce/schedule.h"
#include "tests/lib/check.h"

#include <string.h>
#include <unistd.h>

static const char good[] = "csched-schedule 1\n"
			   "# build app 00ff\n"
			   "process 2.1\n"
			   "edge 0 T0.1 app 11a6 3 after T0.2 app 1219 1 before\n"
			   "# at 0 source 2 46 dir with blanks/app.c\n"
			   "# in 0 source ns::f(int, char)\n"
			   "# text 0 source x = y; /* so */\n"
			   "edge 7 T0 lib.so 40 1 before T0.1.2 app ffffffffffffffff 18446744073709551615 after\n"
			   "edge 8 T0.1 app 10 1 inside T0.2 app 20 2 again\n"
			   "edge 9 T0.1 app 10 1 middle T0.2 app 20 2 middle\n"
			   "edge 10 T0.1 app 10 1 after * - 0 1 after\n"
			   "meet 11 T0.1 app 10 0 before T0.2 app 20 0 before\n"
			   "then 12 T0.1 app 10 0 after T0.2 app 30 0 before\n"
			   "yield\n"
			   "turn 0 T0.2 app 1219 1 after\n"
			   "# at 0 turn 1 47 app.c\n"
			   "# in 0 turn main\n"
			   "turn 1 T0.3 - 0 1 after\n";

static char path[] = "/tmp/csched-test.XXXXXX";

static err_t read_text(const char *text, struct schedule *s)
{
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
	return schedule_read(path, s);
}

static char *written(const struct schedule *s)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	schedule_write(s, f);
	fclose(f);
	return text;
}

static void reads(void)
{
	struct schedule s;
	err_t e = read_text(good, &s);

	if (!CHECK(!e && s.edges.n == 7 && schedule_edge(&s, 11)->meet && schedule_edge(&s, 12)->then && s.yields && s.turns.n == 2 && s.builds.n == 1,
		   "a schedule is read"))
		return;
	const struct schedule_edge *x = schedule_edge(&s, 0), *y = schedule_edge(&s, 7);
	CHECK(x && !strcmp(x->source.thread, "T0.1") && x->source.offset == 0x11a6 && x->source.n == 3 &&
	      x->source.after && !x->target.after, "an edge has its ends");
	CHECK(x && x->source.place.ordinal == 2 && x->source.place.line == 46 &&
	      !strcmp(x->source.place.file, "dir with blanks/app.c") &&
	      !strcmp(x->source.place.function, "ns::f(int, char)") &&
	      !strcmp(x->source.place.text, "x = y; /* so */"), "and its place, blanks and all");
	CHECK(y && y->target.offset == UINT64_MAX && y->target.n == UINT64_MAX && !y->target.place.file,
	      "the largest numbers fit; a place may be missing");
	char *text = y ? schedule_end_text(&x->source) : NULL;
	CHECK(text && !strcmp(text, "T0.1 after app.c:46 (execution 3)"), "an end in words");
	free(text);
	CHECK(schedule_edge(&s, 8)->target.again && schedule_edge(&s, 8)->source.inside && s.turns.v[0].after && s.turns.v[0].place.line == 47 &&
	      !strcmp(s.turns.v[1].module, "-"), "waits inside a call, and turns with their places");
	CHECK(s.process && !strcmp(s.process, "2.1"), "which process it is for");
	CHECK(schedule_edge(&s, 9)->source.middle && schedule_edge(&s, 9)->target.middle,
	      "and waits between the halves of an instruction");
	char *first = written(&s);
	schedule_free(&s);
	e = read_text(first, &s);
	char *second = e ? NULL : written(&s);
	CHECK(!e && !strcmp(first, second), "written and read it is the same");
	free(first);
	free(second);
	err_free(e);
	schedule_free(&s);
}

static void refuses(void)
{
	static const char *const bad[] = {
		"", "csched-schedule 2\nedge 0 T0 a 1 1 after T1 a 1 1 before\n",
		"csched-schedule 1\n", "csched-schedule 1\nedge\n",
		"csched-schedule 1\nedge 0 T0 a 1 1 after\n",
		"csched-schedule 1\nedge 0 T0 a zz 1 after T1 a 1 1 before\n",
		"csched-schedule 1\nedge 0 T0 a 1 -1 after T1 a 1 1 before\n",
		"csched-schedule 1\nedge 0 T0 a 1 1 behind T1 a 1 1 before\n",
		"csched-schedule 1\nnonsense\n",
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct schedule s;
		err_t e = read_text(bad[i], &s);

		CHECK(e && e->code == ERR_INPUT, "refused: case %zu", i);
		if (!e)
			schedule_free(&s);
		err_free(e);
	}
}

/* Names come from a trace: whatever they hold, a line stays a line, a word a word, and they come back as they were. */
static void strange_names(void)
{
	static const char *const names[] = {
		"a b", "x\nprocess 1\nedge 0 T0 a 1 1 after T1 a 1 1 before", "100%", "%41%0a", "\xff\xfe", "caf\xc3\xa9",
		"\x1b[2J", "#", "", " lead", "trail ", "\t", "\r\n", "%",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char *name = (char *)names[i];
		struct schedule s = { 0 }, got;
		struct schedule_end end = { .thread = name, .module = name, .offset = 16, .n = 1 };

		end.place = (struct place){ .function = name, .file = name, .text = name, .line = 3 };
		vec_push(&s.edges, (struct schedule_edge){ .source = end, .target = end });
		vec_push(&s.turns, end);
		vec_push(&s.builds, (struct schedule_build){ name, name });
		s.process = name;
		char *text = written(&s);
		size_t lines = 0;
		for (char *p = text; *p; p++)
			lines += *p == '\n';
		CHECK(lines == 14 && !strchr(text, '\x1b') && !strchr(text, '\t'), "name %zu: lines stay lines", i);
		err_t e = read_text(text, &got);
		bool good = !e && got.edges.n == 1 && got.turns.n == 1 && got.builds.n == 1 && got.process &&
			    !strcmp(got.process, name) && !strcmp(got.builds.v[0].module, name) &&
			    !strcmp(got.builds.v[0].build_id, name);
		const struct schedule_end *ends[] = { good ? &got.edges.v[0].source : NULL,
						      good ? &got.edges.v[0].target : NULL, good ? &got.turns.v[0] : NULL };
		for (size_t k = 0; k < 3 && good; k++)
			good = !strcmp(ends[k]->thread, name) && !strcmp(ends[k]->module, name) && ends[k]->place.file &&
			       !strcmp(ends[k]->place.file, name) && !strcmp(ends[k]->place.function, name) &&
			       !strcmp(ends[k]->place.text, name);
		CHECK(good, "name %zu: comes back as it was", i);
		if (!e)
			schedule_free(&got);
		err_free(e);
		free(text);
		vec_free(&s.edges);
		vec_free(&s.turns);
		vec_free(&s.builds);
	}
}

/* Remarks are help: strange ones are skipped. */
static void skips(void)
{
	struct schedule s;
	err_t e = read_text("csched-schedule 1\n#\n# \n# at\n# at 9 source 1 1 f\n# build x\n# text 0\n"
			    "edge 0 T0 a 1 1 after T1 a 1 1 before\n# at 0 source x y z\n# in 0\n", &s);

	CHECK(!e && s.edges.n == 1 && !s.edges.v[0].source.place.file, "strange remarks are skipped");
	if (!e)
		schedule_free(&s);
	err_free(e);
}

int main(void)
{
	close(mkstemp(path));
	reads();
	refuses();
	skips();
	strange_names();
	unlink(path);
	CHECK_END();
}
