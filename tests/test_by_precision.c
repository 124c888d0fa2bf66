/* tests/test_by_precision.c - defaults of a stack that hold for one format of products */
#include "foretoken/study.h"

#include "base/arena.h"
#include "base/node.h"
#include "tests/simulated.h"

#define RUN(stack, training) \
	"{model: gpt-1.5b, cluster: {gpu: a100-80g, gpus: 8}, stack: " stack \
	", training: {sequence_length: 1024, global_batch_size: 8, " training "}}"

static void gradients_are(const char *text, enum ft_dtype format)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_error err;
	struct ft_scenario *s = scenario_of(shelf, text, &err);

	ok_or_say(s, err);
	assert_int_equal(s->plan->gradient_dtype, format);
	ft_scenario_free(s);
	ft_shelf_free(shelf);
}

/* Megatron's arguments, DeepSpeed's FP16_Optimizer and BF16_Optimizer; a scenario's own word counts more. */
static void gradients_go_by_the_format(void **state)
{
	(void)state;
	gradients_are(RUN("megatron-lm-2022", "precision: fp16"), FT_FP16);
	gradients_are(RUN("megatron-lm-2022", "precision: bf16"), FT_FP32);
	gradients_are(RUN("megatron-deepspeed-2022", "precision: fp16"), FT_FP16);
	gradients_are(RUN("megatron-deepspeed-2022", "precision: bf16"), FT_FP32);
	gradients_are(RUN("megatron-deepspeed-2022", "micro_batch_size: 1"), FT_FP32);
	gradients_are(RUN("bigscience-2022", "precision: fp16"), FT_FP16);
	gradients_are(
		RUN("megatron-deepspeed-2022", "precision: fp16, gradient_dtype: fp32"),
		FT_FP32);
}

/* The format may be a default itself; what it brings replaces the default of all formats. */
static void they_replace_those_of_all_formats(void **state)
{
	char path[64], text[512];

	(void)state;
	own_path(path, "by-precision.yaml");
	write_text(path,
		   "extends: megatron-deepspeed-2022\ntitle: t\n"
		   "defaults: {precision: fp16, gradient_dtype: bf16}\n"
		   "defaults_by_precision: {fp16: {gradient_dtype: fp32}, bf16: ~}\n");
	snprintf(text, sizeof(text), RUN("%s", "micro_batch_size: 1"), path);
	gradients_are(text, FT_FP32);
	snprintf(text, sizeof(text), RUN("%s", "precision: bf16"), path);
	gradients_are(text, FT_BF16);
	remove(path);
}

static void refused(const char *maps, const char *says)
{
	struct ft_shelf *shelf = ft_shelf_new();
	char path[64], text[512];
	struct ft_error err;

	own_path(path, "by-precision-bad.yaml");
	snprintf(text, sizeof(text),
		 "extends: megatron-deepspeed-2022\ntitle: t\n"
		 "defaults_by_precision: %s\n",
		 maps);
	write_text(path, text);
	snprintf(text, sizeof(text), RUN("%s", "precision: fp16"), path);
	assert_null(scenario_of(shelf, text, &err));
	if (!strstr(err.text, says) || strcmp(err.file, path) || err.line != 3)
		fail_msg("%s:%d: %s", err.file, err.line, err.text);
	remove(path);
	ft_shelf_free(shelf);
}

static void what_is_no_map_of_a_format_is_refused(void **state)
{
	(void)state;
	refused("{fp61: {gradient_dtype: fp32}}", "unknown key 'fp61'");
	refused("{fp32: {gradient_dtype: fp32}}", "unknown key 'fp32'");
	refused("{fp16: fp32}", "should be a map of keys of `training`");
	refused("[fp16]", "map");
	refused("{fp16: {gradient_dtyp: fp32}}", "unknown key 'gradient_dtyp'");
	refused("{fp16: {gradient_dtype: fp61}}", "fp61");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gradients_go_by_the_format),
		cmocka_unit_test(they_replace_those_of_all_formats),
		cmocka_unit_test(what_is_no_map_of_a_format_is_refused),
	};

	return cmocka_run_group_tests_name("defaults by precision", tests, NULL, NULL);
}
