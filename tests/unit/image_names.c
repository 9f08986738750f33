/* Frames, inlined frames, names and values of a C program, by compiler and flags. */
#include "common/door.h"
#include "tests/unit/image_live.h"

#include <pthread.h>

static const char *what;

static void check_globals(struct live *l)
{
	uint64_t pool = address(l, "pool"), matrix = address(l, "matrix");
	uint64_t points = address(l, "points");

	CHECK_NAME(l, address(l, "counter"), 4, NULL, "counter");
	CHECK_NAME(l, address(l, "counter") + 1, 1, NULL, "counter+1");
	CHECK_NAME(l, matrix + (2 * 5 + 3) * 2, 2, NULL, "matrix[2][3]");
	CHECK_NAME(l, matrix + (2 * 5 + 3) * 2, 4, NULL, "matrix[2][3..4]");
	CHECK_NAME(l, points + 4 * 8 + 4, 4, NULL, "points[4].y");
	CHECK_NAME(l, points + 4 * 8, 8, NULL, "points[4]");
	CHECK_NAME(l, pool, 4, NULL, "pool.lock");
	CHECK_NAME(l, address(l, "locks") + 2 * sizeof(pthread_mutex_t), 1, NULL, "locks[2]");
	CHECK_NAME(l, pool + 40, 4, NULL, "pool.count");
	CHECK_NAME(l, pool + 44 + 8 + 4, 4, NULL, "pool.corner[1].y");
	CHECK_NAME(l, pool + 40, 8, NULL, "pool.{count,corner}");
	CHECK_NAME(l, pool + 72, 8, NULL, "pool.head");
	CHECK_NAME(l, pool + 80, 8, NULL, "pool.u.whole");
	CHECK_NAME(l, pool + 84, 4, NULL, "pool.u.high");
	CHECK_NAME(l, pool + 88, 2, NULL, "pool.{ready,busy,level}");
	if (!strstr(what, "split")) /* known limit: indexed constants of .dwo files */
		CHECK_NAME(l, word_at(l, address(l, "per_thread_at")), 4, NULL, "per_thread");
}

static void check_static(struct live *l)
{
	struct img_name n;

	img_name_of(l->set, word_at(l, address(l, "calls_at")), 4, NULL, &n);
	CHECK(same(n.text, "calls") && same(n.function, "deep") && n.place == IMG_GLOBAL,
	      "%s: static of a function (got %s in %s)", what, n.text, n.function);
	CHECK(n.file && strstr(n.file, "sample.c") && n.line, "%s: where it is declared", what);
	free(n.text);
}

static void check_value(struct live *l, const char *symbol, size_t size, const char *want)
{
	struct img_name n;
	uint64_t bytes[2] = { 0 };
	uint64_t addr = address(l, symbol);

	img_name_of(l->set, addr, size, NULL, &n);
	live_read(&l->mem, addr, bytes, size);
	char *s = img_format_value(l->set, n.type, bytes, size);

	CHECK(same(s, want), "%s: %s has the value %s (got %s)", what, symbol, want, s);
	free(s);
	free(n.text);
}

static void check_values(struct live *l)
{
	char *s;

	check_value(l, "counter", 4, "-3");
	check_value(l, "colour", 4, "GREEN");
	check_value(l, "flags", 4, "F_READ|F_EXEC");
	check_value(l, "letter", 1, "97 'a'");
	check_value(l, "yes", 1, "true");
	check_value(l, "ratio", 8, "0.1");
	check_value(l, "third", 4, "1.5");
	uint64_t main_at = address(l, "main");
	char want[64];

	snprintf(want, sizeof want, "0x%llx <main>", (unsigned long long)main_at);
	check_value(l, "callback", 8, want);
	s = img_format_value(l->set, NULL, "\x01\x02", 2);
	CHECK(same(s, "513"), "untyped bytes are a number");
	free(s);
}

static struct img_frame frame_named(struct live *l, uint64_t pc, const char *function)
{
	struct img_frame f[16], none = { 0 };
	size_t n = img_frames(l->set, pc, f, 16);

	for (size_t i = 0; i < n; i++)
		if (same(f[i].function, function))
			return f[i];
	return none;
}

static bool line_says(struct live *l, const struct img_frame *f, const char *text)
{
	const char *line = img_source_line(l->set, f->file, f->line);

	return line && strstr(line, text);
}

/* At the first stop: deep(0) below deep(1), deep(2), deep(3), main. */
static void check_stack(struct live *l)
{
	uint64_t pcs[32];
	size_t n = img_unwind(l->set, &l->regs, &l->memory, pcs, 32);
	struct img_frame f = frame_named(l, l->regs.r[IMG_RIP] - 1, "deep");
	int deep = 0;
	bool has_main = false;

	CHECK(f.function && line_says(l, &f, "line of deep"), "%s: pc has function and line",
	      what);
	CHECK(f.column > 0 && same(f.module, "prog") && !f.inlined, "%s: column and module", what);
	for (size_t i = 0; i < n; i++) {
		struct img_frame d = frame_named(l, pcs[i], "deep");

		if (d.function && i > 0)
			CHECK(line_says(l, &d, "line of the call"), "%s: caller %zu's line", what, i);
		deep += d.function != NULL;
		has_main |= frame_named(l, pcs[i], "main").function != NULL;
	}
	CHECK(deep == 4 && has_main, "%s: unwinds through 4 deep (got %d) to main", what, deep);
	CHECK(n > 5 && n < 20, "%s: ends behind main (%zu frames)", what, n);
}

