/* Processes: fork, exec, spawn, and every way to end. */
#include "preload/interpose/real.h"
#include "preload/signals.h"
#include "preload/silence.h"
#include "preload/suit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

extern char **environ;

EXPORT pid_t fork(void)
{
	if (!real_on())
		return REAL(fork)();
	BEGIN(TRC_OP_FORK, NULL, 0);
	pid_t pid = REAL(fork)();

	/* In the child this is where the shim notices, unless an atfork handler was first. */
	DONE(TRC_OP_FORK, NULL, pid, 0);
	return pid;
}

EXPORT pid_t _Fork(void)
{
	if (!real_on())
		return REAL(_Fork)();
	BEGIN(TRC_OP_FORK, NULL, 0);
	pid_t pid = REAL(_Fork)();

	DONE(TRC_OP_FORK, NULL, pid, 0);
	return pid;
}

/* libc's would fork and _exit without anybody noticing. */
EXPORT int daemon(int nochdir, int noclose)
{
	pid_t pid = fork();

	if (pid < 0)
		return -1;
	if (pid > 0)
		_exit(0);
	if (setsid() < 0)
		return -1;
	if (!nochdir && chdir("/") < 0) {
		/* as in libc: not an error */
	}
	if (noclose)
		return 0;
	int fd = open("/dev/null", O_RDWR);

	if (fd < 0)
		return -1;
	for (int i = 0; i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
	return 0;
}

/* Called from vfork.S, whose frame must be gone when the real one runs. */
void *shim_vfork_begin(uint64_t site)
{
	if (real_on())
		event(TRC_OP_VFORK, TRC_AT_BEGIN, NULL, site, 0, 0);
	return (void *)REAL(vfork);
}

EXPORT long ptrace(enum __ptrace_request request, ...)
{
	void *arg[3];
	va_list ap;

	va_start(ap, request);
	for (int i = 0; i < 3; i++)
		arg[i] = va_arg(ap, void *);
	va_end(ap);
	silence_sync(SYS_ptrace, request, 0, 0);
	return REAL(ptrace)(request, (pid_t)(long)arg[0], arg[1], arg[2]);
}

/* Called from syscall.S. */
void *shim_real_syscall(void)
{
	return (void *)REAL(syscall);
}

/* ---- exec ---- */

/* Where execvp() will find it; the name itself when it has a slash in it, or cannot be found. */
static const char *found(const char *file, char *buf, size_t size)
{
	const char *path = getenv("PATH");
	bool slash = false;
	char c = 1;

	for (const char *p = file; raw_peek(&c, (uint64_t)p, 1) && c; p++)
		slash |= c == '/';
	if (c) /* no name at all: that is the kernel's to say */
		return file;
	while (!slash && path && *path) {
		struct raw_text t = { buf, 0, size };
		size_t n = 0;

		while (path[n] && path[n] != ':')
			n++;
		text_strn(&t, path, n);
		text_str(&t, n ? "/" : "");
		text_str(&t, file);
		if (!raw(SYS_faccessat, AT_FDCWD, buf, X_OK))
			return buf;
		path += n + (path[n] == ':');
	}
	return file;
}

/* Sync mode; in path mode this is done at the system call. */
static char *const *suited(const char *file, char *const *envp, struct suit *mem)
{
	char buf[4096];

	mem->at = NULL;
	return signals_active() ? suit_environment(AT_FDCWD, found(file, buf, sizeof buf), envp, mem) : envp;
}

#define EXEC(path, call)                                          \
	do {                                                      \
		if (real_on())                                    \
			BEGIN(TRC_OP_EXEC, path, 0);              \
		if (signals_active())                             \
			signals_exec(true);                       \
		struct suit suit_;                                \
		int exec_ret_ = call;                             \
                                                                  \
		suit_end(&suit_);                                 \
                                                                  \
		if (signals_active())                             \
			signals_exec(false);                      \
		if (real_on())                                    \
			DONE(TRC_OP_EXEC, path, errno, 0);        \
		return exec_ret_;                                 \
	} while (0)

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	EXEC(path, REAL(execve)(path, argv, suited(path, envp, &suit_)));
}

