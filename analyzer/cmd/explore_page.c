/* SPDX-License-Identifier: GPL-2.0-or-later */
/* csched explore --html: coverage over time, and the sources with the ends of patterns marked. */
#include "analyzer/cmd/explore.h"
#include "common/newfile.h"

#include <stdio.h>
#include <string.h>

#define WIDTH 640.0
#define HEIGHT 240.0
#define AROUND 2u /* lines shown before and behind a marked one */

static void text(FILE *f, const char *s)
{
	for (; s && *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
			fprintf(f, "&#%u;", c);
		else if (c < ' ' && c != '\t')
			fputc('?', f);
		else
			fputc(c, f);
	}
}

static double along(const struct xpl_point *p, bool in_time)
{
	return in_time ? p->seconds : (double)p->schedules;
}

/* Patterns covered, over orders or over seconds; each strategy began with the same run. */
static void curves(FILE *f, const struct explore_result *r, bool in_time)
{
	static const char *const colours[] = { "#1668b8", "#b5481d", "#5a7d1e" };
	const char *unit = in_time ? "seconds" : "orders";
	double most = 1, end = in_time ? 1e-3 : 1;

	for (unsigned c = 0; c < 3; c++)
		for (size_t i = 0; i < r->curves[c].points.n; i++) {
			const struct xpl_point *p = &r->curves[c].points.v[i];

			most = (double)p->covered > most ? (double)p->covered : most;
			end = along(p, in_time) > end ? along(p, in_time) : end;
		}
	fprintf(f, "<h2>Coverage over %s</h2>\n<svg viewBox=\"0 0 %g %g\" width=\"%g\" role=\"img\" aria-label=\"patterns "
		   "covered over %s\">\n", in_time ? "time" : "orders", WIDTH + 60, HEIGHT + 40, WIDTH + 60, unit);
	fprintf(f, "<rect x=\"40\" y=\"10\" width=\"%g\" height=\"%g\" class=\"frame\"/>\n", WIDTH, HEIGHT);
	for (unsigned c = 0; c < 3; c++) {
		if (!r->curves[c].name)
			continue;
		fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colours[c]);
		for (size_t i = 0; i < r->curves[c].points.n; i++) {
			const struct xpl_point *p = &r->curves[c].points.v[i];

			fprintf(f, "%.1f,%.1f ", 40 + WIDTH * along(p, in_time) / end,
				10 + HEIGHT - HEIGHT * (double)p->covered / most);
		}
		fprintf(f, "\"/>\n<text x=\"50\" y=\"%u\" fill=\"%s\">%s</text>\n", 28 + 16 * c, colours[c],
			r->curves[c].name);
	}
	fprintf(f, "<text x=\"36\" y=\"16\" text-anchor=\"end\">%.0f</text><text x=\"40\" y=\"%g\">0 %s</text>"
		   "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">%.*f %s</text></svg>\n",
		most, HEIGHT + 30, unit, WIDTH + 40, HEIGHT + 30, in_time ? 2 : 0, end, unit);
}

static void table(FILE *f, const explore_rows *rows, const char *what)
{
	fprintf(f, "<h2>By %s</h2><table><tr><th>%s</th><th>covered</th><th>impossible</th><th>open</th></tr>\n", what, what);
	for (size_t i = 0; i < rows->n; i++) {
		fputs("<tr><td>", f);
		text(f, rows->v[i].name);
		fprintf(f, "</td><td>%llu</td><td>%llu</td><td>%llu</td></tr>\n",
			(unsigned long long)rows->v[i].n[XPL_COVERED], (unsigned long long)rows->v[i].n[XPL_INFEASIBLE],
			(unsigned long long)rows->v[i].n[XPL_OPEN]);
	}
	fputs("</table>\n", f);
}

static const char *class_of(const struct explore_row *x)
{
	return x->n[XPL_OPEN] ? "open" : x->n[XPL_COVERED] ? "covered" : "impossible";
}

