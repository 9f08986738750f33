/*
 * The shadow against the hardware: small functions are executed in the machine
 * with symbolic arguments in memory; the expression of the result, evaluated for
 * other arguments, must be what the function itself returns for those, as long
 * as the collected conditions hold for them.
 */
#include "analyzer/engine/code.h"
#include "analyzer/engine/shadow_ops.h"
#include "tests/lib/check.h"

#include <cpuid.h>
#include <string.h>

#define STACK 0x20000000ull
#define ARGS 0x30000000ull
#define RETURN_TO 0x40000000ull

typedef uint64_t (*function)(const uint64_t *a);

__attribute__((noinline)) static uint64_t mixed(const uint64_t *a)
{
	uint32_t x = (uint32_t)a[0], y = (uint32_t)a[1];

	return (x * 3 + (y ^ 0x55)) - (uint32_t)((int32_t)y >> 3) + (x << (y & 7));
}

__attribute__((noinline)) static uint64_t narrow(const uint64_t *a)
{
	const uint8_t *b = (const uint8_t *)a;
	const int16_t *h = (const int16_t *)a;

	return (uint64_t)(b[1] + b[9] * 2) ^ (uint64_t)(int64_t)h[2] ^ (uint64_t)(uint16_t)~h[5];
}

__attribute__((noinline)) static uint64_t choose(const uint64_t *a)
{
	int64_t x = (int64_t)a[0], y = (int64_t)a[1];
	uint64_t r = x < y ? 1 : 2;
	int32_t sum;

	r += (uint64_t)(a[0] > a[1]) * 4 + (uint64_t)(x == y) * 8;
	r += (uint64_t)((int8_t)x >= (int8_t)y) * 16;
	return r + (uint64_t)__builtin_add_overflow((int32_t)x, (int32_t)y, &sum) * 32;
}

__attribute__((noinline)) static uint64_t wide(const uint64_t *a)
{
	unsigned __int128 p = (unsigned __int128)a[0] * a[1];

	return (uint64_t)(p >> 64) ^ (uint64_t)p ^ a[0] / 10 ^ (uint64_t)((int64_t)a[1] / 7);
}

__attribute__((noinline)) static uint64_t divide(const uint64_t *a)
{
	uint32_t d = (uint32_t)a[1] | 1;

	return a[0] / (a[1] | 1) + (uint32_t)a[0] % d +
	       (uint64_t)((int32_t)a[0] / (int32_t)((d & 0xffff) | 3));
}

__attribute__((noinline)) static uint64_t copied(const uint64_t *a)
{
	uint64_t b[4];

	memcpy(b, a, 16); /* through a vector register */
	b[2] = b[1];
	b[3] = __builtin_bswap64(b[0]);
	__asm__ volatile("" : : "r"(b) : "memory");
	return b[2] + b[3];
}

/* Through registers that only AVX-512 has, and through the upper half of one below 16. */
__attribute__((noinline)) static uint64_t copied_wide(const uint64_t *a)
{
	uint64_t b[8] = { 0 }, c[8];

	__asm__ volatile("vmovdqu64 (%2), %%xmm17\n\t"
			 "vmovdqu8 %%xmm17, (%0)\n\t"
			 "vmovdqu8 %%xmm17, 48(%0)\n\t"
			 "vmovdqu64 (%0), %%zmm3\n\t"
			 "vmovdqa64 %%zmm3, %%zmm21\n\t"
			 "vmovdqu32 %%zmm21, (%1)\n\t"
			 "vmovdqa64 %%ymm3, %%ymm3\n\t" /* clears the upper half */
			 "vmovdqu64 %%zmm3, (%0)\n\t"
			 : : "r"(b), "r"(c), "r"(a) : "memory", "xmm3"); /* the compiler has no use for 17 and 21 */
	return c[0] + 3 * c[7] + (b[1] ^ b[6]);
}

/* A constant that the compiler does not put into a vector: the machine does not have those. */
static inline uint64_t k(uint64_t value)
{
	__asm__("" : "+r"(value));
	return value;
}

/* Lanes by address, with the index or the mask unknown in turn, and what was there before kept. */
__attribute__((noinline)) static uint64_t gathered(const uint64_t *a)
{
	uint64_t table[4] = { a[0], k(11), a[1], k(33) }, out[4], before[4] = { k(1), k(2), a[1], k(4) };
	uint64_t index[4] = { a[0] & 1, k(2), k(3), k(0) };
	uint64_t mask[4] = { k(~0ull), k(~0ull), a[1] << 62, k(0) };

	__asm__ volatile("vmovdqu (%1), %%ymm1\n\t"
			 "vmovdqu (%2), %%ymm2\n\t"
			 "vmovdqu (%3), %%ymm3\n\t"
			 "vpgatherqq %%ymm3, (%4,%%ymm2,8), %%ymm1\n\t"
			 "vmovdqu %%ymm1, (%0)\n\t"
			 "vmovdqu %%ymm3, (%1)\n\t"
			 : : "r"(out), "r"(before), "r"(index), "r"(mask), "r"(table)
			 : "memory", "xmm1", "xmm2", "xmm3");
	return out[0] + 3 * out[1] + 5 * out[2] + 7 * out[3] + before[0];
}

