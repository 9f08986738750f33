/* fork, vfork, exec, posix_spawn, system, popen, daemon-like double fork; prints what it sees. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static int status_of(pid_t pid)
{
	int st = -1;

	waitpid(pid, &st, 0);
	return WIFEXITED(st) ? WEXITSTATUS(st) : 1000 + WTERMSIG(st);
}

static void *worker(void *arg)
{
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
	return arg;
}

static void prepare(void)
{
	pthread_mutex_lock(&m);
}

static void release(void)
{
	pthread_mutex_unlock(&m);
}

int main(void)
{
	char *args[] = { "sh", "-c", "echo spawned; exit 9", NULL };
	pthread_t th;
	char line[64];
	pid_t pid;

	setvbuf(stdout, NULL, _IONBF, 0);
	pthread_atfork(prepare, release, release);
	if (!(pid = fork()))
		_exit(4);
	printf("fork %d\n", status_of(pid));
	if (!(pid = fork())) { /* a child with threads of its own */
		pthread_create(&th, NULL, worker, NULL);
		pthread_join(th, NULL);
		exit(5);
	}
	printf("fork with threads %d\n", status_of(pid));
	if (!(pid = fork())) {
		execl("/nonexistent", "nonexistent", (char *)NULL);
		pthread_mutex_lock(&m); /* goes on after a failed exec */
		pthread_mutex_unlock(&m);
		_exit(errno == ENOENT ? 6 : 1);
	}
	printf("failed exec %d\n", status_of(pid));
	if (!(pid = fork())) {
		execlp("sh", "sh", "-c", "exit 8", (char *)NULL);
		_exit(127);
	}
	printf("exec %d\n", status_of(pid));
	if (!(pid = vfork())) {
		execve("/bin/sh", args, environ);
		_exit(127);
	}
	printf("vfork %d\n", status_of(pid));
	if (!(pid = vfork()))
		_exit(11);
	printf("vfork exit %d\n", status_of(pid));
	posix_spawn(&pid, "/bin/sh", NULL, NULL, args, environ);
	printf("spawn %d\n", status_of(pid));
	posix_spawnp(&pid, "sh", NULL, NULL, args, environ);
	printf("spawnp %d\n", status_of(pid));
	printf("system %d\n", WEXITSTATUS(system("exit 12")));
	FILE *p = popen("echo from a pipe; exit 13", "r");
	printf("popen %s", fgets(line, sizeof line, p) ? line : "nothing\n");
	printf("pclose %d\n", WEXITSTATUS(pclose(p)));
	if (!(pid = fork())) {
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
	printf("killed %d\n", status_of(pid));
	return 14;
}
