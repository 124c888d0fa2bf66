/*
 * tests/test_metamorphic.c - what must hold of any scenario, asked of many drawn at random
 *
 * A right answer is not known, but how two answers stand to each other is: a better part is
 * never slower, higher prices never cheaper, by more than SLACK. A reason that is understood is
 * proved one by taking it away, and how often it may break a relation is bounded.
 */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "tests/drawn.h"
#include "tests/few.h"

#ifdef TESTS_FEW
enum { MACHINES = 16 };
#else
enum { MACHINES = 120 };
#endif
enum { EACH = 5, TRIES = 60, SCENARIOS = MACHINES * EACH };

static const double slack = 1.01;

enum relation {
	PORT_TWICE,
	NIC_TWICE,
	LATENCY_HALF,
	UPLINKS_WHOLE,
	UPLINKS_TWICE,
	GPU_BETTER,
	OVERLAP_TP,
	OVERLAP_DP,
	OVERLAP_PP,
	LAYERS_TWICE,
	BATCH_TWICE,
	SEQUENCE_TWICE,
	NOTHING_AGAIN,
	PRICES_UP,
	ELECTRICITY_UP,
	HORIZON_SHORTER,
	RELATIONS
};

/* most, worst: so many may break it, by such a factor, for the reason that understood()
 * proves by taking it away. */
static const struct {
	const char *name;
	int most;
	double worst;
} relation[RELATIONS] = {
	[PORT_TWICE] = { "links inside a domain twice as fast", 0, 0 },
	/* what ends sooner lets another begin beside what ran alone: both then take up to 1.4 times as long */
	[NIC_TWICE] = { "NICs and ports twice as fast", 5, 1.04 },
	[LATENCY_HALF] = { "fabric latencies halved", 1, 1.02 },
	[UPLINKS_WHOLE] = { "no uplink failed, against a fifth", 0, 0 },
	[UPLINKS_TWICE] = { "twice the uplinks", 0, 0 },
	/* H200 has lower rates of long runs, and some rows of products and attention, than
	 * H100; B300 and GB300 have tables of collectives of another source (hw/gpus) */
	[GPU_BETTER] = { "a better GPU", 8, 1.12 },
	/* both run slower beside each other; without overlap.dp Megatron has but one bucket */
	[OVERLAP_TP] = { "overlap.tp", 2, 1.02 },
	[OVERLAP_DP] = { "overlap.dp", 12, 1.17 },
	[OVERLAP_PP] = { "overlap.pp", 0, 0 },
	[LAYERS_TWICE] = { "half the layers", 0, 0 },
	[BATCH_TWICE] = { "half the batch", 0, 0 },
	[SEQUENCE_TWICE] = { "half the sequence", 0, 0 },
	/* a gather beside more kernels; what a scan keeps is copied, so that keeping may be slower */
	[NOTHING_AGAIN] = { "nothing recomputed", 2, 1.03 },
	[PRICES_UP] = { "lower prices", 0, 0 },
	[ELECTRICITY_UP] = { "cheaper electricity", 0, 0 },
	[HORIZON_SHORTER] = { "a longer horizon", 0, 0 },
};

struct tally {
	int ran, refused, bad_answers;
	int asked[RELATIONS], broken[RELATIONS], by_library[RELATIONS],
		known[RELATIONS];
	double worst[RELATIONS];
};

struct drawn {
	struct arena mem;
	struct ft_shelf *shelf;
	uint64_t seed;
	const char *text; /* of the scenario, to be found again */
	struct ft_scenario *s;
	struct ft_outcome base;
	struct tally *tally;
};

static struct ft_scenario *load(struct drawn *d, struct ft_shelf *shelf,
				const char *text, const char *key, const char *value)
{
	struct ft_error err;
	struct node *root = node_read_text(&d->mem, "drawn", text, strlen(text), &err);

	ok_or_say(root, err);
	if (key)
		ok_or_say(node_put_path(&d->mem, root, key, NULL, value, &err), err);
	return ft_scenario_from(shelf, root, "drawn", true, &err);
}

/* ---- relations ---------------------------------------------------------------------- */

static bool step_of(const struct ft_scenario *s, double *step_s)
{
	struct ft_outcome o;
	struct ft_error err;

	if (!ft_study_simulate(s, NULL, NULL, &o, &err))
		return false;
	*step_s = o.step_s;
	ft_outcome_release(&o);
	return true;
}

