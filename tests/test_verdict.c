/*
 * tests/test_verdict.c - whose tokens are cheaper, of answers that are drawn: the verdict against the
 * draws it is of, its sentence, and where the time of two steps differs
 */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study_decide.h"
#include "tests/check.h"

enum { SIDES = 4, DRAWS = 60, ODDS = 32 };

static uint64_t seed = 15;

#define TRAINING \
	"training: {sequence_length: 1024, micro_batch_size: 1, global_batch_size: 64}"

static const struct {
	const char *text;
	int servers; /* that its bill lists */
} given[SIDES] = {
	{ "{model: {name: llama3-8b, num_hidden_layers: 2}, cluster: {gpu: h100-sxm, "
	  "gpus: 16}, " TRAINING "}",
	  2 },
	{ "{model: {name: llama3-8b, num_hidden_layers: 2}, cluster: {gpu: mi300x, "
	  "gpus: 32}, " TRAINING ", cost: {horizon: 3 y}}",
	  4 },
	{ "{model: {name: llama3-8b, num_hidden_layers: 3}, cluster: {gpu: h200, gpus: "
	  "8}, " TRAINING ", cost: {usd_per_gpu_hour: 3 USD/h}}",
	  1 },
	{ "{model: {name: llama3-8b, num_hidden_layers: 2}, cluster: {gpu: gb200, gpus: "
	  "64}, " TRAINING ", cost: {electricity: 0.2 USD/kWh}}",
	  1 }, /* racks */
};

static struct {
	struct arena mem;
	struct ft_shelf *shelf;
	struct ft_scenario *s[SIDES];
	struct ft_outcome o[SIDES];
} made;

static int load(void **state)
{
	(void)state;
	made.shelf = ft_shelf_new();
	for (int i = 0; i < SIDES; i++) {
		struct ft_error err;
		struct node *root = node_read_text(&made.mem, "s", given[i].text,
						   strlen(given[i].text), &err);

		ok_or_say(root, err);
		made.s[i] = ft_scenario_from(made.shelf, root, "s", true, &err);
		ok_or_say(made.s[i], err);
		ok_or_say(ft_study_simulate(made.s[i], NULL, NULL, &made.o[i], &err),
			  err);
	}
	return 0;
}

static int drop(void **state)
{
	(void)state;
	for (int i = 0; i < SIDES; i++) {
		ft_outcome_release(&made.o[i]);
		ft_scenario_free(made.s[i]);
	}
	ft_shelf_free(made.shelf);
	arena_release(&made.mem);
	return 0;
}

/* ---- the verdict ---------------------------------------------------------------------- */

struct drawn {
	size_t n;
	int which[SIDES];
	const struct ft_scenario *s[SIDES];
	struct ft_outcome o[SIDES];
	struct ft_side side[SIDES];
	struct ft_deal deal[SIDES];
	char label[SIDES][160];
};

/* Some of the answers in any order, faster or slower than they are, and whether they fit. */
static void draw(struct drawn *d)
{
	bool used[SIDES] = { false };

	d->n = 2 + (size_t)rnd_below(&seed, SIDES - 1);
	for (size_t i = 0; i < d->n; i++) {
		double times = exp(rnd_below(&seed, 200) * 0.01 - 1);
		int length = 1 + rnd_below(&seed, 150), at;

		do
			at = rnd_below(&seed, SIDES);
		while (used[at]);
		used[at] = true;
		d->which[i] = at;
		d->s[i] = made.s[at];
		d->o[i] = made.o[at];
		d->o[i].tokens_per_s *= times;
		d->o[i].tokens_low_per_s *= times;
		d->o[i].tokens_high_per_s *= times;
		d->o[i].fits = rnd_below(&seed, 4) > 0;
		d->side[i] = ft_outcome_side(d->s[i], &d->o[i]);
		d->deal[i] = ft_deal_of(&d->side[i].purchase, &d->side[i].throughput);
		for (int k = 0; k < length; k++)
			d->label[i][k] = (char)('a' + (k + at) % 26);
		d->label[i][length] = '\0';
		if (length >
		    110) /* a letter of two bytes that the hundredth would cut */
			memcpy(d->label[i] + 99, "\303\251", 2);
	}
}

/* Cheapest in most draws, or as often and for less; but one, and of those that fit, if some do. */
static size_t winner(const struct drawn *d, const struct ft_odds *p, size_t fit,
		     size_t but)
{
	size_t best = p->n;

	for (size_t i = 0; i < p->n; i++) {
		bool more =
			best == p->n || p->cheapest_frac[i] > p->cheapest_frac[best];
		bool same = !more && !(p->cheapest_frac[i] < p->cheapest_frac[best]);

		if (i != but && (d->o[i].fits || !fit) &&
		    (more ||
		     (same && p->p50[FT_DRAWN_USD][i] < p->p50[FT_DRAWN_USD][best])))
			best = i;
	}
	return best;
}

