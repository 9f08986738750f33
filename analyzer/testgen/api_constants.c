/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The numbers that a library's code compares with: values that lead into its branches. */
#include "analyzer/testgen/api_internal.h"

#include <Zydis/Zydis.h>
#include <gelf.h>

#define MAX_CONSTANTS 24       /* each multiplies the values of every integer parameter */
#define MAX_CODE (1u << 20)    /* bytes of functions looked at */

static bool known(const struct api *a, int64_t v)
{
	for (size_t i = 0; i < a->constants.n; i++)
		if (a->constants.v[i] == v)
			return true;
	return false;
}

static void read_code(struct api *a, const uint8_t *code, uint64_t size)
{
	ZydisDecoder d;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];

	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint64_t at = 0; at < size && a->constants.n < MAX_CONSTANTS; at += in.length) {
		if (ZYAN_FAILED(ZydisDecoderDecodeFull(&d, code + at, size - at, &in, ops)))
			return;
		if (in.mnemonic != ZYDIS_MNEMONIC_CMP || in.operand_count < 2 ||
		    ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			continue;
		int64_t v = ops[1].imm.value.s;
		/* Small numbers are in the pools anyway; large ones are addresses or sizes of something else. */
		if (v > 2 && v < 1 << 16 && !known(a, v))
			vec_push(&a->constants, v);
	}
}

void api_read_constants(struct api *a, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_PROGBITS || !(sh.sh_flags & SHF_EXECINSTR) ||
		    !(data = elf_getdata(scn, NULL)) || !data->d_buf)
			continue;
		for (size_t i = 0; i < a->functions.n; i++) {
			const struct api_function *f = &a->functions.v[i];

			if (f->offset >= sh.sh_addr && f->size < MAX_CODE && f->offset - sh.sh_addr <= data->d_size &&
			    f->size <= data->d_size - (f->offset - sh.sh_addr))
				read_code(a, (uint8_t *)data->d_buf + (f->offset - sh.sh_addr), f->size);
		}
	}
}
