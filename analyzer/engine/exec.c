/*
 * The engine's life and what both interpreters share. The loop itself is
 * exec_loop.h, compiled twice: plain, and watched (hooks and shadow).
 */
#include "analyzer/engine/code.h"
#include "analyzer/engine/exec_guard.h"
#include "analyzer/engine/exec_space.h"
#include "analyzer/engine/memory_inline.h"
#include "analyzer/engine/shadow_ops.h"
#include "analyzer/engine/straight.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#define HOST_MXCSR 0x1f80u

/* ---- life ---- */

static void code_changed(void *arg, uint64_t lo, uint64_t hi)
{
	mach_blocks_stale(arg, lo, hi);
}

err_t mach_engine_new(struct mach **out)
{
	struct mach *m = xcalloc(1, sizeof *m);

	*out = NULL;
	m->f = exec_random_map(MACH_FRAME_SIZE);
	if (!m->f) {
		free(m);
		return err_new(ERR_INTERNAL, "no address space for the machine's frame");
	}
	m->frame = (struct mach_frame *)m->f;
	m->mem = mem_new();
	m->mem->code_changed = code_changed;
	m->mem->code_arg = m;
	m->insn_limit = UINT64_MAX;
	m->consts = MACH_CONSTS;
	m->mxcsr_masks = HOST_MXCSR;
	xstate_host(&m->xlayout);
	lift_init();
	native_init(m);
	straight_init(m);
	*out = m;
	return NULL;
}

void mach_engine_free(struct mach *m)
{
	if (!m)
		return;
	if (m->blocks)
		mach_blocks_flush(m);
	free(m->blocks);
	native_free(m);
	straight_free(m);
	mem_free(m->mem);
	munmap(m->f, MACH_FRAME_SIZE);
	free(m);
}

/* ---- threads ---- */

/* libVEX's reset values: flags clear, direction up, x87 empty. */
void mach_cpu_init(struct mach_cpu *cpu)
{
	static const uint8_t fcw[2] = { 0x7f, 0x03 };
	uint32_t mxcsr = HOST_MXCSR;

	memset(cpu, 0, sizeof *cpu);
	LibVEX_GuestAMD64_initialise(&cpu->g);
	memcpy(cpu->fx, fcw, sizeof fcw);
	memcpy(cpu->fx + 24, &mxcsr, 4);
}

/* Blocks made before this look at 256 bits of a register: there will be none of them. */
void mach_go_wide(struct mach *m)
{
	m->flush_wanted |= !m->wide;
	m->wide = true;
}

void mach_cpu_load(struct mach *m, const struct mach_cpu *cpu)
{
	m->frame->g = cpu->g;
	m->frame->wide = cpu->wide;
	memcpy(m->frame->fx, cpu->fx, sizeof cpu->fx);
	m->insns = cpu->insns;
}

void mach_cpu_store(struct mach *m, struct mach_cpu *cpu)
{
	cpu->g = m->frame->g;
	cpu->wide = m->frame->wide;
	memcpy(cpu->fx, m->frame->fx, sizeof cpu->fx);
	cpu->insns = m->insns;
}

uint64_t mach_rflags(const VexGuestAMD64State *g)
{
	return LibVEX_GuestAMD64_get_rflags(g) | 2;
}

void mach_set_rflags(VexGuestAMD64State *g, uint64_t rflags)
{
	g->guest_CC_OP = 0; /* AMD64G_CC_OP_COPY: DEP1 holds the flags */
	g->guest_CC_DEP1 = rflags & 0x8d5;
	g->guest_CC_DEP2 = 0;
	g->guest_CC_NDEP = 0;
	g->guest_DFLAG = rflags & 0x400 ? (uint64_t)-1 : 1;
	g->guest_ACFLAG = rflags >> 18 & 1;
	g->guest_IDFLAG = rflags >> 21 & 1;
}

/* ---- stops ---- */

