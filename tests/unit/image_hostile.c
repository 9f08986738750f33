/*
 * Damaged files: a program with DWARF is changed in many places, by a fixed
 * sequence of pseudo-random numbers, and asked everything. Nothing is said
 * about the answers; that they come, without a crash, is the promise.
 */
#include "tests/unit/image_live.h"

#include <elf.h>

static uint64_t seed = 1;

static uint32_t draw(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33);
}

static bool zeros(void *arg, uint64_t addr, void *buf, size_t n)
{
	(void)arg;
	(void)addr;
	memset(buf, 0, n);
	return true;
}

#define BASE 0x500000000000ull

static void ask_about(struct img_set *set, uint64_t addr)
{
	struct img_frame frame[8];
	uint64_t pcs[8], off;
	struct img_memory mem = { zeros, NULL };
	struct img_regs regs = { .known = IMG_ALL_REGS };

	for (int i = 0; i < IMG_NREGS; i++)
		regs.r[i] = BASE + 0x2000 + draw() % 0x4000;
	regs.r[IMG_RIP] = addr;
	struct img_heap heap = { .base = 0x1000, .size = 4096, .alloc_pcs = &addr,
				 .n_alloc_pcs = 1 };
	struct img_context ctx = { .regs = &regs, .mem = &mem, .heap = draw() & 1 ? &heap : NULL };
	struct img_name name;
	uint64_t bytes = draw();

	size_t n = img_frames(set, addr, frame, 8);

	if (n)
		img_source_line(set, frame[0].file, frame[0].line);
	img_unwind(set, &regs, &mem, pcs, 8);
	img_symbol(set, addr, &off);
	img_name_of(set, draw() & 1 ? addr : 0x1000 + draw() % 4096, 1 + draw() % 16, &ctx, &name);
	free(img_format_value(set, name.type, &bytes, 1 + draw() % 8));
	free(name.text);
}

static void ask(struct img_set *set)
{
	uint64_t at, line[4];
	uint8_t byte[64];

	for (int i = 0; i < 60; i++) {
		uint64_t addr = BASE + draw() % 0x5000;

		ask_about(set, addr);
		img_read(set, addr, byte, sizeof byte);
	}
	img_address_of(set, "main", &at);
	img_addresses_of_line(set, "sample.c", 60, line, 4);
}

/* How many addresses of the text had a line. */
static int answered;

static void try_image(const uint8_t *image, size_t n)
{
	static const struct img_mapping maps[] = {
		{ BASE, BASE + 0x1000, 0, PROT_READ },
		{ BASE + 0x1000, BASE + 0x2000, 0x1000, PROT_READ | PROT_EXEC },
		{ BASE + 0x2000, BASE + 0x3000, 0x2000, PROT_READ },
		{ BASE + 0x3000, BASE + 0x5000, 0x2000, PROT_READ | PROT_WRITE },
	};
	struct img_set *set = img_set_new();
	struct img_module_desc d = { .path = "hostile", .maps = maps, .n_maps = 4,
				     .memory = image, .memory_size = n };

	err_free(img_add_module(set, &d, NULL));
	ask(set);
	answered = 0;
	for (uint64_t pc = BASE + 0x1000; pc < BASE + 0x1400; pc += 16) {
		struct img_frame f;

		answered += img_frames(set, pc, &f, 1) && f.line;
	}
	img_set_free(set);
}

/* Half of the changes hit the DWARF and the headers, where they do the most. */
static void damage(uint8_t *p, size_t n)
{
	static const uint8_t nasty[] = { 0, 1, 0x7f, 0x80, 0xff, 0xfe, 0x40 };
	size_t changes = 1 + draw() % 12;

	for (size_t i = 0; i < changes; i++) {
		uint32_t where = draw() % 4;
		size_t at = where == 0 ? draw() % 0x40 :
			    where == 1 ? n - 1 - draw() % (64 * 40) : draw() % n;

		p[at] = draw() & 1 ? nasty[draw() % sizeof nasty] : (uint8_t)draw();
	}
}

static uint8_t *load(const char *path, size_t *n)
{
	FILE *f = fopen(path, "r");
	uint8_t *p = xmalloc(1 << 20);

	*n = f ? fread(p, 1, 1 << 20, f) : 0;
	if (f)
		fclose(f);
	return p;
}

static void check(const char *compiler, const char *flags, int rounds)
{
	size_t n;

	if (!CHECK(live_build(compiler, flags, "sample.c", "prog"), "%s builds", flags))
		return;
	uint8_t *good = load("prog", &n), *bad = xmalloc(n);

	try_image(good, n);
	CHECK(answered > 10, "%s %s: the undamaged file answers", compiler, flags);
	for (int i = 0; i < rounds; i++) {
		memcpy(bad, good, n);
		damage(bad, n);
		try_image(bad, n);
	}
	CHECK(true, "%s %s: %d damaged files answered", compiler, flags, rounds);
	for (int i = 0; i < rounds / 10; i++) {
		size_t shorter = draw() % n;
		uint8_t *cut = xmalloc(shorter); /* its own block: reading past it shows */

		memcpy(cut, good, shorter);
		try_image(cut, shorter);
		free(cut);
	}
	CHECK(true, "%s %s: truncated files answered", compiler, flags);
	free(good);
	free(bad);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 150;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	check("gcc", "-g -O0", rounds);
	check("gcc", "-gdwarf-4 -O2", rounds);
	check("clang", "-g -O2", rounds);
	CHECK_END();
}
