/* reports/html_step.c - the report's step: results, where time and memory go, scaling */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/quantity.h"
#include "base/text.h"
#include "reports/html.h"
#include "reports/html_plots.h"
#include "reports/show.h"
#include "reports/stages.h"

/* One row of the answers' table: a name, and one cell for each scenario. */
static void row(const struct page *p, const struct ft_outcome_field *f)
{
	double largest = 0;
	struct shown as;
	char buf[SHOWN];

	for (size_t i = 0; i < p->a->n; i++)
		largest =
			fmax(largest, fabs(ft_outcome_at(&p->a->outcome[i], f->value)));
	as = shown_as(f->show, largest);
	fprintf(p->out, "<tr><th scope=\"row\">%s%s%s</th>", f->label,
		as.unit[0] ? ", " : "", as.unit);
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_outcome *o = &p->a->outcome[i];

		fprintf(p->out,
			"<td data-key=\"%s\" data-scenario=\"%zu\" "
			"data-scale=\"%g\">%s</td>",
			f->key, i, as.scale,
			shown_number(&as, ft_outcome_at(o, f->value), buf));
	}
	html_row_end(p);
	if (!f->high)
		return;
	fputs("<tr class=\"note\"><th scope=\"row\">P10 to P90</th>", p->out);
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_outcome *o = &p->a->outcome[i];

		fprintf(p->out, "<td>%s to ",
			shown_number(&as, ft_outcome_at(o, f->low), buf));
		fprintf(p->out, "%s</td>",
			shown_number(&as, ft_outcome_at(o, f->high), buf));
	}
	html_row_end(p);
}

/* The rows whose keys begin with head; NULL: all that belong to no part of their own. */
static void rows(const struct page *p, const char *head)
{
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);

	for (size_t i = 0; i < n; i++) {
		bool part = text_begins_with(f[i].key, "breakdown_s.");

		if (ft_outcome_row(&f[i], p->a->outcome, p->a->n) &&
		    part == (head != NULL))
			row(p, &f[i]);
	}
}

bool html_answers(struct page *p)
{
	html_table(p, "All results", "result");
	rows(p, NULL);
	html_row(p, "fits in memory");
	for (size_t i = 0; i < p->a->n; i++)
		fputs(p->a->outcome[i].fits ? "<td>yes</td>" :
					      "<td class=\"bad\">no</td>",
		      p->out);
	html_row_end(p);
	html_table_end(p);
	for (size_t i = 0; i < p->a->n; i++) {
		fputs("<p><b>", p->out);
		html_text(p, p->a->label[i]);
		fputs(":</b> ", p->out);
		html_text(p, p->a->outcome[i].bottleneck);
		fputs("</p>\n", p->out);
	}
	return true;
}

bool html_breakdown(struct page *p)
{
	struct plots q = { .mem = p->mem, .dir = p->dir, .a = p->a };

	if (!html_picture(p,
			  arena_printf(p->mem, "Parts of a step, stacked. %s: %s",
				       p->a->label[0], p->a->outcome[0].bottleneck),
			  plot_breakdown(&q, p->err)))
		return false;
	html_table(p, "They add up to the step", "part of a step");
	rows(p, "breakdown_s");
	html_table_end(p);
	return true;
}

bool html_items(struct page *p)
{
	static const char *const columns[] = { "<item", "count", "time",
					       "share of the roofline" };
	char buf[64];

	struct plots q = { .mem = p->mem, .dir = p->dir, .a = p->a };

	fputs("<h3>Largest items of a rank's step</h3>\n", p->out);
	if (!html_picture(
		    p,
		    "Products and attention under their GPU's roofs: memory bandwidth "
		    "on the left, arithmetic in the scenario's precision on the right",
		    plot_roofline(&q, p->err)))
		return false;
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_run *run = p->a->outcome[i].run;

		html_columns(p, p->a->label[i], columns, 4);
		for (size_t k = 0; k < run->n_shares && k < 12; k++) {
			const struct ft_share *s = &run->share[k];

			html_row(p, s->extrapolated ?
					    arena_printf(p->mem, "%s (extrapolated)",
							 s->name) :
					    s->name);
			fprintf(p->out, "<td>%.0f</td><td>%s</td>", s->count,
				quantity_text(s->time_s, DIM_S, buf, sizeof(buf)));
			if (s->roofline_s > 0)
				fprintf(p->out, "<td>%.0f %%</td>",
					100 * s->roofline_s / s->time_s);
			else
				fputs("<td></td>", p->out);
			html_row_end(p);
		}
		html_table_end(p);
	}
	return true;
}

