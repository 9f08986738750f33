/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Coverage files, read and written.
 *
 *   csched-coverage 1
 *   build MODULE BUILD-ID
 *   part PART OF done|open
 *   pattern KIND STATUS PLACE PLACE [PLACE [PLACE]]
 *   end CHECKSUM
 *
 * PART is the number of a shard (--shard) out of OF, and done when nothing is left in it. MODULE is a file name, escaped as in schedule files; PLACE is MODULE+OFFSET, hexadecimal, less the load bias; STATUS is
 * covered, impossible or open. Of two statuses of one pattern the one that claims least of "never" holds: covered, then
 * open, then impossible (which it was only with the arguments of that run). CHECKSUM is FNV-1a over all before it.
 */
#include "analyzer/explore/coverage.h"

#include "common/door.h"
#include "common/newfile.h"
#include "common/strbuf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_FILE (256u << 20) /* bytes: more is no coverage file */
#define MAX_WORD 512u

static const char magic[] = "csched-coverage 1\n";
const char *const xpl_status_word[3] = { [XPL_OPEN] = "open", [XPL_COVERED] = "covered", [XPL_INFEASIBLE] = "impossible" };

uint64_t xpl_coverage_sum(const char *s, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3ull;
	return h;
}

/* A name as one word: what is no plain character becomes %XX. */
static void add_name(struct strbuf *b, const char *name)
{
	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;

		if (c <= ' ' || c >= 127 || c == '%' || c == '+')
			strbuf_fmt(b, "%%%02x", c);
		else
			strbuf_fmt(b, "%c", c);
	}
}

static struct img_module *module_named(struct img_set *images, const char *word)
{
	struct img_module *const *all;
	size_t n = img_modules(images, &all);

	for (size_t i = 0; i < n; i++) {
		struct strbuf b = { 0 };

		add_name(&b, img_module_name(all[i]));
		bool same = b.s && !strcmp(b.s, word);
		strbuf_free(&b);
		if (same)
			return all[i];
	}
	return NULL;
}

/* ---- reading ---- */

struct reading {
	struct xpl_drive *d;
	struct img_set *images;
	const char *path;
	unsigned line;
};

static err_t bad_line(const struct reading *r, const char *what)
{
	return err_new(ERR_INPUT, "%s: line %u: %s: the file is damaged; remove it, or name another with --resume",
		       r->path, r->line, what);
}

static err_t read_build(struct reading *r, const char *rest)
{
	char name[MAX_WORD], id[MAX_WORD];

	if (sscanf(rest, "%511s %511s", name, id) != 2)
		return bad_line(r, "no build-id");
	struct img_module *m = module_named(r->images, name);
	if (!m)
		return err_new(ERR_INPUT, "%s is of another program: it has %s, which this one has not; name another file "
			       "with --resume", r->path, name);
	char *mine = img_module_file(m) ? img_build_id_of_file(img_module_file(m)) : NULL;
	bool same = mine && !strcmp(mine, id);
	free(mine);
	if (!same)
		return err_new(ERR_INPUT, "%s is of another build of %s: places have moved since; name another file with "
			       "--resume", r->path, name);
	return NULL;
}

static bool place(struct reading *r, const char *word, uint64_t *pc)
{
	char name[MAX_WORD], *end;
	const char *plus = strrchr(word, '+');

	if (!plus || plus == word || (size_t)(plus - word) >= sizeof name)
		return false;
	memcpy(name, word, (size_t)(plus - word));
	name[plus - word] = 0;
	struct img_module *m = module_named(r->images, name);
	uint64_t offset = strtoull(plus + 1, &end, 16);
	if (!m || *end || end == plus + 1)
		return false;
	*pc = offset + img_module_bias(m);
	return true;
}