/* From "sample.c:LINE" to addresses and back. */
static void check_lines(struct live *l)
{
	uint64_t at[16];
	struct img_frame f = frame_named(l, l->regs.r[IMG_RIP] - 1, "deep");
	size_t n = img_addresses_of_line(l->set, "image/sample.c", f.line, at, 16);

	CHECK(n >= 1 && n < 16, "%s: addresses of a line (%zu)", what, n);
	for (size_t i = 0; i < n && i < 16; i++)
		CHECK(frame_named(l, at[i], "deep").line == f.line, "%s: and back", what);
	CHECK(!img_addresses_of_line(l->set, "ample.c", f.line, at, 16),
	      "%s: files match by whole components", what);
}

/* There is one thread only. */
static bool owner(void *arg, uint64_t address, struct img_regs *regs)
{
	const struct live *l = arg;

	(void)address;
	*regs = l->regs;
	return true;
}

/* Variables of this frame and of the callers, by the stack memory they live in. */
static void check_locals(struct live *l)
{
	bool found_local = false, found_here = false, by_owner = false;

	for (uint64_t a = l->regs.r[IMG_RSP]; a < l->regs.r[IMG_RSP] + 1024; a += 4) {
		struct img_context ctx = { .regs = &l->regs, .mem = &l->memory };
		struct img_context other = { .mem = &l->memory, .owner = owner, .owner_arg = l };
		struct img_name n;

		img_name_of(l->set, a, 4, &other, &n);
		by_owner |= n.place == IMG_STACK && same(n.text, "here.y");
		free(n.text);
		img_name_of(l->set, a, 4, &ctx, &n);
		if (n.place == IMG_STACK) {
			found_local |= same(n.text, "local[2]") && same(n.function, "deep");
			found_here |= same(n.text, "here.y") && same(n.function, "deep");
		}
		free(n.text);
	}
	/* clang -O2 says that the array lives in xmm0, though it reads it from memory. */
	if (!strstr(what, "clang -g -O2"))
		CHECK(found_local, "%s: array element on the stack", what);
	CHECK(found_here, "%s: struct member on the stack", what);
	CHECK(by_owner, "%s: the same on another thread's stack", what);
}

static void check_heap(struct live *l)
{
	uint64_t fifo = word_at(l, address(l, "the_fifo"));
	struct img_heap heap = { .base = fifo, .size = 112, .id = 4 };

	CHECK_NAME(l, fifo + 40, 4, NULL, "f->count");
	CHECK_NAME(l, fifo + 40, 4, &heap, "f->count");
	CHECK_NAME(l, fifo + 56, 4, &heap, "f->corner[1].y");
}

/* At a stop in quad/twice: inlined frames. */
static void check_inlined(struct live *l)
{
	struct img_frame f[16];
	size_t n = img_frames(l->set, l->regs.r[IMG_RIP] - 1, f, 16);

	CHECK(n == 3 && same(f[0].function, "twice") && same(f[1].function, "quad") &&
	      same(f[2].function, "deep"), "%s: inlined frames in order (%zu)", what, n);
	if (n != 3)
		return;
	CHECK(f[0].inlined && f[1].inlined && !f[2].inlined, "%s: inlined marks", what);
	CHECK(line_says(l, &f[0], "line of twice"), "%s: line in the innermost", what);
	CHECK(line_says(l, &f[1], "line of quad"), "%s: line of the inlined call", what);
	CHECK(line_says(l, &f[2], "quad(f->count)"), "%s: line in the function", what);
}

static void check_lists(struct live *l)
{
	uint64_t fifo = word_at(l, address(l, "the_fifo"));
	uint64_t node = word_at(l, fifo + 72);

	CHECK_NAME(l, node + 8, 4, NULL, "n->value");
	/* From a frame without a variable for it, through the global. */
	struct img_regs main_regs = l->regs;

	main_regs.known = 1u << IMG_RIP;
	main_regs.r[IMG_RIP] = address(l, "main");
	struct img_context ctx = { .regs = &main_regs, .mem = &l->memory };
	struct img_name n;

	img_name_of(l->set, node + 8, 4, &ctx, &n);
	CHECK(same(n.text, "the_fifo->head->value"), "%s: way through a global (got %s)", what,
	      n.text);
	CHECK(n.type && n.type->kind == IMG_SIGNED && same(n.type->name, "int"), "%s: its type",
	      what);
	free(n.text);
}

static void check_program(const char *compiler, const char *flags)
{
	char title[128];
	struct live l;

	snprintf(title, sizeof title, "%s %s", compiler, flags);
	what = title;
	if (!CHECK(live_build(compiler, flags, "sample.c", "prog"), "%s: builds", what))
		return;
	if (!CHECK(live_start(&l, "./prog"), "%s: runs", what))
		return;
	check_stack(&l);
	check_lines(&l);
	check_globals(&l);
	check_static(&l);
	check_values(&l);
	check_locals(&l);
	check_heap(&l);
	CHECK(live_go(&l), "%s: goes on", what);
	check_inlined(&l);
	live_go(&l);
	CHECK(live_go(&l), "%s: reaches the list", what);
	check_lists(&l);
	live_end(&l);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	door_add_sources(live_root()); /* the programs are built elsewhere */
	check_program("gcc", "-g -O0");
	check_program("gcc", "-g -O2");
	check_program("gcc", "-gdwarf-4 -O0 -no-pie");
	check_program("gcc", "-gdwarf-4 -O2");
	check_program("gcc", "-gdwarf-5 -O1 -fno-omit-frame-pointer -static");
	check_program("gcc", "-g -O0 -gz");
	check_program("gcc", "-g -O1 -fdebug-types-section");
	check_program("gcc", "-gdwarf-4 -O1 -fdebug-types-section");
	check_program("gcc", "-g -O0 -gsplit-dwarf");
	check_program("clang", "-g -O0");
	check_program("clang", "-g -O2");
	CHECK_END();
}
