/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process of one job: makes its calls and notes how they end. */
#include "analyzer/testgen/heap_guard.h"
#include "analyzer/testgen/server.h"

#include <execinfo.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK (256 * 1024) /* of the signal handlers: libgcc's unwinder needs room */

#define MOST_TEXT 256        /* bytes of a text that is returned */

struct cxx_string {
	char *text;
	size_t length;
	char here[16];
};

static struct job *job;
static unsigned char storage[JOB_STORAGE] __attribute__((aligned(64)));
/* Where they lie depends on the call, not on which one comes first: objects may keep the address. */
static uint64_t words[JOB_CALLS][JOB_ARGS]; /* out-parameters */
static unsigned char buffers[JOB_CALLS][JOB_ARGS][JOB_BUFFER];
/* With a guarded heap they are blocks of that, all allocated before the first call. */
static unsigned char *guarded[JOB_CALLS][JOB_ARGS], *guarded_sets[JOB_CALLS][JOB_SETS];
static unsigned char set_buffers[JOB_CALLS][JOB_SETS][JOB_BUFFER];
static unsigned char blocks[JOB_CALLS][JOB_ARGS][JOB_BLOCK_BYTES] __attribute__((aligned(16)));
static unsigned char in_memory[JOB_CALLS][256] __attribute__((aligned(16))); /* results */
static __thread unsigned my_thread; /* 0: the first one, 1: A, 2: B, ... */
static __thread int my_call = -1;

static int64_t stub0(void) { return 0; }
static int64_t stub1(void) { return 1; }

uint64_t child_stub(bool one)
{
	return one ? (uint64_t)stub1 : (uint64_t)stub0;
}

/* ---- how it ends ---- */

/* After a call to where no code is, the stack is that of the call: the unwinder begins inside it. */
static void step_back(ucontext_t *u, const siginfo_t *info)
{
	greg_t *g = u->uc_mcontext.gregs;
	uint64_t back;

	if ((uint64_t)g[REG_RIP] != (uint64_t)info->si_addr || !state_readable((uint64_t)g[REG_RSP], &back, sizeof back))
		return;
	g[REG_RIP] = (greg_t)(back - 1);
	g[REG_RSP] += 8;
}

static void failed(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	void *frames[JOB_FRAMES];

	job->status = sig;
	job->failed_thread = (uint8_t)my_thread;
	job->failed_call = my_call;
	job->fault_address = sig == SIGABRT ? 0 : (uint64_t)info->si_addr;
	job->misuse = (uint8_t)(sig == SIGSEGV || sig == SIGBUS ? heap_guard_misuse(job->fault_address) : HEAP_FINE);
	job->fault_pc = (uint64_t)u->uc_mcontext.gregs[REG_RIP];
	job->end = JOB_SIGNAL;
	/* From here on a broken stack costs the frames, not the answer. */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	step_back(u, info);
	int n = backtrace(frames, JOB_FRAMES);
	unsigned first = 0;
	for (int i = 0; i < n; i++)
		if ((uint64_t)frames[i] == (uint64_t)u->uc_mcontext.gregs[REG_RIP])
			first = (unsigned)i;
	for (unsigned i = first; i < (unsigned)n; i++)
		job->frames[job->nframes++] = (uint64_t)frames[i];
	if (!first)
		job->nframes = 0;
	_exit(0);
}

static void on_alternate_stack(void)
{
	void *at = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t s = { .ss_sp = at, .ss_size = STACK };

	if (at != MAP_FAILED)
		sigaltstack(&s, NULL);
}

void child_prepare(void)
{
	void *warm[2];

	backtrace(warm, 2); /* loads libgcc now, not in a handler */
}

static void watch_signals(void)
{
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS };
	struct sigaction sa = { .sa_sigaction = failed, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		sigaction(fatal[i], &sa, NULL);
}

/* The library ended the process by itself. */
static void at_exit(void)
{
	if (job->end == JOB_NOT_RUN) {
		job->end = JOB_EXIT;
		job->failed_thread = (uint8_t)my_thread;
		job->failed_call = my_call;
	}
}

/* ---- calls ---- */

static uint64_t make_string(const char *text)
{
	struct cxx_string *s = calloc(1, sizeof *s);

	s->length = strlen(text);
	s->text = s->length < sizeof s->here ? s->here : malloc(s->length + 1);
	memcpy(s->text, text, s->length + 1);
	return (uint64_t)s;
}

static uint64_t out_word(unsigned call, unsigned arg)
{
	uint64_t *w = &words[call][arg];

	/* Big enough, and the same one for whoever asks for the result of this call. */
	job->results[call] = (int64_t)w;
	return (uint64_t)w;
}

