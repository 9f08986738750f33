/*
 * AVX-512 that compilers seldom make of loops: masks of their own, memory of which only
 * some elements exist, gathers and scatters, compression, rounding in the instruction.
 */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t sum;

static void add(const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		sum = (sum ^ b[i]) * 0x100000001b3ull;
}

#define ADD(v) add(&(v), sizeof(v))

/* The page behind `end` does not exist: elements there must be neither read nor written. */
static void at_an_edge(uint8_t *end)
{
	for (unsigned n = 0; n <= 64; n += 7) {
		__mmask64 low = n == 64 ? ~0ull : (1ull << n) - 1;
		__m512i v = _mm512_maskz_loadu_epi8(low, end - n);
		__m512i w = _mm512_mask_loadu_epi8(_mm512_set1_epi8(3), low & 0x5a5a5a5a5a5a5a5a, end - n);
		__mmask64 same = _mm512_mask_cmpeq_epu8_mask(low, v, _mm512_maskz_loadu_epi8(low, end - n));

		ADD(v);
		ADD(w);
		ADD(same);
		_mm512_mask_storeu_epi8(end - n, low & 0x7777777777777777, _mm512_add_epi8(v, w));
		_mm512_mask_storeu_epi8(end - n, 0, v);
		_mm512_mask_cvtepi32_storeu_epi8(end - n, (__mmask16)low & 0x0ff0 & low, v);
	}
	add(end - 64, 64);
}

static void compressed(uint8_t *end)
{
	__m512i v = _mm512_loadu_si512(end - 64);

	for (unsigned k = 1; k < 0x10000; k = k * 3 + 1) {
		unsigned n = (unsigned)__builtin_popcount(k & 0xffff);

		_mm512_mask_compressstoreu_epi32(end - 4 * n, (__mmask16)k, v);
		__m512i w = _mm512_mask_expandloadu_epi32(v, (__mmask16)k, end - 4 * n);

		v = _mm512_mask_compress_epi32(w, (__mmask16)~k, v);
		ADD(v);
	}
}

static void gathered(void)
{
	int32_t table[64];
	int64_t wide[32];

	for (int i = 0; i < 64; i++)
		table[i] = i * i - 7, wide[i / 2] = (int64_t)i << 33 | i;
	__m512i at = _mm512_setr_epi32(5, 0, 63, 1, 1, 33, 8, 9, 10, 31, 32, 2, 60, 4, 17, 16);
	__m512i v = _mm512_mask_i32gather_epi32(_mm512_set1_epi32(-1), 0xbeef, at, table, 4);
	__m512i w = _mm512_i32gather_epi64(_mm256_srli_epi32(_mm512_castsi512_si256(at), 1), wide, 8);
	__m128i x = _mm256_mmask_i64gather_epi32(_mm_set1_epi32(9), 0x5, _mm256_set_epi64x(1, 2, 3, 4),
						 table, 4);

	ADD(v);
	ADD(w);
	ADD(x);
	_mm512_mask_i32scatter_epi32(table, 0x7fff, at, _mm512_slli_epi32(v, 3), 4);
	_mm512_i64scatter_epi64(wide, _mm512_setr_epi64(0, 2, 4, 6, 6, 8, 1, 31), w, 8);
	ADD(table);
	ADD(wide);
}

static void rounded(void)
{
	double d[8] = { 1.5, -2.5, 1e300, 3.3, 1e-310, 0.1, 7, -0.0 };
	__m512d a = _mm512_loadu_pd(d), b = _mm512_set1_pd(3.0);
	__m512d up = _mm512_div_round_pd(a, b, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
	__m512d down = _mm512_mask_div_round_pd(a, 0x5a, a, b, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
	__m512i t = _mm512_ternarylogic_epi64(_mm512_castpd_si512(up), _mm512_castpd_si512(down),
					      _mm512_set1_epi64(0x0123456789abcdef), 0x96);
	__m128d s = _mm_mask_add_sd(_mm_set1_pd(4), 1, _mm_set1_pd(2), _mm_load_sd(d + 3));

	ADD(up);
	ADD(down);
	ADD(t);
	ADD(s);
	t = _mm512_add_epi32(t, _mm512_set1_epi32((int)sum)); /* {1to16} where it is in memory */
	t = _mm512_permutexvar_epi16(t, _mm512_loadu_si512(d));
	ADD(t);
}

static void mask_registers(void)
{
	__mmask64 k = sum, l = ~sum >> 3;
	__mmask32 m = _kadd_mask32((__mmask32)k, (__mmask32)l);
	unsigned char carry;

	k = _kxor_mask64(_kshiftli_mask64(k, 7), _kand_mask64(k, l));
	carry = _kortestz_mask64_u8(k, l) + 2 * _ktestc_mask32_u8(m, (__mmask32)k);
	ADD(k);
	ADD(m);
	ADD(carry);
	/* Upper parts must survive narrow code and go where the architecture says. */
	__m512i z = _mm512_movm_epi8(k);

	__asm__ volatile("vmovdqa64 %0, %%zmm5\n\tpaddd %%xmm5, %%xmm5\n\tvmovdqa64 %%zmm5, %0\n\t"
			 "vpaddd %%ymm5, %%ymm5, %%ymm5\n\tvmovdqa64 %%zmm5, %%zmm20\n\t"
			 "vpaddd %%zmm20, %0, %0" : "+v"(z) : : "xmm5", "xmm20");
	ADD(z);
}

int main(void)
{
	uint8_t *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(p + 4096, 4096);
	for (int i = 0; i < 4096; i++)
		p[i] = (uint8_t)(i * 37);
	for (int round = 0; round < 20; round++) {
		at_an_edge(p + 4096);
		compressed(p + 4096);
		gathered();
		rounded();
		mask_registers();
	}
	printf("%llx\n", (unsigned long long)sum);
	return 0;
}
