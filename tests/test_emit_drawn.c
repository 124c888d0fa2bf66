/*
 * tests/test_emit_drawn.c - arguments of frameworks, of plans drawn at random: all lines that there
 * should be and no other
 *
 * What a key of a plan is called is written down once more in tests/emitted.h, as a list of
 * conditions and lines; the order of lines is not held. And what is written is read back and held to what the frameworks refuse at
 * their start, by their own sources.
 */
#include "base/node.h"
#include "tests/emitted.h"

enum { PLANS = 400 };

static uint64_t seed = 11;

#define ANY(...) any_of((const char *const[]){ __VA_ARGS__, NULL })

static const char *any_of(const char *const *words)
{
	uint32_t n = 0;

	while (words[n])
		n++;
	return words[rnd(&seed) % n];
}

/* ---- what is written ----------------------------------------------------------------------- */

/* (x)*n of a layout, n times; without a last pair of brackets, as it is. */
static const char *spread_out(struct arena *mem, const char *text)
{
	const char *at = strchr(text, '('), *end = at ? strchr(at, ')') : NULL, *behind;
	const char *all;

	if (!strstr(text, "layout \"E") && !strstr(text, "layout: \"E"))
		return text;
	if (!end)
		return text;
	all = arena_text_n(mem, text, (size_t)(at - text));
	for (long i = strtol(end + 2, (char **)&behind, 10); i > 0; i--)
		all = arena_printf(mem, "%s%.*s", all, (int)(end - at - 1), at + 1);
	return spread_out(mem, arena_printf(mem, "%s%s", all, behind));
}

static int by_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void hold(struct lines *l, char *text, const char *drawn)
{
	const char *got[LINES], *rest;
	size_t n = 0;

	for (char *at = strtok_r(text, "\n", (char **)&rest); at;
	     at = strtok_r(NULL, "\n", (char **)&rest)) {
		assert_true(n < LINES);
		got[n++] = spread_out(l->mem, at + strspn(at, " "));
	}
	qsort(got, n, sizeof(*got), by_words);
	qsort(l->line, l->n, sizeof(*l->line), by_words);
	for (size_t i = 0; i < n || i < l->n; i++)
		if (i >= n || i >= l->n || strcmp(got[i], l->line[i]) != 0)
			fail_msg("%s: '%s', wanted '%s' of %s",
				 ft_framework_name(l->of), i < n ? got[i] : "no more",
				 i < l->n ? l->line[i] : "no more", drawn);
}

/* ---- what frameworks refuse ------------------------------------------------------------ */

/* The value behind a name, as each framework writes it; else. */
static int64_t value(const char *text, const char *name, int64_t otherwise)
{
	size_t n = strlen(name);

	for (const char *at = text; (at = strstr(at, name)); at += n) {
		const char *number = at + n + strspn(at + n, " =:");

		if (number > at + n && strspn(number, "0123456789"))
			return strtoll(number, NULL, 10);
	}
	return otherwise;
}

/* forward_backward_pipelining_with_interleaving (Megatron Core, pipeline_parallel/schedules.py): n micro-batches in a group. */
static bool megatron_interleaves(const char *text, enum ft_framework of,
				 const struct ft_plan *p)
{
	int64_t pp = p->pp, m = p->global_batch / p->dp / p->micro_batch;
	int64_t n = value(text,
			  of == FT_MEGATRON ?
				  "microbatch-group-size-per-virtual-pipeline-stage" :
				  "microbatch_group_size_per_vp_stage",
			  pp);

	return pp == 1 || p->vpp == 1 ||
	       (n >= pp && n <= m && (m % n == 0 || m % n >= pp));
}

