/*
 * tests/test_published_costs.c - dollars, joules and kilowatts against published ones, as a
 * table; which of them are fitted is said in it
 *
 * Sources: SemiAnalysis, H100 vs GB200 NVL72 Training Benchmarks, 2025-08-20 (dollars and
 * joules of steps at 1.42 USD a GPU-hour); SemiAnalysisAI/InferenceX-app, pull request 661,
 * rates of July 2026; SemiAnalysis, MI300X against H100 and H200, 2024-12-22 (networking is
 * nearly 40 % of what 16k MI300X on Ethernet save against 16k H200 on InfiniBand).
 */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "tests/check.h"

/* ---- steps: the predictor's tokens, the table of parts' power -------------------------- */

#define GPT3(precision) \
	"{model: {name: gpt3-175b}, cluster: {gpu: h100-sxm, gpus: 128, site: {extends: " \
	"standard, spares_frac: 0}}, stack: nemo-25.02, training: {sequence_length: 2048, " \
	"global_batch_size: 256, micro_batch_size: 1, precision: " precision \
	", sharding: zero1, parallel: {tp: 4, pp: 8, vpp: 12}}, " OWNED
#define OWNED "cost: {usd_per_gpu_hour: 1.42 USD/h, utilization_frac: 1, goodput: 1}}"
#define LLAMA \
	"{model: {name: llama3.1-405b}, cluster: {gpu: h100-sxm, gpus: 2304, site: " \
	"{extends: standard, spares_frac: 0}}, stack: nemo-25.02, training: " \
	"{sequence_length: 8192, global_batch_size: 1008, micro_batch_size: 1, precision: " \
	"bf16, sharding: zero1, gradient_dtype: bf16, recompute: none, overlap: {tp: true}, " \
	"parallel: {tp: 8, pp: 9, cp: 2, vpp: 7}}, " OWNED

static struct ft_cost cost_of_step(const char *text)
{
	struct arena mem = { 0 };
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err;
	struct node *root = node_read_text(&mem, "s", text, strlen(text), &err);
	struct ft_scenario *s;
	struct ft_outcome o;
	struct ft_cost cost;

	ok_or_say(root, err);
	s = ft_scenario_from(shelf, root, "s", true, &err);
	ok_or_say(s, err);
	ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
	cost = o.cost;
	ft_outcome_release(&o);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
	return cost;
}

/* Of the plans only "TP4" is published for GPT-3; that of the 405B model is. Utilization and
 * goodput are 1, and joules are of all-in provisioned power, as the source reckons: its
 * joules times its tokens/s are 1.78 to 1.79 kW a GPU in every case. Within 8 %. */
static void tokens_dollars_and_joules_of_steps(void **state)
{
	static const struct {
		const char *what, *scenario;
		double usd, joules;
	} row[] = { { "GPT-3 175B, FP8, 128 H100", GPT3("fp8"), 0.542, 2.46 },
		    { "GPT-3 175B, BF16, 128 H100", GPT3("bf16"), 0.80, 3.63 },
		    { "Llama 3 405B, BF16, 2,304 H100", LLAMA, 1.95, 8.8 } };

	(void)state;
	print_message("# %-32s %8s %8s %8s   %8s %8s %8s\n", "at 1.42 USD a GPU-hour",
		      "USD/Mtok", "told", "error", "J/token", "told", "error");
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct ft_cost c = cost_of_step(row[i].scenario);
		double usd = c.usd_per_million_tokens / row[i].usd - 1;
		double joules = c.provisioned_joules_per_token / row[i].joules - 1;

		print_message("# %-32s %8.3f %8.3f %+7.1f%%   %8.2f %8.2f %+7.1f%%\n",
			      row[i].what, c.usd_per_million_tokens, row[i].usd,
			      100 * usd, c.provisioned_joules_per_token, row[i].joules,
			      100 * joules);
		assert_true(fabs(usd) < 0.08 && fabs(joules) < 0.08);
		/* what is burnt on the average is less than what is provided */
		assert_true(c.joules_per_token < c.provisioned_joules_per_token);
	}
}

