/*
 * foretoken/cost.h - from a cluster and a throughput to money: bill of materials, power, financing, goodput, dollars per million tokens
 *
 * Everything that dollars depend on is one struct of numbers, the deal. From it follow dated
 * cash flows, and all figures are readings of those:
 *
 *   cluster, book, terms, throughput -> deal -> flows {month, account, amount}
 *                                        |        |-> usd_per_gpu_hour and other forms
 *                                        +--------+-> usd_per_million_tokens, odds, reasons
 *
 * The form that answers are given in, with i the yearly cost of capital, n years of the horizon:
 *   CRF(i, n)        = i (1+i)^n / ((1+i)^n - 1), and 1/n when i = 0
 *   capital per year = CRF(i, n) * sum of capital flows, each / (1+i)^years
 *   usd_per_gpu_hour = (capital per year + running costs per year) / GPU-hours per year
 *   usd_per_million_tokens = usd_per_gpu_hour * 1e6 /
 *                       (3600 * tokens/s/GPU * utilization * goodput)
 * A purchase C with residual value S is (C - S / (1+i)^n) * CRF(i, n) a year.
 * Rented, the rent and its prepayment are all, and the tokens are inside it. Goodput: exact for exponential failures, cost/goodput.h.
 * Power: a GPU draws idle + (limit - idle) (min(1 - b, p c + memory_frac m + waiting_frac w) +
 *   waiting_frac b), with c, m, w and b the shares of time in kernels bound by arithmetic, by
 *   memory, in bare collectives, and in waiting in a pipeline (both spin; the limit averages over
 *   the former, not the latter). p is what products ask for at the full clock, limit /
 *   sustained^clock_exponent, which the limit holds down; c counts them as long as they are at that
 *   clock. Every other part draws its power times typical_frac; spares idle, and so do GPUs of a server that a job leaves over. The
 *   facility takes PUE times that: average_power_w over a year, in which GPUs idle where utilization says so. Electricity is paid for
 *   that, colocation for what is provisioned: all parts at full load.
 *   joules_per_token is average_power_w over the tokens that are kept (utilization * goodput);
 *   provisioned_joules_per_token, as some publish it, provisioned power times PUE over all.
 * Intervals and odds come from draws of all that is uncertain: cost/odds.h.
 */
#ifndef FORETOKEN_COST_H
#define FORETOKEN_COST_H

#include <stdio.h>

#include "foretoken/base.h"
#include "foretoken/hw.h"

#ifdef __cplusplus
extern "C" {
#endif

struct node;
struct factors;

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
	bool added;	  /* the book it extends has none of this item */
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
	struct ft_number pue;		   /* of the building */
	struct ft_number maintenance_frac; /* of capital, per year */
	/* By GPU, in books that do not price parts: storage for all parts of that class,
	 * management for front end, management, facility and service. 0: by part. */
	struct ft_price storage, management;
	struct ft_number failure_factor; /* failures against those of hw/parts */
	struct ft_number checkpoint_s, restart_s, repair_s, failover_s, flap_s;
	size_t n_taken;
	struct ft_taken *taken;
	const struct ft_provenance *from;
	const struct factors *factors; /* what prices have in common; NULL: nothing */
};

/* How a job goes on after a failure. */
enum ft_recovery {
	FT_RECOVERY_HOT,	    /* a spare node takes the failed one's place */
	FT_RECOVERY_COLD,	    /* the job waits until it is repaired */
	FT_RECOVERY_FAULT_TOLERANT, /* the others go on without going back */
	FT_RECOVERIES
};

/* What a scenario says of failures beside its price book. Below 0: the book's. */
struct ft_failure_terms {
	enum ft_recovery recovery;
	double failures_per_1000_node_days, checkpoint_s, restart_s;
	double storage_bytes_per_s; /* above 0: checkpoint_s follows from bytes */
	double interval_s;	    /* between checkpoints; 0: the best */
	double repair_s, failover_s;
	bool spares; /* bought beside the GPUs that train: repairs take none of these */
	double flaps_per_1000_node_days, flap_s; /* of links: the job waits */
	double straggler_frac; /* by how much slow parts slow the job */
};

