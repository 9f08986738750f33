/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls that change the address space or the segment bases: what they do to the machine's memory. */
#include "analyzer/follow/follow.h"

#include "analyzer/engine/code.h"
#include "analyzer/engine/shadow_ops.h"

#include <asm/prctl.h>
#include <linux/mman.h>
#include <string.h>
#include <sys/syscall.h>

static void set_brk(struct mach_run *r, uint64_t now)
{
	uint64_t page = MEM_PAGE - 1;

	if (r->brk && now > r->brk)
		mem_map(r->m->mem, (r->brk + page) & ~page, (now + page) & ~page, MEM_R | MEM_W, false);
	else if (r->brk && now < r->brk)
		mem_unmap(r->m->mem, (now + page) & ~page, (r->brk + page) & ~page);
	r->brk = now;
}

/* Maps memory that others may map, too; false: it is not known which it is, or it does not fit. */
bool run_map_object(struct mach_run *r, uint64_t start, uint64_t end, unsigned prot, const struct trc_object *o)
{
	size_t i = 0;

	while (i < r->objects.n && r->objects.v[i] != o->object)
		i++;
	if (!o->object || i >= MEM_OBJECTS || end < start || o->offset >= MEM_OBJECT || end - start > MEM_OBJECT - o->offset)
		return false;
	if (i == r->objects.n)
		vec_push(&r->objects, o->object);
	return mem_map_shared(r->m->mem, start, end, prot, MEM_TOP + i * MEM_OBJECT + o->offset);
}

static const struct trc_effect *find_effect(const struct trc_leave *l, unsigned kind)
{
	struct trc_effects fx = trc_effects(l);

	for (const struct trc_effect *e = trc_effect_next(&fx); e; e = trc_effect_next(&fx))
		if (e->kind == kind)
			return e;
	return NULL;
}

static void map_new(struct mach_run *r, const struct trc_leave *l, uint64_t start, uint64_t end, unsigned prot)
{
	const struct trc_effect *e = find_effect(l, TRC_EFFECT_OBJECT);
	struct trc_object o = { 0, 0 };

	if (e)
		memcpy(&o, trc_effect_bytes(e), sizeof o);
	if (!run_map_object(r, start, end, prot, &o))
		mem_map(r->m->mem, start, end, prot, find_effect(l, TRC_EFFECT_MODULE));
}

static void note_growing(struct mach_run *r, uint64_t end)
{
	end = (end + MEM_PAGE - 1) & ~(uint64_t)(MEM_PAGE - 1);
	for (size_t i = 0; i < r->growing.n; i++)
		if (r->growing.v[i] == end)
			return; /* it is executed again */
	vec_push(&r->growing, end);
}

static void attach_shared(struct mach_run *r, const struct trc_leave *l, uint64_t flags)
{
	const struct trc_effect *e = find_effect(l, TRC_EFFECT_FILE);

	if (!e)
		return;
	map_new(r, l, e->address, e->address + e->length, flags & 010000 /* SHM_RDONLY */ ? MEM_R : MEM_R | MEM_W);
	run_note_shared(r, e->address, e->address + e->length, false);
}

/* All that was attached at once; mprotect() may have cut it. */
static void detach_shared(struct mach_run *r, uint64_t start)
{
	const struct mem_map *map = mem_find(r->m->mem, start);
	uint64_t end = start, at;

	if (!map || map->start != start || !map->alias)
		return;
	for (at = map->alias; map && map->start == end && map->alias == at; map = mem_find(r->m->mem, end)) {
		at += map->end - end;
		end = map->end;
	}
	mem_unmap(r->m->mem, start, end);
	shadow_forget_memory(r->m, start, end - start);
}

/*
 * Where memory is that a thread is moving: between its entry into mremap() and its return others may map what it has left, and
 * may not have left yet where it goes. No program has anything there; if one does, it is moved at once, at the return.
 */
#define MOVING 0x300000000000ull
#define MOVING_MOST (1ull << 36) /* bytes, of each thread */

static uint64_t page_up(uint64_t n)
{
	return (n + MEM_PAGE - 1) & ~(uint64_t)(MEM_PAGE - 1);
}

static uint64_t moving(uint32_t thread)
{
	return MOVING + thread % 1024 * MOVING_MOST;
}

static bool is_failed(const struct trc_leave *l)
{
	return !l || l->rec.type != TRC_LEAVE || (uint64_t)l->result > -4096ull;
}

/*
 * Another thread may have mapped the same addresses anew before this one noted its return, but hardly before it entered.
 */
void run_take_mapping(struct mach_run *r, uint32_t thread, const struct trc_enter *e, const struct trc_leave *l)
{
	struct mem *mem = r->m->mem;
	uint64_t at = e->args[0], size = page_up(e->args[1]), to_size = page_up(e->args[2]), stays = 0;

	if ((e->rec.flags != SYS_munmap && e->rec.flags != SYS_mremap) || is_failed(l) || !size)
		return;
	if (e->rec.flags == SYS_munmap) {
		mem_unmap(mem, at, at + size);
	} else if ((uint64_t)l->result == at) {
		if (to_size >= size)
			return;
		stays = to_size;
		mem_unmap(mem, at + stays, at + size);
	} else if (!(e->args[3] & MREMAP_DONTUNMAP) && size <= MOVING_MOST &&
		   !mem_overlaps(mem, moving(thread), moving(thread) + size)) {
		mem_move(mem, at, size, moving(thread), size);
	} else {
		return;
	}
	shadow_forget_memory(r->m, at + stays, size - stays);
}

