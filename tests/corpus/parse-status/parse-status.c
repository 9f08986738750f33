/*
 * A parser that leaves its status in a variable of its module, as errno was before there were threads. Each caller asks
 * for the status after the call, and may be told another's.
 */
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status { OK, EMPTY, NOT_A_NUMBER, TOO_LARGE };

enum status parse_status;
static pthread_mutex_t statistics = PTHREAD_MUTEX_INITIALIZER;
static int good, bad;

/* Not inlined: a module of its own in real life. */
__attribute__((noinline)) long parse_number(const char *s)
{
	long n = 0;

	parse_status = *s ? OK : EMPTY;			/* @begin */
	for (; *s; s++) {
		if (!isdigit((unsigned char)*s)) {
			parse_status = NOT_A_NUMBER;	/* @letter */
			return -1;
		}
		n = n * 10 + (*s - '0');
		if (n > 65535) {
			parse_status = TOO_LARGE;	/* @large */
			return -1;
		}
	}
	return n;
}

static void count(int *what)
{
	pthread_mutex_lock(&statistics);
	++*what;
	pthread_mutex_unlock(&statistics);
}

/* Ports that the administrator wrote: a mistake there is fatal. */
static void *configuration(void *arg)
{
	static const char *const ports[] = { "80", "443", "8080", "5432", "25", "993" };
	long *sum = arg;

	for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++) {
		long n = parse_number(ports[i]);	/* @call */
		if (parse_status != OK) {		/* @ask */
			fprintf(stderr, "configuration: bad port %s\n", ports[i]);
			abort();			/* @abort */
		}
		*sum += n;
		count(&good);
	}
	return NULL;
}

/* What clients send: mistakes are to be expected. */
static void *requests(void *arg)
{
	static const char *const sent[] = { "12", "x", "77777", "", "4711", "0x10" };
	long *sum = arg;

	for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++) {
		long n = parse_number(sent[i]);		/* @sent */
		if (n < 0) {
			count(&bad);
			continue;
		}
		*sum += n;
		count(&good);
	}
	return NULL;
}

int main(void)
{
	pthread_t a, b;
	long sums[2] = { 0, 0 };

	pthread_create(&a, NULL, configuration, &sums[0]);
	pthread_create(&b, NULL, requests, &sums[1]);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%d good, %d bad, %ld %ld\n", good, bad, sums[0], sums[1]);
	return 0;
}
