/*
 * Take-over: from the shim's constructor the program goes on inside the
 * translator. Everything before (the dynamic linker, other constructors) ran
 * natively; the snapshot shows what it left behind.
 */
#include "preload/translate/emit.h"
#include "preload/translate/epoch.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

bool tr_link_init(void);
void tr_give_back(void);
void tr_vdso_patch(void);
extern uint8_t tr_features;

#ifndef PR_GET_AUXV
#define PR_GET_AUXV 0x41555856 /* since Linux 6.4 */
#endif

static uint64_t auxv(uint64_t type)
{
	uint64_t buf[64];
	long n = raw(SYS_prctl, PR_GET_AUXV, buf, sizeof buf, 0, 0);

	if (raw_failed(n))
		n = raw_slurp("/proc/self/auxv", (char *)buf, sizeof buf);
	if (n > (long)sizeof buf)
		n = sizeof buf;
	for (long i = 0; i + 16 <= n; i += 16)
		if (buf[i / 8] == type)
			return buf[i / 8 + 1];
	return 0;
}

uint64_t tr_auxv(uint64_t type);
uint64_t tr_auxv(uint64_t type)
{
	return auxv(type);
}

/*
 * State the kernel lets a process use only on request (AMX tiles): its signal frames
 * leave it out until then, so ours do, too. The tiles themselves stay where they are.
 */
#define XCR0_ON_REQUEST (3ull << 17)

/* The standard layout of an XSAVE area. CPUID can take 6 us in a virtual machine: asked once. */
static void look_at_xsave(struct tr_machine *m)
{
	uint32_t a, b, c, d;

	m->xsave_size = 576;
	for (unsigned i = 2; i < 63; i++) {
		if (!(m->xcr0 >> i & 1))
			continue;
		__cpuid_count(13, i, a, b, c, d);
		if (b + a > m->xsave_size)
			m->xsave_size = b + a;
		if (i < TR_XSAVE_COMPONENTS)
			m->xsave_at[i] = b;
	}
	m->avx_offset = m->xsave_at[2];
	m->zmm_offset = m->xsave_at[6];
}

static void look_at_machine(void)
{
	struct tr_machine *m = &tr_machine;
	uint32_t a, b, c, d;

	__cpuid(1, a, b, c, d);
	bool osxsave = c >> 27 & 1, avx = c >> 28 & 1;
	if (osxsave) {
		uint32_t lo, hi;

		__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
		m->xcr0 = ((uint64_t)hi << 32 | lo) & ~XCR0_ON_REQUEST;
		look_at_xsave(m);
	} else {
		m->xsave_size = 512;
	}
	m->avx = avx && (m->xcr0 & 6) == 6;
	m->avx512 = m->avx && (m->xcr0 & 0xe0) == 0xe0;
	__cpuid_count(7, 0, a, b, c, d);
	m->bmi2 = b >> 8 & 1;
	m->fsgsbase = (b & 1) && (auxv(AT_HWCAP2) & 2);
	tr_features = m->fsgsbase ? 8 : 0;
	m->event_pc = (uint64_t)shim_event;
}

static const char *why_not;

const char *tr_why_not(void)
{
	return why_not;
}

/* Where the recorded state has what: "XCR0 COMPONENT:OFFSET ...". */
void tr_record_machine(void)
{
	TEXT(layout, 200);

	rec_kv_num("event_pc", tr_machine.event_pc);
	rec_kv_num("handlers_fresh", 1);
	if (!tr_machine.xcr0)
		return;
	text_hex(&layout, tr_machine.xcr0);
	for (unsigned i = 2; i < TR_XSAVE_COMPONENTS; i++) {
		if (!(tr_machine.xcr0 >> i & 1))
			continue;
		text_str(&layout, " ");
		text_num(&layout, i);
		text_str(&layout, ":");
		text_num(&layout, tr_machine.xsave_at[i]);
	}
	rec_kv("xsave", layout.s, layout.n);
}

/*
 * Address space is limited (ulimit -v): what we reserve, most of which is never used, must be a small part of what the
 * program has, or it would get less than it gets alone.
 */
