/*
 * traces/scan.h - layers as turns of a scan (JAX): what it stacks
 *
 * XLA keeps what a turn leaves for its backward, and the gradients of its weights, in arrays with a
 * row for each layer. Bytes moved, counted from its kernels in steps on an H100
 * (measurements/probes/h100-2026-11-26-jax-unseen.jsonl.gz):
 *   weights            6 a parameter of the rank, to 16 bit where a unit's pass begins
 *   what is kept       3 a byte: zeros, then out of the product that made it and into its row (layout.scan_kept)
 *   gradients, fp32    10 a parameter of the rank: zeros (4), then from 16 bit into its row (6)
 *
 * A scan over micro-batches around that of the layers holds the sums of their gradients beside the gradients of its turn, and
 * copies what is kept once more, 2 a byte (two recorded steps of an H200 in measurements/probes/h200-2026-11-29-jax-drawn-unseen.jsonl.gz).
 *
 * Where nothing is computed again a turn keeps more than PyTorch's layers do, as JAX's autodiff keeps each
 * operation's numbers: a token 4 f bytes of a gate, 7 h of a norm, which is in fp32, and 4 of each number
 * that is rotated; and its gathered weights in 16 bit. Counted from the program; the peaks of the two models
 * that it was counted beside are met within 2 %, of three others within 7. Backward does not gather and cast weights again; on one
 * GPU it copies them out of their row, and what else products and attention read (queries, keys, values, attention's output and
 * that of norms): 4 bytes a number. Counted from six recorded steps of one and two H200, of which those of two have none of
 * these copies (measurements/probes/h200-2026-11-29-jax-two-unseen.jsonl.gz).
 */
#ifndef TRACES_SCAN_H
#define TRACES_SCAN_H

#include "traces/build.h"

/* Its arrays hold all layers; stages of a pipeline are taken to lay theirs layer by layer. */
bool is_stacked(const struct builder *b);

/* With nothing computed again a turn keeps its weights in 16 bit. */
bool scan_keeps_weights(const struct builder *b, int64_t layer);
/* What a layer keeps with nothing computed again, beside what PyTorch's keeps. */
double scan_saved_bytes(const struct builder *b, int64_t layer);

/* Kernels: where a unit's pass begins, behind a layer's forward, before and behind its backward. */
void scan_casts(struct builder *b, struct held unit);
void scan_keeps(struct builder *b, int64_t layer);
void scan_takes(struct builder *b, int64_t layer);
void scan_gradients(struct builder *b, int64_t layer);

/* Whose gradients come with a layer's backward: its own; of a scan all layers' with the first (top). */
struct held scan_laid(const struct builder *b, struct held unit, bool top);

/* Gradients of a micro-batch beside the sums of those before, as they come with a layer's backward. */
double scan_turn_bytes(const struct builder *b, struct held unit, bool top);

#endif
