/*
 * SARIF 2.1.0: one result at the failure, a code flow per schedule, a thread
 * flow per thread; executionOrder is the place in the schedule.
 */
#include "analyzer/report/internal.h"
#include "common/json.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a code host wants to know about each kind of failure. */
static const struct rule {
	const char *id, *title, *help;
	const char *tag; /* besides "concurrency" */
} rules[] = {
	{ "assert", "An assertion fails in some orders of the threads",
	  "The asserted condition depends on the order in which threads run.", "correctness" },
	{ "abort", "The program aborts in some orders of the threads",
	  "The program or its run-time library ends it by abort(), depending on the order in which threads run.",
	  "correctness" },
	{ "signal", "The program crashes in some orders of the threads",
	  "A thread dies by a signal such as SIGSEGV, depending on the order in which threads run.", "security" },
	{ "exception", "An exception is not caught in some orders of the threads",
	  "Whether the exception is thrown depends on the order in which threads run.", "correctness" },
	{ "deadlock", "Threads wait for each other for ever",
	  "Each thread holds what another one waits for, or no thread is left to wake the sleepers. Acquire locks in one "
	  "order everywhere; change what a waiting thread waits for under the lock it waits with.", "correctness" },
	{ "hang", "The program stands still in some orders of the threads",
	  "No thread makes progress, depending on the order in which threads run.", "correctness" },
	{ "exit", "The program ends with a failing status in some orders of the threads",
	  "Its exit status depends on the order in which threads run.", "correctness" },
	{ "user", "The program reports a failure in some orders of the threads",
	  "The program says itself, by csched_fail(), that it failed.", "correctness" },
	{ "use-after-free", "Memory is used after another thread has freed it",
	  "Let the thread that frees wait until no other one uses the memory, or count references.", "security" },
	{ "double-free", "Memory is freed twice",
	  "Two threads, or one twice, free the same block. Let one owner free it.", "security" },
	{ "use-after-return", "A variable of a function is used after that function has returned",
	  "Another thread still uses a local variable. Let the function wait for it, or keep the variable elsewhere.",
	  "security" },
	{ "use-after-destroy", "A mutex is used after it was destroyed",
	  "Destroy it when no thread can come to it any more.", "correctness" },
	{ "use-after-close", "A descriptor is used after another thread has closed it",
	  "Close it when no thread uses it any more: the number may already be that of another file.", "security" },
};

static const struct rule *rule_of(const struct report *r)
{
	const char *id = r->failure.rule ? r->failure.rule : rep_failure_kind(r);

	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (!strcmp(rules[i].id, id))
			return &rules[i];
	return &rules[0];
}

/*
 * Code hosts know files by their path in the repository: from the directory above us that holds .git, or from where we are.
 * With a slash at the end.
 */
static const char *source_root(void)
{
	static char root[PATH_MAX];
	char try[PATH_MAX + 8];

	if (*root)
		return root;
	if (!getcwd(root, sizeof root - 2))
		strcpy(root, "/");
	size_t n = strlen(root);
	for (size_t at = n; at > 1; at = (size_t)(strrchr(try, '/') - try)) {
		snprintf(try, sizeof try, "%.*s/.git", (int)at, root);
		if (!access(try, F_OK)) {
			root[at] = 0;
			break;
		}
		snprintf(try, sizeof try, "%.*s", (int)at, root);
	}
	n = strlen(root);
	if (root[n - 1] != '/')
		strcpy(root + n, "/");
	return root;
}

void report_sarif_prepare(void)
{
	source_root();
}

/* Without "." and "..", as compilers that run elsewhere leave them; malloc'd. */
static char *plain_path(const char *file)
{
	char *out = xstrdup(file), *to = out + (*file == '/');

	for (const char *p = file + (*file == '/'); *p;) {
		size_t n = strcspn(p, "/"), next = n + (p[n] == '/');
		bool up = n == 2 && !memcmp(p, "..", 2);
		/* What is above the start of a relative name stays. */
		bool above = to - out < 2 || (to - out >= 3 && !strncmp(to - 3, "../", 3));

		if (up && (*file == '/' || !above)) {
			for (to -= to > out + (*file == '/'); to > out + (*file == '/') && to[-1] != '/'; to--)
				;
		} else if (n && !(n == 1 && *p == '.')) {
			memmove(to, p, next);
			to += next;
		}
		p += next;
	}
	*to = 0;
	return out;
}

