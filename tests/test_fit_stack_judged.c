/*
 * tests/test_fit_stack_judged.c - how far off a fitted stack is: drawn runs are run again under the file that was
 * written, and each fold under one that is fitted to a file without it
 */
#include <math.h>

#include "base/stats.h"
#include "foretoken/study.h"
#include "tests/scratch.h"

#include "tests/check.h"

enum { DRAWS = 2, ROWS = 6, PATH = 200 };

static uint64_t seed = 113;

#define PICK(list) (list)[rnd_below(&seed, (int)(sizeof(list) / sizeof(*(list))))]

struct drawn {
	int n, groups;
	bool by_rate; /* scored by tokens/s per GPU, else by seconds */
	const char *stack, *gpu;
	struct row {
		int group, sequence, micro_batch;
		double off; /* measured, of what is predicted */
		double measured;
	} row[ROWS];
	int broken; /* rows that cannot be run, behind the others */
};

static void draw(struct drawn *d, int turn)
{
	static const char *const stacks[] = { "torch-2.11-compile",
					      "megatron-core-2024",
					      "torch-2.11-eager" };
	static const char *const gpus[] = { "h100-sxm", "b200", "h200" };

	*d = (struct drawn){ .n = ROWS - turn % 2,
			     .groups = 3 + turn % 2,
			     .by_rate = turn % 2,
			     .stack = PICK(stacks),
			     .gpu = PICK(gpus),
			     .broken = 1 - turn % 2 };
	for (int i = 0; i < d->n; i++)
		d->row[i] = (struct row){
			.group = i % d->groups,
			.sequence = 512 << rnd_below(&seed, 3),
			.micro_batch = 1 + rnd_below(&seed, 2),
			.off = 0.7 + 0.3 * (i % d->groups) +
			       0.001 * rnd_below(&seed, 300),
			.measured = 1,
		};
}

/* Without the rows of a fold, or all of them. */
static void write_runs(const char *path, const struct drawn *d, const int *fold,
		       int without)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fprintf(f,
		"id,group,model.name,model.num_hidden_layers,cluster.gpu,cluster.gpus,stack,"
		"training.sequence_length,training.micro_batch_size,"
		"training.global_batch_size,measured.%s\n",
		d->by_rate ? "tokens_per_s_per_gpu" : "step_s");
	for (int i = 0; i < d->n; i++)
		if (!fold || fold[i] != without)
			fprintf(f, "r%d,g%d,llama3-8b,1,%s,8,%s,%d,%d,%d,%.12g\n", i,
				d->row[i].group, d->gpu, d->stack, d->row[i].sequence,
				d->row[i].micro_batch, 8 * d->row[i].micro_batch,
				d->row[i].measured);
	for (int i = 0; i < d->broken; i++)
		fprintf(f, "no%d,g0,llama3-8b,1,%s,8,%s,512,3,%d,1\n", i, d->gpu,
			d->stack, 8);
	assert_int_equal(fclose(f), 0);
}

/* What is predicted of each row. */
static void predict(const char *runs, const struct drawn *d, const char *stack,
		    double predicted[ROWS])
{
	char set[PATH + 20];
	const char *const sets[] = { set };
	struct ft_progress none = { .tell = NULL };
	struct ft_validation *v;
	struct ft_error err;

	snprintf(set, sizeof(set), "stack=%s", stack);
	v = ft_validate(runs, sets, 1, none, &err);
	ok_or_say(v, err);
	assert_int_equal(v->n_checks, d->n);
	for (size_t i = 0; i < v->n_checks; i++)
		predicted[atoi(v->check[i].id + 1)] = v->check[i].predicted;
	ft_validation_free(v);
}

/* In time, positive too slow. */
static double error_of(const struct drawn *d, int i, double predicted)
{
	return d->by_rate ? d->row[i].measured / predicted - 1 :
			    predicted / d->row[i].measured - 1;
}

/* ---- sums --------------------------------------------------------------------------------- */

static void is_near(double is, double want)
{
	if (!(fabs(is - want) < 2e-3)) /* rates are written with four digits */
		fail_msg("%.9g, wanted %.9g", is, want);
}

static void is_sum(const struct ft_summary *s, const struct drawn *d,
		   const double predicted[ROWS])
{
	double off[ROWS], bias = 0, mean = 0;
	int n = d->n;

	for (int i = 0; i < n; i++) {
		double e = error_of(d, i, predicted[i]);

		bias += e;
		off[i] = fabs(e);
		mean += off[i];
	}
	stats_sort(off, (size_t)n);
	assert_int_equal(s->n, n);
	is_near(s->bias, bias / n);
	is_near(s->mape, mean / n);
	is_near(s->max, off[n - 1]);
	is_near(s->median, n % 2 ? off[n / 2] : (off[n / 2 - 1] + off[n / 2]) / 2);
	is_near(s->p90, off[n - 1 - n / 10]); /* at most a tenth are farther off */
}

