/* Whose code a file is: libraries' headers, however a compiler writes their path. */
#include "common/runtime_names.h"
#include "tests/lib/check.h"

int main(void)
{
	static const struct {
		const char *file;
		bool header;
	} table[] = {
		{ "/usr/include/c++/12/mutex", true },
		{ "/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/mutex", true },
		{ "/usr/./bin/../include/stdio.h", true },
		{ "/home/u/usr/include/mine.h", false },
		{ "/usr/include/../../home/u/mine.h", true }, /* as it is spelt: it is asked often */
		{ "/home/u/src/../include/mine.h", false },
		{ "/../../usr/include/a.h", true },
		{ "../usr/include/a.h", false },
		{ "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/sync/atomic.rs", true },
		{ "library/std/src/sys/sync/mutex/futex.rs", true },
		{ "/home/u/.rustup/toolchains/stable/lib/rustlib/src/rust/library/std/src/lib.rs", true },
		{ "library/src/main.rs", false },
		{ "/..", false },
		{ "", false },
	};
	char hostile[4096] = "/usr";

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		CHECK(runtime_header(table[i].file) == table[i].header, "%s: %s", table[i].file,
		      table[i].header ? "a library's" : "the program's");
	for (size_t i = 4; i < sizeof hostile - 1; i++)
		hostile[i] = "/../x"[i % 5];
	CHECK(!runtime_header(hostile), "a long path is no header");
	CHECK_END();
}
