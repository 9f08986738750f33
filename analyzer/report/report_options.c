#include "analyzer/report/report_options.h"

#include "common/newfile.h"
#include "common/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char report_options_help[] =
	"      --html FILE       also write an HTML page\n"
	"      --dot FILE        also write a Graphviz graph\n"
	"      --sarif FILE      also write SARIF 2.1.0, for editors and code hosts\n"
	"      --json            print JSON (csched-report(5)) instead of text\n"
	"      --markdown        print Markdown, to paste into an issue\n"
	"      --redact          leave out values and memory contents\n"
	"      --color WHEN      auto (default), always or never\n"
	"      --width N         columns of the text report\n";

void report_options_init(struct report_options *o)
{
	memset(o, 0, sizeof *o);
}

static err_t set_color(struct report_options *o, const char *value)
{
	if (term_when_parse(value, &o->color))
		return NULL;
	return err_new(ERR_USAGE, "--color: '%s' is not auto, always or never", value);
}

static err_t set_width(struct report_options *o, const char *value)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	if (end == value || *end || n < 40 || n > 1000)
		return err_new(ERR_USAGE,
			       "--width: '%s' is not a number of columns from 40 to 1000", value);
	o->width = (unsigned)n;
	return NULL;
}

/* Where an option's value goes: a flag, a text, or a function for the rest. */
struct option {
	const char *name;
	size_t flag, text; /* offset + 1; 0: not this kind */
	err_t (*set)(struct report_options *o, const char *value);
};

#define AT(member) (offsetof(struct report_options, member) + 1)

static const struct option options[] = {
	{ "html", 0, AT(html), NULL },	     { "dot", 0, AT(dot), NULL },
	{ "sarif", 0, AT(sarif), NULL },     { "json", AT(json), 0, NULL },
	{ "markdown", AT(markdown), 0, NULL }, { "redact", AT(redact), 0, NULL },
	{ "color", 0, 0, set_color },	     { "width", 0, 0, set_width },
};

static err_t take(const struct option *x, struct report_options *o, const char *value)
{
	if (x->set)
		return x->set(o, value);
	*(const char **)((char *)o + x->text - 1) = value;
	return NULL;
}

err_t report_options_parse(void *arg, int argc, char **argv, int *i, bool *taken)
{
	struct report_options *o = arg;
	const char *name = argv[*i];

	*taken = false;
	if (strncmp(name, "--", 2))
		return NULL;
	name += 2;
	size_t len = strcspn(name, "=");

	for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
		const struct option *x = &options[k];

		if (strlen(x->name) != len || strncmp(x->name, name, len))
			continue;
		*taken = true;
		++*i;
		if (x->flag) {
			if (name[len])
				return err_new(ERR_USAGE, "--%s takes no argument", x->name);
			*(bool *)((char *)o + x->flag - 1) = true;
			return NULL;
		}
		if (name[len])
			return take(x, o, name + len + 1);
		if (*i >= argc)
			return err_new(ERR_USAGE, "--%s needs an argument", x->name);
		return take(x, o, argv[(*i)++]);
	}
	return NULL;
}

err_t report_options_check(const struct report_options *o)
{
	const char *const files[] = { o->html, o->dot, o->sarif };
	int n = o->json + o->markdown;

	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		n += files[i] && !strcmp(files[i], "-");
	return n < 2 ? NULL : err_new(ERR_USAGE, "standard output can be had by one of --json, --markdown "
						 "and a FILE of - only");
}

err_t report_options_hold(const struct report_options *o)
{
	const char *const files[] = { o->html, o->dot, o->sarif };

	if (o->sarif)
		report_sarif_prepare();
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (files[i] && strcmp(files[i], "-"))
			TRY(newfile_hold(files[i], NEWFILE_GIVEN, 0666));
	return NULL;
}

typedef void writer(FILE *f, const struct report *r);

static err_t write_file(const char *path, writer *write, const struct report *r)
{
	struct newfile n;

	if (!strcmp(path, "-")) {
		write(stdout, r);
		return NULL; /* main() looks whether it was written */
	}
	TRY(newfile_open(&n, path, NEWFILE_GIVEN, 0666));
	write(n.f, r);
	return newfile_keep(&n);
}

static void write_text(const struct report_options *o, const struct report *r)
{
	struct term t;

	term_init(&t, stdout, o->color);
	report_terminal(stdout, r, &(struct report_term){
		.width = o->width ? o->width : t.width, .color = t.color, .unicode = t.unicode });
}

err_t report_emit(const struct report_options *o, struct report *r)
{
	const struct {
		const char *path;
		writer *write;
	} files[] = { { o->html, report_html },
		      { o->dot, report_dot },
		      { o->sarif, report_sarif } };
	bool stdout_used = false;

	r->redact = o->redact;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (!files[i].path)
			continue;
		TRY(write_file(files[i].path, files[i].write, r));
		stdout_used |= !strcmp(files[i].path, "-");
	}
	if (o->json)
		return write_file("-", report_json, r);
	if (o->markdown)
		return write_file("-", report_markdown, r);
	/* A format sent to standard output has it for itself. */
	if (!stdout_used) {
		write_text(o, r);
		for (size_t i = 0; i < sizeof files / sizeof *files; i++)
			if (files[i].path)
				printf("%sWritten: %s\n", i && files[i - 1].path ? "" : "\n",
				       files[i].path);
	}
	return NULL;
}
