/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * _Unwind_RaiseException(): passed on with a jump, so that the unwinder finds the program's frames where it looks for
 * them. What is raised is looked at first: a Rust panic is noted.
 */
	.text
	.globl	_Unwind_RaiseException
	.type	_Unwind_RaiseException, @function
	.balign	16
_Unwind_RaiseException:
	.cfi_startproc
	movq	(%rsp), %rsi
	movq	%rsp, %rdx
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	call	shim_raised
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testq	%rax, %rax
	je	1f
	jmp	*%rax
1:	movl	$3, %eax /* _URC_FATAL_PHASE1_ERROR: the caller terminates */
	ret
	.cfi_endproc
	.size	_Unwind_RaiseException, . - _Unwind_RaiseException

	.section .note.GNU-stack,"",@progbits
