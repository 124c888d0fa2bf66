/* reports/text.c - answers as tables in a terminal */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/quantity.h"
#include "foretoken/reports.h"
#include "reports/table.h"

#define OPEN(out, ...) \
	table_open(out, (const char *const[]){ __VA_ARGS__ }, \
		   sizeof((const char *const[]){ __VA_ARGS__ }) / \
			   sizeof(const char *))

static const char *show(double v, enum dimension dim, char *buf)
{
	return quantity_text(v, dim, buf, 64);
}

static void headline(FILE *out, const struct ft_scenario *s)
{
	const struct ft_plan *p = s->plan;

	fprintf(out, "%s on %" PRId64 " %s (%s, %s), %s\n", s->model->name,
		s->cluster->gpus, s->cluster->gpu->title, s->cluster->node->name,
		s->cluster->fabric->name, s->stack->title);
	fprintf(out,
		"%s, sequence %" PRId64 ", batch %" PRId64 " x %" PRId64 ", tp %" PRId64
		" pp %" PRId64 " dp %" PRId64 " cp %" PRId64 " ep %" PRId64
		", %s, recompute %s\n\n",
		ft_dtype_name(p->precision), p->sequence, p->global_batch,
		p->micro_batch, p->tp, p->pp, p->dp, p->cp, p->ep,
		ft_sharding_name(p->sharding), ft_recompute_name(p->recompute));
}

static void numbers(FILE *out, const struct ft_outcome *o)
{
	struct table t = OPEN(out, "result", ">value", ">P10", ">P90");
	char a[64], b[64], c[64];

	table_row(&t);
	table_put(&t, "step");
	table_put(&t, "%s", show(o->step_s, DIM_S, a));
	table_put(&t, "%s", show(o->step_low_s, DIM_S, b));
	table_put(&t, "%s", show(o->step_high_s, DIM_S, c));
	table_row(&t);
	table_put(&t, "tokens per second");
	table_put(&t, "%.0f", o->tokens_per_s);
	table_put(&t, "%.0f", o->tokens_low_per_s);
	table_put(&t, "%.0f", o->tokens_high_per_s);
	table_row(&t);
	table_put(&t, "tokens per second and GPU");
	table_put(&t, "%.1f", o->tokens_per_s_per_gpu);
	table_row(&t);
	table_put(&t, "model FLOP/s per GPU");
	table_put(&t, "%s", show(o->model_flop_per_s_per_gpu, DIM_FLOP_PER_S, a));
	table_row(&t);
	table_put(&t, "MFU causal | full | HFU");
	table_put(&t, "%.1f %% | %.1f %% | %.1f %%", 100 * o->mfu, 100 * o->mfu_full,
		  100 * o->hfu);
	table_row(&t);
	table_put(&t, "dollars per million tokens");
	table_put(&t, "%.4f", o->cost.usd_per_million_tokens);
	table_put(&t, "%.4f", o->cost.usd_per_million_tokens_low);
	table_put(&t, "%.4f", o->cost.usd_per_million_tokens_high);
	table_row(&t);
	table_put(&t, "dollars per GPU-hour");
	table_put(&t, "%.3f", o->cost.usd_per_gpu_hour);
	table_row(&t);
	table_put(&t, "joules per token");
	table_put(&t, "%.3f", o->cost.joules_per_token);
	table_row(&t);
	table_put(&t, "capital");
	table_put(&t, "%s", show(o->cost.capex_usd, DIM_USD, a));
	table_row(&t);
	table_put(&t, "goodput");
	table_put(&t, "%.1f %%", 100 * o->cost.goodput);
	table_close(&t);
	putc('\n', out);
}

