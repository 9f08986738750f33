/*
 * Streams of a trace: chunks of a file, written through shared mappings.
 *
 * A chunk is written with zeros before it is mapped, which reserves its space, and the file
 * size limit is consulted before that, so neither a full disk nor RLIMIT_FSIZE
 * ever reaches the program as SIGBUS or SIGXFSZ: the stream goes dead instead
 * (rec_begin returns NULL from then on) and shim_degrade() says so once.
 *
 * Writers of one stream: thread streams have one thread, and possibly its own
 * signal handlers in the middle of it, which is safe: space is reserved with one
 * instruction. The other streams are shared: hold rec_lock() around
 * begin..commit.
 */
#ifndef CSCHED_PRELOAD_RECORD_STREAM_H
#define CSCHED_PRELOAD_RECORD_STREAM_H

#include "common/trace_format.h"

#include <stdbool.h>
#include <stdint.h>

#define REC_RETIRED 4
#define REC_NONE ((uint8_t *)1) /* where nothing ends */

struct rec_chunk_map {
	struct trc_chunk *head; /* NULL: none */
	size_t len;             /* mapped bytes, header included */
	union {
		uint64_t offset;     /* in the file */
		struct slots *slots; /* see slots.h */
	};
	uint32_t used;          /* payload bytes, for retired chunks */
	bool live;              /* emptied into the file and used again when it is full */
	bool part;              /* of a mapping of several, see rec_open_together() */
	bool lent;              /* not of the file: the caller's, see rec_open_lent() */
	bool slot;              /* one of `slots` */
};

struct rec_stream {
	uint8_t *pos; /* next free byte of a record stream */
	uint8_t *end; /* first byte behind the payload; a guard page follows */
	/* rec_again(): its record, the next byte in it, and its end, which is `pos` while it is the last; none: REC_NONE */
	uint8_t *again, *again_at, *again_end;
	struct rec_chunk_map map;
	uint16_t kind;     /* enum trc_stream */
	bool dead;         /* no more room, or closed */
	bool together;     /* its first chunk lies in the file of the process stream: rec_open_together(), slots.h */
	uint32_t thread;
	uint32_t sequence; /* of the next chunk */
	uint32_t open;     /* records begun and not committed: >1 only inside signal handlers */
	uint64_t start;    /* payload bytes of all sealed chunks */
	uint64_t file_end; /* where the next chunk goes */
	uint64_t reserved; /* blocks are allocated up to here, when beyond file_end */
	/* Left by a handler that interrupted a half-written record; sealed by rec_commit. */
	struct rec_chunk_map retired[REC_RETIRED];
};

/*
 * The first chunks of process, t0.rec, frags and t0.path in one file, the process stream's, which are then opened
 * as ever. Each file costs 75 us, and many times that where files were removed a short while ago: ext4 looks at
 * every such inode. When it cannot be done they get files of their own, or say why not.
 */
void rec_open_together(void);

/* False (stream dead) when the first chunk cannot be made. */
bool rec_open(struct rec_stream *s, enum trc_stream kind, uint32_t thread);

/*
 * A stream that is written once and in one go, through memory of the caller's, which no record may
 * exceed: nothing of the file is mapped. What is in that memory has not been written before it is full or
 * the stream is closed. Of a snapshot, 130 KiB of `true`, a page costs 1 us instead of 2.5.
 */
void rec_open_lent(struct rec_stream *s, enum trc_stream kind, void *memory, size_t len);

/*
 * Room for a record of `size` bytes (the struct plus what follows it; rounded
 * up to 8 here), zeroed except that nothing is promised about bytes a killed
 * writer left. NULL when the stream is dead. Fill in everything but `rec`.
 */
void *rec_begin_slow(struct rec_stream *s, size_t size);

static inline void *rec_begin(struct rec_stream *s, size_t size)
{
	size = (size + 7) & ~(size_t)7;
	if (__builtin_expect(s->dead, 0))
		return NULL;
	s->open++;
	for (;;) {
		uint8_t *at = *(uint8_t *volatile *)&s->pos;
		uint8_t *next = at + size;

		if (__builtin_expect(!at || next > s->end, 0))
			return rec_begin_slow(s, size);
		/* Not locked: only this thread's own handlers can come between. */
		uint8_t *seen = at;
		__asm__ volatile("cmpxchgq %2, %1"
				 : "+a"(seen), "+m"(s->pos)
				 : "r"(next)
				 : "cc", "memory");
		if (__builtin_expect(seen == at, 1))
			return at;
	}
}

