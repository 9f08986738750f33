#include "common/trace_types.h"

#include <string.h>

#define IN(stream) (1u << TRC_STREAM_##stream)

/* ---- what has to hold inside a record ---- */

typedef const char *check_function(const struct trc_rec *rec);

static const char *check_module(const struct trc_rec *rec)
{
	const struct trc_module *m = (const void *)rec;

	if (m->build_id_len > sizeof m->build_id)
		return "a build-id longer than 32 bytes";
	if (m->path_len > rec->size - sizeof *m)
		return "a path longer than the record";
	return m->start > m->end ? "a mapping that ends before it starts" : NULL;
}

static const char *check_thread(const struct trc_rec *rec)
{
	const struct trc_thread *t = (const void *)rec;

	return t->thread >= 1u << 20 || t->parent >= 1u << 20 ? "an impossible thread number"
							      : NULL;
}

static const char *check_failure(const struct trc_rec *rec)
{
	return rec->flags < TRC_FAIL_ASSERT || rec->flags > TRC_FAIL_USER ?
		       "an unknown kind of failure" : NULL;
}

static const char *check_blocked(const struct trc_rec *rec)
{
	const struct trc_blocked *b = (const void *)rec;

	return b->op >= TRC_OP_COUNT ? "an unknown operation" : NULL;
}

static const char *check_end(const struct trc_rec *rec)
{
	return rec->flags > 2 ? "an unknown kind of end" : NULL;
}

static const char *check_sync(const struct trc_rec *rec)
{
	if (TRC_SYNC_OP(rec->flags) >= TRC_OP_COUNT)
		return "an unknown operation";
	return TRC_SYNC_AT(rec->flags) > TRC_AT_BEGIN ? "an unknown moment" : NULL;
}

static const char *check_leave(const struct trc_rec *rec)
{
	const struct trc_leave *l = (const void *)rec;
	uint64_t left = rec->size - sizeof *l;
	const uint8_t *at = (const uint8_t *)(l + 1);

	for (uint32_t i = 0; i < l->neffects; i++) {
		const struct trc_effect *e = (const void *)at;

		if (left < sizeof *e)
			return "more effects than fit";
		left -= sizeof *e;
		uint64_t bytes = ((uint64_t)e->length + 7) & ~7ull;

		if (e->kind > TRC_EFFECT_OBJECT)
			return "an unknown kind of effect";
		if (e->kind == TRC_EFFECT_OUTPUT_SUM && e->length != sizeof(struct trc_output_sum))
			return "an impossible sum of output";
		if (e->kind == TRC_EFFECT_OBJECT && e->length != sizeof(struct trc_object))
			return "an impossible object";
		if (bytes > left)
			return "an effect longer than the record";
		at += sizeof *e + bytes;
		left -= bytes;
	}
	return NULL;
}

static const char *check_again(const struct trc_rec *rec)
{
	return rec->flags >= TRC_SYNC_SLOTS ? "an impossible number of an operation" : NULL;
}

static const char *check_agains(const struct trc_rec *rec)
{
	const struct trc_agains *a = (const void *)rec;
	uint32_t n = rec->size - sizeof *rec, i = 0;

	while (i < n && a->more[i] && a->more[i] <= TRC_SYNC_SLOTS)
		i++;
	for (; i < n; i++)
		if (a->more[i])
			return "an impossible number of an operation";
	return check_again(rec);
}

static const char *check_nondet(const struct trc_rec *rec)
{
	if (rec->flags < TRC_RDTSC || rec->flags > TRC_RDPID)
		return "an unknown instruction";
	return ((const struct trc_nondet *)rec)->reg > 16 ? "an impossible register" : NULL;
}

