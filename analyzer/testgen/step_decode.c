/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which memory an instruction accesses, from its registers; decoded once for each place. */
#include "analyzer/testgen/step.h"

#include <Zydis/Zydis.h>
#include <sys/mman.h>

#define SLOTS 8192 /* a power of two; what does not fit replaces what was there */

/* Shared by the processes of all jobs: what one has decoded the next ones know. */
static struct step_insn *cache;

void step_decode_prepare(void)
{
	void *at = mmap(NULL, SLOTS * sizeof *cache, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cache = at == MAP_FAILED ? NULL : at;
}

static int8_t register_of(ZydisRegister r)
{
	static const int8_t to[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
				       REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
	ZyanI8 id = ZydisRegisterGetId(r);

	if (r == ZYDIS_REGISTER_NONE || ZydisRegisterGetClass(r) != ZYDIS_REGCLASS_GPR64 || id < 0 || id > 15)
		return -1;
	return to[id];
}

static void add_operand(struct step_insn *out, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *o)
{
	struct step_operand *to = &out->operands[out->noperands];

	if (out->noperands == 2 || o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type != ZYDIS_MEMOP_TYPE_MEM ||
	    o->mem.segment == ZYDIS_REGISTER_FS || o->mem.segment == ZYDIS_REGISTER_GS)
		return;
	to->base = register_of(o->mem.base);
	to->index = register_of(o->mem.index);
	to->scale = o->mem.scale;
	to->displacement = o->mem.disp.has_displacement ? o->mem.disp.value : 0;
	if (o->mem.base == ZYDIS_REGISTER_RIP)
		to->displacement += (int64_t)(out->pc + in->length);
	/* Of the own stack: nobody else's. */
	else if (to->base == REG_RSP || (o->mem.base != ZYDIS_REGISTER_NONE && to->base < 0))
		return;
	to->size = (uint16_t)(o->size / 8);
	to->access = (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ ? 1 : 0) |
		     (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? 2 : 0);
	out->noperands += to->access != 0 && to->size != 0;
}

const struct step_insn *step_decode(uint64_t pc, const uint8_t *code)
{
	static struct step_insn alone;
	struct step_insn *s = cache ? &cache[(pc ^ pc >> 13) & (SLOTS - 1)] : &alone;
	ZydisDecoder d;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];

	if (s->pc == pc)
		return s;
	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&d, code, 15, &in, ops)))
		return NULL;
	*s = (struct step_insn){ .pc = pc, .length = in.length };
	s->is_call = in.meta.category == ZYDIS_CATEGORY_CALL;
	s->is_return = in.meta.category == ZYDIS_CATEGORY_RET;
	s->is_branch = in.meta.category == ZYDIS_CATEGORY_COND_BR || in.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
	s->is_system = in.meta.category == ZYDIS_CATEGORY_SYSCALL || in.meta.category == ZYDIS_CATEGORY_INTERRUPT ||
		       in.meta.category == ZYDIS_CATEGORY_SYSTEM;
	s->is_landing = in.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
	s->repeats = (in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
	/* xchg with memory locks without saying so */
	s->locked = (in.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0 || in.mnemonic == ZYDIS_MNEMONIC_XCHG;
	for (unsigned i = 0; i < in.operand_count; i++)
		s->writes_frame |= ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
				   (ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
				   ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, ops[i].reg.value) == ZYDIS_REGISTER_RBP;
	for (unsigned i = 0; i < in.operand_count; i++)
		if (in.mnemonic != ZYDIS_MNEMONIC_LEA && in.mnemonic != ZYDIS_MNEMONIC_NOP)
			add_operand(s, &in, &ops[i]);
	return s;
}
