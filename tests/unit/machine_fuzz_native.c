/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random instructions, prefixed, truncated, with bits flipped, through the host's processor: nothing
 * outside the frame is written, no register that the instruction does not name changes, no signal
 * comes. What it names is read from Zydis' tables for the guest's own bytes, not from the stub.
 *
 * How many: the first argument, or CSCHED_FUZZ_NATIVE; where the sequence begins: the second.
 */
#include "analyzer/engine/exec_guard.h"
#include "analyzer/engine/native.h"
#include "analyzer/engine/straight.h"
#include "tests/lib/check.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CODE 0x10000000ull
#define DATA 0x20000000ull
#define OPERAND (DATA + 0x800)
#define HEAD 0x4000u /* of the frame: up to the temporaries */
#define DEFAULT_COUNT 200000ull
#define PER_FLUSH 20000u

static uint64_t state;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* ---- instructions ---- */

static uint8_t last[15]; /* the last that was one */

static size_t begin_random(uint8_t *b)
{
	static const uint8_t starts[][3] = {
		{ 0x0f }, { 0x66, 0x0f }, { 0xf3, 0x0f }, { 0xf2, 0x0f }, { 0x0f, 0x38 },
		{ 0x66, 0x0f, 0x38 }, { 0xf2, 0x0f, 0x38 }, { 0xf3, 0x0f, 0x38 }, { 0x66, 0x0f, 0x3a },
		{ 0xc4 }, { 0xc5 }, { 0x62 }, { 0x62 }, { 0x48, 0x0f }, { 0x0f, 0xae }, { 0x0f, 0x01 },
		{ 0x0f, 0xc7 }, { 0x0f, 0xba },
	};
	const uint8_t *s = starts[rnd() % (sizeof starts / sizeof starts[0])];
	size_t n = rnd() % 3 ? strnlen((const char *)s, 3) : 0;

	memcpy(b, s, n);
	if (!n && rnd() % 3 == 0) /* x87 */
		b[n++] = (uint8_t)(0xd8 | rnd() % 8);
	return n;
}

static void random_bytes(uint8_t *b, size_t from)
{
	for (size_t i = from; i < 15; i++)
		b[i] = (uint8_t)rnd();
}

static void mangle(uint8_t *b)
{
	static const uint8_t prefixes[] = { 0xf0, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65,
					    0x66, 0x67, 0x48, 0x40, 0x41, 0x4f };

	for (unsigned k = (unsigned)(rnd() % 5); k--;) {
		memmove(b + 1, b, 14);
		b[0] = prefixes[rnd() % sizeof prefixes];
	}
	if (rnd() % 4 == 0) /* cut off, and something else behind */
		random_bytes(b, 1 + rnd() % 14);
	for (unsigned k = (unsigned)(rnd() % 4); k--;)
		b[rnd() % 15] ^= (uint8_t)(1u << rnd() % 8);
}

static void next_instruction(uint8_t *b)
{
	if (rnd() % 2)
		memcpy(b, last, 15);
	else
		random_bytes(b, begin_random(b));
	if (rnd() % 4)
		mangle(b);
}

/* ---- what it may change ---- */

struct allowed {
	uint8_t frame[HEAD]; /* 1: this byte */
	uint64_t flags;
	unsigned stored; /* bytes of the memory operand */
};

static void allow(struct allowed *a, uint32_t at, size_t n)
{
	memset(a->frame + at, 1, n);
}

static void allow_register(struct allowed *a, ZydisRegister reg)
{
	unsigned id = (unsigned)ZydisRegisterGetId(reg);

	switch (ZydisRegisterGetClass(reg)) {
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64:
		allow(a, reg_offset(reg), 8);
		break;
	case ZYDIS_REGCLASS_XMM:
	case ZYDIS_REGCLASS_YMM:
	case ZYDIS_REGCLASS_ZMM:
		allow(a, vec_offset(id), 32);
		allow(a, vec_upper(id), 32);
		break;
	case ZYDIS_REGCLASS_MASK:
		allow(a, MACH_WIDE(k) + 8 * id, 8);
		break;
	default:
		break;
	}
}