/* Marked lines, with some around each. */
static void sources(FILE *f, const struct explore_result *r, const explore_rows *rows)
{
	for (size_t i = 0; i < rows->n;) {
		size_t end = i;
		unsigned last = 0;

		while (end < rows->n && rows->v[end].file && rows->v[i].file && !strcmp(rows->v[end].file, rows->v[i].file))
			end++;
		if (end == i) {
			i++;
			continue;
		}
		fputs("<h2>", f);
		text(f, rows->v[i].file);
		fputs("</h2><pre>", f);
		for (size_t k = i; k < end; k++) {
			unsigned at = rows->v[k].line, from = at > AROUND ? at - AROUND : 1;
			unsigned to = k + 1 < end && rows->v[k + 1].line <= at + AROUND ? rows->v[k + 1].line - 1 : at + AROUND;

			if (from > last + 1 && last)
				fputs("\n", f);
			for (unsigned n = from > last ? from : last + 1; n <= to; n++) {
				const char *line = img_source_line(r->images, rows->v[k].file, n);

				if (!line && n != at)
					continue;
				if (n == at)
					fprintf(f, "<span class=\"%s\" title=\"%llu covered, %llu impossible, %llu open\">",
						class_of(&rows->v[k]), (unsigned long long)rows->v[k].n[XPL_COVERED],
						(unsigned long long)rows->v[k].n[XPL_INFEASIBLE],
						(unsigned long long)rows->v[k].n[XPL_OPEN]);
				fprintf(f, "%5u  ", n);
				text(f, line ? line : "(source not found)");
				fputs(n == at ? "</span>\n" : "\n", f);
				last = n;
			}
		}
		fputs("</pre>\n", f);
		i = end;
	}
}

static const char style[] =
	"body{font:14px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}pre{background:#f6f6f4;padding:.6em}"
	"table{border-collapse:collapse}td,th{padding:.1em .8em;text-align:right}td:first-child,th:first-child{text-align:left}"
	".covered{background:#d8efd2}.open{background:#fbe7b5}.impossible{background:#e3e3e3}"
	".frame{fill:none;stroke:#999}svg text{font:12px sans-serif}";

static void write_page(FILE *f, const struct explore_result *r, const char *program)
{
	explore_rows lines = { 0 }, variables = { 0 };
	uint64_t n[3] = { 0 };

	for (size_t i = 0; i < r->drive.known.n; i++)
		n[r->drive.known.v[i].status]++;
	fprintf(f, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>csched explore</title><style>%s"
		   "</style></head><body><h1>", style);
	text(f, program);
	fprintf(f, "</h1><p>%llu orders; patterns: <span class=\"covered\">%llu covered</span>, <span class=\"impossible\">%llu "
		   "impossible</span>, <span class=\"open\">%llu open</span>; estimated %.0f.%s</p>\n",
		(unsigned long long)r->drive.schedules, (unsigned long long)n[XPL_COVERED],
		(unsigned long long)n[XPL_INFEASIBLE], (unsigned long long)n[XPL_OPEN], r->drive.estimate,
		r->drive.exhausted ? " Nothing is left." : "");
	for (size_t i = 0; i < r->failures.n; i++) {
		fputs("<p>Failure: ", f);
		text(f, r->failures.v[i].text);
		fputs(r->failures.v[i].confirmed ? "</p>\n" : " (on the machine only)</p>\n", f);
	}
	for (size_t i = 0; r->drive.exhausted && i < r->assumed.n; i++) {
		fputs("<p>Assumed: ", f);
		text(f, r->assumed.v[i]);
		fputs("</p>\n", f);
	}
	curves(f, r, true);
	curves(f, r, false);
	if (r->images) {
		explore_variables(r, &variables);
		explore_lines(r, &lines);
		table(f, &variables, "variable");
		sources(f, r, &lines);
	}
	fputs("</body></html>\n", f);
	explore_rows_free(&variables);
	explore_rows_free(&lines);
}

struct page {
	const struct explore_result *r;
	const char *program;
};

static err_t write_to(FILE *f, void *arg)
{
	const struct page *p = arg;

	write_page(f, p->r, p->program);
	return NULL;
}

err_t explore_write_page(const struct explore_result *r, const char *program, const char *path)
{
	return newfile_write(path, NEWFILE_GIVEN, 0666, write_to, &(struct page){ r, program });
}