EXPORT int execv(const char *path, char *const argv[])
{
	EXEC(path, REAL(execve)(path, argv, suited(path, environ, &suit_)));
}

EXPORT int execvp(const char *file, char *const argv[])
{
	EXEC(file, REAL(execvpe)(file, argv, suited(file, environ, &suit_)));
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	EXEC(file, REAL(execvpe)(file, argv, suited(file, envp, &suit_)));
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	EXEC("(descriptor)", (suit_.at = NULL, REAL(fexecve)(fd, argv, envp)));
}

EXPORT int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
	EXEC(path, (suit_.at = NULL, REAL(execveat)(fd, path, argv, envp, flags)));
}

/* The variadic ones: arguments up to NULL as an array on the stack. */
#define COLLECT(first, argv)                                   \
	va_list ap;                                            \
	size_t argc = 1;                                       \
                                                               \
	va_start(ap, first);                                   \
	while (va_arg(ap, char *))                             \
		argc++;                                        \
	va_end(ap);                                            \
	char *argv[argc + 1];                                  \
                                                               \
	argv[0] = (char *)(first);                             \
	va_start(ap, first);                                   \
	for (size_t i = 1; i <= argc; i++)                     \
		argv[i] = va_arg(ap, char *)

EXPORT int execl(const char *path, const char *arg, ...)
{
	COLLECT(arg, argv);
	va_end(ap);
	EXEC(path, REAL(execve)(path, argv, suited(path, environ, &suit_)));
}

EXPORT int execlp(const char *file, const char *arg, ...)
{
	COLLECT(arg, argv);
	va_end(ap);
	EXEC(file, REAL(execvpe)(file, argv, suited(file, environ, &suit_)));
}

EXPORT int execle(const char *path, const char *arg, ...)
{
	COLLECT(arg, argv);
	char **envp = va_arg(ap, char **);

	va_end(ap);
	EXEC(path, REAL(execve)(path, argv, suited(path, envp, &suit_)));
}

/* ---- spawn ---- */

#define SPAWN(name)                                                                           \
	EXPORT int name(pid_t *pid, const char *path, const posix_spawn_file_actions_t *acts, \
			const posix_spawnattr_t *attr, char *const argv[], char *const envp[]) \
	{                                                                                     \
		pid_t child = 0;                                                              \
                                                                                              \
		if (!real_on())                                                               \
			return REAL(name)(pid, path, acts, attr, argv, envp);                 \
		BEGIN(TRC_OP_SPAWN, path, 0);                                                 \
		if (signals_active())                                                         \
			signals_exec(true);                                                   \
		struct suit suit;                                                             \
		int err = REAL(name)(&child, path, acts, attr, argv, suited(path, envp, &suit)); \
                                                                                              \
		suit_end(&suit);                                                              \
                                                                                              \
		if (signals_active())                                                         \
			signals_exec(false);                                                  \
                                                                                              \
		if (!err && pid)                                                              \
			*pid = child;                                                         \
		return (int)DONE(TRC_OP_SPAWN, path, err, (uint64_t)child);                   \
	}

SPAWN(posix_spawn)
SPAWN(posix_spawnp)

/* ---- ends ---- */

EXPORT void exit(int status)
{
	if (real_on())
		BEGIN(TRC_OP_PROCESS_EXIT, NULL, (uint64_t)(unsigned)status);
	REAL(exit)(status);
	__builtin_unreachable();
}

EXPORT void _exit(int status)
{
	if (real_on())
		DONE(TRC_OP_PROCESS_EXIT, NULL, status, 0);
	REAL(_exit)(status);
	__builtin_unreachable();
}

EXPORT void _Exit(int status)
{
	if (real_on())
		DONE(TRC_OP_PROCESS_EXIT, NULL, status, 0);
	REAL(_Exit)(status);
	__builtin_unreachable();
}

EXPORT void quick_exit(int status)
{
	if (real_on())
		DONE(TRC_OP_QUICK_EXIT, NULL, status, 0);
	REAL(quick_exit)(status);
	__builtin_unreachable();
}
