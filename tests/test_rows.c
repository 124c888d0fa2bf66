/* tests/test_rows.c - rows of single kernels and collectives: predicted as asked, refused with reasons */
#include <unistd.h>

#include "foretoken/study.h"
#include "tests/check.h"

static struct ft_validation *validated(const char *text, struct ft_error *err)
{
	char path[64];
	struct ft_validation *v;
	FILE *f;

	snprintf(path, sizeof(path), "build/test_rows.%ld.csv", (long)getpid());
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	v = ft_validate(path, NULL, 0, (struct ft_progress){ 0 }, err);
	unlink(path);
	return v;
}

static struct ft_validation *valid(const char *text)
{
	struct ft_error err;
	struct ft_validation *v = validated(text, &err);

	ok_or_say(v, err);
	return v;
}

#define COLLECTIVES \
	"op,gpu,gpus,nodes,fabric,bytes,measured.time_us,measured.busbw_gb_per_s\n"

/* A row's time and a row's bus bandwidth are one prediction: 2 (n-1) / n S / t. */
static void a_collective_row_says_time_or_bandwidth(void **state)
{
	struct ft_validation *v = valid(
		COLLECTIVES "all_reduce,h100-sxm,8,1,nvlink,268435456,1000,\n"
			    "all_reduce,h100-sxm,8,1,nvlink,268435456,,400\n"
			    "all_gather,h100-sxm,16,2,ib-ndr-rail,268435456,1000,\n"
			    "all_gather,h100-sxm,16,2,ib-ndr-rail,268435456,,300\n");
	const struct ft_check *c = v->check;

	(void)state;
	assert_int_equal(v->n_checks, 4);
	assert_int_equal(v->n_failures, 0);
	assert_string_equal(c[0].key, "time_us");
	assert_string_equal(c[1].key, "busbw_gb_per_s");
	near_frac(c[1].predicted, 268435456 * 1.75 / (c[0].predicted * 1e-6) * 1e-9,
		  1e-9);
	near_frac(c[3].predicted,
		  268435456 * (15.0 / 16) / (c[2].predicted * 1e-6) * 1e-9, 1e-9);
	/* in time: positive is predicted too slow, of a rate too */
	near_frac(c[0].error_frac, c[0].predicted / 1000 - 1, 1e-9);
	near_frac(c[1].error_frac, 400 / c[1].predicted - 1, 1e-9);
	for (int i = 0; i < 4; i++) {
		near_frac(c[i].low * c[i].high, c[i].predicted * c[i].predicted, 1e-9);
		assert_true(c[i].low < c[i].predicted && c[i].high > c[i].predicted);
		assert_int_equal(c[i].inside, c[i].low <= c[i].measured &&
						      c[i].measured <= c[i].high);
	}
	assert_string_equal(c[0].group, "h100-sxm all_reduce x8");
	assert_string_equal(c[2].group, "h100-sxm all_gather x16");
	ft_validation_free(v);
}

/* A ring through NICs of 50 GB/s, one for each GPU of a node that takes part: 2 (n-1) / n S
 * by as many; in one node the links are faster. */
static void a_collective_runs_on_as_many_nodes_as_its_row_says(void **state)
{
	static const int nodes[] = { 1, 2, 4, 8 };
	double us[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		char text[300];
		struct ft_validation *v;

		snprintf(text, sizeof(text),
			 COLLECTIVES
			 "all_reduce,h100-sxm,8,%d,ib-ndr-rail,1073741824,9,\n",
			 nodes[i]);
		v = valid(text);
		assert_int_equal(v->n_checks, 1);
		us[i] = v->check[0].predicted;
		ft_validation_free(v);
	}
	for (int i = 1; i < 4; i++) {
		double least = 1.75 * 1073741824 / (50e9 * 8 / nodes[i]) * 1e6;

		assert_true(us[i] > least && us[i] < 1.2 * least);
	}
	assert_true(us[0] < 0.6 * us[1]);
}

static void failures_say(const char *head, const char *const (*row)[2], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char text[1024];
		struct ft_validation *v;

		snprintf(text, sizeof(text), "%s%s\n", head, row[i][0]);
		v = valid(text);
		assert_int_equal(v->n_checks, 0);
		assert_int_equal(v->n_failures, 1);
		if (!strstr(v->failure[0].reason, row[i][1]))
			fail_msg("%s says: %s", row[i][0], v->failure[0].reason);
		ft_validation_free(v);
	}
}