/* A scenario with parts of its own, to be changed. */
struct changed {
	struct ft_scenario s;
	struct ft_cluster cluster;
	struct ft_fabric fabric;
	struct ft_plan plan;
	struct ft_ccl ccl;
	struct ft_gpu gpu;
	struct ft_node node;
};

static void copy_of(const struct ft_scenario *s, struct changed *c)
{
	c->s = *s;
	c->cluster = *s->cluster;
	c->fabric = *s->cluster->fabric;
	c->plan = *s->plan;
	c->ccl = *s->ccl;
	c->gpu = *s->cluster->gpu;
	c->cluster.fabric = &c->fabric;
	c->s.cluster = &c->cluster;
	c->s.plan = &c->plan;
	c->s.ccl = &c->ccl;
	c->node = *s->cluster->node;
	c->cluster.gpu = &c->gpu;
	c->cluster.node = &c->node;
	c->s.memo = NULL; /* it knows GPUs and clusters by their place */
}

/* Would it hold if each collective went by the fastest algorithm? */
static bool holds_by_time(const struct ft_scenario *better,
			  const struct ft_scenario *worse)
{
	struct changed a, b;
	double fast_s, slow_s;

	copy_of(better, &a);
	copy_of(worse, &b);
	a.ccl.choice = b.ccl.choice = FT_BY_TIME;
	a.fabric.rings_from.value = b.fabric.rings_from.value = 0;
	return step_of(&a.s, &fast_s) && step_of(&b.s, &slow_s) &&
	       fast_s <= slack * slow_s;
}

/* Would it help if what overlap costs were free: starts, and being in each other's way? */
static bool holds_without_costs(const struct ft_scenario *better,
				const struct ft_scenario *worse)
{
	const struct ft_scenario *of[2] = { better, worse };
	double step_s[2];

	for (int i = 0; i < 2; i++) {
		struct changed c;

		copy_of(of[i], &c);
		c.gpu.collective_units.value = 0;
		c.gpu.persistent_products = false;
		c.gpu.memory_beside_collective = c.gpu.collective_beside_compute =
			c.gpu.collective_beside_memory = c.gpu.copy_beside_gemm =
				c.gpu.copy_beside_memory = c.gpu.memory_beside_copy =
					(struct ft_number){ .value = 1 };
		c.node.scale_up_bytes_per_s.value *= 1000; /* room for all at once */
		c.fabric.latency_s.value = c.fabric.hop_s.value = 0;
		c.fabric.ring_step_s.value *= 1e-6;
		c.ccl.choice = FT_BY_TIME;
		c.fabric.rings_from.value = 0;
		if (!step_of(&c.s, &step_s[i]))
			return false;
	}
	return step_s[0] <= slack * step_s[1];
}

/* Would the better GPU win with the lesser one's measured rates, which come from other
 * sources (and of one die are within 5 % of each other), by what it has more of? */
static bool holds_with_rates(const struct ft_scenario *better,
			     const struct ft_scenario *worse)
{
	struct changed c;
	double fast_s, slow_s;

	copy_of(better, &c);
	c.gpu = *worse->cluster->gpu;
	c.gpu.memory_bytes = better->cluster->gpu->memory_bytes;
	c.gpu.memory_bytes_per_s = better->cluster->gpu->memory_bytes_per_s;
	memcpy(c.gpu.peak_flop_per_s, better->cluster->gpu->peak_flop_per_s,
	       sizeof(c.gpu.peak_flop_per_s));
	c.gpu.memory = better->cluster->gpu->memory;
	c.gpu.n_memory = better->cluster->gpu->n_memory;
	return step_of(&c.s, &fast_s) && step_of(worse, &slow_s) &&
	       fast_s <= slack * slow_s;
}

/* Is it one of the reasons that are understood? */
static bool understood(enum relation r, const struct ft_scenario *better,
		       const struct ft_scenario *worse)
{
	switch (r) {
	case NIC_TWICE:
	case LATENCY_HALF:
	case OVERLAP_TP:
	case OVERLAP_DP:
	case NOTHING_AGAIN:
		return holds_without_costs(better, worse);
	case GPU_BETTER:
		return holds_with_rates(better, worse);
	default:
		return false;
	}
}

