/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched merge: what several shards of a hunt have found, as one answer. */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/found.h"
#include "analyzer/cmd/merge.h"
#include "analyzer/hunt/files.h"
#include "common/json.h"
#include "common/newfile.h"
#include "common/strbuf.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct options {
	const char *out, *html;
	struct found_options found;
	struct cmd_common common;
};

/* ---- reading ---- */

struct reading {
	struct merge *m;
	char *first; /* the path that the others are compared with */
};

static err_t take(struct reading *r, const char *path)
{
	struct shard_file f;
	err_t e = shard_read(path, &f);

	if (e) {
		/* The others are worth having all the same. */
		vec_push(&r->m->left_out, xstrdup(e->msg));
		err_free(e);
		return NULL;
	}
	if (r->m->all.program)
		e = shard_same(&r->m->all, r->first, &f, path);
	else
		r->first = xstrdup(path);
	if (!e)
		shard_unite(&r->m->all, &f);
	shard_free(&f);
	r->m->files += !e;
	return e;
}

static bool ends_with(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && !strcmp(name + n - m, suffix);
}

/* Another build is refused, what is damaged left out: as for shards. */
static err_t take_coverage(struct reading *r, const char *path)
{
	struct xpl_coverage_file alone = { 0 };
	err_t e = xpl_coverage_unite(&alone, path);

	xpl_coverage_file_free(&alone);
	if (e) {
		vec_push(&r->m->left_out, xstrdup(e->msg));
		err_free(e);
		return NULL;
	}
	r->m->coverage_files++;
	return xpl_coverage_unite(&r->m->coverage, path);
}

static err_t take_file(struct reading *r, const char *path)
{
	return ends_with(path, XPL_COVERAGE_SUFFIX) ? take_coverage(r, path) : take(r, path);
}

