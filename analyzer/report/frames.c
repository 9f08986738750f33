/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of stacks and threads: which of them a report is about, and what they are called in it. */
#include "analyzer/report/internal.h"

#include <string.h>

bool rep_frame_is_library(const struct sym_frame *f)
{
	return dsp_is_runtime(f) || (!f->file && strstr(f->function, "+0x"));
}

/* A name that somebody calls: of a public function. */
static bool is_public(const char *name)
{
	return *name != '_' && strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789") == strlen(name);
}

/* "libglib-2.0.so.0+0x8f3a1" */
static bool is_offset_into_library(const char *name)
{
	const char *so = strstr(name, ".so"), *plus = strstr(name, "+0x");

	return so && plus && so < plus;
}

const char *rep_frame_name(const struct sym_frame *f)
{
	return is_offset_into_library(f->function) || (dsp_is_runtime(f) && !is_public(f->function)) ?
		       "library code" : f->function;
}

const char *rep_frame_file(const struct sym_frame *f)
{
	return dsp_is_in_runtime_module(f) ? NULL : f->file;
}

bool rep_frame_matters(const struct sym_frame *f)
{
	static const char *const noise[] = {
		"start_thread", "clone", "clone3", "__libc_start_main", "__libc_start_call_main",
		"_start", "__clone", "__clone3", "?",
	};

	if (dsp_is_runtime(f))
		return false;
	for (size_t i = 0; i < sizeof noise / sizeof *noise; i++)
		if (!strncmp(f->function, noise[i], strlen(noise[i])) &&
		    strchr("@+ ", f->function[strlen(noise[i])]))
			return false;
	return true;
}

void rep_stack(struct strbuf *b, const struct report *r, const struct sym_event *e, size_t max)
{
	const struct sym_frame *place = dsp_place(r->trace, e);
	const struct sym_stack *s;
	size_t shown = 0;

	if (!place)
		return;
	s = &r->trace->stacks[e->stack];
	for (const struct sym_frame *f = place; f < s->frames + s->n; f++) {
		/* Nor does a caller of which nothing is known but its library. */
		if (!rep_frame_matters(f) || (f != place && !f->file && strstr(f->function, "+0x")))
			continue;
		if (shown == max) {
			strbuf_str(b, " < ...");
			return;
		}
		strbuf_fmt(b, "%s%s", shown++ ? " < " : "", rep_frame_name(f));
	}
}

const char *rep_thread_label(const struct report *r, uint32_t thread)
{
	const struct sym_thread *th = &r->trace->threads[thread];

	const char *anything = NULL; /* without lines */

	if (!r->redact && th->name && *th->name) /* its name is the program's memory */
		return th->name;
	if (!strcmp(th->id, "T0"))
		return "main";
	for (size_t i = 0; i < th->nevents; i++) {
		const struct sym_event *e = &th->events[i];

		/* A thread's start belongs to whoever created it. */
		if (e->op == SYM_START || e->stack >= r->trace->nstacks)
			continue;
		const struct sym_stack *s = &r->trace->stacks[e->stack];

		for (uint32_t k = s->n; k-- > 0;)
			if (rep_frame_matters(&s->frames[k]) && s->frames[k].file)
				return s->frames[k].function;
		for (uint32_t k = s->n; !anything && k-- > 0;)
			if (rep_frame_matters(&s->frames[k]))
				anything = s->frames[k].function;
	}
	return anything ? anything : "";
}

bool rep_thread_shown(const struct report *r, uint32_t thread)
{
	for (int w = 0; w < DSP_SIDES; w++)
		for (size_t i = 0; i < r->dsp->side[w].nevents; i++)
			if (r->dsp->side[w].events[i].ref.thread == thread)
				return true;
	return false;
}

char *rep_uninvolved(const struct report *r)
{
	uint32_t n = 0;

	for (uint32_t th = 0; th < r->trace->nthreads; th++)
		n += !rep_thread_shown(r, th);
	if (!n || n == r->trace->nthreads)
		return NULL;
	return xasprintf("%u more thread%s: not involved", n, n > 1 ? "s" : "");
}
