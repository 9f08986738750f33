/*
 * pathinsns TRACE START-SYMBOL-OFFSET: every instruction thread 0 executed
 * according to the trace, one line "file+offset" each, from the first time the
 * main program's offset is reached. Instructions of libcsched.so, the dynamic
 * linker and the vdso are left out. Code is read from the ELF files and decoded with
 * Zydis, so that the recorder's own decoder is not believed.
 *
 * pathinsns --count TRACE: how many instructions all threads executed.
 *
 * pathinsns --step START-SYMBOL-OFFSET [NAME=VALUE...] PROG ARGS...: the same list
 * from single-stepping the program natively under ptrace, with this environment.
 */
#include "common/path.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

struct map {
	uint64_t start, end, offset;
	const uint8_t *bytes; /* of the file at offset */
	char name[64];
	bool skip;
};

static struct map maps[512];
static size_t nmaps;
static ZydisDecoder decoder;
static bool started;
static uint64_t start_offset;
static char main_name[64];
static uint64_t last_pc;

static void add_map(uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
	const char *base = strrchr(path, '/');
	struct map *m = &maps[nmaps];
	struct stat st;
	int fd = open(path, O_RDONLY);

	if (nmaps == 512)
		exit(2);
	m->start = start;
	m->end = end;
	m->offset = offset;
	snprintf(m->name, sizeof m->name, "%s", base ? base + 1 : path);
	m->skip = !strncmp(m->name, "libcsched", 9) || !strncmp(m->name, "ld-linux", 8);
	if (fd >= 0 && !fstat(fd, &st) && (uint64_t)st.st_size > offset) {
		const uint8_t *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

		if (p != MAP_FAILED)
			m->bytes = p + offset;
	}
	if (fd >= 0)
		close(fd);
	nmaps++;
}

static const struct map *find(uint64_t pc)
{
	for (size_t i = nmaps; i-- > 0;)
		if (pc >= maps[i].start && pc < maps[i].end)
			return &maps[i];
	return NULL;
}

/* rep instructions are stepped once per iteration: one line is enough. */
static void executed(uint64_t pc)
{
	const struct map *m = find(pc);
	bool again = pc == last_pc;

	last_pc = pc;
	if (!m || m->skip || !m->bytes)
		return;
	const uint8_t *b = m->bytes + (pc - m->start);

	if (again && (b[0] == 0xf3 || b[0] == 0xf2))
		return;
	uint64_t offset = pc - m->start + m->offset;

	if (!started && offset == start_offset && !strcmp(m->name, main_name))
		started = true;
	if (started)
		printf("%s+%" PRIx64 "\n", m->name, offset);
}

/* ---- from the trace ---- */

static bool decode(uint64_t pc, ZydisDecodedInstruction *in, ZydisDecodedOperand *op)
{
	const struct map *m = find(pc);

	return m && m->bytes &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, m->bytes + (pc - m->start), 15, in, op));
}

