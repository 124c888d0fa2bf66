/* reports/recorded_json.c - recorded steps as JSON */
#include "base/arena.h"
#include "reports/json.h"

static json_t *breakdown(const struct ft_rec_where *w)
{
	const struct ft_breakdown b = {
		.compute_s = w->compute_s,
		.exposed_communication_s = w->exposed_s,
		.bubble_s = w->bubble_s,
		.host_s = w->step_s - w->compute_s - w->exposed_s - w->bubble_s -
			  w->optimizer_s,
		.optimizer_s = w->optimizer_s,
	};

	return json_of_breakdown(&b);
}

static json_t *idle(const struct ft_rec_where *w)
{
	static const char *const keys[FT_REC_CAUSES] = { "host", "between_kernels",
							 "event", "room",
							 "unexplained" };
	json_t *o = json_object();

	for (int c = 0; c < FT_REC_CAUSES; c++)
		json_put(o, keys[c], w->idle_s[c]);
	json_put(o, "after_the_last", w->tail_s);
	return o;
}

static json_t *classes(const struct ft_rec_where *w)
{
	json_t *o = json_object();

	for (int c = 0; c < FT_REC_CLASSES; c++) {
		json_t *k = json_object();

		json_put_int(k, "count", w->class_n[c]);
		json_put(k, "time_s", w->class_s[c]);
		json_object_set_new(o, ft_rec_class_name((enum ft_rec_class)c), k);
	}
	return o;
}

static json_t *launches(const struct ft_rec_where *w)
{
	json_t *o = json_object();

	json_put_int(o, "count", w->launches);
	json_put(o, "host_s", w->call_s);
	json_put(o, "synchronising_s", w->sync_s);
	json_put_int(o, "allocations", w->allocations);
	json_put(o, "allocating_s", w->allocation_s);
	json_put(o, "latency_s", w->latency_s);
	json_put(o, "queued_mean", w->queued_mean);
	json_put_int(o, "queued_most", w->queued_most);
	return o;
}

static json_t *order(const struct ft_replay_counts *c)
{
	json_t *o = json_object();

	json_put_int(o, "waits_told", c->waits_told);
	json_put_int(o, "waits_by_time", c->waits_by_time);
	json_put_int(o, "waits_by_order", c->waits_by_order);
	json_put_int(o, "waits_unresolved", c->waits_unresolved);
	json_put_int(o, "gaps", c->gaps);
	json_put(o, "gaps_s", (double)c->gaps_ps * 1e-12);
	json_put_int(o, "collectives_matched", c->matched);
	json_put_int(o, "collectives_unmatched", c->unmatched);
	return o;
}

static json_t *files(const struct ft_replay *p)
{
	json_t *list = json_array();

	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		const struct ft_recording *r = ft_replay_recording(p, k);
		const struct ft_rec_counts *c = ft_recording_counts(r);
		json_t *o = json_object();

		json_put_text(o, "file", ft_recording_file(r));
		json_put_text(o, "device", ft_recording_device(r));
		json_put_int(o, "rank", ft_recording_rank(r));
		json_put_int(o, "ranks", ft_recording_world(r));
		json_put_int(o, "operations", (int64_t)ft_recording_ops(r));
		json_put_int(o, "calls", (int64_t)ft_recording_calls(r));
		json_put_int(o, "operators", (int64_t)ft_recording_spans(r));
		json_put_int(o, "streams", (int64_t)ft_recording_streams(r));
		json_put_int(o, "without_call", c->without_call);
		json_put_int(o, "without_operation", c->without_op);
		json_put_int(o, "told_twice", c->twice);
		json_put_int(o, "other_gpus", c->other_gpus);
		json_put_int(o, "overlapping_steps", c->overlapping_steps);
		json_put_int(o, "empty_steps", c->empty_steps);
		json_put_int(o, "negative_durations", c->negative);
		json_put_int(o, "before_call", c->before_call);
		json_put_int(o, "unknown_phases", c->unknown_phases);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *skew(const struct ft_replay *p, const char *step)
{
	struct arena mem = { 0 };
	struct ft_replayed t = ft_replay_as_recorded(p, &mem);
	json_t *list = json_array();

	for (size_t k = 0; k < ft_replay_ranks(p); k++) {
		struct ft_rec_skew s = ft_study_skew(p, &t, k, step);
		json_t *o = json_object();

		json_put_int(o, "rank", ft_recording_rank(ft_replay_recording(p, k)));
		json_put(o, "collectives", s.met);
		json_put(o, "waiting_s", s.waiting_s);
		json_put(o, "transfer_s", s.transfer_s);
		json_put(o, "came_last", s.last);
		json_put(o, "clock_s", s.clock_s);
		json_array_append_new(list, o);
	}
	arena_release(&mem);
	return list;
}

static json_t *kernels(const struct ft_replay *p, const char *step)
{
	struct arena mem = { 0 };
	const struct ft_recording *r = ft_replay_recording(p, 0);
	size_t n;
	struct ft_rec_kernel *k = ft_study_step_kernels(p, step, &mem, &n);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *o = json_object();

		json_put_text(o, "name", ft_recording_text(r, k[i].name));
		json_put_text(o, "class", ft_rec_class_name(k[i].rec_class));
		json_put_int(o, "count", k[i].n);
		json_put(o, "time_s", k[i].time_s);
		json_put(o, "shortest_s", k[i].shortest_s);
		json_put(o, "longest_s", k[i].longest_s);
		json_array_append_new(list, o);
	}
	arena_release(&mem);
	return list;
}

