#include "k.h"
int main(void)
{
	/* shared with a child that dies */
	pthread_mutex_t *s =
	    mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t at;
	pthread_mutexattr_init(&at);
	pthread_mutexattr_setrobust(&at, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&at, 1);
	pthread_mutex_init(s, &at);
	pid_t p = fork();
	if (!p) {
		pthread_mutex_lock(s);
		_exit(3);
	}
	int st;
	waitpid(p, &st, 0);
	SAY("child %d", WEXITSTATUS(st));
	SAY("lock %s", ername(pthread_mutex_lock(s)));
	pthread_mutex_consistent(s);
	SAY("%s", ername(pthread_mutex_unlock(s)));
	return 0;
}
