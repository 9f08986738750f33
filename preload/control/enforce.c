/*
 * Enforcing an order: each edge has a source and a target, named in occurrence
 * form. The thread of the target waits there until the source has happened. A
 * wait that lasts too long means the run went another way: it is reported once
 * and the thread goes on.
 *
 * A turn is where the order's part of a thread ends and the rest begins: there
 * the threads go on one at a time, as far as each one gets.
 */
#include "preload/control/control.h"

#include "preload/raw.h"
#include "preload/translate/translate.h"
#include "preload/watch.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <time.h>

#define PATIENCE_US 5000000
#define POLL_US 50000
/* Everybody else was blocked for so long: nobody is left to do what is waited for. */
#define STUCK_US 300000
#define TURN_POLL_US 500
#define TURN_POLLS 3
/* The others may compute, wait for something we do not see, or wake each other for ever. */
#define TURN_MAX_US 500000
#define MEET_US 1000
#define MEET_BUDGET_US 300000
#define MEET_CYCLES 4000 /* enough for the other to see it */
#define MEET_SPREAD 128
#define NAME_MAX_ 256
#define INSN_MAX 15

enum when { BEFORE, AFTER, AGAIN, INSIDE, MIDDLE };

struct end {
	char thread[SHIM_ID_MAX];
	uint32_t module;
	uint64_t offset;
	uint64_t n;      /* which execution, from 1 */
	enum when when;
	uint64_t pc;     /* in this process; 0: not translated yet */
	uint64_t back;   /* after a call: where it returns to; else 0 */
	/* Only its own thread touches these. */
	uint64_t count;  /* executions so far */
	uint64_t stack;  /* rsp at the call that counts, until it has returned; else 0 */
	uint64_t mutex;  /* again: what that call lets go and takes again */
	uint32_t touched; /* how often it did so */
};

struct edge {
	uint64_t id;
	bool turn;     /* has no source */
	bool meet;     /* both wait for each other */
	uint32_t waiter;    /* meet: thread index + 1 of who came first */
	uint64_t go;        /* ... and the time at which both go on */
	uint64_t wasted_us; /* ... and for how long nobody came */
	struct end source, target;
	uint32_t done; /* futex: 1 when the source has happened */
	bool queued;   /* a turn that is waited for */
	bool given_up;
};

static struct edge edges[CTL_MAX_EDGES];
static unsigned nedges;
static bool again; /* some edge is one */
static bool turns;
static bool yields; /* see ctl_serial_init() */
/* Of the serial rest; edges watch system calls in front of it. */
static void (*serial_enter)(struct tr_ctx *c, long nr, const uint64_t args[6]);
static uint32_t waiting; /* threads held back right now */
static char text[1 << 18];

/* ---- reading the file ---- */

static bool word(const char **p, char *out, size_t size)
{
	size_t n = 0;

	while (**p == ' ')
		(*p)++;
	while (**p && **p != ' ' && **p != '\n' && n + 1 < size)
		out[n++] = *(*p)++;
	out[n] = 0;
	return n > 0 && (**p == ' ' || **p == '\n' || !**p);
}

static bool number(const char **p, unsigned base, uint64_t *v)
{
	char digits[24];

	*v = 0;
	if (!word(p, digits, sizeof digits))
		return false;
	for (char *d = digits; *d; d++) {
		unsigned x = *d >= 'a' ? (unsigned)(*d - 'a' + 10) : (unsigned)(*d - '0');

		if (x >= base)
			return false;
		*v = *v * base + x;
	}
	return true;
}

static bool same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static const char when_names[][8] = { "before", "after", "again", "inside", "middle" };

static bool parse_end(const char **p, struct end *e)
{
	char module[NAME_MAX_], when[8];

	if (!word(p, e->thread, sizeof e->thread) || !word(p, module, sizeof module) ||
	    !number(p, 16, &e->offset) || !number(p, 10, &e->n) || !word(p, when, sizeof when))
		return false;
	e->module = ctl_module_hash(module);
	for (unsigned i = 0; i < sizeof when_names / sizeof *when_names; i++)
		if (same(when, when_names[i])) {
			e->when = (enum when)i;
			return true;
		}
	return false;
}

