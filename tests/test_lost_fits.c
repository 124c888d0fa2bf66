/* tests/test_lost_fits.c - nothing is lost (tests/lost.h) by fits, and by what is asked of recorded steps */
#include <sys/stat.h>

#include "base/arena.h"
#include "foretoken/calibrate.h"
#include "foretoken/reports.h"
#include "tests/lost.h"
#include "tests/published.h"

/* Runs of a small model: enough for a fit, or too few. */
static void write_runs(const char *path, int n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs("id,model.name,model.num_hidden_layers,cluster.gpu,cluster.gpus,"
	      "training.sequence_length,training.global_batch_size,measured.step_s\n",
	      f);
	for (int i = 0; i < n; i++)
		fprintf(f, "r%d,llama3-8b,2,h200,8,%d,16,0.%d\n", i, 1024 << i % 3,
			4 + i);
	fclose(f);
}

static void ask_stacks(void)
{
	static const int rows[] = { 5, 2, 0 };

	for (int i = 0; i < 3; i++) {
		char runs[64], path[64], file[80];
		struct ft_stack_request asked = { .runs = own_path(runs, "runs.csv"),
						  .name = own_path(path, "stack") };
		struct ft_stack_fit fit;
		struct ft_error err;
		FILE *out = nowhere();
		bool ok;

		write_runs(runs, rows[i]);
		ok = ft_study_fit_stack(&asked, &fit, &err);
		if (ok) {
			ft_report_stack_fit(out, &fit);
			ft_report_stack_fit_json(out, &fit);
		}
		assert_int_equal(ok, i == 0);
		fclose(out);
		snprintf(file, sizeof(file), "%s.yaml", path);
		unlink(file);
		unlink(runs);
	}
}

/* ---- a recorded step ------------------------------------------------------------- */

static const char recorded[] = "measurements/traces/"
			       "h100-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz";

static void ask_gaps(struct ft_shelf *shelf, const struct ft_replay *replay,
		     const struct ft_whatif *answer, const char *set)
{
	struct ft_whatif_request asked = { .replay = replay };
	struct ft_trace_predicted p = { .n = 0 };
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_scenario *s = ft_scenario_load(
		shelf, "examples/15-recorded-step/scenario.yaml", &set, 1, true, &err);

	if (s && ft_study_trace_predict(s, replay, &p, &err)) {
		struct ft_trace_gap gap[FT_TRACE_GAPS];
		struct ft_trace_layers l = { 0 };
		FILE *out = nowhere();

		ft_study_trace_gaps(answer, &p, gap);
		l.recorded = ft_study_trace_layers(&asked, false, &mem);
		asked.replay = p.replay;
		if (p.replay)
			l.predicted = ft_study_trace_layers(&asked, false, &mem);
		else
			l.predicted.why = "it cannot be drawn";
		ft_report_trace_gaps(out, gap, &l);
		ft_report_trace_gaps_json(out, gap, &l);
		fclose(out);
	}
	ft_trace_predicted_release(&p);
	ft_scenario_free(s);
	arena_release(&mem);
}

static void ask_hosts(struct ft_shelf *shelf, const struct ft_replay *replay)
{
	static const char *const set[] = { "training.parallel.pp=2",
					   "cluster.gpu=h100-sxm" };
	struct ft_error err;

	for (int i = 0; i < 3; i++) {
		char path[64], file[80];
		struct ft_scenario *s = ft_scenario_load(
			shelf, "examples/15-recorded-step/scenario.yaml", &set[i % 2],
			1, true, &err);
		struct ft_host_fit fit;
		FILE *out = nowhere();

		own_path(path, "hosts");
		if (s &&
		    ft_study_fit_hosts(&(struct ft_host_fit_request){ .replay = replay,
								      .scenario = s,
								      .name = path,
								      .pace = 1 },
				       &fit, &err)) {
			ft_report_host_fit(out, &fit);
			ft_report_host_fit_json(out, &fit);
		}
		fclose(out);
		snprintf(file, sizeof(file), "%s.yaml", path);
		unlink(file);
		ft_scenario_free(s);
	}
}