static void find_allowed(const struct insn *in, struct allowed *a)
{
	const ZydisAccessedFlags *f = in->i.cpu_flags;
	bool x87 = in->i.meta.isa_ext == ZYDIS_ISA_EXT_X87 || in->i.meta.isa_ext == ZYDIS_ISA_EXT_MMX ||
		   in->i.meta.category == ZYDIS_CATEGORY_X87_ALU;

	memset(a, 0, sizeof *a);
	for (int k = 0; k < in->i.operand_count; k++) {
		const ZydisDecodedOperand *op = &in->op[k];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			allow(a, offsetof(struct mach_frame, operand), op->size / 8);
			if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
				a->stored = op->size / 8;
		}
		if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			allow_register(a, op->reg.value);
		x87 |= ZydisRegisterGetClass(op->reg.value) == ZYDIS_REGCLASS_MMX ||
		       ZydisRegisterGetClass(op->reg.value) == ZYDIS_REGCLASS_X87;
	}
	if (x87)
		allow(a, offsetof(struct mach_frame, fx), 512);
	a->flags = f ? f->modified | f->set_0 | f->set_1 | f->undefined : 0;
	/* These clear four flags that the tables forget. */
	if (in->i.mnemonic == ZYDIS_MNEMONIC_VPTEST || in->i.mnemonic == ZYDIS_MNEMONIC_VTESTPS ||
	    in->i.mnemonic == ZYDIS_MNEMONIC_VTESTPD)
		a->flags |= 0x8d5;
	allow(a, offsetof(struct mach_frame, flags), 8);
	if (a->flags) /* compared apart, flag by flag */
		allow(a, MACH_OFF(CC_OP), MACH_OFF(CC_NDEP) + 8 - MACH_OFF(CC_OP));
}

/* ---- the machine's side ---- */

static struct mach *m;
static uint8_t *trap; /* pages that nobody may touch, and the frame's and the code's addresses, are what registers hold */
static volatile uint64_t number;
static const uint8_t *volatile running;

static uint64_t value(void)
{
	switch (rnd() % 8) {
	case 0: return (uint64_t)m->f + rnd() % HEAD;
	case 1: return (uint64_t)m->native->space.run + rnd() % 4096;
	case 2: return (uint64_t)m->native->space.write + rnd() % 4096;
	case 3: return (uint64_t)trap + rnd() % 4096;
	case 4: return rnd() % 64;
	case 5: return ~(rnd() % 64);
	default: return rnd();
	}
}

/* Numbers of any kind, and the control words a program may have. */
static void fill(void)
{
	struct mach_frame *f = m->frame;
	uint16_t control = rnd() % 4 ? 0x37f : (uint16_t)(rnd() & 0xf3f), status = (uint16_t)(rnd() & 0x7f3f);
	uint32_t mxcsr = 0x1f80;

	for (uint32_t at = MACH_OFF(YMM0); at + 8 <= MACH_OFF(YMM0) + 32 * 16; at += 8)
		*(uint64_t *)(m->f + at) = value();
	for (uint32_t at = MACH_WIDE(upper); at + 8 <= MACH_REGS_SIZE; at += 8)
		*(uint64_t *)(m->f + at) = value();
	for (unsigned r = 0; r < 16; r++)
		*(uint64_t *)(m->f + gpr_offset(r)) = value();
	for (size_t i = 0; i < 512; i += 8)
		*(uint64_t *)(f->fx + i) = rnd();
	for (size_t i = 0; i < 256; i += 8)
		*(uint64_t *)(f->operand + i) = rnd();
	memcpy(f->fx, &control, 2);
	memcpy(f->fx + 2, &status, 2);
	memcpy(f->fx + 24, &mxcsr, 4);
	mach_set_rflags(&f->g, rnd() & 0x8d5);
}

struct host {
	uint64_t flags;
	uint32_t mxcsr;
	uint16_t control, tags, segment[6];
};

