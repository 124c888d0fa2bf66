/* study/traits.c - what makes two training runs alike, in one table */
#include "study/traits.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"

#define AT(field) offsetof(struct ft_traits, field)

static const struct ft_trait traits[] = {
	{ "gpu", false, AT(gpu), "the GPU" },
	{ "generation", false, AT(generation), "the generation of GPUs" },
	{ "stack", false, AT(stack), "the stack" },
	{ "stack_root", false, AT(stack_root),
	  "the last stack of its kin that it extends" },
	{ "model", false, AT(model), "dense or experts" },
	{ "precision", false, AT(precision), "the format of products" },
	{ "sharding", false, AT(sharding), "what replicas divide among them" },
	{ "optimizer", false, AT(optimizer), "what updates the weights" },
	{ "trained", false, AT(trained),
	  "all weights, or adapters beside frozen ones" },
	{ "offload_state", false, AT(offload_state),
	  "what waits on the host, which updates it" },
	{ "attention", false, AT(attention),
	  "heads, latents, states, masked-choice, gathered-choice or compressed" },
	{ "flop_per_token", true, AT(flop_per_token), "model FLOPs of a token" },
	{ "gpus", true, AT(gpus), "GPUs" },
	{ "sequence", true, AT(sequence), "tokens per sequence" },
	{ "micro_tokens", true, AT(micro_tokens), "tokens of a rank and micro-batch" },
	{ "micro_batches", true, AT(micro_batches), "micro-batches of a step" },
	{ "tp", true, AT(tp), "tensor parallel size" },
	{ "pp", true, AT(pp), "pipeline stages" },
	{ "cp", true, AT(cp), "context parallel size" },
	{ "ep", true, AT(ep), "expert parallel size" },
};

size_t ft_trait_table(const struct ft_trait **trait)
{
	*trait = traits;
	return sizeof(traits) / sizeof(*traits);
}

static const void *at(const struct ft_trait *trait, const struct ft_traits *of)
{
	return (const char *)of + trait->at;
}

const char *ft_trait_word(const struct ft_trait *trait, const struct ft_traits *of)
{
	return *(const char *const *)at(trait, of);
}

double ft_trait_number(const struct ft_trait *trait, const struct ft_traits *of)
{
	return *(const double *)at(trait, of);
}

double trait_distance(const struct ft_trait *trait, const struct ft_traits *a,
		      const struct ft_traits *b)
{
	if (!trait->number)
		return strcmp(ft_trait_word(trait, a), ft_trait_word(trait, b)) != 0;
	return fabs(log2(ft_trait_number(trait, a) / ft_trait_number(trait, b)));
}

/* Each tells more than those before it: a model's is the last that one of its layers is. */
enum attention_kind {
	OF_HEADS,
	TO_LATENTS,
	WITH_STATES,
	MASKED,
	GATHERED,
	COMPRESSED,
	ATTENTIONS
};
static const struct {
	const char *trait, *words;
} attentions[ATTENTIONS] = {
	[OF_HEADS] = { "heads", "attention of heads alone" },
	[TO_LATENTS] = { "latents", "attention to latents" },
	[WITH_STATES] = { "states", "layers that carry a state along" },
	[MASKED] = { "masked-choice", "a mask of chosen tokens" },
	[GATHERED] = { "gathered-choice",
		       "attention to chosen tokens by kernels that gather them" },
	[COMPRESSED] = { "compressed", "attention to compressed tokens" },
};

static enum attention_kind attention_of(const struct ft_layer *l, bool masks)
{
	if (l->compressed)
		return COMPRESSED;
	if (l->index_topk)
		return masks ? MASKED : GATHERED;
	return l->linear_heads ? WITH_STATES : l->kv_lora_rank ? TO_LATENTS : OF_HEADS;
}

const char *ft_attention_trait(const struct ft_model *model,
			       const struct ft_stack *stack)
{
	enum attention_kind most = OF_HEADS;

	for (int64_t i = 0; i < model->n_layers; i++) {
		enum attention_kind of =
			attention_of(&model->layer[i], stack->layout.masked_choice);

		if (of > most)
			most = of;
	}
	return attentions[most].trait;
}

const char *ft_attention_words(const char *trait)
{
	int i = 0;

	while (i < ATTENTIONS - 1 && strcmp(attentions[i].trait, trait) != 0)
		i++;
	return attentions[i].words;
}

struct ft_traits traits_of(const struct ft_scenario *s, const struct ft_run *run)
{
	const struct ft_plan *p = s->plan;
	bool experts = false;

	for (int64_t i = 0; i < s->model->n_layers; i++)
		experts |= s->model->layer[i].experts > 0;
	return (struct ft_traits){
		.gpu = s->cluster->gpu->name,
		.generation = s->cluster->gpu->ccl_generation,
		.stack = s->stack->name,
		.stack_root = s->stack->root,
		.unnamed = s->stack->unnamed,
		.model = experts ? "experts" : "dense",
		.attention = ft_attention_trait(s->model, s->stack),
		.precision = ft_dtype_name(p->precision),
		.sharding = ft_sharding_name(p->sharding),
		.optimizer = ft_optimizer_name(p->optimizer),
		.trained = p->lora.rank ? "adapters" : "all",
		.offload_state = ft_offload_name(p->offload_state),
		.flop_per_token = ft_model_flop_per_token(s->model, p->tp, p->sequence,
							  s->model->causal),
		.gpus = (double)s->cluster->gpus,
		.sequence = (double)p->sequence,
		.micro_tokens =
			(double)p->micro_batch * (double)p->sequence / (double)p->cp,
		.micro_batches = (double)p->micro_batches,
		.tp = (double)p->tp,
		.pp = (double)p->pp,
		.cp = (double)p->cp,
		.ep = (double)p->ep,
		.kernel_spread_frac = run->spread_frac,
		.host_spread_frac = run->host_spread_frac,
		.clock_faster_frac = run->clock_faster_frac,
		.clock_slower_frac = run->clock_slower_frac,
	};
}

struct ft_traits traits_copy(struct arena *mem, const struct ft_traits *of)
{
	struct ft_traits copy = *of;

	copy.gpu = arena_text(mem, of->gpu);
	copy.generation = arena_text(mem, of->generation);
	copy.stack = arena_text(mem, of->stack);
	copy.stack_root = arena_text(mem, of->stack_root);
	copy.model = arena_text(mem, of->model);
	copy.attention = arena_text(mem, of->attention);
	copy.precision = arena_text(mem, of->precision);
	copy.sharding = arena_text(mem, of->sharding);
	copy.optimizer = arena_text(mem, of->optimizer);
	copy.trained = arena_text(mem, of->trained);
	copy.offload_state = arena_text(mem, of->offload_state);
	return copy;
}
