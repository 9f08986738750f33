#include "common/runtime_names.h"

#include <stddef.h>
#include <string.h>

static const char *const modules[] = {
	"libc.so", "libc-", "libpthread", "ld-linux", "libm.so", "libstdc++", "libc++", "libgcc_s",
	"libcsched", "libjemalloc", "libtcmalloc", "libmimalloc", "libgomp", "libomp", "libasan", "libtsan", "libubsan", NULL,
};

/* The last four are what rustc calls the places of its standard library's sources. */
static const char *const directories[] = {
	"/usr/include/", "/usr/lib/", "/usr/local/include/", "/rustc/", "library/core/src/", "library/alloc/src/",
	"library/std/src/", NULL,
};

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

/* "/usr/bin/../lib/gcc/12/../../include/c++/12/mutex", as clang has it: without the detours. */
static void straighten(const char *file, char *out, size_t size)
{
	size_t n = 0;

	while (*file && n + 1 < size) {
		size_t len = strcspn(file + 1, "/") + 1;

		if (len == 3 && !strncmp(file, "/..", 3)) {
			while (n && out[--n] != '/')
				;
		} else if (len != 2 || strncmp(file, "/.", 2)) {
			if (len > size - 1 - n)
				len = size - 1 - n;
			memcpy(out + n, file, len);
			n += len;
		}
		file += len;
	}
	out[n] = '\0';
}

bool runtime_header(const char *file)
{
	char straight[512];

	if (begins_with_one(file, directories) || strstr(file, "/rustlib/src/rust/library/"))
		return true;
	if (*file != '/' || !strstr(file, "/../"))
		return false;
	straighten(file, straight, sizeof straight);
	return begins_with_one(straight, directories);
}
