/* reports/evidence.c - the measured runs nearest to an answer, and how far to trust it */
#include "reports/evidence.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "base/stats.h"
#include "reports/table.h"

static const char *on_stack(const struct ft_scenario *s, const struct ft_outcome *o,
			    char text[SENTENCE])
{
	if (!ft_scenario_assumes(s, "stack"))
		return "";
	snprintf(
		text, SENTENCE,
		"stack not given: %s. The range holds what people run: vendor-tuned code "
		"near P10 (%.4g s a step), eager or older code near P90 (%.4g s). Name a "
		"stack for a narrower one: foretoken list stacks.",
		s->stack->name, o->step_low_s, o->step_high_s);
	return text;
}

static const char *on_unmeasured(const struct ft_scenario *s,
				 const struct ft_outcome *o, char text[SENTENCE])
{
	const struct {
		bool measured;
		const char *is, *what;
	} lacks[] = {
		{ o->gpu_measured, "is on the GPU ", s->cluster->gpu->name },
		{ o->stack_measured, "is under the stack ", s->stack->name },
		{ o->attention_measured, "has ",
		  ft_attention_words(o->traits.attention) },
	};
	size_t n = 0;

	for (size_t i = 0; i < 3; i++)
		if (!lacks[i].measured)
			n += (size_t)snprintf(text + n, SENTENCE - n, "%s%s%s",
					      n ? " or " : "No measured run ",
					      lacks[i].is, lacks[i].what);
	if (!n)
		return "";
	snprintf(text + n, SENTENCE - n, ": the range is that of others, made wider.");
	return text;
}

static const char *on_kernels(const struct ft_scenario *s, const struct ft_outcome *o,
			      char text[SENTENCE])
{
	(void)s;
	if (o->extrapolated_frac <= 0.05)
		return "";
	snprintf(text, SENTENCE,
		 "%.0f %% of the kernel time is for shapes far from anything measured.",
		 100 * o->extrapolated_frac);
	return text;
}

/* A version that the profile knows nothing of, and that there may not be. */
static const char *on_attention(const struct ft_scenario *s, const struct ft_outcome *o,
				char text[SENTENCE])
{
	const char *impl = s->stack->layout.attention;

	(void)o;
	if (ft_attention_version_known(s->cluster->gpu, impl))
		return "";
	snprintf(text, SENTENCE,
		 "The profile of %s knows no attention '%s': the time is that of %.*s.",
		 s->cluster->gpu->name, impl, (int)strcspn(impl, "-"), impl);
	return text;
}

static const char *on_host(const struct ft_scenario *s, const struct ft_outcome *o,
			   char text[SENTENCE])
{
	const struct ft_number *factor = &s->cluster->node->host_factor;
	double longer = NORMAL_P90 * o->traits.host_spread_frac;

	if (longer < 0.05)
		return "";
	snprintf(
		text, SENTENCE,
		"The host sets the pace here, and hosts differ: with one that is %.0f %% "
		"slower the step takes %.0f %% longer (host_factor of the node).",
		100 * (factor->high / factor->value - 1), 100 * longer);
	return text;
}

static const char *on_clock(const struct ft_scenario *s, const struct ft_outcome *o,
			    char text[SENTENCE])
{
	double less = 100 * NORMAL_P90 * o->traits.clock_faster_frac;
	double more = 100 * NORMAL_P90 * o->traits.clock_slower_frac;

	if (less < 5 && more < 5)
		return "";
	snprintf(
		text, SENTENCE,
		"Cards of the kind %s hold different clocks under load: the step takes %.0f %% less "
		"at the highest known, %.0f %% more at the lowest (gemm.sustained of the GPU).",
		s->cluster->gpu->name, less, more);
	return text;
}

const char *evidence_search(const struct ft_scenario *s, const struct ft_outcome *o,
			    char text[SENTENCE])
{
	const struct ft_plan *p = s->plan;

	if (!s->searched)
		return "";
	if (o->fits)
		snprintf(text, SENTENCE,
			 "training.parallel is left open: tp %" PRId64 " pp %" PRId64
			 " vpp %" PRId64 " cp %" PRId64 " ep %" PRId64
			 " is in the fastest of %zu legal plans, and held at other "
			 "sizes. foretoken plan searches those as well.",
			 p->tp, p->pp, p->vpp, p->cp, p->ep, s->searched);
	else
		snprintf(text, SENTENCE,
			 "training.parallel is left open, and none of %zu legal plans "
			 "fits: foretoken plan says what would help.",
			 s->searched);
	return text;
}

