/* Opening a trace: its streams, and what the process stream says. */
#include "common/trace_read.h"

#include "common/strbuf.h"
#include "common/trace_chunks.h"
#include "common/trace_source.h"
#include "common/trace_types.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_ID_DEPTH 256

/* ---- streams ---- */

bool trc_parse_name(const char *name, enum trc_stream *kind, uint32_t *thread, uint32_t *epoch)
{
	static const struct {
		const char *name;
		enum trc_stream kind;
	} plain[] = {
		{ "process", TRC_STREAM_PROCESS }, { "frags", TRC_STREAM_FRAGS },
		{ "memory", TRC_STREAM_MEMORY },   { "final", TRC_STREAM_FINAL },
		{ "pages", TRC_STREAM_MEMORY },
	};
	unsigned n;
	int end = 0;

	*thread = *epoch = 0;
	if (name[0] == 'e' && name[1] >= '1' && name[1] <= '9' && sscanf(name, "e%9u.%n", epoch, &end) == 1 && end)
		name += end;
	else
		*epoch = 0;
	end = 0;
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
		if (!strcmp(name, plain[i].name)) {
			*kind = plain[i].kind;
			return true;
		}
	}
	if (name[0] != 't' || name[1] < '0' || name[1] > '9' ||
	    sscanf(name, "t%7u.%n", &n, &end) != 1 || !end || n >= TRC_MAX_THREADS)
		return false;
	*thread = n;
	*kind = !strcmp(name + end, "rec") ? TRC_STREAM_THREAD : TRC_STREAM_PATH;
	return !strcmp(name + end, "rec") || !strcmp(name + end, "path");
}

static struct trc_stream_file *new_stream(struct trc *t, const char *name, enum trc_stream kind, uint32_t thread)
{
	struct trc_stream_file *s = xcalloc(1, sizeof *s);

	s->name = xstrdup(name);
	s->label = xasprintf("%s/%s", t->path, name);
	s->kind = kind;
	s->thread = thread;
	vec_push(&t->streams, s);
	return s;
}

/* Streams by what they are, while a trace is being opened: there may be thousands of threads. */
struct opening {
	struct trc *t;
	VEC(struct trc_stream_file *) records, paths; /* by number of the thread; NULL: not begun */
	struct trc_stream_file *frags;
};

/* Where the stream is found that began in the process stream's file; NULL: none of this kind does. */
static struct trc_stream_file **begun(struct opening *o, unsigned kind, uint32_t thread)
{
	if (kind == TRC_STREAM_FRAGS)
		return &o->frags;
	if (kind != TRC_STREAM_THREAD && kind != TRC_STREAM_PATH)
		return NULL;
	while (o->records.n <= thread) {
		vec_push(&o->records, NULL);
		vec_push(&o->paths, NULL);
	}
	return kind == TRC_STREAM_PATH ? &o->paths.v[thread] : &o->records.v[thread];
}

/* Streams that begin in the process stream's file, which is the first. */
static void add_guests(struct opening *o, const struct trc_stream_file *host)
{
	for (size_t i = 0; i < host->guests.n; i++) {
		struct trc_chunk h;
		char name[32] = "frags";

		memcpy(&h, host->data + host->guests.v[i], sizeof h);
		struct trc_stream_file **s = begun(o, h.stream, h.thread);

		if (h.stream != TRC_STREAM_FRAGS)
			snprintf(name, sizeof name, "t%u.%s", h.thread, h.stream == TRC_STREAM_PATH ? "path" : "rec");
		if (!*s)
			*s = new_stream(o->t, name, h.stream, h.thread);
		trc_take_guest(*s, host, host->guests.v[i]);
	}
}

