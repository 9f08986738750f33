/* A library whose initialiser never returns, and one thread of which makes trouble meanwhile. */
#include <stdlib.h>
#include <unistd.h>

struct thing { int n; };
__attribute__((constructor)) static void begin(void) { for (;;) pause(); }
struct thing *thing_new(void) { return calloc(1, sizeof(struct thing)); }
void thing_use(struct thing *t) { t->n++; }