void rec_settle(struct rec_stream *s);

/* Publishes the record: type, flags and size in one store. `size` as given to rec_begin. */
static inline void rec_commit(struct rec_stream *s, void *rec, unsigned type, unsigned flags,
			      size_t size)
{
	uint64_t head = (uint64_t)((size + 7) & ~(size_t)7) << 32 |
			(uint64_t)(flags & 0xffff) << 16 | (type & 0xffff);

	__atomic_store_n((uint64_t *)rec, head, __ATOMIC_RELEASE);
	if (__builtin_expect(--s->open == 0 && s->retired[0].head, 0))
		rec_settle(s);
}

/*
 * TRC_AGAIN without a timestamp, or one byte of the TRC_AGAINS that it becomes when others follow at once. Not where
 * handlers of the program may interrupt: in path mode only. A lock and unlock left 16 bytes before.
 */
static inline void rec_again(struct rec_stream *s, unsigned slot)
{
	if (s->again_end != s->pos || s->again_at == s->pos) {
		struct trc_rec *r = rec_begin(s, sizeof *r);

		if (!r)
			return;
		if ((uint8_t *)r != s->again_end) {
			s->again = (uint8_t *)r;
			s->again_at = s->again_end = s->pos;
			rec_commit(s, r, TRC_AGAIN, slot, sizeof *r);
			return;
		}
		struct trc_rec *longer = (struct trc_rec *)s->again;

		s->again_end = s->pos;
		rec_commit(s, longer, TRC_AGAINS, longer->flags, longer->size + sizeof *r);
	}
	*s->again_at++ = (uint8_t)(slot + 1);
}

/*
 * A record too large for the live chunk, written to the file in pieces: `size` bytes in all, beginning with the
 * struct and a complete `rec`. Through a mapping of its own it would touch three times as many new pages, which
 * is what such a record costs. Pieces of whole pages: 0.27 ns per byte, 0.44 with 64 KiB that begin behind a header. Signals but SIGSEGV and SIGBUS are blocked from begin to end.
 * False: use rec_begin() as ever.
 */
#define REC_PIECE (128ul << 10)

struct rec_large {
	struct rec_stream *s;
	size_t size, done; /* of the record; of these written */
	uint8_t *piece;    /* REC_PIECE bytes, so many ... */
	size_t used;       /* ... in use */
	struct trc_sum sum;
	int fd;            /* 0 none */
	long err;
	uint64_t saved;    /* signal mask */
};

bool rec_large_begin(struct rec_large *l, struct rec_stream *s, size_t size);
#define REC_LARGE_FROM (256ul << 10) /* none is smaller */
/* Room for the next *n bytes, or fewer: *n then says how many. They count as written. */
uint8_t *rec_large_room(struct rec_large *l, size_t *n);
void rec_large_put(struct rec_large *l, const void *from, size_t n);
void rec_large_end(struct rec_large *l);

/* Seals the last chunk, gives its unused space back, unmaps. The stream is dead then. False: it has been before. */
bool rec_close(struct rec_stream *s);

/* The process is about to be gone, and with it what is mapped: nobody need unmap it piece by piece. */
void rec_ending(void);

/*
 * Path streams: the translator writes the bytes itself. begin..end is payload,
 * zeroed, followed by a PROT_NONE page (the guard) at `end`, page aligned.
 * rec_path_next_chunk seals the current chunk with `used` payload bytes first.
 * False: the stream is dead, nothing is mapped any more.
 */
bool rec_path_open(struct rec_stream *s, uint32_t thread, uint8_t **begin, uint8_t **end);
bool rec_path_next_chunk(struct rec_stream *s, size_t used, uint8_t **begin, uint8_t **end);
void rec_path_close(struct rec_stream *s, size_t used);

/*
 * The lock of the shared streams and of the thread table. All signals are
 * blocked while it is held; `saved` keeps the mask. Recursive: see lock.c.
 */
void rec_lock(uint64_t *saved);
void rec_unlock(const uint64_t *saved);
/* Every signal held off, without the lock. */
void rec_signals_block(uint64_t *saved);
void rec_signals_restore(const uint64_t *saved);

extern struct rec_stream rec_process; /* the process stream */

/*
 * The trace directory: make it under another name, name it (both say why they fail), find it again,
 * remove it with all its files.
 */
