/* Of three children, one after the other, the second one can fail: two of its threads take from the same account. */
#include <assert.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int balance;

static void *take(void *arg)
{
	if (balance >= 60) {
		balance = balance - 60;
		assert(balance >= 0);
	}
	return arg;
}

static int transfer(int has)
{
	pthread_t thread[2];

	balance = has;
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, take, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return 0;
}

int main(void)
{
	for (int child = 1; child <= 3; child++) {
		pid_t pid = fork();

		if (!pid)
			return transfer(child == 2 ? 100 : 1000);
		waitpid(pid, NULL, 0);
	}
	return transfer(1000);
}
