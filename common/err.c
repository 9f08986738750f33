#include "common/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Handed out when even the message cannot be allocated; err_free() knows it. */
static struct error out_of_memory = { ERR_INTERNAL, "out of memory" };

static err_t make(enum err_code code, char *msg)
{
	struct error *e = msg ? malloc(sizeof *e) : NULL;

	if (!e) {
		free(msg);
		return &out_of_memory;
	}
	e->code = code;
	e->msg = msg;
	return e;
}

static char *format(const char *fmt, va_list ap)
{
	char *s;

	return vasprintf(&s, fmt, ap) < 0 ? NULL : s;
}

err_t err_new(enum err_code code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *msg = format(fmt, ap);
	va_end(ap);
	return make(code, msg);
}

err_t err_wrap(err_t e, const char *fmt, ...)
{
	va_list ap;
	char *both;

	if (!e)
		return NULL;
	va_start(ap, fmt);
	char *what = format(fmt, ap);
	va_end(ap);
	if (!what || asprintf(&both, "%s: %s", what, e->msg) < 0)
		both = NULL;
	enum err_code code = e->code;
	free(what);
	err_free(e);
	return make(code, both);
}

err_t err_errno(const char *fmt, ...)
{
	const char *why = strerror(errno);
	va_list ap;
	char *both;

	va_start(ap, fmt);
	char *what = format(fmt, ap);
	va_end(ap);
	if (!what || asprintf(&both, "%s: %s", what, why) < 0)
		both = NULL;
	free(what);
	return make(ERR_INPUT, both);
}

void err_free(err_t e)
{
	if (!e || e == &out_of_memory)
		return;
	free(e->msg);
	free(e);
}
