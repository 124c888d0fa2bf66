/*
 * tests/test_lost_work.c - nothing is lost (tests/lost.h) by whole pieces of work, each with what
 * it refuses: answers and their reports, graphs, sweeps, tables, plans; fits and recorded
 * steps: tests/test_lost_fits.c
 */
#include "foretoken/reports.h"
#include "tests/lost.h"

/* ---- answers --------------------------------------------------------------------- */

static void report_all(const struct ft_scenario *s, const struct ft_outcome *o)
{
	FILE *out = nowhere();

	ft_report_outcome(out, s, o);
	ft_report_outcome_json(out, s, o);
	ft_report_bom(out, s->cluster, o->bom);
	ft_report_bom_json(out, s->cluster, o->bom);
	ft_report_bom_csv(out, o->bom);
	ft_report_finance(out, s, o);
	for (int f = 0; f < FT_FRAMEWORKS; f++)
		ft_report_plan_arguments(out, s, (enum ft_framework)f);
	fclose(out);
}

static void simulate_as(struct ft_scenario *s, enum ft_timeline form, int64_t rank)
{
	FILE *timeline = nowhere();
	struct ft_error err;
	struct ft_outcome o;

	s->timeline = form;
	s->timeline_rank = rank;
	s->memory_chart = form == FT_TIMELINE_MEMORY;
	if (ft_study_simulate(s, NULL, form == FT_TIMELINE_MEMORY ? NULL : timeline, &o,
			      &err)) {
		if (form == FT_TIMELINE_CHROME && ft_study_run(s, &o, &err))
			report_all(s, &o);
		ft_outcome_release(&o);
	}
	fclose(timeline);
}

static void ask_answers(void)
{
	static const char *const paths[] = {
		"examples/13-rent-or-own/own.yaml",
		"examples/15-recorded-step/scenario.yaml",
		"examples/05-bill-of-materials/superpod.yaml",
	};
	static const char *const sets[] = { "run.tokens=1T", "run.days=30",
					    "run.budget=1e7 USD" };
	struct ft_error err;

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct ft_shelf *shelf = ft_shelf_new();
		struct ft_scenario *s = ft_scenario_load(shelf, paths[i], sets,
							 i == 1 ? 3 : 0, true, &err);

		for (int form = 0; s && form < FT_TIMELINES; form++)
			simulate_as(s, (enum ft_timeline)form, form);
		if (s) {
			FILE *out = nowhere();

			(void)!ft_study_goal(s, out, &err);
			fclose(out);
		}
		ft_scenario_free(s);
		ft_shelf_free(shelf);
	}
}

static void report_compared(const struct ft_scenario **s, struct ft_outcome *o,
			    enum ft_basis basis)
{
	struct ft_verdict *v = calloc(1, sizeof(*v));
	struct ft_compared how = { basis, 64 };
	struct ft_error err;

	assert_non_null(v);
	if (ft_study_compare(s, o, 2, &how, v, &err)) {
		const char **labels = ft_study_labels(s, 2);
		const struct ft_answers answers = { s, o, labels, 2, "c", v, basis };
		struct ft_difference *d;
		FILE *out = nowhere();
		size_t n;

		ft_report_compare(out, &answers);
		ft_report_compare_json(out, &answers);
		ft_report_compare_csv(out, &answers);
		fclose(out);
		d = ft_study_differences(s[0], &o[0], s[1], &o[1], &n);
		ft_differences_free(d);
		ft_labels_free(labels);
		ft_outcome_release(&o[0]);
		ft_outcome_release(&o[1]);
	}
	free(v);
}

static void ask_compared(void)
{
	static const char *const sets[][1] = { { "cluster.gpus=64" },
					       { "training.micro_batch_size=3" } };
	const char *path = "examples/10-h100-or-mi300x-2024/h100.yaml";

	for (int basis = 0; basis < 2; basis++)
		for (int i = 0; i < 2; i++) {
			struct ft_shelf *shelf = ft_shelf_new();
			struct ft_outcome o[2];
			struct ft_error err;
			const struct ft_scenario *s[2] = {
				ft_scenario_load(shelf, path, NULL, 0, true, &err),
				ft_scenario_load(shelf, path, sets[i], 1, true, &err)
			};

			if (s[0] && s[1])
				report_compared(s, o, (enum ft_basis)basis);
			ft_scenario_free((struct ft_scenario *)s[0]);
			ft_scenario_free((struct ft_scenario *)s[1]);
			ft_shelf_free(shelf);
		}
}

/* ---- graphs ---------------------------------------------------------------------- */

static void write_graph(const struct ft_graph *g, const char *path, const char *more)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	ft_graph_write(g, f);
	fputs(more, f);
	fclose(f);
}

