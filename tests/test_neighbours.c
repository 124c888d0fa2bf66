/*
 * tests/test_neighbours.c - two jobs on one network: its switches are those of a network for both
 */
#include "base/arena.h"
#include "base/node.h"
#include "foretoken/study.h"
#include "tests/check.h"

/* fewer under sanitizers */
#if defined(__SANITIZE_ADDRESS__) || defined(TESTS_FEW)
enum { DRAWS = 30 };
#else
enum { DRAWS = 70 };
#endif

static uint64_t seed = 5;

/* A job of so many nodes on a fabric, as a scenario. */
struct drawn {
	struct arena mem;
	struct ft_shelf *shelf;
	struct ft_scenario *s;
	struct ft_graph *graph;
	struct ft_sim_job job;
};

static void make(struct drawn *d, const char *fabric, int nodes)
{
	struct ft_error err;
	struct node *root;
	const char *text;

	*d = (struct drawn){ .shelf = ft_shelf_new() };
	text = arena_printf(
		&d->mem,
		"{model: {name: llama3-8b, num_hidden_layers: 4}, cluster: {gpu: h100-sxm, "
		"gpus: %d, fabric: %s}, stack: torch-2.11-eager, training: {sequence_length: "
		"2048, global_batch_size: %d, parallel: {pp: %d}, sharding: fsdp}}",
		8 * nodes, fabric, 16 * nodes, nodes % 2 ? 1 : 2);
	root = node_read_text(&d->mem, "s", text, strlen(text), &err);
	ok_or_say(root, err);
	d->s = ft_scenario_from(d->shelf, root, "s", true, &err);
	ok_or_say(d->s, err);
	d->graph = ft_scenario_graph(d->s, &err);
	ok_or_say(d->graph, err);
	d->job = (struct ft_sim_job){ .graph = d->graph,
				      .cluster = d->s->cluster,
				      .stack = d->s->stack,
				      .ccl = d->s->ccl };
}

static void drop(struct drawn *d)
{
	ft_graph_free(d->graph);
	ft_scenario_free(d->s);
	ft_shelf_free(d->shelf);
	arena_release(&d->mem);
}

static ft_ps step(const struct ft_sim_job *job, const struct ft_sim_job *beside)
{
	struct ft_error err;
	struct ft_run *run = ft_sim_run(job, beside, NULL, NULL, &err);
	ft_ps is;

	ok_or_say(run, err);
	is = run->step;
	ft_run_free(run);
	return is;
}

static const char *fabric(struct arena *mem)
{
	static const double over[] = { 1, 1.5, 2, 3 };

	return arena_printf(
		mem,
		"{extends: roce-400-rail, routing: %s, oversubscription: %g, "
		"switch: {radix: %d}, rails_per_leaf: %d}",
		rnd_below(&seed, 2) ? "adaptive" : "ecmp", over[rnd_below(&seed, 4)],
		8 + 2 * rnd_below(&seed, 13), 1 + rnd_below(&seed, 2));
}

/* The same step as alone where the switches are those for the nodes of both: nothing is sent to nodes
 * of the other. */
static void beside_an_idle_job_switches_are_those_for_both(void **state)
{
	int others = 0, same = 0;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct arena mem = { 0 };
		const char *on = fabric(&mem);
		int nodes = 2 + rnd_below(&seed, 14), more = 1 + rnd_below(&seed, 14);
		struct drawn one, other;
		struct ft_cluster both;
		struct ft_sim_job wider;
		struct ft_error err;

		make(&one, on, nodes);
		make(&other, on, more);
		both = *one.s->cluster;
		ok_or_say(ft_topology_build(both.fabric, nodes + more,
					    both.nics_per_node, 0, &both.topology,
					    &err),
			  err);
		wider = one.job;
		wider.cluster = &both;
		other.job.idle = true;
		if (both.topology.tiers == 2 && one.s->cluster->topology.tiers == 2) {
			ft_ps is = step(&one.job, &other.job);

			if (is != step(&wider, NULL))
				fail_msg("%d nodes beside %d, %s: %lld ps", nodes, more,
					 on, (long long)is);
			others += is != step(&one.job, NULL);
			same++;
		}
		drop(&one);
		drop(&other);
		arena_release(&mem);
	}
	assert_true(same > DRAWS / 3 && others > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beside_an_idle_job_switches_are_those_for_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