/* Does a failed server's place go to one that nobody has bought? */
static bool lacks_spares(const struct ft_scenario *s)
{
	const struct ft_failure_terms *f = &s->terms.failures;

	return f->recovery == FT_RECOVERY_HOT && f->spares &&
	       !(s->terms.usd_per_gpu_hour > 0) && s->cluster->parts &&
	       !s->cluster->parts->spare_nodes;
}

/* Experts that take less than what is sent to them drop the rest. */
static const char *on_dropped(const struct ft_scenario *s, const struct ft_outcome *o,
			      char text[SENTENCE])
{
	double most = s->plan->capacity_factor;

	(void)o;
	if (!(most > 0 && most < 1))
		return "";
	snprintf(text, SENTENCE,
		 "moe_capacity_factor %.3g drops at least %.0f %% of what is sent to "
		 "experts; model FLOPs and MFU count it all the same, HFU does not.",
		 most, 100 * (1 - most));
	return text;
}

/* Autocast leaves experts in their weights' fp32, which is many times slower than 16 bit. */
static const char *on_wide_experts(const struct ft_scenario *s,
				   const struct ft_outcome *o, char text[SENTENCE])
{
	bool breaks = ft_plan_experts_break(s->plan, &s->stack->layout);
	double experts = 0;

	if (!breaks && !ft_plan_wide_experts(s->plan, &s->stack->layout))
		return "";
	for (size_t i = 0; i < o->run->n_shares; i++)
		if (!strncmp(o->run->share[i].name, "expert_up", 9) ||
		    !strncmp(o->run->share[i].name, "expert_down", 11))
			experts += o->run->share[i].time_s;
	if (experts <= 0)
		return "";
	if (breaks) {
		snprintf(
			text, SENTENCE,
			"Experts whose weights are in fp32 end the compiled graph, and run in TF32: "
			"neither is counted, and a measured step took twice as long as told. "
			"With master_weights: false or under fsdp they stay compiled.");
		return text;
	}
	snprintf(
		text, SENTENCE,
		"Experts are computed in fp32, as their weights are: %.0f %% of the step. "
		"Autocast does not reach grouped products; with master_weights: false or "
		"under fsdp they run in 16 bit.",
		100 * experts / o->step_s);
	return text;
}

/* Copies of the loss, which nothing hides, are often most of what activations on the host cost. */
static const char *on_loss(const struct ft_scenario *s, const struct ft_outcome *o,
			   char text[SENTENCE])
{
	int64_t layers = s->model->n_layers;

	(void)o;
	if (!s->stack->layout.loss_on_host || s->plan->offload_layers < layers)
		return "";
	snprintf(
		text, SENTENCE,
		"With activations of all layers in host memory what the loss keeps goes "
		"there, too, and nothing hides its copies (loss_on_host of the stack); "
		"with offload_layers %lld it stays.",
		(long long)layers - 1);
	return text;
}

/* PyTorch's allocator wants more than tensors hold. Measured on H100: a step that filled 86 % of what
 * a context leaves was as long as predicted, one of 93 % 9 to 13 % longer (docs/findings.md). */
const char *evidence_memory(const struct ft_scenario *s, const struct ft_outcome *o,
			    char text[SENTENCE])
{
	bool state = s->plan->offload_state != FT_OFFLOAD_NONE;
	const double full = 0.9;
	const struct ft_gpu *gpu = s->cluster->gpu;
	double total = 0, frac;

	if (ft_node_memory_frac(s->cluster->node, o->host_memory_bytes) > 1) {
		snprintf(text, SENTENCE,
			 "%s of %.3g TB %s node's memory, and %s has %.3g "
			 "TB (host_memory_size of the node): the plan cannot run.",
			 state ? "State" : "Activations", 1e-12 * o->host_memory_bytes,
			 state ? "waits in each" : "wait in the fullest",
			 s->cluster->node->name,
			 1e-12 * s->cluster->node->host_memory_bytes.value);
		return text;
	}
	ft_outcome_get(o, "memory_bytes_per_gpu.total", &total);
	frac = total / (gpu->memory_bytes.value * (double)gpu->ranks_per_gpu);
	if (!o->fits || frac < full || s->stack->layout.scan_layers)
		return "";
	snprintf(
		text, SENTENCE,
		"Memory is %.0f %% full: PyTorch's allocator may then give memory back "
		"and take it anew in each step, 40 to 60 ms a time on an H100, which is "
		"not counted.",
		100 * frac);
	return text;
}

