/* See decode.h. Prefixes, then opcode map, then modrm/sib/disp, then immediate. */
#include "preload/translate/decode.h"
#include "preload/translate/decode_tables.h"
#include "common/trace_format.h"

/*
 * decode() reads no further than this, whatever the bytes are: four prefixes, EVEX and its opcode,
 * modrm, sib, displacement. With more prefixes, or fewer bytes, it gets a copy with zeros behind.
 */
#define READS 15
#define PREFIXES 4

static int64_t read_signed(const uint8_t *p, unsigned n)
{
	int64_t v = 0;

	for (unsigned i = 0; i < n; i++)
		v |= (int64_t)p[i] << (8 * i);
	return n == 8 ? v : (int64_t)((uint64_t)v << (64 - 8 * n)) >> (64 - 8 * n);
}

/* The bytes that can be legacy prefixes: most instructions begin with none. */
static const uint64_t is_prefix[4] = {
	1ull << 0x26 | 1ull << 0x2e | 1ull << 0x36 | 1ull << 0x3e,
	1ull << (0x64 - 64) | 1ull << (0x65 - 64) | 1ull << (0x66 - 64) | 1ull << (0x67 - 64),
	0,
	1ull << (0xf0 - 192) | 1ull << (0xf2 - 192) | 1ull << (0xf3 - 192),
};

static bool begins_prefix(uint8_t b)
{
	return is_prefix[b >> 6] >> (b & 63) & 1;
}

static const uint8_t *prefixes(struct insn *in, const uint8_t *p)
{
	for (unsigned n = 0; begins_prefix(*p) && n < 15; n++, p++) {
		switch (*p) {
		case 0x64: in->flags |= INSN_USES_FS; in->flags &= ~INSN_USES_GS; break;
		case 0x65: in->flags |= INSN_USES_GS; in->flags &= ~INSN_USES_FS; break;
		case 0x66: in->prefixes |= INSN_P66; break;
		case 0x67: in->prefixes |= INSN_P67; break;
		case 0xf0: in->prefixes |= INSN_PLOCK; break;
		case 0xf2: in->prefixes |= INSN_PF2; in->prefixes &= ~INSN_PF3; break;
		case 0xf3: in->prefixes |= INSN_PF3; in->prefixes &= ~INSN_PF2; break;
		default: break; /* segments that mean nothing */
		}
	}
	return p;
}

/* VEX (C4, C5) and EVEX (62): the prefix bytes hold map, REX bits and vvvv. NULL: no such map. */
static const uint8_t *vector_prefix(struct insn *in, const uint8_t *p)
{
	uint8_t lead = *p++, b1 = *p++, last;

	in->vex = 1;
	if (lead == 0xc5) {
		in->rex = (uint8_t)((~b1 >> 7 & 1) << 2);
		in->map = 1;
		last = b1;
	} else {
		last = *p++;
		in->map = b1 & 0x1f;
		in->rex = (uint8_t)((~b1 >> 5 & 7) | (last >> 7) << 3);
	}
	in->vvvv = (uint8_t)(~last >> 3 & 15);
	if (lead == 0x62) {
		uint8_t b3 = *p++;

		in->vex = 2;
		in->flags |= INSN_EVEX;
		in->map = b1 & 7;
		if (!(b1 & 0x10)) /* R': registers 16..31, never 15 */
			in->rex |= 16;
		if (!(b3 & 8))
			in->vvvv |= 16;
		if (in->map == 5 || in->map == 6)
			in->map = 2; /* half precision: same shape, no immediate */
	}
	in->prefixes |= (last & 3) == 1 ? INSN_P66 : (last & 3) == 2 ? INSN_PF3 :
			(last & 3) == 3 ? INSN_PF2 : 0;
	return in->map >= 1 && in->map <= 3 ? p : NULL;
}