static void name_of(const char *label, char to[112])
{
	snprintf(to, 112, "%.*s", strlen(label) > 110 ? 99 : 100, label);
}

static void sentence_is(const struct drawn *d, const struct ft_verdict *v)
{
	const struct ft_odds *p = &v->odds;
	const char *label[SIDES];
	char text[FT_SENTENCE], want[FT_SENTENCE], a[112], b[112], usd[2][64];

	for (size_t i = 0; i < d->n; i++)
		label[i] = d->label[i];
	name_of(label[v->best], a);
	name_of(label[v->second], b);
	for (int k = 0; k < 2; k++) {
		size_t i = k ? v->second : v->best;

		snprintf(usd[k], sizeof(usd[k]), "%.4g (%.4g to %.4g)",
			 p->p50[FT_DRAWN_USD][i], p->p10[FT_DRAWN_USD][i],
			 p->p90[FT_DRAWN_USD][i]);
	}
	if (v->n_fit > 1)
		snprintf(want, sizeof(want),
			 "%s is %s with probability %.2f: %s winner. USD per million "
			 "tokens, P50 (P10 to P90): %s, against %s with %s.",
			 a, d->n == 2 ? "cheaper" : "the cheapest",
			 p->cheapest_frac[v->best],
			 p->cheapest_frac[v->best] < 0.8 ? "no clear" : "a clear",
			 usd[0], usd[1], b);
	else if (v->n_fit)
		snprintf(want, sizeof(want),
			 "%s alone has a plan that fits in memory. USD per "
			 "million tokens, P50 (P10 to P90): %s.",
			 a, usd[0]);
	else
		strcpy(want, "No plan fits in memory, so none is the cheaper "
			     "one.");
	assert_string_equal(ft_verdict_sentence(v, label, text), want);
}

static void crossovers_are(const struct drawn *d, const struct ft_verdict *v)
{
	struct ft_crossover want[FT_CROSSOVERS_MOST];
	const struct ft_scenario *s = d->s[v->second];
	size_t n = 0;

	bool otherwise = v->n_fit > 1 &&
			 ft_deal_usd_per_million_tokens(&d->deal[v->second]) <
				 ft_deal_usd_per_million_tokens(&d->deal[v->best]);

	assert_int_equal(v->likely_otherwise, otherwise);
	if (v->n_fit > 1 && !otherwise)
		n = ft_deals_crossovers(
			&d->deal[v->best], &d->deal[v->second],
			(double)(given[d->which[v->second]].servers +
				 s->cluster->parts->spare_nodes /
					 s->cluster->node->nodes_per_price_item),
			ft_plan_flop_per_token(s->model, s->plan, s->model->causal),
			want);
	assert_int_equal(v->n_crossovers, n);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(v->crossover[i].what, want[i].what);
		near_frac(v->crossover[i].value, want[i].value, 1e-9);
		near_frac(v->crossover[i].now, want[i].now, 1e-9);
	}
}

static void a_verdict_is_that_of_its_draws(void **state)
{
	int ties = 0, few = 0;

	(void)state;
	for (int k = 0; k < DRAWS; k++) {
		struct drawn d = { 0 };
		struct ft_error err;
		struct ft_verdict v;
		struct ft_odds odds;
		size_t fit = 0;

		draw(&d);
		ok_or_say(ft_study_verdict(d.s, d.o, d.n, ODDS, &v, &err), err);
		ok_or_say(ft_odds_of(d.side, d.n, ODDS, &odds, &err), err);
		assert_int_equal(v.odds.n, d.n);
		assert_int_equal(v.odds.draws, ODDS);
		for (size_t i = 0; i < d.n; i++) {
			double part[FT_COST_PARTS];

			fit += d.o[i].fits;
			assert_true(v.odds.cheapest_frac[i] == odds.cheapest_frac[i]);
			for (int q = 0; q < FT_DRAWN; q++)
				assert_true(v.odds.p50[q][i] == odds.p50[q][i]);
			ft_deals_explain(&d.deal[0], &d.deal[i], part);
			for (int q = 0; q < FT_COST_PARTS; q++)
				near_frac(v.part_usd[i][q], part[q], 1e-9);
		}
		assert_int_equal(v.n_fit, fit);
		assert_int_equal(v.best, winner(&d, &odds, fit, d.n));
		assert_int_equal(v.second,
				 fit == 1 ? !v.best : winner(&d, &odds, fit, v.best));
		assert_int_equal(v.tie,
				 !fit || odds.cheapest_frac[v.best] < FT_ODDS_DECIDED);
		ties += v.tie;
		few += fit < 2;
		crossovers_are(&d, &v);
		sentence_is(&d, &v);
	}
	assert_true(ties > 3 && ties < DRAWS - 10 && few > 2);
}

