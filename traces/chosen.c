/*
 * traces/chosen.c - a layer in a checkpoint that keeps the outputs of chosen operations
 *
 * Torchtitan's choice: attention, where it is a kernel of its own; what a reduction scatters and what experts exchange; and
 * every second product, counted in the order in which the layer calls them, without those that have a bias, the router's and
 * those of adapters. All else runs again. Source: torchtitan/distributed/activation_checkpoint.py (read 2026-11-30).
 *
 *   bytes a token = 2 h, the input + 2 x the widths of the products kept + 2 out + 4 heads, attention's
 *
 * Autograd keeps all that it was told to. A compiler keeps what a backward reads: not the output of the MLP's last product
 * unless a norm stands behind it; and does not run again a product whose scattered sum is kept. On an H200 layers of six sizes
 * keep just so many, eager and compiled (measurements/probes/h200-2026-11-30-selective-unseen).
 */
#include <string.h>

#include "traces/autocast.h"
#include "traces/block.h"
#include "traces/casts.h"
#include "traces/masked.h"
#include "traces/mixers.h"
#include "traces/recipes.h"
#include "traces/sinks.h"

static const char OUT[] = "attention_out";

enum { PRODUCTS = 8 };

struct chosen {
	const char *name;
	int64_t n, k;
	bool biased, last, kept;
};

struct choice {
	struct chosen product[PRODUCTS];
	int n;
	bool even; /* is the next that is counted left out? */
};

static void add(struct choice *c, const char *name, int64_t n, int64_t k, bool biased)
{
	struct chosen *p = &c->product[c->n++];

	*p = (struct chosen){ .name = name, .n = n, .k = k, .biased = biased };
	if (biased)
		return;
	p->kept = !c->even;
	c->even = !c->even;
}

static void add_attention(const struct builder *b, const struct layer_sizes *s,
			  struct choice *c)
{
	const struct ft_layer *l = s->l;
	bool biased = b->model->qkv_bias;

	if (s->linear) {
		add(c, "in_proj", s->q + s->kv + s->gate, s->h, false);
	} else if (l->kv_lora_rank) {
		int64_t up = s->heads *
			     (l->qk_head_dim - l->qk_rope_head_dim + l->v_head_dim);

		if (l->q_lora_rank)
			add(c, "q_down", l->q_lora_rank, s->h, false);
		add(c, "q_up", s->q, l->q_lora_rank ? l->q_lora_rank : s->h, false);
		add(c, "kv_down", l->kv_lora_rank + l->qk_rope_head_dim, s->h, false);
		add(c, "kv_up", up, l->kv_lora_rank, false);
	} else if (joins_qkv(b)) {
		add(c, "qkv", s->q + s->gate + s->kv, s->h, biased);
	} else {
		add(c, "q", s->q + s->gate, s->h, biased);
		if (own_k(s))
			add(c, "k", own_k(s), s->h, biased);
		if (s->kv > own_k(s))
			add(c, "v", s->kv - own_k(s), s->h, biased);
	}
	add(c, OUT, s->h, s->out, b->model->out_bias);
}

static void add_mlp(const struct builder *b, const struct layer_sizes *s,
		    struct choice *c)
{
	bool gated = b->model->activation == FT_SWIGLU;
	bool biased = b->model->mlp_bias && !s->shared;

	if (gated && !joins_gate_up(b)) {
		add(c, s->shared ? "shared_up" : "gate", s->f, s->h, biased);
		add(c, s->shared ? "shared_up" : "up", s->f, s->h, biased);
	} else {
		add(c,
		    s->shared ? "shared_up" :
		    gated     ? "gate_up" :
				"up",
		    gated ? 2 * s->f : s->f, s->h, biased);
	}
	add(c, s->shared ? "shared_down" : "down", s->h, s->f, biased);
	c->product[c->n - 1].last = true;
}

/* The MLP that all tokens go through, which may be a shared expert, or none. */
static struct layer_sizes mlp_of(const struct builder *b, const struct layer_sizes *s)
{
	return s->l->experts ? shared_sizes(b, s->l) : *s;
}

static struct choice choice_of(const struct builder *b, const struct layer_sizes *s)
{
	struct layer_sizes mlp = mlp_of(b, s);
	struct choice c = { 0 };

	add_attention(b, s, &c);
	if (mlp.f)
		add_mlp(b, &mlp, &c);
	return c;
}

static bool scatters(const struct builder *b)
{
	return b->plan->tp > 1 && b->plan->sequence_parallel;
}

static bool compiles(const struct builder *b)
{
	return b->rules->fusion == FT_FUSION_COMPILED;
}

/* Does no backward read the sum behind these, or is it kept? */
static bool is_dead(const struct builder *b, const struct chosen *p)
{
	bool row = p->last || !strcmp(p->name, OUT);

	return (p->last && !output_is_needed(b)) || (row && scatters(b));
}