/* What follows a modrm byte, by its mod and rm: bytes of displacement, and: */
enum { SHAPE_DISP = 7, SHAPE_SIB = 8, SHAPE_RIP = 16 };
static const uint8_t shapes[3][8] = {
	{ 0, 0, 0, 0, SHAPE_SIB, SHAPE_RIP | 4, 0, 0 },
	{ 1, 1, 1, 1, SHAPE_SIB | 1, 1, 1, 1 },
	{ 4, 4, 4, 4, SHAPE_SIB | 4, 4, 4, 4 },
};

static const uint8_t *modrm(struct insn *in, const uint8_t *code, const uint8_t *p)
{
	uint8_t m = *p;

	in->modrm = m;
	in->modrm_off = (uint8_t)(p++ - code);
	if (m >> 6 == 3)
		return p;
	uint8_t shape = shapes[m >> 6][m & 7], disp = shape & SHAPE_DISP;

	in->flags |= INSN_MEM | (shape & SHAPE_RIP ? INSN_RIPREL : 0);
	if (shape & SHAPE_SIB) {
		in->sib = *p++;
		if (m >> 6 == 0 && (in->sib & 7) == 5)
			disp = 4;
	}
	in->disp_len = disp;
	in->disp_off = (uint8_t)(p - code);
	return p + disp;
}

static unsigned immediate_length(const struct insn *in, uint32_t d)
{
	bool w = in->rex & 8, o16 = in->prefixes & INSN_P66;

	switch (d & D_IMM) {
	case IMM_B: return 1;
	case IMM_Z: return o16 && !w ? 2 : 4;
	case IMM_W: return 2;
	case IMM_V: return w ? 8 : o16 ? 2 : 4;
	case IMM_WB: return 3;
	case IMM_MOFFS: return in->prefixes & INSN_P67 ? 4 : 8;
	}
	return 0;
}

static void set_usage(struct insn *in, enum usage u)
{
	in->usage = (uint8_t)u;
}

static void nondet(struct insn *in, enum trc_nondet_kind k)
{
	in->cls = INSN_NONDET;
	in->nondet = (uint8_t)k;
}

/* 0F01: privileged system instructions, and a few that user code runs. */
static void group7(struct insn *in)
{
	if (in->modrm >> 6 != 3) {
		/* sgdt, sidt, smsw store; lgdt, lidt, lmsw, invlpg fault in user mode */
		in->cls = (0x53u >> (in->modrm >> 3 & 7) & 1) ? INSN_NORMAL : INSN_TRAP;
		return;
	}
	switch (in->modrm) {
	case 0xd0: nondet(in, TRC_XGETBV); break;
	case 0xf9: nondet(in, TRC_RDTSCP); break;
	case 0xee: case 0xef: break; /* rdpkru, wrpkru */
	case 0xd6: break;            /* xtest: never inside a transaction here */
	case 0xe0: case 0xe1: case 0xe2: case 0xe3:
	case 0xe4: case 0xe5: case 0xe6: case 0xe7: break; /* smsw reg */
	default: in->cls = INSN_UNKNOWN; break;
	}
}

static void group9(struct insn *in)
{
	unsigned op = in->modrm >> 3 & 7;

	if (in->modrm >> 6 == 3) {
		if (op == 6)
			nondet(in, TRC_RDRAND);
		else if (op == 7)
			nondet(in, in->prefixes & INSN_PF3 ? TRC_RDPID : TRC_RDSEED);
		else
			in->cls = INSN_UNKNOWN;
	} else if (op >= 3 && op <= 5) {
		in->flags |= INSN_XSTATE | INSN_XMM15; /* xrstors, xsavec, xsaves */
	}
}

static void group15(struct insn *in)
{
	unsigned op = in->modrm >> 3 & 7;

	if (in->modrm >> 6 != 3) {
		if (op <= 1 || (op >= 4 && op <= 6 && !(in->prefixes & (INSN_PF3 | INSN_P66))))
			in->flags |= INSN_XSTATE | INSN_XMM15;
		if (in->prefixes & INSN_PF3)
			in->cls = INSN_UNKNOWN;
		return;
	}
	if (in->prefixes & INSN_PF3) {
		if (op == 1 || op == 3)
			in->cls = INSN_SEGMENT; /* rdgsbase, wrgsbase */
		else if (op > 3)
			in->cls = INSN_UNKNOWN;
	} else if (in->prefixes & (INSN_PF2 | INSN_P66) || op < 5) {
		in->cls = INSN_UNKNOWN;
	}
	in->flags |= INSN_KEEPS_FLAGS;
}

