/*
 * Locked instructions in every form and size, with the registers that the translator needs for their tickets as address,
 * index and operand: what they leave in memory, registers and flags is summed up and printed, so it must be the same
 * with and without csched. Two threads, each on its own memory; on memory of both only sums that come out the same
 * in any order. At the end, locked instructions that fault: a handler looks at the registers.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#define ROUNDS 2000
#define THREADS 2

struct work {
	_Alignas(64) uint64_t cells[8];
	uint64_t sum, flags; /* which of these count */
};

static struct work works[THREADS];
static _Alignas(64) uint64_t shared[2];

struct registers {
	uint64_t a, b, c, d, s, flags;
};

static void note(struct work *w, const struct registers *r)
{
	const uint64_t all[] = { r->a, r->b, r->c, r->d, r->s, r->flags & w->flags, w->cells[3], w->cells[4] };

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		w->sum = (w->sum ^ all[i]) * 1099511628211u;
}

/* One of the registers is the cell's address, which is not the same in each run: it is taken out again. */
#define FORM(w, where, text, va, vb, vc, vd)                                                              \
	do {                                                                                              \
		struct registers r_ = { va, vb, vc, vd, (uint64_t)(w)->cells, 0 };                        \
		uint64_t *address_ = &r_.where;                                                           \
		*address_ = (uint64_t)((w)->cells + 3);                                                   \
		__asm__ volatile("xor %k5, %k5\n\tcmp $1, %5\n\t" text "\n\tpushfq\n\tpopq %5"               \
				 : "+a"(r_.a), "+b"(r_.b), "+c"(r_.c), "+d"(r_.d), "+S"(r_.s), "=&r"(r_.flags) \
				 :: "memory", "cc");                                                      \
		*address_ -= (uint64_t)((w)->cells + 3);                                                  \
		r_.s = 0;                                                                                 \
		note(w, &r_);                                                                             \
	} while (0)

#define SIZES(w, op, v)                                                      \
	FORM(w, c, "lock " op "b %%dl, (%%rcx)", 1, 2, 0, v);                 \
	FORM(w, c, "lock " op "w %%dx, (%%rcx)", 1, 2, 0, v);                 \
	FORM(w, d, "lock " op "l %%ecx, (%%rdx)", 1, 2, v, 0);                \
	FORM(w, d, "lock " op "q %%rcx, (%%rdx)", 1, 2, v, 0);                \
	FORM(w, b, "lock " op "q %%rcx, 8(%%rbx)", 1, 0, v, 3);               \
	FORM(w, b, "lock " op "q %%rdx, (%%rbx,%%rcx,8)", 1, 0, 1, v);        \
	FORM(w, b, "lock " op "b %%ch, (%%rbx)", 1, 0, v, 3);                 \
	FORM(w, c, "lock " op "b %%dh, 1(%%rcx)", 1, 2, 0, v);                \
	FORM(w, a, "lock " op "q %%rbx, (%%rax)", 0, v, 5, 6)

#define ALONE(w, op)                                                         \
	FORM(w, c, "lock " op "b (%%rcx)", 1, 2, 0, 4);                       \
	FORM(w, d, "lock " op "w (%%rdx)", 1, 2, 3, 0);                       \
	FORM(w, b, "lock " op "l (%%rbx,%%rdx,8)", 1, 0, 3, 1);               \
	FORM(w, a, "lock " op "q (%%rax)", 0, 2, 3, 4)

