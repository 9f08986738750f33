#include "preload/interpose/real.h"
#include "preload/interpose/start.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>

union real_page real_table __attribute__((aligned(4096)));
_Static_assert(sizeof(struct real_functions) <= 4096, "the table is one page");

void real_resolve(void)
{
	struct real_functions *f = &real_table.f;

	if (f->resolved)
		return;
	/* The next in search order, so that other preloaded libraries keep their turn. */
#define R(name) f->name = (__typeof__(f->name))dlsym(RTLD_NEXT, #name);
#define V(field, name, version) \
	f->field = (__typeof__(f->field))dlvsym(RTLD_NEXT, #name, version);
	REAL_TABLE(R, V)
#undef R
#undef V
	f->resolved = 1;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && !memcmp(s + n - k, end, k);
}

/* Is this libc's own? Another preloaded library may stand before it. */
static bool is_of_libc(const struct link_map *m, const void *function)
{
	uint64_t at = (uint64_t)function - m->l_addr;
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)m->l_addr;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)(m->l_addr + eh->e_phoff);

	if (!ends_with(m->l_name, "/libc.so.6"))
		return false;
	for (int i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_flags & PF_X && at >= ph[i].p_vaddr &&
		    at < ph[i].p_vaddr + ph[i].p_memsz)
			return true;
	return false;
}

static bool looks_like(const pthread_mutex_t *m, int lock, int owner, unsigned users)
{
	return m->__data.__lock == lock && m->__data.__owner == owner &&
	       m->__data.__nusers == users && !m->__data.__kind;
}

/* Do libc's functions treat a plain mutex as mutex.c does? Asked of one. */
static bool real_direct(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	const struct real_functions *f = &real_table.f;
	int tid = (int)raw(SYS_gettid);
	bool ours = false;

	for (const struct link_map *map = _r_debug.r_map; map && !ours; map = map->l_next)
		ours = is_of_libc(map, f->pthread_mutex_lock) &&
		       is_of_libc(map, f->pthread_mutex_trylock) &&
		       is_of_libc(map, f->pthread_mutex_unlock);
	if (!ours || real_tid() != tid || f->pthread_mutex_lock(&m) || !looks_like(&m, 1, tid, 1))
		return false;
	return !f->pthread_mutex_unlock(&m) && looks_like(&m, 0, 0, 0);
}

bool shim_wrappers_memory(unsigned i, uint64_t *start, uint64_t *end)
{
	if (i == 1)
		start_memory(start, end);
	if (i)
		return i == 1;
	*start = (uint64_t)&real_table;
	*end = (uint64_t)(&real_table + 1);
	return true;
}

void real_ready(void)
{
	real_table.f.on = 1;
	real_table.f.direct = real_direct();
	raw(SYS_mprotect, &real_table, sizeof real_table, PROT_READ);
}
