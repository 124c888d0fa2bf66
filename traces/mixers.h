/*
 * traces/mixers.h - what stands in place of attention: delta rules, state spaces and gated convolutions
 */
#ifndef TRACES_MIXERS_H
#define TRACES_MIXERS_H

#include "traces/block.h"

/* delta.c: any of them, from its product to its output; and that product. */
void delta_core(struct builder *b, const struct layer_sizes *s, bool backward);
void delta_products(struct builder *b, const struct layer_sizes *s,
		    enum ft_layout layout);
/* Bytes a token that a gated delta rule keeps of its inputs. */
double delta_kept(const struct layer_sizes *s);

/* channel_decay.c: of Kimi's delta rule the products in front, what decays of channels take, and keep a token. */
void decay_products(struct builder *b, const struct layer_sizes *s,
		    enum ft_layout layout);
void decays(struct builder *b, const struct layer_sizes *s, bool backward);
double decays_kept(const struct builder *b, const struct layer_sizes *s);

/* state_space.c: between its convolution and its norm; is its output gated before that? */
bool gates_in_scan(const struct builder *b, const struct ft_layer *l);
void state_space(struct builder *b, const struct layer_sizes *s, bool backward);
/* Around both; in: features of what goes in. */
void state_turn(struct builder *b, const struct layer_sizes *s, int64_t in,
		bool backward);

/* states_beside.c: a state space beside attention; its product, what comes behind it, and backward. None of it in a layer
 * that has none. Bytes a token that the copies of its input keep. */
void states_products(struct builder *b, const struct layer_sizes *s,
		     enum ft_layout layout);
void states_run(struct builder *b, const struct layer_sizes *s);
void states_back(struct builder *b, const struct layer_sizes *s);
double multipliers_kept(const struct builder *b, const struct layer_sizes *s);

/* short_conv.c: a gated convolution; bytes of a feature that it keeps beside its inputs. */
void short_conv(struct builder *b, const struct layer_sizes *s, bool backward);
double short_conv_kept(const struct builder *b);

#endif
