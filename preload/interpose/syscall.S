/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * syscall(): passed on with a jump, for it may return twice. Only the calls after which one of ours
 * could do harm are looked at before.
 */
#define SYS_prctl 157
#define SYS_ptrace 101
#define SYS_seccomp 317

	.text
	.globl	syscall
	.type	syscall, @function
	.balign	16
syscall:
	.cfi_startproc
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	pushq	%rcx
	.cfi_adjust_cfa_offset 8
	pushq	%r8
	.cfi_adjust_cfa_offset 8
	pushq	%r9
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	cmpq	$SYS_seccomp, %rdi
	je	1f
	cmpq	$SYS_prctl, %rdi
	je	1f
	cmpq	$SYS_ptrace, %rdi
	jne	2f
1:	call	silence_sync
2:	call	shim_real_syscall
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r9
	.cfi_adjust_cfa_offset -8
	popq	%r8
	.cfi_adjust_cfa_offset -8
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
	.cfi_endproc
	.size	syscall, . - syscall

	.section .note.GNU-stack,"",@progbits
