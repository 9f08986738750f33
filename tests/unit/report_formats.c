/*
 * Formats for tools and browsers, from one model; and the options that ask for them.
 * With a directory as argument: writes every format of every fixture there, and
 * its trace, for tests/program/report-*.
 */
#include "analyzer/report/report.h"
#include "analyzer/report/report_options.h"
#include "tests/lib/check.h"
#include "tests/lib/sym_fixture.h"

static const struct {
	const char *name;
	void (*make)(struct fixture *);
} fixtures[] = {
	{ "lost-update", fixture_lost_update },
	{ "check-then-act", fixture_check_then_act },
	{ "deadlock", fixture_deadlock },
	{ "use-before-init", fixture_use_before_init },
	{ "teardown", fixture_teardown },
	{ "two-variables", fixture_two_variables },
	{ "hostile", fixture_hostile },
	{ "many", fixture_many },
};
#define NFIXTURES (sizeof fixtures / sizeof *fixtures)

static const struct {
	const char *extension;
	void (*write)(FILE *f, const struct report *r);
} formats[] = {
	{ "html", report_html }, { "json", report_json }, { "dot", report_dot },
	{ "md", report_markdown }, { "sarif", report_sarif },
};
#define NFORMATS (sizeof formats / sizeof *formats)

static const char *source_line(void *arg, const char *file, unsigned line)
{
	static char text[96];

	(void)arg;
	(void)file;
	snprintf(text, sizeof text, "\tcode(%u) && \"<b>bold</b>\"; /* </pre><script> */", line);
	return text;
}

static bool position(void *arg, uint32_t thread, uint32_t index, uint64_t *insns)
{
	(void)arg;
	*insns = 100 * (thread + 1) + index;
	return true;
}

static void prepare(struct report *r, struct fixture *fx, struct dsp **d,
		    void (*make)(struct fixture *))
{
	make(fx);
	err_t e = dsp_build(fx->trace, &fx->answer, d);

	if (e)
		CHECK(0, "it projects: %s", e->msg);
	err_free(e);
	report_init(r, fx->trace, &fx->answer, *d);
	r->source_line = source_line;
	r->position = position;
	r->trace_path = "a run's.csched";
	r->failing_proof.by[REPORT_MACHINE] = (struct report_proof){ .runs = 1, .agreed = 1 };
	r->failing_proof.by[REPORT_NATIVE] = (struct report_proof){ .runs = 20, .agreed = 20 };
	r->alternate_proof.by[REPORT_NATIVE] = (struct report_proof){ .why = "no binary" };
}

/* The trace itself, for csched solve. */
static void write_sym(const char *dir, const char *name, const struct sym_trace *t)
{
	char *path = xasprintf("%s/%s.sym", dir, name);
	FILE *f = fopen(path, "w");
	err_t e = f ? sym_write(f, t) : err_errno("%s", path);

	if (e)
		fprintf(stderr, "%s\n", e->msg);
	err_free(e);
	if (f)
		fclose(f);
	free(path);
}

static int write_all(const char *dir)
{
	for (size_t i = 0; i < NFIXTURES; i++) {
		struct fixture fx;
		struct dsp *d;
		struct report r;

		prepare(&r, &fx, &d, fixtures[i].make);
		write_sym(dir, fixtures[i].name, fx.trace);
		for (int redact = 0; redact < 2; redact++) {
			r.redact = redact;
			for (size_t k = 0; k < NFORMATS; k++) {
				char *path =
				    xasprintf("%s/%s%s.%s", dir, fixtures[i].name,
					      redact ? ".redacted" : "", formats[k].extension);
				FILE *f = fopen(path, "w");

				if (!f) {
					perror(path);
					return 1;
				}
				formats[k].write(f, &r);
				fclose(f);
				free(path);
			}
		}
		dsp_free(d);
		fixture_free(&fx);
	}
	return 0;
}

static char *text(void (*write)(FILE *, const struct report *), const struct report *r)
{
	char *s = NULL;
	size_t n;
	FILE *f = open_memstream(&s, &n);

	write(f, r);
	fclose(f);
	return s;
}

static bool no_controls(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 && *s != '\n' && *s != '\t')
			return false;
	return true;
}

