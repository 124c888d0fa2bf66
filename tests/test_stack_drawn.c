/*
 * tests/test_stack_drawn.c - drawn stacks, one upon another: words, rates, numbers and where they come from, against the files
 */
#include <stddef.h>

#include "base/node.h"
#include "foretoken/stacks.h"
#include "tests/check.h"

/* Files: the stack itself, and the one that it may extend. */
enum { MINE, UNDER, FILES, DRAWS = 120 };
static uint64_t seed = 47;

#define N_OF(list) (sizeof(list) / sizeof(*(list)))
#define PICK(list) (list)[rnd_below(&seed, (int)N_OF(list))]

/* ---- what a stack may say ------------------------------------------------------------------ */

#define AT(field) offsetof(struct ft_stack, field)
#define TRUTH(field) \
	{ \
#field, AT(layout.field) \
	}

static const struct {
	const char *key;
	size_t at;
} truths[] = {
	TRUTH(fused_qkv),
	TRUTH(fused_gate_up),
	TRUTH(sums_each_input),
	TRUTH(model_classes),
	TRUTH(forced_in_turn),
	TRUTH(fused_softmax),
	TRUTH(narrow_softmax),
	TRUTH(autocast),
	TRUTH(autocast_always),
	TRUTH(backward_outside_autocast),
	TRUTH(uncached_autocast),
	TRUTH(masks_always),
	TRUTH(unwrapped_alone),
	TRUTH(pads_products),
	TRUTH(dropout),
	TRUTH(gradient_fusion),
	TRUTH(ignored_experts),
	TRUTH(plain_caps),
	TRUTH(unsharded_pipeline),
	TRUTH(collectives_in_turn),
	TRUTH(whole_gradients),
	TRUTH(all_reduced_gradients),
	TRUTH(broadcast_parts),
	TRUTH(gather_under_forward),
	TRUTH(gathers_twice),
	TRUTH(split_backward),
	TRUTH(dual_pipe),
	TRUTH(autograd_split),
	TRUTH(asks_inputs),
	TRUTH(asks_loss),
	TRUTH(wide_outputs),
	TRUTH(copied_outputs),
	TRUTH(gradients_until_backward),
	TRUTH(static_tiles),
	TRUTH(norm_finalize),
	TRUTH(wide_experts_break),
	TRUTH(experts_as_weights),
	TRUTH(plain_loss),
	TRUTH(inputs_apart),
	TRUTH(adapter_units),
	TRUTH(update_lists),
	TRUTH(loss_in_place),
	TRUTH(host_sync),
	TRUTH(mixed_norms),
	TRUTH(cut_blocks),
	TRUTH(shared_muon),
	TRUTH(scan_layers),
	TRUTH(one_program),
	TRUTH(compiled_update),
	TRUTH(receive_sync),
	TRUTH(messages_in_turn),
	TRUTH(masked_dispatch),
	TRUTH(static_buffers),
	TRUTH(receive_buffers),
	TRUTH(ragged_batch),
	TRUTH(gather_root_again),
	TRUTH(experts_cast_together),
	TRUTH(loss_in_root),
	TRUTH(keeps_outputs),
	TRUTH(narrow_parameters),
	TRUTH(scatter_gather),
	TRUTH(scaled_gradients),
	TRUTH(scaled_in_pipeline),
	TRUTH(windows),
	TRUTH(plain_sinks),
	TRUTH(plain_rotary),
	TRUTH(plain_gates),
	TRUTH(blocking_launches),
};

static const struct {
	const char *key, *unit;
	size_t at;
} amounts[] = {
	{ "fsdp_copy_in", "B", AT(layout.fsdp_copy_in_bytes) },
	{ "fsdp_copy_out", "B", AT(layout.fsdp_copy_out_bytes) },
	{ "fsdp_copy_gradient", "B", AT(layout.fsdp_copy_grad_bytes) },
	{ "table_block", "B", AT(layout.table_block_bytes) },
	{ "table_kept", "B", AT(layout.table_kept_bytes) },
	{ "table_kept_often", "B", AT(layout.table_kept_often_bytes) },
	{ "optimizer", "B", AT(layout.optimizer_bytes) },
	{ "bucket", "B", AT(layout.bucket_bytes) },
	{ "bucket_copy", "B", AT(layout.bucket_copy_bytes) },
	{ "expert_spread", "", AT(layout.expert_spread) },
};

