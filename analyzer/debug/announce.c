/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The confined process's side of front.h. */
#include "analyzer/debug/front.h"

#include "analyzer/image/image.h"
#include "analyzer/sandbox/sandbox.h"
#include "analyzer/term.h"
#include "common/json_read.h"
#include "common/strbuf.h"
#include "common/vec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_TEXT (64u << 20) /* bytes of a report: more than any has */

/* gdb's number of the innermost frame outside the C and C++ run-time: an assertion fails deep inside abort(). */
static unsigned frame_of_interest(struct dbg *d)
{
	struct img_memory memory = mach_img_memory(d->run);
	struct img_frame frames[16];
	uint64_t pcs[32];
	struct img_regs regs;
	struct dbg_stop at;
	unsigned number = 0;

	dbg_where(d, &at);
	size_t n = mach_img_regs(d->run, at.thread, &regs) ? img_unwind(d->images, &regs, &memory, pcs, 32) : 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = img_frames(d->images, pcs[i], frames, 16);

		for (size_t j = 0; j < k && j < 16; j++, number++)
			if (frames[j].file && !img_runtime_frame(&frames[j]))
				return number;
	}
	return 0;
}

bool front_announce(int control, struct dbg *d)
{
	struct img_module *const *modules;
	size_t n = img_modules(d->images, &modules);
	struct strbuf b = { 0 };

	strbuf_fmt(&b, "pid %d\n", (int)getpid());
	for (size_t i = 0; i < n; i++) {
		const char *file = img_module_file(modules[i]);

		if (file && !strchr(file, '\n'))
			strbuf_fmt(&b, "file 0x%" PRIx64 " %s\n", img_module_bias(modules[i]), file);
	}
	strbuf_fmt(&b, "frame %u\nready\n", frame_of_interest(d));
	bool sent = sandbox_send(control, b.s, b.n);
	strbuf_free(&b);
	return sent;
}

static char *ask(void *control, const char *request)
{
	int sock = *(int *)control;
	uint32_t n = 0;

	if (!sandbox_send(sock, request, strlen(request)) || !sandbox_receive(sock, &n, sizeof n) || n > MOST_TEXT)
		return NULL;
	char *text = xcalloc(1, (size_t)n + 1);
	if (sandbox_receive(sock, text, n))
		return text;
	free(text);
	return NULL;
}

char *front_explain(void *control)
{
	return ask(control, "explain\n");
}

static void add_event(struct dbg *d, const struct jv *event)
{
	const char *position = jv_text(jv_get(event, "position")), *op = jv_text(jv_get(event, "op"));
	const char *variable = jv_text(jv_get(event, "variable")), *thread = jv_text(jv_get(event, "thread"));
	const char *file = jv_text(jv_get(event, "file"));
	const struct jv *line = jv_get(event, "line");
	struct strbuf b = { 0 }, clean = { 0 };
	struct dbg_place at;
	err_t e = *position ? dbg_parse(d, position, &at) : err_new(ERR_NOANSWER, "it is not in the run");

	if (!e) {
		const char *slash = strrchr(file, '/');

		strbuf_fmt(&b, "%s %s%s%s", thread, op, *variable ? " " : "", variable);
		if (*file)
			strbuf_fmt(&b, " at %s:%.0f", slash ? slash + 1 : file, line && line->kind == JV_NUMBER ? line->number : 0);
		strbuf_fmt(&b, "  [%s]", position);
		term_text(&clean, b.s, b.n);
		dbg_event(d, at, strbuf_take(&clean));
	}
	err_free(e);
	strbuf_free(&b);
}

void front_events(void *control, struct dbg *d)
{
	char *text = ask(control, "explain json\n");
	struct jv root = { 0 };
	err_t e = text ? jv_read(text, strlen(text), &root) : NULL;
	const struct jv *events = e ? NULL : jv_get(jv_get(&root, "dsp"), "events");

	for (size_t i = 0; events && events->kind == JV_ARRAY && i < events->n; i++)
		if (!strcmp(jv_text(jv_get(&events->items[i], "in")), "failing"))
			add_event(d, &events->items[i]);
	err_free(e);
	jv_free(&root);
	free(text);
}
