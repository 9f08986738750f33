/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is fed with changed inputs, as a table. */
#include "analyzer/cmd/test.h"
#include "analyzer/debug/packet.h"
#include "analyzer/enforce/schedule.h"
#include "analyzer/explore/coverage.h"
#include "analyzer/hunt/shard.h"
#include "analyzer/image/image.h"
#include "analyzer/symtrace/symtrace.h"
#include "analyzer/testgen/stack.h"
#include "common/pack.h"
#include "common/path.h"
#include "common/trace_read.h"
#include "tests/guided/guided.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of these bytes in a directory of our own, in memory where there is room for that; scripts/fuzz removes it. */
static const char *in_file(const char *name, const uint8_t *data, size_t n)
{
	static char dir[64], path[128];

	if (!dir[0]) {
		snprintf(dir, sizeof dir, "%s/csched-guided.XXXXXX", access("/dev/shm", W_OK) ? "." : "/dev/shm");
		if (!mkdtemp(dir))
			abort();
	}
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	close(fd);
	return path;
}

static void drop(err_t e)
{
	/* A message is text and ends. */
	if (e && strlen(e->msg) > 1u << 20)
		abort();
	err_free(e);
}

/* ---- traces: the process stream's file, in which the others may begin ---- */

static void walk(struct trc *t, struct trc_stream_file *s)
{
	struct trc_iter it;
	const struct trc_rec *rec;
	err_t e;

	drop(trc_verify(s, NULL));
	if (s->kind == TRC_STREAM_PATH)
		return;
	trc_iter_init(&it, s);
	while (!(e = trc_next(&it, &rec)) && rec)
		;
	drop(e);
	trc_thread_id(t, s->thread);
}

static void read_trace(const char *path)
{
	struct trc *t = NULL;
	err_t e = trc_open(path, TRC_TOLERANT, &t);

	for (size_t i = 0; !e && i < t->streams.n; i++)
		walk(t, t->streams.v[i]);
	if (!e)
		trc_close(t);
	drop(e);
}

static void run_trace(const uint8_t *data, size_t n)
{
	char *path = strdup(in_file("process", data, n));

	*strrchr(path, '/') = 0;
	read_trace(path);
	free(path);
}

static void mend_trace(uint8_t *data, size_t n)
{
	struct trc_chunk h;

	for (size_t at = 0; at + sizeof h <= n; at += sizeof h + h.capacity) {
		memcpy(&h, data + at, sizeof h);
		h.magic = TRC_MAGIC;
		h.header_sum = trc_checksum(&h, offsetof(struct trc_chunk, header_sum));
		if (h.length <= n - at - sizeof h)
			h.checksum = trc_checksum(data + at + sizeof h, h.length);
		memcpy(data + at, &h, sizeof h);
	}
}

static void run_pack(const uint8_t *data, size_t n)
{
	pack_set_most_unpacked(16 << 20);
	read_trace(in_file("a.cspack", data, n));
}

static void mend_pack(uint8_t *data, size_t n)
{
	struct pack_header h;

	if (n < sizeof h)
		return;
	memcpy(&h, data, sizeof h);
	if (h.index_offset <= n && h.index_size <= n - h.index_offset)
		h.index_sum = trc_checksum(data + h.index_offset, h.index_size);
	h.header_sum = trc_checksum(&h, offsetof(struct pack_header, header_sum));
	memcpy(data, &h, sizeof h);
	for (uint64_t at = h.index_offset, i = 0; i < h.nentries && at + sizeof(struct pack_entry) <= n; i++) {
		struct pack_entry e;

		memcpy(&e, data + at, sizeof e);
		if (e.offset <= n && e.packed_size <= n - e.offset)
			e.sum = trc_checksum(data + e.offset, e.packed_size);
		memcpy(data + at, &e, sizeof e);
		at += sizeof e + ((e.name_len + 7ull) & ~7ull);
	}
	if (h.index_offset <= n && h.index_size <= n - h.index_offset) {
		h.index_sum = trc_checksum(data + h.index_offset, h.index_size);
		h.header_sum = trc_checksum(&h, offsetof(struct pack_header, header_sum));
		memcpy(data, &h, sizeof h);
	}
}

/* ---- ELF and DWARF ---- */

#define MAPPED_AT 0x400000ull
#define ASKED 24u

static bool some_memory(void *arg, uint64_t addr, void *buf, size_t n)
{
	(void)arg;
	memset(buf, (int)(addr >> 3), n);
	return addr >= 0x7fff0000 && addr < 0x7fff8000;
}

