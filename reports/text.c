/* reports/text.c - answers as tables in a terminal */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/plain.h"
#include "base/quantity.h"
#include "base/text.h"
#include "foretoken/reports.h"
#include "reports/evidence.h"
#include "reports/money.h"
#include "reports/prices.h"
#include "reports/show.h"
#include "reports/stages.h"
#include "reports/table.h"

static const char *show(double v, enum dimension dim, char *buf)
{
	return quantity_text(v, dim, buf, 64);
}

/* "70.6 B parameters", of which active in a mixture of experts. */
static void parameters(FILE *out, const struct ft_model *m, const struct ft_lora *lora)
{
	double all = ft_model_parameters(m), active = ft_model_active_parameters(m);

	fprintf(out, "%s, %.4g B parameters", m->name, all * 1e-9);
	if (active < all)
		fprintf(out, " (%.4g B active)", active * 1e-9);
	if (lora->rank)
		fprintf(out, ", and adapters of %.4g M, which alone are trained",
			ft_model_lora_parameters(m, lora) * 1e-6);
}

static void passed_over(FILE *out, const struct ft_model *m)
{
	if (!m->n_passed_over)
		return;
	fprintf(out, "keys of the %s that are not used:",
		m->preset ? "model" : "config.json");
	for (size_t i = 0; i < m->n_passed_over; i++)
		fprintf(out, "%s %s", i ? "," : "", m->passed_over[i]);
	putc('\n', out);
}

/* A sequence that is longer than what the model was made for. */
static void stretched(FILE *out, const struct ft_model *m)
{
	if (m->stretched_from)
		fprintf(out,
			"the model's %" PRId64 " learned positions are taken to be "
			"%" PRId64 ", as the sequence has so many tokens\n",
			m->stretched_from, m->max_positions);
}

/* Words that nobody uses, in embedding and head. */
static void padded(FILE *out, const struct ft_model *m, int64_t tp)
{
	if (ft_model_vocab(m, tp) > m->vocab_size)
		fprintf(out,
			"the vocabulary of %" PRId64 " words is padded to %" PRId64
			", a multiple of %" PRId64 " x tp\n",
			m->vocab_size, ft_model_vocab(m, tp), m->vocab_multiple);
}

/* What the GPUs' memory is spared, and who updates it. */
static void on_host(FILE *out, const struct ft_plan *p)
{
	bool all = p->offload_state == FT_OFFLOAD_ALL;

	if (p->offload_state == FT_OFFLOAD_NONE)
		return;
	fprintf(out,
		"%s in host memory; the host updates %s, with %" PRId64
		" thread%s a rank\n",
		all ? "weights, gradients and optimizer wait" : "the optimizer waits",
		all ? "them" : "it", p->offload_threads,
		p->offload_threads == 1 ? "" : "s");
}

static void headline(FILE *out, const struct ft_scenario *s)
{
	const struct ft_plan *p = s->plan;

	fprintf(out, "%s: ", s->label);
	parameters(out, s->model, &p->lora);
	fprintf(out, "\n%" PRId64 " %s (%s, %s), %s\n", s->cluster->gpus,
		s->cluster->gpu->title, s->cluster->node->name,
		s->cluster->fabric->name, s->stack->title);
	fprintf(out,
		"%s%s, sequence %" PRId64 ", batch %" PRId64 " x %" PRId64
		", tp %" PRId64 " pp %" PRId64 " dp %" PRId64 " cp %" PRId64
		" ep %" PRId64 ", %s, recompute %s\n",
		ft_dtype_name(p->precision),
		p->expert_precision != p->precision ? ", experts bf16" : "",
		p->sequence, p->global_batch, p->micro_batch, p->tp, p->pp, p->dp,
		p->cp, p->ep,
		p->sharding == FT_ALONE ? "sharding none" :
					  ft_sharding_name(p->sharding),
		ft_recompute_name(p->recompute));
	on_host(out, p);
	passed_over(out, s->model);
	stretched(out, s->model);
	padded(out, s->model, p->tp);
	putc('\n', out);
}

/* The answer's numbers but for the parts of the step, which have a table of their own. */
static void numbers(FILE *out, const struct ft_outcome *o)
{
	struct table t = TABLE_OPEN(out, "result", ">value", ">P10", ">P90");
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);
	char text[SHOWN];

	for (size_t i = 0; i < n; i++) {
		if (!ft_outcome_row(&f[i], o, 1) ||
		    text_begins_with(f[i].key, "breakdown") ||
		    text_begins_with(f[i].key, "memory"))
			continue;
		table_row(&t);
		table_put(&t, "%s", f[i].label);
		table_put(&t, "%s",
			  shown_text(f[i].show, ft_outcome_at(o, f[i].value), text));
		if (!f[i].high)
			continue;
		table_put(&t, "%s",
			  shown_text(f[i].show, ft_outcome_at(o, f[i].low), text));
		table_put(&t, "%s",
			  shown_text(f[i].show, ft_outcome_at(o, f[i].high), text));
	}
	table_close(&t);
	putc('\n', out);
}

