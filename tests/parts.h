/* tests/parts.h - a model, and a graph with what it was built from, from texts in one line */
#ifndef TESTS_PARTS_H
#define TESTS_PARTS_H

#include "base/arena.h"
#include "base/node.h"
#include "foretoken/traces.h"
#include "tests/check.h"

struct parts {
	struct arena mem;
	struct ft_model *model;
	struct ft_plan *plan;
	struct ft_stack *stack;
	struct ft_graph *graph;
};

static inline struct ft_model *model_from(const char *text)
{
	struct arena mem = { 0 };
	struct ft_error err;
	struct node *node = node_read_text(&mem, "model", text, strlen(text), &err);
	struct ft_model *m = node ? ft_model_load(node, &err) : NULL;

	if (!m)
		fail_msg("%s: %s", text, err.text);
	arena_release(&mem);
	return m;
}

static inline void build(struct parts *p, const char *model, const char *training,
			 const char *stack, int64_t ranks)
{
	struct ft_plan_context context = { .ranks = ranks, .ranks_per_node = 8 };
	struct ft_error err;
	struct node *m, *t;

	*p = (struct parts){ 0 };
	m = node_read_text(&p->mem, "m", model, strlen(model), &err);
	ok_or_say(m, err);
	t = node_read_text(&p->mem, "t", training, strlen(training), &err);
	ok_or_say(t, err);
	p->model = ft_model_load(m, &err);
	ok_or_say(p->model, err);
	p->stack = ft_stack_load(stack, NULL, &err);
	ok_or_say(p->stack, err);
	context.unsharded_pipeline = p->stack->layout.unsharded_pipeline;
	context.no_context = ft_stack_no_context(p->stack, p->model->sinks,
						 p->model->plain != FT_PLAIN_NOT,
						 p->model->score_cap);
	context.joins_qkv =
		ft_stack_joins_qkv(p->stack, p->model->joined_qkv != FT_APART);
	context.joins_gate_up =
		ft_stack_joins_gate_up(p->stack, p->model->joined_gate_up);
	context.ragged_batch = p->stack->layout.ragged_batch;
	p->plan = ft_plan_load(node_overlay(&p->mem, p->stack->defaults, t), p->model,
			       &context, &err);
	ok_or_say(p->plan, err);
	ft_model_fit(p->model, p->plan);
	p->graph = ft_graph_build(p->model, p->plan, p->stack, &err);
	ok_or_say(p->graph, err);
}

static inline void drop(struct parts *p)
{
	ft_graph_free(p->graph);
	ft_plan_free(p->plan);
	ft_model_free(p->model);
	ft_stack_free(p->stack);
	arena_release(&p->mem);
}

#endif
