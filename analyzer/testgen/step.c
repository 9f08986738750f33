/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stepping: each thread stops at each instruction of the library that accesses memory other than its own stack, or goes
 * elsewhere. A breakpoint at the next such instruction stops it there; where the next one is not known, after a branch,
 * the processor's trap flag does (which costs more). The trap
 * handler notes what the instruction accesses and decides which thread runs. Functions outside the library
 * run freely: a breakpoint where they return brings the stepping back (not a changed return address, which
 * would break C++ exceptions). Only one of the threads runs at a time.
 */
#include "analyzer/testgen/heap.h"
#include "analyzer/testgen/heap_guard.h"
#include "analyzer/testgen/step.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TRAP_FLAG 0x100
#define PAGE 4096ull
#define LOOK_US 2000       /* between the controller's looks */
#define STILL_LOOKS 2      /* so many looks without a step, waiting in the kernel: it is blocked */
#define SURE_LOOKS 20      /* ... and all for so long: nobody ever goes on */
#define FREE_LOOKS 100     /* running natively for so long while another is parked: it may wait for it, busily */
#define SPIN_STEPS 20000   /* in one turn: it may wait for the other, busily ... */
#define SPIN_WINDOW 512    /* ... and so does who stays within a few instructions for two windows of so many steps */
#define SPIN_BYTES 96      /* of code */
#define MOST_BLOCK (1ull << 30) /* bytes; what says that it is larger is no block */

struct stepper {
	struct job_thread *t;
	unsigned index;
	pid_t tid;
	bool stepping, parked, ended, begun;
	uint64_t breakpoint;   /* where its code will be stepped again; 0: none */
	uint64_t run_to;       /* the breakpoint at the next instruction that counts; 0: none */
	uint64_t rearm;        /* another thread's breakpoint that it has just gone through */
	uint64_t last_pc, last_call; /* places */
	uint64_t turn_began;   /* step */
	uint64_t low, high;    /* places within the current window ... */
	uint32_t window;       /* ... which ends at this step */
	unsigned narrow;       /* windows in a row that were narrow */
	uint64_t stack_low, stack_high;
	enum step_effect effect; /* of the function it is in, to be noted when that returns */
	uint64_t effect_argument;
	uint8_t call;
	uint64_t entry;        /* of the function that has just been called, when it may be a table's */
	bool called;           /* the last instruction was a call: what comes is a function's first one */
	uint32_t unseen;       /* events from this one on whose values are not known yet */
};

static struct job *job;
#define EVERYBODY JOB_THREADS

static bool active, prepared;
static struct stepper steppers[JOB_THREADS];
static __thread struct stepper *me;
static uint8_t *pristine;      /* the library's code as it was loaded */
static bool may_run;           /* no breakpoint can be in the way of this program's own code */
static uint32_t turn;          /* whose: an index; EVERYBODY: all may run */
static uint32_t segment;

bool step_active(void)
{
	return active;
}

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

/* ---- turns ---- */

static uint32_t until_of(const struct stepper *s)
{
	if (segment >= job->nsegments || job->segments[segment].thread != s->index)
		return JOB_NEVER;
	return job->segments[segment].until;
}

/* Will the thread have to stop again, or be looked at? */
static bool is_stepped(const struct stepper *s)
{
	for (uint32_t i = segment; job->fast && i < job->nsegments; i++)
		if (job->segments[i].thread == s->index && job->segments[i].until != JOB_NEVER)
			return true;
	return !job->fast;
}

static void give_turn(uint32_t to)
{
	if (to < EVERYBODY)
		steppers[to].turn_began = steppers[to].t->nsteps;
	__atomic_store_n(&turn, to, __ATOMIC_SEQ_CST);
	futex(&turn, FUTEX_WAKE, INT32_MAX, NULL);
}

static bool has_ended(unsigned index)
{
	return __atomic_load_n(&steppers[index].ended, __ATOMIC_SEQ_CST);
}

