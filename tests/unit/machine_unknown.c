/*
 * Instructions the machine does not know: it stops before them and says so, alone or in
 * the middle of a block. One that libVEX alone does not know is the host's to execute.
 */
#include "analyzer/engine/native.h"
#include "tests/lib/check.h"

#include <cpuid.h>
#include <string.h>

#define CODE 0x10000000ull
#define DATA 0x20000000ull

static const struct {
	const char *name;
	uint8_t bytes[12];
} unknown[] = {
	{ "ldtilecfg", { 0xc4, 0xe2, 0x78, 0x49, 0x00 } },
	{ "tilezero", { 0xc4, 0xe2, 0x7b, 0x49, 0xc0 } },
	{ "tilerelease", { 0xc4, 0xe2, 0x78, 0x49, 0xc0 } },
	{ "vpmacssww (XOP)", { 0x8f, 0xe8, 0x78, 0x85, 0xc1, 0x20 } },
	{ "senduipi", { 0xf3, 0x0f, 0xc7, 0xf0 } },
	{ "enqcmd", { 0xf2, 0x0f, 0x38, 0xf8, 0x00 } },
};

static struct mach *machine(const uint8_t *code, size_t n)
{
	struct mach *m;
	struct mach_cpu cpu;

	err_free(mach_engine_new(&m));
	mem_map(m->mem, CODE, CODE + 4096, MEM_R | MEM_X, false);
	mem_map(m->mem, DATA, DATA + 4096, MEM_R | MEM_W, false);
	mem_poke(m->mem, CODE, code, n);
	mach_cpu_init(&cpu);
	cpu.g.guest_RIP = CODE;
	cpu.g.guest_RAX = DATA;
	cpu.g.guest_RCX = 0x1234567890abcdefull;
	mach_cpu_load(m, &cpu);
	m->insn_limit = 20;
	return m;
}

static void stops(const char *name, const uint8_t *bytes, unsigned before)
{
	uint8_t code[64];
	struct mach *m;

	memset(code, 0x90, sizeof code);
	for (unsigned i = 0; i < before; i++) /* inc %edx */
		memcpy(code + 2 * i, "\xff\xc2", 2);
	memcpy(code + 2 * before, bytes, 12);
	m = machine(code, sizeof code);
	enum mach_stop stop = mach_engine_run(m);

	CHECK(stop == STOP_UNDECODED && m->frame->g.guest_RIP == CODE + 2 * before &&
		      m->frame->g.guest_RDX == before && m->why[0],
	      "%s behind %u others: stop %d at +%llu: %s", name, before, stop,
	      (unsigned long long)(m->frame->g.guest_RIP - CODE), m->why);
	mach_engine_free(m);
}

/* movdiri %rcx, (%rax); inc %edx; hlt */
static void host_executes(void)
{
	static const uint8_t code[12] = { 0x48, 0x0f, 0x38, 0xf9, 0x08, 0xff, 0xc2, 0xf4 };
	unsigned a, b, c = 0, d;
	uint64_t stored = 0;

	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(c >> 27 & 1)) {
		printf("skip movdiri: this processor does not have it\n");
		stops("movdiri", code, 1);
		return;
	}
	struct mach *m = machine(code, sizeof code);
	enum mach_stop stop = mach_engine_run(m);

	mem_peek(m->mem, DATA, &stored, 8);
	CHECK(stop == STOP_FAULT && stored == 0x1234567890abcdefull && m->frame->g.guest_RDX == 1 &&
		      m->insns == 2,
	      "movdiri: the host stores, and the next instruction is the next");
	mach_engine_free(m);
}

/* What was recorded on a newer processor: it is named, and why it cannot be executed. */
static void host_lacks(void)
{
	static const struct {
		const char *text;
		uint8_t bytes[12];
	} newer[] = {
		{ "vpternlogd", { 0x62, 0xf3, 0x75, 0x48, 0x25, 0xc2, 0x96 } },
		{ "vpaddd", { 0xc5, 0xf5, 0xfe, 0xc2 } },
		{ "kmov", { 0xc5, 0xf8, 0x92, 0xc8 } },
		{ "vpermb", { 0x62, 0xf2, 0x75, 0x48, 0x8d, 0xc2 } },
	};

	host_plays_old = true;
	for (size_t i = 0; i < sizeof newer / sizeof newer[0]; i++) {
		struct mach *m = machine(newer[i].bytes, sizeof newer[i].bytes);
		enum mach_stop stop = mach_engine_run(m);

		CHECK(stop == STOP_UNDECODED && m->frame->g.guest_RIP == CODE &&
			      strstr(m->why, "this computer's processor does not have the instruction") &&
			      strstr(m->why, newer[i].text),
		      "an older host: stop %d: %s", stop, m->why);
		mach_engine_free(m);
	}
	host_plays_old = false;
}

int main(void)
{
	for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
		for (unsigned before = 0; before < 3; before += 2)
			stops(unknown[i].name, unknown[i].bytes, before);
	host_executes();
	host_lacks();
	CHECK_END();
}