/* ---- fits --------------------------------------------------------------------------------- */

struct told {
	size_t done, total;
};

static void tell(void *context, size_t done, size_t known, size_t total)
{
	struct told *t = context;

	assert_int_equal(done, t->done + 1);
	assert_int_equal(known, done);
	assert_true(done <= total);
	*t = (struct told){ done, total };
}

static struct ft_stack_fit fitted(const char *runs, const char *name,
				  const struct drawn *d)
{
	struct told t = { 0, 0 };
	struct ft_stack_request asked = { .runs = runs,
					  .name = name,
					  .progress = { tell, &t } };
	struct ft_stack_fit fit;
	struct ft_error err;

	ok_or_say(ft_study_fit_stack(&asked, &fit, &err), err);
	assert_int_equal(fit.n_failed, d->broken);
	assert_int_equal(t.done == t.total, !d->broken);
	if (d->broken)
		assert_non_null(strstr(fit.why.text, "global_batch_size"));
	return fit;
}

/* A group each where four are there, else what is the same run but for its measured time. */
static int find_folds(const struct drawn *d, int fold[ROWS])
{
	int n = 0;

	for (int i = 0; i < d->n; i++) {
		const struct row *x = &d->row[i];

		fold[i] = -1;
		for (int k = 0; k < i && fold[i] < 0; k++)
			if (d->groups >= 4 ?
				    d->row[k].group == x->group :
				    d->row[k].sequence == x->sequence &&
					    d->row[k].micro_batch == x->micro_batch)
				fold[i] = fold[k];
		if (fold[i] < 0)
			fold[i] = n++;
	}
	return n;
}

/* false: what is left is too little for a fit. */
static bool hold_out(const struct scratch *x, const struct drawn *d, const char *runs,
		     const int fold[ROWS], int without, double predicted[ROWS])
{
	char less[PATH], name[PATH], path[PATH + 8];
	double all[ROWS];
	int left = 0;

	for (int i = 0; i < d->n; i++)
		left += fold[i] != without;
	if (left < 4)
		return false;
	snprintf(less, PATH, "%s/less.csv", x->folder);
	snprintf(name, PATH, "%s/less", x->folder);
	snprintf(path, sizeof(path), "%s.yaml", name);
	write_runs(less, d, fold, without);
	fitted(less, name, d);
	predict(runs, d, path, all);
	for (int i = 0; i < d->n; i++)
		if (fold[i] == without)
			predicted[i] = all[i];
	assert_int_equal(unlink(path), 0);
	return true;
}

static void judge(const struct scratch *x, const char *runs, struct drawn *d)
{
	char name[PATH], path[PATH + 8];
	double before[ROWS], after[ROWS], held[ROWS];
	struct ft_stack_fit fit;
	bool all = true;
	int fold[ROWS], n;

	snprintf(name, PATH, "%s/mine", x->folder);
	snprintf(path, sizeof(path), "%s.yaml", name);
	write_runs(runs, d, NULL, 0);
	predict(runs, d, d->stack, before);
	for (int i = 0; i < d->n; i++)
		d->row[i].measured = before[i] * d->row[i].off;
	write_runs(runs, d, NULL, 0);
	fit = fitted(runs, name, d);
	assert_string_equal(fit.path, path);
	predict(runs, d, path, after);
	n = find_folds(d, fold);
	assert_int_equal(fit.n, d->n);
	assert_int_equal(fit.folds, n);
	assert_int_equal(fit.by_group, d->groups >= 4);
	is_sum(&fit.before, d, before);
	is_sum(&fit.after, d, after);
	for (int i = 0; i < n; i++)
		all &= hold_out(x, d, runs, fold, i, held);
	if (all)
		is_sum(&fit.held_out, d, held);
	assert_int_equal(unlink(path), 0);
}

static void errors_are_those_of_runs_made_again(void **state)
{
	struct scratch *x = *state;
	char runs[PATH];

	snprintf(runs, PATH, "%s/runs.csv", x->folder);
	for (int i = 0; i < DRAWS; i++) {
		struct drawn d;

		draw(&d, i);
		judge(x, runs, &d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(errors_are_those_of_runs_made_again) };

	gsl_set_error_handler_off();
	return cmocka_run_group_tests_name("fitted stacks", tests, NULL, NULL);
}
