/*
 * Allows itself little: nothing of the recorder may stand in the way. Without an argument
 * read, write and exit only; "filter": a few calls more, locks, a child and a decent end; "probe":
 * asks for a filter without having one, as libseccomp does, which forbids nothing.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define ALLOW(nr)                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),           \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int filtered(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(SYS_clone), ALLOW(SYS_wait4),
		ALLOW(SYS_set_robust_list), ALLOW(SYS_rseq), ALLOW(SYS_rt_sigprocmask), ALLOW(SYS_gettid),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog p = { sizeof f / sizeof *f, f };
	static const char text[] = "filtered\n";
	int status = -1;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		return 1;
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	pid_t pid = fork();

	if (!pid) {
		pthread_mutex_lock(&lock);
		exit(5);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 5)
		return 2;
	return write(1, text, sizeof text - 1) < 0 ? 3 : 7;
}

static int strict(void)
{
	static const char text[] = "still here\n";

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		return 1;
	if (write(1, text, sizeof text - 1) < 0)
		return 2;
	syscall(SYS_exit, 7);
	return 3;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "filter"))
		return filtered();
	if (argc > 1)
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) < 0 && errno == EFAULT ? 0 : 1;
	return strict();
}
