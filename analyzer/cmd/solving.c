#include "analyzer/cmd/solving.h"

#include "common/door.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/resource.h>

#define MOST_ALTERNATES 1000

static const struct {
	const char *name;
	enum sched_model model;
} models[] = { { "sc", SCHED_SC }, { "tso", SCHED_TSO } };

static err_t add_source_root(void *arg, const char *option, const char *dir)
{
	struct stat st;

	(void)arg;
	if (stat(dir, &st) || !S_ISDIR(st.st_mode))
		return err_new(ERR_USAGE, "--%s: %s is no directory", option, dir);
	door_add_sources(dir);
	return NULL;
}

struct cmd_call source_root_option = { add_source_root, NULL };

static err_t find_model(const char *name, enum sched_model *out)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		if (!strcmp(models[i].name, name)) {
			*out = models[i].model;
			return NULL;
		}
	}
	return err_new(ERR_USAGE, "--memory-model is sc or tso, not '%s'", name);
}

const char *solving_parse(struct cmd_spec *spec, struct report_options *report, int argc, char **argv,
			  char ***program, int *status)
{
	struct cmd_args args;

	report_options_init(report);
	spec->min_args = 1;
	spec->max_args = program ? CMD_ANY : 1;
	spec->extra = report_options_parse;
	spec->extra_arg = report;
	spec->extra_help = report_options_help;
	if (!cmd_parse(spec, argc, argv, &args, status))
		return NULL;
	err_t e = report_options_check(report);
	/* What is run has to be asked for. */
	if (!e && args.n > 1 && !args.dashes)
		e = err_new(ERR_USAGE, "'%s' is one argument too many; a program to try the advice on is given after --", args.v[1]);
	if (program)
		*program = args.n > 1 ? args.v + 1 : NULL;
	*status = cmd_fail(spec->name, e);
	return *status ? NULL : args.v[0];
}

err_t solving_options(const struct solving *s, struct sched_options *o)
{
	sched_options_init(o);
	if (s->model)
		TRY(find_model(s->model, &o->model));
	if (s->window > UINT32_MAX || s->alternates > MOST_ALTERNATES)
		return err_new(ERR_USAGE, "--window or --alternates out of range");
	o->timeout = s->timeout;
	o->window = s->window;
	if (s->alternates)
		o->alternates = s->alternates;
	return NULL;
}

uint64_t solving_peak_bytes(void)
{
	struct rusage u;

	return getrusage(RUSAGE_SELF, &u) ? 0 : (uint64_t)u.ru_maxrss * 1024;
}
