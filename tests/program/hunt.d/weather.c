/* Programs that are awkward to run again and again: weather KIND */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A child that outlives its parent, in a session of its own or not. */
static int leave_child(int own_session, const char *stay)
{
	if (!fork()) {
		if (own_session)
			setsid();
		execl(stay, stay, "1000", (char *)NULL);
		_exit(1);
	}
	return 0;
}

static int complain(void)
{
	for (int i = 1; i <= 9; i++)
		fprintf(stderr, "line %d of 9\n", i);
	return 3;
}

/* Fails exactly when the whole input came. */
static int input(void)
{
	char line[100];
	int lines = 0;

	while (fgets(line, sizeof line, stdin))
		lines++;
	if (lines == 3 && !strcmp(line, "third\n"))
		abort();
	return 0;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";

	if (!strcmp(kind, "always"))
		abort();
	if (!strcmp(kind, "status"))
		return 3;
	if (!strcmp(kind, "complains"))
		return complain();
	if (!strcmp(kind, "never"))
		return 0;
	if (!strcmp(kind, "input"))
		return input();
	if (!strcmp(kind, "terminal"))
		return isatty(0) ? 3 : 0;
	if (!strcmp(kind, "hang"))
		for (;;)
			pause();
	if (!strcmp(kind, "child") && argc > 2)
		return leave_child(0, argv[2]);
	if (!strcmp(kind, "daemon") && argc > 2)
		return leave_child(1, argv[2]);
	return 2;
}
