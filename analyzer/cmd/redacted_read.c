/* Reading redacted packs: everything in them is text to be shown. */
#include "analyzer/cmd/redacted.h"
#include "analyzer/term.h"
#include "common/newfile.h"

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

static err_t copy(FILE *to, void *fd)
{
	char buf[1 << 14];
	ssize_t n;

	while ((n = read(*(int *)fd, buf, sizeof buf)) > 0)
		fwrite(buf, 1, (size_t)n, to);
	return n < 0 || fflush(to) || ferror(to) ? err_errno("cannot write") : NULL;
}

/* One entry, to a file; "-" or NULL is standard output. */
static err_t extract(const char *path, const char *name, const char *out)
{
	struct pack *p;
	size_t i;
	int fd;

	TRY(pack_open(path, &p));
	err_t e = find(p, name, &i) ? pack_extract(p, i, &fd) :
				      err_new(ERR_INPUT, "%s: has no %s", path, name);
	if (!e) {
		lseek(fd, 0, SEEK_SET);
		e = out && strcmp(out, "-") ? newfile_write(out, NEWFILE_GIVEN, 0666, copy, &fd) : copy(stdout, &fd);
		close(fd);
	}
	pack_close(p);
	return e;
}

err_t redacted_report(const char *path, const struct report_options *o)
{
	const struct {
		const char *out, *name;
	} files[] = { { o->html, "report.html" }, { o->dot, "report.dot" }, { o->sarif, "report.sarif" } };
	bool stdout_used = false;

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (!files[i].out)
			continue;
		TRY(extract(path, files[i].name, files[i].out));
		stdout_used |= !strcmp(files[i].out, "-");
	}
	if (stdout_used)
		return NULL;
	return extract(path, o->json ? "report.json" : o->markdown ? "report.md" : "report.txt", NULL);
}

err_t redacted_sym(const char *path, const char *out)
{
	return extract(path, REDACTED_SYM, out);
}

err_t redacted_info(const char *path, bool json)
{
	if (json)
		return extract(path, "report.json", NULL);
	char *safe = term_text_of(path, strlen(path));

	printf("pack      %s (redacted: symbolic trace and reports, no memory)\nfingerprint ", safe);
	fflush(stdout);
	free(safe);
	TRY(extract(path, "fingerprint", NULL));
	struct strbuf b = { 0 };

	strbuf_word(&b, path, strlen(path));
	printf("\nnext      csched explain %s; csched trace %s | csched solve -\n", b.s, b.s);
	strbuf_free(&b);
	return NULL;
}