static const char *check_fragment(const struct trc_rec *rec)
{
	const struct trc_fragment *f = (const void *)rec;
	uint64_t left = rec->size - sizeof *f;

	if (rec->flags > TRC_FRAG_NATIVE)
		return "an unknown kind of fragment";
	if (!f->id || f->id >= 1u << 31)
		return "an impossible fragment number";
	if (f->nsides > TRC_MAX_SIDES)
		return "too many side exits";
	if (f->guessed & f->passed_taken || (uint64_t)f->guessed >> f->nsides)
		return "an impossible guess";
	if (f->cases & (f->guessed | f->passed_taken) || (uint64_t)f->cases >> f->nsides)
		return "an impossible case";
	if (f->nsides * sizeof(struct trc_side) > left)
		return "more side exits than fit";
	left -= f->nsides * sizeof(struct trc_side);
	if (f->nitems > left / sizeof(struct trc_item))
		return "more items than fit";
	const struct trc_item *item =
		(const void *)((const uint8_t *)(f + 1) + f->nsides * sizeof(struct trc_side));
	for (uint32_t i = 0; i < f->nitems; i++) {
		if (item[i].kind < TRC_ITEM_ORDER || item[i].kind > TRC_ITEM_VALUE)
			return "an unknown kind of item";
		if (item[i].kind == TRC_ITEM_VALUE && (!item[i].size || item[i].size > 64))
			return "an impossible load";
	}
	return NULL;
}

static const char *check_thread_exit(const struct trc_rec *rec)
{
	return (rec->flags & TRC_EXIT_ORDERED) && rec->size < sizeof(struct trc_thread_exit) ?
		       "no room for its ticket" : NULL;
}

static const char *check_state(const struct trc_rec *rec)
{
	return ((const struct trc_state *)rec)->thread >= 1u << 20 ? "an impossible thread number" : NULL;
}

static const char *check_tickets(const struct trc_rec *rec)
{
	const struct trc_tickets *t = (const void *)rec;

	if (t->n > (rec->size - sizeof *t) / sizeof *t->shards)
		return "more tickets than fit";
	for (uint32_t i = 0; i < t->n; i++)
		if (t->shards[i].shard >= TRC_SHARDS)
			return "an impossible shard";
	return NULL;
}

static const char *check_range(const struct trc_rec *rec)
{
	const struct trc_region *r = (const void *)rec;

	if (r->rec.flags & TRC_REGION_OBJECT &&
	    r->rec.size < sizeof *r + ((uint64_t)r->path_len + 7) / 8 * 8 + sizeof(struct trc_object))
		return "no room for its object";
	return r->start > r->end ? "a region that ends before it starts" : NULL;
}

static const char *check_left(const struct trc_rec *rec)
{
	const struct trc_left *l = (const void *)rec;

	return l->start > l->end ? "a range that ends before it starts" : NULL;
}

static const char *check_carried(const struct trc_rec *rec)
{
	return ((const struct trc_carried *)rec)->by >= 1u << 20 ? "an impossible thread number" : check_sync(rec);
}

/* ---- the table ---- */

