/*
 * Tickets: the exact order of instructions on the same shard: of all locked
 * ones, and of the plain ones that control wants ordered (CTL_ORDER).
 *
 * Around the instruction the shard's lock is held; its counter then gives the
 * ticket. A shard is a cache line, twice the next ticket its first word, the lock
 * its second: one store counts on and unlocks. Everything is flag-neutral, because the
 * instruction's own flags are wanted behind it:
 *
 *      save rcx, rdx;  lea rdx, operand;  pext rdx, rdx, [0x3ffc0];  lea rdx, [rdx*8]
 *      mov gs:[shard], rdx
 *  1:  mov ecx, 1;  xchg [lock], ecx  ... until it was 0
 *      restore rcx, rdx;  THE INSTRUCTION;  save rcx, rdx, if it may have changed them
 *      mov rdx, gs:[shard];  mov ecx, [counter];  counter += 2 and unlock
 *      append ecx to the path;  restore rcx, rdx
 *
 * No load goes ahead of a locked instruction: what comes behind it waits for each in turn. So where the instruction has no
 * use for rcx, that holds the counter meanwhile. A lock and unlock: 27.8 -> 27.1 ns (medians of 9, a busy machine).
 *
 * Without BMI2 `and` does the masking; then the flags are kept in rax when
 * somebody still wants them. A fault in the instruction finds the lock held:
 * fault.c releases it, finding the shard in ctx. Nothing else in here can fault
 * but the append, at the end of a chunk.
 */
#include "preload/translate/build.h"
#include "preload/translate/decode_tables.h"

enum { RAX = REG_RAX_, RCX = REG_RCX_, RDX = REG_RDX_ };

static void abs_scaled8(unsigned opcode, int reg, uint32_t address) /* op reg, [rdx*8+address] */
{
	e8(opcode);
	e8(0x04 | reg << 3);
	e8(0xd5);
	e32(address);
}

static void shard_of_rdx(bool flags_free)
{
	if (tr_machine.bmi2) {
		e8(0xc4), e8(0xe2), e8(0xea), e8(0xf5); /* pext rdx, rdx, [mask] */
		e8(0x14), e8(0x25), e32(tr_low + LOW_SHARD_MASK);
		e8(0x8d), e8(0x14), e8(0xd5), e32(0); /* lea edx, [rdx*8] */
		return;
	}
	if (!flags_free) {
		emit_gs_store(CTX_SPILL, RAX);
		e8(0x0f), e8(0x90), e8(0xc0); /* seto al */
		e8(0x9f);                     /* lahf */
	}
	e8(0x81), e8(0xe2), e32(0x3ffc0); /* and edx, mask */
	e8(0xc1), e8(0xea), e8(3);        /* shr edx, 3 */
	if (!flags_free) {
		e8(0x04), e8(0x7f); /* add al, 127: OF back */
		e8(0x9e);           /* sahf */
		emit_gs_load(RAX, CTX_SPILL);
	}
}

/* rdx stays the shard. */
static void acquire(void)
{
	uint8_t *again = tr_at;

	e8(0xb9), e32(1);                                  /* mov ecx, 1 */
	abs_scaled8(0x87, RCX, tr_low + LOW_SHARDS + 4);   /* xchg [lock], ecx */
	e8(0xe3);                                          /* jrcxz got it */
	uint8_t *got = tr_at++;
	e8(0x48), e8(0x8d), e8(0x0d);                      /* lea rcx, [rip + again] */
	e32((uint32_t)(again - (tr_at + 4)));
	emit_gs_store(CTX_SPIN, RCX);
	emit_jump_pointer(LOW_P_SPIN);
	*got = (uint8_t)(tr_at - (got + 1));
}

/*
 * Gathers and scatters access many lines; push and pop access the stack as well, and pop
 * computes its address when rsp has moved; xmm15 holds the record pointer in here.
 */
bool order_possible(const struct insn *in)
{
	bool many = in->vex && in->map == 2 &&
		    ((in->op & 0xfc) == 0x90 || (in->op & 0xfc) == 0xa0 || (in->op & 0xfe) == 0xc6);
	bool stack = !in->vex && in->map == 0 &&
		     (in->op == 0x8f || (in->op == 0xff && (in->modrm >> 3 & 7) == 6));

	return in->cls == INSN_NORMAL && (in->flags & INSN_MEM) && !many && !stack &&
	       !(in->flags & (INSN_LEA_LIKE | INSN_USES_FS | INSN_USES_GS | INSN_XMM15 | INSN_XSTATE));
}

/* Leaves the lock of the operand's shard held, and the shard in rdx; rcx and rdx are in ctx. */
static void begin(struct build *b, const struct insn *in, bool flags_free)
{
	b->ticket = true;
	emit_gs_store(CTX_RCX, RCX);
	emit_gs_store(CTX_RDX, RDX);
	emit_lea(RDX, in, (const uint8_t *)b->pc, b->pc);
	shard_of_rdx(flags_free);
	emit_gs_store(CTX_SHARD, RDX);
	acquire();
}

static void restore(uint32_t which)
{
	if (which & 1 << RCX)
		emit_gs_load(RCX, CTX_RCX);
	if (which & 1 << RDX)
		emit_gs_load(RDX, CTX_RDX);
}

static bool flags_are_free(const struct build *b, const struct insn *in)
{
	return (in->flags & INSN_SETS_FLAGS) ||
	       ((in->flags & INSN_KEEPS_FLAGS) && tr_flags_dead(b->pc + in->len));
}