static void late_puts(struct mach *m, const struct mach_block *b, const struct mach_op *op)
{
	uint32_t now = (uint32_t)(op - b->ops);

	for (uint32_t i = 0; i < b->nlate; i++) {
		const struct mach_late_put *p = &b->late[i];

		if (p->at <= now && p->until >= now) {
			memcpy(mach_at(m, p->offset), mach_at(m, p->from), 8);
			if (m->slots)
				shadow_set(m, p->offset, shadow_expr(m, p->from, 64));
		}
	}
}

void mach_sync_registers(struct mach *m)
{
	if (m->now && m->now_op) {
		late_puts(m, m->now, m->now_op);
		m->frame->g.guest_RIP = m->now->insn_pc[m->now_op->insn];
	}
}

enum mach_stop mach_access_fault(struct mach *m, bool write)
{
	uint64_t at = m->mem->fault;

	(void)write;
	if (m->mem->exhausted) {
		mem_say_exhausted(m->mem, m->why, sizeof m->why);
		return STOP_UNDECODED;
	}
	if (at >= MEM_TOP) /* not canonical: the processor does not say where */
		m->fault = (struct mach_fault){ SIGSEGV, SI_KERNEL, 0 };
	else
		m->fault = (struct mach_fault){ SIGSEGV,
						mem_find(m->mem, at) ? SEGV_ACCERR : SEGV_MAPERR, at };
	return STOP_FAULT;
}

#define INT_BREAKPOINT 3 /* the only vectors a program may use are this one and INT_OVERFLOW */
#define INT_OVERFLOW 4

unsigned mach_trap_length(const struct insn *in)
{
	bool is = in->i.mnemonic == ZYDIS_MNEMONIC_INT3 || in->i.mnemonic == ZYDIS_MNEMONIC_INT1 ||
		  (in->i.mnemonic == ZYDIS_MNEMONIC_INT && (in->i.raw.imm[0].value.u == INT_BREAKPOINT ||
							    in->i.raw.imm[0].value.u == INT_OVERFLOW));

	return is ? in->i.length : 0;
}

/* A block stopped before the instruction at pc: sets fault or why, unless that
 * was done where it happened. */
static enum mach_stop describe_stop(struct mach *m, enum mach_stop stop, uint64_t pc)
{
	uint8_t bytes[16];
	struct insn in;
	size_t n;

	if ((stop != STOP_FAULT || m->fault.signal) && (stop != STOP_UNDECODED || m->why[0]))
		return stop;
	n = mem_fetch(m->mem, pc, bytes, 15);
	if (n == 0 || !insn_decode(bytes, n, pc, &in)) {
		if (n < 15) {
			m->mem->fault = pc + n;
			return mach_access_fault(m, false);
		}
		m->fault = (struct mach_fault){ SIGILL, ILL_ILLOPN, pc };
		return STOP_FAULT;
	}
	if (stop == STOP_UNDECODED) {
		char text[96];

		insn_text(&in, text, sizeof text);
		snprintf(m->why, sizeof m->why,
			 native_host_lacks(&in) ?
				 "this computer's processor does not have the instruction %s" :
				 "the machine does not know the instruction %s",
			 text);
		return stop;
	}
	switch (in.i.mnemonic) {
	case ZYDIS_MNEMONIC_INT3:
		m->fault = (struct mach_fault){ SIGTRAP, SI_KERNEL, 0 };
		break;
	case ZYDIS_MNEMONIC_INT1:
		m->fault = (struct mach_fault){ SIGTRAP, TRAP_BRKPT, pc + in.i.length };
		break;
	case ZYDIS_MNEMONIC_INT:
		m->fault = (struct mach_fault){
			in.i.raw.imm[0].value.u == INT_BREAKPOINT ? SIGTRAP : SIGSEGV, SI_KERNEL, 0 };
		break;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		m->fault = (struct mach_fault){ SIGILL, ILL_ILLOPN, pc };
		break;
	default: /* privileged: general protection */
		m->fault = (struct mach_fault){ SIGSEGV, SI_KERNEL, 0 };
	}
	return stop;
}

/* As the kernel names them. */
static int float_exception(unsigned pending)
{
	return pending & 1    ? FPE_FLTINV :
	       pending & 4    ? FPE_FLTDIV :
	       pending & 8    ? FPE_FLTOVF :
	       pending & 0x12 ? FPE_FLTUND :
				FPE_FLTRES;
}

