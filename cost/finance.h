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

#endif
