/* reports/json.c - the JSON of simulate and its parts */
#include "reports/json.h"
#include "reports/evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/plain.h"
#include "base/text.h"
#include "reports/money.h"
#include "reports/prices.h"
#include "reports/stages.h"

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
	json_object_set_new(o, key, json_of_text(text ? text : ""));
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

json_t *json_of_node(const struct node *n)
{
	json_t *j;

	if (node_is_null(n))
		return json_null();
	if (n->kind == NODE_SCALAR) {
		if (node_is_bool(n))
			return json_boolean(!strcmp(n->text, "true"));
		if (!node_is_number(n))
			return json_of_text(n->text);
		if (strcspn(n->text, ".eE") == strlen(n->text) && strlen(n->text) < 18)
			return json_integer(strtoll(n->text, NULL, 10));
		return json_real(strtod(n->text, NULL));
	}
	j = n->kind == NODE_MAP ? json_object() : json_array();
	for (size_t i = 0; i < n->n; i++)
		if (n->kind == NODE_MAP)
			json_object_set_new(j, n->key[i], json_of_node(n->item[i]));
		else
			json_array_append_new(j, json_of_node(n->item[i]));
	return j;
}

/* Under "a.b": key b of the object a, made when need be. */
static void put_path(json_t *o, const char *path, json_t *value)
{
	const char *dot = strchr(path, '.');
	char head[64];
	json_t *inner;

	if (!dot) {
		json_object_set_new(o, path, value);
		return;
	}
	snprintf(head, sizeof(head), "%.*s", (int)(dot - path), path);
	inner = json_object_get(o, head);
	if (!inner) {
		inner = json_object();
		json_object_set_new(o, head, inner);
	}
	put_path(inner, dot + 1, value);
}

static void numbers(json_t *j, const struct ft_outcome *o)
{
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);
	json_t *interval = json_object();

	json_put(interval, "coverage_frac", 0.8);
	for (size_t i = 0; i < n; i++) {
		put_path(j, f[i].key, json_of_number(ft_outcome_at(o, f[i].value)));
		if (f[i].high)
			json_object_set_new(interval, text_last_word(f[i].key),
					    pair(ft_outcome_at(o, f[i].low),
						 ft_outcome_at(o, f[i].high)));
	}
	json_object_set_new(j, "interval", interval);
}

static json_t *items(const struct ft_run *run)
{
	json_t *a = json_array();

	for (size_t i = 0; i < run->n_shares && i < 40; i++) {
		json_t *o = json_object();

		json_put_text(o, "name", run->share[i].name);
		json_put(o, "time_s", run->share[i].time_s);
		json_put(o, "count", run->share[i].count);
		if (run->share[i].kind != FT_COMMUNICATION) {
			json_put(o, "flop", run->share[i].flop);
			json_put(o, "bytes", run->share[i].bytes);
			json_put(o, "roofline_s", run->share[i].roofline_s);
		}
		json_put_bool(o, "communication",
			      run->share[i].kind == FT_COMMUNICATION);
		json_put_bool(o, "extrapolated", run->share[i].extrapolated);
		json_array_append_new(a, o);
	}
	return a;
}

