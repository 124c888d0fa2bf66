/* cli/cmd_trace.c - foretoken trace show|replay|compare: step graphs as text, recorded steps */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/reader.h"
#include "cli/trace.h"
#include "foretoken/recorded.h"
#include "foretoken/reports.h"

enum { FIT = 256, PACE, DATE };

static const struct argp_option options[] = {
	{ "graph", 'g', "FILE", 0, "replay SCENARIO: file with the graph to run", 0 },
	{ "gpu", 'u', "NAME", 0,
	  "replay FILE: on this GPU; kernels take the ratio of the two profiles' times",
	  1 },
	{ "fabric", 'f', "NAME", 0, "replay FILE: on this network", 1 },
	{ "scale", 'c', "dp=N", 0,
	  "replay FILE: with N data-parallel ranks; tp=N: tensor-parallel ones; may be "
	  "repeated",
	  1 },
	{ "speedup", 'x', "CLASS=TIMES", 0,
	  "replay FILE: make a class of operations so many times faster, e.g. attention=1.5; "
	  "may be repeated",
	  1 },
	{ "without", 'w', "COLLECTIVE", 0,
	  "replay FILE: this collective takes no time, e.g. all_gather; waiting: collectives "
	  "take no longer than their transfers; may be repeated",
	  1 },
	{ "from", 'm', "GPU", 0,
	  "replay FILE, compare: the profile of the recording's GPU (default: by its name)",
	  1 },
	{ "step", 'n', "NAME", 0,
	  "Which of several recorded steps, e.g. 17 for ProfilerStep#17 (default: all but the "
	  "first)",
	  1 },
	{ "chakra", 'a', "PREFIX", 0,
	  "export FILE: write PREFIX.RANK.et, a Chakra execution trace of each rank",
	  1 },
	{ "goal", 'l', "OUT", 0,
	  "export: write the step of all ranks as GOAL, the text that LogGOPSim reads",
	  1 },
	{ "plot", 'P', "FILE.svg", 0,
	  "compare: draw recorded and predicted, by part and by layer (gnuplot)", 1 },
	{ "fit-stack", FIT, "NAME", 0,
	  "compare: write NAME.yaml, the scenario's stack with host constants fitted to "
	  "what was recorded",
	  1 },
	{ "pace", PACE, "FRAC", 0,
	  "--fit-stack: the share of the recorded host's time that it takes without the "
	  "profiler (default: 1)",
	  1 },
	{ "date", DATE, "YYYY-MM-DD", 0, "--fit-stack: date of the recording", 1 },
	{ "timeline", 't', "OUT", 0,
	  "replay FILE, show FILE, compare: write the replayed step of the first rank as the "
	  "profiler would record it",
	  1 },
	{ "tokens-per-step", 'k', "N", 0,
	  "replay FILE: tokens of a recorded step on all ranks; dollars are then printed",
	  1 },
	{ 0 },
};

/* Is the recorded step to be different, or priced? */
static bool asks_what_if(const struct trace_args *a)
{
	for (int c = 0; c < FT_REC_CLASSES; c++)
		if (a->ask.speedup[c] > 0)
			return true;
	for (int c = 0; c < FT_COLLECTIVES; c++)
		if (a->ask.without[c])
			return true;
	return a->ask.without_waiting || a->ask.gpu || a->ask.fabric || a->ask.dp ||
	       a->ask.tp || a->ask.tokens_per_step > 0;
}

static bool asks_change(const struct trace_args *a)
{
	return asks_what_if(a) || a->timeline || a->ask.from;
}

/* Was an option given that only recordings have? */
static bool asks_recording(const struct trace_args *a)
{
	return asks_change(a) || a->ask.step;
}

static error_t parse_option(struct trace_args *a, int key, char *arg,
			    struct argp_state *state)
{
	switch (key) {
	case 'g':
		a->graph = arg;
		return 0;
	case 'u':
		a->ask.gpu = arg;
		return 0;
	case 'f':
		a->ask.fabric = arg;
		return 0;
	case 't':
		a->timeline = arg;
		return 0;
	case 'a':
		a->chakra = arg;
		return 0;
	case 'l':
		a->goal = arg;
		return 0;
	case 'P':
		a->plot = arg;
		return 0;
	case FIT:
		a->fit = arg;
		return 0;
	case DATE:
		a->date = arg;
		return 0;
	case PACE:
		return trace_pace(a, arg, state) ? 0 : EINVAL;
	case 'm':
		a->ask.from = arg;
		return 0;
	case 'n':
		a->ask.step = arg;
		return 0;
	case 'c':
		return trace_scale(a, arg, state) ? 0 : EINVAL;
	case 'x':
		return trace_speedup(a, arg, state) ? 0 : EINVAL;
	case 'w':
		return trace_without(a, arg, state) ? 0 : EINVAL;
	case 'k':
		return trace_tokens(a, arg, state) ? 0 : EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct trace_args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->shared;
		state->child_inputs[1] = &a->shared;
		return 0;
	case ARGP_KEY_ARG:
		if (a->verb)
			return ARGP_ERR_UNKNOWN; /* the SCENARIO, the FILEs */
		if (strcmp(arg, "show") && strcmp(arg, "replay") &&
		    strcmp(arg, "compare") && strcmp(arg, "export"))
			argp_error(state,
				   "'%s' is neither show, replay, compare nor export",
				   arg);
		a->verb = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "show, replay, compare or export is missing");
		return 0;
	default:
		return parse_option(a, key, arg, state);
	}
}

