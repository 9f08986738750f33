#include "analyzer/cmd/show.h"

#include "common/trace_types.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>

void show_init(struct show *s, struct trc *t, const struct term *term)
{
	*s = (struct show){ .t = t, .term = *term };
	/* Not strict: it cannot fail then; a changed file is known by name. */
	err_free(trace_image(t, false, &s->img));
}

void show_free(struct show *s)
{
	img_set_free(s->img);
}

char *show_pc(const struct show *s, uint64_t pc)
{
	return trace_pc_text(s->img, pc);
}

char *show_site(const struct show *s, uint64_t return_address)
{
	return trace_site_text(s->img, return_address);
}

/* What the operations work on; sizes as glibc's x86-64 types have them. */
static const struct {
	unsigned from, to; /* enum trc_op */
	const char *word;
	unsigned size;
} objects[] = {
	{ TRC_OP_CREATE, TRC_OP_CANCEL, "thread", 8 },
	{ TRC_OP_LOCK, TRC_OP_CONSISTENT, "mutex", 40 },
	{ TRC_OP_RDLOCK, TRC_OP_RWUNLOCK, "rwlock", 56 },
	{ TRC_OP_SPINLOCK, TRC_OP_SPINUNLOCK, "spin lock", 4 },
	{ TRC_OP_WAIT, TRC_OP_BROADCAST, "condition", 48 },
	{ TRC_OP_BARRIER_INIT, TRC_OP_BARRIER, "barrier", 32 },
	{ TRC_OP_SEM_INIT, TRC_OP_SEM_POST, "semaphore", 32 },
	{ TRC_OP_ONCE, TRC_OP_ONCE, "once", 4 },
};
#define NOBJECTS (sizeof objects / sizeof *objects)

static size_t object_row(unsigned op)
{
	size_t i = 0;

	while (i < NOBJECTS && (op < objects[i].from || op > objects[i].to))
		i++;
	return i;
}

const char *show_object_word(unsigned op)
{
	size_t i = object_row(op);

	return i < NOBJECTS ? objects[i].word : "object";
}

char *show_object(const struct show *s, uint64_t object, unsigned op)
{
	size_t i = object_row(op);
	struct img_name name;

	/* A thread's object is its pthread_t: an address nobody named. */
	if (i == NOBJECTS || op <= TRC_OP_CANCEL || !object)
		return xasprintf("0x%" PRIx64, object);
	img_name_of(s->img, object, objects[i].size, NULL, &name);
	char *safe = term_text_of(name.text, strlen(name.text));
	free(name.text);
	return safe;
}

char *show_signal(int number)
{
	const char *name = number > 0 && number < NSIG ? sigabbrev_np(number) : NULL;

	return name ? xasprintf("SIG%s", name) : xasprintf("signal %d", number);
}

bool show_when(const struct trc *t, char *date, size_t size)
{
	time_t start = (time_t)(trc_identity_uint(t, "wall_start", 0) / 1000000000u);
	struct tm tm;

	return start && localtime_r(&start, &tm) && strftime(date, size, "%F %T %z", &tm);
}

char *show_size(uint64_t bytes)
{
	static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB" };
	double v = (double)bytes;
	size_t u = 0;

	while (v >= 1000 && u < 4) {
		v /= 1000;
		u++;
	}
	return u ? xasprintf("%.*f %s", v < 10 ? 1 : 0, v, units[u])
		 : xasprintf("%" PRIu64 " bytes", bytes);
}

char *show_end(const struct trc *t)
{
	if (!t->end)
		return xstrdup("cut off: no end was recorded (killed, or still running)");
	if (t->end->rec.flags == 0)
		return xasprintf("exited with status %d", t->end->status);
	if (t->end->rec.flags == 1) {
		char *name = show_signal(t->end->status);
		char *text = xasprintf("killed by %s", name);

		free(name);
		return text;
	}
	char *path = t->exec ? term_text_of(t->exec->path, t->exec->path_len) : xstrdup("?");
	char *text = xasprintf("became another program: %s", path);

	free(path);
	return text;
}

/* ---- failures ---- */

