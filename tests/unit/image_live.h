/*
 * A small program, built and run by the test, seen through an img_set as a
 * recorded process would be: its mappings, its registers at an int3, its memory.
 */
#ifndef CSCHED_TESTS_IMAGE_LIVE_H
#define CSCHED_TESTS_IMAGE_LIVE_H

#include "analyzer/image/image.h"
#include "common/vec.h"
#include "tests/lib/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

struct live {
	pid_t pid;
	int mem;
	struct img_set *set;
	struct img_regs regs;
	struct img_memory memory;
};

static const char *live_root(void)
{
	const char *root = getenv("ROOT");

	return root ? root : ".";
}

__attribute__((format(printf, 1, 2), unused)) static bool run(const char *fmt, ...)
{
	char cmd[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof cmd, fmt, ap);
	va_end(ap);
	return system(cmd) == 0;
}

/* Builds tests/unit/image/SOURCE into ./OUT; false: the compiler refused. */
__attribute__((unused)) static bool live_build(const char *compiler, const char *flags,
					       const char *source, const char *out)
{
	return run("%s %s -pthread -o %s %s/tests/unit/image/%s", compiler, flags, out,
		   live_root(), source);
}

static size_t unhex(const char *hex, uint8_t *out, size_t max)
{
	size_t n = 0;

	for (; hex && hex[0] && hex[1] && n < max; hex += 2, n++) {
		char two[3] = { hex[0], hex[1], 0 };

		out[n] = (uint8_t)strtoul(two, NULL, 16);
	}
	return n;
}

struct live_line {
	struct img_mapping map;
	char path[512];
};

static bool live_parse(const char *line, struct live_line *l)
{
	unsigned long lo, hi, off;
	char perm[8];

	l->path[0] = '\0';
	if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %511[^\n]", &lo, &hi, perm, &off, l->path) < 4)
		return false;
	l->map = (struct img_mapping){ lo, hi, off,
				       (perm[0] == 'r' ? PROT_READ : 0) |
				       (perm[1] == 'w' ? PROT_WRITE : 0) |
				       (perm[2] == 'x' ? PROT_EXEC : 0) };
	return l->path[0] == '/';
}

static void live_add(struct img_set *set, const struct live_line *first, size_t n)
{
	struct img_mapping *maps = xcalloc(n, sizeof *maps);
	uint8_t id[64];
	char *hex = img_build_id_of_file(first->path);
	struct img_module_desc d = { .path = first->path, .build_id = id, .maps = maps,
				     .n_maps = n, .build_id_len = unhex(hex, id, sizeof id) };

	for (size_t i = 0; i < n; i++)
		maps[i] = first[i].map;
	err_t e = img_add_module(set, &d, NULL);

	if (e)
		printf("%s\n", e->msg);
	err_free(e);
	free(hex);
	free(maps);
}

/* Consecutive lines of one file are one module; the program comes first. */
__attribute__((unused)) static struct img_set *live_maps(pid_t pid)
{
	struct img_set *set = img_set_new();
	VEC(struct live_line) v = { 0 };
	char path[64], line[1024];

	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	FILE *f = fopen(path, "r");
	struct live_line l;

	while (f && fgets(line, sizeof line, f))
		if (live_parse(line, &l))
			vec_push(&v, l);
	if (f)
		fclose(f);
	for (size_t i = 0, j; i < v.n; i = j) {
		for (j = i + 1; j < v.n && !strcmp(v.v[i].path, v.v[j].path);)
			j++;
		live_add(set, &v.v[i], j - i);
	}
	vec_free(&v);
	return set;
}

static bool live_read(void *arg, uint64_t addr, void *buf, size_t n)
{
	return pread(*(int *)arg, buf, n, (off_t)addr) == (ssize_t)n;
}

static void live_get_regs(struct live *l)
{
	struct user_regs_struct u;

	ptrace(PTRACE_GETREGS, l->pid, NULL, &u);
	l->regs = (struct img_regs){
		.r = { u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8, u.r9, u.r10,
		       u.r11, u.r12, u.r13, u.r14, u.r15, u.rip },
		.known = IMG_ALL_REGS, .fs_base = u.fs_base };
}

/* Runs to the next int3 (or other signal); false: the program ended. */
__attribute__((unused)) static bool live_go(struct live *l)
{
	int status;

	ptrace(PTRACE_CONT, l->pid, NULL, NULL);
	if (waitpid(l->pid, &status, 0) != l->pid || !WIFSTOPPED(status))
		return false;
	live_get_regs(l);
	return true;
}

/* Starts ./prog and stops it at its first int3, when all libraries are there. */
__attribute__((unused)) static bool live_start(struct live *l, const char *prog)
{
	char path[64];
	int status;

	memset(l, 0, sizeof *l);
	l->pid = fork();
	if (l->pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(prog, prog, (char *)NULL);
		_exit(127);
	}
	if (waitpid(l->pid, &status, 0) != l->pid || !WIFSTOPPED(status))
		return false;
	ptrace(PTRACE_SETOPTIONS, l->pid, NULL, (void *)PTRACE_O_EXITKILL);
	snprintf(path, sizeof path, "/proc/%d/mem", l->pid);
	l->mem = open(path, O_RDONLY | O_CLOEXEC);
	l->memory = (struct img_memory){ live_read, &l->mem };
	if (!live_go(l))
		return false;
	l->set = live_maps(l->pid);
	return true;
}

__attribute__((unused)) static void live_end(struct live *l)
{
	img_set_free(l->set);
	kill(l->pid, SIGKILL);
	waitpid(l->pid, NULL, 0);
	close(l->mem);
}

/* ---- what tests ask --------------------------------------------------- */

__attribute__((unused)) static bool same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* The name of [addr, addr + size) seen from where the program stands; static buffer. */
__attribute__((unused)) static const char *name_at(struct live *l, uint64_t addr, size_t size,
						   const struct img_heap *heap)
{
	static char text[512];
	struct img_context ctx = { .regs = &l->regs, .mem = &l->memory, .heap = heap };
	struct img_name n;

	img_name_of(l->set, addr, size, &ctx, &n);
	snprintf(text, sizeof text, "%s", n.text);
	free(n.text);
	return text;
}

__attribute__((unused)) static uint64_t address(struct live *l, const char *symbol)
{
	uint64_t a = 0;

	if (!img_address_of(l->set, symbol, &a))
		printf("no symbol %s\n", symbol);
	return a;
}

__attribute__((unused)) static uint64_t word_at(struct live *l, uint64_t addr)
{
	uint64_t v = 0;

	live_read(&l->mem, addr, &v, sizeof v);
	return v;
}

#define CHECK_NAME(l, addr, size, heap, want)                                        \
	do {                                                                         \
		const char *got_ = name_at(l, addr, size, heap);                     \
		CHECK(same(got_, want), "%s: name is %s (got %s)", what, want, got_); \
	} while (0)

#endif
