/* tests/test_offload.c - what waits in host memory goes there and comes back, and takes its time */
#include <math.h>

#include "foretoken/study_plan.h"
#include "tests/simulated.h"
#include "tests/works.h"

#define MODEL \
	"{model_type: llama, hidden_size: 4096, num_hidden_layers: 8, " \
	"num_attention_heads: 32, num_key_value_heads: 8, vocab_size: 32000, " \
	"intermediate_size: 14336}"

enum { LAYERS = 8, MICRO_BATCHES = 4, RANKS = 4 };

/* Bytes that the layers of one rank keep for one micro-batch. */
static double kept(const struct ft_graph *g)
{
	return LAYERS * kept_by_layer(g);
}

static void as_many_bytes_leave_and_come_back(void **state)
{
	static const char *const ways[] = {
		"parallel: {tp: 4}",
		"parallel: {tp: 4}, recompute: full",
		"parallel: {pp: 2, tp: 2}",
		"parallel: {pp: 2, vpp: 2, tp: 2}, schedule: interleaved",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		for (int layers = 0; layers <= LAYERS; layers += 2) {
			struct parts without, with;
			char plan[300];
			double sent;

			snprintf(plan, sizeof(plan),
				 "{sequence_length: 4096, global_batch_size: 4, "
				 "micro_batch_size: 1, %s}",
				 ways[i]);
			build(&without, MODEL, plan, "megatron-core", RANKS);
			snprintf(strrchr(plan, '}'), 30, ", offload_layers: %d}",
				 layers);
			build(&with, MODEL, plan, "megatron-core", RANKS);
			sent = MICRO_BATCHES * kept(without.graph) * layers / LAYERS;
			near_frac(sum_of(with.graph, "offload").bytes, sent, 1e-12);
			near_frac(sum_of(with.graph, "fetch").bytes, sent, 1e-12);
			drop(&without);
			drop(&with);
		}
}

/* The same of micro-batches that run side by side, one forward and one backward. */
static void pairs_bring_back_what_they_sent(void **state)
{
	(void)state;
	for (int layers = 1; layers <= 4; layers++) {
		struct parts p;
		char plan[200];
		size_t paired = 0;

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 4096, global_batch_size: 64, "
			 "parallel: {ep: 8}, overlap: {ep: true}, offload_layers: %d}",
			 layers);
		build(&p, "{name: mixtral-8x7b, num_hidden_layers: 4}", plan,
		      "megatron-core-moe-2025", 16);
		for (size_t i = 0; i < p.graph->n_segments; i++)
			paired += !strncmp(p.graph->segment[i].name, "pair", 4);
		assert_true(paired > 0);
		assert_true(sum_of(p.graph, "offload").bytes > 0);
		near_frac(sum_of(p.graph, "fetch").bytes,
			  sum_of(p.graph, "offload").bytes, 1e-12);
		drop(&p);
	}
}

/* Bytes that a stage's forward passes keep in a step. */
static double stage_keeps(const struct ft_graph *g, size_t stage)
{
	const struct ft_class *c = &g->rank_class[stage];
	double bytes = 0;

	for (size_t i = 0; i < c->n_calls; i++) {
		const struct ft_segment *s = &g->segment[c->call[i].segment];

		if (!strncmp(s->name, "forward", 7))
			bytes +=
				s->net_bytes[FT_MEMORY_ACTIVATIONS] * c->call[i].repeat;
	}
	return bytes;
}