static char *failure_text(const struct trc_failure *f)
{
	if (!f->text_len)
		return xstrdup(trc_failure_name(f->rec.flags));
	char *raw = trace_failure_text(f), *safe = term_text_of(raw, strlen(raw));

	free(raw);
	return safe;
}

static bool is_join(unsigned op)
{
	return op == TRC_OP_JOIN || op == TRC_OP_TIMEDJOIN;
}

/* One blocked thread: what it waits for, where, who has it, since where. */
static void show_blocked(const struct show *s, const struct trc_blocked *b)
{
	char *object = show_object(s, b->object, b->op);
	char *site = show_site(s, b->site);
	FILE *f = s->term.f;

	fputs("  ", f);
	term_print(&s->term, TERM_BOLD, "%s", trc_thread_id(s->t, b->thread));
	if (is_join(b->op) && trc_thread_at(s->t, b->owner)) {
		fprintf(f, " waits for %s to end at %s\n", trc_thread_id(s->t, b->owner), site);
	} else {
		fprintf(f, " waits for %s ", show_object_word(b->op));
		term_print(&s->term, TERM_CYAN, "%s", object);
		fprintf(f, " (0x%" PRIx64 ") at %s\n", b->object, site);
	}
	if (!is_join(b->op) && trc_thread_at(s->t, b->owner)) {
		char *since = show_site(s, b->owner_site);

		fprintf(f, "      held by %s, taken at %s\n", trc_thread_id(s->t, b->owner), since);
		free(since);
	}
	free(object);
	free(site);
}

void show_failure(const struct show *s)
{
	const struct trc_failure *f = s->t->failure;

	if (!f)
		return;
	char *text = failure_text(f);
	char *pc = trace_failure_place(s->img, s->t);
	double when = trc_seconds(s->t, f->tsc);

	fprintf(s->term.f, "failure   ");
	term_print(&s->term, TERM_RED, "%s", text);
	fputc('\n', s->term.f);
	fprintf(s->term.f, "  kind %s, thread %s", trc_failure_name(f->rec.flags),
		trc_thread_id(s->t, f->thread));
	if (when >= 0)
		fprintf(s->term.f, ", after %.6f s", when);
	if (f->regs[TRC_RIP])
		fprintf(s->term.f, ", at %s", pc);
	fputc('\n', s->term.f);
	for (size_t i = 0; i < s->t->blocked.n; i++)
		show_blocked(s, s->t->blocked.v[i]);
	free(text);
	free(pc);
}

static void blocked_json(const struct show *s, struct json *j, const struct trc_blocked *b)
{
	char *object = show_object(s, b->object, b->op);
	char *site = show_site(s, b->site);
	char *since = show_site(s, b->owner_site);
	bool owned = trc_thread_at(s->t, b->owner);

	json_object(j, NULL);
	json_str(j, "thread", trc_thread_id(s->t, b->thread));
	json_str(j, "operation", trc_op_name(b->op));
	json_str(j, "object", object);
	json_hex(j, "address", b->object);
	json_str(j, "at", site);
	json_bool(j, "in_cycle", b->cycle);
	json_str(j, "owner", owned ? trc_thread_id(s->t, b->owner) : NULL);
	json_str(j, "taken_at", owned ? since : NULL);
	json_end(j);
	free(object);
	free(site);
	free(since);
}

void show_failure_json(const struct show *s, struct json *j)
{
	const struct trc_failure *f = s->t->failure;

	if (!f) {
		json_null(j, "failure");
		return;
	}
	char *text = failure_text(f);
	char *pc = trace_failure_place(s->img, s->t);

	json_object(j, "failure");
	json_str(j, "kind", trc_failure_name(f->rec.flags));
	json_str(j, "text", text);
	json_str(j, "thread", trc_thread_id(s->t, f->thread));
	json_hex(j, "pc", f->regs[TRC_RIP]);
	json_str(j, "at", pc);
	json_num(j, "seconds", trc_seconds(s->t, f->tsc));
	if (f->signal)
		json_int(j, "signal", f->signal);
	json_array(j, "blocked");
	for (size_t i = 0; i < s->t->blocked.n; i++)
		blocked_json(s, j, s->t->blocked.v[i]);
	json_end(j);
	json_end(j);
	free(text);
	free(pc);
}
