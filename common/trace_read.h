/*
 * Reading a trace: a directory NAME.PID.csched or the one file csched pack
 * makes of it, through one interface.
 *
 * What a caller may rely on:
 *  - Everything that comes out has been checked: chunk headers, sequence,
 *    checksums, record sizes, every length and count inside a record, and
 *    every enumeration value. A record of type TRC_X may be cast to its struct
 *    and its strings, arrays and effects used without further checks.
 *    (Addresses, timestamps and thread numbers inside records are values, not
 *    promises: look threads up with trc_thread_at().)
 *  - "Cut off" is not "damaged". A run that was killed leaves its last chunks
 *    open; they are read up to the last whole record, and trc_stream.cut_off
 *    says so. Damage is an error (ERR_INPUT) that names the file, the chunk,
 *    the offset and what is wrong; what stands before it has been delivered.
 *  - Streams are mapped, not read: opening costs one page per chunk. Payloads
 *    are checked (once) when an iterator enters their chunk.
 *  - Pointers to records and strings live until trc_close().
 *  - One struct trc is used by one thread at a time.
 */
#ifndef CSCHED_COMMON_TRACE_READ_H
#define CSCHED_COMMON_TRACE_READ_H

#include "common/err.h"
#include "common/trace_format.h"
#include "common/vec.h"

#include <stdbool.h>

struct trc_source; /* where the bytes come from: trace_source.h */

/* More threads than any run has; bounds what a hostile file can make us allocate. */
#define TRC_MAX_THREADS (1u << 20)

/* One chunk of a stream, its header already checked. */
struct trc_span {
	const uint8_t *payload;
	uint64_t start;  /* position of the first payload byte in the stream */
	uint64_t offset; /* of the header in the file ... */
	const char *label; /* ... of this name, for messages */
	uint32_t length; /* payload bytes; an upper bound when open and last */
	bool open;       /* not sealed: no checksum, ends at its first zero record */
	bool clipped;    /* the file ends before the chunk's capacity */
	bool checked;    /* the checksum has been compared */
	bool seam;       /* the first of a later epoch */
};

struct trc_stream_file {
	char *name;  /* "t3.rec" */
	char *label; /* "app.123.csched/t3.rec", for messages */
	enum trc_stream kind;
	uint32_t thread;
	uint32_t epoch; /* 0: it has none */
	const uint8_t *data; /* the whole file, mapped; NULL: it has none of its own */
	size_t size;
	VEC(uint64_t) guests; /* offsets of chunks of other streams in it */
	VEC(struct trc_span) spans;
	bool cut_off; /* the last chunk is open, or the file ends inside it */
	VEC(struct trc_sync *) kept; /* made by iterators, in blocks */
	size_t nkept;                /* of the last block */
	/* What is wrong behind the last span, or NULL. Iterators return it. */
	char *damage;
};

struct trc_thread_info {
	uint32_t index;
	const struct trc_thread *rec; /* NULL: the record was lost */
	struct trc_stream_file *rec_stream;  /* tN.rec or NULL */
	struct trc_stream_file *path_stream; /* tN.path or NULL */
	const char *name; /* as set with pthread_setname_np, or NULL */
	char *id;         /* cache of trc_thread_id() */
};

struct trc_kv_entry {
	const char *key, *value; /* terminated; values are hostile text */
	size_t value_len;
};

/* One epoch of a flight recorder that is there. */
struct trc_epoch_info {
	uint32_t number;
	bool whole; /* it can be read from its beginning */
};

struct trc {
	char *path; /* as given */
	bool packed;
	struct trc_source *source;
	VEC(struct trc_stream_file *) streams; /* sorted by kind, then thread */
	struct trc_stream_file *process, *frags, *memory, *final; /* or NULL */
	/*
	 * Of a flight recorder (trace_format.h): where reading begins, 0 anywhere else; the streams are those of this epoch, with the
	 * chunks of later ones behind them. Whose chunks these are is here, too, and what of it is not read.
	 */
	uint32_t epoch;
	const struct trc_epoch *began; /* the checkpoint; NULL: the run's own beginning */
	VEC(struct trc_epoch_info) epochs; /* all that are there, by number */
	VEC(struct trc_stream_file *) behind;
	VEC(struct trc_stream_file *) bases; /* checkpoints that `memory` is a difference to, the latest first */

	/* From the process stream, in the order written. */
	VEC(struct trc_thread_info) threads; /* index i is thread number i */
	VEC(const struct trc_module *) modules;
	VEC(struct trc_kv_entry) identity;
	VEC(const struct trc_note *) notes;
	VEC(const struct trc_stack *) stacks;
	VEC(const struct trc_blocked *) blocked;
	VEC(const struct trc_child *) children;
	const struct trc_failure *failure; /* the last one not withdrawn, or NULL */
	const struct trc_end *end;         /* NULL: the process was killed, or runs */
	const struct trc_exec *exec;

	uint64_t tsc_hz, tsc_start; /* 0: the trace has no usable clock */

	/* Damage of the process stream that TRC_TOLERANT let pass, or NULL. */
	char *damage;
	VEC(char *) text; /* strings that had to be copied to be terminated */
};

enum trc_open_flags {
	/* Go on with what stands before the damage, as long as the trace can be
	 * identified at all; t->damage says what was wrong. */
	TRC_TOLERANT = 1,
};