/* The same scenario twice: neither is the cheaper one. */
static void equals_are_said_to_cost_the_same(void **state)
{
	const struct ft_scenario *s[] = { made.s[1], made.s[1] };
	struct ft_outcome o[] = { made.o[1], made.o[1] };
	const char *const label[] = { "one", "other" };
	char text[FT_SENTENCE];
	struct ft_error err;
	struct ft_verdict v;

	(void)state;
	o[0].fits = o[1].fits = true;
	ok_or_say(ft_study_verdict(s, o, 2, ODDS, &v, &err), err);
	assert_true(v.tie && v.n_fit == 2);
	ft_verdict_sentence(&v, label, text);
	if (strncmp(text, "one and other cost the same in every draw. USD ", 47) != 0)
		fail_msg("%s", text);
}

/* ---- where the time differs ------------------------------------------------------------- */

/* Nanoseconds of a GPU for a token. */
static double ns_of(const struct ft_scenario *s, const struct ft_outcome *o,
		    double part_s)
{
	return 1e9 * part_s / o->step_s * (double)s->cluster->gpus / o->tokens_per_s;
}

static double kernels_s(const struct ft_outcome *o, enum ft_work_kind kind, bool all)
{
	double s = 0;

	for (size_t i = 0; i < o->run->n_shares; i++) {
		const struct ft_share *x = &o->run->share[i];

		s += !x->optimizer && x->kind != FT_COMMUNICATION &&
				     (all || x->kind == kind) ?
			     x->time_s :
			     0;
	}
	return s;
}

static double part_ns(const char *what, const struct ft_scenario *s,
		      const struct ft_outcome *o)
{
	static const struct {
		const char *what;
		enum ft_work_kind kind;
	} kinds[] = { { "matrix products", FT_GEMM },
		      { "attention", FT_ATTENTION },
		      { "memory-bound kernels", FT_MEMORY_BOUND } };

	for (int i = 0; i < 3; i++)
		if (!strcmp(what, kinds[i].what))
			return ns_of(s, o, o->breakdown.compute_s) *
			       kernels_s(o, kinds[i].kind, false) /
			       kernels_s(o, kinds[i].kind, true);
	if (!strcmp(what, "exposed communication"))
		return ns_of(s, o, o->breakdown.exposed_communication_s);
	if (!strcmp(what, "pipeline bubble"))
		return ns_of(s, o, o->breakdown.bubble_s);
	if (!strcmp(what, "host"))
		return ns_of(s, o, o->breakdown.host_s);
	assert_string_equal(what, "optimizer");
	return ns_of(s, o, o->breakdown.optimizer_s);
}

static void differences_add_up(void **state)
{
	(void)state;
	for (int a = 0; a < SIDES; a++)
		for (int b = 0; b < SIDES; b++) {
			size_t n;
			struct ft_difference *d = ft_study_differences(
				made.s[a], &made.o[a], made.s[b], &made.o[b], &n);
			double ns[2] = { 0, 0 }, all, shares = 0;
			const double whole[2] = {
				ns_of(made.s[a], &made.o[a], made.o[a].step_s),
				ns_of(made.s[b], &made.o[b], made.o[b].step_s)
			};

			assert_int_equal(n, 7);
			all = fabs(whole[1] - whole[0]);
			for (size_t i = 0; i < n; i++) {
				near_frac(d[i].value[0],
					  part_ns(d[i].what, made.s[a], &made.o[a]),
					  1e-9);
				near_frac(d[i].value[1],
					  part_ns(d[i].what, made.s[b], &made.o[b]),
					  1e-9);
				ns[0] += d[i].value[0];
				ns[1] += d[i].value[1];
				shares += d[i].share_frac;
				assert_true(fabs(d[i].share_frac * all -
						 (d[i].value[1] - d[i].value[0])) <
					    1e-9 * whole[0]);
				assert_true(!i || fabs(d[i - 1].share_frac) >=
							  fabs(d[i].share_frac));
				for (size_t k = 0; k < i; k++)
					assert_string_not_equal(d[i].what, d[k].what);
			}
			for (int k = 0; k < 2; k++)
				near_frac(ns[k], whole[k], 1e-9);
			if (a != b)
				assert_true(fabs(fabs(shares) - 1) < 1e-6);
			else
				assert_true(shares == 0);
			ft_differences_free(d);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_verdict_is_that_of_its_draws),
		cmocka_unit_test(equals_are_said_to_cost_the_same),
		cmocka_unit_test(differences_add_up),
	};

	return cmocka_run_group_tests_name("verdict", tests, load, drop);
}
