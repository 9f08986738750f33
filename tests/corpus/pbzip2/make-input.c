/* make-input KB FILE: text that compresses about as prose does, the same every time. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	unsigned state = 1;
	long left = argc == 3 ? atol(argv[1]) * 1000 : 0;
	FILE *f = argc == 3 ? fopen(argv[2], "w") : NULL;

	if (!f)
		return 1;
	while (left > 0) {
		int c;

		state = state * 1103515245u + 12345u;
		c = (state >> 16) % 97;
		c = c < 70 ? 'a' + c * c / 200 : c < 94 ? ' ' : c < 96 ? ',' : '\n';
		fputc(c, f);
		left--;
	}
	return fclose(f) != 0;
}