static void a_bad_collective_row_says_why(void **state)
{
	static const char *const rows[][2] = {
		{ "all_sum,h100-sxm,8,1,nvlink,1024,9,", "unknown op 'all_sum'" },
		{ "all_reduce,h999,8,1,nvlink,1024,9,", "unknown name 'h999'" },
		{ "all_reduce,h100-sxm,,1,nvlink,1024,9,", "lacks gpus or bytes" },
		{ "all_reduce,h100-sxm,8,1,nvlink,,9,", "lacks gpus or bytes" },
		{ "all_reduce,h100-sxm,-8,1,nvlink,1024,9,", "out of range" },
		{ "all_reduce,h100-sxm,1,1,nvlink,1024,9,", "at least 2 GPUs" },
		{ "all_reduce,h100-sxm,16,1,nvlink,1024,9,",
		  ".csv:2:12: nvlink joins 8 ranks of h100-sxm inside a node, not 16" },
		{ "all_reduce,h100-sxm,16,1,ib-ndr-rail,1024,9,",
		  "1 node of 8 GPUs cannot hold 16" },
		{ "all_reduce,h100-sxm,2,4,ib-ndr-rail,1024,9,",
		  "2 GPUs cannot be spread evenly over 4 nodes" },
		{ "all_reduce,h100-sxm,6,2,ib-ndr-rail,1024,9,",
		  "3 of the 8 GPUs of each node are not simulated" },
		{ "all_reduce,h100-sxm,8,2e15,nvlink,1024,9,", "out of range" },
		{ "all_reduce,h100-sxm,8,1,nvlink,1024,,",
		  "no measured.time_us and no" },
		{ "all_reduce,h100-sxm,8,1,nvlink,1024,soon,", "soon" },
		{ "all_reduce,h100-sxm,16,2,none,1024,9,", "connects no nodes" },
		{ "all_reduce,h100-sxm,16,2,no-such,1024,9,",
		  "unknown name 'no-such'" },
	};

	(void)state;
	failures_say(COLLECTIVES, rows, sizeof(rows) / sizeof(*rows));
}

#define KERNELS \
	"kernel,gpu,dtype,layout,clock,warm,m,n,k,impl,pass,batch,heads,kv_heads," \
	"sequence_length,head_dim,causal,bytes,measured.time_us,measured.tflops\n"

static double one_us(const char *row)
{
	char text[1024];
	struct ft_validation *v;
	double us;

	snprintf(text, sizeof(text), "%s%s\n", KERNELS, row);
	v = valid(text);
	if (v->n_failures)
		fail_msg("%s: %s", row, v->failure[0].reason);
	assert_int_equal(v->n_checks, 1);
	us = v->check[0].predicted;
	ft_validation_free(v);
	return us;
}

