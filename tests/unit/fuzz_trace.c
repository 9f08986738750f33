/*
 * Thousands of damaged traces through the reader, info and dump, under ASan
 * and UBSan. What must hold for each: an answer or a clear error (status 3),
 * never a crash, never a hang. The damage is made with the format in mind:
 * checksums are made good again in half of the cases, else nothing behind them
 * would ever be tested.
 */
#include "analyzer/cmd/cmd.h"
#include "analyzer/cmd/dump_records.h"
#include "common/pack.h"
#include "common/path.h"
#include "common/trace_read.h"
#include "common/trace_types.h"
#include "tests/lib/check.h"
#include "tests/lib/trace_writer.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define DIR_NAME "fuzz.csched"
#define PACK_NAME "fuzz.cspack"
#define ROUNDS 4000
#define HANG_SECONDS 60 /* far beyond what any of them needs */

/* ---- a reproducible source of choices ---- */

static uint64_t state;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static size_t below(size_t n)
{
	return n ? (size_t)(rnd() % n) : 0;
}

static uint64_t odd_value(void)
{
	static const uint64_t values[] = {
		0, 1, 7, 8, 9, 63, 64, 255, 256, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000,
		0xfffffff8, 0xffffffff, 0x100000000, 0x7fffffffffffffff, 0xffffffffffffffff,
	};

	return rnd() & 1 ? values[below(sizeof values / sizeof *values)] : rnd();
}

/* ---- the good trace, in memory ---- */

struct file {
	char name[32];
	uint8_t *data;
	size_t n;
};
static struct file good[32];
static size_t ngood;

static struct file read_file(const char *path, const char *name)
{
	struct file f = { .data = NULL };
	FILE *in = fopen(path, "rb");

	snprintf(f.name, sizeof f.name, "%s", name);
	fseek(in, 0, SEEK_END);
	f.n = (size_t)ftell(in);
	rewind(in);
	f.data = malloc(f.n + 1);
	if (fread(f.data, 1, f.n, in) != f.n)
		printf("not ok cannot read %s\n", path);
	fclose(in);
	return f;
}

static void write_file(const char *path, const uint8_t *data, size_t n)
{
	FILE *out = fopen(path, "wb");

	if (!out || fwrite(data, 1, n, out) != n || fclose(out))
		printf("not ok cannot write %s\n", path);
}

static void load_good(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)) && ngood < sizeof good / sizeof *good) {
		char path[512];

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%.200s/%.200s", dir, e->d_name);
		good[ngood++] = read_file(path, e->d_name);
	}
	if (d)
		closedir(d);
}

/* ---- damage ---- */

/* Offsets of the chunk headers as they stand now (at most max). */
static size_t chunks_of(const struct file *f, size_t *at, size_t max)
{
	size_t n = 0;

	for (size_t o = 0; o + 64 <= f->n && n < max;) {
		struct trc_chunk h;

		memcpy(&h, f->data + o, sizeof h);
		if (h.magic != TRC_MAGIC)
			break;
		at[n++] = o;
		o += 64 + (size_t)h.capacity;
	}
	return n;
}

/* Makes all checksums right for whatever the bytes are now. */
static void make_good(struct file *f)
{
	size_t at[64], n = chunks_of(f, at, 64);

	for (size_t i = 0; i < n; i++) {
		struct trc_chunk h;

		memcpy(&h, f->data + at[i], sizeof h);
		h.header_sum = trc_checksum(&h, offsetof(struct trc_chunk, header_sum));
		if (h.length != TRC_CHUNK_OPEN && h.length <= f->n - at[i] - 64)
			h.checksum = trc_checksum(f->data + at[i] + 64, h.length);
		memcpy(f->data + at[i], &h, sizeof h);
	}
}

static void flip_bits(struct file *f)
{
	for (size_t k = 1 + below(8); k && f->n; k--)
		f->data[below(f->n)] ^= (uint8_t)(1u << below(8));
}

static void truncate_it(struct file *f)
{
	f->n = below(f->n + 1);
}

static void lengthen(struct file *f)
{
	size_t more = 1 + below(300);

	f->data = realloc(f->data, f->n + more);
	for (size_t i = 0; i < more; i++)
		f->data[f->n + i] = rnd() & 3 ? (uint8_t)rnd() : 0;
	f->n += more;
}

/* A number inside some record becomes another. */
static void edit_word(struct file *f)
{
	size_t at[64], n = chunks_of(f, at, 64);
	uint64_t v = odd_value();

	if (!n)
		return;
	size_t payload = at[below(n)] + 64;
	size_t size = 1u << below(4);
	size_t o = payload + below(rnd() & 1 ? 64 : f->n - payload) / size * size;

	if (o + size <= f->n)
		memcpy(f->data + o, &v, size);
}

static void edit_header(struct file *f)
{
	size_t at[64], n = chunks_of(f, at, 64);
	uint64_t v = odd_value();

	if (n)
		memcpy(f->data + at[below(n)] + 4 * below(15), &v, 4);
}

