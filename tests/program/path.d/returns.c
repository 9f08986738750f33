/*
 * Functions that write to where they return to, each in another way, and now and then really return elsewhere: in a
 * loop that is hot enough for calls to be followed into them. Between them functions that leave the slot alone.
 */
#include <stdint.h>
#include <stdio.h>

/* In: rdi where to return to, rsi how far that is from behind the call. */
__asm__(".text\n"
	"slot:      mov %rdi, (%rsp); ret\n"
	"low_half:  mov %edi, (%rsp); ret\n"
	"low_byte:  mov %dil, (%rsp); ret\n"
	"above:     push %rbx; mov %rdi, 8(%rsp); pop %rbx; ret\n"
	"frame:     sub $136, %rsp; mov %rdi, 136(%rsp); add $136, %rsp; ret\n"
	"by_lea:    lea -24(%rsp), %rsp; mov %rdi, 24(%rsp); lea 24(%rsp), %rsp; ret\n"
	"pointer:   lea (%rsp), %rax; mov %rdi, (%rax); ret\n"
	"indexed:   mov $-8, %rax; mov %rdi, 8(%rsp,%rax); ret\n"
	"base:      push %rbp; mov %rsp, %rbp; mov %rdi, 8(%rbp); pop %rbp; ret\n"
	"leaving:   push %rbp; mov %rsp, %rbp; sub $32, %rsp; mov %rdi, 40(%rsp); leave; ret\n"
	"popped:    pop %rax; push %rdi; ret\n"
	"dropped:   add $8, %rsp; push %rdi; ret\n"
	"pop_slot:  push %rdi; pop (%rsp); ret\n"
	"another:   push %rdi; ret $8\n"
	"thunk:     pop %rax; call 1f; 1: mov %rdi, (%rsp); ret\n"
	"inside:    call 1f; mov %rdi, (%rsp); ret; 1: ret\n"
	"elsewhere: lea stack_end(%rip), %rsp; push %rdi; ret\n"
	"moved:     mov %rsp, %rax; sub $64, %rax; mov %rdi, (%rax); mov %rax, %rsp; ret\n"
	"swapped:   xchg %rdi, (%rsp); ret\n"
	"added:     add %rsi, (%rsp); ret\n"
	"inverted:  add %rsi, (%rsp); notq (%rsp); notq (%rsp); ret\n"
	"compared:  mov (%rsp), %rax; cmpxchg %rdi, (%rsp); ret\n"
	"string:    mov %rdi, %rax; mov %rsp, %rdi; mov $1, %ecx; rep stosq; ret\n"
	"streamed:  movnti %rdi, (%rsp); ret\n"
	"vector:    movq %rdi, %xmm0; movq %xmm0, (%rsp); ret\n"
	"wide:      movq %rdi, %xmm0; pslldq $8, %xmm0; movdqu %xmm0, -8(%rsp); ret\n"
	"doubled:   movq %rdi, %xmm0; movlpd %xmm0, (%rsp); ret\n"
	/* These return behind their call. */
	"quiet:     ret\n"
	"reader:    mov (%rsp), %rax; cmp %rax, %rdi; movdqu -16(%rsp), %xmm1; ret\n"
	"beside:    sub $40, %rsp; mov %rdi, 32(%rsp); mov %rdi, (%rsp); movdqu %xmm0, 16(%rsp); add $40, %rsp; ret\n"
	"red_zone:  mov %rdi, -8(%rsp); push %rbx; push %rdi; mov %rsi, %rbx; pop %rax; pop %rbx; ret\n"
	"deeper:    call quiet; call beside; push %rax; call reader; pop %rax; ret\n"
	"argument:  ret $0\n"
	".bss\n .balign 16\n .skip 4096\n stack_end: .skip 64\n .text\n");

#define WAYS(X)                                                                                                    \
	X(slot) X(low_half) X(low_byte) X(above) X(frame) X(by_lea) X(pointer) X(indexed) X(base) X(leaving)       \
	X(popped) X(dropped) X(pop_slot) X(another) X(thunk) X(inside) X(elsewhere) X(moved) X(swapped) X(added)    \
	X(inverted) X(compared) X(string) X(streamed) X(vector) X(wide) X(doubled)                                \
	X(quiet) X(reader) X(beside) X(red_zone) X(deeper) X(argument)

/* try_NAME(away): 1 when it came back right behind its call, 0 when four bytes further, as `away` (0, 1) asked for. */
#define TRY(name)                                                                                                  \
	uint64_t try_##name(uint64_t away);                                                                        \
	__asm__(".text\n .balign 64\n try_" #name ": push %r12; push %r13; mov %rsp, %r12; xor %r13d, %r13d\n"      \
		"lea (,%rdi,4), %rsi; lea 2f(%rip), %rdi; add %rsi, %rdi; call " #name "\n"                         \
		"2: add $1, %r13; mov %r12, %rsp; mov %r13, %rax; pop %r13; pop %r12; ret\n");
WAYS(TRY)

int main(void)
{
	static uint64_t came[64];

	for (unsigned i = 0; i < 100000; i++) {
		uint64_t away = i % 97 == 5, *c = came;

#define COUNT(name) *c++ += try_##name(away);
		WAYS(COUNT)
	}
	unsigned n = 0;
#define SAY(name) printf("%s %lu\n", #name, came[n++]);
	WAYS(SAY)
	return 0;
}