/* Has every thread but this one ended? An index out of range: has every one? */
static bool others_ended(unsigned index)
{
	for (unsigned i = 0; i < JOB_THREADS; i++)
		if (i != index && !has_ended(i))
			return false;
	return true;
}

/* The segment of the thread that has the turn is over. */
static void next_segment(void)
{
	while (segment + 1 < job->nsegments) {
		unsigned to = job->segments[++segment].thread;

		if (!has_ended(to)) {
			give_turn(to);
			return;
		}
	}
	segment = job->nsegments;
	/* In turns: of three, one may wait for the third. */
	for (unsigned k = 1; turn < EVERYBODY && k < JOB_THREADS; k++) {
		unsigned i = (turn + k) % JOB_THREADS;

		if (!has_ended(i)) {
			give_turn(i);
			return;
		}
	}
	give_turn(EVERYBODY);
}

static void wait_turn(struct stepper *s)
{
	uint32_t now;

	__atomic_store_n(&s->parked, true, __ATOMIC_SEQ_CST);
	while ((now = __atomic_load_n(&turn, __ATOMIC_SEQ_CST)) != s->index && now != EVERYBODY)
		futex(&turn, FUTEX_WAIT, now, NULL);
	__atomic_store_n(&s->parked, false, __ATOMIC_SEQ_CST);
}

/* ---- breakpoints ---- */

static void put(uint64_t at)
{
	*(volatile uint8_t *)at = 0xcc;
}

static void take_away(uint64_t at)
{
	*(volatile uint8_t *)at = pristine[at - job->text_start];
}

/* Is another thread's breakpoint there? */
static bool is_anothers(const struct stepper *s, uint64_t at)
{
	for (unsigned i = 0; i < JOB_THREADS; i++)
		if (i != s->index && (steppers[i].breakpoint == at || steppers[i].run_to == at))
			return true;
	return false;
}

static bool in_library(uint64_t pc)
{
	return pc >= job->text_start && pc < job->text_end;
}

/* ---- events ---- */

static void note(struct stepper *s, enum job_event_kind kind, uint64_t address, uint64_t size)
{
	struct job_thread *t = s->t;

	/* Its own stack is nobody else's, as long as it does not hand out addresses of it. */
	if ((kind == JOB_READ || kind == JOB_WRITE || kind == JOB_ATOMIC) && address >= s->stack_low &&
	    address < s->stack_high)
		return;
	if (t->nevents == JOB_EVENTS) {
		t->overflow = true;
		return;
	}
	t->events[t->nevents++] = (struct job_event){
		.address = address, .size = size, .step = t->nsteps ? t->nsteps - 1 : 0,
		.pc = (uint32_t)(s->last_pc - job->bias), .kind = kind, .call = s->call };
}

/* What the last instruction or function has read and written is still there. */
static void note_values(struct stepper *s)
{
	struct job_thread *t = s->t;

	for (uint32_t i = s->unseen; i < t->nevents && job->mode == JOB_TRACE; i++) {
		struct job_event *e = &t->events[i];
		const struct job_event *next = i + 1 < t->nevents ? e + 1 : NULL;

		/* What it has read and overwritten is gone. */
		if ((e->kind != JOB_READ && e->kind != JOB_WRITE) || !e->size || e->size > sizeof e->value ||
		    (e->kind == JOB_READ && next && next->kind == JOB_WRITE && next->address == e->address))
			continue;
		memcpy(&e->value, (const void *)e->address, e->size);
		e->known = true;
	}
	s->unseen = t->nevents;
}

/* Of a block that is freed: as the allocator says, if that is one. */
static uint64_t size_of_block(uint64_t block)
{
	uint64_t header;

	if (heap_guard_has((void *)block))
		return heap_guard_size((void *)block);
	return !(block & 15) && state_readable(block - 8, &header, sizeof header) && (header & ~7ull) > 8 &&
	       header < MOST_BLOCK ? (header & ~7ull) - 8 : 8;
}