/* ---- owners' rates from parts --------------------------------------------------------- */

struct rate {
	const char *gpu, *item;
	int64_t gpus;
	double usd[2]; /* a GPU-hour: hyperscaler, neocloud */
	bool fitted;
};

static const struct rate rates[] = {
	{ "h100-sxm", "hgx-h100-server", 1024, { 1.17, 1.55 }, true },
	{ "b200", "hgx-b200-server", 1024, { 1.73, 2.07 }, false },
	{ "gb300", "gb300-nvl72-rack", 1152, { 2.31, 2.79 }, true },
	{ "mi300x", "mi300x-server", 1024, { 0.95, 1.16 }, false },
	{ "mi355x", "mi355x-server", 1024, { 1.50, 2.09 }, false },
};

enum { RATES = sizeof(rates) / sizeof(*rates) };

static const char *const owner[] = { "hyperscaler-2026-07", "neocloud-2026-07" };

/* The price of a server in August 2025, a year before the rates. */
static double server_2025_usd(const struct rate *r)
{
	struct ft_error err;
	struct ft_prices *book = ft_prices_load("hyperscaler-2025-08", NULL, &err);
	double usd = 0;

	ok_or_say(book, err);
	for (size_t i = 0; i < book->n_prices; i++)
		if (!strcmp(book->price[i].item, r->item))
			usd = book->price[i].usd.value;
	ft_prices_free(book);
	assert_true(usd > 0);
	return usd;
}

/* The program's rate with servers at this price; all other parts, building and power as
 * the owner's book of July 2026 has them. */
static double rate_at(const struct rate *r, int who, double server_usd)
{
	struct arena mem = { 0 };
	struct ft_error err;
	char cluster_text[160], terms_text[160];
	struct node *node, *given;
	struct ft_cluster *c;
	struct ft_prices *book, *prices;
	struct ft_cost_terms terms;
	struct ft_bom *bom;
	struct ft_cost cost;

	snprintf(cluster_text, sizeof(cluster_text), "{gpu: %s, gpus: %lld}", r->gpu,
		 (long long)r->gpus);
	snprintf(terms_text, sizeof(terms_text),
		 "{prices: %s, price_of: {%s: %.2f USD}}", owner[who], r->item,
		 server_usd);
	node = node_read_text(&mem, "c", cluster_text, strlen(cluster_text), &err);
	given = node_read_text(&mem, "t", terms_text, strlen(terms_text), &err);
	c = ft_cluster_load_rows(node, 0, &err);
	ok_or_say(c, err);
	book = ft_prices_load(owner[who], NULL, &err);
	ok_or_say(book && ft_cost_terms_load(given, &terms, &err), err);
	prices = ft_prices_given(book, c, &terms, &err);
	ok_or_say(prices, err);
	bom = ft_bom_build(c, prices, &err);
	ok_or_say(bom, err);
	ok_or_say(
		ft_cost_compute(
			&(struct ft_purchase){ c, prices, bom, &terms, false },
			&(struct ft_throughput){ .tokens_per_s = 1e6, .busy_frac = 1 },
			&cost, &err),
		err);
	ft_bom_free(bom);
	ft_prices_free(prices);
	ft_prices_free(book);
	ft_cluster_free(c);
	arena_release(&mem);
	return cost.usd_per_gpu_hour;
}

/* Servers at factor x their price of August 2025: the factor with the least squares of
 * relative errors of the fitted rates, which are linear in it. */
static double fit(int who)
{
	double up = 0, down = 0;

	for (size_t i = 0; i < RATES; i++) {
		double server = server_2025_usd(&rates[i]);
		double none = rate_at(&rates[i], who, 1) / rates[i].usd[who];
		double slope =
			rate_at(&rates[i], who, server) / rates[i].usd[who] - none;

		if (!rates[i].fitted)
			continue;
		up += slope * (1 - none);
		down += slope * slope;
	}
	return up / down;
}

