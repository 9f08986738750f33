/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs that this one executes and that are built with gcc's AddressSanitizer: its runtime refuses to start behind another
 * preloaded library unless its options allow it. `csched run` says so to the program it starts; behind a wrapper (nice, env, a
 * shell) that is for whoever executes it.
 */
#include "preload/suit.h"

#include "preload/raw.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>

#define NEEDED_MAX 64u /* libraries looked at */
#define DYNAMIC_MAX 128u
#define ENV_MAX 16384u /* variables */

static const char runtime[] = "libasan.so", option[] = "ASAN_OPTIONS=", allow[] = "verify_asan_link_order=0";

static bool read_at(long fd, void *to, size_t n, uint64_t offset)
{
	return raw(SYS_pread64, fd, to, n, offset) == (long)n;
}

/* Where in the file an address lies; 0: nowhere. */
static uint64_t offset_of(const Elf64_Phdr *ph, unsigned n, uint64_t address)
{
	for (unsigned i = 0; i < n; i++)
		if (ph[i].p_type == PT_LOAD && address >= ph[i].p_vaddr && address - ph[i].p_vaddr < ph[i].p_filesz)
			return address - ph[i].p_vaddr + ph[i].p_offset;
	return 0;
}

static bool needs_runtime(long fd)
{
	Elf64_Ehdr h;
	Elf64_Phdr ph[32];
	Elf64_Dyn d[DYNAMIC_MAX];
	uint64_t strings = 0, at = 0;
	unsigned n = 0;

	if (!read_at(fd, &h, sizeof h, 0) || memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_phnum > 32 ||
	    h.e_phentsize != sizeof *ph || !read_at(fd, ph, h.e_phnum * sizeof *ph, h.e_phoff))
		return false;
	for (unsigned i = 0; i < h.e_phnum; i++)
		if (ph[i].p_type == PT_DYNAMIC)
			n = (unsigned)(ph[i].p_filesz / sizeof *d), at = ph[i].p_offset;
	n = n > DYNAMIC_MAX ? DYNAMIC_MAX : n;
	if (!n || !read_at(fd, d, n * sizeof *d, at))
		return false;
	for (unsigned i = 0; i < n; i++)
		if (d[i].d_tag == DT_STRTAB)
			strings = offset_of(ph, h.e_phnum, d[i].d_un.d_ptr);
	for (unsigned i = 0, seen = 0; strings && i < n && seen < NEEDED_MAX; i++) {
		char name[sizeof runtime - 1];

		if (d[i].d_tag != DT_NEEDED)
			continue;
		seen++;
		if (read_at(fd, name, sizeof name, strings + d[i].d_un.d_val) && !memcmp(name, runtime, sizeof name))
			return true;
	}
	return false;
}

static bool begins(const char *s, const char *with, size_t n)
{
	char head[16];

	return raw_peek(head, (uint64_t)s, n) == n && !memcmp(head, with, n);
}

char *const *suit_environment(int dir, const char *path, char *const *env, struct suit *mem)
{
	long fd = raw(SYS_openat, dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool needs = !raw_failed(fd) && needs_runtime(fd), preloads = false;
	char *given = NULL, *entry = NULL;
	unsigned n = 0;

	mem->at = NULL;
	if (!raw_failed(fd))
		raw(SYS_close, fd);
	if (!needs || !env)
		return env;
	for (; n < ENV_MAX && raw_peek(&entry, (uint64_t)(env + n), sizeof entry) == sizeof entry && entry; n++) {
		preloads |= begins(entry, "LD_PRELOAD=", 11);
		if (begins(entry, option, sizeof option - 1))
			given = entry;
	}
	if (!preloads || n == ENV_MAX || entry)
		return env;
	size_t table = (n + 2) * sizeof entry;

	mem->len = (table + 2 * RAW_PAGE - 1) & ~(RAW_PAGE - 1);
	mem->at = raw_map(mem->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!mem->at)
		return env;
	char **new = mem->at;
	struct raw_text t = { (char *)mem->at + table, 0, mem->len - table };

	if (given) {
		char old[512];
		size_t got = raw_peek(old, (uint64_t)given, sizeof old - 1);

		old[got] = 0;
		text_str(&t, old);
		text_str(&t, ":");
	} else {
		text_str(&t, option);
	}
	text_str(&t, allow);
	unsigned to = 0;

	for (unsigned i = 0; i < n; i++)
		if (raw_peek(&entry, (uint64_t)(env + i), sizeof entry) == sizeof entry && entry != given)
			new[to++] = entry;
	new[to++] = t.s;
	new[to] = NULL;
	return new;
}

void suit_end(struct suit *mem)
{
	if (mem->at)
		raw_free(mem->at, mem->len);
}