static void group5(struct insn *in)
{
	switch (in->modrm >> 3 & 7) {
	case 0: case 1: set_usage(in, U_M_RW); break;
	case 2: in->cls = INSN_CALL_IND; break;
	case 4: in->cls = INSN_JMP_IND; break;
	case 6: set_usage(in, U_STACK); in->flags |= INSN_KEEPS_FLAGS; break;
	default: in->cls = INSN_UNKNOWN; break;
	}
}

static void group3(struct insn *in)
{
	unsigned op = in->modrm >> 3 & 7;

	switch (op) {
	case 0: case 1: set_usage(in, U_M_R); in->flags |= INSN_SETS_FLAGS; break;
	case 2: set_usage(in, U_M_RW); in->flags |= INSN_KEEPS_FLAGS; break;
	case 3: set_usage(in, U_M_RW); in->flags |= INSN_SETS_FLAGS; break;
	default: set_usage(in, U_MULDIV); break;
	}
}

#define INT_SYSCALL 0x80 /* the system calls of 32-bit programs, which a 64-bit one can make, too */

/* The opcodes whose meaning hangs on more than their number. */
static void look_closer(struct insn *in, const uint8_t *code, unsigned kind)
{
	unsigned op = in->modrm >> 3 & 7;

	switch (kind) {
	case K_BAD: in->cls = INSN_UNKNOWN; break;
	case K_TRAP: in->cls = INSN_TRAP; break;
	case K_INT: in->cls = code[in->imm_off] == INT_SYSCALL ? INSN_UNKNOWN : INSN_TRAP; break;
	case K_JCC: in->cls = INSN_JCC; break;
	case K_LOOP: in->cls = INSN_LOOP; break;
	case K_JMP: in->cls = INSN_JMP; break;
	case K_CALL: in->cls = INSN_CALL; break;
	case K_RET: in->cls = INSN_RET; break;
	case K_SYSCALL: in->cls = INSN_SYSCALL; break;
	case K_GRP1: set_usage(in, op == 7 ? U_M_R : U_M_RW);
		if (op == 2 || op == 3)
			in->flags &= ~INSN_SETS_FLAGS;
		break;
	case K_GRP3: group3(in); break;
	case K_GRP4: set_usage(in, U_M_RW);
		if (op > 1)
			in->cls = INSN_UNKNOWN;
		break;
	case K_GRP5: group5(in); break;
	case K_GRP7: group7(in); break;
	case K_GRP8: set_usage(in, op == 4 ? U_M_R : U_M_RW);
		if (op < 4)
			in->cls = INSN_UNKNOWN;
		break;
	case K_GRP9: group9(in); break;
	case K_GRP15: group15(in); break;
	case K_POP_RM: set_usage(in, U_ANY);
		if (op)
			in->cls = INSN_UNKNOWN; /* XOP */
		break;
	case K_MOV_IMM:
		if (op)
			in->cls = INSN_UNKNOWN; /* xabort, xbegin */
		break;
	case K_MOV_SREG: in->cls = op == 4 || op == 5 ? INSN_SEGMENT : INSN_NORMAL; break;
	case K_NONDET: nondet(in, in->op == 0x31 ? TRC_RDTSC : TRC_CPUID); break;
	case K_VZERO:
		if (in->vex)
			in->flags |= in->rex & 16 ? INSN_XMM15 : INSN_VZEROUPPER;
		break;
	case K_GS: in->cls = INSN_SEGMENT; break;
	case K_LEA: in->flags |= INSN_LEA_LIKE; break;
	case K_PUSHF: in->flags |= INSN_PUSHF; break;
	case K_NOP:
		if (!(in->rex & 1))
			set_usage(in, U_NONE); /* nop, pause */
		break;
	}
}

