/*
 * libVEX behind one function. Its state is global: one lifter per process,
 * and what it returns lives until the next call.
 *
 * VexRegUpdAllregsAtEachInsn keeps dead loads (they may fault, and they are
 * events) and leaves every register up to date at every instruction, so that
 * the compiler may cut the IR at any instruction boundary.
 */
#include "analyzer/engine/code.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jmp_buf vex_failed;
static bool lifting; /* vex_failed is set */
static bool keeps_rax; /* see lift_cmpxchg32() */
static VexTranslateArgs args;
static VexGuestExtents extents;
extern VexControl vex_control; /* libVEX: read at every lift */

/* libVEX gives up on code, or its helpers on a state that they hold impossible. */
__attribute__((noreturn)) static void on_failure(void)
{
	if (lifting)
		longjmp(vex_failed, 1);
	fputs("csched: internal error: libVEX found a state that cannot be; please report it, with the "
	      "trace packed (csched pack)\n", stderr);
	exit(ERR_INTERNAL);
}

static void on_log(const HChar *text, SizeT n)
{
	(void)text;
	(void)n;
}

static Bool no_chase(void *opaque, Addr a)
{
	(void)opaque;
	(void)a;
	return False;
}

static UInt no_self_check(void *opaque, VexRegisterUpdates *px, const VexGuestExtents *e)
{
	(void)opaque;
	(void)px;
	(void)e;
	return 0;
}

static IRExpr *atom(IRSB *sb, IRType type, IRExpr *e)
{
	IRTemp t = newIRTemp(sb->tyenv, type);

	addStmtToIRSB(sb, IRStmt_WrTmp(t, e));
	return IRExpr_RdTmp(t);
}

/* Of two values that agree in their lower half the old one, upper half and all. */
static IRExpr *keep_if_low_equal(IRSB *sb, IRExpr *now)
{
	IRExpr *was = atom(sb, Ity_I64, IRExpr_Get(offsetof(VexGuestAMD64State, guest_RAX), Ity_I64));
	IRExpr *low = atom(sb, Ity_I32, IRExpr_Unop(Iop_64to32, was));
	IRExpr *low_now = atom(sb, Ity_I32, IRExpr_Unop(Iop_64to32, now));
	IRExpr *same = atom(sb, Ity_I1, IRExpr_Binop(Iop_CmpEQ32, low, low_now));

	return atom(sb, Ity_I64, IRExpr_ITE(same, was, now));
}

/* Whatever else an instruction does between moving the stack pointer and storing sees the old one as well as the new. */
static bool looks_at_stack_pointer(const IRStmt *s)
{
	const IRExpr *e = s->tag == Ist_WrTmp ? s->Ist.WrTmp.data : NULL;

	if (s->tag == Ist_Store || s->tag == Ist_AbiHint || s->tag == Ist_NoOp)
		return false;
	return !e || e->tag == Iex_GetI || e->tag == Iex_CCall ||
	       (e->tag == Iex_Get && e->Iex.Get.offset == offsetof(VexGuestAMD64State, guest_RSP));
}

/*
 * libVEX moves the stack pointer of a push or a call before it stores. Where the stack ends the processor leaves it as it was: it
 * is moved after the store.
 */
static void exact_push(IRSB *out, IRStmt **moved, IRStmt *s)
{
	if (*moved && looks_at_stack_pointer(s)) {
		addStmtToIRSB(out, *moved);
		*moved = NULL;
	}
	if (s->tag == Ist_Put && s->Ist.Put.offset == offsetof(VexGuestAMD64State, guest_RSP) &&
	    typeOfIRExpr(out->tyenv, s->Ist.Put.data) == Ity_I64)
		*moved = s;
	else
		addStmtToIRSB(out, s);
}

