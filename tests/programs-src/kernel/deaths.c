#include "k.h"
#include <sys/prctl.h>
static int deep(int n)
{
	volatile char b[1000];
	b[0] = n;
	return deep(n + 1) + b[0];
}
int main(int argc, char **argv)
{
	setbuf(stdout, 0);
	struct rlimit nc = {0, 0};
	setrlimit(RLIMIT_CORE, &nc);
	for (int k = 0; k < 16; k++) {
		pid_t p = fork();
		if (!p) {
			switch (k) {
			case 0:
				raise(SIGINT);
			case 1:
				kill(getpid(), SIGTERM);
			case 2: {
				struct rlimit l = {100, 100};
				setrlimit(RLIMIT_FSIZE, &l);
				int f = open("deaths.tmp", O_CREAT | O_WRONLY | O_TRUNC, 0600);
				char b[200];
				int w = write(f, b, 200);
				SAY("short %d", w);
				write(f, b, 1);
				break;
			}
			case 3:
				__asm__ volatile("int3");
				break;
			case 4:
				__asm__ volatile("ud2");
			case 5:
				__asm__ volatile("hlt");
			case 6:
				deep(0);
			case 7: {
				struct rlimit l = {1, 1};
				setrlimit(RLIMIT_CPU, &l);
				for (;;)
					;
			}
			case 8:
				abort();
			case 9: {
				int q[2];
				pipe(q);
				close(q[0]);
				write(q[1], "x", 1);
				break;
			}
			case 10:
				raise(SIGUSR1);
			case 11:
				*(volatile int *)0 = 1;
			case 12:
				((void (*)(void))0x10)();
			case 13:
				alarm(1);
				pause();
			case 14:
				__asm__ volatile("pushf\n orl $0x100, (%%rsp)\n popf\n nop\n nop" ::
						     : "memory", "cc");
				break;
			case 15: {
				volatile int z = 0;
				_exit(5 / z);
			}
			}
			_exit(99);
		}
		int s;
		waitpid(p, &s, 0);
		SAY("%d: %x", k, s);
	}
	unlink("deaths.tmp");
	return 0;
}
