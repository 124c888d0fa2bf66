/*
 * tests/test_lost.c - nothing is lost: whatever is asked again and again, right or wrong, holds as
 * much memory and as many open files as before (tests/lost.h); whole pieces of work:
 * tests/test_lost_work.c
 */
#include "base/arena.h"
#include "base/node.h"
#include "foretoken/calibrate.h"
#include "foretoken/cost_history.h"
#include "foretoken/reports_session.h"
#include "foretoken/study_plan.h"
#include "foretoken/study_whatif.h"
#include "serve/api.h"
#include "tests/lost.h"
#include "tests/published.h"

/* ---- documents ----------------------------------------------------------------------- */

static const char document[] =
	"# a comment\nmodel: {name: llama3-8b, num_hidden_layers: 2} # another\n"
	"list:\n  - 'one'\n  - \"two\\n\"\n  - [3, {four: 5}]\ntext: |\n  a\n  b\n"
	"cluster:\n  gpu: h100-sxm\n  gpus: 8\n";

/* Each of its beginnings, and with one character of it changed. */
static void read_spoilt(void)
{
	static const char signs[] = "{}[]:,'\"|>&*!%@`-#\t\n ";
	static const char second[] = "a: 1\n...\n%YAML 1.1\n%TAG !x! tag:x:\n---\nb\n";
	size_t n = sizeof(document) - 1;

	for (size_t i = 0; i < n; i++) {
		struct arena mem = { 0 };
		struct ft_error err;
		char text[sizeof(document)];

		(void)!node_read_text(&mem, "d", document, i, &err);
		memcpy(text, document, sizeof(text));
		text[i] = signs[i % (sizeof(signs) - 1)];
		(void)!node_read_text(&mem, "d", text, n, &err);
		if (i < sizeof(second))
			(void)!node_read_text(&mem, "d", second, i, &err);
		arena_release(&mem);
	}
}

static void documents(void **state)
{
	(void)state;
	holds("documents", read_spoilt);
}

/* ---- answers ------------------------------------------------------------------------- */

#define CASE(gpu, more) \
	"{model: llama3-8b, cluster: {gpu: " gpu ", gpus: 8}, training: " \
	"{sequence_length: 2048, global_batch_size: 16, parallel: {tp: 2}" more "}}"

static void ask_session(void)
{
	static const char *const asked[] = {
		CASE("h100-sxm", ""),
		CASE("mi300x", ""),
		CASE("h100-sxm", ", colour: 1"),
		CASE("h100-zzz", ""),
		CASE("h100-sxm", ", precision: bf17"),
		"{model: [}",
		CASE("h100-sxm", ", sharding: 3"),
		"",
		CASE("{extends: h200, power.limit: 900 W}", ", sharding: fsdp"),
		CASE("{extends: h200, power.limit: fast}", ""),
		CASE("h100-sxm, fabric: none-such", ""),
		CASE("h100-sxm, node: none-such", ""),
	};
	struct ft_session *s = ft_session_new();

	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		const char *pair[] = { asked[0], asked[i] };

		ft_session_release(ft_session_simulate(s, asked[i]));
		ft_session_release(ft_session_compare(s, pair, 2));
	}
	ft_session_free(s);
}

static void ask_prices(void)
{
	static const char *const items[] = { "switch-ndr-64", "b200", "none-such" };
	char db[64];

	for (int i = 0; i < 3; i++) {
		struct ft_error err;

		ft_price_history_free(ft_price_history_load(items[i], NULL, &err));
	}
	own_path(db, "prices.db");
	for (int i = 0; i < 3; i++) {
		struct ft_error err;
		size_t n;

		(void)!ft_price_history_import(db, i ? "none-such" : "mixnet-2025", &n,
					       &err);
		ft_price_history_free(ft_price_history_load(items[i], db, &err));
	}
	unlink(db);
}

static void ask_rows(void)
{
	static const char *const files[] = { "measurements/steps/h100-two-split.csv",
					     "README.md", "none-such.csv",
					     "measurements/kernels",
					     "measurements/steps/h200-steps.csv" };
	static const char *const sets[] = { "training.micro_batch_size=zero" };

	for (int i = 0; i < 5; i++) {
		struct ft_error err;

		ft_validation_free(ft_validate(files[i], NULL, 0,
					       (struct ft_progress){ 0 }, &err));
		ft_validation_free(ft_validate(files[i], sets, 1,
					       (struct ft_progress){ 0 }, &err));
	}
}

static void ask_runs(void)
{
	static const char *const filters[] = { "gpu=h200", "gpus=..8", "colour=red" };
	struct ft_error err;

	for (size_t n = 0; n <= 3; n++)
		ft_runs_free(ft_runs_find(filters, n, &err));
}

