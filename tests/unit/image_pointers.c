/* Names by the way the program reached the memory. */
#include "tests/unit/image_live.h"

static const char *what;

static void check_program(const char *compiler, const char *flags)
{
	char title[128];
	struct live l;

	snprintf(title, sizeof title, "%s %s", compiler, flags);
	what = title;
	if (!CHECK(run("%s %s -o prog %s/tests/unit/image/ways.c %s/tests/unit/image/secret.c",
		       compiler, flags, live_root(), live_root()), "%s: builds", what) ||
	    !CHECK(live_start(&l, "./prog"), "%s: runs", what))
		return;
	uint64_t cells = word_at(&l, address(&l, "cells_at"));
	uint64_t numbers = word_at(&l, address(&l, "numbers_at"));
	uint64_t secret = word_at(&l, address(&l, "secret_at"));

	/* sort's own variable, not one of qsort's, of which libc has many. */
	CHECK_NAME(&l, cells + 8, 8, NULL, "owner->cells->value");
	live_go(&l);
	CHECK_NAME(&l, cells + 8, 8, NULL, "parameter->cells->value");
	live_go(&l);
	uint64_t shared = word_at(&l, address(&l, "shared_at"));

	CHECK_NAME(&l, shared, 4, NULL, "s->count");
	CHECK_NAME(&l, cells + 3 * 16 + 8, 8, NULL, "s->cells[3].value");
	CHECK_NAME(&l, numbers + 12 * 4, 4, NULL, "numbers[12]");
	CHECK_NAME(&l, word_at(&l, shared + 16) + 3 * 8, 8, NULL, "s->index[3]");
	CHECK_NAME(&l, word_at(&l, word_at(&l, shared + 16) + 3 * 8), 4, NULL, "s->index[3]->key");
	live_go(&l);
	CHECK_NAME(&l, secret + 8, 4, NULL, "s->secret->level");
	live_end(&l);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	check_program("gcc", "-g -O0");
	check_program("gcc", "-g -O2");
	check_program("gcc", "-gdwarf-4 -O2");
	check_program("clang", "-g -O0");
	CHECK_END();
}
