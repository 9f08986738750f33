/* Modules from /proc/self/maps, read again when a pc is in none that is known. */
#include "preload/control/control.h"

#include "preload/maps.h"
#include "preload/raw.h"

#include <fcntl.h>

#define MAX_MODULES 256

static struct ctl_module modules[MAX_MODULES] RAW_LARGE;
static unsigned nmodules;

static bool starts_with(const char *s, const char *prefix)
{
	while (*prefix)
		if (*s++ != *prefix++)
			return false;
	return true;
}

/*
 * Delays inside system libraries find little and cost much. But half of C++'s containers (the nodes of lists and maps,
 * strings) is compiled into its library: what is done there is done to the program's data.
 */
static bool is_own(const char *path)
{
	static const char *const not_ours[] = { "/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "[" };
	const char *name = path;

	for (const char *p = path; *p; p++)
		if (*p == '/')
			name = p + 1;
	if (starts_with(name, "libstdc++.") || starts_with(name, "libc++."))
		return true;
	for (unsigned i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
		if (starts_with(path, not_ours[i]))
			return false;
	return !starts_with(name, "libcsched");
}

static uint64_t hex(const char **p)
{
	uint64_t v = 0;

	for (;; (*p)++) {
		char c = **p;

		if (c >= '0' && c <= '9')
			v = v * 16 + (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v * 16 + (uint64_t)(c - 'a' + 10);
		else
			return v;
	}
}

/* A fixed-address executable is linked where it lies. */
static uint64_t bias_of(uint64_t start)
{
	const uint8_t *elf = (const uint8_t *)start;
	uint16_t type;

	memcpy(&type, elf + 16, sizeof type);
	return elf[0] == 0x7f && elf[1] == 'E' && type == 2 ? 0 : start;
}

static void add_line(char *line, void *first)
{
	const char *p = line;
	uint64_t start = hex(&p);

	if (*(bool *)first)
		nmodules = 0;
	*(bool *)first = false;
	p++;
	uint64_t end = hex(&p);
	bool readable = p[1] == 'r';

	p += 6;
	uint64_t offset = hex(&p);
	const char *path = p;
	while (*path && *path != '/' && *path != '[')
		path++;
	if (*path != '/')
		return;
	const char *name = path;
	for (const char *q = path; *q; q++)
		if (*q == '/')
			name = q + 1;
	uint32_t hash = ctl_module_hash(name);
	struct ctl_module *last = nmodules ? &modules[nmodules - 1] : NULL;
	if (last && last->hash == hash && offset != 0) {
		last->end = end;
		return;
	}
	if (offset || !readable || nmodules == MAX_MODULES)
		return;
	modules[nmodules++] = (struct ctl_module){ start, end, bias_of(start), hash, is_own(path) };
}

static void read_maps(void)
{
	static char buf[MAPS_BUFFER] RAW_LARGE;
	bool first = true;

	maps_read(buf, add_line, &first);
}

static const struct ctl_module *find(uint64_t pc)
{
	for (unsigned i = 0; i < nmodules; i++)
		if (pc >= modules[i].start && pc < modules[i].end)
			return &modules[i];
	return NULL;
}

/* Called while the translator holds its lock: one at a time. */
const struct ctl_module *ctl_module_at(uint64_t pc)
{
	static uint64_t missed; /* generated code has no module: do not look again and again */
	const struct ctl_module *m = find(pc);

	if (!m && missed != pc >> 12) {
		read_maps();
		m = find(pc);
		if (!m)
			missed = pc >> 12;
	}
	return m;
}
