/*
 * traces/experts.c - a routed MLP: router, dispatch, grouped products, combine
 *
 * Each token goes to experts_per_token experts spread over the ep group and back.
 * alltoall sends every copy, sorted by rank before and by expert behind, and padded to
 * the capacity if there is one. deepep and
 * hybridep send a token once to each rank and, across nodes, once to each domain;
 * they sort on arrival and add up on the way back. The host asks for the numbers of
 * tokens and waits for them, unless all inputs are padded to a capacity or the whole
 * layer is in a CUDA graph. Under sequence parallelism a rank routes its slice of
 * the tokens.
 */
#include "traces/autocast.h"
#include "traces/beside.h"
#include "traces/block.h"
#include "traces/casts.h"
#include "traces/gates.h"
#include "traces/masked.h"
#include "traces/routed.h"
#include "traces/stacked.h"

/* The host asks the GPU for a number, and waits for it; not where a graph holds what runs. */
static void host_asks(struct builder *b)
{
	if (b->graphed)
		return;
	host_waits(b);
	host(b, FT_HOST_SYNC, 1);
}

/* Copies to or from the ranks of their experts. */
static struct ft_op *all_to_all(struct builder *b, const struct routed *r,
				const char *name)
{
	struct ft_work w = { .kind = FT_COMMUNICATION, .name = name, .dtype = FT_BF16 };
	struct ft_op *op;

	if (b->g->group[FT_GROUP_EP].size <= 1)
		return NULL;
	w.communication.op = FT_ALL_TO_ALL;
	w.communication.group = FT_GROUP_EP;
	w.communication.bytes = r->bytes;
	w.communication.fanout = r->fanout;
	w.communication.copy_engine = on_copy_engine(b, FT_ALL_TO_ALL);
	op = put_op(b, &w, FT_STREAM_EP, 0);
	put_wait(op, FT_TAIL + FT_STREAM_COMPUTE);
	if (!b->graphed) {
		host(b, FT_HOST_COLLECTIVE, 1);
		host(b, FT_HOST_EXCHANGE, 1);
	}
	return op;
}

/* Copies of all ranks that an expert is split over, or sums of what these made of them. */
static struct ft_op *over_parts(struct builder *b, const struct routed *r,
				enum ft_collective op)
{
	return put_collective(b, "etp_exchange", FT_STREAM_EP, op, FT_GROUP_ETP,
			      r->bytes * (double)b->plan->etp);
}

/* What arrives is gathered over the parts of an expert; what goes back has been summed over them, and its slices are sent. Source:
 * megatron/core/transformer/moe/token_dispatcher.py (read 2026-12-01). */
static void exchange(struct builder *b, const struct routed *r, const char *name,
		     bool back)
{
	struct ft_op *first, *last;

	if (b->chosen) /* kept */
		return;
	first = back ? over_parts(b, r, FT_REDUCE_SCATTER) : all_to_all(b, r, name);
	last = back ? all_to_all(b, r, name) : over_parts(b, r, FT_ALL_GATHER);
	last = last ? last : first;
	if (!last)
		return;
	if (b->exchanged == FT_EVENTS)
		need(b, FT_STREAM_EP);
	else
		last->record = (uint8_t)b->exchanged;
}

/* This rank's copies moved to or from the order of the ranks: only the library's all-to-all needs
 * it. */
static void by_rank(struct builder *b, const struct routed *r, const char *name,
		    struct moved c)
{
	if (!r->direct && !dispatches_by_mask(b))
		put_moved(b, name, c.by_map ? "permute" : "copy", c,
			  experts_width(b) * (double)(r->copies / r->gathered * r->h));
}

/* Do copies stay where they are, all experts being on the rank? */
static bool stays(const struct builder *b)
{
	return b->plan->ep == 1 && routing_of(b)->exchanged_only;
}

/* All that it computes, in the order of the experts: only a rank with several needs it, or one
 * that a token was sent to once; hybridep's own kernels bring copies into it, deepep's do not. */
static void by_expert(struct builder *b, const struct routed *r, const char *name,
		      struct moved c)
{
	const struct routing *routing = routing_of(b);
	bool by_map =
		b->plan->dispatcher == FT_DISPATCH_DEEPEP && routing->permute.by_map;

	if (dispatches_by_mask(b))
		return;
	if (r->direct || (r->local > 1 && !stays(b)))
		put_moved(b, name, by_map ? "permute" : "copy", c,
			  experts_width(b) * (double)(r->rows * r->h));
}

