/* reports/html_plots.h - the plots of the HTML report, each as SVG text */
#ifndef REPORTS_HTML_PLOTS_H
#define REPORTS_HTML_PLOTS_H

#include "foretoken/reports.h"

struct arena;

struct plots {
	struct arena *mem;
	const char *dir;
	const struct ft_answers *a;
};

/* NULL on error. */
char *plot_breakdown(struct plots *p, struct ft_error *err);
char *plot_scaling(struct plots *p, struct ft_error *err);
char *plot_cost(struct plots *p, struct ft_error *err);
char *plot_sensitivity(struct plots *p, size_t scenario, struct ft_error *err);

#endif
