/*
 * cost/finance.h - what capital costs a year
 */
#ifndef COST_FINANCE_H
#define COST_FINANCE_H

/* Capital recovery factor i (1+i)^n / ((1+i)^n - 1), 1/n when i = 0. */
double finance_recovery(double i, double years);

/* Yearly cost of capital usd with a residual of residual_frac after years. */
double finance_per_year_usd(double usd, double residual_frac, double i, double years);

/* All interest paid on a loan of usd in equal monthly payments. */
double finance_interest_usd(double usd, double i, double years);

/* A second opinion, after Barroso, Hoelzle and Ranganathan, The Datacenter as a
 * Computer, as public code has it: a server and its share of the building, each
 * on a loan. */
struct finance_wsc {
	double datacenter_usd_per_w, datacenter_years;
	double datacenter_opex_usd_per_w_month;
	double server_usd, server_years, server_w;
	double server_opex_frac; /* of its amortisation */
	double i, electricity_usd_per_kwh, pue;
};

/* USD per W and month. */
double finance_wsc_usd_per_w_month(const struct finance_wsc *wsc);

#endif
