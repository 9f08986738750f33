/* Sites: which instructions are some, and the table they share with other runs. */
#include "preload/control/control.h"

#include "preload/translate/translate.h"

/* rsp-relative, and below rbp: locals, which other threads seldom see. */
static bool is_local(const struct insn *in, const uint8_t *code)
{
	int mod = in->modrm >> 6, rm = in->modrm & 7;
	bool negative = in->disp_len && code[in->disp_off + in->disp_len - 1] & 0x80;

	if (rm == 4 && (in->sib & 7) == 4 && !(in->rex & 1))
		return true;
	if (mod != 0 && rm == 5 && !(in->rex & 1))
		return negative;
	return mod != 0 && rm == 4 && (in->sib & 7) == 5 && !(in->rex & 1) && negative;
}

/* A stub of the procedure linkage table: [endbr64] [bnd] jmp *x(%rip). */
static bool is_plt(uint64_t target)
{
	const uint8_t *p = (const uint8_t *)target;

	if (!ctl_module_at(target))
		return false;
	if (p[0] == 0xf3 && p[1] == 0x0f && p[2] == 0x1e)
		p += 4;
	if (*p == 0xf2)
		p++;
	return p[0] == 0xff && p[1] == 0x25;
}

/* Calls that leave the module: through the linkage table, or -fno-plt's pointer. */
static bool is_outside_call(const struct insn *in)
{
	if (in->cls == INSN_CALL)
		return is_plt(in->target);
	return in->cls == INSN_CALL_IND && in->flags & INSN_RIPREL;
}

static bool in_list(uint8_t op, const uint8_t *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == op)
			return true;
	return false;
}

/*
 * Stores: mov to memory in its forms; everything else that is not a plain load
 * reads, and may write. Marking too much costs a delay, no more.
 */
static uint32_t access_flags(const struct insn *in)
{
	static const uint8_t stores[] = { 0x88, 0x89, 0xc6, 0xc7 };
	static const uint8_t loads[] = { 0x8a, 0x8b, 0x63, 0x84, 0x85, 0x38, 0x39, 0x3a, 0x3b };
	static const uint8_t loads_0f[] = { 0xb6, 0xb7, 0xbe, 0xbf, 0x10, 0x28, 0x6f, 0x6e, 0x7e };
	static const uint8_t stores_0f[] = { 0x11, 0x29, 0x7f, 0xd6 };

	if (in->map == 0) {
		bool compares = (in->op == 0x80 || in->op == 0x81 || in->op == 0x83) &&
				(in->modrm >> 3 & 7) == 7;
		bool tests = (in->op == 0xf6 || in->op == 0xf7) && (in->modrm >> 3 & 7) < 2;

		if (in_list(in->op, stores, sizeof stores))
			return CTL_SITE_WRITE;
		/* 02, 03, 0a ... 33: register op= memory */
		if (in_list(in->op, loads, sizeof loads) || (in->op & 0xc6) == 0x02 || compares || tests)
			return CTL_SITE_READ;
	}
	if (in->map == 1 && in_list(in->op, stores_0f, sizeof stores_0f))
		return CTL_SITE_WRITE;
	if (in->map == 1 && in_list(in->op, loads_0f, sizeof loads_0f))
		return CTL_SITE_READ;
	return CTL_SITE_READ | CTL_SITE_WRITE;
}

static uint64_t key_of(const struct ctl_site *s)
{
	return __atomic_load_n((const uint64_t *)s, __ATOMIC_ACQUIRE);
}

/* Other runs fill the same table at the same time: a slot is claimed by its key. */
static int find_or_add(const struct ctl_module *m, uint64_t pc, uint32_t flags)
{
	uint32_t offset = (uint32_t)(pc - m->bias);
	uint64_t key = m->hash | (uint64_t)offset << 32;
	uint32_t i = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 40);

	for (uint32_t tried = 0; tried < CTL_MAX_SITES / 2; tried++, i++) {
		struct ctl_site *s = ctl_site(i);
		uint64_t now = key_of(s);

		if (!now && __atomic_compare_exchange_n((uint64_t *)s, &now, key, false,
							__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			__atomic_fetch_add(&ctl.sites->nsites, 1, __ATOMIC_RELAXED);
			now = key;
		}
		if (now == key) {
			__atomic_fetch_or(&s->flags, flags | CTL_SITE_USED, __ATOMIC_RELAXED);
			return (int)(i & (CTL_MAX_SITES - 1));
		}
	}
	return -1;
}

int ctl_site_of(uint64_t pc, const struct insn *in)
{
	const struct ctl_module *m = ctl_module_at(pc);
	uint32_t flags;

	if (!m || !m->own)
		return -1;
	if (is_outside_call(in))
		flags = CTL_SITE_CALL;
	else if ((in->flags & INSN_MEM) && in->cls == INSN_NORMAL &&
		 !(in->flags & (INSN_LEA_LIKE | INSN_USES_FS | INSN_USES_GS)))
		flags = access_flags(in) | (is_local(in, (const uint8_t *)pc) ? CTL_SITE_LOCAL : 0);
	else
		return -1;
	int i = find_or_add(m, pc, flags);
	if (i >= 0) {
		ctl.place[i].pc = pc;
		ctl.place[i].insn = *in;
	}
	return i;
}

struct ctl_site *ctl_site(uint32_t index)
{
	return &ctl.sites->site[index & (CTL_MAX_SITES - 1)];
}

void ctl_site_mark(uint32_t index, uint32_t flags)
{
	struct ctl_site *s = ctl_site(index);

	if ((s->flags & flags) == flags)
		return;
	uint32_t before = __atomic_fetch_or(&s->flags, flags, __ATOMIC_RELAXED);
	if ((flags & CTL_SITE_SHARED) && !(before & CTL_SITE_SHARED))
		__atomic_fetch_add(&ctl.sites->nshared, 1, __ATOMIC_RELAXED);
}
