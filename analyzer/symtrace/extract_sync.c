/* From the recorder's sync records to events, with the state of every object. */
#include "analyzer/symtrace/extract_internal.h"

#include <errno.h>
#include <string.h>

/* What an operation is to the schedule side. */
enum family {
	F_OTHER, F_ACQUIRE, F_TRY, F_SHARED, F_TRYSHARED, F_RELEASE, F_WAIT, F_SIGNAL, F_BROADCAST,
	F_SEMWAIT, F_SEMTRY, F_POST, F_BARRIER, F_ONCE, F_JOIN, F_CREATE, F_INIT,
};

static const struct {
	enum family family;
	enum sym_object_kind kind;
} ops[TRC_OP_COUNT] = {
	[TRC_OP_CREATE] = { F_CREATE, 0 },
	[TRC_OP_JOIN] = { F_JOIN, 0 },
	[TRC_OP_TRYJOIN] = { F_JOIN, 0 },
	[TRC_OP_TIMEDJOIN] = { F_JOIN, 0 },
	[TRC_OP_LOCK] = { F_ACQUIRE, SYM_MUTEX },
	[TRC_OP_TIMEDLOCK] = { F_ACQUIRE, SYM_MUTEX },
	[TRC_OP_TRYLOCK] = { F_TRY, SYM_MUTEX },
	[TRC_OP_UNLOCK] = { F_RELEASE, SYM_MUTEX },
	[TRC_OP_MUTEX_INIT] = { F_INIT, SYM_MUTEX },
	[TRC_OP_SPINLOCK] = { F_ACQUIRE, SYM_MUTEX },
	[TRC_OP_SPINTRYLOCK] = { F_TRY, SYM_MUTEX },
	[TRC_OP_SPINUNLOCK] = { F_RELEASE, SYM_MUTEX },
	[TRC_OP_RDLOCK] = { F_SHARED, SYM_RWLOCK },
	[TRC_OP_TIMEDRDLOCK] = { F_SHARED, SYM_RWLOCK },
	[TRC_OP_TRYRDLOCK] = { F_TRYSHARED, SYM_RWLOCK },
	[TRC_OP_WRLOCK] = { F_ACQUIRE, SYM_RWLOCK },
	[TRC_OP_TIMEDWRLOCK] = { F_ACQUIRE, SYM_RWLOCK },
	[TRC_OP_TRYWRLOCK] = { F_TRY, SYM_RWLOCK },
	[TRC_OP_RWUNLOCK] = { F_RELEASE, SYM_RWLOCK },
	[TRC_OP_WAIT] = { F_WAIT, SYM_COND },
	[TRC_OP_TIMEDWAIT] = { F_WAIT, SYM_COND },
	[TRC_OP_SIGNAL] = { F_SIGNAL, SYM_COND },
	[TRC_OP_BROADCAST] = { F_BROADCAST, SYM_COND },
	[TRC_OP_BARRIER_INIT] = { F_INIT, SYM_BARRIER },
	[TRC_OP_BARRIER] = { F_BARRIER, SYM_BARRIER },
	[TRC_OP_SEM_INIT] = { F_INIT, SYM_SEM },
	[TRC_OP_SEM_OPEN] = { F_INIT, SYM_SEM },
	[TRC_OP_SEM_WAIT] = { F_SEMWAIT, SYM_SEM },
	[TRC_OP_SEM_TIMEDWAIT] = { F_SEMWAIT, SYM_SEM },
	[TRC_OP_SEM_TRYWAIT] = { F_SEMTRY, SYM_SEM },
	[TRC_OP_SEM_POST] = { F_POST, SYM_SEM },
	[TRC_OP_ONCE] = { F_ONCE, SYM_ONCE },
};

/* glibc's objects, in words of 32 bits; the same since 2.25. */
enum {
	MUTEX_KIND_WORD = 4,
	MUTEX_KIND_TYPE = 3,
	MUTEX_KIND_RECURSIVE = 1,
	BARRIER_COUNT_WORD = 2,
};

/*
 * It was there before the record begins, at a checkpoint: memory says what has become of it. Who has arrived at a barrier, and
 * who holds a lock, the checkpoint says.
 */
