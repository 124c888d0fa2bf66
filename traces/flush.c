/*
 * traces/flush.c - what a stage does when its pipeline has been drained
 *
 * Behind the last backward of a run of the pipeline fsdp reduces what was summed up whole, the
 * logits of the run become one tensor, and gradients are scaled, as far as the stack does so.
 * A step may drain its pipeline several times. Then the shards that a later run reduces are
 * added to those of the runs before, and whole gradients have the room again that they left.
 * Source: torch/distributed/pipelining, stage.py (run_post_backward, scale_grads) and
 * schedules.py (_merge_outputs).
 */
#include "traces/memory.h"
#include "traces/memory_ends.h"
#include "traces/sharding.h"
#include "traces/stage.h"

static void reduce_in_the_end(struct builder *b, struct held unit, bool joins)
{
	reduce_unit(b, unit, joins);
	reduced_bytes(b, unit);
	if (flush_reduces(b) && gradients_come(b))
		b->seg->net_bytes[FT_MEMORY_GRADIENTS] -=
			gradient_width(b) * (unit.dense + unit.experts);
}

static void reduce_stage(struct stage *st, bool joins)
{
	struct builder *b = st->b;

	if (st->first || st->last)
		reduce_in_the_end(b, st->root, joins);
	for (int64_t c = 0; c < b->plan->vpp; c++)
		for (int64_t l = st->begin[c]; l < st->end[c]; l++)
			reduce_in_the_end(b, b->unit[l], joins);
}

/* What each run ends with on a stage, the model's last or another, if anything. */
static bool flush_ends(const struct builder *b, bool last)
{
	return b->plan->pp > 1 &&
	       (b->rules->scaled_in_pipeline || (last && b->rules->keeps_outputs));
}

static void flush_end(struct builder *b, struct held stage, bool last, double freed)
{
	if (last && b->rules->keeps_outputs)
		outputs_join(b, freed);
	if (b->rules->scaled_in_pipeline)
		put_memory(b, "gradient_scale", "copy",
			   2 * gradient_width(b) * held_share(b, stage),
			   (int)stage.tensors);
}

static bool flush_sums(const struct builder *b, int64_t micro_batch)
{
	return reduces_last(b) && ends_sums(b, micro_batch);
}

/* Without overlap the bucket of all gradients is full when a run's last backward is over. */
static bool flush_reduces_at_once(const struct builder *b)
{
	return flush_reduces(b) && reduces_at_once(b);
}

bool flush_works(const struct builder *b, bool last, int64_t micro_batch)
{
	return flush_sums(b, micro_batch) || flush_ends(b, last) ||
	       flush_reduces_at_once(b);
}

void segment_flush(struct stage *st, int64_t micro_batch)
{
	struct builder *b = st->b;
	bool reduces = flush_sums(b, micro_batch);
	bool joins = joins_shards(b, micro_batch);
	unsigned variant = (joins ? 0 : V_FIRST) | (reduces ? V_SYNC : 0);

	if (flush_reduces_at_once(b))
		segment_reduce(st);
	if (!reduces && !flush_ends(b, st->last))
		return;
	if (!segment_fresh(st,
			   (struct segment_key){ ROLE_FLUSH, st->number, variant, 0,
						 PART_WHOLE },
			   "flush"))
		return;
	if (reduces)
		reduce_stage(st, joins);
	if (flush_ends(b, st->last))
		flush_end(b, st->held, st->last, flush_frees(b, st->held, reduces));
	segment_done(st);
}

void segment_reduce(struct stage *st)
{
	struct segment_key key = { ROLE_REDUCE, st->number, 0, 0, PART_WHOLE };

	if (!segment_fresh(st, key, "reduce"))
		return;
	put_reductions(st->b, st->held);
	segment_done(st);
}
