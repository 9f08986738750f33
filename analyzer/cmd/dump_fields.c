#include "analyzer/cmd/dump_fields.h"

#include "common/trace_format.h"

#define F(s, member, kind) { #member, kind, offsetof(struct s, member), 0, 0 }
#define FIELDS(name) static const struct dump_field name[]

FIELDS(kv_fields) = {
	{ "key", TEXT, offsetof(struct trc_kv, data), offsetof(struct trc_kv, key_len), 0 },
	{ "value", TEXT, offsetof(struct trc_kv, data), offsetof(struct trc_kv, value_len),
	  offsetof(struct trc_kv, key_len) },
	{ 0 },
};
FIELDS(module_fields) = {
	{ "path", TEXT16, offsetof(struct trc_module, path), offsetof(struct trc_module, path_len),
	  0 },
	F(trc_module, start, HEX), F(trc_module, end, HEX), F(trc_module, offset, HEX),
	F(trc_module, prot, PROT), F(trc_module, tsc, TIME), F(trc_module, build_id, BUILD_ID),
	{ 0 },
};
FIELDS(thread_fields) = {
	F(trc_thread, tsc, TIME), F(trc_thread, thread, THREAD), F(trc_thread, parent, THREAD),
	F(trc_thread, ordinal, U32), F(trc_thread, tid, U32), F(trc_thread, pthread, HEX), { 0 },
};
FIELDS(thread_name_fields) = {
	F(trc_thread_name, thread, THREAD),
	{ "name", TEXT, offsetof(struct trc_thread_name, name),
	  offsetof(struct trc_thread_name, name_len), 0 },
	{ 0 },
};
FIELDS(note_fields) = {
	F(trc_note, tsc, TIME), F(trc_note, thread, THREAD),
	{ "text", TEXT, offsetof(struct trc_note, text), offsetof(struct trc_note, text_len), 0 },
	{ 0 },
};
FIELDS(failure_fields) = {
	F(trc_failure, tsc, TIME), F(trc_failure, thread, THREAD),
	{ "text", TEXT, offsetof(struct trc_failure, data), offsetof(struct trc_failure, text_len),
	  0 },
	{ "detail", TEXT, offsetof(struct trc_failure, data),
	  offsetof(struct trc_failure, detail_len), offsetof(struct trc_failure, text_len) },
	{ "at", SITE, offsetof(struct trc_failure, regs) + TRC_RIP * 8, 0, 0 },
	F(trc_failure, signal, I32), F(trc_failure, code, I32), F(trc_failure, status, I32),
	F(trc_failure, address, HEX), F(trc_failure, path_pos, U64), F(trc_failure, regs, REGS),
	{ 0 },
};
FIELDS(stack_fields) = {
	F(trc_stack, thread, THREAD),
	{ "at", SITE, offsetof(struct trc_stack, regs) + TRC_RIP * 8, 0, 0 },
	F(trc_stack, address, HEX), F(trc_stack, length, U32), F(trc_stack, regs, REGS),
	{ "bytes", BYTES, offsetof(struct trc_stack, bytes), offsetof(struct trc_stack, length),
	  0 },
	{ 0 },
};
FIELDS(blocked_fields) = {
	F(trc_blocked, thread, THREAD), F(trc_blocked, op, OP), F(trc_blocked, object, BLOCKED),
	F(trc_blocked, site, SITE), F(trc_blocked, owner, THREAD),
	F(trc_blocked, owner_site, SITE), F(trc_blocked, cycle, U16), { 0 },
};
FIELDS(withdrawn_fields) = { F(trc_withdrawn, tsc, TIME), { 0 } };
FIELDS(child_fields) = {
	F(trc_child, tsc, TIME), F(trc_child, thread, THREAD), F(trc_child, pid, U32), { 0 },
};
FIELDS(exec_fields) = {
	F(trc_exec, tsc, TIME), F(trc_exec, thread, THREAD),
	{ "path", TEXT, offsetof(struct trc_exec, path), offsetof(struct trc_exec, path_len), 0 },
	{ 0 },
};
FIELDS(epoch_fields) = { F(trc_epoch, tsc, TIME), F(trc_epoch, epoch, U32), F(trc_epoch, pause, U32), { 0 } };
FIELDS(thread_id_fields) = {
	F(trc_thread_id, thread, THREAD),
	{ "id", TEXT, offsetof(struct trc_thread_id, id), offsetof(struct trc_thread_id, id_len), 0 },
	{ 0 },
};
FIELDS(end_fields) = {
	F(trc_end, tsc, TIME), F(trc_end, thread, THREAD), F(trc_end, status, I32), { 0 },
};
FIELDS(sync_fields) = {
	F(trc_sync, tsc, TIME), F(trc_sync, object, OBJECT), F(trc_sync, site, SITE),
	F(trc_sync, result, I32), F(trc_sync, thread, THREAD), F(trc_sync, value, HEX), { 0 },
};
FIELDS(start_fields) = {
	F(trc_start, tsc, TIME),
	{ "at", PLACE, offsetof(struct trc_start, regs) + TRC_RIP * 8, 0, 0 },
	F(trc_start, regs, REGS), F(trc_start, fs_base, HEX), F(trc_start, gs_base, HEX),
	F(trc_start, clear_tid, HEX), F(trc_start, xsave_len, U32), { 0 },
};
FIELDS(enter_fields) = {
	F(trc_enter, tsc, TIME), F(trc_enter, seq, U64), F(trc_enter, path_pos, U64),
	F(trc_enter, pc, PLACE), F(trc_enter, args, ARGS), { 0 },
};
FIELDS(leave_fields) = {
	F(trc_leave, tsc, TIME), F(trc_leave, seq, U64), F(trc_leave, result, I64),
	F(trc_leave, thread, THREAD), { "effects", EFFECTS, 0, 0, 0 }, { 0 },
};
FIELDS(nondet_fields) = {
	F(trc_nondet, pc, PLACE), F(trc_nondet, path_pos, U64), F(trc_nondet, rax, HEX),
	F(trc_nondet, rbx, HEX), F(trc_nondet, rcx, HEX), F(trc_nondet, rdx, HEX),
	F(trc_nondet, dest, HEX), F(trc_nondet, reg, U32), F(trc_nondet, rflags, U32), { 0 },
};
FIELDS(signal_fields) = {
	F(trc_signal, tsc, TIME), F(trc_signal, seq, U64), F(trc_signal, path_pos, U64),
	F(trc_signal, interrupted_pc, PLACE), F(trc_signal, fragment, U32),
	{ "handler", PLACE, offsetof(struct trc_signal, regs) + TRC_RIP * 8, 0, 0 },
	F(trc_signal, frame, HEX), F(trc_signal, frame_len, U32), F(trc_signal, regs, REGS),
	{ "bytes", BYTES, offsetof(struct trc_signal, bytes),
	  offsetof(struct trc_signal, frame_len), 0 },
	{ 0 },
};
FIELDS(time_fields) = { F(trc_time, tsc, TIME), F(trc_time, path_pos, U64), { 0 } };
FIELDS(regs_fields) = {
	F(trc_regs, path_pos, U64), F(trc_regs, regs, REGS), F(trc_regs, vector_sum, HEX), { 0 },
};
FIELDS(generation_fields) = {
	F(trc_generation, generation, U64), F(trc_generation, path_pos, U64),
	F(trc_generation, pc, PLACE), { 0 },
};
FIELDS(native_fields) = {
	F(trc_native, tsc, TIME), F(trc_native, path_pos, U64), F(trc_native, pc, PLACE),
	{ "text", TEXT, offsetof(struct trc_native, text), offsetof(struct trc_native, text_len),
	  0 },
	{ 0 },
};
FIELDS(thread_exit_fields) = {
	F(trc_thread_exit, tsc, TIME), F(trc_thread_exit, seq, U64),
	F(trc_thread_exit, path_pos, U64), F(trc_thread_exit, cleared, HEX),
	F(trc_thread_exit, ticket, U64), { 0 },
};
FIELDS(stop_fields) = {
	F(trc_stop, tsc, TIME), F(trc_stop, seq, U64), F(trc_stop, path_pos, U64),
	F(trc_stop, pc, PLACE), { 0 },
};
FIELDS(fragment_fields) = {
	F(trc_fragment, id, U32), F(trc_fragment, pc, PLACE), F(trc_fragment, last_pc, HEX),
	F(trc_fragment, next, HEX), F(trc_fragment, ninsns, U32),
	F(trc_fragment, generation, U64), { "sides", SIDES, 0, 0, 0 }, { "items", ITEMS, 0, 0, 0 },
	{ 0 },
};
FIELDS(dropped_fields) = {
	F(trc_dropped, generation, U64), F(trc_dropped, start, HEX), F(trc_dropped, end, HEX),
	{ 0 },
};
FIELDS(region_fields) = {
	F(trc_region, start, HEX), F(trc_region, end, HEX), F(trc_region, offset, HEX),
	F(trc_region, prot, PROT),
	{ "path", TEXT, offsetof(struct trc_region, path), offsetof(struct trc_region, path_len),
	  0 },
	{ 0 },
};
FIELDS(pages_fields) = {
	F(trc_pages, address, HEX), F(trc_pages, length, U32),
	{ "bytes", BYTES, offsetof(struct trc_pages, bytes), offsetof(struct trc_pages, length),
	  0 },
	{ 0 },
};