static enum mach_stop division_fault(struct mach *m, uint64_t pc)
{
	m->fault = (struct mach_fault){ SIGFPE, FPE_INTDIV, pc };
	return STOP_FAULT;
}

/* ---- memory with hooks ---- */

/* Calls back for a range in aligned pieces of at most 8 bytes. */
static void tell_access(struct mach *m, uint64_t pc, uint64_t address, const uint8_t *bytes,
			size_t n, unsigned how)
{
	while (n) {
		unsigned piece = n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;
		uint64_t value = 0;

		memcpy(&value, bytes, piece);
		m->access(m->access_arg, m, pc, address, piece, how, value);
		address += piece;
		bytes += piece;
		n -= piece;
	}
}

bool mach_load(struct mach *m, uint64_t pc, uint64_t address, void *buf, size_t n)
{
	unsigned how = ACCESS_READ | (m->in_lock ? ACCESS_LOCKED : 0);

	if (!mem_load(m->mem, address, buf, n))
		return false;
	if (m->access)
		tell_access(m, pc, address, buf, n, how);
	if (m->shadow)
		shadow_stage_load(m, pc, address, buf, n);
	return true;
}

bool mach_store(struct mach *m, uint64_t pc, uint64_t address, const void *buf, size_t n)
{
	unsigned how = ACCESS_WRITE | (m->in_lock ? ACCESS_LOCKED : 0);

	if (m->access)
		tell_access(m, pc, address, buf, n, how);
	if (m->shadow && mem_writable(m->mem, address, n))
		shadow_stage_store(m, pc, address, buf, n);
	return mem_store(m->mem, address, buf, n);
}

/* ---- instructions the loop hands over ---- */

static bool native_load(struct mach *m, const struct native_insn *n, uint64_t pc, uint64_t at)
{
	return n->mask ? native_load_lanes(m, n, pc, at) :
			 mach_load(m, pc, at, m->frame->operand, n->size);
}

static bool native_may_store(struct mach *m, const struct native_insn *n, uint64_t at)
{
	return n->mask ? native_may_store_lanes(m, n, at) : mem_writable(m->mem, at, n->size);
}

static bool native_store(struct mach *m, const struct native_insn *n, uint64_t pc, uint64_t at)
{
	return n->mask ? native_store_lanes(m, n, pc, at) :
			 mach_store(m, pc, at, m->frame->operand, n->size);
}

/*
 * An x87 exception that the program does not mask is raised by the next instruction that waits for
 * it: not by the host's processor, which never gets to execute that one.
 */
static bool pending_exception(struct mach *m, uint64_t pc)
{
	uint16_t control, status, pending;

	memcpy(&control, m->frame->fx, 2);
	memcpy(&status, m->frame->fx + 2, 2);
	pending = status & ~control & 0x3f;
	if (!pending)
		return false;
	m->fault = (struct mach_fault){ SIGFPE, float_exception(pending), pc };
	return true;
}

/*
 * With exceptions that the program does not mask: the processor decides whether there is one, and
 * when it faults nothing has been written. Sets m->fault and returns true if so.
 */
static bool raises_exception(struct mach *m, const struct native_insn *n, uint64_t pc)
{
	struct exec_guard guard;
	uint32_t masked;

	exec_guard_enter(&guard);
	if (setjmp(guard.env)) {
		exec_guard_leave(&guard);
		__builtin_ia32_ldmxcsr((guard.mxcsr & 0xffff) | HOST_MXCSR);
		if (guard.signal != SIGFPE)
			exec_guard_pass(&guard);
		m->fault = (struct mach_fault){
			SIGFPE, float_exception(guard.mxcsr & 0x3f & ~(m->mxcsr_masks >> 7)), pc };
		return true;
	}
	__builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~HOST_MXCSR) | m->mxcsr_masks);
	n->stub(m->frame);
	masked = __builtin_ia32_stmxcsr() | HOST_MXCSR;
	__builtin_ia32_ldmxcsr(masked);
	exec_guard_leave(&guard);
	return false;
}