static const struct {
	const char *key, *unit;
	double times; /* in SI */
	size_t at;
} rates[] = {
	{ "gap", "us", 1e-6, AT(gap_s) },
	{ "graphed_kernel", "us", 1e-6, AT(graphed_kernel_s) },
	{ "gemm", "", 1, AT(gemm_factor) },
	{ "attention", "", 1, AT(attention_factor) },
	{ "memory_bound", "", 1, AT(memory_factor) },
	{ "collective", "", 1, AT(collective_factor) },
	{ "dispatcher", "", 1, AT(dispatcher_factor) },
};

static const char *const splits[] = { "tp", "pp", "vpp", "cp", "ep", "etp" };
static const char *const shardings[] = { "ddp", "zero1", "zero2", "fsdp", "hsdp" };
static const char *const generations[] = { "hopper", "ampere", "blackwell" };
static const char *const libraries[] = { "nccl-2.27", "rccl-7", "nccl-2.30", "rccl-6" };

enum {
	TRUTHS = N_OF(truths),
	AMOUNTS = N_OF(amounts),
	RATES = N_OF(rates),
};
enum { SPLITS = 6, SHARDINGS = 5, GENERATIONS = 3 };

/* ---- what these say -------------------------------------------------------------------------- */

/* value: below 0: not said. own: with words of its own of where it comes from. */
struct said {
	int value;
	bool own;
	const char *by; /* end of the file's name */
};

struct file {
	char path[64];
	int truth[TRUTHS], amount[AMOUNTS], splits, shardings, n_ccls, first_ccl;
	struct said rate[RATES], host[FT_HOSTS], crowding, on[GENERATIONS];
	struct said back[FT_DTYPES];
	bool named, titled, rates_say, host_says;
};

struct drawn {
	struct file of[FILES];
	bool extends;
};

static struct said any(int often, const char *by)
{
	struct said s = { rnd_below(&seed, often) ? 1 + rnd_below(&seed, 900) : -1,
			  rnd_below(&seed, 4) == 0, by };

	return s;
}

static void draw_file(struct file *f, int i)
{
	const char *by = i ? "1.yaml" : "0.yaml";
	char leaf[32];

	*f = (struct file){ .named = rnd_below(&seed, 2),
			    .titled = rnd_below(&seed, 2),
			    .rates_say = rnd_below(&seed, 2),
			    .host_says = rnd_below(&seed, 2),
			    .splits = rnd_below(&seed, 3) ? rnd_below(&seed, 64) : -1,
			    .shardings =
				    rnd_below(&seed, 3) ? 1 + rnd_below(&seed, 31) : -1,
			    .n_ccls = 1 + rnd_below(&seed, 4),
			    .first_ccl = rnd_below(&seed, 4) };
	snprintf(leaf, sizeof(leaf), "stack-%d.yaml", i);
	own_path(f->path, leaf);
	for (int k = 0; k < TRUTHS; k++)
		f->truth[k] = rnd_below(&seed, 3) - 1;
	for (int k = 0; k < AMOUNTS; k++)
		f->amount[k] = any(2, by).value;
	for (int k = 0; k < RATES; k++)
		f->rate[k] = any(2, by);
	for (int k = 0; k < FT_HOSTS; k++)
		f->host[k] = any(3, by);
	f->crowding = any(2, by);
	for (int k = 0; k < FT_DTYPES; k++)
		f->back[k] = any(3, by);
	for (int k = 0; k < GENERATIONS; k++)
		f->on[k] = any(2, by);
}

