/*
 * Between translated code and C. Everything here addresses the thread's
 * context through %gs; see layout.h. C code is compiled with general registers
 * only, so the vector state stays where it is, but for the record pointer.
 */
#include "preload/translate/layout.h"

#define SYS_sched_yield 24
#define SYS_rt_sigreturn 15
#define SYS_exit 60
#define SYS_arch_prctl 158
#define ARCH_SET_GS 0x1001
#define NOT_STARTED -4096
#define FLAGS_UNUSUAL 0x3f7528	/* all but status, IF and bit 1 */

.macro function name
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
.endm

.macro load_registers
	movq	%gs:CTX_REGS + 0, %rax
	movq	%gs:CTX_REGS + 8, %rcx
	movq	%gs:CTX_REGS + 16, %rdx
	movq	%gs:CTX_REGS + 24, %rbx
	movq	%gs:CTX_REGS + 40, %rbp
	movq	%gs:CTX_REGS + 48, %rsi
	movq	%gs:CTX_REGS + 56, %rdi
	movq	%gs:CTX_REGS + 64, %r8
	movq	%gs:CTX_REGS + 72, %r9
	movq	%gs:CTX_REGS + 80, %r10
	movq	%gs:CTX_REGS + 88, %r11
	movq	%gs:CTX_REGS + 96, %r12
	movq	%gs:CTX_REGS + 104, %r13
	movq	%gs:CTX_REGS + 112, %r14
	movq	%gs:CTX_REGS + 120, %r15
	movq	%gs:CTX_REGS + 32, %rsp
.endm

.macro save_registers
	movq	%rax, %gs:CTX_REGS + 0
	movq	%rcx, %gs:CTX_REGS + 8
	movq	%rdx, %gs:CTX_REGS + 16
	movq	%rbx, %gs:CTX_REGS + 24
	movq	%rsp, %gs:CTX_REGS + 32
	movq	%rbp, %gs:CTX_REGS + 40
	movq	%rsi, %gs:CTX_REGS + 48
	movq	%rdi, %gs:CTX_REGS + 56
	movq	%r8, %gs:CTX_REGS + 64
	movq	%r9, %gs:CTX_REGS + 72
	movq	%r10, %gs:CTX_REGS + 80
	movq	%r11, %gs:CTX_REGS + 88
	movq	%r12, %gs:CTX_REGS + 96
	movq	%r13, %gs:CTX_REGS + 104
	movq	%r14, %gs:CTX_REGS + 112
	movq	%r15, %gs:CTX_REGS + 120
.endm

/*
 * The application's flags from the context; clobbers rax. popfq is slow (13 cycles
 * on Zen 3), so the usual case takes sahf and an addition that makes OF.
 */
.macro load_flags
	movl	%gs:CTX_FLAGS, %eax
	testl	$FLAGS_UNUSUAL, %eax
	jnz	8f
	shrl	$11, %eax
	andl	$1, %eax
	movb	%gs:CTX_FLAGS, %ah
	addb	$127, %al
	sahf
	jmp	9f
8:	pushq	%gs:CTX_FLAGS
	popfq
9:
.endm

.macro load_pointer
	testb	$1, tr_machine(%rip)	/* avx */
	jz	8f
	vmovq	%gs:CTX_PTR, %xmm15
	jmp	9f
8:	movq	%gs:CTX_PTR, %xmm15
9:
.endm

/* Clobbers the flags. Without VEX it is dear while upper parts are in use; see emit.c. */
.macro store_pointer
	testb	$1, tr_machine(%rip)	/* avx */
	jz	8f
	vmovq	%xmm15, %gs:CTX_PTR
	jmp	9f
8:	movq	%xmm15, %gs:CTX_PTR
9:
.endm

	.text

/* From a stub: rcx is the exit, the application's rcx is in CTX_RCX. */
function tr_enter_direct
	movq	%rcx, %gs:CTX_EXIT
	movq	%gs:CTX_RCX, %rcx
	movq	$ENTRY_DIRECT, %gs:CTX_KIND
	jmp	enter
