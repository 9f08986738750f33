/* csched info: what is in a trace. */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/redacted.h"
#include "analyzer/cmd/show.h"
#include "common/door.h"
#include "common/trace_types.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What the record stream of one thread holds. */
struct counts {
	uint64_t events, syscalls, signals, records;
};

/* Problems met on the way, told at the end: a damaged trace has status 3. */
typedef VEC(char *) problems_t;

static void note_problem(problems_t *p, err_t e)
{
	if (!e)
		return;
	vec_push(p, xstrdup(e->msg));
	err_free(e);
}

static err_t count_records(struct trc_stream_file *stream, struct counts *c)
{
	struct trc_iter it;
	const struct trc_rec *rec;

	trc_iter_init(&it, stream);
	for (;;) {
		TRY(trc_next(&it, &rec));
		if (!rec)
			return NULL;
		c->records++;
		c->events += rec->type == TRC_SYNC;
		c->syscalls += rec->type == TRC_ENTER;
		c->signals += rec->type == TRC_SIGNAL;
	}
}

/* Reads everything; counts (one per thread) and the problems found. */
static struct counts *read_all(struct trc *t, problems_t *problems)
{
	struct counts *counts = xcalloc(t->threads.n, sizeof *counts);
	struct progress p = { .what = "reading" };

	if (t->damage)
		vec_push(problems, xstrdup(t->damage));
	for (size_t i = 0; i < t->streams.n; i++) {
		struct trc_stream_file *s = t->streams.v[i];

		progress_at(&p, i, t->streams.n);
		if (s->kind == TRC_STREAM_THREAD)
			note_problem(problems, count_records(s, &counts[s->thread]));
		else if (s->kind != TRC_STREAM_PROCESS)
			note_problem(problems, trc_verify(s, NULL));
	}
	progress_end(&p);
	return counts;
}

/* ---- as text ---- */

/* Keys for programs, not for people; wall_start is shown as a date. */
static bool is_internal(const char *key)
{
	static const char *const keys[] = { "args", "event_pc", "tsc_start", "mono_start",
					    "wall_start", "tsc_hz", "xsave" };

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!strcmp(keys[i], key))
			return true;
	return false;
}

static void print_identity(const struct show *s)
{
	char date[64];

	if (show_when(s->t, date, sizeof date))
		fprintf(s->term.f, "  %-10s %s\n", "when", date);
	for (size_t i = 0; i < s->t->identity.n; i++) {
		const struct trc_kv_entry *kv = &s->t->identity.v[i];

		if (is_internal(kv->key) || !kv->value_len)
			continue;
		char *key = term_text_of(kv->key, strlen(kv->key));
		char *value = term_text_of(kv->value, kv->value_len);

		fprintf(s->term.f, "  %-10s %s\n", key, value);
		free(key);
		free(value);
	}
}

/* What csched explain left behind. */
static void print_findings(const struct show *s)
{
	const char *path = trc_file_path(s->t, "fingerprint");
	int fd = path ? door_open(DOOR_TRACE, path) : -1;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[256];

	if (f && fgets(line, sizeof line, f)) {
		char *text = term_text_of(line, strcspn(line, "\n"));

		fprintf(s->term.f, "explained fingerprint %s%s\n", text,
			trc_file_path(s->t, "failing.schedule") ? ", schedules kept" : "");
		free(text);
	}
	if (f)
		fclose(f);
}

static void print_thread(const struct show *s, const struct trc_thread_info *th,
			 const struct counts *c)
{
	char *name = th->name ? term_text_of(th->name, strlen(th->name)) : xstrdup("");
	/* Only a process that exits closes its streams: elsewhere it says nothing. */
	bool exited = s->t->end && s->t->end->rec.flags == 0;
	const char *cut = exited && th->rec_stream && th->rec_stream->cut_off ? ", cut off" : "";

	fprintf(s->term.f, "  %-8s", trc_thread_id(s->t, th->index));
	if (th->rec && th->rec->tid)
		fprintf(s->term.f, " tid %-8u", th->rec->tid);
	else
		fprintf(s->term.f, " %-12s", "");
	fprintf(s->term.f, " %8" PRIu64 " events %8" PRIu64 " system calls", c->events,
		c->syscalls);
	if (c->signals)
		fprintf(s->term.f, " %4" PRIu64 " signals", c->signals);
	if (th->path_stream) {
		char *size = show_size(trc_stream_bytes(th->path_stream));

		fprintf(s->term.f, "  path %s", size);
		free(size);
	}
	fprintf(s->term.f, "%s%s%s\n", *name ? "  " : "", name, cut);
	free(name);
}

static bool same_path(const struct trc_module *a, const struct trc_module *b)
{
	return a->path_len == b->path_len && !memcmp(a->path, b->path, a->path_len);
}

