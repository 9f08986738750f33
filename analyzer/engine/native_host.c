/* Which instructions the processor that runs this has. */
#include "analyzer/engine/native.h"

#include <cpuid.h>
#include <string.h>

enum cpuid_reg { R_EAX, R_EBX, R_ECX, R_EDX };

struct cpuid_bit {
	uint8_t leaf, subleaf;
	uint8_t reg; /* enum cpuid_reg */
	uint8_t bit;
};

/* By instruction set extension. What is neither here nor in every_host() is not executed. */
static const struct {
	ZydisISAExt ext;
	struct cpuid_bit at;
} needs[] = {
	{ ZYDIS_ISA_EXT_SSE3, { 1, 0, R_ECX, 0 } },
	{ ZYDIS_ISA_EXT_SSSE3, { 1, 0, R_ECX, 9 } },
	{ ZYDIS_ISA_EXT_SSE4, { 1, 0, R_ECX, 19 } },
	{ ZYDIS_ISA_EXT_AES, { 1, 0, R_ECX, 25 } },
	{ ZYDIS_ISA_EXT_PCLMULQDQ, { 1, 0, R_ECX, 1 } },
	{ ZYDIS_ISA_EXT_AVX, { 1, 0, R_ECX, 28 } },
	{ ZYDIS_ISA_EXT_F16C, { 1, 0, R_ECX, 29 } },
	{ ZYDIS_ISA_EXT_FMA, { 1, 0, R_ECX, 12 } },
	{ ZYDIS_ISA_EXT_AVX2, { 7, 0, R_EBX, 5 } },
	{ ZYDIS_ISA_EXT_SHA, { 7, 0, R_EBX, 29 } },
	{ ZYDIS_ISA_EXT_VAES, { 7, 0, R_ECX, 9 } },
	{ ZYDIS_ISA_EXT_VPCLMULQDQ, { 7, 0, R_ECX, 10 } },
	{ ZYDIS_ISA_EXT_GFNI, { 7, 0, R_ECX, 8 } },
	{ ZYDIS_ISA_EXT_ADOX_ADCX, { 7, 0, R_EBX, 19 } },
	{ ZYDIS_ISA_EXT_BMI1, { 7, 0, R_EBX, 3 } },
	{ ZYDIS_ISA_EXT_BMI2, { 7, 0, R_EBX, 8 } },
	{ ZYDIS_ISA_EXT_AVXAES, { 1, 0, R_ECX, 25 } },
	{ ZYDIS_ISA_EXT_MOVBE, { 1, 0, R_ECX, 22 } },
	{ ZYDIS_ISA_EXT_MOVDIR, { 7, 0, R_ECX, 27 } },
	{ ZYDIS_ISA_EXT_AVX_VNNI, { 7, 1, R_EAX, 4 } },
};

/* AVX-512 comes in parts, which Zydis calls AVX512BW_256 and the like: by how the name begins,
 * a longer name before one it begins with. */
static const struct {
	const char *set;
	struct cpuid_bit at;
} parts[] = {
	{ "AVX512BW_", { 7, 0, R_EBX, 30 } },
	{ "AVX512CD_", { 7, 0, R_EBX, 28 } },
	{ "AVX512DQ_", { 7, 0, R_EBX, 17 } },
	{ "AVX512F_", { 7, 0, R_EBX, 16 } },
	{ "AVX512_BF16", { 7, 1, R_EAX, 5 } },
	{ "AVX512_BITALG", { 7, 0, R_ECX, 12 } },
	{ "AVX512_FP16", { 7, 0, R_EDX, 23 } },
	{ "AVX512_GFNI", { 7, 0, R_ECX, 8 } },
	{ "AVX512_IFMA", { 7, 0, R_EBX, 21 } },
	{ "AVX512_VAES", { 7, 0, R_ECX, 9 } },
	{ "AVX512_VBMI2", { 7, 0, R_ECX, 6 } },
	{ "AVX512_VBMI_", { 7, 0, R_ECX, 1 } },
	{ "AVX512_VNNI", { 7, 0, R_ECX, 11 } },
	{ "AVX512_VP2INTERSECT", { 7, 0, R_EDX, 8 } },
	{ "AVX512_VPCLMULQDQ", { 7, 0, R_ECX, 10 } },
	{ "AVX512_VPOPCNTDQ", { 7, 0, R_ECX, 14 } },
};

bool host_plays_old;

static bool host_bit(struct cpuid_bit at)
{
	unsigned r[4];

	if (host_plays_old || !__get_cpuid_count(at.leaf, at.subleaf, &r[0], &r[1], &r[2], &r[3]))
		return false;
	return r[at.reg] >> at.bit & 1;
}

bool host_has_avx(void)
{
	static int known = -1;

	if (known < 0)
		known = host_bit((struct cpuid_bit){ 1, 0, R_ECX, 28 });
	return known;
}

/* F, DQ, BW and VL: what every server has that has any of it, and the stubs are made of. */
bool host_has_avx512(void)
{
	static const uint8_t bits[] = { 16, 17, 30, 31 };
	static int known = -1;
	struct mach_xlayout l;

	if (host_plays_old)
		return false;
	if (known >= 0)
		return known;
	xstate_host(&l);
	known = (l.xcr0 & 0xe6) == 0xe6;
	for (size_t i = 0; i < sizeof bits; i++)
		known &= host_bit((struct cpuid_bit){ 7, 0, R_EBX, bits[i] });
	return known;
}

static bool host_has_part(ZydisISASet set)
{
	const char *name = ZydisISASetGetString(set);

	for (size_t i = 0; name && i < sizeof parts / sizeof parts[0]; i++)
		if (!strncmp(name, parts[i].set, strlen(parts[i].set)))
			return host_bit(parts[i].at);
	return false;
}

static bool every_host(ZydisISAExt ext)
{
	switch (ext) {
	case ZYDIS_ISA_EXT_BASE:
	case ZYDIS_ISA_EXT_LONGMODE:
	case ZYDIS_ISA_EXT_X87:
	case ZYDIS_ISA_EXT_MMX:
	case ZYDIS_ISA_EXT_SSE:
	case ZYDIS_ISA_EXT_SSE2:
		return true;
	default:
		return false;
	}
}

bool host_can(const ZydisDecodedInstruction *i)
{
	if (i->meta.isa_ext == ZYDIS_ISA_EXT_AVX512EVEX ||
	    i->meta.isa_ext == ZYDIS_ISA_EXT_AVX512VEX)
		return host_has_avx512() && host_has_part(i->meta.isa_set);
	for (size_t k = 0; k < sizeof needs / sizeof needs[0]; k++)
		if (needs[k].ext == i->meta.isa_ext)
			return host_bit(needs[k].at);
	return every_host(i->meta.isa_ext);
}
