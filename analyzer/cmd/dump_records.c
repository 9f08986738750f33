/* Fields to text or JSON. */
#include "analyzer/cmd/dump_records.h"

#include "analyzer/cmd/dump_fields.h"
#include "common/syscall_names.h"
#include "common/trace_types.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

/* ---- what the flags say, in words; malloc'd ---- */

static char *bits(unsigned flags, const char *const *names, size_t n)
{
	struct strbuf b = { 0 };

	for (size_t i = 0; i < n; i++)
		if (flags >> i & 1)
			strbuf_fmt(&b, "%s%s", b.n ? "+" : "", names[i]);
	return strbuf_take(&b);
}

static char *one_of(unsigned i, const char *const *names, size_t n)
{
	return i < n ? xstrdup(names[i]) : xasprintf("%u", i);
}
#define ONE_OF(i, ...)                                                   \
	one_of(i, (const char *const[]){ __VA_ARGS__ },                  \
	       sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static char *flags_text(const struct trc_rec *r)
{
	static const char *const region[] = { "shim", "stack", "heap", "shared", "vdso", "brk" };
	const char *name;

	switch (r->type) {
	case TRC_SYNC:
	case TRC_CARRIED:
		return xasprintf("%s %s", trc_op_name(TRC_SYNC_OP(r->flags)),
				 trc_at_name(TRC_SYNC_AT(r->flags)));
	case TRC_ENTER:
	case TRC_LEAVE:
		name = syscall_name(r->flags);
		return name ? xstrdup(name) : xasprintf("%u", r->flags);
	case TRC_FAILURE:
		return xstrdup(trc_failure_name(r->flags));
	case TRC_NONDET:
		return xstrdup(trc_nondet_name(r->flags));
	case TRC_SIGNAL:
		return show_signal(r->flags);
	case TRC_FRAGMENT:
		return xstrdup(trc_frag_kind_name(r->flags));
	case TRC_REGION:
		return bits(r->flags, region, sizeof region / sizeof *region);
	case TRC_NOTE:
		return ONE_OF(r->flags, "assumption", "degraded");
	case TRC_CHILD:
		return ONE_OF(r->flags, "fork", "vfork", "spawn");
	case TRC_END:
		return ONE_OF(r->flags, "exit", "signal", "exec");
	case TRC_NATIVE:
		return ONE_OF(r->flags, "for good", "for a while");
	default:
		return r->flags ? xasprintf("flags=0x%x", r->flags) : xstrdup("");
	}
}

/* ---- printing ---- */

void dump_begin(struct dump *d, const char *where, const char *type)
{
	if (d->json) {
		json_object(d->json, NULL);
		json_str(d->json, "stream", where);
		json_str(d->json, "type", type);
		return;
	}
	term_print(&d->show.term, TERM_BOLD, "%-8s", where);
	term_print(&d->show.term, TERM_CYAN, " %-8s", type);
}

void dump_end(struct dump *d)
{
	FILE *f = d->show.term.f;

	if (!d->json) {
		fputc('\n', f);
		return;
	}
	json_end(d->json);
	/* Written record by record: a trace does not fit into memory twice. */
	fwrite(d->json->out.s, 1, d->json->out.n, f);
	d->json->out.n = 0;
}

void dump_word(struct dump *d, const char *name, const char *text)
{
	if (d->json)
		json_str(d->json, name, text);
	else
		fprintf(d->show.term.f, " %s", text);
}

void dump_uint(struct dump *d, const char *name, uint64_t v)
{
	if (d->json)
		json_uint(d->json, name, v);
	else
		fprintf(d->show.term.f, " %s=%" PRIu64, name, v);
}

static void dump_int(struct dump *d, const char *name, int64_t v)
{
	if (d->json)
		json_int(d->json, name, v);
	else
		fprintf(d->show.term.f, " %s=%" PRId64, name, v);
}

static void dump_hex(struct dump *d, const char *name, uint64_t v)
{
	if (d->json)
		json_hex(d->json, name, v);
	else
		fprintf(d->show.term.f, " %s=0x%" PRIx64, name, v);
}

/* An address and what it is called. */
static void dump_named(struct dump *d, const char *name, uint64_t v, char *text)
{
	if (d->json) {
		json_object(d->json, name);
		json_hex(d->json, "address", v);
		json_str(d->json, "text", text);
		json_end(d->json);
	} else {
		fprintf(d->show.term.f, " %s=0x%" PRIx64, name, v);
		if (strncmp(text, "0x", 2))
			fprintf(d->show.term.f, "<%s>", text);
	}
	free(text);
}

void dump_place(struct dump *d, const char *name, uint64_t pc, bool is_site)
{
	dump_named(d, name, pc, is_site ? show_site(&d->show, pc) : show_pc(&d->show, pc));
}

static void dump_text(struct dump *d, const char *name, const char *s, size_t n)
{
	if (d->json) {
		json_strn(d->json, name, s, n);
		return;
	}
	char *safe = term_text_of(s, n);

	fprintf(d->show.term.f, " %s=\"%s\"", name, safe);
	free(safe);
}

static void dump_bytes(struct dump *d, const char *name, const uint8_t *bytes, size_t n)
{
	size_t shown = n < d->max_bytes ? n : (size_t)d->max_bytes;
	struct strbuf b = { 0 };

	for (size_t i = 0; i < shown; i++)
		strbuf_fmt(&b, "%02x", bytes[i]);
	if (shown < n)
		strbuf_str(&b, "...");
	if (d->json)
		json_str(d->json, name, b.s ? b.s : "");
	else
		fprintf(d->show.term.f, " %s=%s", name, b.s ? b.s : "");
	strbuf_free(&b);
}

static void dump_time(struct dump *d, uint64_t tsc)
{
	double s = trc_seconds(d->show.t, tsc);

	if (d->json) {
		json_uint(d->json, "tsc", tsc);
		if (s >= 0)
			json_num(d->json, "seconds", s);
	} else if (s >= 0) {
		fprintf(d->show.term.f, " %.9f", s);
	} else {
		fprintf(d->show.term.f, " tsc=%" PRIu64, tsc);
	}
}

static void dump_regs(struct dump *d, const char *name, const uint64_t *regs)
{
	if (d->json)
		json_object(d->json, name);
	for (int i = 0; i < TRC_NREGS; i++)
		dump_hex(d, trc_reg_names[i], regs[i]);
	if (d->json)
		json_end(d->json);
}

static void dump_args(struct dump *d, const char *name, const uint64_t *args)
{
	if (d->json)
		json_array(d->json, name);
	else
		fputs(" (", d->show.term.f);
	for (int i = 0; i < 6; i++) {
		if (d->json)
			json_hex(d->json, NULL, args[i]);
		else
			fprintf(d->show.term.f, "%s0x%" PRIx64, i ? ", " : "", args[i]);
	}
	if (d->json)
		json_end(d->json);
	else
		fputs(")", d->show.term.f);
}

/* Lists inside a record: an object each in JSON, [ ... ] in text. */
static void list_begin(struct dump *d, const char *name)
{
	if (d->json)
		json_array(d->json, name);
}

static void list_end(struct dump *d)
{
	if (d->json)
		json_end(d->json);
}

static void entry_begin(struct dump *d, const char *word)
{
	if (d->json)
		json_object(d->json, NULL);
	else
		fprintf(d->show.term.f, " [%s", word);
}

static void entry_end(struct dump *d)
{
	if (d->json)
		json_end(d->json);
	else
		fputs("]", d->show.term.f);
}

static void dump_effects(struct dump *d, const struct trc_leave *l)
{
	struct trc_effects fx = trc_effects(l);

	list_begin(d, "effects");
	for (const struct trc_effect *e; (e = trc_effect_next(&fx));) {
		entry_begin(d, trc_effect_name(e->kind));
		if (d->json)
			json_str(d->json, "kind", trc_effect_name(e->kind));
		dump_hex(d, "address", e->address);
		dump_uint(d, "length", e->length);
		dump_bytes(d, "bytes", trc_effect_bytes(e), e->length);
		entry_end(d);
	}
	list_end(d);
}

static void dump_sides(struct dump *d, const struct trc_fragment *f)
{
	const struct trc_side *side = trc_fragment_sides(f);

	list_begin(d, "sides");
	for (uint32_t i = 0; i < f->nsides; i++) {
		entry_begin(d, "side");
		dump_hex(d, "pc", side[i].pc);
		dump_hex(d, "target", side[i].target);
		entry_end(d);
	}
	list_end(d);
}

static void dump_items(struct dump *d, const struct trc_fragment *f)
{
	const struct trc_item *item = trc_fragment_items(f);

	list_begin(d, "items");
	for (uint32_t i = 0; i < f->nitems; i++) {
		const char *kind = item[i].kind == TRC_ITEM_ORDER ? "order" : "value";

		entry_begin(d, kind);
		if (d->json)
			json_str(d->json, "kind", kind);
		dump_hex(d, "pc", item[i].pc);
		dump_uint(d, "size", item[i].size);
		entry_end(d);
	}
	list_end(d);
}

static void dump_build_id(struct dump *d, const struct trc_module *m)
{
	struct strbuf b = { 0 };

	for (unsigned i = 0; i < m->build_id_len; i++)
		strbuf_fmt(&b, "%02x", m->build_id[i]);
	dump_text(d, "build_id", b.s ? b.s : "", b.n);
	strbuf_free(&b);
}

static void dump_prot(struct dump *d, uint32_t prot)
{
	const char text[] = { prot & PROT_READ ? 'r' : '-', prot & PROT_WRITE ? 'w' : '-',
			      prot & PROT_EXEC ? 'x' : '-', 0 };

	dump_word(d, "prot", text);
}

static uint64_t number_at(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, p, n);
	return v;
}

