/*
 * tests/test_lost_rest.c - nothing is lost (tests/lost.h) by jobs beside each other, lists, histories, files of
 * recorded steps that are written and read again, and by what is refused on the way
 */
#include "base/arena.h"
#include "base/json_text.h"
#include "base/node.h"
#include "foretoken/cost_history.h"
#include "foretoken/recorded.h"
#include "foretoken/reports.h"
#include "foretoken/stacks.h"
#include "foretoken/study.h"
#include "foretoken/study_whatif.h"
#include "tests/lost.h"

/* ---- jobs ------------------------------------------------------------------------- */

#define JOB(cluster, more) \
	"{model: {name: llama3-8b, num_hidden_layers: 2}, cluster: {" cluster \
	"}, training: {sequence_length: 512, micro_batch_size: 1, global_batch_size: 64}" more \
	"}"

static const char *const jobs[] = {
	JOB("gpu: h100-sxm, gpus: 64, fabric: {extends: roce-400-rail, switch: {radix: 8}}, "
	    "imperfections: {placement: scattered, failed_uplinks_frac: 0.1, slow_nics_frac: 0.2}",
	    ""),
	JOB("gpu: h100-sxm, gpus: 64, fabric: {extends: roce-400-rail, switch: {radix: 8}}",
	    ""),
	JOB("gpu: mi300x, gpus: 64",
	    ", cost: {prices: mixnet-2025}"),		 /* not in this book */
	JOB("gpu: h100-sxm, gpus: 64", ", ccl: rccl-7"), /* of another GPU */
};

enum { JOBS = sizeof(jobs) / sizeof(*jobs) };

static void ask_alone(struct ft_scenario *s)
{
	struct ft_error err;
	struct ft_outcome o;

	for (int chart = 0; chart < 2; chart++) {
		FILE *out = nowhere();

		s->memory_chart = chart;
		s->timeline = FT_TIMELINE_CHROME;
		if (ft_study_simulate(s, NULL, out, &o, &err))
			ft_outcome_release(&o);
		fclose(out);
	}
	s->memory_chart = false;
}

static void ask_jobs(void)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_scenario *s[JOBS] = { NULL };
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_outcome o;

	for (int i = 0; i < JOBS; i++) {
		struct node *root =
			node_read_text(&mem, "job", jobs[i], strlen(jobs[i]), &err);

		ok_or_say(root, err);
		s[i] = ft_scenario_from(shelf, root, "job", true, &err);
		if (s[i])
			ask_alone(s[i]);
	}
	for (int i = 0; i < JOBS; i++)
		for (int k = 0; k < JOBS; k++)
			if (s[i] && s[k] &&
			    ft_study_simulate_beside(s[i], s[k], NULL, &o, &err))
				ft_outcome_release(&o);
	for (int i = 0; i < JOBS; i++)
		ft_scenario_free(s[i]);
	ft_shelf_free(shelf);
	arena_release(&mem);
}

/* ---- lists ------------------------------------------------------------------------ */

static void ask_lists(void)
{
	static const char *const kinds[] = { "gpus",   "nodes", "fabrics", "models",
					     "stacks", "ccl",	"prices",  "none" };
	static const char *const generations[] = { "hopper", "none-such", "" };
	FILE *out = nowhere();
	struct ft_error err;
	struct ft_runs *runs;
	struct ft_ccl *ccl;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		for (int json = 0; json < 2; json++)
			(void)!ft_report_list(out, kinds[i], json, &err);
	runs = ft_runs_find(NULL, 0, &err);
	ok_or_say(runs, err);
	ft_report_runs(out, runs);
	ft_report_runs_json(out, runs);
	ft_runs_free(runs);
	ccl = ft_ccl_load("nccl-2.27", NULL, &err);
	for (int i = 0; ccl && i < 3; i++)
		ft_ccl_unknown(ccl, generations[i], NULL, &err);
	ft_ccl_free(ccl);
	ft_ccl_free(ft_ccl_load("README.md", NULL, &err));
	fclose(out);
}

static void ask_histories(void)
{
	static const char *const items[] = { "switch-ndr-64", "hgx-h100-server" };
	FILE *out = nowhere();

	for (int i = 0; i < 2; i++) {
		struct ft_error err;
		struct ft_price_history *h =
			ft_price_history_load(items[i], NULL, &err);

		ok_or_say(h, err);
		ft_report_price_history(out, h);
		ft_report_price_history_json(out, h);
		ft_price_history_free(h);
	}
	fclose(out);
}

/* What is no UTF-8, too. */
static void ask_texts(void)
{
	json_decref(json_of_text("x"));
	json_decref(json_of_text("a\xff"
				 "b\xc3"));
}

/* ---- a recorded step --------------------------------------------------------------- */

static struct ft_recording *again(const char *path)
{
	struct ft_error err;
	struct ft_recording *r = ft_recording_read(path, &err);

	ok_or_say(r, err);
	return r;
}

static void write_both(const struct ft_replay *p, const char *kineto,
		       const char *chakra)
{
	struct arena mem = { 0 };
	struct ft_replayed t = ft_replay_as_recorded(p, &mem);
	FILE *out = fopen(kineto, "w");

	assert_non_null(out);
	ft_replay_write(p, &t, 0, "a GPU", out);
	fclose(out);
	out = fopen(chakra, "w");
	assert_non_null(out);
	ft_replay_write_chakra(p, 0, out);
	fclose(out);
	(void)ft_study_skew(p, &t, 0, NULL);
	arena_release(&mem);
}

static void ask_written(void)
{
	struct ft_recording *r =
		again("measurements/traces/"
		      "h100-8b4L-fsdp2-s4096-b1-eager.rank0.kineto.json.gz");
	char kineto[64], chakra[64], short_of[64];
	struct ft_error err;
	struct ft_replay *p =
		ft_replay_build((const struct ft_recording *const *)&r, 1, &err);

	ok_or_say(p, err);
	own_path(kineto, "lost.json");
	own_path(chakra, "lost.et");
	own_path(short_of, "short.et");
	write_both(p, kineto, chakra);
	ft_replay_free(p);
	ft_recording_free(r);
	ft_recording_free(again(kineto));
	ft_recording_free(again(chakra));
	assert_int_equal(rename(chakra, short_of), 0);
	assert_int_equal(truncate(short_of, 90), 0);
	ft_recording_free(ft_recording_read(short_of, &err));
	unlink(kineto);
	unlink(short_of);
}

LOSES_NOTHING(jobs_beside_each_other, ask_jobs)
LOSES_NOTHING(lists, ask_lists)
LOSES_NOTHING(histories, ask_histories)
LOSES_NOTHING(texts, ask_texts)
LOSES_NOTHING(written_steps, ask_written)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_beside_each_other),
		cmocka_unit_test(lists),
		cmocka_unit_test(histories),
		cmocka_unit_test(texts),
		cmocka_unit_test(written_steps),
	};

	(void)argc;
	lost_begin(argv);
	return cmocka_run_group_tests_name("lost: the rest", tests, NULL, NULL);
}
