/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What guest code from a stranger tries with the host's processor: each shape is executed as the
 * guest's own business, or refused; nothing reaches the analyzer's memory or state.
 */
#include "analyzer/engine/compile.h"
#include "analyzer/engine/exec_guard.h"
#include "analyzer/engine/native.h"
#include "tests/lib/check.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define CODE 0x10000000ull
#define DATA 0x20000000ull
#define SIZE 0x2000u

struct shape {
	const char *name;
	uint8_t bytes[24]; /* hlt follows */
	uint8_t n;
	enum mach_stop stop;
	int signal, code;  /* STOP_FAULT */
	int at;            /* where, from the beginning; -1: behind it */
};

static struct mach *machine(const uint8_t *code, size_t n)
{
	struct mach *m;
	struct mach_cpu cpu;
	uint8_t page[64];

	memset(page, 0xf4, sizeof page);
	memcpy(page, code, n);
	err_free(mach_engine_new(&m));
	mem_map(m->mem, CODE, CODE + SIZE, MEM_R | MEM_X, false);
	mem_map(m->mem, DATA, DATA + SIZE, MEM_R | MEM_W, false);
	mem_poke(m->mem, CODE, page, sizeof page);
	mach_cpu_init(&cpu);
	cpu.g.guest_RIP = CODE;
	cpu.g.guest_RSP = DATA + SIZE;
	cpu.g.guest_RAX = DATA;
	cpu.g.guest_RDI = DATA + 64;
	cpu.g.guest_RSI = DATA + 128;
	cpu.g.guest_RBX = 8 * 0x800 + 5; /* a bit, 2 kB from where it is counted */
	cpu.g.guest_RDX = 0;
	cpu.g.guest_RCX = 0;
	((float *)&cpu.g.guest_YMM0)[0] = 1;
	mach_cpu_load(m, &cpu);
	m->insn_limit = 20;
	return m;
}

/* The direction flag, x87 state, mxcsr, alignment checks: what C expects. */
static bool host_is_well(void)
{
	uint64_t flags;
	uint16_t control, status;
	struct {
		uint32_t word[7];
	} env;

	__asm__ volatile("pushfq; popq %0" : "=r"(flags));
	__asm__ volatile("cld; fnstcw %0; fnstsw %1; fnstenv %2; fldcw %0"
			 : "=m"(control), "=m"(status), "=m"(env));
	return !(flags & 0x40400) && control == 0x37f && !(status & 0x3f) &&
	       (env.word[2] & 0xffff) == 0xffff && (__builtin_ia32_stmxcsr() & 0xffc0) == 0x1f80;
}

static void tries(const struct shape *s)
{
	struct mach *m = machine(s->bytes, s->n);
	enum mach_stop stop = mach_engine_run(m);
	uint64_t at = m->frame->g.guest_RIP - CODE, want = s->at < 0 ? s->n : (uint64_t)s->at;
	bool well = host_is_well();

	CHECK(stop == s->stop && at == want && well &&
		      (stop != STOP_FAULT ||
		       (m->fault.signal == s->signal && m->fault.code == s->code)),
	      "%s: stop %d at +%llu, signal %d code %d, the host is %s%s", s->name, stop,
	      (unsigned long long)at, m->fault.signal, m->fault.code, well ? "well, " : "changed, ",
	      stop == STOP_UNDECODED ? m->why : "");
	mach_engine_free(m);
}

#define ENDS STOP_FAULT, SIGSEGV, SI_KERNEL, -1 /* at the hlt behind */
#define FAULTS(signal, code, at) STOP_FAULT, signal, code, at
#define UNKNOWN STOP_UNDECODED, 0, 0, 0

