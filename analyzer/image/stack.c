/* Variables of the frames on a stack. */
#include "analyzer/image/internal.h"

#include <string.h>

enum { MAX_FRAMES = 256 };

/* A thread's stack is not larger, and code may use 128 bytes below rsp. */
#define MAX_STACK (1ull << 30)
#define RED_ZONE 128

bool img_eval_begin(struct img_set *set, const struct img_regs *regs, const struct img_memory *mem,
		    bool is_return, struct img_eval *e)
{
	uint64_t pc = regs->r[IMG_RIP] - is_return;
	struct img_module *m = regs->known >> IMG_RIP & 1 ? img_module_at(set, pc) : NULL;

	*e = (struct img_eval){ .m = m, .regs = regs, .mem = mem, .is_return = is_return };
	if (!m)
		return false;
	img_module_dwarf(m);
	e->vaddr = pc - m->bias;
	e->function = img_function_at(m, e->vaddr, NULL);
	e->cfa_known = img_cfa(set, regs, mem, is_return, &e->cfa);
	return true;
}

static bool is_local(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_variable || tag == DW_TAG_formal_parameter;
}

bool img_each_local(struct img_eval *e, img_local_fn *fn, void *arg)
{
	Dwarf_Die scope[IMG_MAX_DEPTH], die;
	size_t n = e->function ?
			   img_scopes_at(e->function, e->vaddr, scope, IMG_MAX_DEPTH) : 0;
	size_t owner = 0; /* the function, maybe inlined, that scope i belongs to */

	for (size_t i = 0; i < n; i++) {
		if (owner < i)
			owner = i;
		while (owner + 1 < n && dwarf_tag(&scope[owner]) != DW_TAG_inlined_subroutine)
			owner++;
		if (dwarf_child(&scope[i], &die))
			continue;
		do {
			if (is_local(&die) && fn(arg, e, &die, &scope[owner]))
				return true;
		} while (dwarf_siblingof(&die, &die) == 0);
	}
	return false;
}

struct look {
	uint64_t addr;
	size_t size;
	struct img_name *out;
};

static bool holds(void *arg, struct img_eval *e, Dwarf_Die *die, Dwarf_Die *function)
{
	struct look *l = arg;
	struct img_location at = img_locate(e, die);
	const char *name = img_die_name(die);
	Dwarf_Die type;
	uint64_t size;

	if (at.where != IMG_IN_MEMORY || !name || !img_die_type(die, &type) ||
	    !img_type_size(&type, &size) || l->addr - at.value >= size)
		return false;
	img_name_variable(e->m, die, &type, name, at.value, l->addr, l->size, l->out);
	l->out->place = IMG_STACK;
	l->out->function = img_function_name(e->m, function);
	return true;
}

bool img_name_on_stack(struct img_set *set, uint64_t addr, size_t size,
		       const struct img_regs *regs, const struct img_memory *mem,
		       struct img_name *out)
{
	struct img_regs r = *regs;
	struct look l = { addr, size, out };
	bool is_return = false, signal;

	if (!(r.known >> IMG_RSP & 1) || addr - (r.r[IMG_RSP] - RED_ZONE) > MAX_STACK)
		return false;
	for (int i = 0; i < MAX_FRAMES; i++) {
		struct img_eval e;
		uint64_t sp = r.r[IMG_RSP];

		img_eval_begin(set, &r, mem, is_return, &e);
		/* Arguments passed in memory lie just above the frame. */
		if (e.cfa_known && addr < e.cfa + 256 && img_each_local(&e, holds, &l))
			return true;
		if ((e.cfa_known && addr < e.cfa) ||
		    !img_unwind_step(set, &r, mem, is_return, &signal) ||
		    (!signal && r.r[IMG_RSP] <= sp))
			return false;
		is_return = !signal;
	}
	return false;
}
