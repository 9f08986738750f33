/* Which loads of old values a store buffer explains, and which it does not. */
#include "analyzer/follow/buffers.h"
#include "tests/lib/check.h"

#define X 0x10000000ull
#define Y (X + 64)

static struct mach_run run;
static struct buffers *b;

/* A store is told before it happens. */
static void stores(uint32_t thread, uint64_t address, uint32_t value, unsigned how)
{
	run.current = thread;
	buffers_access(b, 0x1000 + thread, address, 4, ACCESS_WRITE | how);
	mem_poke(run.m->mem, address, &value, 4);
}

static void loads(uint32_t thread, uint64_t address)
{
	run.current = thread;
	buffers_access(b, 0x2000, address, 4, ACCESS_READ);
}

/* Can the thread have read this there? */
static bool explained(uint32_t thread, uint64_t address, uint32_t value)
{
	struct mach_forced l = { .thread = thread, .size = 4, .address = address, .value = value };

	mem_peek(run.m->mem, address, &l.memory, 4);
	return buffers_explain(b, &l) && l.buffered;
}

static void again(void)
{
	uint64_t zero = 0;

	mem_poke(run.m->mem, X, &zero, 8);
	mem_poke(run.m->mem, Y, &zero, 8);
	buffers_free(b);
	b = buffers_new(&run);
}

int main(void)
{
	run.nthreads = 3;
	err_free(mach_engine_new(&run.m));
	mem_map(run.m->mem, X, X + 4096, MEM_R | MEM_W, false);

	again();
	stores(0, X, 1, 0);
	CHECK(explained(1, X, 0), "what another has just stored may still be on its way");
	CHECK(!explained(1, X, 7), "but then it is the value before that is seen");
	CHECK(!explained(0, X, 0), "a thread sees its own stores");
	stores(0, Y, 1, 0);
	loads(2, Y);
	CHECK(!explained(1, X, 0), "stores leave in their order: a later one was seen");

	again();
	stores(0, X, 1, 0);
	stores(0, Y, 1, ACCESS_LOCKED);
	CHECK(!explained(1, X, 0), "a locked instruction empties the buffer");
	again();
	stores(0, X, 1, 0);
	buffers_fence(b, 0);
	CHECK(!explained(1, X, 0), "so does a fence");
	again();
	stores(0, X, 1, 0);
	run.res.locked++;
	stores(0, Y, 1, 0);
	CHECK(!explained(1, X, 0) && explained(1, Y, 0), "and the recorder's ticket");

	again();
	stores(0, X, 1, 0);
	stores(0, X, 2, 0);
	CHECK(explained(1, X, 0) && explained(1, X, 1), "any number of stores may be on its way");
	for (unsigned i = 0; i < 300; i++)
		stores(0, Y, i, 0);
	CHECK(!explained(1, X, 1), "within reason");

	/* Peterson's: both announce themselves, both set the turn, both see nobody. */
	again();
	stores(0, X, 1, 0);
	stores(0, Y, 2, 0);
	stores(1, X + 4, 1, 0);
	stores(1, Y, 1, 0);
	CHECK(explained(0, X + 4, 0) && explained(1, X, 0), "one stored over what the other has buffered");
	buffers_fence(b, 1);
	CHECK(!explained(1, X, 0), "which is gone when the later store is");
	buffers_free(b);
	mach_engine_free(run.m);
	CHECK_END();
}