function tr_enter_side
	movq	%rcx, %gs:CTX_EXIT
	movq	%gs:CTX_RCX, %rcx
	movq	$ENTRY_SIDE, %gs:CTX_KIND
	jmp	enter
function tr_enter_special
	movq	%rcx, %gs:CTX_EXIT
	movq	%gs:CTX_RCX, %rcx
	movq	$ENTRY_SPECIAL, %gs:CTX_KIND
	jmp	enter
function tr_enter_callout
	movq	%rcx, %gs:CTX_EXIT
	movq	%gs:CTX_RCX, %rcx
	save_registers
	movq	%gs:CTX_STACK, %rsp
	pushfq
	popq	%gs:CTX_FLAGS
	cld
	store_pointer
	movq	%gs:CTX_SELF, %rdi
	call	tr_callout
/* Back into the middle of a fragment; a pending signal is being stepped towards. */
function tr_resume_inside
	movq	%gs:CTX_STACK, %rsp
	load_pointer
	load_flags
	load_registers
	jmp	*%gs:CTX_RESUME
function tr_resume_inside_end
/*
 * The record primitive, called by the application's rules: rax, which these leave free, is where to go
 * on in the cache, the arguments are in place, the callee preserves the rest.
 *
 * The usual lock and unlock is done right here: a repetition of an operation that has a number (event.c
 * has the same at length: slot_of, needs_no_time, quick). rcx and r8 hold constants then, rdi and r9 come back from
 * what they were compared with, so nothing is saved but the flags. (Not in CTX_SPILL: that still holds what a
 * path record displaced.) 60 instructions; the same in C were 115, a fifth of a lock and unlock.
 */
function tr_enter_event
	movq	%rax, %gs:CTX_RESUME
	seto	%al
	lahf
	movq	%rax, %gs:CTX_R11
	movl	$-1, %eax		/* SHIM_NO_THREAD */
	cmpq	%rax, %r8
	jne	event_in_full
	testq	%rcx, %rcx		/* the result */
	jnz	event_in_full
	movq	%gs:CTX_THREAD, %r8
	movq	%rdx, %rax		/* eax: the slot */
	shrq	$7, %rax
	xorl	%edx, %eax
	movq	%rsi, %rcx
	shrq	$3, %rcx
	xorl	%ecx, %eax
	leal	(%rdi,%rdi,4), %ecx
	xorl	%ecx, %eax
	andl	$EVENT_SLOTS - 1, %eax
	movl	%eax, %ecx
	shll	$5, %ecx
	addq	%r8, %rcx
	cmpq	%rsi, THREAD_NAMED(%rcx)
	jne	quick_not
	cmpq	%rdx, THREAD_NAMED + 8(%rcx)
	jne	quick_not
	cmpq	%r9, THREAD_NAMED + 16(%rcx)
	jne	quick_not
	cmpl	%edi, THREAD_NAMED + 24(%rcx)
	jne	quick_not
	cmpq	$0, THREAD_BUSY(%r8)
	jne	quick_not
	cmpl	$STATE_RECORDING, shim(%rip)
	jne	quick_not
	movq	shim_here(%rip), %rcx
	cmpl	$0, (%rcx)
	je	quick_not
	cmpb	$0, ctl(%rip)
	jne	quick_not
	movq	%rsi, %rcx		/* nobody else uses the object? */
	shrq	$10, %rcx
	xorq	%rsi, %rcx
	shrq	$3, %rcx
	andl	$EVENT_USERS - 1, %ecx
	leaq	shim_users(%rip), %r9
	movl	(%r9,%rcx,4), %ecx
	subl	THREAD_INDEX(%r8), %ecx
	cmpl	$1, %ecx
	jne	quick_not_r9
	movq	%xmm15, %rcx		/* the clock is 0 where the path goes nowhere */
	subq	THREAD_CLOCK_AT(%r8), %rcx
	cmpq	$EVENT_CLOCK_STEP, %rcx
	jae	quick_not_r9
	movq	THREAD_POS(%r8), %rcx	/* of a dead stream both are 0 */
	leaq	8(%rcx), %r9
	cmpq	THREAD_END(%r8), %r9
	ja	quick_not_r9
	cmpl	$EVENT_LOCK, %edi
	jne	1f
	movl	THREAD_NHELD(%r8), %edi
	cmpl	$THREAD_HELD_MAX, %edi
	je	quick_not_lock
	leaq	(%rdi,%rdi,2), %rdi
	leaq	(%r8,%rdi,8), %rdi
	cmpq	%rsi, THREAD_HELD(%rdi)	/* as the last time: stores are dear, see put_away() */
	jne	5f
	cmpq	%rdx, THREAD_HELD + 8(%rdi)
	jne	5f
	cmpq	$EVENT_LOCK, THREAD_HELD + 16(%rdi)
	je	6f