static void begin_with(struct ext_object *o, const struct mach_object *before)
{
	if (!before)
		return;
	switch (o->kind) {
	case SYM_MUTEX:
		o->recursive = (before->words[MUTEX_KIND_WORD] & MUTEX_KIND_TYPE) == MUTEX_KIND_RECURSIVE;
		break;
	case SYM_SEM:
		o->count = before->words[0];
		break;
	case SYM_BARRIER:
		o->count = before->words[BARRIER_COUNT_WORD];
		break;
	case SYM_ONCE:
		o->count = before->words[0] != 0;
		break;
	default:
		break;
	}
}

static struct ext_object *object_at(struct ext *x, uint64_t address, enum sym_object_kind kind)
{
	for (size_t i = x->objects.n; i > 0; i--)
		if (x->objects.v[i - 1].address == address && x->objects.v[i - 1].kind == kind)
			return &x->objects.v[i - 1];
	vec_push(&x->objects, (struct ext_object){ .address = address, .kind = kind,
						   .index = SYM_NONE, .owner = SYM_NONE });
	begin_with(&x->objects.v[x->objects.n - 1], mach_object_before(x->run, address));
	return &x->objects.v[x->objects.n - 1];
}

/* The object in the trace; its state there is the one before its first event. */
static uint32_t object_index(struct ext *x, uint32_t thread, struct ext_object *o)
{
	if (o->index != SYM_NONE) {
		ext_name_better(x, thread, o->address, 1,
				&(struct ext_naming){ &x->trace->objects[o->index].name, NULL,
						      &o->named, NULL });
		return o->index;
	}
	struct sym_object s = { .kind = o->kind, .address = o->address, .recursive = o->recursive,
				.count = o->count, .owner = o->owner };

	s.name = ext_name(x, thread, o->address, 1, NULL, &o->named);
	o->index = sym_add_object(x->trace, &s);
	free(s.name);
	return o->index;
}

static int by_name(const void *a, const void *b)
{
	const struct sym_object *x = *(struct sym_object *const *)a, *y = *(struct sym_object *const *)b;
	int c = x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind) : strcmp(x->name, y->name);

	return c ? c : (x > y) - (x < y);
}

/* A name by the way to an object is a name for each that is reached that way. */
void ext_tell_objects_apart(struct ext *x)
{
	struct sym_trace *t = x->trace;
	struct sym_object **sorted = xcalloc(t->nobjects + 1, sizeof *sorted);
	size_t end;

	for (size_t i = 0; i < t->nobjects; i++)
		sorted[i] = &t->objects[i];
	if (t->nobjects)
		qsort(sorted, t->nobjects, sizeof *sorted, by_name);
	for (size_t i = 0; i < t->nobjects; i = end) {
		for (end = i + 1; end < t->nobjects && sorted[end]->kind == sorted[i]->kind &&
				  !strcmp(sorted[end]->name, sorted[i]->name);)
			end++;
		for (size_t k = i; end - i > 1 && k < end; k++) {
			char *name = xasprintf("%s#%zu", sorted[k]->name, k - i + 1);

			free(sorted[k]->name);
			sorted[k]->name = name;
		}
	}
	free(sorted);
}

static bool is_release(enum sym_op op)
{
	return op == SYM_UNLOCK || op == SYM_SIGNAL || op == SYM_BROADCAST || op == SYM_SEMPOST ||
	       op == SYM_FORK;
}

struct sync_event {
	enum sym_op op;
	struct ext_object *object; /* or NULL */
	int32_t result;
	uint32_t peer, link;
};

#define MOST_PAST 20000

/* For whoever has to bring a live run to where the window begins. */
static void note_past(struct ext *x, uint32_t thread, const struct sync_event *s, uint64_t pc, uint64_t n)
{
	if (!x->past && ext_now(x) >= x->from)
		return;
	x->sync_before_lost |= x->sync_before.n == MOST_PAST;
	if (s->object && x->sync_before.n < MOST_PAST)
		vec_push(&x->sync_before, (struct ext_past){ .op = s->op, .thread = thread, .kind = s->object->kind,
						      .result = s->result, .object = s->object->address,
						      .pc = pc, .occurrence = n });
}