static const struct type_row {
	const char *name;
	uint32_t streams; /* where it may stand */
	uint32_t fixed;   /* bytes before the variable part */
	/* Offsets of 32-bit lengths whose sum must fit behind the fixed part. */
	uint16_t length_at[2];
	check_function *check;
} types[] = {
#define LEN(s, field) offsetof(struct s, field)
	[TRC_KV] = { "kv", IN(PROCESS), sizeof(struct trc_kv),
		     { LEN(trc_kv, key_len), LEN(trc_kv, value_len) }, NULL },
	[TRC_MODULE] = { "module", IN(PROCESS), sizeof(struct trc_module), { 0 }, check_module },
	[TRC_THREAD] = { "thread", IN(PROCESS), sizeof(struct trc_thread), { 0 }, check_thread },
	[TRC_THREAD_NAME] = { "thread-name", IN(PROCESS), sizeof(struct trc_thread_name),
			      { LEN(trc_thread_name, name_len) }, NULL },
	[TRC_NOTE] = { "note", IN(PROCESS), sizeof(struct trc_note), { LEN(trc_note, text_len) },
		       NULL },
	[TRC_FAILURE] = { "failure", IN(PROCESS), sizeof(struct trc_failure),
			  { LEN(trc_failure, text_len), LEN(trc_failure, detail_len) },
			  check_failure },
	[TRC_STACK] = { "stack", IN(PROCESS), sizeof(struct trc_stack), { LEN(trc_stack, length) },
			NULL },
	[TRC_BLOCKED] = { "blocked", IN(PROCESS), sizeof(struct trc_blocked), { 0 },
			  check_blocked },
	[TRC_WITHDRAWN] = { "withdrawn", IN(PROCESS), sizeof(struct trc_withdrawn), { 0 }, NULL },
	[TRC_CHILD] = { "child", IN(PROCESS), sizeof(struct trc_child), { 0 }, NULL },
	[TRC_EXEC] = { "exec", IN(PROCESS), sizeof(struct trc_exec), { LEN(trc_exec, path_len) },
		       NULL },
	[TRC_END] = { "end", IN(PROCESS), sizeof(struct trc_end), { 0 }, check_end },
	[TRC_EPOCH] = { "epoch", IN(PROCESS), sizeof(struct trc_epoch), { 0 }, NULL },
	[TRC_THREAD_ID] = { "thread-id", IN(PROCESS), sizeof(struct trc_thread_id),
			    { LEN(trc_thread_id, id_len) }, NULL },

	[TRC_SYNC] = { "sync", IN(THREAD), sizeof(struct trc_sync), { 0 }, check_sync },
	[TRC_START] = { "start", IN(THREAD), sizeof(struct trc_start),
			{ LEN(trc_start, xsave_len) }, NULL },
	[TRC_ENTER] = { "enter", IN(THREAD), sizeof(struct trc_enter), { 0 }, NULL },
	[TRC_LEAVE] = { "leave", IN(THREAD), sizeof(struct trc_leave), { 0 }, check_leave },
	[TRC_NONDET] = { "nondet", IN(THREAD), sizeof(struct trc_nondet), { 0 }, check_nondet },
	[TRC_SIGNAL] = { "signal", IN(THREAD), sizeof(struct trc_signal),
			 { LEN(trc_signal, frame_len) }, NULL },
	[TRC_TIME] = { "time", IN(THREAD), sizeof(struct trc_time), { 0 }, NULL },
	[TRC_REGS] = { "regs", IN(THREAD), sizeof(struct trc_regs), { 0 }, NULL },
	[TRC_GENERATION] = { "generation", IN(THREAD), sizeof(struct trc_generation), { 0 }, NULL },
	[TRC_NATIVE] = { "native", IN(THREAD), sizeof(struct trc_native),
			 { LEN(trc_native, text_len) }, NULL },
	/* Without the ticket: recorded before there was one. */
	[TRC_THREAD_EXIT] = { "thread-exit", IN(THREAD), LEN(trc_thread_exit, ticket), { 0 },
			      check_thread_exit },
	/* Without a timestamp it is its head alone. */
	[TRC_AGAIN] = { "again", IN(THREAD), sizeof(struct trc_rec), { 0 }, check_again },
	[TRC_AGAINS] = { "agains", IN(THREAD), sizeof(struct trc_agains), { 0 }, check_agains },
	[TRC_STOP] = { "stop", IN(THREAD), sizeof(struct trc_stop), { 0 }, NULL },

	[TRC_FRAGMENT] = { "fragment", IN(FRAGS), sizeof(struct trc_fragment), { 0 },
			   check_fragment },
	[TRC_DROPPED] = { "dropped", IN(FRAGS), sizeof(struct trc_dropped), { 0 }, NULL },

	[TRC_REGION] = { "region", IN(MEMORY) | IN(FINAL), sizeof(struct trc_region),
			 { LEN(trc_region, path_len) }, check_range },
	[TRC_PAGES] = { "pages", IN(MEMORY) | IN(FINAL), sizeof(struct trc_pages),
			{ LEN(trc_pages, length) }, NULL },
	[TRC_STATE] = { "state", IN(MEMORY), sizeof(struct trc_state), { LEN(trc_state, xsave_len) }, check_state },
	[TRC_TICKETS] = { "tickets", IN(MEMORY), sizeof(struct trc_tickets), { 0 }, check_tickets },
	[TRC_BASE] = { "base", IN(MEMORY), sizeof(struct trc_base), { 0 }, NULL },
	[TRC_LEFT] = { "left", IN(MEMORY), sizeof(struct trc_left), { 0 }, check_left },
	[TRC_CARRIED] = { "carried", IN(MEMORY), sizeof(struct trc_carried), { 0 }, check_carried },
#undef LEN
};
#define NTYPES (sizeof types / sizeof *types)