static void ask_about(struct img_set *set, uint64_t at)
{
	struct img_regs regs = { .known = IMG_ALL_REGS };
	struct img_memory mem = { some_memory, NULL };
	struct img_context ctx = { .regs = &regs, .mem = &mem };
	struct img_frame frames[8];
	struct img_name name;
	uint64_t pcs[16];
	uint8_t bytes[16] = { 1, 2, 3 };

	for (unsigned i = 0; i < IMG_NREGS; i++)
		regs.r[i] = 0x7fff1000 + 64 * i;
	regs.r[IMG_RIP] = at;
	img_frames(set, at, frames, 8);
	free(img_symbol_text(set, at));
	img_unwind(set, &regs, &mem, pcs, 16);
	img_name_of(set, at, 4, &ctx, &name);
	free(name.text);
	img_name_of(set, 0x7fff1100 + at % 512, 8, &ctx, &name);
	if (name.type && name.type->size <= sizeof bytes)
		free(img_format_value(set, name.type, bytes, name.type->size));
	free(name.text);
	img_heap_type(set, &at, 1);
}

static void run_elf(const uint8_t *data, size_t n)
{
	const char *path = in_file("module.so", data, n);
	struct img_mapping map = { MAPPED_AT, MAPPED_AT + ((n + 4095) & ~4095ull), 0, 5 };
	struct img_module_desc desc = { .path = path, .maps = &map, .n_maps = 1, .named = true };
	struct img_set *set = img_set_new();
	struct img_module *m;
	uint64_t at;

	drop(img_add_module(set, &desc, &m));
	for (unsigned i = 0; i < ASKED; i++)
		ask_about(set, MAPPED_AT + i * (n / ASKED));
	if (img_address_of(set, "main", &at))
		ask_about(set, at + 4);
	img_addresses_of_line(set, "a.c", 3, &at, 1);
	img_set_free(set);
}

/* ---- texts ---- */

static void run_stack(const uint8_t *data, size_t n)
{
	FILE *f = fmemopen((void *)data, n ? n : 1, "r");
	struct stack s = { 0 };

	drop(stack_parse(f, "input", &s));
	stack_free(&s);
	fclose(f);
}

static void run_core(const uint8_t *data, size_t n)
{
	const char *path = in_file("core", data, n);
	struct stack s = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	drop(stack_read_core(path, fd, &s));
	stack_free(&s);
}

static void run_sym(const uint8_t *data, size_t n)
{
	FILE *f = fmemopen((void *)data, n ? n : 1, "r"), *null = fopen("/dev/null", "w");
	struct sym_trace *t = NULL;
	err_t e = sym_read(f, "input", &t);

	if (!e) {
		drop(sym_check(t));
		drop(sym_write(null, t));
		sym_trace_free(t);
	}
	drop(e);
	fclose(f);
	fclose(null);
}

static void run_shard(const uint8_t *data, size_t n)
{
	const char *path = in_file("a.shard", data, n);
	struct shard_file s = { 0 };
	err_t e = shard_read(path, &s);

	if (!e) {
		drop(shard_write(&s, path));
		shard_free(&s);
	}
	drop(e);
}

static void run_schedule(const uint8_t *data, size_t n)
{
	FILE *null = fopen("/dev/null", "w");
	struct schedule s = { 0 };
	err_t e = schedule_read(in_file("a.schedule", data, n), &s);

	if (!e) {
		for (size_t i = 0; i < s.turns.n; i++)
			free(schedule_end_text(&s.turns.v[i]));
		schedule_edge(&s, 1);
		schedule_rename(&s, "/tmp/f", "/bin/true");
		schedule_write(&s, null);
		schedule_free(&s);
	}
	drop(e);
	fclose(null);
}

static void run_coverage(const uint8_t *data, size_t n)
{
	const char *path = in_file("a.csched-coverage", data, n);
	struct xpl_coverage_file all = { 0 };
	uint64_t by_status[3];

	drop(xpl_coverage_unite(&all, path));
	drop(xpl_coverage_unite(&all, path));
	xpl_coverage_count(&all, by_status);
	xpl_coverage_unfinished(&all);
	drop(xpl_coverage_save(&all, path));
	xpl_coverage_file_free(&all);
}

/* "end SUM" is the last line: the sum of what stands before. */
static void mend_end(uint8_t *data, size_t n, uint64_t (*sum_of)(const char *, size_t))
{
	for (size_t i = n; i-- > 1;)
		if (n - i >= 20 && !memcmp(data + i, "\nend ", 5)) {
			char sum[17];

			snprintf(sum, sizeof sum, "%016llx", (unsigned long long)sum_of((const char *)data, i + 1));
			memcpy(data + i + 5, sum, n - i - 5 < 16 ? n - i - 5 : 16);
			return;
		}
}

static void mend_coverage(uint8_t *data, size_t n)
{
	mend_end(data, n, xpl_coverage_sum);
}

static uint64_t sum_of_shard(const char *data, size_t n)
{
	return trc_checksum(data, n);
}

