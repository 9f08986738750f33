/* Finding files: stripped, split off, moved, replaced, missing; and their bytes. */
#include "common/door.h"
#include "common/vec.h"
#include "tests/unit/image_live.h"

#include <dlfcn.h>
#include <sys/auxv.h>

static bool has_note(struct img_set *set, const char *part)
{
	const char *const *note;
	size_t n = img_notes(set, &note);

	for (size_t i = 0; i < n; i++)
		if (strstr(note[i], part))
			return true;
	return false;
}

/* The program alone, at a made-up address, recorded with the build-id of id_from. */
static err_t add(struct img_set *set, const char *path, const char *id_from, const char *packed,
		 struct img_module **m)
{
	uint8_t id[64];
	char *hex = img_build_id_of_file(id_from);
	struct img_mapping map = { 0x7000000000, 0x7000010000, 0, PROT_READ };
	struct img_module_desc d = { .path = path, .build_id = id, .maps = &map, .n_maps = 1,
				     .build_id_len = unhex(hex, id, sizeof id),
				     .packed_file = packed };

	free(hex);
	return img_add_module(set, &d, m);
}

static bool has_line(struct img_set *set, struct img_module *m)
{
	struct img_frame f;
	uint64_t at;

	img_module_has_debug(m);
	return img_address_of(set, "exported", &at) && img_frames(set, at, &f, 1) == 1 &&
	       same(f.function, "exported") && f.line > 0;
}

static void check_finding(void)
{
	struct img_set *set = img_set_new();
	struct img_module *m;
	err_t e = add(set, "./prog", "prog", NULL, &m);

	CHECK(!e && img_module_has_code(m) && has_line(set, m), "file at its recorded path");
	img_set_free(set);

	set = img_set_new();
	e = add(set, "/nowhere/prog", "prog", "packed", &m);
	CHECK(!e && same(img_module_file(m), "packed") && has_line(set, m),
	      "file inside a packed trace");
	img_set_free(set);

	set = img_set_new();
	e = add(set, "./gone (deleted)", "prog", NULL, &m);
	CHECK(!e && !img_module_has_code(m) && has_note(set, "gone"), "missing file leaves a note");
	struct img_frame f;

	CHECK(img_frames(set, 0x7000001234, &f, 1) == 1 && strstr(f.function, "gone") &&
	      strstr(f.function, "+0x1234"), "missing module is known by name");
	img_set_free(set);

	set = img_set_new();
	setenv("CSCHED_DEBUG_PATH", "/nonexistent:moved", 1);
	e = add(set, "/nowhere/prog", "prog", NULL, &m);
	CHECK(!e && same(img_module_file(m), "moved/prog"), "file below CSCHED_DEBUG_PATH");
	unsetenv("CSCHED_DEBUG_PATH");
	img_set_free(set);
}

static void check_mismatch(void)
{
	struct img_set *set = img_set_new();
	struct img_module *m;
	err_t e = add(set, "./other", "prog", NULL, &m);
	char *want = img_build_id_of_file("prog"), *found = img_build_id_of_file("other");

	CHECK(e && e->code == ERR_INPUT, "another build is an error");
	CHECK(e && strstr(e->msg, "other:") && strstr(e->msg, want) && strstr(e->msg, found),
	      "it names module, expected and found build-id: %s", e ? e->msg : "");
	CHECK(m && !img_module_has_code(m) && same(img_module_name(m), "other"),
	      "its code is not used");
	uint8_t b;

	CHECK(!img_read(set, 0x7000000000, &b, 1), "its bytes are not read");
	err_free(e);
	free(want);
	free(found);
	img_set_free(set);

	/* A good copy elsewhere makes up for a replaced file. */
	set = img_set_new();
	setenv("CSCHED_DEBUG_PATH", "moved", 1);
	run("cp prog moved/other");
	e = add(set, "./other", "prog", NULL, &m);
	CHECK(!e && !strncmp(img_module_file(m), "moved/", 6), "the right build is found elsewhere");
	unsetenv("CSCHED_DEBUG_PATH");
	img_set_free(set);

	set = img_set_new();
	e = add(set, "./noid", "noid", NULL, &m);
	CHECK(!e && img_module_has_code(m) && has_note(set, "could not be verified"),
	      "a module without build-id is taken, with a note");
	img_set_free(set);
}