static void print_modules(const struct show *s)
{
	fprintf(s->term.f, "modules\n");
	for (size_t i = 0; i < s->t->modules.n; i++) {
		const struct trc_module *m = s->t->modules.v[i];

		if (i && same_path(s->t->modules.v[i - 1], m))
			continue;
		char *path = term_text_of(m->path, m->path_len);

		fprintf(s->term.f, "  0x%012" PRIx64 " %s ", m->start, path);
		for (unsigned k = 0; k < m->build_id_len; k++)
			fprintf(s->term.f, "%02x", m->build_id[k]);
		fputc('\n', s->term.f);
		free(path);
	}
}

static void print_children(const struct show *s)
{
	static const char *const how[] = { "fork", "vfork", "spawn" };

	if (s->t->children.n)
		fprintf(s->term.f, "children  %zu\n", s->t->children.n);
	for (size_t i = 0; i < s->t->children.n; i++) {
		const struct trc_child *c = s->t->children.v[i];

		fprintf(s->term.f, "  pid %-8u %s by %s\n", c->pid,
			c->rec.flags < 3 ? how[c->rec.flags] : "?", trc_thread_id(s->t, c->thread));
	}
}

static void print_notes(const struct show *s)
{
	if (s->t->notes.n)
		fprintf(s->term.f, "notes\n");
	for (size_t i = 0; i < s->t->notes.n; i++) {
		const struct trc_note *n = s->t->notes.v[i];
		char *text = term_text_of(n->text, n->text_len);

		fprintf(s->term.f, "  %s%s\n", n->rec.flags ? "incomplete: " : "", text);
		free(text);
	}
}

static void print_epochs(const struct show *s)
{
	struct trc *t = s->t;

	if (!t->epochs.n)
		return;
	fprintf(s->term.f, "epochs    %zu, read from %" PRIu32, t->epochs.n, t->epoch);
	if (t->began)
		fprintf(s->term.f, ", a checkpoint %.3f s after the start: what the run did before is not in what is shown",
			trc_seconds(t, t->began->tsc));
	fputc('\n', s->term.f);
	for (size_t i = 0; i < t->epochs.n; i++) {
		char *size = show_size(trc_epoch_bytes(t, t->epochs.v[i].number));

		fprintf(s->term.f, "  %-8" PRIu32 " %s%s\n", t->epochs.v[i].number, size,
			t->epochs.v[i].whole ? "" : ", its checkpoint is not complete: it continues the one before");
		free(size);
	}
	if (trc_bases_bytes(t)) {
		char *size = show_size(trc_bases_bytes(t));

		fprintf(s->term.f, "  before   %s, checkpoints that those are differences to\n", size);
		free(size);
	}
}

static void print_info(const struct show *s, const struct counts *counts)
{
	struct trc *t = s->t;
	uint64_t size = 0;

	for (size_t i = 0; i < t->streams.n; i++)
		size += t->streams.v[i]->epoch ? 0 : t->streams.v[i]->size;
	for (size_t i = 0; i < t->epochs.n; i++)
		size += trc_epoch_bytes(t, t->epochs.v[i].number);
	size += trc_bases_bytes(t);
	char *total = show_size(size), *end = show_end(t);
	char *path = term_text_of(t->path, strlen(t->path));

	fprintf(s->term.f, "trace     %s (%s, %s)\n", path, t->packed ? "packed" : "directory",
		total);
	fprintf(s->term.f, "ended     %s\n", end);
	print_epochs(s);
	show_failure(s);
	fprintf(s->term.f, "recorded\n");
	print_identity(s);
	fprintf(s->term.f, "threads   %zu\n", t->threads.n);
	for (size_t i = 0; i < t->threads.n; i++)
		print_thread(s, &t->threads.v[i], &counts[i]);
	print_modules(s);
	print_children(s);
	print_notes(s);
	print_findings(s);
	if (t->failure) {
		struct strbuf b = { 0 };

		strbuf_word(&b, t->path, strlen(t->path));
		fprintf(s->term.f, "next      csched explain %s\n", b.s);
		strbuf_free(&b);
	}
	free(path);
	free(total);
	free(end);
}

/* ---- as JSON ---- */

static void threads_json(struct trc *t, const struct counts *counts, struct json *j)
{
	json_array(j, "threads");
	for (size_t i = 0; i < t->threads.n; i++) {
		const struct trc_thread_info *th = &t->threads.v[i];

		json_object(j, NULL);
		json_str(j, "id", trc_thread_id(t, (uint32_t)i));
		json_uint(j, "index", i);
		if (th->rec)
			json_uint(j, "tid", th->rec->tid);
		json_str(j, "name", th->name);
		json_uint(j, "events", counts[i].events);
		json_uint(j, "system_calls", counts[i].syscalls);
		json_uint(j, "signals", counts[i].signals);
		json_uint(j, "records", counts[i].records);
		json_uint(j, "path_bytes", th->path_stream ? trc_stream_bytes(th->path_stream) : 0);
		json_bool(j, "cut_off", th->rec_stream && th->rec_stream->cut_off);
		json_end(j);
	}
	json_end(j);
}

