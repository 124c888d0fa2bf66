/* tests/library/answer.c - thirty lines that use the installed library, from C and C++ */
#include <locale.h>
#include <stdio.h>

#include <foretoken/reports.h>

int main(int argc, char **argv)
{
	struct ft_shelf *shelf = ft_shelf_new();
	struct ft_scenario *s;
	struct ft_outcome o;
	struct ft_error err;
	int failed = 1;

	setlocale(LC_ALL, ""); /* numbers read the same in any */
	s = ft_scenario_load(shelf, argc > 1 ? argv[1] : "-", NULL, 0, true, &err);
	if (s && ft_study_simulate(s, NULL, NULL, &o, &err)) {
		ft_report_outcome_json(stdout, s, &o);
		fprintf(stderr, "%s %.3f\n", ft_version(), 0.5);
		ft_outcome_release(&o);
		failed = 0;
	} else {
		fprintf(stderr, "%s:%d: %s\n", err.file, err.line, err.text);
	}
	ft_scenario_free(s);
	ft_shelf_free(shelf);
	return failed;
}