static void note_accesses(struct stepper *s, const struct step_insn *in, const greg_t *g)
{
	for (unsigned i = 0; i < in->noperands; i++) {
		const struct step_operand *o = &in->operands[i];
		uint64_t at = (uint64_t)o->displacement;

		if (o->base >= 0)
			at += (uint64_t)g[o->base];
		if (o->index >= 0)
			at += (uint64_t)g[o->index] * o->scale;
		if (o->access & 1)
			note(s, in->locked ? JOB_ATOMIC : JOB_READ, at, o->size);
		if (o->access & 2)
			note(s, JOB_WRITE, at, o->size);
	}
}

/* What is called by way of a table of addresses is called from where that was called. */
static uint64_t place_of_call(const struct stepper *s)
{
	for (uint32_t k = s->t->nsteps; k-- > 0;) {
		uint64_t pc = job->bias + (s->t->pcs[k] & JOB_PLACE_MASK);
		const struct step_insn *in = step_decode(pc, pristine + (pc - job->text_start));

		if (!in || !(in->is_landing || (in->is_branch && in->noperands)))
			return pc;
	}
	return s->last_pc;
}

static void note_call_out(struct stepper *s, uint64_t pc, const greg_t *g)
{
	uint64_t a = (uint64_t)g[REG_RDI], b = (uint64_t)g[REG_RSI], c = (uint64_t)g[REG_RDX];

	s->last_pc = place_of_call(s);
	s->effect = step_effect_of(pc);
	s->effect_argument = a;
	switch (s->effect) {
	case STEP_UNLOCKS: note(s, JOB_UNLOCK, a, 0); break;
	case STEP_WAITS: note(s, JOB_UNLOCK, b, 0); s->effect_argument = b; break;
	case STEP_FREES:
	case STEP_REALLOCATES:
		if (a)
			note(s, JOB_FREE, a, size_of_block(a));
		break;
	case STEP_COPIES: note(s, JOB_READ, b, c); note(s, JOB_WRITE, a, c); break;
	case STEP_FILLS: note(s, JOB_WRITE, a, c); break;
	case STEP_READS: note(s, JOB_READ, a, 8); break;
	case STEP_COMPARES: note(s, JOB_READ, a, 8); note(s, JOB_READ, b, 8); break;
	case STEP_COPIES_TEXT: note(s, JOB_READ, b, 8); note(s, JOB_WRITE, a, 8); break;
	default: break;
	}
}

static void note_came_back(struct stepper *s, const greg_t *g)
{
	uint64_t result = (uint64_t)g[REG_RAX];

	switch (s->effect) {
	case STEP_LOCKS: case STEP_WAITS: note(s, JOB_LOCK, s->effect_argument, 0); break;
	case STEP_SHARES: note(s, JOB_SHARED_LOCK, s->effect_argument, 0); break;
	case STEP_TRIES:
		if (!(int)result)
			note(s, JOB_LOCK, s->effect_argument, 0);
		break;
	case STEP_ALLOCATES:
	case STEP_REALLOCATES:
		if (result)
			note(s, JOB_ALLOC, result, heap_size((void *)result));
		break;
	default: break;
	}
	s->effect = STEP_NOTHING;
}

/* ---- the trap ---- */

static uint32_t class_of(const struct step_insn *in)
{
	return !in ? JOB_PLAIN : in->is_call ? JOB_CALLS_OUT : in->is_return ? JOB_RETURNS :
	       in->is_branch ? JOB_BRANCHES : JOB_PLAIN;
}

/* The first instruction behind a call; a function that is called by way of a table of addresses begins where that leads. */
static void note_entry(struct stepper *s, const struct step_insn *in, uint64_t pc)
{
	if (!s->called)
		return;
	if (in && in->is_branch && in->noperands) {
		s->entry = 0;
		return;
	}
	if (in && in->is_landing && !s->entry) {
		s->entry = pc;
		return;
	}
	note(s, JOB_ENTER, (s->entry ? s->entry : pc) - job->bias, 0);
	s->called = false;
	s->entry = 0;
}

