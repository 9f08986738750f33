/*
 * -DLIBRARY: a function that reads data of its own module, into every register, by every kind of load; it ends up in
 * fragments that begin in the program, too far away for displacements. Else the program that calls it, often.
 */
#include <stdint.h>
#include <stdio.h>

uint64_t far_low(uint64_t from);
uint64_t far_high(uint64_t from);

#ifdef LIBRARY
/* The sum is kept below the stack pointer: no register is spared. */
#define ADD(r64) "add %" #r64 ", -8(%rsp)\n"
#define LOADS(r64, r32)                                                                                    \
	"rolq $7, -8(%rsp); mov far_data(%rip), %" #r64 "\n" ADD(r64) "mov far_data+4(%rip), %" #r32 "\n" ADD(r64) \
	"movzbl far_data+7(%rip), %" #r32 "\n" ADD(r64) "movzwl far_data+6(%rip), %" #r32 "\n" ADD(r64)      \
	"movsbq far_data+7(%rip), %" #r64 "\n" ADD(r64) "movswl far_data+6(%rip), %" #r32 "\n" ADD(r64)      \
	"movslq far_data+4(%rip), %" #r64 "\n" ADD(r64) "lea far_data+3(%rip), %" #r64 "\n"                  \
	"and $0xfff, %" #r32 "\n" ADD(r64)

__asm__(".text\n .globl far_low, far_high\n .type far_low, @function\n .type far_high, @function\n"
	"far_low: push %rbx; push %rbp; mov %rdi, -8(%rsp)\n"
	LOADS(rax, eax) LOADS(rcx, ecx) LOADS(rdx, edx) LOADS(rbx, ebx) LOADS(rbp, ebp) LOADS(rsi, esi) LOADS(rdi, edi)
	"mov -8(%rsp), %rax; pop %rbp; pop %rbx; ret\n"
	"far_high: push %r12; push %r13; push %r14; push %r15; mov %rdi, -8(%rsp)\n"
	LOADS(r8, r8d) LOADS(r9, r9d) LOADS(r10, r10d) LOADS(r11, r11d) LOADS(r12, r12d) LOADS(r13, r13d)
	LOADS(r14, r14d) LOADS(r15, r15d)
	"mov -8(%rsp), %rax; pop %r15; pop %r14; pop %r13; pop %r12; ret\n"
	".data\n .balign 8\n far_data: .quad 0x89abcdef01234567\n .text\n");
#else
int main(void)
{
	uint64_t sum = 1;

	for (unsigned i = 0; i < 250000; i++)
		sum = far_low(sum + i) ^ far_high(i);
	printf("%lx\n", sum);
	return 0;
}
#endif