static void modules_json(struct trc *t, struct json *j)
{
	json_array(j, "modules");
	for (size_t i = 0; i < t->modules.n; i++) {
		const struct trc_module *m = t->modules.v[i];
		char id[2 * sizeof m->build_id + 1] = "";

		for (unsigned k = 0; k < m->build_id_len; k++)
			snprintf(id + 2 * k, 3, "%02x", m->build_id[k]);
		json_object(j, NULL);
		json_strn(j, "path", m->path, m->path_len);
		json_hex(j, "start", m->start);
		json_hex(j, "end", m->end);
		json_hex(j, "offset", m->offset);
		json_str(j, "build_id", id);
		json_end(j);
	}
	json_end(j);
}

static void end_json(struct trc *t, struct json *j)
{
	static const char *const kinds[] = { "exit", "signal", "exec" };
	char *text = show_end(t);

	json_object(j, "end");
	json_str(j, "kind", t->end ? kinds[t->end->rec.flags] : "cut off");
	if (t->end)
		json_int(j, "status", t->end->status);
	json_str(j, "text", text);
	json_end(j);
	free(text);
}

static void info_json(const struct show *s, const struct counts *counts,
		      const problems_t *problems)
{
	struct trc *t = s->t;
	struct json j = { 0 };

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "trace", t->path);
	json_bool(&j, "packed", t->packed);
	json_object(&j, "identity");
	for (size_t i = 0; i < t->identity.n; i++)
		json_strn(&j, t->identity.v[i].key, t->identity.v[i].value,
			  t->identity.v[i].value_len);
	json_end(&j);
	end_json(t, &j);
	show_failure_json(s, &j);
	threads_json(t, counts, &j);
	modules_json(t, &j);
	json_array(&j, "children");
	for (size_t i = 0; i < t->children.n; i++)
		json_uint(&j, NULL, t->children.v[i]->pid);
	json_end(&j);
	json_array(&j, "notes");
	for (size_t i = 0; i < t->notes.n; i++)
		json_strn(&j, NULL, t->notes.v[i]->text, t->notes.v[i]->text_len);
	json_end(&j);
	json_array(&j, "damage");
	for (size_t i = 0; i < problems->n; i++)
		json_str(&j, NULL, problems->v[i]);
	json_end(&j);
	json_end(&j);
	json_print(&j, s->term.f);
}

/* Prints and frees; the status they mean. */
static int report_problems(problems_t *p)
{
	int status = p->n ? ERR_INPUT : 0;

	fflush(stdout);
	for (size_t i = 0; i < p->n; i++) {
		fprintf(stderr, "csched info: %s\n", p->v[i]);
		free(p->v[i]);
	}
	vec_free(p);
	return status;
}

struct call {
	const char *path;
	const struct cmd_common *common;
};

static int info_confined(void *arg)
{
	const struct call *c = arg;
	problems_t problems = { 0 };
	struct show show;
	struct trc *t;

	if (redacted_is(c->path))
		return cmd_fail("info", redacted_info(c->path, c->common->json));
	int status = cmd_fail("info", trc_open(c->path, TRC_TOLERANT, &t));
	if (status)
		return status;
	struct term term = cmd_term(c->common);
	struct counts *counts = read_all(t, &problems);

	show_init(&show, t, &term);
	if (c->common->json)
		info_json(&show, counts, &problems);
	else
		print_info(&show, counts);
	show_free(&show);
	free(counts);
	trc_close(t);
	return report_problems(&problems);
}

int cmd_info(int argc, char **argv)
{
	struct cmd_common common = { 0 };
	const struct cmd_option options[] = { EPOCH_OPTION, CONFINED_OPTIONS, { 0 } };
	const struct cmd_spec spec = {
		.name = "info", .usage = "[options] TRACE",
		.summary = "Shows what a trace contains: the program, how it ended, threads, modules.",
		.more = "TRACE is a directory NAME.PID.csched or a file made by csched pack.\n"
			"For a damaged trace: shows what precedes the damage, status 3.\n",
		.options = options, .common = &common, .min_args = 1, .max_args = 1,
	};
	struct cmd_args args;
	int status;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	return confined_run(&(struct confined){ .command = "info", .input = args.v[0] }, info_confined,
			    &(struct call){ args.v[0], &common });
}