/* A file name as a URI reference: relative to the source root, or with the file scheme where it lies elsewhere. */
static char *uri_of(const char *name, bool *relative)
{
	struct strbuf b = { 0 };
	const char *root = source_root();
	char *plain = plain_path(name);
	const char *file = plain;

	if (!strncmp(file, root, strlen(root)) && strcmp(root, "/"))
		file += strlen(root);
	*relative = *file != '/';
	if (*file == '/')
		strbuf_str(&b, "file://");
	for (; *file; file++) {
		unsigned char c = (unsigned char)*file;

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    strchr("-._~/+", c))
			strbuf_char(&b, (char)c);
		else
			strbuf_fmt(&b, "%%%02X", c);
	}
	free(plain);
	return strbuf_take(&b);
}

static void message(struct json *j, const char *text)
{
	struct strbuf b = { 0 };

	/* [words](target) would be a link. */
	for (const char *s = text; *s; s++) {
		strbuf_char(&b, *s);
		if (*s == ']' && s[1] == '(')
			strbuf_char(&b, ' ');
	}
	json_object(j, "message");
	json_str(j, "text", b.s ? b.s : "");
	json_end(j);
	strbuf_free(&b);
}

static void physical(struct json *j, const struct sym_frame *p)
{
	bool relative;
	char *uri = uri_of(p->file, &relative);

	json_object(j, "physicalLocation");
	json_object(j, "artifactLocation");
	json_str(j, "uri", uri);
	if (relative)
		json_str(j, "uriBaseId", "%SRCROOT%");
	json_end(j);
	if (p->line) {
		json_object(j, "region");
		json_uint(j, "startLine", p->line);
		json_end(j);
	}
	json_end(j);
	free(uri);
}

/* Members of a location object. */
static void location(struct json *j, const struct report *r, struct sched_ref ref, const char *text)
{
	const struct sym_frame *p = dsp_place(r->trace, order_event_at(r->trace, ref));

	if (p && rep_frame_file(p))
		physical(j, p);
	if (p) {
		json_array(j, "logicalLocations");
		json_object(j, NULL);
		json_str(j, "name", rep_frame_name(p));
		json_str(j, "kind", "function");
		json_end(j);
		json_end(j);
	}
	message(j, text);
}