static uint32_t emit(struct ext *x, uint32_t thread, const struct trc_sync *r,
		     const struct sync_event *s)
{
	struct sym_event e;
	uint64_t pc = r->site ? r->site - 1 : 0; /* inside the call */
	uint64_t insn = mach_thread_insns(x->run, thread);
	/* All events of one call are one occurrence of its call site. */
	uint64_t n = ext_count(x, thread, pc, ext_thread(x, thread)->call_insn);

	if (!x->in_window) {
		note_past(x, thread, s, pc, n);
		return SYM_NONE;
	}
	sym_event_init(&e, s->op);
	if (s->object)
		e.target = object_index(x, thread, s->object);
	e.result = s->result;
	e.peer = s->peer;
	e.link = s->link;
	uint32_t index = ext_event(x, thread, &e, pc, n, insn);
	if (is_release(s->op)) {
		struct ext_thread *th = ext_thread(x, thread);

		th->release_site = r->site;
		th->release_point = index;
	}
	return index;
}

static uint32_t simple(struct ext *x, uint32_t thread, const struct trc_sync *r, enum sym_op op,
		       struct ext_object *o, int32_t result)
{
	return emit(x, thread, r, &(struct sync_event){ op, o, result, SYM_NONE, SYM_NONE });
}

static void own(struct ext *x, struct ext_object *o, uint32_t thread)
{
	if (o->owner == thread && o->depth) {
		o->recursive = true;
		if (o->index != SYM_NONE)
			x->trace->objects[o->index].recursive = true;
	}
	o->owner = thread;
	o->depth++;
}

static void disown(struct ext_object *o)
{
	if (o->depth && !--o->depth)
		o->owner = SYM_NONE;
}

static bool acquired(int32_t result)
{
	return result == 0 || result == EOWNERDEAD;
}

/* What was just noted is a part of a wait. */
static void past_waits(struct ext *x, const struct ext_object *cond)
{
	if (!x->in_window && x->sync_before.n)
		x->sync_before.v[x->sync_before.n - 1].cond = cond->address;
}

static void wait_record(struct ext *x, uint32_t thread, const struct trc_sync *r, enum trc_at at)
{
	struct ext_thread *th = ext_thread(x, thread);
	/* Both first: adding one may move the other. */
	object_at(x, r->value, SYM_MUTEX);
	object_at(x, r->object, SYM_COND);
	struct ext_object *mutex = object_at(x, r->value, SYM_MUTEX);
	struct ext_object *cond = object_at(x, r->object, SYM_COND);

	if (at == TRC_AT_BLOCK) {
		th->release = simple(x, thread, r, SYM_UNLOCK, mutex, 1);
		if (th->release != SYM_NONE) {
			th->release_site = 0;
			th->wait_mutex = r->value;
		}
		past_waits(x, cond);
		disown(mutex);
		return;
	}
	th->wait_mutex = 0;
	if (r->result && r->result != ETIMEDOUT && r->result != EOWNERDEAD)
		return; /* EINVAL, EPERM: no wait took place */
	/* Begun before the window: who woke it may lie there, too; it is only a lock here. */
	if (th->release != SYM_NONE)
		emit(x, thread, r, &(struct sync_event){ SYM_WAIT, cond,
							 r->result == ETIMEDOUT ? 0 : 1,
							 SYM_NONE, th->release });
	simple(x, thread, r, SYM_LOCK, mutex, 1);
	past_waits(x, cond);
	own(x, mutex, thread);
	th->release = SYM_NONE;
}

static void barrier_arrives(struct ext *x, uint32_t thread, const struct trc_sync *r)
{
	struct ext_thread *th = ext_thread(x, thread);
	struct ext_object *o = object_at(x, r->object, SYM_BARRIER);

	/* A round whose first arrival lies before the window is left out as a whole. */
	if (o->arrived++ % (uint64_t)(o->count > 0 ? o->count : 1) == 0)
		o->whole = x->in_window;
	th->arriving = NULL;
	th->entered = true;
	th->enter = o->whole ? simple(x, thread, r, SYM_BARRIER_ENTER, o, 1) : SYM_NONE;
}