void order_begin(struct build *b, const struct insn *in)
{
	begin(b, in, flags_are_free(b, in));
	restore(1 << RCX | 1 << RDX);
}

void order_begin_keeping(struct build *b, const struct insn *in)
{
	begin(b, in, false);
	restore(1 << RCX | 1 << RDX);
}

/*
 * ecx is ticket << 1 | 1, plus 1. One more than the thread's last one is a byte: mostly nobody else was at the line
 * since, and of a lock and unlock 8 bytes in 16 were tickets.
 */
static void append(void)
{
	e8(0x89), e8(0xca);                                /* mov edx, ecx */
	emit_gs_load(RCX, CTX_TICKET);
	e8(0x8d), e8(0x4c), e8(0x11), e8(0xff);            /* lea ecx, [rcx+rdx-1] */
	e8(0xf7), e8(0xd2);                                /* not edx */
	emit_gs_store(CTX_TICKET, RDX);
	e8(0xe3);                                          /* jrcxz short */
	uint8_t *to_short = tr_at++;
	e8(0xf7), e8(0xd2);                                /* not edx */
	e8(0x8d), e8(0x52), e8(0xff);                      /* lea edx, [rdx-1] */
	emit_ptr_get(RCX);
	e8(0x89), e8(0x11);                                /* mov [rcx], edx */
	emit_ptr_add(4);
	e8(0xeb);
	uint8_t *to_end = tr_at++;
	*to_short = (uint8_t)(tr_at - (to_short + 1));
	e8(0xba), e32(TRC_TICKET_NEXT);                    /* mov edx, ... */
	emit_ptr_get(RCX);
	e8(0x88), e8(0x11);                                /* mov [rcx], dl; not as at the end of a fragment: profile.c */
	e8(0x0f), e8(0x0d), e8(0x49), e8(0x7f);            /* prefetchw [rcx+127] */
	emit_ptr_add(1);
	*to_end = (uint8_t)(tr_at - (to_end + 1));
}

/*
 * rcx and rdx are in ctx. The next locked instruction waits for all stores before it, and a record that begins a new
 * line waits for that line: it is asked for early. A lock and unlock: 3.62 -> 3.51 of native.
 */
static void count_on_and_append(struct build *b)
{
	e8(0x48), abs_scaled8(0x89, RCX, tr_low + LOW_SHARDS); /* mov [counter and lock], rcx */
	append();
	restore(1 << RCX | 1 << RDX);
	b->items[b->nitems++] = (struct trc_item){ b->pc, TRC_ITEM_ORDER, 0 };
}

/* rdx is the shard */
static void next_counter(void)
{
	abs_scaled8(0x8b, RCX, tr_low + LOW_SHARDS);       /* mov ecx, [counter] */
	e8(0x8d), e8(0x49), e8(2);                         /* lea ecx, [rcx+2] */
}

static void end(struct build *b)
{
	emit_gs_load(RDX, CTX_SHARD);
	next_counter();
	count_on_and_append(b);
}

void order_end(struct build *b)
{
	emit_gs_store(CTX_RCX, RCX);
	emit_gs_store(CTX_RDX, RDX);
	end(b);
}

/* ---- what the recorder itself does to the application's memory ---- */

static uint32_t *shard_at(uint64_t address)
{
	return (uint32_t *)(uint64_t)(tr_low + LOW_SHARDS + trc_shard(address) * 64);
}

uint32_t tr_order_begin(uint64_t address)
{
	uint32_t *shard = shard_at(address);

	while (__atomic_exchange_n(&shard[1], 1, __ATOMIC_ACQUIRE))
		raw(SYS_sched_yield);
	shard[0] += 2;
	return shard[0] / 2 - 1;
}

void tr_order_end(uint64_t address)
{
	__atomic_store_n(&shard_at(address)[1], 0, __ATOMIC_RELEASE);
}

/* A locked instruction that certainly changes neither rcx nor rdx: those of xadd and xchg, and cmpxchg8b, may. */
static bool keeps_both(const struct insn *in)
{
	bool swaps = in->map ? in->op == 0xc0 || in->op == 0xc1 : in->op == 0x86 || in->op == 0x87;
	int reg = insn_reg(in);

	if (!(in->flags & INSN_LOCKED) || in->vex || in->map > 1 || (in->map && in->op == 0xc7))
		return false;
	return !swaps || (!in->byte_op && reg != RCX && reg != RDX);
}

/* Registers that it may read. */
static uint32_t reads_of(const struct insn *in)
{
	uint32_t reads, writes;
	struct insn other = *in;

	if (insn_registers(in, &reads, &writes))
		return reads;
	if (in->vex || in->map != 1 || (in->op & 0xfe) != 0xb0)
		return UINT32_MAX;
	other.usage = U_MR_R; /* cmpxchg: so many, and rax */
	return insn_registers(&other, &reads, &writes) ? reads | 1 << RAX : UINT32_MAX;
}

void order_emit(struct build *b, const struct insn *in)
{
	bool keeps = keeps_both(in);
	/* What it does not read may stay away: fault.c takes both from ctx. */
	uint32_t reads = keeps ? reads_of(in) : UINT32_MAX;
	bool early = !(reads & 1 << RCX);

	begin(b, in, flags_are_free(b, in));
	if (early)
		next_counter();
	restore(reads);
	emit_copy(in, (const uint8_t *)b->pc, b->pc);
	if (early) {
		emit_gs_load(RDX, CTX_SHARD);
		count_on_and_append(b);
	} else if (keeps) {
		end(b);
	} else {
		order_end(b);
	}
}
