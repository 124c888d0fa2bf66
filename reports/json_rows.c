/* reports/json_rows.c - the JSON of validate and collective */
#include "base/plain.h"
#include "reports/json.h"

#include <math.h>

static json_t *errors(const struct ft_summary *s)
{
	json_t *o = json_object();

	json_put_int(o, "n", (int64_t)s->n);
	json_put(o, "mape", s->mape);
	json_put(o, "bias", s->bias);
	json_put(o, "median", s->median);
	json_put(o, "p90", s->p90);
	json_put(o, "max", s->max);
	return o;
}

static json_t *summary(const struct ft_summary *s)
{
	json_t *o = errors(s);

	json_put(o, "inside_interval_frac", s->inside_interval_frac);
	json_put(o, "slow_frac", s->slow_frac);
	json_put(o, "fast_frac", s->fast_frac);
	return o;
}

static json_t *summaries(const struct ft_summary *s, size_t n)
{
	json_t *o = json_object();

	for (size_t i = 0; i < n; i++)
		json_object_set_new(o, s[i].name, summary(&s[i]));
	return o;
}

static json_t *traits(const struct ft_traits *of)
{
	json_t *o = json_object();
	const struct ft_trait *t;
	size_t n = ft_trait_table(&t);

	for (size_t i = 0; i < n; i++)
		if (t[i].number)
			json_put(o, t[i].name, ft_trait_number(&t[i], of));
		else
			json_put_text(o, t[i].name, ft_trait_word(&t[i], of));
	json_put_bool(o, "unnamed", of->unnamed);
	json_put(o, "kernel_spread_frac", of->kernel_spread_frac);
	json_put(o, "host_spread_frac", of->host_spread_frac);
	json_put(o, "clock_faster_frac", of->clock_faster_frac);
	json_put(o, "clock_slower_frac", of->clock_slower_frac);
	return o;
}

static json_t *classes(const struct ft_traits *of)
{
	json_t *o = json_object();
	char text[FT_CLASS];
	const char *by, *about;

	for (size_t i = 0; (by = ft_class_by(i, &about)); i++)
		json_put_text(o, by, ft_class_of(of, by, text));
	return o;
}

static json_t *check_of(const struct ft_check *c)
{
	json_t *o = json_object();

	json_put_text(o, "id", c->id);
	json_put_text(o, "group", c->group);
	json_put_text(o, "key", c->key);
	json_put(o, "measured", c->measured);
	json_put(o, "predicted", c->predicted);
	json_put(o, "error_frac", c->error_frac);
	json_put(o, "low", c->low);
	json_put(o, "high", c->high);
	json_object_set_new(o, "doubtful", json_boolean(ft_check_doubtful(c)));
	return o;
}

void ft_report_validation_json(FILE *out, const struct ft_validation *v)
{
	PLAIN_NUMBERS;
	json_t *j = json_object(), *rows = json_array(), *failed = json_array();
	json_t *all = summary(&v->summary), *others = json_array();

	for (size_t i = 0; i < v->n_checks; i++) {
		const struct ft_check *c = &v->check[i];
		json_t *o = check_of(c);

		json_put(o, "extrapolated_frac", c->extrapolated_frac);
		if (c->traits)
			json_object_set_new(o, "fits", json_boolean(!c->no_room));
		if (c->traits)
			json_object_set_new(o, "traits", traits(c->traits));
		if (c->traits)
			json_object_set_new(o, "classes", classes(c->traits));
		json_array_append_new(rows, o);
	}
	for (size_t i = 0; i < v->n_others; i++)
		json_array_append_new(others, check_of(&v->other[i]));
	for (size_t i = 0; i < v->n_failures; i++) {
		json_t *o = json_object();

		json_put_text(o, "id", v->failure[i].id);
		json_put_text(o, "reason", v->failure[i].reason);
		json_array_append_new(failed, o);
	}
	json_put_int(all, "failed", (int64_t)v->n_failures);
	json_object_set_new(j, "rows", rows);
	json_object_set_new(j, "other_rows", others);
	json_object_set_new(j, "failed", failed);
	json_object_set_new(j, "summary", all);
	json_put_text(j, "by", v->by);
	json_object_set_new(j, "groups", summaries(v->group, v->n_groups));
	json_object_set_new(j, "by_key", summaries(v->by_key, v->n_keys));
	json_print(out, j);
}

void ft_report_stack_fit_json(FILE *out, const struct ft_stack_fit *fit)
{
	PLAIN_NUMBERS;
	json_t *j = json_object(), *factors = json_object();

	json_put_text(j, "stack", fit->path);
	json_put_int(j, "n", (int64_t)fit->n);
	json_put_int(j, "failed", (int64_t)fit->n_failed);
	for (size_t i = 0; i < FT_FIT_FACTORS; i++)
		json_put(factors, ft_fit_factor_name(i), exp(fit->ln_factor[i]));
	json_object_set_new(j, "factors", factors);
	json_object_set_new(j, "before", errors(&fit->before));
	json_object_set_new(j, "after", errors(&fit->after));
	json_object_set_new(j, "held_out", errors(&fit->held_out));
	json_put_int(j, "folds", (int64_t)fit->folds);
	json_put_text(j, "fold",
		      fit->by_group	  ? "group" :
		      fit->folds < fit->n ? "scenario" :
					    "run");
	json_print(out, j);
}

void ft_report_collectives_json(FILE *out, const struct ft_collective_line *l, size_t n)
{
	PLAIN_NUMBERS;
	json_t *j = json_object(), *rows = json_array();

	for (size_t i = 0; i < n; i++) {
		double t = l[i].result.duration.time_s;
		double algbw = t > 0 ? l[i].bytes / t * 1e-9 : 0;
		json_t *o = json_object();

		json_put_text(o, "op", ft_collective_name(l[i].op));
		json_put_int(o, "gpus", l[i].gpus);
		json_put(o, "bytes", l[i].bytes);
		json_put(o, "time_us", t * 1e6);
		json_put(o, "algbw_gb_per_s", algbw);
		json_put(o, "busbw_gb_per_s",
			 algbw * ft_collective_bus_factor(l[i].op, l[i].gpus));
		json_put_text(o, "algorithm", l[i].result.algorithm);
		json_put_text(o, "protocol", l[i].result.protocol);
		json_put_text(o, "chosen_by", l[i].result.chosen_by);
		json_put(o, "regret_frac", l[i].result.regret_frac);
		if (l[i].result.regret_frac > FT_REGRET_WORTH_SAYING) {
			json_put_text(o, "best_algorithm", l[i].result.best_algorithm);
			json_put_text(o, "best_protocol", l[i].result.best_protocol);
		}
		json_object_set_new(o, "extrapolated",
				    json_boolean(l[i].result.duration.extrapolated));
		json_array_append_new(rows, o);
	}
	json_object_set_new(j, "rows", rows);
	json_print(out, j);
}