static void remap(struct mach_run *r, uint32_t thread, const uint64_t *a, uint64_t to)
{
	uint64_t from_size = page_up(a[1]), to_size = page_up(a[2]), from = a[0];
	bool is_moving = to != from && from_size && !(a[3] & MREMAP_DONTUNMAP) && mem_find(r->m->mem, moving(thread));

	if (is_moving)
		from = moving(thread);
	const struct mem_map *map = mem_find(r->m->mem, from);
	struct mem_map was;

	if (!map)
		return;
	was = *map;
	if (to != a[0]) {
		mem_move(r->m->mem, from, from_size, to, to_size);
		shadow_forget_memory(r->m, to, to_size);
	} else if (to_size > from_size && was.alias) {
		mem_map_shared(r->m->mem, to + from_size, to + to_size, was.prot, was.alias + (a[0] - was.start) + from_size);
	} else if (to_size > from_size) {
		mem_map(r->m->mem, to + from_size, to + to_size, was.prot, was.file);
	}
	if (a[3] & MREMAP_DONTUNMAP && was.alias)
		mem_map_shared(r->m->mem, a[0], a[0] + from_size, was.prot, was.alias + (a[0] - was.start));
	else if (a[3] & MREMAP_DONTUNMAP)
		mem_map(r->m->mem, a[0], a[0] + from_size, was.prot, was.file);
}

/* The program's own memory comes back as zeros, a file's as the file is. */
static bool discards(uint64_t advice)
{
	return advice == MADV_DONTNEED || advice == MADV_REMOVE || advice == MADV_DONTNEED_LOCKED ||
	       advice == 102 /* MADV_GUARD_INSTALL */;
}

/* A part of a shared mapping shows another part of the file. */
static void show_elsewhere(struct mach_run *r, const struct trc_leave *l, uint64_t start, uint64_t end)
{
	const struct trc_effect *e = find_effect(l, TRC_EFFECT_OBJECT);
	const struct mem_map *map = mem_find(r->m->mem, start);
	struct trc_object o;

	if (!e || !map)
		return;
	memcpy(&o, trc_effect_bytes(e), sizeof o);
	run_map_object(r, start, end, map->prot, &o);
	shadow_forget_memory(r->m, start, end - start);
}

/* Changes of the address space, by number; only calls that succeeded. */
void run_apply_mapping(struct mach_run *r, uint32_t thread, const struct trc_enter *en, const struct trc_leave *l)
{
	const uint64_t *a = en->args;
	uint64_t result = (uint64_t)l->result;
	struct mem *mem = r->m->mem;

	switch (en->rec.flags) {
	case SYS_mmap:
		map_new(r, l, result, result + a[1], (unsigned)a[2]);
		if (a[3] & MAP_GROWSDOWN)
			note_growing(r, result + a[1]);
		if (a[3] & MAP_SHARED)
			run_note_shared(r, result, result + a[1], !(a[3] & MAP_ANONYMOUS));
		shadow_forget_memory(r->m, result, a[1]);
		img_remove_range(r->images, result, result + a[1]);
		break;
	case SYS_mprotect:
	case SYS_pkey_mprotect:
		mem_protect(mem, a[0], a[0] + a[1], (unsigned)a[2]);
		break;
	case SYS_mremap:
		remap(r, thread, a, result);
		break;
	case SYS_brk:
		set_brk(r, result);
		break;
	case SYS_madvise:
		if (discards(a[2])) {
			mem_discard(mem, a[0], a[0] + a[1]);
			shadow_forget_memory(r->m, a[0], a[1]);
		}
		break;
	case SYS_arch_prctl:
		if (a[0] == ARCH_SET_FS)
			r->m->frame->g.guest_FS_CONST = a[1];
		else if (a[0] == ARCH_SET_GS)
			r->m->frame->g.guest_GS_CONST = a[1];
		break;
	case SYS_remap_file_pages:
		show_elsewhere(r, l, a[0] & ~(uint64_t)(MEM_PAGE - 1), (a[0] & ~(uint64_t)(MEM_PAGE - 1)) + a[1] / MEM_PAGE * MEM_PAGE);
		break;
	case SYS_shmat:
		attach_shared(r, l, a[2]);
		break;
	case SYS_shmdt:
		detach_shared(r, a[0]);
		break;
	default:
		break;
	}
}

/* Protection changes up to the hole, advice is taken on both sides of it. */
void run_apply_in_part(struct mach_run *r, const struct trc_enter *e)
{
	const uint64_t *a = e->args;
	uint64_t at = a[0], end = a[0] + a[1];

	if (end < at)
		return;
	if (e->rec.flags == SYS_mprotect || e->rec.flags == SYS_pkey_mprotect) {
		for (const struct mem_map *map; at < end && (map = mem_find(r->m->mem, at));)
			at = map->end;
		if (at > a[0])
			mem_protect(r->m->mem, a[0], at < end ? at : end, (unsigned)a[2]);
	} else if (e->rec.flags == SYS_madvise && a[2] == MADV_DONTNEED) {
		mem_discard(r->m->mem, a[0], end);
		shadow_forget_memory(r->m, a[0], a[1]);
	}
}
