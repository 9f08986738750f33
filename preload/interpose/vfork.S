/*
 * vfork returns twice on one stack: the child may overwrite the frame of
 * whoever called it, so this one must be gone before the real function runs.
 */
	.text
	.globl	vfork
	.type	vfork, @function
	.balign	16
vfork:
	.cfi_startproc
	movq	(%rsp), %rdi
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	shim_vfork_begin
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
	.cfi_endproc
	.size	vfork, . - vfork

	.section .note.GNU-stack,"",@progbits
