#include "k.h"
#include <spawn.h>
extern char **environ;
int main(int argc, char **argv)
{
	if (argc > 1) {
		if (argv[1][0] == 'e') {
			printf("env %s arg %s fd9 %d cloexec %d umask %o\n",
			       getenv("KK") ? getenv("KK") : "-", argv[2], fcntl(9, F_GETFD),
			       fcntl(10, F_GETFD), umask(0));
			sigset_t m;
			sigprocmask(0, 0, &m);
			struct sigaction a;
			sigaction(SIGUSR2, 0, &a);
			SAY("mask %d ign %d", sigismember(&m, SIGUSR1), a.sa_handler == SIG_IGN);
			return 5;
		}
		if (argv[1][0] == 'k')
			raise(SIGKILL);
		abort();
	}
	setbuf(stdout, 0);
	umask(027);
	int fd = open("/dev/null", O_RDONLY);
	dup2(fd, 9);
	dup3(fd, 10, O_CLOEXEC);
	pid_t p;
	posix_spawnattr_t at;
	posix_spawnattr_init(&at);
	sigset_t m;
	sigemptyset(&m);
	sigaddset(&m, SIGUSR1);
	posix_spawnattr_setsigmask(&at, &m);
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	signal(SIGUSR2, SIG_IGN);
	setenv("KK", "vv", 1);
	char *av[] = {argv[0], "e", "x", 0};
	int st;
	int r = posix_spawn(&p, "/proc/self/exe", 0, &at, av, environ);
	waitpid(p, &st, 0);
	SAY("%d", r);
	SAY("%x", st);
	posix_spawn_file_actions_t fa;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, 9, 11);
	posix_spawn_file_actions_addclose(&fa, 9);
	r = posix_spawnp(&p, argv[0], &fa, 0, av, environ);
	waitpid(p, &st, 0);
	SAY("%d", r);
	SAY("%x", st);
	R(posix_spawn(&p, "/no/such", 0, 0, av, environ));
	R(posix_spawnp(&p, "no-such-program", 0, 0, av, environ));
	if (!(p = vfork())) {
		execl(argv[0], argv[0], "k", (char *)0);
		_exit(9);
	}
	siginfo_t si;
	struct rusage ru;
	R(waitid(P_PID, p, &si, WEXITED | WNOWAIT));
	SAY("%d %d %d", si.si_code, si.si_status, si.si_pid == p);
	R(syscall(SYS_waitid, P_PID, p, &si, WEXITED, &ru));
	SAY("%d", ru.ru_maxrss > 0);
	R(waitid(P_PID, p, &si, WEXITED));
	if (!(p = vfork()))
		_exit(44);
	R(wait4(p, &st, 0, &ru) == p);
	SAY("%x", st);
	if (!(p = fork())) {
		execl("/no/such/thing", "x", (char *)0);
		_exit(errno);
	}
	R(wait(&st) == p);
	SAY("%x", st);
	/* The child ends only once its parent has seen it continued: else the wait may see the end instead. */
	int seen[2];
	pipe2(seen, O_CLOEXEC);
	if (!(p = fork())) {
		char c;
		raise(SIGSTOP);
		read(seen[0], &c, 1);
		_exit(2);
	}
	R(waitpid(p, &st, WUNTRACED) == p);
	SAY("%x", st);
	kill(p, SIGCONT);
	R(waitpid(p, &st, WCONTINUED) == p);
	SAY("%x", st);
	write(seen[1], "", 1);
	close(seen[0]);
	close(seen[1]);
	R(waitpid(p, &st, 0) == p);
	SAY("%x", st);
	memset(&si, 0, sizeof si);
	R(waitid(P_ALL, 0, &si, WEXITED | WNOHANG));
	FILE *f = popen("echo from popen; exit 3", "r");
	char b[64];
	fgets(b, 64, f);
	SAY("%s %x", b, pclose(f));
	SAY("%x", system("exit 7"));
	SAY("%x", system("kill -TERM $$"));
	if (!(p = fork())) {
		char *e[] = {"KK=only", 0};
		char *a2[] = {"q", "e", "y", 0};
		int x = open(argv[0], O_RDONLY | O_CLOEXEC);
		syscall(SYS_execveat, x, "", a2, e, AT_EMPTY_PATH);
		_exit(errno);
	}
	waitpid(p, &st, 0);
	SAY("%x", st);
	if (!(p = fork())) {
		close(0);
		close(2);
		char *a3[] = {"z", "e", "w", 0};
		execv(argv[0], a3);
	}
	waitpid(p, &st, 0);
	SAY("%x", st);
	return 0;
}
