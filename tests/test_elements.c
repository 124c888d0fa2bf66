/*
 * tests/test_elements.c - bytes of element-wise kernels, counted from what each must touch
 *
 * A number is read once and written once, 2 bytes each in bf16. By feature of the MLP and
 * token: SwiGLU reads gate and up and writes one (6 bytes), its gradient reads those two
 * and the gradient and writes two (10); GELU reads one and writes one (4), its gradient
 * reads two and writes one (6). Eager PyTorch runs SiLU and the product apart: 4 + 6. By
 * query and key feature, rotating reads and writes (4 bytes); by feature of the stream,
 * adding reads two and writes one (6; under autocast the stream is half as wide again, 9).
 */
#include <math.h>

#include "tests/works.h"

#define PLAN \
	"{sequence_length: 1024, global_batch_size: 8, micro_batch_size: 1, " \
	"sharding: ddp}"
enum { TOKENS = 1024 };

struct kernel {
	const char *model, *stack, *name;
	double features, bytes; /* by feature and token */
};

static void each_kernel_touches_what_it_must(void **state)
{
	static const char llama[] = "{name: llama3-8b, num_hidden_layers: 2}";
	static const char gpt[] = "{name: gpt3-175b, num_hidden_layers: 2}";
	const double f = 14336, h = 4096, qk = 4096 + 1024, gpt_f = 4 * 12288;
	const struct kernel cases[] = {
		{ llama, "megatron-core", "activation", f, 6 },
		{ llama, "megatron-core", "activation_back", f, 10 },
		{ llama, "megatron-core", "rope", qk, 4 },
		{ llama, "megatron-core", "rope_back", qk, 4 },
		{ llama, "torch-2.11-eager", "transpose", 1.5 * h, 4 },
		{ llama, "torch-2.11-compile", "transpose", 1.5 * h, 4 },
		{ gpt, "megatron-core", "activation", gpt_f, 4 },
		{ gpt, "megatron-core", "activation_back", gpt_f, 6 },
		{ llama, "torch-2.11-compile", "activation", f, 6 },
		{ llama, "torch-2.11-compile", "rope", qk, 4 },
		{ gpt, "torch-2.11-compile", "activation", gpt_f, 4 },
		{ llama, "torch-2.11-eager", "activation", f, 4 + 6 },
		{ gpt, "torch-2.11-eager", "activation", gpt_f, 4 },
		{ gpt, "torch-2.11-eager", "activation_back", gpt_f, 6 },
		{ llama, "torch-2.11-compile", "add", h, 9 },
		{ llama, "torch-2.11-eager", "add", h, 9 },
		{ llama, "megatron-core", "add", h, 6 },
		{ llama, "generic", "add", h, 6 },
		{ llama, "generic", "activation", f, 4 + 6 },
	};
	size_t bad = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct kernel *c = &cases[i];
		struct parts p;
		struct sum s;
		double want = c->bytes * c->features * TOKENS;

		build(&p, c->model, PLAN, c->stack, 8);
		s = sum_in(p.graph, NULL, c->name);
		if (!(s.n > 0) || s.bytes / s.n > want * (1 + 1e-12) ||
		    s.bytes / s.n < want * (1 - 1e-12)) {
			print_error("%s of %s under %s: %g times %.9g bytes, wanted "
				    "%.9g\n",
				    c->name, c->model, c->stack, s.n,
				    s.n > 0 ? s.bytes / s.n / TOKENS / c->features : 0,
				    c->bytes);
			bad++;
		}
		drop(&p);
	}
	assert_int_equal(bad, 0);
}

/* What no MLP has is not moved: a wider MLP costs only kernels of the MLP. */
static void kernels_of_the_stream_do_not_grow_with_the_mlp(void **state)
{
	static const char *const stacks[] = { "generic", "torch-2.11-compile",
					      "torch-2.11-eager" };
	static const char *const names[] = { "norm", "add_norm",  "add",
					     "rope", "norm_back", "rope_back" };

	(void)state;
	for (int s = 0; s < 3; s++) {
		struct parts narrow, wide;

		build(&narrow, "{name: llama3-8b, num_hidden_layers: 2}", PLAN,
		      stacks[s], 8);
		build(&wide,
		      "{name: llama3-8b, num_hidden_layers: 2, intermediate_size: 28672}",
		      PLAN, stacks[s], 8);
		for (int n = 0; n < 6; n++)
			assert_true(sum_in(narrow.graph, NULL, names[n]).bytes ==
				    sum_in(wide.graph, NULL, names[n]).bytes);
		assert_true(2 * sum_in(narrow.graph, NULL, "activation").bytes ==
			    sum_in(wide.graph, NULL, "activation").bytes);
		drop(&narrow);
		drop(&wide);
	}
}