enum { FT_RESIDUALS = 20, FT_TRANCHES = 12 };

/* A part of the cluster that arrives in a month of its own. */
struct ft_tranche {
	double month, frac;
};

/* What the scenario's `cost` map says, defaults filled in. */
struct ft_cost_terms {
	char prices[256];	 /* the book's name or path */
	double usd_per_gpu_hour; /* rent, all inside; 0: the book's */
	struct ft_mark usd_per_gpu_hour_mark;
	const struct node *price_of; /* ITEM: USD, instead of the book's; NULL: none */
	bool other_sizes; /* it may be of parts that the cluster has at another size */
	double horizon_years;
	double cost_of_capital_frac, residual_frac;
	size_t n_residuals; /* above 0: worth at the end of each year, as shares of capital */
	double residual_by_year[FT_RESIDUALS];
	size_t n_tranches; /* 0: all at once, at the start */
	struct ft_tranche tranche[FT_TRANCHES];
	double burn_in_s;	    /* after arrival, before it earns anything */
	double tax_frac, duty_frac; /* of purchases */
	double insurance_frac;	    /* of capital, per year */
	double staff_usd_per_year;
	double licences_usd_per_gpu_year; /* software, support */
	double prepaid_frac;		  /* of all rent, paid at the start */
	bool take_or_pay; /* rent is owed for hours that are not used, too */
	double against_usd_per_gpu_hour; /* rent that owning is held against; 0: none */
	char start[8]; /* month of the first flow, "2026-09"; "": of the book's date */
	double electricity_usd_per_kwh; /* below 0: the book's */
	double pue;			/* below 0: the book's */
	double utilization_frac;
	double goodput; /* 0: from failures */
	struct ft_failure_terms failures;
};

bool ft_cost_terms_load(const struct node *node, struct ft_cost_terms *terms,
			struct ft_error *err) __attribute__((warn_unused_result));