/* modrm.rm is a general register: movd and movq, cvtsi2ss and cvtsi2sd */
static bool rm_is_general(const struct insn *in)
{
	return in->map == 1 && (in->op == 0x6e || (in->op == 0x7e && !(in->prefixes & INSN_PF3)) ||
				(in->op == 0x2a && in->prefixes & (INSN_PF2 | INSN_PF3)));
}

/*
 * Every way an operand can name register 15 of the vector file. With EVEX a further bit of
 * each says that it is one of 16 to 31: rex & 16 for modrm.reg, rex & 2 for modrm.rm, vvvv & 16.
 */
static bool names_vector15(const struct insn *in, const uint8_t *code)
{
	bool evex = in->vex == 2;
	bool vsib = in->vex && in->map == 2 && (in->flags & INSN_MEM) &&
		    ((in->op >= 0x90 && in->op <= 0x93) || (in->op >= 0xa0 && in->op <= 0xa3) ||
		     in->op == 0xc6 || in->op == 0xc7);

	if ((in->modrm >> 3 & 7) == 7 && (in->rex & 4) && !(evex && in->rex & 16))
		return true;
	if (in->modrm >> 6 == 3 && (in->modrm & 7) == 7 && (in->rex & 1) &&
	    !(evex && in->rex & 2) && !rm_is_general(in))
		return true;
	if (in->vex && in->vvvv == 15)
		return true;
	if (vsib && (in->sib >> 3 & 7) == 7 && (in->rex & 2) && !(evex && in->vvvv & 16))
		return true;
	return in->vex == 1 && in->map == 3 && in->imm_len == 1 && code[in->imm_off] >> 4 == 15;
}

static uint32_t descriptor(struct insn *in)
{
	if (in->map == 0)
		return insn_map0[in->op];
	if (in->map == 2)
		return insn_map2(in->op);
	if (in->map == 3)
		return insn_map3(in->op);
	if (!in->vex)
		return insn_map1[in->op];
	/* VEX 0F: vector shapes (or mask registers), modrm always but for vzero*. */
	if (in->op == 0x77)
		return insn_map1[0x77];
	uint32_t d = insn_map1[in->op];
	if (d & D_V)
		return d;
	if (in->op == 0xae)
		return D_M | (uint32_t)U_NONE << D_USAGE_SHIFT | D_FK; /* vldmxcsr */
	if ((in->op >= 0x40 && in->op < 0x50) || (in->op >= 0x90 && in->op < 0xa0) ||
	    (in->op >= 0x78 && in->op <= 0x7b))
		return D_M | D_V; /* opmask moves, AVX-512 conversions */
	return 0;
}

/* REX, the escape bytes or what stands in their place; where the opcode is, or NULL. */
static const uint8_t *opcode(struct insn *in, const uint8_t *p)
{
	if ((*p & 0xf0) == 0x40)
		in->rex = *p++ & 15;
	else if (*p == 0xc4 || *p == 0xc5 || *p == 0x62)
		return vector_prefix(in, p);
	if (*p != 0x0f)
		return p;
	in->map = p[1] == 0x38 ? 2 : p[1] == 0x3a ? 3 : 1;
	return p + (in->map == 1 ? 1 : 2);
}

static int undecodable(struct insn *in)
{
	*in = (struct insn){ .cls = INSN_UNKNOWN };
	return 0;
}

static void vector_facts(struct insn *in, const uint8_t *code, uint32_t d, unsigned kind)
{
	if ((d & D_V) && names_vector15(in, code))
		in->flags |= INSN_XMM15;
	if (in->vex == 2 && kind == K_PLAIN && !(d & D_V))
		in->flags |= INSN_XMM15;
}

static bool is_branch(unsigned kind)
{
	return kind == K_JCC || kind == K_LOOP || kind == K_JMP || kind == K_CALL;
}

/* What the descriptor does not say. */
static void kind_facts(struct insn *in, const uint8_t *code, unsigned kind, uint64_t pc)
{
	if (kind == K_VZERO && in->vex && in->op_off >= 1)
		/* VEX.L tells vzeroall from vzeroupper; kept in bit 4 of rex */
		in->rex |= code[in->op_off - 1] & 4 ? 16 : 0;
	look_closer(in, code, kind);
	if (is_branch(kind))
		in->target = pc + in->len + (uint64_t)read_signed(code + in->imm_off, in->imm_len);
}