static void ask_plans(void)
{
	static const char *const open[] = {
		CASE("h100-sxm", ", recompute: none, sharding: fsdp"),
		CASE("h100-sxm", ", recompute: nothing"),
		"{model: llama3-70b, cluster: {gpu: h100-sxm, gpus: 1}, training: "
		"{sequence_length: 2048, global_batch_size: 1}}",
	};

	for (int i = 0; i < 3; i++) {
		struct ft_search search = { .top = 2, .threads = 1 };
		struct ft_plans *plans[FT_SIZES_MOST];
		struct ft_error err;
		size_t n = 0;

		(void)!ft_study_plans_of("p", open[i], &search, plans, &n, &err);
		while (n)
			ft_plans_free(plans[--n]);
	}
}

/* Each call of the API, with what it takes and what it refuses. */
static void ask_api(void)
{
	static const char *const bodies[] = {
		CASE("h100-sxm", ""),
		CASE("h100-sxm", ", colour: 1"),
		"{scenarios: [" CASE("h100-sxm", "") ", " CASE("h200",
							       "") "], draws: 16}",
		"{scenarios: [" CASE("h100-sxm", "") ", " CASE("h200",
							       ", colour: 1") "]}",
		"{scenarios: [1, 2]}",
		"{scenario: " CASE("h100-sxm", ", recompute: none") ", top: 1}",
		"[",
		"",
	};
	static const char *const paths[] = { "simulate", "compare", "bom",  "timeline",
					     "document", "names",   "keys", "plan" };

	for (size_t p = 0; p < sizeof(paths) / sizeof(*paths); p++)
		for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
			char path[64], *text = NULL;
			size_t n = 0;
			struct api_text body = { bodies[i], strlen(bodies[i]) };
			struct api_stream to = { open_memstream(&text, &n), -1, 60 };

			snprintf(path, sizeof(path), "/api/%s", paths[p]);
			(void)!api_answer(api_find(path), &body, &to);
			fclose(to.out);
			assert_true(n > 0);
			free(text);
		}
}

static void answers(void **state)
{
	(void)state;
	holds("sessions", ask_session);
	holds("prices", ask_prices);
	holds("rows", ask_rows);
	holds("runs", ask_runs);
	holds("plans", ask_plans);
	holds("the API", ask_api);
}

/* ---- recorded ------------------------------------------------------------------------ */

static void ask_what_if(void)
{
	static const char file[] =
		"measurements/traces/"
		"h100-8b4L-fsdp2-s4096-b1-eager-shapes.rank0.kineto.json.gz";
	static const char *const sets[] = { "cluster.gpus=3" };
	struct ft_error err;
	struct ft_recording *r = ft_recording_read(file, &err);
	const struct ft_recording *all[] = { r };
	struct ft_replay *replay = r ? ft_replay_build(all, 1, &err) : NULL;
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_whatif_request asked[] = {
		{ .replay = replay },
		{ .replay = replay, .gpu = "mi300x" },
		{ .replay = replay, .gpu = "h200", .tokens_per_step = 8192 },
		{ .replay = replay, .gpu = "none-such" },
		{ .replay = replay, .gpu = "h200", .fabric = "none-such" },
		{ .replay = replay, .from = "none-such", .gpu = "h200" },
		{ .replay = replay, .dp = 16 },
		{ .replay = replay, .gpu = "b200", .sets = sets, .n_sets = 1 },
	};

	assert_non_null(replay);
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		struct ft_whatif answer;

		(void)!ft_study_whatif(shelf, &asked[i], &answer, &err);
	}
	ft_shelf_free(shelf);
	ft_replay_free(replay);
	ft_recording_free(r);
	ft_recording_free(ft_recording_read("README.md", &err));
	ft_recording_free(ft_recording_read("none-such.json", &err));
}

static void recordings(void **state)
{
	(void)state;
	holds("what-ifs", ask_what_if);
}

/* ---- measured ------------------------------------------------------------------------ */

static void ask_store(void)
{
	static const char *const files[] = { "measurements/steps/h100-steps.csv",
					     "measurements/kernels/simumax-b200.csv",
					     "README.md", "none-such.csv" };
	char path[64];
	struct ft_error err;
	struct ft_store *s = ft_store_open(own_path(path, "lost.db"), true, &err);

	ok_or_say(s, err);
	for (int format = FT_IMPORT_CSV; format < FT_IMPORTS; format++)
		for (int i = 0; i < 4; i++) {
			size_t n;

			(void)!ft_store_import(s, (enum ft_import)format, files[i],
					       &published, &n, &err);
		}
	ft_store_close(s);
	unlink(path);
}

static void measurements(void **state)
{
	(void)state;
	holds("stores", ask_store);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents),
		cmocka_unit_test(answers),
		cmocka_unit_test(recordings),
		cmocka_unit_test(measurements),
	};

	(void)argc;
	lost_begin(argv);
	return cmocka_run_group_tests_name("lost", tests, NULL, NULL);
}
