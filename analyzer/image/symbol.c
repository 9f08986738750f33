/*
 * Symbols: .symtab of the file or of its debug file, .dynsym, and the entries
 * of the PLT, which carry no symbol of their own but are what a stripped
 * program calls through.
 */
#include "analyzer/image/internal.h"

#include <string.h>

static uint8_t rank_of(const GElf_Sym *sym)
{
	unsigned bind = GELF_ST_BIND(sym->st_info), type = GELF_ST_TYPE(sym->st_info);

	return (uint8_t)((sym->st_size ? 4 : 0) + (type != STT_NOTYPE ? 2 : 0) +
			 (bind == STB_GLOBAL || bind == STB_WEAK));
}

static bool wanted(const GElf_Sym *sym)
{
	switch (GELF_ST_TYPE(sym->st_info)) {
	case STT_FUNC:
	case STT_OBJECT:
	case STT_NOTYPE:
	case STT_GNU_IFUNC:
	case STT_COMMON:
		return sym->st_shndx != SHN_UNDEF && sym->st_shndx != SHN_ABS && sym->st_value;
	default:
		return false;
	}
}

/* ld writes "stdout@GLIBC_2.2.5" into .symtab; the version is no part of the name. */
static const char *without_version(struct img_module *m, const char *name)
{
	const char *at = strchr(name, '@');

	if (!at || at == name)
		return name;
	vec_push(&m->own_names, xasprintf("%.*s", (int)(at - name), name));
	return m->own_names.v[m->own_names.n - 1];
}

static void add_section(struct img_module *m, Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
		const char *name = wanted(&sym) ? elf_strptr(elf, sh->sh_link, sym.st_name) : NULL;
		unsigned type = GELF_ST_TYPE(sym.st_info);

		if (name && *name)
			vec_push(&m->symbols, (struct img_symbol){
				.vaddr = sym.st_value, .size = sym.st_size,
				.name = without_version(m, name),
				.code = type == STT_FUNC || type == STT_GNU_IFUNC,
				.rank = rank_of(&sym) });
	}
}

static void add_symbols(struct img_module *m, Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &sh) &&
		    (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM))
			add_section(m, elf, scn, &sh);
}

/* ---- the PLT ----------------------------------------------------------- */

/* GOT slot's vaddr -> name of the function the dynamic linker puts there. */
static void add_relocations(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, struct img_table *slots)
{
	Elf_Data *data = elf_getdata(scn, NULL), *symdata;
	Elf_Scn *symscn = elf_getscn(elf, sh->sh_link);
	GElf_Shdr symsh;
	GElf_Rela rela;
	GElf_Sym sym;

	if (!data || !symscn || !gelf_getshdr(symscn, &symsh) ||
	    !(symdata = elf_getdata(symscn, NULL)))
		return;
	for (int i = 0; gelf_getrela(data, i, &rela); i++) {
		unsigned type = (unsigned)GELF_R_TYPE(rela.r_info);

		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
			continue;
		if (!gelf_getsym(symdata, (int)GELF_R_SYM(rela.r_info), &sym))
			continue;
		const char *name = elf_strptr(elf, symsh.sh_link, sym.st_name);

		if (name && *name)
			img_table_put(slots, rela.r_offset, (uintptr_t)name);
	}
}

static int32_t read_i32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

/*
 * Every flavour of entry holds one `jmp *slot(%rip)` (ff 25 disp32), after an
 * optional endbr64 or bnd prefix; entries are 8 or 16 bytes and aligned so.
 */
static void add_plt(struct img_module *m, Elf_Scn *scn, const GElf_Shdr *sh,
		    const struct img_table *slots)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	const uint8_t *p = data ? data->d_buf : NULL;
	size_t n = data ? data->d_size : 0;

	for (size_t i = 0; p && i + 6 <= n; i++) {
		if (p[i] != 0xff || p[i + 1] != 0x25)
			continue;
		uint64_t next = sh->sh_addr + i + 6;
		uint64_t *name = img_table_find(slots, next + (uint64_t)(int64_t)read_i32(p + i + 2));
		size_t start = i & ~(size_t)7;

		if (!name)
			continue;
		/* endbr64 and a bnd jmp together are longer than eight bytes. */
		if (i >= 5 && start >= 8 && i % 8 < 5 && i % 16 >= 8)
			start -= memcmp(p + start - 8, "\xf3\x0f\x1e\xfa", 4) == 0 ? 8 : 0;
		char *text = xasprintf("%s@plt", (const char *)(uintptr_t)*name);

		vec_push(&m->own_names, text);
		vec_push(&m->symbols, (struct img_symbol){
			.vaddr = sh->sh_addr + start, .size = i + 6 - start, .name = text,
			.code = true, .rank = 8 });
		i += 5;
	}
}