static unsigned immediate(const struct insn *in, uint32_t d, unsigned kind)
{
	unsigned n = d & D_IMM ? immediate_length(in, d) : 0;

	if (kind == K_GRP3 && !(in->modrm >> 4 & 3))
		n = in->byte_op ? 1 : in->prefixes & INSN_P66 && !(in->rex & 8) ? 2 : 4;
	if (kind == K_JMP || kind == K_CALL || kind == K_JCC)
		n = n == 1 ? 1 : 4;
	return n;
}

_Static_assert(D_FS >> 4 == INSN_SETS_FLAGS && D_FK >> 4 == INSN_KEEPS_FLAGS, "one shift for both");

/* The length, which may be more than there is. */
static int decode(struct insn *in, const uint8_t *code, uint64_t pc)
{
	const uint8_t *p = code;

	*in = (struct insn){ 0 };
	if (begins_prefix(*p))
		p = prefixes(in, p);
	p = opcode(in, p);
	if (!p)
		return undecodable(in);
	in->op_off = (uint8_t)(p - code);
	in->op = *p++;
	uint32_t d = in->map == 0 ? insn_map0[in->op] : descriptor(in);
	unsigned kind = (d & D_KIND) >> D_KIND_SHIFT;

	if (!d)
		return undecodable(in);
	in->usage = (uint8_t)((d & D_USAGE) >> D_USAGE_SHIFT);
	in->byte_op = !!(d & D_B);
	in->flags |= d >> 4 & (INSN_SETS_FLAGS | INSN_KEEPS_FLAGS);
	if (d & D_M)
		p = modrm(in, code, p);
	in->imm_off = (uint8_t)(p - code);
	if ((d & D_IMM) || kind) {
		in->imm_len = (uint8_t)immediate(in, d, kind);
		p += in->imm_len;
	}
	in->len = (uint8_t)(p - code);
	if (kind)
		kind_facts(in, code, kind, pc);
	if ((d & D_V) || in->vex)
		vector_facts(in, code, d, kind);
	if ((in->flags & INSN_MEM) &&
	    ((in->prefixes & INSN_PLOCK) || (in->map == 0 && (in->op | 1) == 0x87)))
		in->flags |= INSN_LOCKED;
	return in->len;
}

static int decode_copy(struct insn *in, const uint8_t *code, size_t n, uint64_t pc)
{
	uint8_t copy[2 * READS] = { 0 };

	for (size_t i = 0; i < n; i++)
		copy[i] = code[i];
	return decode(in, copy, pc);
}

int insn_decode(struct insn *in, const uint8_t *code, size_t avail, uint64_t pc)
{
	size_t most = avail < READS ? avail : READS;

	bool unusual = avail < READS || (begins_prefix(code[0]) && begins_prefix(code[PREFIXES]));
	int len = unusual ? decode_copy(in, code, most, pc) : decode(in, code, pc);

	return (size_t)len > most ? undecodable(in) : len;
}

static uint32_t address_registers(const struct insn *in)
{
	uint32_t m = 0;

	if (!(in->flags & INSN_MEM) || (in->flags & INSN_RIPREL))
		return 0;
	if ((in->modrm & 7) != 4)
		return 1u << insn_rm(in);
	if (!((in->sib & 7) == 5 && in->modrm >> 6 == 0))
		m |= 1u << ((in->sib & 7) | (in->rex & 1) << 3);
	unsigned index = (in->sib >> 3 & 7) | (in->rex & 2) << 2;
	if (index != 4)
		m |= 1u << index;
	return m;
}

/* A register operand of an 8-bit instruction without REX: 4..7 are ah..bh. */
static uint32_t bit(const struct insn *in, int r)
{
	if (in->byte_op && r >= 4 && r < 8)
		return 1u << r | 1u << (r - 4);
	return 1u << r;
}

