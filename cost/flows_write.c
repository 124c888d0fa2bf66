/* cost/flows_write.c - cash flows as CSV in the columns of FOCUS 1.2 */
#include <math.h>

#include "base/csv.h"
#include "base/plain.h"
#include "base/text.h"
#include "foretoken/cost.h"

/* How finance files what is ours under: words of FOCUS. */
static const struct {
	const char *charge, *category;
} filed[FT_ACCOUNTS] = {
	[FT_ACCOUNT_SERVERS] = { "Purchase", "Compute" },
	[FT_ACCOUNT_NETWORK] = { "Purchase", "Networking" },
	[FT_ACCOUNT_OTHER] = { "Purchase", "Storage" },
	[FT_ACCOUNT_TAX] = { "Tax", "Other" },
	[FT_ACCOUNT_DUTY] = { "Tax", "Other" },
	[FT_ACCOUNT_RESALE] = { "Credit", "Compute" },
	[FT_ACCOUNT_PREPAYMENT] = { "Purchase", "Compute" },
	[FT_ACCOUNT_RENT] = { "Usage", "Compute" },
	[FT_ACCOUNT_COLOCATION] = { "Usage", "Other" },
	[FT_ACCOUNT_ELECTRICITY] = { "Usage", "Other" },
	[FT_ACCOUNT_MAINTENANCE] = { "Usage", "Other" },
	[FT_ACCOUNT_STAFF] = { "Usage", "Other" },
	[FT_ACCOUNT_LICENCES] = { "Usage", "Other" },
	[FT_ACCOUNT_INSURANCE] = { "Usage", "Other" },
};

struct calendar {
	int year, month; /* of month 0; month 0 is January */
};

static struct calendar calendar_of(const char *start)
{
	struct calendar c = { 1970, 1 };

	text_month(start, &c.year, &c.month);
	c.month--;
	return c;
}

/* The first instant of a month, as FOCUS writes instants. */
static const char *instant(const struct calendar *c, int month, char text[32])
{
	int all = c->month + month;

	snprintf(text, 32, "%04d-%02d-01T00:00:00Z", c->year + all / 12, all % 12 + 1);
	return text;
}

struct writing {
	FILE *out;
	struct calendar calendar;
	const char *name;
};

static void line(const struct writing *w, enum ft_account a, int month, double billed,
		 double effective)
{
	/* of what was paid before, a month uses up a share */
	const char *charge = billed == 0 ? "Usage" : filed[a].charge;
	char from[32], to[32];

	if (billed == 0 && effective == 0)
		return;
	instant(&w->calendar, month, from);
	instant(&w->calendar, month + 1, to);
	fprintf(w->out, "%.2f,foretoken,", billed);
	csv_cell(w->out, w->name);
	fprintf(w->out, ",forecast,USD,%s,%s,%s,,\"%s%s\",%s,%s,%s,%.2f,%.2f,", to,
		from, charge, ft_account_name(a),
		billed == 0 ? ", its share of the month" : "",
		charge[0] == 'U' ? "Recurring" : "One-Time", to, from, billed,
		effective);
	fprintf(w->out, "foretoken forecast,%.2f,%s,foretoken,foretoken,%s,%s\n",
		billed, charge[0] == 'T' ? "," : "1,Month", filed[a].category,
		ft_account_name(a));
}

/* The part of a month that even payments over [start, end) cover. */
static double covered(double start, double end, int month)
{
	return fmax(0, fmin(end, month + 1.0) - fmax(start, month));
}

/* Whole cents of what has come so far, less those that were written: so that months add up to the cent. */
static double cents_more(double so_far, double *written)
{
	double usd = round(100 * so_far) / 100 - *written;

	*written += usd;
	return usd;
}

/* What is paid at once is used up evenly from then to the end; a residual value is
 * what is not used up. */
static void write_flow(const struct writing *w, const struct ft_flow *f, double end,
		       double start)
{
	bool once = f->months == 0;
	double from = f->account == FT_ACCOUNT_RESALE ? start : f->month;
	double so_far = 0, written = 0;
	int last = (int)ceil(end);

	for (int m = 0; m < last; m++) {
		double share =
			once ? covered(from, end, m) / (end - from) :
			       covered(f->month, f->month + f->months, m) / f->months;
		int paid = f->account == FT_ACCOUNT_RESALE ? last - 1 : (int)f->month;
		double used = cents_more(so_far += f->usd * share, &written);

		if (once && m == paid)
			line(w, f->account, m, f->usd, 0);
		line(w, f->account, m, once ? 0 : used, used);
	}
}

void ft_flows_write(FILE *out, const struct ft_deal *deal, const struct ft_prices *book,
		    const char *name)
{
	PLAIN_NUMBERS;
	const char *start = *deal->terms.start ? deal->terms.start : book->date;
	const struct writing w = { out, calendar_of(start), name };
	struct ft_flows f;

	ft_flows_of(deal, &f);
	fputs("BilledCost,BillingAccountId,BillingAccountName,BillingAccountType,"
	      "BillingCurrency,BillingPeriodEnd,BillingPeriodStart,ChargeCategory,"
	      "ChargeClass,ChargeDescription,ChargeFrequency,ChargePeriodEnd,"
	      "ChargePeriodStart,ContractedCost,EffectiveCost,InvoiceIssuerName,ListCost,"
	      "PricingQuantity,PricingUnit,ProviderName,PublisherName,ServiceCategory,"
	      "ServiceName\n",
	      out);
	for (size_t i = 0; i < f.n; i++) {
		double start_month = 0;

		/* a residual value belongs to the purchase before it */
		for (size_t k = i; k-- > 0 && f.flow[i].account == FT_ACCOUNT_RESALE;)
			if (f.flow[k].account == FT_ACCOUNT_SERVERS) {
				start_month = f.flow[k].month;
				break;
			}
		write_flow(&w, &f.flow[i], f.months, start_month);
	}
}
