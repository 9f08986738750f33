/* csched pack: one self-contained file for a bug report. */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/redacted.h"
#include "analyzer/cmd/show.h"
#include "analyzer/cmd/solving.h"
#include "common/door.h"
#include "common/newfile.h"
#include "common/pack.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct options {
	const char *out;
	uint64_t level;
	bool no_files, force, redact;
	struct cmd_common common;
};

/* The work of one call. */
struct packing {
	struct trc *t;
	struct pack_writer *w;
	VEC(char *) warnings;
	VEC(char *) files; /* build-ids of what went in */
	uint64_t raw;      /* bytes before compression */
};

static void warn(struct packing *p, char *text)
{
	vec_push(&p->warnings, text);
}

/* app.123.csched -> app.123.cspack, in the current directory. */
static char *default_name(const char *trace)
{
	const char *slash = strrchr(trace, '/'), *base = slash ? slash + 1 : trace;
	size_t n = strlen(base), cut = strlen(".csched");

	if (n > cut && !strcmp(base + n - cut, ".csched"))
		n -= cut;
	return xasprintf("%.*s.cspack", (int)n, base);
}

static err_t add_stream(struct packing *p, const struct trc_stream_file *s)
{
	if (!s->size && s->spans.n)
		return NULL; /* all of it is in the process stream's file */
	p->raw += s->size;
	return pack_add(p->w, s->name, s->data, s->size);
}

/* Of a flight recorder's trace what is read: the epochs that are not are left out. */
static err_t add_streams(struct packing *p)
{
	struct progress bar = { .what = "packing" };

	for (size_t i = 0; i < p->t->streams.n; i++) {
		struct trc_stream_file *s = p->t->streams.v[i];
		err_t e = trc_verify(s, NULL);

		if (e)
			warn(p, xasprintf("packed as it is: %s", e->msg));
		err_free(e);
		progress_at(&bar, i, p->t->streams.n);
		TRY(add_stream(p, s));
	}
	for (size_t i = 0; i < p->t->behind.n; i++)
		TRY(add_stream(p, p->t->behind.v[i]));
	for (size_t i = 0; i < p->t->bases.n; i++)
		TRY(add_stream(p, p->t->bases.v[i]));
	progress_end(&bar);
	return NULL;
}

static err_t add_file(struct packing *p, const char *path, const char *name)
{
	int fd = door_open(DOOR_ELF, path);
	struct stat st;
	void *m = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0)
		m = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (m == MAP_FAILED) {
		warn(p, xasprintf("not packed: cannot read %s", path));
		return NULL;
	}
	err_t e = pack_add(p->w, name, m, (uint64_t)st.st_size);
	munmap(m, (size_t)st.st_size);
	p->raw += (uint64_t)st.st_size;
	return e;
}

/* What csched explain left beside the streams. */
static err_t add_findings(struct packing *p)
{
	static const char *const names[] = { "fingerprint", "failing.schedule",
					     "alternate.schedule", TRC_STARTED_BY };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *path = trc_file_path(p->t, names[i]);

		if (path)
			TRY(add_file(p, path, names[i]));
	}
	return NULL;
}

static bool has_file(const struct packing *p, const char *id)
{
	for (size_t i = 0; i < p->files.n; i++)
		if (!strcmp(p->files.v[i], id))
			return true;
	return false;
}

/* Only a file that is still the recorded one helps the reader. */
static err_t add_module(struct packing *p, const struct trc_module *m)
{
	char want[2 * sizeof m->build_id + 1] = "";

	for (unsigned i = 0; i < m->build_id_len; i++)
		snprintf(want + 2 * i, 3, "%02x", m->build_id[i]);
	if (has_file(p, want))
		return NULL;
	char *path = xasprintf("%.*s", (int)m->path_len, m->path);
	char *found = *want && *path == '/' ? img_build_id_of_file(path) : NULL;
	err_t e = NULL;

	if (found && !strcmp(found, want)) {
		char *name = xasprintf("elf/%s", want);

		e = add_file(p, path, name);
		free(name);
	} else if (*path == '/') {
		char *safe = term_text_of(path, strlen(path));

		warn(p, xasprintf("not packed: %s %s", safe,
				  !*want ? "has no build-id" :
				  !found ? "is not there any more" :
					   "has changed since the recording"));
		free(safe);
	}
	vec_push(&p->files, xstrdup(*want ? want : path));
	free(found);
	free(path);
	return e;
}

static err_t fill(struct packing *p, const struct options *o)
{
	if (o->redact)
		return redacted_fill(p->w, p->t->path, &p->raw);
	TRY(add_streams(p));
	TRY(add_findings(p));
	for (size_t i = 0; i < p->t->modules.n && !o->no_files; i++)
		TRY(add_module(p, p->t->modules.v[i]));
	return NULL;
}