static struct host host(void)
{
	struct host h;

	memset(&h, 0, sizeof h);
	struct {
		uint32_t word[7];
	} env;

	__asm__ volatile("pushfq; popq %0; cld" : "=r"(h.flags));
	__asm__ volatile("fnstenv %0; fldcw %0" : "=m"(env));
	__asm__ volatile("mov %%ds, %0; mov %%es, %1; mov %%fs, %2; mov %%gs, %3; mov %%ss, %4; mov %%cs, %5"
			 : "=r"(h.segment[0]), "=r"(h.segment[1]), "=r"(h.segment[2]),
			   "=r"(h.segment[3]), "=r"(h.segment[4]), "=r"(h.segment[5]));
	h.flags &= ~0x8d5ull;
	h.mxcsr = __builtin_ia32_stmxcsr() & 0xffc0;
	h.control = (uint16_t)env.word[0];
	h.tags = (uint16_t)env.word[2];
	return h;
}

/* Calls a stub with known values in the registers that it must keep; which of them it did not. */
static uint64_t call_kept(void (*stub)(struct mach_frame *), struct mach_frame *f)
{
	uint64_t bad;

	__asm__ volatile(
		"push %%rbx; push %%rbp; push %%r12; push %%r13; push %%r14; push %%r15\n\t"
		"sub $8, %%rsp\n\t"
		"mov $0x1111, %%ebx; mov $0x2222, %%ebp; mov $0x3333, %%r12d\n\t"
		"mov $0x4444, %%r13d; mov $0x5555, %%r14d; mov %%rsp, %%r15\n\t"
		"call *%%rax\n\t"
		"xor %%rsp, %%r15; xor $0x1111, %%rbx; xor $0x2222, %%rbp\n\t"
		"xor $0x3333, %%r12; xor $0x4444, %%r13; xor $0x5555, %%r14\n\t"
		"mov %%rbx, %%rax; or %%rbp, %%rax; or %%r12, %%rax; or %%r13, %%rax\n\t"
		"or %%r14, %%rax; or %%r15, %%rax\n\t"
		"add $8, %%rsp\n\t"
		"pop %%r15; pop %%r14; pop %%r13; pop %%r12; pop %%rbp; pop %%rbx"
		: "=a"(bad), "+D"(f)
		: "a"(stub)
		: "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2",
		  "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
		  "xmm13", "xmm14", "xmm15");
	return bad;
}

/* ---- one ---- */

static uint64_t decoded, executed, refused, stopped, wrong;
static uint8_t seen[ZYDIS_MNEMONIC_MAX_VALUE + 1];

static void tell(const struct insn *in, const uint8_t *bytes, const char *what)
{
	char text[96];

	if (wrong++ >= 10)
		return;
	insn_text(in, text, sizeof text);
	printf("# number %llu: %s: %s:", (unsigned long long)number, text, what);
	for (int i = 0; i < in->i.length; i++)
		printf(" %02x", bytes[i]);
	printf("\n");
}

static void compare(const struct insn *in, const uint8_t *bytes, const uint8_t *before,
		    const uint8_t *memory, uint64_t flags, const struct host *was)
{
	static uint8_t now[0x2000];
	static struct allowed a;
	struct host is = host();
	const struct mach_frame *f = m->frame;
	uint64_t rflags = mach_rflags(&f->g);

	find_allowed(in, &a);
	for (unsigned i = 0; i < HEAD; i++)
		if (before[i] != m->f[i] && !a.frame[i]) {
			char what[64];

			snprintf(what, sizeof what, "changes byte %u of the frame", i);
			tell(in, bytes, what);
			break;
		}
	if ((rflags ^ flags) & ~a.flags)
		tell(in, bytes, "changes other flags");
	if (memcmp(&is, was, sizeof is))
		tell(in, bytes, "leaves the host changed");
	mem_peek(m->mem, DATA, now, sizeof now);
	memcpy(now + 0x800, memory + 0x800, a.stored);
	if (memcmp(now, memory, sizeof now))
		tell(in, bytes, "stores somewhere else");
}

