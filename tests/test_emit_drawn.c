/*
 * tests/test_emit_drawn.c - arguments of frameworks, of plans drawn at random: all lines that there
 * should be and no other
 *
 * What a key of a plan is called is written down once more in tests/emitted.h, as a list of
 * conditions and lines; the order of lines is not held.
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
		ANY("generic", "nemo-25.07", "torchtitan-2024", "megatron-core"),
		ANY("2048", "4096"), ANY("16", "64"), ANY("1", "2"),
		ANY("ddp", "zero1", "zero2", "fsdp", "hsdp", "hsdp, shard: 4",
		    "hsdp, shard: 2", "zero1, zero_group: 4"),
		ANY("none", "selective",
		    "selective, recompute_modules: [core_attn, layernorm]",
		    "selective, recompute_modules: [moe_act, mlp]",
		    "selective, recompute_modules: [moe, layernorm]", "full",
		    "full, recompute_layers: 5", "full, recompute_layers: 8"),
		ANY("1f1b", "gpipe", "zero-bubble", "zbv", "dualpipev"),
		ANY("", "precision: fp8, ",
		    "precision: fp8, attention_precision: fp8, ", "precision: mxfp8, ",
		    "precision: fp16, gradient_dtype: fp16, ", "precision: nvfp4, ",
		    "gradient_dtype: bf16, ", "precision: fp8-block128, "),
		ANY("", "", "optimizer: muon, ", "master_weights: false, ",
		    "document_length: 512, "),
		ANY("", "", "moe_dispatcher: deepep, ", "moe_dispatcher: hybridep, ",
		    "moe_force_balance: true, ", "moe_capacity_factor: 1.5, "),
		ANY("", "grouped_experts: true, ", "grouped_experts: false, ",
		    "fused_experts: true, "),
		ANY("", "", "offload_layers: 3, ", "cuda_graphs: full, ",
		    "lora: {rank: 8, targets: attention}, "),
		ANY("", "reshard_after_forward: false, ", "sequence_parallel: false, "),
		ANY("true", "false"), ANY("true", "false"), ANY("true", "false"),
		ANY("true", "false"),
		ANY("", ", param_gather: true", ", copy_engines: true"),
		ANY("1", "2", "4"), ANY("1", "2", "4"), ANY("1", "1", "2", "4"),
		ANY("1", "1", "2", "4"), ANY("1", "1", "2"));
}

static void all_lines_of_a_plan_are_written_and_no_other(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();
	int told = 0;

	(void)state;
	while (told < PLANS) {
		struct arena mem = { 0 };
		const char *yaml = drawn(&mem);
		struct ft_error err;
		struct node *root =
			node_read_text(&mem, "drawn", yaml, strlen(yaml), &err);
		struct ft_scenario *s;

		ok_or_say(root, err);
		s = ft_scenario_from(shelf, root, "drawn", true, &err);
		for (int of = 0; s && of < FT_FRAMEWORKS; of++) {
			struct lines l = { .mem = &mem, .s = s, .p = s->plan };
			size_t len;
			char *text;
			FILE *out = open_memstream(&text, &len);

			l.of = (enum ft_framework)of;
			l.routed = s->model->layer[s->model->n_layers - 1].experts > 0;
			ft_report_plan_arguments(out, s, l.of);
			fclose(out);
			expect(&l);
			hold(&l, text, yaml);
			free(text);
		}
		told += s != NULL;
		ft_scenario_free(s);
		arena_release(&mem);
	}
	ft_shelf_free(shelf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_lines_of_a_plan_are_written_and_no_other),
	};

	return cmocka_run_group_tests_name("emit drawn", tests, NULL, NULL);
}
