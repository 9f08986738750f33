/* csched dump: every record of a trace, readable. */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/dump_path.h"
#include "analyzer/cmd/dump_records.h"
#include "common/trace_types.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct options {
	const char *thread;
	uint64_t types[2]; /* bit set of enum trc_type; both 0: all */
	bool path;
	uint64_t max_bytes;
	struct cmd_common common;
};

static err_t add_type(void *arg, const char *option, const char *value)
{
	struct options *o = arg;
	unsigned type = trc_type_named(value);

	if (!type)
		return err_new(ERR_USAGE, "--%s: no record type '%s'; see csched-trace(5)", option,
			       value);
	o->types[type / 64] |= 1ull << type % 64;
	return NULL;
}

static bool wanted_type(const struct options *o, unsigned type)
{
	return !(o->types[0] | o->types[1]) || o->types[type / 64] >> type % 64 & 1;
}

/* A thread is asked for by its id (T0.1) or its number. */
static bool wanted_thread(const struct options *o, const struct trc *t, uint32_t index)
{
	char number[16];

	snprintf(number, sizeof number, "%" PRIu32, index);
	return !o->thread || !strcmp(o->thread, trc_thread_id(t, index)) ||
	       !strcmp(o->thread, number);
}

static bool wanted_stream(const struct options *o, const struct trc *t,
			  const struct trc_stream_file *s)
{
	if (s->kind == TRC_STREAM_PATH)
		return false;
	if (s->kind == TRC_STREAM_THREAD)
		return wanted_thread(o, t, s->thread);
	return !o->thread;
}

static err_t dump_stream(struct dump *d, const struct options *o, struct trc_stream_file *s)
{
	const char *where = s->kind == TRC_STREAM_THREAD ? trc_thread_id(d->show.t, s->thread)
							 : s->name;
	struct trc_iter it;
	const struct trc_rec *rec;

	trc_iter_init(&it, s);
	for (;;) {
		TRY(trc_next(&it, &rec));
		if (!rec)
			return NULL;
		if (wanted_type(o, rec->type))
			dump_record(d, where, it.pos, rec);
	}
}

/* The status so far, made worse by e. */
static int worse(int status, err_t e)
{
	int now = cmd_fail("dump", e);

	return now ? now : status;
}

static int dump_records(struct dump *d, const struct options *o)
{
	struct trc *t = d->show.t;
	int status = 0;

	for (size_t i = 0; i < t->streams.n; i++)
		if (wanted_stream(o, t, t->streams.v[i]))
			status = worse(status, dump_stream(d, o, t->streams.v[i]));
	return status;
}

static int dump_paths(struct dump *d, const struct options *o)
{
	struct trc *t = d->show.t;
	struct path_frags *frags;
	int status = worse(0, path_frags_load(t, &frags));

	if (status)
		return status;
	for (size_t i = 0; i < t->threads.n; i++)
		if (wanted_thread(o, t, (uint32_t)i) && t->threads.v[i].path_stream)
			status = worse(status, dump_path(d, frags, &t->threads.v[i]));
	path_frags_free(frags);
	return status;
}

static bool has_thread(const struct options *o, const struct trc *t)
{
	for (size_t i = 0; i < t->threads.n; i++)
		if (wanted_thread(o, t, (uint32_t)i))
			return true;
	return false;
}

static int dump_trace(struct trc *t, const struct options *o)
{
	struct json json = { 0 };
	struct dump d = { .json = o->common.json ? &json : NULL, .max_bytes = o->max_bytes };
	struct term term = cmd_term(&o->common);

	if (!has_thread(o, t))
		return cmd_fail("dump", err_new(ERR_NOANSWER, "%s has no thread %s", t->path,
						o->thread));
	show_init(&d.show, t, &term);
	if (d.json) {
		json_object(d.json, NULL);
		json_int(d.json, "schema", CMD_JSON_SCHEMA);
		json_str(d.json, "trace", t->path);
		json_array(d.json, "records");
	} else if (!o->thread && !o->path && t->failure) {
		show_failure(&d.show);
		fputc('\n', term.f);
	}
	int status = o->path ? dump_paths(&d, o) : dump_records(&d, o);
	if (d.json) {
		json_end(d.json);
		json_end(d.json);
		json_print(d.json, term.f);
	}
	show_free(&d.show);
	return status;
}

struct call {
	const char *path;
	struct options *o;
};

static int dump_confined(void *arg)
{
	struct call *c = arg;
	struct trc *t;
	int status = cmd_fail("dump", trc_open(c->path, TRC_TOLERANT, &t));

	if (status)
		return status;
	status = dump_trace(t, c->o);
	trc_close(t);
	return status;
}

int cmd_dump(int argc, char **argv)
{
	struct options o = { .max_bytes = 32 };
	struct cmd_call type = { add_type, &o };
	const struct cmd_option options[] = {
		{ "thread", 't', "ID", CMD_TEXT, &o.thread,
		  "only this thread: T0.1, or its number" },
		{ "type", 0, "NAME", CMD_CALL, &type,
		  "only records of this type (sync, enter, module, ...);\n"
		  "may be given more than once" },
		{ "path", 'p', NULL, CMD_FLAG, &o.path,
		  "the control flow instead: each fragment and its exit,\n"
		  "with function and source line" },
		{ "bytes", 0, "N", CMD_UINT, &o.max_bytes,
		  "bytes of memory contents shown per record (default 32)" },
		EPOCH_OPTION,
		CONFINED_OPTIONS,
		{ 0 },
	};
	const struct cmd_spec spec = {
		.name = "dump", .usage = "[options] TRACE",
		.summary = "Prints every record of a trace.",
		.more = "TRACE is a directory NAME.PID.csched or a file made by csched pack. The\n"
			"record types are described in csched-trace(5).\n"
			"For a damaged trace: prints what precedes the damage, status 3.\n",
		.options = options, .common = &o.common, .min_args = 1, .max_args = 1,
	};
	struct cmd_args args;
	int status;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	return confined_run(&(struct confined){ .command = "dump", .input = args.v[0] }, dump_confined,
			    &(struct call){ args.v[0], &o });
}
