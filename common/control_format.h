/*
 * What `csched hunt` and `csched replay --native` tell the shim, and what the
 * shim learns for them.
 *
 * Options (CSCHED_OPTIONS):
 *   hunt=STRATEGY/ARG/...   how to perturb this run, see enum ctl_strategy
 *   seed=N                  what random choices start from
 *   sites=FILE              the learned sites: a shared mapping of struct ctl_sites,
 *                           so that what a run learned survives its crash
 *   schedule=FILE           edges to enforce, see below
 *   fix=FILE                a fix to apply, see below
 *
 * A *site* is a static instruction of the program's own code that accesses
 * memory (or calls an interposed function), named by module and offset so that
 * it means the same in every run.
 */
#ifndef CSCHED_COMMON_CONTROL_FORMAT_H
#define CSCHED_COMMON_CONTROL_FORMAT_H

#include <stdint.h>

#define CTL_SITES_MAGIC 0x7365746973637363ull /* "cscsites" */
#define CTL_SITES_VERSION 2
#define CTL_MAX_SITES (1u << 16) /* a power of two: open hashing */

enum ctl_site_flag {
	CTL_SITE_USED = 1,
	CTL_SITE_MULTI = 2,  /* executed while more than one thread was alive */
	CTL_SITE_SHARED = 4, /* touched an address that two threads touch, one writing */
	CTL_SITE_WRITE = 8,
	CTL_SITE_READ = 16,
	CTL_SITE_CALL = 32,  /* call of a function outside the module (PLT) */
	CTL_SITE_LOCAL = 128, /* by rsp or below rbp: on the thread's own stack, of interest only when shared */
	CTL_SITE_PAIR = 256, /* the thread had just touched the same address elsewhere: the two may be meant to be one step */
	CTL_SITE_RACY = 64,  /* shared, and no lock is held at all accesses of the address */
};

struct ctl_site {
	uint32_t module; /* hash of the module's file name */
	uint32_t offset; /* ELF virtual address: pc less the load bias */
	uint32_t flags;  /* or of enum ctl_site_flag; updated atomically */
	uint32_t hits;
};

struct ctl_sites {
	uint64_t magic;
	uint32_t version;
	uint32_t size;      /* CTL_MAX_SITES */
	uint32_t nsites;
	uint32_t nshared;
	uint64_t steps;     /* site executions of the longest run, for PCT */
	uint64_t build;     /* checksum of the program's build-id: offsets mean nothing in another */
	uint64_t threads;   /* most that a process had, of those that ended; 0: none has */
	uint64_t fixed;     /* processes in which a fix applied to something (fix=) */
	uint64_t reserved[1];
	struct ctl_site site[CTL_MAX_SITES];
};

/*
 * Strategies and their arguments (all decimal):
 *   learn/PERMILLE/USEC     note which sites are shared; delay with this probability
 *   site/MODULE/OFFSET/USEC/HOW    every thread is delayed whenever it reaches the site
 *   sample/SITES/OF/PERMILLE/USEC  SITES of about OF sites chosen by the seed, delayed with this
 *                           probability
 *   shared/PERMILLE/USEC    the same at all learned shared sites
 *   sync/PERMILLE/USEC      delays at interposed operations only
 *   start/USEC              new threads start late (chosen by the seed)
 *   pct/DEPTH/STEPS         random priorities with DEPTH - 1 change points in STEPS steps
 *   demote/MODULE/OFFSET/N  random priorities; a thread falls below all others at its N-th
 *                           execution of the site (0: every one)
 *   meet/MODULE/OFFSET/USEC a thread waits at the site, at most so long, until another one comes
 *                           to a racy site; then both go on at the same instant
 *
 * MODULE and OFFSET are those of struct ctl_site. HOW is an or of enum ctl_how
 * and, above CTL_HOW_SHIFT, which execution by each thread is delayed (0: every one).
 */
enum ctl_strategy {
	CTL_NONE, CTL_LEARN, CTL_SITE, CTL_SAMPLE, CTL_SHARED, CTL_SYNC, CTL_START, CTL_PCT,
	CTL_DEMOTE, CTL_MEET, CTL_STRATEGIES
};

enum ctl_how {
	CTL_HOW_AFTER = 1, /* behind the instruction instead of before it; not at calls */
	CTL_HOW_SOME = 2,  /* only threads chosen by the seed */
};
#define CTL_HOW_SHIFT 2

/*
 * A hunting run orders its plain accesses at shared sites (tickets) unless its
 * seed has this bit; then it only logs what loads there saw. Ordered runs can
 * be followed without a search, but taking a ticket drains the store buffer, and
 * some failures need that (Dekker's algorithm without fences). A part of
 * the seed, so that a run that is done again is the same.
 */
