/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What gdb calls the registers of x86-64, in which order, and how wide they are: one table from which the
 * description and the contents both come.
 */
#include "analyzer/debug/registers.h"

#include "analyzer/debug/packet.h"

#include <string.h>

enum source {
	GPR,     /* at: index in trace_format.h */
	SEGMENT, /* at: the selector, which is a constant of the system */
	ST,      /* at: 0 to 7 */
	FX16,    /* two bytes of the FXSAVE area, shown as four */
	FTAG,    /* the tag word in full: FXSAVE keeps a bit per register */
	FX32,
	XMM,
	BASE,    /* at: 0 fs, 1 gs */
	YMMH,
	ORIG_RAX,
};

struct reg {
	const char *name, *type, *group;
	unsigned bits;
	enum source source;
	unsigned at;
};

#define R(name, type, at) { name, type, NULL, 64, GPR, at }
static const struct reg core[] = {
	R("rax", "int64", 0), R("rbx", "int64", 3), R("rcx", "int64", 1), R("rdx", "int64", 2),
	R("rsi", "int64", 6), R("rdi", "int64", 7), R("rbp", "data_ptr", 5), R("rsp", "data_ptr", 4),
	R("r8", "int64", 8), R("r9", "int64", 9), R("r10", "int64", 10), R("r11", "int64", 11),
	R("r12", "int64", 12), R("r13", "int64", 13), R("r14", "int64", 14), R("r15", "int64", 15),
	R("rip", "code_ptr", TRC_RIP),
	{ "eflags", "i386_eflags", NULL, 32, GPR, TRC_RFLAGS },
	{ "cs", "int32", NULL, 32, SEGMENT, 0x33 }, { "ss", "int32", NULL, 32, SEGMENT, 0x2b },
	{ "ds", "int32", NULL, 32, SEGMENT, 0 }, { "es", "int32", NULL, 32, SEGMENT, 0 },
	{ "fs", "int32", NULL, 32, SEGMENT, 0 }, { "gs", "int32", NULL, 32, SEGMENT, 0 },
	{ "st0", "i387_ext", NULL, 80, ST, 0 }, { "st1", "i387_ext", NULL, 80, ST, 1 },
	{ "st2", "i387_ext", NULL, 80, ST, 2 }, { "st3", "i387_ext", NULL, 80, ST, 3 },
	{ "st4", "i387_ext", NULL, 80, ST, 4 }, { "st5", "i387_ext", NULL, 80, ST, 5 },
	{ "st6", "i387_ext", NULL, 80, ST, 6 }, { "st7", "i387_ext", NULL, 80, ST, 7 },
	{ "fctrl", "int", "float", 32, FX16, 0 }, { "fstat", "int", "float", 32, FX16, 2 },
	{ "ftag", "int", "float", 32, FTAG, 4 }, { "fiseg", "int", "float", 32, FX16, 12 },
	{ "fioff", "int", "float", 32, FX32, 8 }, { "foseg", "int", "float", 32, FX16, 20 },
	{ "fooff", "int", "float", 32, FX32, 16 }, { "fop", "int", "float", 32, FX16, 6 },
};
#define X(n) { "xmm" #n, "vec128", NULL, 128, XMM, n }
static const struct reg sse[] = {
	X(0), X(1), X(2), X(3), X(4), X(5), X(6), X(7), X(8), X(9), X(10), X(11), X(12), X(13), X(14), X(15),
	{ "mxcsr", "i386_mxcsr", "vector", 32, FX32, 24 },
};
static const struct reg linux_only[] = { { "orig_rax", "int", NULL, 64, ORIG_RAX, 0 } };
static const struct reg segments[] = { { "fs_base", "int", NULL, 64, BASE, 0 }, { "gs_base", "int", NULL, 64, BASE, 1 } };
#define Y(n) { "ymm" #n "h", "uint128", NULL, 128, YMMH, n }
static const struct reg avx[] = {
	Y(0), Y(1), Y(2), Y(3), Y(4), Y(5), Y(6), Y(7), Y(8), Y(9), Y(10), Y(11), Y(12), Y(13), Y(14), Y(15),
};

static const char sse_types[] =
	"<vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/><vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/>"
	"<vector id=\"v16i8\" type=\"int8\" count=\"16\"/><vector id=\"v8i16\" type=\"int16\" count=\"8\"/>"
	"<vector id=\"v4i32\" type=\"int32\" count=\"4\"/><vector id=\"v2i64\" type=\"int64\" count=\"2\"/>"
	"<union id=\"vec128\"><field name=\"v4_float\" type=\"v4f\"/><field name=\"v2_double\" type=\"v2d\"/>"
	"<field name=\"v16_int8\" type=\"v16i8\"/><field name=\"v8_int16\" type=\"v8i16\"/>"
	"<field name=\"v4_int32\" type=\"v4i32\"/><field name=\"v2_int64\" type=\"v2i64\"/>"
	"<field name=\"uint128\" type=\"uint128\"/></union>"
	"<flags id=\"i386_mxcsr\" size=\"4\"><field name=\"IE\" start=\"0\" end=\"0\"/><field name=\"DE\" start=\"1\" end=\"1\"/>"
	"<field name=\"ZE\" start=\"2\" end=\"2\"/><field name=\"OE\" start=\"3\" end=\"3\"/><field name=\"UE\" start=\"4\" end=\"4\"/>"
	"<field name=\"PE\" start=\"5\" end=\"5\"/></flags>";