/* While the embedding runs. */
static double most_other(const struct ft_graph *g)
{
	double most = 0;

	for (size_t i = 0; i < g->n_segments; i++)
		if (!strncmp(g->segment[i].name, "embed.", 6))
			most = fmax(most, g->segment[i].peak_bytes[FT_MEMORY_OTHER]);
	return most;
}

/* A unit that FSDP gathered is held once, in bf16, or twice where it is copied out of what
 * was gathered: 2 bytes more for each of its parameters. The largest is the root's. */
static void a_unit_that_is_copied_out_is_held_twice(void **state)
{
	static const char plan[] = "{sequence_length: 128, global_batch_size: 8, "
				   "micro_batch_size: 1, sharding: fsdp}";
	static const char model[] = "{name: llama3-8b, num_hidden_layers: 2}";
	static const char once[] =
		"{extends: torch-2.11-eager, layout: {fsdp_copy_out: 0 B}}";
	char name[64];
	const char *path = own_path(name, "stack.yaml");
	FILE *f = fopen(path, "w");
	struct parts a, b;

	(void)state;
	fputs(once, f);
	fclose(f);
	build(&a, model, plan, "torch-2.11-eager", 8);
	build(&b, model, plan, path, 8);
	unlink(path);
	/* embedding, head, and the last norm */
	near_frac(most_other(a.graph) - most_other(b.graph),
		  2 * (2 * 128256.0 + 1) * 4096, 1e-9);
	drop(&a);
	drop(&b);
}

/* Of a layer's two norms the first, backward. */
static uint64_t mixed(const char *model, const char *stack, const char *training,
		      int gpus)
{
	struct arena mem = { 0 };
	uint64_t n = 0;
	struct parts p;

	build(&p, model,
	      arena_printf(&mem, "{global_batch_size: 16, sharding: fsdp, %s}",
			   training),
	      stack, gpus);
	for (size_t i = 0; i < p.graph->n_works; i++)
		if (p.graph->work[i].kind == FT_MEMORY_BOUND &&
		    !strcmp(p.graph->work[i].memory.kernel, "rmsnorm_mixed"))
			n += (uint64_t)times_of(p.graph, &p.graph->work[i]);
	drop(&p);
	arena_release(&mem);
	return n;
}

/* Only in 8 bit, with one sequence of at least two tokens a feature, whole and compiled. */
static void a_compiler_joins_a_norm_with_its_casts_where_rows_are_many(void **state)
{
	static const char llama[] =
		"{name: llama3-8b, num_hidden_layers: 3}"; /* 4096 */
	static const char gpt[] = "{name: gpt-1.5b, num_hidden_layers: 3}";
	static const char c[] = "torch-2.11-compile";
	static const char is[] =
		"sequence_length: 8192, micro_batch_size: 1, precision: fp8";

	(void)state;
	assert_int_equal(mixed(llama, c, is, 8), 2 * 3);
	assert_int_equal(mixed(llama, "torch-2.11-eager", is, 8), 0);
	assert_int_equal(mixed(gpt, c, is, 8), 0);
	assert_int_equal(
		mixed(llama, c,
		      "sequence_length: 8190, micro_batch_size: 1, precision: fp8", 8),
		0);
	assert_int_equal(
		mixed(llama, c,
		      "sequence_length: 8192, micro_batch_size: 2, precision: fp8", 8),
		0);
	assert_int_equal(
		mixed(llama, c,
		      "sequence_length: 8192, micro_batch_size: 1, precision: bf16", 8),
		0);
	assert_int_equal(mixed(llama, c,
			       "sequence_length: 8192, micro_batch_size: 1, precision: "
			       "fp8, parallel: {tp: 2}",
			       8),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kernel_touches_what_it_must),
		cmocka_unit_test(a_unit_that_is_copied_out_is_held_twice),
		cmocka_unit_test(
			a_compiler_joins_a_norm_with_its_casts_where_rows_are_many),
		cmocka_unit_test(kernels_of_the_stream_do_not_grow_with_the_mlp),
	};

	return cmocka_run_group_tests_name("elements", tests, NULL, NULL);
}
