/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code that runs as the confined analyzer: whatever it tries, it gets nothing worth having. */
#include "analyzer/sandbox/sandbox.h"
#include "common/door.h"
#include "common/newfile.h"
#include "common/vec.h"
#include "tests/lib/check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define GOT 3    /* status of who got what he must not get */
#define NOTHING 0

static char dir[] = "/tmp/csched-sandbox.XXXXXX";
static pid_t outside;

/* What hostile machine code would do: no libc in between. */
static long sys(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

#define SYS(nr, ...) SYS_(nr, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define SYS_(nr, a, b, c, d, e, f, ...) sys(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* A guest that ignores SIGSYS must not get further by that. */
static void ignore_traps(void)
{
	signal(SIGSYS, SIG_IGN);
}

static int try_file(const char *path, int flags)
{
	long fd = SYS(SYS_openat, AT_FDCWD, path, flags, 0600);

	return fd >= 0 ? GOT : NOTHING;
}

static int read_secret(void *arg)
{
	(void)arg;
	return try_file("secret", O_RDONLY);
}

static int read_etc(void *arg)
{
	(void)arg;
	return try_file("/etc/passwd", O_RDONLY) | try_file("/proc/self/mem", O_RDONLY) | try_file("/proc/self/maps", O_RDONLY);
}

static int write_file(void *arg)
{
	(void)arg;
	return try_file("victim", O_WRONLY | O_TRUNC) | try_file("made", O_WRONLY | O_CREAT) | try_file("victim", O_RDWR);
}

static int open_by_handle(void *arg)
{
	(void)arg;
	uint64_t how[3] = { 0 };

	return SYS(SYS_open, "secret", O_RDONLY) >= 0 || SYS(SYS_openat2, AT_FDCWD, "secret", how, sizeof how) >= 0 ? GOT : NOTHING;
}

static int core_dump(void *arg)
{
	(void)arg;
	return try_file("core", O_RDONLY);
}

static int ask_for_it(void *arg)
{
	static const enum door_kind kinds[] = { DOOR_TRACE, DOOR_ELF, DOOR_SOURCE, DOOR_SOURCE_TAIL, DOOR_NEW, DOOR_WRITTEN, DOOR_REMOVE,
						DOOR_EXECUTABLE, DOOR_DEBUGINFO };
	static const char *const names[] = { "secret", "/etc/passwd", "../secret", "t/../secret", "t/link", "t/..", "victim", "../victim",
					     "/proc/self/mem", "", "failing-1/../../victim", "fingerprint/../../victim" };

	(void)arg;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (door_open(kinds[k], names[i]) >= 0)
				return GOT;
	return NOTHING;
}

static int from_door(void *arg)
{
	char byte;
	int fd = door_open(DOOR_TRACE, "t/stream"), temp = door_open(DOOR_TEMP, "");

	(void)arg;
	if (fd < 0 || read(fd, &byte, 1) != 1 || byte != 'x' || write(fd, "y", 1) >= 0)
		return 1;
	if (temp < 0 || write(temp, "x", 1) != 1 || pread(temp, &byte, 1, 0) != 1)
		return 2;
	return SYS(SYS_open, "/bin/true", O_RDONLY) >= 0 ? NOTHING : 4; /* as libdw opens its files: ELF files come in */
}

static err_t hello(FILE *f, void *arg)
{
	(void)arg;
	fputs("hello\n", f);
	return NULL;
}

static int keeps(void *arg)
{
	err_t kept = newfile_write("t/failing.schedule", NEWFILE_DERIVED, 0666, hello, NULL);
	err_t held = newfile_write("out", NEWFILE_GIVEN, 0666, hello, NULL);
	err_t other = newfile_write("victim", NEWFILE_GIVEN, 0666, hello, NULL);

	(void)arg;
	newfile_remove("t/alternate.schedule");
	return kept || held ? 1 : other ? NOTHING : GOT;
}

static int run_program(void *arg)
{
	char *argv[] = { "sh", "-c", "touch made", NULL };

	(void)arg;
	SYS(SYS_execve, "/bin/sh", argv, NULL);
	return NOTHING;
}

static int run_ignoring(void *arg)
{
	ignore_traps();
	return run_program(arg);
}

static int connects(void *arg)
{
	(void)arg;
	return SYS(SYS_socket, AF_INET, SOCK_STREAM, 0) >= 0 || SYS(SYS_socket, AF_UNIX, SOCK_STREAM, 0) >= 0 ? GOT : NOTHING;
}

static int forks(void *arg)
{
	(void)arg;
	long pid = SYS(SYS_clone, SIGCHLD);

	if (!pid)
		SYS(SYS_exit_group, 0);
	return pid > 0 ? GOT : NOTHING;
}

static int namespaces(void *arg)
{
	(void)arg;
	return SYS(SYS_clone, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWUSER, 0) > 0 ? GOT : NOTHING;
}

static int unshares(void *arg)
{
	(void)arg;
	return SYS(SYS_unshare, CLONE_NEWUSER) >= 0 ? GOT : NOTHING;
}

static int signals(void *arg)
{
	(void)arg;
	return SYS(SYS_kill, outside, 0) >= 0 ? GOT : NOTHING;
}

static int traces(void *arg)
{
	(void)arg;
	return SYS(SYS_ptrace, PTRACE_ATTACH, outside) >= 0 ? GOT : NOTHING;
}

static int writes_memory(void *arg)
{
	struct iovec v = { &outside, sizeof outside };

	(void)arg;
	return SYS(SYS_process_vm_writev, outside, &v, 1, &v, 1) >= 0 ? GOT : NOTHING;
}

static int types_for_the_user(void *arg)
{
	(void)arg;
	return SYS(SYS_ioctl, 1, 0x5412 /* TIOCSTI */, "x") >= 0 ? GOT : NOTHING;
}

static int x32(void *arg)
{
	(void)arg;
	return SYS(0x40000000 | SYS_open, "secret", O_RDONLY) >= 0 ? GOT : NOTHING;
}

/* int $0x80: another table of numbers. 5 is open, 11 execve there. */
static int old_gate(void *arg)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long result;

	(void)arg;
	strcpy(low, "secret");
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(5), "b"(low), "c"(O_RDONLY), "d"(0) : "memory");
	return result >= 0 ? GOT : NOTHING;
}

