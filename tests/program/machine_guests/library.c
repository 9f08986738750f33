/* Guest of the lockstep test: what the C library does all day. */
#include <ctype.h>
#include <regex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static jmp_buf back;

static int deep(int n, char *p)
{
	char local[64];

	memset(local, n, sizeof local);
	if (n == 0)
		longjmp(back, 7);
	return deep(n - 1, local) + p[0];
}

int main(void)
{
	char *blocks[64], text[2048] = "";
	regex_t re;
	regmatch_t match[2];
	unsigned long sum = 0;

	for (int i = 0; i < 64; i++) {
		blocks[i] = malloc((size_t)(i * 37 + 1));
		memset(blocks[i], i, (size_t)(i * 37 + 1));
		if (i > 4 && i % 3 == 0) {
			blocks[i - 3] = realloc(blocks[i - 3], (size_t)(i * 90));
			sum += (unsigned char)blocks[i - 3][i];
		}
	}
	for (int i = 0; i < 64; i++) {
		char piece[64];

		snprintf(piece, sizeof piece, "%d:%s;", i, i % 2 ? "odd" : "even");
		strcat(text, piece);
		free(blocks[i]);
	}
	for (char *p = text; *p; p++)
		*p = (char)toupper(*p);
	sum += strlen(text) + (unsigned long)(strstr(text, "41:ODD") - text);
	sum += (unsigned long)(strrchr(text, ':') - strchr(text, ';'));
	if (!regcomp(&re, "([0-9]+):EVEN;6", REG_EXTENDED)) {
		if (!regexec(&re, text, 2, match, 0))
			sum += (unsigned long)match[1].rm_so;
		regfree(&re);
	}
	if (!setjmp(back))
		deep(20, text);
	sum += (unsigned long)memcmp(text, text + 1, 10);
	sum += (unsigned long)write(STDOUT_FILENO, text, 16);
	printf("%lu\n", sum);
	return 0;
}