static void expand(const struct path_step *s)
{
	const struct trc_fragment *f = s->frag->rec;
	const struct trc_side *sides = trc_fragment_sides(f);
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t pc = f->pc;
	uint32_t side = 0;

	for (uint32_t i = 0; i < f->ninsns; i++) {
		executed(pc);
		if (!decode(pc, &in, op))
			return;
		bool cond = in.meta.category == ZYDIS_CATEGORY_COND_BR;

		if (cond) {
			if (side >= f->nsides || sides[side].pc != pc) {
				printf("conditional branch at %" PRIx64 " is not in the fragment\n", pc);
				exit(1);
			}
			if (s->exit == PATH_SIDE && s->side == side)
				return;
			cond = f->passed_taken >> side++ & 1;
		} else if (side < f->nsides && sides[side].pc == pc) { /* indirect */
			for (; f->cases >> side & 1 && sides[side].pc == pc; side++)
				if (s->exit == PATH_SIDE && s->side == side)
					return;
			if (side == f->nsides || !(f->guessed >> side & 1) || (s->exit == PATH_ASTRAY && s->side == side))
				return;
			pc = sides[side++].target;
			continue;
		}
		if ((cond || in.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
		     in.meta.category == ZYDIS_CATEGORY_CALL) &&
		    op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			pc += in.length + (uint64_t)op[0].imm.value.s;
		else
			pc += in.length;
	}
}

/* Instructions up to side exit k, or all of them: looked up once per fragment. */
static uint64_t count(const struct path_step *s)
{
	static uint16_t (*known)[TRC_MAX_SIDES + 1];
	static size_t nknown;
	uint32_t id = s->frag->id;
	const struct trc_fragment *f = s->frag->rec;

	if (id >= nknown) {
		size_t n = (id + 1) * 2;

		known = realloc(known, n * sizeof *known);
		memset(known + nknown, 0, (n - nknown) * sizeof *known);
		nknown = n;
	}
	if (!known[id][0] && f->nsides) {
		ZydisDecodedInstruction in;
		ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
		uint64_t pc = f->pc;
		uint32_t side = 0;

		for (uint32_t i = 0; i < f->ninsns && side < f->nsides && decode(pc, &in, op); i++) {
			bool cond = false;

			if (pc == trc_fragment_sides(f)[side].pc) {
				known[id][side] = (uint16_t)(i + 1);
				for (; f->cases >> side & 1; known[id][side] = (uint16_t)(i + 1))
					if (++side == f->nsides)
						break;
				if (side == f->nsides)
					break;
				if (f->guessed >> side & 1) {
					pc = trc_fragment_sides(f)[side++].target;
					continue;
				}
				cond = f->passed_taken >> side++ & 1;
			}
			bool direct = (cond || in.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
				       in.meta.category == ZYDIS_CATEGORY_CALL) &&
				      op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
			pc += in.length + (direct ? (uint64_t)op[0].imm.value.s : 0);
		}
	}
	return s->exit == PATH_SIDE || s->exit == PATH_ASTRAY ? known[id][s->side] : f->ninsns;
}

static int from_trace(const char *path, bool counting)
{
	struct path_frags *frags;
	struct path_walk w;
	struct path_step step;
	struct trc *t;
	bool done = false;
	err_t e = trc_open(path, 0, &t);

	if (!e)
		e = path_frags_load(t, &frags);
	for (size_t i = 0; !e && i < t->modules.n; i++) {
		const struct trc_module *m = t->modules.v[i];
		char *name = strndup(m->path, m->path_len);

		add_map(m->start, m->end, m->offset, name);
		if (i == 0)
			snprintf(main_name, sizeof main_name, "%s", maps[0].name);
		free(name);
	}
	uint64_t total = 0;

	for (size_t i = 0; !e && i < (counting ? t->threads.n : 1); i++) {
		e = path_walk_init(&w, t, frags, &t->threads.v[i]);
		for (done = false; !e && !done;) {
			e = path_walk_next(&w, &step, NULL, &done);
			if (!e && !done && counting)
				total += count(&step);
			else if (!e && !done)
				expand(&step);
		}
	}
	if (counting)
		printf("%" PRIu64 "\n", total);
	if (e)
		fprintf(stderr, "pathinsns: %s\n", e->msg);
	return e ? 1 : 0;
}

/* ---- by single-stepping ---- */

static void read_maps(pid_t pid)
{
	char name[64], line[1024];
	FILE *f;

	nmaps = 0;
	snprintf(name, sizeof name, "/proc/%d/maps", pid);
	f = fopen(name, "r");
	while (f && fgets(line, sizeof line, f)) {
		uint64_t a, b, o;
		char perm[8], path[512] = "";

		sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511s", &a, &b, perm, &o,
		       path);
		if (path[0] == '/' && perm[2] == 'x')
			add_map(a, b, o, path);
	}
	if (f)
		fclose(f);
}

/* Runs to the start address with a breakpoint, then steps. */
static int by_stepping(char **argv)
{
	pid_t pid = fork();
	struct user_regs_struct r;
	int status;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		personality(ADDR_NO_RANDOMIZE);
		if (!freopen("/dev/null", "w", stdout) || clearenv())
			_exit(126);
		/* The environment decides where the stack lies: the same as when recording. */
		for (; *argv && strchr(*argv, '='); argv++)
			putenv(*argv);
		execvp(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	read_maps(pid);
	snprintf(main_name, sizeof main_name, "%s", maps[0].name);
	uint64_t at = maps[0].start - maps[0].offset + start_offset;
	long word = ptrace(PTRACE_PEEKTEXT, pid, at, 0);

	ptrace(PTRACE_POKETEXT, pid, at, (word & ~0xffl) | 0xcc);
	ptrace(PTRACE_CONT, pid, 0, 0);
	waitpid(pid, &status, 0);
	ptrace(PTRACE_POKETEXT, pid, at, word);
	ptrace(PTRACE_GETREGS, pid, 0, &r);
	r.rip--;
	ptrace(PTRACE_SETREGS, pid, 0, &r);
	read_maps(pid);
	while (WIFSTOPPED(status)) {
		ptrace(PTRACE_GETREGS, pid, 0, &r);
		executed(r.rip);
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0))
			break;
		waitpid(pid, &status, 0);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static char buffer[1 << 16];

	setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "--step")) {
		start_offset = strtoull(argv[2], NULL, 16);
		return by_stepping(argv + 3);
	}
	if (!strcmp(argv[1], "--count"))
		return from_trace(argv[2], true);
	start_offset = strtoull(argv[2], NULL, 16);
	return from_trace(argv[1], false);
}