const char *trc_type_name(unsigned type)
{
	return type < NTYPES ? types[type].name : NULL;
}

unsigned trc_type_named(const char *name)
{
	for (unsigned i = 0; i < NTYPES; i++)
		if (types[i].name && !strcmp(types[i].name, name))
			return i;
	return 0;
}

const char *trc_rec_wrong(const struct trc_rec *rec, enum trc_stream stream)
{
	if (rec->type >= NTYPES || !types[rec->type].name)
		return "an unknown record type";
	const struct type_row *row = &types[rec->type];

	if (!(row->streams >> stream & 1))
		return "a record that does not belong into this stream";
	if (rec->size < row->fixed)
		return "a record that is too short for its type";
	uint64_t sum = 0;
	for (int i = 0; i < 2; i++) {
		uint32_t n = 0;

		if (row->length_at[i])
			memcpy(&n, (const char *)rec + row->length_at[i], sizeof n);
		sum += n;
	}
	if (sum > rec->size - row->fixed)
		return "a length that leaves its record";
	return row->check ? row->check(rec) : NULL;
}

/* ---- names ---- */

#define NAME_FUNCTION(function, ...)                                              \
	const char *function(unsigned i)                                          \
	{                                                                         \
		static const char *const names[] = { __VA_ARGS__ };               \
                                                                                  \
		return i < sizeof names / sizeof *names && names[i] ? names[i] : "?"; \
	}

NAME_FUNCTION(trc_op_name,
	[TRC_OP_NONE] = "none", [TRC_OP_CREATE] = "create", [TRC_OP_THREAD_MAIN] = "thread-main",
	[TRC_OP_EXIT] = "exit", [TRC_OP_JOIN] = "join", [TRC_OP_TRYJOIN] = "tryjoin",
	[TRC_OP_TIMEDJOIN] = "timedjoin", [TRC_OP_DETACH] = "detach", [TRC_OP_CANCEL] = "cancel",
	[TRC_OP_LOCK] = "lock", [TRC_OP_TRYLOCK] = "trylock", [TRC_OP_TIMEDLOCK] = "timedlock",
	[TRC_OP_UNLOCK] = "unlock", [TRC_OP_MUTEX_INIT] = "mutex-init",
	[TRC_OP_MUTEX_DESTROY] = "mutex-destroy", [TRC_OP_CONSISTENT] = "consistent",
	[TRC_OP_RDLOCK] = "rdlock", [TRC_OP_TRYRDLOCK] = "tryrdlock",
	[TRC_OP_TIMEDRDLOCK] = "timedrdlock", [TRC_OP_WRLOCK] = "wrlock",
	[TRC_OP_TRYWRLOCK] = "trywrlock", [TRC_OP_TIMEDWRLOCK] = "timedwrlock",
	[TRC_OP_RWUNLOCK] = "rwunlock", [TRC_OP_SPINLOCK] = "spinlock",
	[TRC_OP_SPINTRYLOCK] = "spintrylock", [TRC_OP_SPINUNLOCK] = "spinunlock",
	[TRC_OP_WAIT] = "wait", [TRC_OP_TIMEDWAIT] = "timedwait", [TRC_OP_SIGNAL] = "signal",
	[TRC_OP_BROADCAST] = "broadcast", [TRC_OP_BARRIER_INIT] = "barrier-init",
	[TRC_OP_BARRIER] = "barrier", [TRC_OP_SEM_INIT] = "sem-init",
	[TRC_OP_SEM_OPEN] = "sem-open", [TRC_OP_SEM_WAIT] = "sem-wait",
	[TRC_OP_SEM_TRYWAIT] = "sem-trywait", [TRC_OP_SEM_TIMEDWAIT] = "sem-timedwait",
	[TRC_OP_SEM_POST] = "sem-post", [TRC_OP_ONCE] = "once", [TRC_OP_FORK] = "fork",
	[TRC_OP_VFORK] = "vfork", [TRC_OP_EXEC] = "exec", [TRC_OP_SPAWN] = "spawn",
	[TRC_OP_PROCESS_EXIT] = "process-exit", [TRC_OP_QUICK_EXIT] = "quick-exit",
	[TRC_OP_ABORT] = "abort", [TRC_OP_ASSERT] = "assert", [TRC_OP_USER_FAIL] = "user-fail",
	[TRC_OP_PANIC] = "panic", [TRC_OP_FUTEX] = "futex")

