/*
 * The layout of saved registers comes from a trace: whatever that says, nothing outside an area is
 * read or written, and what is no layout is refused.
 */
#include "analyzer/engine/engine.h"
#include "tests/lib/check.h"

#include <stdlib.h>
#include <string.h>

static const char *const refused[] = {
	"", " ", "x", "e7x", "4", "0", "-", "e7 ", "e7  ", "e7 2", "e7 2:", "e7 2:x", "e7 2:576x", "e7 :576",
	"e7 2:575", "e7 2:0", "e7 2:-1", "e7 2:7937", "e7 7:7169", "e7 2:4294967295", "e7 2:4294967872",
	"e7 2:576 5:", "e7 2:576 5:99999999999999999999", "e7 2:576\t5:832", "e7 2:576,5:832", "e7\n",
	"e7 2:18446744073709551616", "e7 6:-576",
};

static const struct {
	const char *text;
	uint64_t xcr0;
	uint32_t avx, high;
} taken[] = {
	{ "7", 7, 0, 0 },
	{ "7 2:576", 7, 576, 0 },
	{ "602e7 2:576 5:1088 6:1152 7:1664 9:2688 17:2752 18:2816", 0x602e7, 576, 1664 },
	{ "e7 2:832 5:1088 6:1152 7:7168", 0xe7, 832, 7168 },
	{ "e7 2:7936 2:576", 0xe7, 576, 0 },
	{ "e7 0:0 1:0 3:1 4:4000000000 99:1", 0xe7, 0, 0 },
	{ "e7 2:576 5:576 6:576 7:576", 0xe7, 576, 576 },
};

/* Areas of every length, as large as they are said to be and no larger: for the sanitizer. */
static void load_all(const struct mach_xlayout *l)
{
	static const size_t lengths[] = { 576, 577, 831, 832, 1087, 1088, 2687, 2688, 4096, XSTATE_MAX };
	struct mach_cpu cpu;

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		uint8_t *area = malloc(lengths[i]);

		memset(area, 0x5a, lengths[i]);
		mach_cpu_init(&cpu);
		xstate_load(l, &(struct mach_regs_at){ (uint8_t *)&cpu.g + offsetof(VexGuestAMD64State, guest_YMM0),
						       &cpu.wide, cpu.fx }, area, lengths[i], ~0ull);
		free(area);
	}
}

int main(void)
{
	struct mach_xlayout l;

	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		CHECK(!xstate_parse(&l, refused[i]), "refused: \"%s\"", refused[i]);
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
		CHECK(xstate_parse(&l, taken[i].text) && l.xcr0 == taken[i].xcr0 &&
			      l.offset[X_AVX] == taken[i].avx && l.offset[X_HIGH] == taken[i].high,
		      "taken: \"%s\" (%u %u)", taken[i].text, l.offset[X_AVX], l.offset[X_HIGH]);
		load_all(&l);
		for (unsigned part = X_AVX; part < X_PARTS; part++)
			CHECK(xstate_offset(&l, part, 0) + xstate_size(part) <= XSTATE_MAX &&
				      xstate_offset(&l, part, ~0ull) + xstate_size(part) <= XSTATE_MAX,
			      "part %u lies in an area", part);
	}
	CHECK_END();
}
