/*
 * The machine against the hardware: guests run under ptrace, one instruction at
 * a time, and in the machine, and every general register and every branch is
 * compared at every stop, vector and x87 registers at every sixteenth, and the
 * whole writable memory at every system call.
 *
 * Some guests run with the machine executing single instructions, the others
 * with whole blocks. System calls and rdtsc, cpuid, xgetbv take the hardware's results.
 */
#include "analyzer/engine/code.h"
#include "tests/lib/check.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

struct lockstep {
	pid_t pid;
	struct user_regs_struct regs;
	struct mach *m;
	uint64_t steps, branches, syscalls, vectors, bytes;
	uint64_t differences;
	bool ended;
};

static void differs(struct lockstep *l, const char *what, uint64_t machine, uint64_t hardware)
{
	if (l->differences++ < 8)
		printf("# %s differs after %llu steps at 0x%llx: machine %llx, hardware %llx\n",
		       what, (unsigned long long)l->steps, (unsigned long long)l->regs.rip,
		       (unsigned long long)machine, (unsigned long long)hardware);
}

/* ---- the hardware's side ---- */

static bool hw_read(struct lockstep *l, uint64_t address, void *buf, size_t n)
{
	struct iovec local = { buf, n }, remote = { (void *)address, n };

	return process_vm_readv(l->pid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

static bool hw_single(struct lockstep *l)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, l->pid, 0, 0) || waitpid(l->pid, &status, 0) != l->pid ||
	    !WIFSTOPPED(status)) {
		l->ended = true;
		return false;
	}
	return ptrace(PTRACE_GETREGS, l->pid, 0, &l->regs) == 0;
}

/* One instruction; hardware traps after every iteration of a repeated one. */
static bool hw_step(struct lockstep *l)
{
	uint64_t pc = l->regs.rip;

	do {
		if (!hw_single(l))
			return false;
	} while (l->regs.rip == pc);
	l->steps++;
	return true;
}

struct region {
	uint64_t lo, hi;
	unsigned prot;
	bool readable;
};

static size_t hw_regions(struct lockstep *l, struct region *out, size_t max)
{
	char path[64], line[512], perm[8];
	size_t n = 0;

	snprintf(path, sizeof path, "/proc/%d/maps", (int)l->pid);
	FILE *f = fopen(path, "r");

	while (f && n < max && fgets(line, sizeof line, f)) {
		unsigned long lo, hi;

		if (sscanf(line, "%lx-%lx %7s", &lo, &hi, perm) != 3 || lo >= MEM_TOP)
			continue;
		out[n++] = (struct region){ lo, hi,
					    (perm[0] == 'r' ? MEM_R : 0) |
						    (perm[1] == 'w' ? MEM_W : 0) |
						    (perm[2] == 'x' ? MEM_X : 0),
					    perm[0] == 'r' && !strstr(line, "[vvar]") };
	}
	if (f)
		fclose(f);
	return n;
}

/* ---- memory ---- */

static void copy_region(struct lockstep *l, const struct region *r)
{
	static uint8_t buf[1 << 20];

	for (uint64_t at = r->lo; at < r->hi; at += sizeof buf) {
		size_t n = r->hi - at < sizeof buf ? r->hi - at : sizeof buf;

		if (hw_read(l, at, buf, n))
			mem_poke(l->m->mem, at, buf, n);
	}
}

static void compare_region(struct lockstep *l, const struct region *r)
{
	static uint8_t hw[1 << 20], mine[1 << 20];

	for (uint64_t at = r->lo; at < r->hi; at += sizeof hw) {
		size_t n = r->hi - at < sizeof hw ? r->hi - at : sizeof hw;

		if (!hw_read(l, at, hw, n) || !mem_peek(l->m->mem, at, mine, n))
			continue;
		l->bytes += n;
		for (size_t i = 0; i < n; i++)
			if (hw[i] != mine[i])
				differs(l, "memory", at + i, hw[i]);
	}
}

/* Makes the machine's mappings and contents those of the hardware. */
static void sync_memory(struct lockstep *l, bool first)
{
	struct region r[256];
	size_t n = hw_regions(l, r, 256);
	struct mem *mem = l->m->mem;
	uint64_t gap = 0;

	for (size_t i = 0; i < n; i++) {
		const struct mem_map *map = mem_find(mem, r[i].lo);

		if (gap < r[i].lo && !first)
			mem_unmap(mem, gap, r[i].lo);
		gap = r[i].hi;
		if (!map || map->start != r[i].lo || map->end != r[i].hi ||
		    map->prot != r[i].prot) {
			mem_map(mem, r[i].lo, r[i].hi, r[i].prot, false);
			if (r[i].readable)
				copy_region(l, &r[i]);
		} else if (r[i].readable && r[i].prot & MEM_W) {
			copy_region(l, &r[i]);
		}
	}
}