/* Four bytes a lane: halves of words. */
__attribute__((noinline)) static uint64_t gathered_halves(const uint64_t *a)
{
	volatile uint32_t table[4], index[4], out[4];

	table[0] = 7, table[1] = (uint32_t)a[0], table[2] = 9, table[3] = (uint32_t)(a[1] >> 8);
	index[0] = 3, index[1] = 1, index[2] = 0, index[3] = 1;

	__asm__ volatile("vmovdqu (%1), %%xmm2\n\t"
			 "vpcmpeqd %%xmm3, %%xmm3, %%xmm3\n\t"
			 "vpgatherdd %%xmm3, (%2,%%xmm2,4), %%xmm1\n\t"
			 "vmovdqu %%xmm1, (%0)\n\t"
			 : : "r"(out), "r"(index), "r"(table) : "memory", "xmm1", "xmm2", "xmm3");
	return out[0] + 3ull * out[1] + 5ull * out[2] + 7ull * out[3];
}

__attribute__((noinline)) static uint64_t scattered(const uint64_t *a)
{
	uint64_t table[8] = { k(1), k(2), k(3), k(4), k(5), k(6), k(7), k(8) };
	uint64_t index[8] = { k(7), a[0] & 3, k(5), k(4), k(3), k(2), k(1), k(0) };
	uint64_t source[8] = { a[0], a[1], k(30), k(40), a[1], k(60), k(70), k(80) };

	__asm__ volatile("vmovdqu64 (%0), %%zmm1\n\t"
			 "vmovdqu64 (%1), %%zmm2\n\t"
			 "movl $0x13, %%eax\n\t"
			 "kmovw %%eax, %%k1\n\t"
			 "vpscatterqq %%zmm1, (%2,%%zmm2,8)%{%%k1%}\n\t"
			 : : "r"(source), "r"(index), "r"(table) : "memory", "eax", "xmm1", "xmm2");
	return table[0] + 3 * table[1] + 5 * table[2] + 7 * table[3] + 9 * table[7];
}

__attribute__((noinline)) static uint64_t masked(const uint64_t *a)
{
	uint64_t from[2] = { a[0], k(5) }, to[2] = { k(1), k(2) }, mask[2] = { k(~0ull), a[1] << 61 };

	__asm__ volatile("vmovdqu (%2), %%xmm3\n\t"
			 "vmovdqu (%1), %%xmm1\n\t"
			 "vpmaskmovq %%xmm1, %%xmm3, (%0)\n\t"
			 "vpmaskmovq (%1), %%xmm3, %%xmm2\n\t"
			 "vmovdqu %%xmm2, (%1)\n\t"
			 : : "r"(to), "r"(from), "r"(mask) : "memory", "xmm1", "xmm2", "xmm3");
	return to[0] + 3 * to[1] + 5 * from[0] + 7 * from[1] + a[1];
}

/* Registers go to memory and come back, as in the loader's lazy binding; one changes in between. */
__attribute__((noinline)) static uint64_t saved(const uint64_t *a)
{
	uint8_t room[4096 + 64];
	uint8_t *area = (uint8_t *)(((uintptr_t)room + 63) & ~(uintptr_t)63);
	uint64_t b[4] = { a[0], 2, a[1], 4 }, c[4], n = 512;
	uint8_t *at = area;

	__asm__ volatile("rep stosq" : "+c"(n), "+D"(at) : "a"(0) : "memory");
	__asm__ volatile("vmovdqu (%1), %%ymm1\n\t"
			 "vmovdqu %%ymm1, %%ymm12\n\t"
			 "movl $0xe6, %%eax\n\t"
			 "xorl %%edx, %%edx\n\t"
			 "xsavec64 (%2)\n\t"
			 "vpxor %%ymm1, %%ymm1, %%ymm1\n\t"
			 "vpxor %%ymm12, %%ymm12, %%ymm12\n\t"
			 "vmovdqu (%1), %%ymm1\n\t"
			 "xrstor64 (%2)\n\t"
			 "vmovdqu %%ymm12, (%0)\n\t"
			 "movq %%xmm1, (%1)\n\t"
			 : : "r"(c), "r"(b), "r"(area) : "memory", "eax", "edx", "xmm1", "xmm12");
	return c[0] + 3 * c[1] + 5 * c[2] + 7 * c[3] + 9 * b[0];
}

