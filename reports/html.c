/*
 * reports/html.c - the report: one page that needs no network
 *
 * The page is reports/page/report.html with its slots filled in. Plots are SVG inside data:
 * addresses. The exact JSON of the answer lies in the element `answer`, what the sliders compute
 * with in `deals`.
 */
#include "reports/html.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/plain.h"
#include "base/text.h"
#include "reports/json.h"
#include "reports/page.h"

void html_text(const struct page *p, const char *s)
{
	text_put_xml(p->out, s);
}

static void base64(FILE *out, const char *s)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopq"
				     "rstuvwxyz0123456789+/";
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)(unsigned char)s[i] << 16;

		if (i + 1 < n)
			v |= (uint32_t)(unsigned char)s[i + 1] << 8;
		if (i + 2 < n)
			v |= (unsigned char)s[i + 2];
		putc(digits[v >> 18], out);
		putc(digits[v >> 12 & 63], out);
		putc(i + 1 < n ? digits[v >> 6 & 63] : '=', out);
		putc(i + 2 < n ? digits[v & 63] : '=', out);
	}
}

/* ---- tables and pictures -------------------------------------------------------------- */

static void open_table(const struct page *p, const char *caption)
{
	fputs("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"",
	      p->out);
	html_text(p, caption);
	fputs("\"><table><caption>", p->out);
	html_text(p, caption);
	fputs("</caption>\n<thead><tr>", p->out);
}

void html_table(const struct page *p, const char *caption, const char *name)
{
	open_table(p, caption);
	fprintf(p->out, "<th scope=\"col\">%s</th>", name);
	for (size_t i = 0; i < p->a->n; i++) {
		fputs("<th scope=\"col\">", p->out);
		html_text(p, p->a->label[i]);
		fputs("</th>", p->out);
	}
	fputs("</tr></thead>\n<tbody>\n", p->out);
}

void html_columns(const struct page *p, const char *caption, const char *const *name,
		  size_t n)
{
	open_table(p, caption);
	for (size_t i = 0; i < n; i++)
		fprintf(p->out, "<th scope=\"col\"%s>%s</th>",
			*name[i] == '<' ? " class=\"text\"" : "",
			name[i] + (*name[i] == '<'));
	fputs("</tr></thead>\n<tbody>\n", p->out);
}

void html_table_end(const struct page *p)
{
	fputs("</tbody></table></div>\n", p->out);
}

void html_row(const struct page *p, const char *name)
{
	fputs("<tr><th scope=\"row\">", p->out);
	html_text(p, name);
	fputs("</th>", p->out);
}

void html_row_end(const struct page *p)
{
	fputs("</tr>\n", p->out);
}

void html_heading(const struct page *p, size_t i)
{
	if (p->a->n < 2)
		return;
	fputs("<h3>", p->out);
	html_text(p, p->a->label[i]);
	fputs("</h3>\n", p->out);
}

bool html_picture(const struct page *p, const char *alt, const char *svg)
{
	if (!svg)
		return false;
	fputs("<p class=\"picture\" tabindex=\"0\"><img alt=\"", p->out);
	html_text(p, alt);
	fputs("\" src=\"data:image/svg+xml;base64,", p->out);
	base64(p->out, svg);
	fputs("\"></p>\n", p->out);
	return true;
}

/* ---- the frame --------------------------------------------------------------------------- */

static bool title(struct page *p)
{
	for (size_t i = 0; i < p->a->n; i++) {
		fputs(i ? ", " : "", p->out);
		html_text(p, p->a->label[i]);
	}
	fputs(": foretoken report", p->out);
	return true;
}

static bool heading(struct page *p)
{
	html_text(p, p->a->scenario[0]->model->name);
	fputs(": what it trains at, why, and what it costs", p->out);
	return true;
}

static bool style(struct page *p)
{
	fputs(page_report_css, p->out);
	return true;
}

static bool script(struct page *p)
{
	fputs(page_report_js, p->out);
	return true;
}

/* A value as JSON inside a script element: a < stands in strings alone. */
static bool json_element(struct page *p, const char *id, json_t *value)
{
	char *dump = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(12) |
					       JSON_ESCAPE_SLASH);

	json_decref(value);
	if (!dump)
		return ft_fail(p->err, NULL, "out of memory");
	fprintf(p->out, "<script type=\"application/json\" id=\"%s\">", id);
	for (const char *s = dump; *s; s++)
		if (*s == '<')
			fputs("\\u003c", p->out);
		else
			putc(*s, p->out);
	fputs("</script>\n", p->out);
	free(dump);
	return true;
}