static const char *on_idle(const struct ft_scenario *s, const struct ft_outcome *o,
			   char text[SENTENCE])
{
	(void)s;
	snprintf(text, SENTENCE, "%s", o->bom ? o->bom->idle : "");
	return text;
}

/* Where the time goes that is not kept, as others tell it apart. */
static const char *on_time(const struct ft_scenario *s, const struct ft_outcome *o,
			   char text[SENTENCE])
{
	const struct ft_time_use *u = &o->cost.time;
	const struct {
		const char *what;
		double frac;
	} lost[] = {
		{ "checkpoints", u->checkpoint },
		{ "progress that is lost", u->wasted },
		{ "recovery", u->recovery },
		{ "missing nodes", u->repair },
		{ "stalls", u->stalls },
		{ "stragglers", u->stragglers },
	};
	int n = snprintf(text, SENTENCE, "Goodput %.2f %%:", 100 * u->productive);
	bool any = false;

	for (size_t i = 0; i < sizeof(lost) / sizeof(*lost); i++) {
		if (!(lost[i].frac > 0))
			continue;
		n += snprintf(text + n, (size_t)(SENTENCE - n), "%s %s %.2f %%",
			      any ? "," : "", lost[i].what, 100 * lost[i].frac);
		any = true;
	}
	if (u->interval_s > 0)
		n += snprintf(text + n, (size_t)(SENTENCE - n),
			      u->interval_s < 600 ? "; a checkpoint every %.3g s" :
						    "; a checkpoint every %.0f min",
			      u->interval_s / (u->interval_s < 600 ? 1 : 60));
	if (u->recovery > 0 && lacks_spares(s))
		n += snprintf(
			text + n, (size_t)(SENTENCE - n),
			"; a spare server is assumed to take a failed one's place, "
			"but the bill has none");
	snprintf(text + n, (size_t)(SENTENCE - n), ".");
	return any ? text : "";
}

/* In the order in which they are told. */
static const char *(*const sentences[])(const struct ft_scenario *,
					const struct ft_outcome *, char *) = {
	evidence_search, on_stack,	  on_unmeasured,   on_kernels,
	on_attention,	 on_host,	  on_clock,	   on_dropped,
	on_wide_experts, on_loss,	  evidence_memory, evidence_links,
	evidence_built,	 evidence_faults, evidence_fabric, evidence_rails,
	on_idle,	 on_time,
};

const char *evidence_sentence(const struct ft_scenario *s, const struct ft_outcome *o,
			      int k, char text[SENTENCE])
{
	for (size_t i = 0; i < sizeof(sentences) / sizeof(*sentences); i++) {
		const char *said = sentences[i](s, o, text);

		if (said[0] && k-- == 0)
			return said;
	}
	return NULL;
}

/* Those whose plan does not fit. */
static const char *on_memory(const struct ft_answers *a, char text[SENTENCE])
{
	int n = 0;

	for (size_t i = 0; i < a->n; i++)
		if (!a->outcome[i].fits && n < SENTENCE - 160)
			n += snprintf(text + n, (size_t)(SENTENCE - n), "%s%.60s",
				      n ? ", " : "", a->label[i]);
	if (n)
		snprintf(text + n, (size_t)(SENTENCE - n),
			 ": the plan does not fit in memory and cannot run; its "
			 "dollars count in no verdict.");
	return n ? text : "";
}

static const char *on_models(const struct ft_answers *a, char text[SENTENCE])
{
	const struct ft_model *first = a->scenario[0]->model;

	for (size_t i = 1; i < a->n; i++) {
		const struct ft_model *other = a->scenario[i]->model;

		if (ft_model_parameters(other) == ft_model_parameters(first))
			continue;
		snprintf(
			text, SENTENCE,
			"The models differ (%.60s, %.60s): a token of one is not worth a "
			"token of the other.",
			first->name, other->name);
		return text;
	}
	return "";
}