5:	movq	%rsi, THREAD_HELD(%rdi)
	movq	%rdx, THREAD_HELD + 8(%rdi)
	movq	$EVENT_LOCK, THREAD_HELD + 16(%rdi)
6:	incl	THREAD_NHELD(%r8)
	movl	$EVENT_LOCK, %edi
	jmp	2f
1:	cmpl	$EVENT_UNLOCK, %edi
	jne	quick_not_r9
	movl	THREAD_NHELD(%r8), %edi
	testl	%edi, %edi
	jz	quick_not_unlock
	leaq	(%rdi,%rdi,2), %rdi
	cmpq	%rsi, THREAD_HELD - 24(%r8,%rdi,8)
	jne	quick_not_unlock
	decl	THREAD_NHELD(%r8)
	movl	$EVENT_UNLOCK, %edi
2:	movq	%rdx, THREAD_LAST_SITE(%r8)
	incq	THREAD_NEVENTS(%r8)
	cmpq	THREAD_AGAIN_END(%r8), %rcx	/* the rest is rec_again() */
	jne	again_first
	movq	THREAD_AGAIN_AT(%r8), %r9
	cmpq	%rcx, %r9
	je	again_longer
3:	leal	1(%rax), %ecx
	movb	%cl, (%r9)
	incq	%r9
	movq	%r9, THREAD_AGAIN_AT(%r8)
4:	shll	$5, %eax
	movq	THREAD_NAMED + 16(%r8,%rax), %r9
	xorl	%ecx, %ecx
	movl	$-1, %r8d
/* As in tr_resume: a signal in here starts over. */
function tr_quick_leave
	cmpq	$0, %gs:CTX_PENDING
	jne	quick_pending
	movq	%gs:CTX_R11, %rax
	addb	$127, %al
	sahf
	movl	$0, %eax		/* the result; the flags stay */
	jmp	*%gs:CTX_RESUME
function tr_quick_leave_end
again_first:
	movq	%rcx, THREAD_AGAIN(%r8)
	movq	%r9, THREAD_POS(%r8)
	movq	%r9, THREAD_AGAIN_AT(%r8)
	movq	%r9, THREAD_AGAIN_END(%r8)
	movl	%eax, %r9d
	shlq	$16, %r9
	orq	$EVENT_AGAIN, %r9
	btsq	$35, %r9		/* its size is 8 */
	movq	%r9, (%rcx)		/* published by one store */
	jmp	4b
again_longer:
	addq	$8, THREAD_POS(%r8)
	addq	$8, THREAD_AGAIN_END(%r8)
	movq	THREAD_AGAIN(%r8), %rcx
	movq	(%rcx), %r9
	movw	$EVENT_AGAINS, %r9w
	rorq	$32, %r9
	addq	$8, %r9			/* to its size */
	rorq	$32, %r9
	movq	%r9, (%rcx)
	movq	THREAD_AGAIN_AT(%r8), %r9
	prefetchw 128(%r9)		/* as in order_end() */
	jmp	3b