static const struct shape shapes[] = {
	/* The processor adds the bit's number to the address. */
	{ "repne bts %ebx, (%rax)", { 0xf2, 0x0f, 0xab, 0x18 }, 4, ENDS },
	{ "repne btr %rbx, (%rax)", { 0xf2, 0x48, 0x0f, 0xb3, 0x18 }, 5, ENDS },
	{ "rep btc %rbx, (%rax)", { 0xf3, 0x48, 0x0f, 0xbb, 0x18 }, 5, ENDS },
	{ "rep bt %bx, (%rax)", { 0x66, 0xf3, 0x0f, 0xa3, 0x18 }, 5, ENDS },
	{ "bts %ebx, (%rax) between segments", { 0x2e, 0x36, 0x0f, 0xab, 0x18 }, 5, ENDS },
	{ "movdir64b (%rax), %rbx", { 0x66, 0x0f, 0x38, 0xf8, 0x18 }, 5, UNKNOWN },
	{ "clzero", { 0x0f, 0x01, 0xfc }, 3, UNKNOWN },
	{ "repne xlat", { 0xf2, 0x48, 0x89, 0xc3, 0xf2, 0xd7 }, 6, STOP_UNDECODED, 0, 0, 4 },
	{ "maskmovq %mm1, %mm0", { 0x0f, 0xf7, 0xc1 }, 3, UNKNOWN },
	{ "repne maskmovdqu", { 0xf3, 0x66, 0x0f, 0xf7, 0xc1 }, 5, FAULTS(SIGILL, ILL_ILLOPN, 0) },
	/* State of the host. */
	{ "repne std", { 0xf2, 0xfd }, 2, ENDS },
	{ "rep cld", { 0xf3, 0xfc }, 2, ENDS },
	{ "rep popf", { 0x68, 0xff, 0x0f, 0x24, 0x00, 0xf3, 0x9d }, 7, ENDS },
	{ "wrpkru", { 0x0f, 0x01, 0xef }, 3, UNKNOWN },
	{ "mov %eax, %fs", { 0x8e, 0xe0 }, 2, UNKNOWN },
	{ "mov %eax, %ss", { 0xf2, 0x8e, 0xd0 }, 3, UNKNOWN },
	{ "emms", { 0x0f, 0x6f, 0x00, 0x0f, 0x77 }, 5, ENDS },
	/* Privileged. */
	{ "in $0x10, %al", { 0xe4, 0x10 }, 2, FAULTS(SIGSEGV, SI_KERNEL, 0) },
	{ "out %al, %dx", { 0xee }, 1, FAULTS(SIGSEGV, SI_KERNEL, 0) },
	{ "repne out %eax, %dx", { 0xf2, 0xef }, 2, FAULTS(SIGSEGV, SI_KERNEL, 0) },
	{ "rep insb", { 0xf3, 0x6c }, 2, FAULTS(SIGSEGV, SI_KERNEL, 0) },
	{ "outsl", { 0x6f }, 1, FAULTS(SIGSEGV, SI_KERNEL, 0) },
	{ "cli", { 0xfa }, 1, FAULTS(SIGSEGV, SI_KERNEL, 0) },
	{ "repne sti", { 0xf2, 0xfb }, 2, FAULTS(SIGSEGV, SI_KERNEL, 0) },
	{ "rdpmc", { 0x0f, 0x33 }, 2, FAULTS(SIGSEGV, SI_KERNEL, 0) },
	{ "repne rdmsr", { 0xf2, 0x0f, 0x32 }, 3, FAULTS(SIGSEGV, SI_KERNEL, 0) },
	{ "sysenter", { 0x0f, 0x34 }, 2, UNKNOWN },
	/* Faults. */
	{ "repne div by zero", { 0xf2, 0xf7, 0xf1 }, 3, FAULTS(SIGFPE, FPE_INTDIV, 0) },
	{ "rep idiv by zero", { 0xf3, 0x48, 0xf7, 0xf9 }, 4, FAULTS(SIGFPE, FPE_INTDIV, 0) },
	/* movw $0, (%rax); fldcw (%rax); fld1; fldz; fdivrp; fwait */
	{ "x87 division by zero, unmasked",
	  { 0x66, 0xc7, 0x00, 0x00, 0x03, 0xd9, 0x28, 0xd9, 0xe8, 0xd9, 0xee, 0xde, 0xf9, 0x9b },
	  14, FAULTS(SIGFPE, FPE_FLTDIV, 13) },
	/* ... fchs, which does not get to change anything */
	{ "an instruction behind that",
	  { 0x66, 0xc7, 0x00, 0x00, 0x03, 0xd9, 0x28, 0xd9, 0xe8, 0xd9, 0xee, 0xde, 0xf9, 0xd9, 0xe0 },
	  15, FAULTS(SIGFPE, FPE_FLTDIV, 13) },
	/* ... fnclex; fwait */
	{ "an exception that is cleared",
	  { 0x66, 0xc7, 0x00, 0x00, 0x03, 0xd9, 0x28, 0xd9, 0xe8, 0xd9, 0xee, 0xde, 0xf9, 0xdb, 0xe2,
	    0x9b },
	  16, ENDS },
	/* fld1; fldz; fdivrp; fldcw (%rax), which holds 0; fwait */
	{ "an exception that is unmasked late",
	  { 0xd9, 0xe8, 0xd9, 0xee, 0xde, 0xf9, 0xd9, 0x28, 0x9b }, 9, FAULTS(SIGFPE, FPE_FLTDIV, 8) },
	/* ... movq (%rax), %mm0 */
	{ "MMX behind it",
	  { 0xd9, 0xe8, 0xd9, 0xee, 0xde, 0xf9, 0xd9, 0x28, 0x0f, 0x6f, 0x00 }, 11,
	  FAULTS(SIGFPE, FPE_FLTDIV, 8) },
	/* fldcw (%rax): 0; fstp %st(0) from an empty stack; fwait */
	{ "x87 stack underflow, unmasked", { 0xd9, 0x28, 0xdd, 0xd8, 0x9b }, 5,
	  FAULTS(SIGFPE, FPE_FLTINV, 4) },
	/* movl $0x1d80, (%rax); ldmxcsr (%rax); divss %xmm1, %xmm0: 1 by 0 */
	{ "SSE division by zero, unmasked",
	  { 0xc7, 0x00, 0x80, 0x1d, 0, 0, 0x0f, 0xae, 0x10, 0xf3, 0x0f, 0x5e, 0xc1 }, 13,
	  FAULTS(SIGFPE, FPE_FLTDIV, 9) },
	/* ... divps %xmm3, %xmm2, which holds zeroes: invalid, and that stays masked */
	{ "another exception than the unmasked one",
	  { 0xc7, 0x00, 0x80, 0x1d, 0, 0, 0x0f, 0xae, 0x10, 0x0f, 0x5e, 0xd3 }, 12, ENDS },
	{ "cvtpi2ps of what is not exact, unmasked",
	  { 0xc7, 0x00, 0x80, 0x0f, 0, 0, 0x0f, 0xae, 0x10, 0xc7, 0x00, 0x01, 0, 0, 0x01, 0x0f, 0x2a,
	    0x08 }, 18, FAULTS(SIGFPE, FPE_FLTRES, 15) },
	{ "x87, unmasked, nothing wrong", { 0xd9, 0x28, 0xd9, 0xe8, 0xd9, 0xeb, 0xde, 0xc1 }, 8, ENDS },
};

