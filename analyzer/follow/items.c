/*
 * What instructions leave on the path beside their branches: tickets, which order
 * locked instructions and shared plain accesses, and the values logged loads
 * saw. Following, the machine stops in front of each such instruction (an
 * instruction may have both: the ticket comes first).
 *
 * A logged load that finds another value in memory is a mismatch right there,
 * where the racing write is close, instead of at some branch much later. When no
 * order makes memory right the load is *forced*: for this one instruction
 * memory holds what it saw. That happens: a store that was still in another
 * processor's store buffer is seen late, and no order of the accesses explains it.
 * A forced load belongs to (thread, instruction number), so executing the run
 * again forces it again.
 */
#include "analyzer/engine/code.h"
#include "analyzer/follow/follow.h"

#include <string.h>

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void run_items_load(struct mach_run *r)
{
	size_t n = 0;

	for (uint32_t id = 1; id <= path_frag_count(r->frags); id++) {
		const struct path_frag *f = path_frag_by_id(r->frags, id);
		const struct trc_item *items = f ? trc_fragment_items(f->rec) : NULL;

		for (uint32_t i = 0; f && i < f->rec->nitems; i++)
			vec_push(&r->item_pcs, items[i].pc);
	}
	if (r->o.until_pc)
		vec_push(&r->item_pcs, r->o.until_pc);
	if (!r->item_pcs.n)
		return;
	qsort(r->item_pcs.v, r->item_pcs.n, sizeof *r->item_pcs.v, by_value);
	for (size_t i = 0; i < r->item_pcs.n; i++)
		if (!n || r->item_pcs.v[n - 1] != r->item_pcs.v[i])
			r->item_pcs.v[n++] = r->item_pcs.v[i];
	r->item_pcs.n = n;
	mach_set_items(r->m, r->item_pcs.v, n);
}

bool run_items_on(const struct mach_run *r)
{
	return r->item_pcs.n && !r->free && !r->hooks;
}

bool run_insn_at(struct mach_run *r, uint64_t pc, struct insn *in)
{
	uint8_t bytes[16];
	size_t n = mem_fetch(r->m->mem, pc, bytes, 15);

	return insn_decode(bytes, n, pc, in);
}

/* A memory operand, with the registers as they are now. */
struct operand_here {
	uint64_t address, flat; /* flat: without the segment's base */
	uint32_t size;
	bool update;            /* is read and written */
};

/* That of the instruction at rip; false: it has none. */
static bool operand_here(struct mach_run *r, struct operand_here *out)
{
	const int both = ZYDIS_OPERAND_ACTION_READ | ZYDIS_OPERAND_ACTION_WRITE;
	struct operand_address a;
	struct insn in;

	if (!run_insn_at(r, r->m->frame->g.guest_RIP, &in))
		return false;
	for (int k = 0; k < in.i.operand_count; k++)
		if (in.op[k].type == ZYDIS_OPERAND_TYPE_MEMORY && operand_address(&in, &in.op[k], &a)) {
			out->address = operand_compute(r->m, &a);
			a.segment = 0;
			out->flat = operand_compute(r->m, &a);
			out->size = in.op[k].size / 8;
			out->update = (in.op[k].actions & both) == both;
			return true;
		}
	return false;
}

bool run_is_memory_branch(struct mach_run *r, uint64_t pc)
{
	struct insn in;

	return run_insn_at(r, pc, &in) && !in.ret && in.i.operand_count > 0 &&
	       in.op[0].type == ZYDIS_OPERAND_TYPE_MEMORY;
}

/* ---- tickets ---- */

bool run_has_ticket(struct mach_run *r, struct run_thread *t)
{
	const struct path_item *it = run_find_item(r, t, r->m->frame->g.guest_RIP, TRC_ITEM_ORDER);
	struct operand_here o;

	if (!it || !operand_here(r, &o))
		return false;
	t->s.ticket = it->ticket;
	t->s.shard = trc_shard(o.flat); /* the recorder's lea does not add the segment's base */
	return true;
}

/* ---- values ---- */

bool run_value_agrees(struct mach_run *r, struct run_thread *t)
{
	const struct path_item *it = run_find_item(r, t, r->m->frame->g.guest_RIP, TRC_ITEM_VALUE);
	struct wanted_load *w = &r->wanted;
	struct operand_here o;
	uint8_t now[PATH_MAX_VALUE];

	if (!it)
		return true;
	t->s.item++;
	if (!it->length || !operand_here(r, &o) ||
	    !mem_peek(r->m->mem, o.address, now, it->length))
		return true; /* it will fault, or nothing can be said */
	if (!memcmp(now, it->value, it->length))
		return true;
	*w = (struct wanted_load){ .address = o.address, .size = it->length < 8 ? it->length : 8 };
	memcpy(&w->value, it->value, w->size);
	return false;
}

/* ---- forced loads ---- */

