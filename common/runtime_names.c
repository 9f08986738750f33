#include "common/runtime_names.h"

#include <stddef.h>
#include <string.h>

static const char *const modules[] = {
	"libc.so", "libc-", "libpthread", "ld-linux", "libm.so", "libstdc++", "libc++", "libgcc_s",
	"libcsched", "libjemalloc", "libtcmalloc", "libmimalloc", NULL,
};

static const char *const directories[] = { "/usr/include/", "/usr/lib/", "/usr/local/include/", NULL };

static bool begins_with_one(const char *s, const char *const *list)
{
	for (; *list; list++)
		if (!strncmp(s, *list, strlen(*list)))
			return true;
	return false;
}

bool runtime_module(const char *name)
{
	return begins_with_one(name, modules);
}

bool runtime_header(const char *file)
{
	return begins_with_one(file, directories);
}