/* The process stream's file, or those of the others. */
static err_t add_stream(struct opening *o, size_t i, bool process)
{
	struct trc *t = o->t;
	const char *name = trc_source_name(t->source, i);
	struct trc_stream_file *s, **first;
	enum trc_stream kind;
	uint32_t thread, epoch;

	if (!trc_parse_name(name, &kind, &thread, &epoch) || (kind == TRC_STREAM_PROCESS) != process ||
	    (epoch && epoch < t->epoch) || (kind == TRC_STREAM_MEMORY && epoch != t->epoch) || trc_is_base(name))
		return NULL;
	first = begun(o, kind, thread);
	s = first ? *first : NULL;
	if (!s || s->data)
		s = new_stream(t, name, kind, thread);
	s->epoch = epoch;
	TRY(trc_source_map(t->source, i, &s->data, &s->size));
	if (!process)
		return NULL;
	TRY(trc_find_chunks(s));
	add_guests(o, s);
	return NULL;
}

static err_t add_streams(struct trc *t)
{
	struct opening o = { .t = t };
	err_t e = NULL;

	for (int process = 1; process >= 0; process--)
		for (size_t i = 0; i < trc_source_count(t->source) && !e; i++)
			e = add_stream(&o, i, process);
	vec_free(&o.records);
	vec_free(&o.paths);
	return e;
}

