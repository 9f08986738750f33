/* GLib: two clerks check the stock and then take from it; g_assert() finds that one took what was not there. */
#include <pthread.h>

/* As in glib.h, which need not be installed where the library is. */
void g_assertion_message_expr(const char *domain, const char *file, int line, const char *func, const char *expr)
	__attribute__((noreturn));
#define g_assert(e) ((e) ? (void)0 : g_assertion_message_expr(NULL, __FILE__, __LINE__, __func__, #e))

static int stock = 8;

static void *clerk(void *arg)
{
	for (int i = 0; i < 8; i++) {
		if (stock > 0) {
			__atomic_fetch_sub(&stock, 1, __ATOMIC_SEQ_CST);
			g_assert(stock >= 0);
		}
	}
	return arg;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, clerk, NULL);
	pthread_create(&b, NULL, clerk, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return 0;
}
