/* reports/html_trust.c - the report's evidence: nearest runs, prices, sources, words */
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "reports/evidence.h"
#include "reports/html.h"
#include "reports/prices.h"

static void sentence(const struct page *p, const char *text)
{
	fputs("<p class=\"note\">", p->out);
	html_text(p, text);
	fputs("</p>\n", p->out);
}

/* As in tables: of given prices a row only where there are some. */
static bool has_row(const struct page *p, enum ft_price_kind kind)
{
	const char *key =
		arena_printf(p->mem, "cost.%s_frac", ft_price_kind_name(kind));
	const struct ft_outcome_field *f;
	size_t n = ft_outcome_fields(&f);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(f[i].key, key))
			return ft_outcome_row(&f[i], p->a->outcome, p->a->n);
	return true;
}

/* What the capital stands on. */
static void kinds(const struct page *p)
{
	html_table(
		p,
		"Share of the capital (or rent) by how far its prices can be trusted",
		"prices");
	for (int k = 0; k < FT_PRICE_KINDS; k++) {
		if (!has_row(p, (enum ft_price_kind)k))
			continue;
		html_row(p, ft_price_kind_name((enum ft_price_kind)k));
		for (size_t i = 0; i < p->a->n; i++)
			fprintf(p->out, "<td>%.0f %%</td>",
				100 * p->a->outcome[i].cost.by_kind_frac[k]);
		html_row_end(p);
	}
	html_table_end(p);
}

static void nearest(const struct page *p, size_t i)
{
	static const char *const columns[] = { "<nearest measured run", "error",
					       "distance", "<there", "<source" };
	const struct ft_outcome *o = &p->a->outcome[i];

	html_columns(p,
		     arena_printf(p->mem,
				  "%s: what was measured, and how far the "
				  "prediction of it was off",
				  p->a->label[i]),
		     columns, 5);
	for (size_t k = 0; k < o->n_nearest; k++) {
		html_row(p, o->nearest[k].id);
		fprintf(p->out, "<td>%+.1f %%</td><td>%.2f</td><td class=\"text\">",
			100 * o->nearest[k].error_frac, o->nearest[k].distance);
		html_text(p, o->nearest[k].differs);
		fputs("</td><td class=\"text\">", p->out);
		html_text(p, o->nearest[k].source);
		fputs("</td>", p->out);
		html_row_end(p);
	}
	html_table_end(p);
}

bool html_trust(struct page *p)
{
	char words[WARNINGS];
	const char *said;

	if (p->a->n > 1 && evidence_warning(p->a, words))
		sentence(p, words);
	kinds(p);
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_outcome *o = &p->a->outcome[i];

		nearest(p, i);
		for (int k = 0;
		     (said = evidence_sentence(p->a->scenario[i], o, k, words)); k++)
			sentence(p, said);
	}
	return true;
}

/* "published. SOURCE DATE NOTE" */
static void provenance(const struct page *p, const struct ft_provenance *from)
{
	html_text(p, ft_provenance_kind_name(from->kind));
	fputs(". ", p->out);
	html_text(p, from->source);
	fputs(" ", p->out);
	html_text(p, from->date);
	fputs(" ", p->out);
	html_text(p, from->note);
}

static void source(const struct page *p, const char *what,
		   const struct ft_provenance *from)
{
	fprintf(p->out, "<li>%s: ", what);
	if (from)
		provenance(p, from);
	fputs("</li>\n", p->out);
}

/* What the book says beside its prices; once for each book. */
static void figures(const struct page *p, size_t i)
{
	static const char *const columns[] = { "<figure", "likely", "low", "high",
					       "<from" };
	const struct ft_prices *book = p->a->scenario[i]->prices;
	struct ft_figure f[FT_FIGURES_MOST];
	size_t n = ft_prices_figures(book, f);

	for (size_t k = 0; k < i; k++)
		if (!strcmp(p->a->scenario[k]->prices->name, book->name))
			return;
	html_columns(p,
		     arena_printf(p->mem,
				  "Book %s beside its prices; low is P10, high P90",
				  book->name),
		     columns, sizeof(columns) / sizeof(*columns));
	for (size_t k = 0; k < n; k++) {
		html_row(p, *f[k].unit ? arena_printf(p->mem, "%s, %s", f[k].name,
						      f[k].unit) :
					 f[k].name);
		fprintf(p->out,
			"<td>%.6g</td><td>%.6g</td><td>%.6g</td><td class=\"text\">",
			f[k].is->value, f[k].is->low, f[k].is->high);
		provenance(p, f[k].is->from);
		fputs("</td>", p->out);
		html_row_end(p);
	}
	html_table_end(p);
}

/* "cost.horizon 4 y": what nobody gave, as it was taken. */
static void assumptions(const struct page *p, const struct ft_scenario *s)
{
	for (size_t k = 0; k < s->n_assumed; k++) {
		const struct node *is = node_path(s->resolved, s->assumed[k]);

		fputs(k ? ", " : "", p->out);
		html_text(p, s->assumed[k]);
		if (is && is->kind == NODE_SCALAR) {
			putc(' ', p->out);
			html_text(p, is->text);
		}
	}
}

bool html_sources(struct page *p)
{
	for (size_t i = 0; i < p->a->n; i++) {
		const struct ft_scenario *s = p->a->scenario[i];

		html_heading(p, i);
		fputs("<ul class=\"note\">\n", p->out);
		source(p, "GPU profile", s->cluster->gpu->from);
		source(p, "software stack", s->stack->from);
		source(p, "communication library", s->ccl->from);
		fputs("<li>", p->out);
		html_text(p, prices_said(p->mem, p->a->outcome[i].bom, s->prices));
		fputs("</li>\n", p->out);
		fprintf(p->out,
			"<li>%.0f %% of the kernel time is for shapes far from "
			"anything measured.</li>\n<li>assumed, as the scenario does not give "
			"them: ",
			100 * p->a->outcome[i].extrapolated_frac);
		assumptions(p, s);
		fputs("</li></ul>\n", p->out);
		figures(p, i);
	}
	return true;
}

bool html_words(struct page *p)
{
	static const struct {
		const char *word, *means;
	} words[] = {
		{ "P10, P50, P90",
		  "one in ten is below P10, half below P50, one in ten "
		  "above P90" },
		{ "likely", "the single most probable value (the mode) of a price" },
		{ "goodput", "share of the training time that is kept: what failures, "
			     "checkpoints and recoveries leave" },
		{ "utilisation",
		  "share of the paid hours in which the cluster trains" },
		{ "MFU",
		  "model FLOP/s over the GPU's peak in the precision of training" },
		{ "exposed communication",
		  "time in which a GPU waits for a collective and "
		  "computes nothing" },
		{ "pipeline bubble", "time in which a GPU waits for a neighbour of its "
				     "pipeline" },
		{ "PUE", "power of the building over power of its computers" },
		{ "quoted, derived, guessed",
		  "a price that a source asks or paid; one computed from such; one "
		  "assumed" },
		{ "annuity", "equal yearly payments that return the capital with "
			     "interest" },
	};

	fputs("<dl>\n", p->out);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		fprintf(p->out, "<dt>%s</dt><dd>%s</dd>\n", words[i].word,
			words[i].means);
	fputs("</dl>\n", p->out);
	return true;
}