static void write_recorded(const struct ft_replay *replay)
{
	int64_t messages, kept;
	FILE *out = nowhere();

	ft_replay_write_chakra(replay, 0, out);
	ft_replay_write_goal(replay, out, &messages, &kept);
	fclose(out);
}

static void ask_recorded(void)
{
	struct ft_error err;
	struct ft_recording *r = ft_recording_read(recorded, &err);
	const struct ft_recording *all[] = { r };
	struct ft_replay *replay = r ? ft_replay_build(all, 1, &err) : NULL;
	struct ft_shelf *shelf = ft_shelf_new();
	FILE *out = nowhere();
	struct ft_whatif answer;

	ok_or_say(replay, err);
	ok_or_say(ft_replay_lay_out(replay, &err), err);
	for (int i = 0; i < 3; i++) {
		struct ft_whatif_request asked = { .replay = replay,
						   .gpu = i ? "h200" : NULL,
						   .step = i == 2 ? "none" : NULL,
						   .timeline = out };

		if (!ft_study_whatif(shelf, &asked, &answer, &err))
			continue;
		ft_report_recorded(out, replay, &answer);
		ft_report_recorded_json(out, replay, &answer);
		ft_report_whatif(out, replay, &answer);
		ft_report_whatif_json(out, replay, &answer);
	}
	write_recorded(replay);
	ask_gaps(shelf, replay, &answer, "model.num_hidden_layers=4");
	ask_gaps(shelf, replay, &answer, "model.num_hidden_layers=none");
	ask_gaps(shelf, replay, &answer, "training.sharding=ddp");
	ask_hosts(shelf, replay);
	fclose(out);
	ft_shelf_free(shelf);
	ft_replay_free(replay);
	ft_recording_free(r);
}

/* ---- a profile ------------------------------------------------------------------- */

/* Products and copies of a made-up device. */
static void write_kernels(const char *path)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs("kernel,dtype,layout,m,n,k,bytes,measured.time_us\n", f);
	for (int m = 512; m <= 8192; m *= 2)
		for (int n = 1024; n <= 8192; n *= 2)
			fprintf(f, "gemm,bf16,forward,%d,%d,4096,,%.3f\n", m, n,
				5 + 2e-9 * m * n * 4096);
	for (int mib = 1; mib <= 1024; mib *= 2)
		fprintf(f, "copy,bf16,,,,,%d,%.3f\n", mib << 20, 5 + 1.5 * mib);
	fclose(f);
}

static void ask_fits(void)
{
	static const char *const bases[] = { "b200", "none-such", "mi300x" };
	struct ft_probe_run run = published;
	char path[64], rows[64], folder[64], command[80];
	struct ft_error err;
	struct ft_store *s;
	size_t n;

	own_path(folder, "lost-fit");
	s = ft_store_open(own_path(path, "lost-fit.db"), true, &err);
	ok_or_say(s, err);
	assert_int_equal(mkdir(folder, 0700), 0);
	write_kernels(own_path(rows, "kernels.csv"));
	run.device = "X";
	run.provenance = "measured";
	ok_or_say(ft_store_import(s, FT_IMPORT_CSV, rows, &run, &n, &err), err);
	for (int i = 0; i < 3; i++) {
		struct ft_fit_options o = { .name = "x",
					    .base = bases[i],
					    .folder = folder,
					    .families = FT_FIT_ALL };
		struct ft_export chosen = { NULL, i == 2 ? 7 : 0, bases[i], "kernels" };
		struct ft_fit *fit = calloc(1, sizeof(*fit));
		FILE *out = nowhere();

		assert_int_equal(ft_fit(s, &o, fit, &err), i != 1);
		(void)!ft_store_export(s, &chosen, out, &err);
		fclose(out);
		free(fit);
	}
	ft_store_close(s);
	unlink(path);
	unlink(rows);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

LOSES_NOTHING(fitted_stacks, ask_stacks)
LOSES_NOTHING(recorded_steps, ask_recorded)
LOSES_NOTHING(profiles, ask_fits)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fitted_stacks),
		cmocka_unit_test(recorded_steps),
		cmocka_unit_test(profiles),
	};

	(void)argc;
	lost_begin(argv);
	return cmocka_run_group_tests_name("lost by fits", tests, NULL, NULL);
}