static void check_separate_debug(void)
{
	struct img_set *set = img_set_new();
	struct img_module *m;
	err_t e = add(set, "./linked", "linked", NULL, &m);

	CHECK(!e && has_line(set, m) && img_module_has_debug(m), ".gnu_debuglink");
	img_set_free(set);

	set = img_set_new();
	setenv("CSCHED_DEBUG_PATH", "store", 1);
	e = add(set, "./stripped", "prog", NULL, &m);
	CHECK(!e && has_line(set, m), "debug file by build-id");
	img_set_free(set);

	set = img_set_new();
	e = add(set, "/nowhere/prog", "prog", NULL, &m);
	CHECK(!e && !img_module_has_code(m) && has_line(set, m),
	      "debug file alone still gives names and lines");
	unsetenv("CSCHED_DEBUG_PATH");
	img_set_free(set);
}

/* The client reads file:// as well: no server is needed. */
static void check_debuginfod(void)
{
	struct img_set *set = img_set_new();
	struct img_module *m;
	char url[512];
	void *client = dlopen("libdebuginfod.so.1", RTLD_LAZY);

	if (!client) {
		printf("skip debuginfod: the client library is not installed\n");
		img_set_free(set);
		return;
	}
	dlclose(client);
	run("id=$(readelf -n prog | sed -n 's/.*Build ID: //p'); mkdir -p server/buildid/$id && "
	    "cp stripped server/buildid/$id/executable && cp prog.debug server/buildid/$id/debuginfo");
	char *cwd = getcwd(NULL, 0);

	snprintf(url, sizeof url, "file://%s/server", cwd);
	setenv("DEBUGINFOD_CACHE_PATH", "./debuginfod-cache", 1);
	setenv("DEBUGINFOD_URLS", url, 1);
	err_t e = add(set, "/nowhere/prog", "prog", NULL, &m);

	CHECK(!e && img_module_has_code(m) && has_line(set, m), "debuginfod: code and lines");
	err_free(e);
	img_set_free(set);
	unsetenv("DEBUGINFOD_URLS");
	free(cwd);
}

/* Source text: newer than the program, it is shown with a warning. */
static void check_source(void)
{
	struct img_set *set = img_set_new();
	struct img_module *m;

	run("printf 'first\\r\\nsecond' > text.c && touch -d '2001-01-01' text.c && "
	    "mkdir -p tree/lib && echo 'int far;' > tree/lib/far.c && touch -d '2001-01-01' "
	    "tree/lib/far.c && echo new > new.c && touch -d '2100-01-01' new.c");
	err_free(add(set, "./prog", "prog", NULL, &m));
	CHECK(same(img_source_line(set, "text.c", 1), "first") &&
	      same(img_source_line(set, "text.c", 2), "second") &&
	      !img_source_line(set, "text.c", 3) && !img_source_line(set, "text.c", 0),
	      "source: lines");
	CHECK(!img_source_line(set, "/build/lib/far.c", 1), "source: missing");
	door_add_sources("/nonexistent");
	door_add_sources("tree");
	CHECK(same(img_source_line(set, "/build/proj/lib/far.c", 1), "int far;"),
	      "source: found below a directory that was named");
	CHECK(!has_note(set, "text.c"), "source: an old file needs no note");
	CHECK(same(img_source_line(set, "new.c", 1), "new") && has_note(set, "new.c"),
	      "source: a file newer than the program is noted");
	img_set_free(set);
}

