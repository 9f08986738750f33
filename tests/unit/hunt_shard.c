/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shard files: uniting is a union of sets, whatever they hold; what was written is read; damage is seen; thousands are quick. */
#include "analyzer/hunt/shard.h"
#include "tests/lib/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t state = 20261119;

static uint32_t below(uint32_t n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % n;
}

static void add_failures(struct shard *s, uint32_t n)
{
	static const char *const words[] = { "", "native", "site/1/2/3", "a b", "line\nline", "100%41\\", "\x01\xff" };

	while (n--) {
		struct shard_failure f = { .print = below(4), .count = 1 + below(3), .seed = below(9), .run = below(9), .kind = below(5),
					   .seconds = below(100) / 8.0, .strategy = xstrdup(words[below(7)]),
					   .text = xstrdup(words[below(7)]) };

		f.trace = below(3) ? xasprintf("/there/%u.csched", below(4)) : NULL;
		vec_push(&s->failures, f);
	}
}

/* Few seeds, shards and places, so that they meet; the same shard with other contents, too. */
static struct shard_file make(void)
{
	struct shard_file f = { .program = xstrdup("a program"), .build = 7, .command = xstrdup("'a program' x"),
				.steps = below(100), .threads = below(9) };

	for (uint32_t n = below(12); n--;) {
		struct ctl_site s = { .module = below(2), .offset = below(16), .flags = below(64), .hits = below(1000) };
		vec_push(&f.sites, s);
	}
	for (uint32_t n = 1 + below(4); n--;) {
		struct shard s = { .seed = below(2), .of = 1 + below(3), .runs = below(3), .seconds = below(3), .cpu = below(3) };

		s.index = 1 + below(s.of);
		s.statuses[below(256)] = 1 + below(3);
		add_failures(&s, below(3));
		vec_push(&f.shards, s);
	}
	return f;
}

static char *scratch, *text_path;

/* As a file: what merging is about. malloc'd. */
static char *text_of(const struct shard_file *f)
{
	err_t e = shard_write(f, text_path);
	FILE *in = e ? NULL : fopen(text_path, "r");
	char *text = xcalloc(1, 1 << 20);

	if (in) {
		text[fread(text, 1, (1 << 20) - 1, in)] = 0;
		fclose(in);
	}
	err_free(e);
	return text;
}

/* The same again, by way of a file. */
static struct shard_file copy(const struct shard_file *f)
{
	struct shard_file out = { 0 };

	free(text_of(f));
	err_t e = shard_read(text_path, &out);
	if (e)
		CHECK(false, "what was written is read: %s", e->msg);
	err_free(e);
	return out;
}

static struct shard_file united(const struct shard_file *a, const struct shard_file *b)
{
	struct shard_file all = { 0 }, x = copy(a), y = copy(b);

	shard_unite(&all, &x);
	shard_unite(&all, &y);
	shard_united(&all);
	return all;
}

static bool same(struct shard_file a, struct shard_file b)
{
	char *x = text_of(&a), *y = text_of(&b);
	bool is = *x && !strcmp(x, y);

	free(x);
	free(y);
	shard_free(&a);
	shard_free(&b);
	return is;
}

static void union_of_sets(void)
{
	unsigned commutes = 0, associates = 0, idles = 0, idles_whole = 0;

	for (int i = 0; i < 300; i++) {
		struct shard_file a = make(), b = make(), c = make(), ab = united(&a, &b), bc = united(&b, &c), aa = united(&a, &a);

		commutes += same(united(&a, &b), united(&b, &a));
		associates += same(united(&ab, &c), united(&a, &bc));
		idles += same(united(&aa, &a), united(&a, &aa));
		idles_whole += same(united(&ab, &b), united(&a, &b));
		shard_free(&a);
		shard_free(&b);
		shard_free(&c);
		shard_free(&ab);
		shard_free(&bc);
		shard_free(&aa);
	}
	CHECK(commutes == 300, "left and right is right and left (%u of 300)", commutes);
	CHECK(associates == 300, "three may be united in any order (%u of 300)", associates);
	CHECK(idles == 300 && idles_whole == 300, "what is there already changes nothing (%u, %u of 300)", idles, idles_whole);
}

/* Any byte of a file changed, and any cut: named as damaged, or read as something that is written the same. */
static void damage(void)
{
	struct shard_file f = make();
	char *text = text_of(&f);
	size_t n = strlen(text), wrong = 0, tries = 0;

	for (size_t i = 0; i < n; i++)
		for (int how = 0; how < 2; how++, tries++) {
			struct shard_file got = { 0 };
			FILE *out = fopen(text_path, "w");
			char was = text[i];

			text[i] = (char)(how ? was ^ 1 << below(8) : was);
			fwrite(text, 1, how ? n : i, out);
			fclose(out);
			text[i] = was;
			err_t e = shard_read(text_path, &got);
			wrong += !e || !strstr(e->msg, text_path);
			err_free(e);
			shard_free(&got);
		}
	CHECK(!wrong, "%zu damaged files: each is refused, and named (%zu not)", tries, wrong);
	free(text);
	shard_free(&f);
}

/* Files of so many shards, each with its own few of 2,000 sites, united in this process. */
static void many(uint32_t n)
{
	struct shard_file all = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		struct shard_file f = make();

		for (size_t k = 1; k < f.shards.n; k++)
			f.shards.v[k].seed += i / 2;
		f.shards.v[0].of = n;
		f.shards.v[0].index = i + 1;
		for (uint32_t k = 0; k < 200; k++) {
			struct ctl_site s = { .module = 3, .offset = below(2000), .flags = 1, .hits = 1 };
			vec_push(&f.sites, s);
		}
		shard_unite(&all, &f);
		shard_free(&f);
	}
	shard_united(&all);
	CHECK(all.shards.n >= n && all.sites.n >= 2000, "%u files are united: %zu shards, %zu sites", n, all.shards.n, all.sites.n);
	shard_free(&all);
}

int main(void)
{
	struct rusage u;

	scratch = xstrdup(access("/dev/shm", W_OK) ? "/tmp/csched-unit-XXXXXX" : "/dev/shm/csched-unit-XXXXXX");
	if (!mkdtemp(scratch))
		return 1;
	text_path = xasprintf("%s/x.csched-shard", scratch);
	union_of_sets();
	damage();
	many(8000);
	getrusage(RUSAGE_SELF, &u);
	CHECK(u.ru_maxrss < 200 << 10, "memory for 8,000 files below 200 MB");
	unlink(text_path);
	rmdir(scratch);
	free(text_path);
	free(scratch);
	CHECK_END();
}