/* The last to arrive is told so: threads arrive when they count themselves in, inside the call. */
void ext_sync_write(struct ext *x, const struct mach_access *a)
{
	struct ext_thread *th = ext_thread(x, a->thread);

	if (!th->arriving || a->address != th->arriving->object)
		return;
	barrier_arrives(x, a->thread, th->arriving);
	if (th->enter != SYM_NONE)
		th->points.v[th->enter].insn = a->insn;
}

void ext_sync_settle(struct ext *x, uint32_t thread)
{
	struct ext_thread *th = ext_thread(x, thread);

	if (th->arriving)
		barrier_arrives(x, thread, th->arriving);
}

static void barrier_record(struct ext *x, uint32_t thread, const struct trc_sync *r,
			   struct ext_object *o, enum trc_at at)
{
	struct ext_thread *th = ext_thread(x, thread);

	if (at == TRC_AT_BLOCK) {
		th->arriving = r;
		return;
	}
	if (at != TRC_AT_DONE)
		return;
	if (!th->entered)
		barrier_arrives(x, thread, r);
	if (th->enter != SYM_NONE)
		emit(x, thread, r,
		     &(struct sync_event){ SYM_BARRIER_LEAVE, o, 1, SYM_NONE, th->enter });
	th->enter = SYM_NONE;
	th->entered = false;
}

static void acquire_record(struct ext *x, uint32_t thread, const struct trc_sync *r,
			   struct ext_object *o, enum family f)
{
	static const enum sym_op op[] = {
		[F_ACQUIRE] = SYM_LOCK, [F_TRY] = SYM_TRYLOCK, [F_SHARED] = SYM_RDLOCK,
		[F_TRYSHARED] = SYM_TRYRDLOCK,
	};
	bool got = acquired(r->result), exclusive = f == F_ACQUIRE || f == F_TRY;

	if (!got && (f == F_ACQUIRE || f == F_SHARED))
		return; /* timed out or refused: nothing was acquired */
	simple(x, thread, r, op[f], o, got);
	if (got && exclusive)
		own(x, o, thread);
}

static void sem_record(struct ext *x, uint32_t thread, const struct trc_sync *r,
		       struct ext_object *o, enum family f)
{
	bool got = r->result == 0;

	if (f == F_POST) {
		simple(x, thread, r, SYM_SEMPOST, o, 1);
		o->count++;
	} else if (got || f == F_SEMTRY) {
		simple(x, thread, r, SYM_SEMWAIT, o, got);
		o->count -= got;
	}
}

static void init_record(struct ext *x, const struct trc_sync *r, struct ext_object *o)
{
	if (r->result)
		return;
	o->owner = SYM_NONE;
	o->depth = 0;
	if (o->kind == SYM_MUTEX)
		o->recursive = r->value == 1; /* PTHREAD_MUTEX_RECURSIVE */
	else
		o->count = (int64_t)r->value;
	/* Initialised inside the window, before its first use. */
	if (o->index != SYM_NONE) {
		x->trace->objects[o->index].count = o->count;
		x->trace->objects[o->index].recursive |= o->recursive;
	}
}

static void thread_record(struct ext *x, uint32_t thread, const struct trc_sync *r, enum family f)
{
	enum sym_op op = f == F_CREATE ? SYM_FORK : SYM_JOIN;

	if (r->thread >= x->threads.n || (f == F_JOIN && r->result))
		return;
	emit(x, thread, r, &(struct sync_event){ op, NULL, 1, r->thread, SYM_NONE });
}

/* The first to come runs the initialiser; who finds it done passes at once. */
static void once_record(struct ext *x, uint32_t thread, const struct trc_sync *r,
			struct ext_object *o, enum trc_at at, bool blocked)
{
	if (at == TRC_AT_BLOCK || !blocked) {
		simple(x, thread, r, SYM_ONCE_BEGIN, o, at == TRC_AT_BLOCK && !o->count);
		o->count = 1;
	}
	if (at == TRC_AT_DONE)
		simple(x, thread, r, SYM_ONCE_END, o, 1);
}

