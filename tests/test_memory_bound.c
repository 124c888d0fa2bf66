/* tests/test_memory_bound.c - kernels that only move bytes, against their equation, with drawn constants */
#include "tests/seeded.h"

#include <math.h>

#include "sim/kernel.h"

enum { DRAWS = 3000, ROWS = 4, CURVES = 4 };

struct curves {
	struct ft_gpu gpu;
	struct ft_memory_curve curve[CURVES];
	struct ft_memory_row row[CURVES][ROWS];
};

static void any_curves(struct curves *x)
{
	static const char *const name[CURVES] = { "default", "copy", "copy",
						  "rmsnorm" };

	*x = (struct curves){ .gpu = { .memory = x->curve, .n_memory = CURVES } };
	x->gpu.memory_spread = about(0.05);
	x->gpu.kernel_floor_s = about(pick(4) ? 1e-7 : 1e-5);
	for (int i = 0; i < CURVES; i++) {
		struct ft_memory_curve *c = &x->curve[i];

		c->kernel = name[i];
		c->warm = i == 2;
		c->as = pick(2) ? "strided" : NULL;
		c->as_bytes = about(2);
		c->start_s = about(3e-6), c->bytes_per_s = about(3e12);
		c->half_bytes = about(1e5);
		c->sharpness.value = pick(2) ? 1 : 1 + 4 * draw();
		c->step_s.value = pick(2) ? 0 : 3e-6 * draw();
		c->row_sharpness.value = pick(2) ? 1 : 1 + 4 * draw();
		c->row = x->row[i];
		c->n_rows = (size_t)pick(ROWS + 1);
		for (size_t r = 0; r < c->n_rows; r++)
			x->row[i][r] =
				(struct ft_memory_row){ 1024 << (2 * r), about(3e-6),
							about(2e12) };
	}
}

/* Straight in logarithms between the lengths on either side. */
static double at_row(const struct ft_memory_curve *c, double row_bytes, size_t field)
{
	const struct ft_memory_row *r = c->row;
	size_t n = c->n_rows, i = 1;
	double low, high, w;

#define OF(which) (((const struct ft_number *)((const char *)(which) + field))->value)
	if (row_bytes <= r[0].row_bytes)
		return OF(&r[0]);
	if (row_bytes >= r[n - 1].row_bytes)
		return OF(&r[n - 1]);
	while (r[i].row_bytes < row_bytes)
		i++;
	low = log(OF(&r[i - 1])), high = log(OF(&r[i]));
	w = (log(row_bytes) - log(r[i - 1].row_bytes)) /
	    (log(r[i].row_bytes) - log(r[i - 1].row_bytes));
	return exp(low + w * (high - low));
}

static void bytes_take_what_their_curve_says(void **state)
{
	static const char *const asked[] = { "copy", "rmsnorm", "unknown", NULL };

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		struct curves x;
		struct ft_work w = { .kind = FT_MEMORY_BOUND, .name = "w" };
		const struct ft_memory_curve *c;
		struct ft_prediction got;
		double start, rate, p, s, bytes, moving;
		int name = pick(4);

		any_curves(&x);
		w.memory.kernel = asked[name];
		w.memory.warm = pick(2);
		w.memory.bytes = pow(10, 2 + 8 * draw());
		w.memory.row_bytes = pick(3) ? pow(2, 8 + 12 * draw()) : 0;
		w.memory.steps = pick(2) ? 0 : pick(2000);
		c = &x.curve[name == 0 ? (w.memory.warm ? 2 : 1) : name == 1 ? 3 : 0];
		start = c->start_s.value, rate = c->bytes_per_s.value;
		p = c->sharpness.value;
		if (c->n_rows && w.memory.row_bytes > 0) {
			p = c->row_sharpness.value;
			start = at_row(c, w.memory.row_bytes,
				       offsetof(struct ft_memory_row, start_s));
			rate = at_row(c, w.memory.row_bytes,
				      offsetof(struct ft_memory_row, bytes_per_s));
		}
		bytes = w.memory.bytes * (c->as ? c->as_bytes.value : 1);
		moving = fmax((bytes + c->half_bytes.value) / rate,
			      (double)w.memory.steps * c->step_s.value);
		s = pow(pow(start, p) + pow(moving, p), 1 / p);
		memory_bound_predict(&x.gpu, &w, &got);
		near_frac(got.time_s, fmax(s, x.gpu.kernel_floor_s.value), 1e-9);
		near_frac(got.spread_frac,
			  x.gpu.memory_spread.value * (name < 2 ? 1 : 1.5), 1e-12);
		assert_false(got.extrapolated);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_take_what_their_curve_says),
	};

	seed = 2;
	return cmocka_run_group_tests_name("memory bound", tests, NULL, NULL);
}