static void swap_chunks(struct file *f)
{
	size_t at[64], n = chunks_of(f, at, 64);
	struct trc_chunk h;

	if (n < 2)
		return;
	memcpy(&h, f->data + at[0], sizeof h);
	size_t size = 64 + (size_t)h.capacity, a = at[below(n)], b = at[below(n)];

	if (a == b || a + size > f->n || b + size > f->n)
		return;
	uint8_t *tmp = malloc(size);
	memcpy(tmp, f->data + a, size);
	memcpy(f->data + a, f->data + b, size);
	memcpy(f->data + b, tmp, size);
	free(tmp);
}

static void drop_chunk(struct file *f)
{
	size_t at[64], n = chunks_of(f, at, 64);

	if (n < 2)
		return;
	size_t i = below(n - 1);

	memmove(f->data + at[i], f->data + at[i + 1], f->n - at[i + 1]);
	f->n -= at[i + 1] - at[i];
}

static void noise(struct file *f)
{
	size_t at[64], n = chunks_of(f, at, 64);

	for (size_t k = 0; n && k < 40; k++) {
		size_t o = at[n - 1] + 64 + below(64);

		if (o < f->n)
			f->data[o] = (uint8_t)rnd();
	}
}

static void (*const damages[])(struct file *) = {
	flip_bits, truncate_it, lengthen, edit_word, edit_word, edit_word, edit_word,
	edit_header, swap_chunks, drop_chunk, noise,
};

static struct file copy_of(const struct file *f)
{
	struct file c = *f;

	c.data = malloc(f->n + 1);
	memcpy(c.data, f->data, f->n);
	return c;
}

/* Damages one file of the directory; which one. */
static size_t damage_directory(void)
{
	size_t target = below(ngood);
	/* Now and then it gets some other stream's bytes. */
	struct file f = copy_of(&good[below(20) ? target : below(ngood)]);
	char path[64];

	for (size_t k = 1 + below(3); k; k--)
		damages[below(sizeof damages / sizeof *damages)](&f);
	if (rnd() & 1)
		make_good(&f);
	snprintf(path, sizeof path, DIR_NAME "/%s", good[target].name);
	write_file(path, f.data, f.n);
	free(f.data);
	return target;
}

static void restore(size_t target)
{
	char path[64];

	snprintf(path, sizeof path, DIR_NAME "/%s", good[target].name);
	write_file(path, good[target].data, good[target].n);
}

static void damage_pack(const struct file *pack)
{
	struct file f = copy_of(pack);
	struct pack_header h;

	if (!below(4))
		truncate_it(&f);
	else if (below(3)) {
		uint64_t v = odd_value();
		size_t o = below(3) ? below(f.n) : below(64), n = 1u << below(4);

		if (o + n <= f.n)
			memcpy(f.data + o, &v, n);
	} else
		flip_bits(&f);
	memcpy(&h, f.data, f.n < sizeof h ? 0 : sizeof h);
	if (f.n >= sizeof h && rnd() & 1) {
		if (h.index_offset <= f.n && h.index_size <= f.n - h.index_offset)
			h.index_sum = trc_checksum(f.data + h.index_offset, h.index_size);
		h.header_sum = trc_checksum(&h, offsetof(struct pack_header, header_sum));
		memcpy(f.data, &h, sizeof h);
	}
	write_file(PACK_NAME, f.data, f.n);
	free(f.data);
}

/* ---- reading ---- */

static void walk_paths(struct trc *t)
{
	struct path_frags *frags;
	err_t e = path_frags_load(t, &frags);

	if (e) {
		err_free(e);
		return;
	}
	for (size_t i = 0; i < t->threads.n; i++) {
		struct path_walk w;
		struct path_step step;
		bool done = false;

		e = path_walk_init(&w, t, frags, &t->threads.v[i]);
		while (!e && !done)
			e = path_walk_next(&w, &step, NULL, &done);
		err_free(e);
		path_walk_free(&w);
	}
	path_frags_free(frags);
}

static bool fine(err_t e)
{
	bool good_error = !e || (e->code == ERR_INPUT && strlen(e->msg) > 10);

	err_free(e);
	return good_error;
}

static bool read_trace(const char *path)
{
	struct trc *t;
	err_t e = trc_open(path, TRC_TOLERANT, &t);
	bool good_so_far = true;

	if (e)
		return fine(e);
	for (size_t i = 0; i < t->streams.n; i++)
		good_so_far &= fine(trc_verify(t->streams.v[i], NULL));
	for (size_t i = 0; i < t->threads.n; i++)
		trc_thread_id(t, (uint32_t)i);
	walk_paths(t);
	trc_close(t);
	return good_so_far;
}

/* Runs a command with its output thrown away; its status. */
static int quietly(cmd_function *command, char **argv)
{
	int argc = 0, out = dup(1), err = dup(2), null = open("/dev/null", O_WRONLY);

	while (argv[argc])
		argc++;
	fflush(stdout);
	dup2(null, 1);
	dup2(null, 2);
	int status = command(argc, argv);
	fflush(stdout);
	dup2(out, 1);
	dup2(err, 2);
	close(out);
	close(err);
	close(null);
	return status;
}

