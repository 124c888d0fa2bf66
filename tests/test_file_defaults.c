/*
 * tests/test_file_defaults.c - what a key of a data file counts as when the file leaves it out
 *
 * A file of the tree without the key is read, and the number that stands for it must be what the
 * manual says: foretoken-fabric(5), node, site, gpu and stack.
 */
#include <stddef.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/hw.h"
#include "foretoken/stacks.h"
#include "hw/parts.h"
#include "tests/check.h"

enum type { WHOLE, REAL, NUMBER, TRUTH, CHOICE };

struct absent {
	const char *key;
	size_t at; /* of the struct that is read */
	enum type type;
	double value;
};

#define FABRIC(key, field, type, value) \
	{ \
		key, offsetof(struct ft_fabric, field), type, value \
	}
#define NODE(key, field, type, value) \
	{ \
		key, offsetof(struct ft_node, field), type, value \
	}
#define SITE(key, field, type, value) \
	{ \
		key, offsetof(struct site, field), type, value \
	}
#define GPU(key, field, type, value) \
	{ \
		key, offsetof(struct ft_gpu, field), type, value \
	}
#define STACK(key, field, type, value) \
	{ \
		"layout." key, offsetof(struct ft_stack, layout.field), type, value \
	}
#define RATE(key, field, value) \
	{ \
		"rates." key, offsetof(struct ft_stack, field), NUMBER, value \
	}

static const struct absent of_fabric[] = {
	FABRIC("planes", planes, WHOLE, 1),
	FABRIC("nics_per_node", nics_per_node, WHOLE, 0),
	FABRIC("oversubscription", oversubscription, REAL, 1),
	FABRIC("core_oversubscription", core_oversubscription, REAL, 1),
	FABRIC("tiers", tiers, WHOLE, 0),
	FABRIC("rails_per_leaf", rails_per_leaf, WHOLE, 1),
	FABRIC("planned_nodes", planned_nodes, WHOLE, 0),
	FABRIC("spare_spines", spare_spines, WHOLE, 0),
	FABRIC("sharp", sharp, TRUTH, false),
	FABRIC("routing", adaptive, TRUTH, true),
	FABRIC("routing", scheduled, TRUTH, false),
	FABRIC("wiring", wiring, CHOICE, FT_WIRING_NONE),
	FABRIC("queue_pairs", queue_pairs, WHOLE, 1),
	FABRIC("rings_from", rings_from, NUMBER, 0),
	FABRIC("rings_ranks", rings_ranks, WHOLE, 128),
	FABRIC("exchange_peer", exchange_peer_s, NUMBER, 0),
	FABRIC("switch.split", port_split, WHOLE, 1),
	FABRIC("switch.upper_radix", upper_radix, WHOLE, 0),
	FABRIC("links.ports_per_optic", ports_per_optic, WHOLE, 1),
	FABRIC("links.copper_node", copper_node, TRUTH, false),
	FABRIC("links.copper_leaf", copper_leaf, TRUTH, false),
};

static const struct absent of_node[] = {
	NODE("scale_up.gpus", scale_up_gpus, WHOLE, 4),
	NODE("scale_up.switches", scale_up_switches, WHOLE, 1),
	NODE("dpus", dpus, WHOLE, 0),
	NODE("dpus.count", dpus, WHOLE, 1),
	NODE("nics.count", nics, WHOLE, 1),
	NODE("nics.ports_per_optic", nic_ports_per_optic, WHOLE, 1),
	NODE("nics.links", nic_links, WHOLE, 1),
	NODE("price.nodes", nodes_per_price_item, WHOLE, 1),
	NODE("host_link", host_link_bytes_per_s, NUMBER, 0),
	NODE("gpu_speed_spread", gpu_speed_spread_frac, NUMBER, 0),
	NODE("rack_units", rack_units, NUMBER, 0),
};

static const struct absent of_site[] = {
	SITE("front_end.ports_per_node", front_end.ports_per_node, WHOLE, 2),
	SITE("front_end.radix", front_end.radix, WHOLE, 64),
	SITE("front_end.hall_nodes", front_end.hall_nodes, WHOLE, 16384),
	SITE("storage.ports_per_server", storage.ports_per_server, WHOLE, 2),
	SITE("storage.per_gpu", storage.per_gpu_bytes, REAL, 0),
	SITE("management.servers", management.servers, WHOLE, 3),
	SITE("management.nodes_per_server", management.nodes_per_server, WHOLE, 64),
	SITE("out_of_band.ports", out_of_band.ports, WHOLE, 48),
	SITE("racks.pdus", racks.pdus, WHOLE, 2),
	SITE("racks.row", racks.row, WHOLE, 20),
	SITE("racks.slack", racks.slack_m, REAL, 0),
	SITE("spares_frac", spares_frac, NUMBER, 0),
};