static err_t read_pattern(struct reading *r, const char *rest)
{
	char status[16], words[4][MAX_WORD];
	unsigned kind;
	uint64_t pc[4] = { 0 }, key;
	int got = sscanf(rest, "%u %15s %511s %511s %511s %511s", &kind, status, words[0], words[1], words[2], words[3]);
	unsigned n = got > 2 ? (unsigned)got - 2 : 0, s = 0;

	if (got < 4 || kind < 1 || kind > XPL_KINDS || n != strlen(xpl_kinds[kind].steps))
		return bad_line(r, "no pattern");
	while (s < 3 && strcmp(status, xpl_status_word[s]))
		s++;
	if (s == 3)
		return bad_line(r, "no status of a pattern");
	key = xpl_mix(0, kind);
	for (unsigned i = 0; i < n; i++) {
		if (!place(r, words[i], &pc[i]))
			return bad_line(r, "no place in this program");
		key = xpl_mix(key, pc[i]);
	}
	struct xpl_known *k = xpl_known_at(r->d, key);
	if (!k->kind) {
		k->kind = (uint8_t)kind;
		k->n = (uint8_t)n;
		memcpy(k->places, pc, sizeof pc);
		k->trace = XPL_NONE;
	}
	k->earlier = (enum xpl_status)s;
	k->from_file = true;
	if (s == XPL_COVERED && k->status != XPL_COVERED)
		r->d->covered++;
	k->status = (enum xpl_status)s;
	return NULL;
}

/* What some shards proved impossible the others may show, which are not there or have not ended. */
static void doubt(struct xpl_drive *d)
{
	for (size_t i = 0; i < d->known.n; i++)
		if (d->known.v[i].from_file && d->known.v[i].status == XPL_INFEASIBLE)
			d->known.v[i].status = d->known.v[i].earlier = XPL_OPEN;
}

/* What a shard had left open when it was ended it had not come to: that says nothing against a later proof. */
static void forget_open(struct xpl_drive *d)
{
	for (size_t i = 0; i < d->known.n; i++)
		d->known.v[i].from_file &= d->known.v[i].earlier != XPL_OPEN;
}

static err_t read_lines(struct reading *r, char *text)
{
	char *save = NULL;
	struct xpl_part part = { 0 };
	uint32_t done = 0;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		r->line++;
		if (!strncmp(line, "build ", 6))
			TRY(read_build(r, line + 6));
		else if (!strncmp(line, "pattern ", 8))
			TRY(read_pattern(r, line + 8));
		else if (!strncmp(line, "part ", 5) && !xpl_coverage_part(line + 5, &part))
			return bad_line(r, "no part");
		else if (r->line > 1 && strncmp(line, "end ", 4) && strncmp(line, "part ", 5))
			return bad_line(r, "unknown word");
		done += !strncmp(line, "part ", 5) && part.done;
	}
	/* A shard's own file is of its own part. */
	if (done != part.of && !r->d->o->shards)
		doubt(r->d);
	if (r->d->o->shards && !done)
		forget_open(r->d);
	return NULL;
}

static err_t check_whole(const char *path, const char *text, size_t n)
{
	const char *end = NULL;

	if (n < sizeof magic - 1 || memcmp(text, magic, sizeof magic - 1))
		return err_new(ERR_INPUT, "%s is no coverage file (csched-coverage 1)", path);
	for (const char *p = text; (p = strstr(p, "\nend ")); p++)
		end = p + 1;
	char *behind = NULL;
	if (!end || strtoull(end + 4, &behind, 16) != xpl_coverage_sum(text, (size_t)(end - text)) || strcmp(behind, "\n") ||
	    strlen(text) != n)
		return err_new(ERR_INPUT, "%s is damaged: its checksum does not agree; remove it, or name another with "
			       "--resume", path);
	return NULL;
}

