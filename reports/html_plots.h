/* reports/html_plots.h - the plots of the HTML report, each as SVG text */
#ifndef REPORTS_HTML_PLOTS_H
#define REPORTS_HTML_PLOTS_H

#include "foretoken/reports.h"

struct arena;

/* One size of one scenario, the batch grown with it. */
struct scaled {
	double gpus, tokens_per_s, tokens_low, tokens_high, usd, usd_low, usd_high;
};

enum { SIZES = 6 };

struct plots {
	struct arena *mem;
	const char *dir;
	const struct ft_answers *a;
	struct scaled (*scaled)[SIZES]; /* [a->n]; gpus 0: cannot be */
	const char *widest;		/* the tornado's first cause */
};

/* NULL on error. */
char *plot_breakdown(struct plots *p, struct ft_error *err);
/* Products and attention under their GPU's roofs. */
char *plot_roofline(struct plots *p, struct ft_error *err);
char *plot_waterfall(struct plots *p, size_t scenario, struct ft_error *err);
char *plot_tornado(struct plots *p, struct ft_error *err);
/* Simulates the sizes when that was not yet done. */
char *plot_scaling_usd(struct plots *p, struct ft_error *err);
char *plot_efficiency(struct plots *p, struct ft_error *err);
/* Dollars paid a year, by account. */
char *plot_cash(struct plots *p, size_t scenario, struct ft_error *err);

#endif
