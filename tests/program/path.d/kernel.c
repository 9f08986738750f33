/*
 * What is asked of the kernel without libc: kernel stack|threads|tid|dispatch|piece|ring|aio|large|often. Says
 * what it saw; exits with 77 where the kernel refuses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int on_my_own(void *arg)
{
	char here;
	uintptr_t stack = (uintptr_t)arg, at = (uintptr_t)&here;

	printf("child on its own stack: %d\n", at >= stack && at < stack + 65536);
	fflush(stdout);
	return 7;
}

/* clone() as libc has it, without CLONE_VM: a process of its own on a stack of its own. */
static int stack(void)
{
	char *own = malloc(65536);
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = clone(on_my_own, own + 65536, SIGCHLD, own);
	waitpid(pid, &status, 0);
	printf("ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
	return 0;
}

static void *say_tid(void *arg)
{
	*(long *)arg = syscall(SYS_gettid);
	return NULL;
}

static int threads(void)
{
	pthread_t t[3];
	long tid[3];

	printf("%ld", (long)syscall(SYS_gettid));
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, say_tid, &tid[i]);
	for (int i = 0; i < 3; i++) {
		pthread_join(t[i], NULL);
		printf(" %ld", tid[i]);
	}
	printf("\n");
	return 0;
}

/* Takes the word that joiners wait for away from the kernel, and gives it back. */
static void *asks(void *arg)
{
	int *word = NULL;

	if (prctl(PR_GET_TID_ADDRESS, &word) || !word)
		return arg;
	syscall(SYS_set_tid_address, NULL);
	*(int *)arg = *word == syscall(SYS_gettid);
	syscall(SYS_set_tid_address, word);
	return NULL;
}

static int tid(void)
{
	void *refused;
	pthread_t t;
	int right = 0;

	pthread_create(&t, NULL, asks, &right);
	pthread_join(t, &refused);
	printf("the word holds the tid: %d\n", right);
	return refused ? 77 : 0;
}

static volatile char selector;
static volatile int caught;

static void on_call(int sig, siginfo_t *si, void *uc)
{
	(void)sig, (void)uc;
	selector = SYSCALL_DISPATCH_FILTER_ALLOW;
	caught = si->si_syscall;
}

/* Catches its own system calls. */
static int dispatch(void)
{
	struct sigaction sa = { .sa_sigaction = on_call, .sa_flags = SA_SIGINFO };

	sigaction(SIGSYS, &sa, NULL);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector))
		return 77;
	selector = SYSCALL_DISPATCH_FILTER_BLOCK;
	syscall(SYS_getppid);
	printf("caught %d\n", caught);
	return 0;
}

/* An object file, as linkers read them, that is gone soon. */
static int object(void)
{
	unsigned char bytes[4096] = "\177ELF\2\1\1";
	int fd = fileno(tmpfile());

	bytes[16] = 1; /* ET_REL */
	for (unsigned i = 32; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i * i >> 3);
	if (write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes)
		exit(1);
	return fd;
}

/* Looks into pieces of its own file, a second one below the first, and into an object file. */
static int piece(void)
{
	int fd = open("/proc/self/exe", O_RDONLY), other = object();
	unsigned sum = 0;

	for (int i = 0; i < 3; i++) {
		unsigned char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, i < 2 ? fd : other,
					i < 2 ? 4096 * (i + 1) : 0);

		for (int k = 0; p != MAP_FAILED && k < 4096; k++)
			if (p[k] & 1)
				sum = sum * 31 + p[k];
	}
	printf("%u\n", sum);
	return 0;
}

static int ring(void)
{
	struct io_uring_params p;

	for (int i = 0; i < 2; i++) {
		memset(&p, 0, sizeof p);
		if (syscall(SYS_io_uring_setup, 4, &p) < 0)
			return 77;
	}
	printf("%u entries\n", p.sq_entries);
	return 0;
}

static int aio(void)
{
	aio_context_t ctx = 0;
	char text[] = "written\n";
	struct iocb b = { .aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = 1,
			  .aio_buf = (uint64_t)text, .aio_nbytes = sizeof text - 1 }, *list = &b;
	struct io_event e;

	if (syscall(SYS_io_setup, 4, &ctx) < 0)
		return 77;
	for (int i = 0; i < 2; i++) {
		if (syscall(SYS_io_submit, ctx, 1, &list) != 1)
			return 77;
		syscall(SYS_io_getevents, ctx, 1, 1, &e, NULL);
	}
	return 0;
}

/* Reads much in one call, and little in between. */
static uint32_t read_it(int fd, uint32_t *into, size_t size)
{
	uint32_t sum = 0;

	if (pread(fd, into, size, 0) != (ssize_t)size || pread(fd, into, 16, 4096) != 16)
		exit(1);
	for (size_t i = 0; i < size / sizeof *into; i++)
		sum = sum * 31 + into[i];
	return sum;
}

static const size_t sizes[] = { 3u << 20, 300000, 100, 262144, 262016, (3u << 20) - 7 };
static uint32_t *memory;

static int numbers(void)
{
	FILE *f = tmpfile();

	for (uint32_t i = 0; i < sizes[0] / 4; i++)
		memory[i] = i * 2654435761u;
	if (!f || write(fileno(f), memory, sizes[0]) != (ssize_t)sizes[0])
		exit(1);
	return fileno(f);
}

static int large(void)
{
	memory = malloc(sizes[0]);
	int fd = numbers();

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		printf("%u\n", read_it(fd, memory, sizes[i]));
	return 0;
}

/* Until it is killed. */
static int often(void)
{
	memory = malloc(sizes[0]);
	int fd = numbers();

	for (int i = 0; i < 3000; i++)
		read_it(fd, memory, sizes[1]);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} ways[] = { { "stack", stack }, { "threads", threads }, { "tid", tid },
		    { "dispatch", dispatch }, { "piece", piece }, { "ring", ring }, { "aio", aio },
		     { "large", large }, { "often", often } };

	for (unsigned i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++)
		if (!strcmp(argv[1], ways[i].name))
			return ways[i].run();
	return 2;
}