static void report(struct packing *p, const struct options *o, const char *out, uint64_t size)
{
	if (o->common.json) {
		struct json j = { 0 };

		json_object(&j, NULL);
		json_int(&j, "schema", CMD_JSON_SCHEMA);
		json_str(&j, "file", out);
		json_uint(&j, "bytes", size);
		json_uint(&j, "unpacked_bytes", p->raw);
		json_array(&j, "warnings");
		for (size_t i = 0; i < p->warnings.n; i++)
			json_str(&j, NULL, p->warnings.v[i]);
		json_end(&j);
		json_end(&j);
		json_print(&j, stdout);
	} else {
		char *packed = show_size(size), *raw = show_size(p->raw);

		printf("%s: %s (%s unpacked)\n", out, packed, raw);
		free(packed);
		free(raw);
	}
	fflush(stdout);
	for (size_t i = 0; i < p->warnings.n; i++)
		fprintf(stderr, "csched pack: %s\n", p->warnings.v[i]);
	if (o->redact)
		fprintf(stderr,
			"csched pack: %s holds no stream of the trace and no values of its memory, but\n"
			"  small numbers, names and lines of the program.\n",
			out);
	else
		fprintf(stderr,
		"csched pack: careful: %s holds the program's memory (data, environment, maybe\n"
		"  passwords and keys) and its files. Send it only to people who may see them.\n",
		out);
}

static err_t pack_trace(struct packing *p, const struct options *o, const char *trace)
{
	uint64_t size = 0;
	err_t e;

	if (p->t->packed)
		return err_new(ERR_USAGE, "%s is packed already", trace);
	TRY(pack_create(o->out, (int)o->level, &p->w));
	e = fill(p, o);
	if (e)
		pack_abandon(p->w);
	else
		e = pack_finish(p->w, &size);
	if (!e)
		report(p, o, o->out, size);
	return e;
}

struct call {
	const char *path;
	struct options *o;
};

static int pack_confined(void *arg)
{
	struct call *c = arg;
	struct packing p = { 0 };
	err_t e = trc_open(c->path, TRC_TOLERANT, &p.t);

	if (!e)
		e = pack_trace(&p, c->o, c->path);
	for (size_t i = 0; i < p.warnings.n; i++)
		free(p.warnings.v[i]);
	for (size_t i = 0; i < p.files.n; i++)
		free(p.files.v[i]);
	vec_free(&p.warnings);
	vec_free(&p.files);
	trc_close(p.t);
	return cmd_fail("pack", e);
}

/* A name that is taken is found out before anything is done. */
static err_t hold(struct options *o, const char *trace, char **name)
{
	struct stat st;

	if (stat(trace, &st))
		return err_errno("%s", trace);
	char *bare = xstrdup(trace);
	for (size_t n = strlen(bare); n > 1 && bare[n - 1] == '/'; n--)
		bare[n - 1] = 0;
	*name = o->out ? xstrdup(o->out) : default_name(bare);
	free(bare);
	o->out = *name;
	if (!o->force && !stat(o->out, &st))
		return err_new(ERR_USAGE, "%s is there already; --force overwrites it", o->out);
	return pack_is(trace) ? NULL : newfile_hold(o->out, NEWFILE_DERIVED, 0600);
}

int cmd_pack(int argc, char **argv)
{
	struct options o = { .level = 6 };
	const struct cmd_option options[] = {
		{ "out", 'o', "FILE", CMD_TEXT, &o.out,
		  "name of the packed file (default: the trace's, .cspack)" },
		{ "level", 0, "N", CMD_UINT, &o.level, "zstd level, 1 to 19 (default 6)" },
		{ "no-files", 0, NULL, CMD_FLAG, &o.no_files,
		  "leave out the program's ELF files" },
		{ "redact", 0, NULL, CMD_FLAG, &o.redact,
		  "explain the failure; pack symbolic trace and reports only, no memory" },
		SOURCE_ROOT_OPTION,
		EPOCH_OPTION,
		CONFINED_OPTIONS,
		{ "force", 'f', NULL, CMD_FLAG, &o.force, "overwrite FILE" },
		{ 0 },
	};
	const struct cmd_spec spec = {
		.name = "pack", .usage = "[options] TRACE",
		.summary = "Packs a trace into one self-contained file: its streams and the ELF\n"
			   "files it was recorded from. Every command accepts it in place of the\n"
			   "directory.",
		.options = options, .common = &o.common, .min_args = 1, .max_args = 1,
	};
	struct cmd_args args;
	int status;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	if (o.level < 1 || o.level > 19)
		return cmd_fail("pack", err_new(ERR_USAGE, "--level: 1 to 19"));
	char *name = NULL;
	status = cmd_fail("pack", hold(&o, args.v[0], &name));
	if (!status)
		status = confined_run(&(struct confined){ .command = "pack", .input = args.v[0] }, pack_confined,
				      &(struct call){ args.v[0], &o });
	free(name);
	return status;
}