static bool spins(struct stepper *s, uint64_t pc)
{
	if (s->t->nsteps >= s->window) {
		s->window = s->t->nsteps + SPIN_WINDOW;
		s->narrow = s->high - s->low < SPIN_BYTES ? s->narrow + 1 : 0;
		s->low = s->high = pc;
	}
	s->low = pc < s->low ? pc : s->low;
	s->high = pc > s->high ? pc : s->high;
	if (s->narrow < 2 && s->t->nsteps - s->turn_began <= SPIN_STEPS)
		return false;
	s->narrow = 0;
	return true;
}

static bool leaves(const struct step_insn *in)
{
	return in->is_call || in->is_return || in->is_branch || in->is_system;
}

/* Nobody else can see what it does: at most it uses its frame, which is on its own stack. */
static bool is_quiet(const struct step_insn *in, bool frame)
{
	if (leaves(in) || in->is_landing || in->repeats)
		return false;
	for (unsigned i = 0; i < in->noperands; i++)
		if (!frame || in->operands[i].base != REG_RBP || in->operands[i].index >= 0)
			return false;
	return true;
}

/*
 * Lets it execute this instruction, and those behind it that nobody can see: they are counted, and a breakpoint stops it
 * behind them. Where they end must not be behind the end of its turn.
 */
static void run_on(struct stepper *s, const struct step_insn *in, uint64_t pc, greg_t *g)
{
	uint64_t rbp = (uint64_t)g[REG_RBP];
	bool frame = rbp >= s->stack_low && rbp < s->stack_high;
	uint32_t until = until_of(s) < JOB_STEPS ? until_of(s) : JOB_STEPS;

	if (!may_run || !in || leaves(in) || s->called || s->rearm || turn != s->index)
		return;
	for (;;) {
		frame &= !in->writes_frame;
		pc += in->length;
		if (!in_library(pc))
			return;
		in = step_decode(pc, pristine + (pc - job->text_start));
		if (!in || s->t->nsteps >= until || !is_quiet(in, frame))
			break;
		s->t->pcs[s->t->nsteps++] = (uint32_t)(pc - job->bias) | class_of(in) << JOB_CLASS_SHIFT;
		s->last_pc = pc;
	}
	s->run_to = pc;
	put(pc);
	g[REG_EFL] &= ~TRAP_FLAG;
}

/* About to execute an instruction of the library. */
static void at_instruction(struct stepper *s, ucontext_t *u, uint64_t pc)
{
	greg_t *g = u->uc_mcontext.gregs;
	const struct step_insn *in = step_decode(pc, pristine + (pc - job->text_start));

	if (__atomic_load_n(&turn, __ATOMIC_SEQ_CST) != s->index)
		wait_turn(s);
	while (s->t->nsteps == until_of(s) && turn == s->index) {
		s->t->stopped = (uint32_t)(pc - job->bias);
		next_segment();
		if (turn != s->index)
			wait_turn(s);
	}
	note_entry(s, in, pc);
	/* A string instruction traps once for each round, and is one. */
	if (!in || !in->repeats || s->last_pc != pc)
		s->t->pcs[s->t->nsteps++] = (uint32_t)(pc - job->bias) | class_of(in) << JOB_CLASS_SHIFT;
	s->last_pc = pc;
	if (in) {
		note_accesses(s, in, g);
		if (in->is_call) {
			s->last_call = pc;
			s->called = true;
			s->entry = 0;
		}
		if (in->is_return)
			note(s, JOB_LEAVE, 0, 0);
	}
	if (job->mode == JOB_CONCURRENT && spins(s, pc) && turn == s->index && !others_ended(s->index)) {
		s->t->blocked = true;
		next_segment();
	}
	if (s->t->nsteps >= JOB_STEPS || !is_stepped(s)) {
		s->t->overflow |= s->t->nsteps >= JOB_STEPS;
		g[REG_EFL] &= ~TRAP_FLAG;
		s->stepping = false;
	} else {
		run_on(s, in, pc, g);
	}
}