/*
 * One number an owner is fitted, on two of the five GPUs: what servers cost against August
 * 2025 (hyperscaler-2025-08, where the prices of H100 and GB200 are published and others
 * derived, some from the rates of that month). The other three are a test, within 10 %; one of
 * those six is not, MI355X with a neocloud, and is shown.
 */
static void owners_rates_come_from_parts(void **state)
{
	int missed = 0, held = 0;

	(void)state;
	for (int who = 0; who < 2; who++) {
		double factor = fit(who);

		print_message("# %s: servers at %.3f of their price of August 2025\n",
			      owner[who], factor);
		for (size_t i = 0; i < RATES; i++) {
			const struct rate *r = &rates[i];
			double usd = rate_at(r, who, factor * server_2025_usd(r));
			double error = usd / r->usd[who] - 1;

			print_message("#   %-10s %.2f USD/h, told %.2f, %+5.1f %% %s\n",
				      r->gpu, usd, r->usd[who], 100 * error,
				      r->fitted ? "(fitted)" : "");
			held += !r->fitted;
			missed += !r->fitted && fabs(error) >= 0.10;
			assert_true(fabs(error) < 0.20);
		}
	}
	print_message("# held back: %d, beyond 10 %%: %d\n", held, missed);
	assert_int_equal(held, 6);
	assert_true(missed <= 1);
}

/* ---- 16,384 H200 on InfiniBand against as many MI300X on Ethernet ------------------------ */

static void bill(const char *yaml, const char *book, double *total, double *network)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *node = node_read_text(&mem, "c", yaml, strlen(yaml), &err);
	struct ft_cluster *c = ft_cluster_load_rows(node, 0, &err);
	struct ft_prices *prices = ft_prices_load(book, NULL, &err);
	struct ft_bom *bom;

	ok_or_say(c && prices, err);
	bom = ft_bom_build(c, prices, &err);
	ok_or_say(bom, err);
	*total = bom->total_usd;
	*network = bom->network_usd;
	ft_bom_free(bom);
	ft_prices_free(prices);
	ft_cluster_free(c);
	arena_release(&mem);
}

/* The published share, nearly 40 %, needs NVIDIA's own modules and a hyperscaler's prices of
 * servers: whose optics, that decides it. */
static void whose_optics_decide_what_the_network_saves(void **state)
{
	static const char *const book[] = { "hyperscaler-2025-08", "neocloud-2024-10",
					    "neocloud-2026-09" };
	static const char *const maker[] = { "generic", "nvidia" };
	double least = 1, most = 0;

	(void)state;
	for (int b = 0; b < 3; b++)
		for (int m = 0; m < 2; m++) {
			double h200, h200_net, mi300x, mi300x_net, share;
			char yaml[160];

			snprintf(yaml, sizeof(yaml),
				 "{gpu: h200, gpus: 16384, ufm_ports: 8, optics: %s}",
				 maker[m]);
			bill(yaml, book[b], &h200, &h200_net);
			bill("{gpu: mi300x, gpus: 16384}", book[b], &mi300x,
			     &mi300x_net);
			share = (h200_net - mi300x_net) / (h200 - mi300x);
			print_message(
				"# %-20s %s modules: saved %.0f M USD, %.1f %% of "
				"it by the network\n",
				book[b], maker[m], (h200 - mi300x) / 1e6, 100 * share);
			least = fmin(least, share);
			most = fmax(most, share);
			assert_true(share > 0.02 && share < 0.40);
			assert_true(m == 0 ? share < 0.12 : share > 0.18);
		}
	assert_true(least < 0.05 && most > 0.30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_dollars_and_joules_of_steps),
		cmocka_unit_test(owners_rates_come_from_parts),
		cmocka_unit_test(whose_optics_decide_what_the_network_saves),
	};

	return cmocka_run_group_tests_name("published costs", tests, NULL, NULL);
}
