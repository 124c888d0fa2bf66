/*
 * traces/casts.h - formats of 8 and 4 bit: casts before products, and what travels in them
 *
 * What a cast reads and writes by recipe, and the source, stand in traces/casts.c.
 */
#ifndef TRACES_CASTS_H
#define TRACES_CASTS_H

#include "traces/build.h"

bool is_narrow(const struct builder *b);
/* Of routed experts' products, wherever it is asked. */
bool experts_narrow(const struct builder *b);
void put_cast(struct builder *b, double elements, int launches);
/* The same behind a norm, where the recipe does not let the norm do it. */
void put_norm_cast(struct builder *b, double elements);
/* Are slices of the sequence cast before they are gathered? One such cast. */
bool casts_slices(const struct builder *b);
void put_slice_cast(struct builder *b, double elements);
/* Does each pass cast the weights that it gathers in 16 bit? Those of a layer. */
bool casts_gathered(const struct builder *b);
void cast_gathered(struct builder *b, int64_t layer, bool backward);
/* For the gradient of weights, where a copy along columns is rows turned; of an input. */
void put_transpose(struct builder *b, double elements);
void put_input_transpose(struct builder *b, double elements);
/* Bytes of an element of a product's input as it is cast along rows, or along columns, its
 * scales included; 2 in 16 bit. */
double input_width(const struct builder *b);
/* Bytes of an activation's element on its way between ranks of tp (both: a gradient,
 * along rows and columns), and of a weight that is gathered. */
double gathered_width(const struct builder *b, bool both);
double parameter_width(const struct builder *b);
double expert_parameter_width(const struct builder *b);
/* Bytes of a weight kept in a format, its scales included. */
double stored_width(enum ft_dtype format);
/* Frozen weights that are kept in another format than products want: into that, for each use. */
void put_unpack(struct builder *b, double elements);
/* How many narrow copies of a weight are kept: along rows, and along columns if need be. */
double narrow_copies(const struct builder *b);

#endif
