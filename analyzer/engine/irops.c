/* Which operation of the bytecode an IR operator is: a table, indexed once. */
#include "analyzer/engine/irops.h"

#define LOW(op) ((unsigned)(op) - (unsigned)Iop_INVALID)
#define TABLE 2048

struct row {
	uint16_t iop_low;
	uint16_t code;
	uint8_t size; /* bytes of the result, for those whose code does not say */
};

#define ROW4(iop, code)                                                             \
	{ LOW(Iop_##iop##8), OP_##code##8, 1 }, { LOW(Iop_##iop##16), OP_##code##16, 2 }, \
	{ LOW(Iop_##iop##32), OP_##code##32, 4 }, { LOW(Iop_##iop##64), OP_##code##64, 8 }

static const struct row rows[] = {
	ROW4(Add, ADD), ROW4(Sub, SUB), ROW4(Mul, MUL),
	ROW4(And, AND), ROW4(Or, OR), ROW4(Xor, XOR),
	ROW4(Shl, SHL), ROW4(Shr, SHR), ROW4(Sar, SAR),
	ROW4(CmpEQ, EQ), ROW4(CmpNE, NE),
	ROW4(CasCmpEQ, EQ), ROW4(CasCmpNE, NE), ROW4(ExpCmpNE, NE),
	ROW4(Not, NOT),
	{ LOW(Iop_CmpLT32U), OP_LTU32, 1 }, { LOW(Iop_CmpLT64U), OP_LTU64, 1 },
	{ LOW(Iop_CmpLE32U), OP_LEU32, 1 }, { LOW(Iop_CmpLE64U), OP_LEU64, 1 },
	{ LOW(Iop_CmpLT32S), OP_LTS32, 1 }, { LOW(Iop_CmpLT64S), OP_LTS64, 1 },
	{ LOW(Iop_CmpLE32S), OP_LES32, 1 }, { LOW(Iop_CmpLE64S), OP_LES64, 1 },
	{ LOW(Iop_MullU8), OP_MULLU8, 2 }, { LOW(Iop_MullU16), OP_MULLU16, 4 },
	{ LOW(Iop_MullU32), OP_MULLU32, 8 }, { LOW(Iop_MullU64), OP_MULLU64, 16 },
	{ LOW(Iop_MullS8), OP_MULLS8, 2 }, { LOW(Iop_MullS16), OP_MULLS16, 4 },
	{ LOW(Iop_MullS32), OP_MULLS32, 8 }, { LOW(Iop_MullS64), OP_MULLS64, 16 },
	{ LOW(Iop_DivModU128to64), OP_DIVU128, 16 }, { LOW(Iop_DivModS128to64), OP_DIVS128, 16 },
	{ LOW(Iop_DivModU64to32), OP_DIVU64, 8 }, { LOW(Iop_DivModS64to32), OP_DIVS64, 8 },
	{ LOW(Iop_8HLto16), OP_HL8, 2 }, { LOW(Iop_16HLto32), OP_HL16, 4 },
	{ LOW(Iop_32HLto64), OP_HL32, 8 }, { LOW(Iop_64HLto128), OP_HL64, 16 },
	{ LOW(Iop_128to64), OP_LOW128, 8 }, { LOW(Iop_128HIto64), OP_HIGH128, 8 },
	{ LOW(Iop_And1), OP_AND1, 1 }, { LOW(Iop_Or1), OP_OR1, 1 },
	{ LOW(Iop_Not1), OP_NOT1, 1 },
	{ LOW(Iop_64to32), OP_TO32, 4 }, { LOW(Iop_64to16), OP_TO16, 2 },
	{ LOW(Iop_64to8), OP_TO8, 1 }, { LOW(Iop_32to16), OP_TO16, 2 },
	{ LOW(Iop_32to8), OP_TO8, 1 }, { LOW(Iop_16to8), OP_TO8, 1 },
	{ LOW(Iop_64to1), OP_TO1, 1 }, { LOW(Iop_32to1), OP_TO1, 1 },
	{ LOW(Iop_8Uto16), OP_ZX8, 2 }, { LOW(Iop_8Uto32), OP_ZX8, 4 },
	{ LOW(Iop_8Uto64), OP_ZX8, 8 }, { LOW(Iop_16Uto32), OP_ZX16, 4 },
	{ LOW(Iop_16Uto64), OP_ZX16, 8 }, { LOW(Iop_32Uto64), OP_ZX32, 8 },
	{ LOW(Iop_8Sto16), OP_SX8TO16, 2 }, { LOW(Iop_8Sto32), OP_SX8TO32, 4 },
	{ LOW(Iop_8Sto64), OP_SX8TO64, 8 }, { LOW(Iop_16Sto32), OP_SX16TO32, 4 },
	{ LOW(Iop_16Sto64), OP_SX16TO64, 8 }, { LOW(Iop_32Sto64), OP_SX32TO64, 8 },
	{ LOW(Iop_64HIto32), OP_HI64, 4 }, { LOW(Iop_32HIto16), OP_HI32, 2 },
	{ LOW(Iop_16HIto8), OP_HI16, 1 },
	{ LOW(Iop_1Uto8), OP_BIT, 1 }, { LOW(Iop_1Uto32), OP_BIT, 4 },
	{ LOW(Iop_1Uto64), OP_BIT, 8 },
	{ LOW(Iop_1Sto8), OP_SPREAD8, 1 }, { LOW(Iop_1Sto16), OP_SPREAD16, 2 },
	{ LOW(Iop_1Sto32), OP_SPREAD32, 4 }, { LOW(Iop_1Sto64), OP_SPREAD64, 8 },
	ROW4(CmpNEZ, NEZ), ROW4(Left, LEFT),
	{ LOW(Iop_CmpwNEZ32), OP_FILL32, 4 }, { LOW(Iop_CmpwNEZ64), OP_FILL64, 8 },
	{ LOW(Iop_Clz32), OP_CLZ32, 4 }, { LOW(Iop_ClzNat32), OP_CLZ32, 4 },
	{ LOW(Iop_Clz64), OP_CLZ64, 8 }, { LOW(Iop_ClzNat64), OP_CLZ64, 8 },
	{ LOW(Iop_Ctz32), OP_CTZ32, 4 }, { LOW(Iop_CtzNat32), OP_CTZ32, 4 },
	{ LOW(Iop_Ctz64), OP_CTZ64, 8 }, { LOW(Iop_CtzNat64), OP_CTZ64, 8 },
	{ LOW(Iop_PopCount32), OP_POPCOUNT32, 4 }, { LOW(Iop_PopCount64), OP_POPCOUNT64, 8 },
	{ LOW(Iop_Reverse8sIn32_x1), OP_SWAP32, 4 }, { LOW(Iop_Reverse8sIn64_x1), OP_SWAP64, 8 },
};

bool irop_find(IROp op, uint16_t *code, uint8_t *size)
{
	static uint8_t index[TABLE];
	static bool ready;
	unsigned low = LOW(op);

	if (!ready) {
		for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
			index[rows[i].iop_low] = (uint8_t)(i + 1);
		ready = true;
	}
	if (low >= TABLE || !index[low])
		return false;
	*code = rows[index[low] - 1].code;
	*size = rows[index[low] - 1].size;
	return true;
}
