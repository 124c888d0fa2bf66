/* tests/test_plans_json.c - what searches found, of figures that are drawn: each member of its JSON */
#include <jansson.h>

#include "tests/found.h"
#include "tests/printed.h"

/* ---- JSON -------------------------------------------------------- */

static void number_is(const json_t *o, const char *key, double want)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_number(v))
		fail_msg("%s is no number", key);
	near_frac(json_number_value(v), want, 1e-11);
}

static void plan_json_is(const json_t *j, const struct ft_planned *p, const char *dp)
{
	const struct ft_outcome *o = p->outcome;
	const json_t *b = json_object_get(j, "breakdown_s");
	bool fleet = o->asked.n && !o->asked.fleet[0].none;

	number_is(j, "dp", atof(dp));
	number_is(j, "step_s", o->step_s);
	number_is(j, "tokens_per_s", o->tokens_per_s);
	number_is(j, "tokens_per_s_per_gpu", o->tokens_per_s_per_gpu);
	number_is(j, "mfu", o->mfu);
	number_is(j, "usd_per_million_tokens", o->cost.usd_per_million_tokens);
	number_is(json_object_get(j, "memory_bytes_per_gpu"), "total",
		  o->memory_total_bytes);
	number_is(b, "compute", o->breakdown.compute_s);
	number_is(b, "exposed_communication", o->breakdown.exposed_communication_s);
	number_is(b, "bubble", o->breakdown.bubble_s);
	number_is(b, "host", o->breakdown.host_s);
	number_is(b, "optimizer", o->breakdown.optimizer_s);
	if (fleet) {
		number_is(j, "days", o->asked.fleet[0].days[1]);
		number_is(j, "usd", o->asked.fleet[0].usd[1]);
	}
	assert_int_equal(json_is_true(json_object_get(j, "equal")), p->equal);
	assert_string_equal(json_string_value(json_object_get(j, "why")), p->why);
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(j, "training"), "sharding")),
			    ft_sharding_name(p->scenario->plan->sharding));
	assert_int_equal(json_object_size(b), 5);
	assert_int_equal(json_object_size(j), fleet ? 13 : 11);
}

static const json_t *list_of(const json_t *j, const char *key, size_t n)
{
	const json_t *list = json_object_get(j, key);

	assert_true(json_is_array(list));
	assert_int_equal(json_array_size(list), n);
	return list;
}

static void json_is(const json_t *j, const struct found *f)
{
	const struct ft_plans *p = &f->p;
	const json_t *best = list_of(j, "best", p->n),
		     *front = list_of(j, "front", p->n_front),
		     *ways = list_of(j, "ways_out", p->n_ways),
		     *left = list_of(j, "left_out", p->n_left_out);

	number_is(j, "combinations", p->combinations);
	number_is(j, "considered", (double)p->considered);
	number_is(j, "bounded", (double)p->bounded);
	number_is(j, "refused", (double)p->refused);
	number_is(j, "feasible", (double)p->feasible);
	number_is(j, "over_gpu_memory", (double)p->over_gpu);
	number_is(j, "over_node_memory", (double)p->over_node);
	number_is(j, "simulated", (double)p->simulated);
	number_is(j, "known", (double)p->known);
	number_is(j, "wall_s", p->wall_s);
	number_is(j, "open", (double)p->open);
	assert_int_equal(json_is_true(json_object_get(j, "interrupted")),
			 p->interrupted);
	if (p->n && p->open)
		number_is(j, "open_better_frac", p->open_better_frac);
	if (p->n)
		number_is(j, "simplest", (double)p->simplest);
	assert_int_equal(json_object_size(j), 17 + (p->n && p->open) + (p->n > 0));
	for (size_t i = 0; i < p->n_left_out; i++)
		assert_string_equal(json_string_value(json_array_get(left, i)),
				    p->left_out[i]);
	for (size_t i = 0; i < p->n; i++)
		plan_json_is(json_array_get(best, i), &p->best[i],
			     known[f->which[i]].row[3]);
	for (size_t i = 0; i < p->n_front; i++)
		plan_json_is(json_array_get(front, i), &p->front[i],
			     known[f->which[p->n - 1 - i]].row[3]);
	for (size_t i = 0; i < p->n_ways; i++) {
		const json_t *way = json_array_get(ways, i);

		assert_string_equal(json_string_value(json_object_get(way, "change")),
				    p->way[i].text);
		number_is(way, "memory_frac", p->way[i].memory_frac);
		assert_string_equal(json_string_value(json_object_get(way, "memory")),
				    p->way[i].of_node ? "node" : "gpu");
	}
}

static void json_has_what_was_found(void **state)
{
	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		static struct found f[SIZES];
		struct ft_plans *all[] = { &f[0].p, &f[1].p, &f[2].p };
		struct ft_planning g = { all, 1 + (size_t)below(3), FT_RANK_TOKENS,
					 NULL };
		const json_t *plans;
		char *text = NULL;
		json_t *j;

		for (size_t k = 0; k < g.n; k++)
			draw_found(&f[k], below(2));
		PRINTED(text, ft_report_plans_json(out, &g));
		j = json_loads(text, 0, NULL);
		assert_non_null(j);
		plans = g.n > 1 ? list_of(j, "plans", g.n) : NULL;
		if (plans)
			assert_int_equal(json_object_size(j), 1);
		for (size_t k = 0; k < g.n; k++)
			json_is(plans ? json_array_get(plans, k) : j, &f[k]);
		json_decref(j);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_has_what_was_found),
	};

	return cmocka_run_group_tests_name("plans in JSON", tests, load, drop);
}
