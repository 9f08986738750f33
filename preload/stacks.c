/*
 * Raw stacks at a failure. The failing thread's registers are known; the others
 * are not stopped: what the kernel says about a sleeping thread (stack pointer and pc of its
 * system call), else where it was last seen, is all that is written.
 */
#include "preload/stacks.h"

#include "preload/raw.h"

#define RED_ZONE 128
#define STACK_MAX_FAILING (256ul << 10)
#define STACK_MAX_OTHER (32ul << 10)
#define STACKS_MAX 256 /* threads whose stacks are written */

static uint64_t hex_after(const char **s)
{
	uint64_t v = 0;

	for (; **s && **s != '\n'; (*s)++) {
		char c = **s;
		int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

		if (d < 0)
			break;
		v = v << 4 | (uint64_t)d;
	}
	return v;
}

/* "NR 0xa 0xb 0xc 0xd 0xe 0xf 0xSP 0xPC", or "running". */
static bool kernel_view(uint32_t tid, uint64_t *sp, uint64_t *pc)
{
	static char buf[256];
	uint64_t field[9] = { 0 };
	unsigned n = 0;
	TEXT(path, 64);

	text_str(&path, "/proc/self/task/");
	text_num(&path, tid);
	text_str(&path, "/syscall");
	if (raw_slurp(path.s, buf, sizeof buf) <= 0 || (buf[0] == 'r'))
		return false;
	for (const char *s = buf; *s && *s != '\n' && n < 9;) {
		if (*s == ' ') {
			s++;
			continue;
		}
		if (s[0] == '0' && s[1] == 'x')
			s += 2;
		const char *before = s;

		field[n++] = hex_after(&s);
		if (s == before)
			s++;
	}
	*sp = field[7];
	*pc = field[8];
	return n == 9 && *sp;
}

/* The first readable byte: after a stack overflow rsp points into the guard page. */
static uint64_t bottom(uint64_t sp)
{
	const uint64_t tries[] = { (sp - RED_ZONE) & ~7ull, sp & ~7ull,
				   (sp + RAW_PAGE) & ~(RAW_PAGE - 1) };
	char probe;

	for (int i = 0; i < 3; i++)
		if (raw_peek(&probe, tries[i], 1) == 1)
			return tries[i];
	return 0;
}

/* How far the mapping that holds `from` goes on, up to max. */
static size_t extent(uint64_t from, size_t max)
{
	char probe;
	size_t n = RAW_PAGE - from % RAW_PAGE;

	while (n < max && raw_peek(&probe, from + n, 1) == 1)
		n += RAW_PAGE;
	return n < max ? n : max;
}

static void write_stack(const struct shim_thread *t, const uint64_t *regs, size_t max,
			unsigned flags)
{
	uint64_t from = bottom(regs[TRC_RSP]);
	size_t len = from ? extent(from, max) : 0;
	size_t size = sizeof(struct trc_stack) + len;
	struct trc_stack *r = rec_begin(&rec_process, size);

	if (!r)
		return;
	r->thread = t->index;
	memcpy(r->regs, regs, sizeof r->regs);
	r->address = from;
	/* What lies above the stack is not readable, or not ours: the copy ends there. */
	r->length = (uint32_t)raw_peek(r->bytes, from, len);
	rec_commit(&rec_process, r, TRC_STACK, flags, size);
}

void stacks_write_failing(const struct shim_thread *failing, const uint64_t *regs)
{
	if (failing && regs && regs[TRC_RSP])
		write_stack(failing, regs, STACK_MAX_FAILING, 0);
}

void stacks_write_others(const struct shim_thread *failing)
{
	unsigned written = 0;

	for (unsigned i = 0, n = shim_nslots(); i < n && written < STACKS_MAX; i++) {
		const struct shim_thread *t = shim_slot(i);
		uint64_t seen[TRC_NREGS] = { 0 };

		if (t == failing || (t->life != SHIM_LIVE && t->life != SHIM_EXITING))
			continue;
		/* In path mode the kernel sees the translator's stack, not the program's. */
		if (tr_whereabouts && tr_whereabouts(t, &seen[TRC_RSP], &seen[TRC_RIP])) {
			/* as it left the cache */
		} else if (!kernel_view(t->tid, &seen[TRC_RSP], &seen[TRC_RIP])) {
			seen[TRC_RSP] = t->last_sp;
			seen[TRC_RIP] = t->last_site;
		}
		if (!seen[TRC_RSP])
			continue;
		write_stack(t, seen, STACK_MAX_OTHER, 1);
		written++;
	}
}
