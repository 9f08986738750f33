#include "k.h"
#include <spawn.h>
#include <libgen.h>
extern char **environ;
static char self[4096];
static int w(pid_t p)
{
	int st;
	waitpid(p, &st, 0);
	return WIFEXITED(st) ? WEXITSTATUS(st) : 1000 + WTERMSIG(st);
}
#define C(...)                                                                                     \
	do {                                                                                       \
		fflush(stdout);                                                                    \
		pid_t p = fork();                                                                  \
		if (!p) {                                                                          \
			__VA_ARGS__;                                                               \
			SAY("failed %s", ername(errno));                                           \
			_exit(99);                                                                 \
		}                                                                                  \
		SAY("%s -> %d", #__VA_ARGS__ + 0, w(p));                                           \
	} while (0)
int main(int c, char **v)
{
	setbuf(stdout, 0);
	if (c > 1) {
		printf("child %s argc %d X=%s ", v[1], c, getenv("X") ?: "-");
		sigset_t s;
		sigprocmask(0, 0, &s);
		for (int i = 1; i < 65; i++) {
			if (sigismember(&s, i))
				printf("b%d ", i);
			struct sigaction a;
			if (!sigaction(i, 0, &a) && a.sa_handler == SIG_IGN)
				printf("i%d ", i);
		}
		printf("nice %d env %d pgrp %d\n", getpriority(0, 0), ({
			       int n = 0;
			       for (char **e = environ; *e; e++)
				       if (strncmp(*e, "LD_PRELOAD", 10) &&
					   strncmp(*e, "CSCHED", 6))
					       n++;
			       n < 5 ? n : -1;
		       }),
		       getpgrp() == getpid());
		return atoi(v[1]);
	}
	ssize_t n = readlink("/proc/self/exe", self, 4095);
	self[n] = 0;
	char *a[] = {"zero", "7", "b", 0};
	char *e[] = {"X=1", 0};
	char d[4096];
	strcpy(d, self);
	dirname(d);
	C(execv(self, a));
	C(execve(self, a, e));
	C(execl(self, "s", "8", (char *)0));
	C(execle(self, "s", "9", (char *)0, e));
	C(setenv("PATH", d, 1); execvp(basename(self), a));
	C(setenv("PATH", d, 1); execlp(basename(self), "q", "10", (char *)0));
	C(int f = open(self, O_RDONLY); fexecve(f, a, e));
	C(int f = open(self, O_RDONLY | O_CLOEXEC); execveat(f, "", a, e, AT_EMPTY_PATH));
	C(int f = open(d, O_PATH); execveat(f, basename(self), a, e, 0));
	C(char *em[] = {0}; execve(self, a, em));
	C(execve(self, a, 0));
	C(execve("/nonexistent", a, e));
	C(execve("/etc/passwd", a, e));
	C(execve("/tmp", a, e));
	C(execve((char *)8, a, e));
	C(execve(self, (char **)8, e));
	C(execve(self, a, (char **)8));
	C(char *s = malloc(200000); memset(s, 'a', 199999); s[199999] = 0;
	  char *big[] = {"x", "3", s, 0}; execve(self, big, e));
	C(signal(SIGUSR1, SIG_IGN); signal(SIGSEGV, SIG_IGN); sigset_t s; sigemptyset(&s);
	  sigaddset(&s, SIGTERM); sigaddset(&s, SIGILL); sigaddset(&s, 40); sigprocmask(0, &s, 0);
	  nice(3); setpgid(0, 0); execv(self, a));
	FILE *f = fopen("sc", "w");
	fprintf(f, "#!%s 11\n", self);
	fchmod(fileno(f), 0755);
	fclose(f);
	C(execl("./sc", "sc", "arg", (char *)0));
	f = fopen("sc2", "w");
	fprintf(f, "exit 12\n");
	fchmod(fileno(f), 0755);
	fclose(f);
	C(execl("./sc2", "sc2", (char *)0));
	C(execlp("./sc2", "sc2", (char *)0));
	pid_t p;
	posix_spawnattr_t at;
	posix_spawnattr_init(&at);
	sigset_t s;
	sigfillset(&s);
	posix_spawnattr_setsigmask(&at, &s);
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP |
					  POSIX_SPAWN_RESETIDS);
	posix_spawn_file_actions_t fa;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 5, "out", O_CREAT | O_WRONLY | O_TRUNC, 0600);
	posix_spawn_file_actions_adddup2(&fa, 5, 1);
	posix_spawn_file_actions_addclose(&fa, 5);
	SAY("%d", posix_spawn(&p, self, &fa, &at, a, e));
	SAY("%d", w(p));
	char b[300];
	int fd = open("out", 0);
	n = read(fd, b, 300);
	fwrite(b, 1, n, stdout);
	SAY("%d", posix_spawn(&p, "/nonexistent", 0, 0, a, e));
	SAY("%d", posix_spawnp(&p, "sh", 0, 0, (char *[]){"sh", "-c", "exit 21", 0}, environ));
	SAY("%d", w(p));
	SAY("%d", WEXITSTATUS(system("exit 5")));
	FILE *g = popen("echo hi; exit 3", "r");
	fgets(b, 300, g);
	SAY("%s %d", b, WEXITSTATUS(pclose(g)));
	p = vfork();
	if (!p) {
		execv(self, a);
		_exit(1);
	}
	SAY("%d", w(p));
	p = vfork();
	if (!p) {
		execv("/nonex", a);
		_exit(31);
	}
	SAY("%d", w(p));
	return 0;
}
