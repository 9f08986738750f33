/* What the kernel wrote, found by the table; copied behind the TRC_LEAVE record. */
#include "preload/translate/syscall.h"

#include <sys/socket.h>
#include <sys/uio.h>

void call_effect_add(struct call *k, uint64_t address, uint64_t length,
		     enum trc_effect_kind kind)
{
	if (!address || !length)
		return;
	if (k->neffects == CALL_EFFECTS || length > UINT32_MAX / 2) {
		shim_note(true, "a system call wrote more than can be recorded");
		return;
	}
	k->effects[k->neffects++] =
		(struct call_effect){ address, (uint32_t)length, (uint32_t)kind };
}

static void wrote(struct call *k, uint64_t address, uint64_t length)
{
	call_effect_add(k, address, length, TRC_EFFECT_WRITE);
}

static void sent(struct call *k, uint64_t address, uint64_t length)
{
	call_effect_add(k, address, tr_min(length, TRC_OUTPUT_MAX),
			length > CALL_SENT_SHORT ? TRC_EFFECT_OUTPUT_SUM : TRC_EFFECT_OUTPUT);
}

static void vector(struct call *k, uint64_t iov, uint64_t n, uint64_t left, bool out)
{
	struct iovec v;

	for (uint64_t i = 0; i < n && left; i++) {
		if (!tr_copy(&v, (void *)(iov + i * sizeof v), sizeof v))
			return;
		uint64_t part = tr_min(v.iov_len, left);

		if (out)
			sent(k, (uint64_t)v.iov_base, part);
		else
			wrote(k, (uint64_t)v.iov_base, part);
		left -= part;
	}
}

/* The kernel updates namelen, controllen and flags in place. */
static void message(struct call *k, uint64_t at, uint64_t bytes)
{
	struct msghdr m;

	if (!tr_copy(&m, (void *)at, sizeof m))
		return;
	wrote(k, at, sizeof m);
	vector(k, (uint64_t)m.msg_iov, m.msg_iovlen, bytes, false);
	wrote(k, (uint64_t)m.msg_name, tr_min(m.msg_namelen, sizeof(struct sockaddr_storage)));
	wrote(k, (uint64_t)m.msg_control, m.msg_controllen);
}

/* sendmmsg: of each message how much of it was sent. */
static void lengths(struct call *k, uint64_t at)
{
	for (long i = 0; i < k->result; i++)
		wrote(k, at + (uint64_t)i * sizeof(struct mmsghdr) + offsetof(struct mmsghdr, msg_len), 4);
}

static void messages(struct call *k, uint64_t at)
{
	struct mmsghdr m;

	for (long i = 0; i < k->result; i++, at += sizeof m) {
		if (!tr_copy(&m, (void *)at, sizeof m))
			return;
		message(k, at, m.msg_len);
		wrote(k, at + offsetof(struct mmsghdr, msg_len), 4);
	}
}

static void counted(struct call *k, uint64_t buffer, uint64_t at)
{
	uint32_t len;

	if (!at || !buffer || !tr_copy(&len, (void *)at, 4))
		return;
	wrote(k, at, 4);
	wrote(k, buffer, tr_min(len, k->socklen));
}

static void handle(struct call *k, uint64_t at)
{
	uint32_t bytes;

	if (tr_copy(&bytes, (void *)at, 4))
		wrote(k, at, k->result < 0 ? 4 : 8 + tr_min(bytes, 128));
}

/* A process number that means us: threads' numbers do. */
static bool is_own(const struct call *k, uint64_t pid)
{
	(void)k;
	return (uint32_t)pid == shim.pid || shim_thread_by_tid((uint32_t)pid);
}