/* Whatever does not stay in a stage leaves it and comes back, and so many layers in all do. */
static void each_stage_sends_what_it_does_not_keep(void **state)
{
	static const char *const ways[] = { "{pp: 4}", "{pp: 2}", "{pp: 2, vpp: 2}" };

	(void)state;
	for (size_t i = 0; i < 3 * (LAYERS + 1); i++) {
		int layers = (int)(i % (LAYERS + 1));
		struct parts without, with;
		char plan[300];
		double all = 0;

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 4096, global_batch_size: 4, "
			 "micro_batch_size: 1, recompute: none, parallel: %s}",
			 ways[i / (LAYERS + 1)]);
		build(&without, MODEL, plan, "megatron-core", RANKS);
		snprintf(strrchr(plan, '}'), 30, ", offload_layers: %d}", layers);
		build(&with, MODEL, plan, "megatron-core", RANKS);
		for (size_t c = 0; c < with.graph->n_classes; c++) {
			double bytes = stage_keeps(without.graph, c);
			double stays = stage_keeps(with.graph, c);
			struct ft_graph one = *with.graph;

			one.rank_class += c;
			one.n_classes = 1;
			assert_true(fabs(sum_of(&one, "offload").bytes + stays -
					 bytes) < 1e-9 * bytes);
			assert_true(fabs(sum_of(&one, "fetch").bytes + stays - bytes) <
				    1e-9 * bytes);
			all += bytes - stays;
		}
		assert_true(fabs(all - (double)without.plan->micro_batches * layers *
					       kept(without.graph) / LAYERS) < 1);
		drop(&without);
		drop(&with);
	}
}

/* Seconds of a step (item NULL) or of its items so called, over a link of so many bytes/s. */
static double took_s(int layers, double link, const char *item)
{
	char text[700];

	snprintf(text, sizeof(text),
		 "model: " MODEL "\ncluster: {gpu: h100-sxm, gpus: 4, "
		 "node: {extends: hgx-h100, host_link: %g GB/s}}\n"
		 "stack: megatron-core\ntraining: {sequence_length: 4096, "
		 "global_batch_size: 4, micro_batch_size: 1, parallel: {tp: 4}, "
		 "recompute: none, offload_layers: %d}\n",
		 link * 1e-9, layers);
	return simulated_s(text, item);
}

/* A link as fast as memory hides all but what a copy costs to begin; a slow one sets the pace. */
static void the_link_sets_the_pace_where_it_is_slow(void **state)
{
	double alone = took_s(0, 54e9, NULL), before = alone;

	(void)state;
	for (int layers = 2; layers <= LAYERS; layers += 2) {
		double bytes = took_s(layers, 1e9, "offload") * 1e9; /* of the step */
		double slow = took_s(layers, 1e9, NULL);

		near_frac(took_s(layers, 1e15, NULL), alone, 0.01);
		near_frac(took_s(layers, 1e9, "fetch") * 1e9, bytes, 1e-9);
		/* a last layer's share comes back as it leaves */
		assert_true(slow > (2 - 1.1 / LAYERS) * bytes / 1e9);
		assert_true(slow < 2 * bytes / 1e9 + alone);
		assert_true(slow > before);
		before = slow;
	}
}

/* Copies in each direction that take a third of the step, all in all, are hidden in forward, a
 * third of it, and in backward but for what the first layer of a backward waits for. */
static void copies_are_hidden_behind_the_layers(void **state)
{
	double alone = took_s(0, 54e9, NULL);

	(void)state;
	for (int layers = 2; layers <= LAYERS; layers += 2) {
		double bytes = took_s(layers, 1e9, "offload") * 1e9;
		double third = 0.3 * alone, link = bytes / third;

		assert_true(took_s(layers, link, NULL) <
			    alone + third * 1.2 / LAYERS + 0.03 * alone);
	}
}

/* Seconds of a step of PyTorch's on one GPU, or of an item, with so many layers on the host. */
static double torch_s(int layers, const char *model, bool loss, const char *item)
{
	char path[64], text[700];
	FILE *f = fopen(own_path(path, "offload.yaml"), "w");
	double answer;

	assert_non_null(f);
	fprintf(f,
		"{extends: transformers-5-eager, title: x, layout: {loss_on_host: %s}}",
		loss ? "true" : "false");
	fclose(f);
	snprintf(
		text, sizeof(text),
		"model: %s\n"
		"cluster: {gpu: h200, gpus: 1, fabric: none, node: {extends: hgx-h200, "
		"host_link: 1 GB/s}}\n"
		"stack: %s\n"
		"training: {sequence_length: 1024, global_batch_size: 2, "
		"micro_batch_size: 1, sharding: none, recompute: full, "
		"offload_layers: %d}\n",
		model, path, layers);
	answer = simulated_s(text, item);
	unlink(path);
	return answer;
}

