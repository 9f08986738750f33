/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The crash stack for csched reproduce: text, a core file, or a recorded run, which the machine follows to its end. Any of them may
 * be a stranger's, so a confined process reads it and leaves what it found as JSON.
 */
#include "analyzer/cmd/confined.h"
#include "analyzer/cmd/export.h"
#include "analyzer/cmd/follow.h"
#include "analyzer/cmd/testgen.h"
#include "analyzer/hunt/files.h"
#include "common/door.h"
#include "common/json_read.h"
#include "common/newfile.h"
#include "common/trace_format.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_ANSWER (64u << 20) /* bytes of JSON: STACK_THREADS times STACK_FRAMES frames, and more */

struct reading {
	const char *path;
	FILE *f;     /* NULL: it is a trace */
	char *answer;
};

/* ---- inside ---- */

static enum stack_kind kind_of(const struct trc_failure *f)
{
	switch (f->rec.flags) {
	case TRC_FAIL_DEADLOCK: return STACK_DEADLOCK;
	case TRC_FAIL_ASSERT:
	case TRC_FAIL_EXCEPTION:
	case TRC_FAIL_ABORT: return STACK_ABORT;
	default: return STACK_UNKNOWN; /* the core file's signal says it */
	}
}

/* What a crash would have left. */
static err_t read_core_of(struct explanation *e, const char *path, struct stack *out)
{
	int fd = door_open(DOOR_TEMP, "");
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w+");

	if (!f)
		return err_errno("a temporary file");
	err_t bad = export_core(f, e->t, e->run);
	if (!bad && fflush(f))
		bad = err_errno("a temporary file");
	if (!bad)
		bad = stack_read_core(path, fileno(f), out);
	fclose(f);
	return bad;
}

static err_t read_trace(const char *path, struct stack *out)
{
	struct explain_options x;
	struct explanation *e;

	explain_options_init(&x);
	TRY(follow_to_end(path, &x, &e));
	follow_quiet();
	err_t bad = e->t->failure ? read_core_of(e, path, out) :
				    err_new(ERR_NOANSWER, "%s: the recorded run did not fail: there is no crash to reproduce", path);
	if (!bad && kind_of(e->t->failure) != STACK_UNKNOWN)
		out->kind = kind_of(e->t->failure);
	out->format = "csched trace";
	explanation_free(e);
	return bad;
}

static void write_frame(struct json *j, const struct stack_frame *f)
{
	json_object(j, NULL);
	json_str(j, "function", f->function);
	json_str(j, "file", f->file);
	json_uint(j, "line", f->line);
	json_str(j, "module", f->module);
	if (f->has_offset)
		json_uint(j, "offset", f->offset);
	json_uint(j, "text_line", f->text_line);
	json_end(j);
}

