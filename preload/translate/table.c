/*
 * The table that indirect branches jump through, by the low bits of their target. The large one, 16 bits, takes
 * 128 pages: of a start of `true` that was a tenth. So a process begins with a small one, by 8 bits, and code that
 * jumps through it is noted; when enough targets are known, or before there is a second thread, the large one
 * gets the small one's chains and the noted jumps are made anew in place:
 *
 *      movzx edx, cl;  jmp [rdx*8 + small]      0f b6 d1  ff 24 d5 disp32
 *      movzx edx, cx;  jmp [rdx*8 + large]      0f b7 d1  ff 24 d5 disp32
 *
 * Nobody can be in the middle of one then: the only thread is in the dispatcher.
 */
#include "preload/translate/build.h"

#define SMALL_SIZE 256u
#define LARGE_SIZE 65536u
#define NOTED_MAX 512u
#define MOVZX_BYTE 0xb6
#define MOVZX_WORD 0xb7

static bool large;
static unsigned used; /* targets in the small one */
static uint8_t *noted[NOTED_MAX] RAW_LARGE;
static unsigned nnoted;

static uint64_t *small_table(void)
{
	return (uint64_t *)(uint64_t)(tr_low + LOW_SMALL);
}

static uint64_t *large_table(void)
{
	return (uint64_t *)(uint64_t)(tr_low + LOW_INDIRECT);
}

static void grow(void)
{
	uint64_t *from = small_table(), *to = large_table();

	if (large)
		return;
	tr_populate(to, LARGE_SIZE * sizeof *to);
	for (unsigned i = 0; i < LARGE_SIZE; i++)
		to[i] = from[i % SMALL_SIZE];
	for (unsigned i = 0; i < nnoted; i++) {
		noted[i][1] = MOVZX_WORD;
		((struct tr_unaligned *)(noted[i] + 6))->v32 = tr_low + LOW_INDIRECT;
	}
	nnoted = 0;
	large = true;
}

void emit_table_jump(void)
{
	if (!large && nnoted == NOTED_MAX)
		grow();
	if (!large)
		noted[nnoted++] = tr_at;
	e16(0x0f | (large ? MOVZX_WORD : MOVZX_BYTE) << 8), e8(0xd1);
	e8(0xff), e8(0x24), e8(0xd5);
	e32(tr_low + (large ? LOW_INDIRECT : LOW_SMALL));
}

static uint64_t *bucket(uint64_t pc)
{
	return large ? &large_table()[pc % LARGE_SIZE] : &small_table()[pc % SMALL_SIZE];
}

uint64_t tr_table_at(uint64_t pc)
{
	return *bucket(pc);
}

void tr_table_set(uint64_t pc, const uint8_t *entry)
{
	__atomic_store_n(bucket(pc), (uint64_t)entry, __ATOMIC_RELEASE);
	if (!large && ++used > SMALL_SIZE)
		grow();
}

void tr_table_empty(void)
{
	if (tr.multi)
		grow();
	uint64_t *table = large ? large_table() : small_table();

	for (unsigned i = 0; i < (large ? LARGE_SIZE : SMALL_SIZE); i++)
		if (table[i] != (uint64_t)tr_enter_indirect)
			__atomic_store_n(&table[i], (uint64_t)tr_enter_indirect, __ATOMIC_RELEASE);
	used = 0;
}

/* The code is gone: what is written there next is not to be patched. */
void tr_table_forget(void)
{
	nnoted = 0;
}