NAME_FUNCTION(trc_at_name, [TRC_AT_DONE] = "done", [TRC_AT_BLOCK] = "block",
	      [TRC_AT_BEGIN] = "begin")

NAME_FUNCTION(trc_failure_name, [TRC_FAIL_ASSERT] = "assertion", [TRC_FAIL_ABORT] = "abort",
	      [TRC_FAIL_SIGNAL] = "signal", [TRC_FAIL_EXCEPTION] = "exception",
	      [TRC_FAIL_DEADLOCK] = "deadlock", [TRC_FAIL_HANG] = "hang",
	      [TRC_FAIL_EXIT] = "exit-status", [TRC_FAIL_USER] = "user")

NAME_FUNCTION(trc_nondet_name, [TRC_RDTSC] = "rdtsc", [TRC_RDTSCP] = "rdtscp",
	      [TRC_CPUID] = "cpuid", [TRC_XGETBV] = "xgetbv", [TRC_RDRAND] = "rdrand",
	      [TRC_RDSEED] = "rdseed", [TRC_RDPID] = "rdpid")

NAME_FUNCTION(trc_frag_kind_name, [TRC_FRAG_DIRECT] = "direct", [TRC_FRAG_INDIRECT] = "indirect",
	      [TRC_FRAG_SYSCALL] = "syscall", [TRC_FRAG_NONDET] = "nondet",
	      [TRC_FRAG_EVENT] = "event", [TRC_FRAG_TRAP] = "trap", [TRC_FRAG_NATIVE] = "native")

NAME_FUNCTION(trc_effect_name, [TRC_EFFECT_WRITE] = "write", [TRC_EFFECT_FILE] = "file",
	      [TRC_EFFECT_MODULE] = "module", [TRC_EFFECT_OUTPUT] = "output",
	      [TRC_EFFECT_OUTPUT_SUM] = "output-sum", [TRC_EFFECT_OBJECT] = "object")

NAME_FUNCTION(trc_stream_name, [TRC_STREAM_PROCESS] = "process", [TRC_STREAM_THREAD] = "records",
	      [TRC_STREAM_PATH] = "path", [TRC_STREAM_FRAGS] = "frags",
	      [TRC_STREAM_MEMORY] = "memory", [TRC_STREAM_FINAL] = "final")

const char *const trc_reg_names[TRC_NREGS] = {
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8",
	"r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip", "rflags",
};
