/* reports/fit_hosts.c - host constants fitted to recordings: from what to what, and how */
#include "base/plain.h"
#include "foretoken/reports.h"
#include "reports/json.h"
#include "reports/table.h"

/* What is done for each block of a list takes nanoseconds, what is done once a layer a thousand microseconds. */
static void put_us(struct table *t, double time_s)
{
	table_put(t, time_s > 0 && time_s < 1e-7 ? "%.4f" : "%.1f", 1e6 * time_s);
}

void ft_report_host_fit(FILE *out, const struct ft_host_fit *fit)
{
	PLAIN_NUMBERS;
	struct table t = TABLE_OPEN(out, "host constant", ">was us", ">is us", "told",
				    ">samples");

	for (int h = 0; h < FT_HOSTS; h++) {
		const struct ft_host_constant *c = &fit->of[h];

		if (c->told == FT_HOST_ABSENT)
			continue;
		table_row(&t);
		table_put(&t, "%s", ft_host_name((enum ft_host)h));
		put_us(&t, c->was_s);
		put_us(&t, c->is_s);
		table_put(&t, "%s", ft_host_told_name(c->told));
		table_put(&t, "%zu", c->n);
	}
	table_close(&t);
	fprintf(out,
		"%s written. %zu sections of the host's time, %s, were off by %.1f %% "
		"on average and are by %.1f %%.\n%s\nNot in this step, and kept:",
		fit->path, fit->sections,
		fit->by_op ? "from operation to operation" : "from layer to layer",
		100 * fit->before_frac, 100 * fit->after_frac,
		fit->pace < 1 ? "The recorded time is shortened by --pace." :
				"The recorded time counts whole, though a profiler "
				"slows its host: --pace says by how much.");
	for (int h = 0; h < FT_HOSTS; h++)
		if (fit->of[h].told == FT_HOST_ABSENT)
			fprintf(out, " %s", ft_host_name((enum ft_host)h));
	fputs(".\n", out);
}

void ft_report_host_fit_json(FILE *out, const struct ft_host_fit *fit)
{
	PLAIN_NUMBERS;
	json_t *j = json_object(), *constants = json_object();

	for (int h = 0; h < FT_HOSTS; h++) {
		const struct ft_host_constant *c = &fit->of[h];
		json_t *o = json_object();

		json_put(o, "was_s", c->was_s);
		json_put(o, "is_s", c->is_s);
		json_put_text(o, "told", ft_host_told_name(c->told));
		json_put_int(o, "samples", (int64_t)c->n);
		json_object_set_new(constants, ft_host_name((enum ft_host)h), o);
	}
	json_put_text(j, "stack", fit->path);
	json_put_int(j, "sections", (int64_t)fit->sections);
	json_put_text(j, "aligned", fit->by_op ? "by operation" : "by layer");
	json_put(j, "pace", fit->pace);
	json_put(j, "before_frac", fit->before_frac);
	json_put(j, "after_frac", fit->after_frac);
	json_object_set_new(j, "constants", constants);
	json_print(out, j);
}
