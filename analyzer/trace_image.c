#include "analyzer/trace_image.h"

#include "analyzer/term.h"
#include "common/strbuf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Mappings of one file: they make one module. */
static bool same_file(const struct trc_module *a, const struct trc_module *b)
{
	return a->path_len == b->path_len && !memcmp(a->path, b->path, a->path_len) &&
	       a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, a->build_id_len);
}

static struct img_mapping mapping_of(const struct trc_module *m)
{
	return (struct img_mapping){ m->start, m->end, m->offset, m->prot };
}

/*
 * A file can be mapped whole twice (dlclose and dlopen at another address):
 * a mapping of offset 0 that lies elsewhere begins a new module.
 */
static bool begins_anew(const struct trc_module *first, const struct trc_module *m)
{
	return m->offset == 0 && m->start != first->start && first->offset == 0;
}

static err_t add_module(struct img_set *set, struct trc *t, size_t i, bool *done)
{
	const struct trc_module *first = t->modules.v[i];
	char *path = xasprintf("%.*s", (int)first->path_len, first->path);
	VEC(struct img_mapping) maps = { 0 };

	for (size_t k = i; k < t->modules.n; k++) {
		const struct trc_module *m = t->modules.v[k];

		if (done[k] || !same_file(first, m))
			continue;
		if (k > i && begins_anew(first, m))
			break;
		done[k] = true;
		vec_push(&maps, mapping_of(m));
	}
	const struct img_module_desc desc = {
		.path = path,
		.build_id = first->build_id_len ? first->build_id : NULL,
		.build_id_len = first->build_id_len,
		.maps = maps.v, .n_maps = maps.n,
		.packed_file = trc_packed_file(t, first->build_id, first->build_id_len),
	};
	err_t e = img_add_module(set, &desc, NULL);
	vec_free(&maps);
	free(path);
	return e;
}

err_t trace_image(struct trc *t, bool strict, struct img_set **out)
{
	struct img_set *set = img_set_new();
	bool *done = xcalloc(t->modules.n, sizeof *done);
	err_t e = NULL;

	for (size_t i = 0; i < t->modules.n && !e; i++) {
		if (done[i])
			continue;
		e = add_module(set, t, i, done);
		if (e && !strict) {
			err_free(e);
			e = NULL;
		}
	}
	free(done);
	*out = set;
	if (e) {
		img_set_free(set);
		*out = NULL;
	}
	return e;
}

static char *frame_text(const struct img_frame *f)
{
	struct strbuf b = { 0 };

	term_text(&b, f->function, strlen(f->function));
	if (f->file) {
		strbuf_str(&b, " (");
		term_text(&b, f->file, strlen(f->file));
		strbuf_fmt(&b, ":%u)", f->line);
	}
	return strbuf_take(&b);
}

char *trace_pc_text(struct img_set *set, uint64_t pc)
{
	struct img_frame f;

	if (!img_frames(set, pc, &f, 1) || !f.function)
		return xasprintf("0x%" PRIx64, pc);
	return frame_text(&f);
}

char *trace_site_text(struct img_set *set, uint64_t return_address)
{
	return return_address ? trace_pc_text(set, return_address - 1) : xstrdup("?");
}

static bool read_stack(void *arg, uint64_t address, void *buf, size_t n)
{
	const struct trc_stack *s = arg;

	if (address < s->address || address - s->address > s->length ||
	    n > s->length - (address - s->address))
		return false;
	memcpy(buf, s->bytes + (address - s->address), n);
	return true;
}

enum { MOST_FRAMES = 64, MOST_INLINED = 16 };

/* The innermost frame somebody would look at; NULL: the stack shows none. */
static char *place_in_stack(struct img_set *set, const struct trc_stack *s, bool at_call)
{
	struct img_regs regs = { .known = IMG_ALL_REGS };
	struct img_memory mem = { read_stack, (void *)s };
	uint64_t pcs[MOST_FRAMES];

	for (unsigned i = 0; i < 16; i++)
		regs.r[img_reg_of_x86[i]] = s->regs[i];
	regs.r[IMG_RIP] = s->regs[TRC_RIP];
	size_t n = img_unwind(set, &regs, &mem, pcs, MOST_FRAMES);

	for (size_t i = 0; i < n; i++) {
		struct img_frame f[MOST_INLINED];
		size_t nf = img_frames(set, pcs[i] - (!i && at_call), f, MOST_INLINED);

		for (size_t k = 0; k < nf; k++)
			if (f[k].function && f[k].module && !img_runtime_frame(&f[k]))
				return frame_text(&f[k]);
	}
	return NULL;
}

char *trace_failure_place(struct img_set *set, const struct trc *t)
{
	const struct trc_failure *f = t->failure;
	uint64_t pc = f->regs[TRC_RIP];
	/* A signal strikes at an instruction; the other failures are calls that were made. */
	bool at_call = f->rec.flags != TRC_FAIL_SIGNAL;
	char *place = NULL;

	for (size_t i = 0; i < t->stacks.n && !place; i++)
		if (t->stacks.v[i]->thread == f->thread && !t->stacks.v[i]->rec.flags &&
		    t->stacks.v[i]->regs[TRC_RIP] == pc)
			place = place_in_stack(set, t->stacks.v[i], at_call);
	if (place)
		return place;
	return at_call ? trace_site_text(set, pc) : trace_pc_text(set, pc);
}

char *trace_failure_text(const struct trc_failure *f)
{
	static const char exception[] = "uncaught exception of type ";

	if (f->rec.flags != TRC_FAIL_EXCEPTION || !f->detail_len || f->text_len < sizeof exception ||
	    memcmp(f->data, exception, sizeof exception - 1))
		return xasprintf("%.*s", (int)f->text_len, f->data);
	char *raw = xasprintf("%.*s", (int)f->detail_len, f->data + f->text_len);
	/* Behind the type, which is written without demangling there: what what() gave. */
	const char *what = memmem(f->data + sizeof exception - 1, f->text_len - (sizeof exception - 1), ": ", 2);
	size_t left = what ? f->text_len - (size_t)(what - (const char *)f->data) : 0;
	char *type = img_type_text(raw), *text = xasprintf("%s%s%.*s", exception, type, (int)left, what ? what : "");

	free(raw);
	free(type);
	return text;
}

#define LONGEST_COMMAND 65536 /* bytes; the file may come from a stranger */

char *trace_start_command(struct trc *t)
{
	const char *path = trc_file_path(t, TRC_STARTED_BY), *own = trc_identity(t, "command");
	FILE *f = path ? fopen(path, "re") : NULL; /* a descriptor of ours */
	char *words = f ? xcalloc(1, LONGEST_COMMAND) : NULL;
	size_t n = f ? fread(words, 1, LONGEST_COMMAND, f) : 0;
	struct strbuf b = { 0 };

	for (size_t i = 0; i < n;) {
		size_t len = strnlen(words + i, n - i);

		strbuf_str(&b, i ? " " : "");
		strbuf_word(&b, words + i, len);
		i += len + 1;
	}
	if (f)
		fclose(f);
	free(words);
	if (b.n)
		return strbuf_take(&b);
	strbuf_free(&b);
	return own ? xstrdup(own) : NULL;
}
