/* Programs that find out themselves that something is wrong. */
#include "preload/csched.h"
#include "preload/event.h"
#include "preload/interpose/real.h"

#include <dlfcn.h>

EXPORT void abort(void)
{
	if (real_on())
		DONE(TRC_OP_ABORT, NULL, 0, 0);
	REAL(abort)();
	__builtin_unreachable();
}

static void assertion(const char *expression, const char *file, unsigned line,
		      const char *function, uint64_t site, void *frame)
{
	struct shim_assertion a = { expression, file, function, line };

	if (real_on())
		event(TRC_OP_ASSERT, TRC_AT_DONE, &a, site, 0, (uint64_t)frame);
}

EXPORT void __assert_fail(const char *expression, const char *file, unsigned line,
			  const char *function)
{
	assertion(expression, file, line, function, SITE, __builtin_frame_address(0));
	REAL(__assert_fail)(expression, file, line, function);
	__builtin_unreachable();
}

EXPORT void __assert_perror_fail(int errnum, const char *file, unsigned line, const char *function)
{
	assertion("assert_perror()", file, line, function, SITE, __builtin_frame_address(0));
	REAL(__assert_perror_fail)(errnum, file, line, function);
	__builtin_unreachable();
}

/* ---- Rust panics ---- */

#define RUST_CLASS 0x54535552005a4f4dull /* "MOZ\0RUST", as the unwinder has it */

/*
 * The unwinder may have come with a library that was loaded late, and seen by nobody but that; then there is no entry in the
 * table, and we must not look beyond what is loaded.
 */
static void *real_raise(void)
{
	static const char *const libraries[] = { "libgcc_s.so.1", "libunwind.so.1" };
	void *found = (void *)REAL(_Unwind_RaiseException);

	if (!found)
		found = dlsym(RTLD_NEXT, "_Unwind_RaiseException");
	for (size_t i = 0; !found && i < sizeof libraries / sizeof *libraries; i++) {
		void *lib = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);

		found = lib ? dlsym(lib, "_Unwind_RaiseException") : NULL;
	}
	return found;
}

/* Called from unwind.S; gives what it goes on with. */
void *shim_raised(const uint64_t *exception, uint64_t site, uint64_t frame)
{
	if (real_on() && *exception == RUST_CLASS)
		event(TRC_OP_PANIC, TRC_AT_DONE, exception, site, 0, frame);
	return real_raise();
}

/* ---- what the program says itself ---- */

#undef csched_fail
EXPORT void csched_fail(const char *why)
{
	if (real_on())
		event(TRC_OP_USER_FAIL, TRC_AT_DONE, why, SITE, 0,
		      (uint64_t)__builtin_frame_address(0));
}
