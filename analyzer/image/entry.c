/*
 * Values at function entry. Optimised code forgets a parameter once it is no
 * longer needed; DWARF then says "what rdi was on entry", and the caller's call
 * site tells how that was computed, often from registers the callee preserves.
 */
#include "analyzer/image/internal.h"

#include <string.h>

enum { MAX_NESTED = 4 };

static bool is_call_site(Dwarf_Die *die, uint64_t return_vaddr)
{
	int tag = dwarf_tag(die);
	Dwarf_Attribute attr;
	Dwarf_Addr at;

	if (tag == DW_TAG_call_site)
		return dwarf_attr(die, DW_AT_call_return_pc, &attr) &&
		       dwarf_formaddr(&attr, &at) == 0 && at == return_vaddr;
	return tag == DW_TAG_GNU_call_site && dwarf_lowpc(die, &at) == 0 && at == return_vaddr;
}

/* After a tail call the frame above is not the one that called us. */
static bool calls(Dwarf_Die *site, const struct img_function *f)
{
	Dwarf_Die callee, own = f->die;
	Dwarf_Attribute attr;

	if ((!dwarf_attr(site, DW_AT_call_origin, &attr) &&
	     !dwarf_attr(site, DW_AT_abstract_origin, &attr)) ||
	    !dwarf_formref_die(&attr, &callee))
		return false;
	const char *a = img_linkage_name(&callee), *b = img_linkage_name(&own);

	if (!a || !b) {
		a = img_die_name(&callee);
		b = img_die_name(&own);
	}
	return a && b && !strcmp(a, b);
}

static bool find_site(const struct img_function *f, uint64_t vaddr, uint64_t return_vaddr,
		      Dwarf_Die *site)
{
	Dwarf_Die scope[IMG_MAX_DEPTH];
	size_t n = img_scopes_at(f, vaddr, scope, IMG_MAX_DEPTH);

	for (size_t i = 0; i < n; i++) {
		if (dwarf_child(&scope[i], site))
			continue;
		do {
			if (is_call_site(site, return_vaddr))
				return true;
		} while (dwarf_siblingof(site, site) == 0);
	}
	return false;
}

static bool passes(Dwarf_Die *die, unsigned reg)
{
	Dwarf_Attribute attr;
	Dwarf_Op *op;
	size_t n;

	return (dwarf_tag(die) == DW_TAG_call_site_parameter ||
		dwarf_tag(die) == DW_TAG_GNU_call_site_parameter) &&
	       dwarf_attr(die, DW_AT_location, &attr) &&
	       dwarf_getlocation(&attr, &op, &n) == 0 && n == 1 && op->atom == DW_OP_reg0 + reg;
}

static bool passed_value(struct img_eval *caller, Dwarf_Die *parameter, uint64_t *value)
{
	Dwarf_Attribute attr;
	Dwarf_Op *op;
	size_t n;

	if (!dwarf_attr(parameter, DW_AT_call_value, &attr) &&
	    !dwarf_attr(parameter, DW_AT_GNU_call_site_value, &attr))
		return false;
	attr.code = DW_AT_location; /* libdw 0.188 does not know that this one is an expression */
	if (dwarf_getlocation(&attr, &op, &n) || !n)
		return false;
	struct img_location at = img_eval(caller, op, n, &attr);

	if (at.where == IMG_IN_REGISTER)
		return img_location_read(caller, at, value, 8);
	*value = at.value;
	return at.where != IMG_LOST;
}

bool img_entry_value(struct img_eval *e, unsigned reg, uint64_t *value)
{
	struct img_regs regs;
	struct img_eval caller;
	Dwarf_Die site, parameter;
	bool signal;

	if (!e->regs || !e->function || e->nested >= MAX_NESTED || reg >= IMG_RIP)
		return false;
	if (e->vaddr == e->function->entry) {
		*value = e->regs->r[reg];
		return e->regs->known >> reg & 1;
	}
	regs = *e->regs;
	if (!img_unwind_step(e->m->set, &regs, e->mem, e->is_return, &signal) || signal ||
	    !img_eval_begin(e->m->set, &regs, e->mem, true, &caller) || !caller.function)
		return false;
	caller.nested = e->nested + 1;
	if (!find_site(caller.function, caller.vaddr, caller.vaddr + 1, &site) ||
	    !calls(&site, e->function) || dwarf_child(&site, &parameter))
		return false;
	do {
		if (passes(&parameter, reg))
			return passed_value(&caller, &parameter, value);
	} while (dwarf_siblingof(&parameter, &parameter) == 0);
	return false;
}