static int by_kind_and_thread(const void *a, const void *b)
{
	const struct trc_stream_file *x = *(struct trc_stream_file *const *)a;
	const struct trc_stream_file *y = *(struct trc_stream_file *const *)b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static int by_epoch(const void *a, const void *b)
{
	const struct trc_stream_file *x = *(struct trc_stream_file *const *)a;
	const struct trc_stream_file *y = *(struct trc_stream_file *const *)b;
	int order = by_kind_and_thread(a, b);

	return order ? order : x->epoch < y->epoch ? -1 : x->epoch > y->epoch;
}

struct trc_stream_file *trc_stream(const struct trc *t, enum trc_stream kind, uint32_t thread)
{
	const struct trc_stream_file key = { .kind = kind, .thread = thread };
	const struct trc_stream_file *p = &key;
	struct trc_stream_file **hit = t->streams.n ?
		bsearch(&p, t->streams.v, t->streams.n, sizeof p, by_kind_and_thread) : NULL;

	return hit ? *hit : NULL;
}

/* ---- epochs: trace_epochs.c, too ---- */

/* Of each stream its first file stays among the streams. */
static void join_epochs(struct trc *t)
{
	size_t n = 0;

	if (!t->epoch)
		return;
	qsort(t->streams.v, t->streams.n, sizeof *t->streams.v, by_epoch);
	for (size_t i = 0; i < t->streams.n; i++) {
		struct trc_stream_file *s = t->streams.v[i];

		if (n && !by_kind_and_thread(&t->streams.v[n - 1], &s)) {
			trc_continue_stream(t->streams.v[n - 1], s);
			vec_push(&t->behind, s);
		} else {
			t->streams.v[n++] = s;
		}
	}
	t->streams.n = n;
}

static err_t open_streams(struct trc *t)
{
	TRY(trc_find_epochs(t));
	TRY(add_streams(t));
	for (size_t i = 0; i < t->streams.n; i++)
		if (t->streams.v[i]->kind != TRC_STREAM_PROCESS)
			TRY(trc_find_chunks(t->streams.v[i]));
	join_epochs(t);
	if (t->streams.n)
		qsort(t->streams.v, t->streams.n, sizeof *t->streams.v, by_kind_and_thread);
	for (size_t i = 1; i < t->streams.n; i++)
		if (!by_kind_and_thread(&t->streams.v[i - 1], &t->streams.v[i]))
			return err_new(ERR_INPUT, "%s: two streams for one thread: %s and %s",
				       t->path, t->streams.v[i - 1]->name, t->streams.v[i]->name);
	t->process = trc_stream(t, TRC_STREAM_PROCESS, 0);
	t->frags = trc_stream(t, TRC_STREAM_FRAGS, 0);
	t->memory = trc_stream(t, TRC_STREAM_MEMORY, 0);
	t->final = trc_stream(t, TRC_STREAM_FINAL, 0);
	TRY(trc_open_bases(t));
	if (!t->process && trc_file_path(t, "redacted"))
		return err_new(ERR_INPUT, "%s is redacted: it holds what was found out, not the trace", t->path);
	if (!t->process)
		return err_new(ERR_INPUT, "%s: not a csched trace (it has no process stream)",
			       t->path);
	return NULL;
}

/* ---- the process stream ---- */

static char *copy_text(struct trc *t, const char *s, size_t n)
{
	char *copy = xmalloc(n + 1);

	memcpy(copy, s, n);
	copy[n] = 0;
	vec_push(&t->text, copy);
	return copy;
}

/* Makes room for thread number n; threads without a record stay marked so. */
static struct trc_thread_info *thread_slot(struct trc *t, uint32_t n)
{
	while (t->threads.n <= n) {
		uint32_t i = (uint32_t)t->threads.n;

		vec_push(&t->threads, (struct trc_thread_info){
					      .index = i,
					      .rec_stream = trc_stream(t, TRC_STREAM_THREAD, i),
					      .path_stream = trc_stream(t, TRC_STREAM_PATH, i),
				      });
	}
	return &t->threads.v[n];
}

static void add_identity(struct trc *t, const char *key, size_t key_len, const char *value,
			 size_t value_len)
{
	vec_push(&t->identity, (struct trc_kv_entry){ copy_text(t, key, key_len),
						      copy_text(t, value, value_len), value_len });
}

/* "args" holds each argument with a NUL behind it; people want to paste it. */
static void add_command(struct trc *t, const char *args, size_t n)
{
	struct strbuf b = { 0 };

	for (size_t i = 0; i < n;) {
		size_t len = strnlen(args + i, n - i);

		strbuf_str(&b, i ? " " : "");
		strbuf_word(&b, args + i, len);
		i += len + 1;
	}
	add_identity(t, "command", 7, b.s ? b.s : "", b.n);
	strbuf_free(&b);
}

static void take_kv(struct trc *t, const struct trc_kv *kv)
{
	const char *value = kv->data + kv->key_len;

	add_identity(t, kv->data, kv->key_len, value, kv->value_len);
	if (kv->key_len == 4 && !memcmp(kv->data, "args", 4))
		add_command(t, value, kv->value_len);
}

/* A failure that was withdrawn takes what was said about it along. */
static void forget_failure(struct trc *t)
{
	t->failure = NULL;
	t->stacks.n = 0;
	t->blocked.n = 0;
}

/* It is printed as it is. */
static bool is_thread_id(const char *id, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (!strchr("0123456789.~", id[i]) || !id[i])
			return false;
	return n >= 2 && n < 256 && id[0] == 'T';
}

static void take(struct trc *t, const struct trc_rec *rec)
{
	const void *r = rec;

	switch ((enum trc_type)rec->type) {
	case TRC_KV:
		take_kv(t, r);
		break;
	case TRC_MODULE:
		vec_push(&t->modules, r);
		break;
	case TRC_THREAD:
		thread_slot(t, ((const struct trc_thread *)r)->thread)->rec = r;
		break;
	case TRC_THREAD_NAME: {
		const struct trc_thread_name *n = r;

		if (n->thread < TRC_MAX_THREADS)
			thread_slot(t, n->thread)->name = copy_text(t, n->name, n->name_len);
		break;
	}
	case TRC_NOTE:
		vec_push(&t->notes, r);
		break;
	case TRC_FAILURE:
		forget_failure(t);
		t->failure = r;
		break;
	case TRC_WITHDRAWN:
		forget_failure(t);
		break;
	case TRC_STACK:
		vec_push(&t->stacks, r);
		break;
	case TRC_BLOCKED:
		vec_push(&t->blocked, r);
		break;
	case TRC_CHILD:
		vec_push(&t->children, r);
		break;
	case TRC_EXEC:
		t->exec = r;
		break;
	case TRC_END:
		t->end = r;
		break;
	case TRC_THREAD_ID: {
		const struct trc_thread_id *n = r;
		struct trc_thread_info *info = n->thread < TRC_MAX_THREADS ? thread_slot(t, n->thread) : NULL;

		if (info && !info->id && is_thread_id(n->id, n->id_len))
			info->id = xasprintf("%.*s", (int)n->id_len, n->id);
		break;
	}
	case TRC_EPOCH:
		t->began = r;
		break;
	default: /* the other types do not stand in this stream */
		break;
	}
}

static err_t read_process(struct trc *t, int flags)
{
	struct trc_iter it;
	const struct trc_rec *rec;
	bool repeated = false;

	trc_iter_init(&it, t->process);
	for (;;) {
		err_t e = trc_next(&it, &rec);

		if (e && flags & TRC_TOLERANT && t->identity.n) {
			t->damage = xstrdup(e->msg);
			err_free(e);
			break;
		}
		if (e)
			return e;
		if (!rec)
			break;
		/* A later epoch begins with what was said before. */
		const struct trc_span *span = &t->process->spans.v[it.span];

		repeated |= span->seam && it.pos == span->start;
		if (!repeated)
			take(t, rec);
		repeated &= rec->type != TRC_EPOCH;
	}
	/* A chunk without a record: killed while the recording began. */
	bool newborn = flags & TRC_TOLERANT && t->process->spans.n && t->process->cut_off;

	if (!t->identity.n && !newborn)
		return err_new(ERR_INPUT, "%s: empty trace: the recording ended before it began",
			       t->path);
	t->tsc_hz = trc_identity_uint(t, "tsc_hz", 0);
	t->tsc_start = trc_identity_uint(t, "tsc_start", 0);
	/* Threads whose record was lost but whose streams are there. */
	for (size_t i = 0; i < t->streams.n; i++)
		if (t->streams.v[i]->kind == TRC_STREAM_THREAD)
			thread_slot(t, t->streams.v[i]->thread);
	return NULL;
}

err_t trc_open(const char *path, int flags, struct trc **out)
{
	struct trc *t = xcalloc(1, sizeof *t);

	*out = NULL;
	t->path = xstrdup(path);
	for (size_t n = strlen(t->path); n > 1 && t->path[n - 1] == '/'; n--)
		t->path[n - 1] = 0;
	err_t e = trc_source_open(t->path, &t->source);
	if (!e)
		e = open_streams(t);
	if (!e)
		e = read_process(t, flags);
	if (e) {
		trc_close(t);
		return e;
	}
	t->packed = trc_source_packed(t->source);
	*out = t;
	return NULL;
}

static void free_stream(struct trc_stream_file *s)
{
	vec_free(&s->spans);
	vec_free(&s->guests);
	free(s->name);
	free(s->label);
	free(s->damage);
	for (size_t k = 0; k < s->kept.n; k++)
		free(s->kept.v[k]);
	vec_free(&s->kept);
	free(s);
}

void trc_let_go(struct trc *t)
{
	/* Private mappings that nobody writes to: what is in them stays what is in the files. */
	for (size_t i = 0; i < t->streams.n; i++)
		if (t->streams.v[i]->data)
			madvise((void *)t->streams.v[i]->data, t->streams.v[i]->size, MADV_DONTNEED);
	for (size_t i = 0; i < t->bases.n; i++)
		madvise((void *)t->bases.v[i]->data, t->bases.v[i]->size, MADV_DONTNEED);
}

void trc_close(struct trc *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->streams.n; i++)
		free_stream(t->streams.v[i]);
	for (size_t i = 0; i < t->behind.n; i++)
		free_stream(t->behind.v[i]);
	for (size_t i = 0; i < t->bases.n; i++)
		free_stream(t->bases.v[i]);
	vec_free(&t->bases);
	vec_free(&t->behind);
	vec_free(&t->epochs);
	for (size_t i = 0; i < t->threads.n; i++)
		free(t->threads.v[i].id);
	for (size_t i = 0; i < t->text.n; i++)
		free(t->text.v[i]);
	vec_free(&t->streams);
	vec_free(&t->threads);
	vec_free(&t->modules);
	vec_free(&t->identity);
	vec_free(&t->notes);
	vec_free(&t->stacks);
	vec_free(&t->blocked);
	vec_free(&t->children);
	vec_free(&t->text);
	trc_source_close(t->source);
	free(t->damage);
	free(t->path);
	free(t);
}

