/*
 * tests/test_operator.c - recorded operators as work: shapes written down, and what they are
 *
 * Arguments are those of PyTorch's profiler with record_shapes. The work expected is
 * written as one line: kind, format, then its numbers; "~" before it when the arguments'
 * bytes alone say it.
 */
#include "tests/check.h"

#include "recorded/operator.h"

struct recorded {
	const char *name, *args, *kernel;
	const char *work; /* "": cannot be told */
};

static void write_work(const struct ft_rec_work *w, char *to, size_t n)
{
	static const char *const layouts[] = { "forward", "dgrad", "wgrad" };
	const char *dtype = ft_dtype_name(w->work.dtype), *mark = w->exact ? "" : "~";

	if (w->work.kind == FT_GEMM)
		snprintf(to, n, "%sgemm %s %s %lld x %lld x %lld groups %lld", mark,
			 dtype, layouts[w->work.gemm.layout], (long long)w->work.gemm.m,
			 (long long)w->work.gemm.n, (long long)w->work.gemm.k,
			 (long long)w->work.gemm.groups);
	else if (w->work.kind == FT_ATTENTION)
		snprintf(to, n,
			 "%sattention %s %s %s batch %lld heads %lld/%lld %lld x %lld "
			 "dim %lld%s",
			 mark, dtype, w->work.attention.impl,
			 w->work.attention.pass == FT_PASS_BACKWARD ? "backward" :
								      "forward",
			 (long long)w->work.attention.batch,
			 (long long)w->work.attention.heads,
			 (long long)w->work.attention.kv_heads,
			 (long long)w->work.attention.queries,
			 (long long)w->work.attention.keys,
			 (long long)w->work.attention.qk_head_dim,
			 w->work.attention.causal ? " causal" : "");
	else if (!w->exact)
		snprintf(to, n, "~%.0f bytes", w->work.memory.bytes);
	else
		snprintf(to, n, "%s %s %.0f bytes, %.0f rows of %.0f",
			 w->work.memory.kernel, dtype, w->work.memory.bytes, w->rows,
			 w->row);
}

static void all_are(const struct recorded *r, size_t n)
{
	size_t bad = 0;

	for (size_t i = 0; i < n; i++) {
		json_error_t why;
		json_t *args = json_loads(r[i].args, 0, &why);
		struct ft_rec_work w;
		char line[300] = "";

		if (!args)
			fail_msg("%s: %s", r[i].args, why.text);
		if (operator_work(r[i].name, args, r[i].kernel ? r[i].kernel : "", &w))
			write_work(&w, line, sizeof(line));
		if (strcmp(line, r[i].work)) {
			print_error("%s %s\nis     '%s'\nwanted '%s'\n", r[i].name,
				    r[i].args, line, r[i].work);
			bad++;
		}
		json_decref(args);
	}
	assert_int_equal(bad, 0);
}
#define ALL_ARE(r) all_are(r, sizeof(r) / sizeof(*(r)))

#define BF16 "\"c10::BFloat16\""
#define TWO "\"Input type\": [" BF16 ", " BF16 "]"