/* What has no meaning is left out, and the guest's own memory changes as the processor would. */
static void means_the_same(void)
{
	static const uint8_t bts[] = { 0xf2, 0x0f, 0xab, 0x18 }, std[] = { 0xf2, 0xfd };
	struct mach *m = machine(bts, sizeof bts);
	uint8_t byte = 0;

	mach_engine_run(m);
	mem_peek(m->mem, DATA + 0x800, &byte, 1);
	CHECK(byte == 1 << 5, "the bit is set 2 kB from the address: %#x", byte);
	mach_engine_free(m);
	m = machine(std, sizeof std);
	mach_engine_run(m);
	CHECK(m->frame->g.guest_DFLAG == (uint64_t)-1, "the guest's direction flag is set");
	mach_engine_free(m);

	/* Nothing is mapped where the bit is: the guest's fault, at the guest's address. */
	m = machine(bts, sizeof bts);
	m->frame->g.guest_RBX = 0x7fffffff;
	enum mach_stop stop = mach_engine_run(m);
	CHECK(stop == STOP_FAULT && m->fault.signal == SIGSEGV &&
		      m->fault.address / 4 == (DATA + (0x7fffffffu >> 5) * 4) / 4 &&
		      m->frame->g.guest_RIP == CODE,
	      "a bit far away: stop %d, address %#llx", stop, (unsigned long long)m->fault.address);
	mach_engine_free(m);
}

