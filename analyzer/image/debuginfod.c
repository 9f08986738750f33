#include "analyzer/image/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

typedef void *begin_fn(void);
typedef void end_fn(void *client);
typedef int find_fn(void *client, const unsigned char *id, int n, char **path);

/* libdebuginfod drags curl behind it, so it is taken only when it is there. */
static struct {
	bool tried;
	bool silent; /* a server let us wait in vain */
	begin_fn *begin;
	end_fn *end;
	find_fn *find[2]; /* by enum img_fetch */
} lib;

static bool load(void)
{
	static const char *const symbol[2] = {
		[IMG_FETCH_EXECUTABLE] = "debuginfod_find_executable",
		[IMG_FETCH_DEBUGINFO] = "debuginfod_find_debuginfo",
	};

	if (!lib.tried) {
		void *h = dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL);

		lib.tried = true;
		if (h) {
			lib.begin = (begin_fn *)dlsym(h, "debuginfod_begin");
			lib.end = (end_fn *)dlsym(h, "debuginfod_end");
			lib.find[0] = (find_fn *)dlsym(h, symbol[0]);
			lib.find[1] = (find_fn *)dlsym(h, symbol[1]);
		}
	}
	return lib.begin && lib.end && lib.find[0] && lib.find[1];
}

int img_debuginfod(enum img_fetch what, const uint8_t *id, size_t n, char **path)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	int fd = -ENOENT;

	*path = NULL;
	if (!urls || !*urls || lib.silent || !load())
		return -ENOENT;
	/* The client waits 90 s for a silent server, three times over: once is enough. */
	setenv("DEBUGINFOD_RETRY_LIMIT", "0", 0);
	if (isatty(STDERR_FILENO))
		setenv("DEBUGINFOD_PROGRESS", "1", 0);
	void *client = lib.begin();

	if (client) {
		fd = lib.find[what](client, id, (int)n, path);
		lib.end(client);
	}
	if (fd < 0) {
		free(*path);
		*path = NULL;
	}
	lib.silent = fd == -ETIME || fd == -ETIMEDOUT;
	return lib.silent ? -ETIME : fd;
}