/* ---- written ----------------------------------------------------------------------------------- */

/* Whose words: of the file, of a block in it, or of the number. */
static void put_source(FILE *out, const struct file *f, const char *of)
{
	fprintf(out,
		"provenance: {kind: measured, source: %s of %s, date: \"2026-11\"}", of,
		strrchr(f->path, '-') + 1);
}

static void put_number(FILE *out, const struct file *f, const char *indent,
		       const char *key, const char *unit, struct said s)
{
	if (s.value < 0)
		return;
	fprintf(out, "%s%s: ", indent, key);
	if (s.own) {
		fprintf(out, "{value: %d.%02d %s, ", s.value / 100, s.value % 100,
			unit);
		put_source(out, f, "number");
		fputs("}\n", out);
	} else {
		fprintf(out, "%d.%02d %s\n", s.value / 100, s.value % 100, unit);
	}
}

static void put_words(FILE *out, const char *key, const char *const *words, int n,
		      int set)
{
	const char *between = "";

	if (set < 0)
		return;
	fprintf(out, "  %s: [", key);
	for (int i = 0; i < n; i++)
		if (set >> i & 1) {
			fprintf(out, "%s%s", between, words[i]);
			between = ", ";
		}
	fputs("]\n", out);
}

static void put_block(FILE *out, const struct file *f, const char *indent,
		      const char *name, bool says)
{
	fprintf(out, "%s%s:\n%s  ", indent, name, indent);
	if (says)
		put_source(out, f, name);
	fputs("\n", out);
}

static void put_rates(FILE *out, const struct file *f)
{
	put_block(out, f, "", "rates", f->rates_say);
	for (int k = 0; k < RATES; k++)
		put_number(out, f, "  ", rates[k].key, rates[k].unit, f->rate[k]);
	put_block(out, f, "  ", "host", f->host_says);
	fputs("    launch: 7 us\n", out);
	for (int k = 1; k < FT_HOSTS; k++)
		put_number(out, f, "    ", ft_host_name((enum ft_host)k), "us",
			   f->host[k]);
	put_number(out, f, "    ", "crowding", "", f->crowding);
	fputs("  gemm_by_generation:\n    hopper: 3\n", out);
	for (int k = 1; k < GENERATIONS; k++)
		put_number(out, f, "    ", generations[k], "", f->on[k]);
	fputs("  grouped_back:\n    bf16: 2\n", out);
	for (int k = 0; k < FT_DTYPES; k++)
		if (k != FT_BF16)
			put_number(out, f, "    ", ft_dtype_name((enum ft_dtype)k), "",
				   f->back[k]);
}

static void write_file(const struct drawn *d, int i)
{
	const struct file *f = &d->of[i];
	FILE *out = fopen(f->path, "w");

	assert_non_null(out);
	if (i == MINE && d->extends)
		fprintf(out, "extends: %s\n", d->of[UNDER].path);
	if (f->named)
		fprintf(out, "name: name-%d\n", i);
	if (f->titled)
		fprintf(out, "title: Title %d\n", i);
	put_source(out, f, "stack");
	fputs("\nccl: [", out);
	for (int k = 0; k < f->n_ccls; k++)
		fprintf(out, "%s%s", k ? ", " : "", libraries[(f->first_ccl + k) % 4]);
	fputs("]\nruns:\n  predicted_tokens: true\n", out);
	put_words(out, "parallel", splits, SPLITS, f->splits);
	put_words(out, "sharding", shardings, SHARDINGS, f->shardings);
	fputs("layout:\n  metrics: 3\n", out);
	for (int k = 0; k < TRUTHS; k++)
		if (f->truth[k] >= 0)
			fprintf(out, "  %s: %s\n", truths[k].key,
				f->truth[k] ? "true" : "false");
	for (int k = 0; k < AMOUNTS; k++)
		if (f->amount[k] >= 0)
			fprintf(out, "  %s: %d %s\n", amounts[k].key, f->amount[k],
				amounts[k].unit);
	put_rates(out, f);
	fclose(out);
}

