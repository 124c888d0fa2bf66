/* stacks/flags.c - the keys of a layout that are true or false, one table */
#include "stacks/flags.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/reader.h"
#include "foretoken/stacks.h"

/* What is so or not; the first, of which it goes without saying. */
#define AT(key) #key, offsetof(struct ft_layout_rules, key)
#define ON(key) \
	{ \
		AT(key), true \
	}
#define OFF(key) \
	{ \
		AT(key), false \
	}
static const struct flag {
	const char *key;
	size_t at;
	bool unless_said;
} flags[] = {
	ON(fused_qkv),
	ON(fused_gate_up),
	ON(fused_softmax),
	ON(gradient_fusion),
	ON(scaled_gradients),
	ON(windows),
	OFF(narrow_softmax),
	OFF(model_classes),
	OFF(sums_each_input),
	OFF(masked_dispatch),
	OFF(static_buffers),
	OFF(forced_in_turn),
	OFF(weighted_activation),
	OFF(fused_loss),
	OFF(loss_in_operations),
	OFF(autocast),
	OFF(autocast_always),
	OFF(backward_outside_autocast),
	OFF(uncached_autocast),
	OFF(masks_always),
	OFF(fused_streams),
	OFF(stacked_experts),
	OFF(masked_choice),
	OFF(pads_products),
	OFF(dropout),
	OFF(ignored_experts),
	OFF(collectives_in_turn),
	OFF(flat_shards),
	OFF(whole_gradients),
	OFF(all_reduced_gradients),
	OFF(broadcast_parts),
	OFF(gather_under_forward),
	OFF(gathers_twice),
	OFF(unwrapped_alone),
	OFF(asks_inputs),
	OFF(asks_loss),
	OFF(loss_on_host),
	OFF(whole_graph),
	OFF(wide_outputs),
	OFF(copied_outputs),
	OFF(experts_as_weights),
	OFF(static_tiles),
	OFF(norm_finalize),
	OFF(wide_experts_break),
	OFF(gradients_until_backward),
	OFF(plain_loss),
	OFF(inputs_apart),
	OFF(adapter_units),
	OFF(update_lists),
	OFF(loss_in_place),
	OFF(host_sync),
	OFF(mixed_norms),
	OFF(cut_blocks),
	OFF(shared_muon),
	OFF(scan_layers),
	OFF(one_program),
	OFF(compiled_update),
	OFF(ragged_batch),
	OFF(gather_root_again),
	OFF(experts_cast_together),
	OFF(loss_in_root),
	OFF(narrow_parameters),
	OFF(plain_sinks),
	OFF(plain_caps),
	OFF(blocking_launches),
	OFF(plain_rotary),
	OFF(plain_gates),
	OFF(unsharded_pipeline),
	OFF(reduces_at_flush),
	OFF(split_backward),
	OFF(dual_pipe),
	OFF(autograd_split),
	OFF(receive_sync),
	OFF(messages_in_turn),
	OFF(receive_buffers),
	OFF(keeps_outputs),
	OFF(scatter_gather),
	OFF(scaled_in_pipeline),
};

void flags_read(struct reader *r, struct ft_layout_rules *l)
{
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		*(bool *)((char *)l + flags[i].at) =
			read_bool(r, flags[i].key, flags[i].unless_said);
}
