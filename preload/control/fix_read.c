/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The points of a fix (common/control_format.h), read without libc. */
#include "preload/control/fix.h"

#include "preload/control/enforce.h"

#define NAME_MAX_ 256

static const char point_names[FIX_KINDS][12] = {
	[FIX_BEGIN] = "begin", [FIX_ENTER] = "enter", [FIX_END] = "end", [FIX_TAKEN] = "taken",
	[FIX_SOURCE] = "source", [FIX_TARGET] = "target", [FIX_JOIN] = "join", [FIX_CHECK] = "check",
	[FIX_KEEP] = "keep", [FIX_FENCE] = "fence", [FIX_WAKE_ALL] = "wake-all",
};

static bool small(const char **p, uint64_t below, uint32_t *out)
{
	uint64_t v;

	if (!ctl_number(p, 10, &v) || v >= below)
		return false;
	*out = (uint32_t)v;
	return true;
}

static bool place(const char **p, uint32_t *module, uint64_t *offset)
{
	char name[NAME_MAX_];

	if (!ctl_word(p, name, sizeof name) || !ctl_number(p, 16, offset))
		return false;
	*module = ctl_module_hash(name);
	return true;
}

static bool parse_region(struct fix *f, const char *p)
{
	uint32_t i;

	f->regions = true;
	return small(&p, FIX_ITEMS, &i) && small(&p, FIX_LOCKS, &f->item[i].lock) &&
	       small(&p, UINT32_MAX, &f->item[i].up) && small(&p, UINT32_MAX, &f->item[i].count);
}

static bool parse_order(struct fix *f, const char *p)
{
	uint32_t i, each;

	if (!small(&p, FIX_ITEMS, &i) || !small(&p, 2, &each))
		return false;
	f->item[i].each = each;
	return true;
}

static bool parse_guard(struct fix *f, const char *p)
{
	struct fix_object *o = &f->object[f->nobjects];

	return f->nobjects < FIX_OBJECTS && small(&p, FIX_LOCKS, &o->lock) &&
	       place(&p, &o->module, &o->address) && ++f->nobjects;
}

static bool parse_thread(struct fix *f, const char *p, bool joined)
{
	if (f->nnamed == FIX_THREADS_NAMED || (!joined && !small(&p, FIX_ITEMS, &f->named[f->nnamed].item)))
		return false;
	if (joined)
		f->named[f->nnamed].item = FIX_ITEMS;
	return ctl_word(&p, f->named[f->nnamed].id, SHIM_ID_MAX) && ++f->nnamed;
}

static bool parse_point(struct fix *f, const char *name, const char *p)
{
	struct fix_point *o = &f->point[f->npoints];

	for (unsigned k = 0; k < FIX_KINDS; k++) {
		if (!enf_same(name, point_names[k]))
			continue;
		o->kind = (enum fix_kind)k;
		f->checks |= k == FIX_CHECK;
		return f->npoints < FIX_POINTS && small(&p, k == FIX_TAKEN ? FIX_LOCKS : FIX_ITEMS, &o->item) &&
		       place(&p, &o->module, &o->offset) && ++f->npoints;
	}
	return false;
}

static bool parse_line(struct fix *f, const char *p)
{
	char name[12];

	if (*p == '#' || *p == '\n' || !*p)
		return true;
	if (!ctl_word(&p, name, sizeof name))
		return false;
	if (enf_same(name, "region"))
		return parse_region(f, p);
	if (enf_same(name, "order"))
		return parse_order(f, p);
	if (enf_same(name, "guard"))
		return parse_guard(f, p);
	if (enf_same(name, "thread") || enf_same(name, "by"))
		return parse_thread(f, p, name[0] == 't');
	return parse_point(f, name, p);
}

bool fix_parse(struct fix *f, const char *text)
{
	size_t n = strlen(CTL_FIX_MAGIC);

	if (memcmp(text, CTL_FIX_MAGIC, n) || text[n] != '\n')
		return false;
	for (text += n + 1; *text;) {
		if (!parse_line(f, text))
			return false;
		while (*text && *text != '\n')
			text++;
		text += *text == '\n';
	}
	return f->npoints > 0;
}
