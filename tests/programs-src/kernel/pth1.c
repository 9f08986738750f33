#include "k.h"
static pthread_barrier_t b;
static pthread_spinlock_t sp;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_key_t key[3];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int ser, cnt, dtors, onces;
static pthread_mutex_t pm = PTHREAD_MUTEX_INITIALIZER;
static void o(void)
{
	onces++;
}
static void d0(void *p)
{
	pthread_mutex_lock(&pm);
	dtors += (long)p;
	pthread_mutex_unlock(&pm);
}
static void d1(void *p)
{
	long v = (long)p;
	if (v > 1)
		pthread_setspecific(key[1], (void *)(v - 1));
	d0((void *)100);
}
static void *t(void *a)
{
	if (pthread_barrier_wait(&b) == PTHREAD_BARRIER_SERIAL_THREAD)
		__atomic_add_fetch(&ser, 1, 5);
	for (int i = 0; i < 1000; i++) {
		pthread_spin_lock(&sp);
		cnt++;
		pthread_spin_unlock(&sp);
	}
	pthread_once(&once, o);
	pthread_setspecific(key[0], (void *)1);
	pthread_setspecific(key[1], (void *)3);
	for (int i = 0; i < 100; i++) {
		pthread_rwlock_rdlock(&rw);
		pthread_rwlock_unlock(&rw);
	}
	return (void *)((long)a * 2);
}
static void *en(void *a)
{
	return (void *)(long)pthread_mutex_trylock(a);
}
int main()
{
	setbuf(stdout, 0);
	pthread_barrier_init(&b, 0, 5);
	pthread_spin_init(&sp, 0);
	pthread_key_create(&key[0], d0);
	pthread_key_create(&key[1], d1);
	pthread_t p[5];
	for (long i = 0; i < 5; i++)
		pthread_create(&p[i], 0, t, (void *)i);
	long s = 0;
	for (int i = 0; i < 5; i++) {
		void *r;
		pthread_join(p[i], &r);
		s += (long)r;
	}
	SAY("%ld ser %d cnt %d dtors %d once %d", s, ser, cnt, dtors, onces);
	pthread_mutexattr_t ma;
	pthread_mutexattr_init(&ma);
	pthread_mutex_t m;
	for (int ty = 0; ty < 4; ty++) {
		pthread_mutexattr_settype(&ma, ty);
		pthread_mutex_init(&m, &ma);
		int l1 = pthread_mutex_lock(&m), l2 = pthread_mutex_trylock(&m);
		SAY("type %d: lock %d try %d", ty, l1, l2);
		if (ty == 2)
			SAY("relock %d", pthread_mutex_lock(&m));
		pthread_t q;
		void *r;
		pthread_create(&q, 0, en, &m);
		pthread_join(q, &r);
		SAY("other %ld", (long)r);
		SAY("unl %d", pthread_mutex_unlock(&m));
		if (ty == 1) {
			pthread_mutex_unlock(&m);
		}
		if (ty == 2)
			SAY("unl2 %d", pthread_mutex_unlock(&m));
		SAY("destroy %d", pthread_mutex_destroy(&m));
	}
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	pthread_mutex_init(&m, 0);
	pthread_mutex_lock(&m);
	SAY("timed %d", pthread_mutex_timedlock(&m, &ts));
	clock_gettime(CLOCK_MONOTONIC, &ts);
	SAY("clock %d", pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &ts));
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	clock_gettime(CLOCK_REALTIME, &ts);
	SAY("cond %d", pthread_cond_timedwait(&c, &m, &ts));
	clock_gettime(CLOCK_MONOTONIC, &ts);
	SAY("cond %d", pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &ts));
	ts.tv_nsec = -5;
	SAY("cond %d", pthread_cond_timedwait(&c, &m, &ts));
	SAY("%d %d %d", pthread_rwlock_wrlock(&rw), pthread_rwlock_tryrdlock(&rw),
	    pthread_rwlock_trywrlock(&rw));
	clock_gettime(CLOCK_REALTIME, &ts);
	SAY("%d", pthread_rwlock_timedrdlock(&rw, &ts));
	pthread_rwlock_unlock(&rw);
	pthread_attr_t at;
	pthread_attr_init(&at);
	size_t sz;
	void *ad;
	pthread_attr_setstacksize(&at, 1 << 20);
	pthread_attr_setguardsize(&at, 8192);
	pthread_attr_getguardsize(&at, &sz);
	SAY("%zu", sz);
	SAY("%d", pthread_attr_setstacksize(&at, 100));
	int st;
	pthread_attr_getdetachstate(&at, &st);
	SAY("%d", st);
	pthread_getattr_np(pthread_self(), &at);
	pthread_attr_getstack(&at, &ad, &sz);
	char l;
	SAY("inside %d", &l > (char *)ad && &l < (char *)ad + sz);
	pthread_setname_np(pthread_self(), "abcdef");
	char nm[20];
	pthread_getname_np(pthread_self(), nm, 20);
	SAY("%s %d", nm, pthread_setname_np(pthread_self(), "0123456789abcdefg"));
	SAY("%d", pthread_tryjoin_np(pthread_self(), 0));
	SAY("%d", pthread_join(pthread_self(), 0));
	SAY("%d", pthread_setconcurrency(3));
	SAY("%d", pthread_getconcurrency());
	return 0;
}
