/*
 * Where a variable is: DWARF location expressions, evaluated against the
 * registers and memory of one frame. What cannot be evaluated (pieces, typed
 * arithmetic, branches) is lost, never approximated.
 */
#include "analyzer/image/internal.h"

#include <string.h>

enum { STACK = 64 };

struct machine {
	struct img_eval *e;
	Dwarf_Attribute *attr; /* may be NULL: CFI expressions have none */
	uint64_t stack[STACK];
	int n;
	bool lost;
	int depth; /* of frame bases inside expressions */
};

static struct img_location eval(struct machine *v, const Dwarf_Op *ops, size_t n);

static void push(struct machine *v, uint64_t x)
{
	if (v->n == STACK)
		v->lost = true;
	else
		v->stack[v->n++] = x;
}

static uint64_t pop(struct machine *v)
{
	if (!v->n) {
		v->lost = true;
		return 0;
	}
	return v->stack[--v->n];
}

static void push_register(struct machine *v, uint64_t reg, uint64_t offset)
{
	const struct img_regs *r = v->e->regs;

	if (reg >= IMG_NREGS || !r || !(r->known >> reg & 1))
		v->lost = true;
	else
		push(v, r->r[reg] + offset);
}

bool img_memory_read(struct img_set *set, const struct img_memory *mem, uint64_t addr, void *buf,
		     size_t n)
{
	return (mem && mem->read && mem->read(mem->arg, addr, buf, n)) ||
	       img_read(set, addr, buf, n);
}

static void deref(struct machine *v, size_t n)
{
	uint64_t x = 0, at = pop(v);

	if (n < 1 || n > sizeof x || v->lost ||
	    !img_memory_read(v->e->m->set, v->e->mem, at, &x, n))
		v->lost = true;
	else
		push(v, x);
}

static void frame_base(struct machine *v, uint64_t offset)
{
	struct img_eval *e = v->e;
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	if (v->depth || !e->function ||
	    !dwarf_attr_integrate((Dwarf_Die *)&e->function->die, DW_AT_frame_base, &attr) ||
	    dwarf_getlocation_addr(&attr, e->vaddr, &ops, &n, 1) != 1) {
		v->lost = true;
		return;
	}
	struct machine inner = { .e = e, .attr = &attr, .depth = 1 };
	struct img_location at = eval(&inner, ops, n);

	if (at.where == IMG_IN_REGISTER)
		push_register(v, at.value, offset);
	else if (at.where == IMG_LOST)
		v->lost = true;
	else
		push(v, at.value + offset);
}

static void address_index(struct machine *v, const Dwarf_Op *op, uint64_t bias)
{
	Dwarf_Attribute a;
	Dwarf_Word x;

	if (v->attr && dwarf_getlocation_attr(v->attr, op, &a) == 0 &&
	    (dwarf_formaddr(&a, &x) == 0 || dwarf_formudata(&a, &x) == 0))
		push(v, x + bias);
	else
		v->lost = true;
}

static void entry_value(struct machine *v, const Dwarf_Op *op)
{
	Dwarf_Attribute inner;
	Dwarf_Op *ops;
	size_t n;
	uint64_t x;

	if (v->attr && dwarf_getlocation_attr(v->attr, op, &inner) == 0 &&
	    dwarf_getlocation(&inner, &ops, &n) == 0 && n == 1 && ops->atom >= DW_OP_reg0 &&
	    ops->atom <= DW_OP_reg15 && img_entry_value(v->e, ops->atom - DW_OP_reg0, &x))
		push(v, x);
	else
		v->lost = true;
}

static void binary(struct machine *v, uint8_t atom)
{
	uint64_t b = pop(v), a = pop(v);

	switch (atom) {
	case DW_OP_plus:
		push(v, a + b);
		return;
	case DW_OP_minus:
		push(v, a - b);
		return;
	case DW_OP_mul:
		push(v, a * b);
		return;
	case DW_OP_and:
		push(v, a & b);
		return;
	case DW_OP_or:
		push(v, a | b);
		return;
	case DW_OP_xor:
		push(v, a ^ b);
		return;
	case DW_OP_shl:
		push(v, b < 64 ? a << b : 0);
		return;
	case DW_OP_shr:
		push(v, b < 64 ? a >> b : 0);
		return;
	case DW_OP_shra:
		push(v, (uint64_t)((int64_t)a >> (b < 64 ? b : 63)));
		return;
	case DW_OP_eq:
		push(v, a == b);
		return;
	case DW_OP_ne:
		push(v, a != b);
		return;
	case DW_OP_lt:
		push(v, (int64_t)a < (int64_t)b);
		return;
	case DW_OP_le:
		push(v, (int64_t)a <= (int64_t)b);
		return;
	case DW_OP_gt:
		push(v, (int64_t)a > (int64_t)b);
		return;
	case DW_OP_ge:
		push(v, (int64_t)a >= (int64_t)b);
		return;
	default:
		v->lost = true;
	}
}