static const struct absent of_gpu[] = {
	GPU("ranks_per_gpu", ranks_per_gpu, WHOLE, 1),
	GPU("gemm.tile_m", gemm_model.tile_m, WHOLE, 128),
	GPU("gemm.tile_n", gemm_model.tile_n, WHOLE, 256),
	GPU("gemm.distance.m", gemm_model.distance[0], NUMBER, 1),
	GPU("gemm.distance.n", gemm_model.distance[1], NUMBER, 1),
	GPU("gemm.distance.k", gemm_model.distance[2], NUMBER, 1),
	GPU("gemm.sustained", sustained[FT_BF16], NUMBER, 1),
	GPU("gemm.tuned", gemm_tuned.time[FT_BF16], NUMBER, 1),
	GPU("gemm.any_layout", any_layout, TRUTH, false),
	GPU("gemm.mxfp8_time", gemm_mxfp8, NUMBER, 1),
	GPU("gemm.unaligned_rate", gemm_unaligned, NUMBER, 1),
	GPU("gemm.layout.dgrad", gemm_layout[FT_BF16][1], NUMBER, 1),
	GPU("gemm.layout.wgrad", gemm_layout[FT_BF16][2], NUMBER, 1),
	GPU("gemm.layout.accumulate", gemm_accumulate, NUMBER, 1),
	GPU("gemm.layout.fast", gemm_fast, NUMBER, 1),
};