static enum mach_stop do_native(struct mach *m, const struct native_insn *n, uint64_t pc)
{
	struct mach_frame *f = m->frame;
	uint64_t at = 0;

	m->native_insns++;
	if (n->waits && pending_exception(m, pc))
		return STOP_FAULT;
	if (n->size) {
		at = operand_compute(m, &n->address);
		if (n->align && at % n->align) {
			m->fault = (struct mach_fault){ SIGSEGV, SI_KERNEL, 0 };
			return STOP_FAULT;
		}
		if (m->slots)
			shadow_operand_address(m, &n->address, pc);
		if (n->reads && !native_load(m, n, pc, at))
			return mach_access_fault(m, false);
		/* Refuse before the instruction has changed a register. */
		if (n->writes && !n->reads && !native_may_store(m, n, at))
			return mach_access_fault(m, true);
	}
	if (m->slots)
		shadow_native_before(m, n, pc);
	if (n->reads_flags)
		f->flags = (mach_rflags(&f->g) & 0x8d5) | 2;
	mach_mxcsr_back(m);
	if (n->x87) {
		uint32_t mxcsr = (__builtin_ia32_stmxcsr() & ~HOST_MXCSR) | m->mxcsr_masks;

		memcpy(f->fx + 24, &mxcsr, 4);
	}
	m->native_pc = pc;
	if (__builtin_expect(m->mxcsr_masks == HOST_MXCSR, 1))
		n->stub(f);
	else if (raises_exception(m, n, pc))
		return m->native_pc = 0, STOP_FAULT;
	m->native_pc = 0;
	if (n->x87)
		memset(f->fx + 8, 0, 16); /* instruction and data pointers: the stub's */
	if (n->writes_flags) {
		f->g.guest_CC_OP = 0;
		f->g.guest_CC_DEP1 = f->flags & 0x8d5;
		f->g.guest_CC_DEP2 = 0;
		f->g.guest_CC_NDEP = 0;
	}
	if (m->slots)
		shadow_native_after(m, n);
	if (n->writes && !native_store(m, n, pc, at))
		return mach_access_fault(m, true);
	return STOP_NONE;
}

static bool cas_half(struct mach *m, uint64_t address, unsigned size, uint64_t *old)
{
	*old = 0;
	return mem_load(m->mem, address, old, size);
}

static enum mach_stop do_cas(struct mach *m, const struct mach_cas *c, uint64_t pc)
{
	uint64_t address = *(uint64_t *)mach_at(m, c->address);
	uint64_t mask = c->size == 8 ? UINT64_MAX : (1ull << 8 * c->size) - 1;
	bool equal = true;
	unsigned halves = c->two ? 2 : 1;

	if (m->shadow && m->slots)
		shadow_address(m, c->address, pc);
	/* A locked instruction writes its operand even when the comparison fails. */
	if (!mem_writable(m->mem, address, halves * c->size))
		return mach_access_fault(m, true);
	for (unsigned i = 0; i < halves; i++) {
		uint64_t old;

		if (!cas_half(m, address + i * c->size, c->size, &old))
			return mach_access_fault(m, false);
		equal &= ((old ^ *(uint64_t *)mach_at(m, c->expected[i])) & mask) == 0;
		*(uint64_t *)mach_at(m, c->old[i]) = old;
	}
	if (m->access || m->shadow)
		shadow_cas_read(m, c, pc, address, equal);
	for (unsigned i = 0; equal && i < halves; i++) {
		uint64_t data = *(uint64_t *)mach_at(m, c->data[i]);

		if (m->access || m->shadow)
			shadow_cas_write(m, c, i, pc, address + i * c->size, data & mask);
		mem_store(m->mem, address + i * c->size, &data, c->size);
	}
	return STOP_NONE;
}