static void flow_stack(struct json *j, const struct report *r, const struct sym_event *e)
{
	if (e->stack >= r->trace->nstacks || !r->trace->stacks[e->stack].n)
		return;
	json_object(j, "stack");
	json_array(j, "frames");
	for (uint32_t i = 0; i < r->trace->stacks[e->stack].n; i++) {
		const struct sym_frame *f = &r->trace->stacks[e->stack].frames[i];

		json_object(j, NULL);
		json_object(j, "location");
		if (rep_frame_file(f))
			physical(j, f);
		message(j, rep_frame_name(f));
		json_end(j);
		if (f->module)
			json_str(j, "module", f->module);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void step(struct json *j, const struct report *r, enum dsp_which w,
		 const struct dsp_event *e, size_t order)
{
	struct strbuf action = { 0 };
	struct rep_view v;

	rep_view_shown(r, w, e, &v);
	rep_action(&action, r, e, &v, w);
	json_object(j, NULL);
	json_object(j, "location");
	location(j, r, e->ref, action.s);
	json_end(j);
	flow_stack(j, r, v.e);
	json_uint(j, "executionOrder", order);
	json_str(j, "importance", e->failure || e->reordered ? "essential" :
		 e->context ? "unimportant" : "important");
	if (v.value && *v.subject) {
		json_object(j, "state");
		json_object(j, v.subject);
		json_str(j, "text", v.value);
		json_end(j);
		json_end(j);
	}
	json_end(j);
	strbuf_free(&action);
	rep_view_free(&v);
}

static void code_flow(struct json *j, const struct report *r, enum dsp_which w)
{
	const struct dsp_side *s = &r->dsp->side[w];

	json_object(j, NULL);
	message(j, rep_title(r, w));
	json_array(j, "threadFlows");
	for (uint32_t th = 0; th < r->trace->nthreads; th++) {
		bool begun = false;

		for (size_t i = 0; i < s->nevents; i++) {
			/* What a deadlocked thread stands at never happens, and is what it is about. */
			if (s->events[i].ref.thread != th ||
			    (!s->events[i].executed && (w != DSP_FAILING || !s->events[i].failure)))
				continue;
			if (!begun) {
				json_object(j, NULL);
				json_str(j, "id", r->trace->threads[th].id);
				json_array(j, "locations");
				begun = true;
			}
			step(j, r, w, &s->events[i], i + 1);
		}
		if (begun) {
			json_end(j);
			json_end(j);
		}
	}
	json_end(j);
	json_end(j);
}

static void explain(struct json *j, const struct report *r)
{
	struct strbuf b = { 0 };
	char *headline = rep_headline(r), *program = rep_program(r);
	char **why;
	size_t n;

	char *sure = rep_confidence(r);

	strbuf_fmt(&b, "%s: %s.", program, headline);
	if (sure)
		strbuf_fmt(&b, " %s", sure);
	free(sure);
	n = rep_causes(r, &why);
	for (size_t i = 0; i < n; i++) {
		strbuf_fmt(&b, "%s%s %s%s", i ? ";" : " ", i ? "" : rep_because(r), why[i],
			   i + 1 < n ? "" : ".");
		free(why[i]);
	}
	free(why);
	if (r->dsp->hint.text && !dsp_is_refuted(&r->dsp->hint))
		strbuf_fmt(&b, " %s", r->dsp->hint.text);
	else if (r->dsp->note)
		strbuf_fmt(&b, " %s", r->dsp->note);
	char *replay = rep_replay(r);
	if (replay)
		strbuf_fmt(&b, " See it happen: %s", replay);
	free(replay);
	message(j, b.s);
	strbuf_free(&b);
	free(program);
	free(headline);
}

static void related(struct json *j, const struct report *r)
{
	json_array(j, "relatedLocations");
	for (size_t i = 0; i < r->dsp->npairs; i++) {
		struct sched_ref ends[] = { r->dsp->pairs[i].before, r->dsp->pairs[i].after };

		for (int k = 0; k < 2; k++) {
			struct strbuf b = { 0 };

			rep_cause(&b, r, ends[0], ends[1]);
			json_object(j, NULL);
			json_uint(j, "id", 2 * i + (size_t)k);
			location(j, r, ends[k], b.s);
			json_end(j);
			strbuf_free(&b);
		}
	}
	json_end(j);
}

static void result(struct json *j, const struct report *r)
{
	struct sched_ref ref;
	char *headline = rep_headline(r);

	json_object(j, NULL);
	json_str(j, "ruleId", rule_of(r)->id);
	json_uint(j, "ruleIndex", 0);
	json_str(j, "level", "error");
	explain(j, r);
	json_array(j, "locations");
	if (rep_failure_ref(r, &ref)) {
		json_object(j, NULL);
		location(j, r, ref, headline);
		json_end(j);
	}
	json_end(j);
	related(j, r);
	json_array(j, "codeFlows");
	for (int w = 0; w < DSP_SIDES; w++)
		if (r->dsp->side[w].nevents)
			code_flow(j, r, w);
	json_end(j);
	json_object(j, "properties");
	json_str(j, "confidence", rep_confidence_name(r->confidence));
	json_end(j);
	json_object(j, "partialFingerprints");
	json_str(j, "cschedRootCause/v1", r->dsp->fingerprint);
	json_end(j);
	json_end(j);
	free(headline);
}

static void text_object(struct json *j, const char *key, const char *text)
{
	json_object(j, key);
	json_str(j, "text", text);
	json_end(j);
}

static void rule(struct json *j, const struct rule *u)
{
	json_object(j, NULL);
	json_str(j, "id", u->id);
	json_str(j, "name", u->id);
	text_object(j, "shortDescription", u->title);
	text_object(j, "fullDescription", u->help);
	json_object(j, "help");
	json_str(j, "text", u->help);
	json_str(j, "markdown", u->help);
	json_end(j);
	json_object(j, "defaultConfiguration");
	json_str(j, "level", "error");
	json_end(j);
	json_object(j, "properties");
	json_array(j, "tags");
	json_str(j, NULL, "concurrency");
	json_str(j, NULL, u->tag);
	json_end(j);
	json_str(j, "precision", "very-high");
	json_str(j, "problem.severity", "error");
	json_end(j);
	json_end(j);
}

void report_sarif(FILE *f, const struct report *r)
{
	struct json j = { 0 };

	json_object(&j, NULL);
	json_str(&j, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
	json_str(&j, "version", "2.1.0");
	json_array(&j, "runs");
	json_object(&j, NULL);
	json_object(&j, "tool");
	json_object(&j, "driver");
	json_str(&j, "name", "csched");
	json_str(&j, "version", CSCHED_VERSION);
	json_array(&j, "rules");
	rule(&j, rule_of(r));
	json_end(&j);
	json_end(&j);
	json_end(&j);
	json_object(&j, "originalUriBaseIds");
	json_object(&j, "%SRCROOT%");
	json_object(&j, "description");
	json_str(&j, "text", "The root of the source tree.");
	json_end(&j);
	json_end(&j);
	json_end(&j);
	json_str(&j, "columnKind", "unicodeCodePoints");
	json_array(&j, "results");
	result(&j, r);
	json_end(&j);
	json_end(&j);
	json_end(&j);
	json_end(&j);
	json_print(&j, f);
}