static void try_one(const uint8_t *bytes)
{
	static uint8_t before[HEAD], memory[0x2000];
	struct native_insn *n;
	struct insn in;

	if (!insn_decode(bytes, 15, CODE, &in))
		return;
	decoded++;
	memcpy(last, bytes, 15);
	n = native_make(m, &in);
	if (!n) {
		refused++;
		return;
	}
	/* Which address is not what this is about. */
	memset(&n->address, 0, sizeof n->address);
	n->address.displacement = OPERAND;
	fill();
	mem_peek(m->mem, DATA, memory, sizeof memory);
	memcpy(before, m->f, HEAD);
	uint64_t flags = mach_rflags(&m->frame->g);
	struct host was = host();
	enum mach_stop stop = straight_native(m, n, CODE);
	uint32_t mxcsr = __builtin_ia32_stmxcsr();

	if (stop != STOP_NONE && memcmp(before, m->f, HEAD))
		tell(&in, bytes, "stops and changes the frame");
	stopped += stop != STOP_NONE;
	executed++;
	seen[in.i.mnemonic] = 1;
	compare(&in, bytes, before, memory, flags, &was);
	if (stop == STOP_NONE && !n->waits) {
		memcpy(m->frame->fx + 24, &mxcsr, 4);
		if (call_kept(n->stub, m->frame))
			tell(&in, bytes, "does not keep a register of C's");
	}
	__builtin_ia32_ldmxcsr(0x1f80);
}

static void outside(int signal)
{
	static char text[128];
	int n = snprintf(text, sizeof text, "not ok signal %d outside generated code, number %llu:", signal,
			 (unsigned long long)number);

	for (int i = 0; i < 15 && running; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, " %02x", running[i]);
	text[n++] = '\n';
	_exit(write(1, text, (size_t)n) < 0 ? 2 : 1);
}

static uint64_t count_of(int argc, char **argv)
{
	const char *s = argc > 1 ? argv[1] : getenv("CSCHED_FUZZ_NATIVE");
	uint64_t n = s ? strtoull(s, NULL, 10) : 0;

	return n ? n : DEFAULT_COUNT;
}

static unsigned count_kinds(void)
{
	unsigned kinds = 0;

	for (size_t i = 0; i < sizeof seen; i++)
		kinds += seen[i];
	return kinds;
}

int main(int argc, char **argv)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };
	volatile uint64_t count = count_of(argc, argv);
	static uint8_t bytes[16];
	struct exec_guard guard;

	state = 88172645463325252ull ^ (argc > 2 ? strtoull(argv[2], NULL, 10) : 0);
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		signal(signals[i], outside);
	trap = mmap(NULL, 0x10000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	err_free(mach_engine_new(&m));
	mem_map(m->mem, DATA, DATA + 0x2000, MEM_R | MEM_W, false);
	exec_guard_enter(&guard);
	if (setjmp(guard.env)) {
		struct insn in;

		insn_decode(bytes, 15, CODE, &in);
		tell(&in, bytes, "ends in a signal");
		__builtin_ia32_ldmxcsr(0x1f80);
	}
	running = bytes;
	while (number < count) {
		number++;
		next_instruction(bytes);
		try_one(bytes);
		if (m->flush_wanted || number % PER_FLUSH == 0)
			mach_blocks_flush(m);
	}
	exec_guard_leave(&guard);
	unsigned kinds = count_kinds();

	printf("# %llu tried: %llu decode, %llu are refused, %llu executed (%u mnemonics), %llu of them stop\n",
	       (unsigned long long)count, (unsigned long long)decoded, (unsigned long long)refused,
	       (unsigned long long)executed, kinds, (unsigned long long)stopped);
	CHECK(wrong == 0, "%llu of them did what they must not", (unsigned long long)wrong);
	CHECK(executed > count / 10 && kinds > 100, "many are executed, of many kinds");
	mach_engine_free(m);
	CHECK_END();
}
