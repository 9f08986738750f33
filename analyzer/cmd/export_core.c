/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An ELF core dump, as the kernel would have written it at that moment: memory and registers from the machine, files from the
 * trace. Floating-point registers are not in it.
 */
#include "analyzer/cmd/export.h"

#include "analyzer/trace_image.h"
#include "common/vec.h"

#include <elf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/user.h>

#define PAGE 4096
#define MOST_SEGMENTS 60000 /* e_phnum has 16 bits */
#define MOST_BYTES (1ull << 40) /* holes included */

struct bytes {
	VEC(uint8_t) v;
};

static void put(struct bytes *b, const void *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		vec_push(&b->v, ((const uint8_t *)from)[i]);
}

static void note(struct bytes *b, uint32_t type, const void *data, size_t n)
{
	Elf64_Nhdr h = { 5, (uint32_t)n, type };

	put(b, &h, sizeof h);
	put(b, "CORE\0\0\0", 8);
	put(b, data, n);
	put(b, "\0\0\0", -n & 3);
}

/* ---- notes ---- */

static struct elf_prstatus status_of(struct trc *t, struct mach_run *run, uint32_t thread)
{
	uint64_t regs[TRC_NREGS] = { 0 }, fs = 0;
	struct elf_prstatus s = { 0 };
	struct user_regs_struct u = { .orig_rax = (unsigned long long)-1, .cs = 0x33, .ss = 0x2b };
	const struct trc_thread_info *info = trc_thread_at(t, thread);

	if (mach_regs(run, thread, regs, &fs)) {
		unsigned long long *to[TRC_NREGS] = { &u.rax, &u.rcx, &u.rdx, &u.rbx, &u.rsp, &u.rbp, &u.rsi, &u.rdi, &u.r8,
						      &u.r9, &u.r10, &u.r11, &u.r12, &u.r13, &u.r14, &u.r15, &u.rip, &u.eflags };
		for (unsigned i = 0; i < TRC_NREGS; i++)
			*to[i] = regs[i];
	}
	u.fs_base = fs;
	memcpy(&s.pr_reg, &u, sizeof s.pr_reg < sizeof u ? sizeof s.pr_reg : sizeof u);
	s.pr_pid = info && info->rec ? (pid_t)info->rec->tid : (pid_t)thread + 1;
	/* As in the kernel's: every thread names the signal that the process died by. */
	if (t->failure)
		s.pr_cursig = (short)(t->failure->signal ? t->failure->signal : SIGABRT);
	s.pr_info.si_signo = s.pr_cursig;
	return s;
}