quick_pending:
	movq	%xmm15, %gs:CTX_PTR
	movq	%rsp, %gs:CTX_REGS + 32
	movq	%gs:CTX_STACK, %rsp
	movq	%gs:CTX_R11, %rax
	addb	$127, %al
	sahf
	pushfq
	popq	%gs:CTX_FLAGS
	movq	$0, %gs:CTX_REGS + 0
	movq	%rcx, %gs:CTX_REGS + 8
	movq	%rdx, %gs:CTX_REGS + 16
	movq	%rsi, %gs:CTX_REGS + 48
	movq	%rdi, %gs:CTX_REGS + 56
	movq	%r8, %gs:CTX_REGS + 64
	movq	%r9, %gs:CTX_REGS + 72
	movq	%r10, %gs:CTX_REGS + 80
	movq	%r11, %gs:CTX_REGS + 88
	jmp	tr_event_leave
quick_not_lock:
	movl	$EVENT_LOCK, %edi
	jmp	quick_not_r9
quick_not_unlock:
	movl	$EVENT_UNLOCK, %edi
quick_not_r9:
	shll	$5, %eax
	movq	THREAD_NAMED + 16(%r8,%rax), %r9
quick_not:
	xorl	%ecx, %ecx
	movl	$-1, %r8d
event_in_full:
	movq	%xmm15, %gs:CTX_PTR
	movq	%rsp, %gs:CTX_REGS + 32
	movq	%gs:CTX_STACK, %rsp
	movq	%gs:CTX_R11, %rax
	addb	$127, %al
	sahf
	movq	%rcx, %gs:CTX_REGS + 8
	movq	%rdx, %gs:CTX_REGS + 16
	movq	%rsi, %gs:CTX_REGS + 48
	movq	%rdi, %gs:CTX_REGS + 56
	movq	%r8, %gs:CTX_REGS + 64
	movq	%r9, %gs:CTX_REGS + 72
	movq	%r10, %gs:CTX_REGS + 80
	movq	%r11, %gs:CTX_REGS + 88
	pushfq
	popq	%gs:CTX_FLAGS
	call	shim_event_native
	movq	%rax, %gs:CTX_REGS + 0
/* As in tr_resume: a signal in here starts over. */
function tr_event_leave
	movq	%gs:CTX_STACK, %rsp
	cmpq	$0, %gs:CTX_PENDING
	jne	1f
	load_pointer
	load_flags
	movq	%gs:CTX_REGS + 0, %rax
	movq	%gs:CTX_REGS + 8, %rcx
	movq	%gs:CTX_REGS + 16, %rdx
	movq	%gs:CTX_REGS + 48, %rsi
	movq	%gs:CTX_REGS + 56, %rdi
	movq	%gs:CTX_REGS + 64, %r8
	movq	%gs:CTX_REGS + 72, %r9
	movq	%gs:CTX_REGS + 80, %r10
	movq	%gs:CTX_REGS + 88, %r11
	movq	%gs:CTX_REGS + 32, %rsp
	jmp	*%gs:CTX_RESUME
function tr_event_leave_end
1:	movq	%rbx, %gs:CTX_REGS + 24
	movq	%rbp, %gs:CTX_REGS + 40
	movq	%r12, %gs:CTX_REGS + 96
	movq	%r13, %gs:CTX_REGS + 104
	movq	%r14, %gs:CTX_REGS + 112
	movq	%r15, %gs:CTX_REGS + 120
	movq	%gs:CTX_SELF, %rdi
	call	tr_event_next
	movq	%rax, %gs:CTX_PC
	jmp	tr_from_handler

/* End of a bucket's chain: rcx is the target, rcx and rdx are in the context. */
function tr_enter_indirect
	movq	%rcx, %gs:CTX_PC
	movq	%gs:CTX_RCX, %rcx
	movq	%gs:CTX_RDX, %rdx
	movq	$ENTRY_INDIRECT, %gs:CTX_KIND
enter:
	save_registers
	movq	%gs:CTX_STACK, %rsp
	pushfq
	popq	%gs:CTX_FLAGS
	cld
	store_pointer
	movq	%gs:CTX_SELF, %rdi
	call	tr_dispatch

/*
 * Into the cache. A signal that arrives in here finds nothing half done: the
 * handler sends us back to the top, where the pending flag is seen.
 */
function tr_resume
	movq	%gs:CTX_STACK, %rsp
	cmpq	$0, %gs:CTX_PENDING
	jne	tr_from_handler
	load_pointer
	load_flags
	load_registers
	jmp	*%gs:CTX_RESUME
