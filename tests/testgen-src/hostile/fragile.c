/* No constructor that works: one exits, one returns nothing, one never returns. */
#include <stdlib.h>

struct fragile { int n; };

struct fragile *fragile_new(void) { exit(3); }
struct fragile *fragile_open(int n) { return n == 123456789 ? malloc(sizeof(struct fragile)) : NULL; }
struct fragile *fragile_wait(void) { for (volatile int i = 0;; i++) ; }
int fragile_use(struct fragile *f) { return f ? ++f->n : -1; }
