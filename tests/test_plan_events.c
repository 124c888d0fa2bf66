/* tests/test_plan_events.c - the events of a search that `serve` runs: when, what, how long still */
#include <math.h>
#include <stdio.h>

#include <jansson.h>

#include "foretoken/base.h"
#include "serve/api.h"
#include "tests/check.h"

enum { MOST = 400 };

struct event {
	json_t *data;
	bool plans;
};

/* As they stand in a stream: a name, lines of data, an empty line. */
static size_t events_of(char *text, struct event *event)
{
	size_t n = 0;

	for (char *end; *text && n < MOST; text = end + 2) {
		char *data = strstr(text, "\ndata: ") + 1, *to = data;

		end = strstr(text, "\n\n");
		assert_true(data && end && data < end);
		event[n].plans = !strncmp(text, "event: plans\n", 13);
		assert_true(event[n].plans || !strncmp(text, "event: progress\n", 16));
		for (char *c = data; c < end; c++)
			if (!strncmp(c, "data: ", 6) && c[-1] == '\n')
				c += 5;
			else
				*to++ = *c;
		event[n].data = json_loadb(data, (size_t)(to - data), 0, NULL);
		assert_non_null(event[n++].data);
	}
	return n;
}

static size_t asked(const char *body, double at_most_s, struct event *event)
{
	struct api_text text = { body, strlen(body) };
	struct api_stream to = { .told = -1, .at_most_s = at_most_s };
	char *out = NULL;
	size_t length, n;
	struct ft_error err;

	to.out = open_memstream(&out, &length);
	ok_or_say(api_plan(&text, &to, &err), err);
	fclose(to.out);
	n = events_of(out, event);
	free(out);
	return n;
}

static double number(const struct event *e, const char *key)
{
	return json_number_value(json_object_get(e->data, key));
}

static bool in_bounds(const struct event *e)
{
	const char *phase = json_string_value(json_object_get(e->data, "phase"));

	assert_true(phase && (!strcmp(phase, "bounds") || !strcmp(phase, "steps")));
	return *phase == 'b';
}

/* At the pace so far, and never longer than it may take. */
static void left_follows(const struct event *e, double at_most_s)
{
	double spent_s = number(e, "spent_s"), finished = number(e, "finished");
	double want = at_most_s - spent_s;

	if (finished > 0)
		want = fmin(want, spent_s * number(e, "total") / finished - spent_s);
	assert_true(fabs(number(e, "at_most_left_s") - fmax(want, 0)) < 1e-9);
}

/* Four a second in each phase at most, the first of each phase at once; plans are last. */
static void a_search_tells_each_phase_and_four_times_a_second(void **state)
{
	static const char *const bodies[] = {
		"{scenario: {model: {name: llama3-8b, num_hidden_layers: 8}, cluster: "
		"{gpu: h200, gpus: 16}, training: {sequence_length: 4096, "
		"global_batch_size: 64}}, top: 2}",
		"{scenario: {model: {name: llama3-8b, num_hidden_layers: 4}, cluster: "
		"{gpu: h200, gpus: 8}, training: {sequence_length: 4096, "
		"global_batch_size: 16}}}",
	};

	(void)state;
	for (int b = 0; b < 2; b++) {
		const double at_most_s = 40;
		struct event e[MOST];
		size_t n = asked(bodies[b], at_most_s, e);

		assert_true(n >= 3 && e[n - 1].plans && in_bounds(&e[0]));
		assert_false(in_bounds(&e[n - 2]));
		for (size_t i = 0; i + 1 < n; i++) {
			left_follows(&e[i], at_most_s);
			assert_true(number(&e[i], "finished") <=
				    number(&e[i], "total"));
			assert_false(e[i].plans);
			if (!i || in_bounds(&e[i]) != in_bounds(&e[i - 1]))
				continue;
			assert_true(number(&e[i], "spent_s") -
					    number(&e[i - 1], "spent_s") >=
				    0.25);
		}
		for (size_t i = 0; i < n; i++)
			json_decref(e[i].data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_search_tells_each_phase_and_four_times_a_second),
	};

	return cmocka_run_group_tests_name("serve/plan", tests, NULL, NULL);
}