static void compare_memory(struct lockstep *l)
{
	struct region r[256];
	size_t n = hw_regions(l, r, 256);

	for (size_t i = 0; i < n; i++)
		if (r[i].readable && r[i].prot & MEM_W)
			compare_region(l, &r[i]);
}

/* ---- registers ---- */

static const struct {
	const char *name;
	size_t hw;
	uint32_t mine;
} gprs[] = {
#define GPR(low, up) { #low, offsetof(struct user_regs_struct, low), MACH_OFF(up) }
	GPR(rax, RAX), GPR(rcx, RCX), GPR(rdx, RDX), GPR(rbx, RBX), GPR(rsp, RSP), GPR(rbp, RBP),
	GPR(rsi, RSI), GPR(rdi, RDI), GPR(r8, R8),   GPR(r9, R9),   GPR(r10, R10), GPR(r11, R11),
	GPR(r12, R12), GPR(r13, R13), GPR(r14, R14), GPR(r15, R15), GPR(rip, RIP),
};

static uint64_t hw_reg(const struct lockstep *l, size_t i)
{
	uint64_t v;

	memcpy(&v, (const char *)&l->regs + gprs[i].hw, 8);
	return v;
}

static void take_registers(struct lockstep *l)
{
	for (size_t i = 0; i < sizeof gprs / sizeof gprs[0]; i++)
		*(uint64_t *)mach_at(l->m, gprs[i].mine) = hw_reg(l, i);
	l->m->frame->g.guest_FS_CONST = l->regs.fs_base;
	mach_set_rflags(&l->m->frame->g, l->regs.eflags);
}

static void compare_registers(struct lockstep *l)
{
	for (size_t i = 0; i < sizeof gprs / sizeof gprs[0]; i++) {
		uint64_t mine = *(uint64_t *)mach_at(l->m, gprs[i].mine);

		if (mine != hw_reg(l, i))
			differs(l, gprs[i].name, mine, hw_reg(l, i));
	}
}

/* What AVX-512 adds. */
static void compare_wide(struct lockstep *l, const uint8_t *x, uint64_t present)
{
	static const uint8_t zero[1024];
	uint8_t mine[1024];

	for (unsigned part = X_MASKS; part < X_PARTS; part++) {
		uint32_t offset = l->m->xlayout.offset[part];
		const uint8_t *hw = present >> part & 1 && offset ? x + offset : zero;

		xstate_copy(part, true, mine, mach_at(l->m, MACH_OFF(YMM0)), &l->m->frame->wide);
		for (unsigned i = 0; i < xstate_size(part); i += 8)
			if (memcmp(mine + i, hw + i, 8))
				differs(l, part == X_MASKS ? "mask register" : "zmm", i, *(uint64_t *)(hw + i));
	}
}

static void compare_vectors(struct lockstep *l)
{
	static uint8_t x[2 * XSTATE_MAX]; /* with the tiles of a processor that has them */
	struct iovec iov = { x, sizeof x };
	uint64_t present;
	uint32_t control;

	if (ptrace(PTRACE_GETREGSET, l->pid, (void *)NT_X86_XSTATE, &iov))
		return;
	l->vectors++;
	memcpy(&present, x + 512, 8);
	if (!(present & 4))
		memset(x + 576, 0, 256); /* not in use: reads as zero */
	for (unsigned i = 0; i < 16; i++) {
		const uint8_t *mine = mach_at(l->m, vec_offset(i));

		if (memcmp(mine, x + 160 + 16 * i, 16) || memcmp(mine + 16, x + 576 + 16 * i, 16))
			differs(l, "ymm", i, *(uint64_t *)(x + 160 + 16 * i));
	}
	compare_wide(l, x, present);
	memcpy(&control, x, 4); /* control and status word */
	if (memcmp(l->m->frame->fx, &control, 4))
		differs(l, "x87 control", *(uint32_t *)l->m->frame->fx, control);
	if (memcmp(l->m->frame->fx + 24, x + 24, 4))
		differs(l, "mxcsr", *(uint32_t *)(l->m->frame->fx + 24), *(uint32_t *)(x + 24));
	for (unsigned i = 0; i < 8; i++)
		if (memcmp(l->m->frame->fx + 32 + 16 * i, x + 32 + 16 * i, 10))
			differs(l, "st", i, *(uint64_t *)(x + 32 + 16 * i));
}

/* ---- stops ---- */

static void at_syscall(struct lockstep *l)
{
	l->syscalls++;
	compare_memory(l);
	if (!hw_step(l))
		return;
	take_registers(l);
	l->m->insns++;
	sync_memory(l, false);
}

static void at_nondet(struct lockstep *l)
{
	if (!hw_step(l))
		return;
	take_registers(l);
	l->m->insns++;
}

static bool on_branch(void *arg, struct mach *m, const struct mach_block *b, int taken,
		      uint64_t next)
{
	struct lockstep *l = arg;

	(void)b;
	(void)taken;
	(void)next;
	l->branches++;
	m->stop_asked = true; /* compare at every branch */
	return true;
}

