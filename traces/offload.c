/*
 * traces/offload.c - what layers keep for backward, on its way to host memory and back
 *
 * Of a stage's n layers k keep nothing on the GPU. Their bytes are spread over all n, so that copies run
 * beside the whole of forward and backward: a layer's k / n of them go out behind its forward, and
 * the next layer ends when they have left; they come back while the layer above runs back, and
 * those of a chunk's last layer before its own backward. A stream in each direction, by copy
 * engines.
 *
 * PyTorch's hooks on saved tensors stand around the whole forward pass where all layers are to go (loss_on_host): what the loss
 * keeps leaves, too, and comes back at once, with nothing beside it. Measured on an H200: a copy out and one back of 1.0 to 4.2 GB at
 * 50 to 55 GB/s, one behind the other (saved_on_host.py; measurements/probes/h200-2026-11-30-saved-on-host-unseen).
 *
 * Source: Transformer Engine's cpu_offload gives each of the k groups n / k layers of time.
 * Measured on an H100 (host_link.py): layers whose copies take less time than their products
 * run 3 % slower than without, others as long as the copies and 2 to 4 % more.
 * Limits: both directions at once reach 46 GB/s of 54, two GPUs' 34. The layer that is first in a
 * backward waits for its share, which comes back even while it leaves; Transformer Engine fetches
 * a little sooner and keeps the last layer's.
 */
#include "traces/offload.h"

/* NULL: nothing is to go. */
static struct ft_op *send(struct builder *b, const char *name, enum ft_stream stream,
			  double bytes)
{
	struct ft_work w = { .kind = FT_MEMORY_BOUND, .name = name, .dtype = FT_BF16 };
	struct ft_op *op;

	w.memory.kernel = FT_HOST_LINK;
	w.memory.bytes = bytes;
	if (!(bytes > 0))
		return NULL;
	op = put_op(b, &w, stream, 1);
	put_wait(op, FT_TAIL + FT_STREAM_COMPUTE);
	return op;
}

static bool transfer(struct builder *b, const char *name, enum ft_stream stream,
		     int64_t layer)
{
	return send(b, name, stream,
		    b->sent_frac[layer] *
			    layer_saved_bytes(b, layer, layer_recompute(b, layer)));
}

bool sends_loss(const struct builder *b)
{
	return b->rules->loss_on_host && b->transfers &&
	       b->plan->offload_layers == b->model->n_layers;
}

void offload_loss(struct builder *b, double bytes)
{
	if (sends_loss(b))
		send(b, "offload", FT_STREAM_OFFLOAD, bytes);
}

void fetch_loss(struct builder *b, double bytes)
{
	struct ft_op *op;

	if (!sends_loss(b))
		return;
	op = send(b, "fetch", FT_STREAM_FETCH, bytes);
	if (op)
		put_wait(op, FT_TAIL + FT_STREAM_OFFLOAD);
	need(b, FT_STREAM_FETCH);
}

void offload_await(struct builder *b)
{
	if (b->transfers)
		need(b, FT_STREAM_OFFLOAD);
}

void offload_layer(struct builder *b, int64_t layer)
{
	if (b->transfers)
		transfer(b, "offload", FT_STREAM_OFFLOAD, layer);
}

unsigned fetch_variant(const struct builder *b, bool last, bool first)
{
	if (!b->transfers)
		return 0;
	return (first ? V_FETCH : 0) | (last ? 0 : V_FETCH_BELOW);
}

void fetch_await(struct builder *b, int64_t layer, unsigned variant)
{
	if (variant & V_FETCH)
		transfer(b, "fetch", FT_STREAM_FETCH, layer);
	if (b->transfers)
		need(b, FT_STREAM_FETCH);
}

static bool awaits_fetch(const struct ft_op *op)
{
	for (int i = 0; i < FT_OP_WAITS; i++)
		if (op->wait[i] == FT_TAIL + FT_STREAM_FETCH)
			return true;
	return false;
}

void fetch_below(struct builder *b, int64_t layer, unsigned variant)
{
	struct ft_op *op, fetch;
	size_t i;

	if (!(variant & V_FETCH_BELOW) ||
	    !transfer(b, "fetch", FT_STREAM_FETCH, layer - 1))
		return;
	op = b->seg->op;
	i = b->seg->n_ops - 1;
	for (fetch = op[i]; i && !awaits_fetch(&op[i - 1]); i--)
		op[i] = op[i - 1];
	op[i] = fetch;
}
