/*
 * The translator's decoder against Zydis, over every instruction that a linear
 * sweep finds in the executable segments of real libraries: length and class
 * equal; touched xmm15, registers read: ours covers theirs; registers written
 * in full: theirs covers ours.
 */
#include "preload/translate/decode.c"
#include "preload/translate/decode_tables.c"
#include "tests/lib/check.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static ZydisDecoder decoder;
static unsigned long shown;

struct tally {
	unsigned long insns, length, cls, riprel, xmm15, reads, writes, flags, unknown, locked;
};

static int gpr(ZydisRegister r)
{
	ZydisRegister f = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	return f >= ZYDIS_REGISTER_RAX && f <= ZYDIS_REGISTER_R15 ? (int)(f - ZYDIS_REGISTER_RAX)
								   : -1;
}

static enum insn_class expected_class(const ZydisDecodedInstruction *z,
				      const ZydisDecodedOperand *op)
{
	bool imm = op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	if (z->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return INSN_UNKNOWN;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_JMP: return imm ? INSN_JMP : INSN_JMP_IND;
	case ZYDIS_MNEMONIC_CALL: return imm ? INSN_CALL : INSN_CALL_IND;
	case ZYDIS_MNEMONIC_RET: return INSN_RET;
	case ZYDIS_MNEMONIC_SYSCALL: return INSN_SYSCALL;
	case ZYDIS_MNEMONIC_LOOP: case ZYDIS_MNEMONIC_LOOPE: case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JRCXZ: case ZYDIS_MNEMONIC_JECXZ: return INSN_LOOP;
	case ZYDIS_MNEMONIC_RDTSC: case ZYDIS_MNEMONIC_RDTSCP: case ZYDIS_MNEMONIC_CPUID:
	case ZYDIS_MNEMONIC_XGETBV: case ZYDIS_MNEMONIC_RDRAND: case ZYDIS_MNEMONIC_RDSEED:
	case ZYDIS_MNEMONIC_RDPID: return INSN_NONDET;
	case ZYDIS_MNEMONIC_UD2: case ZYDIS_MNEMONIC_HLT: case ZYDIS_MNEMONIC_INT3:
		return INSN_TRAP;
	case ZYDIS_MNEMONIC_RDGSBASE: case ZYDIS_MNEMONIC_WRGSBASE: return INSN_SEGMENT;
	default: break;
	}
	if (z->meta.category == ZYDIS_CATEGORY_COND_BR && z->mnemonic != ZYDIS_MNEMONIC_XBEGIN &&
	    z->mnemonic != ZYDIS_MNEMONIC_XEND && z->mnemonic != ZYDIS_MNEMONIC_XABORT)
		return INSN_JCC;
	return INSN_NORMAL;
}

static bool touches15(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op)
{
	for (int i = 0; i < z->operand_count; i++) {
		ZydisRegister r = op[i].type == ZYDIS_OPERAND_TYPE_REGISTER ? op[i].reg.value :
				  op[i].type == ZYDIS_OPERAND_TYPE_MEMORY ? op[i].mem.index :
									    ZYDIS_REGISTER_NONE;

		if (r == ZYDIS_REGISTER_XMM15 || r == ZYDIS_REGISTER_YMM15 ||
		    r == ZYDIS_REGISTER_ZMM15)
			return true;
	}
	return z->meta.isa_ext == ZYDIS_ISA_EXT_XSAVE || z->mnemonic == ZYDIS_MNEMONIC_FXSAVE ||
	       z->mnemonic == ZYDIS_MNEMONIC_FXRSTOR || z->mnemonic == ZYDIS_MNEMONIC_VZEROALL;
}

static void used(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op, uint32_t *reads,
		 uint32_t *writes)
{
	*reads = *writes = 0;
	for (int i = 0; i < z->operand_count; i++) {
		const ZydisDecodedOperand *o = &op[i];
		int g;

		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			if ((g = gpr(o->mem.base)) >= 0)
				*reads |= 1u << g;
			if ((g = gpr(o->mem.index)) >= 0)
				*reads |= 1u << g;
		} else if (o->type == ZYDIS_OPERAND_TYPE_REGISTER && (g = gpr(o->reg.value)) >= 0) {
			if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
				*reads |= 1u << g;
			if ((o->actions & ZYDIS_OPERAND_ACTION_WRITE) && o->size >= 32)
				*writes |= 1u << g;
		}
	}
	if ((z->mnemonic == ZYDIS_MNEMONIC_XOR || z->mnemonic == ZYDIS_MNEMONIC_SUB) &&
	    op[0].type == ZYDIS_OPERAND_TYPE_REGISTER && op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    op[0].reg.value == op[1].reg.value && op[0].size >= 32)
		*reads &= ~*writes;
}