void ft_report_recorded_json(FILE *out, const struct ft_replay *p,
			     const struct ft_whatif *a)
{
	json_t *o = json_object();

	json_put(o, "recorded_step_s", a->recorded_step_s);
	json_put(o, "classified_frac", a->classified_frac);
	json_object_set_new(o, "breakdown_s", breakdown(&a->recorded));
	json_object_set_new(o, "idle_s", idle(&a->recorded));
	json_object_set_new(o, "classes", classes(&a->recorded));
	json_put(o, "communication_s", a->recorded.collective_s);
	json_object_set_new(o, "launches", launches(&a->recorded));
	json_object_set_new(o, "order", order(ft_replay_counts(p)));
	json_object_set_new(o, "files", files(p));
	if (ft_replay_ranks(p) > 1)
		json_object_set_new(o, "skew", skew(p, a->step));
	json_object_set_new(o, "kernels", kernels(p, a->step));
	json_print(out, o);
}

/* ---- what if ---------------------------------------------------------------------- */

static json_t *changes(const struct ft_whatif *a)
{
	json_t *list = json_array();

	for (int i = 0; i < FT_PARTS; i++) {
		const struct ft_whatif_change *c = &a->change[i];
		json_t *o;

		if (!c->changed && !(c->recorded_s > 0))
			continue;
		o = json_object();
		json_put_text(o, "what", ft_whatif_part_name((enum ft_whatif_part)i));
		json_put(o, "recorded_s", c->recorded_s);
		json_put(o, "replayed_s", c->replayed_s);
		json_put(o, "step_s", c->step_s);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *notes(const struct ft_whatif *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->n_notes; i++)
		json_array_append_new(list, json_of_text(a->note[i]));
	return list;
}

static json_t *money(const struct ft_whatif *a)
{
	json_t *o = json_object();

	json_put(o, "tokens_per_s", a->tokens_per_s);
	json_put(o, "usd_per_gpu_hour", a->cost.usd_per_gpu_hour);
	json_put(o, "usd_per_million_tokens", a->cost.usd_per_million_tokens);
	json_put(o, "usd_per_million_tokens_low", a->cost.usd_per_million_tokens_low);
	json_put(o, "usd_per_million_tokens_high", a->cost.usd_per_million_tokens_high);
	json_put(o, "joules_per_token", a->cost.joules_per_token);
	json_put(o, "goodput", a->cost.goodput);
	return o;
}

static json_t *machine(const struct ft_whatif *a)
{
	json_t *o = json_object();

	json_put_text(o, "from", a->from);
	json_put_text(o, "gpu", a->gpu);
	json_put_text(o, "fabric", a->fabric);
	json_put_int(o, "ranks_recorded", a->ranks_recorded);
	json_put_int(o, "ranks", a->ranks);
	json_put_int(o, "dp_recorded", a->dp_recorded);
	json_put_int(o, "dp", a->dp);
	json_put_int(o, "tp_recorded", a->tp_recorded);
	json_put_int(o, "tp", a->tp);
	return o;
}

void ft_report_whatif_json(FILE *out, const struct ft_replay *p,
			   const struct ft_whatif *a)
{
	json_t *o = json_object(), *interval = json_object();

	json_put(o, "recorded_step_s", a->recorded_step_s);
	json_put(o, "step_s", a->step_s);
	json_object_set_new(interval, "step_s",
			    json_pack("[o, o]", json_of_number(a->low_s),
				      json_of_number(a->high_s)));
	json_object_set_new(o, "interval", interval);
	json_put(o, "classified_frac", a->classified_frac);
	json_put(o, "by_work_frac", a->by_work_frac);
	json_put(o, "by_stand_in_frac", a->by_stand_in_frac);
	json_object_set_new(o, "breakdown_s", breakdown(&a->replayed));
	json_object_set_new(o, "recorded_breakdown_s", breakdown(&a->recorded));
	json_object_set_new(o, "changes", changes(a));
	if (a->moved)
		json_object_set_new(o, "machine", machine(a));
	if (a->priced)
		json_object_set_new(o, "cost", money(a));
	json_object_set_new(o, "order", order(ft_replay_counts(p)));
	json_object_set_new(o, "notes", notes(a));
	json_print(out, o);
}