/* ---- questions ---- */

struct trc_thread_info *trc_thread_at(const struct trc *t, uint32_t index)
{
	return index < t->threads.n ? &t->threads.v[index] : NULL;
}

/* The ordinals from the thread up to main, or to the next of its ancestors that has an id; NULL: lost, circular or too deep. */
static const char *ancestry(const struct trc *t, uint32_t index, uint32_t *ordinals, size_t *n)
{
	for (*n = 0; *n < MAX_ID_DEPTH; ++*n) {
		const struct trc_thread_info *info = trc_thread_at(t, index);

		if (info && info->id)
			return info->id;
		if (!info || !info->rec)
			return NULL;
		if (info->rec->parent == index)
			return "T0";
		ordinals[*n] = info->rec->ordinal;
		index = info->rec->parent;
	}
	return NULL;
}

const char *trc_thread_id(const struct trc *t, uint32_t index)
{
	struct trc_thread_info *info = trc_thread_at(t, index);
	uint32_t ordinals[MAX_ID_DEPTH];
	struct strbuf b = { 0 };
	size_t n;

	if (!info)
		return "T?";
	if (info->id)
		return info->id;
	const char *ancestor = ancestry(t, index, ordinals, &n);

	if (ancestor) {
		strbuf_str(&b, ancestor);
		while (n)
			strbuf_fmt(&b, ".%u", ordinals[--n]);
	} else {
		strbuf_fmt(&b, "T#%u", index);
	}
	info->id = strbuf_take(&b);
	return info->id;
}

