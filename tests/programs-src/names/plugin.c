/* Built twice: as a plugin, and as the program that loads it and calls it from two threads. */
#ifdef PLUGIN
static int requests;
int plugin_requests(void) { return requests; }
void plugin_serve(int n)
{
	for (int i = 0; i < n; i++) {
		int seen = requests;
		requests = seen + 1;
	}
}
#else
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
static void (*serve)(int);
static void *client(void *arg) { serve(20); return arg; }
int main(int argc, char **argv)
{
	void *plugin = dlopen(argv[argc - 1], RTLD_NOW);
	pthread_t t[2];
	assert(plugin);
	serve = (void (*)(int))dlsym(plugin, "plugin_serve");
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, client, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	assert(((int (*)(void))dlsym(plugin, "plugin_requests"))() == 40);
	return 0;
}
#endif