static void trapped(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	greg_t *g = u->uc_mcontext.gregs;
	struct stepper *s = me;
	uint64_t pc = (uint64_t)g[REG_RIP];
	int keep = errno;

	(void)sig;
	(void)info;
	if (!s || !active) {
		signal(SIGTRAP, SIG_DFL);
		return;
	}
	if (s->rearm) {
		put(s->rearm);
		s->rearm = 0;
	}
	note_values(s);
	if (in_library(pc - 1) && pristine[pc - 1 - job->text_start] != 0xcc &&
	    *(volatile uint8_t *)(pc - 1) == 0xcc) {
		/* A breakpoint: ours, or another thread's that we came through. */
		pc--;
		g[REG_RIP] = (greg_t)pc;
		if (is_anothers(s, pc))
			s->rearm = pc;
		take_away(pc);
		if (s->run_to == pc) {
			s->run_to = 0;
		} else if (s->breakpoint == pc) {
			s->breakpoint = 0;
			if (s->begun)
				note_came_back(s, g);
			s->begun = true;
		}
		g[REG_EFL] |= TRAP_FLAG;
	}
	if (in_library(pc) && !(s->called && step_effect_of(pc) != STEP_NOTHING)) {
		/* Nothing is left to be decided: it runs freely to its end. */
		at_instruction(s, u, pc);
	} else {
		/* Outside, or in a function whose effects are known: the C library is tested as well. */
		uint64_t back = *(uint64_t *)g[REG_RSP];

		s->called = false;
		g[REG_EFL] &= ~TRAP_FLAG;
		if (in_library(back)) {
			note_call_out(s, pc, g);
			s->breakpoint = back;
			put(back);
		}
	}
	errno = keep;
}

/* ---- threads ---- */

void step_prepare(const struct job *j)
{
	uint64_t start = j->text_start & ~(PAGE - 1), end = (j->text_end + PAGE - 1) & ~(PAGE - 1);

	step_known_init();
	step_decode_prepare();
	pristine = malloc(j->text_end - j->text_start + 16);
	memcpy(pristine, (void *)j->text_start, j->text_end - j->text_start);
	prepared = !mprotect((void *)start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC);
}

void step_init(struct job *j, const bool *takes_part)
{
	struct sigaction sa = { .sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	if (!prepared)
		return;
	job = j;
	/* The controller of a stepped C library would run into its breakpoints. */
	may_run = !in_library((uint64_t)snprintf);
	sigaction(SIGTRAP, &sa, NULL);
	for (unsigned i = 0; i < JOB_THREADS; i++)
		steppers[i] = (struct stepper){ .t = &j->thread[i], .index = i, .ended = !takes_part[i] };
	turn = j->mode == JOB_TRACE ? (uint32_t)(j->traced - JOB_A) : j->nsegments ? j->segments[0].thread : 0;
	segment = 0;
	active = true;
}

void step_thread(unsigned index)
{
	struct stepper *s = &steppers[index];
	pthread_attr_t attr;
	void *at;
	size_t size;

	if (!active)
		return;
	if (!pthread_getattr_np(pthread_self(), &attr)) {
		pthread_attr_getstack(&attr, &at, &size);
		s->stack_low = (uint64_t)at;
		s->stack_high = s->stack_low + size;
		pthread_attr_destroy(&attr);
	}
	s->tid = (pid_t)syscall(SYS_gettid);
	me = s;
	wait_turn(s);
}

void step_call(unsigned call, uint64_t function)
{
	struct stepper *s = me;

	if (!s)
		return;
	if (__atomic_load_n(&turn, __ATOMIC_SEQ_CST) != s->index)
		wait_turn(s);
	s->call = (uint8_t)call;
	s->t->began++;
	s->t->in_call = (int32_t)call;
	s->last_pc = 0;
	note(s, JOB_CALL, function - job->bias, 0);
	s->begun = false;
	if (!is_stepped(s))
		return;
	s->called = true;
	s->breakpoint = function;
	put(function);
}

void step_returned(unsigned call)
{
	struct stepper *s = me;

	if (!s)
		return;
	/* An exception or a long jump may have left it behind. */
	if (s->breakpoint) {
		take_away(s->breakpoint);
		if (is_anothers(s, s->breakpoint))
			put(s->breakpoint);
		s->breakpoint = 0;
	}
	s->t->in_call = -1;
	note(s, JOB_RETURNED, call, 0);
}

void step_end(void)
{
	struct stepper *s = me;

	if (!s)
		return;
	me = NULL;
	__atomic_store_n(&s->ended, true, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&turn, __ATOMIC_SEQ_CST) == s->index)
		next_segment();
	else if (others_ended(s->index))
		give_turn(EVERYBODY);
}