static int raises_limit(void *arg)
{
	(void)arg;
	struct rlimit more = { 1ull << 40, 1ull << 40 };

	return SYS(SYS_prlimit64, 0, RLIMIT_FSIZE, &more, 0) >= 0 ? GOT : NOTHING;
}

static int unlinks(void *arg)
{
	(void)arg;
	return SYS(SYS_unlink, "victim") >= 0 || SYS(SYS_rename, "victim", "moved") >= 0 ? GOT : NOTHING;
}

static int uring(void *arg)
{
	char params[256] = "";

	(void)arg;
	return SYS(SYS_io_uring_setup, 4, params) >= 0 ? GOT : NOTHING;
}

static int writable_code(void *arg)
{
	long page = SYS(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	(void)arg;
	if (page < 0 || SYS(SYS_mprotect, page, 4096, PROT_READ | PROT_EXEC))
		return 1; /* what the machine does */
	return SYS(SYS_mmap, 0, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1) >= 0 ||
			       !SYS(SYS_mprotect, page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) ||
			       SYS(SYS_pkey_mprotect, page, 4096, PROT_WRITE | PROT_EXEC, -1) >= 0 ?
		       GOT : NOTHING;
}

static const struct attack {
	const char *what;
	int (*work)(void *);
} attacks[] = {
	{ "read a file of the user's", read_secret }, { "read /etc and /proc", read_etc }, { "write a file", write_file },
	{ "open by other calls", open_by_handle }, { "read a core dump", core_dump }, { "ask the process outside for it", ask_for_it },
	{ "run a program", run_program }, { "run a program, traps ignored", run_ignoring }, { "connect", connects }, { "fork", forks },
	{ "make a namespace by clone", namespaces }, { "make a namespace", unshares }, { "signal the process outside", signals },
	{ "trace it", traces }, { "write its memory", writes_memory }, { "type on the user's terminal", types_for_the_user },
	{ "x32 calls", x32 }, { "calls by int 0x80", old_gate }, { "raise a limit", raises_limit }, { "remove or rename a file", unlinks },
	{ "use io_uring", uring }, { "have a page that is writable and executable", writable_code },
};

static int run_quietly(int (*work)(void *), const struct sandbox_limits *l)
{
	struct sandbox_options o = { .command = "test", .limits = *l };
	int saved = dup(2), null = open("/dev/null", O_WRONLY);

	fflush(stderr);
	dup2(null, 2);
	int status = sandbox_run(&o, work, NULL);
	fflush(stderr);
	dup2(saved, 2);
	close(saved);
	close(null);
	return status;
}

static void put(const char *path, const char *text, size_t n)
{
	FILE *f = fopen(path, "w");

	fwrite(text, 1, n, f);
	fclose(f);
}

static bool holds(const char *path, const char *text)
{
	char buf[100] = "";
	FILE *f = fopen(path, "r");

	if (f) {
		size_t n = fread(buf, 1, sizeof buf - 1, f);

		buf[n] = 0;
		fclose(f);
	}
	return f && !strcmp(buf, text);
}

static void try_attacks(void)
{
	for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
		int status = run_quietly(attacks[i].work, &(struct sandbox_limits){ 0 });

		CHECK(status != GOT && status != 1, "confined code cannot %s (status %d)", attacks[i].what, status);
	}
	CHECK(access("made", F_OK) && holds("victim", "mine") && holds("secret", "hunter2"), "no file was made, changed or removed");
}