#define RESERVED (160ull << 20) /* what a program of middle size needs */
#define RESERVED_PART 4
static bool fits(void)
{
	struct rlimit limit;
	char statm[64];
	uint64_t pages = 0;

	if (raw(SYS_prlimit64, 0, RLIMIT_DATA, NULL, &limit) ||
	    limit.rlim_cur < RESERVED_PART * RESERVED)
		return false;
	if (raw(SYS_prlimit64, 0, RLIMIT_AS, NULL, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return true;
	if (raw_slurp("/proc/self/statm", statm, sizeof statm) < 1)
		return false;
	for (const char *p = statm; *p >= '0' && *p <= '9'; p++)
		pages = 10 * pages + (uint64_t)(*p - '0');
	return limit.rlim_cur >= pages * RAW_PAGE + RESERVED_PART * RESERVED;
}

bool tr_available(void)
{
	static int known; /* 0 not asked, 1 yes, 2 no */

	if (known)
		return known == 1;
	known = 2;
	look_at_machine();
	if (tr_machine.xsave_size > TR_XSAVE_MAX)
		why_not = "this processor has more register state than csched knows";
	else if (!fits())
		why_not = "address space or data are limited (ulimit -v, -d)";
	else if (!tr_cache_init() || !tr_link_init())
		why_not = "no memory for the translator";
	else if (raw_failed(raw(SYS_faccessat, AT_FDCWD, "/proc/thread-self/maps", R_OK)))
		why_not = "/proc/self/maps cannot be read";
	else
		known = 1;
	if (why_not)
		tr_give_back();
	return known == 1;
}

/* After a detach %gs is the program's again, and threads may be born unseen. */
static struct shim_thread *self_hook(void)
{
	if (__builtin_expect(!tr.detached, 1))
		return tr_self()->thread;
	uint32_t tid = (uint32_t)raw(SYS_gettid);
	struct shim_thread *t = shim_thread_by_tid(tid);

	return t ? t : shim_thread_new(shim_thread_at(0), tid);
}

/* glibc registered this thread's area; the kernel would write cpu numbers into it unseen. */
#define RSEQ_SIZE 32u
#define RSEQ_SIGNATURE 0x53053053u
uint64_t tr_libc_rseq(void)
{
	extern const ptrdiff_t __rseq_offset __attribute__((weak));
	extern const unsigned __rseq_size __attribute__((weak));
	uint64_t fs = 0;

	if (!&__rseq_size || !__rseq_size)
		return 0;
	raw(SYS_arch_prctl, ARCH_GET_FS, &fs);
	return fs + (uint64_t)__rseq_offset;
}

static void rseq_unregister(struct tr_ctx *c)
{
	uint64_t at = tr_libc_rseq();

	if (!at || raw(SYS_rseq, at, RSEQ_SIZE, 1, RSEQ_SIGNATURE))
		return;
	c->rseq.at = at, c->rseq.len = RSEQ_SIZE, c->rseq.signature = RSEQ_SIGNATURE;
}

/* Runs on the native stack with the application's registers in the context. */
void tr_started(struct tr_ctx *c);
void tr_started(struct tr_ctx *c)
{
	rseq_unregister(c);
	tr_vdso_patch();
	tr_snapshot(TRC_STREAM_MEMORY);
	rec_identity_clock(); /* once more: the first was too soon to be exact */
	tr_record_start(c);
	tr_epochs_start(c);
	c->in_call = false;
	tr_go_on(c);
}

/*
 * The word that the kernel clears when this thread ends: others may join the main thread, too. Without
 * checkpoint support the kernel does not tell; then glibc's thread control block is looked at, which holds
 * the thread's number there.
 */
#define TCB_TID 720
static uint64_t own_clear_tid(void)
{
	uint64_t at = 0, fs = 0;
	uint32_t tid = 0;

	if (!raw(SYS_prctl, PR_GET_TID_ADDRESS, &at))
		return at;
	raw(SYS_arch_prctl, ARCH_GET_FS, &fs);
	if (fs && tr_copy(&tid, (void *)(fs + TCB_TID), sizeof tid) && tid == (uint32_t)raw(SYS_gettid))
		return fs + TCB_TID;
	return 0;
}

void tr_takeover(void)
{
	struct shim_thread *t = shim_self();

	if (!t || !tr_available())
		return;
	tr_lock();
	struct tr_ctx *c = tr_ctx_new(t);
	tr_unlock();
	if (!c || !rec_open(&tr_frags_stream, TRC_STREAM_FRAGS, 0)) {
		/* Why there is no stream has been said. */
		if (c)
			shim_note(true, "no room for the fragments; recording synchronisation only");
		else
			shim_degrade("no memory for the translator; recording synchronisation only");
		return;
	}
	raw(SYS_arch_prctl, ARCH_GET_GS, &c->native_gs);
	c->clear_tid = own_clear_tid();
	t->translator = c;
	tr_path_open(c);
	tr_record_machine();
	tr_ctx_attach(c);
	tr_signals_init(c);
	if (tr_machine.avx)
		__asm__ volatile("vmovdqu %%ymm15, %0" : "=m"(c->vec15));
	else
		__asm__ volatile("movdqu %%xmm15, %0" : "=m"(c->vec15));
	tr_set_gs((uint64_t)c);
	shim_self_hook = self_hook;
	tr_start_here(c);
}
