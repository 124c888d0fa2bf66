/* reports/json.c - the JSON of simulate and its parts */
#include "reports/json.h"

#include <math.h>
#include <string.h>

json_t *json_of_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

void json_put(json_t *o, const char *key, double value)
{
	json_object_set_new(o, key, json_of_number(value));
}

void json_put_int(json_t *o, const char *key, int64_t value)
{
	json_object_set_new(o, key, json_integer(value));
}

void json_put_text(json_t *o, const char *key, const char *text)
{
	json_object_set_new(o, key, json_string(text ? text : ""));
}

void json_put_bool(json_t *o, const char *key, bool value)
{
	json_object_set_new(o, key, json_boolean(value));
}

void json_print(FILE *out, json_t *value)
{
	json_dumpf(value, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
	putc('\n', out);
	json_decref(value);
}

static json_t *pair(double low, double high)
{
	json_t *a = json_array();

	json_array_append_new(a, json_of_number(low));
	json_array_append_new(a, json_of_number(high));
	return a;
}

static json_t *parallel(const struct ft_plan *p)
{
	json_t *o = json_object();

	json_put_int(o, "tp", p->tp);
	json_put_int(o, "pp", p->pp);
	json_put_int(o, "cp", p->cp);
	json_put_int(o, "ep", p->ep);
	json_put_int(o, "etp", p->etp);
	json_put_int(o, "vpp", p->vpp);
	json_put_int(o, "dp", p->dp);
	return o;
}

static json_t *training(const struct ft_plan *p)
{
	json_t *o = json_object(), *overlap = json_object();

	json_put_int(o, "sequence_length", p->sequence);
	json_put_int(o, "global_batch_size", p->global_batch);
	json_put_int(o, "micro_batch_size", p->micro_batch);
	json_put_text(o, "precision", ft_dtype_name(p->precision));
	json_object_set_new(o, "parallel", parallel(p));
	json_put_text(o, "sharding", ft_sharding_name(p->sharding));
	json_put_text(o, "schedule", ft_schedule_name(p->schedule));
	json_put_bool(o, "sequence_parallel", p->sequence_parallel);
	json_put_text(o, "recompute", ft_recompute_name(p->recompute));
	json_put_text(o, "gradient_dtype", ft_dtype_name(p->gradient_dtype));
	json_put_bool(o, "master_weights", p->master_weights);
	json_put_bool(o, "reshard_after_forward", p->reshard_after_forward);
	json_put_bool(overlap, "tp", p->overlap_tp);
	json_put_bool(overlap, "dp", p->overlap_dp);
	json_put_bool(overlap, "pp", p->overlap_pp);
	json_put_bool(overlap, "copy_engines", p->copy_engines);
	json_object_set_new(o, "overlap", overlap);
	json_put_text(o, "step_start",
		      p->step_start == FT_STEADY ? "steady" : "together");
	return o;
}

static json_t *resolved(const struct ft_scenario *s)
{
	json_t *o = json_object(), *cluster = json_object(), *cost = json_object();

	json_put_text(o, "model", s->model->name);
	json_put_text(cluster, "gpu", s->cluster->gpu->name);
	json_put_int(cluster, "gpus", s->cluster->gpus);
	json_put_text(cluster, "node", s->cluster->node->name);
	json_put_text(cluster, "fabric", s->cluster->fabric->name);
	json_object_set_new(o, "cluster", cluster);
	json_put_text(o, "stack", s->stack->name);
	json_put_text(o, "ccl", s->ccl->name);
	json_object_set_new(o, "training", training(s->plan));
	json_put_text(cost, "prices", s->prices->name);
	json_put(cost, "horizon_years", s->terms.horizon_years);
	json_put(cost, "cost_of_capital_frac", s->terms.cost_of_capital_frac);
	json_put(cost, "residual_frac", s->terms.residual_frac);
	json_put(cost, "electricity_usd_per_kwh",
		 ft_cost_electricity_usd_per_kwh(&s->terms, s->prices));
	json_put(cost, "pue", s->terms.pue);
	json_put(cost, "utilization_frac", s->terms.utilization_frac);
	json_object_set_new(o, "cost", cost);
	return o;
}

static json_t *memory(const struct ft_outcome *o)
{
	json_t *m = json_object();

	json_put(m, "total", o->memory_total_bytes);
	for (int i = 0; i < FT_MEMORIES; i++)
		json_put(m, ft_memory_name((enum ft_memory)i), o->memory_bytes[i]);
	return m;
}

static json_t *breakdown(const struct ft_breakdown *b)
{
	json_t *o = json_object();

	json_put(o, "compute", b->compute_s);
	json_put(o, "exposed_communication", b->exposed_communication_s);
	json_put(o, "bubble", b->bubble_s);
	json_put(o, "host", b->host_s);
	json_put(o, "optimizer", b->optimizer_s);
	return o;
}

static json_t *interval(const struct ft_outcome *o)
{
	json_t *i = json_object();

	json_put(i, "coverage_frac", 0.8);
	json_object_set_new(i, "step_s", pair(o->step_low_s, o->step_high_s));
	json_object_set_new(i, "tokens_per_s",
			    pair(o->tokens_low_per_s, o->tokens_high_per_s));
	json_object_set_new(i, "usd_per_million_tokens",
			    pair(o->cost.usd_per_million_tokens_low,
				 o->cost.usd_per_million_tokens_high));
	return i;
}

static json_t *money(const struct ft_cost *c)
{
	json_t *o = json_object();

	json_put(o, "capex_usd", c->capex_usd);
	json_put(o, "capex_network_usd", c->capex_network_usd);
	json_put(o, "usd_per_gpu_hour", c->usd_per_gpu_hour);
	json_put(o, "capital_usd_per_gpu_hour", c->capital_usd_per_gpu_hour);
	json_put(o, "electricity_usd_per_gpu_hour", c->electricity_usd_per_gpu_hour);
	json_put(o, "colocation_usd_per_gpu_hour", c->colocation_usd_per_gpu_hour);
	json_put(o, "maintenance_usd_per_gpu_hour", c->maintenance_usd_per_gpu_hour);
	json_put(o, "usd_per_million_tokens", c->usd_per_million_tokens);
	json_put(o, "tokens_per_usd", c->tokens_per_usd);
	json_put(o, "joules_per_token", c->joules_per_token);
	json_put(o, "facility_power_w", c->facility_power_w);
	json_put(o, "goodput", c->goodput);
	return o;
}

static json_t *items(const struct ft_run *run)
{
	json_t *a = json_array();

	for (size_t i = 0; i < run->n_shares && i < 40; i++) {
		json_t *o = json_object();

		json_put_text(o, "name", run->share[i].name);
		json_put(o, "time_s", run->share[i].time_s);
		json_put(o, "count", run->share[i].count);
		json_put_bool(o, "communication", run->share[i].communication);
		json_put_bool(o, "extrapolated", run->share[i].extrapolated);
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *provenance_text(const struct ft_provenance *p)
{
	if (!p)
		return json_string("");
	return json_sprintf("%s%s%s%s%s", ft_provenance_kind_name(p->kind),
			    p->source[0] ? ": " : "", p->source, p->date[0] ? ", " : "",
			    p->date);
}

json_t *json_of_outcome(const struct ft_scenario *s, const struct ft_outcome *o)
{
	json_t *j = json_object(), *from = json_object(), *assumed = json_array();

	json_put(j, "step_s", o->step_s);
	json_put(j, "tokens_per_s", o->tokens_per_s);
	json_put(j, "tokens_per_s_per_gpu", o->tokens_per_s_per_gpu);
	json_put(j, "model_flop_per_s_per_gpu", o->model_flop_per_s_per_gpu);
	json_put(j, "mfu", o->mfu);
	json_put(j, "mfu_full", o->mfu_full);
	json_put(j, "hfu", o->hfu);
	json_put_bool(j, "fits", o->fits);
	json_object_set_new(j, "memory_bytes_per_gpu", memory(o));
	json_object_set_new(j, "breakdown_s", breakdown(&o->breakdown));
	json_object_set_new(j, "interval", interval(o));
	json_put(j, "extrapolated_frac", o->extrapolated_frac);
	json_object_set_new(j, "cost", money(&o->cost));
	json_put_text(j, "bottleneck", o->bottleneck);
	if (o->beside) {
		json_t *b = json_object();

		json_put_text(b, "scenario", o->beside);
		json_put(b, "step_alone_s", o->step_alone_s);
		json_object_set_new(j, "beside", b);
	}
	json_object_set_new(j, "items", items(o->run));
	json_object_set_new(from, "gpu", provenance_text(s->cluster->gpu->from));
	json_object_set_new(from, "stack", provenance_text(s->stack->from));
	json_object_set_new(from, "ccl", provenance_text(s->ccl->from));
	json_object_set_new(from, "prices", provenance_text(s->prices->from));
	json_object_set_new(j, "provenance", from);
	json_object_set_new(j, "scenario", resolved(s));
	for (size_t i = 0; i < s->n_assumed; i++)
		json_array_append_new(assumed, json_string(s->assumed[i]));
	json_object_set_new(j, "assumed", assumed);
	return j;
}

void ft_report_outcome_json(FILE *out, const struct ft_scenario *s,
			    const struct ft_outcome *o)
{
	json_print(out, json_of_outcome(s, o));
}

void ft_report_compare_json(FILE *out, const struct ft_scenario *const *s,
			    const struct ft_outcome *o, size_t n)
{
	json_t *j = json_object(), *list = json_array(), *diffs = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_of_outcome(s[i], &o[i]));
	for (size_t i = 1; i < n; i++) {
		size_t count;
		struct ft_difference *d =
			ft_study_differences(s[0], &o[0], s[i], &o[i], &count);
		for (size_t k = 0; k < count; k++) {
			json_t *e = json_object();

			json_put_int(e, "scenario", (int64_t)i);
			json_put_text(e, "what", d[k].what);
			json_put(e, "first_ns_per_token", d[k].value[0]);
			json_put(e, "this_ns_per_token", d[k].value[1]);
			json_put(e, "share_frac", d[k].share_frac);
			json_array_append_new(diffs, e);
		}
		ft_differences_free(d);
	}
	json_object_set_new(j, "scenarios", list);
	json_object_set_new(j, "differences", diffs);
	json_print(out, j);
}