static void ask_graphs(void)
{
	static const char *const more[] = { "", "dance\n", "call 0 x0\n" };
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err;
	struct ft_scenario *s = ft_scenario_load(
		shelf, "examples/07-edit-a-step/scenario.yaml", NULL, 0, true, &err);
	struct ft_graph *g;
	char path[64];

	ok_or_say(s, err);
	g = ft_graph_build(s->model, s->plan, s->stack, &err);
	ok_or_say(g, err);
	own_path(path, "lost.graph");
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++) {
		struct ft_graph *back;
		struct ft_outcome o;

		write_graph(g, path, more[i]);
		back = ft_graph_read(path, s->cluster->ranks, &err);
		if (back && ft_study_simulate(s, back, NULL, &o, &err))
			ft_outcome_release(&o);
		ft_graph_free(back);
	}
	ft_graph_free(g);
	unlink(path);
	ft_graph_free(ft_graph_read(path, 1, &err));
	ft_scenario_free(s);
	ft_shelf_free(shelf);
}

/* ---- many runs ------------------------------------------------------------------- */

static void ask_sweeps(void)
{
	static const char *const vary[] = { "training.micro_batch_size=1,3",
					    "stack=generic,none-such",
					    "training.colour=red" };
	char db[2][64];
	struct ft_error err;

	own_path(db[0], "lost-a.db");
	own_path(db[1], "lost-b.db");
	for (int i = 0; i < 4; i++) {
		struct ft_sweep sweep = {
			.scenario = "examples/01-first-answer/h100.yaml",
			.db = db[i % 2],
			.vary = &vary[i > 2 ? 2 : 0],
			.n_vary = i > 2 ? 1 : 1 + (size_t)i % 2,
			.threads = 1,
		};
		struct ft_sweep_result r;

		(void)!ft_study_sweep(&sweep, &r, &err);
		sweep.db =
			i % 2 ? "README.md" : "/none-such/x.db"; /* no store of ours */
		(void)!ft_study_sweep(&sweep, &r, &err);
	}
	for (int i = 0; i < 3; i++) {
		const char *from[] = { i ? db[1] : "README.md" };
		struct ft_merge_result r;

		(void)!ft_study_merge(db[0], from, 1, &r, &err);
	}
	unlink(db[0]);
	unlink(db[1]);
}

static void ask_tables(void)
{
	static const char *const files[] = { "measurements/kernels/simumax-b200.csv",
					     "measurements/kernels/h100-unseen.csv",
					     "README.md", "none-such.csv" };
	static const char *const kinds[] = { "gpus",   "models", "stacks", "ccl",
					     "prices", "keys",	 "nodes",  "fabrics" };

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		struct ft_kernel_tally tally;
		struct ft_error err;
		FILE *out = nowhere();

		(void)!ft_study_kernels(i % 2 ? "none-such" : "b200", files[i], out,
					&tally, &err);
		fclose(out);
	}
	for (size_t i = 0; i < 2 * sizeof(kinds) / sizeof(*kinds); i++) {
		struct ft_error err;
		FILE *out = nowhere();

		(void)!ft_report_list(out, kinds[i / 2], i % 2, &err);
		fclose(out);
	}
}

/* ---- plans ----------------------------------------------------------------------- */

static void ask_planned(void)
{
	static const char *const open[] = {
		"{model: {name: llama3-8b, num_hidden_layers: 2}, cluster: {gpu: "
		"h100-sxm, gpus: [4, 8]}, run: {tokens: 1T, days: 30}, training: "
		"{sequence_length: 2048, global_batch_size: 16, sharding: fsdp, recompute: none, "
		"micro_batch_size: 1, parallel: {tp: 1, cp: 1}}}",
		"{model: llama3-70b, cluster: {gpu: h100-sxm, gpus: 1}, training: "
		"{sequence_length: 2048, global_batch_size: 1}}",
	};

	for (int i = 0; i < 2; i++) {
		struct ft_search search = { .top = 2, .threads = 1 };
		struct ft_plans *plans[FT_SIZES_MOST];
		struct ft_run_answer run = { 0 };
		struct ft_error err;
		size_t n = 0;

		if (ft_study_plans_of("p", open[i], &search, plans, &n, &err)) {
			struct ft_planning all = { plans, n, FT_RANK_TOKENS, &run };
			FILE *out = nowhere();

			ft_plans_run(plans, n, &run);
			ft_report_plans(out, &all);
			ft_report_plans_json(out, &all);
			fclose(out);
		}
		while (n)
			ft_plans_free(plans[--n]);
	}
}

LOSES_NOTHING(answers_and_their_reports, ask_answers)
LOSES_NOTHING(comparisons, ask_compared)
LOSES_NOTHING(graphs, ask_graphs)
LOSES_NOTHING(sweeps, ask_sweeps)
LOSES_NOTHING(tables, ask_tables)
LOSES_NOTHING(plans_and_their_reports, ask_planned)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_and_their_reports),
		cmocka_unit_test(comparisons),
		cmocka_unit_test(graphs),
		cmocka_unit_test(sweeps),
		cmocka_unit_test(tables),
		cmocka_unit_test(plans_and_their_reports),
	};

	(void)argc;
	lost_begin(argv);
	return cmocka_run_group_tests_name("lost by work", tests, NULL, NULL);
}
