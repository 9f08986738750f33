/*
 * shim_event: a name for the translator to recognise. In sync mode it is just
 * the way to the native side; in path mode it is never executed as code.
 *
 * raw_clone_thread(flags, stack_top, fn, gone): a kernel thread of our own that
 * runs fn() on its own stack and ends; with CLONE_CHILD_CLEARTID the kernel
 * clears *gone when the stack is free again. Returns the tid, or a negated errno.
 */
	.text
	.globl	shim_event
	.hidden	shim_event
	.type	shim_event, @function
	.balign	16
shim_event:
	.cfi_startproc
	jmp	shim_event_native
	.cfi_endproc
	.size	shim_event, . - shim_event

	.globl	raw_clone_thread
	.hidden	raw_clone_thread
	.type	raw_clone_thread, @function
	.balign	16
raw_clone_thread:
	.cfi_startproc
	movq	%rdx, %r9
	movq	%rcx, %r10
	xorl	%edx, %edx
	xorl	%r8d, %r8d
	movl	$56, %eax		/* SYS_clone */
	syscall
	testq	%rax, %rax
	jz	1f
	ret
1:	.cfi_undefined rip
	xorl	%ebp, %ebp
	call	*%r9
	xorl	%edi, %edi
	movl	$60, %eax		/* SYS_exit */
	syscall
	hlt
	.cfi_endproc
	.size	raw_clone_thread, . - raw_clone_thread

/* void csched_at_failure(kind, regs): its arguments are still in registers wherever gdb stops in it. */
	.globl	csched_at_failure
	.type	csched_at_failure, @function
csched_at_failure:
	nop
	ret
	.size	csched_at_failure, . - csched_at_failure

	.section .note.GNU-stack,"",@progbits
