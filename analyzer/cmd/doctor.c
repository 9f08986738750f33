/* csched doctor: what will and will not work on this machine, and why. */
#include "analyzer/cmd/doctor.h"

#include "analyzer/cmd/cmd.h"
#include "common/json.h"

#include <stdio.h>

static const struct {
	const char *word;
	enum term_style style;
} verdicts[] = {
	[DOCTOR_OK] = { "ok", TERM_GREEN },
	[DOCTOR_LIMITED] = { "limited", TERM_YELLOW },
	[DOCTOR_BAD] = { "bad", TERM_RED },
};

static void show_check(const struct term *term, const struct doctor_check *c,
		       enum doctor_verdict v, const char *text)
{
	term_print(term, verdicts[v].style, "%-8s", verdicts[v].word);
	fprintf(term->f, "%-14s %s\n", c->name, text);
}

static void check_json(struct json *j, const struct doctor_check *c, enum doctor_verdict v,
		       const char *text)
{
	json_object(j, NULL);
	json_str(j, "name", c->name);
	json_str(j, "verdict", verdicts[v].word);
	json_str(j, "text", text);
	json_end(j);
}

int cmd_doctor(int argc, char **argv)
{
	struct cmd_common common = { 0 };
	const struct cmd_spec spec = {
		.name = "doctor", .usage = "[options]",
		.summary = "Shows what will and will not work on this machine, and why.",
		.more = "Status 0: everything needed works (limits may be listed); 1: something\n"
			"does not work.\n",
		.common = &common,
	};
	struct cmd_args args;
	struct json j = { 0 };
	bool good = true;
	int status;

	if (!cmd_parse(&spec, argc, argv, &args, &status))
		return status;
	struct term term = cmd_term(&common);

	json_object(&j, NULL);
	json_int(&j, "schema", CMD_JSON_SCHEMA);
	json_array(&j, "checks");
	for (unsigned i = 0; i < doctor_ncheck; i++) {
		struct strbuf text = { 0 };
		enum doctor_verdict v = doctor_checks[i].look(&text);

		good &= v != DOCTOR_BAD;
		if (common.json)
			check_json(&j, &doctor_checks[i], v, text.s ? text.s : "");
		else
			show_check(&term, &doctor_checks[i], v, text.s ? text.s : "");
		strbuf_free(&text);
	}
	json_end(&j);
	json_bool(&j, "works", good);
	json_end(&j);
	if (common.json)
		json_print(&j, stdout);
	strbuf_free(&j.out);
	return good ? 0 : ERR_NOANSWER;
}
