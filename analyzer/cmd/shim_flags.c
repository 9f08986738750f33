#include "analyzer/cmd/shim_flags.h"

#include "common/strbuf.h"
#include "common/vec.h"

#include <stdlib.h>
#include <string.h>

const struct shim_flag shim_flags[SHIM_NFLAGS] = {
#define OPT(key, type, dflt, values, help) { #key, type, dflt, values, help },
	OPTIONS_TABLE(OPT)
#undef OPT
};

static size_t digits(const char *s)
{
	return strspn(s, "0123456789");
}

static bool is_number(const char *s)
{
	size_t n = digits(s);

	return n && n < 20 && (!s[n] || (strchr("kKmMgG", s[n]) && !s[n + 1]));
}

static bool is_seconds(const char *s)
{
	size_t n = digits(s), m = s[n] == '.' ? digits(s + n + 1) : 0;

	return n + m && n < 10 && !s[n + m + (s[n] == '.')];
}

static bool is_statuses(const char *s)
{
	for (;; s++) {
		size_t n = digits(s);

		if (!n || n > 3 || atoi(s) > 255)
			return false;
		s += n;
		if (*s != ',')
			return !*s;
	}
}

bool shim_flag_takes(const struct shim_flag *f, const char *value)
{
	switch (f->type) {
	case CHOICE:
	case BOOL:
		return options_choice(f->values, value) >= 0;
	case NUMBER:
		return is_number(value);
	case SECONDS:
		return is_seconds(value);
	case STATUSES:
		return is_statuses(value);
	case STRING:
		break;
	}
	return true;
}

/* One "key=value"; a bare key means 1. */
static err_t check_pair(char *pair)
{
	char *value = strchr(pair, '=');

	if (value)
		*value++ = 0;
	for (size_t i = 0; i < SHIM_NFLAGS; i++) {
		if (strcmp(shim_flags[i].key, pair))
			continue;
		if (shim_flag_takes(&shim_flags[i], value ? value : "1"))
			return NULL;
		return err_new(ERR_USAGE, "%s: '%s' is not %s", pair, value ? value : "1",
			       shim_flags[i].values);
	}
	return err_new(ERR_USAGE, "the shim has no option '%s'", pair);
}

err_t shim_flags_check(const char *options)
{
	err_t e = NULL;

	while (*options && !e) {
		struct strbuf pair = { 0 };

		for (; *options && *options != ':'; options++) {
			if (*options == '\\' && options[1])
				options++;
			strbuf_char(&pair, *options);
		}
		options += *options == ':';
		if (pair.n)
			e = check_pair(pair.s);
		strbuf_free(&pair);
	}
	return e;
}
