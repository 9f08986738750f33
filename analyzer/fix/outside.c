/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trying a fix from a confined process: the runs are made by a helper outside, which checks what it is asked for. */
#include "analyzer/fix/fix.h"

#include "analyzer/sandbox/sandbox.h"
#include "common/vec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MOST_POINTS (1u << 20)  /* bytes: thousands of places; a fix has dozens */
#define MOST_MESSAGE (64u << 10) /* bytes */
#define WITHOUT UINT32_MAX      /* instead of a length: runs without a fix */

struct question {
	char strategy[160], fail_exit[16]; /* fail_exit: "" when none was recorded */
	uint64_t seed;
	uint32_t points; /* bytes of them that follow */
};

struct answer {
	struct fix_count count; /* its pointer says nothing */
	uint32_t first, message; /* bytes of text that follow: count.first, and an error */
	uint32_t error;          /* enum err_code; 0: none */
};

/* ---- outside ---- */

static bool is_word(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("/-_.+,", text[i]))
			return false;
	return n < size;
}

static bool send_answer(int sock, struct fix_count *c, err_t e)
{
	struct answer a = { .count = *c, .first = c->first ? (uint32_t)strlen(c->first) : 0,
			    .message = e ? (uint32_t)strlen(e->msg) : 0, .error = e ? (uint32_t)e->code : 0 };

	a.count.first = NULL;
	return sandbox_send(sock, &a, sizeof a) && sandbox_send(sock, c->first ? c->first : "", a.first) &&
	       sandbox_send(sock, e ? e->msg : "", a.message);
}

static bool serve_one(int sock, const struct fix_trial *trial)
{
	struct fix_trial t = *trial;
	struct fix_count c = { 0 };
	struct fix f = { 0 };
	struct question q;

	if (!sandbox_receive(sock, &q, sizeof q) || !is_word(q.strategy, sizeof q.strategy) ||
	    !is_word(q.fail_exit, sizeof q.fail_exit) || (q.points != WITHOUT && q.points > MOST_POINTS))
		return false;
	t.strategy = q.strategy;
	t.seed = q.seed;
	if (!t.fail_exit && *q.fail_exit)
		t.fail_exit = q.fail_exit;
	char *text = q.points != WITHOUT ? xcalloc(1, (size_t)q.points + 1) : NULL;
	bool good = !text || sandbox_receive(sock, text, q.points);

	if (good) {
		if (text)
			strbuf_add(&f.points, text, q.points);
		err_t e = fix_run(&t, text ? &f : NULL, &c);
		good = send_answer(sock, &c, e);
		err_free(e);
	}
	free(text);
	fix_count_free(&c);
	fix_free(&f);
	return good;
}

int fix_serve(int sock, void *trial)
{
	while (serve_one(sock, trial))
		;
	return 0;
}

/* ---- inside ---- */

static err_t receive_text(int sock, uint32_t n, char **out)
{
	*out = n > MOST_MESSAGE ? NULL : xcalloc(1, (size_t)n + 1);
	if (*out && sandbox_receive(sock, *out, n))
		return NULL;
	free(*out);
	*out = NULL;
	return err_new(ERR_INTERNAL, "the process that runs the program is gone");
}

err_t fix_ask(const struct fix_trial *t, const struct fix *f, struct fix_count *out)
{
	struct question q = { .seed = t->seed, .points = f ? (uint32_t)f->points.n : WITHOUT };
	struct answer a;
	char *first = NULL, *message = NULL;

	*out = (struct fix_count){ 0 };
	strncpy(q.strategy, t->strategy, sizeof q.strategy - 1);
	strncpy(q.fail_exit, t->fail_exit ? t->fail_exit : "", sizeof q.fail_exit - 1);
	if (!sandbox_send(t->outside, &q, sizeof q) || !sandbox_send(t->outside, f ? f->points.s : "", f ? f->points.n : 0) ||
	    !sandbox_receive(t->outside, &a, sizeof a))
		return err_new(ERR_INTERNAL, "the process that runs the program is gone");
	TRY(receive_text(t->outside, a.first, &first));
	err_t e = receive_text(t->outside, a.message, &message);

	if (!e && a.error)
		e = err_new((enum err_code)a.error, "%s", message);
	free(message);
	*out = a.count;
	out->first = a.first ? first : NULL;
	if (!a.first)
		free(first);
	return e;
}