static void products_are_told_by_shape_and_stride(void **state)
{
	static const struct recorded r[] = {
		/* x [64, 32] times w^T: w is [16, 32] turned */
		{ "aten::mm",
		  "{\"Input Dims\": [[64, 32], [32, 16]], " TWO
		  ", \"Input Strides\": [[32, 1], [1, 32]]}",
		  NULL, "gemm bf16 forward 64 x 16 x 32 groups 1" },
		/* dy [64, 16] times w [16, 32] */
		{ "aten::mm",
		  "{\"Input Dims\": [[64, 16], [16, 32]], " TWO
		  ", \"Input Strides\": [[16, 1], [32, 1]]}",
		  NULL, "gemm bf16 dgrad 64 x 16 x 32 groups 1" },
		/* dy^T [16, 64] times x [64, 32] */
		{ "aten::mm",
		  "{\"Input Dims\": [[16, 64], [64, 32]], " TWO
		  ", \"Input Strides\": [[1, 16], [32, 1]]}",
		  NULL, "gemm bf16 wgrad 64 x 16 x 32 groups 1" },
		/* older recordings tell no strides */
		{ "aten::mm", "{\"Input Dims\": [[64, 32], [32, 16]], " TWO "}", NULL,
		  "gemm bf16 forward 64 x 16 x 32 groups 1" },
		{ "aten::_scaled_mm",
		  "{\"Input Dims\": [[64, 32], [32, 16]], \"Input type\": "
		  "[\"c10::Float8_e4m3fn\", \"c10::Float8_e4m3fn\"]}",
		  NULL, "gemm fp8 forward 64 x 16 x 32 groups 1" },
		{ "aten::addmm",
		  "{\"Input Dims\": [[16], [64, 32], [32, 16]], \"Input type\": [" BF16
		  ", " BF16 ", " BF16 "]}",
		  NULL, "gemm bf16 forward 64 x 16 x 32 groups 1" },
		{ "aten::linear",
		  "{\"Input Dims\": [[2, 8, 32], [16, 32], [16]], \"Input type\": "
		  "[\"float\", \"float\", \"float\"]}",
		  NULL, "gemm fp32 forward 16 x 16 x 32 groups 1" },
		{ "aten::bmm", "{\"Input Dims\": [[4, 64, 32], [4, 32, 16]], " TWO "}",
		  NULL, "~gemm bf16 forward 256 x 16 x 32 groups 4" },
		{ "aten::baddbmm",
		  "{\"Input Dims\": [[4, 64, 16], [4, 64, 32], [4, 32, 16]], "
		  "\"Input type\": [\"Half\", \"Half\", \"Half\"]}",
		  NULL, "~gemm fp16 forward 256 x 16 x 32 groups 4" },
		/* rows shared out over four experts */
		{ "aten::_grouped_mm",
		  "{\"Input Dims\": [[64, 32], [4, 32, 16], [4]], " TWO "}", NULL,
		  "~gemm bf16 forward 64 x 16 x 32 groups 4" },
		/* the gradient of their weights: the inner side is shared out */
		{ "aten::_grouped_mm",
		  "{\"Input Dims\": [[32, 64], [64, 16], [4]], " TWO "}", NULL,
		  "~gemm bf16 wgrad 64 x 32 x 16 groups 4" },
	};

	(void)state;
	ALL_ARE(r);
}

/* Bytes in, and as much written as the largest. */
static void products_of_another_shape_count_their_bytes(void **state)
{
	static const struct recorded r[] = {
		{ "aten::mm", "{\"Input Dims\": [[64, 32], [31, 16]], " TWO "}", NULL,
		  "~9184 bytes" },
		{ "aten::mm", "{\"Input Dims\": [[64], [64, 16]], " TWO "}", NULL,
		  "~4224 bytes" },
		{ "aten::mm", "{\"Input Dims\": [[64, 32], [32]], " TWO "}", NULL,
		  "~8256 bytes" },
		{ "aten::mm",
		  "{\"Input Dims\": [[64, 32], [32, 16]], \"Input type\": [\"int\", "
		  "\"int\"]}",
		  NULL, "~18432 bytes" },
		{ "aten::mm", "{\"Input Dims\": [[0, 32], [32, 16]], " TWO "}", NULL,
		  "~2048 bytes" },
		{ "aten::bmm", "{\"Input Dims\": [[4, 64, 32], [32, 16]], " TWO "}",
		  NULL, "~33792 bytes" },
		{ "aten::bmm", "{\"Input Dims\": [[64, 32], [4, 32, 16]], " TWO "}",
		  NULL, "~12288 bytes" },
		{ "aten::bmm",
		  "{\"Input Dims\": [[4, 64, 32], [4, 32, 16]], \"Input type\": "
		  "[\"bool\", \"bool\"]}",
		  NULL, "~18432 bytes" },
		{ "aten::bmm", "{\"Input Dims\": [[0, 64, 32], [4, 32, 16]], " TWO "}",
		  NULL, "~8192 bytes" },
		{ "aten::_grouped_mm",
		  "{\"Input Dims\": [[4, 64, 32], [4, 32, 16], [4]], " TWO "}", NULL,
		  "~36864 bytes" },
		{ "aten::_grouped_mm",
		  "{\"Input Dims\": [[64, 32], [0, 32, 16], [4]], " TWO "}", NULL,
		  "~8192 bytes" },
		{ "aten::linear", "{\"Input Dims\": [[], [16, 32]], " TWO "}", NULL,
		  "~2048 bytes" },
		{ "aten::linear", "{\"Input Dims\": [[8, 32], [32]], " TWO "}", NULL,
		  "~1088 bytes" },
		{ "aten::linear",
		  "{\"Input Dims\": [[8, 32], [16, 32]], \"Input type\": [\"double\", "
		  "\"double\"]}",
		  NULL, "~10240 bytes" },
		/* elements of 8, 4, 2 and 1 bytes; a list has no type */
		{ "aten::index",
		  "{\"Input Dims\": [[3], [5], [7], [11], [13], []], \"Input type\": "
		  "[\"long int\", \"int\", \"short int\", \"unsigned char\", "
		  "\"TensorList\", \"Scalar\"]}",
		  NULL, "~93 bytes" },
		/* none that is known, or not of the framework */
		{ "aten::index", "{\"Input Dims\": [], \"Input type\": []}", NULL, "" },
		{ "aten::index", "{}", NULL, "" },
		{ "mine::mm", "{\"Input Dims\": [[64, 32], [32, 16]], " TWO "}", NULL,
		  "" },
	};

	(void)state;
	ALL_ARE(r);
}