/* Where all layers are to go a log-softmax in fp32 does, too, and of capped logits a tanh: out and back, with nothing beside it. */
static void the_loss_goes_with_all_layers(void **state)
{
	static const struct {
		const char *model;
		double width; /* bytes a logit */
	} of[] = {
		{ MODEL, 4 },
		{ "{model_type: gemma2, hidden_size: 4096, num_hidden_layers: 8, "
		  "num_attention_heads: 16, num_key_value_heads: 8, head_dim: 256, "
		  "vocab_size: 32000, intermediate_size: 14336, "
		  "final_logit_softcapping: 30.0}",
		  6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		double with = torch_s(LAYERS, of[i].model, true, "offload");
		double without = torch_s(LAYERS, of[i].model, false, "offload");
		double loss_s = 2 * of[i].width * 1024 * 32000 / 1e9;

		near_frac(with - without, loss_s, 1e-4);
		near_frac(torch_s(LAYERS, of[i].model, true, "fetch"), with, 1e-9);
		near_frac(torch_s(LAYERS - 1, of[i].model, true, "offload"),
			  torch_s(LAYERS - 1, of[i].model, false, "offload"), 1e-9);
		/* it leaves behind the layers' copies, which hide no part of it */
		assert_true(torch_s(LAYERS, of[i].model, true, NULL) >
			    torch_s(LAYERS, of[i].model, false, NULL) + 1.9 * loss_s);
	}
}

/* What is sent for one micro-batch comes back before the next goes; in a pipeline a stage sends for as many as there are stages from it
 * on. A node has the sum of its ranks. */
static void what_waits_is_of_the_micro_batches_in_flight(void **state)
{
	static const struct {
		const char *plan;
		int stages, micro_batches;
	} ways[] = {
		{ "parallel: {tp: 4}", 1, 4 },
		{ "parallel: {tp: 4}, recompute: full", 1, 4 },
		{ "parallel: {pp: 2, tp: 2}", 2, 4 },
		{ "parallel: {pp: 4}", 4, 4 },
		{ "parallel: {pp: 4, vpp: 2}, schedule: interleaved", 4, 4 },
		{ "parallel: {pp: 2}", 2, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		int stages = ways[i].stages, per = RANKS / stages;
		struct ft_outline *o;
		struct ft_error err;
		struct parts p;
		char plan[300];

		snprintf(plan, sizeof(plan),
			 "{sequence_length: 4096, global_batch_size: 4, "
			 "micro_batch_size: 1, offload_layers: 4, %s}",
			 ways[i].plan);
		build(&p, MODEL, plan, "megatron-core", RANKS);
		o = ft_outline_build(p.model, p.plan, p.stack, &err);
		ok_or_say(o, err);
		for (int node = 1; node <= 2 * RANKS; node *= 2) {
			double waits = ft_graph_host_bytes(p.graph, node), most = 0;

			near_frac(ft_outline_host_bytes(o, node), waits, 1e-12);
			if (p.plan->vpp > 1)
				continue;
			for (int from = 0; from < RANKS; from += node) {
				double sum = 0;

				for (int r = from; r < from + node && r < RANKS; r++) {
					struct ft_graph one = *p.graph;
					int s = r / per, left = stages - s;

					one.rank_class += s;
					one.n_classes = 1;
					sum += sum_of(&one, "offload").bytes /
					       ways[i].micro_batches *
					       fmin(left, ways[i].micro_batches);
				}
				most = fmax(most, sum);
			}
			near_frac(waits, most, 1e-12);
		}
		assert_true(ft_graph_host_bytes(p.graph, 1) > 0);
		ft_outline_free(o);
		drop(&p);
	}
}

/* Also of layers that keep more and less, and of one that predicts a token ahead: nothing is left on the host, however many
 * micro-batches there were. */
static void what_unlike_layers_sent_comes_back(void **state)
{
	static const char *const unlike[] = {
		"{name: deepseek-v3, num_hidden_layers: 8}",
		"{name: deepseek-v3, num_hidden_layers: 8, num_nextn_predict_layers: 1}",
		"{name: qwen3-next-80b-a3b, num_hidden_layers: 8, "
		"num_nextn_predict_layers: 2}",
	};
	static const char *const ways[] = {
		"recompute: none, parallel: {tp: 4}",
		"recompute: full, recompute_layers: 3, parallel: {tp: 4}",
		"recompute: full, recompute_layers: 3, parallel: {pp: 2, tp: 2}",
		"schedule: zero-bubble, parallel: {pp: 2, tp: 2}",
	};
	enum {
		MODELS = sizeof(unlike) / sizeof(*unlike),
		WAYS = sizeof(ways) / sizeof(*ways)
	};

	(void)state;
	for (int i = 0; i < MODELS * WAYS * 2; i++) {
		double waits[2];

		for (int more = 0; more < 2; more++) {
			struct parts p;
			char plan[300];

			snprintf(plan, sizeof(plan),
				 "{sequence_length: 1024, global_batch_size: %d, "
				 "micro_batch_size: 1, offload_layers: %d, %s}",
				 more ? 32 : 4, i % 2 ? LAYERS : 5, ways[i / 2 % WAYS]);
			build(&p, unlike[i / 2 / WAYS], plan, "torch-2.11-eager",
			      RANKS);
			for (size_t c = 0; c < p.graph->n_classes; c++) {
				struct ft_graph one = *p.graph;

				one.rank_class += c;
				one.n_classes = 1;
				near_frac(sum_of(&one, "fetch").bytes,
					  sum_of(&one, "offload").bytes, 1e-12);
			}
			waits[more] = ft_graph_host_bytes(p.graph, RANKS);
			drop(&p);
		}
		near_frac(waits[1], waits[0], 1e-12);
	}
}

/* A pipeline that keeps the outputs of all micro-batches keeps their softmaxes in fp32 beside them, unless these wait on the host. */
static void softmaxes_are_here_or_on_the_host(void **state)
{
	const double logits = 1024.0 * 32000;

	(void)state;
	for (int loss = 0; loss < 2; loss++) {
		const struct ft_segment *there, *back;
		char path[64];
		struct parts p;
		FILE *f = fopen(own_path(path, "offload.yaml"), "w");

		assert_non_null(f);
		fprintf(f,
			"{extends: torch-2.11-eager, title: x, layout: {loss_on_host: "
			"%s}}",
			loss ? "true" : "false");
		fclose(f);
		build(&p, MODEL,
		      "{sequence_length: 1024, global_batch_size: 16, "
		      "micro_batch_size: 1, sharding: none, schedule: gpipe, "
		      "parallel: {pp: 2}, master_weights: false, offload_layers: 8}",
		      path, 2);
		unlink(path);
		there = segment_of(p.graph, "head.");
		back = segment_of(p.graph, "head_back");
		near_frac(there->net_bytes[FT_MEMORY_OTHER], (loss ? 2 : 6) * logits,
			  1e-9);
		near_frac(there->peak_bytes[FT_MEMORY_OTHER], 6 * logits, 1e-9);
		near_frac(back->net_bytes[FT_MEMORY_OTHER], (loss ? 0 : -4) * logits,
			  1e-9);
		near_frac(back->peak_bytes[FT_MEMORY_OTHER], (loss ? 12 : 8) * logits,
			  1e-9);
		drop(&p);
	}
}

/* With less memory in the node than waits there a plan does not fit, whatever the GPUs hold; a search knows, and its ways out do. */
static void a_node_holds_so_much(void **state)
{
	static const struct ft_search how = { .top = 1, .threads = 1 };
	double waits = 1e12;

	(void)state;
	for (int i = -1; i < 2; i++) { /* at first: how much waits */
		struct ft_plans *plans[FT_SIZES_MOST];
		struct ft_shelf *shelf = ft_shelf_new();
		struct ft_scenario *s;
		struct ft_outcome o;
		struct ft_error err;
		char text[700];
		size_t n;

		snprintf(text, sizeof(text),
			 "model: " MODEL "\ncluster: {gpu: h100-sxm, gpus: 4, "
			 "node: {extends: hgx-h100, host_memory_size: %.0f B}}\n"
			 "stack: megatron-core\ntraining: {sequence_length: 4096, "
			 "global_batch_size: 4, micro_batch_size: 1, recompute: none, "
			 "sharding: zero1, parallel: {tp: 2, pp: 2, vpp: 1, cp: 1}, "
			 "schedule: 1f1b, offload_layers: 6}\n",
			 (i < 0 ? 1 :
			  i	? 1.01 :
				  0.99) *
				 waits);
		s = scenario_of(shelf, text, &err);
		ok_or_say(s, err);
		ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
		waits = o.host_memory_bytes;
		assert_true(waits > 1e9 && waits < 1e11);
		assert_int_equal(o.fits, i != 0);
		ok_or_say(ft_study_plans_of("s", text, &how, plans, &n, &err), err);
		assert_int_equal(plans[0]->n, i != 0);
		assert_int_equal(plans[0]->over_node,
				 i != 0 ? 0 : plans[0]->considered);
		for (size_t k = 0; k < plans[0]->n_ways; k++)
			assert_true(plans[0]->way[k].memory_frac <= 1);
		assert_true(i != 0 || plans[0]->n_ways > 0);
		ft_plans_free(plans[0]);
		ft_outcome_release(&o);
		ft_scenario_free(s);
		ft_shelf_free(shelf);
	}
}

/* A node must say what its link carries. */
static void a_node_without_a_link_is_refused(void **state)
{
	static const char text[] =
		"model: {name: llama3-8b, num_hidden_layers: 4}\n"
		"cluster: {gpu: h100-sxm, gpus: 8, "
		"node: {extends: hgx-h100, host_link: null}}\n"
		"training: {sequence_length: 4096, global_batch_size: 8, "
		"offload_layers: 1}\n";
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };
	struct ft_error err;
	struct ft_outcome o;
	struct node *root = node_read_text(&mem, "s", text, strlen(text), &err);
	struct ft_scenario *s = ft_scenario_from(shelf, root, "s", true, &err);

	(void)state;
	ok_or_say(s, err);
	assert_false(ft_study_simulate(s, NULL, NULL, &o, &err));
	assert_non_null(strstr(err.text, "has no host_link"));
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	arena_release(&mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_bring_back_what_they_sent),
		cmocka_unit_test(as_many_bytes_leave_and_come_back),
		cmocka_unit_test(each_stage_sends_what_it_does_not_keep),
		cmocka_unit_test(the_link_sets_the_pace_where_it_is_slow),
		cmocka_unit_test(copies_are_hidden_behind_the_layers),
		cmocka_unit_test(the_loss_goes_with_all_layers),
		cmocka_unit_test(what_waits_is_of_the_micro_batches_in_flight),
		cmocka_unit_test(what_unlike_layers_sent_comes_back),
		cmocka_unit_test(softmaxes_are_here_or_on_the_host),
		cmocka_unit_test(a_node_holds_so_much),
		cmocka_unit_test(a_node_without_a_link_is_refused),
	};

	return cmocka_run_group_tests_name("traces/offload", tests, NULL, NULL);
}