static void where(FILE *out, const struct ft_outcome *o)
{
	const struct ft_breakdown *b = &o->breakdown;
	struct table t = OPEN(out, "where a step goes", ">time", ">share");
	const struct {
		const char *name;
		double s;
	} part[] = {
		{ "compute", b->compute_s },
		{ "exposed communication", b->exposed_communication_s },
		{ "bubble", b->bubble_s },
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
	struct table t =
		OPEN(out, "largest items (a rank's time)", ">count", ">time", "note");
	char a[64];

	for (size_t i = 0; i < o->run->n_shares && i < 10; i++) {
		const struct ft_share *s = &o->run->share[i];

		table_row(&t);
		table_put(&t, "%s", s->name);
		table_put(&t, "%.0f", s->count);
		table_put(&t, "%s", show(s->time_s, DIM_S, a));
		table_put(&t, "%s%s", s->communication ? "communication" : "",
			  s->extrapolated ? " extrapolated" : "");
	}
	table_close(&t);
	putc('\n', out);
}

static void memory(FILE *out, const struct ft_scenario *s, const struct ft_outcome *o)
{
	struct table t = OPEN(out, "memory per GPU", ">bytes");
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
	table_put(&t, "%s", o->fits ? "it fits in" : "it does NOT fit in");
	table_put(&t, "%s", show(room, DIM_BYTES, a));
	table_close(&t);
	putc('\n', out);
}

void ft_report_outcome(FILE *out, const struct ft_scenario *s,
		       const struct ft_outcome *o)
{
	headline(out, s);
	numbers(out, o);
	where(out, o);
	items(out, o);
	memory(out, s, o);
	fprintf(out, "%s\n", o->bottleneck);
	if (o->beside)
		fprintf(out,
			"Beside %s a step takes %.1f %% longer than the %.4g s "
			"that it takes alone.\n",
			o->beside, 100 * (o->step_s / o->step_alone_s - 1),
			o->step_alone_s);
	if (o->extrapolated_frac > 0.05)
		fprintf(out,
			"%.0f %% of the kernel time lies far from anything "
			"measured.\n",
			100 * o->extrapolated_frac);
}

void ft_report_bom(FILE *out, const struct ft_cluster *c, const struct ft_bom *bom)
{
	const struct ft_topology *f = &c->topology;
	struct table t;

	fprintf(out,
		"%" PRId64 " %s in %" PRId64 " nodes, fabric %s: %" PRId64
		" tiers, %" PRId64 " leaf, %" PRId64 " spine, %" PRId64
		" core; cables %" PRId64 " / %" PRId64 " / %" PRId64 "\n\n",
		c->gpus, c->gpu->title, c->nodes, c->fabric->name, f->tiers, f->leaf,
		f->spine, f->core, f->cables_node_leaf, f->cables_leaf_spine,
		f->cables_spine_core);
	t = OPEN(out, "item", ">count", ">unit USD", ">total USD", "date", "source");
	for (size_t i = 0; i < bom->n_items; i++) {
		const struct ft_bom_item *b = &bom->item[i];

		table_row(&t);
		table_put(&t, "%s%s", b->what[0] ? b->what : b->item,
			  b->estimated ? " (estimate)" : "");
		table_put(&t, "%" PRId64, b->count);
		table_put(&t, "%.0f", b->unit_usd);
		table_put(&t, "%.0f", b->total_usd);
		table_put(&t, "%s", b->date);
		table_put(&t, "%.60s", b->source);
	}
	table_row(&t);
	table_put(&t, "network");
	table_put(&t, " ");
	table_put(&t, " ");
	table_put(&t, "%.0f", bom->network_usd);
	table_row(&t);
	table_put(&t, "total");
	table_put(&t, " ");
	table_put(&t, " ");
	table_put(&t, "%.0f", bom->total_usd);
	table_close(&t);
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
	struct table t = OPEN(out, "op", ">gpus", ">bytes", ">time us", ">algbw GB/s",
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
	table_row(t);
	table_put(t, "%s", name);
	table_put(t, "%zu", s->n);
	table_put(t, "%.1f %%", 100 * s->mape);
	table_put(t, "%+.1f %%", 100 * s->bias);
	table_put(t, "%.1f %%", 100 * s->median);
	table_put(t, "%.1f %%", 100 * s->p90);
	table_put(t, "%.1f %%", 100 * s->max);
	table_put(t, "%.0f %%", 100 * s->inside_interval_frac);
}

static void validation_rows(FILE *out, const struct ft_validation *v)
{
	struct table t =
		OPEN(out, "id", "group", "key", ">measured", ">predicted", ">error");

	for (size_t i = 0; i < v->n_checks; i++) {
		const struct ft_check *c = &v->check[i];

		table_row(&t);
		table_put(&t, "%s", c->id);
		table_put(&t, "%s", c->group);
		table_put(&t, "%s", c->key);
		table_put(&t, "%.5g", c->measured);
		table_put(&t, "%.5g", c->predicted);
		table_put(&t, "%+.1f %%", 100 * c->error_frac);
	}
	table_close(&t);
	putc('\n', out);
}

void ft_report_validation(FILE *out, const struct ft_validation *v, bool every_row)
{
	struct table t;

	if (every_row)
		validation_rows(out, v);
	t = OPEN(out, "group", ">n", ">MAPE", ">bias", ">median", ">p90", ">max",
		 ">in P10-P90");
	for (size_t i = 0; i < v->n_groups; i++)
		summary_row(&t, v->group[i].name, &v->group[i]);
	summary_row(&t, "all", &v->summary);
	for (size_t i = 0; i < v->n_keys; i++)
		summary_row(&t, v->by_key[i].name, &v->by_key[i]);
	table_close(&t);
	for (size_t i = 0; i < v->n_failures; i++)
		fprintf(out, "%s: not simulated: %s\n", v->failure[i].id,
			v->failure[i].reason);
	if (v->n_failures)
		fprintf(out, "%zu of %zu rows could not be simulated.\n", v->n_failures,
			v->n_failures + v->n_checks);
}

static void compare_row(struct table *t, const char *name, const struct ft_outcome *o,
			size_t n, size_t offset, double scale, const char *fmt)
{
	table_row(t);
	table_put(t, "%s", name);
	for (size_t i = 0; i < n; i++) {
		const char *at = (const char *)&o[i] + offset;
		char text[64];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, sizeof(text), fmt,
			 scale * *(const double *)(const void *)at);
#pragma GCC diagnostic pop
		table_put(t, "%s", text);
	}
}

static void compare_heads(struct table *t, const struct ft_scenario *const *s, size_t n)
{
	table_row(t);
	table_put(t, "GPUs");
	for (size_t i = 0; i < n; i++)
		table_put(t, "%" PRId64 " %s", s[i]->cluster->gpus,
			  s[i]->cluster->gpu->name);
	table_row(t);
	table_put(t, "fabric");
	for (size_t i = 0; i < n; i++)
		table_put(t, "%s", s[i]->cluster->fabric->name);
	table_row(t);
	table_put(t, "stack");
	for (size_t i = 0; i < n; i++)
		table_put(t, "%s", s[i]->stack->name);
	table_row(t);
	table_put(t, "plan");
	for (size_t i = 0; i < n; i++)
		table_put(t, "tp %" PRId64 " pp %" PRId64 " dp %" PRId64 " %s",
			  s[i]->plan->tp, s[i]->plan->pp, s[i]->plan->dp,
			  ft_sharding_name(s[i]->plan->sharding));
}

void ft_report_compare(FILE *out, const struct ft_scenario *const *s,
		       const struct ft_outcome *o, size_t n)
{
#define ROW(name, field, scale, fmt) \
	compare_row(&t, name, o, n, offsetof(struct ft_outcome, field), scale, fmt)
	const char *names[17] = { "" };
	struct table t;

	for (size_t i = 0; i < n; i++)
		names[i + 1] = s[i]->file;
	t = table_open(out, names, n + 1);
	compare_heads(&t, s, n);
	ROW("step, s", step_s, 1, "%.3f");
	ROW("tokens per second", tokens_per_s, 1, "%.0f");
	ROW("  P10", tokens_low_per_s, 1, "%.0f");
	ROW("  P90", tokens_high_per_s, 1, "%.0f");
	ROW("tokens per second and GPU", tokens_per_s_per_gpu, 1, "%.1f");
	ROW("MFU, %", mfu, 100, "%.1f");
	ROW("compute, s", breakdown.compute_s, 1, "%.3f");
	ROW("exposed communication, s", breakdown.exposed_communication_s, 1, "%.3f");
	ROW("bubble, s", breakdown.bubble_s, 1, "%.3f");
	ROW("host, s", breakdown.host_s, 1, "%.3f");
	ROW("optimizer, s", breakdown.optimizer_s, 1, "%.3f");
	ROW("memory per GPU, GB", memory_total_bytes, 1e-9, "%.1f");
	ROW("capital, million USD", cost.capex_usd, 1e-6, "%.2f");
	ROW("  of it network, million USD", cost.capex_network_usd, 1e-6, "%.2f");
	ROW("USD per GPU-hour", cost.usd_per_gpu_hour, 1, "%.3f");
	ROW("USD per million tokens", cost.usd_per_million_tokens, 1, "%.4f");
	ROW("  P10", cost.usd_per_million_tokens_low, 1, "%.4f");
	ROW("  P90", cost.usd_per_million_tokens_high, 1, "%.4f");
	ROW("joules per token", cost.joules_per_token, 1, "%.3f");
	table_close(&t);
#undef ROW
	for (size_t i = 1; i < n; i++) {
		size_t count;
		struct ft_difference *d =
			ft_study_differences(s[0], &o[0], s[i], &o[i], &count);
		struct table w;

		fprintf(out, "\nWhy %s differs from %s, GPU-ns per token:\n",
			s[i]->file, s[0]->file);
		w = OPEN(out, "part", ">first", ">this", ">difference");
		for (size_t k = 0; k < count; k++) {
			table_row(&w);
			table_put(&w, "%s", d[k].what);
			table_put(&w, "%.0f", d[k].value[0]);
			table_put(&w, "%.0f", d[k].value[1]);
			table_put(&w, "%+.0f", d[k].value[1] - d[k].value[0]);
		}
		table_close(&w);
		ft_differences_free(d);
	}
}

void ft_report_bom_csv(FILE *out, const struct ft_bom *bom)
{
	fputs("item,count,unit_usd,total_usd,source,date,estimated\n", out);
	for (size_t i = 0; i < bom->n_items; i++) {
		const struct ft_bom_item *b = &bom->item[i];

		fprintf(out, "%s,%" PRId64 ",%.2f,%.2f,\"%s\",%s,%s\n", b->item,
			b->count, b->unit_usd, b->total_usd, b->source, b->date,
			b->estimated ? "true" : "false");
	}
}
