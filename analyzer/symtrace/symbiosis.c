#include "analyzer/symtrace/symbiosis.h"
#include "common/vec.h"
#include "common/door.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

/* Where a line is, for messages. */
struct place {
	const char *file;
	unsigned line;
};

struct named {
	char *name;
	uint32_t value;
};

struct reader {
	struct sym_trace *t;
	VEC(struct named) symbols; /* value: expr_id; sorted by name once collected */
	VEC(struct named) vars, locks, conds;
	struct place at;
	uint32_t thread;
	bool in_path, prefix, asserts;
	expr_id last_cond;
};

static err_t bad(const struct reader *r, const char *what, const char *text)
{
	return err_new(ERR_INPUT, "%s:%u: %s: %.200s", r->at.file, r->at.line, what, text);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static expr_id find_symbol(void *arg, const char *name)
{
	struct reader *r = arg;
	struct named key = { (char *)name, 0 }, *hit = NULL;

	if (r->symbols.n)
		hit = bsearch(&key, r->symbols.v, r->symbols.n, sizeof key, by_name);
	return hit ? hit->value : EXPR_NONE;
}

typedef VEC(struct named) named_vec;

static uint32_t *lookup(void *list, const char *name, bool *is_new)
{
	named_vec *l = list;

	for (size_t i = 0; i < l->n; i++) {
		if (!strcmp(l->v[i].name, name)) {
			*is_new = false;
			return &l->v[i].value;
		}
	}
	*is_new = true;
	vec_push(l, (struct named){ xstrdup(name), 0 });
	return &l->v[l->n - 1].value;
}

static uint32_t var_of(struct reader *r, const char *name)
{
	bool is_new;
	uint32_t *v = lookup(&r->vars, name, &is_new);

	if (is_new)
		*v = sym_add_var(r->t, &(struct sym_var){ .name = (char *)name,
							  .width = EXPR_INT });
	return *v;
}

static uint32_t object_of(struct reader *r, const char *name, enum sym_object_kind kind)
{
	bool is_new;
	uint32_t *v = lookup(kind == SYM_COND ? (void *)&r->conds : (void *)&r->locks, name,
			     &is_new);

	if (is_new)
		*v = sym_add_object(r->t, &(struct sym_object){ .name = (char *)name, .kind = kind,
			.recursive = kind == SYM_MUTEX, .owner = SYM_NONE });
	return *v;
}

static err_t thread_of(struct reader *r, const char *tid, uint32_t *out)
{
	for (size_t i = 0; i < r->t->nthreads; i++) {
		if (!strcmp(r->t->threads[i].id + 1, tid)) {
			*out = i;
			return NULL;
		}
	}
	return bad(r, "no file for thread", tid);
}

static uint32_t add(struct reader *r, struct sym_event *e, const char *file, unsigned line)
{
	e->stack = sym_add_stack(r->t, &(struct sym_frame){ .function = "?", .file = (char *)file,
							    .line = line }, 1);
	return sym_add_event(r->t, r->thread, e);
}

/* Their wait is one line; ours is release, wake-up, acquisition. */
static void add_wait(struct reader *r, const char *object, const char *file, unsigned line,
		     bool timed)
{
	struct sym_event e;
	uint32_t release;

	sym_event_init(&e, SYM_UNLOCK);
	e.target = object_of(r, object, SYM_MUTEX);
	release = add(r, &e, file, line);
	sym_event_init(&e, SYM_WAIT);
	e.target = object_of(r, object, SYM_COND);
	e.link = release;
	e.result = timed ? 2 : 1;
	add(r, &e, file, line);
	sym_event_init(&e, SYM_LOCK);
	e.target = object_of(r, object, SYM_MUTEX);
	add(r, &e, file, line);
}

static const struct {
	const char *word;
	enum sym_op op;
	enum { ON_NOTHING, ON_LOCK, ON_COND, ON_THREAD } on;
} sync_words[] = {
	{ "start", SYM_START, ON_NOTHING }, { "exit", SYM_EXIT, ON_NOTHING },
	{ "fork", SYM_FORK, ON_THREAD }, { "join", SYM_JOIN, ON_THREAD },
	{ "lock", SYM_LOCK, ON_LOCK }, { "unlock", SYM_UNLOCK, ON_LOCK },
	{ "wait", SYM_WAIT, ON_COND }, { "timedwait", SYM_WAIT, ON_COND },
	{ "signal", SYM_SIGNAL, ON_COND }, { "signalall", SYM_BROADCAST, ON_COND },
};

/* "lock_OBJ-TID", split in place */
static err_t read_sync(struct reader *r, char *s, const char *file, unsigned line)
{
	char *dash = strrchr(s, '-'), *operand = strchr(s, '_');
	struct sym_event e;

	if (!dash)
		return bad(r, "malformed operation", s);
	*dash = 0;
	if (operand)
		*operand++ = 0;
	for (size_t i = 0; i < sizeof sync_words / sizeof *sync_words; i++) {
		if (strcmp(sync_words[i].word, s))
			continue;
		if (sync_words[i].on != ON_NOTHING && !operand)
			return bad(r, "operation without operand", s);
		if (sync_words[i].op == SYM_WAIT) {
			add_wait(r, operand, file, line, s[0] == 't');
			return NULL;
		}
		sym_event_init(&e, sync_words[i].op);
		if (sync_words[i].on == ON_THREAD)
			TRY(thread_of(r, operand, &e.peer));
		else if (sync_words[i].on != ON_NOTHING)
			e.target = object_of(r, operand, sync_words[i].on == ON_LOCK ?
					     SYM_MUTEX : SYM_COND);
		add(r, &e, file, line);
		return NULL;
	}
	return bad(r, "unknown operation", s);
}

/* VAR of "X-VAR-TID-N"; malloc'd, NULL when malformed. */
static char *access_var(const char *s)
{
	const char *end = strrchr(s, '-');

	while (end && end > s + 2 && *--end != '-')
		;
	if (!end || end <= s + 2)
		return NULL;
	return xasprintf("%.*s", (int)(end - s - 2), s + 2);
}

static err_t parse(struct reader *r, const char *text, bool prefix, expr_id *out)
{
	struct symbiosis_expr x = { .pool = r->t->pool, .symbol = find_symbol, .arg = r };

	*out = symbiosis_expr(&x, text, prefix);
	if (!*out)
		return err_new(ERR_INPUT, "%s:%u:%zu: %s: %.200s", r->at.file, r->at.line,
			       x.at + 1, x.error ? x.error : "malformed", text);
	return NULL;
}

static err_t read_access(struct reader *r, const char *s, const char *value, const char *file,
			 unsigned line)
{
	struct sym_event e;
	char *var = access_var(s);
	err_t err = NULL;

	if (!var)
		return bad(r, "malformed access", s);
	sym_event_init(&e, s[0] == 'R' ? SYM_READ : SYM_WRITE);
	e.target = var_of(r, var);
	free(var);
	if (s[0] == 'R') {
		e.symbol = find_symbol(r, s);
	} else {
		err = parse(r, value, false, &e.value);
		if (!err && expr_get(r->t->pool, e.value)->width != EXPR_INT)
			err = bad(r, "a condition is written", value);
	}
	if (!err)
		add(r, &e, file, line);
	return err;
}

static err_t read_condition(struct reader *r, const char *line)
{
	const char *text = strchr(line, ':');
	struct sym_cond c = { .stack = SYM_NONE };

	if (line[0] != 'T' || !text)
		return bad(r, "condition expected", line);
	TRY(parse(r, text + 1, r->prefix, &c.cond));
	if (expr_get(r->t->pool, c.cond)->width != EXPR_BOOL)
		return bad(r, "no condition", line);
	/* One behind: the asserting thread's last one is the failure, not the path. */
	if (r->last_cond) {
		expr_id now = c.cond;

		c.cond = r->last_cond;
		c.after = r->t->threads[r->thread].nevents - 1;
		sym_add_cond(r->t, r->thread, &c);
		r->last_cond = now;
	} else {
		r->last_cond = c.cond;
	}
	return NULL;
}

/* line: without newline; next: the line after it, for values. */
static err_t read_line(struct reader *r, char *line, const char *next)
{
	char *colon = strchr(line, ':'), *at;
	unsigned number;

	if (!*line || *line == '$')
		return NULL;
	if (*line == '<') {
		r->in_path |= !strncmp(line, "<path", 5);
		r->prefix = !strcmp(line, "<path>");
		r->asserts |= !strcmp(line, "<assertThread_fail>");
		return NULL;
	}
	if (r->in_path)
		return read_condition(r, line);
	if (!colon) /* a callee below its call site: presentation only */
		return NULL;
	*colon++ = 0;
	at = strrchr(line, '@');
	if (at)
		*at++ = 0;
	number = at ? strtoul(at, NULL, 10) : 0;
	if (!strncmp(colon, "S-", 2))
		return read_sync(r, colon + 2, line, number);
	if (!strncmp(colon, "CS-", 3))
		return NULL;
	if (!strncmp(colon, "R-", 2))
		return read_access(r, colon, NULL, line, number);
	if (!strncmp(colon, "W-", 2)) {
		size_t n = next ? strlen(next) : 0;
		char *value;
		err_t e;

		if (n < 3 || next[0] != '$' || next[n - 1] != '$')
			return bad(r, "no value below the write", colon);
		value = xasprintf("%.*s", (int)(n - 2), next + 1);
		e = read_access(r, colon, value, line, number);
		free(value);
		return e;
	}
	return bad(r, "unknown line", colon);
}

struct text {
	char *path;
	char *data;
	VEC(char *) lines;
};

static err_t load(struct text *x)
{
	int fd = door_open(DOOR_TRACE, x->path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	size_t n = 0, got;
	char buf[65536];

	if (!f)
		return err_errno("%s", x->path);
	while ((got = fread(buf, 1, sizeof buf, f)) > 0) {
		x->data = xrealloc(x->data, n + got + 1);
		memcpy(x->data + n, buf, got);
		n += got;
	}
	bool broken = ferror(f);
	fclose(f);
	if (broken || !x->data)
		return err_new(ERR_INPUT, "%s: %s", x->path, broken ? "cannot be read" : "empty");
	x->data[n] = 0;
	for (char *s = x->data, *end; s < x->data + n; s = end + 1) {
		end = strchrnul(s, '\n');
		*end = 0;
		if (end > s && end[-1] == '\r')
			end[-1] = 0;
		vec_push(&x->lines, s);
	}
	return NULL;
}

/* Symbols first: conditions name reads of other threads. */
static void declare_symbols(struct reader *r, const struct text *x)
{
	for (size_t i = 0; i < x->lines.n; i++) {
		const char *s = strchr(x->lines.v[i], ':');

		if (!s || strncmp(s, ":R-", 3) || !memchr(x->lines.v[i], '@', s - x->lines.v[i]))
			continue;
		vec_push(&r->symbols, (struct named){ xstrdup(s + 1),
			expr_symbol(r->t->pool, EXPR_INT, s + 1) });
	}
}

static err_t read_thread(struct reader *r, const struct text *x, uint32_t thread)
{
	struct sym_event e;

	r->thread = thread;
	r->in_path = r->prefix = r->asserts = false;
	r->last_cond = EXPR_NONE;
	r->at.file = x->path;
	for (size_t i = 0; i < x->lines.n; i++) {
		r->at.line = i + 1;
		TRY(read_line(r, x->lines.v[i], i + 1 < x->lines.n ? x->lines.v[i + 1] : NULL));
	}
	if (r->asserts) {
		if (!r->last_cond)
			return bad(r, "an asserting thread without conditions", x->path);
		sym_event_init(&e, SYM_FAIL);
		add(r, &e, NULL, 0);
		r->t->failure.kind = SYM_FAIL_ASSERT;
		r->t->failure.thread = thread;
		r->t->failure.condition = r->last_cond;
		r->t->failure.text = expr_text(r->t->pool, r->last_cond);
	} else if (r->last_cond) {
		struct sym_cond c = { .cond = r->last_cond, .stack = SYM_NONE,
				      .after = r->t->threads[thread].nevents - 1 };

		sym_add_cond(r->t, thread, &c);
	}
	return NULL;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct text *)a)->path, ((const struct text *)b)->path);
}