static void judge(struct drawn *d, enum relation r, double better, double worse,
		  const struct ft_scenario *sb, const struct ft_scenario *sw)
{
	struct tally *t = d->tally;

	t->asked[r]++;
	if (better <= slack * worse)
		return;
	if (sb &&
	    (sb->ccl->choice == FT_BY_LIBRARY ||
	     sb->cluster->fabric->rings_from.value > 0) &&
	    holds_by_time(sb, sw)) {
		t->by_library[r]++;
		return;
	}
	if (understood(r, sb, sw)) {
		t->known[r]++;
		t->worst[r] = fmax(t->worst[r], better / worse);
		return;
	}
	t->broken[r]++;
	print_message("# %s: %.6g, else %.6g (%+.1f %%): %s\n", relation[r].name,
		      better, worse, 100 * (better / worse - 1), d->text);
}

/* The base against itself with something better, or worse. */
static void better(struct drawn *d, enum relation r, const struct ft_scenario *s)
{
	double step_s;

	if (step_of(s, &step_s))
		judge(d, r, step_s, d->base.step_s, s, d->s);
}

static void worse(struct drawn *d, enum relation r, const struct ft_scenario *s)
{
	double step_s;

	if (step_of(s, &step_s))
		judge(d, r, d->base.step_s, step_s, d->s, s);
}

static void network(struct drawn *d)
{
	struct changed c;

	copy_of(d->s, &c);
	c.node.scale_up_bytes_per_s.value *= 2;
	better(d, PORT_TWICE, &c.s);
	if (d->s->cluster->domain_ranks >= d->s->cluster->ranks)
		return;
	copy_of(d->s, &c);
	c.cluster.nic_bytes_per_s *= 2;
	c.fabric.port_bytes_per_s.value *= 2;
	better(d, NIC_TWICE, &c.s);
	copy_of(d->s, &c);
	c.fabric.latency_s.value /= 2;
	c.fabric.hop_s.value /= 2;
	c.fabric.ring_step_s.value /= 2;
	better(d, LATENCY_HALF, &c.s);
	copy_of(d->s, &c);
	c.cluster.imperfections.failed_uplinks_frac = 0.2;
	worse(d, UPLINKS_WHOLE, &c.s);
}

static void overlap(struct drawn *d)
{
	const struct ft_plan *p = d->s->plan;
	struct changed c;

	copy_of(d->s, &c);
	c.plan.overlap_tp = !p->overlap_tp;
	if (p->tp > 1)
		(p->overlap_tp ? worse : better)(d, OVERLAP_TP, &c.s);
	copy_of(d->s, &c);
	c.plan.overlap_dp = !p->overlap_dp;
	if (p->dp > 1)
		(p->overlap_dp ? worse : better)(d, OVERLAP_DP, &c.s);
	copy_of(d->s, &c);
	c.plan.overlap_pp = !p->overlap_pp;
	if (p->pp > 1)
		(p->overlap_pp ? worse : better)(d, OVERLAP_PP, &c.s);
}

/* The same with another value of a key, which may be refused. */
static void other(struct drawn *d, enum relation r, bool is_better, const char *key,
		  const char *value)
{
	struct ft_scenario *s = load(d, d->shelf, d->text, key, value);

	if (s)
		(is_better ? better : worse)(d, r, s);
	ft_scenario_free(s);
}

static void work(struct drawn *d, const struct machine *m)
{
	const struct ft_plan *p = d->s->plan;

	other(d, BATCH_TWICE, false, "training.global_batch_size",
	      arena_printf(&d->mem, "%lld", 2 * (long long)p->global_batch));
	other(d, SEQUENCE_TWICE, false, "training.sequence_length",
	      arena_printf(&d->mem, "%lld", 2 * (long long)p->sequence));
	if (d->s->stack->layout.scan_layers)
		; /* see the table */
	else if (p->recompute == FT_RECOMPUTE_NONE)
		other(d, NOTHING_AGAIN, false, "training.recompute", "selective");
	else
		other(d, NOTHING_AGAIN, true, "training.recompute", "none");
	other(d, LAYERS_TWICE, false, "model.num_hidden_layers",
	      arena_printf(&d->mem, "%lld", 2 * (long long)d->s->model->n_layers));
	if (!d->tally->ran || d->tally->ran % EACH == 1)
		other(d, UPLINKS_TWICE, false, "cluster.fabric.oversubscription", "2");
	if (m->kind->better)
		other(d, GPU_BETTER, true, "cluster.gpu", m->kind->better);
}

