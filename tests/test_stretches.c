/* tests/test_stretches.c - what the host does behind an op that it waits for is spread among later launches alone */
#include <math.h>
#include <unistd.h>

#include "tests/scratch.h"
#include "tests/simulated.h"
#include "tests/works.h"

#define ROUTED \
	"{model_type: qwen3_moe, hidden_size: 512, num_hidden_layers: 2, " \
	"num_attention_heads: 8, vocab_size: 512, intermediate_size: 512, " \
	"num_experts: 16, num_experts_per_tok: 4, moe_intermediate_size: 256}"
#define PLAN \
	"{sequence_length: 1024, global_batch_size: 8, sharding: ddp, " \
	"parallel: {ep: 2}}"

/* Stretches tile the ops, and share what the host does. */
static void tiles(const struct ft_segment *s)
{
	size_t at = 0;
	double sum[FT_HOSTS] = { 0 };

	for (size_t i = 0; i <= s->n_behind; i++) {
		struct ft_stretch t = ft_segment_stretch(s, i);
		size_t among = 0;

		assert_true(t.begin == at && t.end >= at);
		for (size_t k = t.begin; k < t.end; k++)
			among += t.graphed || !s->op[k].graphed;
		assert_int_equal(t.among, among);
		at = t.end;
		for (int h = 0; h < FT_HOSTS; h++)
			sum[h] += t.host[h];
	}
	assert_int_equal(at, s->n_ops);
	for (int h = 0; h < FT_HOSTS; h++)
		near_frac(1 + sum[h], 1 + s->host[h], 1e-12);
}

/* The host asks for the numbers of tokens before it calls the experts, and calls attention before it asks. */
static void experts_are_called_behind_the_wait(void **state)
{
	const struct ft_segment *s;
	struct ft_stretch t;
	struct parts p;

	(void)state;
	build(&p, ROUTED, PLAN, "megatron-core", 8);
	for (size_t i = 0; i < p.graph->n_segments; i++)
		tiles(&p.graph->segment[i]);
	s = segment_of(p.graph, "forward");
	assert_int_equal(s->n_behind, 1);
	assert_true(s->op[s->behind[0].op - 1].host_waits);
	t = ft_segment_stretch(s, 0);
	assert_true(t.host[FT_HOST_BLOCK_FORWARD] == s->host[FT_HOST_BLOCK_FORWARD] &&
		    t.host[FT_HOST_EXPERTS_FORWARD] == 0);
	t = ft_segment_stretch(s, 1);
	assert_true(t.host[FT_HOST_EXPERTS_FORWARD] ==
			    s->host[FT_HOST_EXPERTS_FORWARD] &&
		    t.host[FT_HOST_EXPERTS_FORWARD] > 0);
	drop(&p);
}

static char *written(const struct ft_graph *g)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	ft_graph_write(g, out);
	fclose(out);
	return text;
}

static struct ft_graph *read_text(const char *text, struct ft_error *err)
{
	char name[64];
	const char *path = own_path(name, "stretches.graph");
	struct ft_graph *g;
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
	g = ft_graph_read(path, 8, err);
	unlink(path);
	return g;
}

static void places_come_back_from_text(void **state)
{
	struct ft_error err;
	struct ft_graph *g;
	struct parts p;
	char *text, *again;

	(void)state;
	build(&p, ROUTED, PLAN, "megatron-core", 8);
	text = written(p.graph);
	assert_non_null(strstr(text, "\n  behind experts_forward 1\n"));
	g = read_text(text, &err);
	ok_or_say(g, err);
	again = written(g);
	assert_string_equal(again, text);
	ft_graph_free(g);
	free(again);
	free(text);
	drop(&p);
}

/* A graph of one segment with these lines in it. */
static void refused(const char *lines, const char *says, int line)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_graph *g = read_text(
		arena_printf(&mem,
			     "graph 1\ntokens 8\n"
			     "work 0 memory norm dtype=fp32 kernel=rmsnorm bytes=8\n"
			     "segment 0 forward\n  host graph 1\n%s"
			     "class all ranks=8\n  call 0 x1\n",
			     lines),
		&err);

	if (g)
		fail_msg("read in spite of %s", lines);
	assert_int_equal(err.line, line);
	if (!strstr(err.text, says))
		fail_msg("'%s' is not in '%s'", says, err.text);
	arena_release(&mem);
}

static void places_are_refused_where_they_stand(void **state)
{
#define OP "  op work=0 stream=compute\n"
	(void)state;
	refused("  behind graph 1\n" OP, "not below an op", 6);
	refused(OP "  behind graf 1\n", "no host activity", 7);
	refused(OP "  behind graph 1\n  host graph 0\n",
		"no host activity, or not in a segment", 8);
	refused(OP "  behind graph\n", "no host activity", 7);
	refused(OP "  behind graph -1\n", "not between", 7);
	refused(OP "  behind graph 2\n", "more than the segment's line host graph", 7);
	refused(OP "  behind graph 1\n" OP "  behind graph 1\n",
		"more than the segment's line host graph", 9);
	refused(OP "  behind launch 0\n" OP "  behind launch 0\n" OP
		   "  behind launch 0\n" OP "  behind launch 0\n" OP
		   "  behind launch 0\n" OP "  behind launch 0\n" OP
		   "  behind launch 0\n",
		"more than 6 places", 19);
}

/* What a graph holds costs the host no launches; the rest it does when it did before. */
static void graphs_of_attention_make_no_step_longer(void **state)
{
	static const char *const graphs[] = { "none", "router", "partial", "full" };
	double took[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct arena mem = { 0 };

		took[i] = simulated_s(
			arena_printf(
				&mem,
				"{model: {name: deepseek-v3, num_hidden_layers: 8}, cluster: "
				"{gpu: gb200, gpus: 16}, stack: megatron-bridge-25.09, "
				"training: {sequence_length: 8192, global_batch_size: 64, "
				"precision: fp8, parallel: {ep: 2}, cuda_graphs: %s}}",
				graphs[i]),
			NULL);
		arena_release(&mem);
	}
	/* a graph of the router alone saves few launches, and costs one of its own */
	assert_true(fabs(took[1] / took[0] - 1) < 0.01);
	assert_true(took[2] < took[1] && took[2] < took[0] && took[3] < took[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(experts_are_called_behind_the_wait),
		cmocka_unit_test(places_come_back_from_text),
		cmocka_unit_test(places_are_refused_where_they_stand),
		cmocka_unit_test(graphs_of_attention_make_no_step_longer),
	};

	return cmocka_run_group_tests_name("stretches", tests, NULL, NULL);
}
