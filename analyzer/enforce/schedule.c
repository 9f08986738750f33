/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyzer/enforce/schedule.h"

#include "common/control_format.h"
#include "common/escape.h"
#include "common/strbuf.h"

#include <inttypes.h>
#include <string.h>

/* ---- reading ---- */

/* A word and the blanks behind it; NULL at the end of the line. */
static char *word(char **p)
{
	char *w = *p + strspn(*p, " ");

	if (!*w)
		return NULL;
	char *end = w + strcspn(w, " ");
	*p = *end ? end + 1 : end;
	*end = 0;
	return w;
}

static bool number(char **p, int base, uint64_t *out)
{
	char *w = word(p), *end;

	if (!w || *w == '-')
		return false;
	*out = strtoull(w, &end, base);
	return !*end;
}

static bool read_end(char **p, struct schedule_end *e)
{
	char *thread = word(p), *module = word(p);

	if (!thread || !module || !number(p, 16, &e->offset) || !number(p, 10, &e->n))
		return false;
	char *when = word(p);
	if (!when)
		return false;
	e->after = !strcmp(when, "after");
	e->again = !strcmp(when, "again");
	e->inside = !strcmp(when, "inside");
	e->middle = !strcmp(when, "middle");
	e->woken = !strcmp(when, "woken");
	if (!e->after && !e->again && !e->inside && !e->middle && !e->woken && strcmp(when, "before"))
		return false;
	e->thread = escape_undo(xstrdup(thread));
	e->module = escape_undo(xstrdup(module));
	return true;
}

static bool read_edge(struct schedule *s, char *p, bool meet, bool then)
{
	struct schedule_edge e = { .meet = meet, .then = then };
	uint64_t id;

	if (!number(&p, 10, &id) || s->edges.n == CTL_MAX_EDGES)
		return false;
	e.id = (uint32_t)id;
	bool good = read_end(&p, &e.source) && read_end(&p, &e.target);
	vec_push(&s->edges, e);
	return good;
}

/* Turns are numbered as they come. */
static bool read_turn(struct schedule *s, char *p)
{
	struct schedule_end e = { 0 };
	uint64_t id;

	if (!number(&p, 10, &id) || id != s->turns.n || s->turns.n == CTL_MAX_EDGES)
		return false;
	bool good = read_end(&p, &e);
	vec_push(&s->turns, e);
	return good;
}

/* The end a remark speaks of; NULL: none that was read. */
static struct schedule_end *remarked(struct schedule *s, char **p)
{
	uint64_t id;
	char *side = number(p, 10, &id) ? word(p) : NULL;

	if (side && !strcmp(side, "turn"))
		return id < s->turns.n ? &s->turns.v[id] : NULL;
	for (size_t i = 0; side && i < s->edges.n; i++)
		if (s->edges.v[i].id == id)
			return *side == 's' ? &s->edges.v[i].source : &s->edges.v[i].target;
	return NULL;
}

static void replace(char **text, const char *by)
{
	free(*text);
	*text = xstrdup(by);
}

/* Remarks are help: what cannot be understood is skipped. */
static void read_remark(struct schedule *s, char *p)
{
	char *kind = word(&p);

	if (kind && !strcmp(kind, "retreats")) {
		s->retreats = true;
		return;
	}
	if (kind && !strcmp(kind, "build")) {
		char *module = word(&p), *id = word(&p);

		if (module && id)
			vec_push(&s->builds, (struct schedule_build){ escape_undo(xstrdup(module)), escape_undo(xstrdup(id)) });
		return;
	}
	struct schedule_end *e = kind ? remarked(s, &p) : NULL;
	uint64_t ordinal, line;
	if (!e)
		return;
	if (!strcmp(kind, "at") && number(&p, 10, &ordinal) && number(&p, 10, &line)) {
		e->place.ordinal = (unsigned)ordinal;
		e->place.line = (unsigned)line;
		replace(&e->place.file, escape_undo(p));
	} else if (!strcmp(kind, "in")) {
		replace(&e->place.function, escape_undo(p));
	} else if (!strcmp(kind, "text")) {
		replace(&e->place.text, escape_undo(p));
	}
}