static void show(const char *what, const uint8_t *p, const struct insn *in,
		 const ZydisDecodedInstruction *z)
{
	if (shown++ > 20)
		return;
	printf("# %s: %s:", what, ZydisMnemonicGetString(z->mnemonic));
	for (int i = 0; i < z->length; i++)
		printf(" %02x", p[i]);
	printf(" (len %d cls %d flags %x usage %d)\n", in->len, in->cls, in->flags, in->usage);
}

static void compare(struct tally *t, const uint8_t *p, const struct insn *in,
		    const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op)
{
	enum insn_class want = expected_class(z, op);
	uint32_t r, w, zr, zw;

	t->insns++;
	if (in->cls == INSN_UNKNOWN) {
		t->unknown++; /* data between code, transactions: run natively */
		return;
	}
	if (in->len != z->length && in->cls != INSN_TRAP)
		t->length++, show("length", p, in, z);
	if (in->cls != want && !(want == INSN_NORMAL &&
				 (in->cls == INSN_TRAP || in->cls == INSN_SEGMENT)))
		t->cls++, show("class", p, in, z);
	for (int i = 0; i < z->operand_count; i++)
		if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    op[i].mem.base == ZYDIS_REGISTER_RIP &&
		    (!(in->flags & INSN_RIPREL) || in->disp_off != z->raw.disp.offset))
			t->riprel++, show("rip-relative", p, in, z);
	if (touches15(z, op) && !(in->flags & INSN_XMM15) && z->mnemonic != ZYDIS_MNEMONIC_XGETBV)
		t->xmm15++, show("xmm15", p, in, z);
	bool locked = (z->attributes & ZYDIS_ATTRIB_HAS_LOCK) ||
		      (z->mnemonic == ZYDIS_MNEMONIC_XCHG && (in->flags & INSN_MEM));
	if (locked != !!(in->flags & INSN_LOCKED))
		t->locked++, show("locked", p, in, z);
	if (in->cls == INSN_NORMAL && !(in->flags & INSN_LEA_LIKE && in->map == 1) &&
	    insn_registers(in, &r, &w)) {
		used(z, op, &zr, &zw);
		if (zr & ~r & ~(w & ~zr))
			t->reads++, show("reads", p, in, z);
		if (w & ~zw)
			t->writes++, show("writes", p, in, z);
	}
	const ZydisAccessedFlags *f = z->cpu_flags;
	uint32_t all = 0x8d5, tested = f ? f->tested : 0;
	uint32_t set = f ? f->modified | f->set_0 | f->set_1 | f->undefined : 0;
	if ((in->flags & INSN_KEEPS_FLAGS) && ((set | tested) & all))
		t->flags++, show("keeps flags", p, in, z);
	if ((in->flags & INSN_SETS_FLAGS) && ((tested & all) || (set & all) != all))
		t->flags++, show("sets flags", p, in, z);
}

static void sweep(struct tally *t, const uint8_t *p, const uint8_t *end)
{
	while (p < end) {
		ZydisDecodedInstruction z;
		ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
		struct insn in;
		size_t avail = (size_t)(end - p);

		if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, p, avail, &z, op))) {
			p++;
			continue;
		}
		insn_decode(&in, p, avail, (uint64_t)p);
		compare(t, p, &in, &z, op);
		p += z.length;
	}
}

static bool sweep_file(const char *path)
{
	struct tally t = { 0 };
	struct stat st;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	const uint8_t *m = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (m == MAP_FAILED)
		return false;
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)m;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)(m + eh->e_phoff);

	shown = 0;
	for (int i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && (ph[i].p_flags & PF_X))
			sweep(&t, m + ph[i].p_offset, m + ph[i].p_offset + ph[i].p_filesz);
	munmap((void *)m, (size_t)st.st_size);
	const char *name = strrchr(path, '/') + 1;
	CHECK(t.insns > 1000, "%s: %lu instructions met", name, t.insns);
	CHECK(!t.length && !t.cls && !t.riprel, "%s: length, class and layout agree (%lu %lu %lu)",
	      name, t.length, t.cls, t.riprel);
	CHECK(!t.xmm15 && !t.locked, "%s: xmm15 and locked covered (%lu %lu)", name, t.xmm15,
	      t.locked);
	CHECK(!t.reads && !t.writes && !t.flags, "%s: registers and flags covered (%lu %lu %lu)",
	      name, t.reads, t.writes, t.flags);
	CHECK(t.unknown * 200 < t.insns, "%s: %lu of %lu unknown", name, t.unknown, t.insns);
	return true;
}

int main(int argc, char **argv)
{
	static const char *const files[] = {
		"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6",
		"/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/lib/x86_64-linux-gnu/libstdc++.so.6", "/lib/x86_64-linux-gnu/libzstd.so.1",
		"/usr/bin/python3", "/bin/bash",
	};

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (int i = 1; i < argc; i++)
		sweep_file(argv[i]);
	if (argc > 1)
		CHECK_END();
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		if (!sweep_file(files[i]))
			printf("skip %s: not here\n", files[i]);
	CHECK_END();
}
