/* A library whose initialiser crashes. */
#include <stddef.h>

struct thing { int n; };
static int *nowhere;

__attribute__((constructor)) static void begin(void)
{
	*(volatile int *)nowhere = 1;
}

struct thing *thing_new(void) { return NULL; }
void thing_use(struct thing *t) { t->n++; }
