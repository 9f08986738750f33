/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stepping: each thread stops at each instruction of the library that accesses memory other than its own stack, or goes
 * elsewhere. A breakpoint at the next such instruction stops it there; where the next one is not known, after a branch,
 * the processor's trap flag does (which costs more). The trap
 * handler notes what the instruction accesses and decides which thread runs. Functions outside the library
 * run freely: a breakpoint where they return brings the stepping back (not a changed return address, which
 * would break C++ exceptions). Only one of the threads runs at a time.
 */
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

const struct step_insn *step_insn_at(uint64_t pc)
{
	return step_decode(pc, pristine + (pc - job->text_start));
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
	step_note(s, JOB_ENTER, (s->entry ? s->entry : pc) - job->bias, 0);
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
		in = step_insn_at(pc);
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
	const struct step_insn *in = step_insn_at(pc);

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
		step_note_accesses(s, in, g);
		if (in->is_call) {
			s->last_call = pc;
			s->called = true;
			s->entry = 0;
		}
		if (in->is_return)
			step_note(s, JOB_LEAVE, 0, 0);
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
	step_note_values(s);
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
				step_note_came_back(s, g);
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
			step_note_call_out(s, pc, g);
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
		steppers[i] = (struct stepper){ .job = j, .t = &j->thread[i], .index = i, .ended = !takes_part[i] };
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
	step_note(s, JOB_CALL, function - job->bias, 0);
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
	step_note(s, JOB_RETURNED, call, 0);
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