static void where(FILE *out, const struct ft_outcome *o)
{
	const struct ft_breakdown *b = &o->breakdown;
	struct table t = TABLE_OPEN(out, "where a step goes", ">time", ">share");
	const struct {
		const char *name;
		double s;
	} part[] = {
		{ "compute", b->compute_s },
		{ "exposed communication", b->exposed_communication_s },
		{ "pipeline bubble", b->bubble_s },
		{ "host", b->host_s },
		{ "optimizer", b->optimizer_s },
		{ "step", o->step_s },
	};
	char a[64];

	for (size_t i = 0; i < 6; i++) {
		table_row(&t);
		table_put(&t, "%s", part[i].name);
		table_put(&t, "%s", show(part[i].s, DIM_S, a));
		table_put(&t, "%.1f %%", 100 * part[i].s / o->step_s);
	}
	table_close(&t);
	putc('\n', out);
}

static void items(FILE *out, const struct ft_outcome *o)
{
	struct table t = TABLE_OPEN(out, "largest items (a rank's time)", ">count",
				    ">time", ">roofline", "note");
	char a[64];

	for (size_t i = 0; i < o->run->n_shares && i < 10; i++) {
		const struct ft_share *s = &o->run->share[i];

		table_row(&t);
		table_put(&t, "%s", s->name);
		table_put(&t, "%.0f", s->count);
		table_put(&t, "%s", show(s->time_s, DIM_S, a));
		table_put(&t, s->roofline_s > 0 ? "%.0f %%" : "",
			  100 * s->roofline_s / s->time_s);
		table_put(&t, "%s%s",
			  s->kind == FT_COMMUNICATION ? "communication" : "",
			  s->extrapolated ? " extrapolated" : "");
	}
	table_close(&t);
	putc('\n', out);
}

static void memory(FILE *out, const struct ft_scenario *s, const struct ft_outcome *o)
{
	struct table t = TABLE_OPEN(out, "memory per GPU", ">bytes");
	double room = s->cluster->gpu->memory_bytes.value *
		      (double)s->cluster->gpu->ranks_per_gpu;
	char a[64];

	for (int i = 0; i < FT_MEMORIES; i++) {
		table_row(&t);
		table_put(&t, "%s", ft_memory_name((enum ft_memory)i));
		table_put(&t, "%s", show(o->memory_bytes[i], DIM_BYTES, a));
	}
	table_row(&t);
	table_put(&t, "total");
	table_put(&t, "%s", show(o->memory_total_bytes, DIM_BYTES, a));
	table_row(&t);
	table_put(&t, "%s",
		  o->memory_total_bytes <= room ? "it fits in" : "it does NOT fit in");
	table_put(&t, "%s", show(room, DIM_BYTES, a));
	table_close(&t);
	putc('\n', out);
}

void ft_report_outcome(FILE *out, const struct ft_scenario *s,
		       const struct ft_outcome *o)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	char text[SENTENCE];
	const char *said;

	headline(out, s);
	numbers(out, o);
	where(out, o);
	items(out, o);
	memory(out, s, o);
	stages_table(out, s, o);
	money_fleets(out, &o->asked);
	evidence_table(out, o);
	fprintf(out, "%s\n", o->bottleneck);
	if (o->beside)
		fprintf(out,
			"Beside %s a step takes %.1f %% longer than the %.4g s "
			"that it takes alone.\n",
			o->beside, 100 * (o->step_s / o->step_alone_s - 1),
			o->step_alone_s);
	for (int k = 0; (said = evidence_sentence(s, o, k, text)); k++)
		fprintf(out, "%s\n", said);
	fprintf(out, "%s\n", prices_said(&mem, o->bom, s->prices));
	arena_release(&mem);
}

/* Why an algorithm is taken that is not the fastest. */
static const char *by_whom(const char *chosen_by)
{
	return !strcmp(chosen_by, "library") ? "the library's choice" :
	       !strcmp(chosen_by, "fabric")  ? "the fabric's choice" :
					       "as asked for";
}

void ft_report_collectives(FILE *out, const struct ft_collective_line *l, size_t n)
{
	PLAIN_NUMBERS;
	struct table t =
		TABLE_OPEN(out, "op", ">gpus", ">bytes", ">time us", ">algbw GB/s",
			   ">busbw GB/s", "algorithm", "protocol", ">regret", "");

	for (size_t i = 0; i < n; i++) {
		const struct ft_collective_result *r = &l[i].result;
		double s = r->duration.time_s;
		double algbw = s > 0 ? l[i].bytes / s * 1e-9 : 0;

		table_row(&t);
		table_put(&t, "%s", ft_collective_name(l[i].op));
		table_put(&t, "%" PRId64, l[i].gpus);
		table_put(&t, "%.0f", l[i].bytes);
		table_put(&t, "%.2f", s * 1e6);
		table_put(&t, "%.2f", algbw);
		table_put(&t, "%.2f",
			  algbw * ft_collective_bus_factor(l[i].op, l[i].gpus));
		table_put(&t, "%s", r->algorithm);
		table_put(&t, "%s", r->protocol);
		if (r->best_algorithm)
			table_put(&t, "%.1f %%", 100 * r->regret_frac);
		else
			table_put(&t, " ");
		if (r->regret_frac > FT_REGRET_WORTH_SAYING)
			table_put(&t, "%s; %s %s would be faster",
				  by_whom(r->chosen_by), r->best_algorithm,
				  r->best_protocol);
		else
			table_put(&t, "%s",
				  r->duration.extrapolated ? "extrapolated" : "");
	}
	table_close(&t);
}

