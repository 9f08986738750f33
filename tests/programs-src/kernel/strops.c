#include "k.h"
static unsigned char a[65536], b[65536];
int main(void)
{
	for (int i = 0; i < 65536; i++)
		a[i] = i * 13;
	unsigned s = 0;
	for (int k = 0; k < 2000; k++) {
		void *d = b, *f = a;
		size_t n = 65536;
		__asm__ volatile("rep movsb" : "+D"(d), "+S"(f), "+c"(n)::"memory");
		s += b[k];
		d = b;
		n = 8192;
		__asm__ volatile("rep stosq" : "+D"(d), "+c"(n) : "a"(k) : "memory");
	}
	for (int k = 0; k < 200000; k++) {
		void *d = b, *f = a;
		for (int i = 0; i < 8; i++)
			__asm__ volatile("movsb" : "+D"(d), "+S"(f)::"memory");
		size_t n = 5;
		d = b;
		__asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(k) : "memory");
		s += b[3];
		n = 100;
		d = a;
		__asm__ volatile("repne scasb" : "+D"(d), "+c"(n) : "a"(k & 255) : "memory", "cc");
		s += n;
	}
	SAY("%u", s);
	return 0;
}