/* Behind the places of all arguments before this one. */
static uint64_t place(unsigned call, unsigned arg)
{
	uint64_t at = 0, size = 0;

	for (unsigned i = 0; i <= call; i++)
		for (unsigned k = 0; k < (i == call ? arg + 1 : job->calls[i].nargs); k++) {
			if (job->calls[i].args[k].kind != JOB_PLACE)
				continue;
			at += size;
			size = ((uint64_t)job->calls[i].args[k].value + 63) & ~63ull;
			if (size > sizeof storage || at > sizeof storage - size)
				_exit(0);
		}
	job->results[call] = (int64_t)(storage + at);
	return (uint64_t)(storage + at);
}

static uint64_t fill(unsigned char *b, const char *text)
{
	for (unsigned i = 0; i < JOB_BUFFER; i++)
		b[i] = (unsigned char)(i + 1);
	b[JOB_BUFFER - 1] = 0;
	if (text)
		strncpy((char *)b, text, JOB_BUFFER - 1);
	return (uint64_t)b;
}

static uint64_t buffer(unsigned call, unsigned arg)
{
	const struct job_arg *a = &job->calls[call].args[arg];

	return fill(guarded[call][arg] ? guarded[call][arg] : buffers[call][arg], a->size ? job->text + a->value : NULL);
}

/* What the caller writes to structures whose members are its own business. */
static void set_members(unsigned call, const uint64_t *values)
{
	const struct job_call *c = &job->calls[call];

	for (unsigned i = 0; i < c->nsets && i < JOB_SETS; i++) {
		const struct job_set *s = &c->sets[i];
		unsigned char *b = guarded_sets[call][i] ? guarded_sets[call][i] : set_buffers[call][i];
		uint64_t v = s->buffer ? fill(b, s->filled ? job->text + s->value : NULL) : (uint64_t)s->value;

		if (values[s->arg])
			memcpy((char *)values[s->arg] + s->offset, &v, s->size <= sizeof v ? s->size : sizeof v);
	}
}

static uint64_t block(unsigned call, unsigned arg)
{
	const struct job_arg *a = &job->calls[call].args[arg];

	memcpy(blocks[call][arg], job->text + a->value, a->size < JOB_BLOCK_BYTES ? a->size : JOB_BLOCK_BYTES);
	return (uint64_t)blocks[call][arg];
}

static uint64_t argument(unsigned call, unsigned arg)
{
	const struct job_arg *a = &job->calls[call].args[arg];

	switch (a->kind) {
	case JOB_TEXT_AT: return (uint64_t)(job->text + a->value);
	case JOB_BUFFER_OF: return buffer(call, arg);
	case JOB_RESULT: return (uint64_t)job->results[a->value];
	case JOB_OUT: return out_word(call, arg);
	case JOB_PLACE: return place(call, arg);
	case JOB_STUB: return child_stub(a->value != 0);
	case JOB_BLOCK: return block(call, arg);
	case JOB_STRING: return make_string(job->text + a->value);
	default: return (uint64_t)a->value;
	}
}

/*
 * An integer comes back in rax, a double in xmm0: this structure takes both. Called as a function with a variable number
 * of arguments: others do not mind.
 */
struct both { int64_t i; double d; };
typedef struct both any_function(int64_t, ...);

#define INTEGERS 6
#define VECTORS 8
#define STACKED 16

struct arguments {
	int64_t g[INTEGERS], stack[STACKED];
	double x[VECTORS];
	unsigned ng, nx, nstack;
};

static void put_argument(struct arguments *to, enum job_way way, uint64_t v)
{
	double d;
	float f;

	memcpy(&d, &v, sizeof d);
	if (way == JOB_BY_SINGLE) {
		f = (float)d;
		v = 0;
		memcpy(&v, &f, sizeof f);
	}
	if (way == JOB_BY_INTEGER && to->ng < INTEGERS)
		to->g[to->ng++] = (int64_t)v;
	else if (way != JOB_BY_INTEGER && way != JOB_BY_STACK && to->nx < VECTORS)
		memcpy(&to->x[to->nx++], &v, sizeof v);
	else if (to->nstack < STACKED)
		to->stack[to->nstack++] = (int64_t)v;
}

static struct both enter(uint64_t function, const struct arguments *a)
{
	const int64_t *g = a->g, *s = a->stack;
	const double *x = a->x;

	return ((any_function *)function)(g[0], g[1], g[2], g[3], g[4], g[5], x[0], x[1], x[2], x[3], x[4], x[5], x[6],
					  x[7], s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10],
					  s[11], s[12], s[13], s[14], s[15]);
}

