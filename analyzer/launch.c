#include "analyzer/launch.h"

#include "common/vec.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- the shim ---- */

static err_t usable(char *path, char **out)
{
	if (strpbrk(path, ": ")) {
		err_t e = err_new(ERR_INTERNAL,
				  "%s: LD_PRELOAD cannot name a path with ':' or ' ' in it", path);

		free(path);
		return e;
	}
	*out = path;
	return NULL;
}

err_t launch_find_shim(char **path)
{
	static const char *const places[] = { "libcsched.so", "../lib/csched/libcsched.so" };
	const char *given = getenv("CSCHED_LIB");
	char exe[PATH_MAX], real[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

	*path = NULL;
	if (given && *given) {
		if (!realpath(given, real))
			return err_errno("$CSCHED_LIB: %s", given);
		return usable(xstrdup(real), path);
	}
	exe[n > 0 ? n : 0] = 0;
	char *slash = strrchr(exe, '/');
	for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
		char *try = xasprintf("%.*s/%s", (int)(slash - exe), exe, places[i]);
		bool found = realpath(try, real);

		free(try);
		if (found)
			return usable(xstrdup(real), path);
	}
	return err_new(ERR_INTERNAL, "libcsched.so is neither beside %s nor in ../lib/csched/",
		       exe);
}

char *launch_preload(const char *shim)
{
	const char *before = getenv("LD_PRELOAD");

	return before && *before ? xasprintf("%s:%s", shim, before) : xstrdup(shim);
}

void launch_options_given(struct strbuf *options)
{
	const char *given = getenv("CSCHED_OPTIONS");

	if (given && *given)
		strbuf_fmt(options, "%s%s", options->n ? ":" : "", given);
}

void launch_option(struct strbuf *options, const char *key, const char *value)
{
	strbuf_fmt(options, "%s%s=", options->n ? ":" : "", key);
	for (; *value; value++) {
		if (*value == ':' || *value == '\\')
			strbuf_char(options, '\\');
		strbuf_char(options, *value);
	}
}

err_t launch_set_environment(const char *shim, const char *options)
{
	const char *before = getenv("CSCHED_OPTIONS");
	char *preload = launch_preload(shim);
	char *all = xasprintf("%s%s%s", before ? before : "",
			      before && *before && *options ? ":" : "", options);
	bool good = !setenv("LD_PRELOAD", preload, 1) &&
		    (!*all || !setenv("CSCHED_OPTIONS", all, 1));

	free(preload);
	free(all);
	return good ? NULL : err_new(ERR_INTERNAL, "out of memory");
}

char *launch_trace_dir(void)
{
	const char *s = getenv("CSCHED_OPTIONS");
	struct strbuf dir = { 0 };

	/* As the shim reads it: the last one wins. */
	while (s && *s) {
		bool ours = !strncmp(s, "dir=", 4);

		if (ours) {
			s += 4;
			dir.n = 0;
		}
		for (; *s && *s != ':'; s++) {
			s += *s == '\\' && s[1];
			if (ours)
				strbuf_char(&dir, *s);
		}
		s += *s == ':';
	}
	if (!dir.n)
		strbuf_char(&dir, '.');
	return dir.s;
}

char *launch_absolute(const char *path)
{
	char here[PATH_MAX];

	if (*path == '/' || !getcwd(here, sizeof here))
		return xstrdup(path);
	return xasprintf("%s/%s", strcmp(here, "/") ? here : "", path);
}

char *launch_relative(const char *path)
{
	char here[PATH_MAX];
	size_t n = getcwd(here, sizeof here) ? strlen(here) : 0;

	if (n && !strcmp(path, here))
		return xstrdup(".");
	return xstrdup(n && !strncmp(path, here, n) && path[n] == '/' ? path + n + 1 : path);
}

int launch_exec(const char *who, char **command)
{
	execvp(command[0], command);
	int status = errno == ENOENT ? 127 : 126;

	fprintf(stderr, "%s: %s: %s\n", who, command[0], strerror(errno));
	return status;
}

/* ---- what it cannot ride in, or only so ---- */

/* As execvp searches; malloc'd, NULL when there is none. */
static char *find_program(const char *name)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return xstrdup(name);
	for (path = path ? path : "/bin:/usr/bin"; *path;) {
		size_t n = strcspn(path, ":");
		char *try = xasprintf("%.*s%s%s", (int)n, path, n ? "/" : "", name);

		if (!access(try, X_OK))
			return try;
		free(try);
		path += n + (path[n] == ':');
	}
	return NULL;
}

