/*
 * tests/test_fit_layout.c - what layouts of products cost, out of drawn rows among which each is looked for here one by
 * one; and what errors add up to
 */
#include "base/stats.h"
#include "foretoken/hw.h"
#include "tests/check.h"
#include "tests/scratch.h"

enum { DRAWS = 150, ROWS = 480, ERRORS = 80, FEWEST = 10 };

static uint64_t seed = 43;

struct made {
	struct ft_measurement row[ROWS];
	size_t n;
};

static double size(void)
{
	static const double sizes[] = { 1024, 2048, 4096 };

	return sizes[rnd_below(&seed, 3)];
}

static void draw(struct made *x)
{
	static const char *const layouts[] = { "forward", "forward", "dgrad", "wgrad" };

	x->n = (size_t)(ROWS / 4 + rnd_below(&seed, 3 * ROWS / 4));
	for (size_t i = 0; i < x->n; i++) {
		struct ft_measurement *m = &x->row[i];

		*m = (struct ft_measurement){
			.kind = rnd_below(&seed, 12) ? "gemm" : "memory",
			.kernel = "add",
			.dtype = rnd_below(&seed, 4) ? "bf16" : "fp16",
			.layout = layouts[rnd_below(&seed, 4)],
			.impl = rnd_below(&seed, 5) ? "" : "torch",
			.pass = "",
			.status = "ok",
			.source = "",
			.date = "2026-11-27",
			.backend = rnd_below(&seed, 6) ? "cuda" : "torch",
			.device = "D",
			.provenance = rnd_below(&seed, 6) ? "measured" : "published",
			.m = size(),
			.n = size(),
			.k = size(),
			.time_us = 100 + rnd_below(&seed, 900),
			.accumulate = rnd_below(&seed, 4) == 0,
			.sustained = rnd_below(&seed, 8) == 0,
		};
	}
}

/* The least that so much of them is not above. */
static double part_of(const double *v, size_t n, double part)
{
	size_t at = 0;

	while ((double)(at + 1) < part * (double)n - 1e-9)
		at++;
	return v[at];
}

