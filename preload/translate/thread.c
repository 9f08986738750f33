/* Contexts: one per thread, with its native stack and the stack of our signal handlers. */
#include "preload/translate/epoch.h"
#include "preload/translate/hooks.h"

#include <asm/prctl.h>
#include <linux/futex.h>
#include <sys/mman.h>

#define NATIVE_STACK (64u << 10)
#define SIGNAL_STACK (64u << 10)
/* One page more than it needs: see tr_ctx_last_page(). */
#define CTX_SPACE (((sizeof(struct tr_ctx) + RAW_PAGE - 1) & ~(RAW_PAGE - 1)) + RAW_PAGE)

void (*ctl_thread_start)(struct tr_ctx *c);
uint8_t tr_features; /* bit 3: wrgsbase may be used; read by entry.S */

struct tr_ctx *tr_self(void)
{
	struct tr_ctx *c;

	__asm__("movq %%gs:0, %0" : "=r"(c));
	return c;
}

/*
 * Room for contexts is mapped for several at a time, twice as many each time: what is ours is
 * a short list then, and a program with few threads gives few addresses away for it.
 */
#define CTX_LEN (CTX_SPACE + RAW_PAGE + NATIVE_STACK + RAW_PAGE + SIGNAL_STACK)
#define SLAB_MAX 64u
static struct {
	uint8_t *next;
	unsigned left, made;
} slab;

static uint8_t *ctx_room(void)
{
	if (!slab.left) {
		unsigned n = slab.made < 1 ? 1 : slab.made > SLAB_MAX ? SLAB_MAX : slab.made;

		slab.next = tr_alloc(n * CTX_LEN);
		if (!slab.next && n > 1)
			slab.next = tr_alloc((n = 1) * CTX_LEN);
		slab.left = slab.next ? n : 0;
	}
	if (!slab.left)
		return NULL;
	slab.left--;
	slab.made++;
	slab.next += CTX_LEN;
	return slab.next - CTX_LEN;
}

/* Everything in one piece: context, guard, native stack, guard, signal stack. */
static struct tr_ctx *ctx_map(void)
{
	size_t len = CTX_LEN;
	uint8_t *p = ctx_room();

	if (!p)
		return NULL;
	struct tr_ctx *c = (struct tr_ctx *)p;

	raw(SYS_mprotect, p + CTX_SPACE, RAW_PAGE, PROT_NONE);
	raw(SYS_mprotect, p + CTX_SPACE + RAW_PAGE + NATIVE_STACK, RAW_PAGE, PROT_NONE);
	c->map = p;
	c->map_len = len;
	c->next = tr.contexts;
	__atomic_store_n(&tr.contexts, c, __ATOMIC_RELEASE);
	return c;
}

/* Contexts whose threads end, in the order in which they said so. Under tr_lock(). */
static struct tr_ctx *leaving, **leaving_end = &leaving;

void tr_ctx_leaving(struct tr_ctx *c)
{
	tr_lock();
	c->next_leaving = NULL;
	*leaving_end = c;
	leaving_end = &c->next_leaving;
	tr_unlock();
}

void tr_ctx_forget_leaving(void)
{
	leaving = NULL;
	leaving_end = &leaving;
}

/* One that the kernel has finished with; it does not in the order in which they left. */
#define LEAVING_LOOK 8u
static struct tr_ctx *ctx_left(void)
{
	struct tr_ctx **at = &leaving;

	for (unsigned i = 0; i < LEAVING_LOOK && *at; i++, at = &(*at)->next_leaving) {
		struct tr_ctx *c = *at;

		if (__atomic_load_n(&c->alive, __ATOMIC_ACQUIRE))
			continue;
		*at = c->next_leaving;
		if (leaving_end == &c->next_leaving)
			leaving_end = at;
		return c;
	}
	return NULL;
}

/* A context whose thread the kernel has finished with, or a new one. Under tr_lock(). */
struct tr_ctx *tr_ctx_new(struct shim_thread *t)
{
	struct tr_ctx *c = ctx_left();

	if (!c)
		c = ctx_map();
	if (!c)
		return NULL;
	struct tr_ctx *next = c->next;
	void *map = c->map;
	size_t len = c->map_len;
	uint8_t *scratch = c->scratch;

