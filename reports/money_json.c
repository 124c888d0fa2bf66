/* reports/money_json.c - verdicts, fleets and finance as JSON */
#include "reports/json.h"
#include "reports/money.h"

static json_t *three(const double v[3])
{
	json_t *o = json_object();

	json_put(o, "p10", v[0]);
	json_put(o, "p50", v[1]);
	json_put(o, "p90", v[2]);
	return o;
}

static json_t *fleet_json(const struct ft_fleet *f)
{
	json_t *o = json_object(), *beyond;

	json_put_text(o, "for", f->question);
	if (f->none) {
		json_put_text(o, "none", f->none);
		return o;
	}
	beyond = json_array();
	json_put_int(o, "gpus", f->gpus);
	json_put(o, "tokens", f->tokens);
	json_object_set_new(o, "days", three(f->days));
	json_object_set_new(o, "usd", three(f->usd));
	json_put(o, "megawatts", f->megawatts);
	json_put(o, "megawatts_p10", f->megawatts_low);
	json_put(o, "megawatts_p90", f->megawatts_high);
	json_put(o, "energy_mwh", f->energy_mwh);
	json_put(o, "failures", f->failures);
	json_put(o, "tokens_per_s", f->tokens_per_s);
	json_put(o, "usd_per_million_tokens", f->cost.usd_per_million_tokens);
	json_object_set_new(o, "beyond", beyond);
	for (int l = 0; l < FT_LIMITS; l++)
		if (f->beyond[l])
			json_array_append_new(
				beyond, json_string(ft_limit_name((enum ft_limit)l)));
	return o;
}

json_t *money_fleet_array(const struct ft_run_answer *a, size_t from)
{
	json_t *fleets = json_array();

	for (size_t i = from; i < a->n; i++)
		json_array_append_new(fleets, fleet_json(&a->fleet[i]));
	return fleets;
}

/* The cluster as given, with the other fleets in "fleets". */
json_t *money_fleets_json(const struct ft_run_answer *a)
{
	json_t *run = fleet_json(&a->fleet[0]);

	json_object_set_new(run, "fleets", money_fleet_array(a, 1));
	if (a->left_out)
		json_put_int(run, "left_out_gpus", a->left_out);
	return run;
}

json_t *money_finance_json(const struct ft_scenario *s, const struct ft_outcome *o)
{
	const struct ft_deal d = ft_outcome_deal(s, o);
	const struct ft_readings r = ft_flows_read(&d);
	json_t *j = json_object();

	json_put(j, "annuity_usd_per_gpu_hour", r.annuity);
	json_put(j, "levelised_usd_per_gpu_hour", r.levelised);
	json_put(j, "straight_line_usd_per_gpu_hour", r.straight_line);
	json_put(j, "warehouse_usd_per_gpu_hour", r.warehouse);
	json_put(j, "semianalysis_usd_per_gpu_hour", r.semianalysis);
	json_put(j, "npv_usd", r.npv_usd);
	if (!(r.rent > 0))
		return j;
	json_put(j, "rent_usd_per_gpu_hour", r.rent);
	json_put(j, "break_even_utilization_frac", r.break_even_utilization_frac);
	json_put(j, "break_even_months", r.break_even_months);
	json_put(j, "irr_frac", r.irr_frac);
	return j;
}

static json_t *numbers_json(const double *v, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_of_number(v[i]));
	return a;
}

static json_t *causes_json(const struct ft_odds *odds)
{
	json_t *a = json_array();

	for (size_t c = 0; c < odds->n_causes; c++) {
		json_t *o = json_object();

		json_put_text(o, "cause", odds->cause[c].name);
		json_object_set_new(o, "p10",
				    numbers_json(odds->cause[c].low, odds->n));
		json_object_set_new(o, "p90",
				    numbers_json(odds->cause[c].high, odds->n));
		json_array_append_new(a, o);
	}
	return a;
}

json_t *money_verdict_json(const struct ft_answers *a)
{
	const struct ft_verdict *v = a->verdict;
	json_t *o = json_object(), *crossings = json_array();
	char text[FT_SENTENCE];

	json_put_text(o, "metric", "usd_per_million_tokens");
	json_put_text(o, "basis", ft_basis_name(a->basis));
	json_put_text(o, "best", a->label[v->best]);
	json_put(o, "probability", v->probability);
	json_put_bool(o, "tie", v->tie);
	json_put_text(o, "sentence", ft_verdict_sentence(v, a->label, text));
	json_put_int(o, "draws", (int64_t)v->odds.draws);
	json_object_set_new(o, "cheapest_frac",
			    numbers_json(v->odds.cheapest_frac, v->odds.n));
	json_object_set_new(o, "p10",
			    numbers_json(v->odds.p10[FT_DRAWN_USD], v->odds.n));
	json_object_set_new(o, "p50",
			    numbers_json(v->odds.p50[FT_DRAWN_USD], v->odds.n));
	json_object_set_new(o, "p90",
			    numbers_json(v->odds.p90[FT_DRAWN_USD], v->odds.n));
	json_object_set_new(o, "causes", causes_json(&v->odds));
	json_put_text(o, "crossovers_of", a->label[v->second]);
	json_put_bool(o, "likely_otherwise", v->likely_otherwise);
	for (size_t k = 0; k < v->n_crossovers; k++) {
		json_t *x = json_object();

		json_put_text(x, "what", v->crossover[k].what);
		json_put(x, "value", v->crossover[k].value);
		json_put(x, "now", v->crossover[k].now);
		json_put_text(x, "unit", v->crossover[k].unit);
		json_array_append_new(crossings, x);
	}
	json_object_set_new(o, "crossovers", crossings);
	return o;
}

json_t *money_differences_json(const struct ft_answers *a)
{
	json_t *list = json_array();

	for (size_t i = 1; i < a->n; i++) {
		json_t *o = json_object(), *parts = json_array();

		json_put_text(o, "name", a->label[i]);
		json_put_text(o, "against", a->label[0]);
		for (int p = 0; p < FT_COST_PARTS; p++) {
			json_t *part = json_object();

			json_put_text(part, "part",
				      ft_part_of_cost_name((enum ft_part_of_cost)p));
			json_put(part, "usd_per_million_tokens",
				 a->verdict->part_usd[i][p]);
			json_array_append_new(parts, part);
		}
		json_object_set_new(o, "parts", parts);
		json_array_append_new(list, o);
	}
	return list;
}
