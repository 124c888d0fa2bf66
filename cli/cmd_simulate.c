/* cli/cmd_simulate.c - foretoken simulate SCENARIO */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/commands.h"
#include "foretoken/reports.h"

struct args {
	struct shared shared;
	const char *beside, *timeline, *report, *flows;
	bool finance;
	int64_t timeline_rank; /* below 0: not given */
	int timeline_form;     /* enum ft_timeline; below 0: as the file's name says */
	char *command;
};

static const struct argp_option options[] = {
	{ "beside", 'b', "SCENARIO", 0,
	  "Run this scenario's job at the same time on the next nodes of the fabric; --set and --price do not change it",
	  0 },
	{ "timeline", 't', "FILE", 0,
	  "Write the step as Chrome trace JSON (open it in ui.perfetto.dev), or as a Gantt "
	  "chart if FILE ends in .svg (open it in a browser)",
	  0 },
	{ "timeline-format", 'o', "FORMAT", 0,
	  "chrome (default); kineto: the launches and kernels of one rank, "
	  "as PyTorch's profiler records them; svg (default for FILE.svg): "
	  "one row per pipeline stage, one box per pass of a micro-batch; memory: an SVG of "
	  "what the fullest rank holds over the step, by category",
	  0 },
	{ "timeline-rank", 'k', "N", 0,
	  "kineto: the rank to write, which stands for its pipeline stage (default: 0)",
	  0 },
	{ "report", 'r', "DIR", 0, "Write an HTML report with plots", 0 },
	{ "flows", 'f', "FILE", 0,
	  "Write what is paid month by month as CSV in columns of FOCUS 1.2", 0 },
	{ "finance", 'F', NULL, 0,
	  "Also print a GPU-hour's cost in other forms, and owning against renting",
	  0 },
	{ 0 },
};

static int form_of(const char *name)
{
	static const char *const forms[FT_TIMELINES] = { "chrome", "kineto", "svg",
							 "memory" };

	for (int i = 0; i < FT_TIMELINES; i++)
		if (!strcmp(name, forms[i]))
			return i;
	return -1;
}

/* The form that was asked for, or that the file's name says. */
static enum ft_timeline timeline_form(const struct args *a)
{
	bool svg = a->timeline && text_ends_with(a->timeline, ".svg");

	if (a->timeline_form >= 0)
		return (enum ft_timeline)a->timeline_form;
	return svg ? FT_TIMELINE_SVG : FT_TIMELINE_CHROME;
}

/* What someone may take for a picture's name. */
static bool is_picture(const char *file)
{
	static const char *const tails[] = { ".png", ".pdf", ".jpg", ".jpeg", ".html" };

	for (size_t i = 0; i < sizeof(tails) / sizeof(*tails); i++)
		if (text_ends_with(file, tails[i]))
			return true;
	return false;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->shared;
		state->child_inputs[1] = &a->shared;
		state->child_inputs[2] = &a->shared;
		return 0;
	case 'b':
		a->beside = arg;
		return 0;
	case 't':
		if (is_picture(arg))
			argp_error(
				state,
				"--timeline writes JSON, or a chart as SVG: name it FILE.json "
				"or FILE.svg, not '%s'",
				arg);
		a->timeline = arg;
		return 0;
	case 'o':
		a->timeline_form = form_of(arg);
		if (a->timeline_form < 0)
			argp_error(
				state,
				"--timeline-format takes chrome, kineto, svg or memory, not "
				"'%s'",
				arg);
		return 0;
	case 'k':
		if (!whole_argument(arg, 0, INT64_MAX, &a->timeline_rank))
			argp_error(
				state,
				"--timeline-rank: '%s' is not a whole number of at least 0",
				arg);
		return 0;
	case 'r':
		a->report = arg;
		return 0;
	case 'f':
		a->flows = arg;
		return 0;
	case 'F':
		a->finance = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	options,
	parse,
	"SCENARIO",
	"Simulate one training step and price it. SCENARIO - is standard input."
	"\vExample: foretoken simulate examples/01-first-answer/h100.yaml "
	"--set cluster.gpus=2048",
	asked_children,
	NULL,
	NULL,
};

static void remark(const struct ft_scenario *s, const struct ft_outcome *o)
{
	remark_idle_keys(s, "");
	if (!o->fits)
		fprintf(stderr,
			"foretoken: %swarning:%s this plan does not fit in "
			"memory\n",
			terminal_begin(stderr, TERMINAL_WARNING), terminal_end(stderr));
}