/* Were they asked to, the stubs would refuse. */
static void stubs_refuse(void)
{
	static const struct {
		const char *name;
		uint8_t bytes[8];
	} never[] = {
		{ "bts %ebx, (%rax)", { 0x0f, 0xab, 0x18 } },
		{ "std", { 0xfd } },
		{ "div %ecx", { 0xf7, 0xf1 } },
		{ "syscall", { 0x0f, 0x05 } },
		{ "jmp", { 0xeb, 0x00 } },
		{ "ret", { 0xc3 } },
		{ "push %rax", { 0x50 } },
		{ "enter", { 0xc8, 0, 0, 1 } },
		{ "movsb", { 0xa4 } },
		{ "rep stosq", { 0xf3, 0x48, 0xab } },
		{ "xlat", { 0xd7 } },
		{ "ldmxcsr (%rax)", { 0x0f, 0xae, 0x10 } },
		{ "vldmxcsr (%rax)", { 0xc5, 0xf8, 0xae, 0x10 } },
		{ "fxrstor (%rax)", { 0x0f, 0xae, 0x08 } },
		{ "xrstor (%rax)", { 0x0f, 0xae, 0x28 } },
		{ "vzeroall", { 0xc5, 0xfc, 0x77 } },
		{ "vpgatherdd", { 0xc4, 0xe2, 0x75, 0x90, 0x04, 0x10 } },
		{ "maskmovdqu", { 0x66, 0x0f, 0xf7, 0xc1 } },
		{ "lock add %ebx, (%rax)", { 0xf0, 0x01, 0x18 } },
		{ "mov %fs, %eax", { 0x8c, 0xe0 } },
		{ "mov %cr0, %rax", { 0x0f, 0x20, 0xc0 } },
		{ "lfs (%rax), %ebx", { 0x0f, 0xb4, 0x18 } },
		{ "wrfsbase %rax", { 0xf3, 0x48, 0x0f, 0xae, 0xd0 } },
		{ "xbegin", { 0xc7, 0xf8, 0, 0, 0, 0 } },
		{ "sidt (%rax)", { 0x0f, 0x01, 0x08 } },
		{ "clac", { 0x0f, 0x01, 0xca } },
		{ "monitor", { 0x0f, 0x01, 0xc8 } },
		{ "rdpru", { 0x0f, 0x01, 0xfd } },
	};
	static const uint8_t hlt[] = { 0xf4 };
	struct mach *m = machine(hlt, 1);

	for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
		struct insn in;

		CHECK(insn_decode(never[i].bytes, 8, CODE, &in) && !native_make(m, &in),
		      "no stub for %s", never[i].name);
	}
	mach_engine_free(m);
}

static void spaces(void)
{
	static const uint8_t fld1[] = { 0xd9, 0xe8 };
	struct mach *m = machine(fld1, 2), *other = machine(fld1, 2);
	char line[512], mode[8];
	bool writable = false;
	FILE *f = fopen("/proc/self/maps", "r");

	mach_engine_run(m);
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%*s %7s", mode) == 1 && mode[1] == 'w' && mode[2] == 'x')
			writable = true;
	if (f)
		fclose(f);
	CHECK(f && !writable, "no page is writable and executable");
	const struct exec_space *a = &m->native->space, *b = &other->native->space;

	CHECK(a->run != a->write && a->run - a->write != b->run - b->write &&
		      a->run - m->f != b->run - other->f && a->write - m->f != b->write - other->f,
	      "where generated code lies says nothing about the frame and the other way round");
	mach_engine_free(m);
	mach_engine_free(other);
}

/* Should a stub fault in spite of everything: this one is ud2. */
static void comes_back(void)
{
	static const uint8_t fld1[] = { 0xd9, 0xe8 }, ud2[] = { 0x0f, 0x0b };
	struct mach *m = machine(fld1, 2);
	struct mach_block *b = mach_block_get(m, CODE, BLOCK_WHOLE);

	memcpy(m->native->space.write, ud2, 2);
	enum mach_stop stop = mach_engine_run(m);

	CHECK(b && stop == STOP_UNDECODED && m->frame->g.guest_RIP == CODE &&
		      strstr(m->why, "refuses to execute fld1"),
	      "a fault in generated code ends the run: stop %d, %s", stop, m->why);
	CHECK(host_is_well(), "the host is well");
	mach_engine_free(m);
	m = machine(fld1, 2);
	stop = mach_engine_run(m);
	CHECK(stop == STOP_FAULT && m->frame->g.guest_RIP == CODE + 2, "the next machine runs");
	mach_engine_free(m);
}

int main(void)
{
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		tries(&shapes[i]);
	means_the_same();
	stubs_refuse();
	spaces();
	comes_back();
	CHECK_END();
}