static void hostile(void)
{
	struct fixture fx;
	struct dsp *d;
	struct report r;

	prepare(&r, &fx, &d, fixture_hostile);
	for (size_t k = 0; k < NFORMATS; k++) {
		char *s = text(formats[k].write, &r);

		CHECK(s && *s, "%s: something is written", formats[k].extension);
		CHECK(no_controls(s), "%s: no control characters get through",
		      formats[k].extension);
		if (formats[k].write == report_html) {
			CHECK(!strstr(s, "<script>window") && !strstr(s, "<img"),
			      "html: no markup gets through");
			CHECK(!strstr(s, "<b>bold") && !strstr(s, "<script> */"),
			      "html: not from source lines either");
		}
		if (formats[k].write == report_dot)
			CHECK(!strstr(s, "\n\";} digraph"), "dot: no statement gets through");
		free(s);
	}
	dsp_free(d);
	fixture_free(&fx);
}

static void redacted(void)
{
	struct fixture fx;
	struct dsp *d;
	struct report r;

	prepare(&r, &fx, &d, fixture_use_before_init);
	for (size_t k = 0; k < NFORMATS; k++) {
		r.redact = false;
		char *full = text(formats[k].write, &r);

		r.redact = true;
		char *less = text(formats[k].write, &r);

		CHECK(strstr(full, "5555aaaa0010"), "%s: values are there", formats[k].extension);
		CHECK(!strstr(less, "5555aaaa0010"), "%s: --redact leaves them out",
		      formats[k].extension);
		CHECK(strstr(less, "conf"), "%s: names stay", formats[k].extension);
		free(full);
		free(less);
	}
	dsp_free(d);
	fixture_free(&fx);
}

static void empty_answer(void)
{
	struct fixture fx;
	struct dsp *d = NULL;
	struct report r;

	fixture_lost_update(&fx);
	fx.answer.found = false;
	fx.answer.why = xstrdup("no schedule fits these paths");
	err_free(dsp_build(fx.trace, &fx.answer, &d));
	report_init(&r, fx.trace, &fx.answer, d);
	for (size_t k = 0; k < NFORMATS; k++) {
		char *s = text(formats[k].write, &r);

		CHECK(s && *s, "%s: a report without an answer is written", formats[k].extension);
		if (formats[k].write != report_dot)
			CHECK(strstr(s, "no schedule fits these paths"), "%s: and says why",
			      formats[k].extension);
		free(s);
	}
	CHECK(!report_validated(&r.failing_proof) && !report_validated(&r.alternate_proof),
	      "nothing found is nothing validated");
	dsp_free(d);
	fixture_free(&fx);
}

/* ---- options ---- */

static err_t parse(struct report_options *o, int argc, char **argv, int *others)
{
	report_options_init(o);
	*others = 0;
	for (int i = 0; i < argc;) {
		bool taken;
		err_t e = report_options_parse(o, argc, argv, &i, &taken);

		if (e)
			return e;
		if (!taken) {
			++*others;
			i++;
		}
	}
	return NULL;
}

static void options(void)
{
	char *good[] = { "--html", "a.html", "trace", "--dot=b.dot", "--json", "--redact", "--mine",
			 "--sarif", "c", "--markdown", "--color=never", "--width", "132" };
	char *bad[][2] = { { "--html", NULL }, { "--json=x", NULL }, { "--color", "blue" },
			   { "--width", "7" }, { "--width", "wide" } };
	struct report_options o;
	int others;
	err_t e = parse(&o, 13, good, &others);

	CHECK(!e && others == 2, "known options are taken, others left");
	CHECK(o.html && !strcmp(o.html, "a.html") && !strcmp(o.dot, "b.dot") &&
		  !strcmp(o.sarif, "c"),
	      "file names");
	CHECK(o.json && o.markdown && o.redact && o.color == TERM_NEVER && o.width == 132,
	      "flags, colour and width");
	err_free(e);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		e = parse(&o, bad[i][1] ? 2 : 1, bad[i], &others);
		CHECK(e && e->code == ERR_USAGE, "refused: %s %s (%s)", bad[i][0],
		      bad[i][1] ? bad[i][1] : "", e ? e->msg : "taken");
		err_free(e);
	}
}

static void emits(void)
{
	struct fixture fx;
	struct dsp *d;
	struct report r;
	struct report_options o;

	prepare(&r, &fx, &d, fixture_lost_update);
	report_options_init(&o);
	o.html = "/nonexistent/report.html";
	err_t e = report_emit(&o, &r);

	CHECK(e && strstr(e->msg, "/nonexistent/report.html"),
	      "a file that cannot be written is named");
	err_free(e);
	dsp_free(d);
	fixture_free(&fx);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return write_all(argv[1]);
	hostile();
	redacted();
	empty_answer();
	options();
	emits();
	CHECK_END();
}
