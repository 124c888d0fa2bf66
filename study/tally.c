/* study/tally.c - collecting checks, and what they add up to */
#include "study/tally.h"

#include <math.h>
#include <string.h>

#include "base/stats.h"
#include "base/text.h"

static struct ft_check *slot(struct tally *t, bool scored)
{
	struct ft_validation *v = t->v;

	if (scored) {
		if (v->n_checks == t->check_cap)
			v->check = ARENA_GROW(t->mem, v->check, &t->check_cap);
		return &v->check[v->n_checks++];
	}
	if (t->n_side == t->side_cap)
		t->side = ARENA_GROW(t->mem, t->side, &t->side_cap);
	return &t->side[t->n_side++];
}

void tally_check(struct tally *t, const struct ft_check *check, bool scored)
{
	struct ft_check *c = slot(t, scored);

	*c = *check;
	c->error_frac =
		(c->is_rate ? c->measured / c->predicted : c->predicted / c->measured) -
		1;
	c->inside = c->measured >= c->low && c->measured <= c->high;
	c->slow = c->is_rate ? c->measured < c->low : c->measured > c->high;
}

/* Units lie a factor of 60 (minutes) or 1,000 apart, and the worst row of measurements/ is off by 5: FAR
 * is between them. A share has no unit, and of what is predicted as nothing no factor is known. */
bool ft_check_doubtful(const struct ft_check *c)
{
	enum { FAR = 20 };
	double ratio = c->predicted > 0 ? c->measured / c->predicted : 1;

	return !text_ends_with(c->key, "_frac") && (ratio > FAR || ratio < 1. / FAR);
}

void tally_failure(struct tally *t, const char *id, const struct ft_error *err)
{
	struct ft_validation *v = t->v;
	const char *reason = err->line ?
				     arena_printf(t->mem, "%s:%d:%d: %s", err->file,
						  err->line, err->column, err->text) :
				     arena_text(t->mem, err->text);

	if (v->n_failures == t->failure_cap)
		v->failure = ARENA_GROW(t->mem, v->failure, &t->failure_cap);
	v->failure[v->n_failures++] = (struct ft_failure){ id, reason };
}

void tally_row_failure(struct tally *t, const struct csv *rows, size_t row,
		       const struct ft_error *err)
{
	struct ft_mark at = csv_mark(rows, row, -1);
	struct ft_error placed = *err;

	if (!err->line) {
		bool other = err->file[0] && strcmp(err->file, rows->file) != 0;

		ft_fail(&placed, &at, "%s%s%s", other ? err->file : "",
			other ? ": " : "", err->text);
	}
	tally_failure(t, row_id(t, rows, row), &placed);
}

/* Summary of those of n checks whose label is name; NULL: of all. */
static struct ft_summary summarize(struct arena *mem, const struct ft_check *c,
				   const char *const *label, size_t n, const char *name)
{
	struct ft_summary s = { .name = name };
	double *error = ARENA_ARRAY(mem, n + 1, double);
	double inside = 0, slow = 0, sum = 0, sum_abs = 0;

	for (size_t i = 0; i < n; i++) {
		if (name && strcmp(name, label[i]))
			continue;
		error[s.n++] = fabs(c[i].error_frac);
		sum += c[i].error_frac;
		sum_abs += fabs(c[i].error_frac);
		inside += c[i].inside;
		slow += c[i].slow;
	}
	if (!s.n)
		return s;
	stats_sort(error, s.n);
	s.mape = sum_abs / (double)s.n;
	s.bias = sum / (double)s.n;
	s.median = stats_median(error, s.n);
	s.p90 = stats_quantile(error, s.n, 0.9);
	s.max = error[s.n - 1];
	s.inside_interval_frac = inside / (double)s.n;
	s.slow_frac = slow / (double)s.n;
	s.fast_frac = ((double)s.n - inside - slow) / (double)s.n;
	return s;
}

static bool named(const struct ft_summary *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].name, name))
			return true;
	return false;
}

struct ft_summary *tally_each(struct arena *mem, const struct ft_check *c,
			      const char *const *label, size_t n, size_t *n_out)
{
	struct ft_summary *out = NULL;
	size_t cap = 0;

	*n_out = 0;
	for (size_t i = 0; i < n; i++) {
		if (named(out, *n_out, label[i]))
			continue;
		if (*n_out == cap)
			out = ARENA_GROW(mem, out, &cap);
		out[(*n_out)++] = summarize(mem, c, label, n, label[i]);
	}
	return out;
}

void tally_finish(struct tally *t)
{
	struct ft_validation *v = t->v;
	const char **group = ARENA_ARRAY(t->mem, v->n_checks + 1, const char *);
	const char **key = ARENA_ARRAY(t->mem, t->n_side + 1, const char *);

	for (size_t i = 0; i < v->n_checks; i++)
		group[i] = v->check[i].group;
	v->other = t->side;
	v->n_others = t->n_side;
	for (size_t i = 0; i < t->n_side; i++)
		key[i] = t->side[i].key;
	v->summary = summarize(t->mem, v->check, NULL, v->n_checks, NULL);
	v->by = "group";
	v->group = tally_each(t->mem, v->check, group, v->n_checks, &v->n_groups);
	v->by_key = tally_each(t->mem, t->side, key, t->n_side, &v->n_keys);
}

const char *row_id(struct tally *t, const struct csv *rows, size_t row)
{
	const char *id = csv_text(rows, row, csv_column(rows, "id"));

	return id[0] ? id : arena_printf(t->mem, "line %d", rows->line[row]);
}
