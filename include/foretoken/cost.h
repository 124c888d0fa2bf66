/*
 * foretoken/cost.h - from a cluster and a throughput to money: bill of
 * materials, power, financing, goodput, dollars per million tokens
 *
 * Method, with C the capital, S = residual * C, i the yearly cost of capital,
 * n years:
 *   CRF(i, n)        = i (1+i)^n / ((1+i)^n - 1), and 1/n when i = 0
 *   capital per year = (C - S / (1+i)^n) * CRF(i, n)
 *   usd_per_gpu_hour = (capital + colocation + electricity + maintenance per
 *                       year) / (GPUs * 8760 h)
 *   usd_per_million_tokens = usd_per_gpu_hour * 1e6 /
 *                       (3600 * tokens/s/GPU * utilization * goodput)
 * Goodput (Young, Daly): M = 24 h * 1000 / (failures per 1000 node-days * nodes),
 *   tau = sqrt(2 d M), waste = d/tau + tau/(2M) + R/M for checkpoint cost d and
 *   restart time R.
 * Rented, usd_per_gpu_hour is the rent, and all but the tokens is inside it.
 * Power: a GPU draws idle + (limit - idle) (c + memory_frac m + waiting_frac w), with c,
 *   m and w the shares of time in kernels bound by arithmetic, by memory, and in waiting
 *   for others (collectives that nothing hides, bubbles: that spins); every other part its power times typical_frac
 *   (hw/parts); spares idle. The facility takes PUE times that: average_power_w over a
 *   year, in which GPUs idle where utilization says so. Electricity is paid for that,
 *   colocation for what is provisioned: all parts at full load. joules_per_token is
 *   average_power_w over the tokens that are kept (utilization * goodput); provisioned_joules_per_token, as some publish it, the
 *   provisioned power times PUE over all tokens.
 * The interval of usd_per_million_tokens joins the range of prices and that of
 * throughput as independent: relative widths add in quadrature.
 */
#ifndef FORETOKEN_COST_H
#define FORETOKEN_COST_H

#include "foretoken/base.h"
#include "foretoken/hw.h"

