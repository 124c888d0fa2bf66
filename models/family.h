/*
 * models/family.h - what each model_type implies, and what it calls things
 *
 * A family is what transformers' class of that model_type builds whatever its
 * config says; the names of its keys, and the values its class has for keys that a
 * config leaves out, stand in tables beside it (models/families.c, models/names.c).
 * They were read off the classes' documentation and checked against published
 * parameter counts (tests/test_families.c).
 */
#ifndef MODELS_FAMILY_H
#define MODELS_FAMILY_H

#include "foretoken/models.h"

enum expert_kind {
	EXPERTS_NONE,
	EXPERTS_ALL,  /* intermediate_size is an expert's width */
	EXPERTS_SOME, /* moe_intermediate_size is; layers may be dense */
};

/* Which key and value heads there are when num_key_value_heads does not say. */
enum few_heads {
	HEADS_EVEN,   /* as many as of queries */
	HEADS_SWITCH, /* one, unless multi_query: false */
	HEADS_FALCON, /* the same, but given under new_decoder_architecture */
};

struct family {
	const char *type;
	enum ft_norm norm;
	enum ft_positions positions;
	enum ft_activation activation;
	enum ft_qk_norm qk_norm;
	enum expert_kind experts;
	enum few_heads few_heads;
	enum ft_joined joined_qkv;
	enum ft_plain plain;
	int norms;			    /* of a layer; 0: two */
	int more_rows;			    /* of a learned position table */
	int activation_numbers;		    /* that a layer's activation learns */
	enum ft_written written_activation; /* unless hidden_act says otherwise */
	bool tanh_gate;			    /* likewise */
	enum ft_written_norm written_norm;
	bool scaled_logits;
	bool all_experts; /* each computes all tokens, in Transformers' class */
	bool tied;	  /* these four unless the config says otherwise: */
	bool linear_bias; /* every linear layer of a block has a bias */
	bool parallel;	  /* attention and MLP side by side */
	bool qk_norm_off; /* no norm of q and k unless use_qk_norm */
	bool qkv_bias;	  /* q, k and v have a bias whatever attention_bias says */
	bool qkv_only;	  /* attention_bias is of q, k and v, not of the output */
	bool head_bias;	  /* of the output head */
	bool router_bias; /* a number for each expert beside the router's matrix */
	bool norm_bias;	  /* norms have a bias */
	bool bare_norms;  /* norms have no parameters */
	bool wide_norms;  /* whose weights multiply before they are 16 bit again */
	bool wide_rotary; /* a class that casts q and k to fp32 in front of a kernel */
	bool embedding_norm;
	bool latent;	 /* multi-head latent attention */
	bool indexed;	 /* of chosen tokens: an indexer beside it */
	bool compressed; /* attention to compressed tokens, in streams of the residual */
	bool gated_output; /* attention's output times a gate */
	bool head_gates; /* the same by a product of its own, for each head or number */
	bool wide_gates; /* which are made in fp32 */
	bool window_heads; /* layers with a window have heads of another number */
	bool padded;	   /* lists go on with the layers of predicted tokens */
	bool limits; /* its MLPs limit gates and values, by operations, whatever to */
	bool shared_gate; /* the shared expert's output times a gate */
	bool value_norm, layer_scale, dense_beside, expert_norm; /* as of ft_model */
	bool global_heads; /* layers without a window have heads of their own kind */
	bool local_heads; /* layers with a window have; values of a width of their own */
	bool sinks;	  /* a number for each head in the softmax */
	bool clamped;	  /* both inputs of the MLP's gate, before it */
	bool scaled_rope; /* YaRN whose factor on q and k is not 1 */
	bool chunks;	  /* local layers see pieces of the sequence, no window */
	bool states; /* state spaces in place of attention, where nothing is said */
	bool states_alone;  /* state spaces, neither attention nor an MLP */
	bool states_beside; /* a state space beside attention in each layer */
	bool channel_decay; /* delta rules are of Kimi's kind, in all layers but some */
	bool short_convs; /* gated convolutions in place of attention, where that is said */
	bool shared_alone; /* without experts, what they share is the MLP */
	bool halves; /* each of its layers is attention, state space or MLP, by a pattern */
	bool joins_norm; /* one norm only when parallel */
	bool half_width; /* intermediate_size counts gate and up together */
	bool joined_gate_up;
	bool joined_rotary;
};

/* By a model_type; NULL: not known. */
const struct family *family_find(const char *type);

/* The known one of nearly that name, or NULL; and why one that is no family cannot be,
 * NULL when no reason is known. */
const char *family_nearest(const char *type);
const char *family_refusal(const char *type);

/* The common name of a key; a key with a dot is one of a map inside. */
const char *family_common_name(const struct family *family, const char *key);

/* The type's own name of a common one: the same where it has none. */
const char *family_own_name(const struct family *family, const char *common);

/* The i-th of the type's own names of a common one; NULL behind the last. */
const char *family_other_name(const struct family *family, const char *common,
			      size_t i);

/* The i-th key of the family's that lies in a map inside, "ffn_config.moe_top_k", and
 * its common name; NULL behind the last. */
const char *family_inner_key(const struct family *family, size_t i,
			     const char **common);

/* Is key of the map called outer one of these, or read as it stands? */
bool family_reads_inside(const struct family *family, const char *outer,
			 const char *key);

/* The i-th key that its class has a value for, by common name; NULL behind the last. */
const char *family_default(const struct family *family, size_t i, const char **value);

/* Is it a key under its common name? And the i-th of them; NULL behind the last. */
bool family_is_common(const char *key);
const char *family_common(size_t i);

/* Which models have it: all kinds, those with routed experts, those with latent attention,
 * those whose global layers have heads of their own, those whose local layers have, and so on; SWITCHED: those whose key heads a switch says, TABLED: with learned positions. */
/* HEADED: those whose layers have heads and gates of their own, PADDED: whose lists go on. INSIDE: a map whose keys are read under names with a dot. */
enum family_key_of {
	ANY,
	ROUTED,
	LATENT,
	GLOBAL,
	LOCAL,
	CHUNKED,
	CONV,
	DECAY,
	BESIDE,
	INDEXED,
	COMPRESSED,
	HEADED,
	PADDED,
	SWITCHED,
	FALCON,
	TABLED,
	INSIDE
};
enum family_key_of family_key_of(const char *common);

/* The most that it may say; FAMILY_MOST: docs/limits.md has no bound of it. */
enum { FAMILY_MOST = 1 << 30 };
int64_t family_key_most(const char *common);

#endif