static bool read_line(struct schedule *s, char *line)
{
	line[strcspn(line, "\n")] = 0;
	if (!strncmp(line, "# ", 2)) {
		read_remark(s, line + 2);
		return true;
	}
	if (!*line || *line == '#')
		return true;
	if (!strcmp(line, "yield")) {
		s->yields = true;
		return true;
	}
	if (!strncmp(line, "process ", 8)) {
		replace(&s->process, escape_undo(line + 8));
		return true;
	}
	bool meet = !strncmp(line, "meet ", 5), then = !strncmp(line, "then ", 5);

	return !strncmp(line, "turn ", 5) ? read_turn(s, line + 5) :
		(meet || then || !strncmp(line, "edge ", 5)) && read_edge(s, line + 5, meet, then);
}

err_t schedule_read(const char *path, struct schedule *out)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;
	unsigned n = 0;
	bool good = true;

	*out = (struct schedule){ 0 };
	if (!f)
		return err_errno("%s", path);
	while (good && getline(&line, &cap, f) > 0) {
		if (++n == 1)
			good = !strcmp(line, CTL_SCHEDULE_MAGIC "\n");
		else
			good = read_line(out, line);
	}
	free(line);
	fclose(f);
	if (good && (out->edges.n || out->turns.n))
		return NULL;
	schedule_free(out);
	return good ? err_new(ERR_INPUT, "%s: a schedule without edges and turns", path) :
		      err_new(ERR_INPUT, "%s:%u: not a line of a schedule", path, n);
}

/* ---- writing ---- */

static void write_end(FILE *f, const struct schedule_end *e)
{
	fputc(' ', f);
	escape_word(f, e->thread);
	fputc(' ', f);
	escape_word(f, e->module);
	fprintf(f, " %" PRIx64 " %" PRIu64 " %s", e->offset, e->n,
		e->again ? "again" : e->woken ? "woken" : e->inside ? "inside" : e->middle ? "middle" : e->after ? "after" : "before");
}

static void write_rest(FILE *f, const char *s)
{
	escape_line(f, s);
	fputc('\n', f);
}

static void write_place(FILE *f, uint32_t id, const char *side, const struct schedule_end *e)
{
	const struct place *p = &e->place;

	if (!p->function || !p->file)
		return;
	fprintf(f, "# at %u %s %u %u ", id, side, p->ordinal, p->line);
	write_rest(f, p->file);
	fprintf(f, "# in %u %s ", id, side);
	write_rest(f, p->function);
	if (!p->text)
		return;
	fprintf(f, "# text %u %s ", id, side);
	write_rest(f, p->text);
}

bool schedule_edge_lost(const struct schedule_edge *e)
{
	return e->source.lost || e->target.lost;
}

void schedule_write(const struct schedule *s, FILE *f)
{
	fprintf(f, "%s\n", CTL_SCHEDULE_MAGIC);
	if (s->retreats)
		fputs("# retreats\n", f);
	for (size_t i = 0; i < s->builds.n; i++) {
		fputs("# build ", f);
		escape_word(f, s->builds.v[i].module);
		fputc(' ', f);
		escape_word(f, s->builds.v[i].build_id);
		fputc('\n', f);
	}
	if (s->process) {
		fputs("process ", f);
		escape_word(f, s->process);
		fputc('\n', f);
	}
	for (size_t i = 0; i < s->edges.n; i++) {
		const struct schedule_edge *e = &s->edges.v[i];

		if (schedule_edge_lost(e))
			continue;
		fprintf(f, "%s %u", e->meet ? "meet" : e->then ? "then" : "edge", e->id);
		write_end(f, &e->source);
		write_end(f, &e->target);
		fputc('\n', f);
		write_place(f, e->id, "source", &e->source);
		write_place(f, e->id, "target", &e->target);
	}
	if (s->yields)
		fputs("yield\n", f);
	uint32_t n = 0;
	for (size_t i = 0; i < s->turns.n; i++) {
		const struct schedule_end *e = &s->turns.v[i];

		if (e->lost)
			continue;
		fprintf(f, "turn %u", n);
		write_end(f, e);
		fputc('\n', f);
		write_place(f, n++, "turn", e);
	}
}

/* ---- asking ---- */

static void free_end(struct schedule_end *e)
{
	free(e->thread);
	free(e->module);
	place_free(&e->place);
}

void schedule_free(struct schedule *s)
{
	for (size_t i = 0; i < s->edges.n; i++) {
		free_end(&s->edges.v[i].source);
		free_end(&s->edges.v[i].target);
	}
	for (size_t i = 0; i < s->turns.n; i++)
		free_end(&s->turns.v[i]);
	for (size_t i = 0; i < s->builds.n; i++) {
		free(s->builds.v[i].module);
		free(s->builds.v[i].build_id);
	}
	free(s->process);
	vec_free(&s->edges);
	vec_free(&s->turns);
	vec_free(&s->builds);
}

