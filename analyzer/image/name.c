/* Address -> name: asks those who may know, the surest first. */
#include "analyzer/image/internal.h"
#include "common/runtime_names.h"

#include <string.h>

/* dwarf_decl_file refuses file 0, which is the usual one in DWARF 5. */
const char *img_declared_in(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Word index;
	Dwarf_Die unit;

	if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attr) || dwarf_formudata(&attr, &index) ||
	    !dwarf_diecu(die, &unit, NULL, NULL))
		return NULL;
	return img_file_name(&unit, index);
}

void img_name_variable(struct img_module *m, Dwarf_Die *die, Dwarf_Die *type, const char *name,
		       uint64_t base, uint64_t addr, size_t size, struct img_name *out)
{
	struct strbuf text = { 0 };
	struct img_path path = { .m = m, .text = &text };
	int line;

	strbuf_str(&text, name);
	img_path_follow(&path, type, addr - base, size);
	*out = (struct img_name){ .text = strbuf_take(&text), .type = path.type,
				  .start = base + path.start, .file = img_declared_in(die) };
	if (dwarf_decl_line(die, &line) == 0 && line > 0)
		out->line = (unsigned)line;
}

/* C++ variables are spoken of with their class or namespace. */
static const char *variable_name(struct img_module *m, Dwarf_Die *die)
{
	const char *linkage = img_linkage_name(die);
	const char *text = linkage ? img_demangle(m->set, linkage) : NULL;
	const char *plain = img_die_name(die);

	/* A static inside a function would drag the whole signature along. */
	return text && text != linkage && !strchr(text, '(') ? text : plain;
}

static bool name_in(struct img_module *m, const struct img_variable *vars, size_t n,
		    uint64_t base, uint64_t addr, size_t size, struct img_name *out)
{
	const struct img_variable *v = img_variable_at(vars, n, addr - base);
	Dwarf_Die die, type;
	const char *name;

	if (!v)
		return false;
	die = v->die;
	name = variable_name(m, &die);
	if (!name || !img_die_type(&die, &type))
		return false;
	img_name_variable(m, &die, &type, name, base + v->lo, addr, size, out);
	out->function = v->function;
	return true;
}

static bool name_global(struct img_set *set, uint64_t addr, size_t size, struct img_name *out)
{
	struct img_module *m = img_module_at(set, addr);

	if (!m)
		return false;
	img_variables_read(m);
	if (!name_in(m, m->variables.v, m->variables.n, m->bias, addr, size, out))
		return false;
	out->place = IMG_GLOBAL;
	return true;
}

/*
 * Thread-locals of the program itself lie directly below the thread pointer.
 * Those of libraries lie where only the dynamic linker knows.
 */
static bool name_tls(struct img_set *set, uint64_t addr, size_t size, uint64_t fs_base,
		     struct img_name *out)
{
	struct img_module *m = set->modules.n ? set->modules.v[0] : NULL;
	uint64_t memsz, align;

	if (!fs_base || !m || !m->code.elf || !img_elf_tls(m->code.elf, &memsz, &align))
		return false;
	uint64_t start = fs_base - ((memsz + align - 1) & ~(align - 1));

	if (addr - start >= memsz)
		return false;
	img_variables_read(m);
	if (!name_in(m, m->tls.v, m->tls.n, start, addr, size, out))
		return false;
	out->place = IMG_THREAD_LOCAL;
	return true;
}

/* The libraries through which a program asks for memory are not who wanted it. */
static bool is_middleman(const struct img_module *m)
{
	static const char *const names[] = { "libc.so", "libstdc++.so", "libc++.so", "libc++abi.so",
					     "libcsched.so" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strncmp(img_module_name(m), names[i], strlen(names[i])))
			return true;
	return false;
}

/* "@list.c:12": where the program asked for the object; false when lines are unknown. */
static bool say_allocated(struct img_set *set, const struct img_heap *h, struct strbuf *text)
{
	struct img_frame f[16]; /* templates are inlined into each other */

	for (size_t i = 0; i < h->n_alloc_pcs; i++) {
		size_t n = img_frames(set, h->alloc_pcs[i], f, sizeof f / sizeof *f);

		for (size_t k = 0; k < n; k++) {
			if (!f[k].file || !f[k].line || runtime_header(f[k].file))
				continue;
			const char *slash = strrchr(f[k].file, '/');

			strbuf_fmt(text, "@%s:%u", slash ? slash + 1 : f[k].file, f[k].line);
			return true;
		}
	}
	return false;
}

