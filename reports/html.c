/* reports/html.c - placeholder until the report is written */
#include "foretoken/reports.h"
bool ft_report_html(const char *dir, const struct ft_scenario *const *scenario,
		    const struct ft_outcome *outcome, size_t n,
		    struct ft_error *err)
{
	(void)dir; (void)scenario; (void)outcome; (void)n;
	return ft_fail(err, NULL, "not there yet");
}