static const char core_types[] =
	"<flags id=\"i386_eflags\" size=\"4\"><field name=\"CF\" start=\"0\" end=\"0\"/><field name=\"\" start=\"1\" end=\"1\"/>"
	"<field name=\"PF\" start=\"2\" end=\"2\"/><field name=\"AF\" start=\"4\" end=\"4\"/><field name=\"ZF\" start=\"6\" end=\"6\"/>"
	"<field name=\"SF\" start=\"7\" end=\"7\"/><field name=\"TF\" start=\"8\" end=\"8\"/><field name=\"IF\" start=\"9\" end=\"9\"/>"
	"<field name=\"DF\" start=\"10\" end=\"10\"/><field name=\"OF\" start=\"11\" end=\"11\"/></flags>";

#define COUNT(v) (sizeof(v) / sizeof *(v))
static const struct feature {
	const char *name, *types;
	const struct reg *regs;
	size_t n;
} features[] = {
	{ "org.gnu.gdb.i386.core", core_types, core, COUNT(core) },
	{ "org.gnu.gdb.i386.sse", sse_types, sse, COUNT(sse) },
	{ "org.gnu.gdb.i386.linux", "", linux_only, COUNT(linux_only) },
	{ "org.gnu.gdb.i386.segments", "", segments, COUNT(segments) },
	{ "org.gnu.gdb.i386.avx", "", avx, COUNT(avx) },
};

void registers_describe(struct strbuf *out)
{
	strbuf_str(out, "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target>"
			"<architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>");
	for (size_t i = 0; i < COUNT(features); i++) {
		const struct feature *f = &features[i];

		strbuf_fmt(out, "<feature name=\"%s\">%s", f->name, f->types);
		for (size_t k = 0; k < f->n; k++) {
			const struct reg *r = &f->regs[k];

			strbuf_fmt(out, "<reg name=\"%s\" bitsize=\"%u\" type=\"%s\"", r->name, r->bits, r->type);
			if (r->group)
				strbuf_fmt(out, " group=\"%s\"", r->group);
			strbuf_str(out, "/>");
		}
		strbuf_str(out, "</feature>");
	}
	strbuf_str(out, "</target>");
}

struct state {
	uint64_t regs[TRC_NREGS];
	struct mach_vectors v;
};

/* 11 for a register that is empty; 00 stands for every other, as gdb itself shows values it cannot classify. */
static uint32_t full_tags(const struct mach_vectors *v)
{
	unsigned top = v->fx[3] >> 3 & 7, kept = v->fx[4];
	uint32_t tags = 0;

	for (unsigned i = 0; i < 8; i++) {
		const uint8_t *st = v->fx + 32 + 16 * ((i - top) & 7);
		unsigned exponent = (unsigned)(st[8] | st[9] << 8) & 0x7fff, tag;
		uint64_t mantissa;

		memcpy(&mantissa, st, sizeof mantissa);
		if (!(kept >> i & 1))
			tag = 3;
		else if (exponent == 0x7fff || (exponent && !(mantissa >> 63)) || (!exponent && mantissa))
			tag = 2;
		else
			tag = !exponent && !mantissa ? 1 : 0;
		tags |= tag << 2 * i;
	}
	return tags;
}

static void add(const struct reg *r, const struct state *s, struct strbuf *out)
{
	uint8_t value[16] = { 0 };
	uint32_t word;

	switch (r->source) {
	case GPR: memcpy(value, &s->regs[r->at], 8); break;
	case SEGMENT: value[0] = (uint8_t)r->at; break;
	case ST: memcpy(value, s->v.fx + 32 + 16 * r->at, 10); break;
	case FX16: memcpy(value, s->v.fx + r->at, 2); break;
	case FX32: memcpy(value, s->v.fx + r->at, 4); break;
	case FTAG:
		word = full_tags(&s->v);
		memcpy(value, &word, 4);
		break;
	case XMM: memcpy(value, s->v.ymm[r->at], 16); break;
	case YMMH: memcpy(value, s->v.ymm[r->at] + 16, 16); break;
	case BASE: memcpy(value, r->at ? &s->v.gs_base : &s->v.fs_base, 8); break;
	case ORIG_RAX: memset(value, 0xff, 8); break; /* in no system call that could be restarted */
	}
	if (r->source == GPR && r->at == TRC_RFLAGS)
		value[4] = value[5] = value[6] = value[7] = 0;
	packet_hex(out, value, r->bits / 8);
}

static bool load(struct mach_run *r, uint32_t thread, struct state *s)
{
	return mach_regs(r, thread, s->regs, NULL) && mach_vectors(r, thread, &s->v);
}

bool registers_all(struct mach_run *r, uint32_t thread, struct strbuf *out)
{
	struct state s;

	if (!load(r, thread, &s))
		return false;
	for (size_t i = 0; i < COUNT(features); i++)
		for (size_t k = 0; k < features[i].n; k++)
			add(&features[i].regs[k], &s, out);
	return true;
}

bool registers_one(struct mach_run *r, uint32_t thread, unsigned number, struct strbuf *out)
{
	struct state s;

	if (!load(r, thread, &s))
		return false;
	for (size_t i = 0; i < COUNT(features); number -= (unsigned)features[i++].n)
		if (number < features[i].n) {
			add(&features[i].regs[number], &s, out);
			return true;
		}
	return false;
}

bool registers_expedited(struct mach_run *r, uint32_t thread, struct strbuf *out)
{
	static const unsigned some[] = { 6, 7, 16 };
	struct state s;

	if (!load(r, thread, &s))
		return false;
	for (size_t i = 0; i < COUNT(some); i++) {
		strbuf_fmt(out, "%02x:", some[i]);
		add(&core[some[i]], &s, out);
		strbuf_char(out, ';');
	}
	return true;
}