static void output(struct call *k, const struct call_out *o)
{
	uint64_t at = k->args[o->arg], aux = k->args[o->aux];
	uint64_t result = k->result > 0 ? (uint64_t)k->result : 0;

	switch ((enum out_kind)o->kind) {
	case OUT_NONE: break;
	case OUT_FIXED: wrote(k, at, o->n); break;
	case OUT_RESULT: wrote(k, at, result * o->n); break;
	case OUT_UP_TO: wrote(k, at, tr_min(result, aux)); break;
	case OUT_OWN_VECTOR: if (is_own(k, k->args[0])) vector(k, at, aux, result, false); break;
	case OUT_COUNT: wrote(k, at, aux * o->n); break;
	case OUT_VECTOR: vector(k, at, aux, result, false); break;
	case OUT_SENT_VECTOR: vector(k, at, aux, result, true); break;
	case OUT_MESSAGE: message(k, at, result); break;
	case OUT_MESSAGES: messages(k, at); break;
	case OUT_LENGTHS: lengths(k, at); break;
	case OUT_SOCKLEN: counted(k, at, aux); break;
	case OUT_FDSET: wrote(k, at, (k->args[0] + 63) / 64 * 8); break;
	case OUT_BITS: wrote(k, at, (aux + 4095) / 4096); break;
	case OUT_MASK: wrote(k, at, tr_min((aux + 63) / 64 * 8, 4096)); break;
	case OUT_HANDLE: handle(k, at); break;
	case OUT_SENT: sent(k, at, result); break;
	case OUT_SIZE_T: wrote(k, at, tr_min(aux, 4096)); break;
	}
}

/* size arguments of zero ask how much there is: nothing is written then */
static bool asks_size(const struct call *k)
{
	switch (k->nr) {
	case SYS_getxattr: case SYS_lgetxattr: case SYS_fgetxattr: return !k->args[3];
	case SYS_listxattr: case SYS_llistxattr: case SYS_flistxattr: return !k->args[2];
	case SYS_getgroups: return !k->args[0];
	case SYS_syslog: return k->args[0] < 2 || k->args[0] > 4;
	}
	return false;
}

/* As much of it as can be read. */
static void readable(struct call *k, uint64_t at, uint64_t length)
{
	uint64_t end = at;
	uint8_t byte;

	while (end - at < length && tr_copy(&byte, (void *)end, 1))
		end = (end & ~(RAW_PAGE - 1)) + RAW_PAGE;
	wrote(k, at, tr_min(end - at, length));
}

#define PARTIAL_MAX (1ul << 20) /* bytes */

/* The kernel met an address that is not there, and may have written up to it. Lengths of buffers stand behind them. */
static void partial(struct call *k, const struct call_out *o)
{
	uint64_t at = k->args[o->arg], aux = k->args[o->aux];
	struct iovec v;

	switch (o->kind) {
	case OUT_FIXED: readable(k, at, o->n); break;
	case OUT_RESULT: case OUT_UP_TO:
		readable(k, at, tr_min(o->arg < 5 ? k->args[o->arg + 1] * o->n : 0, PARTIAL_MAX));
		break;
	case OUT_COUNT: readable(k, at, tr_min(aux * o->n, PARTIAL_MAX)); break;
	case OUT_VECTOR:
		for (uint64_t i = 0; i < aux && i < CALL_EFFECTS && tr_copy(&v, (void *)(at + i * sizeof v), sizeof v); i++)
			readable(k, (uint64_t)v.iov_base, tr_min(v.iov_len, PARTIAL_MAX));
		break;
	default: break;
	}
}

void call_outputs(struct call *k)
{
	const struct call_desc *d = &call_table[k->nr];
	bool failed = raw_failed(k->result);

	if (asks_size(k))
		return;
	for (unsigned i = 0; k->result == -EFAULT && i < CALL_OUTS && d->out[i].kind; i++)
		partial(k, &d->out[i]);
	if (k->result == -EFAULT)
		return;
	for (unsigned i = 0; i < CALL_OUTS && d->out[i].kind; i++)
		if (!failed || d->out[i].always)
			output(k, &d->out[i]);
	/* struct msgbuf: the type stands before the text */
	if (k->nr == SYS_msgrcv && !failed && k->neffects)
		k->effects[0].length += 8;
}

static uint32_t effect_bytes(const struct call_effect *f)
{
	return f->kind == TRC_EFFECT_MODULE     ? 0 :
	       f->kind == TRC_EFFECT_OBJECT     ? sizeof(struct trc_object) :
	       f->kind == TRC_EFFECT_OUTPUT_SUM ? sizeof(struct trc_output_sum) : f->length;
}

