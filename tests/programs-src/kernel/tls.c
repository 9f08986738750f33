#include "k.h"
#include <dlfcn.h>
#include <locale.h>
#include <wchar.h>
static pthread_key_t k1, k2;
static void d1(void *v)
{
	SAY("d1 %ld", (long)v);
	if ((long)v > 1)
		pthread_setspecific(k1, (void *)((long)v - 1));
}
static void d2(void *v)
{
	free(v);
}
static __thread int t = 5;
static __thread char big[10000];
static void *w(void *a)
{
	pthread_setspecific(k1, (void *)3);
	pthread_setspecific(k2, malloc(10));
	t += (long)a;
	big[9999] = 3;
	SAY("t %d", t);
	if ((long)a == 2)
		pthread_exit((void *)8);
	return a;
}
static void a1(void)
{
	SAY("atexit 1");
}
static void a2(void)
{
	SAY("atexit 2");
	atexit(a1);
}
static void oe(int s, void *a)
{
	SAY("on_exit %d %s", s, (char *)a);
}
__attribute__((destructor)) static void ds(void)
{
	puts("destructor");
}
static void qe(void)
{
	SAY("quick");
	fflush(stdout);
}
static pthread_once_t on = PTHREAD_ONCE_INIT;
static void once(void)
{
	SAY("once");
}
int main(int argc, char **argv)
{
	pthread_key_create(&k1, d1);
	pthread_key_create(&k2, d2);
	for (long i = 1; i < 3; i++) {
		pthread_t x;
		void *v;
		pthread_create(&x, 0, w, (void *)i);
		pthread_join(x, &v);
		SAY("joined %ld", (long)v);
	}
	pthread_once(&on, once);
	pthread_once(&on, once);
	SAY("%s", setlocale(LC_ALL, "C.UTF-8") ? "utf8" : "none");
	wchar_t wc[8];
	SAY("%zu", mbstowcs(wc, "h\xc3\xa4i", 8));
	void *d = dlopen("libm.so.6", RTLD_NOW);
	double (*f)(double) = dlsym(d, "cbrt");
	SAY("%f", f(27));
	dlclose(d);
	d = dlopen("libnope.so", RTLD_NOW);
	SAY("%d", d == 0);
	d = dlopen("libcrypt.so.1", RTLD_LAZY);
	if (d)
		dlclose(d);
	d = dlopen("libz.so.1", RTLD_NOW);
	if (d) {
		const char *(*zv)(void) = dlsym(d, "zlibVersion");
		SAY("%d", zv()[0] > 0);
		dlclose(d);
		d = dlopen("libz.so.1", RTLD_NOW);
		dlclose(d);
	}
	flockfile(stdout);
	putc_unlocked('x', stdout);
	SAY(" in lock");
	funlockfile(stdout);
	SAY("%d", ftrylockfile(stdout));
	funlockfile(stdout);
	char *mp;
	size_t ml;
	FILE *ms = open_memstream(&mp, &ml);
	fprintf(ms, "%d %s", 5, "mem");
	fclose(ms);
	SAY("%s %zu", mp, ml);
	FILE *tf = tmpfile();
	fputs("line1\nline2\n", tf);
	rewind(tf);
	char b[20];
	fgets(b, 20, tf);
	SAY("%s", b);
	fseek(tf, -3, SEEK_END);
	SAY("%c %ld", getc(tf), ftell(tf));
	int x;
	SAY("%d", sscanf("12 zz", "%d %s", &x, b));
	fflush(stdout);
	pid_t p = fork();
	if (!p) {
		at_quick_exit(qe);
		quick_exit(3);
	}
	int s;
	fflush(stdout);
	waitpid(p, &s, 0);
	SAY("%x", s);
	atexit(a1);
	atexit(a2);
	on_exit(oe, "arg");
	exit(11);
}