static bool runs_again(const struct builder *b, const struct chosen *p)
{
	bool stops = compiles(b) || b->rules->full_recompute == FT_AGAIN_NEEDED;

	if (p->kept)
		return false;
	return p->last ? !(stops && is_dead(b, p)) : !(compiles(b) && is_dead(b, p));
}

static double scattered_kept(const struct builder *b, const struct layer_sizes *s)
{
	int sums =
		1 + (ft_layer_has_mlp(s->l) && (!compiles(b) || output_is_needed(b)));

	return scatters(b) ?
		       2 * (double)s->h * (double)s->part / (double)s->tokens * sums :
		       0;
}

/* Copies of tokens as they came to their experts, and as these sent them back. */
static double exchanged_kept(const struct builder *b, const struct layer_sizes *s)
{
	double capacity = b->plan->capacity_factor > 0 ? b->plan->capacity_factor : 1;

	if (!s->l->experts || b->plan->ep == 1)
		return 0;
	return 4 * experts_width(b) * capacity * (double)experts_used(b, s->l) *
	       (double)ft_layer_expert_hidden(b->model, s->l) * (double)s->part /
	       (double)s->tokens;
}

double chosen_bytes(const struct builder *b, const struct layer_sizes *s)
{
	struct choice c = choice_of(b, s);
	double sum = (b->autocast ? 4 : 2) * (double)s->h * (double)s->part /
		     (double)s->tokens;

	for (int i = 0; i < c.n; i++)
		if (c.product[i].kept && !(compiles(b) && is_dead(b, &c.product[i])))
			sum += 2 * (double)c.product[i].n;
	if (!s->linear && !is_unfused(b))
		sum += 2 * (double)s->out + 4 * (double)s->heads;
	return sum + scattered_kept(b, s) + exchanged_kept(b, s);
}

double chosen_products(const struct builder *b, const struct layer_sizes *s)
{
	struct choice c = choice_of(b, s);
	double sum = 0;

	for (int i = 0; i < c.n; i++)
		if (runs_again(b, &c.product[i]))
			sum += (double)c.product[i].n * (double)c.product[i].k;
	return sum;
}

/* The products of one half that run again; attention's last is no part of it. */
static void products_again(struct builder *b, const struct layer_sizes *s,
			   const struct choice *c, bool mlp)
{
	bool of_mlp = false;

	for (int i = 0; i < c->n; i++) {
		const struct chosen *p = &c->product[i];
		bool out = !strcmp(p->name, OUT);

		if (of_mlp == mlp && !out && !p->last && runs_again(b, p))
			put_gemm(b, p->name, FT_FORWARD, s->tokens, p->n, p->k);
		of_mlp = of_mlp || out;
	}
}

static const struct chosen *last_of(const struct choice *c, bool mlp)
{
	for (int i = c->n - 1; i >= 0; i--)
		if (mlp ? c->product[i].last : !strcmp(c->product[i].name, OUT))
			return &c->product[i];
	return NULL;
}

/* The product that ends a half, and its sum over the ranks, unless that is kept. */
static void end_again(struct builder *b, const struct layer_sizes *s,
		      const struct chosen *p)
{
	if (!p || !runs_again(b, p))
		return;
	if (b->plan->tp > 1 && !scatters(b))
		row_product(b, s, p->name, p->n, p->k);
	else
		put_gemm(b, p->name, FT_FORWARD, s->tokens, p->n, p->k);
}

static void attention_again(struct builder *b, const struct layer_sizes *s,
			    const struct choice *c)
{
	put_norm(b, s, "norm", norm_recipe(b)->norm);
	put_norm_cast(b, (double)(s->h * s->part));
	put_autocast(b, s, false);
	qkv_enter(b, s);
	products_again(b, s, c, false);
	latent_norms_again(b, s);
	if (s->linear) {
		delta_core(b, s, false);
	} else {
		states_run(b, s);
		attention_inputs(b, s);
		attention_mask(b, s);
		put_sinks(b, s, false);
		if (is_unfused(b))
			attention_core(b, s, false);
	}
	end_again(b, s, last_of(c, false));
}

void chosen_again(struct builder *b, const struct layer_sizes *s)
{
	struct layer_sizes mlp = mlp_of(b, s);
	struct choice c = choice_of(b, s);

	attention_again(b, s, &c);
	if (!ft_layer_has_mlp(s->l))
		return;
	put_norm(b, s, "add_norm", norm_recipe(b)->add_norm);
	if (s->l->experts) {
		b->exchanges_kept = true;
		experts_send(b, s->l);
		experts_run(b, s->l);
		b->exchanges_kept = false;
	} else {
		put_norm_cast(b, (double)(s->h * s->part));
		enter_split(b, s, s->h, false);
	}
	products_again(b, &mlp, &c, true);
	if (mlp.f)
		put_activation(b, &mlp, mlp.shared ? "shared_activation" : "activation",
			       false);
	end_again(b, &mlp, last_of(&c, true));
}
