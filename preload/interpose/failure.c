/* Programs that find out themselves that something is wrong. */
#include "preload/csched.h"
#include "preload/event.h"
#include "preload/interpose/real.h"

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

#undef csched_fail
EXPORT void csched_fail(const char *why)
{
	if (real_on())
		event(TRC_OP_USER_FAIL, TRC_AT_DONE, why, SITE, 0,
		      (uint64_t)__builtin_frame_address(0));
}