static const struct argp argp = {
	options,
	parse,
	"show SCENARIO\nreplay SCENARIO --graph FILE\n"
	"show FILE...\nreplay FILE... [--gpu NAME] [--scale dp=N] ...\n"
	"compare FILE... SCENARIO [--plot FILE.svg] [--fit-stack NAME]\n"
	"export FILE... --chakra PREFIX\nexport FILE...|SCENARIO --goal OUT",
	"With a SCENARIO, show prints its step graph as text that can be edited; replay "
	"simulates such a text on the scenario's cluster; export writes the step for "
	"LogGOPSim. With FILEs that a profiler recorded, one per rank (Kineto's JSON or JAX's, "
	"plain, .gz or .zst; Nsight's SQLite; Chakra's .et), show says where the step's time went; "
	"replay runs the step again with the changes asked for; compare puts it beside the "
	"step that a scenario predicts; export writes it for other simulators."
	"\vExamples:\n"
	"  foretoken trace show examples/01-first-answer/h100.yaml > step.graph\n"
	"  foretoken trace show rank0.json.gz rank1.json.gz\n"
	"  foretoken trace replay rank0.json.gz --gpu mi300x --fabric roce-400-rail "
	"--scale dp=64\n"
	"  foretoken trace replay rank0.json.gz --speedup attention=1.5\n"
	"  foretoken trace compare rank0.json.gz scenario.yaml --plot gap.svg\n"
	"  foretoken trace export examples/15-recorded-step/scenario.yaml --goal "
	"step.goal",
	priced_children,
	NULL,
	NULL,
};

static bool show(const struct ft_scenario *s, struct ft_error *err)
{
	struct ft_graph *g = ft_scenario_graph(s, err);

	if (!g)
		return false;
	ft_graph_write(g, stdout);
	ft_graph_free(g);
	return true;
}

static bool replay(const struct trace_args *a, const struct ft_scenario *s,
		   struct ft_error *err)
{
	struct ft_graph *g = ft_graph_read(a->graph, s->cluster->ranks, err);
	struct ft_outcome o;
	bool ok = g && ft_study_simulate(s, g, NULL, &o, err);

	if (ok && a->shared.json)
		ft_report_outcome_json(stdout, s, &o);
	else if (ok)
		ft_report_outcome(stdout, s, &o);
	if (ok)
		ft_outcome_release(&o);
	ft_graph_free(g);
	return ok;
}

static bool export_goal(const struct trace_args *a, const struct ft_scenario *s,
			struct ft_error *err)
{
	struct file_out f;

	if (!file_begin(&f, a->goal, err))
		return false;
	if (!ft_study_goal(s, f.out, err)) {
		file_abandon(&f);
		return false;
	}
	if (!file_commit(&f, err))
		return false;
	printf("wrote %s\n", a->goal);
	return true;
}

/* A graph built from a scenario, or one read for it. */
static bool of_scenario(const struct trace_args *a, struct ft_error *err)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_scenario *s =
		ft_scenario_load(shelf, a->shared.word.word[0], a->shared.set.word,
				 a->shared.set.n, true, err);
	bool ok = s && (a->goal			 ? export_goal(a, s, err) :
			!strcmp(a->verb, "show") ? show(s, err) :
						   replay(a, s, err));

	ft_scenario_free(s);
	ft_shelf_free(shelf);
	return ok;
}

static int wrong(const char *why)
{
	fprintf(stderr, "foretoken: error: %s\n", why);
	return 64;
}

static const char *misused_export(const struct trace_args *a)
{
	if (!strcmp(a->verb, "export") && a->shared.json)
		return "export writes a file, and prints no JSON";
	if (!strcmp(a->verb, "export") != ((a->chakra != NULL) + (a->goal != NULL)))
		return "export takes --chakra PREFIX or --goal OUT, and no other verb "
		       "does";
	return NULL;
}

/* Options that belong to one verb; NULL: all do. */
static const char *misused_options(const struct trace_args *a)
{
	if (a->plot && !a->scenario)
		return "--plot is of compare";
	if (a->fit && !a->scenario)
		return "--fit-stack is of compare";
	if (a->fit && (a->plot || asks_change(a)))
		return "--fit-stack goes with --step, --pace and --date alone";
	if ((a->pace > 0 || a->date) && !a->fit)
		return "--pace and --date are of --fit-stack";
	if (a->date && !reader_is_date(a->date))
		return "--date is no date: write 2026, 2026-11 or 2026-11-22";
	if (a->date && reader_in_future(a->date))
		return "--date lies in the future";
	return misused_export(a);
}

