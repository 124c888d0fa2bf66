/*
 * traces/state_space.c - a state space in place of attention (Mamba-2, arXiv 2405.21060)
 *
 * A state of N x P numbers a head is carried along the sequence; G groups of heads share what writes it and what
 * reads it (B and C, as k and q elsewhere). It is computed in chunks of C tokens (the paper's section 6) by kernels which
 * tensor cores do not bind: what they read and write is counted, and goes at a rate that a profile has (`state_space`,
 * `state_space_back`). With X = tokens x heads x P outputs, S = chunks x heads x N x P numbers of states and K = tokens x G x C scores,
 * G = tokens x groups x N numbers of B, and as many of C, and E = tokens x heads x C scores of each head, in bytes:
 *   write   each chunk's state                           2 X + 4 S + 2 G
 *   pass    states added up from chunk to chunk          4 S + 2 S
 *   scores  C B' of a chunk, in fp32                     4 K + 4 G
 *   scan    outputs, of scores and of states             4 X + 2 S + 4 K + 2 G, and 1.9 E
 * Backward the first three run again (states passed on in fp32: 8 S), then the gradients of states (2 X + 4 S + 2 G), these
 * passed back (12 S), of x (6 X + 2 S + 4 K + 2 G), of C and B (2 X + 2 S + 6 G each, sums in fp32), of scores (4 X + 4 K), which
 * two products take (8 K + 16 G), and of decays (4 X + 4 K); and 4.9 E. A number a token and head, such as decays, is left out.
 * What a score of each head costs in registers, an exponential and a mask, is told by bytes that take as long: with them the kernels of
 * mamba_ssm on an H200 (measurements/probes/h200-2026-12-01-mamba-unseen: 14 shapes, chunks of 128 and 256) are met within 3 %
 * in the mean, both passes (scripts/state_space.py).
 * Megatron Core gates inside the scan, whose output in front of the gate is kept: 4 X more, and backward 10 X by a kernel of
 * its own; its norm comes behind (megatron/core/ssm/mamba_mixer.py, read 2026-11-28). Else the norm gates.
 * Source: state-spaces/mamba, mamba_ssm/ops/triton/ssd_combined.py (read 2026-11-27).
 */
#include "base/whole.h"
#include "traces/mixers.h"

/* Bytes of each number of these kinds that some kernels of one name touch; e: that a score of each head counts as. */
struct touched {
	const char *name;
	double x, s, k, g, e;
	int launches;
};

static const struct touched forward[] = {
	{ "state_write", 2, 4, 0, 2, 0, 1 },
	{ "state_pass", 0, 6, 0, 0, 0, 1 },
	{ "state_scores", 0, 0, 4, 4, 0, 1 },
	{ "state_scan", 4, 2, 4, 2, 1.9, 1 },
};

static const struct touched back[] = {
	{ "state_write", 2, 4, 0, 2, 0, 1 },
	{ "state_pass", 0, 8, 0, 0, 0, 1 },
	{ "state_scores", 0, 0, 4, 4, 0, 1 },
	{ "state_scan_back", 2 + 6 + 2 + 4 + 4, 4 + 2 + 2, 4 + 4 + 4, 2 + 2 + 6, 4.9,
	  5 },
	{ "state_pass_back", 0, 12, 0, 0, 0, 1 },
	{ "state_write_back", 2, 2, 8, 6 + 16, 0, 3 },
};

bool gates_in_scan(const struct builder *b, const struct ft_layer *l)
{
	return l->state_chunk && b->rules->tensor_parallel == FT_TP_MEGATRON;
}

void state_space(struct builder *b, const struct layer_sizes *s, bool backward)
{
	const struct ft_layer *l = s->l;
	int64_t heads = l->linear_heads / b->plan->tp;
	int64_t chunks = ceil_div(s->tokens, l->state_chunk);
	double x = (double)(s->tokens * heads * l->linear_value_dim);
	double states =
		(double)(chunks * heads * l->linear_value_dim * l->linear_key_dim);
	double groups = (double)(s->tokens * (l->linear_key_heads / b->plan->tp));
	double scores = groups * (double)l->state_chunk;
	double shared = groups * (double)l->linear_key_dim;
	double each = (double)(s->tokens * heads) * (double)l->state_chunk;
	const char *curve = backward ? "state_space_back" : "state_space";
	size_t n = backward ? sizeof(back) / sizeof(*back) :
			      sizeof(forward) / sizeof(*forward);

	for (size_t i = 0; i < n; i++) {
		const struct touched *t = backward ? &back[i] : &forward[i];

		put_memory(b, t->name, curve,
			   t->x * x + t->s * states + t->k * scores + t->g * shared +
				   t->e * each,
			   t->launches);
	}
	if (gates_in_scan(b, l))
		put_memory(b, backward ? "state_gate_back" : "state_gate", curve,
			   (backward ? 10 : 4) * x, backward ? 1 : 0);
}

/* Megatron Core keeps the tokens of several sequences in turns, a state space wants each by itself: what goes in is
 * copied, what comes out, and the gradient of the first. Source: megatron/core/ssm/mamba_mixer.py (read 2026-11-28). */
void state_turn(struct builder *b, const struct layer_sizes *s, int64_t in,
		bool backward)
{
	int64_t features = backward ? in : in + s->out;

	if (s->l->state_chunk && b->sequences > 1 &&
	    b->rules->tensor_parallel == FT_TP_MEGATRON)
		put_memory(b, backward ? "state_turn_back" : "state_turn", "copy",
			   4 * (double)(s->tokens * features), backward ? 1 : 2);
}
