/*
 * cost/finance.h - what capital costs a year
 */
#ifndef COST_FINANCE_H
#define COST_FINANCE_H

/* Capital recovery factor i (1+i)^n / ((1+i)^n - 1), 1/n when i = 0. */
double finance_recovery(double i, double years);

/* The value today of one dollar paid so many months from now. */
double finance_worth(double i, double months);

/* All interest paid on a loan of usd in equal monthly payments. */
double finance_interest_usd(double usd, double i, double years);

#endif