/* What is wrong with the options where a recording is shown or exported as it is; NULL: nothing. */
static const char *misused_as_recorded(const struct trace_args *a)
{
	if (!strcmp(a->verb, "export") && (a->ask.step || a->timeline))
		return "export writes all that was recorded: --step and --timeline do "
		       "nothing there";
	if (a->ask.from || a->shared.set.n)
		return "--from, --set and --price change nothing in what is shown or "
		       "exported of a recording: they are of replay and compare";
	return NULL;
}

/* What does not go together, of a recording and of a scenario; NULL: all does. */
static const char *misused_recording(const struct trace_args *a)
{
	if (a->graph)
		return "--graph is of a SCENARIO; a recording has its own";
	if (strcmp(a->verb, "replay") && asks_what_if(a))
		return "--gpu, --fabric, --scale, --speedup, --without and "
		       "--tokens-per-step are of replay";
	if (!strcmp(a->verb, "show") || !strcmp(a->verb, "export"))
		return misused_as_recorded(a);
	if (!strcmp(a->verb, "replay") && a->ask.from && !a->ask.gpu &&
	    !a->ask.fabric && !a->ask.dp && !a->ask.tp &&
	    !(a->ask.tokens_per_step > 0) && !a->shared.set.n &&
	    !a->ask.without_waiting)
		return "--from is the recording's GPU, for another machine: add --gpu, "
		       "--fabric, --scale or --tokens-per-step";
	return NULL;
}

static const char *misused_scenario(const struct trace_args *a)
{
	if (a->scenario || a->chakra)
		return "compare and export --chakra take recordings; the first file is "
		       "none";
	if (asks_recording(a))
		return "--gpu, --fabric, --scale, --speedup, --without, --from, --step, "
		       "--timeline and --tokens-per-step are of a recording, and the "
		       "file is none";
	if (a->shared.word.n > 1)
		return "one SCENARIO at a time; several FILEs must be recordings";
	if (!strcmp(a->verb, "replay") && !a->graph)
		return "--graph FILE is missing, or the file is no recording";
	if (!strcmp(a->verb, "show") && a->shared.json)
		return "show prints the step graph of a SCENARIO as text: --json is of "
		       "a recording";
	if (strcmp(a->verb, "replay") && a->graph)
		return "--graph is of replay: show and export build the scenario's own";
	return NULL;
}

static const char *misused(const struct trace_args *a, bool recorded)
{
	if (!recorded)
		return misused_scenario(a);
	if (a->scenario && ft_recording_is(a->scenario))
		return "compare takes FILE... and then a SCENARIO: the last file is a "
		       "recording";
	return misused_recording(a);
}

/* Standard input becomes a file without a name that can be read more than once, until the program ends. */
static bool keep_input(struct ft_error *err)
{
	char some[65536];
	FILE *kept = tmpfile();
	size_t k = 0;

	while (kept && (k = fread(some, 1, sizeof(some), stdin)) &&
	       fwrite(some, 1, k, kept) == k)
		k = 0;
	if (!kept || k || ferror(stdin) || fflush(kept) ||
	    dup2(fileno(kept), STDIN_FILENO) < 0)
		return ft_fail(err, NULL, "standard input cannot be kept: %s",
			       strerror(errno));
	return true;
}

/* "-" among the words: as messages call it, /dev/stdin. */
static bool find_input(struct trace_args *a, struct ft_error *err)
{
	bool any = false;

	for (size_t i = 0; i < a->shared.word.n; i++) {
		any |= !strcmp(a->shared.word.word[i], "-");
		a->shared.word.word[i] = file_input(a->shared.word.word[i]);
	}
	return !any || keep_input(err);
}

/* That there is no such file says more than that it is no recording. */
static bool is_there(const char *path, struct ft_error *err)
{
	struct ft_mark at = { .file = path };
	struct stat st;

	if (stat(path, &st))
		return ft_fail(err, &at, "%s", strerror(errno));
	return !S_ISDIR(st.st_mode) || ft_fail(err, &at, "is a folder, not a file");
}

int cmd_trace(int argc, char **argv)
{
	struct trace_args a = { .shared = { .what = "SCENARIO or FILE",
					    .least = 1,
					    .most = LIMIT_OPTION_WORDS } };
	struct ft_error err;
	const char *why;
	bool recorded;

	parse_arguments(&argp, argc, argv, &a);
	if (!strcmp(a.verb, "compare")) {
		if (a.shared.word.n < 2)
			return wrong("compare takes FILE... and then a SCENARIO");
		a.scenario = a.shared.word.word[--a.shared.word.n];
	}
	why = misused_options(&a);
	if (why)
		return wrong(why);
	if (!find_input(&a, &err))
		return complain(&err);
	recorded = ft_recording_is(a.shared.word.word[0]);
	why = misused(&a, recorded);
	if (why && !recorded && !is_there(a.shared.word.word[0], &err))
		return complain(&err);
	if (why)
		return wrong(why);
	if (!files_apart(&(struct own_files){ .shared = &a.shared,
					      .in = { a.graph, a.scenario },
					      .out = { a.timeline, a.goal, a.plot } },
			 &err))
		return complain(&err);
	return (recorded ? trace_recorded(&a, &err) : of_scenario(&a, &err)) ?
		       finish_output() :
		       complain(&err);
}
