/* study/terms.c - keys of `cost` that would have no effect, and are refused */
#include "base/node.h"
#include "study/keys.h"

/* A key of `cost` that says something, and that has no effect as the cluster is paid for. */
static bool idle_term(const struct ft_scenario *s, const char *key, const char *why,
		      struct ft_error *err)
{
	const struct node *n = node_get(node_get(s->given, "cost"), key);

	if (node_is_null(n))
		return true;
	return ft_fail(err, &n->mark, "cost.%s has no effect: with %s %s", key,
		       s->prices->name, why);
}

/* When a key of `cost` has an effect. */
enum when { BOUGHT, RENTED, AHEAD /* bought, or something is paid ahead */ };

static const struct {
	const char *key;
	enum when when;
} terms_of[] = {
	{ "residual_frac", BOUGHT },  { "residual_by_year", BOUGHT },
	{ "price_of", BOUGHT },	      { "electricity", BOUGHT },
	{ "tax_frac", BOUGHT },	      { "duty_frac", BOUGHT },
	{ "insurance_frac", BOUGHT }, { "against", BOUGHT },
	{ "horizon", AHEAD },	      { "cost_of_capital_frac", AHEAD },
	{ "prepaid_frac", RENTED },   { "take_or_pay", RENTED },
};

bool terms_ahead(const struct ft_scenario *s)
{
	const struct ft_cost_terms *t = &s->terms;

	return !s->prices->n_rents || t->prepaid_frac > 0 || t->n_tranches ||
	       t->burn_in_s > 0;
}

/* Why a key has no effect; NULL: it has one. */
static const char *without_effect(const struct ft_scenario *s, enum when when)
{
	if (!s->prices->n_rents)
		return when == RENTED ? "the cluster is bought" : NULL;
	if (when == BOUGHT)
		return "the cluster is rented, and all is in the rent of the hour; "
		       "cost.usd_per_gpu_hour is a rent of your own";
	return when == AHEAD && !terms_ahead(s) ?
		       "the cluster is rented, and nothing is paid ahead" :
		       NULL;
}

/* Terms that the book leaves without effect are refused. */
bool terms_count(const struct ft_scenario *s, struct ft_error *err)
{
	const struct ft_prices *p = s->prices;
	bool ok = true;

	if (s->terms.usd_per_gpu_hour > 0 && !p->n_rents)
		return ft_fail(
			err, &s->terms.usd_per_gpu_hour_mark,
			"usd_per_gpu_hour is a rent, and %s is a book of what is "
			"bought; leave out cost.prices",
			p->name);
	for (size_t i = 0; ok && i < sizeof(terms_of) / sizeof(*terms_of); i++) {
		const char *why = without_effect(s, terms_of[i].when);

		ok = !why || idle_term(s, terms_of[i].key, why, err);
	}
	if (ok && p->colocation_includes_power)
		ok = idle_term(s, "electricity", "the colocation includes power", err);
	return ok;
}