err_t trc_open(const char *path, int flags, struct trc **out);
/* Where reading a flight recorder's trace begins; 0: with the newest epoch that can be read from its beginning. */
extern uint32_t trc_epoch_wanted;
/* The epoch before the one that reading began with, if it can be read; else 0. */
uint32_t trc_epoch_before(const struct trc *t);
/* As many before as there are, at most so many. */
uint32_t trc_epochs_before(const struct trc *t, uint32_t most);
uint64_t trc_epoch_bytes(struct trc *t, uint32_t number); /* of its files */
uint64_t trc_bases_bytes(struct trc *t); /* of checkpoints that are left of epochs that are gone */
/* Calls `page` for each page of memory that an earlier checkpoint has and this one (t->memory) does not have, but needs. */
err_t trc_earlier_pages(struct trc *t, void (*page)(void *arg, uint64_t address, const uint8_t *bytes), void *arg);
#define TRC_PAGE 4096u
void trc_close(struct trc *t);

/* NULL when the trace has no such stream. */
struct trc_stream_file *trc_stream(const struct trc *t, enum trc_stream kind, uint32_t thread);

/* The thread with this number, or NULL. */
struct trc_thread_info *trc_thread_at(const struct trc *t, uint32_t index);

/*
 * "T0", "T0.1", "T0.2.1": stable across runs. Lives until trc_close(). "T?"
 * when there is no such thread; "T#N" when its record was lost or its
 * ancestry is deeper than 256.
 */
const char *trc_thread_id(const struct trc *t, uint32_t index);

/*
 * The value of an identity key, or NULL; the last one when it was written more
 * than once. "command" is the command line, quoted as for a shell.
 */
const char *trc_identity(const struct trc *t, const char *key);
/* The same as a number; missing when absent or not a number. */
uint64_t trc_identity_uint(const struct trc *t, const char *key, uint64_t missing);

/* Seconds since the start of the recording; negative when the trace has no clock. */
double trc_seconds(const struct trc *t, uint64_t tsc);

/* ---- records ---- */

struct trc_iter {
	struct trc_stream_file *stream;
	size_t span;
	uint32_t offset; /* in the payload */
	uint64_t pos;    /* stream position of the record last returned */
	bool ended;
	uint32_t again_at; /* of TRC_AGAINS: which is next; 0 the first, or another record */
	/* Records made from TRC_AGAIN and TRC_AGAINS live as long as the trace; else until the next trc_next(). */
	bool keep;
	const struct trc_sync *named[TRC_SYNC_SLOTS]; /* what they may stand for */
	const struct trc_sync *timeless[TRC_SYNC_SLOTS]; /* keep: the record of all that have no time; or NULL */
	struct trc_sync again;
};

/* stream NULL: an iterator over nothing. */
void trc_iter_init(struct trc_iter *it, struct trc_stream_file *stream);

/*
 * *rec is NULL at the end. TRC_AGAIN and TRC_AGAINS are never returned: a TRC_SYNC made from them is, see
 * struct trc_iter.keep; other records live as long as the trace. After an error the iterator
 * is at its end.
 */
err_t trc_next(struct trc_iter *it, const struct trc_rec **rec);

/*
 * Reads a whole stream of any kind for its damage alone: every checksum and
 * record. *records (may be NULL) counts the records before the damage.
 */
err_t trc_verify(struct trc_stream_file *stream, uint64_t *records);

/*
 * What was read of the files goes back to the kernel; it is read again where it is needed. For whoever goes through a long
 * trace once. (An unpacked one stays in memory.)
 */
void trc_let_go(struct trc *t);

/* Payload bytes in the stream; zeros at the end of an open last chunk do not count. */
uint64_t trc_stream_bytes(const struct trc_stream_file *stream);

/*
 * Any stream as bytes, for path streams: the bytes from pos to the end of
 * their chunk. *n is 0 at the end of the stream. In an open last chunk the
 * bytes go on with zeros for a while: path records never begin with zero.
 */
err_t trc_bytes_at(struct trc_stream_file *stream, uint64_t pos, const uint8_t **bytes,
		   size_t *n);

/*
 * Effects of a system call, in order:
 *
 *   struct trc_effects fx = trc_effects(leave);
 *   for (const struct trc_effect *e; (e = trc_effect_next(&fx));) ...
 */
struct trc_effects {
	const uint8_t *at;
	uint32_t left;
};

static inline struct trc_effects trc_effects(const struct trc_leave *leave)
{
	return (struct trc_effects){ (const uint8_t *)(leave + 1), leave->neffects };
}

static inline const struct trc_effect *trc_effect_next(struct trc_effects *fx)
{
	const struct trc_effect *e = (const struct trc_effect *)fx->at;

	if (!fx->left)
		return NULL;
	fx->left--;
	fx->at += sizeof *e + (((uint64_t)e->length + 7) & ~7ull);
	return e;
}

static inline const uint8_t *trc_effect_bytes(const struct trc_effect *e)
{
	return (const uint8_t *)(e + 1);
}

static inline const struct trc_side *trc_fragment_sides(const struct trc_fragment *f)
{
	return (const struct trc_side *)(f + 1);
}
static inline const struct trc_item *trc_fragment_items(const struct trc_fragment *f)
{
	return (const struct trc_item *)(trc_fragment_sides(f) + f->nsides);
}

/* ---- other files of a trace ---- */

/* The command that started the run, each word with a NUL behind it, where it is not the recorded process itself (a script). */
#define TRC_STARTED_BY "started-by"

/*
 * A path under which a file beside the streams ("fingerprint",
 * "failing.schedule") can be opened, or NULL. Lives until trc_close().
 */
const char *trc_file_path(struct trc *t, const char *name);

/*
 * A path under which the packed file with this build-id can be opened, or NULL
 * when the trace is not packed or has no such file. Lives until trc_close().
 */
const char *trc_packed_file(struct trc *t, const uint8_t *build_id, size_t len);

#endif