static void done_record(struct ext *x, uint32_t thread, const struct trc_sync *r, enum trc_op op)
{
	enum family f = ops[op].family;
	struct ext_object *o = f == F_CREATE || f == F_JOIN ? NULL :
				object_at(x, r->object, ops[op].kind);

	switch (f) {
	case F_ACQUIRE:
	case F_TRY:
	case F_SHARED:
	case F_TRYSHARED:
		acquire_record(x, thread, r, o, f);
		break;
	case F_RELEASE:
		simple(x, thread, r, SYM_UNLOCK, o, 1);
		disown(o);
		break;
	case F_SIGNAL:
	case F_BROADCAST:
		simple(x, thread, r, f == F_SIGNAL ? SYM_SIGNAL : SYM_BROADCAST, o, 1);
		break;
	case F_SEMWAIT:
	case F_SEMTRY:
	case F_POST:
		sem_record(x, thread, r, o, f);
		break;
	case F_INIT:
		init_record(x, r, o);
		break;
	case F_JOIN:
		thread_record(x, thread, r, f);
		break;
	default:
		break;
	}
}

void ext_sync(struct ext *x, uint32_t thread, const struct trc_sync *r)
{
	enum trc_op op = TRC_SYNC_OP(r->rec.flags);
	enum trc_at at = TRC_SYNC_AT(r->rec.flags);
	struct ext_thread *th = ext_thread(x, thread);

	if (op >= TRC_OP_COUNT || ops[op].family == F_OTHER)
		return;
	bool blocked = th->pending != NULL;
	if (!blocked)
		th->call_insn = x->past ? x->past : mach_thread_insns(x->run, thread);
	th->pending = at == TRC_AT_BLOCK ? r : NULL;
	switch (ops[op].family) {
	case F_WAIT:
		wait_record(x, thread, r, at);
		break;
	case F_BARRIER:
		barrier_record(x, thread, r, object_at(x, r->object, SYM_BARRIER), at);
		break;
	case F_ONCE:
		once_record(x, thread, r, object_at(x, r->object, SYM_ONCE), at, blocked);
		break;
	case F_CREATE:
		/* The fork lies before the real call, where the child's index is known. */
		if (at == TRC_AT_BEGIN)
			thread_record(x, thread, r, F_CREATE);
		break;
	default:
		if (at == TRC_AT_DONE)
			done_record(x, thread, r, op);
	}
}

uint32_t ext_sync_pending(struct ext *x, uint32_t thread)
{
	static const struct {
		enum family family;
		enum sym_op op;
	} last[] = {
		{ F_ACQUIRE, SYM_LOCK },      { F_SHARED, SYM_RDLOCK }, { F_WAIT, SYM_WAIT },
		{ F_SEMWAIT, SYM_SEMWAIT },   { F_JOIN, SYM_JOIN },     { F_BARRIER, SYM_BARRIER_LEAVE },
		{ F_ONCE, SYM_ONCE_END },
	};
	struct ext_thread *th = ext_thread(x, thread);
	const struct trc_sync *r = th->pending;

	if (!r)
		return SYM_NONE;
	enum trc_op op = TRC_SYNC_OP(r->rec.flags);
	for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
		if (last[i].family != ops[op].family)
			continue;
		struct sync_event s = { last[i].op, NULL, 1, SYM_NONE, SYM_NONE };
		if (ops[op].family == F_JOIN) {
			if (r->thread >= x->threads.n)
				return SYM_NONE;
			s.peer = r->thread;
		} else {
			s.object = object_at(x, r->object, ops[op].kind);
		}
		if (ops[op].family == F_WAIT) {
			if (th->release == SYM_NONE)
				return SYM_NONE; /* it let the mutex go before the window: who ought to have woken it may lie there, too */
			s.link = th->release;
		}
		if (ops[op].family == F_BARRIER) {
			if (th->enter == SYM_NONE)
				return SYM_NONE; /* its round began before the window */
			s.link = th->enter;
		}
		return emit(x, thread, r, &s);
	}
	return SYM_NONE;
}
