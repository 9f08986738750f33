/*
 * The type of a heap object.
 *
 * malloc returns void *; what the object is shows in what the caller does with
 * the result. From the return address on the machine code is followed for a
 * few instructions, holding on to the registers that carry the result, until
 * it reaches something DWARF has a type for: a variable that lives in such a
 * register, a stack slot or global it is stored into, a field of a structure
 * whose pointer is in a typed register, the `this` of a constructor, or the
 * function's own return type. When the function returns the result as void *
 * (xmalloc), its caller is asked; when the trail is lost, nobody is.
 */
#include "analyzer/image/internal.h"

#include <Zydis/Zydis.h>
#include <string.h>

enum { MAX_INSTRUCTIONS = 40, MAX_CALLERS = 6, MAX_SLOTS = 8 };

/* The base register of a stack slot gets this value; its real one is not needed. */
#define FAKE_BASE 0x100000000ull

struct trail {
	struct img_module *m;
	const struct img_function *f;
	uint64_t vaddr;                  /* of the instruction looked at */
	uint32_t holds;                  /* bit per enum img_reg: carries the result */
	bool typed[IMG_NREGS];           /* the register holds a pointer of known type */
	Dwarf_Die type[IMG_NREGS];
	struct { int base; int64_t disp; } slot[MAX_SLOTS]; /* on the stack, carry it too */
	size_t n_slots;
	Dwarf_Die found;                 /* what the result points to */
	bool done;
	bool stop;
	bool returned;                   /* the function hands the result to its caller */
};

static int reg_of(ZydisRegister r)
{
	ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	if (wide < ZYDIS_REGISTER_RAX || wide > ZYDIS_REGISTER_R15)
		return -1;
	return img_reg_of_x86[wide - ZYDIS_REGISTER_RAX];
}

/* type is that of the place the result went to; void * and the like tell nothing. */
static void arrive(struct trail *t, Dwarf_Die *type)
{
	Dwarf_Die bare, pointee;
	bool reference;
	uint64_t size;

	if (!img_type_strip(type, &bare) || !img_type_pointee(&bare, &pointee, &reference))
		return;
	img_type_complete(t->m, &pointee);
	if (img_type_size(&pointee, &size) && size) {
		t->found = pointee;
		t->done = true;
	}
}

/* ---- variables in registers and slots ----------------------------------- */

struct wanted {
	enum img_where where;
	uint64_t value;
	Dwarf_Die type;
};

static bool is_there(void *arg, struct img_eval *e, Dwarf_Die *die, Dwarf_Die *function)
{
	struct wanted *w = arg;
	struct img_location at = img_locate(e, die);

	(void)function;
	return at.where == w->where && at.value == w->value && img_die_type(die, &w->type);
}

static bool variable_in_register(struct trail *t, int reg, Dwarf_Die *type)
{
	struct img_eval e = { .m = t->m, .function = t->f, .vaddr = t->vaddr };
	struct wanted w = { .where = IMG_IN_REGISTER, .value = (uint64_t)reg };

	if (!img_each_local(&e, is_there, &w))
		return false;
	*type = w.type;
	return true;
}

static bool variable_in_slot(struct trail *t, int base, int64_t disp, Dwarf_Die *type)
{
	struct img_regs regs = { .known = 1u << base | 1u << IMG_RIP };
	struct img_eval e;
	struct wanted w = { .where = IMG_IN_MEMORY, .value = FAKE_BASE + (uint64_t)disp };

	regs.r[base] = FAKE_BASE;
	regs.r[IMG_RIP] = t->vaddr + t->m->bias;
	if (!img_eval_begin(t->m->set, &regs, NULL, false, &e) || !img_each_local(&e, is_there, &w))
		return false;
	*type = w.type;
	return true;
}

static bool global_at(struct trail *t, uint64_t vaddr, Dwarf_Die *type)
{
	img_variables_read(t->m);
	const struct img_variable *v = img_variable_at(t->m->variables.v, t->m->variables.n, vaddr);
	struct img_path path = { .m = t->m };
	Dwarf_Die die;

	if (!v)
		return false;
	die = v->die;
	if (!img_die_type(&die, type))
		return false;
	img_path_follow(&path, type, vaddr - v->lo, 8);
	if (path.type)
		*type = *img_type_die(path.type);
	return path.type != NULL;
}