/* Each column is read: another value, another time, in the direction that it must have. */
static void each_column_of_a_kernel_row_counts(void **state)
{
	const char *gemm = "gemm,h100-sxm,bf16,,,,4096,4096,4096,,,,,,,,,,9,";
	const char *attention =
		"attention,h100-sxm,bf16,,,,,,,cudnn,forward,1,32,8,4096,128,true,,9,";
	double us = one_us(gemm), a = one_us(attention);

	(void)state;
	assert_true(one_us("gemm,h200,bf16,,,,4096,4096,4096,,,,,,,,,,9,") != us);
	assert_true(one_us("gemm,h100-sxm,fp8,,,,4096,4096,4096,,,,,,,,,,9,") < us);
	assert_true(one_us("gemm,h200,bf16,dgrad,,,4096,4096,4096,,,,,,,,,,9,") >
		    one_us("gemm,h200,bf16,,,,4096,4096,4096,,,,,,,,,,9,"));
	assert_true(
		one_us("gemm,h100-sxm,bf16,,sustained,,4096,4096,4096,,,,,,,,,,9,") >
		us);
	assert_true(one_us("gemm,h100-sxm,bf16,,,,8192,4096,4096,,,,,,,,,,9,") > us);
	assert_true(one_us("gemm,h100-sxm,bf16,,,,4096,8192,4096,,,,,,,,,,9,") > us);
	assert_true(one_us("gemm,h100-sxm,bf16,,,,4096,4096,8192,,,,,,,,,,9,") > us);
	assert_true(
		one_us("attention,h100-sxm,bf16,,,,,,,cudnn,backward,1,32,8,4096,128,"
		       "true,,9,") > 1.5 * a);
	near_frac(
		one_us("attention,h100-sxm,bf16,,,,,,,cudnn,both,1,32,8,4096,128,true,,"
		       "9,") /
			a,
		3.5, 0.25);
	assert_true(
		one_us("attention,h100-sxm,bf16,,,,,,,cudnn,forward,2,32,8,4096,128,"
		       "true,,9,") > 1.5 * a);
	assert_true(
		one_us("attention,h100-sxm,bf16,,,,,,,cudnn,forward,1,64,8,4096,128,"
		       "true,,9,") > 1.5 * a);
	assert_true(
		one_us("attention,h100-sxm,bf16,,,,,,,cudnn,forward,1,32,8,8192,128,"
		       "true,,9,") > 3 * a);
	assert_true(
		one_us("attention,h100-sxm,bf16,,,,,,,cudnn,forward,1,32,8,4096,128,"
		       "false,,9,") > 1.4 * a);
	assert_true(one_us("attention,h100-sxm,bf16,,,,,,,fa2,forward,1,32,8,4096,128,"
			   "true,,9,") > a);
}

/* As each_column_of_a_kernel_row_counts(), of the columns that few files have. */
static void groups_gradients_and_values_count(void **state)
{
	static const char *const head = "kernel,gpu,dtype,layout,m,n,k,groups,"
					"accumulate,pass,heads,sequence_length,"
					"head_dim,v_head_dim,causal,measured.time_us\n";
	static const char *const rows[] = {
		"gemm,h100-sxm,bf16,wgrad,8192,2048,2048,,,,,,,,,9",
		"gemm,h100-sxm,bf16,wgrad,8192,2048,2048,,true,,,,,,,9",
		"gemm,h100-sxm,bf16,forward,8192,2048,2048,,,,,,,,,9",
		"gemm,h100-sxm,bf16,forward,8192,2048,2048,64,,,,,,,,9",
		"attention,h100-sxm,bf16,,,,,,,forward,32,4096,192,,true,9",
		"attention,h100-sxm,bf16,,,,,,,forward,32,4096,192,128,true,9",
		"attention,h100-sxm,bf16,,,,,,,forward,32,4096,160,160,true,9",
	};
	double us[7];

	(void)state;
	for (int i = 0; i < 7; i++) {
		char text[512];
		struct ft_validation *v;

		snprintf(text, sizeof(text), "%s%s\n", head, rows[i]);
		v = valid(text);
		assert_int_equal(v->n_checks, 1);
		us[i] = v->check[0].predicted;
		ft_validation_free(v);
	}
	assert_true(us[1] > us[0]);
	assert_true(us[3] > 1.2 * us[2]); /* 64 weights to load instead of one */
	assert_true(us[5] < us[4]);
	near_frac(us[5], us[6],
		  1e-9); /* multi-head latent attention: the mean counts */
}

static void a_memory_row_counts_its_source(void **state)
{
	double by_shape = one_us("copy,h100-sxm,bf16,,,,8192,8192,,,,,,,,,,,9,");

	(void)state;
	near_frac(one_us("copy,h100-sxm,bf16,,,,,,,,,,,,,,,134217728,9,"), by_shape,
		  1e-9);
	near_frac(one_us("copy,h100-sxm,fp32,,,,4096,8192,,,,,,,,,,,9,"), by_shape,
		  1e-9);
	assert_true(one_us("copy,h100-sxm,bf16,,,true,8192,8192,,,,,,,,,,,9,") <
		    by_shape);
	assert_true(one_us("add,h100-sxm,bf16,,,,8192,8192,,,,,,,,,,,9,") >
		    1.3 * by_shape); /* three bytes moved for two */
	assert_true(one_us("rmsnorm,h100-sxm,bf16,,,,16384,2048,,,,,,,,,,,9,") !=
		    one_us("rmsnorm,h100-sxm,bf16,,,,4096,8192,,,,,,,,,,,9,"));
}