static void add_thread(struct bytes *b, struct trc *t, struct mach_run *run, uint32_t thread)
{
	struct elf_prstatus s = status_of(t, run, thread);

	note(b, NT_PRSTATUS, &s, sizeof s);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void add_process(struct bytes *b, struct trc *t)
{
	const char *program = trc_identity(t, "program"), *command = trc_identity(t, "command");
	struct elf_prpsinfo p = { .pr_sname = 'R', .pr_pid = (int)trc_identity_uint(t, "pid", 1) };

	snprintf(p.pr_fname, sizeof p.pr_fname, "%s", program ? base_name(program) : "?");
	snprintf(p.pr_psargs, sizeof p.pr_psargs, "%s", command ? command : "?");
	note(b, NT_PRPSINFO, &p, sizeof p);
}

static bool is_program(struct trc *t, const struct trc_module *m)
{
	const char *program = trc_identity(t, "program");

	return program && strlen(program) == m->path_len && !memcmp(m->path, program, m->path_len);
}

/* Where the program lies, by its own headers in memory: the debugger finds everything else from there. */
static void add_auxv(struct bytes *b, struct trc *t, struct mach_run *run)
{
	Elf64_auxv_t v[8] = { 0 };
	unsigned n = 0;
	Elf64_Ehdr h;

	for (size_t i = 0; i < t->modules.n && !n; i++) {
		const struct trc_module *m = t->modules.v[i];

		if (!is_program(t, m) || m->offset || !mach_read(run, m->start, &h, sizeof h) || memcmp(h.e_ident, ELFMAG, SELFMAG))
			continue;
		v[n++] = (Elf64_auxv_t){ AT_PHDR, { m->start + h.e_phoff } };
		v[n++] = (Elf64_auxv_t){ AT_PHENT, { h.e_phentsize } };
		v[n++] = (Elf64_auxv_t){ AT_PHNUM, { h.e_phnum } };
		v[n++] = (Elf64_auxv_t){ AT_PAGESZ, { PAGE } };
		v[n++] = (Elf64_auxv_t){ AT_ENTRY, { (h.e_type == ET_DYN ? m->start : 0) + h.e_entry } };
	}
	v[n++] = (Elf64_auxv_t){ AT_NULL, { 0 } };
	note(b, NT_AUXV, v, n * sizeof *v);
}

static void add_files(struct bytes *b, struct trc *t)
{
	struct bytes files = { 0 };
	uint64_t head[2] = { t->modules.n, PAGE };

	put(&files, head, sizeof head);
	for (size_t i = 0; i < t->modules.n; i++) {
		const struct trc_module *m = t->modules.v[i];
		uint64_t entry[3] = { m->start, m->end, m->offset / PAGE };

		put(&files, entry, sizeof entry);
	}
	for (size_t i = 0; i < t->modules.n; i++) {
		const struct trc_module *m = t->modules.v[i];

		put(&files, m->path, strnlen(m->path, m->path_len));
		put(&files, "", 1);
	}
	note(b, NT_FILE, files.v.v, files.v.n);
	vec_free(&files.v);
}

static void add_notes(struct bytes *b, struct trc *t, struct mach_run *run)
{
	uint32_t first = t->failure ? t->failure->thread : 0;

	/* The first thread is the one a debugger shows; the process comes behind it, as the kernel has it. */
	add_thread(b, t, run, first);
	add_process(b, t);
	add_auxv(b, t, run);
	add_files(b, t);
	for (uint32_t i = 0; i < t->threads.n; i++)
		if (i != first && mach_thread_alive(run, i))
			add_thread(b, t, run, i);
}

/* ---- memory ---- */

typedef VEC(Elf64_Phdr) headers_t;

static void add_segments(headers_t *all, struct mach_run *run)
{
	uint64_t lo, hi, from = 0, bytes = 0;
	unsigned prot;

	while (all->n < MOST_SEGMENTS && mach_mapping_above(run, from, &lo, &hi, &prot)) {
		bool kept = prot && bytes + (hi - lo) < MOST_BYTES;
		Elf64_Phdr h = { .p_type = PT_LOAD, .p_vaddr = lo, .p_memsz = hi - lo, .p_filesz = kept ? hi - lo : 0,
				 .p_align = PAGE, .p_flags = (prot & PROT_READ ? PF_R : 0) | (prot & PROT_WRITE ? PF_W : 0) |
							     (prot & PROT_EXEC ? PF_X : 0) };

		bytes += h.p_filesz;
		vec_push(all, h);
		from = hi;
	}
}

/* Pages of zeroes, and those nobody touched, are holes. */
static bool write_segment(FILE *f, struct mach_run *run, const Elf64_Phdr *h)
{
	static const uint8_t zero[PAGE];
	uint8_t page[PAGE];

	for (uint64_t at = 0; at < h->p_filesz; at += PAGE) {
		bool last = at + PAGE >= h->p_filesz;
		bool got = mach_read(run, h->p_vaddr + at, page, PAGE);

		if (!got)
			memset(page, 0, PAGE);
		if (!last && !memcmp(page, zero, PAGE))
			continue;
		if (fseeko(f, (off_t)(h->p_offset + at), SEEK_SET) || fwrite(page, 1, PAGE, f) != PAGE)
			return false;
	}
	return true;
}

static uint64_t page_up(uint64_t n)
{
	return (n + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

err_t export_core(FILE *f, struct trc *t, struct mach_run *run)
{
	struct bytes notes = { 0 };
	headers_t all = { 0 };
	Elf64_Ehdr h = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_CORE,
			 .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_phoff = sizeof h, .e_ehsize = sizeof h,
			 .e_phentsize = sizeof(Elf64_Phdr) };

	add_notes(&notes, t, run);
	vec_push(&all, ((Elf64_Phdr){ .p_type = PT_NOTE, .p_filesz = notes.v.n, .p_align = 4 }));
	add_segments(&all, run);
	h.e_phnum = (uint16_t)all.n;
	uint64_t at = sizeof h + all.n * sizeof(Elf64_Phdr);
	all.v[0].p_offset = at;
	at = page_up(at + notes.v.n);
	for (size_t i = 1; i < all.n; i++) {
		all.v[i].p_offset = at;
		at += all.v[i].p_filesz;
	}
	bool good = fwrite(&h, sizeof h, 1, f) == 1 && fwrite(all.v, sizeof *all.v, all.n, f) == all.n &&
		    fwrite(notes.v.v, 1, notes.v.n, f) == notes.v.n;
	for (size_t i = 1; i < all.n && good; i++)
		good = write_segment(f, run, &all.v[i]);
	vec_free(&notes.v);
	vec_free(&all);
	return good ? NULL : err_errno("the core dump could not be written");
}
