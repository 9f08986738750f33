/* Instructions whose result differs from run to run: executed here, and recorded. */
#include "preload/translate/translate.h"

#define STATUS_FLAGS 0x8d5u

static void set_register(struct tr_ctx *c, int reg, unsigned bits, uint64_t v)
{
	if (bits == 64)
		c->regs[reg] = v;
	else if (bits == 32)
		c->regs[reg] = (uint32_t)v;
	else
		c->regs[reg] = (c->regs[reg] & ~0xffffull) | (v & 0xffff);
}

static void random_number(struct tr_ctx *c, const struct insn *in)
{
	unsigned bits = in->rex & 8 ? 64 : in->prefixes & INSN_P66 ? 16 : 32;
	uint64_t v = 0;
	uint8_t good;

	if (in->nondet == TRC_RDRAND)
		__asm__ volatile("rdrand %0; setc %1" : "=r"(v), "=qm"(good) : : "cc");
	else
		__asm__ volatile("rdseed %0; setc %1" : "=r"(v), "=qm"(good) : : "cc");
	set_register(c, insn_rm(in), bits, good ? v : 0);
	c->rflags = (c->rflags & ~(uint64_t)STATUS_FLAGS) | good;
}

static void execute(struct tr_ctx *c, const struct insn *in)
{
	uint64_t *r = c->regs;
	uint32_t a = (uint32_t)r[0], b, cx = (uint32_t)r[1], d;
	uint64_t v;

	switch (in->nondet) {
	case TRC_RDTSC:
		__asm__ volatile("rdtsc" : "=a"(a), "=d"(d));
		r[0] = a, r[2] = d;
		break;
	case TRC_RDTSCP:
		__asm__ volatile("rdtscp" : "=a"(a), "=d"(d), "=c"(cx));
		r[0] = a, r[1] = cx, r[2] = d;
		break;
	case TRC_CPUID:
		__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(cx), "=d"(d));
		r[0] = a, r[3] = b, r[1] = cx, r[2] = d;
		break;
	case TRC_XGETBV:
		__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(cx));
		r[0] = a, r[2] = d;
		break;
	case TRC_RDPID:
		__asm__ volatile("rdpid %0" : "=r"(v));
		r[insn_rm(in)] = v;
		break;
	default:
		random_number(c, in);
		break;
	}
}

/* As the processor does it when the kernel has forbidden the instruction. */
static bool faults(struct tr_ctx *c, const struct insn *in)
{
	if (!c->no_tsc || (in->nondet != TRC_RDTSC && in->nondet != TRC_RDTSCP))
		return false;
	c->fault = (struct tr_siginfo){ .signo = 11, .code = 128 };
	c->fault_error = 0;
	c->fault_trap = 13;
	c->pending = 1;
	return true;
}

bool tr_nondet(struct tr_ctx *c, uint64_t pc)
{
	struct rec_stream *s = &c->thread->rec;
	struct insn in;

	insn_decode(&in, (const uint8_t *)pc, 15, pc);
	if (faults(c, &in))
		return false;
	execute(c, &in);
	struct trc_nondet *r = rec_begin(s, sizeof *r);
	if (!r)
		return true;
	bool dest = in.nondet == TRC_RDRAND || in.nondet == TRC_RDSEED || in.nondet == TRC_RDPID;

	r->pc = pc;
	r->path_pos = tr_pos(c);
	r->rax = c->regs[0];
	r->rbx = c->regs[3];
	r->rcx = c->regs[1];
	r->rdx = c->regs[2];
	r->reg = dest ? (uint32_t)insn_rm(&in) : 16;
	r->dest = dest ? c->regs[insn_rm(&in)] : 0;
	r->rflags = (uint32_t)c->rflags;
	rec_commit(s, r, TRC_NONDET, in.nondet, sizeof *r);
	return true;
}
