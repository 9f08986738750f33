/* Reading redacted packs: everything in them is text to be shown, written by somebody else (report/clean.h). */
#include "analyzer/cmd/redacted.h"
#include "analyzer/report/clean.h"
#include "analyzer/symtrace/symtrace.h"
#include "analyzer/term.h"
#include "common/newfile.h"
#include "common/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool find(const struct pack *p, const char *name, size_t *i)
{
	for (*i = 0; *i < pack_count(p); ++*i)
		if (!strcmp(pack_name(p, *i), name))
			return true;
	return false;
}

bool redacted_is(const char *path)
{
	struct pack *p;
	size_t i;

	if (!pack_is(path))
		return false;
	err_t e = pack_open(path, &p);
	if (e) {
		err_free(e);
		return false;
	}
	bool is = find(p, REDACTED_MARK, &i);
	pack_close(p);
	return is;
}

#define MOST_TEXT (1u << 30) /* reports are read whole */

/* One entry, whole, with a NUL behind it. */
static err_t load(const char *path, const char *name, char **text, size_t *n)
{
	struct pack *p;
	size_t i;
	int fd = -1;

	TRY(pack_open(path, &p));
	err_t e = !find(p, name, &i) ? err_new(ERR_INPUT, "%s: has no %s", path, name) :
		  pack_size(p, i) > MOST_TEXT ? err_new(ERR_INPUT, "%s: %s is too large", path, name) : pack_extract(p, i, &fd);
	if (!e) {
		size_t size = (size_t)pack_size(p, i);

		*text = xmalloc(size + 1);
		for (ssize_t got = 1; *n < size && got > 0; *n += got > 0 ? (size_t)got : 0)
			got = pread(fd, *text + *n, size - *n, (off_t)*n);
		(*text)[*n] = 0;
		if (*n != size)
			e = err_new(ERR_INPUT, "%s: %s cannot be read", path, name);
		close(fd);
	}
	pack_close(p);
	return e;
}

/* An entry on its way out: what is in it comes from somebody else. */
struct entry {
	const char *path, *name;
	clean_function *clean;
};

static err_t write_clean(FILE *f, void *arg)
{
	const struct entry *x = arg;
	char *text = NULL;
	size_t n = 0;
	err_t e = load(x->path, x->name, &text, &n);

	if (!e)
		e = err_wrap(x->clean(f, text, n), "%s: %s", x->path, x->name);
	free(text);
	if (!e && (fflush(f) || ferror(f)))
		e = err_errno("cannot write");
	return e;
}

/* To a file; "-" or NULL is standard output. */
static err_t extract(const char *path, const char *name, clean_function *clean, const char *out)
{
	struct entry x = { path, name, clean };

	return out && strcmp(out, "-") ? newfile_write(out, NEWFILE_GIVEN, 0666, write_clean, &x) : write_clean(stdout, &x);
}

err_t redacted_report(const char *path, const struct report_options *o)
{
	const struct {
		const char *out, *name;
		clean_function *clean;
	} files[] = { { o->html, "report.html", clean_html }, { o->dot, "report.dot", clean_dot },
		      { o->sarif, "report.sarif", clean_sarif } };
	bool stdout_used = false;

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (!files[i].out)
			continue;
		TRY(extract(path, files[i].name, files[i].clean, files[i].out));
		stdout_used |= !strcmp(files[i].out, "-");
	}
	if (stdout_used)
		return NULL;
	if (o->json)
		return extract(path, "report.json", clean_json, NULL);
	return o->markdown ? extract(path, "report.md", clean_markdown, NULL) : extract(path, "report.txt", clean_text, NULL);
}

/* Read as a symbolic trace, and written anew. */
static err_t clean_sym(FILE *f, const char *s, size_t n)
{
	FILE *in = fmemopen((void *)s, n ? n : 1, "r");
	struct sym_trace *t = NULL;

	if (!in)
		return err_errno("no memory for the symbolic trace");
	err_t e = sym_read(in, REDACTED_SYM, &t);
	fclose(in);
	if (!e)
		e = sym_write(f, t);
	sym_trace_free(t);
	return e;
}

err_t redacted_sym(const char *path, const char *out)
{
	return extract(path, REDACTED_SYM, clean_sym, out);
}

static err_t clean_fingerprint(FILE *f, const char *s, size_t n)
{
	if (n > 64 || strspn(s, "0123456789abcdef\n") != n)
		return err_new(ERR_INPUT, "is no fingerprint");
	return clean_text(f, s, n);
}

err_t redacted_info(const char *path, bool json)
{
	if (json)
		return extract(path, "report.json", clean_json, NULL);
	char *safe = term_text_of(path, strlen(path));

	printf("pack      %s (redacted: symbolic trace and reports, no memory)\nfingerprint ", safe);
	fflush(stdout);
	free(safe);
	TRY(extract(path, "fingerprint", clean_fingerprint, NULL));
	struct strbuf b = { 0 };

	strbuf_word(&b, path, strlen(path));
	printf("\nnext      csched explain %s; csched trace %s | csched solve -\n", b.s, b.s);
	strbuf_free(&b);
	return NULL;
}
