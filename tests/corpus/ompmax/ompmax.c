/* The largest of an array: looked at outside, written inside the critical section. */
#include <assert.h>
#include <omp.h>
#include <stdio.h>

#define N 24
static int a[N];
static int largest;

int main(void)
{
	int right = 0;

	for (int i = 0; i < N; i++) {
		a[i] = (i * 37) % 101;
		if (a[i] > right)
			right = a[i];
	}
#pragma omp parallel for num_threads(3) schedule(static, 1)
	for (int i = 0; i < N; i++)
		if (a[i] > largest) {	/* @look */
#pragma omp critical
			largest = a[i];	/* @set */
		}
	assert(largest == right);	/* @assert */
	return 0;
}
