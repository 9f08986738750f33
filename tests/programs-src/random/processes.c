/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that are joined, children that are waited for, the process's own settings, and calls that
 * fail. */
#include "random.h"

#include <sched.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#define THREADS 3

struct worker {
	unsigned seed, rounds, seen;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long total;
static int turn;
static __thread unsigned mine;
static char turns[64];

static unsigned next(unsigned *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 16;
}

/* Only sums, and what nobody else touches. */
static void *work(void *arg)
{
	struct worker *w = arg;
	int p[2];
	char text[32];

	mine = w->seed;
	for (unsigned i = 0; i < w->rounds; i++) {
		switch (next(&w->seed) % 7) {
		case 0:
			pthread_mutex_lock(&mutex);
			total += i;
			pthread_mutex_unlock(&mutex);
			break;
		case 1:
			__atomic_fetch_add(&total, 3, __ATOMIC_SEQ_CST);
			break;
		case 2:
			pthread_rwlock_rdlock(&rwlock);
			w->seen += total >= 0;
			pthread_rwlock_unlock(&rwlock);
			break;
		case 3: {
			unsigned char *m = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			m[PAGE] = (unsigned char)w->seed;
			mprotect(m, PAGE, PROT_READ);
			w->seen += m[0] + m[PAGE];
			munmap(m, 2 * PAGE);
			break;
		}
		case 4:
			if (pipe(p))
				break;
			memset(text, 'a' + (int)(i % 20), sizeof text);
			if (write(p[1], text, 20) == 20 && read(p[0], text, 10) == 10)
				w->seen += checksum(text, sizeof text);
			close(p[0]);
			close(p[1]);
			break;
		case 5: {
			char *s = malloc(next(&w->seed) % 3000 + 1);

			*s = 1;
			w->seen += (unsigned char)*s;
			free(s);
			break;
		}
		case 6:
			sched_yield();
			break;
		}
	}
	mine += w->seen;
	w->seen = mine;
	return arg;
}

/* Two threads, each when it is its turn. */
static void *alternate(void *arg)
{
	int me = (int)(intptr_t)arg;

	for (int i = 0; i < 8; i++) {
		pthread_mutex_lock(&mutex);
		while (turn % 2 != me)
			pthread_cond_wait(&cond, &mutex);
		turns[turn++] = (char)('0' + me);
		pthread_cond_broadcast(&cond);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static pthread_mutex_t robust;

static void *dies(void *arg)
{
	pthread_mutex_lock(&robust);
	return arg;
}

static int pipe_to_cancel[2];

static void *cancelled(void *arg)
{
	char c;

	return read(pipe_to_cancel[0], &c, 1) > 0 ? arg : NULL;
}

static void several_threads(void)
{
	pthread_t t[THREADS];
	struct worker w[THREADS];
	unsigned n = 1 + rnd(THREADS);

	total = 0;
	for (unsigned i = 0; i < n; i++) {
		w[i] = (struct worker){rnd(100000), rnd(40), 0};
		pthread_create(&t[i], NULL, work, &w[i]);
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	for (unsigned i = 0; i < n; i++)
		say("worker %u", w[i].seen);
	say("total %ld", total);
}

void op_thread(void)
{
	pthread_mutexattr_t a;
	pthread_t t, u;
	sigset_t old;
	void *v;

	quiet_signals(&old); /* signals are the main thread's */
	switch (rnd(6)) {
	case 0:
	case 1:
	case 2:
		several_threads();
		break;
	case 3:
		turn = 0;
		pthread_create(&t, NULL, alternate, (void *)0);
		pthread_create(&u, NULL, alternate, (void *)1);
		pthread_join(t, NULL);
		pthread_join(u, NULL);
		say("%.16s", turns);
		break;
	case 4:
		pthread_mutexattr_init(&a);
		pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
		pthread_mutexattr_setprotocol(&a, chance(50) ? PTHREAD_PRIO_INHERIT
							     : PTHREAD_PRIO_NONE);
		pthread_mutex_init(&robust, &a);
		pthread_create(&t, NULL, dies, NULL);
		pthread_join(t, NULL);
		say("robust %d", pthread_mutex_lock(&robust));
		pthread_mutex_consistent(&robust);
		say("%d", pthread_mutex_unlock(&robust));
		break;
	case 5:
		if (pipe(pipe_to_cancel))
			_exit(3);
		pthread_create(&t, NULL, cancelled, NULL);
		pthread_cancel(t);
		pthread_join(t, &v);
		say("cancelled %d", v == PTHREAD_CANCELED);
		close(pipe_to_cancel[0]);
		close(pipe_to_cancel[1]);
		break;
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
}

extern char **environ;

void op_child(void)
{
	static int *shared;
	char *argv[] = {"true", NULL};
	siginfo_t info;
	struct rusage used;
	sigset_t old;
	int status = 0;
	pid_t p;

	if (!shared)
		shared =
		    mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fflush(stdout);
	quiet_signals(&old);
	switch (rnd(6)) {
	case 0:
	case 1:
		p = fork();
		if (!p) {
			for (unsigned n = 3 + rnd(20); n--;)
				chance(50) ? op_access() : op_file();
			shared[rnd(100)] = (int)rnd(1000);
			fflush(stdout);
			_exit((int)rnd(50));
		}
		DO(waitpid(p, &status, 0) == p);
		say("status %x shared %u", status, checksum(shared, 400));
		break;
	case 2:
		p = vfork();
		if (!p)
			_exit(9);
		DO(wait4(p, &status, 0, &used) == p);
		say("status %x", status);
		break;
	case 3:
		if (!posix_spawnp(&p, "true", NULL, NULL, argv, environ))
			waitpid(p, &status, 0);
		say("spawned %x", status);
		break;
	case 4:
		p = fork();
		if (!p)
			for (;;)
				pause();
		kill(p, chance(50) ? SIGKILL : 0);
		kill(p, SIGKILL);
		DO(waitid(P_PID, (id_t)p, &info, WEXITED));
		say("%d %d", info.si_code, info.si_status);
		break;
	case 5:
		p = fork();
		if (!p) {
			int sig = chance(50) ? SIGABRT : SIGALRM;
			struct rlimit none = {0, 0};
			sigset_t empty;

			setrlimit(RLIMIT_CORE, &none);
			sigemptyset(&empty);
			sigprocmask(SIG_SETMASK, &empty, NULL);
			raise(sig);
			_exit(1);
		}
		DO(waitpid(p, &status, 0) == p);
		say("status %x", status & 0x7f);
		break;
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
}

void op_misc(void)
{
	struct rlimit limit;
	struct timespec a, b;
	struct utsname u;
	char name[17] = "";
	mode_t mask;

	switch (rnd(10)) {
	case 0:
		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = 100 + rnd(50);
		DO(setrlimit(RLIMIT_NOFILE, &limit));
		getrlimit(RLIMIT_NOFILE, &limit);
		say("%ld", (long)limit.rlim_cur);
		break;
	case 1:
		snprintf(name, sizeof name, "name-%u", rnd(1000));
		DO(prctl(PR_SET_NAME, name));
		DO(prctl(PR_GET_NAME, name));
		say("%s", name);
		break;
	case 2:
		mask = umask(rnd(64));
		say("umask %o", mask);
		break;
	case 3:
		clock_gettime(CLOCK_MONOTONIC, &a);
		clock_gettime(CLOCK_MONOTONIC, &b);
		say("clock %d",
		    b.tv_sec > a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec >= a.tv_nsec));
		break;
	case 4:
		DO(uname(&u));
		break;
	case 5:
		say("%d", getpid() == gettid() && getppid() > 0);
		break;
	case 6:
		DO(syscall(SYS_getrandom, buffer, 1 + rnd(300), 0));
		memset(buffer, 0, 300);
		break;
	case 7:
		DO(nanosleep(&(struct timespec){0, rnd(1000)}, NULL));
		break;
	case 8: {
		struct iovec to = {buffer, 1 + rnd(200)}, from = {buffer + 500, 1 + rnd(200)};

		fill_random(buffer + 500, 200);
		DO(chance(50) ? process_vm_readv(getpid(), &to, 1, &from, 1, 0)
			      : process_vm_writev(getpid(), &from, 1, &to, 1, 0));
		say("%u", checksum(buffer, 300));
		break;
	}
	case 9: {
		FILE *f = tmpfile();

		fprintf(f, "%u\n", rnd(1000));
		rewind(f);
		say("%s", fgets(name, sizeof name, f) ? name : "?");
		fclose(f);
		break;
	}
	}
}

/* Addresses that are not there, numbers that mean nothing, and buffers that are there in part. */
void op_error(void)
{
	static unsigned char *edge; /* a page, and nothing behind it */
	int p[2];

	if (!edge) {
		edge = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
		mprotect(edge + PAGE, PAGE, PROT_NONE);
	}
	switch (rnd(14)) {
	case 0:
		DO(syscall(SYS_read, 0, 8, 10));
		break;
	case 1:
		DO(syscall(SYS_fstat, 1, 8));
		break;
	case 2:
		DO(syscall(SYS_pipe2, edge + PAGE - 4, 0));
		break;
	case 3:
		DO(syscall(SYS_getcwd, edge + PAGE - 2, 100));
		break;
	case 4:
		DO(syscall(SYS_newfstatat, AT_FDCWD, ".", edge + PAGE - 30, 0));
		break;
	case 5:
		DO(syscall(SYS_getrusage, 0, edge + PAGE - 20));
		break;
	case 6:
		DO(syscall(SYS_rt_sigaction, 10, 0, edge + PAGE - 8, 8));
		break;
	case 7:
		DO(syscall(SYS_rt_sigprocmask, 77, edge, edge, 8));
		break;
	case 8:
		DO(syscall(SYS_getrandom, edge + PAGE - 10, 30, 0));
		memset(edge + PAGE - 10, 0, 10);
		break;
	case 9:
		DO(syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, edge + PAGE - 3));
		break;
	case 10:
		DO(syscall(1000 + rnd(100)));
		break;
	case 11:
		DO(syscall(SYS_futex, edge, 1000, 0));
		break;
	case 12:
		DO(syscall(SYS_poll, edge + PAGE - 4, 2, 0));
		break;
	case 13:
		if (pipe(p))
			break;
		DO(write(p[1], "0123456789", 10));
		DO(syscall(SYS_read, p[0], edge + PAGE - 4, 10));
		say("%u", checksum(edge + PAGE - 4, 4));
		close(p[0]);
		close(p[1]);
		break;
	}
}
