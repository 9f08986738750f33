/*
 * Read-modify-writes without lock in every form, size and addressing that the
 * translator does in halves, by two threads, each on its own memory: results and
 * flags are summed up and printed, so they must be the same with and without csched.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 50
#define THREADS 2

struct work {
	uint64_t cells[8];
	uint64_t sum;
};

static struct work works[THREADS];
static uint64_t global;

static void note(struct work *w, uint64_t value, uint8_t low, uint8_t over)
{
	w->sum = w->sum * 1099511628211u ^ value ^ (uint64_t)(low & 0xd5) << 32 ^ (uint64_t)over << 48;
}

/* lahf and seto fetch the flags; each form begins with known ones. */
#define FORM(w, text, ...)                                                               \
	do {                                                                             \
		uint64_t value_ = 0;                                                     \
		uint8_t low_, over_;                                                     \
		__asm__ volatile("xor %%eax, %%eax\n\tcmp $1, %%eax\n\t" text            \
				 "\n\tlahf\n\tseto %%al\n\tmov %%ah, %0\n\tmov %%al, %1"  \
				 : "=m"(low_), "=m"(over_)                               \
				 : __VA_ARGS__                                           \
				 : "rax", "memory", "cc");                               \
		value_ = (w)->cells[3];                                                  \
		note(w, value_, low_, over_);                                            \
	} while (0)

#define SIZES(w, op, p, v)                                                               \
	FORM(w, op "b %b3, 24(%2)", "r"(p), "q"(v));                                     \
	FORM(w, op "w %w3, 24(%2)", "r"(p), "r"(v));                                     \
	FORM(w, op "l %k3, 24(%2)", "r"(p), "r"(v));                                     \
	FORM(w, op "q %q3, 24(%2)", "r"(p), "r"(v));                                     \
	FORM(w, op "l $0x1234567, 24(%2)", "r"(p));                                      \
	FORM(w, op "q $-5, (%2,%3,8)", "r"(p), "r"(3ul))

/* Registers that the translator itself needs, as address and as value. */
static void registers(struct work *w)
{
	FORM(w, "addq %3, 24(%2)", "c"(w->cells), "d"(7ul));
	FORM(w, "addq %3, 24(%2)", "d"(w->cells), "c"(9ul));
	FORM(w, "subl %k3, (%2,%4,8)", "c"(w->cells), "r"(11ul), "d"(3ul));
	FORM(w, "addb %h3, 24(%2)", "S"(w->cells), "b"(0x1100ul));
}

static void singles(struct work *w)
{
	FORM(w, "incl 24(%2)", "r"(w->cells));
	FORM(w, "decq 24(%2)", "r"(w->cells));
	FORM(w, "incb 24(%2)", "r"(w->cells));
	FORM(w, "negw 24(%2)", "r"(w->cells));
	FORM(w, "notq 24(%2)", "r"(w->cells));
	FORM(w, "decw 24(%2)", "r"(w->cells));
}

static void *run(void *arg)
{
	struct work *w = arg;

	for (unsigned long i = 0; i < ROUNDS; i++) {
		unsigned long v = i * 0x9e3779b97f4a7c15u;

		SIZES(w, "add", w->cells, v);
		SIZES(w, "adc", w->cells, v);
		SIZES(w, "sub", w->cells, v);
		SIZES(w, "sbb", w->cells, v);
		SIZES(w, "xor", w->cells, v);
		SIZES(w, "and", w->cells, ~v);
		SIZES(w, "or", w->cells, v);
		registers(w);
		singles(w);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, &works[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		__asm__ volatile("addq %1, %0" : "+m"(global) : "r"(works[i].sum) : "cc");
	}
	printf("good %016lx\n", (unsigned long)global);
	return 0;
}
