/*
 * Use of a mutex that was destroyed: the C library refuses it (EINVAL), and what the program does
 * then happens elsewhere. The state inside a mutex is no shared memory here, so no order of
 * accesses names who destroyed it; the record does.
 */
#include "analyzer/symtrace/extract_internal.h"

#include <errno.h>

static struct ext_destroyed *destroyed_at(struct ext *x, uint64_t object)
{
	for (size_t i = x->destroyed.n; i-- > 0;)
		if (x->destroyed.v[i].object == object)
			return &x->destroyed.v[i];
	return NULL;
}

static void forget(struct ext *x, uint64_t object)
{
	struct ext_destroyed *d = destroyed_at(x, object);

	if (d)
		*d = x->destroyed.v[--x->destroyed.n];
}

void ext_destroyed_watch(struct ext *x, uint32_t thread, const struct trc_sync *r)
{
	const struct ext_destroyed *d;

	if (x->onward || TRC_SYNC_AT(r->rec.flags) != TRC_AT_DONE)
		return;
	switch (TRC_SYNC_OP(r->rec.flags)) {
	case TRC_OP_MUTEX_INIT:
		forget(x, r->object);
		return;
	case TRC_OP_MUTEX_DESTROY:
		forget(x, r->object);
		vec_push(&x->destroyed, (struct ext_destroyed){ r->object, thread,
								ext_stack(x, thread, r->site - 1) });
		return;
	case TRC_OP_LOCK: case TRC_OP_TIMEDLOCK: case TRC_OP_TRYLOCK:
		break;
	default:
		return;
	}
	d = r->result == EINVAL && !x->misused_lock.kind ? destroyed_at(x, r->object) : NULL;
	if (!d)
		return;
	x->misused_lock = (struct ext_misuse){
		.kind = EXT_MISUSE_DESTROYED, .thread = thread, .stack = ext_stack(x, thread, r->site - 1),
		.freed_by = d->thread, .freed_stack = d->stack,
		.name = ext_name(x, thread, r->object, 1, NULL, &(struct ext_named){ 0 }),
	};
}