/*
 * Sites are return addresses, with two exceptions: the start routine of a
 * thread, which is what it begins with and returns from at its end; and the
 * instruction at which a signal struck.
 */
static bool is_instruction(const struct dump *d, const struct trc_rec *rec, uint64_t site)
{
	const struct trc_failure *failure = d->show.t->failure;
	uint64_t offset = 1;

	if (rec->type == TRC_FAILURE)
		return rec->flags == TRC_FAIL_SIGNAL;
	if (rec->type == TRC_STACK) /* flags 0: of the thread that failed */
		return !rec->flags && failure && failure->rec.flags == TRC_FAIL_SIGNAL;
	if (rec->type != TRC_SYNC)
		return false;
	if (TRC_SYNC_OP(rec->flags) == TRC_OP_EXIT)
		return img_symbol(d->show.img, site, &offset) && !offset;
	return TRC_SYNC_OP(rec->flags) == TRC_OP_THREAD_MAIN;
}

static void dump_field(struct dump *d, const struct trc_rec *rec, const struct dump_field *f)
{
	const uint8_t *base = (const uint8_t *)rec, *p = base + f->at;
	const void *r = rec;
	uint64_t v64 = number_at(p, f->at + 8u <= rec->size ? 8 : 0);
	uint32_t v32 = (uint32_t)v64;

	switch (f->kind) {
	case U8: dump_uint(d, f->name, *p); break;
	case U16: dump_uint(d, f->name, v64 & 0xffff); break;
	case U32: dump_uint(d, f->name, number_at(p, 4)); break;
	case I32: dump_int(d, f->name, (int32_t)number_at(p, 4)); break;
	case U64: dump_uint(d, f->name, v64); break;
	case I64: dump_int(d, f->name, (int64_t)v64); break;
	case HEX: dump_hex(d, f->name, v64); break;
	case TIME: dump_time(d, v64); break;
	case PLACE: dump_place(d, f->name, v64, false); break;
	case SITE: dump_place(d, f->name, v64, !is_instruction(d, rec, v64)); break;
	case REGS: dump_regs(d, f->name, (const uint64_t *)p); break;
	case ARGS: dump_args(d, f->name, (const uint64_t *)p); break;
	case EFFECTS: dump_effects(d, r); break;
	case SIDES: dump_sides(d, r); break;
	case ITEMS: dump_items(d, r); break;
	case BUILD_ID: dump_build_id(d, r); break;
	case PROT: dump_prot(d, (uint32_t)number_at(p, 4)); break;
	case OP: dump_word(d, f->name, trc_op_name((unsigned)number_at(p, 2))); break;
	case THREAD:
		v32 = (uint32_t)number_at(p, 4);
		if (v32 != UINT32_MAX)
			dump_text(d, f->name, trc_thread_id(d->show.t, v32),
				  strlen(trc_thread_id(d->show.t, v32)));
		break;
	case OBJECT:
		dump_named(d, f->name, v64, show_object(&d->show, v64, TRC_SYNC_OP(rec->flags)));
		break;
	case BLOCKED:
		dump_named(d, f->name, v64,
			   show_object(&d->show, v64, ((const struct trc_blocked *)r)->op));
		break;
	case TEXT:
		if (f->behind)
			p += number_at(base + f->behind, 4);
		dump_text(d, f->name, (const char *)p, number_at(base + f->length, 4));
		break;
	case TEXT16:
		dump_text(d, f->name, (const char *)p, number_at(base + f->length, 2));
		break;
	case BYTES:
		dump_bytes(d, f->name, p, number_at(base + f->length, 4));
		break;
	}
}

void dump_record(struct dump *d, const char *where, uint64_t pos, const struct trc_rec *rec)
{
	char *flags = flags_text(rec);

	dump_begin(d, where, trc_type_name(rec->type));
	if (d->json)
		json_uint(d->json, "pos", pos);
	if (*flags)
		dump_word(d, "what", flags);
	free(flags);
	for (const struct dump_field *f = dump_fields_of(rec->type); f->name; f++)
		dump_field(d, rec, f);
	dump_end(d);
}
