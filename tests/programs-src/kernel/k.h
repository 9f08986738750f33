#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
static inline const char *ername(int e)
{
	static char b[4][40];
	static int n;
	char *p = b[n++ & 3];
	snprintf(p, 40, "%s", e ? strerrorname_np(e) : "0");
	return p;
}
#define SAY(...) (printf(__VA_ARGS__), putchar('\n'))
#define R(call)                                                                                    \
	({                                                                                         \
		errno = 0;                                                                         \
		long r_ = (long)(call);                                                            \
		printf("%s: %s%ld %s\n", #call, "", r_, ername(r_ == -1 ? errno : 0));             \
		r_;                                                                                \
	})
#define E_(call)                                                                                   \
	({                                                                                         \
		errno = 0;                                                                         \
		long r_ = (long)(call);                                                            \
		printf("%s: %s %s\n", #call, r_ == -1 ? "-1" : "ok",                               \
		       ername(r_ == -1 ? errno : 0));                                              \
		r_;                                                                                \
	})
static inline unsigned sum(const void *p, size_t n)
{
	const unsigned char *b = p;
	unsigned s = 5381;
	while (n--)
		s = s * 33 + *b++;
	return s;
}