/* A factor of one dimension more is none of these products. */
static void no_product_has_a_dimension_more(void **state)
{
	static const struct {
		const char *name, *dims;
		size_t factor
			[2]; /* which of them; the same twice: the other may be any */
	} r[] = {
		{ "aten::mm", "[[64, 32], [32, 16]]", { 0, 1 } },
		{ "aten::_scaled_mm", "[[64, 32], [32, 16]]", { 0, 1 } },
		{ "aten::addmm", "[[16], [64, 32], [32, 16]]", { 1, 2 } },
		{ "aten::linear", "[[2, 8, 32], [16, 32], [16]]", { 1, 1 } },
		{ "aten::bmm", "[[4, 64, 32], [4, 32, 16]]", { 0, 1 } },
		{ "aten::baddbmm",
		  "[[4, 64, 16], [4, 64, 32], [4, 32, 16]]",
		  { 1, 2 } },
		{ "aten::_grouped_mm", "[[64, 32], [4, 32, 16], [4]]", { 0, 1 } },
		{ "aten::_grouped_mm", "[[32, 64], [64, 16], [4]]", { 0, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(r) / sizeof(*r); i++) {
		json_t *dims = json_loads(r[i / 2].dims, 0, NULL);
		json_t *args = json_pack("{s:o, s:[s, s, s]}", "Input Dims", dims,
					 "Input type", "c10::BFloat16", "c10::BFloat16",
					 "c10::BFloat16");
		struct ft_rec_work w;

		assert_true(operator_work(r[i / 2].name, args, "", &w));
		assert_int_equal(w.work.kind, FT_GEMM);
		json_array_append_new(json_array_get(dims, r[i / 2].factor[i % 2]),
				      json_integer(16));
		assert_true(operator_work(r[i / 2].name, args, "", &w));
		if (w.work.kind == FT_GEMM)
			fail_msg("%s %s with 16 more in %zu", r[i / 2].name,
				 r[i / 2].dims, r[i / 2].factor[i % 2]);
		json_decref(args);
	}
}

static void attention_is_told_by_its_kernel_and_shape(void **state)
{
#define QKV(q, k) \
	"\"Input Dims\": [" q ", " k ", " k "], \"Input type\": [" BF16 ", " BF16 \
	", " BF16 "]"
	static const struct recorded r[] = {
		/* batch, sequence, heads, dim */
		{ "aten::_flash_attention_forward",
		  "{" QKV("[2, 128, 8, 64]",
			  "[2, 256, 4, 64]") ", \"Concrete Inputs\": [\"\", \"\", \"\", "
					     "\"\", \"\", \"\", \"\", \"\", \"True\"]}",
		  "flash_fwd_kernel",
		  "attention bf16 fa2 forward batch 2 heads 8/4 128 x 256 dim 64 "
		  "causal" },
		/* batch, heads, sequence, dim */
		{ "aten::_scaled_dot_product_cudnn_attention",
		  "{" QKV("[2, 8, 128, 64]",
			  "[2, 4, 256, 64]") ", \"Concrete Inputs\": [\"\", \"\", \"\", "
					     "\"\", \"\", \"\", \"False\"]}",
		  "cudnn_generated",
		  "attention bf16 cudnn forward batch 2 heads 8/4 128 x 256 dim 64" },
		{ "aten::_scaled_dot_product_cudnn_attention",
		  "{" QKV("[2, 8, 128, 64]",
			  "[2, 4, 256, 64]") ", \"Concrete Inputs\": [\"\", \"\", \"\", "
					     "\"\", \"\", \"\", \"1\"]}",
		  "attn_fwd",
		  "attention bf16 triton forward batch 2 heads 8/4 128 x 256 dim 64 "
		  "causal" },
		/* the gradient first, then the query */
		{ "aten::_scaled_dot_product_flash_attention_backward",
		  "{\"Input Dims\": [[2, 8, 128, 64], [2, 8, 128, 64], [2, 4, 256, "
		  "64]], "
		  "\"Input type\": [" BF16 ", " BF16 ", " BF16 "]}",
		  "bwd_kernel_dk_dv",
		  "attention bf16 triton backward batch 2 heads 8/4 128 x 256 dim "
		  "64" },
		{ "aten::_scaled_dot_product_efficient_attention",
		  "{" QKV("[2, 8, 128, 64]", "[2, 8, 128, 64]") "}", "aiter_fmha_fwd",
		  "attention bf16 aiter forward batch 2 heads 8/8 128 x 128 dim 64" },
		{ "aten::_efficient_attention_forward",
		  "{" QKV("[2, 128, 8, 64]", "[2, 128, 8, 64]") "}", "fmha_cutlassF",
		  "attention bf16 torch forward batch 2 heads 8/8 128 x 128 dim 64" },
		/* of another shape, or empty: their bytes */
		{ "aten::_flash_attention_forward",
		  "{" QKV("[128, 8, 64]", "[2, 128, 8, 64]") "}", "flash_fwd_kernel",
		  "~917504 bytes" },
		{ "aten::_flash_attention_forward",
		  "{" QKV("[2, 128, 8, 64]", "[128, 8, 64]") "}", "flash_fwd_kernel",
		  "~786432 bytes" },
		{ "aten::_flash_attention_forward",
		  "{" QKV("[2, 128, 8, 64]", "[2, 0, 8, 64]") "}", "flash_fwd_kernel",
		  "~524288 bytes" },
		{ "aten::_flash_attention_forward",
		  "{" QKV("[2, 0, 8, 64]", "[2, 128, 8, 64]") "}", "flash_fwd_kernel",
		  "~786432 bytes" },
		{ "aten::_flash_attention_forward",
		  "{\"Input Dims\": [[1, 1, 1, 1], [1, 1, 1, 1]], \"Input type\": "
		  "[\"int\", \"int\"]}",
		  "flash_fwd_kernel", "~12 bytes" },
	};
#undef QKV

	(void)state;
	ALL_ARE(r);
}

static void kernels_bound_by_memory_are_told_by_rows(void **state)
{
	static const struct recorded r[] = {
		/* 4 rows of 8 in bf16: 64 bytes read, 64 written */
		{ "aten::silu",
		  "{\"Input Dims\": [[4, 8]], \"Input Strides\": [[8, 1]], "
		  "\"Input type\": [" BF16 "]}",
		  NULL, "silu bf16 128 bytes, 4 rows of 8" },
		{ "aten::add",
		  "{\"Input Dims\": [[4, 8], [4, 8]], \"Input Strides\": [[8, 1], [8, "
		  "1]], " TWO "}",
		  NULL, "add bf16 192 bytes, 4 rows of 8" },
		/* copy_ writes its first argument: 2 x 64 */
		{ "aten::copy_",
		  "{\"Input Dims\": [[4, 8], [4, 8]], \"Input Strides\": [[8, 1], [8, "
		  "1]], " TWO "}",
		  NULL, "copy bf16 128 bytes, 4 rows of 8" },
		/* to bf16 from fp32: 4 + 2 bytes an element */
		{ "aten::copy_",
		  "{\"Input Dims\": [[4, 8], [4, 8]], \"Input Strides\": [[8, 1], [8, "
		  "1]], \"Input type\": [" BF16 ", \"float\"]}",
		  NULL, "cast bf16 192 bytes, 4 rows of 8" },
		/* the other way, and to fp16, no curve was measured */
		{ "aten::copy_",
		  "{\"Input Dims\": [[4, 8], [4, 8]], \"Input Strides\": [[8, 1], [8, "
		  "1]], \"Input type\": [\"float\", " BF16 "]}",
		  NULL, "~320 bytes" },
		{ "aten::copy_",
		  "{\"Input Dims\": [[4, 8], [4, 8]], \"Input Strides\": [[8, 1], [8, "
		  "1]], \"Input type\": [" BF16 ", \"Half\"]}",
		  NULL, "~192 bytes" },
		{ "aten::add",
		  "{\"Input Dims\": [[4, 8], [4, 8]], \"Input Strides\": [[8, 1], [8, "
		  "1]], \"Input type\": [" BF16 ", \"float\"]}",
		  NULL, "~320 bytes" },
		/* not one behind another; of two shapes; of no type */
		{ "aten::silu",
		  "{\"Input Dims\": [[4, 8]], \"Input Strides\": [[16, 1]], "
		  "\"Input type\": [" BF16 "]}",
		  NULL, "~128 bytes" },
		{ "aten::add",
		  "{\"Input Dims\": [[4, 8], [8]], \"Input Strides\": [[8, 1], [1]], " TWO
		  "}",
		  NULL, "~144 bytes" },
		{ "aten::add",
		  "{\"Input Dims\": [[4, 8], [4, 8]], \"Input Strides\": [[8, 1], "
		  "[1, 4]], " TWO "}",
		  NULL, "~192 bytes" },
		{ "aten::add",
		  "{\"Input Dims\": [[4, 8], [4, 8]], \"Input Strides\": [[8, 1], [8, "
		  "1]], \"Input type\": [" BF16 ", \"long int\"]}",
		  NULL, "~576 bytes" },
		{ "aten::silu",
		  "{\"Input Dims\": [[0, 8]], \"Input Strides\": [[8, 1]], "
		  "\"Input type\": [" BF16 "]}",
		  NULL, "" },
		/* a dimension of one has any stride */
		{ "aten::silu",
		  "{\"Input Dims\": [[1, 8]], \"Input Strides\": [[5, 1]], "
		  "\"Input type\": [" BF16 "]}",
		  NULL, "silu bf16 32 bytes, 1 rows of 8" },
		/* vLLM's writes its first argument, torch's has the weight second */
		{ "_C::rms_norm",
		  "{\"Input Dims\": [[4, 8], [4, 8], [8]], \"Input Strides\": [[8, 1], "
		  "[8, 1], [1]], \"Input type\": [" BF16 ", " BF16 ", " BF16 "]}",
		  NULL, "rmsnorm bf16 208 bytes, 4 rows of 8" },
		{ "aten::_fused_rms_norm",
		  "{\"Input Dims\": [[4, 8], [], [8]], \"Input Strides\": [[8, 1], [], "
		  "[1]], \"Input type\": [" BF16 ", \"ScalarList\", " BF16 "]}",
		  NULL, "rmsnorm bf16 144 bytes, 4 rows of 8" },
	};

	(void)state;
	ALL_ARE(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_are_told_by_shape_and_stride),
		cmocka_unit_test(products_of_another_shape_count_their_bytes),
		cmocka_unit_test(no_product_has_a_dimension_more),
		cmocka_unit_test(attention_is_told_by_its_kernel_and_shape),
		cmocka_unit_test(kernels_bound_by_memory_are_told_by_rows),
	};

	return cmocka_run_group_tests_name("operator", tests, NULL, NULL);
}
