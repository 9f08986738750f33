/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stacks of a core file, unwound by libdwfl; modules are found by build-id or where they were loaded from. */
#include "analyzer/testgen/stack.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/procfs.h>
#include <unistd.h>

struct reading {
	struct stack *s;
	Dwfl *dwfl;
	unsigned frames;
};

static int add_frame(Dwfl_Frame *frame, void *arg)
{
	struct reading *r = arg;
	struct stack_thread *t = &r->s->threads.v[r->s->threads.n - 1];
	struct stack_frame f = { .text_line = (unsigned)t->frames.n };
	Dwarf_Addr pc, start = 0;
	bool exact = false;
	GElf_Sym sym;
	GElf_Off offset;
	int line = 0;

	if (!dwfl_frame_pc(frame, &pc, &exact) || t->frames.n == STACK_FRAMES)
		return DWARF_CB_ABORT;
	Dwfl_Module *m = dwfl_addrmodule(r->dwfl, pc - !exact);
	if (m) {
		const char *module = dwfl_module_info(m, NULL, &start, NULL, NULL, NULL, NULL, NULL);
		const char *name = dwfl_module_addrinfo(m, pc - !exact, &offset, &sym, NULL, NULL, NULL);
		Dwfl_Line *l = dwfl_module_getsrc(m, pc - !exact);
		const char *file = l ? dwfl_lineinfo(l, NULL, &line, NULL, NULL, NULL) : NULL;

		f.module = module ? xstrdup(module) : NULL;
		f.function = name ? xstrdup(name) : NULL;
		f.file = file ? xstrdup(file) : NULL;
		f.line = file && line > 0 ? (unsigned)line : 0;
		f.offset = pc - start;
		f.has_offset = true;
	}
	vec_push(&t->frames, f);
	return DWARF_CB_OK;
}

static int add_thread(Dwfl_Thread *thread, void *arg)
{
	struct reading *r = arg;
	/* The kernel writes the thread that failed first. */
	struct stack_thread t = { .fails = r->s->threads.n == 0 };

	if (r->s->threads.n == STACK_THREADS)
		return DWARF_CB_ABORT;
	vec_push(&r->s->threads, t);
	dwfl_thread_getframes(thread, add_frame, r);
	r->frames += (unsigned)r->s->threads.v[r->s->threads.n - 1].frames.n;
	return DWARF_CB_OK;
}

/* The signal in the first thread's status. */
static int signal_of(Elf *core)
{
	size_t n = 0;

	if (elf_getphdrnum(core, &n))
		return 0;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		GElf_Nhdr nh;
		size_t name, desc;
		struct elf_prstatus status;

		if (!gelf_getphdr(core, (int)i, &ph) || ph.p_type != PT_NOTE)
			continue;
		Elf_Data *d = elf_getdata_rawchunk(core, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_NHDR);
		for (size_t at = 0; d && (at = gelf_getnote(d, at, &nh, &name, &desc));)
			if (nh.n_type == NT_PRSTATUS && nh.n_descsz >= sizeof status && desc <= d->d_size - sizeof status) {
				memcpy(&status, (char *)d->d_buf + desc, sizeof status);
				return status.pr_cursig;
			}
	}
	return 0;
}

err_t stack_read_core(const char *path, int fd, struct stack *out)
{
	static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_build_id_find_elf,
						  .find_debuginfo = dwfl_standard_find_debuginfo };
	Dwfl *dwfl = dwfl_begin(&callbacks);
	Elf *core = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	struct reading r = { .s = out, .dwfl = dwfl };
	err_t e = NULL;

	if (!dwfl || !core || dwfl_core_file_report(dwfl, core, NULL) < 0 || dwfl_report_end(dwfl, NULL, NULL) ||
	    dwfl_core_file_attach(dwfl, core) < 0)
		e = err_new(ERR_INPUT, "%s: the core file cannot be read: %s", path, dwfl_errmsg(-1));
	else
		dwfl_getthreads(dwfl, add_thread, &r);
	if (!e && !r.frames)
		e = err_new(ERR_INPUT, "%s: no stack of the core file can be unwound: %s", path, dwfl_errmsg(-1));
	out->format = "core file";
	int sig = core ? signal_of(core) : 0;
	out->kind = sig == 11 || sig == 7 ? STACK_CRASH : sig == 6 ? STACK_ABORT : sig == 8 ? STACK_ARITHMETIC :
		    STACK_UNKNOWN;
	dwfl_end(dwfl);
	elf_end(core);
	return e;
}
