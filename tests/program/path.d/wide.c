/*
 * The register that the recorder takes for itself, at all its widths: instructions without VEX
 * keep what is above 128 bits, those with VEX clear it when they write, a fault shows and keeps it.
 * And what was not used does not become used: with upper parts in use, code for SSE and path records
 * next to each other take hundreds of cycles on Intel's processors.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

static const uint64_t pattern[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

static void show(const char *what, const uint64_t *v, unsigned n)
{
	printf("%-24s", what);
	for (unsigned i = 0; i < n; i++)
		printf(" %llx", (unsigned long long)v[i]);
	printf("\n");
}

static void on_fault(int sig, siginfo_t *si, void *arg)
{
	ucontext_t *uc = arg;
	const uint8_t *state = (const uint8_t *)uc->uc_mcontext.fpregs;

	(void)sig, (void)si;
	show("at the fault", (const uint64_t *)(state + 160 + 16 * 15), 2);
	show("... and above", (const uint64_t *)(state + 576 + 16 * 15), 2);
	uc->uc_mcontext.gregs[REG_RIP] += 4; /* over movups (%rax), %xmm15 */
}

/* The 256 bits after these instructions; the branch makes them leave the register again. */
#define WIDE(what, insns)                                                                       \
	do {                                                                                    \
		uint64_t v[4];                                                                  \
		__asm__ volatile("vmovdqu %1, %%ymm15\n\ttest %%rsp, %%rsp\n\tjz 1f\n1:\n\t"    \
				 insns "\n\tvmovdqu %%ymm15, %0\n\tvzeroupper"                  \
				 : "=m"(v)                                                      \
				 : "m"(pattern)                                                 \
				 : "rax", "r15", "xmm0", "xmm1", "xmm15", "cc", "memory");      \
		show(what, v, 4);                                                               \
	} while (0)

static void used(const char *what)
{
	uint32_t a = 0, b, c, d;

	__cpuid_count(13, 1, a, b, c, d);
	if (!(a & 4))
		return;
	__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
	printf("%-24s %s\n", what, a & 4 ? "in use" : "not in use");
}

/* Nothing in here is wider than 128 bits. */
#define NARROW(what, insns)                                                                     \
	do {                                                                                    \
		__asm__ volatile("vzeroupper\n\t" insns                                         \
				 : : "m"(pattern) : "rax", "r15", "xmm0", "xmm1", "xmm15");     \
		used(what);                                                                     \
	} while (0)

static void wider(void)
{
	uint64_t v[8];

	__asm__ volatile("vmovdqu64 %1, %%zmm15\n\ttest %%rsp, %%rsp\n\tjz 1f\n1:\n\t"
			 "paddq %%xmm15, %%xmm15\n\tmovups (%%rax), %%xmm15\n\t"
			 "vmovdqu64 %%zmm15, %0\n\tvzeroupper"
			 : "=m"(v) : "m"(pattern), "a"(16) : "xmm15", "cc", "memory");
	show("512 bits, at a fault", v, 8);
	NARROW("register 31", "vpaddq %%ymm17, %%ymm31, %%ymm18");
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	if (!__builtin_cpu_supports("avx"))
		return printf("no AVX\n"), 0;
	sigaction(SIGSEGV, &sa, NULL);
	WIDE("nothing", "");
	WIDE("without VEX", "paddq %%xmm15, %%xmm15");
	WIDE("... and read with it", "paddq %%xmm15, %%xmm15\n\tvpaddq %%xmm15, %%xmm0, %%xmm1");
	WIDE("read", "vpaddq %%xmm15, %%xmm0, %%xmm1");
	WIDE("written", "vpaddq %%xmm15, %%xmm15, %%xmm15");
	WIDE("vzeroupper", "vzeroupper");
	WIDE("vzeroupper between",
	     "paddq %%xmm15, %%xmm15\n\tvzeroupper\n\tpaddq %%xmm15, %%xmm15");
	WIDE("without VEX at 256", "vorps %%ymm15, %%ymm15, %%ymm15\n\tpaddq %%xmm15, %%xmm15");
	WIDE("not this register", "mov $9, %%r15d\n\tmovq %%r15, %%xmm0\n\tcvtsi2sd %%r15, %%xmm1");
	WIDE("a fault", "mov $16, %%eax\n\tmovups (%%rax), %%xmm15");
	WIDE("a fault at 256", "mov $16, %%eax\n\tvorps %%ymm15, %%ymm15, %%ymm15\n\t"
	     "movups (%%rax), %%xmm15");
	NARROW("nothing", "");
	NARROW("without VEX", "movups %0, %%xmm15\n\tpaddq %%xmm15, %%xmm15");
	NARROW("with VEX", "vmovups %0, %%xmm15\n\tvpaddq %%xmm15, %%xmm15, %%xmm15");
	NARROW("not this register", "movq %%r15, %%xmm0\n\tcvtsi2sd %%r15, %%xmm1");
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
		wider();
	return 0;
}