static double middle_of(const double *v, size_t n)
{
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void is_ratio(const struct fit_ratio *is, double *v, size_t n)
{
	if (n < FEWEST) {
		assert_int_equal(is->n, 0);
		return;
	}
	stats_sort(v, n);
	assert_int_equal(is->n, n);
	near_frac(is->value, middle_of(v, n), 1e-12);
	near_frac(is->low, part_of(v, n, 0.1), 1e-12);
	near_frac(is->high, part_of(v, n, 0.9), 1e-12);
}

static bool of_torch(const struct ft_measurement *m)
{
	return !strcmp(m->impl, "torch") || !strcmp(m->backend, "torch");
}

static bool plain(const struct ft_measurement *m, const char *layout)
{
	return !strcmp(m->kind, "gemm") && !strcmp(m->layout, layout) &&
	       !m->accumulate && !m->sustained && strcmp(m->provenance, "published");
}

/* A layer's m tokens, n features out, k in: the gradient of its input has k out and n in, that of
 * its weights its narrow side, its wide one, and goes over the tokens. */
static size_t against_forward(const struct made *x, const char *layout, int fold,
			      double *v)
{
	bool data = !strcmp(layout, "dgrad");
	size_t n = 0;

	for (size_t i = 0; i < x->n; i++) {
		const struct ft_measurement *b = &x->row[i];
		double sum = 0, times = 0;

		if (!plain(b, layout) || fit_fold(b) == fold)
			continue;
		for (size_t j = 0; j < x->n; j++) {
			const struct ft_measurement *f = &x->row[j];

			if (plain(f, "forward") && !strcmp(f->dtype, b->dtype) &&
			    of_torch(f) == of_torch(b) &&
			    f->m == (data ? b->m : fmin(b->n, b->k)) &&
			    f->n == (data ? b->k : fmax(b->n, b->k)) &&
			    f->k == (data ? b->n : b->m)) {
				sum += f->time_us;
				times++;
			}
		}
		if (times > 0)
			v[n++] = b->time_us * times / sum;
	}
	return n;
}

static size_t accumulating(const struct made *x, const struct ft_gpu *gpu, int fold,
			   double *v)
{
	size_t n = 0;

	for (size_t i = 0; i < x->n; i++) {
		const struct ft_measurement *m = &x->row[i];

		if (!strcmp(m->kind, "gemm") && m->accumulate && !m->sustained &&
		    fit_fold(m) != fold)
			v[n++] = m->time_us / measurement_predict_us(gpu, m);
	}
	return n;
}

/* What is written of them, in a profile. */
static void is_written(const struct fit_input *in)
{
	const struct fit_ratio *const of[] = { &in->dgrad, &in->wgrad,
					       &in->accumulate };
	static const char *const names[] = { "dgrad", "wgrad", "accumulate" };
	char *text = NULL, want[160];
	size_t length;
	FILE *out = open_memstream(&text, &length);

	fit_layout_yaml(in, out);
	fclose(out);
	for (int i = 0; i < 3; i++) {
		snprintf(want, sizeof(want),
			 "    %s: {value: %.3f, low: %.3f, high: %.3f, ", names[i],
			 of[i]->value, of[i]->low, of[i]->high);
		assert_int_equal(strstr(text, want) != NULL, of[i]->n > 0);
		snprintf(want, sizeof(want), "of %zu products", of[i]->n);
		if (of[i]->n)
			assert_non_null(strstr(text, want));
	}
	assert_int_equal(strstr(text, "  layout:\n") != NULL, length > 0);
	free(text);
}

static void layouts_cost_what_they_take_beside_forward_ones(void **state)
{
	static const struct ft_fit_options options = { .name = "mine" };
	static struct made x;
	struct ft_error err;
	struct ft_gpu *gpu = ft_gpu_load("h100-sxm", NULL, &err);
	int few = 0;

	(void)state;
	ok_or_say(gpu, err);
	for (int i = 0; i < DRAWS; i++) {
		struct fit_input in = { .row = x.row,
					.options = &options,
					.families = FT_FIT_LAYOUT,
					.date = "",
					.device = "D" };
		int fold = i % (FIT_FOLDS + 1) - 1; /* -1: none is held out */
		double v[ROWS];
		size_t n;

		draw(&x);
		in.n = x.n;
		in.accumulate.n = 5; /* of a fold before */
		fit_layouts(&in, fold);
		assert_int_equal(in.accumulate.n, 0);
		is_ratio(&in.dgrad, v, against_forward(&x, "dgrad", fold, v));
		n = against_forward(&x, "wgrad", fold, v);
		few += n > 0 && n < FEWEST;
		is_ratio(&in.wgrad, v, n);
		n = accumulating(&x, gpu, fold, v);
		assert_int_equal(fit_accumulate(&in, fold, gpu), n >= FEWEST);
		is_ratio(&in.accumulate, v, n);
		is_written(&in);
		in.families = 0;
		fit_layouts(&in, fold);
		assert_int_equal(in.dgrad.n + in.wgrad.n + in.accumulate.n, 0);
	}
	assert_in_range(few, 5, DRAWS / 2);
	ft_gpu_free(gpu);
}

/* While the cost of accumulating is looked for, the profile has none of its base's. */
static void what_is_being_fitted_is_not_the_bases(void **state)
{
	static const struct ft_fit_options options = { .name = "mine" };
	struct made x;

	(void)state;
	for (int own = 0; own < 2; own++)
		for (int asked = 0; asked < 2; asked++) {
			struct fit_input in = { .row = x.row,
						.n = 1,
						.options = &options,
						.families = asked ? FT_FIT_ACCUMULATE :
								    FT_FIT_LAYOUT };
			char *text = NULL;
			size_t length;
			FILE *out = open_memstream(&text, &length);

			draw(&x);
			x.row[0].kind = "gemm";
			x.row[0].provenance = own ? "measured" : "published";
			fit_layout_yaml(&in, out);
			fclose(out);
			assert_string_equal(
				text,
				own && asked ? "  layout:\n    accumulate: 1\n" : "");
			free(text);
		}
}

/* ---- errors -------------------------------------------------------------------------------- */

static size_t distinct(const uint64_t *shape, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (shape[k] != shape[i])
			k++;
		count += k == i;
	}
	return count;
}

static void errors_are_summed_up(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		size_t n = 1 + (size_t)rnd_below(&seed, ERRORS);
		double v[ERRORS], sorted[ERRORS], sum = 0, all = 0, squares = 0;
		uint64_t shape[ERRORS], kept[ERRORS];
		struct ft_fit_error g = { .family = "f" };

		for (size_t k = 0; k < n; k++) {
			v[k] = (rnd_below(&seed, 2001) - 900) / 1000.;
			sorted[k] = fabs(v[k]);
			sum += v[k];
			all += fabs(v[k]);
			squares += v[k] * v[k];
			shape[k] = kept[k] = (uint64_t)rnd_below(&seed, 12);
		}
		stats_sort(sorted, n);
		fit_summarize(&g, v, shape, n);
		assert_int_equal(g.n, n);
		near_frac(2 + g.bias, 2 + sum / (double)n, 1e-12);
		near_frac(g.mape, all / (double)n, 1e-12);
		near_frac(g.median, middle_of(sorted, n), 1e-12);
		near_frac(g.p90, part_of(sorted, n, 0.9), 1e-12);
		assert_int_equal(g.shapes, distinct(kept, n));
		near_frac(g.spread,
			  fit_spread(sqrt(squares / (double)n),
				     n > 1 ? part_of(sorted + 1, n - 1, 0.8) : 0, n,
				     g.shapes),
			  1e-12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layouts_cost_what_they_take_beside_forward_ones),
		cmocka_unit_test(what_is_being_fitted_is_not_the_bases),
		cmocka_unit_test(errors_are_summed_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