static bool memory_charts(struct page *p)
{
	bool ok = true;

	for (size_t i = 0; ok && i < p->a->n; i++) {
		const struct ft_outcome *o = &p->a->outcome[i];

		if (o->memory_svg) {
			ok = html_picture(p,
					  arena_printf(p->mem,
						       "Memory of the fullest rank "
						       "over a step, by category: %s",
						       p->a->label[i]),
					  o->memory_svg);
			continue;
		}
		fputs("<p class=\"note\">", p->out);
		html_text(p, p->a->label[i]);
		fputs(": its memory over a step is not drawn: ", p->out);
		html_text(p, o->memory_missing[0] ? o->memory_missing :
						    "no chart was asked for");
		fputs("</p>\n", p->out);
	}
	return ok;
}

bool html_memory(struct page *p)
{
	if (!memory_charts(p))
		return false;
	html_table(p, "GB per GPU, of the fullest", "category");
	for (int m = 0; m < FT_MEMORIES; m++) {
		html_row(p, ft_memory_name((enum ft_memory)m));
		for (size_t i = 0; i < p->a->n; i++)
			fprintf(p->out, "<td>%.1f</td>",
				p->a->outcome[i].memory_bytes[m] * 1e-9);
		html_row_end(p);
	}
	html_row(p, "all");
	for (size_t i = 0; i < p->a->n; i++)
		fprintf(p->out, "<td><b>%.1f</b></td>",
			p->a->outcome[i].memory_total_bytes * 1e-9);
	html_row_end(p);
	html_row(p, "of");
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_gpu *g = p->a->scenario[i]->cluster->gpu;

		fprintf(p->out, "<td>%.1f</td>",
			g->memory_bytes.value * (double)g->ranks_per_gpu * 1e-9);
	}
	html_row_end(p);
	html_table_end(p);
	for (size_t i = 0; i < p->a->n; i++)
		stages_html(p, i);
	return true;
}

bool html_scaling(struct page *p)
{
	struct plots q = { .mem = p->mem, .dir = p->dir, .a = p->a };

	return html_picture(
		       p,
		       "USD per million tokens against GPUs, with P10 to P90: what "
		       "larger clusters of the same plan lose",
		       plot_scaling_usd(&q, p->err)) &&
	       html_picture(
		       p,
		       "Tokens/s per GPU against GPUs, as a share of the best size, with P10 "
		       "to P90",
		       plot_efficiency(&q, p->err));
}

bool html_differs(struct page *p)
{
	struct ft_settings *all = ft_study_settings(p->a->scenario, p->a->n);

	html_table(p, "Keys whose values differ", "key");
	for (size_t i = 0; i < all->n; i++) {
		if (!all->setting[i].differs)
			continue;
		html_row(p, all->setting[i].key);
		for (size_t k = 0; k < p->a->n; k++) {
			fputs("<td>", p->out);
			html_text(p, all->setting[i].value[k]);
			fputs("</td>", p->out);
		}
		html_row_end(p);
	}
	html_table_end(p);
	ft_settings_free(all);
	return true;
}

bool html_settings(struct page *p)
{
	struct ft_settings *all = ft_study_settings(p->a->scenario, p->a->n);

	fputs("<p class=\"note\">", p->out);
	for (size_t i = 0; i < all->n; i++) {
		if (all->setting[i].differs)
			continue;
		html_text(p, all->setting[i].key);
		fputs(" <b>", p->out);
		html_text(p, all->setting[i].value[0]);
		fputs("</b>; ", p->out);
	}
	fprintf(p->out, "%.4g B parameters; foretoken %s: ",
		ft_model_parameters(p->a->scenario[0]->model) * 1e-9, ft_version());
	html_text(p, p->a->command);
	fputs("</p>\n", p->out);
	ft_settings_free(all);
	return true;
}
