/* A library whose initialiser ends the process. */
#include <stdlib.h>

struct thing { int n; };
__attribute__((constructor)) static void begin(void) { exit(7); }
struct thing *thing_new(void) { return calloc(1, sizeof(struct thing)); }
void thing_use(struct thing *t) { t->n++; }
