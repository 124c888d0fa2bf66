/* study/trace_layers.c - a step by layer, recorded or predicted */
#include "study/whatif.h"

const char *ft_trace_kind_name(enum ft_trace_kind kind)
{
	static const char *const names[FT_TRACE_KINDS] = {
		"matrix products", "attention", "memory-bound kernels",
		"exposed communication", "idle and bubble"
	};

	return names[kind];
}

static struct ft_trace_time time_of(const struct ft_rec_where *w)
{
	double idle_s = w->step_s - w->compute_s - w->optimizer_s - w->exposed_s;

	return (struct ft_trace_time){
		w->step_s,
		{ w->class_s[FT_REC_GEMM], w->class_s[FT_REC_ATTENTION],
		  w->class_s[FT_REC_MEMORY] + w->class_s[FT_REC_COPY] +
			  w->class_s[FT_REC_OPTIMIZER],
		  w->exposed_s, idle_s }
	};
}

static void add(struct ft_trace_time *to, const struct ft_trace_time *x, double times)
{
	to->all_s += x->all_s * times;
	for (int k = 0; k < FT_TRACE_KINDS; k++)
		to->kind_s[k] += x->kind_s[k] * times;
}

/* A step of a rank, and its share of the mean. */
struct part {
	size_t rank, step;
	double share;
	bool told;
};

/* false: its layers are not those of the others. */
static bool add_step(struct ft_trace_side *to, const struct ft_replay *p,
		     const struct ft_replayed *t, struct part part, struct arena *mem)
{
	size_t rank = part.rank;
	double share = part.share;
	struct ft_rec_window w = ft_replay_step(p, t, rank, part.step);
	struct ft_rec_layers l = part.told ? ft_replay_told_layers(p, t, rank, w, mem) :
					     ft_replay_layers(p, t, rank, w, mem);
	struct ft_rec_where all = ft_replay_where(p, t, rank, w);
	struct ft_trace_time whole = time_of(&all);

	if (!l.layers) {
		to->why = l.why;
		return false;
	}
	if (!to->layers) {
		to->layers = l.layers;
		to->in_forward = l.in_forward;
		to->in_backward = l.in_backward;
		to->layer = (struct ft_trace_time(*)[2])ARENA_ARRAY(
			mem, 2 * (size_t)l.layers, struct ft_trace_time);
	}
	if (to->layers != l.layers) {
		to->why = "the ranks or steps given have different numbers of layers";
		return false;
	}
	add(&to->outside, &whole, share);
	for (size_t i = 0; i < l.n; i++) {
		struct ft_rec_where at = ft_replay_where(p, t, rank, l.layer[i].window);
		struct ft_trace_time x = time_of(&at);

		add(&to->layer[l.layer[i].layer][l.layer[i].backward], &x, share);
		add(&to->outside, &x, -share);
	}
	return true;
}

struct ft_trace_side ft_study_trace_layers(const struct ft_whatif_request *asked,
					   bool told, struct arena *mem)
{
	const struct ft_replay *p = asked->replay;
	struct ft_replayed t = ft_replay_as_recorded(p, mem);
	struct ft_trace_side to = { .layers = 0 };
	size_t n = 0;

	for (size_t k = 0; k < ft_replay_ranks(p); k++)
		for (size_t s = 0; s < ft_recording_steps(ft_replay_recording(p, k));
		     s++)
			n += whatif_is_step(asked->step, p, k, s);
	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		const struct ft_recording *r = ft_replay_recording(p, k);

		for (size_t s = 0; s < ft_recording_steps(r); s++)
			if (whatif_is_step(asked->step, p, k, s) &&
			    !add_step(&to, p, &t,
				      (struct part){ k, s, 1 / (double)n, told },
				      mem)) {
				to.layers = 0;
				return to;
			}
	}
	return to;
}

/* As many layers, with the same passes. */
static bool as_recorded(const struct ft_trace_side *found,
			const struct ft_trace_side *recorded)
{
	return found->layers && found->layers == recorded->layers &&
	       !found->in_forward == !recorded->in_forward &&
	       !found->in_backward == !recorded->in_backward;
}

struct ft_trace_layers ft_study_trace_both_layers(
	const struct ft_whatif_request *recorded,
	const struct ft_whatif_request *predicted, struct arena *mem)
{
	struct ft_trace_side told = ft_study_trace_layers(predicted, true, mem);
	struct ft_trace_layers l = { ft_study_trace_layers(recorded, true, mem), told };
	struct ft_trace_side found;

	if (l.recorded.layers && told.layers) {
		l.recorded.told = l.recorded.layers;
		l.predicted.told = told.layers;
		return l;
	}
	l.recorded = ft_study_trace_layers(recorded, false, mem);
	if (!told.layers || l.recorded.layers != told.layers) {
		found = ft_study_trace_layers(predicted, false, mem);
		if (!told.layers || as_recorded(&found, &l.recorded))
			l.predicted = found;
	}
	l.predicted.told = told.layers;
	return l;
}
