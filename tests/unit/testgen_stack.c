/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks in the formats people have them in: functions, places, modules, the kind of failure. */
#include "analyzer/testgen/stack.h"
#include "tests/lib/check.h"

#include <string.h>

struct expected {
	const char *what, *text;
	enum stack_kind kind;
	size_t threads, frames; /* of the first thread */
	const char *function, *file;
	unsigned line;
	const char *module;
	uint64_t offset;
};

static const struct expected table[] = {
	{ "gdb", "Program terminated with signal SIGSEGV, Segmentation fault.\n"
	  "#0  0x00005555 in is_loggable (f=0x0, level=2) at src/logger.c:44\n44\t\treturn x;\n"
	  "#1  log_record (l=0x1, level=2) at src/logger.c:50\n#2  0x7f in start () from /lib/libc.so.6\n",
	  STACK_CRASH, 1, 3, "is_loggable", "src/logger.c", 44, NULL, 0 },
	{ "gdb with broken lines", "SIGABRT\n#0  0x1 in find (v=0x1, x=2)\n    at vector.c:42\n", STACK_ABORT, 1, 1,
	  "find", "vector.c", 42, NULL, 0 },
	{ "gdb, C++", "#0  0x55 in chart::Series::at<int>(std::vector<int> const&) const (this=0x0, v=...) at s.cc:9\n",
	  STACK_UNKNOWN, 1, 1, "chart::Series::at<int>", "s.cc", 9, NULL, 0 },
	{ "gdb, an operator", "#0  0x55 in Call::operator() (this=0x0) at s.cc:9\n", STACK_UNKNOWN, 1, 1,
	  "Call::operator()", "s.cc", 9, NULL, 0 },
	{ "gdb, all threads", "Thread 2 (Thread 0x7f (LWP 12)):\n#0  __lll_lock_wait (futex=0x1) at l.c:1\n"
	  "#1  pool_add (p=0x1) at pool.c:5\n\nThread 1 (Thread 0x7e (LWP 11)):\n#0  __lll_lock_wait (futex=0x2) at l.c:1\n"
	  "#1  pool_close (p=0x1) at pool.c:9\n", STACK_DEADLOCK, 2, 2, "__lll_lock_wait", "l.c", 1, NULL, 0 },
	{ "gdb shows where it is first", "Program terminated with signal SIGSEGV.\n#0  0x1 in pop (q=0x1) at q.c:9\n9\tx\n"
	  "[Current thread is 1 (Thread 0x7f (LWP 12))]\n#0  0x1 in pop (q=0x1) at q.c:9\n9\tx\n#0  0x1 in pop (q=0x1) at q.c:9\n"
	  "#1  0x2 in run () at m.c:1\n", STACK_CRASH, 1, 2, "pop", "q.c", 9, NULL, 0 },
	{ "two wait for one that runs", "TID 1:\n#0  0x1 __lll_lock_wait\n#1  0x2 q_put\nTID 2:\n#0  0x1 __lll_lock_wait\n"
	  "#1  0x2 q_put\nTID 3:\n#0  0x3 q_pop\n#1  0x4 run\n", STACK_UNKNOWN, 3, 2, "__lll_lock_wait", NULL, 0, NULL, 0 },
	{ "a hang that was stopped by hand", "Thread 1 \"app\" received signal SIGINT, Interrupt.\n"
	  "Thread 3 (Thread 0x7f (LWP 12)):\n#0  __lll_lock_wait ()\n#1  put ()\n\nThread 2 (Thread 0x7e (LWP 11)):\n"
	  "#0  __lll_lock_wait ()\n#1  get ()\n\nThread 1 (Thread 0x7d (LWP 10)):\n#0  compute ()\n", STACK_DEADLOCK, 3, 2,
	  "__lll_lock_wait", NULL, 0, NULL, 0 },
	{ "AddressSanitizer", "==12==ERROR: AddressSanitizer: heap-use-after-free on address 0x60\nREAD of size 8\n"
	  "    #0 0x55 in take /src/q.c:31:7\n    #1 0x56 in pop (/usr/lib/libq.so+0x11de) (BuildId: 12ab)\n\n"
	  "0x60 is located 0 bytes inside\nfreed by thread T2 here:\n    #0 0x7f in free asan.cpp:1\n    #1 0x7f in drop q.c:9\n",
	  STACK_FREED, 2, 2, "take", "/src/q.c", 31, NULL, 0 },
	{ "AddressSanitizer without symbols", "    #0 0x55  (/usr/lib/libq.so+0x11de)\n", STACK_UNKNOWN, 1, 1, NULL, NULL, 0,
	  "/usr/lib/libq.so", 0x11de },
	{ "ThreadSanitizer", "WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=1)\n"
	  "    #0 pthread_mutex_lock tsan.cpp:1 (t+0x1)\n    #1 pool_add pool.c:54:2 (libpool.so+0x12a0)\n", STACK_DEADLOCK, 1, 2,
	  "pthread_mutex_lock", "tsan.cpp", 1, "t", 1 },
	{ "valgrind", "==7== Invalid read of size 8\n==7==    at 0x4846F2: first_char (range.c:56)\n"
	  "==7==    by 0x4846F9: one (in /usr/lib/libx.so.1)\n==7==  Address 0x52 is 0 bytes inside a block of size 16 free'd\n"
	  "==7==    at 0x48: free (vg.c:1)\n==7==    by 0x49: move (range.c:64)\n", STACK_FREED, 2, 2, "first_char", "range.c", 56,
	  NULL, 0 },
	{ "valgrind, behind a block", "==7== Invalid write of size 1\n==7==    at 0x4846F2: put (buf.c:9)\n"
	  "==7==  Address 0x52 is 0 bytes after a block of size 16 alloc'd\n==7==    at 0x48: malloc (vg.c:1)\n", STACK_OVERRUN, 2, 1, "put",
	  "buf.c", 9, NULL, 0 },
	{ "ThreadSanitizer, a race", "WARNING: ThreadSanitizer: data race (pid=1)\n  Write of size 8 at 0x7b by thread T2:\n"
	  "    #0 put q.c:5:2 (q+0x1)\n\n  Previous read of size 8 at 0x7b by thread T1:\n    #0 get q.c:9:2 (q+0x2)\n", STACK_RACE, 2, 1,
	  "put", "q.c", 5, "q", 1 },
	{ "glibc", "./libvector.so(vector_find+0x2f)[0x7f0102]\n./libvector.so(+0x11de) [0x7f0103]\n", STACK_UNKNOWN, 1, 2,
	  "vector_find", NULL, 0, "./libvector.so", 0 },
	{ "libunwind", "0x400958: (take+0xe)\n0x400988: (pop+0x1e)\n", STACK_UNKNOWN, 1, 2, "take", NULL, 0, NULL, 0 },
	{ "systemd-coredump", "        Signal: 11 (SEGV)\nStack trace of thread 4711:\n"
	  "#0  0x00007f12 is_loggable (liblogger.so + 0x11de)\n#1  0x00007f13 n/a (liblogger.so + 0x122d)\n", STACK_CRASH, 1, 2,
	  "is_loggable", NULL, 0, "liblogger.so", 0x11de },
	{ "eu-stack", "PID 12 - core\nTID 13:\n#0  0x00007f12 axis_tick - libaxis.so\n    /src/axis.c:60:2\n", STACK_UNKNOWN, 1, 1,
	  "axis_tick", "/src/axis.c", 60, "libaxis.so", 0 },
};