/* Small kernels that find the order: a sort of expert numbers, and what leads to it. */
static void ordering(struct builder *b, const struct routed *r, const char *name,
		     int launches)
{
	if (launches && !dispatches_by_mask(b))
		put_memory(b, name, "copy", 16 * (double)r->copies, launches);
}

/* What is done to the outputs of both products, or to their gradients. */
static void fill_outputs(struct builder *b, const struct routed *r, bool backward)
{
	struct moved fill = routing_of(b)->fill;
	int64_t features = r->h + (r->gated ? 2 : 1) * r->width;

	fill.launches *= 2;
	fill.strided.launches *= 2;
	put_moved(b, backward ? "expert_fill_back" : "expert_fill", "copy", fill,
		  experts_width(b) * (double)(r->copies * features));
}

/* One product for all local experts, or one for each. */
static void products(struct builder *b, const struct routed *r, const char *name,
		     enum ft_layout layout, struct edges e)
{
	if (layout != FT_WGRAD)
		put_unpack(b, (double)(r->local * e.n * e.k));
	if (b->plan->grouped_experts && !experts_in_fp32(b)) {
		put_grouped(b, name, layout, e, r->local);
		return;
	}
	if (experts_in_fp32(b))
		host_asks(b);
	e.m /= r->local;
	for (int64_t i = 0; i < r->local; i++)
		put_grouped(b, name, layout, e, 1);
}

static void up(struct builder *b, const struct routed *r, enum ft_layout layout)
{
	int64_t n = r->gated ? 2 * r->width : r->width;

	products(b, r, "expert_up", layout, (struct edges){ r->copies, n, r->h });
}

static void down(struct builder *b, const struct routed *r, enum ft_layout layout)
{
	products(b, r, "expert_down", layout,
		 (struct edges){ r->copies, r->h, r->width });
}

/* The shared expert is an MLP of all tokens, narrower than a dense layer's. */
struct layer_sizes shared_sizes(const struct builder *b, const struct ft_layer *l)
{
	struct layer_sizes s = sizes_of(b, l - b->model->layer);

	s.f = l->shared_intermediate / b->plan->tp;
	s.shared = true;
	return s;
}

/* Its output times a gate: a dot product and a scaling, a row each. */
static void shared_gate(struct builder *b, const struct layer_sizes *s, bool backward)
{
	if (b->model->shared_gate)
		put_memory(b, "shared_gate", "default",
			   (backward ? 10 : 6) * (double)(s->part * s->h),
			   backward ? 4 : 3);
}

static void shared_expert(struct builder *b, const struct ft_layer *l, bool backward)
{
	struct layer_sizes s = shared_sizes(b, l);

	if (!l->shared_intermediate)
		return;
	if (backward) {
		shared_gate(b, &s, true);
		beside_norm(b, &s, true);
		mlp_back(b, &s);
	} else {
		mlp_half(b, &s);
		beside_norm(b, &s, false);
		shared_gate(b, &s, false);
	}
}

/* The activation: a kernel of its own unless the products do it. */
static void expert_elements(struct builder *b, const struct routed *r, const char *name,
			    struct coefficients c)
{
	bool apart = !b->plan->fused_experts;
	double n = apart * experts_width(b) * (double)(r->rows * r->width);

	put_memory(b, name, "swiglu", c.f * n, c.launches);
	put_memory(b, name, "strided", c.strided.f * n, c.strided.launches);
}

/* Does the gate work on halves of one product's rows? A clamped gate's are counted by the clamps. */
static bool has_halves(const struct builder *b, const struct recipe *c)
{
	return c->routed.strided.launches && b->plan->grouped_experts &&
	       !b->model->clamped;
}

static struct coefficients activation_of(const struct builder *b,
					 const struct routed *r, bool backward)
{
	const struct recipe *c = recipe_of(b);

	if (backward && b->rules->weighted_activation)
		return r->gated ? c->weighted_back : c->weighted_plain_back;
	if (r->gated && (c->routed.launches || has_halves(b, c)))
		return backward ? c->routed_back : c->routed;
	if (r->gated)
		return backward ? c->gated_back : c->gated;
	return backward ? c->plain_back : c->plain;
}

/* Of a gate whose inputs are clamped: what is done beside it. Megatron Core copies the number that it adds to the
 * second from the host at each call, which waits for the GPU (sources at the recipes). */