/* ---- the controller ---- */

/* Does the thread wait for something other than its turn? */
static bool waits(const struct stepper *s, uint64_t *word)
{
	char thread[24];

	snprintf(thread, sizeof thread, "%d", s->tid);
	if (!waits_for_ever("self", thread, word))
		*word = 0;
	if (*word == (uint64_t)&turn)
		*word = 0;
	return *word != 0;
}

static void deadlocked(const uint64_t *words)
{
	for (unsigned i = 0; i < JOB_THREADS; i++) {
		job->waits_for[i] = words[i];
		job->waits_pc[i] = words[i] ? steppers[i].last_call : 0;
	}
	job->end = JOB_DEADLOCK;
	_exit(0);
}

/* Looks at all threads; do all that have not ended wait? */
static bool look(bool *blocked, uint64_t *words)
{
	bool all = true;

	for (unsigned i = 0; i < JOB_THREADS; i++) {
		words[i] = 0;
		blocked[i] = !steppers[i].ended && steppers[i].tid && waits(&steppers[i], &words[i]);
		all &= blocked[i] || steppers[i].ended;
	}
	return all;
}

static bool is_any_parked(unsigned but)
{
	for (unsigned i = 0; i < JOB_THREADS; i++)
		if (i != but && !steppers[i].ended && steppers[i].parked)
			return true;
	return false;
}

void step_control(void)
{
	struct timespec pause = { 0, LOOK_US * 1000 };
	uint64_t steps = 0, words[JOB_THREADS];
	unsigned still = 0, sure = 0, running = 0;
	bool blocked[JOB_THREADS];

	while (active && !others_ended(EVERYBODY)) {
		uint32_t now = __atomic_load_n(&turn, __ATOMIC_SEQ_CST);
		uint64_t seen = 0;

		if (futex(&turn, FUTEX_WAIT, now, &pause) == 0 || errno == EAGAIN) {
			still = sure = running = 0;
			continue;
		}
		for (unsigned i = 0; i < JOB_THREADS; i++)
			seen += job->thread[i].nsteps;
		/* Who steps does not wait: nothing has to be looked at. */
		if (seen != steps) {
			still = sure = running = 0;
			steps = seen;
			continue;
		}
		sure = look(blocked, words) ? sure + 1 : 0;
		if (sure > SURE_LOOKS && !others_ended(EVERYBODY))
			deadlocked(words);
		still = now < EVERYBODY && blocked[now] ? still + 1 : 0;
		running++;
		if (now < EVERYBODY && !others_ended(now) && (still >= STILL_LOOKS || running > FREE_LOOKS)) {
			steppers[now].t->blocked = true;
			still = running = 0;
			/* What waits goes on when another one lets it; from there on all are free. */
			if (is_any_parked(now))
				next_segment();
			else
				give_turn(EVERYBODY);
		}
	}
	active = false;
}
