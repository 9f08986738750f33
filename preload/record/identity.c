/*
 * Who recorded what, where: TRC_KV records at the head of the process stream.
 * Keys: csched, mode, program, args, cwd, pid, ppid, process, host, kernel, cpu, options,
 * event_pc, tsc_start, mono_start, wall_start (nanoseconds), tsc_hz.
 */
#include "preload/raw.h"
#include "preload/record/stream.h"
#include "preload/shim.h"

#include <fcntl.h>
#include <sys/utsname.h>
#include <time.h>

/* Under the lock. */
static void kv(const char *key, const char *value, size_t len)
{
	size_t klen = strlen(key);
	size_t size = sizeof(struct trc_kv) + klen + len;
	struct trc_kv *r = rec_begin(&rec_process, size);

	rec_identity_keep(key, value, len);
	if (r) {
		r->key_len = (uint32_t)klen;
		r->value_len = (uint32_t)len;
		memcpy(r->data, key, klen);
		memcpy(r->data + klen, value, len);
		rec_commit(&rec_process, r, TRC_KV, 0, size);
	}
}

void rec_kv(const char *key, const char *value, size_t len)
{
	uint64_t saved;

	rec_lock(&saved);
	kv(key, value, len);
	rec_unlock(&saved);
}

void rec_kv_num(const char *key, uint64_t value)
{
	TEXT(t, 32);

	text_num(&t, (int64_t)value);
	rec_kv(key, t.s, t.n);
}

static void kv_num(const char *key, uint64_t value)
{
	TEXT(t, 32);

	text_num(&t, (int64_t)value);
	kv(key, t.s, t.n);
}

static void kv_str(const char *key, const char *value)
{
	kv(key, value, strlen(value));
}

/* CPUID's brand string: 48 bytes from three leaves, or fewer: each can take 4 us in a virtual machine. */
static void cpu_name(char name[49])
{
	uint32_t *w = (uint32_t *)name;

	memset(name, 0, 49);
	for (uint32_t leaf = 0; leaf < 3 && (!leaf || name[16 * leaf - 1]); leaf++, w += 4) {
		uint32_t a = 0x80000002 + leaf, b, c = 0, d;

		__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
		w[0] = a;
		w[1] = b;
		w[2] = c;
		w[3] = d;
	}
}

/*
 * The command line as the kernel tells it, or while the program has not begun, from where that is: a file of
 * /proc costs 10 us each time.
 */
static char *const *started_with;

void rec_started_with(char *const *argv)
{
	started_with = argv;
}

long rec_command_line(char *buf, size_t size)
{
	struct raw_text t = { buf, 0, size };

	if (!started_with || !*started_with)
		return raw_slurp("/proc/thread-self/cmdline", buf, size);
	for (char *const *arg = started_with; *arg; arg++)
		text_strn(&t, *arg, strlen(*arg) + 1);
	return (long)t.n;
}

static uint64_t tsc_start, mono_start;

/*
 * The rate of the timestamp counter, from the two clocks read at the start and now. In path mode it is
 * written twice, and the last counts: behind the snapshot it is right to 1 part in 10,000; the first, a few
 * system calls after the start, to 1 in 1,000.
 */
void rec_identity_clock(void)
{
	uint64_t hz = rec_tsc_hz();

	if (hz)
		rec_kv_num("tsc_hz", hz);
}

uint64_t rec_tsc_hz(void)
{
	uint64_t ns = raw_nsec(CLOCK_MONOTONIC) - mono_start;
	uint64_t ticks = raw_tsc() - tsc_start;

	return ns ? (uint64_t)((unsigned __int128)ticks * 1000000000ull / ns) : 0;
}

void rec_identity(const char *options)
{
	static char buf[32768] RAW_LARGE;
	static struct utsname uts;
	uint64_t saved;

	rec_lock(&saved);
	mono_start = raw_nsec(CLOCK_MONOTONIC);
	tsc_start = raw_tsc();
	kv_str("csched", CSCHED_VERSION);
	kv_str("mode", shim_opt.mode == SHIM_MODE_PATH ? "path" : "sync");
	long n = raw(SYS_readlink, "/proc/thread-self/exe", buf, sizeof buf);

	kv("program", buf, n > 0 ? (size_t)n : 0);
	n = rec_command_line(buf, sizeof buf);
	rec_started_with(NULL);
	kv("args", buf, n > 0 ? (size_t)n : 0); /* each argument ends in a NUL */
	n = raw(SYS_getcwd, buf, sizeof buf);
	kv("cwd", buf, n > 1 ? (size_t)n - 1 : 0);
	kv_num("pid", shim.pid);
	kv_num("ppid", (uint64_t)raw(SYS_getppid));
	kv_str("process", shim.process);
	raw(SYS_uname, &uts);
	kv_str("host", uts.nodename);
	kv_str("kernel", uts.release);
	cpu_name(buf);
	kv_str("cpu", buf);
	kv_str("options", options ? options : "");
	kv_num("event_pc", (uint64_t)shim_event);
	kv_num("tsc_start", tsc_start);
	kv_num("mono_start", mono_start);
	kv_num("wall_start", raw_nsec(CLOCK_REALTIME));
	rec_unlock(&saved);
}
