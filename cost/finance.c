/* cost/finance.c - annuities */
#include "cost/finance.h"

#include <math.h>

double finance_recovery(double i, double years)
{
	/* i g / (g - 1) with g = (1 + i)^years, exact for the smallest i, too */
	return i == 0 ? 1 / years : i / -expm1(-years * log1p(i));
}

double finance_per_year_usd(double usd, double residual_frac, double i, double years)
{
	double residual_now_usd = usd * residual_frac * exp(-years * log1p(i));

	return (usd - residual_now_usd) * finance_recovery(i, years);
}

double finance_interest_usd(double usd, double i, double years)
{
	double months = 12 * years;

	return usd * finance_recovery(i / 12, months) * months - usd;
}

double finance_wsc_usd_per_w_month(const struct finance_wsc *wsc)
{
	enum { HOURS = 720 }; /* of a month, as the book has it */
	double building = wsc->datacenter_usd_per_w;
	double building_months = 12 * wsc->datacenter_years;
	double server = wsc->server_usd / wsc->server_w;
	double server_months = 12 * wsc->server_years;
	double power = wsc->electricity_usd_per_kwh / 1000 * HOURS;

	return building / building_months +
	       finance_interest_usd(building, wsc->i, wsc->datacenter_years) /
		       building_months +
	       wsc->datacenter_opex_usd_per_w_month + power * wsc->pue +
	       server / server_months * (1 + wsc->server_opex_frac) +
	       finance_interest_usd(server, wsc->i, wsc->server_years) / server_months;
}
