/*
 * sim/again.h - a step that the engine ran before, in another plan
 *
 * What the engine is given says what it answers. Plans that differ in memory alone (layers
 * whose activations wait in host memory) give it the same: the same ops in the same order,
 * with the same durations and launches. How calls are cut into segments may differ, as
 * memory is counted by segment, so that a step is known by its ops in order. The last few
 * steps are remembered by a digest of that; a memo remembers them only where it is told to.
 */
#ifndef SIM_AGAIN_H
#define SIM_AGAIN_H

#include "sim/job.h"

struct again; /* of a memo */

struct again *again_new(struct arena *mem);
void again_free(struct again *again); /* what it remembers; NULL: nothing */

/* What the engine is given, as a key. false: it is not to be remembered (others' flows share
 * its links, several pipelines run, it is drawn). */
bool again_key(const struct job *job, const struct engine_input *in,
	       struct ft_digest *key);

/* true: such a step was run, and out is as it was; its arrays are there. */
bool again_recall(struct again *again, const struct ft_digest *key, size_t n_works,
		  size_t n_parts, struct engine_output *out);
void again_keep(struct again *again, const struct ft_digest *key, size_t n_works,
		size_t n_parts, const struct engine_output *out);

/* How many were recalled so far. */
size_t again_recalled(const struct again *again);

/* Where a memo remembers steps; NULL: it does not. */
struct again *memo_again(struct ft_memo *memo);

#endif
