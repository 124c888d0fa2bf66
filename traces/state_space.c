/*
 * traces/state_space.c - a state space in place of attention (Mamba-2, arXiv 2405.21060)
 *
 * A state of N x P numbers a head is carried along the sequence; G groups of heads share what writes it and what
 * reads it (B and C, as k and q elsewhere). It is computed in chunks of C tokens (the paper's section 6) by kernels which
 * tensor cores do not bind: what they read and write is counted, and goes at the rate of kernels that instructions bind
 * (`strided`). With X = tokens x heads x P outputs, S = chunks x heads x N x P numbers of states and K = tokens x G x C scores,
 * and G = tokens x groups x N numbers of B, and as many of C, in bytes:
 *   write   each chunk's state                           2 X + 4 S + 2 G
 *   pass    states added up from chunk to chunk          4 S + 2 S
 *   scores  C B' of a chunk, in fp32                     4 K + 4 G
 *   scan    outputs, of scores and of states             4 X + 2 S + 4 K + 2 G
 * Backward the first three run again (states passed on in fp32: 8 S), then the gradients of states (2 X + 4 S + 2 G), these
 * passed back (12 S), of x (6 X + 2 S + 4 K + 2 G), of C and B (2 X + 2 S + 6 G each, sums in fp32), of scores (4 X + 4 K), which
 * two products take (8 K + 16 G), and of decays (4 X + 4 K). A number a token and head, such as decays, is left out.
 * Megatron Core gates inside the scan, whose output in front of the gate is kept: 4 X more, and backward 10 X by a kernel of
 * its own; its norm comes behind (megatron/core/ssm/mamba_mixer.py, read 2026-11-28). Else the norm gates.
 * Source: state-spaces/mamba, mamba_ssm/ops/triton/ssd_combined.py (read 2026-11-27). A published scan of its kind (TileLang's
 * benchmark/mamba2 on an H800: 8 x 8,192 tokens, 80 heads) takes 1.28 ms, where this says 1.08; kernels of our own on an H100
 * (measurements/probes/h100-2026-11-27-state-space-unseen) take 0.55 to 1.0 times what this says in chunks of 128 tokens and 0.5
 * to 2.0 times in chunks of 256, small ones aside.
 */
#include "base/whole.h"
#include "traces/mixers.h"

/* Bytes of each number of three kinds that some kernels of one name touch. */
struct touched {
	const char *name;
	double x, s, k, g;
	int launches;
};

static const struct touched forward[] = {
	{ "state_write", 2, 4, 0, 2, 1 },
	{ "state_pass", 0, 6, 0, 0, 1 },
	{ "state_scores", 0, 0, 4, 4, 1 },
	{ "state_scan", 4, 2, 4, 2, 1 },
};

static const struct touched back[] = {
	{ "state_write", 2, 4, 0, 2, 1 },
	{ "state_pass", 0, 8, 0, 0, 1 },
	{ "state_scores", 0, 0, 4, 4, 1 },
	{ "state_scan_back", 2 + 6 + 2 + 4 + 4, 4 + 2 + 2, 4 + 4 + 4, 2 + 2 + 6, 5 },
	{ "state_pass_back", 0, 12, 0, 0, 1 },
	{ "state_write_back", 2, 2, 8, 6 + 16, 3 },
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
	size_t n = backward ? sizeof(back) / sizeof(*back) :
			      sizeof(forward) / sizeof(*forward);

	for (size_t i = 0; i < n; i++) {
		const struct touched *t = backward ? &back[i] : &forward[i];

		put_memory(b, t->name, "strided",
			   t->x * x + t->s * states + t->k * scores + t->g * shared,
			   t->launches);
	}
	if (gates_in_scan(b, l))
		put_memory(b, backward ? "state_gate_back" : "state_gate", "strided",
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