static void a_rate_is_the_same_prediction(void **state)
{
	struct ft_validation *v =
		valid(KERNELS "gemm,h100-sxm,bf16,,,,4096,4096,4096,,,,,,,,,,200,\n"
			      "gemm,h100-sxm,bf16,,,,4096,4096,4096,,,,,,,,,,,700\n");

	(void)state;
	assert_int_equal(v->n_checks, 2);
	near_frac(v->check[1].predicted,
		  2 * 4096.0 * 4096 * 4096 / (v->check[0].predicted * 1e-6) * 1e-12,
		  1e-9);
	assert_string_equal(v->check[0].group, "h100-sxm gemm bf16");
	ft_validation_free(v);
}

static void a_bad_kernel_row_says_why(void **state)
{
	static const char *const rows[][2] = {
		{ "gemm,h100-sxm,bf7,,,,64,64,64,,,,,,,,,,9,",
		  ".csv:2:1: unknown dtype 'bf7'; it is one such as bf16" },
		{ "gemmm,h100-sxm,bf16,,,,64,64,64,,,,,,,,,,9,",
		  ".csv:2:1: unknown kernel 'gemmm'; with k it is called gemm" },
		{ "flash,h100-sxm,bf16,,,,64,64,,,,1,8,8,,,,,9,",
		  "unknown kernel 'flash'; with heads it is called attention" },
		{ "gemm,h100-sxm,bf16,,,,,64,64,,,,,,,,,,9,", "lacks m" },
		{ "gemm,h100-sxm,bf16,,,,64,,64,,,,,,,,,,9,", "lacks n" },
		{ "gemm,h100-sxm,bf16,,,,64,64,,,,,,,,,,,9,", "lacks k" },
		{ "gemm,h100-sxm,bf16,,,,64,64,-1,,,,,,,,,,9,", "k is out of range" },
		{ "gemm,h100-sxm,bf16,,,,64,64,64,,,,,,,,,,,",
		  "no measured.time_us and" },
		{ "gemm,h999,bf16,,,,64,64,64,,,,,,,,,,9,", "unknown name 'h999'" },
		{ "attention,h100-sxm,bf16,,,,,,,,,1,,,4096,128,,,9,", "lacks heads" },
		{ "attention,h100-sxm,bf16,,,,,,,,,1,8,8,,128,,,9,", "lacks sequence" },
		{ "copy,h100-sxm,bf16,,,,,,,,,,,,,,,,9,", "neither bytes nor m, n" },
		{ "gemm,h100-sxm,bf16,diagonal,,,64,64,64,,,,,,,,,,9,",
		  "unknown layout 'diagonal'" },
		{ "gemm,h100-sxm,bf16,,,,many,64,64,,,,,,,,,,9,", "is not a number" },
		{ "gemm,h100-sxm,bf16,,,,64,many,64,,,,,,,,,,9,", "is not a number" },
		{ "gemm,h100-sxm,bf16,,,,64,64,many,,,,,,,,,,9,", "is not a number" },
		{ "attention,h100-sxm,bf16,,,,,,,,sideways,1,8,8,4096,128,,,9,",
		  "unknown pass 'sideways'" },
		{ "attention,h100-sxm,bf16,,,,,,,,,0,8,8,4096,128,,,9,",
		  "batch should be above 0" },
		{ "attention,h100-sxm,bf16,,,,,,,,,1,8,0,4096,128,,,9,",
		  "kv_heads should be above 0" },
		{ "attention,h100-sxm,bf16,,,,,,,,,1,8,8,4096,0,,,9,",
		  "head_dim should be above 0" },
		{ "attention,h100-sxm,bf16,,,,,,,,,x,8,8,4096,128,,,9,",
		  "is not a number" },
		{ "attention,h100-sxm,bf16,,,,,,,,,1,x,8,4096,128,,,9,",
		  "is not a number" },
		{ "attention,h100-sxm,bf16,,,,,,,,,1,8,8,x,128,,,9,",
		  "is not a number" },
		{ "attention,h100-sxm,bf16,,,,,,,,,1,8,8,4096,x,,,9,",
		  "is not a number" },
		{ "attention,h100-sxm,bf16,,,,,,,,,1,8,x,4096,128,,,9,",
		  "is not a number" },
		{ "copy,h100-sxm,bf16,,,,,,,,,,,,,,,x,9,", "is not a number" },
		{ "copy,h100-sxm,bf16,,,,x,,,,,,,,,,,,9,", "is not a number" },
		{ "copy,h100-sxm,bf16,,,,4,x,,,,,,,,,,,9,", "is not a number" },
		{ "copy,h100-sxm,bf16,,,,,,,,,,,,,,,-1,9,", "bytes should be above 0" },
		{ "gemm,h100-sxm,bf16,,,,64.5,64,64,,,,,,,,,,9,",
		  "m should be a whole number" },
		{ "attention,h100-sxm,bf16,,,,,,,,,1,8,3,4096,128,,,9,",
		  "heads is not a multiple of kv_heads" },
		{ "gemm,h100-sxm,bf16,,boost,,64,64,64,,,,,,,,,,9,",
		  "clock should be burst or sustained, not 'boost'" },
	};

	(void)state;
	failures_say(KERNELS, rows, sizeof(rows) / sizeof(*rows));
}

