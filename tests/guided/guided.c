/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzing guided by coverage.
 *
 *   guided TARGET CORPUS FOUND SECONDS|-RUNS SEED [INPUT ...]
 *
 * CORPUS is a directory: its files, and the INPUTs, are what is changed; inputs that reach something new are added to it. FOUND
 * gets inputs that crash or hang. Prints one line; status 1: there are findings.
 */
#include "tests/guided/guided.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EDGES (1u << 16)
#define MOST_INPUT (1u << 20)
#define MOST_CORPUS 4096u
#define MOST_FINDINGS 20u
#define PER_CHILD 2000u /* runs: what a target leaks is given back with the process */
#define HANG_SECONDS 30u
#define OUT_OF_MEMORY 4 /* exit status of xmalloc(): an answer */

static struct shared {
	uint8_t ever[EDGES]; /* classes of counts that were seen */
	uint64_t runs, edges, state;
	uint32_t n;          /* of the input that runs */
	uint8_t input[MOST_INPUT];
} *shared;

static uint8_t counts[EDGES];
static uintptr_t last;
static bool counting;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	uintptr_t pc = (uintptr_t)__builtin_return_address(0);
	uint8_t *c = &counts[(pc ^ last) % EDGES];

	if (!counting)
		return;
	*c = (uint8_t)(*c + (*c < 255));
	last = pc >> 1;
}

/* One bit for each of 1, 2, 3, 4-7, 8-15, 16-31, 32-127, more. */
static uint8_t class_of(uint8_t n)
{
	return n == 0 ? 0 : n == 1 ? 1 : n == 2 ? 2 : n == 3 ? 4 : n < 8 ? 8 : n < 16 ? 16 : n < 32 ? 32 : n < 128 ? 64 : 128;
}

/* Did this run show something new? It is known then. */
static bool is_new(void)
{
	bool new = false;

	for (size_t i = 0; i < EDGES; i++) {
		uint8_t class = class_of(counts[i]);

		if (!(class & ~shared->ever[i]))
			continue;
		new = true;
		shared->edges += !shared->ever[i];
		shared->ever[i] |= class;
	}
	return new;
}

/* ---- choices ---- */

static uint64_t rnd(void)
{
	shared->state ^= shared->state << 13;
	shared->state ^= shared->state >> 7;
	shared->state ^= shared->state << 17;
	return shared->state;
}

static size_t below(size_t n)
{
	return n ? (size_t)(rnd() % n) : 0;
}

/* ---- the corpus ---- */

static struct item {
	uint8_t *data;
	size_t n;
} corpus[MOST_CORPUS];
static size_t ncorpus;

static void take(const uint8_t *data, size_t n)
{
	if (ncorpus == MOST_CORPUS || n > MOST_INPUT)
		return;
	corpus[ncorpus].data = malloc(n + 1);
	memcpy(corpus[ncorpus].data, data, n);
	corpus[ncorpus++].n = n;
}