static err_t parse(const char *text, struct stack *out)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	err_t e = stack_parse(f, "text", out);

	fclose(f);
	return e;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

int main(void)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct expected *x = &table[i];
		struct stack s;
		err_t e = parse(x->text, &s);

		if (!CHECK(!e, "%s: it is a stack", x->what)) {
			err_free(e);
			continue;
		}
		const struct stack_frame *f = &s.threads.v[0].frames.v[0];
		bool good = s.kind == x->kind && s.threads.n == x->threads && s.threads.v[0].frames.n == x->frames &&
			    same_text(f->function, x->function) && same_text(f->file, x->file) && f->line == x->line &&
			    same_text(f->module, x->module) && f->offset == x->offset;
		if (!CHECK(good, "%s: frames, place and kind are read", x->what))
			printf("  %s: kind %d, %zu threads, %zu frames, %s at %s:%u in %s+0x%lx\n", x->what, s.kind, s.threads.n,
			       s.threads.v[0].frames.n, f->function, f->file, f->line, f->module, (long)f->offset);
		stack_free(&s);
	}
	struct stack s;
	err_t e = parse("Dear developers,\n\nit crashed.\n", &s);
	CHECK(e && e->code == ERR_INPUT && strstr(e->msg, "Dear developers") && strstr(e->msg, "of 3"),
	      "what is no stack: its first line and how many there are");
	err_free(e);
	stack_free(&s);
	CHECK_END();
}
