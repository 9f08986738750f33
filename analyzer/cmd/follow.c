#include "analyzer/cmd/follow.h"

#include "analyzer/term.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct progress line;
static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
	/* A second ^C ends us the ordinary way. */
	signal(SIGINT, SIG_DFL);
}

static bool show(void *arg, const char *phase, double part)
{
	(void)arg;
	line.what = phase;
	progress_at(&line, part > 0 ? (uint64_t)(part * 1000) : 0, part > 0 ? 1000 : 0);
	return interrupted;
}

void follow_quiet(void)
{
	progress_end(&line);
}

static char *hex(const struct trc_module *m)
{
	char *s = xcalloc(1, 2 * sizeof m->build_id + 1);

	for (unsigned i = 0; i < m->build_id_len && i < sizeof m->build_id; i++)
		snprintf(s + 2 * i, 3, "%02x", m->build_id[i]);
	return s;
}

static char *with_advice(const char *what)
{
	return xasprintf("%s: put the recorded build back there, or record again; csched pack "
			 "right after a recording keeps its files with it", what);
}

char *follow_file_changed(const struct trc *t, const char *why)
{
	for (size_t i = 0; i < t->modules.n; i++) {
		const struct trc_module *m = t->modules.v[i];
		char *path = xasprintf("%.*s", (int)m->path_len, m->path);
		char *want = hex(m), *found = NULL, *what = NULL, *advice = NULL;

		if (*path == '/' && strstr(why, path) && !t->packed) {
			found = img_build_id_of_file(path);
			what = !found ? xasprintf("%s, from which the run was recorded, is not there any "
						  "more (build-id %s)", path, want) :
			       strcmp(found, want) ?
				       xasprintf("%s is another build than the one the run was recorded "
						 "with (build-id %s, recorded %s)", path, found, want) :
				       NULL;
		}
		if (what)
			advice = with_advice(what);
		free(path);
		free(want);
		free(found);
		free(what);
		if (advice)
			return advice;
	}
	return NULL;
}

static err_t not_to_the_end(const struct explanation *e)
{
	const struct mach_result *r = &e->followed;
	const char *why = r->why ? r->why : "no reason was given";
	char *changed = follow_file_changed(e->t, why);

	if (changed) {
		err_t bad = err_new(ERR_NOANSWER, "%s", changed);

		free(changed);
		return bad;
	}
	return err_new(ERR_NOANSWER,
		       "the run could be followed for %llu instructions, not to its end: %s",
		       (unsigned long long)r->insns, why);
}

/* The failure came after recording had stopped, or the record is cut short: what led to it is not known. */
static bool stopped_before(const struct explanation *e)
{
	return e->followed.end == MACH_END_PATH && e->t->failure && !e->followed.failure_reached;
}

err_t follow_to_end(const char *path, struct explain_options *o, struct explanation **out)
{
	struct explanation *e;

	o->progress = show;
	signal(SIGINT, on_interrupt);
	err_t bad = explain_follow(path, o, &e);
	follow_quiet();
	if (bad)
		return bad;
	if ((e->followed.end != MACH_END_FAILURE && e->followed.end != MACH_END_EXIT &&
	     e->followed.end != MACH_END_PATH) || stopped_before(e)) {
		bad = not_to_the_end(e);
		explanation_free(e);
		return bad;
	}
	*out = e;
	return NULL;
}