FIELDS(state_fields) = {
	F(trc_state, thread, THREAD), F(trc_state, tsc, TIME), F(trc_state, path_pos, U64),
	F(trc_state, generation, U64), F(trc_state, regs, REGS), F(trc_state, fs_base, HEX),
	F(trc_state, gs_base, HEX), F(trc_state, clear_tid, HEX), F(trc_state, xsave_len, U32),
	{ 0 },
};
FIELDS(tickets_fields) = { F(trc_tickets, n, U32), { 0 } };
FIELDS(base_fields) = { F(trc_base, epoch, U32), F(trc_base, since, U32), { 0 } };
FIELDS(carried_fields) = {
	F(trc_carried, by, THREAD), F(trc_carried, sync.object, OBJECT), F(trc_carried, sync.site, SITE),
	F(trc_carried, sync.thread, THREAD), F(trc_carried, sync.value, HEX), { 0 },
};
FIELDS(left_fields) = { F(trc_left, start, HEX), F(trc_left, end, HEX), { 0 } };

static const struct dump_field *const fields_of[] = {
	[TRC_KV] = kv_fields, [TRC_MODULE] = module_fields, [TRC_THREAD] = thread_fields,
	[TRC_THREAD_NAME] = thread_name_fields, [TRC_NOTE] = note_fields,
	[TRC_FAILURE] = failure_fields, [TRC_STACK] = stack_fields,
	[TRC_BLOCKED] = blocked_fields, [TRC_WITHDRAWN] = withdrawn_fields,
	[TRC_CHILD] = child_fields, [TRC_EXEC] = exec_fields, [TRC_END] = end_fields,
	[TRC_SYNC] = sync_fields, [TRC_START] = start_fields, [TRC_ENTER] = enter_fields,
	[TRC_LEAVE] = leave_fields, [TRC_NONDET] = nondet_fields, [TRC_SIGNAL] = signal_fields,
	[TRC_TIME] = time_fields, [TRC_REGS] = regs_fields,
	[TRC_GENERATION] = generation_fields, [TRC_NATIVE] = native_fields,
	[TRC_THREAD_EXIT] = thread_exit_fields, [TRC_STOP] = stop_fields,
	 [TRC_FRAGMENT] = fragment_fields,
	[TRC_EPOCH] = epoch_fields, [TRC_THREAD_ID] = thread_id_fields, [TRC_STATE] = state_fields,
	[TRC_TICKETS] = tickets_fields, [TRC_BASE] = base_fields, [TRC_LEFT] = left_fields, [TRC_CARRIED] = carried_fields,
	[TRC_DROPPED] = dropped_fields, [TRC_REGION] = region_fields, [TRC_PAGES] = pages_fields,
};

const struct dump_field *dump_fields_of(unsigned type)
{
	return fields_of[type];
}