/* The answer on stdout, which no report that fails takes away, and the report's files. */
static bool print_answer(const struct args *a, const struct ft_scenario *s,
			 const struct ft_outcome *o, struct ft_error *err)
{
	struct ft_answers answers = { .scenario = &s,
				      .outcome = o,
				      .label = &s->label,
				      .n = 1,
				      .command = a->command };

	if (a->shared.json)
		ft_report_outcome_json(stdout, s, o);
	else
		ft_report_outcome(stdout, s, o);
	if (a->finance && !a->shared.json) {
		putchar('\n');
		ft_report_finance(stdout, s, o);
	}
	if (!a->shared.quiet)
		remark(s, o);
	return !a->report || ft_report_html(a->report, &answers, err);
}

static bool write_flows(const struct args *a, const struct ft_scenario *s,
			const struct ft_outcome *o, struct ft_error *err)
{
	const struct ft_deal deal = ft_outcome_deal(s, o);
	struct file_out file;

	if (!file_begin(&file, a->flows, err))
		return false;
	ft_flows_write(file.out, &deal, s->prices, s->label);
	return file_commit(&file, err);
}

static bool is_drawn(const struct args *a, const struct ft_scenario *s,
		     struct ft_error *err)
{
	if (!a->timeline && (a->timeline_form >= 0 || a->timeline_rank >= 0))
		return ft_fail(
			err, NULL,
			"--timeline-format and --timeline-rank need --timeline FILE");
	if (a->timeline_rank >= 0 && s->timeline != FT_TIMELINE_KINETO)
		return ft_fail(err, NULL,
			       "--timeline-rank needs --timeline-format kineto");
	return a->timeline_rank < s->plan->ranks ||
	       ft_fail(err, NULL, "--timeline-rank %lld: ranks are 0 to %lld",
		       (long long)a->timeline_rank, (long long)s->plan->ranks - 1);
}

static int answer(const struct args *a, const struct ft_scenario *s,
		  const struct ft_scenario *beside)
{
	struct file_out file = { 0 };
	struct ft_outcome o;
	struct ft_error err;
	bool ok;

	if (!is_drawn(a, s, &err) ||
	    !files_apart(&(struct own_files){ .shared = &a->shared,
					      .in = { a->beside },
					      .out = { a->timeline, a->flows } },
			 &err))
		return complain(&err);
	/* the timeline may be meant to lie in the report's folder */
	if (a->report && !file_folder(a->report, &err))
		return complain(&err);
	if (a->timeline && !file_begin(&file, a->timeline, &err))
		return complain(&err);
	if (!(beside ? ft_study_simulate_beside(s, beside, file.out, &o, &err) :
		       ft_study_simulate(s, NULL, file.out, &o, &err))) {
		file_abandon(&file);
		return complain(&err);
	}
	ok = (!a->timeline || file_commit(&file, &err)) &&
	     (!a->flows || write_flows(a, s, &o, &err)) && ft_study_run(s, &o, &err) &&
	     print_answer(a, s, &o, &err);
	ft_outcome_release(&o);
	return ok ? finish_output() : complain(&err);
}

int cmd_simulate(int argc, char **argv)
{
	struct args a = { .shared = { .what = "SCENARIO", .least = 1, .most = 1 },
			  .timeline_form = -1,
			  .timeline_rank = -1 };
	struct progress bar = progress_begin("plan");
	struct ft_search search = { .top = 1, .progress = { progress_tell, &bar } };
	struct ft_shelf *shelf;
	struct ft_scenario *s, *beside = NULL;
	struct ft_error err;
	int status;

	a.command = command_line(argc, argv);
	parse_arguments(&argp, argc, argv, &a);
	shelf = ft_shelf_new();
	bar.quiet = a.shared.quiet;
	search.sets = a.shared.set.word;
	search.n_sets = a.shared.set.n;
	s = ft_scenario_to_run(shelf, a.shared.word.word[0], &search, &err);
	if (s && a.beside)
		beside = ft_scenario_load(shelf, a.beside, NULL, 0, true, &err);
	if (s) {
		s->timeline = timeline_form(&a);
		s->timeline_rank = a.timeline_rank < 0 ? 0 : a.timeline_rank;
		s->memory_chart = a.report != NULL;
	}
	status = s && (beside || !a.beside) ? answer(&a, s, beside) : complain(&err);
	ft_scenario_free(beside);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	free(a.command);
	return status;
}