static void a_table_of_neither_kind_is_refused(void **state)
{
	struct ft_error err;

	(void)state;
	assert_null(validated(KERNELS "gemm\n", &err));
	assert_non_null(strstr(err.text, "this row has 1 cells"));
	assert_null(validated("kernel,gpu,speed\ngemm,h100-sxm,1\n", &err));
	assert_non_null(strstr(err.text, "unknown column 'speed'"));
	assert_null(validated("op,gpu,speed\nall_reduce,h100-sxm,1\n", &err));
	assert_non_null(strstr(err.text, "unknown column 'speed'"));
	assert_null(validated("model,cluster.gpu,measured.step_ms\nx,y,1\n", &err));
	assert_non_null(strstr(err.text, "did you mean 'measured.step_s'?"));
	assert_int_equal(err.column, 19); /* of the line, as of all mistakes */
	assert_null(validated("model,step_s\nx,1\n", &err));
	assert_non_null(strstr(err.text, "did you mean 'measured.step_s'?"));
}

static void a_file_holds_so_many_gpus(void **state)
{
	char *text = calloc(1, 1 << 16), *end = text;
	struct ft_validation *v;

	(void)state;
	end += sprintf(end, "%s", KERNELS);
	for (int i = 0; i < 34; i++) /* a path is another name for the same */
		end += sprintf(
			end,
			"gemm,%.*shw/gpus/mi100.yaml,bf16,,,,64,64,64,,,,,,,,,,9,\n",
			2 * i,
			"././././././././././././././././././././././././././././././././././././");
	v = valid(text);
	assert_int_equal(v->n_checks, 32);
	assert_int_equal(v->n_failures, 2);
	assert_non_null(strstr(v->failure[0].reason, "too many different GPUs"));
	ft_validation_free(v);
	free(text);
}

#define STEPS \
	"id,model,cluster.gpu,cluster.gpus,stack,training.sequence_length," \
	"training.global_batch_size,training.parallel.pp," \
	"training.parallel.stage_layers,training.recompute_modules,measured.step_s\n"
#define STEP(id, layers) \
	id ",llama3-8b,h100-sxm,8,nemo-24," \
	   "2048,32,4," layers ",,1\n"

/* A cell that begins like a list is one: the stages' layers change the prediction. */
static void a_cell_may_hold_a_list(void **state)
{
	struct ft_validation *v = valid(STEPS STEP("even", "\"[8, 8, 8, 8]\"") STEP(
		"late", "\"[4, 4, 4, 20]\"") STEP("none", ""));

	(void)state;
	assert_int_equal(v->n_checks, 3);
	assert_true(v->check[1].predicted > 1.5 * v->check[0].predicted);
	assert_true(v->check[2].predicted < 1.2 * v->check[0].predicted);
	ft_validation_free(v);
}