bool rec_dir_create(void);
bool rec_dir_publish(void);
const char *rec_dir_path(void); /* absolute; "" when there is none */
void rec_dir_remove(void);
void rec_dir_hand_over(uint32_t uid); /* before the process becomes this user */
void rec_dir_forget(void); /* after fork in the child: it is the parent's */
/* Each file of the trace, by name; others may be removed meanwhile, and are perhaps skipped then. Under rec_lock(). */
void rec_dir_each(void (*fn)(int dir, const char *name, void *arg), void *arg);
/* An empty directory beside it, NAME.PID.saved-N.csched with a tail: a descriptor, or -1; then it gets its name. */
int rec_dir_save_begin(void);
bool rec_dir_save_end(int dir);
int rec_dir_fd(void); /* of the directory; -1: it is not at hand */
bool rec_dir_rename(const char *from, const char *to);
bool rec_dir_unlink(const char *name);
/* A file of the trace, opened O_RDWR|O_CLOEXEC; negative errno. Caller closes. */
int rec_dir_open(const char *name, int flags);

/* ---- held.c: files that the process may no longer open ---- */

void held_take(int dir, uint32_t uid);
int held_open(const char *name); /* a descriptor of the caller's; negative: not held */
void held_forget(void);

/* After fork in the child: forget the parent's streams (unmap, never write). */
void rec_forget(struct rec_stream *s);
void rec_lock_reset(void);
void rec_forget_total(void);

/* Writes TRC_MODULE records for ELF mappings not written yet; tsc 0 at the start. True: the address lies in one. */
bool rec_modules(uint64_t tsc, uint64_t address);
bool rec_is_module(const uint8_t head[18]); /* by the beginning of the file */
void rec_modules_forget(void);
/* The TRC_KV records: who recorded what; the clock's rate once some time has passed. */
void rec_identity(const char *options);
void rec_identity_clock(void);
uint64_t rec_tsc_hz(void); /* as far as it is known by now */
void rec_started_with(char *const *argv); /* valid until rec_identity() is done */
long rec_command_line(char *buf, size_t size); /* as raw_slurp(); each argument ends in a NUL */
void rec_kv(const char *key, const char *value, size_t len);
void rec_kv_num(const char *key, uint64_t value);

/* ---- ring.c: the flight recorder ---- */

extern uint32_t rec_epoch;   /* the current one, from 1; 0: no flight recorder */
void rec_ring_start(void);   /* a new trace */
uint32_t rec_ring_oldest(void); /* epoch that is there */
uint64_t rec_ring_limit(void); /* bytes of the trace */
bool rec_ring_full(void);    /* the epoch has as many bytes as it should */
/* Bytes that the next checkpoint would have: all memory, what has changed since the last complete one, and since the last one. */
struct rec_ring_need {
	bool guessed; /* by what was when the last one was taken: it may be less now */
	bool known;   /* the last two */
	uint64_t all, recent, last;
};
struct rec_ring_next {
	uint32_t since, base; /* epochs: it holds what has changed since; 0: it is complete. The last complete one */
	uint64_t bytes, most; /* as it is guessed; it may not have more than these */
};
/* Room, and the right, for a checkpoint, and which one it is; false: not now. */
bool rec_ring_prepare(const struct rec_ring_need *need, struct rec_ring_next *next);
void rec_ring_first(void); /* the first epoch has its memory */
bool rec_ring_make_room(uint64_t limit); /* old epochs go until the trace has no more; false: they were not enough */
void rec_ring_broken(void);  /* a stream ends for want of room */
bool rec_ring_save(void);    /* the epochs that are complete, as a trace of their own; under rec_lock() */
void rec_ring_begin(void);   /* from here on streams belong to the next epoch; under rec_lock() */
/* Bytes of the checkpoint that another process writes, or has not written after all; and those that we have written. */
void rec_ring_count(int64_t bytes);
void rec_ring_apart(int64_t bytes);
bool rec_ring_name_checkpoint(void); /* it is whole */
void rec_ring_no_checkpoint(void);   /* it could not be: what there is of it goes */
void rec_ring_complete(void); /* likewise: what is older may go */
extern int rec_memory_file; /* in the process that writes a checkpoint: its descriptor; else -1 */
extern uint64_t rec_memory_most; /* there: what rec_total() may become ... */
extern bool rec_memory_short;    /* ... and it was too little */
/* Seals what the stream holds. It goes on in the next epoch, where its file is made when there is something to write. */
void rec_renew(struct rec_stream *s, size_t used);
void rec_identity_keep(const char *key, const char *value, size_t len);
void rec_identity_again(void); /* in the new process stream; under rec_lock() */

/* Bytes this process has allocated for its trace so far. */
uint64_t rec_total(void);

#endif