static void pick(struct machine *v, uint64_t from_top)
{
	if (from_top >= (uint64_t)v->n)
		v->lost = true;
	else
		push(v, v->stack[v->n - 1 - (int)from_top]);
}

static void swap(struct machine *v)
{
	uint64_t b = pop(v), a = pop(v);

	push(v, b);
	push(v, a);
}

/* Operations that push something from outside; false: op is none of them. */
static bool push_op(struct machine *v, const Dwarf_Op *op)
{
	uint8_t atom = op->atom;

	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
		push(v, atom - DW_OP_lit0);
		return true;
	}
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
		push_register(v, atom - DW_OP_breg0, op->number);
		return true;
	}
	if (atom >= DW_OP_const1u && atom <= DW_OP_consts) {
		push(v, op->number);
		return true;
	}
	switch (atom) {
	case DW_OP_addr:
		push(v, op->number + v->e->m->bias);
		return true;
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
		address_index(v, op, v->e->m->bias);
		return true;
	case DW_OP_constx:
	case DW_OP_GNU_const_index:
		address_index(v, op, 0);
		return true;
	case DW_OP_bregx:
		push_register(v, op->number, op->number2);
		return true;
	case DW_OP_fbreg:
		frame_base(v, op->number);
		return true;
	case DW_OP_call_frame_cfa:
		v->lost |= !v->e->cfa_known;
		push(v, v->e->cfa);
		return true;
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		entry_value(v, op);
		return true;
	default:
		return false;
	}
}

static void step(struct machine *v, const Dwarf_Op *op)
{
	if (push_op(v, op))
		return;
	switch (op->atom) {
	case DW_OP_plus_uconst:
		push(v, pop(v) + op->number);
		return;
	case DW_OP_deref:
		deref(v, 8);
		return;
	case DW_OP_deref_size:
		deref(v, op->number);
		return;
	case DW_OP_dup:
		pick(v, 0);
		return;
	case DW_OP_over:
		pick(v, 1);
		return;
	case DW_OP_pick:
		pick(v, op->number);
		return;
	case DW_OP_drop:
		pop(v);
		return;
	case DW_OP_swap:
		swap(v);
		return;
	case DW_OP_neg:
		push(v, -pop(v));
		return;
	case DW_OP_not:
		push(v, ~pop(v));
		return;
	case DW_OP_nop:
		return;
	default:
		binary(v, op->atom);
	}
}

static struct img_location eval(struct machine *v, const Dwarf_Op *ops, size_t n)
{
	struct img_location lost = { IMG_LOST, 0 };
	enum img_where where = IMG_IN_MEMORY;

	if (n == 1 && ops->atom >= DW_OP_reg0 && ops->atom <= DW_OP_reg31)
		return (struct img_location){ IMG_IN_REGISTER, ops->atom - DW_OP_reg0 };
	if (n == 1 && ops->atom == DW_OP_regx)
		return (struct img_location){ IMG_IN_REGISTER, ops->number };
	for (size_t i = 0; i < n && !v->lost; i++) {
		if (ops[i].atom == DW_OP_stack_value && i + 1 == n)
			where = IMG_IS_VALUE;
		else
			step(v, &ops[i]);
	}
	uint64_t top = pop(v);

	return v->lost ? lost : (struct img_location){ where, top };
}

struct img_location img_eval(struct img_eval *e, const Dwarf_Op *ops, size_t n,
			     Dwarf_Attribute *attr)
{
	struct machine v = { .e = e, .attr = attr };

	return eval(&v, ops, n);
}

struct img_location img_locate(struct img_eval *e, Dwarf_Die *variable)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	if (!dwarf_attr(variable, DW_AT_location, &attr) ||
	    dwarf_getlocation_addr(&attr, e->vaddr, &ops, &n, 1) != 1 || !n)
		return (struct img_location){ IMG_LOST, 0 };
	return img_eval(e, ops, n, &attr);
}

bool img_location_read(const struct img_eval *e, struct img_location loc, void *buf, size_t n)
{
	switch (loc.where) {
	case IMG_IN_MEMORY:
		return img_memory_read(e->m->set, e->mem, loc.value, buf, n);
	case IMG_IN_REGISTER:
		if (n > 8 || loc.value >= IMG_NREGS || !e->regs || !(e->regs->known >> loc.value & 1))
			return false;
		memcpy(buf, &e->regs->r[loc.value], n);
		return true;
	case IMG_IS_VALUE:
		if (n > 8)
			return false;
		memcpy(buf, &loc.value, n);
		return true;
	default:
		return false;
	}
}