/* One that is broken, or that the key does not take, is told with its row and column. */
static void a_broken_list_has_its_place(void **state)
{
	static const char *const cells[] = { "\"[8, 8, 8, 8\"", "\"[8, 8, 16]\"",
					     "\"[8, 8, 8, x]\"", "[[8]" };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		char text[900];
		struct ft_validation *v;
		const char *says;

		snprintf(text, sizeof(text),
			 STEPS STEP("good", "\"[8, 8, 8, 8]\"") STEP("bad", "%s"),
			 cells[i]);
		v = valid(text);
		assert_int_equal(v->n_checks, 1);
		assert_int_equal(v->n_failures, 1);
		says = v->failure[0].reason;
		if (!strstr(says, ".csv:3:44: "))
			fail_msg("%s: %s", cells[i], says);
		ft_validation_free(v);
	}
}

/* A row with one value that cannot be held against anything is not scored by its others:
 * rows scored and rows that failed add up to the rows of the file. */
static void a_row_is_scored_or_it_failed(void **state)
{
	static const struct {
		const char *column, *good, *bad, *says;
	} wrong[] = {
		{ "measured.mfu", "0.4", "40", "is a fraction, 0 to 1" },
		{ "measured.tokens_per_s_per_gpu", "900", "0", "should be above 0" },
		{ "measured.mfu", "0.4", "\"0,4\"", "a point stands before decimals" },
		{ "measured.mfu", "0.4", "40 %", "it stands alone, in the unit" },
		{ "measured.cost.gpu_power_w", "600", "-600", "not be below 0" },
		{ "measured.tokens_per_s_per_gpu", "900", "-900", "not be below 0" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const char *row = ",llama3-8b,h100-sxm,8,4096,64,3.5,6e10,";
		struct ft_validation *v;
		char text[900];

		snprintf(text, sizeof(text),
			 "id,model,cluster.gpu,cluster.gpus,training.sequence_length,"
			 "training.global_batch_size,measured.step_s,"
			 "measured.memory_bytes_per_gpu.total,%s\n"
			 "good%s%s\nbad%s%s\n",
			 wrong[i].column, row, wrong[i].good, row, wrong[i].bad);
		v = valid(text);
		assert_int_equal(v->n_failures, 1);
		if (!strstr(v->failure[0].reason, wrong[i].says))
			fail_msg("%s: %s", wrong[i].column, v->failure[0].reason);
		assert_int_equal(v->n_checks, 1);
		assert_int_equal(v->summary.n, 1);
		assert_int_equal(v->by_key[0].n, 1);
		ft_validation_free(v);
	}
}

/* Minutes for seconds are told, a step five times as long is not; shares have no other unit, and
 * nothing is known of what is predicted as nothing. */
static void another_unit_is_told_from_an_error(void **state)
{
	static const struct {
		const char *key;
		double measured, predicted;
		bool doubtful;
	} row[] = {
		{ "step_s", 60, 1, true },
		{ "step_s", 1, 60, true },
		{ "step_s", 5, 1, false },
		{ "step_s", 1, 5, false },
		{ "bubble_frac", 0.5, 0.01, false },
		{ "breakdown_s.bubble_s", 1, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		assert_int_equal(ft_check_doubtful(&(struct ft_check){
					 .key = row[i].key,
					 .measured = row[i].measured,
					 .predicted = row[i].predicted }),
				 row[i].doubtful);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cell_may_hold_a_list),
		cmocka_unit_test(a_broken_list_has_its_place),
		cmocka_unit_test(a_row_is_scored_or_it_failed),
		cmocka_unit_test(a_collective_row_says_time_or_bandwidth),
		cmocka_unit_test(a_collective_runs_on_as_many_nodes_as_its_row_says),
		cmocka_unit_test(a_bad_collective_row_says_why),
		cmocka_unit_test(each_column_of_a_kernel_row_counts),
		cmocka_unit_test(groups_gradients_and_values_count),
		cmocka_unit_test(a_memory_row_counts_its_source),
		cmocka_unit_test(a_rate_is_the_same_prediction),
		cmocka_unit_test(a_bad_kernel_row_says_why),
		cmocka_unit_test(a_table_of_neither_kind_is_refused),
		cmocka_unit_test(a_file_holds_so_many_gpus),
		cmocka_unit_test(another_unit_is_told_from_an_error),
	};

	return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
