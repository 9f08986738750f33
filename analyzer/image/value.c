/* Values as people write them. */
#include "analyzer/image/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Numbers above this are more likely addresses, masks or hashes than counts. */
#define LARGE (1ull << 20)

static int64_t sign_extend(uint64_t v, unsigned bits)
{
	return bits >= 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}

static char *plain(uint64_t v)
{
	return v < LARGE ? xasprintf("%llu", (unsigned long long)v) :
			   xasprintf("0x%llx", (unsigned long long)v);
}

/* More than a register: as one hexadecimal number, most significant byte first. */
static char *wide(const uint8_t *p, size_t n)
{
	struct strbuf b = { 0 };
	size_t shown = n > 32 ? 32 : n;

	strbuf_str(&b, n > 32 ? "0x..." : "0x");
	for (size_t i = shown; i-- > 0;)
		strbuf_fmt(&b, "%02x", p[i]);
	return strbuf_take(&b);
}

static char *format_char(uint64_t v, unsigned bits, bool is_signed)
{
	long long number = is_signed ? sign_extend(v, bits) : (long long)v;

	if (v >= ' ' && v < 127)
		return xasprintf(v == '\'' || v == '\\' ? "%lld '\\%c'" : "%lld '%c'", number,
				 (int)v);
	return xasprintf("%lld", number);
}

/* The shortest text that reads back as the same number. */
static char *format_float(const uint8_t *p, size_t n)
{
	char buf[64];
	float f;
	double d;
	long double l = 0;

	if (n == sizeof f) {
		memcpy(&f, p, n);
		d = f;
	} else if (n == sizeof d) {
		memcpy(&d, p, n);
	} else {
		memcpy(&l, p, n < 10 ? n : 10);
		d = (double)l;
	}
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(buf, sizeof buf, "%.*g", digits, d);
		if (isnan(d) || (n == sizeof f ? strtof(buf, NULL) == f : strtod(buf, NULL) == d))
			break;
	}
	return xstrdup(buf);
}

static bool enumerator(Dwarf_Die *die, uint64_t mask, uint64_t *value)
{
	Dwarf_Attribute attr;
	Dwarf_Sword s;
	Dwarf_Word u;

	if (dwarf_tag(die) != DW_TAG_enumerator || !dwarf_attr(die, DW_AT_const_value, &attr))
		return false;
	if (dwarf_formsdata(&attr, &s) == 0)
		*value = (uint64_t)s & mask;
	else if (dwarf_formudata(&attr, &u) == 0)
		*value = u & mask;
	else
		return false;
	return true;
}

enum { MOST_ENUMERATORS = 256 };

/* "_S_red": C and C++ keep such names for their libraries, so it is none that the program's author has written. */
static bool is_reserved(const char *name)
{
	return *name == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'));
}

char *img_enumerators(const struct img_type *type)
{
	uint64_t mask = type->size >= 8 ? ~0ull : (1ull << type->size * 8) - 1, value;
	struct strbuf b = { 0 };
	Dwarf_Die die;
	int n = 0;

	if (dwarf_child(img_type_die(type), &die))
		return NULL;
	do {
		const char *name = img_die_name(&die);

		if (name && !is_reserved(name) && enumerator(&die, mask, &value) && !strpbrk(name, " ="))
			strbuf_fmt(&b, "%s%s=%llu", b.n ? " " : "", name, (unsigned long long)value);
	} while (++n < MOST_ENUMERATORS && dwarf_siblingof(&die, &die) == 0);
	return b.n ? strbuf_take(&b) : NULL;
}

/* The enumerator, or the flags that make up v, or the number. */
static char *format_enum(const struct img_type *type, uint64_t v, unsigned bits)
{
	uint64_t mask = bits >= 64 ? ~0ull : (1ull << bits) - 1, one, left = v;
	struct strbuf flags = { 0 };
	Dwarf_Die die;

	if (dwarf_child(img_type_die(type), &die))
		return plain(v);
	do {
		if (!enumerator(&die, mask, &one) || !img_die_name(&die))
			continue;
		if (one == v) {
			strbuf_free(&flags);
			return xstrdup(img_die_name(&die));
		}
		if (one && (one & (one - 1)) == 0 && (left & one)) {
			strbuf_fmt(&flags, "%s%s", flags.n ? "|" : "", img_die_name(&die));
			left &= ~one;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
	if (!left && flags.n)
		return strbuf_take(&flags);
	strbuf_free(&flags);
	return xasprintf("%lld", (long long)sign_extend(v, bits));
}

static char *format_pointer(struct img_set *set, uint64_t v)
{
	uint64_t offset = 0;
	const char *name = set && v ? img_symbol(set, v, &offset) : NULL;

	if (!v)
		return xstrdup("NULL");
	if (!name)
		return xasprintf("0x%llx", (unsigned long long)v);
	if (!offset)
		return xasprintf("0x%llx <%s>", (unsigned long long)v, name);
	return xasprintf("0x%llx <%s+%llu>", (unsigned long long)v, name,
			 (unsigned long long)offset);
}

static bool is_signed_char(const struct img_type *type)
{
	Dwarf_Attribute attr;
	Dwarf_Word v;

	return dwarf_attr(img_type_die(type), DW_AT_encoding, &attr) &&
	       dwarf_formudata(&attr, &v) == 0 && v == DW_ATE_signed_char;
}

static char *format_number(struct img_set *set, const struct img_type *type, uint64_t v,
			   unsigned bits)
{
	switch (type->kind) {
	case IMG_SIGNED:
		return xasprintf("%lld", (long long)sign_extend(v, bits));
	case IMG_UNSIGNED:
		return xasprintf("%llu", (unsigned long long)v);
	case IMG_CHAR:
		return format_char(v, bits, is_signed_char(type));
	case IMG_BOOL:
		return v > 1 ? plain(v) : xstrdup(v ? "true" : "false");
	case IMG_ENUM:
		return format_enum(type, v, bits);
	case IMG_POINTER:
		return format_pointer(set, v);
	default:
		return plain(v);
	}
}

char *img_format_value(struct img_set *set, const struct img_type *type, const void *bytes,
		       size_t n)
{
	uint64_t v = 0;
	bool fits = type && (type->bit_size ? n >= type->size : n == type->size);
	unsigned bits = (unsigned)n * 8;

	if (!n)
		return xstrdup("");
	if (fits && type->kind == IMG_FLOAT && (n == 4 || n == 8 || n == 10 || n == 12 || n == 16))
		return format_float(bytes, n);
	if (n > sizeof v)
		return wide(bytes, n);
	memcpy(&v, bytes, n);
	if (!fits)
		return plain(v);
	if (type->bit_size) {
		bits = type->bit_size;
		v >>= type->bit_offset;
		v &= bits >= 64 ? ~0ull : (1ull << bits) - 1;
	}
	return format_number(set, type, v, bits);
}
