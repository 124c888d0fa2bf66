/* tests/config_json.h - a model from the text of a config.json, as a scenario names the file */
#ifndef TESTS_CONFIG_JSON_H
#define TESTS_CONFIG_JSON_H

#include <unistd.h>

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/models.h"
#include "tests/check.h"

static inline struct ft_model *model_of_text(const char *yaml, struct ft_error *err)
{
	struct arena mem = { 0 };
	struct node *node = node_read_text(&mem, "test.yaml", yaml, strlen(yaml), err);
	struct ft_model *model;

	assert_non_null(node);
	model = ft_model_load(node, err);
	arena_release(&mem);
	return model;
}

/* Of a model from a text; with a pointer, the parameters of such adapters, too. */
static inline double parameters_of_text(const char *yaml, const struct ft_lora *lora,
					double *adapters)
{
	struct ft_error err;
	struct ft_model *m = model_of_text(yaml, &err);
	double n;

	ok_or_say(m, err);
	n = ft_model_parameters(m);
	if (adapters)
		*adapters = ft_model_lora_parameters(m, lora);
	ft_model_free(m);
	return n;
}

/* extra: further keys of the scenario's model, ", key: value". */
static inline struct ft_model *model_of_json(const char *json, const char *extra,
					     struct ft_error *err)
{
	char path[] = "/tmp/foretoken-XXXXXX.json", yaml[300];
	int fd = mkstemps(path, 5);
	struct ft_model *model;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, json, strlen(json)), (long)strlen(json));
	close(fd);
	snprintf(yaml, sizeof(yaml), "{name: %s%s}", path, extra);
	model = model_of_text(yaml, err);
	unlink(path);
	return model;
}

/* The quotes of JSON are written ' in the tables of tests. */
static inline char *json_of(const char *text)
{
	static char json[2000];

	snprintf(json, sizeof(json), "%s", text);
	for (char *c = json; *c; c++)
		if (*c == '\'')
			*c = '"';
	return json;
}

static inline struct ft_model *must(const char *json)
{
	struct ft_error err;
	struct ft_model *m = model_of_json(json, "", &err);

	if (!m)
		fail_msg("%s: %s", json, err.text);
	return m;
}

#endif
