/* Guest of the lockstep test: SSE, AVX, x87, conversions, printing of numbers. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define N 96

static float a[N], b[N], c[N];
static double x[N], y[N];
static int32_t p[N], q[N];
static uint8_t s[N], t[N];
static int64_t w[N];

static void fill(void)
{
	for (int i = 0; i < N; i++) {
		a[i] = (float)i * 0.37f - 3.0f;
		b[i] = 1.0f / (float)(i + 1);
		x[i] = (double)i / 7.0;
		y[i] = -x[i] * x[i] + 3.25;
		p[i] = i * 1234567 - 99;
		q[i] = (i ^ 5) * 77;
		s[i] = (uint8_t)(i * 31);
		t[i] = (uint8_t)(i * 17 + 3);
	}
}

static double loops(void)
{
	double sum = 0;

	for (int i = 0; i < N; i++)
		c[i] = a[i] * b[i] + c[i];
	for (int i = 0; i < N; i++)
		sum += x[i] * y[i] - sqrt(fabs(y[i]));
	for (int i = 0; i < N; i++)
		w[i] = (int64_t)p[i] * q[i] + (p[i] > q[i] ? p[i] : q[i]);
	for (int i = 0; i < N; i++)
		s[i] = (uint8_t)(s[i] > t[i] ? s[i] - t[i] : t[i] - s[i]);
	for (int i = 0; i < N; i++)
		p[i] = (int32_t)a[i] + q[(unsigned)p[i] % N];
	for (int i = 0; i < N; i++)
		sum += (double)c[i] + (double)w[i] + s[i] + p[i];
	return sum;
}

static long double extended(int n)
{
	long double r = 1.0L / 3.0L;

	for (int i = 1; i < n; i++)
		r = r * 1.000001L + 1.0L / (long double)i;
	return r;
}

int main(void)
{
	char text[256];
	double sum = 0;
	uint64_t bits;

	fill();
	for (int i = 0; i < 4; i++)
		sum += loops();
	sum += sin(sum) + exp(0.5) * pow(1.5, 3.25) + log(fabs(sum) + 2.0);
	sum += (double)extended(40) + (double)(float)sum + (double)(int)1e9;
	sum = sum > 1e300 || sum != sum ? 0.0 : sum;
	snprintf(text, sizeof text, "%.17g %Lg %f %e", sum, extended(10), (double)c[3], sum / 3);
	memcpy(&bits, &sum, 8);
	printf("%llx %s\n", (unsigned long long)bits, text);
	return 0;
}
