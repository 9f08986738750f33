/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rust's own mangling ("v0", RFC 2603): `_RNvNtCs1234_7program6module8function'. The name is a path; what tells instances
 * apart (hashes, types of generic functions) is left out where people leave it out.
 *
 *   path  = C [disambiguator] identifier | M impl-path type | X impl-path type path | Y type path
 *         | N namespace path [disambiguator] identifier | I path {generic-argument} E | B backreference
 *
 * Names come from files of strangers: each step takes from a budget, and what is no such name stays as it is.
 */
#include "analyzer/image/internal.h"

#include <string.h>

enum { MOST_STEPS = 2000, DEEPEST = 64, LONGEST_TEXT = 4096 };

struct rust {
	const char *s; /* behind "_R" */
	size_t n, at;
	int budget, depth;
	bool quiet; /* what is read is not said */
	bool bad;
	struct strbuf out;
};

struct identifier {
	const char *text;
	size_t n;
	bool punycode;
	uint64_t which; /* of those that are called the same, from 0 */
};

static void path(struct rust *r);
static void type(struct rust *r);

static void fail(struct rust *r)
{
	r->bad = true;
}

static char next(struct rust *r)
{
	return r->at < r->n ? r->s[r->at++] : '\0';
}

static char peek(const struct rust *r)
{
	return r->at < r->n ? r->s[r->at] : '\0';
}

static bool eat(struct rust *r, char c)
{
	if (peek(r) != c)
		return false;
	r->at++;
	return true;
}

static void say_n(struct rust *r, const char *s, size_t n)
{
	if (!r->quiet)
		strbuf_add(&r->out, s, n);
	if (r->out.n > LONGEST_TEXT)
		fail(r);
}

static void say(struct rust *r, const char *s)
{
	say_n(r, s, strlen(s));
}

/* "_" is 0, "0_" 1, "Z_" 62. */
static uint64_t base62(struct rust *r)
{
	uint64_t v = 0;

	if (eat(r, '_'))
		return 0;
	for (;;) {
		char c = next(r);
		unsigned d = c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10 :
			     c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 36 : 62;

		if (c == '_')
			return v + 1;
		if (d == 62 || __builtin_mul_overflow(v, 62, &v) || __builtin_add_overflow(v, d, &v)) {
			fail(r);
			return 0;
		}
	}
}

static uint64_t optional62(struct rust *r, char tag)
{
	return eat(r, tag) ? base62(r) + 1 : 0;
}

static struct identifier identifier(struct rust *r)
{
	struct identifier id = { .which = optional62(r, 's') };
	size_t n = 0;

	id.punycode = eat(r, 'u');
	if (peek(r) < '0' || peek(r) > '9')
		fail(r);
	if (!eat(r, '0'))
		while (peek(r) >= '0' && peek(r) <= '9' && n < r->n)
			n = n * 10 + (size_t)(next(r) - '0');
	eat(r, '_');
	if (n > r->n - r->at) {
		fail(r);
		return id;
	}
	id.text = r->s + r->at;
	id.n = n;
	r->at += n;
	return id;
}

static void say_identifier(struct rust *r, const struct identifier *id)
{
	if (id->punycode)
		say(r, "?"); /* letters that are not ASCII: only the others stand there as they are */
	say_n(r, id->text, id->n);
}

/* The same again as at an earlier place. */
static void backreference(struct rust *r, void (*again)(struct rust *))
{
	size_t from = r->at - 1, to = (size_t)base62(r), back = r->at;

	if (r->bad || to >= from) {
		fail(r);
		return;
	}
	r->at = to;
	again(r);
	r->at = back;
}

static bool begin(struct rust *r)
{
	if (r->bad || r->budget-- <= 0 || r->depth >= DEEPEST) {
		fail(r);
		return false;
	}
	r->depth++;
	return true;
}

static void lifetime(struct rust *r)
{
	base62(r);
	say(r, "'_");
}

/* A value that stands for a type's argument: its digits are of no use here. */
static void constant(struct rust *r)
{
	if (!begin(r))
		return;
	if (eat(r, 'p')) {
		say(r, "_");
	} else if (eat(r, 'B')) {
		backreference(r, constant);
	} else {
		next(r);
		eat(r, 'n');
		while (peek(r) && !eat(r, '_'))
			next(r);
		say(r, "_");
	}
	r->depth--;
}

static void generic_arguments(struct rust *r)
{
	bool first = true;

	while (!r->bad && !eat(r, 'E')) {
		if (!first)
			say(r, ", ");
		first = false;
		if (eat(r, 'L'))
			lifetime(r);
		else if (eat(r, 'K'))
			constant(r);
		else
			type(r);
	}
}

/* The module in which an impl stands: read, not said. */
static void impl_path(struct rust *r)
{
	bool quiet = r->quiet;

	optional62(r, 's');
	r->quiet = true;
	path(r);
	r->quiet = quiet;
}

