/* traces/sinks.c - attention sinks (gpt-oss) where no kernel knows them: in a plain softmax, or behind a fused kernel */
#include "traces/sinks.h"

/* Scores with a sink, where a compiler makes few kernels of all between the products. */
bool sinks_compiled(const struct builder *b)
{
	return b->model->sinks && b->rules->plain_sinks && !by_operation(b);
}

/*
 * Scores with a sink (gpt-oss) are scaled, masked, joined with it, lowered by their maximum, and
 * normalized by kernels of their own in 16 bit: they touch 28 bytes and 36 backward. A row of one score
 * more is odd, so that most are not vectorized: bytes as `strided` and as `add` moves them. Measured:
 * measurements/traces/h100-transformers-gpt-oss-20b and h200-, where what is strided takes as long.
 * A compiler makes two kernels of them forward and three backward, of which one each way is bound by its
 * instructions: 6.4 and 5.3 ms of 4096^2 scores of 64 heads, 1.4 and 3.4 the others (the recording -compile). Four
 * gradients of scores stand beside each other then, by the peaks of two such steps.
 *
 * A layer of such a model that has no sink (MiMo-V2) does without the joining, the copy behind it and, backward, the
 * gradient of both: counted, 8 and 10 bytes less. Its rows are even, so that all is vectorized; compiled it is a kernel
 * each way, as other plain attention in 16 bit. Source: Transformers' modular_mimo_v2_flash.py (read 2026-11-28).
 */
static const struct sunk {
	double add, strided; /* bytes a score */
	int added, walked;   /* kernels of each */
	int operations;
} sunk[2][2] = {
	/* eager, compiled; forward, backward */
	{ { 4, 26.7, 1, 8, 8 }, { 18, 14.6, 8, 6, 13 } },
	{ { 4, 9.4, 1, 1, 0 }, { 9.3, 7.8, 2, 1, 0 } },
}, even[2][2] = {
	{ { 20, 0, 5, 0, 5 }, { 26, 0, 7, 0, 7 } },
	{ { 9, 0, 1, 0, 0 }, { 14, 0, 1, 0, 0 } },
};

void softmax_with_sinks(struct builder *b, const struct layer_sizes *s, bool backward,
			double scores)
{
	const struct sunk *way =
		&(s->l->sinks ? sunk : even)[sinks_compiled(b)][backward];

	put_memory(b, "softmax", "add", scores * way->add, way->added);
	put_memory(b, "softmax", "strided", scores * way->strided, way->walked);
	host(b, FT_HOST_OPERATION, way->operations);
}

bool scales_for_sinks(const struct builder *b, const struct ft_layer *l)
{
	return l->sinks && b->rules->sink_attention[0] && !is_unfused(b);
}

/*
 * A kernel that knows no sinks also returns the logarithm of each row's sum: its output is multiplied by
 * sigmoid(lse - sink) in fp32 and cast to 16 bit. Bytes a number of the output: a product of two widths with
 * a broadcast (6), a cast (6); backward a cast (6), two such products (8 and 10), a sum over a head (4), a cast
 * (6), and kernels on a number a row. Counted from NeMo AutoModel's attention/flex_attention.py (read 2026-11-28); measured
 * whole on an H100 (measurements/probes/h100-2026-11-28-flex-unseen): forward 12 % more, backward 5 % less
 * than counted, both together as counted.
 */
void put_sinks(struct builder *b, const struct layer_sizes *s, bool backward)
{
	static const struct {
		double strided, cast, sum;
		int walked, casts, sums, small;
	} way[] = { { 6, 6, 0, 1, 1, 0, 2 }, { 18, 12, 4, 2, 2, 1, 4 } };
	double out = (double)(s->tokens * s->out),
	       rows = (double)(s->tokens * s->heads);
	const char *name = backward ? "sinks_back" : "sinks";

	if (!scales_for_sinks(b, s->l))
		return;
	put_memory(b, name, "strided", way[backward].strided * out,
		   way[backward].walked);
	put_memory(b, name, "cast", way[backward].cast * out, way[backward].casts);
	put_memory(b, name, "add", way[backward].sum * out, way[backward].sums);
	put_memory(b, name, "default", 8 * rows * way[backward].small,
		   way[backward].small);
}