/* What the sliders compute with: a purchase at once, or a rent. */
static json_t *deal_json(const struct page *p, size_t i)
{
	const struct ft_deal d = ft_outcome_deal(p->a->scenario[i], &p->a->outcome[i]);
	const struct ft_cost_terms *t = &d.terms;
	json_t *o = json_object(), *left = json_array();
	double bought = 0;

	for (int c = 0; c < FT_CAPITALS; c++)
		bought += d.capital_usd[c];
	json_put_text(o, "name", p->a->label[i]);
	json_put_bool(o, "fits", p->a->outcome[i].fits);
	json_put(o, "gpus", d.gpus);
	json_put(o, "capital_usd", bought);
	json_put(o, "extra_frac", t->tax_frac + t->duty_frac);
	json_put(o, "residual_frac", t->residual_frac);
	for (size_t k = 0; k < t->n_residuals; k++)
		json_array_append_new(left, json_real(t->residual_by_year[k]));
	json_object_set_new(o, "residual_by_year", left);
	json_put(o, "cost_of_capital_frac", t->cost_of_capital_frac);
	json_put(o, "years", t->horizon_years);
	json_put(o, "upkeep_frac", d.maintenance_frac + t->insurance_frac);
	json_put(o, "colocation_usd_per_year",
		 d.provisioned_w / 1000 * d.colocation_usd_per_kw_month * 12);
	json_put(o, "used_kw", d.it_w * t->pue / 1000);
	json_put(o, "idle_kw", d.idle_w * t->pue / 1000);
	json_put(o, "electricity_usd_per_kwh", d.electricity_usd_per_kwh);
	json_put(o, "staff_and_licences_usd_per_year",
		 t->staff_usd_per_year + t->licences_usd_per_gpu_year * d.gpus);
	json_put(o, "rent_usd_per_gpu_hour", d.rent_usd_per_gpu_hour);
	json_put(o, "prepaid_frac", t->prepaid_frac);
	json_put_bool(o, "take_or_pay", t->take_or_pay);
	json_put(o, "usd_per_gpu_hour", ft_deal_usd_per_gpu_hour(&d));
	json_put(o, "tokens_per_s_per_gpu", d.tokens_per_s / d.gpus);
	json_put(o, "utilization_frac", t->utilization_frac);
	json_put(o, "goodput", ft_deal_goodput(&d));
	return o;
}

static bool data(struct page *p)
{
	json_t *answers = json_array(), *deals = json_array();

	for (size_t i = 0; i < p->a->n; i++) {
		json_array_append_new(answers, json_of_outcome(p->a->scenario[i],
							       &p->a->outcome[i],
							       p->a->label[i]));
		json_array_append_new(deals, deal_json(p, i));
	}
	if (json_element(p, "answer", answers))
		return json_element(p, "deals", deals);
	json_decref(deals);
	return false;
}

static const struct {
	const char *name;
	bool (*fill)(struct page *p);
} slots[] = {
	{ "title", title },
	{ "heading", heading },
	{ "style", style },
	{ "script", script },
	{ "data", data },
	{ "verdict", html_verdict },
	{ "numbers", html_numbers },
	{ "fleets", html_fleets },
	{ "reasons", html_reasons },
	{ "crossovers", html_crossovers },
	{ "tornado", html_tornado },
	{ "answers", html_answers },
	{ "breakdown", html_breakdown },
	{ "items", html_items },
	{ "memory", html_memory },
	{ "scaling", html_scaling },
	{ "differs", html_differs },
	{ "settings", html_settings },
	{ "network", html_network },
	{ "bill", html_bill },
	{ "cash", html_cash },
	{ "trust", html_trust },
	{ "sources", html_sources },
	{ "words", html_words },
};

static bool holds(const struct page *p, const char *name, size_t n)
{
	if (!strncmp(name, "compared", n))
		return p->a->verdict != NULL;
	for (size_t i = 0; i < p->a->n; i++) /* asked */
		if (p->a->outcome[i].asked.n)
			return true;
	return false;
}

static bool fill(struct page *p, const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof(slots) / sizeof(*slots); i++)
		if (strlen(slots[i].name) == n && !strncmp(slots[i].name, name, n))
			return slots[i].fill(p);
	return ft_fail(p->err, NULL, "the report's page has an unknown slot %.*s",
		       (int)n, name);
}

/* The page, slot by slot. A part that does not hold is skipped to its end. */
static bool page(struct page *p)
{
	const char *at = page_report_html, *open, *close;

	while ((open = strstr(at, "{{"))) {
		size_t n;

		fwrite(at, 1, (size_t)(open - at), p->out);
		open += 2;
		close = strstr(open, "}}");
		n = (size_t)(close - open);
		at = close + 2;
		if (*open == '#' && !holds(p, open + 1, n - 1)) {
			const char *end = arena_printf(p->mem, "{{/%.*s}}",
						       (int)(n - 1), open + 1);

			at = strstr(at, end) + strlen(end);
		} else if (*open != '#' && *open != '/' && !fill(p, open, n)) {
			return false;
		}
	}
	fputs(at, p->out);
	return true;
}

bool ft_report_html(const char *dir, const struct ft_answers *answers,
		    struct ft_error *err)
{
	PLAIN_NUMBERS;
	struct arena mem = { 0 };
	struct file_out f;
	struct page p = { .mem = &mem, .dir = dir, .a = answers, .err = err };
	bool ok;

	if (!file_folder(dir, err))
		return false;
	if (!file_begin(&f, arena_printf(&mem, "%s/index.html", dir), err)) {
		arena_release(&mem);
		return false;
	}
	p.out = f.out;
	ok = page(&p);
	if (ok)
		ok = file_commit(&f, err);
	else
		file_abandon(&f);
	arena_release(&mem);
	return ok;
}

const char *ft_report_style(void)
{
	return page_report_css;
}
