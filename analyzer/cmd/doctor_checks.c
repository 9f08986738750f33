#include "analyzer/sandbox/sandbox.h"
#include "analyzer/cmd/doctor.h"

#include "analyzer/cmd/show.h"
#include "analyzer/launch.h"

#include <cpuid.h>
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <z3.h>

/* Room for a recording of a few minutes. */
#define LOW_DISK (2ull << 30)
#define LOW_MAPS 65530

/* First line of a small file, "" when it cannot be read. */
static void first_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");

	buf[0] = 0;
	if (!f)
		return;
	if (!fgets(buf, (int)size, f))
		buf[0] = 0;
	fclose(f);
	buf[strcspn(buf, "\n")] = 0;
}

static long number_in(const char *path, long missing)
{
	char buf[64], *end;

	first_line(path, buf, sizeof buf);
	long v = strtol(buf, &end, 10);
	return end == buf ? missing : v;
}

/* ---- the processor ---- */

static void cpu_name(char name[49])
{
	unsigned regs[12] = { 0 };

	if ((unsigned)__get_cpuid_max(0x80000000, NULL) >= 0x80000004)
		for (unsigned i = 0; i < 3; i++)
			__get_cpuid(0x80000002 + i, &regs[4 * i], &regs[4 * i + 1],
				    &regs[4 * i + 2], &regs[4 * i + 3]);
	memcpy(name, regs, 48);
	name[48] = 0;
}

static bool leaf7(unsigned bit)
{
	unsigned a, b = 0, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> bit & 1;
}

static enum doctor_verdict look_cpu(struct strbuf *t)
{
	char name[49];
	bool avx2 = leaf7(5), avx512 = leaf7(16);

	cpu_name(name);
	strbuf_fmt(t, "%s, %ld online", name + strspn(name, " "), sysconf(_SC_NPROCESSORS_ONLN));
	if (avx512) {
		strbuf_str(t, "; AVX2, AVX-512. What uses AVX-512 here, glibc to begin with, is replayed "
			      "only by a processor that has it, too");
		return DOCTOR_OK;
	}
	strbuf_str(t, avx2 ? "; AVX2, no AVX-512: a recording that uses it is not replayed here" :
			     "; no AVX2: a recording that uses it is not replayed here");
	return DOCTOR_OK;
}

static enum doctor_verdict look_fsgsbase(struct strbuf *t)
{
	if (getauxval(AT_HWCAP2) & 2) {
		strbuf_str(t, "usable: the translator switches its context without system calls");
		return DOCTOR_OK;
	}
	strbuf_str(t, "not usable: arch_prctl is used instead, thread start is slower");
	return DOCTOR_LIMITED;
}

static enum doctor_verdict look_tsc(struct strbuf *t)
{
	unsigned a, b, c, d = 0;
	char source[64];
	bool invariant = __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1;

	first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
		   sizeof source);
	strbuf_fmt(t, "%sinvariant, the kernel keeps time with %s", invariant ? "" : "not ",
		   *source ? source : "an unknown source");
	if (invariant)
		return DOCTOR_OK;
	strbuf_str(t, ": timestamps of different processors may disagree; schedules are then "
		      "found from the path and the sync order alone, which takes longer");
	return DOCTOR_LIMITED;
}

static enum doctor_verdict look_counters(struct strbuf *t)
{
	strbuf_str(t, "not needed: csched uses neither perf nor hardware counters");
	return DOCTOR_OK;
}

/* ---- the system ---- */

static enum doctor_verdict look_kernel(struct strbuf *t)
{
	struct utsname u;

	if (uname(&u)) {
		strbuf_str(t, "unknown");
		return DOCTOR_LIMITED;
	}
	strbuf_fmt(t, "%s %s %s", u.sysname, u.release, u.machine);
	if (strcmp(u.machine, "x86_64")) {
		strbuf_str(t, ": csched is for x86-64 only");
		return DOCTOR_BAD;
	}
	return DOCTOR_OK;
}

static enum doctor_verdict look_libc(struct strbuf *t)
{
	strbuf_fmt(t, "glibc %s (%s)", gnu_get_libc_version(), gnu_get_libc_release());
	return DOCTOR_OK;
}

static enum doctor_verdict look_low_memory(struct strbuf *t)
{
	long min = number_in("/proc/sys/vm/mmap_min_addr", -1);

	strbuf_fmt(t, "vm.mmap_min_addr %ld: programs linked low can be replayed in place%s", min,
		   min > 65536 ? " only above it" : "");
	return min > 65536 ? DOCTOR_LIMITED : DOCTOR_OK;
}

static enum doctor_verdict look_maps(struct strbuf *t)
{
	long max = number_in("/proc/sys/vm/max_map_count", 0);

	strbuf_fmt(t, "vm.max_map_count %ld", max);
	if (max >= LOW_MAPS)
		return DOCTOR_OK;
	strbuf_str(t, ": each recorded thread needs a few mappings; programs with thousands of "
		      "threads may not fit");
	return DOCTOR_LIMITED;
}

