/* tests/test_by_generation.c - a stack's attention on GPUs of one generation */
#include "foretoken/study.h"

#include "base/arena.h"
#include "base/node.h"
#include "tests/simulated.h"

static double step_of(struct ft_shelf *shelf, const char *gpu, const char *stack,
		      const char *impl)
{
	struct ft_outcome o;
	struct ft_error err;
	struct ft_scenario *s;
	double step_s;
	char text[512];

	snprintf(text, sizeof(text),
		 "{model: gpt-1.5b, cluster: {gpu: %s, gpus: 8}, stack: %s, training: "
		 "{sequence_length: 8192, global_batch_size: 8}}",
		 gpu, stack);
	s = scenario_of(shelf, text, &err);
	ok_or_say(s, err);
	assert_string_equal(s->stack->layout.attention, impl);
	assert_string_equal(s->stack->root, "torch-2.11-eager");
	ok_or_say(ft_study_simulate(s, NULL, NULL, &o, &err), err);
	step_s = o.step_s;
	ft_outcome_release(&o);
	ft_scenario_free(s);
	return step_s;
}

/* Blackwell's has another kernel, all others the stack's; in either order, on one shelf. */
static void a_generation_has_its_own(void **state)
{
	struct ft_shelf *shelf = ft_shelf_new();
	char path[64], fa2[64], cudnn[64];
	double b200, b200_cudnn, b200_fa2;

	(void)state;
	write_text(own_path(path, "by.yaml"),
		   "extends: torch-2.11-eager\ntitle: t\nlayout: {attention: fa2, "
		   "attention_by_generation: {blackwell: cudnn}}\n");
	write_text(own_path(fa2, "fa2.yaml"),
		   "extends: torch-2.11-eager\ntitle: t\nlayout: {attention: fa2}\n");
	write_text(own_path(cudnn, "cudnn.yaml"),
		   "extends: torch-2.11-eager\ntitle: t\nlayout: {attention: cudnn}\n");
	b200 = step_of(shelf, "b200", path, "cudnn");
	assert_true(step_of(shelf, "h100-sxm", path, "fa2") ==
		    step_of(shelf, "h100-sxm", fa2, "fa2"));
	assert_true(step_of(shelf, "gb200", path, "cudnn") > 0);
	assert_true(step_of(shelf, "b200", path, "cudnn") == b200);
	b200_cudnn = step_of(shelf, "b200", cudnn, "cudnn");
	b200_fa2 = step_of(shelf, "b200", fa2, "fa2");
	assert_true(b200 == b200_cudnn);
	assert_true(b200_fa2 > b200 * 1.02);
	assert_true(step_of(shelf, "b200", "torchtitan-2025-eager", "cudnn") > 0);
	ft_shelf_free(shelf);
	remove(path), remove(fa2), remove(cudnn);
}

/* A stack that extends it takes the map away with a null, as it takes all keys. */
static void what_extends_it_may_leave_it(void **state)
{
	struct ft_error err;
	struct ft_stack on, *late = ft_stack_load("torchtitan-2025-late", NULL, &err);
	struct ft_stack *mid = ft_stack_load("torchtitan-2025", NULL, &err);

	(void)state;
	ok_or_say(late, err);
	ok_or_say(mid, err);
	assert_ptr_equal(ft_stack_on(late, "blackwell", &on), late);
	assert_ptr_equal(ft_stack_on(mid, "hopper", &on), mid);
	assert_ptr_equal(ft_stack_on(mid, "blackwell", &on), &on);
	assert_string_equal(on.layout.attention, "cudnn");
	assert_string_equal(mid->layout.attention, "fa2");
	ft_stack_free(late);
	ft_stack_free(mid);
}

static void it_is_a_kernel_and_a_generation(void **state)
{
	static const char *const wrong[][2] = {
		{ "{blackwel: cudnn}", "generation 'blackwel'" },
		{ "{blackwell: unfused}", "should be a fused implementation" },
		{ "cudnn", "should be a map" },
		{ "{a: x, b: x, c: x, d: x, e: x, f: x, g: x, h: x, i: x}",
		  "is one too many: at most 8" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct ft_error err;
		char path[64], text[300];

		snprintf(text, sizeof(text),
			 "extends: torch-2.11-eager\ntitle: t\nlayout: "
			 "{attention_by_generation: %s}\n",
			 wrong[i][0]);
		write_text(own_path(path, "wrong.yaml"), text);
		assert_null(ft_stack_load(path, NULL, &err));
		if (!strstr(err.text, wrong[i][1]))
			fail_msg("%s: %s", wrong[i][0], err.text);
		assert_int_equal(err.line, 3);
		remove(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_generation_has_its_own),
		cmocka_unit_test(what_extends_it_may_leave_it),
		cmocka_unit_test(it_is_a_kernel_and_a_generation),
	};

	return cmocka_run_group_tests_name("by_generation", tests, NULL, NULL);
}