static void money(struct drawn *d)
{
	struct ft_price price[256];
	struct ft_prices book = *d->s->prices;
	struct ft_cost_terms terms;

	assert_true(book.n_prices <= 256);
	for (enum relation r = PRICES_UP; r <= HORIZON_SHORTER; r++) {
		struct ft_error err;
		struct ft_bom *bom;
		struct ft_side side;
		struct ft_cost cost;

		book = *d->s->prices;
		memcpy(price, book.price, book.n_prices * sizeof(*price));
		terms = d->s->terms;
		for (size_t i = 0; r == PRICES_UP && i < book.n_prices; i++)
			price[i].usd.value *= 1.25;
		book.price = price;
		if (r == ELECTRICITY_UP)
			terms.electricity_usd_per_kwh = 1;
		if (r == HORIZON_SHORTER)
			terms.horizon_years /= 2;
		bom = ft_bom_build(d->s->cluster, &book, &err);
		ok_or_say(bom, err);
		side = ft_outcome_side(d->s, &d->base);
		side.purchase.prices = &book;
		side.purchase.bom = bom;
		side.purchase.terms = &terms;
		ok_or_say(
			ft_cost_compute(&side.purchase, &side.throughput, &cost, &err),
			err);
		judge(d, r, d->base.cost.usd_per_million_tokens * slack,
		      cost.usd_per_million_tokens, NULL, NULL);
		ft_bom_free(bom);
	}
}

/* ---- one answer ---------------------------------------------------------------------- */

static bool one(struct drawn *d, const struct machine *m)
{
	struct ft_error err;
	const char *wrong;

	d->text = draw(&d->mem, &d->seed, m);
	d->s = load(d, d->shelf, d->text, NULL, NULL);
	if (!d->s || !ft_study_simulate(d->s, NULL, NULL, &d->base, &err)) {
		ft_scenario_free(d->s);
		d->tally->refused++;
		return false;
	}
	d->tally->ran++;
	wrong = wrong_with(&d->base, d->s->stack->gemm_factor.value);
	if (wrong) {
		d->tally->bad_answers++;
		print_message("# %s is wrong: %s\n", wrong, d->text);
	}
	network(d);
	overlap(d);
	work(d, m);
	money(d);
	ft_outcome_release(&d->base);
	ft_scenario_free(d->s);
	return true;
}

/* EACH scenarios on one machine; another machine's answers do not depend on them. */
static void on_machine(uint64_t seed, struct tally *t)
{
	struct drawn d = { .seed = seed, .tally = t };
	struct machine m;
	int ran = 0;

	(void)rnd(&d.seed);
	d.shelf = ft_shelf_new();
	m.kind = &PICK(&d.seed, kinds);
	m.fabric = PICK(&d.seed, m.kind->fabric);
	m.gpus = PICK(&d.seed, sizes);
	for (int i = 0; i < TRIES && ran < EACH; i++)
		ran += one(&d, &m);
	ft_shelf_free(d.shelf);
	arena_release(&d.mem);
}

static void better_is_never_worse(void **state)
{
	struct tally t = { 0 };
	int bad = 0;

	(void)state;
	for (int i = 0; i < MACHINES; i++)
		on_machine((uint64_t)i * 0x9e3779b97f4a7c15u + 1, &t);
	print_message("# %d ran, %d refused, %d wrong\n", t.ran, t.refused,
		      t.bad_answers);
	for (int r = 0; r < RELATIONS; r++) {
		print_message(
			"# %-35s %5d asked, %d broken; %d by the library's choice, "
			"%d for a known reason (worst %.3f)\n",
			relation[r].name, t.asked[r], t.broken[r], t.by_library[r],
			t.known[r], t.worst[r]);
		bad += t.broken[r] + (t.by_library[r] > SCENARIOS / 50) +
		       (t.known[r] > relation[r].most) +
		       (t.known[r] && t.worst[r] > relation[r].worst);
	}
	assert_true(t.ran >= SCENARIOS * 9 / 10);
	assert_int_equal(t.bad_answers, 0);
	assert_int_equal(bad, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(better_is_never_worse) };

	return cmocka_run_group_tests_name("metamorphic", tests, NULL, NULL);
}