__attribute__((noinline)) static uint64_t saved_legacy(const uint64_t *a)
{
	_Alignas(16) uint8_t area[512];
	uint64_t b[2] = { a[0], a[1] }, c[2] = { 0, 0 };

	__asm__ volatile("movdqu (%1), %%xmm5\n\t"
			 "fxsave64 (%2)\n\t"
			 "pxor %%xmm5, %%xmm5\n\t"
			 "fxrstor64 (%2)\n\t"
			 "movdqu %%xmm5, (%0)\n\t"
			 : : "r"(c), "r"(b), "r"(area) : "memory", "xmm5");
	return c[0] + 3 * c[1];
}

/* What a string instruction leaves in rax and the flags is its own. */
__attribute__((noinline)) static uint64_t strings(const uint64_t *a)
{
	uint64_t b[3] = { a[1], 6, a[0] }, rax = a[0] + 1, n = 3, half = a[1];
	const uint64_t *from = b;
	const uint32_t *from32 = (const uint32_t *)b;

	__asm__ volatile("rep lodsq" : "+a"(rax), "+c"(n), "+S"(from) : : "memory");
	n = 1;
	__asm__ volatile("rep lodsl" : "+a"(half), "+c"(n), "+S"(from32) : : "memory");
	return rax + 3 * half + a[1];
}

__attribute__((noinline)) static uint64_t scanned(const uint64_t *a)
{
	uint64_t b[3] = { a[1] + 1, 6, a[0] }, n = 3, below;
	const uint64_t *to = b;

	/* Flags of something else before it. */
	__asm__ volatile("cmpq %[other], %[value]\n\trepne scasq\n\tsetb %b[below]\n\t"
			 "movzbl %b[below], %k[below]"
			 : "+c"(n), "+D"(to), [below] "=&r"(below)
			 : "a"(a[1]), [value] "r"(a[0]), [other] "r"(a[1]) : "memory", "cc");
	return 5 * n + 7 * below + a[0];
}

/* Known bytes over unknown ones, in the middle of a word and across two. */
__attribute__((noinline)) static uint64_t overwritten(const uint64_t *a)
{
	volatile struct __attribute__((packed)) {
		uint8_t first;
		uint64_t whole[2];
	} b = { 1, { a[0], a[1] } };
	uint8_t *bytes = (uint8_t *)&b;

	__asm__ volatile("" : : "r"(bytes) : "memory");
	*(volatile uint8_t *)(bytes + 3) = 0x6b;
	*(volatile uint16_t *)(bytes + 5) = 0x3031;
	*(volatile uint32_t *)(bytes + 7) = 0x12345678;
	return b.whole[0] ^ (b.whole[1] << 3);
}

/* Which word is compared and exchanged depends on an argument. */
__attribute__((noinline)) static uint64_t exchanged(const uint64_t *a)
{
	volatile uint64_t b[4], *word = &b[a[0] & 3];
	uint64_t was = 2;

	b[0] = 1;
	b[1] = 2;
	b[2] = 4;
	b[3] = 8;
	__asm__ volatile("lock cmpxchgq %2, %1" : "+a"(was), "+m"(*word) : "r"(a[1]) : "memory", "cc");
	return b[0] + 3 * b[1] + 5 * b[2] + 7 * b[3] + a[0] + a[1];
}

__attribute__((noinline)) static uint64_t branches(const uint64_t *a)
{
	uint64_t r = 0;

	if ((int32_t)a[0] < 100)
		r += a[0] * 2;
	if (a[1] & 4)
		r ^= a[1];
	else
		r -= 3;
	return r;
}

struct harness {
	struct expr_pool *pool;
	expr_id symbol[2];
	VEC(expr_id) conds;
};

static expr_id on_access(void *arg, struct mach *m, uint64_t pc, uint64_t address, unsigned size,
			 unsigned how, uint64_t value, expr_id e)
{
	struct harness *h = arg;
	unsigned low = (unsigned)(address - ARGS) % 8;

	(void)m;
	(void)pc;
	(void)value;
	(void)e;
	if (!(how & ACCESS_READ) || address < ARGS || address >= ARGS + 16 || low + size > 8)
		return EXPR_NONE;
	return expr_extract(h->pool, h->symbol[(address - ARGS) / 8], low * 8, size * 8);
}

static void on_concretized(void *arg, struct mach *m, uint64_t pc, expr_id cond, const char *why)
{
	struct harness *h = arg;

	(void)m;
	(void)pc;
	(void)why;
	if (cond)
		vec_push(&h->conds, cond);
}

static bool on_branch(void *arg, struct mach *m, const struct mach_block *b, int taken,
		      uint64_t next)
{
	struct harness *h = arg;
	expr_id cond = shadow_branch_condition(m);

	(void)b;
	(void)taken;
	if (cond)
		vec_push(&h->conds, cond);
	m->stop_asked = next == RETURN_TO;
	return true;
}