static err_t write_stack(FILE *f, void *stack)
{
	const struct stack *s = stack;
	struct json j = { .one_line = true };

	json_object(&j, NULL);
	json_uint(&j, "kind", s->kind);
	json_str(&j, "format", s->format);
	json_uint(&j, "odd_line", s->odd_line);
	json_str(&j, "odd", s->odd);
	json_array(&j, "threads");
	for (size_t i = 0; i < s->threads.n; i++) {
		const struct stack_thread *t = &s->threads.v[i];

		json_object(&j, NULL);
		json_bool(&j, "fails", t->fails);
		json_bool(&j, "secondary", t->secondary);
		json_array(&j, "frames");
		for (size_t k = 0; k < t->frames.n; k++)
			write_frame(&j, &t->frames.v[k]);
		json_end(&j);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	json_print(&j, f);
	return NULL;
}

static int read_confined(void *reading)
{
	struct reading *r = reading;
	struct stack s = { 0 };
	err_t e = r->f ? stack_read(r->f, r->path, &s) : read_trace(r->path, &s);

	if (!e)
		e = newfile_write(r->answer, NEWFILE_GIVEN, 0600, write_stack, &s);
	stack_free(&s);
	return cmd_fail("reproduce", e);
}

/* ---- outside: nothing of it is believed but that it is text ---- */

static char *text_of(const struct jv *v, const char *key)
{
	const struct jv *x = jv_get(v, key);

	return x && x->kind == JV_STRING ? xstrdup(x->string) : NULL;
}

static double number_of(const struct jv *v, const char *key, double most)
{
	const struct jv *x = jv_get(v, key);
	double n = x && x->kind == JV_NUMBER ? x->number : x && x->kind == JV_BOOL ? x->number : 0;

	return n >= 0 && n <= most ? n : 0;
}

static void take_thread(const struct jv *v, struct stack *out)
{
	struct stack_thread t = { .fails = number_of(v, "fails", 1) > 0, .secondary = number_of(v, "secondary", 1) > 0 };
	const struct jv *frames = jv_get(v, "frames");

	for (size_t i = 0; frames && i < frames->n && i < STACK_FRAMES; i++) {
		const struct jv *f = &frames->items[i];

		vec_push(&t.frames, ((struct stack_frame){
			.function = text_of(f, "function"), .file = text_of(f, "file"), .module = text_of(f, "module"),
			.line = (unsigned)number_of(f, "line", INT_MAX), .text_line = (unsigned)number_of(f, "text_line", INT_MAX),
			.offset = (uint64_t)number_of(f, "offset", 1ull << 53), .has_offset = jv_get(f, "offset") != NULL }));
	}
	vec_push(&out->threads, t);
}

static void take_stack(const struct jv *v, struct stack *out)
{
	static char format[64];
	const struct jv *threads = jv_get(v, "threads");

	snprintf(format, sizeof format, "%s", jv_text(jv_get(v, "format")));
	out->format = format;
	out->kind = (enum stack_kind)number_of(v, "kind", STACK_KINDS - 1);
	out->odd_line = (unsigned)number_of(v, "odd_line", INT_MAX);
	snprintf(out->odd, sizeof out->odd, "%s", jv_text(jv_get(v, "odd")));
	for (size_t i = 0; threads && i < threads->n && i < STACK_THREADS; i++)
		take_thread(&threads->items[i], out);
}

static err_t take_answer(const char *path, struct stack *out)
{
	char *text = xmalloc(MOST_ANSWER);
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, MOST_ANSWER, f) : 0;
	struct jv v = { 0 };
	err_t e = f ? jv_read(text, n, &v) : err_errno("%s", path);

	if (!e)
		take_stack(&v, out);
	jv_free(&v);
	if (f)
		fclose(f);
	free(text);
	return e;
}

static err_t open_input(struct reading *r)
{
	if (stack_is_trace(r->path))
		return NULL;
	r->f = !strcmp(r->path, "-") ? stdin : fopen(r->path, "re");
	return r->f ? NULL : err_errno("%s", r->path);
}

int reproduce_read_stack(const char *path, struct stack *out)
{
	struct reading r = { .path = path };
	char dir[PATH_MAX - 16];
	err_t e = open_input(&r);

	*out = (struct stack){ 0 };
	if (!e)
		e = files_make_work("csched-reproduce", dir, sizeof dir);
	if (e)
		return cmd_fail("reproduce", e);
	r.answer = xasprintf("%s/stack", dir);
	int status = cmd_fail("reproduce", newfile_hold(r.answer, NEWFILE_GIVEN, 0600));
	if (!status)
		status = confined_run(&(struct confined){ .command = "reproduce", .input = path, .needs_input = r.f == stdin,
							  .keep = { r.f && r.f != stdin ? fileno(r.f) : 0 } }, read_confined, &r);
	if (!status)
		status = cmd_fail("reproduce", take_answer(r.answer, out));
	files_remove_tree(dir);
	if (r.f && r.f != stdin)
		fclose(r.f);
	free(r.answer);
	return status;
}