/* A directory's shard files, and those of the directories in it: one for each machine. */
static err_t take_directory(struct reading *r, const char *path, bool deeper)
{
	struct dirent **list;
	int n = scandir(path, &list, NULL, alphasort);
	err_t e = n < 0 ? err_errno("%s", path) : NULL;

	for (int i = 0; i < n; i++) {
		char *name = xasprintf("%s/%s", path, list[i]->d_name);
		struct stat st;

		if (!e && *list[i]->d_name != '.' && !lstat(name, &st)) {
			if (ends_with(name, SHARD_SUFFIX) || ends_with(name, XPL_COVERAGE_SUFFIX))
				e = take_file(r, name);
			else if (deeper && S_ISDIR(st.st_mode))
				e = take_directory(r, name, false);
		}
		free(name);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return e;
}

static err_t read_all(struct merge *m, char **paths)
{
	struct reading r = { m, NULL };
	err_t e = NULL;

	for (; *paths && !e; paths++) {
		struct stat st;

		if (stat(*paths, &st))
			e = err_errno("%s", *paths);
		else
			e = S_ISDIR(st.st_mode) ? take_directory(&r, *paths, true) : take_file(&r, *paths);
	}
	free(r.first);
	shard_united(&m->all);
	if (!e && !m->files && m->left_out.n)
		e = err_new(ERR_INPUT, "%s", m->left_out.v[0]);
	if (!e && !m->files)
		e = err_new(ERR_INPUT, "no file *%s there: csched hunt --shard writes them", SHARD_SUFFIX);
	return e;
}

/* ---- keeping ---- */

/* The best traces come along, and what stays behind is named by its full path. */
static err_t keep(struct merge *m, const char *out)
{
	char *path = xasprintf("%s/merged%s", out, SHARD_SUFFIX);
	char *coverage = xasprintf("%s/merged%s", out, XPL_COVERAGE_SUFFIX);
	err_t e = files_make_dirs(out);

	for (size_t i = 0; i < m->groups.n && !e; i++)
		e = merge_bring(m, &m->groups.v[i], out);
	if (!e)
		e = shard_write(&m->all, path);
	if (!e && m->coverage_files)
		e = xpl_coverage_save(&m->coverage, coverage);
	free(path);
	free(coverage);
	return e;
}

/* ---- saying ---- */

static const char *id_of(const struct merge_group *g)
{
	return *g->fingerprint ? g->fingerprint : "(not explained)";
}

static void print_coverage(const struct merge *m)
{
	uint64_t n[3];

	xpl_coverage_count(&m->coverage, n);
	printf("patterns: %llu covered, %llu impossible, %llu open%s\n", (unsigned long long)n[XPL_COVERED],
	       (unsigned long long)n[XPL_INFEASIBLE], (unsigned long long)n[XPL_OPEN],
	       !m->coverage.parts.n ? "" : xpl_coverage_unfinished(&m->coverage) ? "; not every shard has ended its part" :
	       "; nothing is left in any part");
}

static void print_text(const struct merge *m)
{
	for (size_t i = 0; i < m->left_out.n; i++) {
		char *safe = term_text_of(m->left_out.v[i], strlen(m->left_out.v[i]));

		fprintf(stderr, "csched merge: left out: %s\n", safe);
		free(safe);
	}
	printf("%zu shard%s of %s, %llu runs, %.1f s of CPU time; %zu sites\n", m->all.shards.n,
	       m->all.shards.n == 1 ? "" : "s", m->program, (unsigned long long)m->runs, m->cpu, m->all.sites.n);
	if (m->coverage_files)
		print_coverage(m);
	if (!m->groups.n)
		puts("no failure");
	for (size_t i = 0; i < m->groups.n; i++) {
		const struct merge_group *g = &m->groups.v[i];
		char *safe = term_text_of(g->text, strlen(g->text));
		char *trace = g->trace ? term_text_of(g->trace, strlen(g->trace)) : NULL;

		printf("  %6llu x  %-16s %s\n", (unsigned long long)g->count, id_of(g), safe);
		printf("            in %zu shard%s, first after %.1f s; %s%s\n", g->nshards, g->nshards == 1 ? "" : "s",
		       g->seconds, trace ? "best trace: " : "no trace of it is left", trace ? trace : "");
		free(safe);
		free(trace);
	}
}

static void json_group(struct json *j, const struct merge_group *g)
{
	json_object(j, NULL);
	json_str(j, "fingerprint", *g->fingerprint ? g->fingerprint : NULL);
	json_hex(j, "point", g->print);
	json_str(j, "text", g->text);
	json_uint(j, "count", g->count);
	json_uint(j, "shards", g->nshards);
	json_num(j, "first_seconds", g->seconds);
	json_uint(j, "seed", g->seed);
	json_str(j, "strategy", *g->strategy ? g->strategy : "native");
	json_str(j, "trace", g->trace);
	json_end(j);
}

static void print_json(const struct merge *m)
{
	struct json j = { 0 };

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_str(&j, "program", m->program);
	json_str(&j, "command", m->all.command);
	json_hex(&j, "build", m->all.build);
	json_uint(&j, "shards", m->all.shards.n);
	json_uint(&j, "files", m->files);
	json_uint(&j, "runs", m->runs);
	json_num(&j, "cpu_seconds", m->cpu);
	json_uint(&j, "sites", m->all.sites.n);
	if (m->coverage_files) {
		uint64_t n[3];

		xpl_coverage_count(&m->coverage, n);
		json_object(&j, "coverage");
		json_uint(&j, "covered", n[XPL_COVERED]);
		json_uint(&j, "impossible", n[XPL_INFEASIBLE]);
		json_uint(&j, "open", n[XPL_OPEN]);
		json_bool(&j, "exhausted", m->coverage.parts.n && !xpl_coverage_unfinished(&m->coverage));
		json_end(&j);
	}
	json_array(&j, "statuses");
	for (unsigned v = 0; v < 256; v++)
		if (m->statuses[v]) {
			json_object(&j, NULL);
			json_uint(&j, "status", v);
			json_uint(&j, "count", m->statuses[v]);
			json_end(&j);
		}
	json_end(&j);
	json_array(&j, "failures");
	for (size_t i = 0; i < m->groups.n; i++)
		json_group(&j, &m->groups.v[i]);
	json_end(&j);
	json_array(&j, "left_out");
	for (size_t i = 0; i < m->left_out.n; i++)
		json_str(&j, NULL, m->left_out.v[i]);
	json_end(&j);
	json_end(&j);
	json_print(&j, stdout);
}

static err_t write_junit(const struct options *o, const struct merge *m)
{
	struct found_case *cases = xcalloc(m->groups.n + 1, sizeof *cases);
	size_t n = m->groups.n;

	for (size_t i = 0; i < n; i++) {
		const struct merge_group *g = &m->groups.v[i];

		cases[i] = (struct found_case){ "csched merge", m->all.command, FOUND_FAILURE, i ? 0 : m->cpu, g->text,
						id_of(g), g->trace };
	}
	if (!n)
		cases[n++] = (struct found_case){ "csched merge", m->all.command, FOUND_NOTHING, m->cpu, NULL, NULL, NULL };
	err_t e = found_write(&o->found, "csched merge", cases, n);
	free(cases);
	return e;
}

static void html_text(FILE *f, const char *s)
{
	for (; *s; s++)
		if (strchr("<>&\"'", *s))
			fprintf(f, "&#%d;", *s);
		else
			fputc((unsigned char)*s < ' ' || *s == 127 ? '?' : *s, f);
}

static err_t write_html(FILE *f, void *arg)
{
	const struct merge *m = arg;

	fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>csched merge</title>\n<style>body{font:15px "
	      "sans-serif;margin:2em}table{border-collapse:collapse}td,th{border:1px solid #bbb;padding:.3em .6em;text-align:left}"
	      "code{font-family:monospace}</style></head><body>\n<h1>", f);
	html_text(f, m->program);
	fprintf(f, "</h1>\n<p>%zu shards, %llu runs, %.1f s of CPU time, <code>", m->all.shards.n, (unsigned long long)m->runs,
		m->cpu);
	html_text(f, m->all.command);
	fprintf(f, "</code></p>\n<p>%zu failure%s</p>\n<table><tr><th>runs</th><th>fingerprint</th><th>failure</th><th>shards"
		"</th><th>best trace</th></tr>\n", m->groups.n, m->groups.n == 1 ? "" : "s");
	for (size_t i = 0; i < m->groups.n; i++) {
		const struct merge_group *g = &m->groups.v[i];

		fprintf(f, "<tr><td>%llu</td><td><code>%s</code></td><td>", (unsigned long long)g->count, id_of(g));
		html_text(f, g->text);
		fprintf(f, "</td><td>%zu</td><td><code>", g->nshards);
		html_text(f, g->trace ? g->trace : "");
		fputs("</code></td></tr>\n", f);
	}
	fputs("</table>\n", f);
	for (size_t i = 0; i < m->left_out.n; i++) {
		fputs("<p>left out: ", f);
		html_text(f, m->left_out.v[i]);
		fputs("</p>\n", f);
	}
	fputs("</body></html>\n", f);
	return NULL;
}

static err_t merge(const struct options *o, char **paths, int *status)
{
	struct merge m = { 0 };
	err_t e = found_check(&o->found);

	if (!e)
		e = read_all(&m, paths);
	if (!e)
		merge_group(&m);
	if (!e && o->out)
		e = keep(&m, o->out);
	if (!e && o->html)
		e = newfile_write(o->html, NEWFILE_GIVEN, 0666, write_html, &m);
	if (!e)
		e = write_junit(o, &m);
	if (!e && o->common.json)
		print_json(&m);
	else if (!e)
		print_text(&m);
	*status = found_status(&o->found, m.groups.n);
	merge_free(&m);
	return e;
}

int cmd_merge(int argc, char **argv)
{
	struct options o = { 0 };
	const struct cmd_option options[] = {
		{ "out", 'o', "DIR", CMD_TEXT, &o.out,
		  "write DIR/merged.csched-shard, which can be merged again, and copy the best traces there" },
		{ "html", 0, "FILE", CMD_TEXT, &o.html, "also write an HTML page" },
		FOUND_OPTIONS(&o.found),
		{ 0 },
	};
	const struct cmd_spec spec = {
		.name = "merge", .usage = "[options] DIRECTORY|FILE ...",
		.summary = "Combines what the shards of a hunt or an exploration (csched hunt, explore --shard) found.",
		.options = options, .common = &o.common, .min_args = 1, .max_args = CMD_ANY,
	};
	struct cmd_args args;
	int status;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	err_t e = merge(&o, args.v, &status);
	return e ? cmd_fail("merge", e) : status;
}
