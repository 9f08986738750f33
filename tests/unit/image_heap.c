/* Types of heap objects, from what the machine code does with the allocator's result. */
#include "tests/unit/image_live.h"

static const char *what;

/* In the order in which alloc.cc stops. NULL: no type may be claimed. */
static const struct {
	const char *where, *type;
	unsigned heap_size, offset, size;
	const char *name;
} expected[] = {
	{ "local variable", "item", 16, 8, 4, "heap#7->key" },
	{ "through a wrapper", "item", 16, 0, 8, "heap#7->next" },
	{ "global variable", "item", 16, 8, 4, "heap#7->key" },
	{ "member", "item *", 32, 16, 8, "heap#7[2]" },
	{ "member of a global", "item", 16, 8, 4, "heap#7->key" },
	{ "returned", "item", 16, 8, 4, "heap#7->key" },
	{ "void pointer", NULL, 24, 8, 4, "heap#7+0x8" },
	{ "constructor", "widget", 8, 4, 4, "heap#7->b" },
	{ "array of int", "int", 40, 12, 4, "heap#7[3]" },
};

/* Takes "@alloc.cc:LINE" out of the name; false when it is not there. */
static bool take_site(char *name)
{
	char *at = strstr(name, "@alloc.cc:");

	if (!at)
		return false;
	char *rest = at + strlen("@alloc.cc:");

	rest += strspn(rest, "0123456789");
	memmove(at, rest, strlen(rest) + 1);
	return true;
}

static void check_program(const char *compiler, const char *flags)
{
	char title[128];
	struct live l;

	snprintf(title, sizeof title, "%s %s", compiler, flags);
	what = title;
	if (!CHECK(live_build(compiler, flags, "alloc.cc", "prog"), "%s: builds", what) ||
	    !CHECK(live_start(&l, "./prog"), "%s: runs", what))
		return;
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		uint64_t pcs[32];
		size_t n = img_unwind(l.set, &l.regs, &l.memory, pcs, 32);
		const struct img_type *t = n ? img_heap_type(l.set, pcs + 1, n - 1) : NULL;
		struct img_heap heap = { .base = 0x10000, .size = expected[i].heap_size, .id = 7,
					 .alloc_pcs = pcs + 1, .n_alloc_pcs = n - 1 };
		struct img_context ctx = { .heap = &heap };
		struct img_name name;

		/* With a tail call the function that knows the type is gone from the stack. */
		if (strstr(flags, "-O2") && same(expected[i].where, "returned")) {
			CHECK(!t, "%s: no type is guessed", what);
			live_go(&l);
			continue;
		}
		CHECK(expected[i].type ? t && same(t->name, expected[i].type) : !t,
		      "%s: %s is %s (got %s)", what, expected[i].where,
		      expected[i].type ? expected[i].type : "unknown", t ? t->name : "unknown");
		img_name_of(l.set, heap.base + expected[i].offset, expected[i].size, &ctx, &name);
		CHECK(take_site(name.text), "%s: %s was allocated somewhere (%s)", what,
		      expected[i].where, name.text);
		CHECK(same(name.text, expected[i].name) && name.place == IMG_HEAP,
		      "%s: %s is named %s (got %s)", what, expected[i].where, expected[i].name,
		      name.text);
		free(name.text);
		if (!live_go(&l))
			break;
	}
	live_end(&l);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	check_program("g++", "-g -O0");
	check_program("g++", "-g -O2");
	check_program("clang++", "-g -O0");
	check_program("clang++", "-g -O2");
	CHECK_END();
}