const struct schedule_edge *schedule_edge(const struct schedule *s, uint32_t id)
{
	for (size_t i = 0; i < s->edges.n; i++)
		if (s->edges.v[i].id == id)
			return &s->edges.v[i];
	return NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

char *schedule_end_text(const struct schedule_end *e)
{
	struct strbuf b = { 0 };

	if (!strcmp(e->module, CTL_START_MODULE)) {
		strbuf_fmt(&b, "%s at its start",
			   strcmp(e->thread, CTL_ANY_THREAD) ? e->thread : "a further thread");
		return strbuf_take(&b);
	}
	strbuf_fmt(&b, "%s %s ", e->thread, e->n == CTL_NEVER ? "failing at" :
					    e->again ? "taking the mutex again at" :
					    e->woken ? "woken at" :
					    e->inside ? "waiting at" :
					    e->middle ? "inside" :
					    e->after ? "after" : "before");
	if (e->place.file)
		strbuf_fmt(&b, "%s:%u", base_name(e->place.file), e->place.line);
	else
		strbuf_fmt(&b, "%s+0x%" PRIx64, e->module, e->offset);
	if (e->n > 1 && e->n != CTL_NEVER)
		strbuf_fmt(&b, " (execution %" PRIu64 ")", e->n);
	return strbuf_take(&b);
}

static void rename_end(struct schedule_end *e, const char *from, const char *to)
{
	if (!strcmp(e->module, from))
		replace(&e->module, to);
}

bool schedule_rename(struct schedule *s, const char *recorded, const char *program)
{
	const char *from = base_name(recorded), *to = base_name(program);
	char *id = img_build_id_of_file(program);
	bool known = false;

	for (size_t i = 0; id && strcmp(from, to) && i < s->builds.n; i++)
		if (!strcmp(s->builds.v[i].module, from)) {
			replace(&s->builds.v[i].module, to);
			known = true;
		}
	for (size_t i = 0; known && i < s->edges.n; i++) {
		rename_end(&s->edges.v[i].source, from, to);
		rename_end(&s->edges.v[i].target, from, to);
	}
	for (size_t i = 0; known && i < s->turns.n; i++)
		rename_end(&s->turns.v[i], from, to);
	free(id);
	return known;
}

void schedule_note_build(struct schedule *s, const struct img_module *m)
{
	const char *name = img_module_name(m), *file = img_module_file(m);

	for (size_t i = 0; i < s->builds.n; i++)
		if (!strcmp(s->builds.v[i].module, name))
			return;
	char *id = file ? img_build_id_of_file(file) : NULL;
	if (id && *id)
		vec_push(&s->builds, (struct schedule_build){ xstrdup(name), id });
	else
		free(id);
}

bool schedule_is_foreign(const struct schedule *s, const char *program)
{
	char *id = img_build_id_of_file(program);
	bool foreign = false;

	for (size_t i = 0; id && i < s->builds.n; i++)
		if (!strcmp(s->builds.v[i].module, base_name(program)))
			foreign = strcmp(s->builds.v[i].build_id, id) != 0;
	free(id);
	return foreign;
}

/* ---- another build ---- */

static void remap_end(struct schedule_end *e, struct img_set *set, const char *module)
{
	if (strcmp(e->module, module))
		return;
	e->lost = !e->place.function || !e->place.file || !place_find(set, &e->place, &e->offset);
}

err_t schedule_remap(struct schedule *s, const char *program)
{
	struct img_set *set;

	TRY(place_open(program, &set));
	for (size_t i = 0; i < s->edges.n; i++) {
		remap_end(&s->edges.v[i].source, set, base_name(program));
		remap_end(&s->edges.v[i].target, set, base_name(program));
	}
	for (size_t i = 0; i < s->turns.n; i++)
		remap_end(&s->turns.v[i], set, base_name(program));
	char *id = img_build_id_of_file(program);
	for (size_t i = 0; id && i < s->builds.n; i++)
		if (!strcmp(s->builds.v[i].module, base_name(program)))
			replace(&s->builds.v[i].build_id, id);
	free(id);
	img_set_free(set);
	return NULL;
}
