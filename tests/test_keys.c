/*
 * tests/test_keys.c - every key of a scenario, stack, node, fabric, profile and price book
 * has an effect on some answer, or is refused
 *
 * Names, titles, provenance and the low and high of a number are for people (tests/keys.h);
 * the other keys that may be without effect here stand in the table, each with its reason.
 * Libraries of collectives are in test_ccl.c.
 */
#include <sys/wait.h>

#include "tests/few.h"
#include "tests/key_parts.h"

static const struct key_exempt exempt[] = {
	{ "stack", "defaults.parallel",
	  "a map of numbers that the scenario's own test has" },
	{ "stack", "runs*", "a plan is refused or not: test_usage.sh" },
	{ "stack", "layout.dual_pipe", "a schedule is refused or not: test_usage.sh" },
	{ "stack", "layout.gathers_twice",
	  "experts on several ranks: test_reductions.c" },
	{ "stack", "layout.cut_blocks", "takes rates.host.piece: test_host_work.c" },
	{ "stack", "layout.shared_muon", "of Muon under ddp: test_muon.c" },
	{ "stack", "layout.copied_outputs", "of ddp's replicas: test_wrappers.c" },
	{ "stack", "layout.uncached_autocast",
	  "of layout.backward_outside_autocast: test_autocast.c" },
	{ "stack", "layout.wide_experts_break", "a sentence alone: test_evidence.sh" },
	{ "stack", "layout.norm_finalize", "heads of TE: test_elements_counted.c" },
	{ "stack", "layout.stacked_experts", "of grouped experts: test_compressed.c" },
	{ "stack", "layout.fused_streams",
	  "of a residual of several streams: test_streams.c" },
	{ "stack", "layout.static_tiles", "of grouped products: test_gemm.c" },
	{ "stack", "layout.experts_as_weights",
	  "of mixtures under autocast: test_experts_wide.c" },
	{ "stack", "layout.sums_each_input",
	  "of tensor groups: test_parallel_halves.c" },
	{ "stack", "layout.attention_block",
	  "of plain attention in compiled code: test_blockwise.c" },
	{ "stack", "layout.adapter_units",
	  "of adapters under fsdp: test_adapter_units.c" },
	{ "stack", "layout.unwrapped_alone",
	  "of ddp and one replica: test_autocast.c" },
	{ "stack", "layout.masks_always",
	  "of layout.masked_attention: test_autocast.c" },
	{ "stack", "rates.host.piece", "of layout.cut_blocks: test_host_work.c" },
	{ "stack", "rates.host.inputs", "of layout.asks_inputs: test_transformers.c" },
	{ "stack", "rates.host.selective_*",
	  "of a choice of operations: test_host_work.c" },
	{ "stack", "rates.host.split_weight",
	  "of layout.autograd_split: test_schedule_parts.c" },
	{ "stack", "rates.host.matrix", "of Muon: test_muon.c" },
	{ "stack", "rates.host.tensor_update", "of Adafactor: test_optimizer.c" },
	{ "stack", "rates.host.redistribute", "likewise" },
	{ "stack", "rates.host.state_views",
	  "of layout.flat_shards: test_host_state.c" },
	{ "stack", "rates.host.split_below",
	  "of layout.autograd_split: test_schedule_parts.c" },
	{ "stack", "ccl", "in a node many libraries agree: test_ccl.c, test_tuner.c" },
	{ "stack", "rates.grouped_back.*fp[1-4]*",
	  "formats that no experts here have" },
	{ "stack", "rates.grouped_back.mx*", "formats that no experts here have" },
	{ "stack", "rates.grouped_back.*block*", "formats that no experts here have" },
	{ "stack", "defaults", "its keys are those of stacks that have some" },
	{ "stack", "defaults_by_precision*",
	  "of formats that a scenario has: test_by_precision.c" },
	{ "stack", "defaults.lora", "a map that the scenario's own test has" },
	{ "stack", "defaults.sequence_length", "all scenarios here say it themselves" },
	{ "stack", "layout.attention_by_generation",
	  "of GPUs of some generations: test_by_generation.c" },
	{ "stack", "defaults.global_batch_size",
	  "all scenarios here say it themselves" },
	{ "", "cost.start", "a date in the CSV of flows: test_decide.sh" },
	{ "cost.prices", "rent",
	  "a book has prices or rents: rent-2026 is one of these parts" },
	{ "cost.prices", "prices.*.included", "permits a price of zero, else refused" },
	{ "cluster.fabric", "planes",
	  "more than a NIC can use are refused: test_cluster.c" },
	{ "cluster.gpu", "memory.context",
	  "taken from the capacity: test_gpu.c, test_extends.c" },
	{ "cluster.gpu", "attention.kernels*",
	  "shapes that other kernels run: test_attention_kernels.c" },
	{ "cluster.gpu", "power.kernels*",
	  "of kernels that some steps have: test_clocks.c" },
	{ "cluster.fabric", "links.copper_leaf",
	  "refused over fibre: test_cluster.c; counted: test_topology.c" },
	{ "cluster.node", "nics.links", "of NICs faster than ports: test_cluster.c" },
	{ "cluster.node", "host_memory_size",
	  "of nodes that state fills: test_host_state.c" },
	{ "cluster.node", "gpu", "of a node that is named: test_decide.sh" },
	{ "cluster.node", "dpus", "of the bill's table alone: test_parts.c" },
	{ "cluster.node", "scale_up.switches", "of a switch_item: test_parts.c" },
	{ "cluster.site", "front_end.hall_nodes", "of large clusters: test_parts.c" },
	{ "cluster.site", "racks.row", "of large clusters: test_parts.c" },
	{ "cluster.site", "parts", "facts that the tree lacks: test_parts.c" },
	{ "cost.prices", "operation.storage_per_gpu",
	  "an allowance with a provenance of its own: test_bom.c" },
	{ "cost.prices", "operation.management_per_gpu",
	  "an allowance with a provenance of its own: test_bom.c" },
	{ "cluster.fabric", "exchange_peer", "of exchanges: test_collective.c" },
	{ "cluster.fabric", "graph", "test_topology.c, test_network.sh draw networks" },
	{ "cluster.gpu", "gemm.tuned", "of tuners' rows: test_kernel_sources.c" },
	{ "cluster.gpu", "gemm.mxfp8_time", "of mxfp8: test_kernel_sources.c" },
	{ "cluster.gpu", "gemm.distance", "of tuners' rows: test_kernel_sources.c" },
	{ "cluster.gpu", "collectives.*.nvls_from",
	  "of libraries that keep out of the switch: test_inside.c" },
	{ "cluster.gpu", "memory_bound.curves.*.step",
	  "counts where blocks take steps in turn: tests/test_delta_rates.c" },
	{ "cluster.gpu", "memory_bound.curves.*.traffic",
	  "turns rows' buffers into bytes: validate" },
	{ "cluster.gpu", "memory_bound.curves.*.warm.*",
	  "validate's rows only: a step's inputs are cold" },
};
#ifdef TESTS_FEW
enum { EVERY = 5 }; /* it is slow there */
#else
enum { EVERY = 1 };
#endif
enum { EXEMPT = sizeof(exempt) / sizeof(*exempt) };
_Static_assert((size_t)EXEMPT <= MOST_EXEMPT, "struct flips' used has one for each");