static bool parse_line(const char *p)
{
	char keyword[8];

	if (*p == '#' || *p == '\n' || !*p)
		return true;
	if (!word(&p, keyword, sizeof keyword))
		return false;
	if (same(keyword, "yield")) {
		yields = true;
		return true;
	}
	if (nedges == CTL_MAX_EDGES)
		return false;
	struct edge *e = &edges[nedges];
	e->turn = same(keyword, "turn");
	e->meet = same(keyword, "meet");
	if ((!e->turn && !e->meet && !same(keyword, "edge")) || !number(&p, 10, &e->id) ||
	    (!e->turn && !parse_end(&p, &e->source)) || !parse_end(&p, &e->target))
		return false;
	again |= e->target.when == AGAIN;
	turns |= e->turn;
	nedges++;
	return true;
}

static bool parse(const char *p)
{
	size_t n = strlen(CTL_SCHEDULE_MAGIC);

	if (memcmp(p, CTL_SCHEDULE_MAGIC, n) || p[n] != '\n')
		return false;
	for (p += n + 1; *p;) {
		if (!parse_line(p))
			return false;
		while (*p && *p != '\n')
			p++;
		p += *p == '\n';
	}
	return nedges > 0;
}

static void at_syscall(struct tr_ctx *c, long nr, const uint64_t args[6]);

bool ctl_enforce_init(const char *path)
{
	long fd = raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;

	for (long got = 1; !raw_failed(fd) && got > 0 && n < sizeof text - 1; n += got > 0 ? (size_t)got : 0)
		got = raw(SYS_read, fd, text + n, sizeof text - 1 - n);
	if (!raw_failed(fd))
		raw(SYS_close, fd);
	text[n] = 0;
	if (n > 0 && n < sizeof text - 1 && parse(text)) {
		if (turns)
			ctl_serial_init(yields);
		serial_enter = ctl_syscall_enter;
		ctl_syscall_enter = at_syscall;
		return true;
	}
	shim_degrade("the file named by schedule= is not a schedule; nothing is enforced");
	return false;
}

/* ---- at run time ---- */

/*
 * Asked under the translator's lock; what it finds out is what callouts
 * compare with. "After" a call means when it has returned: the call is watched, and
 * the instruction behind it, which may also be reached in other ways.
 */
static unsigned plan_end(struct end *e, bool source, uint64_t pc, const struct insn *in,
			 const struct ctl_module *m)
{
	bool call = in->cls == INSN_CALL || in->cls == INSN_CALL_IND;

	if (pc == e->back && pc)
		return CTL_CALLOUT_BEFORE;
	if (e->module != m->hash || e->offset != pc - m->bias)
		return 0;
	if (e->when == MIDDLE && !split_possible(in)) /* of another build: the read alone, or the write */
		e->when = source ? AFTER : BEFORE;
	if (e->when != BEFORE && call)
		__atomic_store_n(&e->back, pc + in->len, __ATOMIC_RELAXED);
	__atomic_store_n(&e->pc, pc, __ATOMIC_RELEASE);
	if (e->when == MIDDLE)
		return CTL_SPLIT | CTL_CALLOUT_MIDDLE;
	return e->when == AFTER && !call ? CTL_CALLOUT_AFTER : CTL_CALLOUT_BEFORE;
}

unsigned ctl_enforce_plan(uint64_t pc, const struct insn *in)
{
	const struct ctl_module *m = ctl_module_at(pc);
	/* Mutexes are taken again inside libc, by instructions like these. */
	unsigned flags = again && in->flags & INSN_LOCKED && m && !m->own ? CTL_CALLOUT_BEFORE : 0;

	for (unsigned i = 0; m && i < nedges; i++)
		flags |= plan_end(&edges[i].source, true, pc, in, m) |
			 plan_end(&edges[i].target, false, pc, in, m);
	return flags;
}

static bool returned(struct end *e, const struct tr_ctx *c)
{
	if (!e->stack || e->stack != c->regs[REG_RSP_])
		return false;
	e->stack = 0;
	return e->when != AGAIN || e->touched < 2;
}

/*
 * Inside the call, a thread that waits for a condition touches its mutex to let it
 * go and then to take it again: that is where it can be held without holding it.
 */
static bool takes_again(struct end *e, const struct tr_ctx *c, uint64_t pc)
{
	const uint8_t *code = (const uint8_t *)pc;
	struct insn in;

	if (e->when != AGAIN || !e->stack || e->touched > 1 || !same(e->thread, c->thread->id) ||
	    !insn_decode(&in, code, INSN_MAX, pc) || !(in.flags & INSN_LOCKED) ||
	    tr_operand_address(&in, pc, code, c) != e->mutex)
		return false;
	return ++e->touched == 2;
}