static inline uint64_t do_call(struct mach *m, const struct mach_call *c)
{
	uint64_t a[6];

	for (unsigned i = 0; i < c->nargs; i++)
		a[i] = *(uint64_t *)mach_at(m, c->arg[i]);
	mach_mxcsr_back(m);
	/* Extra arguments of the common prototype are ignored by the callee. */
	switch (c->nargs) {
	case 1:
		return c->fn(a[0], 0, 0, 0, 0, 0);
	case 2:
		return c->fn(a[0], a[1], 0, 0, 0, 0);
	case 3:
		return c->fn(a[0], a[1], a[2], 0, 0, 0);
	case 4:
		return c->fn(a[0], a[1], a[2], a[3], 0, 0);
	case 5:
		return c->fn(a[0], a[1], a[2], a[3], a[4], 0);
	default:
		return c->fn(a[0], a[1], a[2], a[3], a[4], a[5]);
	}
}

enum mach_stop straight_native(struct mach *m, const void *native_insn, uint64_t pc)
{
	return do_native(m, native_insn, pc);
}

void straight_call(struct mach *m, const struct mach_op *op)
{
	uint64_t v = do_call(m, (const struct mach_call *)op->imm);

	*(uint64_t *)mach_at(m, op->d) = op->size == 8 ? v : v & ((1ull << 8 * op->size) - 1);
}

static struct mach_block *block_at(struct mach *m, uint64_t pc, bool step)
{
	uint32_t guest = __builtin_ia32_stmxcsr();
	struct mach_block *b;

	/* Compiling runs foreign code: it must not see or change the guest's. */
	__builtin_ia32_ldmxcsr(HOST_MXCSR);
	if (m->flush_wanted || m->consts > MACH_FRAME_SIZE - (2u << 20))
		mach_blocks_flush(m);
	b = mach_block_get(m, pc, step ? BLOCK_STEP : m->breaking);
	__builtin_ia32_ldmxcsr(guest);
	return b;
}

typedef uint8_t uint1_t;

#define WATCHED 0
#define LOOP_NAME run_plain
#include "analyzer/engine/exec_loop.h"
#undef WATCHED
#undef LOOP_NAME
#define WATCHED 1
#define LOOP_NAME run_watched
#include "analyzer/engine/exec_loop.h"

/* Generated code did what none of it may: only where the block begins is known, or the instruction. */
static enum mach_stop refused_by_host(struct mach *m, int signal)
{
	char text[96] = "an instruction";
	uint8_t bytes[16];
	struct insn in;

	m->mxcsr_kept = false;
	if (m->native_pc) {
		m->frame->g.guest_RIP = m->native_pc;
		size_t n = mem_fetch(m->mem, m->native_pc, bytes, 15);

		if (n && insn_decode(bytes, n, m->native_pc, &in))
			insn_text(&in, text, sizeof text);
	}
	snprintf(m->why, sizeof m->why, "this computer's processor refuses to execute %s (signal %d)",
		 text, signal);
	return STOP_UNDECODED;
}

static enum mach_stop run_guarded(struct mach *m)
{
	struct exec_guard guard;
	enum mach_stop stop;

	m->native_pc = 0;
	exec_guard_enter(&guard);
	if (setjmp(guard.env))
		stop = refused_by_host(m, guard.signal);
	else
		stop = m->access || m->shadow ? run_watched(m) : run_plain(m);
	exec_guard_leave(&guard);
	return stop;
}

enum mach_stop mach_engine_run(struct mach *m)
{
	enum mach_stop stop;
	uint32_t mxcsr;

	memcpy(&mxcsr, m->frame->fx + 24, 4);
	m->mxcsr_masks = mxcsr & HOST_MXCSR;
	m->stop_asked = false;
	__builtin_ia32_ldmxcsr((mxcsr & 0xffff) | HOST_MXCSR);
	m->mxcsr_kept = false;
	stop = run_guarded(m);
	mach_mxcsr_back(m);
	mxcsr = (__builtin_ia32_stmxcsr() & ~HOST_MXCSR) | m->mxcsr_masks;
	__builtin_ia32_ldmxcsr(HOST_MXCSR);
	memcpy(m->frame->fx + 24, &mxcsr, 4);
	m->in_lock = false;
	m->now = NULL;
	m->now_op = NULL;
	return describe_stop(m, stop, m->frame->g.guest_RIP);
}