static void put_clamp(struct builder *b, const struct routed *r, bool backward)
{
	const struct recipe *c = recipe_of(b);

	put_limits(b, backward ? "expert_clamp_back" : "expert_clamp",
		   experts_width(b) * (double)(r->copies * r->width), true, backward);
	if (!b->model->clamped || !r->gated || b->plan->fused_experts)
		return;
	put_moved(b, backward ? "expert_clamp_back" : "expert_clamp", "add",
		  backward ? c->clamp_back : c->clamp,
		  experts_width(b) * (double)(r->copies * r->width));
	if (!backward && b->rules->fusion == FT_FUSION_KERNELS)
		host_asks(b);
}

/* The activation, forward. */
static void activate(struct builder *b, const struct routed *r)
{
	put_clamp(b, r, false);
	expert_elements(b, r, "expert_activation", activation_of(b, r, false));
}

/* Casts of all local experts: by one kernel, or one each. */
static int casts(const struct builder *b, const struct routed *r)
{
	bool together = b->plan->fused_experts ||
			(b->rules->experts_cast_together && b->plan->grouped_experts);

	return together ? 1 : (int)r->local;
}

/* Of the first product's input, and the gradient of the second's output. Source that fused experts cast them, too,
 * by one kernel of all experts: Transformer Engine's ops/fused/forward_grouped_mlp.py and backward_ (read 2026-11-27). */
static void outer_cast(struct builder *b, const struct routed *r)
{
	put_cast(b, (double)(r->copies * r->h), casts(b, r));
}

/* Between the products. */
static void inner_cast(struct builder *b, const struct routed *r, int64_t features)
{
	if (!b->plan->fused_experts)
		put_cast(b, (double)(r->copies * features), casts(b, r));
}

static void biases(struct builder *b, const struct routed *r, bool backward)
{
	expert_biases(
		b,
		&(struct biased){ .copies = experts_width(b) * (double)r->copies,
				  .first = (double)((r->gated ? 2 : 1) * r->width),
				  .second = (double)r->h,
				  .local = (int)r->local,
				  .direct = r->direct },
		backward);
}

/* Calls of the host for a routed MLP, when no graph holds it. */
static void host_of_experts(struct builder *b, const struct routed *r,
			    enum ft_host activity)
{
	bool each_cast = is_narrow(b) && casts(b, r) > 1;
	bool apart = !b->plan->grouped_experts || experts_in_fp32(b) || each_cast ||
		     (b->model->mlp_bias && !b->plan->fused_experts);

	if (b->graphed)
		return;
	host(b, activity, 1);
	if (apart)
		host(b, FT_HOST_EXPERT, (double)r->local);
}

/* The router stays in 16 bit. */
static void router(struct builder *b, const struct routed *r, int64_t experts,
		   enum ft_layout layout)
{
	put_product(b, &(struct ft_work){ .kind = FT_GEMM,
					  .name = "router",
					  .dtype = is_narrow(b) ? FT_BF16 :
								  b->plan->precision,
					  .gemm.layout = layout,
					  .gemm.m = r->tokens,
					  .gemm.n = experts,
					  .gemm.k = b->model->hidden_size,
					  .gemm.groups = 1 });
}

/* Tokens into the experts' space, before they are sent, or sums of experts back from it: whole on each rank, in the
 * layer's format. */
static void latent(struct builder *b, const struct ft_layer *l, const struct routed *r,
		   bool in, bool backward)
{
	const char *name = in ? "expert_latent_in" : "expert_latent_out";
	int64_t h = b->model->hidden_size, tokens = r->tokens;
	int64_t n = in ? r->h : h, k = in ? h : r->h;

	if (!l->expert_latent)
		return;
	put_cast(b, (double)(tokens * (backward ? n : k)), 1);
	put_gemm(b, name, backward ? FT_DGRAD : FT_FORWARD, tokens, n, k);
	if (backward)
		put_gemm(b, name, FT_WGRAD, tokens, n, k);
}

void experts_send(struct builder *b, const struct ft_layer *l)
{
	struct routed r = routed_of(b, l);

	beside_enter(b, l, false);
	b->graphed |= b->plan->graphs == FT_GRAPHS_ROUTER;
	router(b, &r, l->experts, FT_FORWARD);
	put_memory(b, "top_k", "softmax", 12 * (double)(r.tokens * l->experts), 6);
	latent(b, l, &r, true, false);
	b->graphed = b->plan->graphs == FT_GRAPHS_FULL;
	if (!(b->plan->capacity_factor > 0) && !(stays(b) && b->plan->grouped_experts))
		host_asks(b);
	ordering(b, &r, "order", routing_of(b)->order);
	by_rank(b, &r, "permute", routing_of(b)->permute);
	if (dispatches_by_mask(b))
		mask_dispatch(b, l, r.tokens, r.h, false);
	exchange(b, &r, "ep_dispatch", false);
}