static void mend_shard(uint8_t *data, size_t n)
{
	mend_end(data, n, sum_of_shard);
}

static void run_known(const uint8_t *data, size_t n)
{
	const char *path = in_file("known", data, n);
	struct test_known k = { 0 };

	drop(test_known_suppressions(&k, path, "2026-11-19"));
	test_known_reason(&k, "1c6fbe0b6163");
	test_known_free(&k);
	k = (struct test_known){ 0 };
	drop(test_known_baseline(&k, path));
	test_known_free(&k);
}

static void run_packet(const uint8_t *data, size_t n)
{
	struct packets *p = calloc(1, sizeof *p);
	uint8_t out[64];
	int both[2];

	n = n < 4096 ? n : 4096;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, both) || write(both[0], data, n) != (ssize_t)n)
		abort();
	shutdown(both[0], SHUT_WR);
	p->fd = both[1];
	while (packet_read(p))
		packet_unhex(p->body, out, sizeof out);
	close(both[0]);
	close(both[1]);
	free(p);
}

/* A bug that chance does not find: four bytes in a row, each of which is a branch of its own. */
static void run_planted(const uint8_t *data, size_t n)
{
	if (n > 3 && data[0] == 'b')
		if (data[1] == 0xc3)
			if (data[2] == 'g')
				if (data[3] == 0x07)
					abort();
}

static const char *const stack_words[] = { "#0 ", " in ", " at ", "0x", "Thread ", "SUMMARY: ", "==1==ERROR: AddressSanitizer: ", "(gdb) ",
	"    at ", "+0x", "std::", "<", ">", "(", ")", "\n", "WARNING: ThreadSanitizer: ", "libc.so.6", "SIGSEGV", "<signal handler called>", NULL };
static const char *const stack_seeds[] = {
	"Thread 2 (Thread 0x7f (LWP 12)):\n#0  0x0000555555555189 in take (q=0x0) at q.c:12\n#1  0x00007ffff7c8 in start_thread ()\n",
	"==12==ERROR: AddressSanitizer: heap-use-after-free on address 0x602 at pc 0x4\n    #0 0x4f in Queue::pop() /src/q.cc:31:7\n"
	"freed by thread T1 here:\n    #0 0x49 in free\n    #1 0x4f in Queue::clear() /src/q.cc:44\n",
	"*** Error in `./a': double free ***\n./a(+0x1189)[0x55]\n/lib/libc.so.6(abort+0x1)[0x7f]\n",
	"WARNING: ThreadSanitizer: data race (pid=1)\n  Write of size 4 at 0x7b by thread T1:\n    #0 set a.c:3 (a+0x12)\n", NULL };
static const char *const sym_words[] = { "(", ")", "\"", "thread ", "var ", "event ", "read", "write", "lock", "unlock", "cond ", "fail", " s0", " 0x", "int",
	"64", "\n", NULL };
static const char *const packet_seeds[] = { "$qSupported:multiprocess+#c6", "+$m400000,40#c3$Z0,401000,1#4a", "$vCont;c#a8\003$g#67", NULL };
static const char *const packet_words[] = { "$", "#", "+", "-", "\003", "}", "*", "00", "ff", NULL };
static const char *const known_seeds[] = { "# why\n1c6fbe0b6163 2027-01-31 known since May\npoint-0123456789abcdef 2026-01-01 old\n",
	"1c6fbe0b6163 test one: assertion `x' failed\n", NULL };
static const char *const schedule_words[] = { "edge ", "meet ", "then ", "turn ", "build ", "fails", "woken", "T0", "T0.1", "@", "+0x", " 1", "\n", NULL };
static const char *const coverage_words[] = { "pattern ", "build ", "part ", "covered", "open", "impossible", "+0", " - ", "17 ", "\n", NULL };
static const char *const shard_words[] = { "\n", " ", "shard ", "site ", "failure ", "end ", "1", "0x", "-1", "18446744073709551615", NULL };

const struct guided_target guided_targets[] = {
	{ "trace", run_trace, mend_trace, NULL, NULL },
	{ "pack", run_pack, mend_pack, NULL, NULL },
	{ "elf", run_elf, NULL, NULL, NULL },
	{ "core", run_core, NULL, NULL, NULL },
	{ "stack", run_stack, NULL, stack_words, stack_seeds },
	{ "sym", run_sym, NULL, sym_words, NULL },
	{ "packet", run_packet, NULL, packet_words, packet_seeds },
	{ "known", run_known, NULL, NULL, known_seeds },
	{ "shard", run_shard, mend_shard, shard_words, NULL },
	{ "schedule", run_schedule, NULL, schedule_words, NULL },
	{ "coverage", run_coverage, mend_coverage, coverage_words, NULL },
	{ "planted", run_planted, NULL, NULL, NULL },
	{ 0 },
};