/* The measured runs that are most like this one. */
static json_t *nearest(const struct ft_outcome *o)
{
	json_t *a = json_array();

	for (size_t i = 0; i < o->n_nearest; i++) {
		json_t *run = json_object();

		json_put_text(run, "id", o->nearest[i].id);
		json_put_text(run, "source", o->nearest[i].source);
		json_put(run, "error_frac", o->nearest[i].error_frac);
		json_put(run, "distance", o->nearest[i].distance);
		json_put_text(run, "differs", o->nearest[i].differs);
		json_array_append_new(a, run);
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

/* What follows from the scenario without being a key of it. */
static json_t *derived(const struct ft_scenario *s)
{
	json_t *o = json_object(), *passed = json_array();
	const struct ft_model *m = s->model;

	json_put_int(o, "dp", s->plan->dp);
	json_put_int(o, "micro_batches", s->plan->micro_batches);
	json_put_int(o, "nodes", s->cluster->nodes);
	json_put_int(o, "ranks", s->cluster->ranks);
	json_put(o, "parameters", ft_model_parameters(m));
	json_put(o, "active_parameters", ft_model_active_parameters(m));
	json_put(o, "trained_parameters",
		 s->plan->lora.rank ? ft_model_lora_parameters(m, &s->plan->lora) :
				      ft_model_parameters(m));
	if (s->searched)
		json_put_int(o, "plans_searched", (int64_t)s->searched);
	if (m->stretched_from)
		json_put_int(o, "positions_stretched_from", m->stretched_from);
	if (ft_model_vocab(m, s->plan->tp) > m->vocab_size)
		json_put_int(o, "padded_vocab_size", ft_model_vocab(m, s->plan->tp));
	for (size_t i = 0; i < m->n_passed_over; i++)
		json_array_append_new(passed, json_of_text(m->passed_over[i]));
	json_object_set_new(o, "model_keys_passed_over", passed);
	return o;
}

json_t *json_of_breakdown(const struct ft_breakdown *b)
{
	json_t *j = json_object();

	json_put(j, "compute", b->compute_s);
	json_put(j, "exposed_communication", b->exposed_communication_s);
	json_put(j, "bubble", b->bubble_s);
	json_put(j, "host", b->host_s);
	json_put(j, "optimizer", b->optimizer_s);
	return j;
}

/* Keys that are stated and do nothing, as the terminal is told of them. */
static json_t *idle_keys(const struct ft_scenario *s)
{
	json_t *list = json_array();
	const char *key, *where;

	for (size_t i = 0; (key = ft_scenario_idle(s, i, &where)); i++) {
		json_t *j = json_object();

		json_put_text(j, "key", key);
		json_put_text(j, "counts", where);
		json_array_append_new(list, j);
	}
	return list;
}

json_t *json_of_outcome(const struct ft_scenario *s, const struct ft_outcome *o,
			const char *id)
{
	json_t *j = json_object(), *from = json_object(), *assumed = json_array();

	json_put_text(j, "name", s->label);
	json_put_text(j, "id", id);
	json_put_bool(j, "fits", o->fits);
	numbers(j, o);
	json_put_text(j, "bottleneck", o->bottleneck);
	if (o->beside) {
		json_t *b = json_object();

		json_put_text(b, "scenario", o->beside);
		json_put(b, "step_alone_s", o->step_alone_s);
		json_object_set_new(j, "beside", b);
	}
	if (o->asked.n)
		json_object_set_new(j, "run", money_fleets_json(&o->asked));
	json_object_set_new(j, "finance", money_finance_json(s, o));
	json_object_set_new(j, "nearest_runs", nearest(o));
	json_put_bool(j, "gpu_measured", o->gpu_measured);
	json_put_bool(j, "stack_measured", o->stack_measured);
	json_put_bool(j, "attention_measured", o->attention_measured);
	json_object_set_new(j, "items", items(o->run));
	json_object_set_new(j, "stages", stages_json(s, o));
	json_object_set_new(from, "gpu", provenance_text(s->cluster->gpu->from));
	json_object_set_new(from, "stack", provenance_text(s->stack->from));
	json_object_set_new(from, "ccl", provenance_text(s->ccl->from));
	json_object_set_new(from, "prices", provenance_text(s->prices->from));
	json_object_set_new(j, "provenance", from);
	json_object_set_new(j, "prices", prices_json(o->bom, s->prices));
	json_object_set_new(j, "scenario", json_of_node(s->resolved));
	json_object_set_new(j, "derived", derived(s));
	for (size_t i = 0; i < s->n_assumed; i++)
		json_array_append_new(assumed, json_of_text(s->assumed[i]));
	json_object_set_new(j, "assumed", assumed);
	json_object_set_new(j, "idle_keys", idle_keys(s));
	return j;
}

void ft_report_outcome_json(FILE *out, const struct ft_scenario *s,
			    const struct ft_outcome *o)
{
	PLAIN_NUMBERS;
	json_print(out, json_of_outcome(s, o, s->label));
}

void ft_report_document_json(FILE *out, const struct node *document)
{
	PLAIN_NUMBERS;
	json_t *j = json_of_node(document);

	json_dumpf(j, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12) | JSON_ENCODE_ANY);
	putc('\n', out);
	json_decref(j);
}

static json_t *differs(const struct ft_answers *a)
{
	struct ft_settings *all = ft_study_settings(a->scenario, a->n);
	json_t *list = json_array();

	for (size_t i = 0; i < all->n; i++) {
		json_t *o, *values;

		if (!all->setting[i].differs)
			continue;
		o = json_object();
		values = json_array();
		for (size_t k = 0; k < a->n; k++)
			json_array_append_new(values,
					      json_of_text(all->setting[i].value[k]));
		json_put_text(o, "key", all->setting[i].key);
		json_object_set_new(o, "values", values);
		json_array_append_new(list, o);
	}
	ft_settings_free(all);
	return list;
}

/* Why scenario i differs from the first, part by part. */
static void add_differences(const struct ft_answers *a, size_t i, json_t *list)
{
	size_t n;
	struct ft_difference *d = ft_study_differences(
		a->scenario[0], &a->outcome[0], a->scenario[i], &a->outcome[i], &n);

	for (size_t k = 0; k < n; k++) {
		json_t *e = json_object();

		json_put_int(e, "scenario", (int64_t)i);
		json_put_text(e, "what", d[k].what);
		json_put(e, "first_ns_per_token", d[k].value[0]);
		json_put(e, "this_ns_per_token", d[k].value[1]);
		json_put(e, "share_frac", d[k].share_frac);
		json_array_append_new(list, e);
	}
	ft_differences_free(d);
}

void ft_report_compare_json(FILE *out, const struct ft_answers *a)
{
	PLAIN_NUMBERS;
	json_t *j = json_object(), *list = json_array(), *diffs = json_array();
	char text[WARNINGS];

	for (size_t i = 0; i < a->n; i++)
		json_array_append_new(
			list,
			json_of_outcome(a->scenario[i], &a->outcome[i], a->label[i]));
	for (size_t i = 1; i < a->n; i++)
		add_differences(a, i, diffs);
	json_object_set_new(j, "scenarios", list);
	json_object_set_new(j, "differs", differs(a));
	json_object_set_new(j, "differences", diffs);
	if (a->verdict) {
		json_object_set_new(j, "cost_differences", money_differences_json(a));
		json_object_set_new(j, "verdict", money_verdict_json(a));
	}
	if (evidence_warning(a, text))
		json_put_text(j, "warning", text);
	json_put_text(j, "version", ft_version());
	json_put_text(j, "command", a->command);
	json_print(out, j);
}