static int flip_kinds(const char *const *kind, size_t n)
{
	struct arena mem = { 0 };
	struct flips *f = calloc(1, sizeof(*f));
	const char *folder = arena_printf(&mem, "build/keys.%ld", (long)getpid());
	int bad = 0;

	make_folder(&mem, folder);
	f->exempt = exempt;
	f->n_exempt = EXEMPT;
	f->every = EVERY;
	f->folder = folder;
	f->bare = arena_printf(&mem, "%s/bare.yaml", folder);
	for (size_t i = 0; i < n; i++) {
		bad += flip_kind(f, kind[i], parts, PARTS);
		for (size_t k = 0; EVERY == 1 && k < EXEMPT; k++)
			if (!strcmp(exempt[k].kind, kind[i]) && !f->used[k]) {
				print_error("%s is exempt for nothing\n",
					    exempt[k].path);
				bad++;
			}
	}
	(void)!system(arena_printf(&mem, "rm -rf %s", folder));
	ft_shelf_free(f->shelf);
	arena_release(&f->mem);
	arena_release(&mem);
	free(f);
	return bad;
}

static void every_key_counts(void **state)
{
	static const char *const kinds[] = { "stack",	     "cluster.node",
					     "cost.prices",  "cluster.fabric",
					     "cluster.site", "",
					     "cluster.gpu" };
	int bad, status = 0;
	pid_t other;

	(void)state;
	fflush(NULL);
	other = fork();
	if (!other) {
		bad = flip_kinds(kinds, 5);
		fflush(NULL);
		_exit(bad > 0);
	}
	bad = flip_kinds(kinds + 5, 2);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(bad, 0);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_counts),
	};

	return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
