#include "common/vec.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *must(void *p)
{
	static const char msg[] = "csched: out of memory\n";

	if (p)
		return p;
	if (write(2, msg, sizeof msg - 1) < 0)
		_exit(4);
	_exit(4);
}

void *vec_grow(void *v, size_t *cap, size_t size, size_t want)
{
	size_t n = *cap ? *cap + *cap / 2 : 8;

	if (n < want)
		n = want;
	if (n > SIZE_MAX / size)
		must(NULL);
	v = must(realloc(v, n * size));
	*cap = n;
	return v;
}

void *xmalloc(size_t n)
{
	return must(malloc(n ? n : 1));
}

void *xcalloc(size_t n, size_t size)
{
	return must(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n)
{
	return must(realloc(p, n ? n : 1));
}

char *xstrdup(const char *s)
{
	return must(strdup(s));
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	int n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return must(n < 0 ? NULL : s);
}