struct masks {
	uint32_t reads, writes;
};

static void writes(struct masks *m, const struct insn *in, int r)
{
	bool partial = in->byte_op || ((in->prefixes & INSN_P66) && !(in->rex & 8));

	if (partial)
		m->reads |= bit(in, r);
	else
		m->writes |= 1u << r;
}

bool insn_registers(const struct insn *in, uint32_t *reads_out, uint32_t *writes_out)
{
	struct masks m = { address_registers(in), 0 };
	bool rm_reg = insn_rm_is_reg(in);
	int reg = insn_reg(in), rm = insn_rm(in), o = (in->op & 7) | (in->rex & 1) << 3;
	uint32_t reg_bit = bit(in, reg), rm_bit = rm_reg ? bit(in, rm) : 0;
	enum { RAX = 1, RCX = 2, RDX = 4, RSP = 16, RBP = 32 };

	switch ((enum usage)in->usage) {
	case U_ANY: return false;
	case U_NONE: break;
	case U_MR_RW: case U_RM_RW: case U_MR_R:
		m.reads |= reg_bit | rm_bit;
		/* xor r,r and sub r,r only overwrite */
		if (in->map == 0 && rm_reg && reg == rm && !in->byte_op &&
		    (in->op == 0x31 || in->op == 0x33 || in->op == 0x29 || in->op == 0x2b) &&
		    (!(in->prefixes & INSN_P66) || in->rex & 8)) {
			m.reads &= ~reg_bit;
			m.writes |= reg_bit;
		}
		break;
	case U_MR_W:
		m.reads |= reg_bit;
		if (rm_reg)
			writes(&m, in, rm);
		break;
	case U_RM_W:
		m.reads |= rm_bit;
		if (in->map == 1 && (in->op == 0xb6 || in->op == 0xbe) && rm_reg)
			m.reads |= 1u << (rm & ~4); /* the source is 8 bits wide */
		writes(&m, in, reg);
		break;
	case U_XCHG: m.reads |= reg_bit | rm_bit; break;
	case U_M_R: case U_M_RW: m.reads |= rm_bit; break;
	case U_M_W:
		if (rm_reg)
			writes(&m, in, rm);
		break;
	case U_ACC_RW: case U_ACC_R: case U_CWDE: m.reads |= RAX; break;
	case U_ACC_W: writes(&m, in, 0); break;
	case U_O_R: case U_O_RW: m.reads |= bit(in, o); break;
	case U_O_W: writes(&m, in, o); break;
	case U_PUSH_O: m.reads |= 1u << o | RSP; break;
	case U_POP_O:
		m.reads |= RSP;
		writes(&m, in, o);
		break;
	case U_XCHG_ACC: m.reads |= 1u << o | RAX; break;
	case U_STACK: m.reads |= RSP | rm_bit; break;
	case U_CDQ:
		m.reads |= RAX;
		writes(&m, in, 2);
		break;
	case U_SHIFT_CL: m.reads |= rm_bit | RCX; break;
	case U_MULDIV: m.reads |= rm_bit | RAX | RDX; break;
	case U_LEAVE: m.reads |= RBP | RSP; break;
	case U_SHXD_CL: m.reads |= rm_bit | reg_bit | RCX; break;
	}
	/* rsp is never free, and what is read counts as read first. */
	*reads_out = m.reads;
	*writes_out = m.writes & ~(uint32_t)RSP;
	return true;
}

unsigned insn_memory_size(const struct insn *in)
{
	if (!(in->flags & INSN_MEM) || in->vex || in->map > 1)
		return 0;
	if (in->map == 1 && (in->op == 0xb7 || in->op == 0xbf))
		return 2;
	if (in->map == 1 && (in->op == 0xb6 || in->op == 0xbe))
		return 1;
	if (in->map == 0 && in->op == 0x63)
		return 4;
	if (in->byte_op)
		return 1;
	if (in->usage == U_NONE || in->usage == U_ANY)
		return 0;
	return in->rex & 8 ? 8 : in->prefixes & INSN_P66 ? 2 : 4;
}