static void start(struct mach *m, function f, const uint64_t args[2])
{
	uint64_t page = (uint64_t)f & ~(uint64_t)(MEM_PAGE - 1), ret = RETURN_TO;
	struct mach_cpu cpu;

	mem_map(m->mem, page - MEM_PAGE, page + 2 * MEM_PAGE, MEM_R | MEM_X, false);
	mem_poke(m->mem, page, (const void *)page, MEM_PAGE + 512);
	mem_map(m->mem, STACK, STACK + 0x4000, MEM_R | MEM_W, false);
	mem_map(m->mem, ARGS, ARGS + 0x1000, MEM_R | MEM_W, false);
	mem_poke(m->mem, ARGS, args, 16);
	mem_poke(m->mem, STACK + 0x2ff8, &ret, 8);
	mach_cpu_init(&cpu);
	cpu.g.guest_RIP = (uint64_t)f;
	cpu.g.guest_RSP = STACK + 0x2ff8;
	cpu.g.guest_RDI = ARGS;
	mach_cpu_load(m, &cpu);
}

static void one(const char *name, function f, const uint64_t args[2])
{
	static const uint64_t values[] = { 0, 1, 2, 7, 99, 100, 255, 0x7fffffff, 0x80000000,
					   0xffffffffffffffffull, 0x8000000000000000ull,
					   0x123456789abcdef0ull };
	struct harness h = { .pool = expr_pool_new() };
	const struct shadow_hooks hooks = { &h, on_access, on_concretized };
	size_t n = sizeof values / sizeof values[0], agreed = 0, wrong = 0;
	struct mach *m;
	expr_id result;

	h.symbol[0] = expr_symbol(h.pool, 64, "a0");
	h.symbol[1] = expr_symbol(h.pool, 64, "a1");
	err_free(mach_engine_new(&m));
	start(m, f, args);
	shadow_new(m, h.pool, &hooks);
	m->branch = on_branch;
	m->branch_arg = &h;
	enum mach_stop stop = mach_engine_run(m);

	CHECK(stop == STOP_HOOK && m->frame->g.guest_RAX == f(args), "%s: the concrete result", name);
	result = shadow_expr(m, MACH_OFF(RAX), 64);
	CHECK(result != EXPR_NONE, "%s: the result depends on the arguments", name);
	for (size_t i = 0; result && i < n * n + 1; i++) {
		uint64_t a[2] = { values[i / n % n], values[i % n] };
		bool holds = true;

		if (i == n * n)
			memcpy(a, args, sizeof a);
		for (size_t k = 0; k < h.conds.n && holds; k++)
			holds = expr_eval(h.pool, h.conds.v[k], a);
		if (!holds)
			continue;
		if (expr_eval(h.pool, result, a) == f(a))
			agreed++;
		else
			wrong++;
	}
	CHECK(agreed > 0 && !wrong, "%s: %zu other arguments on the same path agree, %zu do not", name,
	      agreed, wrong);
	shadow_free(m->shadow);
	mach_engine_free(m);
	expr_pool_free(h.pool);
	vec_free(&h.conds);
}

static bool has_xsavec(void)
{
	unsigned a, b, c, d;

	return __builtin_cpu_supports("avx") && __get_cpuid_count(13, 1, &a, &b, &c, &d) && (a >> 1 & 1);
}

int main(void)
{
	static const uint64_t args[][2] = { { 5, 12 }, { 0x1234567890ull, 0xfedcba98ull }, { 77, 3 } };

	for (size_t i = 0; i < 3; i++) {
		one("mixed", mixed, args[i]);
		one("narrow", narrow, args[i]);
		one("choose", choose, args[i]);
		one("wide", wide, args[i]);
		one("divide", divide, args[i]);
		one("copied", copied, args[i]);
		if (__builtin_cpu_supports("avx512bw"))
			one("copied in 512 bits", copied_wide, args[i]);
		else if (!i)
			printf("skip copied in 512 bits: this processor has no AVX-512\n");
		if (__builtin_cpu_supports("avx2")) {
			one("gathered", gathered, args[i]);
			one("gathered in halves", gathered_halves, args[i]);
			one("masked", masked, args[i]);
		}
		if (has_xsavec())
			one("saved", saved, args[i]);
		if (__builtin_cpu_supports("avx512f"))
			one("scattered", scattered, args[i]);
		one("saved as of old", saved_legacy, args[i]);
		one("strings", strings, args[i]);
		one("scanned", scanned, args[i]);
		one("overwritten", overwritten, args[i]);
		one("exchanged", exchanged, args[i]);
		one("branches", branches, args[i]);
	}
	CHECK_END();
}
