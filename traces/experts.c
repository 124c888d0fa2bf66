/*
 * traces/experts.c - a routed MLP: router, dispatch, grouped products, combine
 *
 * Routing is as uneven as the stack says: the fullest rank sets the pace. Under sequence parallelism a rank routes its
 * slice of the tokens; each token goes to experts_per_token experts spread over
 * the ep group by one all-to-all, and back by another.
 */
#include "traces/build.h"

struct routed {
	int64_t tokens, copies; /* this rank routes; copies it computes */
	int64_t h, width, local, shared;
	double bytes; /* of one all-to-all, this rank's buffer */
	double fanout;
	bool gated;
};

static struct routed routed_of(const struct builder *b, const struct ft_layer *l)
{
	const struct ft_plan *p = b->plan;
	struct routed r = { .h = b->model->hidden_size };

	r.tokens = p->sequence_parallel ? b->tokens / p->tp : b->tokens;
	r.copies = (int64_t)((double)(r.tokens * l->experts_per_token * p->etp) *
			     b->rules->expert_imbalance);
	r.local = l->experts / p->ep;
	r.width = l->expert_intermediate / p->etp;
	r.shared = l->shared_intermediate / p->tp;
	r.bytes = 2 * (double)(r.tokens * l->experts_per_token * r.h);
	r.fanout = b->rules->once_a_domain ? (double)l->experts_per_token : 0;
	r.gated = b->model->activation == FT_SWIGLU;
	return r;
}

static void exchange(struct builder *b, const struct routed *r, const char *name)
{
	struct ft_work w = { .kind = FT_COMMUNICATION, .name = name, .dtype = FT_BF16 };

	if (b->g->group[FT_GROUP_EP].size > 1) {
		w.communication.op = FT_ALL_TO_ALL;
		w.communication.group = FT_GROUP_EP;
		w.communication.bytes = r->bytes;
		w.communication.fanout = r->fanout;
		w.communication.copy_engine = on_copy_engine(b, FT_ALL_TO_ALL);
		put_wait(put_op(b, &w, FT_STREAM_EP, 0), FT_TAIL + FT_STREAM_COMPUTE);
		host(b, FT_HOST_COLLECTIVE, 1);
		need(b, FT_STREAM_EP);
	}
	if (b->plan->etp > 1 &&
	    put_collective(b, "etp_exchange", FT_STREAM_EP, FT_ALL_GATHER, FT_GROUP_ETP,
			   r->bytes * (double)b->plan->etp))
		need(b, FT_STREAM_EP);
}

static void shuffle(struct builder *b, const struct routed *r, const char *name,
		    double width)
{
	put_memory(b, name, "copy", width * (double)(r->copies * r->h), 2);
}

static void products(struct builder *b, const struct routed *r, enum ft_layout layout)
{
	put_grouped(
		b, "expert_up", layout,
		(struct edges){ r->copies, r->gated ? 2 * r->width : r->width, r->h },
		r->local);
}

/* The shared expert's output times a gate: a dot product and a scaling, a row each. */
static void shared_gate(struct builder *b, const struct routed *r, bool backward)
{
	if (b->model->shared_gate)
		put_memory(b, "shared_gate", "default",
			   (backward ? 10 : 6) * (double)(b->tokens * r->h),
			   backward ? 4 : 3);
}

static void shared_expert(struct builder *b, const struct routed *r,
			  enum ft_layout layout)
{
	if (!r->shared)
		return;
	put_gemm(b, "shared_up", layout, b->tokens,
		 r->gated ? 2 * r->shared : r->shared, r->h);
	put_gemm(b, "shared_down", layout, b->tokens, r->h, r->shared);
	if (layout != FT_WGRAD)
		shared_gate(b, r, layout == FT_DGRAD);
	if (layout != FT_WGRAD)
		put_memory(b, "shared_activation", "swiglu",
			   (layout == FT_FORWARD ? 6 : 10) *
				   (double)(b->tokens * r->shared),
			   1);
}

void experts_forward(struct builder *b, const struct ft_layer *l)
{
	struct routed r = routed_of(b, l);
	bool fp8 = ft_dtype_bytes(b->plan->precision) < 2;

	put_gemm(b, "router", FT_FORWARD, r.tokens, l->experts, r.h);
	put_memory(b, "top_k", "softmax", 12 * (double)(r.tokens * l->experts), 6);
	shuffle(b, &r, "permute", 4);
	exchange(b, &r, "ep_dispatch");
	shuffle(b, &r, "sort_by_expert", 4);
	if (fp8)
		put_memory(b, "cast_fp8", "cast", 4 * (double)(r.copies * r.h), 1);
	products(b, &r, FT_FORWARD);
	put_memory(b, "expert_activation", "swiglu",
		   (r.gated ? 6 : 4) * (double)(r.copies * r.width), 1);
	if (fp8)
		put_memory(b, "cast_fp8", "cast", 4 * (double)(r.copies * r.width), 1);
	put_grouped(b, "expert_down", FT_FORWARD,
		    (struct edges){ r.copies, r.h, r.width }, r.local);
	shuffle(b, &r, "unsort", 4);
	exchange(b, &r, "ep_combine");
	shuffle(b, &r, "unpermute", 4);
	shared_expert(b, &r, FT_FORWARD);
}

void experts_backward(struct builder *b, const struct ft_layer *l)
{
	struct routed r = routed_of(b, l);
	bool fp8 = ft_dtype_bytes(b->plan->precision) < 2;

	shared_expert(b, &r, FT_DGRAD);
	shared_expert(b, &r, FT_WGRAD);
	shuffle(b, &r, "unpermute_back", 4);
	exchange(b, &r, "ep_combine_back");
	shuffle(b, &r, "unsort_back", 4);
	if (fp8)
		put_memory(b, "cast_fp8", "cast", 4 * (double)(r.copies * r.h), 1);
	put_grouped(b, "expert_down", FT_DGRAD,
		    (struct edges){ r.copies, r.h, r.width }, r.local);
	put_grouped(b, "expert_down", FT_WGRAD,
		    (struct edges){ r.copies, r.h, r.width }, r.local);
	put_memory(b, "expert_activation_back", "swiglu",
		   (r.gated ? 10 : 6) * (double)(r.copies * r.width), 1);
	if (fp8)
		put_memory(b, "cast_fp8", "cast",
			   4 * (r.gated ? 2 : 1) * (double)(r.copies * r.width), 1);
	products(b, &r, FT_DGRAD);
	products(b, &r, FT_WGRAD);
	shuffle(b, &r, "sort_back", 4);
	exchange(b, &r, "ep_dispatch_back");
	shuffle(b, &r, "permute_back", 4);
	put_gemm(b, "router", FT_DGRAD, r.tokens, l->experts, r.h);
	put_gemm(b, "router", FT_WGRAD, r.tokens, l->experts, r.h);
}