static void nested(struct rust *r)
{
	char space = next(r);

	path(r);
	struct identifier id = identifier(r);

	if (space == 'C') {
		say(r, "::{{closure}}");
	} else if (space >= 'A' && space <= 'Z') {
		say(r, "::{{shim}}");
	} else if (id.n) {
		say(r, "::");
		say_identifier(r, &id);
	}
}

static void path(struct rust *r)
{
	if (!begin(r))
		return;
	struct identifier id;

	switch (next(r)) {
	case 'C':
		id = identifier(r);
		say_identifier(r, &id);
		break;
	case 'N':
		nested(r);
		break;
	case 'M':
		/* "program::Office::sell"; who reads it does not need to be told that it stands in an impl block. */
		impl_path(r);
		type(r);
		break;
	case 'X':
		impl_path(r);
		/* fallthrough */
	case 'Y':
		say(r, "<");
		type(r);
		say(r, " as ");
		path(r);
		say(r, ">");
		break;
	case 'I':
		path(r);
		say(r, "<");
		generic_arguments(r);
		say(r, ">");
		break;
	case 'B':
		backreference(r, path);
		break;
	default:
		fail(r);
	}
	r->depth--;
}

static const char *basic(char c)
{
	static const char *const names[26] = {
		['a' - 'a'] = "i8", ['b' - 'a'] = "bool", ['c' - 'a'] = "char", ['d' - 'a'] = "f64", ['e' - 'a'] = "str",
		['f' - 'a'] = "f32", ['h' - 'a'] = "u8", ['i' - 'a'] = "isize", ['j' - 'a'] = "usize", ['l' - 'a'] = "i32",
		['m' - 'a'] = "u32", ['n' - 'a'] = "i128", ['o' - 'a'] = "u128", ['p' - 'a'] = "_", ['s' - 'a'] = "i16",
		['t' - 'a'] = "u16", ['u' - 'a'] = "()", ['v' - 'a'] = "...", ['x' - 'a'] = "i64", ['y' - 'a'] = "u64",
		['z' - 'a'] = "!",
	};

	return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

static void listed(struct rust *r)
{
	for (bool first = true; !r->bad && !eat(r, 'E'); first = false) {
		if (!first)
			say(r, ", ");
		type(r);
	}
}

static void function_type(struct rust *r)
{
	optional62(r, 'G');
	eat(r, 'U');
	if (eat(r, 'K') && !eat(r, 'C'))
		identifier(r);
	say(r, "fn(");
	listed(r);
	say(r, ")");
	if (!eat(r, 'u')) {
		say(r, " -> ");
		type(r);
	}
}

static void dyn(struct rust *r)
{
	optional62(r, 'G');
	say(r, "dyn ");
	for (bool first = true; !r->bad && !eat(r, 'E'); first = false) {
		if (!first)
			say(r, " + ");
		path(r);
		while (!r->bad && eat(r, 'p')) {
			bool quiet = r->quiet;

			r->quiet = true;
			identifier(r);
			type(r);
			r->quiet = quiet;
		}
	}
	if (eat(r, 'L'))
		base62(r);
}

static void reference(struct rust *r, const char *sign)
{
	if (eat(r, 'L'))
		base62(r);
	say(r, sign);
	type(r);
}

static void type(struct rust *r)
{
	if (!begin(r))
		return;
	char c = next(r);

	switch (c) {
	case 'R': reference(r, "&"); break;
	case 'Q': reference(r, "&mut "); break;
	case 'P': reference(r, "*const "); break;
	case 'O': reference(r, "*mut "); break;
	case 'A':
		say(r, "[");
		type(r);
		say(r, "; ");
		constant(r);
		say(r, "]");
		break;
	case 'S':
		say(r, "[");
		type(r);
		say(r, "]");
		break;
	case 'T':
		say(r, "(");
		listed(r);
		say(r, ")");
		break;
	case 'F': function_type(r); break;
	case 'D': dyn(r); break;
	case 'B': backreference(r, type); break;
	default:
		if (basic(c)) {
			say(r, basic(c));
			break;
		}
		r->at -= r->at > 0;
		path(r);
	}
	r->depth--;
}

char *img_rust_text(const char *name)
{
	struct rust r = { .budget = MOST_STEPS };

	if (strncmp(name, "_R", 2) != 0)
		return NULL;
	r.s = name + 2;
	r.n = strcspn(r.s, ".$"); /* ".llvm.1234" says how the compiler works */
	path(&r);
	/* What follows names the crate that made the instance. */
	if (!r.bad && r.at < r.n) {
		r.quiet = true;
		path(&r);
	}
	if (r.bad || r.at != r.n || !r.out.n) {
		strbuf_free(&r.out);
		return NULL;
	}
	return strbuf_take(&r.out);
}
