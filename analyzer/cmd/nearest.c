/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyzer/cmd/nearest.h"

#include <string.h>

enum {
	LONGEST = 32, /* letters of a word that is compared */
	FARTHEST = 2, /* letters that may be wrong, missing or too many */
};

void nearest_begin(struct nearest *n, const char *wanted, size_t length)
{
	*n = (struct nearest){ .wanted = wanted, .length = length, .distance = FARTHEST + 1 };
}

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* Optimal string alignment: two letters exchanged count once. */
static unsigned distance(const char *a, size_t n, const char *b, size_t m)
{
	unsigned row[3][LONGEST + 1];

	for (size_t k = 0; k <= m; k++)
		row[0][k] = (unsigned)k;
	for (size_t i = 1; i <= n; i++) {
		unsigned *now = row[i % 3];
		const unsigned *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t k = 1; k <= m; k++) {
			now[k] = least(last[k] + 1, now[k - 1] + 1, last[k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && before[k - 2] + 1 < now[k])
				now[k] = before[k - 2] + 1;
		}
	}
	return row[n % 3][m];
}

void nearest_try(struct nearest *n, const char *word)
{
	size_t m = strlen(word);

	if (n->length < 3 || n->length > LONGEST || m > LONGEST)
		return;
	unsigned d = distance(n->wanted, n->length, word, m);

	if (d < n->distance && d < m) {
		n->distance = d;
		n->found = word;
	}
}