static const struct absent of_stack[] = {
	{ "unnamed", offsetof(struct ft_stack, unnamed), TRUTH, false },
	STACK("fusion", fusion, CHOICE, FT_FUSION_KERNELS),
	STACK("tensor_parallel", tensor_parallel, CHOICE, FT_TP_MEGATRON),
	STACK("selective", selective, CHOICE, FT_SELECTIVE_ATTENTION),
	STACK("context_parallel", context_parallel, CHOICE, FT_CP_RING),
	STACK("fused_qkv", fused_qkv, TRUTH, true),
	STACK("fused_gate_up", fused_gate_up, TRUTH, true),
	STACK("sums_each_input", sums_each_input, TRUTH, false),
	STACK("fused_softmax", fused_softmax, TRUTH, true),
	STACK("narrow_softmax", narrow_softmax, TRUTH, false),
	STACK("fused_loss", fused_loss, TRUTH, false),
	STACK("loss_in_operations", loss_in_operations, TRUTH, false),
	STACK("autocast", autocast, TRUTH, false),
	STACK("pads_products", pads_products, TRUTH, false),
	STACK("unwrapped_alone", unwrapped_alone, TRUTH, false),
	STACK("masks_always", masks_always, TRUTH, false),
	STACK("autocast_always", autocast_always, TRUTH, false),
	STACK("backward_outside_autocast", backward_outside_autocast, TRUTH, false),
	STACK("uncached_autocast", uncached_autocast, TRUTH, false),
	STACK("dropout", dropout, TRUTH, false),
	STACK("gradient_fusion", gradient_fusion, TRUTH, true),
	STACK("ignored_experts", ignored_experts, TRUTH, false),
	STACK("plain_caps", plain_caps, TRUTH, false),
	STACK("vocab_multiple", vocab_multiple, WHOLE, 0),
	STACK("unsharded_pipeline", unsharded_pipeline, TRUTH, false),
	STACK("whole_gradients", whole_gradients, TRUTH, false),
	STACK("all_reduced_gradients", all_reduced_gradients, TRUTH, false),
	STACK("broadcast_parts", broadcast_parts, TRUTH, false),
	STACK("gather_under_forward", gather_under_forward, TRUTH, false),
	STACK("gathers_twice", gathers_twice, TRUTH, false),
	STACK("split_backward", split_backward, TRUTH, false),
	STACK("dual_pipe", dual_pipe, TRUTH, false),
	STACK("autograd_split", autograd_split, TRUTH, false),
	STACK("host_sync", host_sync, TRUTH, false),
	STACK("shared_muon", shared_muon, TRUTH, false),
	STACK("asks_inputs", asks_inputs, TRUTH, false),
	STACK("asks_loss", asks_loss, TRUTH, false),
	STACK("loss_on_host", loss_on_host, TRUTH, false),
	STACK("whole_graph", whole_graph, TRUTH, false),
	STACK("wide_outputs", wide_outputs, TRUTH, false),
	STACK("copied_outputs", copied_outputs, TRUTH, false),
	STACK("gradients_until_backward", gradients_until_backward, TRUTH, false),
	STACK("static_tiles", static_tiles, TRUTH, false),
	STACK("norm_finalize", norm_finalize, TRUTH, false),
	STACK("wide_experts_break", wide_experts_break, TRUTH, false),
	STACK("experts_as_weights", experts_as_weights, TRUTH, false),
	STACK("plain_loss", plain_loss, TRUTH, false),
	STACK("inputs_apart", inputs_apart, TRUTH, false),
	STACK("adapter_units", adapter_units, TRUTH, false),
	STACK("update_lists", update_lists, TRUTH, false),
	STACK("loss_in_place", loss_in_place, TRUTH, false),
	STACK("loss_in_root", loss_in_root, TRUTH, false),
	STACK("plain_sinks", plain_sinks, TRUTH, false),
	STACK("plain_rotary", plain_rotary, TRUTH, false),
	STACK("plain_gates", plain_gates, TRUTH, false),
	STACK("blocking_launches", blocking_launches, TRUTH, false),
	STACK("receive_sync", receive_sync, TRUTH, false),
	STACK("messages_in_turn", messages_in_turn, TRUTH, false),
	STACK("masked_dispatch", masked_dispatch, TRUTH, false),
	STACK("static_buffers", static_buffers, TRUTH, false),
	STACK("one_program", one_program, TRUTH, false),
	STACK("receive_buffers", receive_buffers, TRUTH, false),
	STACK("ragged_batch", ragged_batch, TRUTH, false),
	STACK("gather_root_again", gather_root_again, TRUTH, false),
	STACK("experts_cast_together", experts_cast_together, TRUTH, false),
	STACK("keeps_outputs", keeps_outputs, TRUTH, false),
	STACK("narrow_parameters", narrow_parameters, TRUTH, false),
	STACK("scatter_gather", scatter_gather, TRUTH, false),
	STACK("scaled_gradients", scaled_gradients, TRUTH, true),
	STACK("scaled_in_pipeline", scaled_in_pipeline, TRUTH, false),
	STACK("collectives_in_turn", collectives_in_turn, TRUTH, false),
	STACK("flat_shards", flat_shards, TRUTH, false),
	STACK("metrics", metrics, WHOLE, 0),
	STACK("head_chunks", head_chunks, WHOLE, 1),
	STACK("attention_block", attention_block, WHOLE, 0),
	STACK("full_recompute", full_recompute, CHOICE, FT_AGAIN_WHOLE),
	STACK("routing", routing, CHOICE, FT_ROUTING_FUSED),
	STACK("fsdp_copy_in", fsdp_copy_in_bytes, REAL, 0),
	STACK("scan_kept", scan_kept_bytes, REAL, 3),
	STACK("fsdp_copy_out", fsdp_copy_out_bytes, REAL, 0),
	STACK("fsdp_copy_gradient", fsdp_copy_grad_bytes, REAL, 0),
	STACK("optimizer", optimizer_bytes, REAL, 0),
	STACK("optimizer_kernels", optimizer_kernels, WHOLE, 8),
	STACK("expert_spread", expert_spread, REAL, 0),
	STACK("forced_in_turn", forced_in_turn, TRUTH, false),
	STACK("bucket", bucket_bytes, REAL, 0),
	STACK("bucket_copy", bucket_copy_bytes, REAL, 0),
	STACK("windows", windows, TRUTH, true),
	STACK("fp8_windows_back", fp8_windows_back, TRUTH, true),
	RATE("host", host_s[0], 0),
	RATE("host.crowding", host_crowding_frac, 0),
	RATE("gap", gap_s, 0),
	RATE("graphed_kernel", graphed_kernel_s, 0),
	RATE("gemm", gemm_factor, 1),
	RATE("grouped_back.bf16", grouped_back[FT_BF16], 1),
	RATE("attention", attention_factor, 1),
	RATE("memory_bound", memory_factor, 1),
	RATE("collective", collective_factor, 1),
	RATE("dispatcher", dispatcher_factor, 1),
};

