/* Unusual ways to end, and to live; each prints what it sees. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static sigjmp_buf env;
static pthread_key_t key;

static void say(const char *what)
{
	pthread_mutex_lock(&m);
	puts(what);
	pthread_mutex_unlock(&m);
}

static void *worker(void *arg)
{
	usleep(20000); /* the main thread is gone by now, or not: both must work */
	say("worker");
	return arg;
}

static void one_worker(void)
{
	pthread_t th;

	pthread_create(&th, NULL, worker, NULL);
	pthread_join(th, NULL);
}

static void main_exits_first(void)
{
	pthread_t th;

	pthread_create(&th, NULL, worker, NULL);
	pthread_exit(NULL);
}

static void on_quick(void) { say("at quick exit"); }
static void quick(void)
{
	at_quick_exit(on_quick);
	quick_exit(4);
}

static void on_exit_lock(void) { say("at exit"); }
static void at_exit(void)
{
	atexit(on_exit_lock);
	exit(6);
}

static void on_abort(int sig)
{
	(void)sig;
	say("abort handler");
	_exit(9);
}
static void handled_abort(void)
{
	signal(SIGABRT, on_abort);
	abort();
}

static void back(int sig) { siglongjmp(env, sig); }
static void many_faults(void)
{
	signal(SIGSEGV, back);
	for (volatile int i = 0; i < 300; i++)
		if (!sigsetjmp(env, 1))
			*(volatile int *)8 = 1;
	say("back from all faults");
}

static void raw_fork(void)
{
	int st = 0, pid = (int)syscall(SYS_fork);

	if (!pid) {
		say("child");
		_exit(3);
	}
	waitpid(pid, &st, 0);
	printf("raw fork %d\n", WEXITSTATUS(st));
}

static void on_key(void *arg)
{
	(void)arg;
	say("key destructor");
}
static void *with_key(void *arg)
{
	pthread_setspecific(key, &key);
	return arg;
}
static void keys(void)
{
	pthread_t th;

	pthread_key_create(&key, on_key);
	pthread_create(&th, NULL, with_key, NULL);
	pthread_join(th, NULL);
}

static void *quiet(void *arg)
{
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	return arg;
}
static void small_stacks(void)
{
	pthread_attr_t attr;
	pthread_t th;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	for (int i = 0; i < 20; i++) {
		pthread_create(&th, &attr, quiet, NULL);
		pthread_join(th, NULL);
	}
	say("small stacks");
}

static void close_all(void)
{
	for (int fd = 3; fd < 2000; fd++)
		close(fd);
	one_worker();
}

static void new_root(void)
{
	mkdir("jail", 0755);
	if (chroot("jail") || chdir("/"))
		puts("not allowed");
	one_worker();
}

static void become_daemon(void)
{
	if (daemon(1, 1))
		puts("cannot");
	say("daemon");
}

static const struct {
	const char *name;
	void (*fn)(void);
} ways[] = {
	{ "main-exits-first", main_exits_first }, { "quick", quick }, { "at-exit", at_exit },
	{ "handled-abort", handled_abort }, { "many-faults", many_faults },
	{ "raw-fork", raw_fork }, { "keys", keys }, { "small-stacks", small_stacks },
	{ "close-all", close_all }, { "new-root", new_root }, { "daemon", become_daemon },
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; argc > 1 && i < sizeof ways / sizeof ways[0]; i++)
		if (!strcmp(argv[1], ways[i].name))
			ways[i].fn();
	return 2;
}
