/* Reporting for unit tests; scripts/check reads the lines. */
#ifndef CSCHED_TESTS_CHECK_H
#define CSCHED_TESTS_CHECK_H

#include <stdarg.h>
#include <stdio.h>

static int check_failures;

/* One line per checked fact; goes on after a failure. */
__attribute__((format(printf, 4, 5), unused)) static int
check_at(int good, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	printf("%s ", good ? "ok" : "not ok");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	if (!good)
		printf(" (%s:%d)", file, line);
	putchar('\n');
	fflush(stdout);
	check_failures += !good;
	return good;
}

#define CHECK(cond, ...) check_at(!!(cond), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_END() return check_failures ? 1 : 0

#endif
