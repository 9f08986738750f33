/* See xstate.h. */
#include "analyzer/engine/engine.h"

#include <cpuid.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const uint16_t sizes[X_PARTS] = {
	[X_AVX] = 256, [X_MASKS] = 64, [X_UPPER] = 512, [X_HIGH] = 1024,
};

unsigned xstate_size(enum xstate_part part)
{
	return sizes[part];
}

void xstate_plain(struct mach_xlayout *l)
{
	memset(l, 0, sizeof *l);
	l->xcr0 = X_BIT(X_X87) | X_BIT(X_SSE) | X_BIT(X_AVX);
	l->offset[X_AVX] = XSTATE_BASIC;
}

void xstate_host(struct mach_xlayout *l)
{
	unsigned a, b, c, d, hi;

	xstate_plain(l);
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1))
		return;
	__asm__ volatile("xgetbv" : "=a"(a), "=d"(hi) : "c"(0));
	l->xcr0 = (uint64_t)hi << 32 | a;
	for (unsigned i = X_AVX; i < X_PARTS; i++)
		if (sizes[i] && l->xcr0 >> i & 1 && __get_cpuid_count(13, i, &a, &b, &c, &d))
			l->offset[i] = b;
}

/* A number in digits alone; one that is too large is the largest. */
static bool number(const char **at, int base, uint64_t *n)
{
	char *end;

	if (!isxdigit((unsigned char)**at))
		return false;
	*n = strtoull(*at, &end, base);
	*at = end;
	return true;
}

bool xstate_parse(struct mach_xlayout *l, const char *text)
{
	memset(l, 0, sizeof *l);
	if (!number(&text, 16, &l->xcr0) || (l->xcr0 & 3) != 3)
		return false;
	while (*text == ' ') {
		uint64_t part, offset;

		text++;
		if (!number(&text, 10, &part) || *text++ != ':' || !number(&text, 10, &offset))
			return false;
		if (part < X_PARTS && sizes[part]) {
			if (offset < XSTATE_BASIC || offset > XSTATE_MAX - sizes[part])
				return false;
			l->offset[part] = (uint32_t)offset;
		}
	}
	return !*text;
}

uint32_t xstate_offset(const struct mach_xlayout *l, enum xstate_part part, uint64_t compact)
{
	uint32_t at = XSTATE_BASIC;

	if (!compact)
		return l->offset[part];
	/* Parts that lie before it and that we do not know: no processor has them any more. */
	for (unsigned i = X_AVX; i < part; i++)
		if (compact >> i & 1)
			at += sizes[i];
	return compact >> part & 1 ? at : 0;
}

static void swap_bytes(bool to_area, uint8_t *area, void *reg, size_t n)
{
	if (to_area)
		memcpy(area, reg, n);
	else
		memcpy(reg, area, n);
}

void xstate_copy(enum xstate_part part, bool to_area, uint8_t *area, void *ymm0,
		 struct mach_wide *w)
{
	switch (part) {
	case X_AVX:
		for (unsigned i = 0; i < 16; i++)
			swap_bytes(to_area, area + 16 * i, (uint8_t *)ymm0 + 32 * i + 16, 16);
		break;
	case X_MASKS:
		swap_bytes(to_area, area, w->k, sizeof w->k);
		break;
	case X_UPPER:
		swap_bytes(to_area, area, w->upper, sizeof w->upper);
		break;
	case X_HIGH:
		swap_bytes(to_area, area, w->high, sizeof w->high);
		break;
	default:
		break;
	}
}

bool xstate_used(enum xstate_part part, const void *ymm0, const struct mach_wide *w)
{
	uint8_t now[1024];

	xstate_copy(part, true, now, (void *)(uintptr_t)ymm0, (struct mach_wide *)(uintptr_t)w);
	for (unsigned i = 0; i < sizes[part]; i++)
		if (now[i])
			return true;
	return false;
}

bool xstate_is_wide(const struct mach_wide *w)
{
	static const uint8_t zero[32];

	for (unsigned i = 0; i < 16; i++)
		if (memcmp(w->upper[i], zero, 32) || memcmp(w->high[i] + 32, zero, 32))
			return true;
	return false;
}

static void load_basic(const struct mach_regs_at *to, const uint8_t *area, uint64_t present)
{
	uint32_t mxcsr;

	if (present & X_BIT(X_X87)) {
		memcpy(to->fx, area, 24);
		memcpy(to->fx + 32, area + 32, 128);
	} else { /* as after FNINIT */
		memset(to->fx, 0, 24);
		memset(to->fx + 32, 0, 128);
		memcpy(to->fx, (const uint8_t[2]){ 0x7f, 0x03 }, 2);
	}
	memcpy(&mxcsr, area + 24, 4);
	mxcsr = (mxcsr & 0xffff) | 0x1f80;
	memcpy(to->fx + 24, &mxcsr, 4);
	for (unsigned i = 0; i < 16; i++) {
		uint8_t *v = (uint8_t *)to->ymm0 + 32 * i;

		if (present & X_BIT(X_SSE))
			memcpy(v, area + 160 + 16 * i, 16);
		else
			memset(v, 0, 16);
	}
}

void xstate_load(const struct mach_xlayout *l, const struct mach_regs_at *to, uint8_t *area,
		 size_t len, uint64_t present)
{
	static uint8_t none[1024];

	load_basic(to, area, present);
	for (unsigned i = X_AVX; i < X_PARTS; i++) {
		bool there = present >> i & 1 && l->offset[i] && l->offset[i] + sizes[i] <= len;

		if (sizes[i])
			xstate_copy(i, false, there ? area + l->offset[i] : none, to->ymm0, to->wide);
	}
}