/* The type of the field at disp of what a typed register points to. */
static bool field_of(struct trail *t, int base, int64_t disp, Dwarf_Die *type)
{
	Dwarf_Die bare, pointee;
	struct img_path path = { .m = t->m };
	bool reference;

	if (!t->typed[base] && !variable_in_register(t, base, &t->type[base]))
		return false;
	if (disp < 0 || !img_type_strip(&t->type[base], &bare) ||
	    !img_type_pointee(&bare, &pointee, &reference))
		return false;
	img_path_follow(&path, &pointee, (uint64_t)disp, 8);
	if (!path.type || path.type->kind != IMG_POINTER || !path.exact)
		return false;
	*type = *img_type_die(path.type);
	return true;
}

static bool memory_type(struct trail *t, const ZydisDecodedInstruction *in,
			const ZydisDecodedOperand *op, Dwarf_Die *type)
{
	int64_t disp = op->mem.disp.has_displacement ? op->mem.disp.value : 0;
	int base = reg_of(op->mem.base);

	if (op->mem.index != ZYDIS_REGISTER_NONE)
		return false;
	if (op->mem.base == ZYDIS_REGISTER_RIP)
		return global_at(t, t->vaddr + in->length + (uint64_t)disp, type);
	if (op->mem.base == ZYDIS_REGISTER_NONE)
		return global_at(t, (uint64_t)disp, type);
	if (base < 0)
		return false;
	if ((base == IMG_RBP || base == IMG_RSP) && variable_in_slot(t, base, disp, type))
		return true;
	return base != IMG_RSP && field_of(t, base, disp, type);
}

/* ---- following the code -------------------------------------------------- */

static void forget(struct trail *t, int reg)
{
	if (reg >= 0) {
		t->holds &= ~(1u << reg);
		t->typed[reg] = false;
	}
}

static bool slot_holds(const struct trail *t, const ZydisDecodedOperand *op)
{
	for (size_t i = 0; i < t->n_slots; i++)
		if (t->slot[i].base == reg_of(op->mem.base) &&
		    t->slot[i].disp == op->mem.disp.value &&
		    op->mem.index == ZYDIS_REGISTER_NONE)
			return true;
	return false;
}

static void store(struct trail *t, const ZydisDecodedInstruction *in,
		  const ZydisDecodedOperand *op)
{
	int base = reg_of(op->mem.base);
	Dwarf_Die type;

	if (memory_type(t, in, op, &type))
		arrive(t, &type);
	if ((base == IMG_RBP || base == IMG_RSP) && t->n_slots < MAX_SLOTS) {
		t->slot[t->n_slots].base = base;
		t->slot[t->n_slots++].disp = op->mem.disp.value;
	}
}

static void move(struct trail *t, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
	bool wide = op[0].size == 64;
	int to = op[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? reg_of(op[0].reg.value) : -1;
	int from = op[1].type == ZYDIS_OPERAND_TYPE_REGISTER ? reg_of(op[1].reg.value) : -1;
	Dwarf_Die type;

	if (to >= 0 && from >= 0 && wide) {
		bool holds = t->holds >> from & 1, typed = t->typed[from];

		forget(t, to);
		t->holds |= holds ? 1u << to : 0;
		t->typed[to] = typed;
		t->type[to] = t->type[from];
	} else if (to >= 0 && op[1].type == ZYDIS_OPERAND_TYPE_MEMORY && wide) {
		bool typed = memory_type(t, in, &op[1], &type), holds = slot_holds(t, &op[1]);

		forget(t, to);
		t->holds |= holds ? 1u << to : 0;
		t->typed[to] = typed;
		if (typed)
			t->type[to] = type;
	} else if (to >= 0) {
		forget(t, to);
	} else if (from >= 0 && wide && (t->holds >> from & 1) &&
		   op[0].type == ZYDIS_OPERAND_TYPE_MEMORY) {
		store(t, in, &op[0]);
	}
}

/* Handing the result to a member function as `this`: a constructor after new. */
static void call(struct trail *t, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
	static const uint8_t clobbered[] = { IMG_RAX, IMG_RCX, IMG_RDX, IMG_RSI, IMG_RDI,
					     IMG_R8,  IMG_R9,  IMG_R10, IMG_R11 };
	ZyanU64 target;
	const struct img_function *callee = NULL;
	Dwarf_Die die, type;

	if ((t->holds >> IMG_RDI & 1) && op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	    ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(in, &op[0], t->vaddr, &target)))
		callee = img_function_at(t->m, target, NULL);
	if (callee && dwarf_child((Dwarf_Die *)&callee->die, &die) == 0 &&
	    dwarf_tag(&die) == DW_TAG_formal_parameter && img_die_name(&die) &&
	    !strcmp(img_die_name(&die), "this") && img_die_type(&die, &type))
		arrive(t, &type);
	for (size_t i = 0; i < sizeof clobbered; i++)
		forget(t, clobbered[i]);
}

