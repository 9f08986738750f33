#include "preload/interpose/real.h"

#include <dlfcn.h>
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

void real_ready(void)
{
	real_table.f.on = 1;
	raw(SYS_mprotect, &real_table, sizeof real_table, PROT_READ);
}