/* ---- against what is read ------------------------------------------------------------------------ */

/* The file whose word counts: its own, else of what it extends. */
static const struct file *whose(const struct drawn *d, int mine, int under)
{
	if (mine >= 0)
		return &d->of[MINE];
	return d->extends && under >= 0 ? &d->of[UNDER] : NULL;
}

#define WHOSE(d, field) whose(d, (d)->of[MINE].field, (d)->of[UNDER].field)

static void check_number(const struct drawn *d, const char *key,
			 const struct ft_number *is, struct said s, double times,
			 const char *of)
{
	char source[64];

	if (is->value < s.value * times / 100 * (1 - 1e-12) ||
	    is->value > s.value * times / 100 * (1 + 1e-12))
		fail_msg("%s: %g, written %g", key, is->value, s.value * times / 100);
	if (d->extends && !s.own)
		return; /* tests/test_extends.c */
	snprintf(source, sizeof(source), "%s of %s", s.own ? "number" : of, s.by);
	assert_string_equal(is->from->source, source);
}

static void check_rates(const struct drawn *d, const struct ft_stack *s)
{
	const struct file *mine = &d->of[MINE], *f;
	const char *block = mine->rates_say ? "rates" : "stack";
	const char *host = mine->host_says ? "host" : block;

	for (int k = 0; k < RATES; k++)
		if ((f = WHOSE(d, rate[k].value)))
			check_number(d, rates[k].key,
				     (const void *)((const char *)s + rates[k].at),
				     f->rate[k], rates[k].times, block);
	for (int k = 1; k < FT_HOSTS; k++) {
		if ((f = WHOSE(d, host[k].value)))
			check_number(d, ft_host_name((enum ft_host)k), &s->host_s[k],
				     f->host[k], 1e-6, host);
	}
	if ((f = WHOSE(d, crowding.value)))
		check_number(d, "crowding", &s->host_crowding_frac, f->crowding, 1,
			     host);
	assert_true(s->host_s[0].value > 6.99e-6 && s->host_s[0].value < 7.01e-6);
	assert_true(ft_stack_gemm(s, "hopper")->value == 3);
	assert_ptr_equal(ft_stack_gemm(s, "cdna3"), &s->gemm_factor);
	for (int k = 1; k < GENERATIONS; k++)
		if ((f = WHOSE(d, on[k].value)))
			check_number(d, generations[k],
				     ft_stack_gemm(s, generations[k]), f->on[k], 1,
				     block);
		else
			assert_ptr_equal(ft_stack_gemm(s, generations[k]),
					 &s->gemm_factor);
	for (int k = 0; k < FT_DTYPES; k++)
		if (k != FT_BF16 && (f = WHOSE(d, back[k].value)))
			check_number(d, "grouped_back", &s->grouped_back[k], f->back[k],
				     1, block);
	assert_true(s->grouped_back[FT_BF16].value == 2);
}

/* Words of a list that is not said are all there are. */
static void check_set(const struct ft_stack *s, const char *const *words, int n,
		      int set)
{
	for (int i = 0; i < n; i++)
		if (ft_stack_runs(s, words[i]) != (set < 0 || (set >> i & 1)))
			fail_msg("runs %s", words[i]);
}

static void check_layout(const struct drawn *d, const struct ft_stack *s)
{
	const struct file *f = WHOSE(d, splits);

	check_set(s, splits, SPLITS, f ? f->splits : -1);
	f = WHOSE(d, shardings);
	check_set(s, shardings, SHARDINGS, f ? f->shardings : -1);
	for (int k = 0; k < TRUTHS; k++)
		if ((f = WHOSE(d, truth[k])) &&
		    *(const bool *)((const char *)s + truths[k].at) != f->truth[k])
			fail_msg("%s", truths[k].key);
	for (int k = 0; k < AMOUNTS; k++)
		if ((f = WHOSE(d, amount[k])) &&
		    *(const double *)((const char *)s + amounts[k].at) != f->amount[k])
			fail_msg("%s", amounts[k].key);
	assert_int_equal(s->layout.metrics, 3);
}