static const char *on_stacks(const struct ft_answers *a, char text[SENTENCE])
{
	const char *first = a->scenario[0]->stack->name;
	size_t absent = 0, other = a->n;
	bool alike = true; /* one GPU, so that one stack may serve all */

	for (size_t i = 0; i < a->n; i++) {
		alike = alike && !strcmp(a->scenario[i]->cluster->gpu->name,
					 a->scenario[0]->cluster->gpu->name);
		absent += ft_scenario_assumes(a->scenario[i], "stack");
		if (other == a->n && strcmp(a->scenario[i]->stack->name, first))
			other = i;
	}
	if (other < a->n)
		snprintf(
			text, SENTENCE,
			"The stacks differ (%s, %s): part of the difference is software.",
			first, a->scenario[other]->stack->name);
	else if (absent)
		snprintf(text, SENTENCE, "%s no stack: all run under %s here, %s",
			 absent == a->n ? "The scenarios name" : "Some scenarios name",
			 first,
			 alike ? "whose range holds what people run. Name the stack "
				 "for a narrower one." :
				 "though different GPUs are run with different "
				 "software. Name each one's stack.");
	return other < a->n || absent ? text : "";
}

const char *evidence_warning(const struct ft_answers *a, char text[WARNINGS])
{
	const char *(*const all[])(const struct ft_answers *,
				   char *) = { on_memory, on_models, on_stacks };
	char one[SENTENCE];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		const char *said = all[i](a, one);

		if (*said)
			n += (size_t)snprintf(text + n, WARNINGS - n, "%s%s",
					      n ? " " : "", said);
	}
	return n ? text : NULL;
}

void evidence_table(FILE *out, const struct ft_outcome *o)
{
	struct table t = TABLE_OPEN(out, "nearest measured runs", ">error", ">distance",
				    "there", "source");

	for (size_t i = 0; i < o->n_nearest; i++) {
		const struct ft_near *near = &o->nearest[i];

		table_row(&t);
		table_put(&t, "%s", near->id);
		table_put(&t, "%+.1f %%", 100 * near->error_frac);
		table_put(&t, "%.2f", near->distance);
		table_put(&t, "%s", near->differs[0] ? near->differs : "alike");
		table_put(&t, "%s", near->source);
	}
	table_close(&t);
	putc('\n', out);
}

void errors_row(struct table *t, const char *name, const struct ft_summary *s)
{
	table_row(t);
	table_put(t, "%s", name);
	table_put(t, "%zu", s->n);
	table_put(t, "%.1f %%", 100 * s->mape);
	table_put(t, "%+.1f %%", 100 * s->bias);
	table_put(t, "%.1f %%", 100 * s->median);
	table_put(t, "%.1f %%", 100 * s->p90);
	table_put(t, "%.1f %%", 100 * s->max);
}

void ft_report_stack_fit(FILE *out, const struct ft_stack_fit *fit)
{
	PLAIN_NUMBERS;
	struct table t = TABLE_OPEN(out, "factor on", ">value");

	for (size_t i = 0; i < FT_FIT_FACTORS; i++) {
		table_row(&t);
		table_put(&t, "%s", ft_fit_factor_name(i));
		table_put(&t, "%.3f", exp(fit->ln_factor[i]));
	}
	table_close(&t);
	putc('\n', out);
	t = TABLE_OPEN(out, "stack", ">n", ">MAPE", ">bias", ">median", ">p90", ">max");
	errors_row(&t, "as it was", &fit->before);
	errors_row(&t, "as fitted, on the same runs", &fit->after);
	errors_row(&t, "as fitted, on runs left out", &fit->held_out);
	table_close(&t);
	fprintf(out, "%s written; %zu times one %s was left out.\n", fit->path,
		fit->folds,
		fit->by_group	    ? "group" :
		fit->folds < fit->n ? "scenario" :
				      "run");
	if (fit->n_failed)
		fprintf(out, "%zu rows could not be used; the first, of line %d: %s\n",
			fit->n_failed, fit->why.line, fit->why.text);
}