static void summary_row(struct table *t, const char *name, const struct ft_summary *s)
{
	errors_row(t, name, s);
	table_put(t, "%.0f %%", 100 * s->inside_interval_frac);
	table_put(t, "%.0f %%", 100 * s->slow_frac);
	table_put(t, "%.0f %%", 100 * s->fast_frac);
}

static void check_row(struct table *t, const struct ft_check *c)
{
	table_row(t);
	table_put(t, "%s", c->id);
	table_put(t, "%s", c->group);
	table_put(t, "%s", c->key);
}

static void validation_rows(FILE *out, const struct ft_validation *v)
{
	struct table t = TABLE_OPEN(out, "id", "group", "key", ">measured",
				    ">predicted", ">error");

	for (size_t i = 0; i < v->n_checks; i++) {
		const struct ft_check *c = &v->check[i];

		check_row(&t, c);
		table_put(&t, "%.5g", c->measured);
		table_put(&t, "%.5g", c->predicted);
		table_put(&t, "%+.1f %%", 100 * c->error_frac);
	}
	table_close(&t);
	putc('\n', out);
}

/* How an answer shows what this key measures. */
static enum ft_show how_shown(const char *key)
{
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f), i = 0;

	while (i + 1 < n && strcmp(key, f[i].key) != 0)
		i++;
	return f[i].show;
}

/* What rows were measured for beside what they are scored by: in units, as these are of
 * many kinds. */
static void other_rows(FILE *out, const struct ft_validation *v)
{
	struct table t = TABLE_OPEN(out, "id", "group", "not scored", ">measured",
				    ">predicted", ">error");
	char text[SHOWN];

	for (size_t i = 0; i < v->n_others; i++) {
		const struct ft_check *c = &v->other[i];
		enum ft_show as = how_shown(c->key);

		check_row(&t, c);
		table_put(&t, "%s", shown_text(as, c->measured, text));
		table_put(&t, "%s", shown_text(as, c->predicted, text));
		table_put(&t, "%+.1f %%", 100 * c->error_frac);
	}
	table_close(&t);
	putc('\n', out);
}

static void summaries(FILE *out, const struct ft_validation *v)
{
	struct table t =
		TABLE_OPEN(out, v->by, ">n", ">MAPE", ">bias", ">median", ">p90",
			   ">max", ">in P10-P90", ">slower", ">faster");

	for (size_t i = 0; i < v->n_groups; i++)
		summary_row(&t, v->group[i].name, &v->group[i]);
	if (v->summary.n) /* else only keys that are not scored were measured */
		summary_row(&t, "all", &v->summary);
	for (size_t i = 0; i < v->n_keys; i++)
		summary_row(&t, v->by_key[i].name, &v->by_key[i]);
	table_close(&t);
}

static void doubts(FILE *out, const struct ft_check *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ft_check_doubtful(&c[i]))
			fprintf(out,
				"%s: %s is measured as %.5g and predicted as %.5g: is it "
				"in another unit?\n",
				c[i].id, c[i].key, c[i].measured, c[i].predicted);
}

/* Rows that ran in memory that is predicted not to hold them. */
static void room(FILE *out, const struct ft_validation *v)
{
	const char *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < v->n_checks; i++)
		if (v->check[i].no_room && !n++)
			first = v->check[i].id;
	if (n)
		fprintf(out,
			"%zu of %zu measured steps %s predicted not to fit in memory, the "
			"first: %s.\n",
			n, v->n_checks, n == 1 ? "is" : "are", first);
}

void ft_report_validation(FILE *out, const struct ft_validation *v, bool every_row)
{
	PLAIN_NUMBERS;

	if (every_row && v->n_checks)
		validation_rows(out, v);
	if (every_row && v->n_others)
		other_rows(out, v);
	if (v->summary.n || v->n_keys)
		summaries(out, v);
	for (size_t i = 0; i < v->n_failures; i++)
		fprintf(out, "%s: not simulated: %s\n", v->failure[i].id,
			v->failure[i].reason);
	if (v->n_failures)
		fprintf(out, "%zu of %zu rows could not be simulated.\n", v->n_failures,
			v->n_rows);
	room(out, v);
	doubts(out, v->check, v->n_checks);
	doubts(out, v->other, v->n_others);
	if (!v->n_rows)
		fprintf(out, "%s has a header and no rows.\n", v->file);
}
