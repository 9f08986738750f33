/*
 * From an address inside a fragment's body back to the application: which
 * instruction it belongs to, and what the registers are. Walks the fragment as
 * fragment.c built it; the emitted length of every instruction is on file.
 */
#include "preload/maps.h"
#include "preload/translate/emit.h"

#include <fcntl.h>
#include <signal.h>

/* order.c has put rcx and rdx away. */
static void release_shard(struct tr_ctx *c, uint64_t regs[16])
{
	uint32_t *shard = (uint32_t *)(uint64_t)(tr_low + LOW_SHARDS + (uint32_t)c->shard * 8);

	regs[REG_RCX_] = c->scratch_rcx;
	regs[REG_RDX_] = c->scratch_rdx;
	__atomic_store_n(&shard[1], 0, __ATOMIC_RELEASE);
}

/*
 * Registers that a path record used because they are dead: they still hold the
 * record pointer of that record (or, in an entry stub, minus the target), and the
 * application's values are in ctx.
 */
void tr_unclobber(const struct tr_ctx *c, uint64_t ptr, uint64_t regs[16])
{
	for (int i = 0; i < 16; i++)
		if (regs[i] == ptr - 1)
			regs[i] = c->spill;
	for (unsigned len = 2; len <= 3; len++) {
		uint32_t word = 0;

		if (ptr < (uint64_t)c->path_begin + len || ptr > (uint64_t)c->path_end)
			return;
		memcpy(&word, (const void *)(ptr - len), len);
		uint32_t id = trc_target_id(word);

		if (regs[REG_RCX_] == ptr - len)
			regs[REG_RCX_] = c->scratch_rcx;
		if ((word & 0x80) && trc_target_len(word) == len && tr_frag_known(id) &&
		    regs[REG_RDX_] == -tr_frag_at(id - 1)->pc)
			regs[REG_RDX_] = c->scratch_rdx;
	}
}

static bool is_indirect(const struct insn *in)
{
	return in->cls == INSN_RET || in->cls == INSN_JMP_IND || in->cls == INSN_CALL_IND;
}

bool tr_fault_state(struct tr_ctx *c, struct tr_frag *f, uint64_t rip, const uint64_t regs[16],
		    uint64_t rflags, struct tr_app_state *out)
{
	const uint16_t *lens = tr_lens(f->lens);
	uint64_t at = (uint64_t)f->body, pc = f->pc;
	uint32_t exit = f->exits;
	struct insn in;

	for (unsigned i = 0; i < f->ninsns; at += TR_LEN(lens[i++])) {
		if (!insn_decode(&in, (const uint8_t *)pc, 15, pc))
			return false;
		if (rip >= at && rip < at + TR_LEN(lens[i])) {
			memcpy(out->regs, regs, 16 * sizeof *regs);
			if (is_indirect(&in))
				out->regs[REG_RCX_] = c->scratch_rcx;
			if (lens[i] & TR_LEN_TICKET)
				release_shard(c, out->regs);
			out->regs[TRC_RIP] = pc;
			out->next = pc + in.len;
			out->regs[TRC_RFLAGS] = rflags;
			out->xmm15_is_app = lens[i] & TR_LEN_VEC15;
			out->xmm15_low = lens[i] & TR_LEN_LOW15;
			return true;
		}
		while (f->cases >> (exit - f->exits) & 1)
			exit++;
		bool taken = in.cls == INSN_JMP || in.cls == INSN_CALL || (lens[i] & TR_LEN_TAKEN);

		pc = !taken ? pc + in.len : is_indirect(&in) ? tr_exit_at(exit)->target : in.target;
		if (in.cls == INSN_JCC || in.cls == INSN_LOOP || is_indirect(&in))
			exit++;
	}
	return false;
}

/* ---- code that cannot be fetched ---- */

#define TRAP_PROTECTION 13
#define TRAP_PAGE 14
/* Of a page fault's error code: the page is there, user mode, an instruction was fetched. */
#define ERROR_PRESENT 1
#define ERROR_FETCH (4 | 16)
#define PAGEMAP_PRESENT (1ull << 63)

struct place {
	uint64_t pc;
	bool mapped, accessible;
};

static uint64_t hex(const char **p)
{
	uint64_t v = 0;

	for (;; (*p)++) {
		if (**p >= '0' && **p <= '9')
			v = v << 4 | (uint64_t)(**p - '0');
		else if (**p >= 'a' && **p <= 'f')
			v = v << 4 | (uint64_t)(**p - 'a' + 10);
		else
			return v;
	}
}

/* "start-end perm ..." */
static void look(char *line, void *arg)
{
	struct place *at = arg;
	const char *p = line;
	uint64_t start = hex(&p);

	p++;
	uint64_t end = hex(&p);

	if (at->pc < start || at->pc >= end)
		return;
	at->mapped = true;
	at->accessible = p[1] == 'r' || p[2] == 'w';
}

static bool page_is_there(uint64_t pc)
{
	uint64_t entry = 0;
	long fd = raw_open(AT_FDCWD, "/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC, 0);

	if (raw_failed(fd))
		return false;
	raw(SYS_pread64, fd, &entry, sizeof entry, pc / RAW_PAGE * sizeof entry);
	raw(SYS_close, fd);
	return entry & PAGEMAP_PRESENT;
}

/*
 * What the processor and the kernel say when a program jumps to where there is no code: outside the canonical range, in the
 * kernel's half, to memory that is not executable, to none. Under tr_lock().
 */
void tr_fetch_fault(struct tr_ctx *c, uint64_t pc)
{
	static char buf[MAPS_BUFFER] RAW_LARGE;
	struct place at = { .pc = pc };
	bool canonical = (int64_t)(pc << 16) >> 16 == (int64_t)pc, kernel = pc >> 63;

	c->pending = 1;
	c->fault = (struct tr_siginfo){ .signo = SIGSEGV, .code = SI_KERNEL };
	c->fault_error = 0;
	c->fault_trap = TRAP_PROTECTION;
	if (!canonical)
		return;
	if (!kernel)
		maps_read(buf, look, &at);
	c->fault.code = at.mapped ? SEGV_ACCERR : SEGV_MAPERR;
	c->fault.address = c->fault_cr2 = pc;
	c->fault_trap = TRAP_PAGE;
	c->fault_error = ERROR_FETCH | (kernel || (at.accessible && page_is_there(pc)) ? ERROR_PRESENT : 0);
}
