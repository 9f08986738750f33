/*
 * Two threads add one to a counter, each in one instruction, and say so; then what came of it. With an
 * argument: three threads meet at a barrier, and say who came last.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int counter;
static pthread_barrier_t barrier;

static void say(char c)
{
	if (write(1, &c, 1) != 1)
		_exit(2);
}

static void __attribute__((noinline)) add(void)
{
	__asm__ volatile(".globl add_place\nadd_place: incl %0" : "+m"(counter));
}

static void *adds(void *arg)
{
	add();
	say(*(char *)arg);
	return NULL;
}

static void *meets(void *arg)
{
	(void)arg;
	say(pthread_barrier_wait(&barrier) ? 'L' : 'o');
	return NULL;
}

int main(int argc, char **argv)
{
	char names[] = "abc";
	int n = argc > 1 ? 3 : 2;
	pthread_t threads[3];

	(void)argv;
	pthread_barrier_init(&barrier, NULL, 3);
	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, argc > 1 ? meets : adds, &names[i]);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	if (argc > 1)
		puts("");
	else
		printf(" %d\n", counter);
	return 0;
}