/* The output is read through a copy: another thread may have unmapped it meanwhile. */
static bool effect_sum(uint8_t *to, const struct call_effect *f)
{
	uint8_t copy[TRC_OUTPUT_MAX];
	struct trc_output_sum s = { f->length, 0 };

	if (!tr_copy(copy, (void *)f->address, f->length))
		return false;
	s.sum = trc_checksum(copy, f->length);
	memcpy(to, &s, sizeof s);
	return true;
}

static bool effect_object(uint8_t *to, const struct call_effect *f)
{
	struct files_place p;
	struct trc_object o = { 0, 0 };

	tr_lock();
	if (files_at(f->address, &p))
		o = (struct trc_object){ p.object, p.offset };
	tr_unlock();
	memcpy(to, &o, sizeof o);
	return true;
}

static bool effect_copy(uint8_t *to, const struct call_effect *f, uint32_t bytes)
{
	if (f->kind == TRC_EFFECT_OBJECT)
		return effect_object(to, f);
	if (f->kind == TRC_EFFECT_OUTPUT_SUM)
		return effect_sum(to, f);
	return !bytes || tr_copy(to, (void *)f->address, bytes);
}

static void unreadable(void)
{
	shim_note(false, "memory written by a system call could not be read back");
}

/* One effect of a large record: what the kernel wrote, copied a piece at a time. */
static void effect_in_pieces(struct rec_large *l, const struct call_effect *f)
{
	static const uint8_t zeros[8];
	uint32_t bytes = effect_bytes(f);
	struct trc_effect e = { f->address, bytes, f->kind };
	uint8_t made[16] = { 0 };
	bool is_made = f->kind == TRC_EFFECT_OUTPUT_SUM || f->kind == TRC_EFFECT_OBJECT, good = true;

	_Static_assert(sizeof(struct trc_output_sum) == 16 && sizeof(struct trc_object) == 16, "they fit");
	rec_large_put(l, &e, sizeof e);
	if (is_made) {
		good = effect_copy(made, f, bytes);
		rec_large_put(l, made, sizeof made);
	}
	for (size_t at = is_made ? bytes : 0, n; at < bytes; at += n) {
		n = bytes - at;
		uint8_t *to = rec_large_room(l, &n);

		if (tr_copy(to, (void *)(f->address + at), n))
			continue;
		memset(to, 0, n);
		good = false;
	}
	rec_large_put(l, zeros, -bytes & 7);
	if (!good)
		unreadable();
}

static void record_large_leave(struct call *k, struct rec_large *l)
{
	struct trc_leave r = {
		.rec = { TRC_LEAVE, (uint16_t)k->nr, (uint32_t)l->size },
		.tsc = raw_tsc(), .result = k->result, .thread = k->thread, .neffects = k->neffects,
		.seq = tr_seq(),
	};

	rec_large_put(l, &r, sizeof r);
	for (unsigned i = 0; i < k->neffects; i++)
		effect_in_pieces(l, &k->effects[i]);
	rec_large_end(l);
}

void call_record_leave(struct call *k)
{
	struct rec_stream *s = &k->ctx->thread->rec;
	size_t size = sizeof(struct trc_leave);
	struct rec_large large;

	for (unsigned i = 0; i < k->neffects; i++)
		size += sizeof(struct trc_effect) + ((effect_bytes(&k->effects[i]) + 7ul) & ~7ul);
	if (size >= REC_LARGE_FROM && rec_large_begin(&large, s, size)) {
		record_large_leave(k, &large);
		return;
	}
	struct trc_leave *r = rec_begin(s, size);
	if (!r) {
		__atomic_thread_fence(__ATOMIC_SEQ_CST); /* for call_run() */
		return;
	}
	uint8_t *at = (uint8_t *)(r + 1);

	r->tsc = raw_tsc();
	r->result = k->result;
	r->thread = k->thread;
	r->neffects = k->neffects;
	for (unsigned i = 0; i < k->neffects; i++) {
		struct trc_effect *e = (struct trc_effect *)at;
		struct call_effect *f = &k->effects[i];
		uint32_t bytes = effect_bytes(f);

		e->address = f->address;
		e->length = bytes;
		e->kind = f->kind;
		at += sizeof *e;
		if (!effect_copy(at, f, bytes))
			unreadable();
		at += (bytes + 7ul) & ~7ul;
	}
	r->seq = tr_seq();
	rec_commit(s, r, TRC_LEAVE, (unsigned)k->nr, size);
}