static bool run_commands(const char *path)
{
	char *p = (char *)path;
	char *lines[][5] = {
		{ "info", p, NULL },           { "info", "--json", p, NULL },
		{ "dump", p, NULL },           { "dump", "--json", "--bytes=9999", p, NULL },
		{ "dump", "--path", p, NULL },
	};
	bool good_so_far = true;

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		int status = quietly(i < 2 ? cmd_info : cmd_dump, lines[i]);

		if (status != 0 && status != ERR_INPUT) {
			printf("# %s: status %d\n", lines[i][0], status);
			good_so_far = false;
		}
	}
	return good_so_far;
}

static bool make_pack(void)
{
	struct pack_writer *w;
	err_t e = pack_create(PACK_NAME, 3, &w);

	for (size_t i = 0; i < ngood && !e; i++)
		e = pack_add(w, good[i].name, good[i].data, good[i].n);
	if (!e)
		e = pack_finish(w, NULL);
	return !e;
}

static unsigned fuzz_directory(unsigned rounds)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < rounds; i++) {
		state = 0x9e3779b97f4a7c15ull * (i + 1);
		alarm(HANG_SECONDS);
		printf("# directory %u\n", i);
		size_t target = damage_directory();
		bad += !read_trace(DIR_NAME);
		if (i % 8 == 0)
			bad += !run_commands(DIR_NAME);
		restore(target);
	}
	return bad;
}

static unsigned fuzz_pack(const struct file *pack, unsigned rounds)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < rounds; i++) {
		state = 0xd1342543de82ef95ull * (i + 1);
		alarm(HANG_SECONDS);
		printf("# pack %u\n", i);
		damage_pack(pack);
		bad += !read_trace(PACK_NAME);
		if (i % 16 == 0)
			bad += !run_commands(PACK_NAME);
	}
	return bad;
}

/*
 * Single records, in memory of exactly their size: a mapped file hides reads
 * beyond a record, ASan's red zones do not.
 */
static void fuzz_record(struct dump *d, const struct trc_rec *rec, enum trc_stream kind)
{
	uint32_t size = rec->size;
	struct trc_rec *copy = malloc(size);

	memcpy(copy, rec, size);
	for (size_t k = 1 + below(3); k; k--) {
		uint64_t v = odd_value();
		size_t n = 1u << below(4), o = below(size) / n * n;

		memcpy((char *)copy + o, &v, o + n <= size ? n : 1);
	}
	copy->size = size;
	if (!trc_rec_wrong(copy, kind))
		dump_record(d, "fuzz", 0, copy);
	free(copy);
}

static void fuzz_records(unsigned rounds)
{
	FILE *null = fopen("/dev/null", "w");
	struct term term = { .f = null };
	struct dump d = { .max_bytes = 1 << 20 };
	struct trc *t;

	if (trc_open(DIR_NAME, 0, &t))
		return;
	show_init(&d.show, t, &term);
	for (unsigned i = 0; i < rounds; i++) {
		struct trc_stream_file *s = t->streams.v[i % t->streams.n];
		struct trc_iter it;
		const struct trc_rec *rec = NULL;

		state = 0xa0761d6478bd642full * (i + 1);
		alarm(HANG_SECONDS);
		trc_iter_init(&it, s);
		for (size_t k = s->kind == TRC_STREAM_PATH ? 0 : 1 + below(48); k; k--) {
			if (trc_next(&it, &rec) || !rec)
				break;
			fuzz_record(&d, rec, s->kind);
		}
	}
	show_free(&d.show);
	trc_close(t);
	fclose(null);
}

/* fuzz_trace [ROUNDS [TRACE]]: damages TRACE, or the sample with every record type. */
int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : ROUNDS;

	tw_sample(DIR_NAME);
	tw_move_first(DIR_NAME, "t2.rec", "process");
	tw_free_slot(DIR_NAME, TRC_STREAM_PATH);
	load_good(argc > 2 ? argv[2] : DIR_NAME);
	for (size_t i = 0; i < ngood; i++)
		restore(i);
	CHECK(read_trace(DIR_NAME) && run_commands(DIR_NAME), "the undamaged trace is read");
	CHECK(make_pack() && run_commands(PACK_NAME), "and its packed form");
	struct file pack = read_file(PACK_NAME, PACK_NAME);
	unsigned bad = fuzz_directory(rounds);
	CHECK(bad == 0, "%u damaged directories: an answer or status 3 for each", rounds);
	bad = fuzz_pack(&pack, rounds / 4);
	CHECK(bad == 0, "%u damaged packs: an answer or status 3 for each", rounds / 4);
	free(pack.data);
	fuzz_records(rounds);
	CHECK(true, "%u rounds of damaged single records: no read beyond them", rounds);
	for (size_t i = 0; i < ngood; i++)
		free(good[i].data);
	CHECK_END();
}