/* Is this the execution of the end that counts? */
static bool reached(struct end *e, const struct tr_ctx *c, uint64_t pc, enum ctl_at at)
{
	uint64_t mine = __atomic_load_n(&e->pc, __ATOMIC_ACQUIRE), back = e->back;
	enum ctl_at where = e->when == MIDDLE ? CTL_AT_MIDDLE :
			    e->when == AFTER && !back ? CTL_AT_AFTER : CTL_AT_BEFORE;

	if ((mine != pc && back != pc) || !pc || !same(e->thread, c->thread->id))
		return takes_again(e, c, pc);
	if (back == pc && at == CTL_AT_BEFORE && returned(e, c))
		return true;
	if (mine != pc || at != where)
		return false;
	if (++e->count != e->n && e->n)
		return false;
	if (back) {
		e->stack = c->regs[REG_RSP_];
		e->mutex = c->regs[REG_RSI_];
	}
	return !back;
}

/* native.c of the analyzer reads these notes: "schedule: edge N ...". */
static void note(const struct edge *e, const char *what)
{
	TEXT(line, 200);

	text_str(&line, "schedule: edge ");
	text_num(&line, (long)e->id);
	text_str(&line, what);
	shim_note(false, line.s);
}

static bool all_others_blocked(void)
{
	return __atomic_load_n(&shim.nblocked, __ATOMIC_RELAXED) +
	       __atomic_load_n(&waiting, __ATOMIC_RELAXED) >=
	       __atomic_load_n(&shim.nlive, __ATOMIC_RELAXED);
}

/* Blocked is also who was woken and has not come to run yet: the kernel knows. */
static bool nobody_can_go_on(void)
{
	return all_others_blocked() && !watch_somebody_runs();
}

static void pause_us(const struct edge *e, unsigned us)
{
	struct timespec t = { 0, us * 1000 };

	/* In its call such a thread counts as blocked: only who sleeps otherwise is not
	 * taken for a part of a deadlock. */
	if (e->target.when == AGAIN)
		raw(SYS_nanosleep, &t, 0);
	else
		raw(SYS_futex, &e->done, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &t);
}

static void wait_for(struct edge *e)
{
	uint64_t now = ctl_now_us(), until = now + PATIENCE_US, stuck = now, events = shim_all_events();
	bool counted = e->target.when == AGAIN;

	__atomic_fetch_add(&waiting, !counted, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&e->done, __ATOMIC_ACQUIRE)) {
		pause_us(e, counted ? TURN_POLL_US : POLL_US);
		now = ctl_now_us();
		if (!all_others_blocked() || shim_all_events() != events) {
			events = shim_all_events();
			stuck = now;
		}
		if (__atomic_load_n(&e->done, __ATOMIC_ACQUIRE))
			break;
		if (now - stuck > STUCK_US && !nobody_can_go_on())
			stuck = now;
		if (now >= until || now - stuck > STUCK_US || e->given_up) {
			e->given_up = true;
			note(e, ": its target waited in vain");
			break;
		}
	}
	__atomic_fetch_sub(&waiting, !counted, __ATOMIC_RELAXED);
}

/*
 * What needs both at once is a matter of nanoseconds: the second one names the instant, and both
 * spin until then, a little earlier or later each time. Who comes first waits a while, not for ever:
 * nothing is claimed of when the other comes.
 */