	memset(c, 0, sizeof *c);
	c->next = next;
	c->map = map;
	c->map_len = len;
	c->scratch = scratch;
	c->self = c;
	c->stack = (uint64_t)map + CTX_SPACE + RAW_PAGE + NATIVE_STACK - 64;
	c->thread = t;
	c->in_call = true; /* notes its generation before it runs, like after a call */
	c->alt.flags = 2; /* SS_DISABLE */
	__atomic_store_n(&c->alive, 1, __ATOMIC_RELEASE);
	return c;
}

uint8_t *tr_ctx_last_page(struct tr_ctx *c)
{
	return (uint8_t *)c->map + CTX_SPACE - RAW_PAGE;
}

/* The calling thread runs with this context from now on. */
void tr_ctx_attach(struct tr_ctx *c)
{
	struct tr_stack st = {
		.sp = (uint64_t)c->map + c->map_len - SIGNAL_STACK,
		.size = SIGNAL_STACK,
	};

	raw(SYS_sigaltstack, &st, 0);
	/* A vfork child's parent looks at the context once more, after the kernel has let go of it. */
	if (!c->own_process || !c->clear_tid)
		raw(SYS_set_tid_address, c->vfork_child ? NULL : &c->alive);
}

static uint64_t segment_base(int code)
{
	uint64_t base = 0;

	raw(SYS_arch_prctl, code, &base);
	return base;
}

/*
 * The application's extended state in the standard layout, 64-byte aligned
 * area of tr_machine.xsave_size bytes; the hardware holds it all but register 15.
 */
uint32_t tr_xsave(struct tr_ctx *c, void *area)
{
	uint8_t *a = area;
	uint32_t lo = (uint32_t)tr_machine.xcr0, hi = (uint32_t)(tr_machine.xcr0 >> 32);

	memset(a, 0, tr_machine.xsave_size);
	if (!tr_machine.xcr0) {
		__asm__ volatile("fxsave64 %0" : "=m"(*(uint8_t(*)[512])a));
		memcpy(a + 400, c->vec15, 16);
		return 512;
	}
	__asm__ volatile("xsave64 %0" : "+m"(*(uint8_t(*)[4096])a) : "a"(lo), "d"(hi) : "memory");
	uint64_t *in_use = (uint64_t *)(a + 512);

	memcpy(a + 400, c->vec15, 16);
	*in_use |= 2;
	if (tr_machine.avx) {
		memcpy(a + tr_machine.avx_offset + 240, c->vec15 + 16, 16);
		*in_use |= 4;
	}
	if (tr_machine.avx512) {
		memcpy(a + tr_machine.zmm_offset + 480, c->vec15 + 32, 32);
		*in_use |= 64;
	}
	return tr_machine.xsave_size;
}

void tr_record_start(struct tr_ctx *c)
{
	struct rec_stream *s = &c->thread->rec;
	size_t size = sizeof(struct trc_start) + tr_machine.xsave_size;
	_Alignas(64) uint8_t area[TR_XSAVE_MAX];
	struct trc_start *r = rec_begin(s, size);

	if (!r)
		return;
	memcpy(r->regs, c->regs, sizeof c->regs);
	r->regs[TRC_RIP] = c->pc;
	r->regs[TRC_RFLAGS] = c->rflags;
	r->fs_base = c->fs_base = segment_base(ARCH_GET_FS);
	r->gs_base = c->native_gs;
	r->tsc = raw_tsc();
	r->clear_tid = c->clear_tid;
	r->xsave_len = tr_xsave(c, area);
	memcpy(r->xsave, area, r->xsave_len);
	rec_commit(s, r, TRC_START, 0, size);
}

/* First thing in a new thread, on its native stack; entry.S then resumes. */
void tr_thread_main(struct tr_ctx *c);
void tr_thread_main(struct tr_ctx *c)
{
	tr_ctx_attach(c);
	if (c->vfork_child)
		shim_thread_tid(c->thread, (uint32_t)raw(SYS_gettid));
	/* The parent's record of the clone comes first: it holds what the kernel wrote. */
	while (!c->vfork_child && !__atomic_load_n(&c->go, __ATOMIC_ACQUIRE))
		raw(SYS_futex, &c->go, FUTEX_WAIT_PRIVATE, 0, 0);
	c->epoch = rec_epoch;
	if (rec_epoch)
		tr_epoch_turn(c); /* threads that come and go fill no chunk */
	tr_record_start(c);
	__atomic_store_n(&c->in_call, false, __ATOMIC_SEQ_CST);
	tr_note_generation(c, c->pc);
	if (ctl_thread_start)
		ctl_thread_start(c);
	raw(SYS_rt_sigprocmask, 2, &c->kernel_mask, 0, 8);
	tr_go_on(c);
}