static void check_names(const struct drawn *d, const struct ft_stack *s)
{
	const struct file *mine = &d->of[MINE];
	char source[64];

	if (mine->named)
		assert_string_equal(s->name, "name-0");
	if (mine->titled)
		assert_string_equal(s->title, "Title 0");
	else if (!d->extends)
		assert_string_equal(s->title, s->name);
	assert_string_equal(s->root, d->extends ? d->of[UNDER].path : s->name);
	assert_string_equal(s->vendor, "any");
	snprintf(source, sizeof(source), "stack of %s", strrchr(mine->path, '-') + 1);
	assert_string_equal(s->from->source, source);
	assert_int_equal(s->n_ccls, mine->n_ccls);
	for (int k = 0; k < mine->n_ccls; k++)
		assert_string_equal(s->ccl[k], libraries[(mine->first_ccl + k) % 4]);
}

/* The first that knows the GPU serves: of NVIDIA's those of an even number, of AMD's the others. */
static void check_library(const struct drawn *d, const struct ft_stack *s)
{
	static const char *const of[] = { "hopper", "cdna3" };
	const struct file *f = &d->of[MINE];

	for (int k = 0; k < 2; k++) {
		int skip = (f->first_ccl + k) % 2;
		struct ft_error err;
		struct ft_ccl *c = ft_stack_ccl(s, of[k], &err);

		if (skip < f->n_ccls) {
			ok_or_say(c, err);
			assert_string_equal(c->name,
					    libraries[(f->first_ccl + skip) % 4]);
		} else {
			assert_null(c);
			assert_non_null(strstr(err.text, of[k]));
		}
		ft_ccl_free(c);
	}
}

static void what_a_stack_says_is_read(void **state)
{
	struct drawn d;

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct ft_error err;
		struct ft_stack *s;

		d.extends = rnd_below(&seed, 2);
		for (int k = 0; k < FILES; k++)
			draw_file(&d.of[k], k);
		d.of[MINE].first_ccl &=
			d.of[MINE].n_ccls > 1 ? 3 : 2; /* one knows hopper */
		for (int k = 0; k < FILES; k++)
			write_file(&d, k);
		s = ft_stack_load(d.of[MINE].path, NULL, &err);
		ok_or_say(s, err);
		check_names(&d, s);
		check_layout(&d, s);
		check_rates(&d, s);
		check_library(&d, s);
		ft_stack_free(s);
	}
	for (int k = 0; k < FILES; k++)
		unlink(d.of[k].path);
}

/* Scores go to memory by the stack's word, or for sinks, or for a model's own class. */
static void scores_go_to_memory_for_four_reasons(void **state)
{
	(void)state;
	for (int i = 0; i < 256; i++) {
		struct ft_stack s = { .name = "x" };
		bool unfused = i & 1, plain_sinks = i & 2, classes = i & 4;
		bool sinks = i & 8, plain = i & 16, capped = i & 32;
		bool plain_caps = i & 64, outside = i & 128;

		s.layout.attention = unfused ? "unfused" : "cudnn";
		s.layout.plain_sinks = plain_sinks;
		s.layout.plain_caps = plain_caps;
		s.layout.sink_attention = outside ? "flex" : "";
		s.layout.model_classes = classes;
		assert_int_equal(ft_stack_unfused(&s, sinks, plain, capped) != NULL,
				 unfused || (plain_sinks && sinks) ||
					 (plain_caps && capped) || (classes && plain));
		assert_int_equal(ft_stack_no_context(&s, sinks, plain, capped) != NULL,
				 unfused || (sinks && (plain_sinks || outside)) ||
					 (plain_caps && capped) || (classes && plain));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_stack_says_is_read),
		cmocka_unit_test(scores_go_to_memory_for_four_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