static int64_t narrowed(const struct job_call *c, struct both r)
{
	int64_t v = r.i;

	if (c->result == API_FLOAT)
		memcpy(&v, &r.d, sizeof v);
	else if (c->result == API_INT && c->result_size == 1)
		v = c->result_signed ? (int8_t)v : (uint8_t)v;
	else if (c->result == API_INT && c->result_size == 2)
		v = c->result_signed ? (int16_t)v : (uint16_t)v;
	else if (c->result == API_INT && c->result_size == 4)
		v = c->result_signed ? (int64_t)(int32_t)v : (int64_t)(uint32_t)v;
	return v;
}

/* Numbers that the call was given the addresses of, and the text that it returns. */
static void note_filled(unsigned index, const uint64_t *values)
{
	const struct job_call *c = &job->calls[index];
	uint64_t *h = &job->filled[index];

	for (unsigned i = 0; i < c->nargs; i++) {
		unsigned n = c->args[i].number;
		uint64_t v = 0;

		if (!n)
			continue;
		memcpy(&v, (const void *)values[i], n < sizeof v ? n : sizeof v);
		*h = (*h ^ v) * 1099511628211ull;
	}
	char ch = 1;
	for (uint64_t i = 0; c->result == API_TEXT && job->results[index] && i < MOST_TEXT && ch; i++) {
		if (!state_readable((uint64_t)job->results[index] + i, &ch, 1))
			break;
		*h = (*h ^ (unsigned char)ch) * 1099511628211ull;
	}
}

static void make_call(unsigned index)
{
	const struct job_call *c = &job->calls[index];
	struct arguments a = { .ng = 0 };
	uint64_t values[JOB_ARGS];
	bool keeps = false;

	if (c->result_in_memory) {
		uint64_t room = c->result == API_STRING ? make_string("") : (uint64_t)in_memory[index];

		put_argument(&a, JOB_BY_INTEGER, room);
	}
	for (unsigned i = 0; i < c->nargs; i++) {
		values[i] = argument(index, i);
		keeps |= c->args[i].kind == JOB_OUT || c->args[i].kind == JOB_PLACE;
		put_argument(&a, (enum job_way)c->args[i].way, values[i]);
	}
	set_members(index, values);
	uint64_t f = job->bias + c->offset;
	my_call = (int)index;
	job->failed_call = my_call; /* should it never come back */
	step_call(index, f);
	struct both r = enter(f, &a);
	step_returned(index);
	my_call = -1;
	/* An out-parameter is the result; its word is read when the call is over. */
	if (keeps) {
		for (unsigned i = 0; i < c->nargs; i++)
			if (c->args[i].kind == JOB_OUT)
				job->results[index] = *(int64_t *)job->results[index];
	} else if (c->result == API_OBJECT && c->result_in_memory) {
		memcpy(&job->results[index], in_memory[index], sizeof job->results[index]);
	} else {
		job->results[index] = narrowed(c, r);
	}
	note_filled(index, values);
	job->ran[index] = true;
	__atomic_fetch_add(&job->calls_done, 1, __ATOMIC_RELAXED);
}

static void make_part(unsigned part)
{
	for (unsigned i = 0; i < job->ncalls; i++)
		if (job->calls[i].part == part)
			make_call(i);
}

/* ---- the three modes ---- */

static sem_t turn[JOB_THREADS + 1];
/*
 * A thread that ends gives its cache of free memory back, and could disturb the others by that: all are done first, then A
 * ends before B. What was freed twice is found then, in the same way each time.
 */
static pthread_barrier_t all_done;
static pthread_t threads[JOB_THREADS];
static unsigned nthreads; /* that were started: the first ones, or the one that is traced */

static void end_in_turn(unsigned index)
{
	pthread_barrier_wait(&all_done);
	if (index)
		pthread_join(threads[index - 1], NULL);
}

static void start_thread(void *(*f)(void *), unsigned part)
{
	if (pthread_create(&threads[nthreads], NULL, f, (void *)(uintptr_t)(part | nthreads << 8)))
		_exit(0);
	nthreads++;
}

/* Part and number of the thread, from its argument. */
static unsigned begin_thread(void *arg, unsigned *index)
{
	unsigned part = (unsigned)(uintptr_t)arg & 0xff;

	*index = (unsigned)(uintptr_t)arg >> 8;
	my_thread = part - JOB_A + 1;
	on_alternate_stack();
	return part;
}

static bool has_calls(unsigned part)
{
	for (unsigned i = 0; i < job->ncalls; i++)
		if (job->calls[i].part == part)
			return true;
	return false;
}

static unsigned count_threads(void)
{
	unsigned n = 0;

	for (unsigned p = JOB_A; p < JOB_POST; p++)
		n += has_calls(p);
	return n;
}