/* ParallelDims (torchtitan, distributed/parallel_dims.py), with experts that are not cut. */
static bool titan_has_mesh(const char *text, int64_t world)
{
	int64_t replicate = value(text, "data_parallel_replicate_degree", 0);
	int64_t shard = value(text, "data_parallel_shard_degree", 0);
	int64_t cp = value(text, "context_parallel_degree", 0);
	int64_t tp = value(text, "tensor_parallel_degree", 0);
	int64_t pp = value(text, "pipeline_parallel_degree", 0);
	int64_t ep = value(text, "expert_parallel_degree", 1);

	return replicate >= 1 && shard >= 1 &&
	       replicate * shard * cp * tp * pp == world &&
	       (ep == 1 || (ep % (cp * tp) == 0 && shard * cp * tp % ep == 0));
}

/* Schedules of PyTorch (torch/distributed/pipelining/schedules.py). */
static bool torch_schedules(const char *text)
{
	int64_t pp = value(text, "pipeline_parallel_degree", 1), rounds;
	int64_t m = value(text, "local_batch_size", 0) /
		    value(text, "pipeline_parallel_microbatch_size", 1);

	if (pp == 1)
		return true;
	if (strstr(text, "\"1F1B\"") || strstr(text, "\"GPipe\""))
		return m >= pp;
	if (strstr(text, "\"DualPipeV\""))
		return m >= 2 * pp;
	rounds = m < pp ? 1 : m / pp;
	return strstr(text, "\"ZBVZeroBubble\"") || m % rounds == 0;
}

static void taken_or_told(const struct lines *l, const char *text, const char *drawn)
{
	bool titan = l->of == FT_TORCHTITAN;
	bool batches =
		titan ? torch_schedules(text) : megatron_interleaves(text, l->of, l->p);
	bool chunk = l->p->vpp == 1 && l->p->schedule == FT_ZERO_BUBBLE; /* told */
	bool mesh = !titan || titan_has_mesh(text, l->p->ranks);

	if (!batches && !(titan && chunk) && !strstr(text, "micro-batches"))
		fail_msg("%s: micro-batches of %s", ft_framework_name(l->of), drawn);
	if (!mesh && !strstr(text, "# not mapped: a shard group of"))
		fail_msg("%s: mesh of %s", ft_framework_name(l->of), drawn);
	if (titan && l->p->ep != value(text, "expert_parallel_degree", 1) &&
	    !strstr(text, "# not mapped: ep "))
		fail_msg("no ep: %s", drawn);
}