typedef VEC(struct text) text_vec;

static err_t list(const char *dir, text_vec *out)
{
	int fd = door_open(DOOR_TRACE, dir);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d)
		return err_errno("%s", dir);
	while ((e = readdir(d)))
		if (e->d_name[0] == 'T' && e->d_name[1] >= '0' && e->d_name[1] <= '9')
			vec_push(out, (struct text){ .path = xasprintf("%s/%s", dir, e->d_name) });
	closedir(d);
	if (!out->n)
		return err_new(ERR_INPUT, "%s: no thread files (T0, T1, ...)", dir);
	qsort(out->v, out->n, sizeof *out->v, by_path);
	return NULL;
}

static err_t read_all(struct reader *r, text_vec *texts)
{
	for (size_t i = 0; i < texts->n; i++) {
		TRY(load(&texts->v[i]));
		sym_add_thread(r->t, strrchr(texts->v[i].path, '/') + 1, NULL);
		declare_symbols(r, &texts->v[i]);
	}
	if (r->symbols.n)
		qsort(r->symbols.v, r->symbols.n, sizeof *r->symbols.v, by_name);
	for (size_t i = 0; i < texts->n; i++)
		TRY(read_thread(r, &texts->v[i], i));
	if (r->t->failure.thread == SYM_NONE)
		return err_new(ERR_INPUT, "no thread has <assertThread_fail>");
	return sym_check(r->t);
}

static void free_names(void *list)
{
	named_vec *l = list;

	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].name);
	vec_free(l);
}

err_t symbiosis_read(const char *dir, struct sym_trace **out)
{
	struct reader r = { .t = sym_trace_new() };
	text_vec texts = { 0 };
	err_t e = list(dir, &texts);

	*out = NULL;
	r.t->program = xstrdup(dir);
	sym_add_assumption(r.t, "variables read before any write start at one unknown value");
	if (!e)
		e = err_wrap(read_all(&r, &texts), "%s", dir);
	if (e)
		sym_trace_free(r.t);
	else
		*out = r.t;
	for (size_t i = 0; i < texts.n; i++) {
		free(texts.v[i].path);
		free(texts.v[i].data);
		vec_free(&texts.v[i].lines);
	}
	vec_free(&texts);
	free_names(&r.symbols);
	free_names(&r.vars);
	free_names(&r.locks);
	free_names(&r.conds);
	return e;
}