static void meet_here(struct edge *e, const struct tr_ctx *c)
{
	uint32_t me = c->thread->index + 1, there = __atomic_load_n(&e->waiter, __ATOMIC_ACQUIRE), mine = me;
	uint64_t begin = ctl_now_us();

	if (there && there != me) {
		__atomic_store_n(&e->go, raw_tsc() + MEET_CYCLES, __ATOMIC_RELEASE);
		__atomic_store_n(&e->waiter, 0, __ATOMIC_RELEASE);
	} else {
		if (there || __atomic_load_n(&e->wasted_us, __ATOMIC_RELAXED) > MEET_BUDGET_US ||
		    !__atomic_compare_exchange_n(&e->waiter, &there, me, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return;
		while (__atomic_load_n(&e->waiter, __ATOMIC_ACQUIRE) == me && ctl_now_us() - begin < MEET_US)
			;
		if (__atomic_compare_exchange_n(&e->waiter, &mine, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			__atomic_fetch_add(&e->wasted_us, MEET_US, __ATOMIC_RELAXED);
			return;
		}
	}
	uint64_t go = __atomic_load_n(&e->go, __ATOMIC_ACQUIRE) +
		      ctl_random((uint64_t)shim.pid ^ c->thread->index, begin) % MEET_SPREAD;
	while (raw_tsc() < go)
		__asm__ volatile("pause");
}

static bool is_next(const struct edge *e)
{
	for (const struct edge *x = edges; x < e; x++)
		if (__atomic_load_n(&x->queued, __ATOMIC_ACQUIRE))
			return false;
	return true;
}

/*
 * Who comes first in the file goes first; the next one when all others are
 * blocked, ended or wait here themselves. Nothing is claimed of this part of the
 * run: a wait that is too long ends without a word.
 */
static void wait_turn(struct edge *e)
{
	uint64_t events = shim_all_events(), next_since = ctl_now_us();
	unsigned polls = 0;

	__atomic_store_n(&e->queued, true, __ATOMIC_RELEASE);
	__atomic_fetch_add(&waiting, 1, __ATOMIC_RELAXED);
	while (polls < TURN_POLLS && ctl_now_us() - next_since < TURN_MAX_US) {
		pause_us(e, TURN_POLL_US);
		uint64_t now = shim_all_events();

		polls = now == events && nobody_can_go_on() ? polls + 1 : 0;
		events = now;
		if (!is_next(e)) {
			next_since = ctl_now_us();
			polls = 0;
		}
	}
	__atomic_fetch_sub(&waiting, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&e->queued, false, __ATOMIC_RELEASE);
}

static void happened(struct edge *e)
{
	__atomic_store_n(&e->done, 1, __ATOMIC_RELEASE);
	raw(SYS_futex, &e->done, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 0x7fffffff);
}

/* Who sleeps in a call has done there what others can see: arrived, or let go. */
static void at_syscall(struct tr_ctx *c, long nr, const uint64_t args[6])
{
	for (unsigned i = 0; i < nedges; i++)
		if (edges[i].source.when == INSIDE && edges[i].source.stack && !edges[i].done &&
		    same(edges[i].source.thread, c->thread->id))
			happened(&edges[i]);
	if (serial_enter)
		serial_enter(c, nr, args);
}

static void stop_at(struct tr_ctx *c, struct edge *e)
{
	if (!e->turn) {
		wait_for(e);
		return;
	}
	wait_turn(e);
	ctl_serial_join(c, (unsigned)(e - edges));
}

/*
 * What lies behind us has happened before we wait for anything; what is to
 * happen now, or is announced before it happens, comes after the waiting.
 */
void ctl_enforce(struct tr_ctx *c, uint64_t pc, enum ctl_at at)
{
	struct edge *meeting = NULL;

	for (unsigned i = 0; i < nedges; i++)
		if (edges[i].source.when != BEFORE && reached(&edges[i].source, c, pc, at))
			happened(&edges[i]);
	for (unsigned i = 0; i < nedges; i++)
		if (reached(&edges[i].target, c, pc, at)) {
			if (edges[i].meet)
				meeting = &edges[i];
			else
				stop_at(c, &edges[i]);
		}
	for (unsigned i = 0; i < nedges; i++)
		if (edges[i].meet && reached(&edges[i].source, c, pc, at))
			meeting = &edges[i];
		else if (!edges[i].meet && edges[i].source.when == BEFORE && reached(&edges[i].source, c, pc, at))
			happened(&edges[i]);
	/* Nothing may come between this and the instruction. */
	if (meeting)
		meet_here(meeting, c);
}

static bool is_named(const struct tr_ctx *c)
{
	for (unsigned i = 0; i < nedges; i++)
		if (same(edges[i].target.thread, c->thread->id) || same(edges[i].source.thread, c->thread->id))
			return true;
	return false;
}

void ctl_enforce_start(struct tr_ctx *c)
{
	uint32_t start = ctl_module_hash(CTL_START_MODULE);
	const char *name = is_named(c) ? c->thread->id : CTL_ANY_THREAD;

	for (unsigned i = 0; i < nedges; i++)
		if (edges[i].target.module == start && same(edges[i].target.thread, name)) {
			edges[i].target.count = edges[i].target.n;
			stop_at(c, &edges[i]);
		}
	/* It begins behind the order. */
	if (turns && !is_named(c))
		ctl_serial_join(c, CTL_MAX_EDGES);
}

void ctl_enforce_end(void)
{
	if (turns)
		ctl_pct_end();
	for (unsigned i = 0; i < nedges; i++) {
		const struct edge *e = &edges[i];

		if (e->turn)
			continue;
		if (e->source.count < e->source.n && e->source.n != CTL_NEVER)
			note(e, ": its source was never reached");
		else if (e->target.count < e->target.n)
			note(e, ": its target was never reached");
	}
}