#ifdef __cplusplus
extern "C" {
#endif

struct node;

/* The book that is used when a scenario names none. */
#define FT_DEFAULT_PRICES "neocloud-2026-09"
/* The same where cost.usd_per_gpu_hour is given: its failure rates and shares of power. */
#define FT_DEFAULT_RENTS "rent-2026"

/* How far a price can be trusted. */
enum ft_price_kind {
	FT_PRICE_QUOTED,  /* a source asks or paid it: published or measured */
	FT_PRICE_DERIVED, /* computed from such */
	FT_PRICE_GUESSED, /* assumed, by us or by its source */
	FT_PRICE_GIVEN,	  /* by the scenario or on the command line */
	FT_PRICE_KINDS
};

const char *ft_price_kind_name(enum ft_price_kind kind); /* "quoted" ... */

struct ft_price {
	const char *item;
	struct ft_number usd; /* likely (mode), low (P10), high (P90), source, date */
	const char *vendor;   /* who sells it; "" when not said */
	const char *book; /* whose line it is: this book's, or one it is taken from */
	enum ft_price_kind kind;
};

/* A figure of facility or operation that comes from another book. */
struct ft_taken {
	const char *figure, *book;
};

struct ft_prices {
	struct ft_digest digest; /* of its files */
	struct ft_mark mark;	 /* where its list of prices or rents stands */
	const char *name, *title;
	const char *date;  /* "2025-08": of when most of its prices are */
	const char *buyer; /* who buys at them: "hyperscaler"; "" when not said */
	size_t n_prices;
	struct ft_price *price;
	size_t n_rents; /* above 0: a book of rents, by the hour, not of purchases */
	struct ft_price *rent; /* item: a GPU profile's name; usd: per GPU and hour */
	struct ft_number colocation_usd_per_kw_month;
	bool colocation_includes_power;
	bool nics_apart; /* list NICs as network, off the server's price */
	struct ft_number electricity_usd_per_kwh;
	struct ft_number maintenance_frac; /* of capital, per year */
	/* By GPU, in books that do not price parts: storage for all parts of that class,
	 * management for front end, management, facility and service. 0: by part. */
	struct ft_price storage, management;
	struct ft_number failures_per_1000_node_days;
	struct ft_number checkpoint_s, restart_s;
	size_t n_taken;
	struct ft_taken *taken;
	const struct ft_provenance *from;
};

/* What the scenario's `cost` map says, defaults filled in. */
struct ft_cost_terms {
	char prices[256];	 /* the book's name or path */
	double usd_per_gpu_hour; /* rent, all inside; 0: the book's */
	struct ft_mark usd_per_gpu_hour_mark;
	const struct node *price_of; /* ITEM: USD, instead of the book's; NULL: none */
	double horizon_years;
	double cost_of_capital_frac, residual_frac;
	double electricity_usd_per_kwh; /* below 0: the book's */
	double pue, utilization_frac;
	double goodput; /* 0: from failures */
};

bool ft_cost_terms_load(const struct node *node, struct ft_cost_terms *terms,
			struct ft_error *err) __attribute__((warn_unused_result));

struct ft_prices *ft_prices_load(const char *name, const struct ft_mark *at,
				 struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_prices_free(struct ft_prices *prices);

/* The book with the prices that the terms give themselves: price_of (ITEM: amount, USD when
 * it has no unit) says of lines of the book, or of items of the cluster that the book lacks,
 * "storage" and "management" being the allowances by GPU; usd_per_gpu_hour is the rent of the
 * cluster's GPUs. Each is exact, of kind FT_PRICE_GIVEN. NULL on error: an item of neither, an
 * amount not above 0. The book must outlive it. */
struct ft_prices *ft_prices_given(const struct ft_prices *book,
				  const struct ft_cluster *cluster,
				  const struct ft_cost_terms *terms,
				  struct ft_error *err)
	__attribute__((warn_unused_result));

struct ft_bom_item {
	const char *item, *what;
	int64_t count;
	double unit_usd, total_usd, low_usd, high_usd; /* low, high: totals */
	const char *source, *address, *date, *vendor;
	const char *book; /* whose line it is */
	enum ft_price_kind kind;
	enum ft_part_class part_class;
	bool network; /* class FT_PART_NETWORK */
};

/* What is bought; or, rented, one line of GPUs at USD per hour, and all sums are USD per
 * hour of the cluster. */
struct ft_bom {
	bool rented;
	const char *book, *book_date, *buyer; /* the price book asked for */
	size_t n_items;
	struct ft_bom_item *item;
	double total_usd, low_usd, high_usd, network_usd;
	double by_class_usd[FT_PART_CLASSES]; /* of the total; rented: all server */
	double by_kind_usd[FT_PRICE_KINDS];   /* of the total */
	const char *first_date,
		*last_date; /* of the prices used; "" when all are given */
};

struct ft_bom *ft_bom_build(const struct ft_cluster *cluster,
			    const struct ft_prices *prices, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_bom_free(struct ft_bom *bom);

struct ft_cost {
	double capex_usd, capex_network_usd, capex_usd_per_gpu;
	double by_kind_frac[FT_PRICE_KINDS]; /* of the capital */
	double capital_usd_per_gpu_hour, electricity_usd_per_gpu_hour,
		colocation_usd_per_gpu_hour, maintenance_usd_per_gpu_hour;
	double rent_usd_per_gpu_hour; /* then there is no capital, and no other part */
	double usd_per_gpu_hour;
	double goodput, utilization_frac;
	double it_power_w, facility_power_w; /* of the cluster, while steps run */
	double average_power_w;		     /* of the facility, over a year */
	double provisioned_w;		     /* IT power, all at full load */
	double usd_per_million_tokens;
	double usd_per_million_tokens_low, usd_per_million_tokens_high;
	double joules_per_token, provisioned_joules_per_token;
	double tokens_per_usd;
};

/* The terms' price of a kilowatt-hour, or else the book's. */
double ft_cost_electricity_usd_per_kwh(const struct ft_cost_terms *terms,
				       const struct ft_prices *prices);

/* What is bought and on which terms. */
struct ft_purchase {
	const struct ft_cluster *cluster;
	const struct ft_prices *prices;
	const struct ft_bom *bom;
	const struct ft_cost_terms *terms;
};

/* What the whole cluster does: tokens per second with P10 and P90 (0: not known), and
 * for the power of GPUs, shares of a step: in kernels, in those bound by memory (part of
 * it), waiting for other GPUs. */
struct ft_throughput {
	double tokens_per_s, low, high;
	double busy_frac, memory_frac, waiting_frac;
};

bool ft_cost_compute(const struct ft_purchase *purchase,
		     const struct ft_throughput *throughput, struct ft_cost *cost,
		     struct ft_error *err) __attribute__((warn_unused_result));

/* ---- History: an item's price in many books ----------------------------------- */

struct ft_price_point {
	const char *item, *book, *buyer, *vendor;
	const char *date; /* of the price, in its source */
	const char *source, *address;
	enum ft_price_kind kind;
	bool rent; /* USD per GPU and hour */
	double usd, low, high;
};

struct ft_price_history {
	size_t n;
	struct ft_price_point *point; /* by date, then book */
};

/* The books of the tree; or, db not NULL, those imported into that SQLite file. An item
 * that none of them has is an error that names the nearest. */
struct ft_price_history *ft_price_history_load(const char *item, const char *db,
					       struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_price_history_free(struct ft_price_history *history);

/* Puts the book's own lines (not those it takes from others) into the SQLite file, which
 * is made if needed, in place of what it had of that book and date; *n: how many. */
bool ft_price_history_import(const char *db, const char *book, size_t *n,
			     struct ft_error *err) __attribute__((warn_unused_result));

#ifdef __cplusplus
}
#endif
#endif