void experts_run(struct builder *b, const struct ft_layer *l)
{
	struct routed r = routed_of(b, l);

	b->format = experts_in_fp32(b) ? FT_FP32 : b->plan->expert_precision;
	host_of_experts(b, &r, FT_HOST_EXPERTS_FORWARD);
	by_expert(b, &r, "sort_by_expert", routing_of(b)->sort);
	outer_cast(b, &r);
	stack_experts(b, l, false);
	up(b, &r, FT_FORWARD);
	activate(b, &r);
	inner_cast(b, &r, r.width);
	down(b, &r, FT_FORWARD);
	b->format = b->plan->precision;
	biases(b, &r, false);
	fill_outputs(b, &r, false);
	by_expert(b, &r, "unsort", routing_of(b)->unsort);
	exchange(b, &r, "ep_combine", true);
}

void experts_return(struct builder *b, const struct ft_layer *l)
{
	struct routed r = routed_of(b, l);

	by_rank(b, &r, "unpermute", routing_of(b)->unpermute);
	if (dispatches_by_mask(b))
		mask_combine(b, l, r.tokens, r.h, false);
	latent(b, l, &r, false, false);
	beside_leave(b, l, false);
	shared_expert(b, l, false);
}

/* What runs again where no backward reads the layer's output. */
void experts_again(struct builder *b, const struct ft_layer *l)
{
	struct layer_sizes s = shared_sizes(b, l);

	experts_send(b, l);
	experts_run(b, l);
	if (l->shared_intermediate && b->model->shared_gate)
		shared_expert(b, l, false);
	else if (l->shared_intermediate)
		mlp_inside(b, &s);
}

void experts_send_back(struct builder *b, const struct ft_layer *l)
{
	struct routed r = routed_of(b, l);

	shared_expert(b, l, true);
	beside_leave(b, l, true);
	latent(b, l, &r, false, true);
	by_rank(b, &r, "unpermute_back", routing_of(b)->unpermute_back);
	if (dispatches_by_mask(b))
		mask_combine(b, l, r.tokens, r.h, true);
	exchange(b, &r, "ep_combine_back", false);
}

void experts_run_back(struct builder *b, const struct ft_layer *l)
{
	struct routed r = routed_of(b, l);
	struct moved join = routing_of(b)->join_back;

	b->format = experts_in_fp32(b) ? FT_FP32 : b->plan->expert_precision;
	host_of_experts(b, &r, FT_HOST_EXPERTS_BACKWARD);
	by_expert(b, &r, "unsort_back", routing_of(b)->unsort_back);
	biases(b, &r, true);
	fill_outputs(b, &r, true);
	outer_cast(b, &r);
	down(b, &r, FT_DGRAD);
	down(b, &r, FT_WGRAD);
	expert_elements(b, &r, "expert_activation_back", activation_of(b, &r, true));
	put_clamp(b, &r, true);
	inner_cast(b, &r, (r.gated ? 2 : 1) * r.width);
	up(b, &r, FT_DGRAD);
	up(b, &r, FT_WGRAD);
	stack_experts(b, l, true);
	b->format = b->plan->precision;
	if (r.gated && !r.direct)
		put_moved(b, "expert_join_back", "copy", join,
			  experts_width(b) * (double)(r.rows * r.h));
	by_expert(b, &r, "sort_back", routing_of(b)->sort_back);
	exchange(b, &r, "ep_dispatch_back", true);
}

void experts_activate(struct builder *b, const struct ft_layer *l)
{
	struct routed r = routed_of(b, l);

	activate(b, &r);
}

void experts_return_back(struct builder *b, const struct ft_layer *l)
{
	struct routed r = routed_of(b, l);

	by_rank(b, &r, "permute_back", routing_of(b)->permute_back);
	if (dispatches_by_mask(b))
		mask_dispatch(b, l, r.tokens, r.h, true);
	ordering(b, &r, "order_back", routing_of(b)->order_back);
	b->graphed = b->plan->graphs != FT_GRAPHS_NONE;
	latent(b, l, &r, true, true);
	router(b, &r, l->experts, FT_DGRAD);
	router(b, &r, l->experts, FT_WGRAD);
	beside_enter(b, l, true);
}