/* "@make+0x1c", behind the offset in the object. */
static void say_function(struct img_set *set, const struct img_heap *h, struct strbuf *text)
{
	for (size_t i = 0; i < h->n_alloc_pcs; i++) {
		const struct img_module *m = img_module_at(set, h->alloc_pcs[i]);

		if (!m || is_middleman(m))
			continue;
		struct img_frame f;
		uint64_t offset;

		/* Rust's allocator is compiled into the program. */
		if (img_frames(set, h->alloc_pcs[i], &f, 1) && f.file && runtime_header(f.file))
			continue;
		char *place = img_symbol_text(set, h->alloc_pcs[i]);

		/* Templates have long names; a frame's is folded. */
		if (img_frames(set, h->alloc_pcs[i], &f, 1) && f.function &&
		    img_symbol(set, h->alloc_pcs[i], &offset))
			strbuf_fmt(text, "@%s+0x%llx", f.function, (unsigned long long)offset);
		else
			strbuf_fmt(text, "@%s", place);
		free(place);
		return;
	}
}

static void name_heap(struct img_set *set, uint64_t addr, size_t size, const struct img_heap *h,
		      struct img_name *out)
{
	const struct img_type *t = img_heap_type(set, h->alloc_pcs, h->n_alloc_pcs);
	uint64_t off = addr - h->base;
	struct strbuf text = { 0 };

	*out = (struct img_name){ .place = IMG_HEAP, .start = addr };
	strbuf_fmt(&text, "heap#%u", h->id);
	bool line = say_allocated(set, h, &text);

	if (!t || !t->size || t->size > h->size) {
		if (off)
			strbuf_fmt(&text, "+0x%llx", (unsigned long long)off);
		if (!line)
			say_function(set, h, &text);
	} else {
		struct img_path path = { .m = img_type_module(t), .text = &text };
		bool many = h->size >= 2 * t->size;
		uint64_t index = many ? off / t->size : 0;
		size_t arrow = text.n;

		if (many)
			strbuf_fmt(&text, "[%llu]", (unsigned long long)index);
		img_path_follow(&path, img_type_die(t), off - index * t->size, size);
		if (!many && text.s[arrow] == '.') {
			char *rest = xstrdup(text.s + arrow + 1);

			text.n = arrow;
			strbuf_fmt(&text, "->%s", rest);
			free(rest);
		}
		out->type = path.type;
		out->start = h->base + index * t->size + path.start;
	}
	out->text = strbuf_take(&text);
}

static void name_symbol(struct img_set *set, uint64_t addr, struct img_name *out)
{
	struct img_module *m = img_module_at(set, addr);

	*out = (struct img_name){ .text = img_symbol_text(set, addr), .start = addr,
				  .place = m ? IMG_GLOBAL : IMG_NOWHERE };
}

bool img_name_fixed(struct img_set *set, uint64_t addr, size_t size, const struct img_context *c,
		    struct img_name *out)
{
	struct img_regs owner;

	if (name_global(set, addr, size, out))
		return true;
	if (c->regs && name_tls(set, addr, size, c->regs->fs_base, out))
		return true;
	if (c->heap && addr - c->heap->base < c->heap->size)
		return false;
	if (c->regs && img_name_on_stack(set, addr, size, c->regs, c->mem, out))
		return true;
	if (!c->owner || !c->owner(c->owner_arg, addr, &owner))
		return false;
	return name_tls(set, addr, size, owner.fs_base, out) ||
	       img_name_on_stack(set, addr, size, &owner, c->mem, out);
}

void img_name_of(struct img_set *set, uint64_t addr, size_t size, const struct img_context *ctx,
		 struct img_name *out)
{
	static const struct img_context nothing;
	const struct img_context *c = ctx ? ctx : &nothing;

	if (!size)
		size = 1;
	if (img_name_fixed(set, addr, size, c, out))
		return;
	if (c->regs && img_name_by_pointer(set, addr, size, c, out))
		return;
	if (c->heap && addr - c->heap->base < c->heap->size) {
		name_heap(set, addr, size, c->heap, out);
		return;
	}
	name_symbol(set, addr, out);
}