static const char *drawn(struct arena *mem)
{
	return arena_printf(
		mem,
		"{model: %s, cluster: {gpu: %s, gpus: %s}, stack: %s, training: "
		"{sequence_length: %s, global_batch_size: %s, micro_batch_size: %s, "
		"sharding: %s, recompute: %s, schedule: %s, %s%s%s%s%s%s"
		"overlap: {tp: %s, dp: %s, pp: %s, ep: %s%s}, "
		"parallel: {tp: %s, pp: %s, cp: %s, ep: %s, vpp: %s}}}",
		ANY("{name: llama3-8b, num_hidden_layers: 16}",
		    "{name: llama3-8b, num_hidden_layers: 14}",
		    "{name: llama3-8b, num_hidden_layers: 11}",
		    "{name: mixtral-8x7b, num_hidden_layers: 8}",
		    "{name: deepseek-v3, num_hidden_layers: 9}"),
		ANY("h200", "b200"), ANY("1", "8", "16"),
		ANY("generic", "nemo-25.07", "torchtitan-2024", "megatron-core",
		    "mlperf-nemo-2025"),
		ANY("2048", "4096"), ANY("16", "64", "6", "10", "24"), ANY("1", "2"),
		ANY("ddp", "zero1", "zero2", "fsdp", "hsdp", "hsdp, shard: 4",
		    "hsdp, shard: 2", "zero1, zero_group: 4"),
		ANY("none", "selective",
		    "selective, recompute_modules: [core_attn, layernorm]",
		    "selective, recompute_modules: [moe_act, mlp]",
		    "selective, recompute_modules: [moe, layernorm]",
		    "selective, recompute_modules: [op]", "full",
		    "full, recompute_layers: 5", "full, recompute_layers: 8"),
		ANY("1f1b", "gpipe", "zero-bubble", "zbv", "dualpipev"),
		ANY("", "precision: fp8, ",
		    "precision: fp8, attention_precision: fp8, ", "precision: mxfp8, ",
		    "precision: fp16, gradient_dtype: fp16, ", "precision: nvfp4, ",
		    "gradient_dtype: bf16, ", "precision: fp8-block128, ",
		    "gradient_dtype: fp16, ", "precision: fp16, gradient_dtype: bf16, ",
		    "fp8_activation_input: true, "),
		ANY("", "", "optimizer: muon, ", "master_weights: false, ",
		    "master_dtype: fp16, ", "document_length: 512, "),
		ANY("", "", "moe_dispatcher: deepep, ", "moe_dispatcher: hybridep, ",
		    "moe_force_balance: true, ", "moe_capacity_factor: 1.5, "),
		ANY("", "grouped_experts: true, ", "grouped_experts: false, ",
		    "fused_experts: true, "),
		ANY("", "", "offload_layers: 3, ", "offload_layers: 8, ",
		    "cuda_graphs: full, ", "lora: {rank: 8, targets: attention}, "),
		ANY("", "reshard_after_forward: false, ", "sequence_parallel: false, "),
		ANY("true", "false"), ANY("true", "false"), ANY("true", "false"),
		ANY("true", "false"),
		ANY("", ", param_gather: true", ", copy_engines: true"),
		ANY("1", "2", "4"), ANY("1", "2", "4"), ANY("1", "1", "2", "4"),
		ANY("1", "1", "2", "4"), ANY("1", "1", "2"));
}

/* Is it a legal plan? Then all that each framework is told of it is held. */
static bool told(struct ft_shelf *shelf, struct arena *mem, const char *yaml)
{
	struct ft_error err;
	struct node *root = node_read_text(mem, "drawn", yaml, strlen(yaml), &err);
	struct ft_scenario *s;

	ok_or_say(root, err);
	s = ft_scenario_from(shelf, root, "drawn", true, &err);
	for (int of = 0; s && of < FT_FRAMEWORKS; of++) {
		struct lines l = { .mem = mem, .s = s, .p = s->plan };
		size_t len;
		char *text;
		FILE *out = open_memstream(&text, &len);

		l.of = (enum ft_framework)of;
		l.routed = s->model->layer[s->model->n_layers - 1].experts > 0;
		ft_report_plan_arguments(out, s, l.of);
		fclose(out);
		expect(&l);
		taken_or_told(&l, text, yaml);
		hold(&l, text, yaml);
		free(text);
	}
	ft_scenario_free(s);
	return s != NULL;
}

static void all_lines_of_a_plan_are_written_and_no_other(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();
	int n = 0;

	(void)state;
	while (n < PLANS) {
		struct arena mem = { 0 };

		n += told(shelf, &mem, drawn(&mem));
		arena_release(&mem);
	}
	ft_shelf_free(shelf);
}

static void a_long_layout_is_written_whole(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct arena mem = { 0 };

	(void)state;
	assert_true(told(
		shelf, &mem,
		"{model: {name: llama3-8b, num_hidden_layers: 1301, hidden_size: 256, "
		"num_attention_heads: 2, num_key_value_heads: 2, head_dim: 128, "
		"intermediate_size: 512}, cluster: {gpu: h100-sxm, gpus: 8}, "
		"stack: megatron-core, training: {sequence_length: 2048, "
		"global_batch_size: 64, parallel: {pp: 2}}}"));
	arena_release(&mem);
	ft_shelf_free(shelf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_layout_is_written_whole),
		cmocka_unit_test(all_lines_of_a_plan_are_written_and_no_other),
	};

	return cmocka_run_group_tests_name("emit drawn", tests, NULL, NULL);
}