function tr_resume_end

function tr_from_handler
	movq	%gs:CTX_STACK, %rsp
	cld
	movq	%gs:CTX_SELF, %rdi
	call	tr_deliver
	jmp	tr_resume

/* tr_start_here(ctx): returns to its caller, translated. */
function tr_start_here
	popq	%gs:CTX_PC
	movq	$ENTRY_START, %gs:CTX_KIND
	save_registers
	movq	%gs:CTX_STACK, %rsp
	pushfq
	popq	%gs:CTX_FLAGS
	cld
	movq	%gs:CTX_SELF, %rdi
	call	tr_started
	jmp	tr_resume

/* Where shim_event goes on when it is done: the application's ret. One for each place it is called from, see leave.c. */
function tr_event_ret
	.rept	EVENT_RETS
	ret
	.endr

/*
 * Somebody else holds the shard: let him run, try again. rdx is the shard and stays, rcx is
 * free; flags survive because syscall keeps them in r11.
 */
function tr_shard_spin
	movq	%rax, %gs:CTX_SPILL
	movq	%r11, %gs:CTX_R11
	pause
	movl	$SYS_sched_yield, %eax
	syscall
	movq	%gs:CTX_SPILL, %rax
	movq	%gs:CTX_R11, %r11
	jmp	*%gs:CTX_SPIN
function tr_shard_spin_end

/* tr_call_interruptible(ctx, nr, args): a signal between check and insn aborts the call. */
function tr_call_interruptible
	movq	%rsi, %rax
	movq	%rdx, %rcx
	movq	0(%rcx), %rdi
	movq	8(%rcx), %rsi
	movq	16(%rcx), %rdx
	movq	24(%rcx), %r10
	movq	32(%rcx), %r8
	movq	40(%rcx), %r9
function tr_call_check
	cmpq	$0, %gs:CTX_PENDING
	jne	tr_call_abort
function tr_call_insn
	syscall
	ret
function tr_call_abort
	movq	$NOT_STARTED, %rax
	ret

/* tr_set_gs(base) */
function tr_set_gs
	testb	$8, tr_features(%rip)
	jz	1f
	wrgsbase %rdi
	ret
1:	movq	%rdi, %rsi
	movl	$ARCH_SET_GS, %edi
	movl	$SYS_arch_prctl, %eax
	syscall
	ret

/* tr_clone(nr, args, child): returns in the parent only. */
function tr_clone
	movq	%rdi, %rax
	movq	%rsi, %rcx
	movq	%rdx, %r9
	movq	0(%rcx), %rdi
	movq	8(%rcx), %rsi
	movq	16(%rcx), %rdx
	movq	24(%rcx), %r10
	movq	32(%rcx), %r8
	syscall
	testq	%rax, %rax
	jz	1f
	ret
1:	testb	$8, tr_features(%rip)
	jz	2f
	wrgsbase %r9
	jmp	3f
2:	movq	%r9, %rsi
	movl	$ARCH_SET_GS, %edi
	movl	$SYS_arch_prctl, %eax
	syscall
3:	movq	%gs:CTX_STACK, %rsp
	movq	%gs:CTX_SELF, %rdi
	xorl	%ebp, %ebp
	call	tr_thread_main
	jmp	tr_resume

/* tr_exit_thread(status): the stack may be taken over as soon as the kernel says so. */
function tr_exit_thread
	movl	$SYS_exit, %eax
	syscall
	hlt

/* tr_sigreturn(frame) */
function tr_sigreturn
	movq	%rdi, %rsp
function tr_restorer
	movl	$SYS_rt_sigreturn, %eax
	syscall
	hlt

/* bool tr_copy(to, from, n): a fault inside lands on tr_copy_fault. */
function tr_copy
	movq	%rdx, %rcx
function tr_copy_begin
	rep movsb
function tr_copy_end
	movl	$1, %eax
	ret
function tr_copy_fault
	xorl	%eax, %eax
	ret

	.section .note.GNU-stack,"",@progbits
