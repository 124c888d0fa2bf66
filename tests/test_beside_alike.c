/*
 * tests/test_beside_alike.c - which jobs may stand beside each other: drawn networks and faults of two, of which the
 * second says nothing, the same, or something else
 */
#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "tests/check.h"

enum { DRAWS = 150 };

static uint64_t seed = 137;

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

static const char *const fabrics[] = {
	"{extends: roce-400-rail, switch: {radix: 8}}",
	"{extends: ib-ndr-rail, switch: {radix: 8}}",
	"{extends: roce-400-rail, switch: {radix: 8}, oversubscription: 3}",
	"{extends: roce-400-rail, switch: {radix: 6}}",
};

/* 0: not said. */
struct network {
	int fabric, nics, seed, scattered, spines, uplinks, slow, rate;
	bool slow_gpu;
};

static struct network any_network(void)
{
	return (struct network){
		.fabric = rnd_below(&seed, 4),
		.nics = rnd_below(&seed, 2),
		.seed = rnd_below(&seed, 3),
		.scattered = rnd_below(&seed, 2),
		.spines = rnd_below(&seed, 2),
		.uplinks = rnd_below(&seed, 3),
		.slow = rnd_below(&seed, 3),
		.rate = rnd_below(&seed, 3),
		.slow_gpu = !rnd_below(&seed, 8),
	};
}

/* As the first with something else, or with nothing said of its faults. */
static struct network another(const struct network *first)
{
	struct network n = *first, other = any_network();

	n.slow_gpu = other.slow_gpu;
	if (!rnd_below(&seed, 3))
		n = (struct network){ .fabric = n.fabric,
				      .nics = n.nics,
				      .seed = other.seed,
				      .rate = other.rate };
	switch (rnd_below(&seed, 9)) {
	case 0:
		n.fabric = other.fabric;
		break;
	case 1:
		n.nics = other.nics;
		break;
	case 2:
		n.seed = other.seed;
		break;
	case 3:
		n.scattered = other.scattered;
		break;
	case 4:
		n.spines = other.spines;
		break;
	case 5:
		n.uplinks = other.uplinks;
		break;
	case 6:
		n.slow = other.slow;
		break;
	case 7:
		n.rate = other.rate;
		break;
	default:
		break;
	}
	return n;
}

static struct ft_scenario *made(struct arena *mem, struct ft_shelf *shelf,
				const struct network *n, const char *name)
{
	struct ft_error err;
	struct ft_scenario *s;
	struct node *root;
	const char *text = arena_printf(
		mem,
		"{model: {name: llama3-8b, num_hidden_layers: 1}, cluster: {gpu: h100-sxm, "
		"gpus: 64, fabric: %s, node: {extends: hgx-h100, nics: {count: %d}}, "
		"imperfections: {seed: %d%s%s%s%s%s%s}}, training: {sequence_length: 512, "
		"micro_batch_size: 1, global_batch_size: 64}}",
		fabrics[n->fabric], n->nics ? 4 : 8, 1 + n->seed,
		n->scattered ? ", placement: scattered" : "",
		n->spines ? ", failed_spines: 1" : "",
		n->uplinks ?
			arena_printf(mem, ", failed_uplinks_frac: 0.%d", n->uplinks) :
			"",
		n->slow ? arena_printf(mem, ", slow_nics_frac: 0.%d", n->slow) : "",
		n->slow && n->rate ?
			arena_printf(mem, ", slow_nic_rate_frac: 0.%d", 2 + n->rate) :
			"",
		n->slow_gpu ? ", slow_gpus: [{gpu: 1, speed_frac: 0.9}]" : "");

	root = node_read_text(mem, name, text, strlen(text), &err);
	ok_or_say(root, err);
	s = ft_scenario_from(shelf, root, name, true, &err);
	ok_or_say(s, err);
	return s;
}

/* Why they may not; NULL: they may. */
static const char *why_not(const struct network *a, const struct network *b)
{
	bool silent = !b->scattered && !b->spines && !b->uplinks && !b->slow;
	bool same = a->seed == b->seed && a->scattered == b->scattered &&
		    a->spines == b->spines && a->uplinks == b->uplinks &&
		    a->slow == b->slow && (!a->slow || a->rate == b->rate);

	return a->fabric != b->fabric ? "share one fabric" :
	       a->nics != b->nics     ? "have different NICs" :
	       !silent && !same ? "cannot have other faults or another placement" :
	       b->slow_gpu	? "slow_gpus are simulated in the first job alone" :
				  NULL;
}

static void jobs_stand_on_one_network(void **state)
{
	int refused = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct arena mem = { 0 };
		struct ft_shelf *shelf = ft_shelf_new();
		struct network a = any_network(), b = another(&a);
		struct ft_scenario *s = made(&mem, shelf, &a, "one");
		struct ft_scenario *t = made(&mem, shelf, &b, "other");
		struct ft_error err = { 0 };
		struct ft_outcome o;
		const char *why = why_not(&a, &b);
		bool ok = ft_study_simulate_beside(s, t, NULL, &o, &err);

		if (!why) /* but for faults that part the network */
			ok_or_say(ok || strstr(err.text, "no way is left"), err);
		else if (ok || !strstr(err.text, why))
			fail_msg("%s instead of %s", ok ? "taken" : err.text, why);
		refused += !ok;
		if (ok) {
			assert_string_equal(o.beside, "other");
			assert_true(o.step_alone_s > 0);
			ft_outcome_release(&o);
		}
		ft_scenario_free(s);
		ft_scenario_free(t);
		ft_shelf_free(shelf);
		arena_release(&mem);
	}
	assert_in_range(refused, DRAWS / 4, 3 * DRAWS / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_stand_on_one_network),
	};

	return cmocka_run_group_tests_name("beside, alike", tests, NULL, NULL);
}