static void compare(struct work *w, uint64_t v)
{
	uint64_t is = w->cells[3];

	FORM(w, b, "lock cmpxchgq %%rdx, (%%rbx)", is, 0, 7, v);
	FORM(w, b, "lock cmpxchgq %%rcx, (%%rbx)", v, 0, is, 7);
	FORM(w, c, "lock cmpxchgl %%edx, (%%rcx)", v ^ 1, 2, 0, is);
	FORM(w, d, "lock cmpxchgw %%cx, (%%rdx)", is, 2, v, 0);
	FORM(w, b, "lock cmpxchgb %%ch, (%%rbx)", is, 0, v, 3);
	FORM(w, b, "lock cmpxchgb %%dl, (%%rbx,%%rcx,8)", is, 0, 1, v);
	FORM(w, s, "lock cmpxchg8b (%%rsi)", is, v, 3, 4);
	w->cells[3] = v;
	FORM(w, s, "lock cmpxchg8b (%%rsi)", (uint32_t)v, ~v, 5, v >> 32);
}

static void bits(struct work *w, uint64_t v)
{
	w->flags = 1; /* the others are not defined */
	FORM(w, c, "lock btsl %%edx, (%%rcx)", 1, 2, 0, v & 63);
	FORM(w, d, "lock btrq %%rcx, (%%rdx)", 1, 2, v & 63, 0);
	FORM(w, b, "lock btcl $5, (%%rbx)", 1, 0, 3, 4);
	w->flags = 0x8c5; /* AF is not defined behind xor */
}

static void *run(void *arg)
{
	struct work *w = arg;

	w->flags = 0x8c5; /* AF is not defined behind xor */
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t v = i * 0x9e3779b97f4a7c15u;

		SIZES(w, "add", v);
		SIZES(w, "sub", v);
		SIZES(w, "xor", v);
		SIZES(w, "xadd", v);
		SIZES(w, "xchg", v); /* locked anyway */
		ALONE(w, "inc");
		ALONE(w, "dec");
		ALONE(w, "neg");
		ALONE(w, "not");
		compare(w, v);
		bits(w, v);
		__asm__ volatile("lock addq %1, %0" : "+m"(shared[0]) : "r"(i) : "cc");
		uint64_t old = __atomic_load_n(&shared[1], __ATOMIC_RELAXED);

		while (!__atomic_compare_exchange_n(&shared[1], &old, old + v, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
	}
	return NULL;
}

static struct registers seen;

static void fault(int signal, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signal, (void)info;
	seen = (struct registers){ (uint64_t)g[REG_RAX], (uint64_t)g[REG_RBX], (uint64_t)g[REG_RCX], (uint64_t)g[REG_RDX],
				   (uint64_t)g[REG_RSI], (uint64_t)g[REG_EFL] & 0x8d5 };
	g[REG_RIP] += *(uint8_t *)g[REG_RIP] == 0xf0 && ((uint8_t *)g[REG_RIP])[2] == 0x0f ? 5 : 4;
}

#define FAULTS(text, va, vb, vc, vd)                                                                      \
	do {                                                                                              \
		uint64_t a = va, b = vb, c = vc, d = vd;                                                   \
		__asm__ volatile("cmp %%rax, %%rax\n\t" text : "+a"(a), "+b"(b), "+c"(c), "+d"(d) :: "memory", "cc"); \
		printf("%s: %lx %lx %lx %lx %lx\n", text, seen.a, seen.b - gone, seen.c, seen.d, seen.flags); \
	} while (0)

int main(void)
{
	struct sigaction sa = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO };
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, &works[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++)
		printf("%lx\n", works[i].sum);
	printf("%lx %lx\n", shared[0], shared[1]);
	uint64_t gone = (uint64_t)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sigaction(SIGSEGV, &sa, NULL);
	for (int i = 0; i < 3; i++) {
		FAULTS("lock cmpxchgq %%rdx, (%%rbx)", 1, gone, 3, 4);
		FAULTS("lock cmpxchgq %%rcx, (%%rbx)", 1, gone, 5, 6);
		FAULTS("lock addq %%rcx, (%%rbx)", 1, gone, 7, 8);
		FAULTS("lock addq %%rdx, (%%rbx)", 1, gone, 9, 10);
		FAULTS("lock xaddq %%rdx, (%%rbx)", 1, gone, 11, 12);
	}
	return 0;
}