const char *trc_identity(const struct trc *t, const char *key)
{
	for (size_t i = t->identity.n; i; i--)
		if (!strcmp(t->identity.v[i - 1].key, key))
			return t->identity.v[i - 1].value;
	return NULL;
}

uint64_t trc_identity_uint(const struct trc *t, const char *key, uint64_t missing)
{
	const char *s = trc_identity(t, key);
	char *end;

	if (!s || *s < '0' || *s > '9')
		return missing;
	errno = 0;
	uint64_t v = strtoull(s, &end, 0);
	return errno || *end ? missing : v;
}

double trc_seconds(const struct trc *t, uint64_t tsc)
{
	if (!t->tsc_hz || tsc < t->tsc_start)
		return -1;
	return (double)(tsc - t->tsc_start) / (double)t->tsc_hz;
}

const char *trc_file_path(struct trc *t, const char *name)
{
	const char *path = NULL;

	for (size_t i = 0; i < trc_source_count(t->source) && !path; i++) {
		if (strcmp(trc_source_name(t->source, i), name))
			continue;
		/* A file that cannot be unpacked is like one that is not there. */
		err_free(trc_source_path(t->source, i, &path));
	}
	return path;
}

const char *trc_packed_file(struct trc *t, const uint8_t *build_id, size_t len)
{
	struct strbuf name = { 0 };

	if (!t->packed || !len)
		return NULL;
	strbuf_str(&name, "elf/");
	for (size_t i = 0; i < len; i++)
		strbuf_fmt(&name, "%02x", build_id[i]);
	const char *path = trc_file_path(t, name.s);

	strbuf_free(&name);
	return path;
}
