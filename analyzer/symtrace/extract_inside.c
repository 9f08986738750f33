/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run that stands still while a thread is inside a system call that another thread may end: read() of an empty pipe.
 * The call stays without a result in every order that is executed, so none of them shows that the run always stands still.
 */
#include "analyzer/symtrace/extract_internal.h"

#include "common/syscall_names.h"

#include <string.h>
#include <sys/syscall.h>

#define MOST_FRAMES 16

bool ext_may_wait(unsigned nr)
{
	static const uint16_t calls[] = { SYS_read, SYS_readv, SYS_recvfrom, SYS_recvmsg, SYS_poll,
					  SYS_ppoll, SYS_select, SYS_pselect6, SYS_epoll_wait,
					  SYS_epoll_pwait, SYS_accept, SYS_accept4, SYS_wait4 };

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (nr == calls[i])
			return true;
	return false;
}

void ext_inside_call(struct ext *x, uint32_t thread, const struct trc_enter *enter, bool returned)
{
	ext_thread(x, thread)->inside = returned ? NULL : enter;
}

/* "read() at loop.c:58": the program's own line, or the call alone. */
static char *call_text(struct ext *x, uint32_t thread, const struct trc_enter *enter)
{
	struct img_memory mem = mach_img_memory(x->run);
	struct img_regs regs;
	struct img_frame f;
	uint64_t pcs[MOST_FRAMES];
	const char *name = syscall_name(enter->rec.flags);
	size_t n = mach_img_regs(x->run, thread, &regs) ? img_unwind(x->images, &regs, &mem, pcs, MOST_FRAMES) : 0, i = 0;

	while (i < n && level_is_runtime(x->level, pcs[i]))
		i++;
	if (i == n || !img_frames(x->images, pcs[i], &f, 1) || !f.file || !f.line)
		return xasprintf("%s()", name ? name : "a system call");
	const char *slash = strrchr(f.file, '/');

	return xasprintf("%s() at %s:%u", name ? name : "a system call", slash ? slash + 1 : f.file, f.line);
}

static bool is_in_ring(const struct trc *t)
{
	for (size_t i = 0; i < t->blocked.n; i++)
		if (t->blocked.v[i]->cycle)
			return true;
	return false;
}

void ext_inside_find(struct ext *x, struct ext_inside *out)
{
	enum sym_failure_kind kind = x->trace->failure.kind;

	*out = (struct ext_inside){ .thread = SYM_NONE };
	if (x->trace->failure.thread == SYM_NONE || (kind != SYM_FAIL_DEADLOCK && kind != SYM_FAIL_HANG) || is_in_ring(x->t))
		return;
	for (uint32_t i = 0; i < x->threads.n; i++) {
		const struct trc_enter *enter = x->threads.v[i].inside;

		if (!enter || !ext_may_wait(enter->rec.flags))
			continue;
		*out = (struct ext_inside){ i, call_text(x, i, enter) };
		return;
	}
}