/* The interpreter on a script's first line, malloc'd; NULL: not a script. */
static char *interpreter(const char *head, size_t n)
{
	size_t from = 2, to;

	if (n < 3 || memcmp(head, "#!", 2))
		return NULL;
	while (from < n && (head[from] == ' ' || head[from] == '\t'))
		from++;
	for (to = from; to < n && !strchr(" \t\n", head[to]); to++)
		;
	return xasprintf("%.*s", (int)(to - from), head + from);
}

/* The loader the program asks for, malloc'd: "" when it cannot be told, NULL when it asks for none. */
static char *loader_of(int fd, const Elf64_Ehdr *h)
{
	Elf64_Phdr p;
	char name[PATH_MAX] = "";

	for (unsigned i = 0; i < h->e_phnum; i++) {
		if (pread(fd, &p, sizeof p, (off_t)(h->e_phoff + i * sizeof p)) != sizeof p)
			return xstrdup(""); /* not ours to judge: the kernel will */
		if (p.p_type != PT_INTERP)
			continue;
		if (p.p_filesz >= sizeof name || pread(fd, name, p.p_filesz, (off_t)p.p_offset) < 0)
			name[0] = 0;
		return xstrdup(name);
	}
	return NULL;
}

/* Another C library's loader would end the program over a library made for glibc. */
static char *loader_obstacle(int fd, const char *path, const Elf64_Ehdr *h, bool *alone)
{
	char *loader = loader_of(fd, h), *why = NULL;
	const char *base = loader && strrchr(loader, '/') ? strrchr(loader, '/') + 1 : loader;

	if (!loader) {
		why = xasprintf("%s is statically linked: libcsched.so cannot be loaded into it", path);
	} else if (*base && strncmp(base, "ld-linux", 8) && strncmp(base, "ld-2.", 5)) {
		why = xasprintf("%s is not linked with glibc (its loader is %s): libcsched.so cannot be "
				"loaded into it", path, loader);
		*alone = true;
	}
	free(loader);
	return why;
}

static char *elf_obstacle(int fd, const char *path, const Elf64_Ehdr *h, bool *alone)
{
	struct stat st;

	if (h->e_ident[EI_CLASS] == ELFCLASS32)
		return xasprintf("%s is a 32-bit program; libcsched.so is for x86-64", path);
	if (h->e_machine != EM_X86_64)
		return xasprintf("%s is not an x86-64 program", path);
	if (!fstat(fd, &st) && ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
				(st.st_mode & S_ISGID && st.st_gid != getegid())))
		return xasprintf("%s is set-uid or set-gid: the kernel keeps libraries like "
				 "libcsched.so out of it", path);
	if (geteuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return xasprintf("%s has file capabilities: the kernel keeps libraries like "
				 "libcsched.so out of it", path);
	return loader_obstacle(fd, path, h, alone);
}

static char *file_obstacle(const char *path, int depth, bool *alone)
{
	union {
		Elf64_Ehdr elf;
		char bytes[256];
	} head = { .bytes = "" };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd >= 0 ? read(fd, &head, sizeof head) : -1;
	char *why = NULL;
	char *script = n > 0 && depth < 4 ? interpreter(head.bytes, (size_t)n) : NULL;

	if (script)
		why = file_obstacle(script, depth + 1, alone);
	else if (n >= (ssize_t)sizeof head.elf && !memcmp(head.bytes, ELFMAG, SELFMAG))
		why = elf_obstacle(fd, path, &head.elf, alone);
	free(script);
	if (fd >= 0)
		close(fd);
	return why;
}

/* Does the program's own list of libraries have one whose name begins so? By its .dynstr. */
static bool needs_library(int fd, const char *name)
{
	Elf *elf = elf_version(EV_CURRENT) != EV_NONE ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	Elf_Scn *section = NULL;
	bool found = false;

	while (elf && !found && (section = elf_nextscn(elf, section))) {
		GElf_Shdr h;
		Elf_Data *d;

		if (gelf_getshdr(section, &h) && h.sh_type == SHT_STRTAB && h.sh_flags & SHF_ALLOC &&
		    (d = elf_getdata(section, NULL)) && d->d_buf)
			found = memmem(d->d_buf, d->d_size, name, strlen(name));
	}
	elf_end(elf);
	return found;
}

void launch_suit(const char *name)
{
	const char *before = getenv("ASAN_OPTIONS");
	char *path = find_program(name);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

	if (fd >= 0 && needs_library(fd, "libasan.so")) {
		char *all = xasprintf("%s%sverify_asan_link_order=0", before ? before : "",
				      before && *before ? ":" : "");

		setenv("ASAN_OPTIONS", all, 1);
		free(all);
	}
	if (fd >= 0)
		close(fd);
	free(path);
}

char *launch_obstacle(const char *name, bool *alone)
{
	char *path = find_program(name);
	char *why;

	*alone = false;
	why = path ? file_obstacle(path, 0, alone) : NULL;

	free(path);
	return why;
}