/* A map without a.b.c. */
static struct node *without(struct arena *mem, const struct node *map, const char *key)
{
	const char *dot = strchr(key, '.');
	size_t n = dot ? (size_t)(dot - key) : strlen(key);
	struct node *copy = node_map(mem, &map->mark);

	for (size_t i = 0; i < map->n; i++) {
		bool on_the_way = !strncmp(map->key[i], key, n) && !map->key[i][n];
		struct node *item = map->item[i];

		if (on_the_way && !dot)
			continue;
		if (on_the_way && item->kind == NODE_MAP)
			item = without(mem, item, dot + 1);
		node_put(mem, copy, map->key[i], &map->key_mark[i], item);
	}
	return copy;
}

static double read_at(const void *of, const struct absent *a)
{
	const void *at = (const char *)of + a->at;

	switch (a->type) {
	case WHOLE:
		return (double)*(const int64_t *)at;
	case REAL:
		return *(const double *)at;
	case TRUTH:
		return *(const bool *)at;
	case CHOICE:
		return *(const int *)at;
	default:
		return ((const struct ft_number *)at)->value;
	}
}

enum kind { A_FABRIC, A_NODE, A_SITE, A_GPU, A_STACK };

static void *read_kind(enum kind kind, const char *path, struct arena *mem,
		       struct ft_error *err)
{
	const struct ft_mark at = { .file = "test" };
	struct node *value = node_scalar(mem, &at, path);
	struct site *site = ARENA_NEW(mem, struct site);

	switch (kind) {
	case A_FABRIC:
		return ft_fabric_load_value(value, err);
	case A_NODE:
		return ft_node_load_value(value, err);
	case A_SITE:
		return site_read(mem, value, site, err) ? site : NULL;
	case A_GPU:
		return ft_gpu_load_value(value, 0, err);
	default:
		return ft_stack_load(path, NULL, err);
	}
}

static void release(enum kind kind, void *of)
{
	if (kind == A_FABRIC)
		ft_fabric_free(of);
	else if (kind == A_NODE)
		ft_node_free(of);
	else if (kind == A_GPU)
		ft_gpu_free(of);
	else if (kind == A_STACK)
		ft_stack_free(of);
}

static void all_hold(enum kind kind, const char *file, const struct absent *a, size_t n)
{
	size_t bad = 0;

	for (size_t i = 0; i < n; i++) {
		struct arena mem = { 0 };
		struct ft_error err = { 0 };
		struct node *whole = node_read_file(&mem, file, &err);
		char path[64];
		FILE *out = fopen(own_path(path, "absent.yaml"), "w");
		void *is;

		ok_or_say(whole, err);
		assert_non_null(out);
		fputs(node_flow(&mem, without(&mem, whole, a[i].key)), out);
		fclose(out);
		is = read_kind(kind, path, &mem, &err);
		unlink(path);
		ok_or_say(is, err);
		if (read_at(is, &a[i]) < a[i].value ||
		    read_at(is, &a[i]) > a[i].value) {
			print_error("%s without %s: %g, not %g\n", file, a[i].key,
				    read_at(is, &a[i]), a[i].value);
			bad++;
		}
		release(kind, is);
		arena_release(&mem);
	}
	assert_int_equal(bad, 0);
}
#define ALL_HOLD(kind, file, of) all_hold(kind, file, of, sizeof(of) / sizeof(*(of)))

static void what_a_file_leaves_out_is_its_default(void **state)
{
	(void)state;
	ALL_HOLD(A_FABRIC, "hw/fabrics/ib-ndr-rail.yaml", of_fabric);
	ALL_HOLD(A_NODE, "hw/nodes/gb200-nvl72.yaml", of_node);
	ALL_HOLD(A_SITE, "hw/sites/standard.yaml", of_site);
	ALL_HOLD(A_GPU, "hw/gpus/h100-sxm.yaml", of_gpu);
	ALL_HOLD(A_STACK, "stacks/generic.yaml", of_stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_file_leaves_out_is_its_default),
	};

	return cmocka_run_group_tests_name("file defaults", tests, NULL, NULL);
}