err_t xpl_coverage_text(const char *path, char **out)
{
	int fd = door_open(DOOR_TRACE, path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char *text = NULL;
	size_t n = 0;

	*out = NULL;
	if (!f && errno == ENOENT)
		return NULL;
	if (!f)
		return err_errno("%s", path);
	for (size_t got = 1; got && n < MAX_FILE; n += got) {
		text = xrealloc(text, n + 65537);
		got = fread(text + n, 1, 65536, f);
	}
	bool bad = ferror(f) != 0;
	fclose(f);
	text[n] = 0;
	err_t e = bad ? err_new(ERR_INPUT, "%s cannot be read", path) : check_whole(path, text, n);
	if (e)
		free(text);
	else
		*out = text;
	return e;
}

bool xpl_coverage_part(const char *rest, struct xpl_part *out)
{
	char word[8];

	if (sscanf(rest, "%" SCNu32 " %" SCNu32 " %7s", &out->index, &out->of, word) != 3 || !out->index ||
	    out->index > out->of || (strcmp(word, "done") && strcmp(word, "open")))
		return false;
	out->done = !strcmp(word, "done");
	return true;
}

err_t xpl_coverage_read(struct xpl_drive *d, struct img_set *images, const char *path)
{
	struct reading r = { d, images, path, 0 };
	char *text;

	TRY(xpl_coverage_text(path, &text));
	err_t e = text ? read_lines(&r, text) : NULL;
	free(text);
	return e;
}

/* ---- writing ---- */

static void add_builds(struct strbuf *b, const struct xpl_drive *d, struct img_set *images)
{
	VEC(struct img_module *) done = { 0 };

	for (size_t i = 0; i < d->known.n; i++)
		for (unsigned s = 0; s < d->known.v[i].n; s++) {
			struct img_module *m = img_module_at(images, d->known.v[i].places[s]);
			bool is = !m;

			for (size_t k = 0; k < done.n && !is; k++)
				is = done.v[k] == m;
			if (is)
				continue;
			vec_push(&done, m);
			char *id = img_module_file(m) ? img_build_id_of_file(img_module_file(m)) : NULL;
			strbuf_fmt(b, "build ");
			add_name(b, img_module_name(m));
			strbuf_fmt(b, " %s\n", id && *id ? id : "-");
			free(id);
		}
	vec_free(&done);
}

static enum xpl_status merged(const struct xpl_known *k)
{
	if (!k->from_file || k->status == XPL_COVERED)
		return k->status;
	/* Proved in one run and open in another is open; not met at all in this one is what it was. */
	if (!k->met)
		return k->earlier;
	return k->status == k->earlier ? k->status : XPL_OPEN;
}

static err_t write_text(FILE *f, void *text)
{
	fputs(text, f);
	return NULL;
}

err_t xpl_coverage_write(const struct xpl_drive *d, struct img_set *images, const struct xpl_part *part, const char *path)
{
	struct strbuf b = { 0 };

	strbuf_fmt(&b, "%s", magic);
	add_builds(&b, d, images);
	if (part)
		strbuf_fmt(&b, "part %" PRIu32 " %" PRIu32 " %s\n", part->index, part->of, part->done ? "done" : "open");
	for (size_t i = 0; i < d->known.n; i++) {
		const struct xpl_known *k = &d->known.v[i];
		bool named = true;

		for (unsigned s = 0; s < k->n; s++)
			named &= img_module_at(images, k->places[s]) != NULL;
		if (!named)
			continue;
		strbuf_fmt(&b, "pattern %u %s", k->kind, xpl_status_word[merged(k)]);
		for (unsigned s = 0; s < k->n; s++) {
			struct img_module *m = img_module_at(images, k->places[s]);

			strbuf_fmt(&b, " ");
			add_name(&b, img_module_name(m));
			strbuf_fmt(&b, "+%" PRIx64, k->places[s] - img_module_bias(m));
		}
		strbuf_fmt(&b, "\n");
	}
	uint64_t sum = xpl_coverage_sum(b.s, strlen(b.s));
	strbuf_fmt(&b, "end %016" PRIx64 "\n", sum);
	err_t e = newfile_write(path, NEWFILE_GIVEN, 0666, write_text, b.s);
	strbuf_free(&b);
	return e;
}