static void *in_thread(void *arg)
{
	*(int *)arg = read_secret(NULL);
	return NULL;
}

static int thread_reads(void *arg)
{
	int got = GOT;
	pthread_t t;

	(void)arg;
	if (pthread_create(&t, NULL, in_thread, &got))
		return 1;
	pthread_join(t, NULL);
	return got;
}

static int too_much_memory(void *arg)
{
	(void)arg;
	for (int i = 0; i < 1000; i++) {
		char *p = malloc(16u << 20);

		if (!p)
			return NOTHING;
		memset(p, 1, 16u << 20);
	}
	return GOT;
}

static int too_large_file(void *arg)
{
	char block[4096] = "";
	int fd = door_open(DOOR_TEMP, "");

	(void)arg;
	signal(SIGXFSZ, SIG_IGN);
	for (int i = 0; i < 1000; i++)
		if (write(fd, block, sizeof block) < 0)
			return NOTHING;
	return GOT;
}

static int never_ends(void *arg)
{
	(void)arg;
	for (;;)
		poll(NULL, 0, 1000);
	return GOT;
}

static int crashes(void *arg)
{
	(void)arg;
	raise(SIGSEGV);
	return NOTHING;
}

static int says_seven(void *arg)
{
	(void)arg;
	return ERR_NOANSWER;
}

int main(void)
{
	static const char core[64] = "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\4";
	bool good;

	outside = getpid();
	if (!mkdtemp(dir) || chdir(dir))
		return 1;
	put("secret", "hunter2", 7);
	put("victim", "mine", 4);
	put("core", core, sizeof core);
	mkdir("t", 0777);
	put("t/stream", "x", 1);
	put("t/alternate.schedule", "old", 3);
	symlink("../secret", "t/link");
	door_grant("t");
	try_attacks();
	CHECK(run_quietly(from_door, &(struct sandbox_limits){ 0 }) == NOTHING, "the trace, a temporary file and ELF files come in by the door");
	CHECK(!newfile_hold("out", NEWFILE_GIVEN, 0666) && run_quietly(keeps, &(struct sandbox_limits){ 0 }) == NOTHING &&
	      holds("out", "hello\n") && holds("t/failing.schedule", "hello\n") && access("t/alternate.schedule", F_OK),
	      "files that were to be written are, and no others");
	CHECK(run_quietly(thread_reads, &(struct sandbox_limits){ 0 }) == NOTHING, "threads are confined as well");
	CHECK(run_quietly(too_much_memory, &(struct sandbox_limits){ .memory = 256u << 20 }) == NOTHING, "memory has a limit");
	CHECK(run_quietly(too_large_file, &(struct sandbox_limits){ .file_size = 1u << 20 }) == NOTHING, "files have one");
	CHECK(run_quietly(never_ends, &(struct sandbox_limits){ .seconds = 0.2 }) == ERR_NOANSWER, "and time");
	CHECK(run_quietly(crashes, &(struct sandbox_limits){ 0 }) == ERR_INTERNAL, "a crash inside is an internal error outside");
	CHECK(run_quietly(says_seven, &(struct sandbox_limits){ 0 }) == ERR_NOANSWER, "a status comes through");
	char *text = sandbox_probe(&good);
	CHECK(good && strstr(text, "seccomp"), "what is in force: %s", text);
	free(text);
	if (chdir("/"))
		return 1;
	char *rm = xasprintf("rm -rf %s", dir);
	CHECK(!system(rm), "cleaned up");
	free(rm);
	CHECK_END();
}