/* The vdso has no file: its image comes with the trace. */
static void check_vdso(void)
{
	uint64_t at = getauxval(AT_SYSINFO_EHDR), found = 0;
	struct img_set *set = img_set_new();
	struct img_mapping map = { at, at + 8192, 0, PROT_READ | PROT_EXEC };
	struct img_module_desc d = { .path = "[vdso]", .maps = &map, .n_maps = 1,
				     .memory = (void *)at, .memory_size = 8192 };
	uint8_t code[16];

	if (!at) {
		printf("skip vdso: this kernel gives none\n");
	} else {
		CHECK(!img_add_module(set, &d, NULL) &&
		      img_address_of(set, "__vdso_clock_gettime", &found) && found > at &&
		      found < at + 8192, "vdso: symbols");
		CHECK(img_read(set, found, code, 16) && !memcmp(code, (void *)found, 16),
		      "vdso: code");
	}
	img_set_free(set);
}

static const char *function_at(struct img_set *set, uint64_t pc)
{
	struct img_frame f;

	return img_frames(set, pc, &f, 1) ? f.function : "";
}

static void check_stripped(void)
{
	struct live l;
	uint64_t pcs[32], at, got;
	size_t n;

	if (!CHECK(live_start(&l, "./stripped"), "stripped: runs"))
		return;
	n = img_unwind(l.set, &l.regs, &l.memory, pcs, 32);
	CHECK(n >= 5, "stripped: unwinds by .eh_frame (%zu frames)", n);
	CHECK(n && strstr(function_at(l.set, pcs[0]), "stripped+0x"), "stripped: module+offset");
	CHECK(has_note(l.set, "stripped: no debug information"), "stripped: a note says so");
	CHECK(img_address_of(l.set, "qsort@plt", &at) && img_module_at(l.set, at) ==
	      img_module_at(l.set, pcs[0]), "stripped: PLT entries have names");
	CHECK(same(function_at(l.set, at), "qsort@plt"), "stripped: also as frames (%s)",
	      function_at(l.set, at));
	/* -rdynamic: .dynsym survives stripping. */
	char *name = NULL;

	if (CHECK(img_address_of(l.set, "shared_count", &at), "stripped: .dynsym")) {
		name = img_symbol_text(l.set, at + 2);
		CHECK(same(name, "shared_count+0x2"), "stripped: symbol + offset (%s)", name);
	}
	free(name);
	CHECK(same(img_symbol(l.set, at, &got), "shared_count") && got == 0, "stripped: exact");
	live_end(&l);
}

static void check_bytes(void)
{
	struct live l;
	uint8_t file[64], memory[64];
	uint64_t code, constant, relocated;

	if (!CHECK(live_start(&l, "./prog"), "bytes: runs"))
		return;
	code = address(&l, "exported");
	constant = address(&l, "constant");
	relocated = address(&l, "relocated");
	live_read(&l.mem, code, memory, sizeof memory);
	CHECK(img_read(l.set, code, file, 16) && !memcmp(file, memory, 16), "bytes: code");
	CHECK(img_read(l.set, constant, file, 12) && !memcmp(file, "\1\0\0\0\2\0\0\0\3\0\0\0", 12),
	      "bytes: constants");
	CHECK(!img_read(l.set, address(&l, "shared_count"), file, 4), "bytes: no writable data");
	CHECK(!img_read(l.set, relocated, file, 8),
	      "bytes: nothing the dynamic linker writes, though it is mapped read-only");
	CHECK(!img_read(l.set, 0x1000, file, 1), "bytes: nothing where nothing is mapped");
	/* Code of libc across a page. */
	uint64_t page = (address(&l, "qsort") + 4095) & ~4095ull;

	live_read(&l.mem, page - 32, memory, sizeof memory);
	CHECK(img_read(l.set, page - 32, file, 64) && !memcmp(file, memory, 64),
	      "bytes: across pages");
	img_remove_range(l.set, page, page + 4096);
	CHECK(!img_read(l.set, page, file, 1) && !img_read(l.set, page - 1, file, 2) &&
	      img_read(l.set, page - 1, file, 1) && img_read(l.set, page + 4096, file, 1),
	      "bytes: not from an unmapped page, still around it");
	CHECK(img_module_at(l.set, page) == img_module_at(l.set, page - 1),
	      "names still know what was unmapped");
	live_end(&l);
}