/* The way of success: over `je failed`, along `jne good`. */
static uint64_t next_of(struct trail *t, const ZydisDecodedInstruction *in,
			const ZydisDecodedOperand *op)
{
	bool taken = in->mnemonic == ZYDIS_MNEMONIC_JMP || in->mnemonic == ZYDIS_MNEMONIC_JNZ;
	ZyanU64 target;

	if (in->meta.category == ZYDIS_CATEGORY_RET) {
		Dwarf_Die function = t->f->die, type;

		t->stop = true;
		t->returned = t->holds >> IMG_RAX & 1;
		if (t->returned && img_die_type(&function, &type))
			arrive(t, &type);
	} else if (taken) {
		if (op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		    ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(in, &op[0], t->vaddr, &target)))
			return target;
		t->stop = true;
	}
	return t->vaddr + in->length;
}

static void effects(struct trail *t, const ZydisDecodedInstruction *in,
		    const ZydisDecodedOperand *op)
{
	if (in->mnemonic == ZYDIS_MNEMONIC_MOV) {
		move(t, in, op);
	} else if (in->meta.category == ZYDIS_CATEGORY_CALL) {
		call(t, in, op);
	} else {
		for (int i = 0; i < in->operand_count; i++)
			if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			    (op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
				forget(t, reg_of(op[i].reg.value));
	}
}

static bool fetch(struct img_module *m, uint64_t vaddr, uint8_t *code, size_t *n)
{
	for (*n = 15; *n; --*n)
		if (img_read(m->set, vaddr + m->bias, code, *n))
			return true;
	return false;
}

static void follow(struct trail *t)
{
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	ZydisDecoder decoder;
	Dwarf_Die type;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (int i = 0; i < MAX_INSTRUCTIONS && !t->done && !t->stop &&
	     (t->holds || t->n_slots); i++) {
		uint8_t code[15];
		size_t n;

		for (int reg = 0; reg < IMG_RIP && !t->done; reg++)
			if ((t->holds >> reg & 1) && variable_in_register(t, reg, &type))
				arrive(t, &type);
		if (t->done || img_function_at(t->m, t->vaddr, NULL) == NULL ||
		    !fetch(t->m, t->vaddr, code, &n) ||
		    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, n, &in, op)))
			return;
		effects(t, &in, op);
		t->vaddr = next_of(t, &in, op);
	}
}

/* ---- which frame --------------------------------------------------------- */

/* What one call tells; ask_caller is the address of a mark, not a type. */
static const struct img_type ask_caller;

static const struct img_type *type_at(struct img_module *m, uint64_t call)
{
	uint64_t *known = img_table_find(&m->heap_types, call);
	const struct img_type *type = NULL;
	struct trail *t;

	if (known)
		return (const struct img_type *)(uintptr_t)*known;
	t = xcalloc(1, sizeof *t);
	t->m = m;
	t->vaddr = call + 1; /* call lies in the last byte of the instruction */
	t->f = img_function_at(m, call, NULL);
	t->holds = 1u << IMG_RAX;
	if (t->f)
		follow(t);
	if (t->done)
		type = img_type_of(m, &t->found);
	else if (t->returned)
		type = &ask_caller;
	free(t);
	img_table_put(&m->heap_types, call, (uintptr_t)type);
	return type;
}

const struct img_type *img_heap_type(struct img_set *set, const uint64_t *alloc_pcs, size_t n)
{
	int asked = 0;

	for (size_t i = 0; i < n && asked < MAX_CALLERS; i++) {
		struct img_module *m = img_module_at(set, alloc_pcs[i]);

		if (!m || img_is_runtime(m))
			continue;
		const struct img_type *type = NULL;

		if (img_module_dwarf(m))
			type = type_at(m, alloc_pcs[i] - m->bias);
		if (type != &ask_caller)
			return type;
		asked++;
	}
	return NULL;
}