static void take_file(const char *path)
{
	static uint8_t buf[MOST_INPUT];
	FILE *f = fopen(path, "rb");

	if (f) {
		take(buf, fread(buf, 1, sizeof buf, f));
		fclose(f);
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void take_directory(const char *path)
{
	static char *names[MOST_CORPUS];
	DIR *d = opendir(path);
	size_t n = 0;
	char whole[4096];

	for (struct dirent *e; d && n < MOST_CORPUS && (e = readdir(d));)
		if (e->d_name[0] != '.')
			names[n++] = strdup(e->d_name);
	if (d)
		closedir(d);
	qsort(names, n, sizeof *names, by_name);
	for (size_t i = 0; i < n; i++) {
		snprintf(whole, sizeof whole, "%s/%s", path, names[i]);
		take_file(whole);
		free(names[i]);
	}
}

static bool save(const char *dir, const char *prefix, const uint8_t *data, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ull;
	char path[4096];

	for (size_t i = 0; i < n; i++)
		h = (h ^ data[i]) * 0x100000001b3ull;
	snprintf(path, sizeof path, "%s/%s%016llx", dir, prefix, (unsigned long long)h);
	FILE *f = fopen(path, "wb");
	bool good = f && fwrite(data, 1, n, f) == n;

	return f && !fclose(f) && good;
}

/* ---- changes ---- */

static uint64_t odd_value(void)
{
	static const uint64_t values[] = { 0, 1, 2, 7, 8, 15, 16, 63, 64, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000,
					   0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff, 1ull << 63, ~0ull };

	return rnd() & 1 ? values[below(sizeof values / sizeof *values)] : rnd();
}

/* Room for `more` bytes at `at`. */
static bool open_gap(uint8_t *data, size_t *n, size_t at, size_t more)
{
	if (*n + more > MOST_INPUT)
		return false;
	memmove(data + at + more, data + at, *n - at);
	*n += more;
	return true;
}

static void put_word(const struct guided_target *t, uint8_t *data, size_t *n)
{
	size_t count = 0, at = below(*n + 1);

	while (t->words && t->words[count])
		count++;
	if (!count)
		return;
	const char *word = t->words[below(count)];
	size_t len = strlen(word);

	if (rnd() & 1 ? at + len <= *n : open_gap(data, n, at, len))
		memcpy(data + at, word, len);
}

/* A part of another input, or of this one. */
static void take_from_other(uint8_t *data, size_t *n)
{
	const struct item *other = &corpus[below(ncorpus)];
	size_t len = 1 + below(other->n < 256 ? other->n : 256), from = below(other->n), at = below(*n + 1);

	if (!other->n)
		return;
	if (from + len > other->n)
		len = other->n - from;
	if (rnd() & 1 ? at + len <= *n : open_gap(data, n, at, len))
		memcpy(data + at, other->data + from, len);
}

static void change_once(const struct guided_target *t, uint8_t *data, size_t *n)
{
	uint64_t value = odd_value();
	size_t at = below(*n), size = (size_t)1 << below(4), len;

	switch (*n ? below(9) : 7) {
	case 0:
		data[at] ^= (uint8_t)(1u << below(8));
		break;
	case 1:
		data[at] = (uint8_t)rnd();
		break;
	case 2:
		at -= rnd() & 1 ? at % size : 0;
		if (at + size <= *n)
			memcpy(data + at, &value, size);
		break;
	case 3:
		data[at] = (uint8_t)(data[at] + below(9) - 4);
		break;
	case 4: /* away with some */
		len = 1 + below(*n - at < 64 ? *n - at : 64);
		memmove(data + at, data + at + len, *n - at - len);
		*n -= len;
		break;
	case 5: /* once more */
		len = 1 + below(*n - at < 64 ? *n - at : 64);
		if (open_gap(data, n, at, len))
			memcpy(data + at, data + at + len, len < *n - at - len ? len : *n - at - len);
		break;
	case 6:
		put_word(t, data, n);
		break;
	case 7: /* from nowhere */
		at = below(*n + 1);
		len = 1 + below(8);
		if (open_gap(data, n, at, len))
			memcpy(data + at, &value, len < sizeof value ? len : sizeof value);
		break;
	default:
		take_from_other(data, n);
	}
}

/* ---- the child ---- */

static void once(const struct guided_target *t, const char *dir)
{
	memset(counts, 0, sizeof counts);
	last = 0;
	alarm(HANG_SECONDS);
	counting = true;
	t->run(shared->input, shared->n);
	counting = false;
	alarm(0);
	shared->runs++;
	if (is_new() && dir)
		save(dir, "", shared->input, shared->n);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void child(const struct guided_target *t, const char *dir, uint64_t most, double end)
{
	/* A crash comes to the parent as a signal; what a target prints is of no interest. */
	int null = open("/dev/null", O_WRONLY);

	dup2(null, 1);
	dup2(null, 2);
	for (unsigned i = 0; i < PER_CHILD && shared->runs < most && now() < end; i++) {
		const struct item *from = &corpus[below(ncorpus)];
		size_t n = from->n, known = shared->edges;

		memcpy(shared->input, from->data, n);
		for (size_t k = (size_t)1 << below(5); k; k--)
			change_once(t, shared->input, &n);
		if (t->mend && below(4))
			t->mend(shared->input, n);
		shared->n = (uint32_t)n;
		once(t, dir);
		if (shared->edges != known)
			take(shared->input, n);
	}
	_exit(0);
}

/* The inputs as they are: what they reach is known; one that crashes is a finding, and is left alone. */
static void try_corpus(const struct guided_target *t, size_t *at)
{
	int null = open("/dev/null", O_WRONLY);

	dup2(null, 1);
	dup2(null, 2);
	for (; *at < ncorpus; ++*at) {
		shared->n = (uint32_t)corpus[*at].n;
		memcpy(shared->input, corpus[*at].data, shared->n);
		once(t, NULL);
	}
	_exit(0);
}

static bool is_finding(int status)
{
	return WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) && WEXITSTATUS(status) != OUT_OF_MEMORY);
}

/* Runs work in a child; true: its input is a finding. */
static bool in_child(const struct guided_target *t, const char *dir, uint64_t most, double end, size_t *at)
{
	int status = 0;

	fflush(NULL);
	pid_t pid = fork();
	if (!pid) {
		if (at)
			try_corpus(t, at);
		child(t, dir, most, end);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && is_finding(status);
}

int main(int argc, char **argv)
{
	const struct guided_target *t = guided_targets;
	unsigned findings = 0;

	while (argc > 5 && t->name && strcmp(t->name, argv[1]))
		t++;
	if (argc < 6 || !t->name) {
		fprintf(stderr, "usage: guided TARGET CORPUS FOUND SECONDS|-RUNS SEED [INPUT ...]\n");
		return 2;
	}
	double limit = atof(argv[4]), end = limit > 0 ? now() + limit : 1e18;
	uint64_t most = limit < 0 ? (uint64_t)-limit : UINT64_MAX;

	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	size_t *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared->state = 0x9e3779b97f4a7c15ull * (strtoull(argv[5], NULL, 10) + 1) | 1;
	take_directory(argv[2]);
	for (int i = 6; i < argc; i++)
		take_file(argv[i]);
	for (size_t i = 0; t->seeds && t->seeds[i]; i++)
		take((const uint8_t *)t->seeds[i], strlen(t->seeds[i]));
	if (!ncorpus)
		take((const uint8_t *)"", 0);
	while (*at < ncorpus && findings < MOST_FINDINGS)
		if (in_child(t, NULL, 0, 0, at)) {
			findings += save(argv[3], argv[1], shared->input, shared->n);
			++*at;
		}
	uint64_t from = shared->edges;
	while (shared->runs < most && now() < end && findings < MOST_FINDINGS) {
		/* What the last child found new is there for the next one. */
		for (; ncorpus; ncorpus--)
			free(corpus[ncorpus - 1].data);
		take_directory(argv[2]);
		for (int i = 6; i < argc; i++)
			take_file(argv[i]);
		for (size_t i = 0; t->seeds && t->seeds[i]; i++)
			take((const uint8_t *)t->seeds[i], strlen(t->seeds[i]));
		if (!ncorpus)
			take((const uint8_t *)"", 0);
		if (in_child(t, argv[2], most, end, NULL))
			findings += save(argv[3], argv[1], shared->input, shared->n);
	}
	printf("%s: %llu runs, %llu edges (%llu at first), corpus of %zu, %u findings\n", t->name, (unsigned long long)shared->runs,
	       (unsigned long long)shared->edges, (unsigned long long)from, ncorpus, findings);
	return findings > 0;
}