static void add_plts(struct img_module *m, Elf *elf)
{
	struct img_table slots = { 0 };
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return;
	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_RELA)
			add_relocations(elf, scn, &sh, &slots);
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name = gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;

		if (name && !strncmp(name, ".plt", 4) && sh.sh_type == SHT_PROGBITS)
			add_plt(m, scn, &sh, &slots);
	}
	img_table_free(&slots);
}

/* ---- look-up ----------------------------------------------------------- */

static int by_vaddr(const void *a, const void *b)
{
	const struct img_symbol *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	/* Of aliases the one without leading underscores is what people write. */
	size_t ux = strspn(x->name, "_"), uy = strspn(y->name, "_");

	return ux != uy ? (ux < uy ? -1 : 1) : strcmp(x->name, y->name);
}

static void drop_duplicates(struct img_module *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->symbols.n; i++) {
		struct img_symbol *s = &m->symbols.v[i];

		if (n && s->vaddr == m->symbols.v[n - 1].vaddr &&
		    !strcmp(s->name, m->symbols.v[n - 1].name))
			continue;
		m->symbols.v[n++] = *s;
	}
	m->symbols.n = n;
}

static void read_symbols(struct img_module *m)
{
	if (m->symbols_read)
		return;
	m->symbols_read = true;
	if (m->code.elf) {
		add_symbols(m, m->code.elf);
		add_plts(m, m->code.elf);
	}
	/* A stripped file: its debug file kept the full table. */
	img_module_dwarf(m);
	if (m->debug.elf)
		add_symbols(m, m->debug.elf);
	if (m->symbols.n)
		qsort(m->symbols.v, m->symbols.n, sizeof *m->symbols.v, by_vaddr);
	drop_duplicates(m);
}

/* Index of the first symbol above vaddr. */
static size_t first_above(const struct img_module *m, uint64_t vaddr)
{
	size_t lo = 0, hi = m->symbols.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->symbols.v[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool in_one_segment(const struct img_module *m, uint64_t a, uint64_t b)
{
	for (size_t i = 0; i < m->segments.n; i++) {
		const struct img_segment *g = &m->segments.v[i];

		if (a >= g->vaddr && a - g->vaddr < g->memsz)
			return b - g->vaddr < g->memsz;
	}
	return false;
}

const struct img_symbol *img_symbol_at(struct img_module *m, uint64_t vaddr)
{
	read_symbols(m);
	size_t i = first_above(m, vaddr);
	const struct img_symbol *best = NULL;
	uint64_t nearest = i ? m->symbols.v[i - 1].vaddr : 0;

	/* A few steps back, because a small symbol may lie inside a large one. */
	for (int steps = 0; i-- > 0 && steps < 16; steps++) {
		const struct img_symbol *s = &m->symbols.v[i];

		if (best && s->vaddr != best->vaddr)
			break;
		/* Sizeless symbols (assembler) reach to the next one, within the segment. */
		if (s->size ? vaddr - s->vaddr < s->size :
			      s->vaddr == nearest && in_one_segment(m, s->vaddr, vaddr))
			best = s;
	}
	return best;
}

const char *img_symbol(struct img_set *set, uint64_t addr, uint64_t *offset)
{
	struct img_module *m = img_module_at(set, addr);
	const struct img_symbol *s = m ? img_symbol_at(m, addr - m->bias) : NULL;

	if (!s)
		return NULL;
	if (offset)
		*offset = addr - m->bias - s->vaddr;
	return img_demangle(set, s->name);
}

char *img_symbol_text(struct img_set *set, uint64_t addr)
{
	struct img_module *m = img_module_at(set, addr);
	uint64_t offset = 0;
	const char *name = img_symbol(set, addr, &offset);

	if (name)
		return offset ? xasprintf("%s+0x%llx", name, (unsigned long long)offset) :
				xstrdup(name);
	if (m)
		return xasprintf("%s+0x%llx", m->name, (unsigned long long)(addr - m->bias));
	return xasprintf("0x%llx", (unsigned long long)addr);
}

static bool find_in(struct img_module *m, const char *name, bool demangle, uint64_t *addr)
{
	read_symbols(m);
	for (size_t i = 0; i < m->symbols.n; i++) {
		const struct img_symbol *s = &m->symbols.v[i];

		if (!strcmp(demangle ? img_demangle(m->set, s->name) : s->name, name)) {
			*addr = s->vaddr + m->bias;
			return true;
		}
	}
	return false;
}

bool img_address_of(struct img_set *set, const char *name, uint64_t *addr)
{
	for (int demangle = 0; demangle < 2; demangle++)
		for (size_t i = 0; i < set->modules.n; i++)
			if (find_in(set->modules.v[i], name, demangle, addr))
				return true;
	return false;
}