/* Where the thread's first forced load from insn on is, or belongs; they are sorted. */
static size_t force_at(const struct mach_run *r, uint32_t thread, uint64_t insn)
{
	size_t lo = 0, hi = r->forces.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct mach_forced *f = &r->forces.v[mid].load;

		if (f->thread < thread || (f->thread == thread && f->insn < insn))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void insert_force(struct mach_run *r, const struct mach_forced *load, bool split)
{
	size_t at = force_at(r, load->thread, load->insn);
	struct load_force f = { .load = *load, .serial = r->force_serial++, .split = split };

	vec_push(&r->forces, f);
	memmove(&r->forces.v[at + 1], &r->forces.v[at], (r->forces.n - 1 - at) * sizeof f);
	r->forces.v[at] = f;
}

void run_force(struct mach_run *r, const struct mach_forced *load)
{
	insert_force(r, load, false);
}

void run_force_half(struct mach_run *r, const struct mach_forced *load)
{
	insert_force(r, load, true);
}

/*
 * ---- updates in halves ----
 *
 * A recorder that hunts does a plain read-modify-write in its two halves, with a
 * ticket each: ORDER, VALUE, ORDER at one pc. The machine executes the instruction
 * when the second is due; then it must see what the first one loaded, though others
 * may have written since.
 */

bool run_operand_load(struct mach_run *r, uint64_t *address, uint32_t *size, uint64_t *value)
{
	struct operand_here o;

	if (!operand_here(r, &o))
		return false;
	*address = o.address;
	*size = o.size;
	*value = 0;
	return o.size && o.size <= sizeof *value && mem_peek(r->m->mem, o.address, value, o.size);
}

bool run_split_load(struct mach_run *r, struct run_thread *t)
{
	struct thread_state *s = &t->s;
	const struct path_item *it;
	struct operand_here o;

	if (s->split || !operand_here(r, &o) || !o.update)
		return false;
	it = run_find_item(r, t, r->m->frame->g.guest_RIP, TRC_ITEM_VALUE);
	if (!it || it->length > sizeof s->split_value)
		return false;
	s->split = true;
	s->split_address = o.address;
	s->split_size = it->length;
	s->split_value = 0;
	memcpy(&s->split_value, it->value, it->length);
	s->item++;
	return true;
}

void run_split_store(struct mach_run *r, struct run_thread *t)
{
	struct mach_forced load = { .thread = t->index, .size = t->s.split_size, .logged = true,
				    .insn = r->m->insns, .pc = r->m->frame->g.guest_RIP,
				    .address = t->s.split_address, .value = t->s.split_value };
	size_t at = force_at(r, load.thread, load.insn);
	uint64_t now = 0;

	t->s.split = false;
	/* Executed before and taken back: the place may be known already. */
	if (at < r->forces.n && r->forces.v[at].load.thread == load.thread &&
	    r->forces.v[at].load.insn == load.insn)
		r->forces.v[at].load = load;
	else if (mem_peek(r->m->mem, load.address, &now, load.size) && now == load.value)
		return; /* nobody came between */
	else
		run_force(r, &load);
	r->forces.v[at].split = true;
}

/* Takes back what was forced since force_serial was `serial`. */
void run_unforce(struct mach_run *r, uint64_t serial)
{
	size_t n = 0;

	if (r->force_serial == serial)
		return;
	for (size_t i = 0; i < r->forces.n; i++)
		if (r->forces.v[i].serial < serial)
			r->forces.v[n++] = r->forces.v[i];
	r->forces.n = n;
	r->force_serial = serial;
}

/* The thread's first forced load that it has not executed; NULL: none. */
struct load_force *run_next_force(const struct mach_run *r, uint32_t thread)
{
	size_t at;

	if (!r->forces.n)
		return NULL;
	at = force_at(r, thread, mach_thread_insns(r, thread));
	return at < r->forces.n && r->forces.v[at].load.thread == thread ? &r->forces.v[at] : NULL;
}

/* Memory holds what the load saw, from here to run_force_end(). False: as it was anyway. */
bool run_force_begin(struct mach_run *r, struct load_force *f)
{
	struct mach_forced *l = &f->load;

	l->memory = 0;
	f->used = mem_peek(r->m->mem, l->address, &l->memory, l->size) &&
		  memcmp(&l->memory, &l->value, l->size);
	if (!f->used)
		return false;
	l->pc = r->m->frame->g.guest_RIP;
	f->time = r->time;
	mem_poke(r->m->mem, l->address, &l->value, l->size);
	/* What memory was made of is not what this load sees. */
	shadow_forget_memory(r->m, l->address, l->size);
	return true;
}

void run_force_end(struct mach_run *r, const struct load_force *f)
{
	if (f->split)
		return; /* its own store is there now */
	mem_poke(r->m->mem, f->load.address, &f->load.memory, f->load.size);
}

/* The forced loads of the run as it was followed. */
void run_forces_publish(struct mach_run *r)
{
	for (size_t i = 0; i < r->forces.n; i++) {
		const struct load_force *f = &r->forces.v[i];

		if (!f->used || f->split || f->load.insn >= mach_thread_insns(r, f->load.thread))
			continue;
		vec_push(&r->forced, f->load);
		if (f->load.buffered)
			r->res.buffered++;
	}
}

size_t mach_forced(const struct mach_run *r, const struct mach_forced **out)
{
	*out = r->forced.v;
	return r->forced.n;
}