struct ft_prices *ft_prices_load(const char *name, const struct ft_mark *at,
				 struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_prices_free(struct ft_prices *prices);

/* A figure of a book's facility or operation, in the unit that the book has it in. */
struct ft_figure {
	const char *name, *unit;
	const struct ft_number *is;
};

/* All that the book has; how many. */
enum { FT_FIGURES_MOST = 10 };
size_t ft_prices_figures(const struct ft_prices *prices,
			 struct ft_figure figure[FT_FIGURES_MOST]);

/* The book with the prices that the terms give themselves: price_of (ITEM: amount, USD when it has no unit) says of lines
 * of the book, or of items of the cluster that the book lacks, "storage" and "management" being the allowances by GPU;
 * usd_per_gpu_hour is the rent of the cluster's GPUs. Each is exact, of kind FT_PRICE_GIVEN. NULL on error: an item of
 * neither (but with other_sizes), an amount not above 0. The book must outlive it. */
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

/* What is bought; or, rented, one line of GPUs at USD per hour, and all sums are USD per hour of the cluster. */
struct ft_bom {
	bool rented;
	const char *book, *book_date, *buyer; /* the price book asked for */
	size_t n_items;
	struct ft_bom_item *item;
	double total_usd, low_usd, high_usd, network_usd, job_failures_per_hour;
	double by_class_usd[FT_PART_CLASSES]; /* of the total; rented: all server */
	double by_kind_usd[FT_PRICE_KINDS];   /* of the total */
	double apart_usd; /* of adapters listed apart, off the price of servers */
	/* of the prices used, "" when all are given; items given that no line is, or ""; of GPUs that are bought and not used, or "" */
	const char *first_date, *last_date, *in_vain, *idle;
};

struct ft_bom *ft_bom_build(const struct ft_cluster *cluster,
			    const struct ft_prices *prices, struct ft_error *err)
	__attribute__((warn_unused_result));
/* The same of what is bought: an error where the cluster is rented. */
struct ft_bom *ft_bom_bought(const struct ft_cluster *cluster,
			     const struct ft_prices *prices, struct ft_error *err)
	__attribute__((warn_unused_result));
void ft_bom_free(struct ft_bom *bom);

/* What a job's time depends on. */
struct ft_reliability {
	enum ft_recovery recovery;
	double gpus, blast_gpus;   /* all; those that one failure takes out */
	double mtbf_s;		   /* of the whole cluster; 0: nothing fails */
	double save_s, interval_s; /* interval 0: the best */
	double restart_s, repair_s, failover_s;
	bool spares;
	double flap_rate_per_s, flap_s, straggler_frac;
};

/* Where a job's time goes; the shares add up to 1. productive is the goodput. */
struct ft_time_use {
	double productive, checkpoint, wasted, recovery, repair, stalls, stragglers;
	double interval_s; /* between checkpoints */
};

/* What capital is spent on. */
enum ft_capital {
	FT_CAPITAL_SERVERS,
	FT_CAPITAL_NETWORK,
	FT_CAPITAL_OTHER, /* storage, management, racks */
	FT_CAPITALS
};

/* What a cluster's power depends on, in numbers: the equation is at the top. */
struct ft_power {
	double gpus, idle_gpus; /* that work; beside them in their servers */
	double idle_w, limit_w, sustained_frac;	 /* of each */
	double products, copies, waits, bubbles; /* shares of a step: c, m, w, b */
	double memory_frac, waiting_frac, clock_exponent;
	double others_w,
		others_typical_w; /* all other parts: at full load, in a step */
	double spares_w;
};

/* All that dollars per million tokens depend on, in numbers. */
struct ft_deal {
	double gpus;
	double capital_usd[FT_CAPITALS];
	double rent_usd_per_gpu_hour; /* above 0: it is rented */
	double colocation_usd_per_kw_month;
	double electricity_usd_per_kwh; /* 0 where the colocation includes it */
	double maintenance_frac;	/* of capital, per year */
	struct ft_power power;		/* of which these follow: */
	double it_w, idle_w,
		provisioned_w; /* while steps run; between jobs; all at full load */
	double goodput;	       /* 0: from failures */
	struct ft_reliability failures;
	double tokens_per_s;
	struct ft_cost_terms terms;
};

struct ft_cost {
	double capex_usd, capex_network_usd;
	double by_kind_frac[FT_PRICE_KINDS]; /* of the capital */
	double capital_usd_per_gpu_hour, electricity_usd_per_gpu_hour,
		colocation_usd_per_gpu_hour, maintenance_usd_per_gpu_hour,
		staff_usd_per_gpu_hour; /* staff, licences and insurance */
	double rent_usd_per_gpu_hour; /* then there is no capital, and no other part */
	double usd_per_gpu_hour;
	double goodput, utilization_frac;
	struct ft_time_use time; /* productive: goodput; the rest 0 where it is given */
	double it_power_w, facility_power_w, gpu_power_w; /* in steps */
	double average_power_w, average_power_w_low,
		average_power_w_high; /* of the facility, over a year */
	double provisioned_w;	      /* IT power, all at full load */
	double /* of the facility, all at full load */ facility_provisioned_w,
		facility_provisioned_w_low, facility_provisioned_w_high;
	double usd_per_million_tokens;
	double usd_per_million_tokens_low, usd_per_million_tokens_high;
	double usd_per_gpu_hour_low, usd_per_gpu_hour_high;
	double joules_per_token, joules_per_token_low, joules_per_token_high;
	double provisioned_joules_per_token;
	double tokens_per_usd;
};

/* The terms' price of a kilowatt-hour and PUE, or else the book's. */
double ft_cost_electricity_usd_per_kwh(const struct ft_cost_terms *terms,
				       const struct ft_prices *prices);
double ft_cost_pue(const struct ft_cost_terms *terms, const struct ft_prices *prices);

/* What is bought and on which terms. */
struct ft_purchase {
	const struct ft_cluster *cluster;
	const struct ft_prices *prices;
	const struct ft_bom *bom;
	const struct ft_cost_terms *terms;
	bool point; /* no P10 and P90 of dollars are asked: they are the value itself */
};

/* What the whole cluster does: tokens per second with P10 and P90 (0: not known); for the
 * power of GPUs, shares of a step: in kernels; in those bound by memory, and what the limit adds to
 * others (parts of it); waiting for GPUs; for neighbours in a pipeline (part of it); a checkpoint. */
struct ft_throughput {
	double tokens_per_s, low, high;
	double busy_frac, memory_frac, slowed_frac, waiting_frac, bubble_frac;
	double checkpoint_bytes;
	uint64_t job; /* predictions of equal jobs are wrong alike; 0: like no other */
};

bool ft_cost_compute(const struct ft_purchase *purchase,
		     const struct ft_throughput *throughput, struct ft_cost *cost,
		     struct ft_error *err) __attribute__((warn_unused_result));

struct ft_deal ft_deal_of(const struct ft_purchase *purchase,
			  const struct ft_throughput *throughput);

/* Dollars per GPU and hour, goodput, and dollars per million tokens of a deal. No input is
 * checked: what cannot be comes out as infinity or not a number. */
double ft_deal_usd_per_gpu_hour(const struct ft_deal *deal);
double ft_deal_goodput(const struct ft_deal *deal);
double ft_deal_average_w(const struct ft_deal *deal); /* IT power over a year */
double ft_deal_usd_per_million_tokens(const struct ft_deal *deal);

/* ---- cash flows --------------------------------------------------------------- */

enum ft_account {
	FT_ACCOUNT_SERVERS,
	FT_ACCOUNT_NETWORK,
	FT_ACCOUNT_OTHER,
	FT_ACCOUNT_TAX,
	FT_ACCOUNT_DUTY,
	FT_ACCOUNT_RESALE, /* below 0: it comes in */
	FT_ACCOUNT_PREPAYMENT,
	FT_ACCOUNT_RENT, /* the first that is a running cost */
	FT_ACCOUNT_COLOCATION,
	FT_ACCOUNT_ELECTRICITY,
	FT_ACCOUNT_MAINTENANCE,
	FT_ACCOUNT_STAFF,
	FT_ACCOUNT_LICENCES,
	FT_ACCOUNT_INSURANCE,
	FT_ACCOUNTS
};

const char *ft_account_name(enum ft_account account); /* "servers" ... */

/* Paid once at the start of a month (months 0), or evenly for so many from there on. */
struct ft_flow {
	enum ft_account account;
	double month, months;
	double usd; /* in all; above 0 is paid, below 0 comes in */
};

enum { FT_FLOWS_MOST = FT_TRANCHES * FT_ACCOUNTS };

/* All that is paid for the deal, and the hours that its GPUs could work in. */
struct ft_flows {
	size_t n;
	struct ft_flow flow[FT_FLOWS_MOST];
	size_t n_hours;
	struct ft_flow
		hours[FT_TRANCHES]; /* of GPUs, when they could work; usd: hours */
	double gpu_hours;
	double months; /* of the horizon */
};

void ft_flows_of(const struct ft_deal *deal, struct ft_flows *flows);

/* What the flows come to, in the forms in which others state it. Per GPU and hour but where
 * the name says otherwise. */
struct ft_readings {
	double annuity;	      /* the form of the answers: see above */
	double levelised;     /* flows and hours discounted month by month */
	double straight_line; /* no interest */
	double warehouse; /* straight line and the interest of a loan paid monthly, after
			       * Barroso, Hoelzle and Ranganathan, The Datacenter as a Computer */
	double semianalysis; /* annuity without residual value, colocation and electricity */
	double npv_usd;	     /* of all that is paid */
	/* Held against a rent; 0 where there is none, or where the cluster is rented. */
	double rent;
	double break_even_utilization_frac; /* above it owning is cheaper */
	double break_even_months; /* until the rent saved has paid for it, for good; 0: never */
	double irr_frac; /* of owning it and letting it at that rent; NaN: none */
};

struct ft_readings ft_flows_read(const struct ft_deal *deal);

/* The flows, one line a month and account, as CSV in columns of FOCUS 1.2 (FinOps):
 * BilledCost is what is paid in the month, EffectiveCost what the month uses up. book:
 * gives the start where the terms do not. */
void ft_flows_write(FILE *out, const struct ft_deal *deal, const struct ft_prices *book,
		    const char *name);

/* ---- odds ------------------------------------------------------------------------ */

/* One of several deals that are compared. */
struct ft_side {
	struct ft_purchase purchase;
	struct ft_throughput throughput;
	bool cannot_run; /* is the cheapest in no draw, where another can */
};

/* FT_DRAWS: when nobody says how many */
enum {
	FT_SIDES_MOST = 16,
	FT_CAUSES_MOST = 24,
	FT_DRAWS = 16384,
	FT_DRAWS_MOST = 1 << 22
};

/* Dollars per million tokens of each side with one cause at its P10 and P90, all else at its
 * likely value. */
struct ft_cause {
	const char *name; /* "servers", "electricity", "throughput" */
	double low[FT_SIDES_MOST], high[FT_SIDES_MOST];
};

/* What a draw of all that is uncertain comes to. */
enum ft_drawn {
	FT_DRAWN_USD,	    /* per million tokens */
	FT_DRAWN_HOUR,	    /* USD per GPU-hour */
	FT_DRAWN_KEPT,	    /* tokens/s that are kept: throughput times goodput */
	FT_DRAWN_FULL_W,    /* of the facility, all at full load */
	FT_DRAWN_AVERAGE_W, /* of the facility, over a year */
	FT_DRAWN_JOULES,    /* per token that is kept */
	FT_DRAWN
};

struct ft_odds {
	size_t n, draws;
	double p10[FT_DRAWN][FT_SIDES_MOST], p50[FT_DRAWN][FT_SIDES_MOST],
		p90[FT_DRAWN][FT_SIDES_MOST];
	double cheapest_frac[FT_SIDES_MOST]; /* of draws in which it is the cheapest */
	/* below[i][j]: of draws in which i is cheaper than j */
	double below[FT_SIDES_MOST][FT_SIDES_MOST];
	size_t n_causes;
	struct ft_cause cause[FT_CAUSES_MOST];
};

/* A side that is cheapest less often than this is not called cheaper. */
#define FT_ODDS_DECIDED 0.8

/* Draws of all sides. */
bool ft_odds_of(const struct ft_side *side, size_t n, size_t draws,
		struct ft_odds *odds, struct ft_error *err)
	__attribute__((warn_unused_result));

/* The side's P10 and P90, as the cost's lows and highs. */
void ft_odds_ranges(const struct ft_odds *odds, size_t side, struct ft_cost *cost);

/* ---- why dollars differ ----------------------------------------------------------- */

enum ft_part_of_cost {
	FT_COST_GPU_PRICE, /* servers, or rent */
	FT_COST_NETWORK,
	FT_COST_FINANCE, /* years, interest, residual value, storage, facility, staff ... */
	FT_COST_POWER, /* electricity, and what colocation bills by watt */
	FT_COST_THROUGHPUT,
	FT_COST_GOODPUT, /* and utilization */
	FT_COST_PARTS
};

const char *ft_part_of_cost_name(enum ft_part_of_cost part);

/* b's dollars per million tokens less a's, as Shapley values: each part's effect is averaged
 * over all orders in which parts could be exchanged. They add up to the difference. */
void ft_deals_explain(const struct ft_deal *a, const struct ft_deal *b,
		      double part_usd[FT_COST_PARTS]);

/* What would make b as cheap as a. */
struct ft_crossover {
	const char *what; /* "USD per server" ... */
	const char *unit;
	double now, value;
};

enum { FT_CROSSOVERS_MOST = 8 };

/* Inputs of b, one at a time, at which both cost the same; servers: that b's bill lists, flop_per_token: of the model. At most
 * a quarter or four times what they are now, years within what the terms allow; the nearest first. */
size_t ft_deals_crossovers(const struct ft_deal *a, const struct ft_deal *b,
			   double servers, double flop_per_token,
			   struct ft_crossover crossover[FT_CROSSOVERS_MOST]);

#ifdef __cplusplus
}
#endif
#endif
