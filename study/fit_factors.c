/* study/fit_factors.c - factors of a stack by least absolute error, held to 1 */
#include "base/arena.h"
#include "study/fit_factors.h"

#include <gsl/gsl_multimin.h>
#include <math.h>

/* Host times differ most from one installation to the next; products least, being the
 * vendor's libraries everywhere. */
static const double most[FT_FIT_FACTORS] = { 4, 1.6, 3, 2, 2.5 };

/* BEYOND: what a step beyond a bound costs; more than all runs could gain. */
enum { ROUNDS = 4, STEPS = 2000, BEYOND = 100000 };

struct problem {
	const struct fit_run *run;
	size_t n, without;
};

double fit_point(size_t factor, int point)
{
	double half = (FIT_POINTS - 1) / 2.0;

	return log(most[factor]) * (point - half) / half;
}

double fit_reply(const struct fit_run *run, const double ln_factor[FT_FIT_FACTORS])
{
	double sum = 0;

	for (size_t k = 0; k < FT_FIT_FACTORS; k++) {
		double gap = fit_point(k, 1) - fit_point(k, 0);
		double at = (ln_factor[k] - fit_point(k, 0)) / gap;
		int i = (int)fmin(fmax(floor(at), 0), FIT_POINTS - 2);
		const double *r = run->reply[k];

		sum += r[i] + (r[i + 1] - r[i]) * (at - i);
	}
	return sum;
}

static double loss(const gsl_vector *x, void *data)
{
	const struct problem *p = data;
	double factor[FT_FIT_FACTORS], sum = 0;

	for (size_t k = 0; k < FT_FIT_FACTORS; k++) {
		factor[k] = gsl_vector_get(x, k);
		sum += fabs(factor[k]);
		sum += BEYOND * fmax(0, fabs(factor[k]) - log(most[k]));
	}
	for (size_t i = 0; i < p->n; i++)
		if (p->run[i].fold != p->without)
			sum += fabs(p->run[i].ratio - fit_reply(&p->run[i], factor));
	return sum;
}

/* From where the last round ended, with a fresh simplex: its corners may have met early. */
static void one_round(gsl_multimin_function *f, gsl_vector *x)
{
	gsl_vector *size = allocated(gsl_vector_alloc(FT_FIT_FACTORS));
	gsl_multimin_fminimizer *m = allocated(gsl_multimin_fminimizer_alloc(
		gsl_multimin_fminimizer_nmsimplex2, FT_FIT_FACTORS));

	gsl_vector_set_all(size, 0.1);
	gsl_multimin_fminimizer_set(m, f, x, size);
	for (int i = 0; i < STEPS; i++)
		if (gsl_multimin_fminimizer_iterate(m) ||
		    gsl_multimin_test_size(gsl_multimin_fminimizer_size(m), 1e-5) !=
			    GSL_CONTINUE)
			break;
	if (loss(m->x, f->params) < loss(x, f->params))
		gsl_vector_memcpy(x, m->x);
	gsl_multimin_fminimizer_free(m);
	gsl_vector_free(size);
}

void fit_factors(const struct fit_run *run, size_t n, size_t without,
		 double ln_factor[FT_FIT_FACTORS])
{
	struct problem p = { run, n, without };
	gsl_multimin_function f = { .f = loss, .n = FT_FIT_FACTORS, .params = &p };
	gsl_vector *x = allocated(gsl_vector_calloc(FT_FIT_FACTORS));

	for (int i = 0; i < ROUNDS; i++)
		one_round(&f, x);
	for (size_t k = 0; k < FT_FIT_FACTORS; k++) {
		double v = gsl_vector_get(x, k);

		v = fmin(fmax(v, -log(most[k])), log(most[k]));
		ln_factor[k] = fabs(v) < 1e-3 ? 0 : v; /* held at 1 */
	}
	gsl_vector_free(x);
}