static enum doctor_verdict look_core(struct strbuf *t)
{
	char pattern[256];

	first_line("/proc/sys/kernel/core_pattern", pattern, sizeof pattern);
	strbuf_fmt(t, "core_pattern '");
	term_text(t, pattern, strlen(pattern));
	strbuf_str(t, "': core dumps come as without csched and are not needed");
	return DOCTOR_OK;
}

static enum doctor_verdict look_disk(struct strbuf *t)
{
	struct statvfs v;

	if (access(".", W_OK)) {
		strbuf_str(t, "the current directory is not writable: give csched run --dir DIR");
		return DOCTOR_LIMITED;
	}
	if (statvfs(".", &v)) {
		strbuf_str(t, "the current directory's file system does not answer");
		return DOCTOR_LIMITED;
	}
	uint64_t free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
	char *size = show_size(free_bytes);

	strbuf_fmt(t, "%s free here", size);
	free(size);
	if (free_bytes >= LOW_DISK)
		return DOCTOR_OK;
	strbuf_str(t, ": recording stops (the program does not) when it is used up");
	return DOCTOR_LIMITED;
}

static enum doctor_verdict look_limits(struct strbuf *t)
{
	struct rlimit size, files;

	if (getrlimit(RLIMIT_FSIZE, &size) || getrlimit(RLIMIT_NOFILE, &files)) {
		strbuf_str(t, "unknown");
		return DOCTOR_LIMITED;
	}
	strbuf_fmt(t, "%" PRIu64 " descriptors", (uint64_t)files.rlim_cur);
	if (size.rlim_cur == RLIM_INFINITY) {
		strbuf_str(t, ", files of any size");
		return DOCTOR_OK;
	}
	char *text = show_size(size.rlim_cur);

	strbuf_fmt(t, ", files up to %s: a stream of the trace ends there", text);
	free(text);
	return DOCTOR_LIMITED;
}

/* ---- the tools ---- */

static enum doctor_verdict look_shim(struct strbuf *t)
{
	char *path;
	err_t e = launch_find_shim(&path);

	if (e) {
		strbuf_str(t, e->msg);
		err_free(e);
		return DOCTOR_BAD;
	}
	strbuf_str(t, path);
	free(path);
	return DOCTOR_OK;
}

static enum doctor_verdict look_z3(struct strbuf *t)
{
	unsigned major, minor, build, revision;

	Z3_get_version(&major, &minor, &build, &revision);
	strbuf_fmt(t, "Z3 %u.%u.%u", major, minor, build);
	return DOCTOR_OK;
}

static enum doctor_verdict look_ptrace(struct strbuf *t)
{
	long scope = number_in("/proc/sys/kernel/yama/ptrace_scope", 0);

	strbuf_fmt(t, "yama ptrace_scope %ld: ", scope);
	if (scope < 2 || !geteuid()) {
		strbuf_str(t, "a debugger can run `csched replay --native` programs");
		return DOCTOR_OK;
	}
	strbuf_str(t, "gdb cannot be used with `csched replay --native`; csched itself does not "
		      "need ptrace");
	return DOCTOR_LIMITED;
}

static enum doctor_verdict look_sandbox(struct strbuf *t)
{
	bool good;
	char *text = sandbox_probe(&good);

	strbuf_str(t, text);
	free(text);
	return good ? DOCTOR_OK : DOCTOR_BAD;
}

static enum doctor_verdict look_debuginfod(struct strbuf *t)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	void *lib = dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL);

	if (lib)
		dlclose(lib);
	if (urls && *urls && lib) {
		strbuf_fmt(t, "asked for missing debug information (%s)", urls);
		return DOCTOR_OK;
	}
	strbuf_fmt(t, "not used: %s. Modules without debug information are named by symbol or "
		      "offset only",
		   lib ? "DEBUGINFOD_URLS is not set" : "libdebuginfod is not installed");
	return DOCTOR_OK;
}

const struct doctor_check doctor_checks[] = {
	{ "processor", look_cpu },
	{ "fsgsbase", look_fsgsbase },
	{ "tsc", look_tsc },
	{ "counters", look_counters },
	{ "kernel", look_kernel },
	{ "libc", look_libc },
	{ "shim", look_shim },
	{ "record sync", doctor_try_sync },
	{ "record path", doctor_try_path },
	{ "solver", look_z3 },
	{ "sandbox", look_sandbox },
	{ "low memory", look_low_memory },
	{ "mappings", look_maps },
	{ "disk", look_disk },
	{ "limits", look_limits },
	{ "core dumps", look_core },
	{ "ptrace", look_ptrace },
	{ "debuginfod", look_debuginfod },
};
const unsigned doctor_ncheck = sizeof doctor_checks / sizeof *doctor_checks;