/* Signals and callbacks: through libc, without its debug information if need be. */
static void check_unwinding(void)
{
	struct live l;
	uint64_t pcs[32];
	bool through_qsort = false, through_raise = false, in_main = false, in_exported = false;

	if (!CHECK(live_start(&l, "./prog"), "unwinding: runs"))
		return;
	size_t n = img_unwind(l.set, &l.regs, &l.memory, pcs, 32);

	for (size_t i = 0; i < n; i++) {
		const char *f = function_at(l.set, pcs[i]);

		through_qsort |= strstr(f, "sort") != NULL;
		in_exported |= same(f, "exported");
		in_main |= same(f, "main");
	}
	CHECK(through_qsort && in_exported && in_main, "unwinding: callback from libc");
	/* The stop, then the SIGUSR1 itself, then the stop in the handler. */
	live_go(&l);
	ptrace(PTRACE_CONT, l.pid, NULL, (void *)(long)SIGUSR1);
	waitpid(l.pid, NULL, 0);
	live_get_regs(&l);
	n = img_unwind(l.set, &l.regs, &l.memory, pcs, 32);
	CHECK(n && same(function_at(l.set, pcs[0]), "on_signal"), "unwinding: in the handler");
	in_main = false;
	for (size_t i = 0; i < n; i++) {
		through_raise |= strstr(function_at(l.set, pcs[i]), "raise") != NULL ||
				 strstr(function_at(l.set, pcs[i]), "pthread_kill") != NULL;
		in_main |= same(function_at(l.set, pcs[i]), "main");
	}
	CHECK(through_raise && in_main, "unwinding: through the signal to main (%zu frames)", n);

	/* A call through a bad pointer: rip is nowhere, the return address on the stack. */
	struct img_regs bad = l.regs;

	bad.r[IMG_RIP] = 0;
	n = img_unwind(l.set, &bad, &l.memory, pcs, 32);
	CHECK(n >= 1 && pcs[0] == 0, "unwinding: rip 0 is reported (%zu frames)", n);
	bad.r[IMG_RSP] = 0x10;
	CHECK(img_unwind(l.set, &bad, &l.memory, pcs, 32) == 1, "unwinding: no stack, one frame");
	live_end(&l);
}

static bool prepare(void)
{
	return live_build("gcc", "-g -O1 -rdynamic", "plain.c", "prog") &&
	       live_build("gcc", "-g -O2 -DOTHER -Wl,--build-id=0x0102030405060708", "plain.c",
			  "other") &&
	       live_build("gcc", "-g -O1 -Wl,--build-id=none", "plain.c", "noid") &&
	       run("mkdir -p moved store && cp prog moved/ && cp prog packed") &&
	       run("strip -o stripped prog && objcopy --only-keep-debug prog prog.debug && "
		   "strip -o linked noid && objcopy --only-keep-debug noid noid.debug && "
		   "objcopy --add-gnu-debuglink=noid.debug linked") &&
	       run("id=$(readelf -n prog | sed -n 's/.*Build ID: //p'); "
		   "mkdir -p store/.build-id/${id%%${id#??}} && "
		   "cp prog.debug store/.build-id/${id%%${id#??}}/${id#??}.debug");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	unsetenv("CSCHED_DEBUG_PATH");
	unsetenv("DEBUGINFOD_URLS");
	if (!CHECK(prepare(), "programs are built"))
		return 1;
	check_finding();
	check_mismatch();
	check_separate_debug();
	check_debuginfod();
	check_source();
	check_vdso();
	check_stripped();
	check_bytes();
	check_unwinding();
	CHECK_END();
}
