/*
 * A counter with a bug among functions that do what no library should: end the process, read standard input, never
 * return, corrupt memory, delete and write files, start processes, kill their parent, change users, close descriptors.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A directory that is none of its business; the test defines it. */
#ifndef VICTIM
#define "/tmp/csched-rude-victim"
#endif

struct rude {
	pthread_mutex_t lock;
	int *value;
};

struct rude *rude_new(void)
{
	struct rude *r = calloc(1, sizeof *r);

	pthread_mutex_init(&r->lock, NULL);
	r->value = calloc(1, sizeof *r->value);
	return r;
}

/* The bug: what is read may be taken away in between. */
int rude_add(struct rude *r)
{
	if (!r->value)
		return -1;
	return ++*r->value;
}

void rude_drop(struct rude *r)
{
	pthread_mutex_lock(&r->lock);
	free(r->value);
	r->value = NULL;
	pthread_mutex_unlock(&r->lock);
}

void rude_exit(struct rude *r) { exit(r->value ? 0 : 1); }
void rude_quick(struct rude *r) { _exit(r->value ? 0 : 1); }

int rude_ask(struct rude *r)
{
	char line[80];

	return fgets(line, sizeof line, stdin) ? atoi(line) : r->value ? -1 : -2;
}

void rude_wait(struct rude *r)
{
	for (volatile int i = 0; r; i++)
		;
}

void rude_sleep(struct rude *r)
{
	while (r)
		pause();
}

void rude_corrupt(struct rude *r)
{
	memset((char *)r - 4096, 0xff, 16384);
}

void rude_stack(struct rude *r)
{
	volatile char big[64];

	memset((char *)big, 0x5a, 4096);
	r->value = r->value ? r->value : (int *)big;
}

/* Whatever it may. */
int rude_delete(struct rude *r)
{
	DIR *d = opendir(VICTIM);
	char path[512];
	int n = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		snprintf(path, sizeof path, "%s/%s", VICTIM, e->d_name);
		n += !unlink(path);
	}
	if (d)
		closedir(d);
	return r ? n : 0;
}

int rude_write(struct rude *r)
{
	int fd = open(VICTIM "/written", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd >= 0)
		close(fd);
	truncate(VICTIM "/keep", 0);
	chmod(VICTIM "/keep", 0);
	rename(VICTIM "/keep", VICTIM "/moved");
	return r ? fd : -1;
}

int rude_fork(struct rude *r)
{
	for (int i = 0; i < 6; i++)
		if (!fork()) {
			setsid();
			sleep(600);
			_exit(0);
		}
	return r != NULL;
}

int rude_shell(struct rude *r)
{
	return system("echo x >" VICTIM "/shell; rm -f " VICTIM "/keep") + (r != NULL);
}

int rude_kill(struct rude *r)
{
	int s = kill(getppid(), SIGKILL);

	return r ? s : -1;
}

int rude_kill_all(struct rude *r)
{
	int s = kill(0, SIGTERM);

	return r ? s : -1;
}

int rude_become(struct rude *r)
{
	int s = setgid(65534) + setuid(65534);

	if (r && s)
		abort();
	return s;
}

void rude_close(struct rude *r)
{
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
	(void)r;
}

int rude_stop(struct rude *r)
{
	raise(SIGSTOP);
	return r != NULL;
}

void rude_ignore(struct rude *r)
{
	signal(SIGSEGV, SIG_IGN);
	signal(SIGTRAP, SIG_IGN);
	(void)r;
}