/* An instrumentation, be it one that does nothing, switches libVEX's clean-up pass on. */
static IRSB *instrument(void *opaque, IRSB *in, const VexGuestLayout *layout, const VexGuestExtents *e,
			const VexArchInfo *arch, IRType g, IRType h)
{
	(void)opaque;
	(void)layout;
	(void)e;
	(void)arch;
	(void)g;
	(void)h;

	IRStmt *moved = NULL;
	IRSB *out = deepCopyIRSBExceptStmts(in);
	for (Int i = 0; i < in->stmts_used; i++) {
		IRStmt *s = in->stmts[i];

		if (keeps_rax && s->tag == Ist_Put && s->Ist.Put.offset == offsetof(VexGuestAMD64State, guest_RAX))
			s = IRStmt_Put(s->Ist.Put.offset, keep_if_low_equal(out, s->Ist.Put.data));
		exact_push(out, &moved, s);
	}
	if (moved)
		addStmtToIRSB(out, moved);
	return out;
}

static void unused_entry(void)
{
}

void lift_init(void)
{
	static UChar host_bytes[16];
	static Int host_used;
	static bool done;
	VexControl control;

	if (done)
		return;
	done = true;
	LibVEX_default_VexControl(&control);
	control.iropt_level = 2;
	control.iropt_unroll_thresh = 0;
	control.guest_max_insns = MACH_MAX_INSNS;
	control.guest_chase = False;
	control.iropt_register_updates_default = VexRegUpdAllregsAtEachInsn;
	LibVEX_Init(on_failure, on_log, 0, &control);

	LibVEX_default_VexArchInfo(&args.archinfo_guest);
	args.archinfo_guest.endness = VexEndnessLE;
	args.archinfo_guest.hwcaps = VEX_HWCAPS_AMD64_SSE3 | VEX_HWCAPS_AMD64_SSSE3 |
				     VEX_HWCAPS_AMD64_CX16 | VEX_HWCAPS_AMD64_LZCNT |
				     VEX_HWCAPS_AMD64_AVX | VEX_HWCAPS_AMD64_AVX2 |
				     VEX_HWCAPS_AMD64_BMI | VEX_HWCAPS_AMD64_RDTSCP |
				     VEX_HWCAPS_AMD64_F16C;
	args.archinfo_host = args.archinfo_guest;
	args.arch_guest = args.arch_host = VexArchAMD64;
	LibVEX_default_VexAbiInfo(&args.abiinfo_both);
	args.abiinfo_both.guest_stack_redzone_size = 128;
	args.abiinfo_both.guest_amd64_assume_fs_is_const = True;
	args.abiinfo_both.guest_amd64_assume_gs_is_const = True;
	args.chase_into_ok = no_chase;
	args.needs_self_check = no_self_check;
	args.instrument1 = instrument;
	args.guest_extents = &extents;
	args.host_bytes = host_bytes;
	args.host_bytes_size = sizeof host_bytes;
	args.host_bytes_used = &host_used;
	args.disp_cp_chain_me_to_slowEP = unused_entry;
	args.disp_cp_chain_me_to_fastEP = unused_entry;
	args.disp_cp_xindir = unused_entry;
	args.disp_cp_xassisted = unused_entry;
}

bool lift(const uint8_t *bytes, uint64_t pc, unsigned max_insns, struct lifted *out)
{
	VexTranslateResult result;
	VexRegisterUpdates updates;

	memset(&result, 0, sizeof result);
	result.status = VexTransOK;
	args.guest_bytes = bytes;
	args.guest_bytes_addr = pc;
	vex_control.guest_max_insns = (Int)max_insns;
	if (setjmp(vex_failed)) {
		lifting = false;
		return false;
	}
	lifting = true;
	out->sb = LibVEX_FrontEnd(&args, &result, &updates);
	lifting = false;
	if (!out->sb)
		return false;
	out->ninsns = result.n_guest_instrs;
	out->undecoded = out->sb->jumpkind == Ijk_NoDecode;
	return true;
}

bool lift_cmpxchg32(const uint8_t *bytes, uint64_t pc, struct lifted *out)
{
	keeps_rax = true;
	bool done = lift(bytes, pc, 1, out);
	keeps_rax = false;
	return done;
}