#define CTL_SEED_NO_TICKETS (1ull << 40)

/*
 * The schedule file is text, one edge a line after the first:
 *
 *   csched-schedule 1
 *   edge ID THREAD MODULE OFFSET N WHEN   THREAD MODULE OFFSET N WHEN
 *
 * The first five words are the source, the last five the target: the target
 * thread waits before the N-th execution of its instruction until the source
 * has happened. ID counts from 0. THREAD is "T0.1"; MODULE is a file name
 * without its directory; OFFSET is hexadecimal, an ELF virtual address (pc less the load
 * bias); N counts from 1; WHEN is "before" or "after" the instruction; after a
 * call means when it has returned. MODULE "-" is the start of the thread; an N of CTL_NEVER
 * never comes; THREAD "*" at its start is every thread that no line names. A target may also be "again": inside the call of a condition wait, woken,
 * before the mutex is taken again; after any other call. "woken" is inside a condition wait, too: as a
 * target before it takes a wake-up, as a source when it has done so. And a source "inside" a call: it has come
 * to a system call there (it has arrived at a barrier, or let its mutex go), or has returned.
 * "middle" is between the read and the write of an instruction that does both (add $1, counter).
 *
 *   meet ID THREAD MODULE OFFSET N WHEN   THREAD MODULE OFFSET N WHEN
 *
 * The two wait a moment for each other and go on at the same instant (N 0: at every execution). What needs
 * stores that are visible late has no order that could be enforced. Numbered among the edges.
 *
 *   then ID THREAD MODULE OFFSET N WHEN   THREAD MODULE OFFSET N WHEN
 *
 * An edge that counts anew from every meeting: behind one, the target waits a moment for the source. Whether the other
 * comes there depends on what the meeting brought.
 *
 *   turn ID THREAD MODULE OFFSET N WHEN
 *
 * Behind the order: from here on the thread runs when those of earlier turns and all
 * others are blocked, have ended or wait for their turn.
 *
 *   process WHICH
 *
 * The schedule is for a forked child: WHICH is "2.1" for the first child of the second. Every other process goes its way.
 *
 *   yield
 *
 * In that rest, who makes or wakes others lets them go first.
 *
 * Lines that start with # are remarks; the shim skips them. Some are for the analyzer,
 * which finds the edges again with them in a program that was built anew:
 *
 *   # build MODULE BUILD-ID
 *   # at ID source|target ORDINAL LINE FILE
 *   # in ID source|target FUNCTION
 *   # text ID source|target SOURCE TEXT
 *
 * What in a THREAD, MODULE, WHICH, FILE, FUNCTION or TEXT is not printable ASCII, a '%', and in words a blank, is written
 * %XX (common/escape.h).
 *
 * ORDINAL counts, from 0, the memory accesses and calls of FUNCTION at FILE:LINE.
 */
/*
 * The points of a fix (fix=FILE), text, one a line after the first. The analyzer writes it from a
 * fix of csched-fix(5), whose places are source lines:
 *
 *   csched-fix-points 1
 *   region ITEM LOCK UP COUNT   code that is run holding the fix's lock LOCK. It begins at `begin' (anew each
 *                               time) or `enter' (unless it has begun), ends behind the COUNT-th `end', and when the
 *                               function it began in returns, or the UP-th caller of that
 *   order ITEM EACH             `target' waits until `source' was done, by anybody; if EACH is 1, who comes to it the n-th
 *                               time also until all that are named were there n times, or have ended
 *   by ITEM ID                  names a thread for that
 *   guard LOCK MODULE OFFSET    whoever acquires the program's lock there takes LOCK first
 *   taken LOCK MODULE OFFSET    the same for what this call acquires
 *   thread ID                   `join' waits for its end
 *   KEYWORD ITEM MODULE OFFSET  begin, enter, end, source, target, join, check, keep, fence, wake-all
 *
 * MODULE and OFFSET as in a schedule. A run that a fix brings to a halt fails, as a deadlock whose text begins with
 * CTL_FIX_DEADLOCK.
 */
#define CTL_FIX_MAGIC "csched-fix-points 1"
#define CTL_FIX_DEADLOCK "deadlock under the fix: "

#define CTL_SCHEDULE_MAGIC "csched-schedule 1"
#define CTL_MAX_EDGES 2048
#define CTL_START_MODULE "-"
#define CTL_ANY_THREAD "*"
#define CTL_NEVER UINT32_MAX

/* FNV-1a of a module's file name (no directory). */
static inline uint32_t ctl_module_hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return h ? h : 1;
}

#endif
