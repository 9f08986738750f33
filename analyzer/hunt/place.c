#include "analyzer/hunt/place.h"

#include "common/vec.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_FUNCTION (1u << 20) /* bytes: a symbol that claims more is not believed */
#define PAGE 4096ull

/* ---- the instructions of a function ---- */

struct step {
	uint64_t pc;
	unsigned len;
	bool counts; /* accesses memory (not lea, nop), or calls */
	bool call;
};

struct walk {
	struct img_set *set;
	ZydisDecoder decoder;
	const char *function;
	uint64_t pc;
};

static void walk_start(struct walk *w, struct img_set *set, uint64_t from)
{
	*w = (struct walk){ .set = set, .pc = from, .function = img_symbol(set, from, NULL) };
	ZydisDecoderInit(&w->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

/* Locals, which come and go with the optimisation level; sites are chosen the same way. */
static bool is_local(const ZydisDecodedOperand *op)
{
	return op->mem.base == ZYDIS_REGISTER_RSP ||
	       (op->mem.base == ZYDIS_REGISTER_RBP && op->mem.disp.has_displacement &&
		op->mem.disp.value < 0);
}

static bool touches_memory(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
	if (in->meta.category == ZYDIS_CATEGORY_NOP || in->meta.category == ZYDIS_CATEGORY_WIDENOP)
		return false;
	for (unsigned i = 0; i < in->operand_count; i++)
		if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY && op[i].mem.type == ZYDIS_MEMOP_TYPE_MEM &&
		    !is_local(&op[i]))
			return true;
	return false;
}

static bool same_text(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* The next instruction of the function; false at its end. */
static bool walk_next(struct walk *w, struct step *s)
{
	uint8_t code[15];
	size_t n = sizeof code;
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];

	if (!w->function || !same_text(img_symbol(w->set, w->pc, NULL), w->function))
		return false;
	while (n && !img_read(w->set, w->pc, code, n))
		n--;
	if (!n || ZYAN_FAILED(ZydisDecoderDecodeFull(&w->decoder, code, n, &in, op)))
		return false;
	bool call = in.meta.category == ZYDIS_CATEGORY_CALL;
	*s = (struct step){ w->pc, in.length, call || touches_memory(&in, op), call };
	w->pc += in.length;
	return true;
}

static bool function_start(struct img_set *set, uint64_t pc, uint64_t *start)
{
	uint64_t offset;

	if (!img_symbol(set, pc, &offset) || offset > MAX_FUNCTION)
		return false;
	*start = pc - offset;
	return true;
}

uint64_t place_call_before(struct img_set *set, uint64_t return_address)
{
	struct walk w;
	struct step s;
	uint64_t start;

	if (!function_start(set, return_address - 1, &start))
		return 0;
	walk_start(&w, set, start);
	while (walk_next(&w, &s) && s.pc + s.len <= return_address)
		if (s.call && s.pc + s.len == return_address)
			return s.pc;
	return 0;
}

/* ---- to the source ---- */

static char *trimmed(const char *text)
{
	if (!text)
		return NULL;
	text += strspn(text, " \t");
	size_t n = strlen(text);
	while (n && strchr(" \t\r", text[n - 1]))
		n--;
	return xasprintf("%.*s", (int)n, text);
}

static bool innermost(struct img_set *set, uint64_t pc, struct img_frame *f)
{
	return img_frames(set, pc, f, 1) == 1 && f->file && f->line;
}

bool place_of(struct img_set *set, uint64_t pc, struct place *out)
{
	struct img_frame at, f;
	struct walk w;
	struct step s = { 0 };
	uint64_t start;
	unsigned ordinal = 0;

	if (!function_start(set, pc, &start) || !innermost(set, pc, &at))
		return false;
	walk_start(&w, set, start);
	while (walk_next(&w, &s) && s.pc < pc)
		ordinal += s.counts && innermost(set, s.pc, &f) && f.line == at.line &&
			   same_text(f.file, at.file);
	if (s.pc != pc || !s.counts)
		return false;
	*out = (struct place){ xstrdup(w.function), xstrdup(at.file), at.line, ordinal,
			       trimmed(img_source_line(set, at.file, at.line)) };
	return true;
}

void place_free(struct place *p)
{
	free(p->function);
	free(p->file);
	free(p->text);
	*p = (struct place){ 0 };
}

/* ---- back from the source ---- */

/* The same file in another build: the directory may have changed. */
static bool same_file(const char *a, const char *b)
{
	const char *x = strrchr(a, '/'), *y = strrchr(b, '/');

	return !strcmp(x ? x + 1 : a, y ? y + 1 : b);
}

static unsigned distance(unsigned a, unsigned b)
{
	return a > b ? a - b : b - a;
}

/* Is this line of the new source what the place speaks of? */
static bool is_line(struct img_set *set, const struct place *p, const struct img_frame *f)
{
	if (!same_file(f->file, p->file))
		return false;
	char *text = p->text ? trimmed(img_source_line(set, f->file, f->line)) : NULL;
	bool same = text ? !strcmp(text, p->text) : f->line == p->line;
	free(text);
	return same;
}

/* The line number the place has in the new build, 0 when it is gone. */
static unsigned new_line(struct img_set *set, const struct place *p, uint64_t start)
{
	unsigned best = 0, last = 0;
	struct walk w;
	struct step s;

	for (walk_start(&w, set, start); walk_next(&w, &s);) {
		struct img_frame f;

		if (!s.counts || !innermost(set, s.pc, &f) || f.line == last)
			continue;
		last = f.line;
		if (is_line(set, p, &f) && (!best || distance(f.line, p->line) < distance(best, p->line)))
			best = f.line;
	}
	return best;
}

bool place_find(struct img_set *set, const struct place *p, uint64_t *pc)
{
	unsigned line, ordinal = 0;
	struct walk w;
	struct step s;
	uint64_t start;

	if (!img_address_of(set, p->function, &start) || !(line = new_line(set, p, start)))
		return false;
	for (walk_start(&w, set, start); walk_next(&w, &s);) {
		struct img_frame f;

		if (!s.counts || !innermost(set, s.pc, &f) || f.line != line ||
		    !same_file(f.file, p->file) || ordinal++ != p->ordinal)
			continue;
		*pc = s.pc;
		return true;
	}
	return false;
}

/* ---- a statement ---- */

#define MAX_INLINED 16

static bool is_of_line(struct img_set *set, uint64_t pc, const char *file, unsigned line)
{
	struct img_frame f[MAX_INLINED];
	size_t n = img_frames(set, pc, f, MAX_INLINED);

	for (size_t i = 0; i < n; i++)
		if (f[i].file && f[i].line == line && same_file(f[i].file, file))
			return true;
	return false;
}

bool place_statement(struct img_set *set, uint64_t *pc, const char *file, unsigned line, uint64_t *first, uint64_t *last)
{
	struct walk w;
	struct step s;
	uint64_t start, begin = 0;
	bool found = false;

	if (!function_start(set, *pc, &start))
		return false;
	for (walk_start(&w, set, start); walk_next(&w, &s);) {
		bool here = *pc >= s.pc && *pc < s.pc + s.len;

		if (!here && !is_of_line(set, s.pc, file, line)) {
			if (found)
				break;
			begin = 0;
			continue;
		}
		begin = begin ? begin : s.pc;
		if (here) {
			found = true;
			*pc = s.pc;
			*first = begin;
			*last = s.pc;
		} else if (found && s.counts) {
			*last = s.pc;
		}
	}
	return found;
}

/* ---- a file as an image ---- */

static void load_segments(Elf *elf, struct img_mapping *maps, size_t max, size_t *n)
{
	size_t count = 0;

	elf_getphdrnum(elf, &count);
	for (size_t i = 0; i < count && *n < max; i++) {
		GElf_Phdr h;

		if (!gelf_getphdr(elf, (int)i, &h) || h.p_type != PT_LOAD)
			continue;
		uint64_t skew = h.p_vaddr % PAGE;
		maps[(*n)++] = (struct img_mapping){
			h.p_vaddr - skew, (h.p_vaddr + h.p_memsz + PAGE - 1) & ~(PAGE - 1),
			h.p_offset - skew,
			(uint32_t)((h.p_flags & PF_R ? PROT_READ : 0) | (h.p_flags & PF_W ? PROT_WRITE : 0) |
				   (h.p_flags & PF_X ? PROT_EXEC : 0)),
		};
	}
}

err_t place_open(const char *file, struct img_set **out)
{
	struct img_mapping maps[16];
	size_t n = 0;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno("%s", file);
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF)
		load_segments(elf, maps, 16, &n);
	if (elf)
		elf_end(elf);
	close(fd);
	if (!n)
		return err_new(ERR_INPUT, "%s is not an ELF program", file);
	struct img_set *set = img_set_new();
	const struct img_module_desc desc = { .path = file, .maps = maps, .n_maps = n, .named = true };
	err_t e = img_add_module(set, &desc, NULL);
	if (e) {
		img_set_free(set);
		return e;
	}
	*out = set;
	return NULL;
}
