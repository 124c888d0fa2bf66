/*
 * cost/split.h - the split (two-piece) log-normal of a price: P10, mode, P90
 *
 * The logarithm's density is two halves of normals that meet at the mode m, with standard
 * deviations s below and t above it:
 *   P(X < m) = a = s / (s + t)
 *   quantile(p) = m + s Q(p / (2 a))                   p < a       Q: the standard normal's
 *               = m + t Q(1 - (1 - p) / (2 (1 - a)))   p >= a      quantile
 * s and t follow from quantile(0.1) = ln low, quantile(0.9) = ln high. Without a width on one side
 * all the weight is on the other. John, Communications in Statistics 11 (1982).
 */
#ifndef COST_SPLIT_H
#define COST_SPLIT_H

struct split {
	double mode;	     /* of the amount */
	double below, above; /* standard deviations of the logarithm */
};

/* 0 < low <= mode <= high. */
struct split split_of(double low, double mode, double high);

/* The amount at a probability, and at a standard normal z. */
double split_quantile(const struct split *s, double p);

/* A table of it over z, for many draws: within 1e-4 of the amount between -4 and 4. */
enum { SPLIT_TABLE = 257 };

/* The probabilities of its z, for all tables; 0: not asked for yet. */
struct split_grid {
	double p[SPLIT_TABLE];
};

struct split_table {
	struct split of;
	struct split_grid *grid;
	double amount[SPLIT_TABLE]; /* 0: not looked up yet */
};

double split_look_up(struct split_table *table, double z);

#endif