static void *serial_thread(void *arg)
{
	unsigned index, part = begin_thread(arg, &index);

	for (unsigned i = 0; i < job->norder; i++) {
		if (job->calls[job->order[i]].part != part)
			continue;
		sem_wait(&turn[my_thread]);
		make_call(job->order[i]);
		sem_post(&turn[0]);
	}
	end_in_turn(index);
	return NULL;
}

static void serial_in_threads(void)
{
	unsigned n = count_threads();

	for (unsigned i = 0; i <= JOB_THREADS; i++)
		sem_init(&turn[i], 0, 0);
	pthread_barrier_init(&all_done, NULL, n ? n : 1);
	for (unsigned p = JOB_A; p < JOB_POST; p++)
		if (has_calls(p))
			start_thread(serial_thread, p);
	for (unsigned i = 0; i < job->norder; i++) {
		sem_post(&turn[job->calls[job->order[i]].part - JOB_A + 1]);
		sem_wait(&turn[0]);
	}
	if (nthreads)
		pthread_join(threads[nthreads - 1], NULL);
}

static void run_serial(void)
{
	make_part(JOB_PREFIX);
	if (!job->one_thread)
		serial_in_threads();
	else
		for (unsigned i = 0; i < job->norder; i++)
			make_call(job->order[i]);
	make_part(JOB_POST);
}

static void *stepped_thread(void *arg)
{
	unsigned index, part = begin_thread(arg, &index);

	step_thread(part - JOB_A);
	make_part(part);
	step_end();
	end_in_turn(index);
	return NULL;
}

static void run_threads(void)
{
	bool takes_part[JOB_THREADS];
	unsigned n = 0;

	for (unsigned i = 0; i < JOB_THREADS; i++) {
		/* A part without calls is traced as well: what the prefix leads to is asked for. */
		takes_part[i] = job->mode == JOB_TRACE ? job->traced == JOB_A + i : has_calls(JOB_A + i);
		n += takes_part[i];
	}
	if (!n)
		return;
	pthread_barrier_init(&all_done, NULL, n);
	step_init(job, takes_part);
	for (unsigned i = 0; i < JOB_THREADS; i++)
		if (takes_part[i])
			start_thread(stepped_thread, JOB_A + i);
	step_control();
	pthread_join(threads[nthreads - 1], NULL);
}

/* Is it a value, not the address of something? */
static bool is_number(const struct job_call *c)
{
	for (unsigned i = 0; i < c->nargs; i++)
		if (c->args[i].kind == JOB_OUT || c->args[i].kind == JOB_PLACE)
			return false;
	return c->result == API_INT || c->result == API_FLOAT;
}

static uint64_t hash_results(void)
{
	uint64_t h = 14695981039346656037ull;

	/* Of pointers only whether they are null: where memory lies depends on the order. */
	for (unsigned i = 0; i < job->ncalls; i++) {
		const struct job_call *c = &job->calls[i];
		int64_t v = c->result == API_VOID ? 0 : is_number(c) ? job->results[i] : job->results[i] != 0;

		if (c->part >= JOB_A && c->part < JOB_POST)
			h = ((h ^ (uint64_t)v ^ (uint64_t)i << 56) * 1099511628211ull ^ job->filled[i]) * 1099511628211ull;
	}
	return h;
}

static void guard_buffers(void)
{
	for (unsigned i = 0; i < job->ncalls; i++) {
		const struct job_call *c = &job->calls[i];

		for (unsigned k = 0; k < c->nargs; k++)
			if (c->args[k].kind == JOB_BUFFER_OF)
				guarded[i][k] = heap_guard_alloc(JOB_BUFFER);
		for (unsigned k = 0; k < c->nsets && k < JOB_SETS; k++)
			if (c->sets[k].buffer)
				guarded_sets[i][k] = heap_guard_alloc(JOB_BUFFER);
	}
}

void run_job(struct job *j)
{
	job = j;
	on_alternate_stack();
	watch_signals();
	atexit(at_exit);
	/* Freed memory is overwritten, fresh memory holds a pattern: what uses either shows it, every time. */
	mallopt(M_PERTURB, 0xa5);
	mallopt(M_ARENA_MAX, 1);
	if (j->guard && heap_guard_begin())
		guard_buffers();
	if (j->mode == JOB_SERIAL) {
		run_serial();
	} else {
		make_part(JOB_PREFIX);
		run_threads();
		if (j->mode == JOB_CONCURRENT)
			make_part(JOB_POST);
	}
	if (j->want_state && j->object_call >= 0)
		j->state = state_hash(j, (uint64_t)j->results[j->object_call], j->object_size);
	else if (j->want_state)
		j->state = state_hash(j, j->data_start, j->data_end - j->data_start);
	j->results_hash = hash_results();
	j->end = JOB_DONE;
	_exit(0);
}