static void run(struct lockstep *l, bool single)
{
	struct mach *m = l->m;
	uint64_t stops = 0;

	while (!l->ended && l->differences < 8) {
		uint64_t before = m->insns;
		enum mach_stop stop;

		m->insn_limit = single ? before + 1 : UINT64_MAX;
		stop = mach_engine_run(m);
		for (uint64_t i = before; i < m->insns && !l->ended; i++)
			hw_step(l);
		if (l->ended)
			break;
		compare_registers(l);
		if (stops++ % 16 == 0)
			compare_vectors(l);
		if (stop == STOP_SYSCALL) {
			at_syscall(l);
		} else if (stop == STOP_NONDET) {
			at_nondet(l);
		} else if (stop != STOP_LIMIT && stop != STOP_HOOK) {
			printf("# machine stopped with %d at 0x%llx: %s\n", stop,
			       (unsigned long long)m->frame->g.guest_RIP, m->why);
			l->differences++;
			break;
		}
	}
}

static pid_t start(char *const argv[])
{
	/* The kernel writes the rseq area whenever it likes, and xsave in lazy
	 * binding depends on what the processor calls in use. */
	char *env[] = { "LD_BIND_NOW=1", "GLIBC_TUNABLES=glibc.pthread.rseq=0", NULL };
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 1);
		personality(ADDR_NO_RANDOMIZE);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execve(argv[0], argv, env);
		_exit(127);
	}
	return pid;
}

static uint64_t lockstep(const char *label, char *program, bool single)
{
	char *argv[] = { program, NULL };
	struct lockstep l = { .pid = start(argv) };
	struct mach_cpu cpu;
	int status;

	if (l.pid < 0 || waitpid(l.pid, &status, 0) != l.pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_GETREGS, l.pid, 0, &l.regs)) {
		CHECK(false, "%s: cannot trace it", label);
		return 0;
	}
	ptrace(PTRACE_SETOPTIONS, l.pid, 0, PTRACE_O_EXITKILL);
	err_free(mach_engine_new(&l.m));
	mach_cpu_init(&cpu);
	mach_cpu_load(l.m, &cpu);
	take_registers(&l);
	sync_memory(&l, true);
	l.m->branch = on_branch;
	l.m->branch_arg = &l;
	run(&l, single);
	CHECK(l.ended && !l.differences && l.syscalls && l.branches,
	      "%s %s: %llu instructions, %llu branches, %llu system calls, "
	      "%llu vector states, %llu bytes of memory equal",
	      label, single ? "single" : "in blocks", (unsigned long long)l.steps,
	      (unsigned long long)l.branches, (unsigned long long)l.syscalls,
	      (unsigned long long)l.vectors, (unsigned long long)l.bytes);
	if (!l.ended) {
		kill(l.pid, SIGKILL);
		waitpid(l.pid, &status, 0);
	}
	mach_engine_free(l.m);
	return l.steps;
}

int main(int argc, char **argv)
{
	static const char *const guests[] = { "integers", "floats", "library", "masks" };
	static const struct {
		const char *flags;
		bool avx2, avx512; /* the processor must have it */
	} ways[] = {
		{ "-O0", false, false },
		{ "-O2", false, false },
		{ "-O3 -mavx2", true, false },
		{ "-O3 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512",
		  true, true },
	};
	const char *root = getenv("ROOT") ? getenv("ROOT") : ".";
	char program[] = "/tmp/csched-lockstep.XXXXXX", command[1024];
	uint64_t total = 0;

	if (argc > 1) { /* any program, for looking closer by hand */
		lockstep(argv[1], argv[1], argc > 2);
		CHECK_END();
	}
	if (!mkdtemp(program))
		return 1;
	for (size_t g = 0; g < 4; g++)
		for (size_t o = 0; o < 4; o++) {
			char label[128], path[128];

			/* The library's own code is the least of it; masks are AVX-512 alone. */
			if ((g == 2 && o != 1) || (g == 3 && o != 3))
				continue;
			if ((ways[o].avx2 && !__builtin_cpu_supports("avx2")) ||
			    (ways[o].avx512 && !__builtin_cpu_supports("avx512bw"))) {
				printf("skip %s %s: this processor has no %s\n", guests[g],
				       ways[o].flags, ways[o].avx512 ? "AVX-512" : "AVX2");
				continue;
			}
			snprintf(label, sizeof label, "%s %s", guests[g], ways[o].flags);
			snprintf(path, sizeof path, "%s/%s%zu", program, guests[g], o);
			snprintf(command, sizeof command,
				 "cc -w %s -o %s %s/tests/program/machine_guests/%s.c -lm",
				 ways[o].flags, path, root, guests[g]);
			if (!CHECK(system(command) == 0, "%s compiles", label))
				continue;
			total += lockstep(label, path, (g + o) % 2);
			unlink(path);
		}
	rmdir(program);
	CHECK(total > 1000000, "%llu instructions in lockstep", (unsigned long long)total);
	CHECK_END();
}
