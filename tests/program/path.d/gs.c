/* A program that uses %gs for itself. */
#include <asm/prctl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	static unsigned long area[4] = { 11, 22, 33, 44 };
	unsigned long v, base = 1;

	syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
	syscall(SYS_arch_prctl, ARCH_SET_GS, area);
	__asm__ volatile("mov %%gs:8, %0" : "=r"(v));
	printf("%lu %lu\n", base, v);
	return 0;
}
